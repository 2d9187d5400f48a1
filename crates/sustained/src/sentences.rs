//! A sustained run's conclusions in words.

use crate::document::{FillResult, Recovery, StopReason, SustainedResult, WearChange};
use crate::falls::{cliff, falls};
use crate::level::Level;
use crate::reserve::{Reserve, ReserveKind};
use machine::units::{
    grouped, show_capacity, show_rate, show_span as span, show_time, significant,
};

/// Requests up to this size are counted; larger ones are measured in bytes.
const COUNTED_BYTES: u32 = 64 << 10;

/// The answer first.
pub fn sentences(result: &SustainedResult) -> Vec<String> {
    let mut all = vec![answer(result)];
    all.extend(
        result
            .failure
            .as_ref()
            .map(|why| format!("The run ended early: {why}. The numbers are those until then.")),
    );
    all.extend(result.reserve.as_ref().and_then(|reserve| kind(result, reserve)));
    all.extend(result.reserve.as_ref().and_then(|reserve| advice(result, reserve)));
    all.extend(result.slowed_by_heat_at_c.map(|celsius| heat(result, celsius)));
    all.extend(steadiness(result));
    all.extend(latencies(result));
    all.extend(result.reads.map(|reads| {
        format!(
            "A 4 KiB read takes {} without writes and {} during them (p99 {} and {}).",
            show_time(reads.alone_mean_ns),
            show_time(reads.during_mean_ns),
            show_time(reads.alone_p99_ns as f64),
            show_time(reads.during_p99_ns as f64),
        )
    }));
    all.extend(result.fills.iter().map(|one| filled(result, one)));
    all.extend(result.wear.as_ref().map(|wear| worn(result.written_bytes, wear)));
    all.extend(result.unseen.iter().map(|unseen| {
        let mut text = format!("Not seen: {}", unseen.what);
        if let Some(seconds) = unseen.needs_s {
            text += &format!("; it takes a run of about {}", span(seconds));
        }
        if let Some(bytes) = unseen.needs_bytes {
            text += &format!(", which writes {}", show_capacity(bytes));
        }
        text + "."
    }));
    all
}

fn heat(result: &SustainedResult, celsius: f64) -> String {
    let when = if result.levels.last().is_some_and(|last| last.saw_tooth.is_some()) {
        "each time the rate fell, and cooler when it rose"
    } else {
        "its highest, when the rate fell"
    };
    format!(
        "The drive was at {celsius:.0} °C, {when}: heat is the likely cause. Cool it and repeat."
    )
}

fn counts(result: &SustainedResult) -> bool {
    result.settings.request_bytes <= COUNTED_BYTES
}

fn rate(result: &SustainedResult, bytes_per_s: f64) -> String {
    if counts(result) {
        let each = f64::from(result.settings.request_bytes);
        format!("{} writes/s", grouped((bytes_per_s / each).round()))
    } else {
        show_rate(bytes_per_s)
    }
}

fn of_level(result: &SustainedResult, level: &Level) -> String {
    let mean = rate(result, level.bytes_per_s);
    match level.saw_tooth {
        None => mean,
        Some([low, high]) => format!(
            "{mean} on average, up and down between {} and {}",
            rate(result, low),
            rate(result, high)
        ),
    }
}

/// In the unit that matters: bytes of a cache, time of a credit.
fn extent(result: &SustainedResult, level: &Level) -> String {
    let credit = result.reserve.is_some_and(|one| one.kind == ReserveKind::Credit);
    if credit || counts(result) {
        format!("for {}", span(level.seconds()))
    } else {
        format!("for {}", show_capacity(level.bytes() as f64))
    }
}

fn answer(result: &SustainedResult) -> String {
    let Some((fast, slow)) = cliff(&result.levels) else {
        let written = result.points.last().map_or(0, |point| point.from_bytes + point.bytes);
        let mean = written as f64
            / result.points.iter().map(|point| point.served_s).sum::<f64>().max(f64::MIN_POSITIVE);
        let shown = show_capacity(written as f64);
        return match &result.levels[..] {
            [first, last] if first.slides => format!(
                "The rate slid from {} to {} over {shown}.",
                rate(result, first.bytes_per_s),
                rate(result, last.bytes_per_s)
            ),
            [one] if one.saw_tooth.is_some() => format!(
                "{} over {shown}; no lasting fall within {}.",
                of_level(result, one),
                span(one.seconds())
            ),
            [_] | [] => format!(
                "{} throughout: no fall within {shown} and {}.",
                rate(result, mean),
                span(result.points.iter().map(|point| point.served_s).sum())
            ),
            many => format!(
                "{} on average over {shown}; the rate changed {} times but did not fall for good.",
                rate(result, mean),
                many.len() - 1
            ),
        };
    };
    let mut text = format!(
        "{} {}",
        rate(result, fast.bytes_per_s),
        if fast.from_bytes == 0 {
            extent(result, &fast).replacen("for ", "for the first ", 1)
        } else {
            extent(result, &fast)
        }
    );
    let after: Vec<&Level> =
        result.levels.iter().filter(|level| level.from_bytes >= fast.to_bytes).collect();
    match &after[..] {
        [last] => text += &format!(", then {}", of_level(result, last)),
        [middle, last] => {
            text += &format!(
                ", then {} {}, then {}",
                rate(result, middle.bytes_per_s),
                extent(result, middle),
                of_level(result, last)
            );
        }
        many => {
            let rates = || many.iter().map(|level| level.bytes_per_s);
            let (low, high) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
            text += &format!(
                ", then between {} and {}, at the end {}",
                rate(result, low),
                rate(result, high),
                rate(result, slow)
            );
        }
    }
    let best = result.recoveries.iter().filter(|one| !one.cut_short).max_by(longer);
    if let Some(recovery) = best {
        text += &format!("; {}", recovered(result, &fast, recovery));
    }
    text + "."
}

fn filled(result: &SustainedResult, one: &FillResult) -> String {
    let head = match one.percent {
        100 => "With all of the target filled".to_owned(),
        percent => format!("With {percent} % of the target filled"),
    };
    let rested = format!("after {} of rest", span(one.rest_s));
    let Some((fast, slow)) = cliff(&one.levels) else {
        let last = one.levels.last().map_or(0.0, |level| level.bytes_per_s);
        return format!("{head}, {rested}: {}; no fall was seen.", rate(result, last));
    };
    let bytes = show_capacity(fast.to_bytes as f64);
    let more = if one.settled { "" } else { "; whether it falls again was not seen" };
    format!(
        "{head}, {rested}: {} for {bytes}, then {}{more}.",
        rate(result, fast.bytes_per_s),
        rate(result, slow)
    )
}

/// A smaller share of the endurance needs no number.
const LITTLE_PERCENT: f64 = 0.001;

pub(crate) fn worn(run_bytes: u64, wear: &WearChange) -> String {
    let mut parts = Vec::new();
    if let Some(endurance) = wear.endurance_bytes {
        let percent = 100.0 * run_bytes as f64 / endurance;
        let percent = if percent < LITTLE_PERCENT {
            format!("less than {LITTLE_PERCENT}")
        } else {
            significant(percent, 2)
        };
        parts.push(format!(
            "The run wrote {percent} % of the endurance of {}",
            show_capacity(endurance)
        ));
    }
    for before in &wear.before {
        let after = wear.after.iter().find(|one| one.device == before.device).unwrap_or(before);
        let mut said = Vec::new();
        if let (Some(from), Some(to)) = (before.used_percent, after.used_percent) {
            said.push(if from == to {
                format!("{to:.0} % of its endurance used")
            } else {
                format!("{from:.0} % of its endurance used before and {to:.0} % after")
            });
        }
        if let Some(bytes) = after.written_bytes {
            said.push(format!("{} written in all", show_capacity(bytes as f64)));
        }
        if let (Some(from), Some(to)) = (before.temperature_c, after.temperature_c) {
            said.push(format!("{from:.0} °C before and {to:.0} °C after"));
        }
        if !said.is_empty() {
            parts.push(format!("{} reports {}", before.device, said.join(", ")));
        }
    }
    parts.join("; ") + "."
}

fn longer(one: &&Recovery, other: &&Recovery) -> std::cmp::Ordering {
    one.rest_s.total_cmp(&other.rest_s)
}

fn recovered(result: &SustainedResult, fast: &Level, recovery: &Recovery) -> String {
    let rest = span(recovery.rest_s);
    let whole = falls(&result.levels).map_or(fast.to_bytes as f64, |falls| falls.bytes());
    let share = recovery.bytes() / whole;
    if share >= 0.95 {
        return format!("after {rest} of rest all of it is back");
    }
    if share < 0.01 {
        return format!("after {rest} of rest nothing of it is back");
    }
    let credit = result.reserve.is_some_and(|one| one.kind == ReserveKind::Credit);
    let amount = if credit || counts(result) {
        span(recovery.fast_bytes / fast.bytes_per_s)
    } else {
        show_capacity(recovery.bytes())
    };
    format!("after {rest} of rest {amount} of it are back")
}

fn kind(result: &SustainedResult, reserve: &Reserve) -> Option<String> {
    if result.slowed_by_heat_at_c.is_some() {
        return None;
    }
    if let Some(second) = &result.second_reserve {
        return two(result, reserve, second);
    }
    let refills = reserve.refills_in_s?;
    let refill = rate(result, reserve.refill_bytes_per_s?);
    match reserve.kind {
        ReserveKind::Credit => Some(format!(
            "It is a burst credit: {} while it lasts, {} without; it is empty after {} at full speed and full again after {} at rest.",
            rate(result, reserve.fast_bytes_per_s),
            rate(result, reserve.slow_bytes_per_s),
            span(reserve.empties_in_s),
            span(refills)
        )),
        ReserveKind::Cache => Some(format!(
            "It is a write cache of {}: it is full after {} at full speed, is emptied at {refill} when idle, and is empty again after {} at rest.",
            show_capacity(reserve.size_bytes),
            span(reserve.empties_in_s),
            span(refills)
        )),
        ReserveKind::Unknown => None,
    }
}

fn two(result: &SustainedResult, first: &Reserve, second: &Reserve) -> Option<String> {
    let [fast, middle, slow] =
        [first.fast_bytes_per_s, second.fast_bytes_per_s, second.slow_bytes_per_s]
            .map(|bytes_per_s| rate(result, bytes_per_s));
    let size = show_capacity;
    match second.kind {
        ReserveKind::Credit => Some(format!(
            "It is two burst credits, such as of requests and of bytes: {fast} until the first is empty after {}, {middle} until the other is empty after {}, {slow} without; at rest the first is full again after {} and the other after {}.",
            span(first.empties_in_s),
            span(second.empties_in_s),
            span(first.refills_in_s?),
            span(second.refills_in_s?)
        )),
        ReserveKind::Cache => Some(format!(
            "It is two write caches in a row: one of {} takes {fast} and passes on {middle} all the time; the one of {} behind it is full after {}, is emptied at {} when idle, and is empty again after {} at rest.",
            size(first.size_bytes),
            size(second.size_bytes),
            span(second.empties_in_s),
            rate(result, second.refill_bytes_per_s?),
            span(second.refills_in_s?)
        )),
        ReserveKind::Unknown => None,
    }
}

fn advice(result: &SustainedResult, reserve: &Reserve) -> Option<String> {
    if result.slowed_by_heat_at_c.is_some() {
        return None;
    }
    let reserve = result.second_reserve.as_ref().unwrap_or(reserve);
    let refills = span(reserve.refills_in_s?);
    let slow = rate(result, reserve.slow_bytes_per_s);
    match reserve.kind {
        ReserveKind::Credit => Some(format!(
            "Plan with {slow}: work at full speed has {} of credit, and the next one {refills} of rest later.",
            span(reserve.empties_in_s)
        )),
        ReserveKind::Cache => Some(format!(
            "Plan with {slow} for writes of more than {} at a time, or leave {refills} of rest between them.",
            show_capacity(reserve.fast_bytes)
        )),
        ReserveKind::Unknown => None,
    }
}

fn steadiness(result: &SustainedResult) -> Option<String> {
    let steady = result.steady.as_ref()?;
    let numbers = format!(
        "range {:.1} %, slope {:.1} % of the mean in five parts",
        steady.range_percent, steady.slope_percent
    );
    Some(match (steady.contradicted_by, steady.to_specification) {
        (Some(pattern), _) => {
            format!("The last rate is not a steady state: it {} ({numbers}).", pattern.sentence())
        }
        (None, true) => {
            let lasted = result.levels.last().map(Level::seconds)?;
            format!("The last rate is a steady state, over {} ({numbers}).", span(lasted))
        }
        (None, false) => format!("The last rate is not a steady state ({numbers})."),
    })
}

fn latencies(result: &SustainedResult) -> Option<String> {
    let (fast, _) = cliff(&result.levels)?;
    let last = result.levels.last()?;
    (result.stopped != StopReason::Interrupted).then(|| {
        format!(
            "The 99th percentile of the latency goes from {} to {}.",
            show_time(fast.p99_ns as f64),
            show_time(last.p99_ns as f64)
        )
    })
}
