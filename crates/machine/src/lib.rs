//! What a machine is: anything that serves I/O requests and keeps time.
//!
//! This computer through its kernel and a simulated computer in virtual time are the same thing to
//! everything above this crate: a [`Machine`] that opens a [`TargetSpec`] and runs [`RequestSource`]s (the
//! streams of a workload) against it. Time and the CPU meter come from the machine, so nothing
//! above needs to know which of the two it talks to.

mod access;
mod data;
mod engine;
mod error;
mod facts;
pub mod files;
mod knob;
mod layer;
pub mod mark;
mod run;
mod source;
pub mod text;
pub mod units;
mod usage;

pub use access::{
    Access, Allocation, Buffering, CacheState, Hint, Memory, NullBackend, POLL_MOST_NS, REAP_LEARNING_NS, REAP_WAIT_NS,
    Reap,
};
pub use data::{FILL_STEP, fill_random, fill_seed, filled};
pub use engine::{Engine, MAX_DEPTH};
pub use error::{Error, Result};
pub use facts::{Capabilities, MachineFacts, Raid5, THROTTLE_REST_NS, THROTTLE_SLICE_NS, TargetFacts, TargetKind};
pub use knob::{Alternative, Keep, Knob, Matters};
pub use layer::{ArrayFacts, FileSystemFacts, Layer, LayerFacts, LayerKind, PartitionFacts, Share, ThrottleFacts};
pub use run::{Buffers, IoClass, IoPriority, OnFailure, Part, PartUsage, RunOptions, RunUsage, Scheduling, Start};
pub use source::{Completion, Nanos, Next, Op, Request, RequestSource, Stability};
pub use usage::{
    BlockTimes, CpuTimes, DeviceUse, DirtyUse, Disturbance, MemoryUse, ParityUse, Pause, PhaseUse, PressureUse,
    ProcessorTimes, QuotaUse, RequestTimes, ResourceKind, ResourceUse, Stage, StageTime, TimesSource, Usage, Waits,
};

use std::path::PathBuf;

/// Where the machine chooses the size of a new file by the time that filling it takes: the least that it fills, if there is room for it.
pub const LEAST_FILLED_BYTES: u64 = 32 * units::MIB;

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
    /// Overwrite them even if they hold a file system, a partition table or the like, or if the kernel does not show whether they are in use.
    pub destroy_signed: bool,
    /// Bytes of a stripe chunk where there are several places, or where the one place has several disks. Zero: the machine's own.
    pub chunk: u64,
    /// The places form a RAID 5 set; otherwise several are a plain stripe. Its parity is made when it is opened, unless it is only read
    /// or stays [`TargetSpec::as_is`].
    pub raid5: Option<Raid5>,
    /// Seeds the data of the test file.
    pub seed: u64,
    /// A place that is not there is made as a file of this very name; otherwise it is refused.
    pub create: bool,
    /// What exists stays as it is until a run writes it: it is not filled beforehand, not even where it may be overwritten.
    pub as_is: bool,
    /// What a new test file holds.
    pub new_file: NewFile,
}

/// The device below a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// Its name.
    pub name: String,
    /// How it is opened.
    pub spec: TargetSpec,
    /// The bytes of it that hold the largest piece of the file: the first, and how many.
    pub region: (u64, u64),
}

/// What a new test file holds before the first run. All but [`NewFile::Filled`] need its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewFile {
    /// Incompressible data.
    #[default]
    Filled,
    /// Space that is reserved and not written; none where the file system reserves no space.
    Reserved,
    /// No space: it has its length alone.
    Sparse,
    /// Nothing: a run with [`Allocation::Extend`] writes the file itself, and not a scratch file beside it. Who asks for it sees to it
    /// that it is written before it is read.
    Empty,
}

/// A machine: serves I/O requests and keeps time.
///
/// # Contract
/// * [`Machine::now`] never goes back and is the clock that sources see.
/// * [`Machine::run`] returns when every source said [`Next::Done`] and nothing is in flight, or on the
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

    /// Opens several targets for one command. `check` gets what is known of all of them before anything that was there is overwritten:
    /// what it refuses is as it was.
    ///
    /// Where the machine chooses the size, a target may have less than the facts say once it is filled.
    ///
    /// # Errors
    /// As [`Machine::open`], and what `check` returns.
    fn open_all(
        &self,
        specs: &[TargetSpec],
        check: &mut dyn FnMut(&[TargetFacts]) -> Result<()>,
    ) -> Result<Vec<Self::Target>> {
        let targets = specs.iter().map(|spec| self.open(spec)).collect::<Result<Vec<_>>>()?;
        check(&targets.iter().map(|target| self.target_facts(target)).collect::<Vec<_>>())?;
        Ok(targets)
    }

    /// [`Machine::open_all`] for one.
    ///
    /// # Errors
    /// As [`Machine::open_all`].
    fn open_checked(
        &self,
        spec: &TargetSpec,
        mut check: impl FnMut(&TargetFacts) -> Result<()>,
    ) -> Result<Self::Target> {
        let one = self.open_all(std::slice::from_ref(spec), &mut |facts| facts.iter().try_for_each(&mut check))?;
        one.into_iter().next().ok_or_else(|| Error::Unsupported("the machine opened no target".into()))
    }

    /// Refuses streams that run at the same time and whose buffers the machine's memory cannot hold: to be asked before anything is made
    /// or written for them.
    ///
    /// # Errors
    /// They need more than is left.
    fn check_memory(&self, _streams: &[Buffers]) -> Result<()> {
        Ok(())
    }

    /// What lies under an opened target.
    fn target_facts(&self, target: &Self::Target) -> TargetFacts;

    /// Brings the targets of all parts into the state that each part's access asks for (allocation, cache), starts all parts together
    /// and runs their sources to the end.
    ///
    /// # Errors
    /// A refused access mode (for example direct I/O where the file system has none) or a failed request; the error names which.
    /// Under [`OnFailure::EndPart`] an error of one part stands in [`RunUsage::parts`]. The targets stay usable.
    fn run<S: RequestSource>(&self, parts: &mut [Part<'_, Self::Target, S>], options: RunOptions) -> Result<RunUsage>;

    /// [`Machine::run`] with one part.
    ///
    /// # Errors
    /// As [`Machine::run`].
    fn run_one<S: RequestSource>(&self, target: &Self::Target, access: &Access, sources: &mut [S]) -> Result<Usage> {
        self.run(&mut [Part::new(target, access, sources)], RunOptions::default())?.single()
    }

    /// Runs the sources with a stand-in for the target: what they measure then is the driver's own limit. Nothing is read or written.
    /// `false`: this machine has no such limit (its driver is not what takes the time), or its engine no such stand-in; nothing ran.
    ///
    /// # Errors
    /// As [`Machine::run`].
    fn measure_ceiling<A: RequestSource>(
        &self,
        _target: &Self::Target,
        _access: &Access,
        _stand_in: NullBackend,
        _askers: &mut [A],
    ) -> Result<bool> {
        Ok(false)
    }

    /// The device on which a target's file lies, to be read only; none where there is none of its own, or where the file's place on it
    /// is not told.
    fn below(&self, _target: &Self::Target) -> Option<Below> {
        None
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

    /// Measures the machine's memory: the ceiling of everything that is buffered.
    ///
    /// # Errors
    /// A way of moving memory failed, or too little of it is free.
    fn memory(&self, for_ns: Nanos) -> Result<Vec<MemoryUse>>;
}
