//! What the rest of the statistics share about a series of values.

/// The mean; NaN of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    // About the first value, so that equal values have exactly themselves as mean.
    let first = values.first().copied().unwrap_or(f64::NAN);
    first + values.iter().map(|v| v - first).sum::<f64>() / values.len() as f64
}

/// The value in the middle, or the mean of the two; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// The series less its least-squares straight line.
pub(super) fn detrended(series: &[f64]) -> Vec<f64> {
    let line = Line::through(series);
    series.iter().enumerate().map(|(t, v)| v - line.at(t)).collect()
}

/// A straight line through a series, by least squares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    mean: f64,
    middle: f64,
    /// Change a slice.
    pub slope: f64,
}

impl Line {
    pub(super) fn through(series: &[f64]) -> Line {
        let n = series.len() as f64;
        let (mean, middle) = (mean(series), (n - 1.0) / 2.0);
        let squares = n * (n * n - 1.0) / 12.0;
        let product: f64 = series.iter().enumerate().map(|(t, v)| (t as f64 - middle) * (v - mean)).sum();
        Line { mean, middle, slope: if squares > 0.0 { product / squares } else { 0.0 } }
    }

    pub(super) fn at(&self, t: usize) -> f64 {
        self.mean + self.slope * (t as f64 - self.middle)
    }
}

/// The correlation of neighbours in a series whose mean is zero; 0 where nothing varies.
pub(super) fn autocorrelation_at_1(centred: &[f64]) -> f64 {
    let squares: f64 = centred.iter().map(|v| v * v).sum();
    let products: f64 = centred.windows(2).map(|w| w[0] * w[1]).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}
