use crate::{Figure, Nanos, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuTimes {
    /// This process, all threads.
    pub user_ns: Nanos,
    /// This process, all threads.
    pub system_ns: Nanos,
    /// All processors, minus an idle machine. Only this figure includes kernel threads.
    pub machine_ns: Nanos,
    /// By the hypervisor.
    pub steal_ns: Nanos,
    /// Of the process, if counted.
    pub instructions_user: Option<u64>,
}

/// Since the system started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessorTimes {
    pub processor: u32,
    pub user_ns: Nanos,
    /// With interrupts.
    pub system_ns: Nanos,
    /// With waiting for I/O.
    pub idle_ns: Nanos,
}

/// Since the system started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkLink {
    pub name: String,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    /// In each direction.
    pub speed_bytes_per_s: u64,
}

/// Counters of the devices under the target.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// Completed.
    pub reads: u64,
    pub read_bytes: u64,
    /// Completed.
    pub writes: u64,
    pub write_bytes: u64,
    /// Before they reached a device.
    pub merges: u64,
    /// With at least one request in flight, mean over the devices.
    pub busy_ns: Nanos,
    /// Requests' time at the device, added up; over the run's time it is the mean depth at the
    /// device.
    pub weighted_ns: Nanos,
    /// Of the cache, completed.
    pub flushes: u64,
    /// Part of `weighted_ns` before a device accepted the request; only known on a simulated
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ns: Option<Nanos>,
    /// Of a link, a bus or a network with these requests, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_ns: Option<Nanos>,
    /// Of the media, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_ns: Option<Nanos>,
}

/// A machine part that serves requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// All together.
    Processor,
    /// Between all adapters and memory.
    Pci,
    /// Between disk buses and the I/O bus.
    Adapter,
    /// Of several drives.
    Bus,
    /// Between one drive and its adapter.
    Link,
    /// To a volume of another computer.
    Network,
    /// Platters and heads.
    Media,
    /// Or its electronics.
    Device,
    /// A configured limit.
    Throttle,
}

/// Busy time of one part of a machine in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    pub name: String,
    pub kind: ResourceKind,
    /// Of the run; for several of a kind, the busiest.
    pub busy_percent: f64,
    /// Of a bus: shares of the busy time, in the order of a command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseUse>,
}

/// As on a bus analyser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseUse {
    pub name: String,
    /// Of the time that the bus was not free.
    pub percent: f64,
}

/// The program was stopped; not due to the target.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    pub ns: Nanos,
    pub times: u64,
    /// Of the run.
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
    /// Continues with `for 5.0 s`.
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

/// From trace points: sums over bios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BlockTimes {
    pub bios: u64,
    /// When the block layer received them, modulo 2^64: only differences mean anything.
    pub queued_at_sum: u64,
    /// Until the device driver received the first part of each.
    pub queue_ns: Nanos,
    /// From then until the device had completed all of it.
    pub device_ns: Nanos,
}

/// Of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// To the block layer, with the wait at a throttle.
    Submit,
    /// Splitting, merging, sorting, waiting for a free request of the device.
    Queue,
    /// And its driver; without link and media if those are measured separately.
    Device,
    /// Between device and computer.
    Link,
    Media,
    /// From the device until the program notices.
    Completion,
    /// If not measured separately.
    QueueAndDevice,
    /// If not measured separately.
    SubmitAndCompletion,
}

impl Stage {
    /// One to three words.
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
    /// Of a request's time.
    pub percent: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimesSource {
    /// In a separate run.
    TracePoints,
    DeviceCounters,
}

/// Where a request's time goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestTimes {
    pub source: TimesSource,
    /// Measured.
    pub requests: u64,
    /// If not one. More: each was split, and the time in the devices, of a part, is a lower bound.
    /// Less: they were merged, and it is an upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_requests_per_request: Option<f64>,
    /// In the order in which a request passes them.
    pub stages: Vec<StageTime>,
}

/// How often streams slept to wait for completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Waits {
    /// Over all streams in the whole run.
    pub waits: u64,
    /// Each time ([`crate::Reap`]); the maximum over streams.
    pub completions: u32,
    /// As requested or as learned.
    pub polled: bool,
}

/// Of the whole system while a part wrote, sampled every 50 ms and at its last write.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct DirtyUse {
    /// Of the threshold at which the kernel starts to throttle writers.
    pub max_percent: f64,
    /// Samples above the threshold, around which they oscillate.
    pub held_percent: f64,
}

/// Of a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaUse {
    /// In which the processes wanted a processor.
    pub periods: u64,
    /// In which they used up the quota.
    pub throttled: u64,
    /// Over all processors.
    pub throttled_ns: Nanos,
}

/// Time that tasks waited for a resource (pressure stall information): `some` of them, or all that
/// were not idle (`full`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressureUse {
    pub cpu_some_ns: Nanos,
    /// Reclaim, swap, refaults.
    pub memory_some_ns: Nanos,
    pub memory_full_ns: Nanos,
    pub io_some_ns: Nanos,
    pub io_full_ns: Nanos,
}

/// By other users of the computer during a run, from kernel counters.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Disturbance {
    pub quota: Option<QuotaUse>,
    /// Of this program's control group, or of the system for the root group.
    pub pressure: Option<PressureUse>,
    /// Kept busy by other programs.
    pub others_processors: f64,
}

/// Computed in streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ParityUse {
    pub ns: Nanos,
    /// Input.
    pub bytes: u64,
}

/// Of one part of a run; processor time and block-layer bytes are those of the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// On the machine's clock.
    pub began: Nanos,
    /// From the start of the program.
    pub since_start_ns: Nanos,
    /// To the last completion.
    pub elapsed_ns: Nanos,
    /// After the last completion, if [`crate::Access::sync_at_end`] was set.
    pub sync_ns: Option<Nanos>,
    pub cpu: CpuTimes,
    /// Until the last completion.
    pub process_ns: Option<Nanos>,
    /// The issuing threads were runnable but not scheduled, added up: other programs, a control
    /// group or a hypervisor had the processor.
    pub unserved_ns: Option<Nanos>,
    /// In [`Usage::sync_ns`], of the thread that syncs.
    #[serde(default)]
    pub sync_unserved_ns: Option<Nanos>,
    /// While the part wrote through the page cache.
    pub dirty: Option<DirtyUse>,
    /// `None` if no device under the target has counters.
    pub device: Option<DeviceUse>,
    /// `None` if each request is a separate call.
    pub waits: Option<Waits>,
    pub parity: Option<ParityUse>,
    /// Read, written by this process in the block layer; a cache served the rest.
    pub block_bytes: Option<(u64, u64)>,
    /// With requests of other parts; [`Usage::device`] is then `None`.
    pub shared_device: Option<DeviceUse>,
    /// Read, written by other parts on the same devices through the page cache.
    pub others_cached_bytes: [u64; 2],
    /// Past the page cache.
    pub others_direct_bytes: [u64; 2],
    /// Of a simulated machine, busiest first.
    pub resources: Vec<ResourceUse>,
    pub warnings: Vec<Warning>,
    pub paused: Option<Pause>,
    /// By the user ([`crate::OnInterrupt::EndRun`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    pub disturbance: Disturbance,
    /// Of the program's threads, and of any thread, because a throttle lets a kernel thread submit
    /// what it held back.
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

            /// As in documents and descriptions of simulated machines.
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
    /// Through the kernel.
    FileRead => "file in memory, read",
    /// Through the kernel.
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

/// One kind of access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    pub kind: MemoryKind,
    pub threads: u32,
    /// Of each repeat.
    pub rates_bytes_per_s: Vec<f64>,
}
