//! A run: parts that start together.

use crate::{
    Access, BlockTimes, CpuTimes, DeviceUse, DirtyUse, Disturbance, Error, Nanos, ParityUse, Pause, ResourceUse,
    Result, Usage, Waits,
};

/// A target, how it is accessed, and the request sources that ask it.
///
/// Several parts make one run: jobs beside each other, the files of a tool's processes, a scan beside a log. Parts may share a target.
#[derive(Debug)]
pub struct Part<'a, T, S> {
    /// What is asked. A request names one by its number ([`crate::Request::target`]); of several, none may be a stripe.
    pub targets: Vec<&'a T>,
    /// How all of them are accessed.
    pub access: Access,
    /// Who asks: a stream each.
    pub sources: &'a mut [S],
    /// How the streams' threads are scheduled.
    pub scheduling: Scheduling<'a>,
}

/// How threads are scheduled, and their requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scheduling<'a> {
    /// They run on these processors alone; empty: on any.
    pub processors: &'a [u32],
    /// The priority of their requests; none: that of the process.
    pub io_priority: Option<IoPriority>,
    /// Their own priority, from -20, the highest, to 19; none: that of the process.
    pub nice: Option<i32>,
}

/// A priority of requests, which the block device's scheduler may heed (ioprio_set(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPriority {
    /// Served class by class.
    pub class: IoClass,
    /// From 0, the highest, to 7.
    pub level: u8,
}

/// A class of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoClass {
    /// Before all others.
    RealTime = 1,
    /// What requests have that nobody gave a priority.
    BestEffort = 2,
    /// Where there is nothing else to do.
    Idle = 3,
}

impl IoPriority {
    /// As the kernel has it: the class from bit 13 on, the level below.
    pub fn bits(self) -> u16 {
        (self.class as u16) << 13 | u16::from(self.level)
    }
}

impl<'a, T, S> Part<'a, T, S> {
    /// One target, on any processor.
    pub fn new(target: &'a T, access: &Access, sources: &'a mut [S]) -> Self {
        Part { targets: vec![target], access: access.clone(), sources, scheduling: Scheduling::default() }
    }
}

/// The buffers of so many like streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Streams that run at the same time.
    pub streams: u32,
    /// Requests that each keeps outstanding.
    pub depth: u32,
    /// Bytes of the largest request.
    pub request_bytes: u32,
    /// They write.
    pub writes: bool,
}

/// When a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// As soon as every stream is ready.
    #[default]
    Now,
    /// At this time of the machine's clock, or as soon as every stream is ready if that is later.
    At(Nanos),
}

/// What the failure of one part does to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// The run ends, with the first error.
    #[default]
    EndRun,
    /// They go on; the part has an error instead of figures.
    EndPart,
}

/// How a run is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunOptions {
    /// When it starts.
    pub start: Start,
    /// What the failure of one part does to the others.
    pub on_failure: OnFailure,
    /// Read the processor's counters during the run. It costs time: never in a run whose rate counts.
    pub count_instructions: bool,
    /// Note when the block layer has each request. It costs time: never in a run whose rate counts.
    pub trace: bool,
    /// Bytes that it may bring into an empty page cache: a machine whose memory is not always there has it ready. 0: as the memory is.
    pub cache_bytes: u64,
}

/// What a run used.
#[derive(Debug, Default)]
pub struct RunUsage {
    /// When the sources began, on the machine's clock.
    pub began: Nanos,
    /// The same since the program began.
    pub since_start_ns: Nanos,
    /// Processor time of the whole run.
    pub cpu: CpuTimes,
    /// Bytes that this process asked of the block layer itself (read, write): less than asked means that a cache served.
    pub block_bytes: Option<(u64, u64)>,
    /// The parts of the machine that count their own busy time, the busiest first: those of a simulated machine.
    pub resources: Vec<ResourceUse>,
    /// Warnings about this run, in short sentences.
    pub warnings: Vec<String>,
    /// Time in which the program did not run, if there was any.
    pub paused: Option<Pause>,
    /// Other users of the computer.
    pub disturbance: Disturbance,
    /// When the block layer had requests, of all parts ([`Usage::block_times`]).
    pub block_times: Vec<BlockTimes>,
    /// What each part used, in the order of the parts.
    pub parts: Vec<Result<PartUsage>>,
}

/// What one part of a run used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PartUsage {
    /// From the beginning of the run to the part's last completion.
    pub elapsed_ns: Nanos,
    /// From the last completion to stable storage, where [`Access::sync_at_end`] asked for it.
    pub sync_ns: Option<Nanos>,
    /// Processor time of the process from the beginning of the run to the part's last completion ([`Usage::process_ns`]).
    pub process_ns: Option<Nanos>,
    /// Time in which its threads could have run and had no processor ([`Usage::unserved_ns`]).
    pub unserved_ns: Option<Nanos>,
    /// Dirty pages while it wrote ([`Usage::dirty`]).
    pub dirty: Option<DirtyUse>,
    /// The counters of the devices under the part's targets, over the whole run; `None` where nothing counts.
    pub device: Option<DeviceUse>,
    /// How the part's streams waited; none where each request is a call of its own, or nothing counts.
    pub waits: Option<Waits>,
    /// What the part's streams computed of parity; none where they computed none.
    pub parity: Option<ParityUse>,
}

impl RunUsage {
    /// Usage by part; processor time, block-layer bytes and warnings are the whole run's, for nothing tells the parts apart.
    pub fn by_part(self) -> impl Iterator<Item = Result<Usage>> {
        let RunUsage {
            began,
            since_start_ns,
            cpu,
            block_bytes,
            resources,
            warnings,
            paused,
            disturbance,
            block_times,
            parts,
        } = self;
        parts.into_iter().map(move |part| {
            let PartUsage { elapsed_ns, sync_ns, process_ns, unserved_ns, dirty, device, waits, parity } = part?;
            let (resources, warnings, block_times) = (resources.clone(), warnings.clone(), block_times.clone());
            Ok(Usage {
                began,
                since_start_ns,
                elapsed_ns,
                sync_ns,
                cpu,
                process_ns,
                unserved_ns,
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
                disturbance,
                block_times,
            })
        })
    }

    /// Usage of the only part.
    ///
    /// # Errors
    /// The part failed.
    pub fn single(self) -> Result<Usage> {
        self.by_part().next().unwrap_or_else(|| Err(Error::Unsupported("the run had no part".into())))
    }
}
