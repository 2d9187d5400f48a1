//! Blocks that describe themselves.

/// Bytes of a self-describing unit: the sector, the most that a device writes or does not write as a whole.
pub const UNIT_BYTES: u32 = 512;
