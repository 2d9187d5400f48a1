use crate::{Figure, Nanos, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuTimes {
    /// User time of this process, all threads.
    pub user_ns: Nanos,
    /// System time of this process, all threads.
    pub system_ns: Nanos,
    /// Busy time of all processors, minus an idle machine's. Only this figure includes kernel
    /// threads.
    pub machine_ns: Nanos,
    /// Time taken by the hypervisor.
    pub steal_ns: Nanos,
    /// User-mode instructions of the process, if counted.
    pub instructions_user: Option<u64>,
}

/// Times of one processor since the system started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessorTimes {
    pub processor: u32,
    pub user_ns: Nanos,
    /// System time with interrupts.
    pub system_ns: Nanos,
    /// Idle time with waiting for I/O.
    pub idle_ns: Nanos,
}

/// A network link's traffic since the system started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkLink {
    pub name: String,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// The speed in each direction.
    pub speed_bytes_per_s: u64,
}

/// Counters of the devices under the target.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// Completed reads.
    pub reads: u64,
    pub read_bytes: u64,
    /// Completed writes.
    pub writes: u64,
    pub write_bytes: u64,
    /// Requests merged before they reached a device.
    pub merges: u64,
    /// Time with at least one request in flight, mean over the devices.
    pub busy_ns: Nanos,
    /// The sum of the requests' times at the device; divided by the run's time, the mean depth
    /// there.
    pub weighted_ns: Nanos,
    /// Completed flushes of the cache.
    pub flushes: u64,
    /// Part of `weighted_ns` before a device accepted the request; only known on a simulated
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ns: Option<Nanos>,
    /// Busy time of a link, a bus or a network with these requests, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_ns: Option<Nanos>,
    /// Busy time of the media, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_ns: Option<Nanos>,
}

/// A machine part that serves requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// All processors together.
    Processor,
    /// The I/O bus between all adapters and memory.
    Pci,
    /// An adapter between disk buses and the I/O bus.
    Adapter,
    /// A disk bus that several drives share.
    Bus,
    /// The link between one drive and its adapter.
    Link,
    /// The network to a volume of another computer.
    Network,
    /// Platters and heads.
    Media,
    /// A device, or its electronics.
    Device,
    /// A configured limit.
    Throttle,
}

/// Busy time of one part of a machine in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    pub name: String,
    pub kind: ResourceKind,
    /// Share of the run that it was busy, in percent; for several of a kind, that of the busiest.
    pub busy_percent: f64,
    /// For a bus: shares of its phases in the busy time, in the order of a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseUse>,
}

/// Share of one phase of a bus, as a bus analyser shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseUse {
    pub name: String,
    /// Share of the time that the bus was not free, in percent.
    pub percent: f64,
}

/// The program was stopped; not due to the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    pub ns: Nanos,
    pub times: u64,
    /// Percent of the run.
    pub percent: f64,
    pub cause: PauseCause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseCause {
    Suspended,
    Hypervisor,
    Quota,
    OtherPrograms,
    /// A signal, a debugger or a freezer, if no other program used the CPU.
    Stopped,
}

impl PauseCause {
    fn sentence(self) -> &'static str {
        match self {
            PauseCause::Suspended => "the computer was suspended",
            PauseCause::Hypervisor => "the hypervisor gave this computer no processor",
            PauseCause::Quota => {
                "the processor quota of the control group left this program no processor"
            }
            PauseCause::OtherPrograms => "other programs left this one no processor",
            PauseCause::Stopped => "the program was stopped",
        }
    }
}

impl From<Pause> for Warning {
    fn from(pause: Pause) -> Warning {
        let seconds = |decimals| Figure::rounded(pause.ns as f64 / 1e9, decimals);
        let (times, percent) = (Figure::count(pause.times), Figure::rounded(pause.percent, 0));
        Warning::from(pause.cause.sentence()).then(if pause.times > 1 {
            Warning::of(" {} times, for {} % of the run ({} s)", [times, percent, seconds(2)])
        } else {
            Warning::of(" for {} s", [seconds(1)])
        })
    }
}

impl std::fmt::Display for Pause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Warning::from(*self).fmt(f)
    }
}

/// Sums over bios, from trace points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BlockTimes {
    pub bios: u64,
    /// When the block layer received them, modulo 2^64: only differences mean anything.
    pub queued_at_sum: u64,
    /// Time until the device driver received the first part of each.
    pub queue_ns: Nanos,
    /// Time from then until the device had completed all of it.
    pub device_ns: Nanos,
}

/// A stage in the life of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From the program to the block layer, including the wait at a throttle.
    Submit,
    /// Splitting, merging, sorting, waiting for a free request of the device.
    Queue,
    /// The device and its driver; without link and media if those are measured separately.
    Device,
    /// The link between the device and the computer.
    Link,
    Media,
    /// From the device until the program notices.
    Completion,
    /// The queue and the device together, if not measured separately.
    QueueAndDevice,
    /// Submission and completion together, if not measured separately.
    SubmitAndCompletion,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Stage::Submit => "submit",
            Stage::Queue => "queue",
            Stage::Device => "device",
            Stage::Link => "link",
            Stage::Media => "media",
            Stage::Completion => "completion",
            Stage::QueueAndDevice => "queue and device",
            Stage::SubmitAndCompletion => "submit and completion",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageTime {
    pub stage: Stage,
    pub mean_ns: f64,
    /// Share of a request's time, in percent.
    pub percent: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimesSource {
    /// The kernel's trace points, in a separate run.
    TracePoints,
    DeviceCounters,
}

/// Where a request's time goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestTimes {
    pub source: TimesSource,
    /// Number of requests measured.
    pub requests: u64,
    /// Device requests per request, if not 1. Above 1, requests were split and the time in the
    /// devices is a lower bound; below 1, they were merged and it is an upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_requests_per_request: Option<f64>,
    /// The stages in the order in which a request passes them.
    pub stages: Vec<StageTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Waits {
    pub waits: u64,
    /// Completions to wait for each time ([`crate::Reap`]): the maximum over streams.
    pub completions: u32,
    pub polled: bool,
}

/// The system's dirty pages, sampled every 50 ms while a part wrote and at its last write.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct DirtyUse {
    /// In percent of the threshold at which the kernel starts to throttle writers.
    pub max_percent: f64,
    /// Percentage of samples above the threshold, around which they oscillate.
    pub held_percent: f64,
}

/// Use of a control group's processor quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaUse {
    /// Periods in which the processes wanted a processor.
    pub periods: u64,
    /// Periods in which they used up the quota.
    pub throttled: u64,
    /// Over all processors.
    pub throttled_ns: Nanos,
}

/// Time that tasks waited for a resource (pressure stall information): `some` of them, or all that
/// were not idle (`full`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressureUse {
    pub cpu_some_ns: Nanos,
    /// Reclaim, swap and refaults.
    pub memory_some_ns: Nanos,
    pub memory_full_ns: Nanos,
    pub io_some_ns: Nanos,
    pub io_full_ns: Nanos,
}

/// By the computer's other users, from kernel counters.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Disturbance {
    pub quota: Option<QuotaUse>,
    /// Of this program's control group, or of the system for the root group.
    pub pressure: Option<PressureUse>,
    /// Kept busy by other programs.
    pub others_processors: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ParityUse {
    pub ns: Nanos,
    /// Bytes of input.
    pub bytes: u64,
}

/// One part of a run; processor time and block-layer bytes are the whole run's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub began: Nanos,
    /// From the program's start to the part's.
    pub since_start_ns: Nanos,
    /// Ready streams waited for the agreed start ([`crate::Start::At`]).
    pub waited_ns: Nanos,
    /// Time to the last completion.
    pub elapsed_ns: Nanos,
    /// After the last completion; `None` without [`crate::Access::sync_at_end`].
    pub sync_ns: Option<Nanos>,
    pub cpu: CpuTimes,
    /// Processor time to the last completion.
    pub process_ns: Option<Nanos>,
    /// Issuing threads were runnable but not scheduled, added up: other programs, a control group
    /// or a hypervisor had the processor.
    pub unserved_ns: Option<Nanos>,
    /// The syncing thread's, within [`Usage::sync_ns`].
    #[serde(default)]
    pub sync_unserved_ns: Option<Nanos>,
    /// While the part wrote through the page cache.
    pub dirty: Option<DirtyUse>,
    /// `None` if no device has counters.
    pub device: Option<DeviceUse>,
    /// `None` if each request is a separate call.
    pub waits: Option<Waits>,
    pub parity: Option<ParityUse>,
    /// Read and written by this process in the block layer; a cache served the rest.
    pub block_bytes: Option<(u64, u64)>,
    /// Counters that include requests of other parts; [`Usage::device`] is then `None`.
    pub shared_device: Option<DeviceUse>,
    /// Read and written on the same devices through the page cache.
    pub others_cached_bytes: [u64; 2],
    /// Read and written on the same devices past the page cache.
    pub others_direct_bytes: [u64; 2],
    /// Of a simulated machine, busiest first.
    pub resources: Vec<ResourceUse>,
    pub warnings: Vec<Warning>,
    pub paused: Option<Pause>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    pub disturbance: Disturbance,
    /// Of the program's threads, and of any thread: a throttle lets a kernel thread submit what it
    /// held back.
    pub block_times: Vec<BlockTimes>,
}

macro_rules! memory_kinds {
    ($($(#[$doc:meta])* $kind:ident => $name:literal,)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum MemoryKind {
            $($(#[$doc])* #[serde(rename = $name)] $kind,)+
        }

        impl MemoryKind {
            pub const ALL: &'static [MemoryKind] = &[$(MemoryKind::$kind),+];

            /// Returns the name in documents and simulated machines' descriptions.
            pub fn name(self) -> &'static str {
                match self {
                    $(MemoryKind::$kind => $name,)+
                }
            }
        }
    };
}

memory_kinds! {
    /// One thread's loads.
    Read => "read",
    /// One thread's stores.
    Write => "write",
    Copy => "copy",
    /// Reads of a file in memory, through the kernel.
    FileRead => "file in memory, read",
    /// Writes to a file in memory, through the kernel.
    FileWrite => "file in memory, write",
    /// A method of the 1997 study.
    UnrolledLoad => "unrolled double load to single destination",
    /// A method of the 1997 study.
    ReadMiss => "unrolled cache line read miss",
    /// A method of the 1997 study.
    UnrolledStore => "unrolled double store to single destination",
    /// A method of the 1997 study.
    WriteMiss => "unrolled cache line write miss",
}

/// Rates of one kind of memory access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    pub kind: MemoryKind,
    pub threads: u32,
    /// Rate of each repeat in bytes per second.
    pub rates_bytes_per_s: Vec<f64>,
}

impl MemoryUse {
    /// The mean of the repeats, in bytes per second.
    pub fn mean_bytes_per_s(&self) -> Option<f64> {
        let finite = || self.rates_bytes_per_s.iter().filter(|rate| rate.is_finite());
        let count = finite().count();
        (count > 0).then(|| finite().sum::<f64>() / count as f64)
    }
}
