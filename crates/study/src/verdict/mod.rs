//! The limit of a rate: one named bottleneck, its evidence, and the attempts to refute it.
//!
//! On a machine whose components count their busy time the busiest decides ([`busy`]). On any other
//! the point's figures and the trials do ([`causes`]): causes are tested in order of certainty, and
//! the first that holds and that no trial refutes is the answer ([`refute`]).

mod advertised;
mod busy;
mod causes;
mod refute;
mod software_limits;

pub(crate) use advertised::advertised;

use crate::case::{Case, GAIN, SAME, Variant};
use crate::other_target::{OtherTarget, OtherTargetTrial};
use crate::sampler::Entry;
use machine::{MachineFacts, TargetFacts};
use measure::stats::Ratio;
use results::{
    Bottleneck, Cause, DEEPER_GAIN, Limit, LimitChange, LimitOf, LimitTrial, Meaning, Numbers,
    Point,
};
use workload::Workload;

/// A resource busier than this, in percent, is saturated.
const BUSY_PERCENT: f64 = 90.0;

struct Evidence<'a> {
    case: &'a Case,
    entries: &'a [Entry],
    points: &'a [Point],
    workload: &'a Workload,
    numbers: &'a Numbers,
    facts: &'a TargetFacts,
    machine: &'a MachineFacts,
    /// In bytes per second; for a plain write, to stable storage.
    rate: f64,
    peak: Option<f64>,
    copy: Option<f64>,
}

type Named = (Bottleneck, Cause);

type Ask<'b> = for<'a> fn(&'a Evidence<'b>) -> Option<Named>;

/// The limit of a case's rate. `peak` is the best rate of its operation, `copy` the rate at which
/// one thread copies memory, in bytes per second.
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
        of: case.of,
        op: case.op,
        request_bytes: Some(workload.request_bytes),
        point: Some(case.base),
        throughput_bytes_per_s: point.rate(),
        what: Bottleneck::Unknown,
        cause: Some(Cause::NotMeasured),
        plain_write: None,
        sentence: String::new(),
        excluded: Vec::new(),
        exclusions: Vec::new(),
        trials: Vec::new(),
        would_refute: None,
        refutation: None,
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

/// The limit of one point by its figures only: no trial was made to refute it.
pub fn limit_of(point: &Point, facts: &TargetFacts, machine: &MachineFacts) -> Limit {
    let workload = &point.workload;
    let plain = !workload.buffering.is_direct() && workload.outstanding() == 1;
    let of = if plain { LimitOf::Plain } else { LimitOf::Peak };
    let case = Case { of, op: workload.op, base: 0, trials: Vec::new(), other_target: None };
    limit(&case, &[], std::slice::from_ref(point), facts, machine, None, None)
}

/// Whether a ratio is a noticeable and certain gain.
fn gains(ratio: &Ratio) -> bool {
    ratio.mean >= GAIN && ratio.low > 1.0
}

impl Evidence<'_> {
    fn ratio(&self, variant: Variant) -> Option<Ratio> {
        self.case.ratio(variant, self.entries)
    }

    /// Whether a change gains noticeably and with certainty; `None` if it was not tried.
    fn gains(&self, variant: Variant) -> Option<bool> {
        self.ratio(variant).as_ref().map(gains)
    }

    /// Whether a greater depth gains nothing, by the trial or by other points of the study: those
    /// with a greater depth, or those with half of it, since if doubling to here gained nothing the
    /// next doubling will not.
    fn flat(&self) -> Option<bool> {
        let trial = self.ratio(Variant::Deeper);
        let by_trial = trial.as_ref().and_then(|ratio| match gains(ratio) {
            true => Some(false),
            false => refute::is_flat(ratio).then_some(true),
        });
        // A trial that allows the gain of requests that only wait leaves it open, whatever other
        // points suggest.
        if by_trial.is_none() && trial.is_some_and(|ratio| ratio.high >= DEEPER_GAIN) {
            return None;
        }
        let by_more = || Some(self.more_elsewhere()? < self.rate * GAIN);
        by_trial
            .or_else(by_more)
            .or_else(|| (self.half_as_many()? * GAIN >= self.rate).then_some(true))
    }

    /// The best rate of another point of the operation with at least twice as many bytes
    /// outstanding.
    fn more_elsewhere(&self) -> Option<f64> {
        let outstanding =
            |one: &Workload| u64::from(one.outstanding()) * u64::from(one.request_bytes);
        let own = outstanding(self.workload);
        let alike = self.points.iter().filter(|point| {
            point.workload.read_percent == self.workload.read_percent
                && point.workload.pattern == self.workload.pattern
                && point.workload.buffering == self.workload.buffering
                && outstanding(&point.workload) >= 2 * own
        });
        alike.filter_map(Point::rate).max_by(f64::total_cmp)
    }

    /// Busy share of an issuing thread until the last request returned, in percent; the mean over
    /// several. It excludes the final flush, in which the kernel's write-back is charged to the
    /// process.
    fn thread_percent(&self) -> f64 {
        let whole = || self.busy_processors() * 100.0;
        self.numbers.achieved.process_busy_percent.unwrap_or_else(whole) / f64::from(self.threads())
    }

    /// Processors that the process keeps busy on average, the final flush of a plain write
    /// included.
    fn busy_processors(&self) -> f64 {
        self.numbers.cpu_ns_per_request.process() * self.numbers.iops / 1e9
    }

    /// Share of its time that an issuing thread was runnable without a processor, in percent; the
    /// mean over several.
    fn unserved_percent(&self) -> Option<f64> {
        self.numbers.achieved.unserved_percent.map(|percent| percent / f64::from(self.threads()))
    }

    /// Share of the time to stable storage until the last request returned; 1 without a flush.
    fn share_until_return(&self) -> f64 {
        let writing =
            self.numbers.achieved.measured_ns as f64 / f64::from(self.numbers.repeats.max(1));
        let flush = self.numbers.achieved.sync_ns.unwrap_or(0.0);
        if writing > 0.0 { writing / (writing + flush) } else { 1.0 }
    }

    fn threads(&self) -> u32 {
        (self.workload.threads * self.workload.engine.workers(self.workload.depth)).max(1)
    }

    fn processors_percent(&self) -> f64 {
        self.numbers.achieved.busy_processors / f64::from(self.machine.processors.max(1)) * 100.0
    }

    /// `None` if it did not run.
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
                } else if refute::is_flat(ratio) {
                    Meaning::NotFileSystem
                } else {
                    Meaning::Undecided
                };
                (LimitChange::Below { op: self.case.op, device: name.clone() }, meaning)
            }
            OtherTarget::TwoFiles => {
                let meaning = if gains {
                    Meaning::OneFile
                } else if refute::is_flat(ratio) {
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
