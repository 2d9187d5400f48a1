//! For drawing each block once.

/// A hierarchical bitmap, searched in one step per level.
///
/// ```
/// let mut map = workload::FreeMap::new(100);
/// assert_eq!(map.take(98, 5), 2);
/// assert_eq!(map.next_free(98), Some(0));
/// ```
#[derive(Debug, Clone)]
pub struct FreeMap {
    /// Level 0 marks taken blocks; the others mark full words of the level below.
    levels: Vec<Vec<u64>>,
    blocks: u64,
    free: u64,
}

const WORD: u64 = 64;

impl FreeMap {
    pub fn new(blocks: u64) -> FreeMap {
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let mut words = vec![0; bits.div_ceil(WORD) as usize];
            // Bits past the last block are never free.
            if let Some(last) = words.last_mut().filter(|_| !bits.is_multiple_of(WORD)) {
                *last = u64::MAX << (bits % WORD);
            }
            bits = words.len() as u64;
            levels.push(words);
            if bits <= 1 {
                return FreeMap { levels, blocks, free: blocks };
            }
        }
    }

    pub fn is_full(&self) -> bool {
        self.free == 0
    }

    /// At or after `from`, wrapping around.
    pub fn next_free(&self, from: u64) -> Option<u64> {
        self.at_or_behind(from).or_else(|| self.at_or_behind(0))
    }

    fn at_or_behind(&self, from: u64) -> Option<u64> {
        let mut at = from;
        for (level, words) in self.levels.iter().enumerate() {
            let word = words.get((at / WORD) as usize)?;
            let free = !word & (u64::MAX << (at % WORD));
            if free != 0 {
                let bit = at / WORD * WORD + u64::from(free.trailing_zeros());
                let below = self.levels[..level].iter().rev();
                return Some(below.fold(bit, |bit, words| {
                    bit * WORD + u64::from(words[bit as usize].trailing_ones())
                }));
            }
            at = at / WORD + 1;
        }
        None
    }

    /// Takes up to `max` consecutive blocks; returns their number.
    pub fn take(&mut self, first: u64, max: u64) -> u64 {
        let end = first.saturating_add(max).min(self.blocks);
        let mut block = first;
        while block < end && self.levels[0][(block / WORD) as usize] >> (block % WORD) & 1 == 0 {
            self.set(block);
            block += 1;
        }
        self.free -= block - first;
        block - first
    }

    fn set(&mut self, block: u64) {
        let mut bit = block;
        for words in &mut self.levels {
            let word = &mut words[(bit / WORD) as usize];
            *word |= 1 << (bit % WORD);
            if *word != u64::MAX {
                return;
            }
            bit /= WORD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_and_takes_what_a_list_of_blocks_would(blocks in 1u64..9000, max in 1u64..200, seed: u64) {
            let (mut map, mut list) = (FreeMap::new(blocks), vec![false; blocks as usize]);
            let mut draws = SplitMix64::new(seed);
            while !map.is_full() {
                let from = draws.below(blocks);
                let free = |range: std::ops::Range<u64>| range.clone().find(|&block| !list[block as usize]);
                let wanted = free(from..blocks).or_else(|| free(0..from));
                prop_assert_eq!(map.next_free(from), wanted);
                let first = wanted.unwrap();
                let run = (first..blocks.min(first + max)).take_while(|&block| !list[block as usize]).count() as u64;
                prop_assert_eq!(map.take(first, max), run);
                (first..first + run).for_each(|block| list[block as usize] = true);
            }
            prop_assert!(list.iter().all(|&taken| taken));
            prop_assert_eq!((map.next_free(0), map.take(0, 9)), (None, 0));
        }
    }
}
