pub(crate) fn mean(values: &[f64]) -> f64 {
    // Relative to the first value, so that the mean of equal values is exact.
    let first = values.first().copied().unwrap_or(f64::NAN);
    first + values.iter().map(|v| v - first).sum::<f64>() / values.len() as f64
}

/// Returns NaN if empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

pub(super) fn detrended(series: &[f64]) -> Vec<f64> {
    let line = Line::through(series);
    series.iter().enumerate().map(|(t, v)| v - line.at(t)).collect()
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    mean: f64,
    middle: f64,
    /// Per slice.
    pub slope: f64,
}

impl Line {
    pub(super) fn through(series: &[f64]) -> Line {
        let n = series.len() as f64;
        let (mean, middle) = (mean(series), (n - 1.0) / 2.0);
        let squares = n * (n * n - 1.0) / 12.0;
        let product: f64 =
            series.iter().enumerate().map(|(t, v)| (t as f64 - middle) * (v - mean)).sum();
        Line { mean, middle, slope: if squares > 0.0 { product / squares } else { 0.0 } }
    }

    pub(super) fn at(&self, t: usize) -> f64 {
        self.mean + self.slope * (t as f64 - self.middle)
    }
}

/// The mean must be zero; 0 for a constant series.
pub(super) fn autocorrelation_at_1(centred: &[f64]) -> f64 {
    let squares: f64 = centred.iter().map(|v| v * v).sum();
    let products: f64 = centred.windows(2).map(|w| w[0] * w[1]).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}
