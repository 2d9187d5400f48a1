//! The rates of a stage: advertised, and achieved by the study's points.

use super::Rungs;
use machine::units::{show_rate, show_size};
use machine::{Buffering, CacheState, Layer, LayerKind, ResourceKind, ResourceUse};
use measure::stats;
use results::{Advertises, Axis, LimitOf, Numbers, Peak, Point, Reached, StageRate};
use workload::{OpKind, Workload};

const MIN_SIZES: usize = 3;

impl Rungs<'_> {
    fn peak(&self, op: OpKind) -> Option<&Peak> {
        self.answer.peak(op)
    }

    fn resources(&self, op: OpKind) -> &[ResourceUse] {
        let point = self.peak(op).and_then(|peak| self.found.points[peak.point].numbers.as_ref());
        point.map_or(&[], |numbers| &numbers.achieved.resources)
    }

    pub(super) fn generator(&self, op: OpKind) -> Option<StageRate> {
        let limits =
            self.answer.limits.iter().filter(|limit| limit.op == op && limit.of != LimitOf::Plain);
        let points = limits.filter_map(|limit| limit.point);
        let (iops, request, point) = points.rev().find_map(|point| {
            let one = &self.found.points[point];
            Some((
                one.numbers.as_ref()?.achieved.driver_ceiling_iops?,
                f64::from(one.workload.request_bytes),
                point,
            ))
        })?;
        let formula = format!("{iops:.0} requests/s to nothing x {}", show_size(request as u64));
        let achieved = Reached {
            throughput_bytes_per_s: iops * request,
            interval_95: None,
            point: Some(point),
            formula,
            at_least: false,
        };
        Some(rate(op, None, Some(achieved)))
    }

    fn copy(&self) -> Option<Reached> {
        let copies = self.found.memory.as_ref().ok()?.iter().filter(|one| one.kind == "copy");
        let (mean, one) = copies
            .map(|one| {
                (
                    one.rates_bytes_per_s.iter().sum::<f64>()
                        / one.rates_bytes_per_s.len().max(1) as f64,
                    one,
                )
            })
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let interval = stats::estimate_values(&one.rates_bytes_per_s);
        let threads =
            if one.threads == 1 { "one thread".into() } else { format!("{} threads", one.threads) };
        Some(Reached {
            throughput_bytes_per_s: interval.map_or(mean, |interval| interval.mean),
            interval_95: interval.map(|interval| [interval.low, interval.high]),
            point: None,
            formula: format!("measured: copying by {threads}"),
            at_least: false,
        })
    }

    pub(super) fn memory(&self, op: OpKind) -> Option<StageRate> {
        Some(rate(op, None, Some(self.copy()?)))
    }

    /// The best by some rate of the points that a test picks.
    fn best(
        &self,
        op: OpKind,
        pick: impl Fn(&Point) -> bool,
        rate: impl Fn(&Point) -> Option<f64>,
    ) -> Option<(usize, &Point)> {
        let of_op = self
            .found
            .points
            .iter()
            .enumerate()
            .filter(|(_, one)| one.workload.op == op && pick(one));
        of_op
            .filter(|(_, one)| rate(one).is_some())
            .max_by(|a, b| rate(a.1).unwrap_or(0.0).total_cmp(&rate(b.1).unwrap_or(0.0)))
    }

    pub(super) fn page_cache(&self, op: OpKind) -> Option<StageRate> {
        let returned = |one: &Point| one.numbers.as_ref().map(Numbers::returned_bytes_per_s);
        let simple = |one: &Point| {
            one.workload.buffering == Buffering::Buffered && one.workload.outstanding() == 1
        };
        let pick = |one: &Point| match op {
            OpKind::Write => simple(one) && one.workload.sync_at_end,
            _ => simple(one) && one.workload.cache == CacheState::Warm,
        };
        let (index, point) = self.best(op, pick, returned)?;
        let ceiling = self.cache_ceiling(op, returned(point)?);
        let how =
            if op == OpKind::Write { "measured: until the last write returns" } else { "measured" };
        let how = if ceiling.is_none() {
            format!("{how}; faster than memory's ceiling")
        } else {
            how.to_owned()
        };
        let mut rate = self.measured(op, ceiling, index, point, &how);
        if let Some(achieved) = rate.achieved.as_mut().filter(|_| op == OpKind::Write) {
            (achieved.throughput_bytes_per_s, achieved.interval_95) = (returned(point)?, None);
        }
        Some(rate)
    }

    /// Memory's limit for one thread on page-cache I/O: a copy, or only one side of it if the rate
    /// exceeds a copy, since the program's buffer stays in the CPU cache. `None` if the rate
    /// exceeds that too: then everything stays in the CPU cache.
    fn cache_ceiling(&self, op: OpKind, reached: f64) -> Option<Advertises> {
        let (one_side, words) = match op {
            OpKind::Write => {
                ("write", "writing memory: the program's buffer stays in the processor's cache")
            }
            _ => ("read", "reading memory: the program's buffer stays in the processor's cache"),
        };
        let ceilings = [("copy", "one copy in memory"), (one_side, words)].into_iter();
        let known =
            ceilings.filter_map(|(kind, formula)| Some((self.found.memory_rate(kind)?, formula)));
        known
            .filter(|(rate, _)| *rate >= reached)
            .map(|(rate, formula)| Advertises {
                throughput_bytes_per_s: rate,
                formula: formula.into(),
            })
            .next()
    }

    pub(super) fn buffered(&self, op: OpKind) -> Option<StageRate> {
        let below = self.peak(op).map(|peak| Advertises {
            throughput_bytes_per_s: peak.throughput_bytes_per_s,
            formula: "the best direct rate".into(),
        });
        if op == OpKind::Write {
            let synced = |one: &Point| {
                one.workload.buffering == Buffering::Buffered && one.workload.sync_at_end
            };
            let (index, point) = self.best(op, synced, Point::rate)?;
            return Some(self.measured(op, below, index, point, "measured: to stable storage"));
        }
        let cold = |one: &Point| {
            one.workload.buffering == Buffering::Buffered && one.workload.cache == CacheState::Cold
        };
        let (index, point) = self.best(op, cold, Point::rate)?;
        Some(self.measured(op, below, index, point, "measured with a cold cache"))
    }

    pub(super) fn direct(&self, op: OpKind) -> Option<StageRate> {
        let peak = self.peak(op)?;
        let below = peak.advertised.as_ref().map(|one| Advertises {
            throughput_bytes_per_s: one.throughput_bytes_per_s,
            formula: format!("the narrowest below: {}", one.layer),
        });
        let point = &self.found.points[peak.point];
        let half = self.half_power_of_peak(peak);
        Some(StageRate {
            half_power_bytes: half,
            ..self.measured(op, below, peak.point, point, "measured: the peak")
        })
    }

    /// The request size at which the peak's kind of request gets half of the peak.
    fn half_power_of_peak(&self, peak: &Peak) -> Option<f64> {
        let depth = self.found.points[peak.point].workload.depth;
        self.answer.half_power_size(peak.op, depth)?.setting()
    }

    fn measured(
        &self,
        op: OpKind,
        advertised: Option<Advertises>,
        index: usize,
        point: &Point,
        how: &str,
    ) -> StageRate {
        let achieved = point.numbers.as_ref().map(|numbers| Reached {
            throughput_bytes_per_s: numbers.throughput_bytes_per_s,
            interval_95: numbers.interval_95,
            point: Some(index),
            formula: how.into(),
            at_least: false,
        });
        StageRate { half_power_bytes: self.half_power(index), ..rate(op, advertised, achieved) }
    }

    /// The request size at which the curve through a point reaches half of its best.
    fn half_power(&self, point: usize) -> Option<f64> {
        let figures = self
            .experiments
            .iter()
            .flat_map(|one| &one.figures)
            .filter(|one| one.x == Axis::RequestBytes);
        let mut series = figures.flat_map(|one| &one.series);
        let own = series.find(|one| {
            one.half_power.is_some() && one.values.iter().any(|value| value.point == Some(point))
        })?;
        own.half_power.as_ref()?.setting()
    }

    /// A component's rate while it works: the peak over its utilisation.
    pub(super) fn by_busy_time(
        &self,
        op: OpKind,
        kinds: &[ResourceKind],
        advertised: Option<Advertises>,
    ) -> Option<StageRate> {
        let peak = self.peak(op)?;
        let resource = self.resources(op).iter().find(|one| kinds.contains(&one.kind))?;
        if resource.busy_percent <= 0.0 {
            return None;
        }
        let share = resource.busy_percent / 100.0;
        let achieved = Reached {
            throughput_bytes_per_s: peak.throughput_bytes_per_s / share,
            interval_95: peak.interval_95.map(|ends| ends.map(|end| end / share)),
            point: Some(peak.point),
            formula: format!(
                "{} / {:.1} % busy",
                show_rate(peak.throughput_bytes_per_s),
                resource.busy_percent
            ),
            at_least: false,
        };
        Some(StageRate {
            busy_percent: Some(resource.busy_percent),
            half_power_bytes: self
                .half_power_by_busy_time(peak, kinds)
                .or_else(|| self.half_power_of_peak(peak)),
            ..rate(op, advertised, Some(achieved))
        })
    }

    /// The request size at which a component works at half of its best rate, from the points that
    /// differ from the peak only in size.
    fn half_power_by_busy_time(&self, peak: &Peak, kinds: &[ResourceKind]) -> Option<f64> {
        let own = &self.found.points[peak.point].workload;
        let shape = &self.found.entries.get(peak.point)?.shape;
        let mut curve = Vec::new();
        for (entry, point) in self.found.entries.iter().zip(self.found.points) {
            let alike =
                Workload { request_bytes: own.request_bytes, ..(*point.workload).clone() } == **own;
            let Some(numbers) = point.numbers.as_ref().filter(|_| alike && entry.shape == *shape)
            else {
                continue;
            };
            let used = numbers.achieved.resources.iter().find(|one| kinds.contains(&one.kind));
            let Some(share) = used.map(|one| one.busy_percent / 100.0).filter(|&share| share > 0.0)
            else {
                continue;
            };
            let y = numbers.throughput_bytes_per_s / share;
            let [low, high] =
                numbers.interval_95.map_or([y, y], |ends| ends.map(|end| end / share));
            curve.push(stats::Point { x: f64::from(point.workload.request_bytes), y, low, high });
        }
        if curve.len() < MIN_SIZES {
            return None;
        }
        curve.sort_by(|a, b| a.x.total_cmp(&b.x));
        let best = curve.iter().map(|point| point.y).fold(0.0, f64::max);
        match stats::half_power(&curve, best, None)?.reached {
            stats::Reached::At { crossing, .. } => Some(crossing),
            stats::Reached::AtOrBelow { setting, .. } => Some(setting),
            stats::Reached::Nowhere { .. } => None,
        }
    }

    pub(super) fn layer(&self, layer: &Layer, op: OpKind) -> Option<StageRate> {
        let writes = op == OpKind::Write;
        let reported = layer.advertised_formula.as_deref().unwrap_or("advertised");
        let advertised =
            layer.target_rate(writes).filter(|&rate| rate > 0.0).map(|whole| Advertises {
                throughput_bytes_per_s: whole,
                formula: match layer.share.of(writes) {
                    share if (share - 1.0).abs() < 1e-9 => reported.into(),
                    share => {
                        let rate = show_rate(layer.advertised_rate(writes).unwrap_or_default());
                        format!("{reported} = {rate}, / {share:.3} of the bytes")
                    }
                },
            });
        let kinds: &[ResourceKind] = match layer.kind {
            LayerKind::Adapter => &[ResourceKind::Adapter],
            LayerKind::Bus => &[ResourceKind::Bus],
            LayerKind::Pci => &[ResourceKind::Pci],
            LayerKind::Network => &[ResourceKind::Network],
            LayerKind::Disk => &[
                ResourceKind::Media,
                ResourceKind::Device,
                ResourceKind::Link,
                ResourceKind::Throttle,
            ],
            _ => &[],
        };
        // More than it advertises: a cache above served a part, so not all bytes passed through.
        const WHOLE_PERCENT: f64 = 110.0;
        let whole = |one: &StageRate| one.share_percent.is_none_or(|share| share <= WHOLE_PERCENT);
        if let Some(by_busy_time) = self.by_busy_time(op, kinds, advertised.clone()).filter(whole) {
            return Some(by_busy_time);
        }
        let peak = self.peak(op)?;
        let numbers = self.found.points[peak.point].numbers.as_ref();
        let achieved = Reached {
            throughput_bytes_per_s: peak.throughput_bytes_per_s,
            interval_95: peak.interval_95,
            point: Some(peak.point),
            formula: "passed through at the peak".into(),
            at_least: true,
        };
        let busy = numbers.and_then(|numbers| numbers.achieved.device_busy_percent);
        let busy = busy.filter(|_| {
            matches!(layer.kind, LayerKind::Disk | LayerKind::Loop) && !self.machine.simulated
        });
        let half_power_bytes = self.half_power_of_peak(peak);
        Some(StageRate {
            busy_percent: busy,
            half_power_bytes,
            ..rate(op, advertised, Some(achieved))
        })
    }
}

pub(super) fn rate(
    op: OpKind,
    advertised: Option<Advertises>,
    achieved: Option<Reached>,
) -> StageRate {
    let share = |(promised, reached): (&Advertises, &Reached)| {
        reached.throughput_bytes_per_s / promised.throughput_bytes_per_s * 100.0
    };
    StageRate {
        op,
        share_percent: advertised.as_ref().zip(achieved.as_ref()).map(share),
        advertised,
        achieved,
        busy_percent: None,
        half_power_bytes: None,
        narrowest: false,
    }
}
