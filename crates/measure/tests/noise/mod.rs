//! Seeded storage-like noise for the statistical tests.

use measure::stats::normal_quantile;

/// SplitMix64 (Steele, Lea and Flood 2014).
pub struct Random(pub u64);

impl Random {
    /// Returns a uniform value in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((z >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }
}

/// Slice rates around a long-run rate of 1, to which all standard deviations are relative.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    #[allow(dead_code, reason = "not every test prints it")]
    pub name: &'static str,
    /// The correlation of neighbouring slices.
    pub phi: f64,
    pub spread: f64,
    pub skewed: bool,
    pub between: f64,
    pub between_skewed: bool,
    /// Standard deviation of the slope within a run: change from start to end, relative.
    pub drift_within: f64,
    pub drift_over: f64,
}

pub const WHITE: Noise = Noise {
    name: "white",
    phi: 0.0,
    spread: 0.1,
    skewed: false,
    between: 0.0,
    between_skewed: false,
    drift_within: 0.0,
    drift_over: 0.0,
};

fn shaped(x: f64, spread: f64, skewed: bool) -> f64 {
    if !skewed {
        return spread * x;
    }
    let sigma = (1.0 + spread * spread).ln().sqrt();
    (sigma * x - sigma * sigma / 2.0).exp() - 1.0
}

impl Noise {
    pub fn runs(&self, random: &mut Random, runs: usize, slices: usize) -> Vec<Vec<f64>> {
        (0..runs)
            .map(|i| {
                let place = if runs > 1 { i as f64 / (runs - 1) as f64 - 0.5 } else { 0.0 };
                let level = 1.0
                    + self.drift_over * place
                    + shaped(random.normal(), self.between, self.between_skewed);
                let slope = self.drift_within * random.normal();
                let mut x = random.normal();
                (0..slices)
                    .map(|t| {
                        x = self.phi * x + (1.0 - self.phi * self.phi).sqrt() * random.normal();
                        level
                            + slope * (t as f64 / (slices - 1) as f64 - 0.5)
                            + shaped(x, self.spread, self.skewed)
                    })
                    .collect()
            })
            .collect()
    }
}
