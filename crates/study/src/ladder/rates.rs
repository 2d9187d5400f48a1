use super::Rungs;
use crate::case::GAIN;
use crate::experiments::buffered;
use crate::found::{Reading, best};
use crate::grid::Curve;
use machine::units::{show_rate, show_size};
use machine::{Layer, LayerKind, MemoryKind, ResourceKind, ResourceUse};
use measure::stats;
use results::{Advertises, Axis, LimitOf, Method, Peak, Reached, StageRate};
use workload::{OpKind, Workload};

const MIN_SIZES: usize = 3;

/// Generator and processors are rated with it.
const NAMED_REQUEST: u32 = 64 << 10;
const NAMED_DEPTH: u32 = 8;

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
        let (iops, point) = points.rev().find_map(|point| {
            let numbers = self.found.points[point].numbers.as_ref()?;
            Some((numbers.achieved.driver_ceiling_iops?, point))
        })?;
        let how = Method::ToNothing { iops, request_bytes: NAMED_REQUEST };
        let achieved = Reached::new(iops * f64::from(NAMED_REQUEST), Some(point), how);
        Some(rate(op, None, Some(achieved)))
    }

    fn copy(&self) -> Option<Reached> {
        let copies =
            self.found.memory.as_ref().ok()?.iter().filter(|one| one.kind == MemoryKind::Copy);
        let (mean, one) = copies
            .filter_map(|one| Some((one.mean_bytes_per_s()?, one)))
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let interval = stats::estimate_values(&one.rates_bytes_per_s);
        let how = Method::Copies { threads: one.threads };
        let rate = interval.map_or(mean, |interval| interval.mean);
        Some(Reached {
            interval_95: interval.map(|interval| [interval.low, interval.high]),
            ..Reached::new(rate, None, how)
        })
    }

    pub(super) fn memory(&self, op: OpKind) -> Option<StageRate> {
        Some(rate(op, None, Some(self.copy()?)))
    }

    fn best_of(&self, curves: &[Curve], how: Method) -> Option<Reached> {
        let all: Vec<Reading> = curves.iter().flat_map(|curve| self.found.curve(curve)).collect();
        let best = best(&all)?;
        Some(Reached {
            interval_95: best.interval_95,
            ..Reached::new(best.y, Some(best.point), how)
        })
    }

    pub(super) fn page_cache(&self, op: OpKind) -> Option<StageRate> {
        // Writers of more than the cache holds back wait for the disk.
        let curves = match op {
            OpKind::Write => &[buffered::RETURNED, buffered::REWRITTEN][..],
            _ => &[buffered::WARM],
        };
        let all: Vec<Reading> = curves.iter().flat_map(|curve| self.found.curve(curve)).collect();
        let ceiling = self.cache_ceiling(op, best(&all)?.y);
        let faster_than_memory = ceiling.is_none();
        let how = match op {
            OpKind::Write => Method::UntilReturn { faster_than_memory },
            _ => Method::Cached { faster_than_memory },
        };
        Some(self.with_half_power(rate(op, ceiling, self.best_of(curves, how))))
    }

    /// One thread's copy, or one side of it if the rate exceeds a copy. `None` above both: all
    /// stays in the CPU cache.
    fn cache_ceiling(&self, op: OpKind, reached: f64) -> Option<Advertises> {
        let (one_side, words) = match op {
            OpKind::Write => {
                let words = "writing memory: the program's buffer stays in the processor's cache";
                (MemoryKind::Write, words)
            }
            _ => {
                let words = "reading memory: the program's buffer stays in the processor's cache";
                (MemoryKind::Read, words)
            }
        };
        let ceilings =
            [(MemoryKind::Copy, "one thread's copy in memory"), (one_side, words)].into_iter();
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
        let (curves, how) = match op {
            OpKind::Write => (&[buffered::SYNCED][..], Method::Synced),
            _ => (&[buffered::COLD, buffered::HINTED][..], Method::Cold),
        };
        let best = self.best_of(curves, how)?;
        // If other programs slowed the direct requests only, their best rate does not limit these.
        let surely = best.interval_95.map_or(best.throughput_bytes_per_s, |[low, _]| low);
        let below = below.filter(|below| surely <= below.throughput_bytes_per_s * GAIN);
        Some(self.with_half_power(rate(op, below, Some(best))))
    }

    pub(super) fn direct(&self, op: OpKind) -> Option<StageRate> {
        let peak = self.peak(op)?;
        let below = peak.advertised.as_ref().map(|one| Advertises {
            throughput_bytes_per_s: one.throughput_bytes_per_s,
            formula: format!("the narrowest below: {}", one.layer),
        });
        let achieved = Reached {
            interval_95: peak.interval_95,
            ..Reached::new(peak.throughput_bytes_per_s, Some(peak.point), Method::Peak)
        };
        let half = self.half_power_of_peak(peak);
        Some(StageRate { half_power_bytes: half, ..rate(op, below, Some(achieved)) })
    }

    fn half_power_of_peak(&self, peak: &Peak) -> Option<f64> {
        let depth = self.found.points[peak.point].workload.depth;
        self.answer.half_power_size(peak.op, depth)?.setting()
    }

    fn with_half_power(&self, rate: StageRate) -> StageRate {
        let point = rate.achieved.as_ref().and_then(|achieved| achieved.point);
        StageRate { half_power_bytes: point.and_then(|point| self.half_power(point)), ..rate }
    }

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
        let achieved = while_busy(
            (peak.throughput_bytes_per_s, peak.interval_95),
            resource.busy_percent,
            peak.point,
            None,
        );
        Some(StageRate {
            busy_percent: Some(resource.busy_percent),
            half_power_bytes: self
                .half_power_by_busy_time(peak, kinds)
                .or_else(|| self.half_power_of_peak(peak)),
            ..rate(op, advertised, Some(achieved))
        })
    }

    /// At one named request: processors cost per request more than per byte, so the peak's size
    /// would decide the rate.
    pub(super) fn processor(&self, op: OpKind) -> Option<StageRate> {
        let shape = self.peak(op).and_then(|peak| Some(&self.found.entries.get(peak.point)?.shape));
        let named = |workload: &Workload| {
            let deep = self.found.setting.deep(op, NAMED_REQUEST, NAMED_DEPTH);
            *workload == Workload { stop: workload.stop, seed: workload.seed, ..deep }
        };
        let (index, numbers) =
            self.found.entries.iter().zip(self.found.points).enumerate().find_map(
                |(index, (entry, point))| {
                    let wanted = named(&point.workload) && shape == Some(&entry.shape);
                    Some((index, point.numbers.as_ref().filter(|_| wanted)?))
                },
            )?;
        let resources = &numbers.achieved.resources;
        let processor = resources.iter().find(|one| one.kind == ResourceKind::Processor)?;
        if processor.busy_percent <= 0.0 {
            return None;
        }
        let request = format!("{} x {NAMED_DEPTH}", show_size(u64::from(NAMED_REQUEST)));
        let achieved = while_busy(
            (numbers.throughput_bytes_per_s, numbers.interval_95),
            processor.busy_percent,
            index,
            Some(request),
        );
        let at_peak = self.resources(op).iter().find(|one| one.kind == ResourceKind::Processor);
        Some(StageRate {
            busy_percent: at_peak.map(|one| one.busy_percent),
            ..rate(op, None, Some(achieved))
        })
    }

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
        let own = format!("{}: ", layer.name);
        let reported = reported.strip_prefix(&own).unwrap_or(reported);
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
            interval_95: peak.interval_95,
            ..Reached::new(peak.throughput_bytes_per_s, Some(peak.point), Method::PassedThrough)
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

fn while_busy(
    (throughput, interval): (f64, Option<[f64; 2]>),
    busy_percent: f64,
    point: usize,
    request: Option<String>,
) -> Reached {
    let share = busy_percent / 100.0;
    let how = Method::WhileBusy { request, throughput_bytes_per_s: throughput, busy_percent };
    Reached {
        interval_95: interval.map(|ends| ends.map(|end| end / share)),
        ..Reached::new(throughput / share, Some(point), how)
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
