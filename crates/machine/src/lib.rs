//! A [`Machine`], real or simulated, runs [`RequestSource`]s on a target and keeps time.

mod access;
mod allowance;
mod data;
mod engine;
mod error;
mod facts;
pub mod files;
mod knob;
mod layer;
pub mod live;
pub mod mark;
mod name;
pub mod rng;
mod run;
mod source;
mod tasks;
pub mod text;
pub mod units;
mod usage;
mod warning;
mod wear;
mod wrapped_source;

pub use access::{
    Access, Allocation, Buffering, CacheState, Hint, Memory, NullBackend, POLL_MAX_NS,
    REAP_LEARNING_NS, REAP_WAIT_NS, Reap,
};
pub use allowance::{Allowance, AllowedSource, BeforeWrites, run_allowed};
pub use data::{FILL_STEP, fill_random, fill_seed, filled};
pub use engine::{Engine, MAX_DEPTH};
pub use error::{Error, Result};
pub use facts::{
    Capabilities, MachineFacts, Raid5, THROTTLE_REST_NS, THROTTLE_SLICE_NS, TargetFacts, TargetKind,
};
pub use knob::{Alternative, Keep, Knob, Matters};
pub use layer::{
    ArrayFacts, BurstFacts, FileSystemFacts, Layer, LayerFacts, LayerKind, PartitionFacts, Share,
    ThrottleFacts,
};
pub use name::{OWN_FILES, client_name, with_settings};
pub use run::{
    Buffers, IoClass, IoPriority, OnFailure, OnInterrupt, Part, PartUsage, RunOptions, RunUsage,
    Scheduling, Start,
};
pub use source::{Completion, Nanos, Next, Op, Request, RequestSource, Stability, Writeback};
pub use tasks::{FileSystemSpace, OpenAs, Sharing, TaskFile, TaskFiles, Wanted};
pub use usage::{
    BlockTimes, CpuTimes, DeviceUse, DirtyUse, Disturbance, MemoryKind, MemoryUse, NetworkLink,
    ParityUse, Pause, PauseCause, PhaseUse, PressureUse, ProcessorTimes, QuotaUse, RequestTimes,
    ResourceKind, ResourceUse, Stage, StageTime, TimesSource, Usage, Waits,
};
pub use warning::{Figure, Warning};
pub use wear::Wear;
pub use wrapped_source::WrappedSource;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The smallest target that is sized by fill time, if there is space.
pub const MIN_FILLED_BYTES: u64 = 32 * units::MIB;

/// A target, and the permitted changes to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TargetSpec {
    /// Directories (each gets a test file), files or devices; several form a stripe.
    pub places: Vec<PathBuf>,
    /// Bytes of the test file, or of the region in an existing target, over all members. `None`:
    /// the machine chooses.
    pub size: Option<u64>,
    /// Time for the fill, if the machine chooses the size.
    pub fill_ns: Option<Nanos>,
    /// Places that may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// Also overwrites targets with a file system, a partition table or the like, or whose use the
    /// kernel does not show.
    pub destroy_signed: bool,
    /// Bytes; 0: the machine's default.
    pub chunk: u64,
    /// The layout if the places form a RAID 5 set. Opening computes the parity, unless the set is
    /// only read or [`TargetSpec::as_is`].
    pub raid5: Option<Raid5>,
    pub seed: u64,
    /// A missing path becomes a file.
    pub create: bool,
    /// A shorter file in [`TargetSpec::destroy`], or a kept one, grows to the size and keeps its
    /// data.
    pub lengthen: bool,
    /// No fill: existing data stays until a run writes it.
    pub as_is: bool,
    /// First byte, over all members, that a fill may write in an existing target.
    #[serde(default)]
    pub fill_from: u64,
    pub new_file: NewFile,
    #[serde(default)]
    pub sharing: Option<Sharing>,
}

/// The region of a device under a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    pub name: String,
    pub spec: TargetSpec,
    /// Largest extent: first byte and length.
    pub region: (u64, u64),
}

/// Content before the first run. All but [`NewFile::Filled`] need a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewFile {
    #[default]
    Filled,
    /// Unwritten blocks, if the file system supports them.
    Reserved,
    Sparse,
    /// This many bytes of data; writes behind them lengthen the file, up to the size.
    Grows(u64),
    /// No data, and unwritten blocks beyond the end; writes lengthen the file, up to the size.
    ReservedBeyond,
    /// No data. A run with [`Allocation::Extend`] writes this file, not a scratch file; write
    /// before reading.
    Empty,
}

impl NewFile {
    /// The space that its first writes find.
    pub fn allocation(self) -> Allocation {
        match self {
            NewFile::Reserved | NewFile::ReservedBeyond => Allocation::Reserved,
            NewFile::Grows(_) => Allocation::Extend,
            NewFile::Filled | NewFile::Sparse | NewFile::Empty => Allocation::Written,
        }
    }
}

/// Finished runs, as JSON, for the next process.
pub trait RunLog {
    /// Returns the run's next result from an earlier process.
    fn recall(&self, run: &str) -> Option<String>;

    fn keep(&self, run: &str, result: &str);
}

/// Makes runs on several computers at once.
pub trait ClientRuns {
    /// Takes and returns JSON.
    fn run(&self, run: &str) -> Result<String>;
}

/// A computer, real or simulated, that runs requests and keeps time.
///
/// [`Machine::now`] is monotonic, and the sources' clock. [`Machine::run`] returns when every
/// source has returned [`Next::Done`] and nothing is in flight, or on the first error. It never
/// loses a completion.
pub trait Machine {
    /// Dropping it removes created files.
    type Target;

    fn facts(&self) -> MachineFacts;

    fn capabilities(&self) -> Capabilities;

    /// Counts from an arbitrary start.
    fn now(&self) -> Nanos;

    fn pause(&self, for_ns: Nanos);

    /// Treats these processes as part of the measurement, not as disturbance.
    fn add_own_processes(&self, _processes: &[u32]) {}

    /// Gives a directory a test file with incompressible data.
    fn open(&self, spec: &TargetSpec) -> Result<Self::Target>;

    /// Lets `check` see all facts before it overwrites data. If the machine chooses the size, a
    /// filled target may become smaller.
    fn open_all(
        &self,
        specs: &[TargetSpec],
        check: &mut dyn FnMut(&[TargetFacts]) -> Result<()>,
    ) -> Result<Vec<Self::Target>> {
        let targets = specs.iter().map(|spec| self.open(spec)).collect::<Result<Vec<_>>>()?;
        check(&targets.iter().map(|target| self.target_facts(target)).collect::<Vec<_>>())?;
        Ok(targets)
    }

    fn open_checked(
        &self,
        spec: &TargetSpec,
        mut check: impl FnMut(&TargetFacts) -> Result<()>,
    ) -> Result<Self::Target> {
        let one = self.open_all(std::slice::from_ref(spec), &mut |facts| {
            facts.iter().try_for_each(&mut check)
        })?;
        one.into_iter()
            .next()
            .ok_or_else(|| Error::Unsupported("the machine opened no target".into()))
    }

    /// Checks the streams' buffer memory; call it first.
    fn check_memory(&self, _streams: &[Buffers]) -> Result<()> {
        Ok(())
    }

    fn target_facts(&self, target: &Self::Target) -> TargetFacts;

    /// Prepares the targets (allocation, cache), starts all parts together and runs their sources
    /// to the end. Under [`OnFailure::EndPart`] a part's error is in [`RunUsage::parts`]; the
    /// targets stay usable.
    fn run<S: RequestSource>(
        &self,
        parts: &mut [Part<'_, Self::Target, S>],
        options: RunOptions,
    ) -> Result<RunUsage>;

    fn run_one<S: RequestSource>(
        &self,
        target: &Self::Target,
        access: &Access,
        sources: &mut [S],
    ) -> Result<Usage> {
        self.run(&mut [Part::new(target, access, sources)], RunOptions::default())?.single()
    }

    /// Measures the driver's limit. Returns `false`, without a run, if it has none or the engine
    /// has no null backend.
    fn measure_ceiling<A: RequestSource>(
        &self,
        _target: &Self::Target,
        _access: &Access,
        _stand_in: NullBackend,
        _askers: &mut [A],
    ) -> Result<bool> {
        Ok(false)
    }

    /// Returns the device under a file, for reading; `None` if extents are unknown or not on one
    /// device.
    fn below(&self, _target: &Self::Target) -> Option<Below> {
        None
    }

    /// Stripes the target over these members, in order; `chunk` is in bytes. Stored data stays.
    fn restripe(&self, target: &mut Self::Target, members: &[u32], chunk: u64) -> Result<()>;

    /// Keeps files of [`TargetSpec::create`] after the drop.
    fn keep(&self, _target: &mut Self::Target) {}

    /// Bytes left of an [`Allowance`].
    fn may_write(&self) -> u64 {
        u64::MAX
    }

    /// Counts bytes that an earlier process of the command wrote.
    fn wrote_before(&self, _bytes: u64) {}

    /// Lets a drive erase flash in advance.
    fn discard(&self, target: &Self::Target) -> Result<()> {
        let name = self.target_facts(target).name;
        Err(Error::NoDiscard(name))
    }

    /// Returns the temperature of the target's hottest device.
    fn celsius(&self, _target: &Self::Target) -> Option<f64> {
        None
    }

    fn wear(&self, _target: &Self::Target) -> Vec<Wear> {
        Vec::new()
    }

    /// Returns the log if a later process can continue.
    fn run_log(&self) -> Option<&dyn RunLog> {
        None
    }

    /// Returns how many clients can share a target.
    fn clients(&self) -> u32 {
        1
    }

    /// Returns whether the target's clients can share one file, or why not.
    fn one_file(&self) -> std::result::Result<(), String> {
        Err(OWN_FILES.into())
    }

    /// Returns `Some` if clients are other processes; otherwise [`Machine::run`] has all clients'
    /// sources, the first client's first.
    fn client_runs(&self) -> Option<&dyn ClientRuns> {
        None
    }

    /// Empty if not counted.
    fn processors(&self) -> Vec<ProcessorTimes> {
        Vec::new()
    }

    /// Returns links of known speed.
    fn network(&self) -> Vec<NetworkLink> {
        Vec::new()
    }

    /// Measures the memory rates that limit buffered I/O.
    fn memory(&self, for_ns: Nanos) -> Result<Vec<MemoryUse>>;
}
