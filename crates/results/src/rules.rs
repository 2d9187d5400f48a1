//! Rules that no finished document may contradict: one quantity has one value everywhere.

use crate::finding::{Finding, PeakDoubt};
use crate::{Answer, PeakSource, Point, Results, StageKind};
use machine::{Allocation, Buffering, LayerKind};
use std::fmt;
use workload::OpKind;

/// Two figures that are the same number differ by less than this share.
const ROUNDING: f64 = 1e-6;

/// A rate this many times what a layer admits came from a cache or a burst.
const ABOVE_CAP: f64 = 1.2;

/// Runs from which an interval is settled.
const SETTLED_RUNS: u32 = 3;

/// The rule that a document breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A quantity of the answer has the value and the interval of its point.
    OneValue,
    /// No settled rate is above the peak, unless a doubt names it.
    PeakIsHighest,
    /// No peak is above what a layer admits, unless a warning or a doubt says why.
    BelowCap,
    /// A finding agrees with the quantities that it refers to.
    FindingAgrees,
}

impl Rule {
    fn words(self) -> &'static str {
        match self {
            Rule::OneValue => "one quantity has one value",
            Rule::PeakIsHighest => "the peak is the highest settled rate",
            Rule::BelowCap => "a rate above a known limit has a reason",
            Rule::FindingAgrees => "a finding agrees with the rates it compares",
        }
    }
}

/// Two statements of a document that cannot both hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Contradiction {
    pub rule: Rule,
    /// Both statements, with their figures.
    pub what: String,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, but {}", self.rule.words(), self.what)
    }
}

/// All contradictions of a document; none without an answer.
pub fn check(results: &Results) -> Vec<Contradiction> {
    let Some(answer) = &results.answer else { return Vec::new() };
    let mut checks = Checks { answer, points: &results.points, found: Vec::new() };
    // Through a throttle, bursts are faster than the sustained rate that the peak is.
    let bursty = results.target.layers.iter().any(|layer| layer.kind == LayerKind::Throttle);
    checks.peaks(bursty);
    checks.plain();
    checks.limits();
    checks.half_power();
    checks.findings();
    let stages = results.ladder.iter().flat_map(|ladder| &ladder.stages);
    for stage in stages.filter(|stage| stage.kind == StageKind::Direct) {
        for rate in &stage.rates {
            let reached = rate.achieved.as_ref().map(|one| one.throughput_bytes_per_s);
            checks.is_peak(rate.op, reached, &format!("the ladder's direct {}", rate.op));
        }
    }
    checks.found
}

struct Checks<'a> {
    answer: &'a Answer,
    points: &'a [Point],
    found: Vec<Contradiction>,
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= a.abs().max(b.abs()) * ROUNDING
}

impl Checks<'_> {
    fn add(&mut self, rule: Rule, what: String) {
        self.found.push(Contradiction { rule, what });
    }

    /// A quantity that is the rate of a point.
    fn is_rate(&mut self, name: &str, point: usize, rate: f64, interval: Option<[f64; 2]>) {
        let numbers = self.points.get(point).and_then(|point| point.numbers.as_ref());
        let Some(numbers) = numbers else {
            return self.add(
                Rule::OneValue,
                format!("{name} is that of points[{point}], which has no figures"),
            );
        };
        if !same(rate, numbers.throughput_bytes_per_s) {
            let of_point = numbers.throughput_bytes_per_s;
            self.add(
                Rule::OneValue,
                format!("{name} is {rate} bytes/s, and points[{point}] has {of_point}"),
            );
        }
        if interval.is_some_and(|ends| Some(ends) != numbers.interval_95) {
            let [of, is] = [numbers.interval_95, interval];
            self.add(
                Rule::OneValue,
                format!("the interval of {name} is {is:?}, and points[{point}] has {of:?}"),
            );
        }
    }

    /// A figure that is the peak of an operation.
    fn is_peak(&mut self, op: OpKind, rate: Option<f64>, name: &str) {
        let peak = self.answer.peak(op).map(|peak| peak.throughput_bytes_per_s);
        if let Some((rate, peak)) = rate.zip(peak).filter(|&(rate, peak)| !same(rate, peak)) {
            self.add(Rule::OneValue, format!("{name} is {rate} bytes/s, and the peak is {peak}"));
        }
    }

    fn peaks(&mut self, bursty: bool) {
        for peak in &self.answer.peaks {
            let (op, rate) = (peak.op, peak.throughput_bytes_per_s);
            self.is_rate(&format!("the peak of {op}s"), peak.point, rate, peak.interval_95);
            let doubted = self.answer.peak_doubts.iter().any(
                |doubt| matches!(doubt, PeakDoubt::FasterElsewhere { op: of, .. } | PeakDoubt::Changed { op: of, .. } if *of == op),
            );
            let numbers = self.points.get(peak.point).and_then(|point| point.numbers.as_ref());
            let high = peak.interval_95.map_or(rate, |[_, high]| high);
            let faster = self
                .points
                .iter()
                .position(|point| settled_low(point, op).is_some_and(|low| low > high));
            if let Some(index) = faster.filter(|_| !doubted && !bursty) {
                let other = self.points[index].rate().unwrap_or_default();
                self.add(
                    Rule::PeakIsHighest,
                    format!("points[{index}] has {other} bytes/s, and the peak of {op}s is {rate}"),
                );
            }
            let cap = peak
                .advertised
                .as_ref()
                .filter(|cap| rate > cap.throughput_bytes_per_s * ABOVE_CAP);
            let explained = numbers.is_some_and(|numbers| !numbers.warnings.is_empty())
                || !self.answer.doubts.is_empty();
            if let Some(cap) = cap.filter(|_| !explained) {
                let (layer, admits) = (&cap.layer, cap.throughput_bytes_per_s);
                self.add(
                    Rule::BelowCap,
                    format!("the peak of {op}s is {rate} bytes/s, and {layer} admits {admits}"),
                );
            }
        }
    }

    fn plain(&mut self) {
        for plain in &self.answer.plain {
            let name = format!("the plain {} of {} bytes", plain.op, plain.request_bytes);
            self.is_rate(&name, plain.point, plain.throughput_bytes_per_s, plain.interval_95);
            let share = plain.share_of_peak.map(|share| plain.throughput_bytes_per_s / share);
            self.is_peak(plain.op, share, &format!("the peak behind the share of {name}"));
        }
    }

    fn limits(&mut self) {
        for limit in &self.answer.limits {
            if let Some((point, rate)) = limit.point.zip(limit.throughput_bytes_per_s) {
                self.is_rate(
                    &format!("the rate of a limit of {} {}s", limit.of, limit.op),
                    point,
                    rate,
                    None,
                );
            }
        }
    }

    fn half_power(&mut self) {
        let measured =
            self.answer.half_power.iter().filter(|half| half.peak_from == PeakSource::Measured);
        for half in measured.filter(|half| half.fixed.is_some()) {
            self.is_peak(
                half.op,
                Some(half.peak_bytes_per_s),
                &format!("the peak of the half-power point at {}", half.at),
            );
        }
    }

    fn findings(&mut self) {
        for finding in &self.answer.findings {
            let title = &finding.title;
            let [before, after] = finding.points.map(|index| self.points.get(index));
            let Some((before, after)) = before.zip(after) else {
                self.add(
                    Rule::FindingAgrees,
                    format!("\"{title}\" compares points that do not exist"),
                );
                continue;
            };
            let known = Finding::rates([before, after]).map(|rates| rates.full);
            if known.as_ref() != Some(&finding.evidence) {
                self.add(Rule::FindingAgrees, format!("\"{title}\" says {}", finding.evidence));
            }
            if finding
                .gain_interval_95
                .is_some_and(|[low, high]| !(low..=high).contains(&finding.gain))
            {
                self.add(
                    Rule::FindingAgrees,
                    format!("the gain of \"{title}\" is outside its interval"),
                );
            }
            let peak = self.answer.peak(after.workload.op).map(|peak| peak.throughput_bytes_per_s);
            let goal = finding
                .reaches
                .zip(peak)
                .map(|(goal, peak)| goal.share() * peak * (1.0 - ROUNDING));
            if goal.zip(after.rate()).is_some_and(|(goal, rate)| rate < goal) {
                self.add(
                    Rule::FindingAgrees,
                    format!("\"{title}\" does not reach its share of the peak"),
                );
            }
        }
    }
}

/// The low end of the interval of a point that measures the whole target, past caches, and is
/// settled.
fn settled_low(point: &Point, op: OpKind) -> Option<f64> {
    let workload = &point.workload;
    let whole = workload.op == op
        && workload.buffering == Buffering::Direct
        && workload.allocation == Allocation::Written
        && workload.region_bytes.is_none()
        && workload.limit_bytes.is_none();
    let numbers =
        point.numbers.as_ref().filter(|numbers| whole && numbers.repeats >= SETTLED_RUNS)?;
    numbers.interval_95.map(|[low, _]| low)
}
