//! The busiest component decides ([`busy`]) if components count their busy time; otherwise figures
//! and trials do ([`causes`], [`refute`]).

mod advertised;
mod busy;
mod causes;
mod evidence;
mod refute;
mod software_limits;

pub(crate) use advertised::advertised;

use evidence::{Evidence, gains, is_flat};

use crate::case::{Case, Variant};
use crate::other_target::{OtherTarget, OtherTargetTrial};
use crate::sampler::Entry;
use machine::{MachineFacts, TargetFacts};
use measure::stats::Ratio;
use results::{Bottleneck, Cause, Limit, LimitChange, LimitOf, LimitTrial, Meaning, Point};

/// `peak` is the operation's best rate, `copy` one thread's memory copy, in bytes per second.
pub(crate) fn limit(
    case: &Case,
    entries: &[Entry],
    points: &[Point],
    facts: &TargetFacts,
    machine: &MachineFacts,
    peak: Option<f64>,
    copy: Option<f64>,
) -> Limit {
    let point = &points[case.base];
    let workload = &point.workload.workload;
    let mut limit = Limit {
        request_bytes: Some(workload.request_bytes),
        point: Some(case.base),
        throughput_bytes_per_s: point.rate(),
        ..Limit::new(case.of, case.op, Bottleneck::Unknown, Cause::NotMeasured)
    };
    let Some(numbers) = &point.numbers else { return limit.with_sentences() };
    let evidence = Evidence {
        case,
        entries,
        points,
        workload,
        numbers,
        facts,
        machine,
        rate: numbers.throughput_bytes_per_s,
        peak,
        copy,
    };
    let found = if numbers.achieved.resources.is_empty() {
        causes::found(&evidence)
    } else {
        busy::found(&evidence)
    };
    let (what, cause) = found.cause;
    limit.what = what;
    limit.exclusions = causes::excluded(&evidence, what);
    limit.exclusions.extend(found.refuted);
    limit.trials = case.trials.iter().filter_map(|&one| evidence.trial(what, one)).collect();
    limit.trials.extend(evidence.other_target(what));
    limit.plain_write = evidence.plain_write(&cause);
    limit.cause = Some(cause);
    limit.refutation = evidence.would_refute(what);
    limit.with_sentences()
}

/// By its figures only: no trial tried to refute it.
pub fn limit_of(point: &Point, facts: &TargetFacts, machine: &MachineFacts) -> Limit {
    let workload = &point.workload;
    let plain = !workload.buffering.is_direct() && workload.outstanding() == 1;
    let of = if plain { LimitOf::Plain } else { LimitOf::Peak };
    let case = Case { of, op: workload.op, base: 0, trials: Vec::new(), other_target: None };
    limit(&case, &[], std::slice::from_ref(point), facts, machine, None, None)
}

impl Evidence<'_> {
    fn trial(&self, what: Bottleneck, (variant, after): (Variant, usize)) -> Option<LimitTrial> {
        let ratio = self.ratio(variant)?;
        let change = variant.change(self.workload, &self.points[after].workload);
        let after = Some(after).filter(|&index| self.points[index].numbers.is_some());
        let tests_verdict = self.tested(what) == Some(variant);
        let meaning = self.meaning(what, variant, &ratio);
        Some(LimitTrial { after, tests_verdict, ..self.judged(change, &ratio, meaning) })
    }

    fn other_target(&self, what: Bottleneck) -> Option<LimitTrial> {
        let OtherTargetTrial { other, ratio } = self.case.other_target.as_ref()?;
        let gains = gains(ratio);
        let (change, meaning) = match other {
            OtherTarget::Device(name) => {
                let meaning = if gains {
                    Meaning::FileSystem
                } else if is_flat(ratio) {
                    Meaning::NotFileSystem
                } else {
                    Meaning::Undecided
                };
                (LimitChange::Below { op: self.case.op, device: name.clone() }, meaning)
            }
            OtherTarget::TwoFiles => {
                let meaning = if gains {
                    Meaning::OneFile
                } else if is_flat(ratio) {
                    Meaning::NotOneFile
                } else {
                    Meaning::Undecided
                };
                (LimitChange::TwoFiles, meaning)
            }
        };
        let tests_verdict = what == Bottleneck::FileSystem;
        Some(LimitTrial { tests_verdict, ..self.judged(change, ratio, meaning) })
    }

    fn judged(&self, change: LimitChange, ratio: &Ratio, meaning: Meaning) -> LimitTrial {
        LimitTrial {
            change: String::new(),
            changed: Some(change),
            before: self.case.base,
            after: None,
            iops_ratio: Some(ratio.mean),
            iops_ratio_interval_95: Some([ratio.low, ratio.high]),
            outcome: String::new(),
            meaning: Some(meaning),
            tests_verdict: false,
        }
    }
}
