//! Parts that start together.

use crate::{
    Access, BlockTimes, Buffering, CpuTimes, DeviceUse, DirtyUse, Disturbance, Error, Nanos,
    ParityUse, Pause, ResourceUse, Result, Usage, Waits, Warning,
};
use serde::{Deserialize, Serialize};

/// A job, or a process's files. Parts may share a target.
#[derive(Debug)]
pub struct Part<'a, T, S> {
    /// By [`crate::Request::target`]; several cannot include a stripe.
    pub targets: Vec<&'a T>,
    pub access: Access,
    /// The buffering of each target; empty: the access's for all.
    pub buffering: Vec<Buffering>,
    /// One per stream.
    pub sources: &'a mut [S],
    pub scheduling: Scheduling<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scheduling<'a> {
    /// Empty for all.
    pub processors: &'a [u32],
    /// `None`: as the process.
    pub io_priority: Option<IoPriority>,
    /// `None`: as the process.
    pub nice: Option<i32>,
}

/// A priority for block schedulers that support it (ioprio_set(2)).
///
/// ```
/// use machine::{IoClass, IoPriority};
///
/// assert_eq!(IoPriority { class: IoClass::BestEffort, level: 4 }.bits(), 2 << 13 | 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPriority {
    pub class: IoClass,
    /// From 0 (highest) to 7.
    pub level: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoClass {
    RealTime = 1,
    BestEffort = 2,
    /// Served only if the device is otherwise idle.
    Idle = 3,
}

impl IoPriority {
    pub fn bits(self) -> u16 {
        (self.class as u16) << 13 | u16::from(self.level)
    }
}

impl<'a, T, S> Part<'a, T, S> {
    pub fn new(target: &'a T, access: &Access, sources: &'a mut [S]) -> Self {
        Part {
            targets: vec![target],
            access: access.clone(),
            buffering: Vec::new(),
            sources,
            scheduling: Scheduling::default(),
        }
    }

    pub fn access_of(&self, target: usize) -> Access {
        let buffering = self.buffering.get(target).copied().unwrap_or(self.access.buffering);
        Access { buffering, ..self.access.clone() }
    }
}

/// Buffers of identical streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    pub streams: u32,
    pub depth: u32,
    pub request_bytes: u32,
    pub writes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Start {
    #[default]
    Now,
    /// At this time, or later when every stream is ready.
    At(Nanos),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    #[default]
    EndRun,
    /// The other parts continue.
    EndPart,
}

/// The interrupt's effect on begun streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnInterrupt {
    #[default]
    Fail,
    /// The run ends early, with its requests and counters so far ([`RunUsage::interrupted`]). A
    /// part with [`Access::sync_at_end`] fails: its rate includes the flush.
    EndRun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunOptions {
    pub start: Start,
    pub on_failure: OnFailure,
    pub on_interrupt: OnInterrupt,
    /// Costs time: do not use the run's rate.
    pub count_instructions: bool,
    /// Traces the block layer. Costs time: do not use the run's rate.
    pub trace: bool,
    /// Bytes brought into an empty page cache. A guest whose free memory is reclaimed faults them
    /// in first.
    pub cache_bytes: u64,
    /// Locked: others cannot use it.
    pub locked_bytes: u64,
    /// They divide each part's sources equally; 0: one.
    pub clients: u32,
}

#[derive(Debug, Default)]
pub struct RunUsage {
    pub began: Nanos,
    /// From the program's start to the run's.
    pub since_start_ns: Nanos,
    pub waited_ns: Nanos,
    pub cpu: CpuTimes,
    pub block_bytes: Option<(u64, u64)>,
    pub resources: Vec<ResourceUse>,
    pub warnings: Vec<Warning>,
    pub paused: Option<Pause>,
    pub interrupted: bool,
    pub disturbance: Disturbance,
    pub block_times: Vec<BlockTimes>,
    pub parts: Vec<Result<PartUsage>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PartUsage {
    /// To the part's last completion.
    pub elapsed_ns: Nanos,
    pub sync_ns: Option<Nanos>,
    /// Processor time to the part's last completion.
    pub process_ns: Option<Nanos>,
    pub unserved_ns: Option<Nanos>,
    pub sync_unserved_ns: Option<Nanos>,
    pub dirty: Option<DirtyUse>,
    /// Of the devices under the part's targets, over the whole run.
    pub device: Option<DeviceUse>,
    pub waits: Option<Waits>,
    pub parity: Option<ParityUse>,
}

impl RunUsage {
    /// Processor time, block-layer bytes and warnings stay the whole run's.
    pub fn by_part(self) -> impl Iterator<Item = Result<Usage>> {
        let RunUsage {
            began,
            since_start_ns,
            waited_ns,
            cpu,
            block_bytes,
            resources,
            warnings,
            paused,
            interrupted,
            disturbance,
            block_times,
            parts,
        } = self;
        parts.into_iter().map(move |part| {
            let PartUsage {
                elapsed_ns,
                sync_ns,
                process_ns,
                unserved_ns,
                sync_unserved_ns,
                dirty,
                device,
                waits,
                parity,
            } = part?;
            let (resources, warnings, block_times) =
                (resources.clone(), warnings.clone(), block_times.clone());
            Ok(Usage {
                began,
                since_start_ns,
                waited_ns,
                elapsed_ns,
                sync_ns,
                cpu,
                process_ns,
                unserved_ns,
                sync_unserved_ns,
                dirty,
                device,
                waits,
                parity,
                block_bytes,
                shared_device: None,
                others_cached_bytes: [0; 2],
                others_direct_bytes: [0; 2],
                resources,
                warnings,
                paused,
                interrupted,
                disturbance,
                block_times,
            })
        })
    }

    pub fn single(self) -> Result<Usage> {
        self.by_part()
            .next()
            .unwrap_or_else(|| Err(Error::Unsupported("the run had no part".into())))
    }
}
