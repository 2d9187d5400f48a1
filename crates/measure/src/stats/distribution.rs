//! Quantiles of the normal distribution and of Student's t.

use std::f64::consts::PI;

/// The quantile of the standard normal distribution; infinite at 0 and 1.
///
/// Algorithm AS 241 (PPND16; M. J. Wichura, Applied Statistics 37, 1988): about 1 part in 10^16.
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(0.180625 - q * q, &CENTRE.0, &CENTRE.1);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    if tail <= 0.0 {
        return f64::INFINITY.copysign(q);
    }
    let r = (-tail.ln()).sqrt();
    let x = if r <= 5.0 { ratio(r - 1.6, &MIDDLE.0, &MIDDLE.1) } else { ratio(r - 5.0, &TAIL.0, &TAIL.1) };
    x.copysign(q)
}

/// A quotient of two polynomials, with coefficients from the constant term up.
fn ratio(x: f64, above: &[f64], below: &[f64]) -> f64 {
    let polynomial = |c: &[f64]| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
    polynomial(above) / polynomial(below)
}

type Pair = ([f64; 8], [f64; 8]);

const CENTRE: Pair = (
    [
        3.387_132_872_796_366_5,
        1.331_416_678_917_843_8e2,
        1.971_590_950_306_551_3e3,
        1.373_169_376_550_946e4,
        4.592_195_393_154_987e4,
        6.726_577_092_700_87e4,
        3.343_057_558_358_813e4,
        2.509_080_928_730_122_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091e1,
        6.871_870_074_920_579e2,
        5.394_196_021_424_751e3,
        2.121_379_430_158_659_7e4,
        3.930_789_580_009_271e4,
        2.872_908_573_572_194_3e4,
        5.226_495_278_852_545e3,
    ],
);

const MIDDLE: Pair = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
);

const TAIL: Pair = (
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_048_7e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        5.998_322_065_558_88e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_7e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
);

/// The probability that Student's t with `df` degrees of freedom (any positive number) is below
/// `t`.
pub fn student_cdf(t: f64, df: f64) -> f64 {
    // Uses the more accurate of two forms, because either argument may be too close to 1.
    let square = t * t;
    let outside = if square < df {
        1.0 - incomplete_beta(0.5, df / 2.0, square / (df + square))
    } else {
        incomplete_beta(df / 2.0, 0.5, df / (df + square))
    };
    if t < 0.0 { outside / 2.0 } else { 1.0 - outside / 2.0 }
}

/// The quantile of Student's t with `df` degrees of freedom (any positive number).
///
/// `student_quantile(0.975, df)` is the factor of a two-sided 95 % interval.
pub fn student_quantile(p: f64, df: f64) -> f64 {
    if p == 0.5 {
        return 0.0;
    }
    if p < 0.5 {
        return -student_quantile(1.0 - p, df);
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    // Finds a bracket by doubling, bisects it, and finishes with Newton's method on the density.
    let mut high = normal_quantile(p).max(1.0);
    while student_cdf(high, df) < p && high < 1e150 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if student_cdf(middle, df) < p { low = middle } else { high = middle }
    }
    let t = 0.5 * (low + high);
    let log_density = ln_gamma((df + 1.0) / 2.0)
        - ln_gamma(df / 2.0)
        - 0.5 * (df * PI).ln()
        - (df + 1.0) / 2.0 * (t * t / df).ln_1p();
    t - (student_cdf(t, df) - p) / log_density.exp()
}

/// The regularised incomplete beta function by its continued fraction (Lentz's method).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast only on this side.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp() / a;
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

/// Natural logarithm of the gamma function for x > 0: Stirling's series after recurrence.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 15.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square) / square) / square)
        / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64, relative: f64) {
        assert!((got - want).abs() <= relative * want.abs().max(1e-12), "{got}, tabulated {want}");
    }

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (p, want) in [
            (0.975, 1.959_963_984_540_054),
            (0.95, 1.644_853_626_951_472_7),
            (0.995, 2.575_829_303_548_900_4),
            (0.75, 0.674_489_750_196_081_7),
            (1e-9, -5.997_807_015_007_687),
            (1e-15, -7.941_345_326_170_997),
        ] {
            near(normal_quantile(p), want, 1e-12);
        }
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    /// Fisher and Yates's table, two-sided 95 % and 99 %, to the printed digits.
    #[test]
    fn student_quantiles_are_those_of_the_tables() {
        for (df, at_95, at_99) in [
            (1.0, 12.706, 63.657),
            (2.0, 4.303, 9.925),
            (3.0, 3.182, 5.841),
            (4.0, 2.776, 4.604),
            (5.0, 2.571, 4.032),
            (9.0, 2.262, 3.250),
            (10.0, 2.228, 3.169),
            (29.0, 2.045, 2.756),
            (30.0, 2.042, 2.750),
            (120.0, 1.980, 2.617),
        ] {
            assert!((student_quantile(0.975, df) - at_95).abs() <= 0.0005, "df {df}");
            assert!((student_quantile(0.995, df) - at_99).abs() <= 0.0005, "df {df}");
        }
        near(student_quantile(0.975, 1e7), normal_quantile(0.975), 1e-6);
    }

    #[test]
    fn student_has_its_closed_forms() {
        for t in [-40.0, -3.0, -0.2, 1e-6, 0.7, 2.0, 9.0, 500.0_f64] {
            near(student_cdf(t, 1.0), 0.5 + t.atan() / PI, 1e-11);
            near(student_cdf(t, 2.0), 0.5 + t / (2.0 * (2.0 + t * t).sqrt()), 1e-11);
        }
        for df in [0.5, 1.0, 1.6, 2.5, 7.3, 60.0, 1e5] {
            for p in [0.001, 0.2, 0.6, 0.975, 0.9999] {
                near(student_cdf(student_quantile(p, df), df), p, 1e-9);
            }
        }
    }
}
