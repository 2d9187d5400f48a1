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

use crate::other_target::{OtherTarget, OtherTargetTrial};
use crate::sampler::Entry;
use crate::trial::{Case, Variant};
use machine::units::{show_rate, show_size};
use machine::{MachineFacts, TargetFacts};
use measure::stats::Ratio;
use results::{Bottleneck, Limit, LimitOf, LimitTrial, Numbers, Point};
use workload::{OpKind, Workload};

/// Minimum ratio that counts as a gain.
pub(crate) const GAIN: f64 = 1.1;

/// Two rates within this share of one another are equal.
pub(crate) const SAME: f64 = 0.1;

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

type Cause = (Bottleneck, String);

type Ask<'b> = for<'a> fn(&'a Evidence<'b>) -> Option<Cause>;

/// The limit of a case's rate. `peaks` are the best rates by operation, `copy` the rate at which
/// one thread copies memory, in bytes per second.
pub(crate) fn limit(
    case: &Case,
    entries: &[Entry],
    points: &[Point],
    facts: &TargetFacts,
    machine: &MachineFacts,
    peaks: &[(OpKind, f64)],
    copy: Option<f64>,
) -> Limit {
    let point = &points[case.base];
    let workload = &point.workload.workload;
    let subject = subject(case, workload);
    let Some(numbers) = &point.numbers else {
        return said(case, workload, Bottleneck::Unknown, format!("{subject} were not measured"), Judged::default());
    };
    let evidence = Evidence {
        case,
        entries,
        points,
        workload,
        numbers,
        facts,
        machine,
        rate: numbers.throughput_bytes_per_s,
        peak: peaks.iter().find(|(op, _)| *op == case.op).map(|(_, rate)| *rate),
        copy,
    };
    let found = if numbers.achieved.resources.is_empty() { causes::found(&evidence) } else { busy::found(&evidence) };
    let (what, why) = found.cause;
    let mut excluded = causes::excluded(&evidence, what);
    excluded.extend(found.refuted);
    let mut trials: Vec<LimitTrial> = case.trials.iter().map(|&one| evidence.trial(what, one)).collect();
    trials.retain(|trial| trial.iops_ratio.is_some());
    trials.extend(evidence.other_target());
    let mut sentence = format!("{subject} are limited by {why}");
    if let Some(outcome) = evidence.tested(what) {
        sentence = format!("{sentence}; {outcome}");
    }
    if let Some(sustained) = evidence.sustained(&sentence) {
        sentence = format!("{sentence}; {sustained}");
    }
    said(case, workload, what, sentence, Judged { excluded, trials, would_refute: evidence.would_refute(what) })
}

#[derive(Default)]
struct Judged {
    excluded: Vec<String>,
    trials: Vec<LimitTrial>,
    would_refute: Option<String>,
}

fn said(case: &Case, workload: &Workload, what: Bottleneck, sentence: String, judged: Judged) -> Limit {
    Limit {
        of: case.of,
        op: case.op,
        request_bytes: Some(workload.request_bytes),
        point: Some(case.base),
        what,
        sentence,
        excluded: judged.excluded,
        trials: judged.trials,
        would_refute: judged.would_refute,
    }
}

/// The subject of a limit: `reads`, `plain writes of 64 KiB`, `random reads of 4 KiB`.
fn subject(case: &Case, workload: &Workload) -> String {
    let size = show_size(u64::from(workload.request_bytes));
    match case.of {
        LimitOf::Peak => format!("{}s", case.op),
        LimitOf::Plain => format!("plain {}s of {size}", case.op),
        LimitOf::Random => format!("random {}s of {size}", case.op),
    }
}

impl Evidence<'_> {
    fn shown(&self) -> String {
        show_rate(self.rate)
    }

    fn ratio(&self, variant: Variant) -> Option<Ratio> {
        self.case.ratio(variant, self.entries)
    }

    /// Whether a change gains noticeably and with certainty; `None` if it was not tried.
    fn gains(&self, variant: Variant) -> Option<bool> {
        self.ratio(variant).map(|ratio| ratio.mean >= GAIN && ratio.low > 1.0)
    }

    /// Whether a greater depth gains nothing, by the trial or by other points of the study: those
    /// with a greater depth, or those with half of it, since if doubling to here gained nothing the
    /// next doubling will not.
    fn flat(&self) -> Option<bool> {
        let by_trial = self.gains(Variant::Deeper).map(|gains| !gains);
        let by_more = || Some(self.more_elsewhere()? < self.rate * GAIN);
        by_trial.or_else(by_more).or_else(|| (self.half_as_many()? * GAIN >= self.rate).then_some(true))
    }

    /// The best rate of another point of the operation with at least twice as many bytes
    /// outstanding.
    fn more_elsewhere(&self) -> Option<f64> {
        let outstanding = |one: &Workload| u64::from(one.outstanding()) * u64::from(one.request_bytes);
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

    /// Processors that the process keeps busy on average, the final flush of a plain write included.
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
        let writing = self.numbers.achieved.measured_ns as f64 / f64::from(self.numbers.repeats.max(1));
        let flush = self.numbers.achieved.sync_ns.unwrap_or(0.0);
        if writing > 0.0 { writing / (writing + flush) } else { 1.0 }
    }

    fn threads(&self) -> u32 {
        (self.workload.threads * self.workload.engine.workers(self.workload.depth)).max(1)
    }

    fn processors_percent(&self) -> f64 {
        self.numbers.achieved.busy_processors / f64::from(self.machine.processors.max(1)) * 100.0
    }

    fn trial(&self, what: Bottleneck, (variant, after): (Variant, usize)) -> LimitTrial {
        let change = variant.words(self.workload, &self.points[after].workload);
        let ratio = self.ratio(variant);
        let outcome = ratio.map_or(String::new(), |ratio| format!("{change}: {}", self.outcome(what, variant, &ratio)));
        LimitTrial {
            change,
            before: self.case.base,
            after: Some(after).filter(|&index| self.points[index].numbers.is_some()),
            iops_ratio: ratio.map(|ratio| ratio.mean),
            iops_ratio_interval_95: ratio.map(|ratio| [ratio.low, ratio.high]),
            outcome,
        }
    }

    fn other_target(&self) -> Option<LimitTrial> {
        let OtherTargetTrial { other, ratio } = self.case.other_target.as_ref()?;
        let gains = ratio.mean >= GAIN && ratio.low > 1.0;
        let (change, what) = match other {
            OtherTarget::Device(name) => (format!("the same {}s of {name} itself", self.case.op), "the file system"),
            OtherTarget::TwoFiles => ("two files instead of one".to_owned(), "what one file's writers share"),
        };
        let verdict = if gains { format!("so {what} was a limit") } else { format!("so not {what}") };
        let outcome = format!("{change}: {}, {verdict}", refute::show_change(ratio.mean));
        Some(LimitTrial {
            change,
            before: self.case.base,
            after: None,
            iops_ratio: Some(ratio.mean),
            iops_ratio_interval_95: Some([ratio.low, ratio.high]),
            outcome,
        })
    }
}
