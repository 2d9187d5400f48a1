use super::histlog;
use crate::fio::options::kinds::WindowValue;
use crate::fio::options::trace::{self, Entry as TraceEntry};
use crate::fio::plan::jobs::Job;
use crate::fio::run::result::{CloneResult, CloneStats, FioResult, JobResult};
use crate::fio::run::stream_stats::{Line, Sum, Times};
use machine::{IoClass, IoPriority};
use measure::histogram::Histogram;
use std::fmt::Write;
use std::path::PathBuf;

const MILLISECOND_NS: u64 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bandwidth,
    Iops,
    Latency,
    Submission,
    Completion,
    Histogram,
}

impl Kind {
    fn of_window(self, sum: Sum, width: u64) -> u64 {
        let per_s = sum.requests as f64 * 1e9 / width.max(1) as f64;
        match self {
            Kind::Bandwidth => (sum.bytes as f64 * 1e9 / width.max(1) as f64 / 1024.0) as u64,
            Kind::Iops => per_s as u64,
            Kind::Histogram => 0,
            _ => self.times(sum).map_or(0, |times| times.sum_ns / sum.requests.max(1)),
        }
    }

    fn max_of(self, sum: Sum, width: u64) -> u64 {
        self.times(sum).map_or_else(|| self.of_window(sum, width), |times| times.max_ns)
    }

    fn times(self, sum: Sum) -> Option<Times> {
        match self {
            Kind::Latency => Some(sum.latency),
            Kind::Submission => Some(sum.submission),
            Kind::Completion => Some(sum.completion),
            Kind::Bandwidth | Kind::Iops | Kind::Histogram => None,
        }
    }

    fn of_line(self, line: &Line) -> u64 {
        match self {
            Kind::Bandwidth => {
                (f64::from(line.bytes) * 1e9 / 1024.0 / line.latency_ns.max(1) as f64) as u64
            }
            Kind::Iops => 1,
            Kind::Histogram => 0,
            Kind::Latency => line.latency_ns,
            Kind::Submission => line.submission_ns.unwrap_or(0),
            Kind::Completion => line.latency_ns - line.submission_ns.unwrap_or(0),
        }
    }
}

/// Paths and texts. Columns: milliseconds; KiB/s, requests/s or ns; side (0 read, 1 write, 2 trim);
/// bytes (0 if averaged); with `log_offset` the offset; priority (with `log_prio` the kernel's
/// value, otherwise 1 for real time). As in fio, the `slat` log is empty if submission is not
/// measured.
pub fn logs(result: &FioResult) -> Vec<(PathBuf, String)> {
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    for job in result.groups.iter().flat_map(|group| &group.jobs) {
        for clone in &job.clones {
            for (path, kind) in named(&job.job, clone.number) {
                let text = log(job, clone, kind);
                // Without per_job_logs all clones share one log.
                match files.iter_mut().find(|(known, _)| *known == path) {
                    Some((_, known)) => known.push_str(&text),
                    None => files.push((path, text)),
                }
            }
        }
    }
    files.extend(traces(result));
    files
}

fn traces(result: &FioResult) -> Vec<(PathBuf, String)> {
    let mut traces: Vec<(PathBuf, Vec<(PathBuf, TraceEntry)>)> = Vec::new();
    let jobs = || result.groups.iter().flat_map(|group| &group.jobs);
    let first_ms = jobs().map(|job| job.began_unix_ms).min().unwrap_or(0);
    for job in jobs() {
        let Some(path) = &job.job.options.logs.requests else { continue };
        let later_ns = (job.began_unix_ms - first_ms) * MILLISECOND_NS;
        for (files, entries) in job.clones.iter().filter_map(|clone| clone.trace.as_ref()) {
            let timed = entries.iter().filter_map(|entry| {
                let at_ns = entry.at_ns + later_ns;
                Some((files.get(entry.file as usize)?.clone(), TraceEntry { at_ns, ..*entry }))
            });
            match traces.iter_mut().find(|(known, _)| known.as_os_str() == path.as_str()) {
                Some((_, known)) => known.extend(timed),
                None => traces.push((PathBuf::from(path), timed.collect())),
            }
        }
    }
    traces.into_iter().map(|(path, mut entries)| (path, trace::text(&mut entries))).collect()
}

pub fn aggregate_log_paths(prefix: &str) -> [PathBuf; 2] {
    ["read", "write"].map(|side| PathBuf::from(format!("{prefix}-{side}_bw.log")))
}

/// `--bandwidth-log`: all jobs, by half seconds. Columns as in [`logs`].
pub fn aggregate_logs(result: &FioResult, prefix: &str) -> Vec<(PathBuf, String)> {
    let mut texts = [String::new(), String::new()];
    let jobs = || result.groups.iter().flat_map(|group| &group.jobs);
    let first_ms = jobs().map(|job| job.began_unix_ms).min().unwrap_or(0);
    for group in &result.groups {
        let began_ms = group.jobs.iter().map(|job| job.began_unix_ms).min().unwrap_or(first_ms);
        let mut all = CloneStats::default();
        group.jobs.iter().flat_map(|job| &job.clones).for_each(|clone| all.add(&clone.recorded));
        let width = all.runtime_ns.min(all.spread_ns);
        for (index, sums) in all.spread.iter().enumerate().filter(|_| width >= MILLISECOND_NS) {
            let at_ms = began_ms - first_ms + (index as u64 + 1) * width / MILLISECOND_NS;
            for (side, sum) in sums.iter().enumerate().filter(|(_, sum)| sum.requests > 0) {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    texts[side],
                    "{at_ms}, {}, {side}, 0, 0",
                    Kind::Bandwidth.of_window(*sum, width)
                );
            }
        }
    }
    aggregate_log_paths(prefix).into_iter().zip(texts).collect()
}

pub fn log_paths(job: &Job, clone: u32) -> Vec<PathBuf> {
    let trace = job.options.logs.requests.iter().map(PathBuf::from);
    named(job, clone).into_iter().map(|(path, _)| path).chain(trace).collect()
}

fn named(job: &Job, clone: u32) -> Vec<(PathBuf, Kind)> {
    let logs = &job.options.logs;
    let wanted = [
        (&logs.bandwidth, "bw", Kind::Bandwidth),
        (&logs.iops, "iops", Kind::Iops),
        (&logs.latency, "lat", Kind::Latency),
        (&logs.latency, "slat", Kind::Submission),
        (&logs.latency, "clat", Kind::Completion),
        (&logs.histogram, "clat_hist", Kind::Histogram),
    ];
    let path = |(prefix, suffix, kind): (&Option<String>, &str, Kind)| {
        let prefix = prefix.as_ref()?;
        let prefix = if prefix.is_empty() { &job.name } else { prefix };
        let number = if logs.per_job { format!(".{clone}") } else { String::new() };
        Some((PathBuf::from(format!("{prefix}_{suffix}{number}.log")), kind))
    };
    wanted.into_iter().filter_map(path).collect()
}

fn log(job: &JobResult, clone: &CloneResult, kind: Kind) -> String {
    let logs = &job.job.options.logs;
    let from_ms = if logs.epoch { job.began_unix_ms } else { 0 };
    // A window holds requests of any priority.
    let priority = if logs.priority { "0x0000" } else { "0" };
    if kind == Kind::Histogram {
        return histlog::lines(&clone.histograms, from_ms);
    }
    let mut text = String::new();
    if kind == Kind::Submission && clone.recorded.submission.iter().all(Histogram::is_empty) {
        return text;
    }
    // Writing to a String cannot fail.
    if let Some((width, windows)) = &clone.log {
        // A run shorter than a window has one window of its own length; below a millisecond it has
        // no rate.
        let width = clone.recorded.runtime_ns.min(*width);
        for (index, sums) in windows.iter().enumerate().filter(|_| width >= MILLISECOND_NS) {
            let at_ms = from_ms + (index as u64 + 1) * width / MILLISECOND_NS;
            for (side, sum) in sums.iter().enumerate().filter(|(_, sum)| sum.requests > 0) {
                let offset = if logs.offset { "0, " } else { "" };
                let (mean, greatest) = (kind.of_window(*sum, width), kind.max_of(*sum, width));
                let value = match logs.window {
                    WindowValue::Mean => mean.to_string(),
                    WindowValue::Greatest => greatest.to_string(),
                    WindowValue::Both => format!("{mean}, {greatest}"),
                };
                let issued = if logs.issue_time { ", 0" } else { "" };
                let _ = writeln!(text, "{at_ms}, {value}, {side}, 0, {offset}{priority}{issued}");
            }
        }
    }
    let own = job.job.options.io_priority();
    let shown = |bits: u16| match bits {
        bits if logs.priority => format!("{bits:#06x}"),
        bits => if bits >> 13 == IoClass::RealTime as u16 { "1" } else { "0" }.into(),
    };
    let own = own.map_or(0, IoPriority::bits);
    let logged = |line: &&Line| kind != Kind::Submission || line.submission_ns.is_some();
    for line in clone.lines.iter().flatten().filter(logged) {
        let side = line.side;
        let offset = if logs.offset { format!("{}, ", line.offset) } else { String::new() };
        let at_ms = from_ms + line.at_ns / MILLISECOND_NS;
        // As in fio, issue times are only in the completion log.
        let issued_ns = if kind == Kind::Completion {
            from_ms * MILLISECOND_NS + line.at_ns.saturating_sub(line.latency_ns)
        } else {
            0
        };
        let issued = if logs.issue_time { format!(", {issued_ns}") } else { String::new() };
        let priority = shown(if line.priority == 0 { own } else { line.priority });
        let _ = writeln!(
            text,
            "{at_ms}, {}, {side}, {}, {offset}{priority}{issued}",
            kind.of_line(line),
            line.bytes
        );
    }
    text
}
