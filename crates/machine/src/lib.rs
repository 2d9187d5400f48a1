//! What a machine is: anything that serves I/O requests and keeps time.
//!
//! This computer through its kernel and a simulated computer in virtual time are the same thing to
//! everything above this crate: a [`Machine`] that opens a [`TargetSpec`] and runs [`Asker`]s (the
//! streams of a workload) against it. Time and the CPU meter come from the machine, so nothing
//! above needs to know which of the two it talks to.

mod access;
mod asker;
mod data;
mod error;
mod facts;
pub mod files;
pub mod units;
mod usage;

pub use access::{Access, Allocation, Buffering, CacheState, Engine, Hint, StandIn};
pub use asker::{Asker, Completion, Nanos, Next, Op, Request, Stability};
pub use data::fill_random;
pub use error::{Error, Result};
pub use facts::{Capabilities, Layer, LayerKind, MachineFacts, TargetFacts, TargetKind};
pub use usage::{CpuTimes, DeviceUse, MemoryUse, ProcessorTimes, Usage};

use std::path::PathBuf;

/// What to open, and what may be done to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetSpec {
    /// One place, or several to be striped: directories (a test file is made in each), files, block devices.
    pub places: Vec<PathBuf>,
    /// Bytes of the test file to be made, or of the region to be used in a file or device that exists,
    /// over all places together. `None`: the machine chooses.
    pub size: Option<u64>,
    /// Where the machine chooses the size: the time that filling the test file may take.
    pub fill_ns: Option<Nanos>,
    /// Names of existing files or devices that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// Overwrite them even if they bear a file system, a partition table or the like.
    pub destroy_signed: bool,
    /// Bytes of a stripe chunk where there are several places, or where the one place has several disks. Zero: the machine's own.
    pub chunk: u64,
    /// Seeds the data of the test file.
    pub seed: u64,
    /// A place that is not there is made as a file of this very name; otherwise it is refused.
    pub create: bool,
    /// What exists stays as it is until a run writes it: it is not filled beforehand, not even where it may be overwritten.
    pub as_is: bool,
    /// Test files begin empty (their size must be given): a run with [`Allocation::Extend`] writes them themselves from nothing, and
    /// not a scratch file beside them. Who asks for it sees to it that they are written before they are read.
    pub grown: bool,
}

/// A machine: serves I/O requests and keeps time.
///
/// # Contract
/// * [`Machine::now`] never goes back and is the clock that askers see.
/// * [`Machine::run`] returns when every asker said [`Next::Done`] and nothing is in flight, or on the
///   first error. It never loses a completion.
pub trait Machine {
    /// An opened target: files made, devices held. Dropping it removes what was made.
    type Target;

    /// What this machine is.
    fn facts(&self) -> MachineFacts;

    /// What this machine can do.
    fn capabilities(&self) -> Capabilities;

    /// Nanoseconds on the machine's own clock, from an arbitrary start.
    fn now(&self) -> Nanos;

    /// Lets the machine's time pass without I/O.
    fn pause(&self, for_ns: Nanos);

    /// Opens a target, making its test files (and filling them with incompressible data) where a directory is named.
    ///
    /// # Errors
    /// No such place, no permission, not enough space, a device in use, an existing file that would be overwritten.
    fn open(&self, spec: &TargetSpec) -> Result<Self::Target>;

    /// What lies under an opened target.
    fn target_facts(&self, target: &Self::Target) -> TargetFacts;

    /// Brings the target into the state that `access` asks for (allocation, cache) and runs the askers to their end.
    ///
    /// # Errors
    /// A refused access mode (for example direct I/O where the file system has none) or a failed
    /// request; the error names which. The target stays usable.
    fn run<A: Asker>(&self, target: &mut Self::Target, access: &Access, askers: &mut [A]) -> Result<Usage>;

    /// Runs the askers with a stand-in for the target: what they measure then is the driver's own limit. Nothing is read or written.
    /// `false`: this machine has no such limit (its driver is not what takes the time), or its engine no such stand-in; nothing ran.
    ///
    /// # Errors
    /// As [`Machine::run`].
    fn rehearse<A: Asker>(&self, _target: &Self::Target, _access: &Access, _stand_in: StandIn, _askers: &mut [A]) -> Result<bool> {
        Ok(false)
    }

    /// Changes what a target of several places is: these of them (by number, in order), striped in chunks of `chunk` bytes; one
    /// alone is no stripe. Their files and devices stay as they are.
    ///
    /// # Errors
    /// No such member, a chunk that makes no sense, a machine without stripes.
    fn restripe(&self, target: &mut Self::Target, members: &[u32], chunk: u64) -> Result<()>;

    /// Leaves the files that were made under a name of the user's ([`TargetSpec::create`]) where they are when the target is dropped.
    fn keep(&self, _target: &mut Self::Target) {}

    /// The times of each processor so far; none where the machine does not tell them apart.
    fn processors(&self) -> Vec<ProcessorTimes> {
        Vec::new()
    }

    /// Confines this thread, and the streams of the runs that it starts, to these processors.
    ///
    /// # Errors
    /// No such processor, or a machine whose streams cannot be confined.
    fn bind(&self, _processors: &[u32]) -> Result<()> {
        Err(Error::Unsupported("streams cannot be bound to processors on this machine".into()))
    }

    /// Measures the machine's memory: the ceiling of everything that is buffered.
    fn memory(&self, for_ns: Nanos) -> Vec<MemoryUse>;
}
