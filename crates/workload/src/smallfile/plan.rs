use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// PostMark's numbers are C integers.
pub const MAX: u32 = i32::MAX as u32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// The directory, which must exist.
    #[serde(serialize_with = "machine::text::serialize_path")]
    #[schemars(with = "PathBuf")]
    pub path: PathBuf,
    /// The weight of its files, relative to the sum of all weights.
    pub weight: u32,
}

/// A small-file workload: files are created; transactions read, append, create and delete; the
/// remaining files are deleted.
///
/// The model is PostMark (Katcher, "PostMark: A New File System Benchmark", Network Appliance
/// TR3022, 1997).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SmallFilePlan {
    /// The minimum size of a new file.
    pub low_bytes: u32,
    /// The maximum, exclusive, of a new file's size (unless equal to the minimum) and of appends.
    pub high_bytes: u32,
    /// The number of files at the start; the pool has room for twice as many.
    pub number: u32,
    /// The number of transactions: each a read or an append, then a creation or a deletion.
    pub transactions: u32,
    pub seed: u32,
    /// Directories; empty for the current one.
    pub locations: Vec<Location>,
    /// Subdirectories of each location; only used if there are 2 or more.
    pub subdirectories: u32,
    /// Bytes per read call.
    pub read_block_bytes: u32,
    /// Bytes per write call.
    pub write_block_bytes: u32,
    /// Reads per ten reads and appends; `None`: neither is done.
    pub bias_read: Option<u8>,
    /// Creations per ten creations and deletions; `None`: neither is done.
    pub bias_create: Option<u8>,
}

impl Default for SmallFilePlan {
    fn default() -> Self {
        SmallFilePlan {
            low_bytes: 500,
            high_bytes: 10_000,
            number: 500,
            transactions: 500,
            seed: 42,
            locations: Vec::new(),
            subdirectories: 0,
            read_block_bytes: 512,
            write_block_bytes: 512,
            bias_read: Some(5),
            bias_create: Some(5),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("{name} is {value}: it must be from {min} to {max}")]
    Range { name: &'static str, value: u64, min: u64, max: u64 },
    #[error("no memory for {bytes} bytes of file contents: lower the largest file size")]
    Memory { bytes: u64 },
}

impl SmallFilePlan {
    pub fn check(&self) -> Result<(), PlanError> {
        let weights = self.locations.iter().map(|l| u64::from(l.weight)).sum::<u64>();
        let min_weight = self.locations.iter().map(|l| u64::from(l.weight)).min().unwrap_or(1);
        let places = self.locations.len().max(1) as u64 * u64::from(self.subdirectories.max(1));
        let max = u64::from(MAX);
        for (name, value, min, max) in [
            ("the smallest file size", u64::from(self.low_bytes), 1, max),
            ("the largest file size", u64::from(self.high_bytes), u64::from(self.low_bytes), max),
            ("the number of files", u64::from(self.number), 1, max / 2),
            ("the number of transactions", u64::from(self.transactions), 1, max),
            ("the seed", u64::from(self.seed), 1, u64::from(u32::MAX)),
            ("the number of subdirectories over all locations", places, 1, max),
            ("the read block size", u64::from(self.read_block_bytes), 1, max),
            ("the write block size", u64::from(self.write_block_bytes), 1, max),
            ("the read bias", u64::from(self.bias_read.unwrap_or(0)), 0, 10),
            ("the create bias", u64::from(self.bias_create.unwrap_or(0)), 0, 10),
            ("a location's weight", min_weight, 1, max),
            ("the sum of the locations' weights", weights, 0, max),
        ] {
            if value < min || value > max {
                return Err(PlanError::Range { name, value, min, max });
            }
        }
        Ok(())
    }

    /// Per location; a single one is not made.
    pub fn subdirectories_used(&self) -> u32 {
        if self.subdirectories > 1 { self.subdirectories } else { 0 }
    }
}
