//! The ladder: every stage from the program down, advertised over achieved.
//!
//! What a stage achieved is measured where the stage can be reached alone (generator, memory, page cache, file system). Of a part that counts its own busy
//! time it is the rate of the peak over the share of the time in which the part worked: what it gives while it works. Of any other layer it is what passed
//! through it at the peak: it gives that at least, and no more where it is the limit.

use crate::found::Found;
use machine::units::{show_rate, show_size};
use machine::{Buffering, CacheState, Layer, LayerKind, MachineFacts, ResourceKind, ResourceUse};
use measure::stats;
use results::{
    Advertises, Answer, Axis, Bottleneck, Experiment, Ladder, LimitOf, Peak, Point, Reached, Stage, StageKind,
    StageRate, Varied,
};
use workload::{OpKind, Workload};

/// Settings of a layer that people look for first, in the order in which they read them. Others follow by name.
const FIRST: [&str; 60] = [
    "start_bytes",
    "aligned_to_physical_block",
    "aligned_to_optimal_io",
    "service",
    "source",
    "direct_io_means",
    "vers",
    "proto",
    "addr",
    "nconnect",
    "rsize",
    "wsize",
    "block_bytes",
    "journal",
    "data",
    "commit",
    "barrier",
    "compress",
    "compression",
    "atime",
    "stripe",
    "sunit",
    "swidth",
    "free_percent",
    "extents",
    "state",
    "level",
    "members",
    "chunk_bytes",
    "layout",
    "degraded",
    "encryption",
    "cache_mode",
    "cache_device",
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "read_ahead_bytes",
    "max_sectors_kb",
    "physical_block_size",
    "optimal_io_size",
    "write_cache",
    "fua",
    "cache_type",
    "rotational",
    "discard_max_bytes",
    "zoned",
    "hardware_queues",
    "queue_depth",
    "namespace",
    "backing_file",
    "direct_io",
    "model",
    "transport",
    "address",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "sata_spd",
];

/// What a stage's name or another of its settings says, or what nobody tunes.
const LEFT_OUT: [&str; 22] = [
    "mount",
    "size_bytes",
    "kind",
    "vendor",
    "raid_disks",
    "logical_block_size",
    "minimum_io_size",
    "max_hw_sectors_kb",
    "max_segments",
    "nomerges",
    "rq_affinity",
    "io_poll",
    "wbt_lat_usec",
    "discard_granularity",
    "queue_type",
    "array_state",
    "metadata_version",
    "provisioning_mode",
    "removable",
    "aligned_to_4_kib",
    "aligned_to_1_mib",
    "sata_spd_limit",
];

/// Settings that say nothing where they are none.
const IF_ANY: [&str; 7] =
    ["optimal_io_size", "chunk_sectors", "dax", "offset_bytes", "sequential_cutoff", "degraded", "group_thread_cnt"];

/// The fewest request sizes that a curve has.
const LEAST_SIZES: usize = 3;

/// The ladder of a study.
pub(crate) fn ladder(found: &Found<'_>, experiments: &[Experiment], answer: &Answer, machine: &MachineFacts) -> Ladder {
    let rungs = Rungs { found, experiments, answer, machine };
    let mut stages = rungs.above();
    stages.extend(rungs.below());
    mark_narrowest(&mut stages, answer);
    Ladder { stages, risks: risks(&found.setting.facts.layers) }
}

/// What is needed to make stages.
struct Rungs<'a> {
    found: &'a Found<'a>,
    experiments: &'a [Experiment],
    answer: &'a Answer,
    machine: &'a MachineFacts,
}

impl Rungs<'_> {
    fn stage(&self, kind: StageKind, name: impl Into<String>, rate: impl Fn(OpKind) -> Option<StageRate>) -> Stage {
        let rates = self.found.setting.ops().into_iter().filter_map(rate).collect();
        Stage { kind, name: name.into(), rates, settings: Vec::new(), warnings: Vec::new() }
    }

    /// What can be reached alone: from the program to the direct rate.
    fn above(&self) -> Vec<Stage> {
        let facts = &self.found.setting.facts;
        let mut stages = vec![self.stage(StageKind::Generator, "halfpower", |op| self.generator(op))];
        // Time is virtual on a simulated machine: the generator takes none, and has no rate.
        stages.retain(|stage| !self.machine.simulated || !stage.rates.is_empty());
        if self.machine.simulated {
            let name = self.machine.processor.clone();
            stages.push(
                self.stage(StageKind::Processor, name, |op| self.by_busy_time(op, &[ResourceKind::Processor], None)),
            );
        }
        stages.push(self.stage(StageKind::Memory, "copy", |op| self.memory(op)));
        stages.push(self.stage(StageKind::PageCache, "warm", |op| self.page_cache(op)));
        let system = facts.layers.iter().find(|layer| layer.kind == LayerKind::FileSystem);
        let name = system.map_or_else(|| facts.name.clone(), |layer| layer.name.clone());
        let mut own = Vec::new();
        if !facts.in_memory {
            own.push(self.stage(StageKind::Buffered, name.clone(), |op| self.buffered(op)));
        }
        if facts.direct || facts.in_memory {
            own.push(self.stage(StageKind::Direct, name, |op| self.direct(op)));
        }
        // Both are the file system; its settings stand once.
        if let (Some(first), Some(system)) = (own.first_mut(), system) {
            first.settings = settings(system);
            first.warnings = self.warnings_about(system);
        }
        stages.extend(own);
        stages
    }

    /// The layers that the target's facts name, without the file system that the program sees, which is above.
    fn below(&self) -> Vec<Stage> {
        let layers = &self.found.setting.facts.layers;
        let own = layers.iter().position(|layer| layer.kind == LayerKind::FileSystem);
        let below = layers.iter().enumerate().filter(|(at, _)| Some(*at) != own);
        let stage = |(_, layer): (usize, &Layer)| Stage {
            settings: settings(layer),
            warnings: self.warnings_about(layer),
            ..self.stage(layer.kind.into(), layer.name.clone(), |op| self.layer(layer, op))
        };
        below.map(stage).collect()
    }

    /// The target's warnings that name a layer, by its name or its address.
    fn warnings_about(&self, layer: &Layer) -> Vec<String> {
        let system = layer.kind == LayerKind::FileSystem;
        let name = if system { layer.name.as_str() } else { layer.name.split(' ').next().unwrap_or(&layer.name) };
        let of_link = ["address", "port"].into_iter().filter(|_| layer.kind == LayerKind::Link);
        let names: Vec<&str> = if layer.kind == LayerKind::Link {
            of_link.filter_map(|key| layer.settings.get(key)).map(String::as_str).collect()
        } else {
            vec![name]
        };
        let about = |warning: &&String| names.iter().any(|name| has_word(warning, name));
        self.found.setting.facts.warnings.iter().filter(about).cloned().collect()
    }

    fn peak(&self, op: OpKind) -> Option<&Peak> {
        self.answer.peaks.iter().find(|peak| peak.op == op)
    }

    fn resources(&self, op: OpKind) -> &[ResourceUse] {
        let point = self.peak(op).and_then(|peak| self.found.points[peak.point].numbers.as_ref());
        point.map_or(&[], |numbers| &numbers.achieved.resources)
    }

    fn generator(&self, op: OpKind) -> Option<StageRate> {
        let limits = self.answer.limits.iter().filter(|limit| limit.op == op && limit.of != LimitOf::Plain);
        let points = limits.filter_map(|limit| limit.point);
        let (iops, request, point) = points.rev().find_map(|point| {
            let one = &self.found.points[point];
            Some((one.numbers.as_ref()?.achieved.driver_ceiling_iops?, f64::from(one.workload.request_bytes), point))
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

    /// The best rate of copying memory, by one thread or by all.
    fn copy(&self) -> Option<Reached> {
        let copies = self.found.memory.as_ref().ok()?.iter().filter(|one| one.kind == "copy");
        let (mean, one) = copies
            .map(|one| (one.rates_bytes_per_s.iter().sum::<f64>() / one.rates_bytes_per_s.len().max(1) as f64, one))
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let interval = stats::estimate_values(&one.rates_bytes_per_s);
        let threads = if one.threads == 1 { "one thread".into() } else { format!("{} threads", one.threads) };
        Some(Reached {
            throughput_bytes_per_s: interval.map_or(mean, |interval| interval.mean),
            interval_95: interval.map(|interval| [interval.low, interval.high]),
            point: None,
            formula: format!("measured: copying by {threads}"),
            at_least: false,
        })
    }

    fn memory(&self, op: OpKind) -> Option<StageRate> {
        Some(rate(op, None, Some(self.copy()?)))
    }

    /// The best of the points that a test picks.
    fn best(&self, op: OpKind, pick: impl Fn(&Point) -> bool) -> Option<(usize, &Point)> {
        let of_op = self.found.points.iter().enumerate().filter(|(_, one)| one.workload.op == op && pick(one));
        of_op
            .filter(|(_, one)| one.rate().is_some())
            .max_by(|a, b| a.1.rate().unwrap_or(0.0).total_cmp(&b.1.rate().unwrap_or(0.0)))
    }

    fn page_cache(&self, op: OpKind) -> Option<StageRate> {
        let simple = |one: &Point| one.workload.buffering == Buffering::Buffered && one.workload.outstanding() == 1;
        let pick = |one: &Point| match op {
            OpKind::Write => simple(one) && one.workload.sync_at_end,
            _ => simple(one) && one.workload.cache == CacheState::Warm,
        };
        let (index, point) = self.best(op, pick)?;
        let ceiling = self.cache_ceiling(op, point.rate()?);
        let how = if op == OpKind::Write { "measured: until the last write returns" } else { "measured" };
        let how = if ceiling.is_none() { format!("{how}; no rate of memory is its ceiling") } else { how.to_owned() };
        Some(self.measured(op, ceiling, index, point, &how))
    }

    /// What memory allows one thread that reads or writes through the page cache: a copy, or, where it is faster than a copy, one side
    /// of it alone: the program's buffer stays in the processor's cache. None where it is faster than that, too: all of it does.
    fn cache_ceiling(&self, op: OpKind, reached: f64) -> Option<Advertises> {
        let (one_side, words) = match op {
            OpKind::Write => ("write", "writing memory: the program's buffer stays in the processor's cache"),
            _ => ("read", "reading memory: the program's buffer stays in the processor's cache"),
        };
        let ceilings = [("copy", "one copy in memory"), (one_side, words)].into_iter();
        let known = ceilings.filter_map(|(kind, formula)| Some((self.found.memory_rate(kind)?, formula)));
        known
            .filter(|(rate, _)| *rate >= reached)
            .map(|(rate, formula)| Advertises { throughput_bytes_per_s: rate, formula: formula.into() })
            .next()
    }

    fn buffered(&self, op: OpKind) -> Option<StageRate> {
        let below = self.peak(op).map(|peak| Advertises {
            throughput_bytes_per_s: peak.throughput_bytes_per_s,
            formula: "the best direct rate".into(),
        });
        if op == OpKind::Write {
            let synced = |one: &Point| one.numbers.as_ref()?.achieved.synced_bytes_per_s;
            let simple = |one: &Point| one.workload.buffering == Buffering::Buffered && synced(one).is_some();
            let writes = self.found.points.iter().enumerate().filter(|(_, one)| one.workload.op == op && simple(one));
            let (index, point) =
                writes.max_by(|a, b| synced(a.1).unwrap_or(0.0).total_cmp(&synced(b.1).unwrap_or(0.0)))?;
            let achieved = Reached {
                throughput_bytes_per_s: synced(point)?,
                interval_95: point.numbers.as_ref().and_then(|numbers| numbers.achieved.synced_interval_95),
                point: Some(index),
                formula: "measured: to stable storage".into(),
                at_least: false,
            };
            return Some(StageRate { half_power_bytes: self.half_power(index), ..rate(op, below, Some(achieved)) });
        }
        let cold =
            |one: &Point| one.workload.buffering == Buffering::Buffered && one.workload.cache == CacheState::Cold;
        let (index, point) = self.best(op, cold)?;
        Some(self.measured(op, below, index, point, "measured: nothing of it cached"))
    }

    fn direct(&self, op: OpKind) -> Option<StageRate> {
        let peak = self.peak(op)?;
        let below = peak.advertised.as_ref().map(|one| Advertises {
            throughput_bytes_per_s: one.throughput_bytes_per_s,
            formula: format!("the narrowest below: {}", one.layer),
        });
        let point = &self.found.points[peak.point];
        let half = self.half_power_of_peak(peak);
        Some(StageRate { half_power_bytes: half, ..self.measured(op, below, peak.point, point, "measured: the peak") })
    }

    /// The request size at which the requests that make a peak get half of it.
    fn half_power_of_peak(&self, peak: &Peak) -> Option<f64> {
        let depth = format!("depth {}", self.found.points[peak.point].workload.depth);
        let half = self.answer.half_power.iter().find(|half| {
            half.op == peak.op
                && half.of == Varied::RequestBytes
                && half.at == depth
                && half.peak_from == results::PeakSource::Measured
        });
        half.and_then(|half| half.crossing.or(half.smallest))
    }

    /// A stage that a point measured.
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
        let figures = self.experiments.iter().flat_map(|one| &one.figures).filter(|one| one.x == Axis::RequestBytes);
        let mut series = figures.flat_map(|one| &one.series);
        let own =
            series.find(|one| one.half_power.is_some() && one.values.iter().any(|value| value.point == Some(point)))?;
        own.half_power.as_ref().and_then(|half| half.crossing.or(half.smallest))
    }

    /// What a part gives while it works: the rate of the peak over the share of the time in which it worked.
    fn by_busy_time(&self, op: OpKind, kinds: &[ResourceKind], advertised: Option<Advertises>) -> Option<StageRate> {
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
            formula: format!("{} / {:.1} % busy", show_rate(peak.throughput_bytes_per_s), resource.busy_percent),
            at_least: false,
        };
        Some(StageRate {
            busy_percent: Some(resource.busy_percent),
            half_power_bytes: self.half_power_by_busy_time(peak, kinds).or_else(|| self.half_power_of_peak(peak)),
            ..rate(op, advertised, Some(achieved))
        })
    }

    /// The request size at which a part gives half of its best while it works, by the points that differ from the peak in that size alone.
    fn half_power_by_busy_time(&self, peak: &Peak, kinds: &[ResourceKind]) -> Option<f64> {
        let own = &self.found.points[peak.point].workload;
        let shape = &self.found.entries.get(peak.point)?.shape;
        let mut curve = Vec::new();
        for (entry, point) in self.found.entries.iter().zip(self.found.points) {
            let alike = Workload { request_bytes: own.request_bytes, ..(*point.workload).clone() } == **own;
            let Some(numbers) = point.numbers.as_ref().filter(|_| alike && entry.shape == *shape) else { continue };
            let used = numbers.achieved.resources.iter().find(|one| kinds.contains(&one.kind));
            let Some(share) = used.map(|one| one.busy_percent / 100.0).filter(|&share| share > 0.0) else { continue };
            let y = numbers.throughput_bytes_per_s / share;
            let [low, high] = numbers.interval_95.map_or([y, y], |ends| ends.map(|end| end / share));
            curve.push(stats::Point { x: f64::from(point.workload.request_bytes), y, low, high });
        }
        if curve.len() < LEAST_SIZES {
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

    fn layer(&self, layer: &Layer, op: OpKind) -> Option<StageRate> {
        let writes = op == OpKind::Write;
        let told = layer.advertised_formula.as_deref().unwrap_or("advertised");
        let advertised = layer.target_rate(writes).filter(|&rate| rate > 0.0).map(|whole| Advertises {
            throughput_bytes_per_s: whole,
            formula: match layer.share.of(writes) {
                share if (share - 1.0).abs() < 1e-9 => told.into(),
                share => {
                    let rate = show_rate(layer.advertised_rate(writes).unwrap_or_default());
                    format!("{told} = {rate}, / {share:.3} of the bytes")
                }
            },
        });
        let kinds: &[ResourceKind] = match layer.kind {
            LayerKind::Adapter => &[ResourceKind::Adapter],
            LayerKind::Bus => &[ResourceKind::Bus],
            LayerKind::Pci => &[ResourceKind::Pci],
            LayerKind::Network => &[ResourceKind::Network],
            LayerKind::Disk => &[ResourceKind::Media, ResourceKind::Device, ResourceKind::Link, ResourceKind::Throttle],
            _ => &[],
        };
        if let Some(by_busy_time) = self.by_busy_time(op, kinds, advertised.clone()) {
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
        let busy = busy.filter(|_| matches!(layer.kind, LayerKind::Disk | LayerKind::Loop) && !self.machine.simulated);
        let half_power_bytes = self.half_power_of_peak(peak);
        Some(StageRate { busy_percent: busy, half_power_bytes, ..rate(op, advertised, Some(achieved)) })
    }
}

/// A rate of a stage, its share computed.
fn rate(op: OpKind, advertised: Option<Advertises>, achieved: Option<Reached>) -> StageRate {
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

/// The settings of a layer that matter: those that people look for first, then whatever else is told of it.
fn settings(layer: &Layer) -> Vec<(String, String)> {
    let none = |value: &str| matches!(value, "" | "0" | "0.0k");
    let told = |name: &str, value: &str| {
        let own = FIRST.contains(&name) || !LEFT_OUT.contains(&name);
        own && !(IF_ANY.contains(&name) && none(value))
    };
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    let mut all: Vec<(String, String)> = layer.settings.clone().into_iter().collect();
    all.retain(|(name, value)| told(name, value));
    // The sort is stable: others stay by name.
    all.sort_by_key(|(name, _)| place(name));
    all
}

/// Whether a text has a name as a word: `sda` is none of `sda1 starts at ...`, nor `port-0:8` of `port-0:8:3 runs ...`.
fn has_word(text: &str, name: &str) -> bool {
    let goes_on = |rest: &str| {
        let mut next = rest.chars();
        match next.next() {
            Some(':' | '-' | '.') => next.next().is_some_and(char::is_alphanumeric),
            first => first.is_some_and(char::is_alphanumeric),
        }
    };
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-') && !goes_on(&text[at + name.len()..])
        })
}

/// Marks the stage that the verdict on the peak names.
fn mark_narrowest(stages: &mut [Stage], answer: &Answer) {
    for limit in answer.limits.iter().filter(|limit| limit.of == LimitOf::Peak) {
        let kinds: &[StageKind] = match limit.what {
            Bottleneck::Media | Bottleneck::Device | Bottleneck::DeviceIops => {
                &[StageKind::Device, StageKind::Loop, StageKind::Volume]
            }
            Bottleneck::Bus => &[StageKind::Bus],
            Bottleneck::Pci => &[StageKind::Pci],
            Bottleneck::Link => &[StageKind::Link, StageKind::Device],
            Bottleneck::Adapter => &[StageKind::Adapter, StageKind::Link],
            Bottleneck::Throttle => &[StageKind::Throttle, StageKind::Device],
            Bottleneck::Network => &[StageKind::Network],
            // Past the page cache if it can be passed: peaks are.
            Bottleneck::FileSystem => &[StageKind::Direct, StageKind::Buffered, StageKind::FileSystem],
            Bottleneck::Thread | Bottleneck::Generator => &[StageKind::Generator],
            Bottleneck::Processor => &[StageKind::Processor, StageKind::Generator],
            Bottleneck::Memory => &[StageKind::Memory],
            _ => &[],
        };
        let narrowest = kinds.iter().find_map(|kind| {
            let of_kind = stages.iter().enumerate().filter(|(_, stage)| stage.kind == *kind);
            let promised = |stage: &Stage| {
                let own = stage.rates.iter().find(|one| one.op == limit.op)?;
                Some(own.advertised.as_ref().map_or(f64::MAX, |one| one.throughput_bytes_per_s))
            };
            // What has no rate at all comes last: it is marked where nothing of its kind has one.
            let ranked = of_kind.map(|(at, stage)| (at, promised(stage).unwrap_or(f64::INFINITY)));
            ranked.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
        });
        let Some(stage) = narrowest.map(|at| &mut stages[at]) else { continue };
        let place = stage.rates.iter().position(|one| one.op == limit.op).unwrap_or_else(|| {
            stage.rates.push(rate(limit.op, None, None));
            stage.rates.len() - 1
        });
        let marked = &mut stage.rates[place];
        marked.narrowest = true;
        // What limits the whole gives no more than that.
        marked.achieved.iter_mut().for_each(|reached| reached.at_least = false);
    }
}

/// What could lose data that a program was told are written.
fn risks(layers: &[Layer]) -> Vec<String> {
    let mut risks = Vec::new();
    for layer in layers {
        let is =
            |name: &str, values: &[&str]| layer.settings.get(name).is_some_and(|one| values.contains(&one.as_str()));
        if matches!(layer.kind, LayerKind::Disk | LayerKind::Loop) && is("write_cache", &["write back", "on"]) {
            risks.push(format!(
                "{} has a write cache that a loss of power may empty: only what was flushed (fsync, O_DSYNC) is sure to be there",
                layer.name
            ));
        }
        if layer.kind == LayerKind::FileSystem && is("barrier", &["no", "0"]) {
            risks.push(format!("{} flushes no write cache (barriers are off): even fsync may lose data", layer.name));
        }
        if layer.settings.get("degraded").is_some_and(|missing| missing != "0") {
            risks.push(format!("{} has a member missing: the next one to fail may lose data", layer.name));
        }
        if is("cache_mode", &["writeback"]) {
            risks.push(format!("{} keeps written data in its cache device alone until it copies them", layer.name));
        }
    }
    risks
}
