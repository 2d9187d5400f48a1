//! Rules about peaks and plain programs.

use super::{Checks, ROUNDING, Rule};
use crate::limit::SAME;
use crate::visits::visits;
use crate::{Burst, CACHED_PERCENT, LimitTrial, Peak, Point};
use machine::{TargetFacts, TargetKind};
use workload::OpKind;

/// The share by which a run of a burst may beat its mean.
const BURST_SLACK: f64 = 0.15;

/// The share from which a rate is above another if runs repeat exactly.
const EXACT: f64 = 0.01;

/// `point` is settled, of the whole target, certainly above `best`, and not in its operation's
/// burst.
pub fn is_above(point: &Point, best: &Point, burst: Option<Burst>, facts: &TargetFacts) -> bool {
    let comparable = point.workload.op == best.workload.op
        && point.measures_target(facts)
        && point.is_settled(facts)
        // Otherwise a throttle admits a short run's requests in advance.
        && (point.whole_bursts || !best.whole_bursts);
    let Some(numbers) = point.numbers.as_ref().filter(|_| comparable) else { return false };
    let Some(of_best) = best.numbers.as_ref() else { return true };
    let [rate, peak] = [numbers, of_best].map(|one| one.throughput_bytes_per_s);
    if let Some(burst) = burst {
        let run_s = numbers.achieved.measured_ns as f64 / 1e9 / f64::from(numbers.repeats);
        if rate <= burst.mean_rate(peak, run_s) * (1.0 + BURST_SLACK) {
            return false;
        }
    }
    // An interval of a run that repeats exactly says how even it was, not how certain it is.
    if facts.kind == TargetKind::Simulated {
        return rate > peak * (1.0 + EXACT);
    }
    let high = of_best.interval_95.map_or(peak, |[_, high]| high);
    numbers.interval_95.is_some_and(|[low, _]| low > high)
}

impl Checks<'_> {
    pub(super) fn peaks(&mut self) {
        for peak in &self.answer.peaks {
            let (op, rate) = (peak.op, peak.throughput_bytes_per_s);
            self.is_rate(&format!("the peak of {op}s"), peak.point, rate, peak.interval_95);
            let best = self.points.get(peak.point);
            let faster = best.and_then(|best| {
                let facts = self.facts;
                let tried = self.gains_of_trials(peak);
                self.points.iter().enumerate().position(|(index, point)| {
                    is_above(point, best, peak.burst, facts) && !tried.contains(&index)
                })
            });
            if let Some(index) = faster {
                let other = self.rate(index).unwrap_or_default();
                self.add(
                    Rule::PeakIsHighest,
                    format!("points[{index}] has {other} bytes/s, and the peak of {op}s is {rate}"),
                );
            }
            let low = peak.interval_95.map_or(rate, |[low, _]| low);
            let cap = peak.advertised.as_ref().filter(|cap| {
                let admits = cap.throughput_bytes_per_s * (1.0 + SAME);
                rate > admits && low > admits
            });
            if let Some(cap) = cap.filter(|_| !self.is_beyond(op)) {
                let (layer, admits) = (&cap.layer, cap.throughput_bytes_per_s);
                self.add(
                    Rule::BelowCap,
                    format!("the peak of {op}s is {rate} bytes/s, and {layer} admits {admits}"),
                );
            }
            if let Some(burst) = peak.burst {
                let lasts = burst.length_s > 0.0 && burst.throughput_bytes_per_s > rate;
                if !lasts || self.points.get(burst.point).is_none() {
                    let (above, length) = (burst.throughput_bytes_per_s, burst.length_s);
                    self.add(
                        Rule::PeakIsHighest,
                        format!(
                            "the burst of {op}s is {above} bytes/s for {length} s, and the peak is {rate}"
                        ),
                    );
                }
            }
        }
    }

    /// The peak's limit reports trials that gain.
    fn gains_of_trials(&self, peak: &Peak) -> Vec<usize> {
        let of_peak = self.answer.limits.iter().filter(|limit| limit.point == Some(peak.point));
        let gains =
            |trial: &&LimitTrial| trial.iops_ratio_interval_95.is_some_and(|[low, _]| low > 1.0);
        of_peak
            .flat_map(|limit| limit.trials.iter().filter(gains))
            .filter_map(|trial| trial.after)
            .collect()
    }

    pub(super) fn visits(&mut self) {
        if self.facts.kind == TargetKind::Simulated {
            return;
        }
        let settled = |index: &usize| {
            let point = &self.points[*index];
            point.is_settled(self.facts)
                && !point.workload.sync_at_end
                && point.measures_target(self.facts)
        };
        let interval = |index: usize| {
            self.points[index].numbers.as_ref().and_then(|numbers| numbers.interval_95)
        };
        let mut apart = Vec::new();
        for of_one in visits(self.points).into_values() {
            let of_one: Vec<usize> = of_one.into_iter().filter(settled).collect();
            for (number, &a) in of_one.iter().enumerate() {
                apart.extend(of_one[number + 1..].iter().filter_map(|&b| {
                    let (one, other) = (interval(a)?, interval(b)?);
                    (one[1] < other[0] || other[1] < one[0]).then_some((a, b, one, other))
                }));
            }
        }
        apart.sort_by_key(|one| (one.0, one.1));
        for (a, b, one, other) in apart {
            self.add(
                Rule::VisitsAgree,
                format!("points[{a}] has {one:?} bytes/s, and points[{b}] has {other:?}"),
            );
        }
    }

    pub(super) fn plain(&mut self) {
        for plain in &self.answer.plain {
            let name = format!("the plain {} of {} bytes", plain.op, plain.request_bytes);
            self.is_rate(&name, plain.point, plain.throughput_bytes_per_s, plain.interval_95);
            let share = plain.share_of_peak.map(|share| plain.throughput_bytes_per_s / share);
            self.is_peak(plain.op, share, &format!("the peak behind the share of {name}"));
            if let Some(share) = plain.share_of_peak.filter(|&share| share > 1.0 + ROUNDING) {
                self.add(Rule::PlainIsPart, format!("{name} has {share} of the peak"));
            }
            let numbers = self.points.get(plain.point).and_then(|point| point.numbers.as_ref());
            let cached = numbers.and_then(|numbers| numbers.achieved.cached_read_percent).filter(
                |percent| {
                    plain.op == OpKind::Read && !self.facts.in_memory && *percent > CACHED_PERCENT
                },
            );
            if let Some(percent) = cached.filter(|_| plain.share_of_peak.is_some()) {
                self.add(
                    Rule::PlainIsPart,
                    format!("{percent} % of {name} came from the page cache"),
                );
            }
        }
    }
}
