//! A short run takes the rate of a cache or a burst credit for the target's.

use crate::context::StudyContext;
use crate::sampler::Sampler;
use machine::{Error, Machine, Nanos, Result};
use results::{LongWrites, WriteLevel, WriteRate};
use sustained::{Look, LookLimits, look};
use workload::{OpKind, Workload};

const END_SHARE: f64 = 0.985;

/// Of the budget.
pub(crate) const SHARE: f64 = 0.1;

const STEPS: u64 = 100;

/// A rate of several steps needs this time.
const SHORTEST_NS: Nanos = 200_000_000;

/// Requests, on a machine whose time costs nothing.
const MOST_SIMULATED: u64 = 200_000;

/// Smaller requests cost more processor time, and many are outstanding.
const LARGE: u32 = 1 << 20;
const USUAL_DEPTH: u32 = 16;

/// At a rate that has fallen, more would take longer than the time left.
const MOST_IN_FLIGHT: u64 = 32 << 20;

/// Of the peak: a smaller fall is the drift of a shared machine.
const CLEARLY: f64 = 0.75;

pub(crate) fn applies(setting: &StudyContext) -> std::result::Result<(), String> {
    if !setting.facts.writable {
        return Err("the target is only read".into());
    }
    if setting.facts.in_memory {
        return Err("the target is in memory".into());
    }
    Ok(())
}

pub(crate) type Seen = std::result::Result<LongWrites, String>;

/// Long writes come last.
pub(crate) const NOT_YET: &Seen = &Err(String::new());

pub(crate) fn long_writes<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    peaks: &[(OpKind, usize)],
) -> Result<Seen> {
    if let Err(why) = applies(setting) {
        return Ok(Err(why));
    }
    let peak = peaks.iter().find(|one| one.0 == OpKind::Write).map(|one| one.1);
    let Some(entry) = peak.map(|peak| &sampler.entries[peak]) else {
        return Ok(Err("no writes were measured".into()));
    };
    let rate = entry.point().numbers.as_ref().map(|numbers| {
        let low = numbers.interval_95.map_or(numbers.throughput_bytes_per_s, |[low, _]| low);
        (numbers.throughput_bytes_per_s, low)
    });
    let workload = at_full_speed(setting, &entry.workload);
    let for_ns = if sampler.noisy {
        sampler.at(END_SHARE).saturating_sub(sampler.machine.now())
    } else {
        sampler.budget()
    };
    if for_ns < SHORTEST_NS {
        return Ok(Err("no time was left; study --sustained measures it".into()));
    }
    let may_write = sampler.machine.may_write();
    let simulated = MOST_SIMULATED * u64::from(workload.request_bytes);
    let limits = LookLimits {
        for_ns,
        max_written: if sampler.noisy { may_write } else { may_write.min(simulated) },
        step_ns: for_ns / STEPS,
    };
    sampler.report("long writes");
    let seen = look(sampler.machine, &*sampler.target, &workload, limits, &mut |_| true);
    match seen {
        Ok(seen) if !seen.levels.is_empty() => Ok(Ok(of(&workload, &seen, rate))),
        Ok(_) => Ok(Err("no request completed in its time".into())),
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Err(error) => Ok(Err(error.to_string())),
    }
}

fn at_full_speed(setting: &StudyContext, peak: &Workload) -> Workload {
    let align = setting.align().max(1);
    let largest = (setting.facts.size_bytes / 4).min(u64::from(LARGE)) / align * align;
    let request = u64::from(peak.request_bytes).max(largest);
    let most = (MOST_IN_FLIGHT / request).max(1);
    let alike = u64::from(peak.outstanding()) * u64::from(peak.request_bytes) / request;
    let usual = u64::from(USUAL_DEPTH).min(setting.facts.size_bytes / 4 / request).max(1);
    let depth = alike.max(if peak.request_bytes < LARGE { usual } else { 1 }).min(most);
    Workload { seed: peak.seed, ..setting.deep(OpKind::Write, request as u32, depth as u32) }
}

fn of(workload: &Workload, seen: &Look, peak: Option<(f64, f64)>) -> LongWrites {
    let levels: Vec<WriteLevel> = seen
        .levels
        .iter()
        .map(|level| WriteLevel {
            bytes_per_s: level.bytes_per_s,
            bytes: level.bytes() as f64,
            seconds: level.bytes() as f64 / level.bytes_per_s,
        })
        .collect();
    // A rate a little below the peak may be another moment of a shared machine.
    let first = levels.first().map_or(0.0, |level| level.bytes_per_s);
    let peak = peak.filter(|(_, low)| first < low * CLEARLY).map(|(rate, _)| rate);
    let mut served_s = 0.0;
    let course = seen.points.iter().map(|point| {
        let at_s = served_s;
        served_s += point.served_s;
        WriteRate { at_s, bytes_per_s: point.bytes_per_s() }
    });
    LongWrites {
        course: course.collect(),
        request_bytes: workload.request_bytes,
        depth: workload.outstanding(),
        levels,
        peak_bytes_per_s: peak,
        written_bytes: seen.written_bytes,
        took_s: seen.took_s,
        out_of_bytes: seen.out_of_bytes,
        needs_s: seen.needs_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sustained::SeriesPoint;

    #[test]
    fn the_course_is_as_long_as_the_writing() {
        // The steps have pauses between them.
        let point = |number: u64| SeriesPoint {
            from_s: number as f64 * 2.0,
            served_s: 1.0,
            from_bytes: number << 30,
            bytes: 1 << 30,
            requests: 1024,
            p99_ns: 1,
            temperature_c: None,
        };
        let seen = Look {
            points: (0..5).map(point).collect(),
            levels: Vec::new(),
            written_bytes: 5 << 30,
            took_s: 5.0,
            out_of_bytes: false,
            needs_s: None,
        };
        let at: Vec<f64> =
            of(&Workload::default(), &seen, None).course.iter().map(|one| one.at_s).collect();
        assert_eq!(at, [0.0, 1.0, 2.0, 3.0, 4.0]);
    }
}
