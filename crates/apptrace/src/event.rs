use machine::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place in the order of [`TracedFile`] or [`Thread`] events.
pub type Index = u32;

/// Files and threads come before requests that name them. Requests are in the order of their start,
/// except a few that took longer than the recorder holds back others; one thread's system calls
/// always are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    Thread(Thread),
    File(TracedFile),
    Request(Request),
    Renamed(Renamed),
    /// Events missed since the last entry.
    Lost(u64),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The kernel's number of the process and of the thread in it; 0 if the source has none.
    pub process: u32,
    pub thread: u32,
    /// `None` if hidden or unknown.
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedFile {
    /// The path, or its hash if names are hidden.
    pub name: String,
    pub kind: Kind,
    /// When the trace first saw the file, if known.
    pub size_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renamed {
    pub file: Index,
    /// As in [`TracedFile`].
    pub name: String,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Regular,
    BlockDevice,
    Directory,
    /// Pipes, sockets, terminals: not storage.
    Stream,
    /// A file of unknown type, such as one whose name was never seen.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    Write,
    /// `fsync`.
    SyncFile,
    /// `fdatasync`, `msync`.
    SyncData,
    /// `sync_file_range` that waits for the writes; not durable.
    SyncRange,
    /// `sync`, `syncfs`.
    SyncSystem,
    /// `fallocate`, which can also punch a hole.
    Allocate,
    /// Makes the file `bytes` long.
    Truncate,
    Open,
    Close,
    Unlink,
    Discard,
    /// Flushes a block device's cache.
    Flush,
    /// `readahead`, POSIX_FADV_WILLNEED.
    Prefetch,
    /// `sync_file_range` that only starts the writes.
    WriteOut,
}

/// The kernel's interface, or the layer that showed the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    SystemCall,
    IoUring,
    Libaio,
    /// A memory mapping's page fault.
    Mapping,
    /// At a device, for any reason.
    Block,
}

/// Flags of an open file, or of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct OpenFile {
    pub direct: bool,
    /// O_DSYNC, O_SYNC or RWF_DSYNC.
    pub dsync: bool,
    pub append: bool,
    /// At a device: metadata of a file system, such as its journal.
    #[serde(default)]
    pub metadata: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// From the recording's start, in ns.
    pub at_ns: Nanos,
    /// `None` if the end was not seen.
    pub duration_ns: Option<Nanos>,
    /// `None` if no thread of the program made it (write-back).
    pub thread: Option<Index>,
    pub file: Index,
    pub access: Access,
    pub interface: Interface,
    /// In bytes; `None` if unknown or not applicable.
    pub offset: Option<u64>,
    /// Asked for; for a truncation, the new size.
    pub bytes: u64,
    /// Bytes done, or Linux's negative error number; `None` if the end was not seen.
    pub result: Option<i64>,
    pub open: OpenFile,
}
