//! The smallest setting that reaches half of the peak, after n-half of R. W. Hockney (Parallel
//! Computers, 1981).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interval::Estimate;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Request size (bytes), depth, ...; above zero.
    pub x: f64,
    pub y: f64,
    /// The lower end of y's 95 % interval.
    pub low: f64,
    pub high: f64,
}

impl Point {
    pub fn new(x: f64, y: &Estimate) -> Point {
        Point { x, y: y.mean, low: y.low, high: y.high }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfPower {
    /// Half of the peak, in the unit of the throughput.
    pub half: f64,
    pub reached: Reached,
}

/// The setting at which a curve reaches half, in the unit of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Reached {
    /// The half-power point is between two measured settings.
    At {
        /// The smallest measured setting that reaches half: the half-power point of the study.
        setting: f64,
        /// The setting that reaches half by Hockney's law:
        /// `rate = best x setting / (setting + half)`.
        crossing: f64,
        /// Lower end of the 95 % interval; absent at or below the smallest measured setting.
        low: Option<f64>,
        /// Upper end of the interval; absent if possibly beyond the measured settings.
        high: Option<f64>,
    },
    /// The half-power point is at the smallest measured setting or below.
    AtOrBelow {
        setting: f64,
        /// Upper end of the 95 % interval; absent if possibly beyond the measured settings.
        high: Option<f64>,
    },
    Nowhere {
        best: f64,
        /// Lowest setting that may reach half, given the 95 % intervals; absent if none of those
        /// measured does.
        low: Option<f64>,
    },
}

/// Points farther from the crossing than this factor are ignored.
const SPAN: f64 = 16.0;

const Z: f64 = 1.96;

/// Points are in any order; what follows the smallest setting does not matter. `None` without
/// points, or if a setting is not positive or a value not finite.
///
/// Between settings the curve follows Hockney's law, setting / rate = a + b x setting. The interval
/// is Fieller's (J. Royal Statistical Society B 16, 1954).
pub fn half_power(
    points: &[Point],
    peak: f64,
    peak_interval: Option<[f64; 2]>,
) -> Option<HalfPower> {
    let usable = |p: &Point| p.x > 0.0 && [p.x, p.y, p.low, p.high].iter().all(|v| v.is_finite());
    if points.is_empty() || !points.iter().all(usable) || !peak.is_finite() || peak <= 0.0 {
        return None;
    }
    // From here on there is a first point and a last one, and `points[above - 1]` exists: `above`
    // is not the first.
    let mut points = points.to_vec();
    points.sort_by(|p, q| p.x.total_cmp(&q.x));
    let half = peak / 2.0;
    let error = peak_interval.map_or(0.0, |[low, high]| (high - low).max(0.0) / (2.0 * Z) / peak);
    let reached = match smoothed(&points).iter().position(|&y| y >= half) {
        None => Reached::Nowhere {
            best: points.iter().map(|p| p.y).fold(f64::MIN, f64::max),
            low: crossing(&points, |p| p.high, half).map(|c| c.1),
        },
        Some(0) => Reached::AtOrBelow {
            setting: points[0].x,
            high: crossing(&points, |p| p.low, half).map(|c| c.1),
        },
        Some(above) => {
            let law = Law::around(&points, above);
            let (min, max) = (points[0].x, points[points.len() - 1].x);
            let within = |x: &f64| (min..=max).contains(x);
            let [low, high] = law.interval(half, error);
            // If the neighbours move the crossing beyond the next point on either side, use only
            // the two points around it.
            let next =
                points[above.saturating_sub(2)].x..=points[(above + 1).min(points.len() - 1)].x;
            let pair = || Law::of(&points[above - 1..=above]).crossing(half);
            let crossing = law
                .crossing(half)
                .filter(|x| next.contains(x))
                .or_else(pair)
                .unwrap_or(points[above].x);
            let crossing = crossing.clamp(min, max);
            let setting =
                points.iter().map(|p| p.x).find(|&x| x >= crossing * (1.0 - 1e-9)).unwrap_or(max);
            Reached::At { setting, crossing, low: low.filter(within), high: high.filter(within) }
        }
    };
    Some(HalfPower { half, reached })
}

/// Takes ascending settings; merges a point that exceeds the next only by chance.
pub fn smoothed(points: &[Point]) -> Vec<f64> {
    // Rate, its variance, points.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
    for point in points {
        let mut last = (point.y, point.error().powi(2), 1);
        while let Some(&(y, variance, count)) = blocks.last() {
            let both = variance + last.1;
            if y <= last.0 || both == 0.0 || (y - last.0).powi(2) > Z * Z * both {
                break;
            }
            // Each weight is the variance of the other, because one of them may be exact.
            last =
                ((y * last.1 + last.0 * variance) / both, variance * last.1 / both, count + last.2);
            blocks.pop();
        }
        blocks.push(last);
    }
    blocks.into_iter().flat_map(|(y, _, count)| std::iter::repeat_n(y, count)).collect()
}

impl Point {
    fn error(&self) -> f64 {
        (self.high - self.low).max(0.0) / (2.0 * Z)
    }
}

#[derive(Debug, Clone, Copy)]
struct Law {
    a: f64,
    b: f64,
    aa: f64,
    bb: f64,
    ab: f64,
}

impl Law {
    /// Requires that `above` is not the first point.
    fn around(points: &[Point], above: usize) -> Law {
        let (near, far) = (points[above - 1].x / SPAN, points[above].x * SPAN);
        let (mut first, mut last) = (above - 1, above);
        let mut law = Law::of(&points[first..=last]);
        let (mut down, mut up) = (true, true);
        while down || up {
            down =
                down && first > 0 && points[first - 1].x >= near && law.holds(&points[first - 1]);
            if down {
                first -= 1;
                law = Law::of(&points[first..=last]);
            }
            up = up
                && last + 1 < points.len()
                && points[last + 1].x <= far
                && law.holds(&points[last + 1]);
            if up {
                last += 1;
                law = Law::of(&points[first..=last]);
            }
        }
        law
    }

    /// Errors relative to the times, so slow runs do not count for less.
    fn of(points: &[Point]) -> Law {
        // The interval may include zero, and the time would be infinite.
        let time = |p: &Point| p.x / p.y.max(f64::MIN_POSITIVE);
        let exact = points.iter().all(|p| p.error() == 0.0);
        // An exact point among others would have all the weight and no variance.
        let relative = |p: &Point| if exact { 1.0 } else { (p.error() / p.y).clamp(1e-4, 1e3) };
        let mut fitted: Vec<f64> = points.iter().map(time).collect();
        let mut law = Law { a: 0.0, b: 0.0, aa: 0.0, bb: 0.0, ab: 0.0 };
        for _ in 0..4 {
            let (mut w, mut wx, mut wxx, mut wt, mut wxt) = (0.0, 0.0, 0.0, 0.0, 0.0);
            // Relative to the first setting, so that squares stay near one.
            let unit = points[0].x;
            for (p, fit) in points.iter().zip(&fitted) {
                let (x, weight) = (p.x / unit, (relative(p) * fit).powi(-2));
                w += weight;
                wx += weight * x;
                wxx += weight * x * x;
                wt += weight * time(p);
                wxt += weight * x * time(p);
            }
            let determinant = w * wxx - wx * wx;
            let variance = if exact { 0.0 } else { 1.0 / determinant };
            law = Law {
                a: (wxx * wt - wx * wxt) / determinant,
                b: (w * wxt - wx * wt) / determinant / unit,
                aa: wxx * variance,
                bb: w * variance / (unit * unit),
                ab: -wx * variance / unit,
            };
            let min = fitted.iter().copied().fold(f64::MAX, f64::min) * 1e-3;
            fitted = points.iter().map(|p| law.time(p.x).max(min)).collect();
        }
        law
    }

    fn time(&self, x: f64) -> f64 {
        self.a + self.b * x
    }

    fn holds(&self, p: &Point) -> bool {
        let known = self.aa + 2.0 * p.x * self.ab + p.x * p.x * self.bb;
        let time = self.time(p.x);
        let apart = p.x / p.y - time;
        let own = time * p.error() / p.y;
        time > 0.0 && own > 0.0 && apart.powi(2) <= Z * Z * (known + own * own)
    }

    fn crossing(&self, half: f64) -> Option<f64> {
        let x = self.a / (1.0 / half - self.b);
        (x.is_finite() && x > 0.0).then_some(x)
    }

    /// `error` is the relative standard error of `half`. `None`: unbounded.
    fn interval(&self, half: f64, error: f64) -> [Option<f64>; 2] {
        // (slope x - a)^2 = Z^2 (variance of both sides), a parabola in x.
        let (slope, z) = (1.0 / half - self.b, Z * Z);
        let square = slope * slope - z * ((error / half).powi(2) + self.bb);
        let linear = -2.0 * (slope * self.a + z * self.ab);
        let constant = self.a * self.a - z * self.aa;
        let root = (linear * linear - 4.0 * square * constant).max(0.0).sqrt();
        // The numerically stable form of both roots avoids cancellation.
        let q = -(linear + linear.signum() * root) / 2.0;
        let (one, other) = (constant / q, q / square);
        let usable = |x: f64| (x.is_finite() && x > 0.0).then_some(x);
        match (square > 0.0, constant > 0.0) {
            (true, _) => [usable(one.min(other)), usable(one.max(other))],
            // The rate may never reach half, or may reach it from the first setting on.
            (false, true) => [usable(one.max(other)), None],
            (false, false) => [None, None],
        }
    }
}

fn crossing(points: &[Point], y: impl Fn(&Point) -> f64, level: f64) -> Option<(usize, f64)> {
    let i = points.iter().position(|p| y(p) >= level)?;
    if i == 0 {
        return Some((0, points[0].x));
    }
    let (p, q) = (&points[i - 1], &points[i]);
    // The interval may include zero, and the time would be infinite.
    let time = |p: &Point| p.x / y(p).max(level * 1e-6);
    let slope = (time(q) - time(p)) / (q.x - p.x);
    // The rate rises from `p` to at least `level` at `q`: the fixed part and the divisor are
    // positive.
    let fixed = time(p) - slope * p.x;
    Some((i, level * fixed / (1.0 - level * slope)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)], relative: f64) -> Vec<Point> {
        points
            .iter()
            .map(|&(x, y)| Point { x, y, low: y * (1.0 - relative), high: y * (1.0 + relative) })
            .collect()
    }

    #[test]
    fn crosses_between_the_settings() {
        let points =
            curve(&[(2.0, 10.0), (4.0, 20.0), (8.0, 40.0), (16.0, 80.0), (32.0, 100.0)], 0.1);
        let Some(HalfPower { half, reached: Reached::At { setting, crossing, low, high } }) =
            half_power(&points, 100.0, None)
        else {
            panic!()
        };
        assert_eq!((half, setting), (50.0, 16.0));
        // The rate is proportional to the setting here: 5 times 10.
        assert!((crossing - 10.0).abs() < 1e-9, "{crossing}");
        // The two around it give 50 / 44 x 8 to 50 / 36 x 8; their neighbours narrow that.
        let (low, high) = (low.unwrap(), high.unwrap());
        assert!(
            low > 8.0 * 50.0 / 44.0 && low < 9.9 && high > 10.1 && high < 8.0 * 50.0 / 36.0,
            "{low} to {high}"
        );
    }

    #[test]
    fn a_jump_is_interpolated_between_two_settings_only() {
        // A curve with a jump: neither neighbour is on the line of the other two.
        let points = curve(&[(1.0, 1.0), (2.0, 30.0), (4.0, 70.0), (8.0, 71.0)], 0.01);
        let Some(HalfPower { reached: Reached::At { setting, crossing, .. }, .. }) =
            half_power(&points, 100.0, None)
        else {
            panic!()
        };
        let pair = half_power(&points[1..3], 100.0, None).unwrap().reached;
        let Reached::At { crossing: of_pair, .. } = pair else { panic!() };
        assert_eq!((setting, crossing), (4.0, of_pair));
    }

    #[test]
    fn chance_crossings_are_ignored() {
        let points = curve(&[(1.0, 10.0), (2.0, 52.0), (4.0, 38.0), (8.0, 80.0)], 0.3);
        let Reached::At { setting, .. } = half_power(&points, 100.0, None).unwrap().reached else {
            panic!()
        };
        assert_eq!(setting, 8.0, "the two in the middle are one: 45");
        let exact = curve(&[(1.0, 10.0), (2.0, 52.0), (4.0, 38.0), (8.0, 80.0)], 0.001);
        let Reached::At { setting, .. } = half_power(&exact, 100.0, None).unwrap().reached else {
            panic!()
        };
        assert_eq!(setting, 2.0, "it reaches half, and the next is slower");
    }

    #[test]
    fn between_settings_far_apart_a_fixed_time_and_a_time_for_each_byte_are_found_exactly() {
        let rate = |size: f64| size / (100.0 + size / 4.0);
        let points = curve(&[(64.0, rate(64.0)), (16_384.0, rate(16_384.0))], 0.0);
        let Some(HalfPower { reached: Reached::At { crossing, .. }, .. }) =
            half_power(&points, 4.0, None)
        else {
            panic!()
        };
        assert!(
            (crossing - 400.0).abs() < 1e-9,
            "Hockney's n-half is the fixed time by the rate at the limit: {crossing}"
        );
    }

    #[test]
    fn a_falling_curve_uses_the_smallest_setting() {
        let points = curve(&[(64.0, 90.0), (1.0, 10.0), (4.0, 60.0), (16.0, 30.0)], 0.01);
        let h = half_power(&points, 100.0, None).unwrap();
        assert!(matches!(h.reached, Reached::At { setting: 4.0, .. }), "{h:?}");
    }

    #[test]
    fn reached_from_the_start_or_never() {
        let first =
            half_power(&curve(&[(4.0, 55.0), (8.0, 90.0)], 0.2), 100.0, None).unwrap().reached;
        let Reached::AtOrBelow { setting: 4.0, high: Some(high) } = first else {
            panic!("{first:?}")
        };
        assert!(
            high > 4.0 && high < 8.0,
            "its lower end, 44, does not reach half, that of the next, 72, does: {high}"
        );
        let none =
            half_power(&curve(&[(4.0, 10.0), (8.0, 45.0)], 0.2), 100.0, None).unwrap().reached;
        let Reached::Nowhere { best: 45.0, low: Some(low) } = none else { panic!("{none:?}") };
        assert!(low > 4.0 && low < 8.0);
        let far =
            half_power(&curve(&[(4.0, 10.0), (8.0, 20.0)], 0.2), 100.0, None).unwrap().reached;
        assert_eq!(far, Reached::Nowhere { best: 20.0, low: None });
        assert_eq!(half_power(&[], 100.0, None), None);
        assert_eq!(half_power(&curve(&[(0.0, 10.0)], 0.1), 100.0, None), None);
    }

    #[test]
    fn unbounded_intervals_stay_open() {
        // The upper end of the first setting reaches half, but no lower end does.
        let h = half_power(&curve(&[(1.0, 45.0), (2.0, 52.0)], 0.2), 100.0, None).unwrap().reached;
        assert!(matches!(h, Reached::At { setting: 2.0, low: None, high: None, .. }), "{h:?}");
    }
}
