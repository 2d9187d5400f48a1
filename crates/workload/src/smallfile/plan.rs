//! A small-file workload as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Largest count and size: the language's numbers are C integers.
pub const MOST: u32 = i32::MAX as u32;

/// A directory in which files are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// The directory; it must exist.
    #[serde(serialize_with = "machine::text::serialize_path")]
    #[schemars(with = "PathBuf")]
    pub path: PathBuf,
    /// Its share of the files, against the sum of all weights.
    pub weight: u32,
}

/// A small-file workload: a pool of files is made, transactions read, append, create and delete, the rest is deleted.
///
/// The model is PostMark (Katcher, "PostMark: A New File System Benchmark", Network Appliance TR3022, 1997).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SmallFilePlan {
    /// Smallest size of a new file.
    pub low_bytes: u32,
    /// Bound of a new file's size (not reached unless it is the smallest size too) and of appends.
    pub high_bytes: u32,
    /// Files at the start; the pool has room for twice as many.
    pub number: u32,
    /// Transactions, each a read or an append and then a creation or a deletion.
    pub transactions: u32,
    /// Seeds everything random.
    pub seed: u32,
    /// Where the files go; none: the current directory.
    pub locations: Vec<Location>,
    /// Subdirectories of each location; used only where there are 2 or more.
    pub subdirectories: u32,
    /// Bytes of one read call.
    pub read_block_bytes: u32,
    /// Bytes of one write call.
    pub write_block_bytes: u32,
    /// Reads in ten of reads and appends; `None`: neither is done.
    pub bias_read: Option<u8>,
    /// Creations in ten of creations and deletions; `None`: neither is done.
    pub bias_create: Option<u8>,
}

impl Default for SmallFilePlan {
    /// PostMark's own defaults.
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

/// A plan that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A value outside its range.
    #[error("{name} is {value}: it must be from {least} to {most}")]
    Range {
        /// What the value is of.
        name: &'static str,
        /// The value.
        value: u64,
        /// Smallest good value.
        least: u64,
        /// Largest good value.
        most: u64,
    },
    /// The text that files are filled from does not fit into memory.
    #[error("no memory for {bytes} bytes of file contents: lower the largest file size")]
    Memory {
        /// Bytes asked for.
        bytes: u64,
    },
}

impl SmallFilePlan {
    /// Checks every range.
    ///
    /// # Errors
    /// The first value outside its range.
    pub fn check(&self) -> Result<(), PlanError> {
        let weights = self.locations.iter().map(|l| u64::from(l.weight)).sum::<u64>();
        let least_weight = self.locations.iter().map(|l| u64::from(l.weight)).min().unwrap_or(1);
        let places = self.locations.len().max(1) as u64 * u64::from(self.subdirectories.max(1));
        let most = u64::from(MOST);
        for (name, value, least, most) in [
            ("the smallest file size", u64::from(self.low_bytes), 1, most),
            ("the largest file size", u64::from(self.high_bytes), u64::from(self.low_bytes), most),
            ("the number of files", u64::from(self.number), 1, most / 2),
            ("the number of transactions", u64::from(self.transactions), 1, most),
            ("the seed", u64::from(self.seed), 1, u64::from(u32::MAX)),
            ("the number of subdirectories over all locations", places, 1, most),
            ("the read block size", u64::from(self.read_block_bytes), 1, most),
            ("the write block size", u64::from(self.write_block_bytes), 1, most),
            ("the read bias", u64::from(self.bias_read.unwrap_or(0)), 0, 10),
            ("the create bias", u64::from(self.bias_create.unwrap_or(0)), 0, 10),
            ("a location's weight", least_weight, 1, most),
            ("the sum of the locations' weights", weights, 0, most),
        ] {
            if value < least || value > most {
                return Err(PlanError::Range { name, value, least, most });
            }
        }
        Ok(())
    }

    /// Subdirectories that each location gets: one alone is not made.
    pub fn subdirectories_used(&self) -> u32 {
        if self.subdirectories > 1 { self.subdirectories } else { 0 }
    }
}
