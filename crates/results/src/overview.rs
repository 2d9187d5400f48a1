//! Figures that a reader looks for first.

use crate::answer::{Peak, PlainRate, RandomBurst};
use crate::document::Results;
use crate::limit::LimitOf;
use crate::limit::SAME;
use crate::point::{LatencySummary, Numbers, Point};
use crate::visits::representatives;
use machine::{Allocation, Buffering, BurstFacts, CacheState, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::{OpKind, Pattern, Workload};

const SMALL_BYTES: u32 = 4096;

/// The figures of the first screen, and those that other tools show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// Reads, then writes, if they were measured.
    pub speeds: Vec<Speed>,
    /// The workloads that most tools for disks show.
    pub classic: Vec<ClassicRow>,
}

/// The speed of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Speed {
    pub op: OpKind,
    pub peak: Option<Peak>,
    /// The credit of bytes, if the peak does not last.
    pub peak_credit: Option<BurstFacts>,
    /// The plain program with the largest requests.
    pub plain: Option<PlainRate>,
    /// Random requests of 4 KiB, at the best number outstanding.
    pub random: Option<SmallRequests>,
    /// The credit, if the rate of `random` does not last.
    pub random_credit: Option<BurstFacts>,
    /// The faster beginning of `random`.
    pub random_burst: Option<RandomBurst>,
    /// Random requests of 4 KiB, one at a time.
    pub random_single: Option<SmallRequests>,
    /// Small writes one at a time, each on stable storage before the next starts.
    pub durable: Option<SmallRequests>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SmallRequests {
    pub request_bytes: u32,
    /// Requests outstanding over all threads.
    pub outstanding: u32,
    pub iops: f64,
    /// Mean latency.
    pub mean_ns: f64,
    /// The highest percentile that the samples support.
    pub tail: Option<Tail>,
    /// Index of the point.
    pub point: usize,
}

/// A high percentile of the latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tail {
    /// The percentile, such as 99.
    pub percentile: f64,
    pub ns: u64,
}

/// A workload of the usual benchmarks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassicRow {
    /// Name of the workload, such as `SEQ1M Q8T1`.
    pub name: String,
    /// Rate of reads; absent if it was not measured.
    pub read: Option<ClassicRate>,
    /// Rate of writes; absent if it was not measured.
    pub write: Option<ClassicRate>,
    /// Rate of reads and writes together; absent if it was not measured.
    pub mix: Option<ClassicRate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassicRate {
    pub throughput_bytes_per_s: f64,
    pub iops: f64,
    /// The rate does not last: it is above the best one that does ([`Peak::burst`]).
    pub burst: bool,
    /// Index of the point.
    pub point: usize,
}

/// Name, request size, pattern, and requests outstanding.
const CLASSIC: [(&str, u32, Pattern, u32); 4] = [
    ("SEQ1M Q8T1", 1 << 20, Pattern::Seq, 8),
    ("SEQ1M Q1T1", 1 << 20, Pattern::Seq, 1),
    ("RND4K Q32T1", 4096, Pattern::Random, 32),
    ("RND4K Q1T1", 4096, Pattern::Random, 1),
];

impl Overview {
    /// `None` without anything to show.
    pub fn of(results: &Results) -> Option<Overview> {
        let speeds: Vec<Speed> = [OpKind::Read, OpKind::Write]
            .into_iter()
            .map(|op| Speed::of(results, op))
            .filter(Speed::is_measured)
            .collect();
        let row = |(name, bytes, pattern, depth): (&str, u32, Pattern, u32)| {
            let rate = |op| {
                let mut rate = classic(&results.points, op, bytes, pattern, depth)?;
                let peak = results.answer.as_ref().and_then(|answer| answer.peak(op));
                let peak = peak.filter(|peak| peak.burst.is_some());
                let lasting = match pattern {
                    Pattern::Random => random_burst(results, op, None)
                        .and_then(|one| results.points.get(one.point)?.rate()),
                    _ => peak.map(|peak| peak.throughput_bytes_per_s),
                };
                rate.burst = lasting
                    .is_some_and(|lasting| rate.throughput_bytes_per_s > lasting * (1.0 + SAME));
                Some(rate)
            };
            ClassicRow {
                name: name.into(),
                read: rate(OpKind::Read),
                write: rate(OpKind::Write),
                mix: rate(OpKind::Mix),
            }
        };
        let mut classic: Vec<ClassicRow> = CLASSIC.into_iter().map(row).collect();
        if classic.iter().all(ClassicRow::is_empty) {
            classic.clear();
        }
        (!speeds.is_empty() || !classic.is_empty()).then_some(Overview { speeds, classic })
    }
}

fn random_burst(results: &Results, op: OpKind, outstanding: Option<u32>) -> Option<&RandomBurst> {
    let of = |one: &&RandomBurst| {
        one.op == op && outstanding.is_none_or(|wanted| wanted == one.outstanding)
    };
    results.answer.as_ref()?.random_bursts.iter().find(of)
}

impl Speed {
    fn of(results: &Results, op: OpKind) -> Speed {
        let answer = results.answer.as_ref();
        let points = &results.points;
        let small = |workload: &Workload| {
            workload.request_bytes == SMALL_BYTES && workload.pattern == Pattern::Random
        };
        // The verdict on random requests names its point; every figure about them is that point's.
        let judged = answer
            .iter()
            .flat_map(|answer| &answer.limits)
            .find(|limit| limit.of == LimitOf::Random && limit.op == op)
            .and_then(|limit| limit.point)
            .filter(|&index| {
                points.get(index).is_some_and(|one| one.workload.pattern == Pattern::Random)
            })
            .and_then(|index| SmallRequests::at(points, index));
        let single =
            |workload: &Workload| small(workload) && workload.depth * workload.threads == 1;
        let ordinary =
            |point: &&(usize, &Point)| point.1.workload.op == op && is_ordinary(&point.1.workload);
        let all: Vec<(usize, &Point)> =
            representatives(points).into_iter().map(|index| (index, &points[index])).collect();
        let best = |wanted: &dyn Fn(&Workload) -> bool| {
            let found = all.iter().filter(ordinary).filter(|(_, point)| wanted(&point.workload));
            highest(found.copied()).and_then(|index| SmallRequests::at(points, index))
        };
        let durable = all.iter().copied().filter(|(_, point)| {
            let workload = &point.workload.workload;
            point.workload.op == op
                && workload.buffering.is_dsync()
                && workload.request_bytes == SMALL_BYTES
                && workload.depth * workload.threads == 1
                && is_undisturbed(workload)
        });
        let plain = answer.iter().flat_map(|answer| &answer.plain).filter(|one| one.op == op);
        // After a burst of the best, single requests without one of their own were not measured.
        let lasting_single =
            random_burst(results, op, Some(1)).and_then(|one| SmallRequests::at(points, one.point));
        let random = judged.or_else(|| best(&small));
        let peak = answer.and_then(|answer| answer.peak(op)).cloned();
        let credit = |rate: f64, request_bytes: Option<u32>| {
            let layers = results.target.layers.iter();
            let bursts = layers.flat_map(|layer| &layer.facts.bursts);
            // A layer may count large requests as several.
            let counted = bursts.filter(|one| request_bytes.is_some() || !one.in_requests);
            let sustained =
                |one: &BurstFacts| one.sustained_bytes_per_s(request_bytes.unwrap_or(1));
            counted
                .filter(|one| rate > sustained(one) * (1.0 + SAME))
                .min_by(|one, other| sustained(one).total_cmp(&sustained(other)))
                .copied()
        };
        Speed {
            op,
            peak_credit: peak.as_ref().and_then(|peak| credit(peak.throughput_bytes_per_s, None)),
            random_credit: random.as_ref().and_then(|one| {
                credit(one.iops * f64::from(one.request_bytes), Some(one.request_bytes))
            }),
            random_burst: random_burst(results, op, None).copied(),
            peak,
            plain: plain.max_by_key(|one| one.request_bytes).cloned(),
            random,
            // The findings compare with one call at a time, which another engine may beat by chance.
            random_single: lasting_single
                .or_else(|| best(&|one| single(one) && one.engine == Engine::Sync))
                .or_else(|| best(&single)),
            durable: highest(durable).and_then(|index| SmallRequests::at(points, index)),
        }
    }

    fn is_measured(&self) -> bool {
        self.peak.is_some() || self.plain.is_some() || self.random.is_some()
    }
}

impl SmallRequests {
    fn at(points: &[Point], index: usize) -> Option<SmallRequests> {
        let point = points.get(index)?;
        let numbers = point.numbers.as_ref()?;
        Some(SmallRequests {
            request_bytes: point.workload.request_bytes,
            outstanding: point.workload.depth * point.workload.threads,
            iops: numbers.iops,
            mean_ns: numbers.latency_ns.mean,
            tail: Tail::of(&numbers.latency_ns),
            point: index,
        })
    }
}

impl Tail {
    /// The highest percentile up to p99 with enough requests above.
    pub fn of(latency: &LatencySummary) -> Option<Tail> {
        let highest = latency.percentiles().rfind(|(percentile, _)| *percentile <= 99.0);
        highest.map(|(percentile, ns)| Tail { percentile, ns })
    }
}

impl ClassicRow {
    fn is_empty(&self) -> bool {
        self.read.is_none() && self.write.is_none() && self.mix.is_none()
    }
}

/// Requests go past the page cache, to space written before, as fast as they complete.
fn is_ordinary(workload: &Workload) -> bool {
    workload.buffering == Buffering::Direct
        && matches!(workload.engine, Engine::Sync | Engine::IoUring | Engine::Libaio)
        && is_undisturbed(workload)
}

fn is_undisturbed(workload: &Workload) -> bool {
    workload.allocation == Allocation::Written
        && workload.cache == CacheState::AsIs
        && workload.rate_iops.is_none()
        && workload.load.is_empty()
        && workload.think_ns == 0
        && workload.offset_bytes == 0
        && workload.region_start_bytes == 0
        && workload.region_bytes.is_none()
        && workload.sizes.is_none()
        && workload.align_bytes.is_none()
}

fn highest<'a>(points: impl Iterator<Item = (usize, &'a Point)>) -> Option<usize> {
    let rated = points.filter_map(|(index, point)| Some((index, point.rate()?)));
    rated.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(index, _)| index)
}

fn classic(
    points: &[Point],
    op: OpKind,
    request_bytes: u32,
    pattern: Pattern,
    depth: u32,
) -> Option<ClassicRate> {
    let is_it = |point: &Point| {
        let workload = &point.workload.workload;
        point.workload.op == op
            && is_ordinary(workload)
            && (workload.request_bytes, workload.depth, workload.threads)
                == (request_bytes, depth, 1)
            && workload.pattern == pattern
    };
    let all = representatives(points).into_iter().map(|index| (index, &points[index]));
    let of = |wanted: &dyn Fn(&Point) -> bool| {
        highest(all.clone().filter(|(_, point)| is_it(point) && wanted(point)))
    };
    // As in `Speed::random_single`.
    let called = |point: &Point| depth == 1 && point.workload.workload.engine == Engine::Sync;
    let index = of(&called).or_else(|| of(&|_| true))?;
    let Numbers { throughput_bytes_per_s, iops, .. } = *points[index].numbers.as_ref()?;
    Some(ClassicRate { throughput_bytes_per_s, iops, burst: false, point: index })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_above_it() {
        let latency = |count| LatencySummary {
            mean: 1.0,
            min: 1,
            p50: 50,
            p90: 90,
            p99: 99,
            p999: 999,
            p9999: 999,
            p99999: 999,
            p999999: 999,
            max: 999,
            count,
        };
        let tail = |count| Tail::of(&latency(count)).map(|tail| (tail.percentile, tail.ns));
        assert_eq!(tail(1000), Some((99.0, 99)));
        assert_eq!(tail(999), Some((90.0, 90)));
        assert_eq!(tail(100), Some((90.0, 90)));
        assert_eq!(tail(41), Some((50.0, 50)));
        assert_eq!(tail(19), None);
    }
}
