use machine::files::{AreaSpec, FileEngine, FileSync};
use machine::units::show_size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// With the numbers for renaming, files must fit into 32 bits.
const MAX_FILES: u32 = 1 << 30;
const MAX_DIRECTORIES: u32 = 1 << 20;
const MAX_THREADS: u32 = 1024;
const MAX_ROUNDS: u32 = 1000;
/// Metadata benchmarks need little data.
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
    /// Directories below each one, if they form a tree; 0: they are next to each other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub branch: u32,
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
    /// All clients work in the same directories, each on files of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_directory: bool,
    /// Each client looks up, opens and reads the files of the client this many further on, so that
    /// its own cache does not serve it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shift: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientFiles {
    /// Another client's; `None`: this session makes its own.
    pub directory: Option<PathBuf>,
    /// Counts from 0.
    pub client: u32,
    pub clients: u32,
}

impl ClientFiles {
    pub const OWN: ClientFiles = ClientFiles { directory: None, client: 0, clients: 1 };
}

impl Default for MetadataPlan {
    fn default() -> Self {
        MetadataPlan {
            location: PathBuf::from("."),
            files: 10_000,
            directories: 10,
            branch: 0,
            threads: 1,
            file_bytes: 0,
            rounds: 3,
            sync: FileSync::None,
            engine: FileEngine::Syscalls,
            seed: 1,
            shared_directory: false,
            shift: 0,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}: it must be from {min} to {max}")]
pub struct PlanError {
    pub name: &'static str,
    pub value: u32,
    pub min: u32,
    pub max: u32,
}

impl MetadataPlan {
    pub fn check(&self) -> Result<(), PlanError> {
        for (name, value, min, max) in [
            ("the number of files", self.files, 1, MAX_FILES),
            ("the number of directories", self.directories, 1, MAX_DIRECTORIES.min(self.files)),
            (
                "the number of directories below each",
                self.branch,
                u32::from(self.branch > 0) * 2,
                MAX_DIRECTORIES,
            ),
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

    /// Omits the location and the rounds, which affect only precision.
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
        add(self.branch > 0, format!(" --branch {}", self.branch));
        add(self.file_bytes > 0, format!(" --file-bytes {}", self.file_bytes));
        add(self.sync != FileSync::None, format!(" --sync {}", self.sync.name()));
        add(self.engine != usual.engine, format!(" --engine {}", self.engine.name()));
        add(self.seed != usual.seed, format!(" --seed {}", self.seed));
        add(self.shared_directory, " --shared-directory".into());
        add(self.shift > 0, format!(" --shift {}", self.shift));
        words
    }

    pub fn files_in_words(&self) -> String {
        let size = (self.file_bytes > 0).then(|| show_size(u64::from(self.file_bytes)));
        let shared = self.shared_directory.then(|| "in a shared directory".to_owned());
        let tree =
            (self.branch > 0).then(|| format!("in a tree of {} directories", self.directories));
        size.into_iter().chain(shared).chain(tree).collect::<Vec<_>>().join(", ")
    }

    /// In order; empty files are not read.
    pub fn operations(&self) -> impl Iterator<Item = Operation> {
        let has_data = self.file_bytes > 0;
        Operation::ALL.into_iter().filter(move |&one| one != Operation::Read || has_data)
    }

    /// Whose files a client looks up, opens and reads; both count from 0.
    pub fn visited(&self, client: u32, clients: u32) -> u32 {
        ((u64::from(client) + u64::from(self.shift)) % u64::from(clients.max(1))) as u32
    }

    pub fn visits_others(&self, clients: u32) -> bool {
        self.visited(0, clients) != 0
    }

    /// Fails if the clients' files in one directory exceed 32-bit numbers.
    pub fn check_clients(&self, clients: u32) -> Result<(), PlanError> {
        let max = if self.shared_directory { MAX_FILES / clients.max(1) } else { MAX_FILES };
        if self.files > max {
            let name = "the number of files of each client";
            return Err(PlanError { name, value: self.files, min: 1, max });
        }
        Ok(())
    }

    pub(super) fn area(&self, files: &ClientFiles) -> AreaSpec {
        AreaSpec {
            locations: vec![files.directory.as_ref().unwrap_or(&self.location).clone()],
            joins: files.directory.is_some(),
            subdirectories: self.directories,
            branch: self.branch,
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
    /// Open a file, read all its data and close it.
    Read,
    /// Rename a file within the directory.
    Rename,
    List,
    Delete,
}

impl Operation {
    /// In the order of a round.
    pub const ALL: [Operation; 7] = [
        Operation::Create,
        Operation::Stat,
        Operation::Open,
        Operation::Read,
        Operation::Rename,
        Operation::List,
        Operation::Delete,
    ];

    /// Files stay unchanged.
    pub fn visits(self) -> bool {
        matches!(self, Operation::Stat | Operation::Open | Operation::Read)
    }

    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Stat => "stat",
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Rename => "rename",
            Operation::List => "list",
            Operation::Delete => "delete",
        }
    }
}
