//! What a run used: processor, device, cache.

use crate::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Processor time of one run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuTimes {
    /// User time of this process, all threads.
    pub user_ns: Nanos,
    /// System time of this process, all threads.
    pub system_ns: Nanos,
    /// Busy time of the whole machine, all processors, less what an idle machine shows. Kernel threads are in here alone.
    pub machine_ns: Nanos,
    /// Time that a hypervisor took away.
    pub steal_ns: Nanos,
    /// User-space instructions of the process, where counted.
    pub instructions_user: Option<u64>,
}

/// What one processor has done since the system started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessorTimes {
    /// Its number.
    pub processor: u32,
    /// In programs.
    pub user_ns: Nanos,
    /// In the kernel, interrupts included.
    pub system_ns: Nanos,
    /// With nothing to do, waiting for I/O included.
    pub idle_ns: Nanos,
}

/// What the devices under the target counted themselves.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// Reads that the devices completed.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Writes that the devices completed.
    pub writes: u64,
    /// Bytes of them.
    pub write_bytes: u64,
    /// Requests merged before they reached a device.
    pub merges: u64,
    /// Time with at least one request in flight, mean over the devices.
    pub busy_ns: Nanos,
    /// Sum over requests of their time at the device: divided by the run's time it is the mean depth at the device.
    pub weighted_ns: Nanos,
    /// Cache flushes that the devices completed.
    pub flushes: u64,
    /// Part of `weighted_ns` before a device took the request, where the machine knows it: a simulated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ns: Option<Nanos>,
    /// Time in which a link, a bus or a network worked for these requests, where the machine knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_ns: Option<Nanos>,
    /// Time in which the media worked, where the machine knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_ns: Option<Nanos>,
}

/// What kind of part of a machine works on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// The processors together.
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
    /// What stores the data: platters and heads.
    Media,
    /// A device whose parts are not told apart, or its electronics.
    Device,
    /// A quota that is set from outside.
    Throttle,
}

/// How busy a part of a machine was in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ResourceKind,
    /// Share of the run in which it worked, in percent; of several of its kind, that of the busiest.
    pub busy_percent: f64,
    /// Of a bus: what each of its phases took of the time in which it worked, in the order in which a command passes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseUse>,
}

/// A phase of a bus, as a bus analyser tells them apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseUse {
    /// Its name.
    pub name: String,
    /// Its share of the time in which the bus was not free, in percent.
    pub percent: f64,
}

/// Time within a run in which the program did not run at all: what was measured then is not the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pause {
    /// How long, in all.
    pub ns: Nanos,
    /// How often.
    pub times: u64,
    /// Its share of the run, in percent.
    pub percent: f64,
    /// Who had it, as the beginning of a sentence that goes on with `for 5.0 s`.
    pub cause: &'static str,
}

impl std::fmt::Display for Pause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.ns as f64 / 1e9;
        if self.times > 1 {
            return write!(
                f,
                "{} {} times, for {:.0} % of the run ({seconds:.2} s)",
                self.cause, self.times, self.percent
            );
        }
        write!(f, "{} for {seconds:.1} s", self.cause)
    }
}

/// When the block layer had requests during a run, by its trace points: sums over its own requests (bios), on the machine's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockTimes {
    /// How many there were.
    pub bios: u64,
    /// Sum of the times at which the block layer got them, modulo 2^64: only its difference to another such sum means anything.
    pub queued_at_sum: u64,
    /// From there until the device driver got the first part of each.
    pub queue_ns: Nanos,
    /// From there until the device had done all of it.
    pub device_ns: Nanos,
}

/// A stage of a request's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From the program to the block layer, the wait at a throttle included.
    Submit,
    /// In the block layer: split, merged, sorted, waiting for a free request of the device.
    Queue,
    /// At the device and its driver; without link and media where those are told apart.
    Device,
    /// On the link between the device and the computer.
    Link,
    /// At the platters.
    Media,
    /// From the device until the program knows.
    Completion,
    /// Queue and device, where nothing tells them apart.
    QueueAndDevice,
    /// Submit and completion, where nothing tells them apart.
    SubmitAndCompletion,
}

impl Stage {
    /// In a word or three.
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

/// A stage with the time that requests spend in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageTime {
    /// The stage.
    pub stage: Stage,
    /// Mean time.
    pub mean_ns: f64,
    /// Its share of a request's time, in percent.
    pub percent: f64,
}

/// Who told the times of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimesSource {
    /// The kernel's trace points, in a run of their own.
    TracePoints,
    /// The devices' counters.
    DeviceCounters,
}

/// Where the time of a request goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestTimes {
    /// Who told it.
    pub source: TimesSource,
    /// Of how many requests.
    pub requests: u64,
    /// How many of the devices' requests one of the program's is, where that is not one. More: each was split, and the time in the devices
    /// is that of a part, the least that the whole took. Fewer: they were merged, and it is that of what they became, the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_requests_per_request: Option<f64>,
    /// The stages in the order in which a request passes them.
    pub stages: Vec<StageTime>,
}

/// How often streams slept until requests completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// How often, over all streams, the whole run.
    pub waits: u64,
    /// For how many completions each: what [`crate::Reap`] asked or, of several streams, the most that was learned.
    pub completions: u32,
    /// Whether streams polled before they slept: what [`crate::Reap`] asked, or what a stream learned.
    pub polled: bool,
}

/// Dirty pages of the whole system while a part wrote, seen every 50 ms and when its last write returned.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DirtyUse {
    /// The most, in percent of where the kernel begins to hold writers back to the rate of the write-back.
    pub most_percent: f64,
    /// In how many of all looks, in percent, there were so many that writers were held; they swing around that number.
    pub held_percent: f64,
}

/// The effect of a control group's processor quota on the processes in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUse {
    /// Periods in which they wanted a processor.
    pub periods: u64,
    /// Periods in which they used all of the quota and were held until the next one.
    pub throttled: u64,
    /// For how long they were held, all processors together.
    pub throttled_ns: Nanos,
}

/// For how long tasks waited for a resource, by the kernel's pressure stall information: `some` of them, or all that were not idle (`full`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PressureUse {
    /// Some waited for a processor.
    pub cpu_some_ns: Nanos,
    /// Some waited for memory: reclaim, swap, refaults.
    pub memory_some_ns: Nanos,
    /// All did.
    pub memory_full_ns: Nanos,
    /// Some waited for storage.
    pub io_some_ns: Nanos,
    /// All did.
    pub io_full_ns: Nanos,
}

/// Other users of the computer while a run was made, by the kernel's counts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Disturbance {
    /// The effect of a processor quota; none without a quota.
    pub quota: Option<QuotaUse>,
    /// Pressure of this program's control group, or of the system if it is in the root group; none if the kernel does not count it.
    pub pressure: Option<PressureUse>,
    /// Processors that other programs kept busy.
    pub others_processors: f64,
}

/// What streams computed of parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParityUse {
    /// Time that it took.
    pub ns: Nanos,
    /// Bytes that it was computed from.
    pub bytes: u64,
}

/// What one part of a run used, processor time and block-layer bytes of the whole run included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// When the sources began, on the machine's clock.
    pub began: Nanos,
    /// The same since the program began.
    pub since_start_ns: Nanos,
    /// From the beginning to the last completion.
    pub elapsed_ns: Nanos,
    /// From the last completion to stable storage, where [`crate::Access::sync_at_end`] asked for it.
    pub sync_ns: Option<Nanos>,
    /// Processor time.
    pub cpu: CpuTimes,
    /// Processor time of this process, all threads, until the last completion: what came after it, a final synchronisation, is not
    /// in it. `None` where that is not told apart.
    pub process_ns: Option<Nanos>,
    /// Time in which the threads that issue requests could have run and had no processor, all together: other programs had it, or a
    /// control group or a hypervisor took it. `None` where that is not counted.
    pub unserved_ns: Option<Nanos>,
    /// Dirty pages while it wrote through the page cache; none where it did not, or where the system does not tell.
    pub dirty: Option<DirtyUse>,
    /// The devices' own counters; `None` where nothing below the target counts.
    pub device: Option<DeviceUse>,
    /// How its streams waited; none where each request is a call of its own, or nothing counts.
    pub waits: Option<Waits>,
    /// What its streams computed of parity; none where they computed none.
    pub parity: Option<ParityUse>,
    /// Bytes that this process asked of the block layer itself (read, write): less than asked means that a cache served.
    pub block_bytes: Option<(u64, u64)>,
    /// The counters of the devices if those count what other parts of the run asked, too, and [`Usage::device`] is none for that.
    pub shared_device: Option<DeviceUse>,
    /// Bytes (read, written) that other parts of the run asked of the same devices through the page cache.
    pub others_cached_bytes: [u64; 2],
    /// And past it.
    pub others_direct_bytes: [u64; 2],
    /// The parts of the machine that count their own busy time, the busiest first: those of a simulated machine.
    pub resources: Vec<ResourceUse>,
    /// Warnings about this run, in short sentences.
    pub warnings: Vec<String>,
    /// Time in which the program did not run, if there was any.
    pub paused: Option<Pause>,
    /// Other users of the computer.
    pub disturbance: Disturbance,
    /// When the block layer had requests, where that was asked and can be seen: those of the program's threads, and those of anybody. A
    /// throttle lets a thread of the kernel's send what it held back.
    pub block_times: Vec<BlockTimes>,
}

/// One way of moving memory, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// What was done: `read`, `write`, `copy`.
    pub kind: String,
    /// By how many threads.
    pub threads: u32,
    /// Rate of each repeat in bytes per second.
    pub rates_bytes_per_s: Vec<f64>,
}
