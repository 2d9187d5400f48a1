//! The requests that a rank had completed at each time.

use measure::Sample;

/// The curve is linear between the ends of slices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    /// Nanoseconds from the agreed start, and requests completed by then; both rise.
    points: Vec<(f64, f64)>,
}

impl Curve {
    pub(crate) fn of(sample: &Sample, began_ns: i64) -> Curve {
        let began = began_ns as f64;
        let (end, all) = (began + sample.measured_ns.max(1) as f64, sample.requests as f64);
        let mut points = vec![(began, 0.0)];
        let (mut time, mut done) = points[0];
        for rate in sample.warm_up_rates.iter().chain(&sample.slice_rates) {
            time += sample.slice_ns as f64;
            done += rate * sample.slice_ns as f64 / 1e9;
            if time >= end || done > all {
                break;
            }
            points.push((time, done));
        }
        points.push((end, all));
        Curve { points }
    }

    pub(crate) fn begin(&self) -> f64 {
        self.points[0].0
    }

    pub(crate) fn end(&self) -> f64 {
        self.points[self.points.len() - 1].0
    }

    pub(crate) fn at(&self, time: f64) -> f64 {
        let next = self.points.partition_point(|point| point.0 <= time);
        match (next.checked_sub(1).map(|before| self.points[before]), self.points.get(next)) {
            (None, _) => 0.0,
            (Some((_, done)), None) => done,
            (Some((from, done)), Some(&(to, then))) => {
                done + (then - done) * (time - from) / (to - from)
            }
        }
    }

    pub(crate) fn between(&self, from: f64, to: f64) -> f64 {
        self.at(to) - self.at(from)
    }
}
