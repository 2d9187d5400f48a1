//! The half-power point: the smallest setting at which half of the peak is reached.
//!
//! After n-half of R. W. Hockney (Parallel Computers, 1981): the vector length at which a pipeline gives half of its peak.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interval::Estimate;

/// A throughput measured at a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The setting: request size (bytes), depth, ... above zero.
    pub x: f64,
    /// Best value of the throughput.
    pub y: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
}

impl Point {
    /// A measured setting.
    pub fn new(x: f64, y: &Estimate) -> Point {
        Point { x, y: y.mean, low: y.low, high: y.high }
    }
}

/// Where a curve of throughput by setting reaches half of a peak.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfPower {
    /// Half of the peak, in the unit of the throughput.
    pub half: f64,
    /// The answer.
    pub reached: Reached,
}

/// Whether and where half of the peak is reached. Settings are in the unit of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Reached {
    /// Between two measured settings.
    At {
        /// The smallest measured setting that reaches it: the half-power point of the study.
        setting: f64,
        /// Where the curve crosses it: between two settings it goes by Hockney's law, `rate = best x setting / (setting + half)`.
        crossing: f64,
        /// Least setting at which it may be reached, as the 95 % intervals have it. Absent: at or below the smallest measured.
        low: Option<f64>,
        /// Greatest setting at which it may first be reached. Absent: perhaps not within the measured.
        high: Option<f64>,
    },
    /// The smallest measured setting reaches it already: the half-power point is there or below.
    AtOrBelow {
        /// The smallest measured setting.
        setting: f64,
        /// Greatest setting at which it may first be reached, as the 95 % intervals have it. Absent: perhaps not within the measured.
        high: Option<f64>,
    },
    /// No measured setting reaches it.
    Nowhere {
        /// The best that was measured.
        best: f64,
        /// Least setting at which it may be reached, as the 95 % intervals have it. Absent: nowhere within the measured.
        low: Option<f64>,
    },
}

/// Finds the half-power point on measured points against a peak; the points may be in any order.
///
/// The curve need not rise throughout: the answer is the smallest setting that reaches half, whatever follows. The interval is where
/// the curves through the upper and the lower ends of the points' intervals cross. The peak counts as exact.
/// `None` where there are no points or one is not a measurement (a setting at or below zero, anything not finite).
pub fn half_power(points: &[Point], peak: f64) -> Option<HalfPower> {
    let usable = |p: &Point| p.x > 0.0 && [p.x, p.y, p.low, p.high].iter().all(|v| v.is_finite());
    if points.is_empty() || !points.iter().all(usable) || !peak.is_finite() || peak <= 0.0 {
        return None;
    }
    let mut points = points.to_vec();
    points.sort_by(|p, q| p.x.total_cmp(&q.x));
    let half = peak / 2.0;
    let least = match crossing(&points, |p| p.high, half) {
        Some((0, _)) => None,
        other => other,
    };
    let greatest = crossing(&points, |p| p.low, half);
    let (low, high) = (least.map(|c| c.1), greatest.map(|c| c.1));
    let reached = match crossing(&points, |p| p.y, half) {
        None => Reached::Nowhere {
            best: points.iter().map(|p| p.y).fold(f64::MIN, f64::max),
            low: crossing(&points, |p| p.high, half).map(|c| c.1),
        },
        Some((0, setting)) => Reached::AtOrBelow { setting, high },
        Some((i, crossing)) => Reached::At { setting: points[i].x, crossing, low, high },
    };
    Some(HalfPower { half, reached })
}

/// The first point at or above `level` and where the curve crosses it. Between two points it is Hockney's, setting / rate = a + b x setting: exact
/// where a request takes a fixed time and a time for each byte, in proportion where only the fixed time counts.
fn crossing(points: &[Point], y: impl Fn(&Point) -> f64, level: f64) -> Option<(usize, f64)> {
    let i = points.iter().position(|p| y(p) >= level)?;
    if i == 0 {
        return Some((0, points[0].x));
    }
    let (p, q) = (&points[i - 1], &points[i]);
    // An interval may reach down to nothing, which would take for ever.
    let time = |p: &Point| p.x / y(p).max(level * 1e-6);
    let slope = (time(q) - time(p)) / (q.x - p.x);
    // The rate rises from `p` to at least `level` at `q`: the fixed part is above zero and the divisor too.
    let fixed = time(p) - slope * p.x;
    Some((i, level * fixed / (1.0 - level * slope)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)], relative: f64) -> Vec<Point> {
        points.iter().map(|&(x, y)| Point { x, y, low: y * (1.0 - relative), high: y * (1.0 + relative) }).collect()
    }

    #[test]
    fn crosses_between_the_settings() {
        let points = curve(&[(2.0, 10.0), (4.0, 20.0), (8.0, 40.0), (16.0, 80.0), (32.0, 100.0)], 0.1);
        let Some(HalfPower { half, reached: Reached::At { setting, crossing, low, high } }) =
            half_power(&points, 100.0)
        else {
            panic!()
        };
        assert_eq!((half, setting), (50.0, 16.0));
        // The rate is proportional to the setting here: 5 times 10.
        assert!((crossing - 10.0).abs() < 1e-9, "{crossing}");
        // Upper ends: 44 and 88; lower ends: 36 and 72.
        assert!((low.unwrap() - 8.0 * 50.0 / 44.0).abs() < 1e-9 && (high.unwrap() - 8.0 * 50.0 / 36.0).abs() < 1e-9);
    }

    #[test]
    fn between_settings_far_apart_a_fixed_time_and_a_time_for_each_byte_are_found_exactly() {
        let rate = |size: f64| size / (100.0 + size / 4.0);
        let points = curve(&[(64.0, rate(64.0)), (16_384.0, rate(16_384.0))], 0.0);
        let Some(HalfPower { reached: Reached::At { crossing, .. }, .. }) = half_power(&points, 4.0) else { panic!() };
        assert!(
            (crossing - 400.0).abs() < 1e-9,
            "Hockney's n-half is the fixed time by the rate at the limit: {crossing}"
        );
    }

    #[test]
    fn the_smallest_setting_counts_on_a_curve_that_falls_again() {
        let points = curve(&[(64.0, 90.0), (1.0, 10.0), (4.0, 60.0), (16.0, 30.0)], 0.01);
        let h = half_power(&points, 100.0).unwrap();
        assert!(matches!(h.reached, Reached::At { setting: 4.0, .. }), "{h:?}");
    }

    #[test]
    fn reached_from_the_begin_or_nowhere() {
        let first = half_power(&curve(&[(4.0, 55.0), (8.0, 90.0)], 0.2), 100.0).unwrap().reached;
        let Reached::AtOrBelow { setting: 4.0, high: Some(high) } = first else { panic!("{first:?}") };
        assert!(high > 4.0 && high < 8.0, "its lower end, 44, does not reach half, that of the next, 72, does: {high}");
        let none = half_power(&curve(&[(4.0, 10.0), (8.0, 45.0)], 0.2), 100.0).unwrap().reached;
        let Reached::Nowhere { best: 45.0, low: Some(low) } = none else { panic!("{none:?}") };
        assert!(low > 4.0 && low < 8.0);
        let far = half_power(&curve(&[(4.0, 10.0), (8.0, 20.0)], 0.2), 100.0).unwrap().reached;
        assert_eq!(far, Reached::Nowhere { best: 20.0, low: None });
        assert_eq!(half_power(&[], 100.0), None);
        assert_eq!(half_power(&curve(&[(0.0, 10.0)], 0.1), 100.0), None);
    }

    #[test]
    fn an_interval_open_to_either_side_is_left_open() {
        // The first setting's upper end reaches half, and no lower end does.
        let h = half_power(&curve(&[(1.0, 45.0), (2.0, 52.0)], 0.2), 100.0).unwrap().reached;
        assert!(matches!(h, Reached::At { setting: 2.0, low: None, high: None, .. }), "{h:?}");
    }
}
