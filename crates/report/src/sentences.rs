//! Sentences from a document's values.

use results::{Answer, Limit, LimitOf, LimitTrial, OperationScaling, Predicted, Results};
use workload::OpKind;

use crate::format::rate;
use machine::units::significant;

/// From long to short; each leaves out one clause more.
pub(crate) struct Versions(Vec<String>);

impl Versions {
    fn of_clauses(clauses: &[String]) -> Versions {
        Versions((1..=clauses.len()).rev().map(|count| clauses[..count].join("; ")).collect())
    }

    pub(crate) fn full(&self) -> &str {
        &self.0[0]
    }

    pub(crate) fn fitting(&self, fits: impl Fn(&str) -> bool) -> &str {
        self.0.iter().find(|text| fits(text)).unwrap_or(&self.0[self.0.len() - 1])
    }
}

/// The experiment that would refute the limit goes first, then the trial, at last the figures in
/// brackets.
pub(crate) fn limit(limit: &Limit) -> Versions {
    let mut clauses = limit.clauses();
    clauses.extend(limit.would_refute.clone());
    let mut versions = Versions::of_clauses(&clauses);
    versions.0.extend(limit.short());
    versions
}

pub(crate) fn cause(limit: &Limit) -> Versions {
    Versions(limit.clauses().into_iter().take(1).chain(limit.short()).collect())
}

pub(crate) fn shown_limits(answer: &Answer) -> Vec<&Limit> {
    let of_op = |op: OpKind| {
        let limits = || answer.limits.iter().filter(move |limit| limit.op == op);
        let peak = limits().find(|limit| limit.of == LimitOf::Peak);
        let plain = limits()
            .filter(|limit| limit.of == LimitOf::Plain)
            .max_by_key(|limit| limit.request_bytes)
            .filter(|plain| peak.is_none_or(|peak| peak.what != plain.what));
        peak.into_iter().chain(plain)
    };
    [OpKind::Read, OpKind::Write].into_iter().flat_map(of_op).collect()
}

pub(crate) fn other_trials(limit: &Limit) -> Vec<String> {
    let others =
        limit.trials.iter().filter(|trial| !trial.tests_verdict && !trial.outcome.is_empty());
    others.map(|trial: &LimitTrial| trial.outcome.clone()).collect()
}

pub(crate) fn prediction(one: &Predicted) -> Versions {
    let gained = format!(
        "{}s with {} ({}): {}, ×{}",
        one.op,
        one.change,
        one.settings,
        rate(one.throughput_bytes_per_s),
        significant(one.gain, 3)
    );
    Versions::of_clauses(&[gained, format!("then the limit is {}", one.then)])
}

pub(crate) fn of_clients(results: &Results) -> Vec<String> {
    let of_workloads =
        results.scaling.iter().map(|one| format!("{}: {}", one.workload, one.sentence()));
    let of_files = results.operation_scaling.iter().filter(|one| is_main(one)).map(of_operation);
    of_workloads.chain(of_files).collect()
}

fn is_main(one: &OperationScaling) -> bool {
    let main: &[&str] = match one.files.is_empty() {
        true => &["create", "stat", "delete"],
        false => &["create", "read"],
    };
    main.contains(&one.operation.as_str())
}

fn of_operation(one: &OperationScaling) -> String {
    format!("{}: {}", one.title(), one.sentence())
}

pub(crate) fn of_operations(results: &Results) -> Vec<String> {
    results.operation_scaling.iter().map(of_operation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::wrap;
    use machine::units::MIB;
    use results::{Bottleneck, BusyPart, Cause, LimitChange, LimitTrial, Meaning};

    #[test]
    fn a_sentence_loses_clauses_and_never_a_part_of_one() {
        let ratio = LimitTrial {
            change: String::new(),
            changed: Some(LimitChange::Deeper { from: 8, to: 16 }),
            before: 0,
            after: None,
            iops_ratio: Some(1.0),
            iops_ratio_interval_95: None,
            outcome: String::new(),
            meaning: Some(Meaning::NotLatency),
            tests_verdict: true,
        };
        let part = |name: &str, busy_percent| BusyPart { name: name.into(), busy_percent };
        let others = vec![part("disk", 60.0), part("PCI", 22.0)];
        let bus = Limit {
            throughput_bytes_per_s: Some(15.8 * MIB as f64),
            trials: vec![ratio],
            ..Limit::new(
                LimitOf::Peak,
                OpKind::Read,
                Bottleneck::Bus,
                Cause::Busiest { part: part("bus", 100.0), others },
            )
        };
        let bus = bus.with_sentences();
        let text = "reads are limited by the bus: busy 100 % of the time at 15.8 MiB/s (disk 60 %, PCI 22 %); 16 outstanding instead of 8: no change, so not latency";
        assert_eq!(bus.sentence, text);
        let versions = limit(&bus);
        let said = |room, max| versions.fitting(|text| wrap(text, room).len() <= max).to_owned();
        assert_eq!(said(90, 2), text);
        assert_eq!(
            said(90, 1),
            "reads are limited by the bus: busy 100 % of the time at 15.8 MiB/s (disk 60 %, PCI 22 %)"
        );
        assert_eq!(
            said(70, 1),
            "reads are limited by the bus: busy 100 % of the time at 15.8 MiB/s"
        );
        assert_eq!(
            said(30, 1),
            "reads are limited by the bus: busy 100 % of the time at 15.8 MiB/s",
            "it wraps"
        );
    }
}
