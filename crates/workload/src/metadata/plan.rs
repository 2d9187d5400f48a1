//! What is asked.

use machine::files::{AreaSpec, FileEngine, FileSync};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Most files: their numbers, and the numbers they are renamed to, must fit.
const MOST_FILES: u32 = 1 << 30;
/// Most directories of a location.
const MOST_DIRECTORIES: u32 = 1 << 20;
/// Most threads.
const MOST_THREADS: u32 = 1024;
/// Most rounds.
const MOST_ROUNDS: u32 = 1000;
/// Most bytes of a file: metadata is not about data.
const MOST_BYTES: u32 = 1 << 20;

/// A metadata workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetadataPlan {
    /// Where the directories are made.
    #[serde(serialize_with = "machine::text::serialize_path")]
    #[schemars(with = "PathBuf")]
    pub location: PathBuf,
    /// Files, over all directories.
    pub files: u32,
    /// Directories that the files are spread over; every thread works in all of them.
    pub directories: u32,
    /// Threads; each has its share of the files.
    pub threads: u32,
    /// Bytes written into each new file.
    pub file_bytes: u32,
    /// Rounds of all phases.
    pub rounds: u32,
    /// When a change counts as done.
    pub sync: FileSync,
    /// How files are made and deleted.
    pub engine: FileEngine,
    /// Seeds the order in which files are visited.
    pub seed: u64,
}

impl Default for MetadataPlan {
    /// 10,000 empty files in 10 directories of the current one, one thread, three rounds, nothing synchronised.
    fn default() -> Self {
        MetadataPlan {
            location: PathBuf::from("."),
            files: 10_000,
            directories: 10,
            threads: 1,
            file_bytes: 0,
            rounds: 3,
            sync: FileSync::None,
            engine: FileEngine::Syscalls,
            seed: 1,
        }
    }
}

/// A plan that cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}: it must be from {least} to {most}")]
pub struct PlanError {
    /// What the value is of.
    pub name: &'static str,
    /// The value.
    pub value: u32,
    /// Smallest good value.
    pub least: u32,
    /// Largest good value.
    pub most: u32,
}

impl MetadataPlan {
    /// Checks every range.
    ///
    /// # Errors
    /// The first value outside its range.
    pub fn check(&self) -> Result<(), PlanError> {
        for (name, value, least, most) in [
            ("the number of files", self.files, 1, MOST_FILES),
            ("the number of directories", self.directories, 1, MOST_DIRECTORIES.min(self.files)),
            ("the number of threads", self.threads, 1, MOST_THREADS.min(self.files)),
            ("the size of a file in bytes", self.file_bytes, 0, MOST_BYTES),
            ("the number of rounds", self.rounds, 1, MOST_ROUNDS),
        ] {
            if value < least || value > most {
                return Err(PlanError { name, value, least, most });
            }
        }
        Ok(())
    }

    /// As options of the command. Rounds make an interval tighter and change nothing; where the files go, the target tells.
    pub fn settings(&self) -> String {
        let mut words = format!("--files {} --directories {} --threads {}", self.files, self.directories, self.threads);
        let usual = MetadataPlan::default();
        let mut add = |differs: bool, option: String| {
            if differs {
                words.push_str(&option);
            }
        };
        add(self.file_bytes > 0, format!(" --file-bytes {}", self.file_bytes));
        add(self.sync != FileSync::None, format!(" --sync {}", self.sync.name()));
        add(self.engine != usual.engine, format!(" --engine {}", self.engine.name()));
        add(self.seed != usual.seed, format!(" --seed {}", self.seed));
        words
    }

    /// Where and how the files are worked on.
    pub(super) fn area(&self) -> AreaSpec {
        AreaSpec {
            locations: vec![self.location.clone()],
            subdirectories: self.directories,
            engine: self.engine,
            sync: self.sync,
            read_block_bytes: self.file_bytes.max(1),
            write_block_bytes: self.file_bytes.max(1),
        }
    }
}

/// An operation, and the phase that does it to all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Make a file.
    Create,
    /// Read a file's attributes.
    Stat,
    /// Open a file and close it.
    Open,
    /// Give a file another name in its directory.
    Rename,
    /// List a directory.
    List,
    /// Delete a file.
    Delete,
}

impl Operation {
    /// In the order of a round.
    pub const ALL: [Operation; 6] =
        [Operation::Create, Operation::Stat, Operation::Open, Operation::Rename, Operation::List, Operation::Delete];

    /// The name in the table and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Stat => "stat",
            Operation::Open => "open",
            Operation::Rename => "rename",
            Operation::List => "list",
            Operation::Delete => "delete",
        }
    }
}
