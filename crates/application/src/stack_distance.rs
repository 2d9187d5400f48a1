//! Miss-ratio curves from one pass: distinct blocks since the last access (Mattson, Gecsei, Slutz,
//! Traiger, 1970), in a tree (Olken, 1981), sampled for long traces (Waldspurger, Park, Garthwaite,
//! Ahmad, "Efficient MRC construction with SHARDS", FAST 2015).

use serde::Serialize;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use workload::rng;

/// The same on every run.
#[derive(Default)]
struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = rng::mix(self.0 ^ value);
    }
}

type BlockMap<T> = HashMap<u64, T, BuildHasherDefault<BlockHasher>>;

pub struct StackDistances {
    /// A Fenwick tree: 1 at each block's last access.
    tree: Vec<u32>,
    last: BlockMap<u32>,
    next: u32,
    counts: Vec<f64>,
    cold: f64,
    accesses: f64,
    /// Sampled, half open, out of [`SCALE`].
    hashes: (u64, u64),
}

const SCALE: u64 = 1 << 24;

impl StackDistances {
    pub fn exact() -> Self {
        Self::of_hashes(0, SCALE)
    }

    pub fn sampled(share: f64) -> Self {
        Self::of_hashes(0, ((share.clamp(0.0, 1.0) * SCALE as f64) as u64).max(1))
    }

    /// Two disjoint halves; the difference of their curves estimates the sampling error.
    pub fn sampled_halves(share: f64) -> [Self; 2] {
        let end = ((share.clamp(0.0, 1.0) * SCALE as f64) as u64).max(2);
        [Self::of_hashes(0, end / 2), Self::of_hashes(end / 2, end)]
    }

    fn of_hashes(from: u64, to: u64) -> Self {
        StackDistances {
            tree: vec![0; 1024 + 1],
            last: BlockMap::default(),
            next: 0,
            counts: Vec::new(),
            cold: 0.0,
            accesses: 0.0,
            hashes: (from, to),
        }
    }

    fn share(&self) -> f64 {
        (self.hashes.1 - self.hashes.0) as f64 / SCALE as f64
    }

    fn add(&mut self, slot: u32, by: i32) {
        let mut index = slot as usize + 1;
        while index < self.tree.len() {
            self.tree[index] = self.tree[index].wrapping_add_signed(by);
            index += index & index.wrapping_neg();
        }
    }

    fn up_to(&self, slot: u32) -> u32 {
        let (mut index, mut sum) = (slot as usize + 1, 0);
        while index > 0 {
            sum += self.tree[index];
            index -= index & index.wrapping_neg();
        }
        sum
    }

    fn renumber(&mut self) {
        let mut slots: Vec<(u32, u64)> =
            self.last.iter().map(|(&block, &slot)| (slot, block)).collect();
        slots.sort_unstable();
        let room = (slots.len() * 2).max(1024).next_power_of_two();
        self.tree = vec![0; room + 1];
        for (slot, &(_, block)) in slots.iter().enumerate() {
            self.last.insert(block, slot as u32);
            self.add(slot as u32, 1);
        }
        self.next = slots.len() as u32;
    }

    pub fn access(&mut self, block: u64) {
        self.accesses += 1.0;
        let hash = rng::mix(block.wrapping_add(0x9e37_79b9_7f4a_7c15)) % SCALE;
        if hash < self.hashes.0 || hash >= self.hashes.1 {
            return;
        }
        if self.next as usize + 1 >= self.tree.len() {
            self.renumber();
        }
        let slot = self.next;
        self.next += 1;
        match self.last.insert(block, slot) {
            None => self.cold += 1.0,
            Some(before) => {
                // Blocks accessed later have their last access in a later slot.
                let distance = (self.last.len() as u32 - self.up_to(before)) as usize;
                if self.counts.len() <= distance {
                    self.counts.resize(distance + 1, 0.0);
                }
                self.counts[distance] += 1.0;
                self.add(before, -1);
            }
        }
        self.add(slot, 1);
    }

    /// Distinct blocks, estimated for a sample.
    pub fn blocks(&self) -> f64 {
        self.last.len() as f64 / self.share()
    }

    /// Of an LRU cache.
    pub fn miss_ratio(&self, blocks: u64) -> f64 {
        let share = self.share();
        let expected = self.accesses * share;
        if expected == 0.0 {
            return 0.0;
        }
        let reach = ((blocks as f64 * share).round() as usize).min(self.counts.len());
        let seen = self.cold + self.counts.iter().sum::<f64>();
        // The sample may hold more or fewer accesses than its rate; SHARDS assigns the difference
        // to the hottest blocks.
        let hits = self.counts[..reach].iter().sum::<f64>()
            + if reach > 0 { expected - seen } else { 0.0 };
        (1.0 - hits / expected).clamp(0.0, 1.0)
    }

    /// `sizes` are in bytes.
    pub fn curve(&self, block_bytes: u64, sizes: impl IntoIterator<Item = u64>) -> Vec<MissRatio> {
        sizes
            .into_iter()
            .map(|cache_bytes| MissRatio {
                cache_bytes,
                miss_ratio: self.miss_ratio(cache_bytes / block_bytes),
            })
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MissRatio {
    pub cache_bytes: u64,
    pub miss_ratio: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn misses(accesses: &[u64], size: usize) -> f64 {
        let mut stack: Vec<u64> = Vec::new();
        let mut misses = 0;
        for &block in accesses {
            match stack.iter().position(|&other| other == block) {
                Some(at) => {
                    stack.remove(at);
                }
                None => misses += 1,
            }
            stack.insert(0, block);
            stack.truncate(size);
        }
        f64::from(misses) / accesses.len() as f64
    }

    proptest! {
        #[test]
        fn the_curve_is_what_lru_caches_do(accesses in proptest::collection::vec(0u64..60, 1..3000), size in 1usize..70) {
            let mut distances = StackDistances::exact();
            accesses.iter().for_each(|&block| distances.access(block));
            prop_assert!((distances.miss_ratio(size as u64) - misses(&accesses, size)).abs() < 1e-9);
        }
    }

    #[test]
    fn a_sample_comes_within_one_percent() {
        let (mut exact, mut sampled) = (StackDistances::exact(), StackDistances::sampled(0.1));
        let mut state = 1u64;
        for _ in 0..1_000_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Popular blocks with a long tail: a cubed uniform variate.
            let draw = ((state >> 33) as f64 / f64::from(1u32 << 31)).powi(3);
            let block = (draw * 200_000.0) as u64;
            exact.access(block);
            sampled.access(block);
        }
        for size in [2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 150_000] {
            let (a, b) = (exact.miss_ratio(size), sampled.miss_ratio(size));
            assert!((a - b).abs() < 0.01, "{size} blocks: {a} exact, {b} sampled");
        }
    }
}
