use super::{Checks, ROUNDING, Rule};
use crate::{Finding, Point};
use workload::Workload;

impl Checks<'_> {
    pub(super) fn findings(&mut self) {
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
            let settled = |point: &Point| {
                point.numbers.as_ref().and_then(|numbers| numbers.latency_ns.settled_p99())
            };
            let known = settled(before).zip(settled(after)).map(|(before, after)| [before, after]);
            if finding.p99_ns.is_some() && finding.p99_ns != known {
                let (is, of_points) = (finding.p99_ns, known);
                self.add(
                    Rule::PercentileIsSettled,
                    format!("the p99 of \"{title}\" is {is:?}, and the points have {of_points:?}"),
                );
            }
            if !changes(before, after) {
                self.add(Rule::AdviceChanges, format!("\"{title}\" changes nothing"));
            }
            let sure = finding.gain_interval_95.is_some_and(|[low, _]| low > 1.0);
            if !sure {
                let interval = finding.gain_interval_95;
                self.add(
                    Rule::AdviceChanges,
                    format!("the gain of \"{title}\" has the interval {interval:?}"),
                );
            }
        }
    }
}

fn changes(before: &Point, after: &Point) -> bool {
    let (a, b) = (&before.workload.workload, &after.workload.workload);
    // Length, limit and seed belong to the measurement.
    let as_long = Workload { stop: b.stop, limit_bytes: b.limit_bytes, seed: b.seed, ..a.clone() };
    as_long != *b || before.stripe != after.stripe
}
