//! How a target is reached: buffering, durability, allocation, cache state.

use crate::{Engine, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What stands in for the target where the driver alone is to be measured: its ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullBackend {
    /// Nothing: each request is done when it is issued. The limit of the generator.
    Null,
    /// io_uring's no-op: each request goes to the kernel and back, and no further. The limit of the generator and its mechanism.
    NoOp,
}

/// Whether the file-system cache takes part, and when a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Buffering {
    /// Past the file-system cache (O_DIRECT).
    Direct,
    /// Through the file-system cache.
    Buffered,
    /// Past the file-system cache, each write on stable storage before it counts (O_DIRECT and O_DSYNC).
    DirectDsync,
    /// Through the file-system cache, each write on stable storage before it counts (O_DSYNC).
    BufferedDsync,
}

impl Buffering {
    /// Past the file-system cache.
    pub fn is_direct(self) -> bool {
        matches!(self, Buffering::Direct | Buffering::DirectDsync)
    }

    /// Each write on stable storage before it counts.
    pub fn is_dsync(self) -> bool {
        matches!(self, Buffering::DirectDsync | Buffering::BufferedDsync)
    }

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Buffering::Direct => "direct",
            Buffering::Buffered => "buffered",
            Buffering::DirectDsync => "direct_dsync",
            Buffering::BufferedDsync => "buffered_dsync",
        }
    }
}

/// What the program tells the cache of its intentions (`posix_fadvise`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// Access will be sequential.
    Sequential,
    /// Access will be random.
    Random,
}

impl Hint {
    /// Every hint.
    pub const ALL: [Hint; 3] = [Hint::None, Hint::Sequential, Hint::Random];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Hint::None => "none",
            Hint::Sequential => "sequential",
            Hint::Random => "random",
        }
    }
}

/// The state in which a write finds the file's space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    /// Every block written before.
    #[default]
    Written,
    /// Blocks reserved (`fallocate`) but never written.
    Reserved,
    /// A new file that grows as it is written.
    Extend,
    /// A file that existed, cut to nothing first, then written.
    Truncate,
}

impl Allocation {
    /// Every state.
    pub const ALL: [Allocation; 4] =
        [Allocation::Written, Allocation::Reserved, Allocation::Extend, Allocation::Truncate];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Allocation::Written => "written",
            Allocation::Reserved => "reserved",
            Allocation::Extend => "extend",
            Allocation::Truncate => "truncate",
        }
    }
}

/// What the file-system cache holds of the target when a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Whatever was there.
    #[default]
    AsIs,
    /// Nothing: dropped for this target alone.
    Cold,
    /// All of the region that the run uses.
    Warm,
}

impl CacheState {
    /// Every state.
    pub const ALL: [CacheState; 3] = [CacheState::AsIs, CacheState::Cold, CacheState::Warm];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CacheState::AsIs => "as_is",
            CacheState::Cold => "cold",
            CacheState::Warm => "warm",
        }
    }
}

/// The memory of the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Whatever the system gives a program that asks for memory: ordinary pages, as a rule.
    Pages,
    /// Such pages, registered with the kernel where the interface allows (io_uring's fixed buffers). Small requests are cheaper then; a large
    /// one may be cut in two where it would not be otherwise.
    Registered,
    /// Huge pages for large buffers, where the system has them. A large request is then few pieces of memory.
    /// Registered, too.
    #[default]
    Huge,
}

impl Memory {
    /// Every kind.
    pub const ALL: [Memory; 3] = [Memory::Pages, Memory::Registered, Memory::Huge];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Memory::Pages => "pages",
            Memory::Registered => "registered",
            Memory::Huge => "huge",
        }
    }
}

/// How a stream waits for completions before it issues the next requests.
///
/// Each wait is a sleep and a wake, which the program and the kernel's side pay: fewer of them cost less processor time, and some latency.
/// Polling has no wakes, and keeps a processor busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reap {
    /// For this many; once one is there, for [`REAP_WAIT_NS`] at the most.
    AtLeast(u32),
    /// For one, polling before it sleeps: for [`POLL_MOST_NS`] where sleeps are shorter than that, and not at all where they are longer, or
    /// where a run has as many streams as there are processors.
    Poll,
    /// As pays, learned at the beginning of the run: for how many, or polling where that gains more.
    Auto,
}

/// The longest that a completion waits for others ([`Reap`]).
pub const REAP_WAIT_NS: Nanos = 100_000;

/// The longest that a stream polls for a completion before it sleeps ([`Reap::Poll`]).
pub const POLL_MOST_NS: Nanos = 100_000;

/// The time at the start of a run in which [`Reap::Auto`] learns, which is not to be measured.
pub const REAP_LEARNING_NS: Nanos = 350_000_000;

impl Default for Reap {
    fn default() -> Self {
        Reap::AtLeast(1)
    }
}

impl fmt::Display for Reap {
    /// As `--reap` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reap::AtLeast(completions) => write!(f, "{completions}"),
            Reap::Poll => f.pad("poll"),
            Reap::Auto => f.pad("auto"),
        }
    }
}

impl FromStr for Reap {
    type Err = String;

    /// Reads what `--reap` takes.
    fn from_str(text: &str) -> Result<Reap, String> {
        match text.parse() {
            Ok(completions) if completions > 0 => Ok(Reap::AtLeast(completions)),
            _ if text == "poll" => Ok(Reap::Poll),
            _ if text == "auto" => Ok(Reap::Auto),
            _ => Err(format!("'{text}' is no number of completions; write 1, 8, poll or auto")),
        }
    }
}

/// How a run reaches its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The mechanism.
    pub engine: Engine,
    /// Cache and durability.
    pub buffering: Buffering,
    /// Where each write is on stable storage before it counts: the file's metadata too (O_SYNC), and not only what reading back needs.
    pub metadata_sync: bool,
    /// What the cache is told.
    pub hint: Hint,
    /// What the buffers are made of.
    pub memory: Memory,
    /// State of the file's space.
    pub allocation: Allocation,
    /// State of the cache at the start.
    pub cache: CacheState,
    /// For how many completions each stream waits.
    pub reap: Reap,
    /// Bring everything to stable storage after the last request, and time it ([`crate::Usage::sync_ns`]).
    pub sync_at_end: bool,
    /// First byte and length of the region of each target that the sources use; preparation is limited to it.
    pub region: (u64, u64),
}
