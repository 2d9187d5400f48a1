use crate::rng::SplitMix64;

/// Arithmetic mixes smaller domains badly, so they get a shuffled table.
const TABLE: u64 = 1024;

/// A keyed random permutation of `0..n`, in at most 2 KiB for any `n`.
///
/// ```
/// let order = workload::Permutation::new(1_000_000, 42);
/// assert!(order.at(0) < 1_000_000);
/// assert_ne!(order.at(0), order.at(1));
/// ```
#[derive(Debug, Clone)]
pub enum Permutation {
    Table(Box<[u16]>),
    Mixer(Mixer),
}

impl Permutation {
    /// Accepts `n` up to 2^63; 0 counts as 1.
    pub fn new(n: u64, key: u64) -> Self {
        if n > TABLE {
            Permutation::Mixer(Mixer::new(n, key))
        } else {
            Permutation::Table(shuffled(n.max(1), key))
        }
    }

    #[inline]
    pub fn at(&self, i: u64) -> u64 {
        match self {
            Permutation::Mixer(mixer) => mixer.at(i),
            Permutation::Table(table) => u64::from(table[i as usize]),
        }
    }
}

/// Fisher and Yates, by Durstenfeld (1964).
fn shuffled(n: u64, key: u64) -> Box<[u16]> {
    let mut random = SplitMix64::new(key);
    let mut table: Box<[u16]> = (0..n as u16).collect();
    for last in (1..table.len()).rev() {
        table.swap(last, random.below(last as u64 + 1) as usize);
    }
    table
}

/// A keyed permutation without a table.
///
/// Three rounds, each a bijection modulo a power of two. The quadratic x (k + 2x) with an odd key k
/// (a permutation polynomial: Rivest, "Permutation polynomials modulo 2^w", 2001) propagates low
/// bits upwards, and an xor with a right shift the reverse. The domain is the smallest power of two
/// not below `n`; values outside `0..n` are mapped again (cycle walking: Black and Rogaway,
/// "Ciphers with arbitrary finite domains", 2002), which takes fewer than 2 evaluations on average.
///
/// Three linear rounds would be faster, but leave lattices that a chi-square test detects.
#[derive(Debug, Clone)]
pub struct Mixer {
    n: u64,
    mask: u64,
    shift: u32,
    add: u64,
    keys: [u64; 3],
}

impl Mixer {
    /// Accepts `n` from 2 to 2^63.
    pub fn new(n: u64, key: u64) -> Self {
        let mask = n.next_power_of_two() - 1;
        let mut random = SplitMix64::new(key);
        let add = random.next_u64();
        let keys = [random.next_u64() | 1, random.next_u64() | 1, random.next_u64() | 1];
        Mixer { n, mask, shift: mask.count_ones().div_ceil(2), add, keys }
    }

    #[inline]
    pub fn at(&self, i: u64) -> u64 {
        let x = self.mix(i);
        if x < self.n { x } else { self.walk(x) }
    }

    /// Computes `base` plus `step` times the numbers at `count` positions from `first`; other
    /// elements are undefined. Positions end at `n`.
    pub(crate) fn places<const N: usize>(
        &self,
        positions: (u64, usize),
        scale: (u64, u32),
        places: &mut [u64; N],
    ) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { self.places_avx2(positions, scale, places) };
        }
        self.places_of(positions, scale, places);
    }

    /// For eight 32-bit numbers: 5 instructions a number instead of 23, because SSE2 has no product
    /// of 32-bit vectors.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn places_avx2<const N: usize>(
        &self,
        positions: (u64, usize),
        scale: (u64, u32),
        places: &mut [u64; N],
    ) {
        self.places_of(positions, scale, places);
    }

    #[inline(always)]
    fn places_of<const N: usize>(
        &self,
        (first, count): (u64, usize),
        (base, step): (u64, u32),
        places: &mut [u64; N],
    ) {
        let mut numbers = [0; N];
        let narrow = self.mask <= u64::from(u32::MAX);
        if narrow {
            let each = self.mix_narrow::<N>(first);
            if self.n > self.mask {
                // A product of two 32-bit numbers is one vector instruction.
                for (place, x) in places.iter_mut().zip(each) {
                    *place = base.wrapping_add(u64::from(x) * u64::from(step));
                }
                return;
            }
            numbers = each.map(u64::from);
        } else {
            for (at, number) in numbers.iter_mut().enumerate() {
                *number = self.mix(first.wrapping_add(at as u64));
            }
        }
        for number in numbers.iter_mut().take(count) {
            if *number >= self.n {
                *number = self.walk(*number);
            }
        }
        for (place, number) in places.iter_mut().zip(numbers) {
            *place = base.wrapping_add(number.wrapping_mul(u64::from(step)));
        }
    }

    /// In 32 bits, which compilers vectorize.
    #[inline(always)]
    fn mix_narrow<const N: usize>(&self, first: u64) -> [u32; N] {
        let start = first.wrapping_add(self.add) as u32;
        let (mask, shift) = (self.mask as u32, self.shift);
        let mut each: [u32; N] = std::array::from_fn(|at| start.wrapping_add(at as u32));
        for key in self.keys {
            let key = key as u32;
            for x in &mut each {
                *x = x.wrapping_mul(key.wrapping_add(*x << 1)) & mask;
                *x ^= *x >> shift;
            }
        }
        each
    }

    /// Separate, so that the first step need not save registers.
    #[inline(never)]
    fn walk(&self, mut x: u64) -> u64 {
        while x >= self.n {
            x = self.mix(x);
        }
        x
    }

    #[inline]
    fn mix(&self, x: u64) -> u64 {
        let mut x = x.wrapping_add(self.add);
        for key in self.keys {
            x = x.wrapping_mul(key.wrapping_add(x << 1)) & self.mask;
            x ^= x >> self.shift;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chi_square_is_plausible;
    use proptest::prelude::*;

    fn assert_permutes(n: u64, key: u64) {
        let order = Permutation::new(n, key);
        let mut seen = vec![false; n as usize];
        for i in 0..n {
            let x = order.at(i) as usize;
            assert!(!seen[x], "{x} twice among {n}");
            seen[x] = true;
        }
    }

    #[test]
    fn every_number_once_for_small_n_primes_and_powers() {
        for n in (1..=300).chain([509, 512, 513, 997, 1021, 4096, 65_535, 65_536, 65_537, 104_729])
        {
            for key in 0..3 {
                assert_permutes(n, key);
            }
        }
    }

    #[test]
    fn a_batch_holds_what_single_positions_do() {
        for n in
            [1025u64, 1 << 16, 100_003, 1 << 31, (1 << 32) - 5, 1 << 32, (1 << 32) + 1, 1 << 45]
        {
            for key in 0..20 {
                let mixer = Mixer::new(n, key);
                for first in [0, 16, n / 2, n - 16, n - 3] {
                    let count = (n - first).min(16) as usize;
                    let mut places = [0; 16];
                    mixer.places((first, count), (100, 7), &mut places);
                    let single = (first..).take(count).map(|at| 100 + 7 * mixer.at(at));
                    assert_eq!(places[..count].to_vec(), single.collect::<Vec<_>>(), "{n} {first}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_number_once(n in 1u64..20_000, key: u64) {
            assert_permutes(n, key);
        }

        #[test]
        fn stays_inside_for_huge_domains(n in 1u64..1 << 60, key: u64, i: u64) {
            prop_assert!(Permutation::new(n, key).at(i % n) < n);
        }
    }

    #[test]
    fn any_number_may_be_at_any_position() {
        for n in [2u64, 3, 7, 16, 37, 100] {
            for place in [0, n / 2, n - 1] {
                let mut counts = vec![0u64; n as usize];
                for key in 0..n * 100 {
                    counts[Permutation::new(n, crate::rng::mix(key + 1)).at(place) as usize] += 1;
                }
                chi_square_is_plausible(&counts, &vec![100.0; n as usize]);
            }
        }
    }

    #[test]
    fn neighbours_in_the_order_are_independent() {
        // Pairs of numbers 1, 2 and 16 positions apart are uniform on a 16 x 16 grid: no lattice,
        // no drift, no weak key. The sum over many keys reveals effects too small for one key.
        for n in [500u64, 1025, 1 << 11, 1 << 14, 1 << 16, 100_003, (1 << 17) + 1, 1 << 20, 1 << 30]
        {
            for gap in [1, 2, 16] {
                let pairs = 20_000u64.min(n - gap);
                let mut sum = vec![0u64; 256];
                for key in 0..20 {
                    let order = Permutation::new(n, crate::rng::mix(key + 1));
                    let mut counts = vec![0u64; 256];
                    for i in 0..pairs {
                        let (a, b) = (order.at(i) * 16 / n, order.at(i + gap) * 16 / n);
                        counts[(a * 16 + b) as usize] += 1;
                    }
                    chi_square_is_plausible(&counts, &vec![pairs as f64 / 256.0; 256]);
                    sum.iter_mut().zip(&counts).for_each(|(sum, count)| *sum += count);
                }
                chi_square_is_plausible(&sum, &vec![20.0 * pairs as f64 / 256.0; 256]);
            }
        }
    }

    #[test]
    fn distances_are_those_of_a_uniform_order() {
        // The mean distance of two uniform numbers in 0..n is n/3, and a successor is adjacent to
        // its predecessor 2 times in n.
        let n = 1u64 << 20;
        let order = Permutation::new(n, 5);
        let distances: Vec<u64> = (1..n).map(|i| order.at(i).abs_diff(order.at(i - 1))).collect();
        let mean = distances.iter().sum::<u64>() as f64 / distances.len() as f64;
        assert!((mean / (n as f64 / 3.0) - 1.0).abs() < 0.005, "mean distance {mean}");
        let near = distances.iter().filter(|&&d| d <= 8).count();
        assert!(near < 60, "{near} of {n} steps stay within 8 blocks, 16 are expected");
    }
}
