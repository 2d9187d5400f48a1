use machine::files::{AreaSpec, FileEngine, FileSync};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The maximum number of files: with the numbers for renaming they must fit into 32 bits.
const MAX_FILES: u32 = 1 << 30;
const MAX_DIRECTORIES: u32 = 1 << 20;
const MAX_THREADS: u32 = 1024;
const MAX_ROUNDS: u32 = 1000;
/// The maximum size of a file; metadata benchmarks need little data.
const MAX_BYTES: u32 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MetadataPlan {
    /// The parent of the directories.
    #[serde(serialize_with = "machine::text::serialize_path")]
    #[schemars(with = "PathBuf")]
    pub location: PathBuf,
    /// The number of files in all.
    pub files: u32,
    /// The number of directories; every thread works in all of them.
    pub directories: u32,
    /// The number of threads, each with its share of the files.
    pub threads: u32,
    /// Bytes written into each new file.
    pub file_bytes: u32,
    pub rounds: u32,
    /// The point at which a change counts as done.
    pub sync: FileSync,
    pub engine: FileEngine,
    /// Seed of the order in which files are visited.
    pub seed: u64,
}

impl Default for MetadataPlan {
    /// Returns 10,000 empty files in 10 directories of the current one, one thread, three rounds,
    /// no sync.
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}: it must be from {min} to {max}")]
pub struct PlanError {
    /// The name of the parameter.
    pub name: &'static str,
    pub value: u32,
    pub min: u32,
    pub max: u32,
}

impl MetadataPlan {
    /// # Errors
    /// The first value outside its range.
    pub fn check(&self) -> Result<(), PlanError> {
        for (name, value, min, max) in [
            ("the number of files", self.files, 1, MAX_FILES),
            ("the number of directories", self.directories, 1, MAX_DIRECTORIES.min(self.files)),
            ("the number of threads", self.threads, 1, MAX_THREADS.min(self.files)),
            ("the size of a file in bytes", self.file_bytes, 0, MAX_BYTES),
            ("the number of rounds", self.rounds, 1, MAX_ROUNDS),
        ] {
            if value < min || value > max {
                return Err(PlanError { name, value, min, max });
            }
        }
        Ok(())
    }

    /// Returns the options without the rounds (they affect only precision) and the location (the
    /// target).
    pub fn settings(&self) -> String {
        let mut words = format!(
            "--files {} --directories {} --threads {}",
            self.files, self.directories, self.threads
        );
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

/// An operation that a phase applies to all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Create,
    /// Read a file's attributes.
    Stat,
    /// Open and close a file.
    Open,
    /// Rename a file within the directory.
    Rename,
    List,
    Delete,
}

impl Operation {
    /// All operations, in the order of a round.
    pub const ALL: [Operation; 6] = [
        Operation::Create,
        Operation::Stat,
        Operation::Open,
        Operation::Rename,
        Operation::List,
        Operation::Delete,
    ];

    /// Returns the name in tables and in JSON.
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
