//! Straight lines: cost = a per request + b per byte, time = fixed + size / rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::student_quantile;
use super::series::median;

/// A coefficient with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coefficient {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitPoint {
    pub x: f64,
    pub y: f64,
    /// Value of the line at x.
    pub fitted: f64,
    /// (y - fitted) / fitted.
    pub relative_residual: f64,
    /// Weight in the fit: 1, or less for an outlier.
    pub weight: f64,
}

/// y = intercept + slope x, for points with relative errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineFit {
    /// Value at x = 0, in the unit of y: per request.
    pub intercept: Coefficient,
    /// Slope, in the unit of y per unit of x: per byte.
    pub slope: Coefficient,
    /// 1 / slope: the rate of a service-time model. Absent if the slope may be zero or negative.
    pub rate: Option<Coefficient>,
    /// The points in the given order.
    pub points: Vec<FitPoint>,
    /// Root mean square of the relative residuals, unweighted.
    pub rms_relative_residual: f64,
    pub max_relative_residual: f64,
    /// The knee, if two connected lines fit significantly better than one.
    pub knee: Option<Knee>,
}

/// The point at which two lines meet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Knee {
    /// Position, in the unit of x.
    pub x: f64,
    pub slope_below: f64,
    pub slope_above: f64,
    /// Root mean square of the relative residuals of both lines together.
    pub rms_relative_residual: f64,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    #[error(
        "a line with intervals needs points at 3 or more different x; there are {distinct}: measure more sizes"
    )]
    TooFew { distinct: usize },
    #[error(
        "the point ({x}, {y}) cannot be fitted: y must be above zero and both finite; leave it out"
    )]
    Unusable { x: f64, y: f64 },
}

/// Residuals beyond this number of robust standard deviations get less weight (Huber 1964; 95 %
/// efficient in normal noise).
const HUBER: f64 = 1.345;
const ROUNDS: usize = 50;
/// Divided by the number of positions searched.
const KNEE_TAIL: f64 = 0.01;
const KNEE_FACTOR: f64 = 1.25;

/// Weighted least squares with Huber's weights; errors are proportional to y. Requires y > 0.
pub fn fit_line(points: &[(f64, f64)]) -> Result<LineFit, FitError> {
    if let Some(&(x, y)) =
        points.iter().find(|(x, y)| !(x.is_finite() && y.is_finite() && *y > 0.0))
    {
        return Err(FitError::Unusable { x, y });
    }
    let mut xs: Vec<f64> = points.iter().map(|p| p.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    if xs.len() < 3 {
        return Err(FitError::TooFew { distinct: xs.len() });
    }
    let robust = Robust::fit(points);
    let (intercept, slope, rate) = robust.coefficients(points);
    let fitted: Vec<FitPoint> = points
        .iter()
        .zip(&robust.weights)
        .map(|(&(x, y), &weight)| {
            let fitted = robust.a + robust.b * x;
            FitPoint { x, y, fitted, relative_residual: (y - fitted) / fitted.abs(), weight }
        })
        .collect();
    let n = points.len() as f64;
    Ok(LineFit {
        intercept,
        slope,
        rate,
        rms_relative_residual: (fitted.iter().map(|p| p.relative_residual.powi(2)).sum::<f64>()
            / n)
            .sqrt(),
        max_relative_residual: fitted.iter().map(|p| p.relative_residual.abs()).fold(0.0, f64::max),
        knee: find_knee(points, &xs),
        points: fitted,
    })
}

struct Robust {
    a: f64,
    b: f64,
    weights: Vec<f64>,
    /// Expected y, to which errors are proportional.
    scales: Vec<f64>,
}

impl Robust {
    fn fit(points: &[(f64, f64)]) -> Robust {
        let n = points.len();
        let smallest = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        let mut fit = Robust {
            a: 0.0,
            b: 0.0,
            weights: vec![1.0; n],
            scales: points.iter().map(|p| p.1).collect(),
        };
        (fit.a, fit.b) = median_line(points);
        for _ in 0..ROUNDS {
            // The error is proportional to the true value, and the line estimates that better than
            // the point does.
            fit.scales =
                points.iter().map(|&(x, _)| (fit.a + fit.b * x).max(0.1 * smallest)).collect();
            let residuals: Vec<f64> = points
                .iter()
                .zip(&fit.scales)
                .map(|(&(x, y), s)| ((y - fit.a - fit.b * x) / s).abs())
                .collect();
            // For a normal variable the standard deviation is 1.4826 times the median deviation;
            // the line takes two degrees of freedom.
            let spread = 1.4826 * median(&residuals) * (n as f64 / (n as f64 - 2.0)).sqrt();
            fit.weights = residuals
                .iter()
                .map(|&r| if r <= HUBER * spread { 1.0 } else { HUBER * spread / r })
                .collect();
            let (a, b) = fit.solve(points);
            let settled =
                (a - fit.a).abs() <= 1e-12 * a.abs() && (b - fit.b).abs() <= 1e-12 * b.abs();
            (fit.a, fit.b) = (a, b);
            if settled || spread == 0.0 {
                break;
            }
        }
        fit
    }

    /// Returns intercept and slope.
    fn solve(&self, points: &[(f64, f64)]) -> (f64, f64) {
        let (w, xm, sxx) = self.moments(points);
        let ym = points.iter().enumerate().map(|(i, p)| self.weight(i) * p.1).sum::<f64>() / w;
        let sxy: f64 =
            points.iter().enumerate().map(|(i, p)| self.weight(i) * (p.0 - xm) * (p.1 - ym)).sum();
        if sxx > 0.0 { (ym - sxy / sxx * xm, sxy / sxx) } else { (self.a, self.b) }
    }

    fn weight(&self, i: usize) -> f64 {
        self.weights[i] / (self.scales[i] * self.scales[i])
    }

    /// Returns the sum of weights, the weighted mean of x, and the weighted squares about it.
    fn moments(&self, points: &[(f64, f64)]) -> (f64, f64, f64) {
        let w: f64 = (0..points.len()).map(|i| self.weight(i)).sum();
        let xm = points.iter().enumerate().map(|(i, p)| self.weight(i) * p.0).sum::<f64>() / w;
        (w, xm, points.iter().enumerate().map(|(i, p)| self.weight(i) * (p.0 - xm).powi(2)).sum())
    }

    fn coefficients(
        &self,
        points: &[(f64, f64)],
    ) -> (Coefficient, Coefficient, Option<Coefficient>) {
        let n = points.len() as f64;
        let (w, xm, sxx) = self.moments(points);
        // Variance of a robust fit from pseudo-values (Huber 1981, 7.6): squares of the clipped
        // residuals over the square of the unclipped fraction.
        let unclipped = self.weights.iter().filter(|&&w| w >= 1.0).count() as f64 / n;
        let squares: f64 = points
            .iter()
            .enumerate()
            .map(|(i, p)| {
                (self.weights[i] * (p.1 - self.a - self.b * p.0) / self.scales[i]).powi(2)
            })
            .sum();
        let variance = squares / (n - 2.0) / (unclipped * unclipped).max(0.25);
        let t = student_quantile(0.975, n - 2.0);
        let about = |value: f64, error: f64| Coefficient {
            value,
            low: value - t * error,
            high: value + t * error,
        };
        let slope = about(self.b, (variance / sxx).sqrt());
        let intercept = about(self.a, (variance * (1.0 / w + xm * xm / sxx)).sqrt());
        let rate = (slope.low > 0.0).then(|| Coefficient {
            value: 1.0 / slope.value,
            low: 1.0 / slope.high,
            high: 1.0 / slope.low,
        });
        (intercept, slope, rate)
    }
}

/// Theil-Sen: the median slope of all pairs, robust to 29 % outliers.
fn median_line(points: &[(f64, f64)]) -> (f64, f64) {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (i, p) in points.iter().enumerate() {
        slopes.extend(points[..i].iter().filter(|q| q.0 != p.0).map(|q| (p.1 - q.1) / (p.0 - q.0)));
    }
    let b = median(&slopes);
    // The intercept leaves half of the points above, half below. Errors are proportional, so the
    // small points decide it.
    let mut order: Vec<&(f64, f64)> = points.iter().collect();
    order.sort_by(|p, q| p.0.total_cmp(&q.0));
    let below: Vec<f64> = order[..points.len().div_ceil(2)].iter().map(|p| p.1 - b * p.0).collect();
    (median(&below), b)
}

/// Uses an F test on relative squares.
fn find_knee(points: &[(f64, f64)], xs: &[f64]) -> Option<Knee> {
    let n = points.len();
    if n < 6 || xs.len() < 6 {
        return None;
    }
    let log_grid = |i: usize| (0..4).map(move |k| xs[i] + (xs[i + 1] - xs[i]) * f64::from(k) / 4.0);
    // At least two different x values on either side, so no line depends on a single point.
    let places: Vec<f64> = (1..xs.len() - 2).flat_map(log_grid).chain([xs[xs.len() - 2]]).collect();
    let one = bent(points, None)?;
    let two = places
        .iter()
        .filter_map(|&x| bent(points, Some(x)))
        .min_by(|p, q| p.squares.total_cmp(&q.squares))?;
    let degrees = (n - 4) as f64;
    // Position and second slope are two more parameters. The tail of F(2, m) in closed form: (1 + 2
    // F / m)^(-m/2).
    let f = (one.squares - two.squares) / 2.0 / (two.squares / degrees);
    let tail = (1.0 + 2.0 * f / degrees).powf(-degrees / 2.0) * (xs.len() - 3) as f64;
    let (low, high) = (two.slope_below.min(two.slope_above), two.slope_below.max(two.slope_above));
    let bends = low <= 0.0 || high / low >= KNEE_FACTOR;
    let rms = (two.squares / n as f64).sqrt();
    let exact = two.squares <= 1e-20 * n as f64 && one.squares > 1e-12 * n as f64;
    (bends && (exact || tail < KNEE_TAIL)).then_some(Knee {
        x: two.x,
        slope_below: two.slope_below,
        slope_above: two.slope_above,
        rms_relative_residual: rms,
    })
}

struct Bent {
    x: f64,
    slope_below: f64,
    slope_above: f64,
    squares: f64,
}

/// Fits y = a + b x + c max(x - knee, 0), with errors proportional to y.
fn bent(points: &[(f64, f64)], knee: Option<f64>) -> Option<Bent> {
    let columns = |x: f64| [1.0, x, knee.map_or(0.0, |k| (x - k).max(0.0))];
    let unknowns = if knee.is_some() { 3 } else { 2 };
    let mut m = [[0.0; 4]; 3];
    // Scaled by the largest x, so the normal equations stay well conditioned.
    let unit = points.iter().map(|p| p.0.abs()).fold(0.0, f64::max);
    let scaled = |x: f64| {
        let c = columns(x);
        [c[0], c[1] / unit, c[2] / unit]
    };
    for &(x, y) in points {
        let c = scaled(x);
        for i in 0..unknowns {
            for j in 0..unknowns {
                m[i][j] += c[i] * c[j] / (y * y);
            }
            m[i][3] += c[i] * y / (y * y);
        }
    }
    let solution = solve(m, unknowns)?;
    let squares = points
        .iter()
        .map(|&(x, y)| {
            (1.0 - scaled(x).iter().zip(solution).map(|(c, s)| c * s).sum::<f64>() / y).powi(2)
        })
        .sum();
    let [_, b, c] = solution.map(|s| s / unit);
    Some(Bent { x: knee.unwrap_or(f64::NAN), slope_below: b, slope_above: b + c, squares })
}

/// Takes the last column as the right-hand side. Unknowns beyond `size` are 0.
fn solve(mut m: [[f64; 4]; 3], size: usize) -> Option<[f64; 3]> {
    for i in 0..size {
        let pivot = (i..size).max_by(|&p, &q| m[p][i].abs().total_cmp(&m[q][i].abs()))?;
        m.swap(i, pivot);
        if m[i][i].abs() < 1e-300 {
            return None;
        }
        for j in i + 1..size {
            let factor = m[j][i] / m[i][i];
            let row = m[i];
            m[j].iter_mut().zip(row).for_each(|(v, r)| *v -= factor * r);
        }
    }
    let mut x = [0.0; 3];
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|j| m[i][j] * x[j]).sum();
        x[i] = (m[i][3] - known) / m[i][i];
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> Vec<f64> {
        (11..=20).map(|p| f64::from(1u32 << p)).collect()
    }

    #[test]
    fn an_exact_line_is_recovered() {
        let points: Vec<_> = sizes().iter().map(|&x| (x, 120e-6 + x / 20e6)).collect();
        let fit = fit_line(&points).unwrap();
        assert!(
            (fit.intercept.value - 120e-6).abs() < 1e-12
                && (fit.rate.unwrap().value - 20e6).abs() < 1.0,
            "{fit:?}"
        );
        assert!(fit.max_relative_residual < 1e-9 && fit.knee.is_none(), "{fit:?}");
    }

    #[test]
    fn the_fit_resists_one_outlier() {
        let mut points: Vec<_> = sizes()
            .iter()
            .enumerate()
            .map(|(i, &x)| (x, (120e-6 + x / 20e6) * if i % 2 == 0 { 1.01 } else { 0.99 }))
            .collect();
        points[9].1 *= 3.0;
        let fit = fit_line(&points).unwrap();
        assert!((fit.intercept.value / 120e-6 - 1.0).abs() < 0.05, "{:?}", fit.intercept);
        assert!((fit.rate.unwrap().value / 20e6 - 1.0).abs() < 0.05, "{:?}", fit.rate);
        assert!(fit.points[9].weight < 0.1 && fit.max_relative_residual > 1.5);
    }

    #[test]
    fn a_knee_is_located() {
        // Up to 64 KiB at 40 MB/s, above at 10 MB/s; errors of 2 %.
        let points: Vec<_> = sizes()
            .iter()
            .enumerate()
            .map(|(i, &x)| {
                (
                    x,
                    (100e-6 + x.min(65536.0) / 40e6 + (x - 65536.0).max(0.0) / 10e6)
                        * if i % 3 == 0 { 1.02 } else { 0.99 },
                )
            })
            .collect();
        let knee = fit_line(&points).unwrap().knee.expect("a bend by a factor of four");
        assert!((32768.0..=131072.0).contains(&knee.x), "{knee:?}");
        assert!((1.0 / knee.slope_above / 10e6 - 1.0).abs() < 0.15, "{knee:?}");
    }

    #[test]
    fn invalid_points_are_errors() {
        assert_eq!(
            fit_line(&[(1.0, 2.0), (1.0, 2.1), (2.0, 3.0)]).unwrap_err(),
            FitError::TooFew { distinct: 2 }
        );
        assert_eq!(
            fit_line(&[(1.0, 2.0), (2.0, 0.0), (3.0, 3.0)]).unwrap_err(),
            FitError::Unusable { x: 2.0, y: 0.0 }
        );
    }

    #[test]
    fn a_flat_line_has_no_rate() {
        let fit = fit_line(&[(1.0, 5.0), (2.0, 5.01), (4.0, 4.99), (8.0, 5.0)]).unwrap();
        assert_eq!(fit.rate, None);
        assert!((fit.intercept.value - 5.0).abs() < 0.02);
    }
}
