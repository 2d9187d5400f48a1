//! Random numbers as a function of seed and index. SplitMix64 (Steele, Lea, Flood, "Fast splittable
//! pseudorandom number generators", OOPSLA 2014).

/// The odd number nearest to 2^64 divided by the golden ratio: the step of the Weyl sequence.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's mixer, a bijection.
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

/// Derives a seed for one of several independent uses of `seed`.
#[inline]
pub const fn derive(seed: u64, purpose: u64, stream: u64) -> u64 {
    hash(hash(mix(seed), purpose), stream)
}

/// Maps a random number to `0..n` by the high half of a product: no division, and a bias of at most
/// n / 2^64.
#[inline]
pub const fn below(random: u64, n: u64) -> u64 {
    ((random as u128 * n as u128) >> 64) as u64
}

/// Maps a random number to the open interval (0, 1), on a grid of 2^-53.
#[inline]
pub fn unit(random: u64) -> f64 {
    ((random >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// SplitMix64 as a generator.
///
/// ```
/// use workload::rng::{SplitMix64, hash};
///
/// let mut random = SplitMix64::new(1);
/// assert_eq!((random.next_u64(), random.next_u64()), (hash(1, 0), hash(1, 1)));
/// ```
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Creates a generator whose number `i` is `hash(seed, i)`.
    pub const fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Returns the next random number in `0..n`.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        below(self.next_u64(), n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chi_square_is_plausible;

    #[test]
    fn published_values_of_splitmix64() {
        // The first numbers of the reference generator for the seed 1234567.
        let mut generator = SplitMix64::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| generator.next_u64()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first, published);
        let by_index: Vec<u64> = (0..5).map(|i| hash(1_234_567, i)).collect();
        assert_eq!(by_index, published, "the hash is the generator by index");
    }

    #[test]
    fn below_is_uniform_and_below() {
        let mut generator = SplitMix64::new(7);
        for n in [1u64, 2, 3, 10, 97, 1000] {
            let mut counts = vec![0u64; n as usize];
            for _ in 0..n * 200 {
                counts[generator.below(n) as usize] += 1;
            }
            chi_square_is_plausible(&counts, &vec![200.0; n as usize]);
        }
        assert_eq!(below(u64::MAX, 10), 9);
        assert_eq!(below(0, 10), 0);
    }

    #[test]
    fn unit_stays_inside_the_open_interval() {
        assert!(unit(0) > 0.0);
        assert!(unit(u64::MAX) < 1.0);
        assert!((unit(1 << 63) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn purposes_and_streams_are_independent() {
        let mut seeds: Vec<u64> =
            (0..10).flat_map(|p| (0..100).map(move |s| derive(1, p, s))).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 1000);
    }
}
