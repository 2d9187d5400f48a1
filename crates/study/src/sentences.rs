//! Sentences that the experiments share.

use crate::found::{ENOUGH, Effect, Reading, best, smallest};
use machine::units::{show_size, significant};
use workload::OpKind;

pub(crate) fn plural(op: OpKind) -> &'static str {
    match op {
        OpKind::Read => "Reads",
        OpKind::Write => "Writes",
        OpKind::Mix => "Mixed requests",
    }
}

pub(crate) fn size(bytes: f64) -> String {
    show_size(bytes as u64)
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

pub(crate) fn times(ratio: f64) -> String {
    format!("{} times", significant(ratio, 3))
}

pub(crate) fn per_second(rate: f64) -> String {
    match rate {
        999_500.0.. => format!("{} million requests/s", significant(rate / 1e6, 3)),
        1e4.. => format!("{} thousand requests/s", significant(rate / 1e3, 3)),
        _ => format!("{} requests/s", significant(rate, 3)),
    }
}

pub(crate) fn effect(effect: Effect) -> String {
    match effect {
        Effect::By(more) if more >= 1.0 => format!("gives {} the rate", times(more + 1.0)),
        Effect::By(more) if more > 0.0 => format!("gains {}", percent(more)),
        Effect::By(less) => format!("costs {}", percent(-less)),
        Effect::Nothing => "changes nothing".into(),
        Effect::Unsure => format!("is undecided: {UNEVEN}"),
    }
}

pub(crate) const UNEVEN: &str = "the runs are too uneven";

pub(crate) fn reach(
    subject: &str,
    readings: &[Reading],
    rate: impl Fn(f64) -> String,
) -> Option<String> {
    let (first, good, half) =
        (readings.first()?, smallest(readings, ENOUGH)?, smallest(readings, 0.5)?);
    let reach = format!("{subject} reach {} with {} requests", rate(good.y), size(good.x));
    Some(if good.x == first.x {
        format!("{subject} reach {} whatever the request size.", rate(best(readings)?.y))
    } else if half.x == first.x {
        format!("{reach}, and more than half of that with {} already.", size(half.x))
    } else if half.x == good.x {
        format!("{reach}; smaller ones get less than half of that.")
    } else {
        format!("{reach} and half of that with {}.", size(half.x))
    })
}

/// Merges equal ones: `Reads and writes gain nothing from polling.`
pub(crate) fn statements(all: Vec<(OpKind, String)>) -> Vec<String> {
    let mut merged: Vec<(String, Vec<OpKind>)> = Vec::new();
    for (op, text) in all {
        match merged.iter_mut().find(|(known, _)| *known == text) {
            Some((_, ops)) => ops.push(op),
            None => merged.push((text, vec![op])),
        }
    }
    merged.iter().map(|(text, ops)| format!("{} {text}.", together(ops))).collect()
}

pub(crate) fn together(ops: &[OpKind]) -> String {
    match ops {
        [OpKind::Read, OpKind::Write] => "Reads and writes".into(),
        [one] => plural(*one).into(),
        _ => "Requests".into(),
    }
}
