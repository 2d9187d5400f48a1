//! Random numbers as a function of seed and index (SplitMix64: Steele, Lea, Flood, "Fast splittable
//! pseudorandom number generators", OOPSLA 2014).

/// Weyl step: the odd number nearest to 2^64 / golden ratio.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Applies SplitMix64's bijection.
#[inline]
pub const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Returns number `i` of the stream `seed`; a bijection in `i`.
#[inline]
pub const fn hash(seed: u64, i: u64) -> u64 {
    mix(seed.wrapping_add(i.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// Returns a seed for one of several independent uses of `seed`.
#[inline]
pub const fn derive(seed: u64, purpose: u64, stream: u64) -> u64 {
    hash(hash(mix(seed), purpose), stream)
}

/// Maps to `0..n` by a product's high half: no division, bias at most n / 2^64.
#[inline]
pub const fn below(random: u64, n: u64) -> u64 {
    ((random as u128 * n as u128) >> 64) as u64
}

/// Maps to the open interval (0, 1), on a grid of 2^-53.
#[inline]
pub fn unit(random: u64) -> f64 {
    ((random >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// SplitMix64 as a generator.
///
/// ```
/// use machine::rng::{SplitMix64, hash};
///
/// let mut random = SplitMix64::new(1);
/// assert_eq!((random.next_u64(), random.next_u64()), (hash(1, 0), hash(1, 1)));
/// ```
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub const fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        below(self.next_u64(), n)
    }
}
