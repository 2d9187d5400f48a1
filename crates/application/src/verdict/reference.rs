//! Points of a study like an application's requests.

use super::demand::Demand;
use super::{Reference, Share};
use machine::Allocation;
use measure::stats::{Estimate, ratio_of_estimates};
use results::{Point, Results};
use workload::{OpKind, Pattern, Workload};

/// Maximum factor.
const SAME_DEPTH: f64 = 1.5;

/// Maximum factor.
const NEAR_SIZE: f64 = 4.0;

/// Of the best rate.
pub(super) const GOOD: f64 = 0.9;

pub(super) struct References<'a> {
    study: &'a Results,
    demand: &'a Demand,
}

fn is_sequential(pattern: Pattern) -> Option<bool> {
    match pattern {
        Pattern::Seq | Pattern::Together => Some(true),
        Pattern::Random | Pattern::Uniform => Some(false),
        _ => None,
    }
}

fn iops_of(point: &Point) -> Option<(f64, Option<[f64; 2]>)> {
    let numbers = point.numbers.as_ref()?;
    let to_iops = numbers.iops / numbers.throughput_bytes_per_s;
    let interval = numbers.interval_95.map(|ends| ends.map(|rate| rate * to_iops));
    (numbers.iops > 0.0).then_some((numbers.iops, interval))
}

fn estimate(iops: f64, interval: Option<[f64; 2]>) -> Option<Estimate> {
    let [low, high] = interval?;
    Some(Estimate {
        mean: iops,
        low,
        high,
        n_runs: 0,
        n_effective: 1.0,
        relative_half_width: (high - low) / 2.0 / iops,
    })
}

impl Reference {
    pub(super) fn share_of(&self, iops: f64) -> Share {
        Share {
            ratio: iops / self.iops,
            interval_95: self
                .iops_interval_95
                .filter(|[low, _]| *low > 0.0)
                .map(|[low, high]| [iops / high, iops / low]),
        }
    }

    pub(super) fn gain_of(&self, after: &Reference, work: f64) -> Share {
        let ratio = after.iops / self.iops * work;
        let both = estimate(self.iops, self.iops_interval_95)
            .zip(estimate(after.iops, after.iops_interval_95));
        let interval = both.and_then(|(a, b)| ratio_of_estimates(&a, &b));
        Share { ratio, interval_95: interval.map(|one| [one.low * work, one.high * work]) }
    }
}

impl<'a> References<'a> {
    pub(super) fn new(study: &'a Results, demand: &'a Demand) -> References<'a> {
        References { study, demand }
    }

    fn alike(&self) -> impl Iterator<Item = (usize, &'a Point)> {
        let shape = self.demand.shape;
        self.points(move |workload| {
            workload.buffering.is_dsync() == shape.durable
                && workload.allocation == Allocation::Written
                && workload.offset_bytes == 0
                && workload.align_bytes.is_none()
        })
    }

    fn points(
        &self,
        suits: impl Fn(&Workload) -> bool,
    ) -> impl Iterator<Item = (usize, &'a Point)> {
        let (op, sequential) = (self.demand.op, self.demand.shape.sequential);
        self.study.points.iter().enumerate().filter(move |(_, point)| {
            let workload = &point.workload;
            point.numbers.is_some()
                && workload.op == op
                && is_sequential(workload.pattern) == Some(sequential)
                && workload.engine.does_io()
                && workload.sizes.is_none()
                && workload.rate_iops.is_none()
                && workload.load.is_empty()
                && workload.think_ns == 0
                && !workload.data.verify
                && suits(workload)
        })
    }

    fn is_as_buffered(&self, point: &Point) -> bool {
        let shape = self.demand.shape;
        point.workload.buffering.is_direct() == shape.direct
    }

    /// Time is linear between two sizes; beyond the largest, bytes per second stay the same.
    fn at_size(points: &[(usize, &Point)], bytes: f64) -> Option<Reference> {
        let mut known: Vec<Reference> = points
            .iter()
            .filter_map(|(index, point)| {
                let (iops, iops_interval_95) = iops_of(point)?;
                Some(Reference {
                    points: vec![*index],
                    request_bytes: f64::from(point.workload.request_bytes),
                    outstanding: point.workload.outstanding(),
                    iops,
                    iops_interval_95,
                })
            })
            .collect();
        // The best of several points of one size.
        known.sort_by(|a, b| {
            a.request_bytes.total_cmp(&b.request_bytes).then(b.iops.total_cmp(&a.iops))
        });
        known.dedup_by(|next, first| next.request_bytes == first.request_bytes);
        let above = known.iter().find(|one| one.request_bytes >= bytes);
        let below = known.iter().rev().find(|one| one.request_bytes <= bytes);
        let near = |size: f64| bytes <= size * NEAR_SIZE && bytes * NEAR_SIZE >= size;
        match (below, above) {
            (Some(a), Some(b)) if a.points != b.points => {
                let along = (bytes - a.request_bytes) / (b.request_bytes - a.request_bytes);
                let at = |a: f64, b: f64| 1.0 / (1.0 / a + (1.0 / b - 1.0 / a) * along);
                let both = a.iops_interval_95.zip(b.iops_interval_95);
                let both = both.filter(|(a, b)| a[0] > 0.0 && b[0] > 0.0);
                Some(Reference {
                    points: [a.points.clone(), b.points.clone()].concat(),
                    request_bytes: bytes,
                    outstanding: a.outstanding,
                    iops: at(a.iops, b.iops),
                    iops_interval_95: both.map(|(a, b)| [at(a[0], b[0]), at(a[1], b[1])]),
                })
            }
            (Some(one), Some(_)) => Some(one.clone()),
            // Smaller requests take as long as the smallest.
            (None, Some(one)) if near(one.request_bytes) => {
                Some(Reference { request_bytes: bytes, ..one.clone() })
            }
            (Some(one), None) if near(one.request_bytes) => {
                let scale = one.request_bytes / bytes;
                let scaled = |ends: [f64; 2]| ends.map(|iops| iops * scale);
                Some(Reference {
                    request_bytes: bytes,
                    iops: one.iops * scale,
                    iops_interval_95: one.iops_interval_95.map(scaled),
                    ..one.clone()
                })
            }
            _ => None,
        }
    }

    fn by_depth(&self, points: &[(usize, &'a Point)], bytes: f64) -> Vec<Reference> {
        let mut depths: Vec<u32> =
            points.iter().map(|(_, point)| point.workload.outstanding()).collect();
        depths.sort_unstable();
        depths.dedup();
        let of = |depth: u32| {
            let of_depth: Vec<(usize, &Point)> = points
                .iter()
                .copied()
                .filter(|(_, point)| point.workload.outstanding() == depth)
                .collect();
            References::at_size(&of_depth, bytes)
        };
        depths.into_iter().filter_map(of).collect()
    }

    fn near_depth(all: Vec<Reference>, outstanding: f64) -> Option<Reference> {
        let distance = |one: &Reference| (f64::from(one.outstanding) / outstanding).ln().abs();
        let near = all.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        near.filter(|one| distance(one) <= SAME_DEPTH.ln() + 1e-9)
    }

    pub(super) fn same(&self) -> Option<Reference> {
        let shape = self.demand.shape;
        let (own, other): (Vec<_>, Vec<_>) = self
            .alike()
            .filter(|(_, point)| point.reaches_device())
            .partition(|(_, point)| self.is_as_buffered(point));
        let at = |points: &[(usize, &'a Point)]| {
            let all = self.by_depth(points, shape.request_bytes);
            References::near_depth(all, shape.outstanding)
        };
        // Read-ahead and write-back change sequential requests of another way.
        let either_way = shape.durable || !shape.sequential;
        at(&own).or_else(|| either_way.then(|| at(&other)).flatten())
    }

    pub(super) fn depths(&self) -> Vec<Reference> {
        let points: Vec<_> = self
            .alike()
            .filter(|(_, point)| {
                point.reaches_device()
                    && (point.workload.buffering.is_direct() || self.is_as_buffered(point))
            })
            .collect();
        self.by_depth(&points, self.demand.shape.request_bytes)
    }

    /// `None` unless the study tried twice the application's depth.
    pub(super) fn best(&self) -> Option<Reference> {
        let all = self.depths();
        let deepest = all.last().map_or(0, |one| one.outstanding);
        let tried = f64::from(deepest) >= self.demand.shape.outstanding * 2.0;
        let best = all.into_iter().max_by(|a, b| a.iops.total_cmp(&b.iops));
        best.filter(|_| tried)
    }

    pub(super) fn enough(&self) -> Option<Reference> {
        let best = self.best()?.iops;
        self.depths().into_iter().find(|one| one.iops >= GOOD * best)
    }

    pub(super) fn at(&self, bytes: f64) -> Option<Reference> {
        let points: Vec<_> = self.alike().filter(|(_, point)| point.reaches_device()).collect();
        let (own, other): (Vec<_>, Vec<_>) =
            points.into_iter().partition(|(_, point)| self.is_as_buffered(point));
        let at = |points: &[(usize, &'a Point)]| {
            References::near_depth(self.by_depth(points, bytes), self.demand.shape.outstanding)
        };
        at(&own).or_else(|| at(&other))
    }

    pub(super) fn size_of(&self, reference: &Reference) -> Option<u32> {
        let point = self.study.points.get(*reference.points.first()?)?;
        Some(point.workload.request_bytes)
    }

    pub(super) fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> =
            self.alike().map(|(_, point)| point.workload.request_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    pub(super) fn pair(
        &self,
        before: impl Fn(&Workload) -> bool,
        after: impl Fn(&Workload) -> bool,
        same: impl Fn(&Workload, &Workload) -> bool,
    ) -> Option<(Reference, Reference)> {
        let of = |(index, point): (usize, &Point)| {
            let (iops, interval) = iops_of(point)?;
            Some(Reference {
                points: vec![index],
                request_bytes: f64::from(point.workload.request_bytes),
                outstanding: point.workload.outstanding(),
                iops,
                iops_interval_95: interval,
            })
        };
        let shape = self.demand.shape;
        let distance = |workload: &Workload| {
            let size = (f64::from(workload.request_bytes) / shape.request_bytes).ln().abs();
            let depth = (f64::from(workload.outstanding()) / shape.outstanding).ln().abs();
            size + depth
                + f64::from(u8::from(workload.buffering.is_dsync() != shape.durable)) * 10.0
        };
        let firsts = self.points(before);
        let pairs = firsts.filter_map(|first| {
            let (a, b) = (&first.1.workload, self.points(&after));
            let mut seconds = b.filter(|(_, point)| same(a, &point.workload));
            Some((distance(a), first, seconds.next()?))
        });
        let (_, first, second) = pairs.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((of(first)?, of(second)?))
    }

    pub(super) fn streaming(&self) -> Option<Reference> {
        if self.demand.op != OpKind::Read || !self.demand.shape.sequential {
            return None;
        }
        let best = self
            .points(|workload| workload.buffering.is_direct())
            .filter(|(_, point)| point.reaches_device())
            .filter_map(|(index, point)| Some((index, point, iops_of(point)?)))
            .max_by(|a, b| a.1.rate().unwrap_or(0.0).total_cmp(&b.1.rate().unwrap_or(0.0)))?;
        let (index, point, _) = best;
        let numbers = point.numbers.as_ref()?;
        let bytes = self.demand.shape.request_bytes;
        Some(Reference {
            points: vec![index],
            request_bytes: bytes,
            outstanding: point.workload.outstanding(),
            iops: numbers.throughput_bytes_per_s / bytes,
            iops_interval_95: numbers.interval_95.map(|ends| ends.map(|rate| rate / bytes)),
        })
    }
}
