//! Rules about half-power points, models and the ladder.

use super::{Checks, Rule, same};
use crate::{
    Axis, Fixed, HalfPower, MAX_FIT_ERROR, PeakSource, Point, Results, Series, StageKind, Varied,
};
use machine::Buffering;
use workload::Pattern;

/// A stage's busy time is rounded, so its rate may exceed what it advertises.
const ABOVE: f64 = 0.15;

impl Checks<'_> {
    pub(super) fn half_power(&mut self, results: &Results) {
        let all = &self.answer.half_power;
        for half in all.iter().filter(|half| half.peak_from == PeakSource::Measured) {
            if half.fixed.is_some() {
                self.is_peak(
                    half.op,
                    Some(half.peak_bytes_per_s),
                    &format!("the peak of the half-power point at {}", half.at),
                );
            }
        }
        for (number, half) in all.iter().enumerate() {
            let key = |one: &HalfPower| (one.of, one.op, one.peak_from, one.at.clone());
            if all[..number].iter().any(|one| key(one) == key(half)) {
                self.add(
                    Rule::OneHalfPower,
                    format!("the {} of {}s at {} is there twice", half.of, half.op, half.at),
                );
            }
        }
        let figures = results
            .experiments
            .iter()
            .flat_map(|one| &one.figures)
            .filter(|one| one.x == Axis::RequestBytes && one.y == Axis::BytesPerS);
        for (figure, series) in
            figures.flat_map(|one| one.series.iter().map(move |series| (one, series)))
        {
            let Some((of_figure, of_answer)) = self.shared(series) else { continue };
            if !is_same(of_figure, of_answer) {
                let (id, name) = (&figure.id, &series.name);
                let (here, there) = (of_figure.setting(), of_answer.setting());
                self.add(
                    Rule::OneHalfPower,
                    format!("{name} in {id} has {here:?} bytes, and the answer {there:?}"),
                );
            }
        }
    }

    /// Of a direct sequential curve, and of the answer.
    fn shared<'b>(&'b self, series: &'b Series) -> Option<(&'b HalfPower, &'b HalfPower)> {
        let first = series.values.iter().find_map(|value| value.point)?;
        let point = self.points.get(first)?;
        let depth = depth_of_direct(point)?;
        let half = self.answer.half_power_size(point.workload.op, depth)?;
        Some((series.half_power.as_ref()?, half))
    }

    pub(super) fn models(&mut self) {
        let costs = &self.answer.costs;
        for (number, one) in costs.iter().enumerate() {
            let name = format!("the cost of a {} ({:?})", one.mode, one.whose);
            let key = (one.mode, one.whose);
            if costs[..number].iter().any(|other| (other.mode, other.whose) == key) {
                self.add(Rule::OneModel, format!("{name} is there twice"));
            }
            if one.rms_residual > MAX_FIT_ERROR {
                self.add(Rule::ModelFits, format!("{name} has an error of {}", one.rms_residual));
            }
        }
        let times = &self.answer.service_times;
        for (number, one) in times.iter().enumerate() {
            let name = format!("the time of a {}", one.mode);
            let overlap = times[..number].iter().any(|other| {
                other.mode == one.mode
                    && match (other.sizes_bytes, one.sizes_bytes) {
                        (Some([_, end]), Some([start, _])) => end >= start,
                        _ => true,
                    }
            });
            if overlap {
                self.add(Rule::OneModel, format!("{name} is there twice"));
            }
            if one.rms_residual > MAX_FIT_ERROR {
                self.add(Rule::ModelFits, format!("{name} has an error of {}", one.rms_residual));
            }
            if one.fixed_ns < 0.0 || one.rate_bytes_per_s.is_some_and(|rate| rate <= 0.0) {
                let (fixed, rate) = (one.fixed_ns, one.rate_bytes_per_s);
                self.add(Rule::ModelFits, format!("{name} is {fixed} ns + size / {rate:?}"));
            }
        }
    }

    pub(super) fn ladder(&mut self, results: &Results) {
        let Some(ladder) = &results.ladder else { return };
        for stage in &ladder.stages {
            for rate in &stage.rates {
                let name = format!("the ladder's {} {}", stage.kind.name(), rate.op);
                let reached = rate.achieved_bytes_per_s();
                if stage.kind == StageKind::Direct {
                    self.is_peak(rate.op, reached, &name);
                    let peak = self.answer.peak(rate.op).map(|peak| peak.point);
                    let depth =
                        peak.and_then(|point| self.points.get(point)).and_then(depth_of_direct);
                    let half = depth
                        .and_then(|depth| self.answer.half_power_size(rate.op, depth))
                        .and_then(HalfPower::setting);
                    if depth.is_some() && rate.half_power_bytes != half {
                        let own = rate.half_power_bytes;
                        self.add(
                            Rule::OneHalfPower,
                            format!("{name} has {own:?} bytes, and the answer {half:?}"),
                        );
                    }
                }
                let low = rate.achieved.as_ref().and_then(|one| one.interval_95);
                let above = |rate: f64, cap: f64| rate > cap * (1.0 + ABOVE);
                let point = rate.achieved.as_ref().and_then(|one| self.points.get(one.point?));
                let settled = point.is_none_or(|point| point.is_settled(self.facts));
                let cap = rate.advertised_bytes_per_s();
                let over = reached.zip(cap).filter(|&(reached, cap)| {
                    settled
                        && !self.is_beyond(rate.op)
                        && above(reached, cap)
                        && low.is_none_or(|[low, _]| above(low, cap))
                });
                if let Some((reached, cap)) = over {
                    self.add(Rule::LadderBelowCap, format!("{name} has {reached} of {cap}"));
                }
                // The page cache's share is that of the rate with the flush.
                let share = reached
                    .filter(|_| stage.kind != StageKind::PageCache)
                    .zip(cap)
                    .map(|(reached, cap)| reached / cap * 100.0);
                if share.zip(rate.share_percent).is_some_and(|(is, said)| !same(is, said)) {
                    self.add(
                        Rule::OneValue,
                        format!("{name} is {share:?} %, and says {:?}", rate.share_percent),
                    );
                }
            }
        }
    }

    pub(super) fn indices(&mut self, results: &Results) {
        let points = self.points.len();
        let values = results
            .experiments
            .iter()
            .flat_map(|one| &one.figures)
            .flat_map(|one| &one.series)
            .flat_map(|one| &one.values)
            .filter_map(|value| value.point);
        let stages = results
            .ladder
            .iter()
            .flat_map(|ladder| &ladder.stages)
            .flat_map(|stage| &stage.rates)
            .filter_map(|rate| rate.achieved.as_ref()?.point);
        let trials = self
            .answer
            .limits
            .iter()
            .flat_map(|limit| &limit.trials)
            .flat_map(|trial| std::iter::once(trial.before).chain(trial.after));
        let all: Vec<usize> = values.chain(stages).chain(trials).collect();
        if let Some(index) = all.into_iter().find(|&index| index >= points) {
            self.add(Rule::PointExists, format!("points[{index}] is missing: there are {points}"));
        }
        let shared = self.facts.members > 1
            && self.facts.devices.len() == 1
            && self.facts.kind != machine::TargetKind::Simulated;
        let of_chunks = self.answer.half_power.iter().any(|half| half.of == Varied::ChunkBytes);
        if shared && of_chunks {
            let device = &self.facts.devices[0];
            self.add(
                Rule::NoSharedStripe,
                format!("all targets are on {device}, and there is a half-power chunk"),
            );
        }
    }
}

fn depth_of_direct(point: &Point) -> Option<u32> {
    let workload = &point.workload;
    let direct = workload.buffering == Buffering::Direct
        && workload.pattern == Pattern::Seq
        && workload.threads == 1
        && workload.offset_bytes == 0
        && workload.region_bytes.is_none()
        && workload.think_ns == 0
        && workload.allocation == machine::Allocation::Written
        && point.stripe.is_none();
    direct.then_some(workload.depth)
}

fn is_same(a: &HalfPower, b: &HalfPower) -> bool {
    let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a == b,
    };
    same(a.peak_bytes_per_s, b.peak_bytes_per_s)
        && close(a.crossing, b.crossing)
        && close(a.smallest, b.smallest)
        && (a.fixed == b.fixed || matches!(b.fixed, Some(Fixed::Depth(_))))
        && a.at_or_below == b.at_or_below
}
