use crate::{Engine, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Replaces the target to measure the driver's ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullBackend {
    /// Completes requests when issued: the generator's limit.
    Null,
    /// io_uring's no-op: the generator's limit with io_uring.
    NoOp,
}

/// Whether requests use the page cache, and when a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Buffering {
    /// Bypass the page cache (O_DIRECT).
    Direct,
    Buffered,
    /// O_DIRECT and O_DSYNC: each write is on stable storage before it counts.
    DirectDsync,
    /// O_DSYNC: each write is on stable storage before it counts.
    BufferedDsync,
}

impl Buffering {
    pub fn is_direct(self) -> bool {
        matches!(self, Buffering::Direct | Buffering::DirectDsync)
    }

    pub fn is_dsync(self) -> bool {
        matches!(self, Buffering::DirectDsync | Buffering::BufferedDsync)
    }

    pub fn name(self) -> &'static str {
        match self {
            Buffering::Direct => "direct",
            Buffering::Buffered => "buffered",
            Buffering::DirectDsync => "direct_dsync",
            Buffering::BufferedDsync => "buffered_dsync",
        }
    }
}

/// A hint about the access pattern for the page cache (`posix_fadvise`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    #[default]
    None,
    Sequential,
    Random,
}

impl Hint {
    pub const ALL: [Hint; 3] = [Hint::None, Hint::Sequential, Hint::Random];

    pub fn name(self) -> &'static str {
        match self {
            Hint::None => "none",
            Hint::Sequential => "sequential",
            Hint::Random => "random",
        }
    }
}

/// State of the file's space before a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Allocation {
    #[default]
    Written,
    /// Blocks are reserved (`fallocate`) but unwritten.
    Reserved,
    /// A new file that grows as it is written.
    Extend,
    /// An existing file that is truncated to zero, then written.
    Truncate,
}

impl Allocation {
    pub const ALL: [Allocation; 4] =
        [Allocation::Written, Allocation::Reserved, Allocation::Extend, Allocation::Truncate];

    pub fn name(self) -> &'static str {
        match self {
            Allocation::Written => "written",
            Allocation::Reserved => "reserved",
            Allocation::Extend => "extend",
            Allocation::Truncate => "truncate",
        }
    }
}

/// The target's state in the page cache when a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    #[default]
    AsIs,
    /// The target's pages are dropped.
    Cold,
    /// The whole region of the run is cached.
    Warm,
}

impl CacheState {
    pub const ALL: [CacheState; 3] = [CacheState::AsIs, CacheState::Cold, CacheState::Warm];

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
    /// Memory that is not registered with the kernel, usually in normal pages.
    Pages,
    /// Memory registered with the kernel if the interface supports it (io_uring's fixed buffers).
    /// Cheaper for small requests; a large one may be split when it would not be otherwise.
    Registered,
    /// Huge pages for large buffers, if the system has them, so that a large request has few
    /// segments. Also registered.
    #[default]
    Huge,
}

impl Memory {
    pub const ALL: [Memory; 3] = [Memory::Pages, Memory::Registered, Memory::Huge];

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
/// Fewer waits save processor time, because each costs a sleep and a wakeup, but add some latency.
/// Polling avoids wakeups but keeps a processor busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reap {
    /// Wait for this many, but after the first for at most [`REAP_WAIT_NS`].
    AtLeast(u32),
    /// Polls before sleeping, for up to [`POLL_MAX_NS`], if sleeps are shorter than that and a run
    /// has fewer streams than processors.
    Poll,
    /// Learns the best number, or polling, at the start of the run.
    Auto,
}

pub const REAP_WAIT_NS: Nanos = 100_000;

pub const POLL_MAX_NS: Nanos = 100_000;

/// The time that [`Reap::Auto`] learns at a run's start; exclude it from the measurement.
pub const REAP_LEARNING_NS: Nanos = 350_000_000;

impl Default for Reap {
    fn default() -> Self {
        Reap::AtLeast(1)
    }
}

impl fmt::Display for Reap {
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

    fn from_str(text: &str) -> Result<Reap, String> {
        match text.parse() {
            Ok(completions) if completions > 0 => Ok(Reap::AtLeast(completions)),
            _ if text == "poll" => Ok(Reap::Poll),
            _ if text == "auto" => Ok(Reap::Auto),
            _ => Err(format!("'{text}' is not a number of completions; write 1, 8, poll or auto")),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    pub engine: Engine,
    pub buffering: Buffering,
    /// With a dsync [`Buffering`], writes also wait for metadata (O_SYNC).
    pub metadata_sync: bool,
    pub hint: Hint,
    pub memory: Memory,
    pub allocation: Allocation,
    pub cache: CacheState,
    pub reap: Reap,
    /// For direct requests with blocking calls or io_uring, if the device allows it.
    pub kernel_polls: bool,
    /// Timed in [`crate::Usage::sync_ns`].
    pub sync_at_end: bool,
    /// First byte and length in each target; the rest is not prepared.
    pub region: (u64, u64),
}
