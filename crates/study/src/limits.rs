//! What limits a peak, by the figures of its point.

use machine::{Layer, LayerKind, MachineFacts, TargetFacts, TargetKind, units};
use results::{Advertised, Bottleneck, Limit, Numbers, Peak, Point};
use workload::{OpKind, Workload};

/// A rate within this share of an advertised limit is that limit.
const NEAR: f64 = 0.1;
/// A resource busier than this, in percent, is the limit.
const BUSY_PERCENT: f64 = 90.0;
/// Doubling the requests outstanding gains less than this where something is saturated.
const FLAT: f64 = 1.1;

/// How many times over a target has its layers: a real target's are those of one member, a simulated one's those of all together.
fn times(facts: &TargetFacts) -> f64 {
    if facts.kind == TargetKind::Simulated { 1.0 } else { f64::from(facts.members.max(1)) }
}

/// The narrowest rate that a layer below advertises for an operation, with the layer's name; of a stripe, that of all members.
pub(crate) fn advertised(facts: &TargetFacts, op: OpKind) -> Option<Advertised> {
    let members = times(facts);
    let rate = |layer: &Layer| layer.advertised_rate(op == OpKind::Write);
    let rates = facts.layers.iter().filter_map(|layer| {
        Some(Advertised { layer: layer.name.clone(), throughput_bytes_per_s: rate(layer)? * members })
    });
    rates
        .filter(|one| one.throughput_bytes_per_s > 0.0)
        .min_by(|a, b| a.throughput_bytes_per_s.total_cmp(&b.throughput_bytes_per_s))
}

/// The fewest requests per second that a layer below admits for an operation, with the layer's name.
fn admitted(facts: &TargetFacts, op: OpKind) -> Option<(&str, f64)> {
    let members = times(facts);
    let iops = |layer: &Layer| layer.admitted_iops(op == OpKind::Write);
    let limits = facts.layers.iter().filter_map(|layer| Some((layer.name.as_str(), iops(layer)? * members)));
    limits.filter(|one| one.1 > 0.0).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// A peak with what its own figures say.
struct Evidence<'a> {
    peak: &'a Peak,
    point: &'a Point,
    numbers: &'a Numbers,
    facts: &'a TargetFacts,
    rate: String,
    /// Busy processors in percent of all.
    busy: f64,
    /// Twice as many bytes outstanding gain nothing.
    flat: bool,
}

/// What limits a peak, by the figures of its point and those of the other points of a study.
pub(crate) fn limit(peak: &Peak, points: &[Point], facts: &TargetFacts, machine: &MachineFacts) -> Limit {
    let (op, point) = (peak.op, &points[peak.point]);
    let found = point.numbers.as_ref().map(|numbers| {
        let evidence = Evidence {
            peak,
            point,
            numbers,
            facts,
            rate: units::show_rate(peak.throughput_bytes_per_s),
            busy: numbers.achieved.busy_processors / f64::from(machine.processors.max(1)) * 100.0,
            flat: more(peak, points).is_some_and(|more| more < peak.throughput_bytes_per_s * FLAT),
        };
        let causes = [Evidence::advertised, Evidence::admitted, Evidence::memory_or_processors, Evidence::device];
        causes.iter().find_map(|cause| cause(&evidence)).unwrap_or_else(|| evidence.latency())
    });
    let (what, why) = found.unwrap_or((Bottleneck::Unknown, "something unknown: nothing was measured".into()));
    Limit { op, what, sentence: format!("{op}s are limited by {why}") }
}

impl Evidence<'_> {
    /// The rate that a layer advertises.
    fn advertised(&self) -> Option<(Bottleneck, String)> {
        let limit = advertised(self.facts, self.peak.op)?;
        if (self.peak.throughput_bytes_per_s / limit.throughput_bytes_per_s - 1.0).abs() > NEAR {
            return None;
        }
        let what = match self.facts.layers.iter().find(|layer| layer.name == limit.layer)?.kind {
            LayerKind::Throttle => Bottleneck::Throttle,
            LayerKind::Link => Bottleneck::Link,
            _ => Bottleneck::Device,
        };
        let shown = units::show_rate(limit.throughput_bytes_per_s);
        Some((what, format!("the device: {} is what {} admits ({shown})", self.rate, limit.layer)))
    }

    /// The requests per second that a layer admits.
    fn admitted(&self) -> Option<(Bottleneck, String)> {
        let (layer, iops) = admitted(self.facts, self.peak.op)?;
        let each = self.numbers.achieved.device_request_bytes;
        let at_device = each.map_or(self.numbers.iops, |bytes| self.peak.throughput_bytes_per_s / bytes);
        if (at_device / iops - 1.0).abs() > NEAR {
            return None;
        }
        let each = each.map_or(String::new(), |bytes| format!(" of {}", units::show_size_rounded(bytes)));
        let why = format!("the device: {at_device:.0} requests/s{each} reach it, and {layer} admits {iops:.0}");
        Some((Bottleneck::Throttle, why))
    }

    fn memory_or_processors(&self) -> Option<(Bottleneck, String)> {
        let Evidence { rate, busy, .. } = self;
        if self.facts.in_memory {
            let why = "memory and processor: the file system keeps its files in memory";
            return Some((Bottleneck::Memory, format!("{why} ({rate}, {busy:.0} % of the processors busy)")));
        }
        let why = format!("the processors: {busy:.0} % of their time is used at {rate}");
        (*busy >= BUSY_PERCENT).then_some((Bottleneck::Processor, why))
    }

    /// A device that is busy all the time, the one thread that keeps it busy, or whatever else gives no more to more requests.
    fn device(&self) -> Option<(Bottleneck, String)> {
        let achieved = &self.numbers.achieved;
        let depth = achieved.device_mean_depth.unwrap_or(0.0);
        if let Some(percent) = achieved.device_busy_percent
            && percent >= BUSY_PERCENT
            && (self.flat || depth > 1.5)
        {
            let why = format!("the device: it is busy {percent:.0} % of the time with {depth:.1} requests in it");
            return Some((Bottleneck::Device, format!("{why}, and more of them gain nothing")));
        }
        let cpu = &self.numbers.cpu_ns_per_request;
        let threads = f64::from(self.point.workload.threads.max(1));
        let per_thread = (cpu.user + cpu.system) * self.numbers.iops / 1e9 / threads * 100.0;
        if per_thread >= BUSY_PERCENT && self.point.workload.engine.is_async() {
            let why = format!("the one thread that issues them: it is busy {per_thread:.0} % of the time");
            return Some((Bottleneck::Processor, format!("{why}; more threads may get more")));
        }
        let Evidence { rate, busy, .. } = self;
        let why = format!("the device: doubling the requests outstanding gains nothing over {rate}");
        self.flat.then(|| (Bottleneck::Device, format!("{why}, with {busy:.0} % of the processors busy")))
    }

    fn latency(&self) -> (Bottleneck, String) {
        let why = "the time of each request: nothing is saturated at";
        (Bottleneck::Latency, format!("{why} {}, so more outstanding may get more", self.rate))
    }
}

/// The best rate with the same operation and at least twice as many bytes outstanding.
fn more(peak: &Peak, points: &[Point]) -> Option<f64> {
    let workload = &points[peak.point].workload;
    let outstanding = |workload: &Workload| u64::from(workload.outstanding()) * u64::from(workload.request_bytes);
    points
        .iter()
        .filter(|point| {
            point.workload.read_percent == workload.read_percent
                && point.workload.buffering == workload.buffering
                && outstanding(&point.workload) >= 2 * outstanding(workload)
        })
        .filter_map(Point::rate)
        .max_by(f64::total_cmp)
}
