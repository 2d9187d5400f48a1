//! The sentences that people read, in full and in short, from the values of a document.

use results::{Finding, Limit, LimitTrial, Point, Predicted};

use crate::format::rate;
use machine::units::significant;

/// A text from its longest to its shortest version; each shorter one leaves out a whole clause.
pub(crate) struct Versions(Vec<String>);

impl Versions {
    /// The text with all its clauses, then without the last, and so on.
    fn of_clauses(clauses: &[String]) -> Versions {
        Versions((1..=clauses.len()).rev().map(|count| clauses[..count].join("; ")).collect())
    }

    pub(crate) fn full(&self) -> &str {
        &self.0[0]
    }

    /// The longest version that fits, or the shortest.
    pub(crate) fn fitting(&self, fits: impl Fn(&str) -> bool) -> &str {
        self.0.iter().find(|text| fits(text)).unwrap_or(&self.0[self.0.len() - 1])
    }
}

/// A limit with the experiment that would refute it if no trial was decisive. The experiment is the
/// first to go, then the trial, at last the figures in brackets.
pub(crate) fn limit(limit: &Limit) -> Versions {
    let mut clauses = limit.clauses();
    clauses.extend(limit.would_refute.clone());
    let mut versions = Versions::of_clauses(&clauses);
    versions.0.extend(limit.short());
    versions
}

/// Results of a limit's trials that its sentence does not mention.
pub(crate) fn other_trials(limit: &Limit) -> Vec<String> {
    let others =
        limit.trials.iter().filter(|trial| !trial.tests_verdict && !trial.outcome.is_empty());
    others.map(|trial: &LimitTrial| trial.outcome.clone()).collect()
}

/// `reads with one more bus (buses=2): 31.1 MiB/s, ×1.97; then the limit is the bus`.
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

/// Both rates of a finding with their workloads; in short, without that of the rate before.
pub(crate) fn evidence(finding: &Finding, points: &[Point]) -> Versions {
    let full = finding.evidence.clone();
    match finding.points.map(|index| points.get(index)) {
        [Some(before), Some(after)] => {
            let short = Finding::rates([before, after]).map(|rates| rates.short);
            Versions(std::iter::once(full).chain(short).collect())
        }
        _ => Versions(vec![full]),
    }
}
