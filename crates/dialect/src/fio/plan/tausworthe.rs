//! fio's random numbers, for draws that decide how much a job transfers.
//!
//! L'Ecuyer, "Maximally equidistributed combined Tausworthe generators", Mathematics of Computation
//! 65 (1996), with fio's seeds.

#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    FileSize = 7,
}

#[derive(Debug, Clone)]
pub(super) struct Tausworthe([u32; 3]);

/// fio's seed without `randseed`.
pub(super) const DEFAULT_SEED: u64 = 0x89;
const SEED_FACTOR: u64 = 0x9e37_0001;
const FIRST_STEPS: u32 = 6;

impl Tausworthe {
    /// `number` counts the clones of all jobs.
    pub(super) fn new(seed: u64, number: u32, purpose: Purpose) -> Tausworthe {
        let place = purpose as u32;
        let factor = SEED_FACTOR.wrapping_pow(4 + place);
        let seed =
            seed.wrapping_mul(factor).wrapping_mul(number.into()).wrapping_add(place.into()) as u32;
        let next = |from: u32, least: u32| {
            let drawn = from.wrapping_mul(69069) ^ seed;
            if drawn < least { drawn + least } else { drawn }
        };
        let first = next(53, 1);
        let second = next(first, 7);
        let mut generator = Tausworthe([first, second, next(second, 15)]);
        for _ in 0..FIRST_STEPS {
            generator.step();
        }
        generator
    }

    fn step(&mut self) -> u32 {
        let [first, second, third] = self.0;
        self.0 = [
            ((first & !1) << 12) ^ (((first << 13) ^ first) >> 19),
            ((second & !7) << 4) ^ (((second << 2) ^ second) >> 25),
            ((third & !15) << 17) ^ (((third << 3) ^ third) >> 11),
        ];
        self.0[0] ^ self.0[1] ^ self.0[2]
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        (limit as f64 * (f64::from(self.step()) / (f64::from(u32::MAX) + 1.0))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_fio() {
        // fio 3.33 with filesize=16k-128k nrfiles=10.
        let mut sizes = Tausworthe::new(DEFAULT_SEED, 1, Purpose::FileSize);
        let drawn: Vec<u64> =
            (0..10).map(|_| (16 * 1024 + sizes.below(112 * 1024)) / 4096).collect();
        assert_eq!(drawn, [8, 12, 12, 29, 25, 18, 20, 5, 12, 21]);
    }
}
