//! The limit of a rate.

mod cause;
mod sentences;

pub use cause::{BusyPart, Cause, ReadAhead, WriteBackWait};

use crate::words::words;
use machine::LayerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::OpKind;

words! {
    /// The resource that limits a rate.
    Bottleneck {
        /// Platters and heads, or flash.
        Media = "media",
        /// A saturated device.
        Device = "device",
        /// Requests per second of the device, regardless of size.
        DeviceIops = "device_iops",
        /// The time of each request: nothing is saturated.
        Latency = "latency",
        /// A disk bus that several drives share.
        Bus = "bus",
        /// The adapter between a disk bus and the I/O bus.
        Adapter = "adapter",
        /// The I/O bus.
        Pci = "pci",
        /// A link between two ends.
        Link = "link",
        /// A limit set from outside.
        Throttle = "throttle",
        /// The issuing thread, or its serial work per request.
        Thread = "thread",
        /// All processors, the allowed share, or the serial work per request of the only one.
        Processor = "processor",
        /// Memory: files are kept there, or copying dominates each request's time.
        Memory = "memory",
        /// The file system's own work, such as its log or allocation.
        FileSystem = "file_system",
        /// Waiting until data are on stable storage.
        Flush = "flush",
        /// Too little read-ahead by the page cache.
        ReadAhead = "read_ahead",
        /// The network to the data.
        Network = "network",
        /// A cache smaller than the data that are read again and again.
        CacheSize = "cache_size",
        /// The recorded program's own work between its requests.
        Program = "program",
        /// The load generator is at its limit.
        Generator = "generator",
        /// A limit that was not identified.
        Unknown = "unknown",
    }
}

words! {
    /// The rate that a verdict is about.
    LimitOf {
        /// The best rate of the operation.
        Peak = "peak",
        /// The rate of a plain program: through the page cache, one request at a time.
        Plain = "plain",
        /// The best rate of random requests of 4 KiB.
        Random = "random",
        /// The rate of a recorded program, for one role of its files.
        Recorded = "recorded",
    }
}

impl Bottleneck {
    /// Of a saturated layer.
    pub fn of_layer(kind: LayerKind) -> Bottleneck {
        match kind {
            LayerKind::Throttle => Bottleneck::Throttle,
            LayerKind::Link => Bottleneck::Link,
            LayerKind::Adapter => Bottleneck::Adapter,
            LayerKind::Bus => Bottleneck::Bus,
            LayerKind::Pci => Bottleneck::Pci,
            LayerKind::MemoryBus => Bottleneck::Memory,
            LayerKind::Network => Bottleneck::Network,
            _ => Bottleneck::Device,
        }
    }

    /// To follow `the`.
    pub fn words(self) -> &'static str {
        match self {
            Bottleneck::DeviceIops => "requests per second of the device",
            Bottleneck::FileSystem => "file system",
            Bottleneck::ReadAhead => "read-ahead of the page cache",
            Bottleneck::Pci => "I/O bus",
            Bottleneck::Latency => "time of each request",
            Bottleneck::CacheSize => "size of the cache",
            other => other.name(),
        }
    }

    fn place(self) -> &'static str {
        match self {
            Bottleneck::Network => "the network, or the server behind it",
            Bottleneck::FileSystem => "the file system, or the program that serves it",
            Bottleneck::Media => "the media",
            _ => "the device",
        }
    }
}

/// The limit of a rate, with its evidence and the trials that could have refuted it.
///
/// The texts are made from the values ([`Limit::with_sentences`]); a document of an earlier version
/// has only the texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    #[serde(default = "Limit::of_a_peak")]
    pub of: LimitOf,
    pub op: OpKind,
    #[serde(default)]
    pub request_bytes: Option<u32>,
    /// Index of the point whose rate is limited.
    #[serde(default)]
    pub point: Option<usize>,
    /// Rate of that point in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_s: Option<f64>,
    /// The limiting resource.
    pub what: Bottleneck,
    /// The evidence, as a value with figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The limit's effect on a plain write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_write: Option<PlainWrite>,
    /// A sentence with the evidence.
    pub sentence: String,
    /// Other candidates, and why they are not the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    /// `excluded` with figures, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<Exclusion>,
    /// Trials that could have refuted the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<LimitTrial>,
    /// How to check the limit, if no trial decided: `to check, add a thread: the rate should rise`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_refute: Option<String>,
    /// `would_refute` as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refutation: Option<Refutation>,
}

impl Limit {
    /// Without trials, point and sentences.
    pub fn new(of: LimitOf, op: OpKind, what: Bottleneck, cause: Cause) -> Limit {
        Limit {
            of,
            op,
            request_bytes: None,
            point: None,
            throughput_bytes_per_s: None,
            what,
            cause: Some(cause),
            plain_write: None,
            sentence: String::new(),
            excluded: Vec::new(),
            exclusions: Vec::new(),
            trials: Vec::new(),
            would_refute: None,
            refutation: None,
        }
    }

    fn of_a_peak() -> LimitOf {
        LimitOf::Peak
    }
}

/// How a limit below the page cache holds a plain write.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PlainWrite {
    /// The writer waits at the kernel's limit of dirty pages.
    Held {
        #[serde(flatten)]
        wait: WriteBackWait,
    },
    /// The page cache takes the writes faster, as long as few pages are dirty.
    Absorbed {
        /// The rate until the last write returns.
        returned_bytes_per_s: f64,
        dirty_percent: f64,
    },
}

/// A candidate that is not the limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exclusion {
    pub what: Bottleneck,
    /// The figure that excludes the candidate.
    pub by: ExcludedBy,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExcludedBy {
    /// The narrowest layer has more to give.
    Advertised { layer: String, percent: f64, admits_bytes_per_s: f64 },
    /// Processors, thread, generator or device are not used up; requests in the device, if it is
    /// the device.
    Use { percent: f64, mean_depth: Option<f64> },
    /// A trial contradicts the candidate.
    Trial { change: LimitChange, iops_ratio: f64 },
}

/// A trial that separates one bottleneck from another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitTrial {
    /// The change, such as `twice the requests outstanding`.
    pub change: String,
    /// `change` as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<LimitChange>,
    /// Index of the point before the change.
    pub before: usize,
    /// Index of the point with the change; absent if time ran out.
    pub after: Option<usize>,
    /// Requests per second after the change over before.
    pub iops_ratio: Option<f64>,
    pub iops_ratio_interval_95: Option<[f64; 2]>,
    /// The conclusion in a few words.
    pub outcome: String,
    /// `outcome` as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
    /// The limit's sentence reports this trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tests_verdict: bool,
}

/// The ratio of rates from which a change gains.
pub const GAIN: f64 = 1.1;

/// Rates within this share of one another are equal.
pub const SAME: f64 = 0.1;

/// Of twice the requests outstanding, if each only waits its time.
pub const DEEPER_GAIN: f64 = 2.0;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LimitChange {
    /// More requests outstanding.
    Deeper {
        from: u32,
        to: u32,
    },
    Wider,
    Resized {
        from_bytes: u32,
        to_bytes: u32,
    },
    /// The sequential hint.
    Hinted,
    /// The device below the file system.
    Below {
        op: OpKind,
        device: String,
    },
    /// Two files instead of one.
    TwoFiles,
}

words! {
    /// The conclusion from a trial.
    Meaning {
        /// The interval allows both conclusions.
        Undecided = "undecided",
        /// The heads of a disk seek between two threads.
        HeadsMove = "heads_move",
        /// More requests gain nothing.
        NotLatency = "not_latency",
        /// Another thread gains nothing.
        NotThread = "not_thread",
        /// The hint gains nothing.
        NotReadAhead = "not_read_ahead",
        /// Another size changes the request rate.
        NotNumber = "not_number",
        /// As many requests of another size: their number is the limit.
        NumberIsLimit = "number_is_limit",
        /// As many requests of another size: the size takes next to no time.
        SizeIsFree = "size_is_free",
        /// As many requests of another size: each costs the processor the same.
        SameProcessorTime = "same_processor_time",
        /// As many requests of another size: the size matters little.
        SizeMattersLittle = "size_matters_little",
        /// More requests gain, so latency was a limit.
        Latency = "latency",
        /// More requests gain, as each becomes cheaper.
        DeeperIsCheaper = "deeper_is_cheaper",
        /// Another thread gains, so the thread was a limit.
        Thread = "thread",
        /// Another thread gains, so latency was a limit.
        LatencyOfOne = "latency_of_one",
        /// Another thread has read-ahead of its own.
        ReadAheadEach = "read_ahead_each",
        /// Two threads write more before the flush.
        MoreBeforeFlush = "more_before_flush",
        /// One thread works while another waits.
        WorkWhileWaiting = "work_while_waiting",
        /// The hint gains, so read-ahead was a limit.
        ReadAhead = "read_ahead",
        /// The hint gains, so read-ahead was a part of the limit.
        PartlyReadAhead = "partly_read_ahead",
        /// The device itself is faster.
        FileSystem = "file_system",
        /// The device itself is as fast.
        NotFileSystem = "not_file_system",
        /// Two files are faster.
        OneFile = "one_file",
        /// Two files are as fast as one.
        NotOneFile = "not_one_file",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refutation {
    pub change: CheckChange,
    /// The effect to expect if the limit is right.
    pub expected: Expected,
    /// The change was tried, and its interval is too wide.
    pub longer: bool,
}

words! {
    /// A change that would refute a limit.
    CheckChange {
        DoubleDepth = "double_depth",
        AddThread = "add_thread",
        ChangeSize = "change_size",
        ReadAhead = "read_ahead",
        LeaveOutFlush = "leave_out_flush",
        /// Another file system, since this one is in memory.
        OtherFileSystem = "other_file_system",
        /// Direct requests, which copy nothing.
        DirectRequests = "direct_requests",
        /// The device itself.
        DeviceItself = "device_itself",
        /// Twice the threads.
        DoubleThreads = "double_threads",
        /// A thread with a file of its own to write and flush.
        ThreadWithFile = "thread_with_file",
        /// Several direct requests outstanding.
        SeveralOutstanding = "several_outstanding",
    }
}

words! {
    /// The effect of a change to expect if a limit is right.
    Expected {
        Gain = "gain",
        NoGain = "no_gain",
        Loss = "loss",
        SameNumber = "same_number",
    }
}
