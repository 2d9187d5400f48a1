//! Load that changes over time, and intervals whose latencies are kept apart.

use crate::check::{MAX_RATE_IOPS, refuse};
use crate::load_step::LoadStep;
use crate::{Error, Workload};
use machine::units::parse_time;
use machine::{Nanos, Reap};

/// For a load's steps and a run's intervals.
pub const MAX_INTERVALS: usize = 1000;

const LONGEST_STEP: usize = 60;

/// Histograms need 64 KiB each, 256 MiB together.
const MAX_HISTOGRAMS: u64 = 4096;

/// As `1000:30s,5000:60s`. The error shows the wrong step, and how to write it.
///
/// ```
/// let steps = workload::parse_load("1000:30s,0:500ms").unwrap();
/// assert_eq!((steps[0].rate_iops, steps[1].duration_ns), (1000.0, 500_000_000));
/// ```
pub fn parse_load(text: &str) -> Result<Vec<LoadStep>, String> {
    limited(text.split(',').map(|step| step_of(step, ':')).collect::<Result<_, _>>()?)
}

/// Takes `RATE,TIME` lines, with `#` before comments and perhaps a heading, as in a spreadsheet.
pub fn parse_load_file(text: &str) -> Result<Vec<LoadStep>, String> {
    let mut steps = Vec::new();
    let content = |line: &'_ str| line.split('#').next().unwrap_or_default().trim().to_owned();
    let lines = text.lines().map(content).enumerate().filter(|(_, line)| !line.is_empty());
    for (place, (index, line)) in lines.enumerate() {
        let heading = place == 0 && line.starts_with(|first: char| first.is_alphabetic());
        if !heading {
            let step = step_of(&line, ',').map_err(|why| format!("line {}: {why}", index + 1))?;
            steps.push(step);
        }
    }
    limited(steps)
}

fn step_of(text: &str, between: char) -> Result<LoadStep, String> {
    let wrong = || {
        let start: String = text.trim().chars().take(LONGEST_STEP).collect();
        format!("'{start}' is not RATE{between}TIME, as in 1000{between}30s")
    };
    let parts = text.split_once(between).filter(|_| text.trim().len() <= LONGEST_STEP);
    let (rate, time) = parts.ok_or_else(wrong)?;
    let rate_iops = rate.trim().parse().map_err(|_| wrong())?;
    let duration_ns = parse_time(time.trim()).map_err(|why| format!("{}: {why}", wrong()))?;
    Ok(LoadStep { rate_iops, duration_ns })
}

fn limited(steps: Vec<LoadStep>) -> Result<Vec<LoadStep>, String> {
    match steps.len() {
        0 => Err("it has no steps; write RATE:TIME,... as in 1000:30s,5000:60s".into()),
        1..=MAX_INTERVALS => Ok(steps),
        count => Err(format!("it has {count} steps; write at most {MAX_INTERVALS}")),
    }
}

/// With its own latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The run starts at 0.
    pub from_ns: Nanos,
    pub until_ns: Nanos,
    /// Index and requests per second, if the load changes.
    pub step: Option<(usize, f64)>,
}

impl Workload {
    /// The steps, divided into windows if requested; empty without both.
    pub fn intervals(&self) -> Vec<Interval> {
        let windows = |from_ns: Nanos, length: Nanos, step| {
            let width = self.latency_window_ns.unwrap_or(length).max(1);
            (0..length.div_ceil(width)).map(move |window| Interval {
                from_ns: from_ns + window * width,
                until_ns: from_ns + length.min((window + 1) * width),
                step,
            })
        };
        if self.load.is_empty() {
            let run = self.run_ns().filter(|_| self.latency_window_ns.is_some());
            return run.into_iter().flat_map(|ns| windows(0, ns, None)).collect();
        }
        let mut from_ns = 0;
        let step = |(index, step): (usize, &LoadStep)| {
            let start = from_ns;
            from_ns += step.duration_ns;
            windows(start, step.duration_ns, Some((index, step.rate_iops)))
        };
        self.load.iter().enumerate().flat_map(step).collect()
    }

    pub(crate) fn check_load(&self) -> Result<(), Error> {
        for step in &self.load {
            if !(0.0..=MAX_RATE_IOPS).contains(&step.rate_iops) || step.duration_ns == 0 {
                return refuse(
                    format!("step {step} of the load"),
                    "a step has a rate from 0 to 10^9 and a time above 0",
                    "change it, or leave it out",
                );
            }
        }
        let total = self.load.iter().try_fold(0, |sum: Nanos, step| {
            sum.checked_add(step.duration_ns).filter(|sum| *sum < Nanos::MAX >> 16)
        });
        if !self.load.is_empty() && (total != self.run_ns() || self.rate_iops.is_some()) {
            return refuse(
                "a load that changes over time".into(),
                "its steps set the rate and the length of the run, which is at most 78 hours",
                "leave out the rate, the length and the amount of data",
            );
        }
        if !self.load.is_empty() && self.reap == Reap::Auto {
            return refuse(
                "a load that changes over time with --reap auto".into(),
                "it learns at the start of a run, while the first step is measured",
                "give --reap a number, or leave it out",
            );
        }
        if !self.load.is_empty() && self.load.iter().all(|step| step.rate_iops == 0.0) {
            return refuse(
                "a load of pauses only".into(),
                "no request would be issued",
                "give at least one step a rate above 0",
            );
        }
        if self.latency_window_ns == Some(0)
            || self.latency_window_ns.is_some() && self.run_ns().is_none()
        {
            return refuse(
                "latency over time".into(),
                "it needs a window above 0 and a run that ends after a time",
                "give a window such as 1s, and a length instead of an amount of data",
            );
        }
        // Count before making them: a window of a nanosecond has too many to list.
        let of = |ns: Nanos| ns.div_ceil(self.latency_window_ns.unwrap_or(ns).max(1));
        let count: u64 = match (self.load.as_slice(), self.latency_window_ns) {
            ([], None) => 0,
            ([], Some(_)) => of(self.run_ns().unwrap_or(0)),
            (steps, _) => steps.iter().fold(0, |sum, step| sum + of(step.duration_ns)),
        };
        let sources = self.threads.max(self.buffers().streams);
        if count > MAX_INTERVALS as u64 || count * u64::from(sources) > MAX_HISTOGRAMS {
            return refuse(
                format!("{count} intervals of time in {sources} streams"),
                "a run has at most 1000 intervals, and 4096 over all streams",
                "make the windows or steps longer, or use fewer threads",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stop;

    #[test]
    fn options_and_files_have_the_same_steps() {
        let steps = parse_load("1000:30s,0:1500ms,2.5:7us").unwrap();
        let text: Vec<String> = steps.iter().map(LoadStep::to_string).collect();
        assert_eq!(text, ["1000:30s", "0:1500ms", "2.5:7us"]);
        let file = "rate_iops,duration\n1000,30s\n\n0, 1500ms # a pause\n2.5,7us\n";
        assert_eq!(parse_load_file(file).unwrap(), steps);
        for wrong in ["", "1000", "1000:", "fast:1s", "1000:30s,", "1000:1parsec"] {
            parse_load(wrong).expect_err(wrong);
        }
        let why = parse_load_file("1000,30s\n1000;30s\n").unwrap_err();
        assert!(why.starts_with("line 2: '1000;30s' is not RATE,TIME"), "{why}");
        assert!(parse_load_file("# nothing\n").unwrap_err().contains("no steps"));
    }

    #[test]
    fn windows_divide_steps() {
        let load = parse_load("10:3s,20:1s").unwrap();
        let of = |load: &[LoadStep], window| {
            let workload = Workload {
                load: load.to_vec(),
                latency_window_ns: window,
                stop: Stop::AfterNs(4_000_000_000),
                ..Workload::default()
            };
            workload.check_load().unwrap();
            let seconds = |ns: u64| ns as f64 / 1e9;
            let shown = |one: Interval| {
                (seconds(one.from_ns), seconds(one.until_ns), one.step.map(|step| step.1))
            };
            workload.intervals().into_iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(of(&[], None), []);
        assert_eq!(of(&load, None), [(0.0, 3.0, Some(10.0)), (3.0, 4.0, Some(20.0))]);
        assert_eq!(of(&[], Some(3_000_000_000)), [(0.0, 3.0, None), (3.0, 4.0, None)]);
        let both = of(&load, Some(2_000_000_000));
        assert_eq!(both, [(0.0, 2.0, Some(10.0)), (2.0, 3.0, Some(10.0)), (3.0, 4.0, Some(20.0))]);
    }

    #[test]
    fn impossible_loads_are_refused() {
        let base = Workload {
            load: parse_load("10:1s").unwrap(),
            stop: Stop::AfterNs(1_000_000_000),
            ..Workload::default()
        };
        base.check_load().unwrap();
        let wrong = [
            Workload { rate_iops: Some(5.0), ..base.clone() },
            Workload { stop: Stop::AfterNs(2_000_000_000), ..base.clone() },
            Workload { stop: Stop::AfterBytes(1 << 20), ..base.clone() },
            Workload { load: parse_load("0:1s").unwrap(), ..base.clone() },
            Workload { load: parse_load("-1:1s").unwrap(), ..base.clone() },
            Workload { reap: Reap::Auto, ..base.clone() },
            Workload { latency_window_ns: Some(0), ..base.clone() },
            Workload { latency_window_ns: Some(1), ..base.clone() },
            Workload { latency_window_ns: Some(10_000_000), threads: 64, ..base.clone() },
        ];
        for workload in wrong {
            workload.check_load().expect_err(&workload.options());
        }
    }
}
