//! A self-describing sector.

use super::UNIT_BYTES;
use crate::rng::{SplitMix64, derive};

pub const UNIT: usize = UNIT_BYTES as usize;
const MAGIC: u64 = u64::from_le_bytes(*b"halfpow\x01");
/// Checksum (4 bytes), generation (4), seed (8), offset (8), magic (8).
const HEADER: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    pub seed: u64,
    /// The intended byte offset.
    pub offset: u64,
    /// Writes of this block by this run, including this one.
    pub generation: u32,
}

impl Label {
    pub fn write(&self, unit: &mut [u8]) {
        debug_assert_eq!(unit.len(), UNIT);
        let mut body = SplitMix64::new(derive(self.seed, self.offset, u64::from(self.generation)));
        unit[4..8].copy_from_slice(&self.generation.to_le_bytes());
        unit[8..16].copy_from_slice(&self.seed.to_le_bytes());
        unit[16..24].copy_from_slice(&self.offset.to_le_bytes());
        unit[24..32].copy_from_slice(&MAGIC.to_le_bytes());
        for word in unit[HEADER..].chunks_exact_mut(8) {
            word.copy_from_slice(&body.next_u64().to_le_bytes());
        }
        let sum = crc32c::crc32c(&unit[4..]);
        unit[..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// Also whether the checksum matches. `None` without the magic number.
    pub fn read(unit: &[u8]) -> Option<(Label, bool)> {
        if word(unit, 24) != MAGIC {
            return None;
        }
        let label =
            Label { seed: word(unit, 8), offset: word(unit, 16), generation: half(unit, 4) };
        Some((label, crc32c::crc32c(&unit[4..UNIT]) == half(unit, 0)))
    }
}

pub fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

pub fn half(bytes: &[u8], at: usize) -> u32 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(half)
}
