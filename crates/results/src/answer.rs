//! What a study found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use workload::OpKind;

/// An enum of words that a document holds.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// What a word of a document means.
            pub fn named(word: &str) -> Option<$name> {
                [$($name::$variant,)+].into_iter().find(|one| one.name() == word)
            }

            /// The word in the document.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

words! {
    /// What is varied to find a half-power point.
    Varied {
        /// The request size, in bytes.
        RequestBytes = "request_bytes",
        /// The requests outstanding over all streams.
        Depth = "depth",
        /// The chunk of a stripe, in bytes.
        ChunkBytes = "chunk_bytes",
    }
}

words! {
    /// Where the peak is from of which a half-power point is half.
    PeakSource {
        /// The best rate of the study.
        Measured = "measured",
        /// The rate that a layer below advertises.
        Advertised = "advertised",
    }
}

words! {
    /// What limits a rate: the part that the next byte waits for.
    Bottleneck {
        /// Platters and heads, or flash.
        Media = "media",
        /// A device that is saturated, whatever is inside it.
        Device = "device",
        /// The requests per second of a device, whatever their size.
        DeviceIops = "device_iops",
        /// The time of each request: nothing is saturated.
        Latency = "latency",
        /// A disk bus that several drives share.
        Bus = "bus",
        /// The adapter between a disk bus and the I/O bus.
        Adapter = "adapter",
        /// The I/O bus between adapters and memory.
        Pci = "pci",
        /// A link between two ends.
        Link = "link",
        /// A limit set from outside.
        Throttle = "throttle",
        /// The one thread that issues requests, or what it does for each of them made one after the other.
        Thread = "thread",
        /// All processors, the share of them that is allowed, or what the only one does for each request made one after the other.
        Processor = "processor",
        /// Memory: the file system keeps its files there, or copying takes most of each request's time.
        Memory = "memory",
        /// The file system's own work: its log, its allocation.
        FileSystem = "file_system",
        /// Waiting until data are on stable storage.
        Flush = "flush",
        /// The page cache reads too little ahead.
        ReadAhead = "read_ahead",
        /// The network to where the data are.
        Network = "network",
        /// The program that issues requests could issue no more.
        Generator = "generator",
        /// It could not be told.
        Unknown = "unknown",
    }
}

words! {
    /// Which rate a verdict is about.
    LimitOf {
        /// The best rate of the operation.
        Peak = "peak",
        /// What a plain program gets: through the page cache, one request at a time.
        Plain = "plain",
        /// The best rate of random requests of 4 KiB.
        Random = "random",
    }
}

words! {
    /// The share of the peak that an advice reaches.
    Goal {
        /// Half of it.
        Half = "half_of_peak",
        /// Nearly all of it.
        NinetyPercent = "90_percent_of_peak",
    }
}

impl Goal {
    /// As a share of the peak.
    pub fn share(self) -> f64 {
        match self {
            Goal::Half => 0.5,
            Goal::NinetyPercent => 0.9,
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Goal::Half => "half of the peak",
            Goal::NinetyPercent => "90 % of the peak",
        }
    }
}

words! {
    /// How requests were made whose processor cost is modelled.
    CostMode {
        /// Reads past the page cache.
        DirectRead = "direct read",
        /// Writes past the page cache.
        DirectWrite = "direct write",
        /// Reads of a file in the page cache.
        BufferedRead = "buffered read",
        /// Writes to a file in the page cache.
        BufferedWrite = "buffered write",
    }
}

words! {
    /// The processor time that is counted.
    CostScope {
        /// User and system time of the process.
        Process = "process",
        /// Busy time of the whole machine: kernel threads too.
        Machine = "machine",
    }
}

words! {
    /// Single requests whose service time is modelled.
    ServiceMode {
        /// Sequential direct reads.
        DirectRead = "direct read",
        /// Sequential direct writes.
        DirectWrite = "direct write",
        /// Direct writes, each on stable storage before the next.
        WriteThrough = "direct write, write-through",
        /// A direct read of the block that was read before.
        SameBlock = "the same block again",
        /// A direct read of the next block after a pause: what the device reads ahead.
        NextBlock = "the next block after a pause",
        /// A direct read of a block that the device has not seen.
        Miss = "a miss",
    }
}

/// What the study found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Why its numbers should not be trusted, the gravest first; empty where they can be.
    pub doubts: Vec<String>,
    /// The best rates: reading, then writing (absent where the target was only read).
    pub peaks: Vec<Peak>,
    /// What a plain program gets: through the page cache, one request at a time. The larger requests first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain: Vec<PlainRate>,
    /// What limits the peaks, what a plain program gets, and small random requests.
    pub limits: Vec<Limit>,
    /// Half-power points.
    pub half_power: Vec<HalfPower>,
    /// Processor cost by request and byte.
    pub costs: Vec<CostModel>,
    /// Service time by request size.
    pub service_times: Vec<ServiceModel>,
    /// What is worth changing: first what a plain program would see, the cheapest first.
    pub findings: Vec<Finding>,
    /// What a simulated machine would do with a part more: predictions, not measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Predicted>,
    /// Gains that were not sure: their interval holds no change, or there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unproven: Vec<String>,
    /// The published rules for sequential I/O, each held or broken here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checklist: Vec<Rule>,
    /// What the budget left out, in a sentence each.
    pub left_out: Vec<String>,
}

/// The best rate of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// Read or write.
    pub op: OpKind,
    /// Median rate.
    pub throughput_bytes_per_s: f64,
    /// Its 95 % interval.
    pub interval_95: Option<[f64; 2]>,
    /// The point.
    pub point: usize,
    /// How to get it, as the options of `halfpower run`.
    pub settings: String,
    /// The rate that a layer below advertises, and its name.
    pub advertised: Option<Advertised>,
}

/// What a plain program gets, and how much of the peak that is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlainRate {
    /// Read or write.
    pub op: OpKind,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Its rate; of writes with the flush at the end.
    pub throughput_bytes_per_s: f64,
    /// Its 95 % interval.
    pub interval_95: Option<[f64; 2]>,
    /// The rate over that of the peak: 1 is all of it.
    pub share_of_peak: Option<f64>,
    /// What it reaches without any change; absent where that is less than half of the peak.
    pub reaches: Option<Goal>,
    /// The point.
    pub point: usize,
}

/// A rate on the box.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advertised {
    /// Of which layer.
    pub layer: String,
    /// In bytes per second.
    pub throughput_bytes_per_s: f64,
}

/// What limits a rate, how one knows, and what was tried to refute it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// Which rate.
    #[serde(default = "Limit::of_a_peak")]
    pub of: LimitOf,
    /// Read or write.
    pub op: OpKind,
    /// Bytes of a request.
    #[serde(default)]
    pub request_bytes: Option<u32>,
    /// The point with that rate.
    #[serde(default)]
    pub point: Option<usize>,
    /// What limits it.
    pub what: Bottleneck,
    /// The sentence with its evidence.
    pub sentence: String,
    /// What else could have limited it, and why it does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    /// The changes that would have refuted it, with what came of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<LimitTrial>,
    /// The experiment that would refute it, where none was made that decided: `to check, add a thread: the rate should rise`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_refute: Option<String>,
}

impl Limit {
    /// What every limit was before there were others.
    fn of_a_peak() -> LimitOf {
        LimitOf::Peak
    }
}

/// One change to a workload that tells one bottleneck from another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitTrial {
    /// What was changed: `twice the requests outstanding`.
    pub change: String,
    /// The points before and after; the second is absent where the time was up.
    pub before: usize,
    /// The point with the change.
    pub after: Option<usize>,
    /// Requests per second after over before.
    pub iops_ratio: Option<f64>,
    /// Its 95 % interval.
    pub iops_ratio_interval_95: Option<[f64; 2]>,
    /// What follows, in a few words.
    pub outcome: String,
}

/// Processor cost = per request + per byte x size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostModel {
    /// How the requests were made.
    pub mode: CostMode,
    /// Of the process or of the whole machine.
    pub whose: CostScope,
    /// Cost of a request whatever its size, in ns.
    pub ns_per_request: f64,
    /// Its 95 % interval.
    pub ns_per_request_interval_95: [f64; 2],
    /// Cost of a byte, in ns.
    pub ns_per_byte: f64,
    /// Its 95 % interval.
    pub ns_per_byte_interval_95: [f64; 2],
    /// Root mean square of the relative residuals.
    pub rms_residual: f64,
    /// User-space instructions a request whatever its size, where they were counted.
    pub instructions_per_request: Option<f64>,
    /// User-space instructions a byte.
    pub instructions_per_byte: Option<f64>,
}

/// Service time = fixed + size / rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceModel {
    /// Which requests.
    pub mode: ServiceMode,
    /// The sizes that obey it in bytes, where smaller and larger ones obey different laws: what a cache had ready and what it had not, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes_bytes: Option<[f64; 2]>,
    /// The part that no request escapes, in ns; less than nothing where a part of each request was ready before it was asked for.
    pub fixed_ns: f64,
    /// Its 95 % interval.
    pub fixed_ns_interval_95: [f64; 2],
    /// The rate of the rest; absent where the time does not rise with the size.
    pub rate_bytes_per_s: Option<f64>,
    /// Its 95 % interval.
    pub rate_interval_95: Option<[f64; 2]>,
    /// Root mean square of the relative residuals.
    pub rms_residual: f64,
    /// Greatest relative residual.
    pub max_residual: f64,
    /// Request size in bytes at which the model bends, if it does.
    pub knee_bytes: Option<f64>,
}

/// A setting worth changing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What to do, in a few words.
    pub title: String,
    /// How much faster: 1.8 is 80 % more.
    pub gain: f64,
    /// Its 95 % interval.
    pub gain_interval_95: Option<[f64; 2]>,
    /// The sentence with both figures.
    pub evidence: String,
    /// The setting to use.
    pub setting: String,
    /// A command that shows the difference again.
    pub check: String,
    /// The points compared: before, after.
    pub points: [usize; 2],
    /// Processor time of the process for a MiB in ns: before, after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_mib: Option<[f64; 2]>,
    /// 99th percentile of the latency in ns: before, after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<[u64; 2]>,
    /// What a plain program would see: the point before is what such a program does.
    #[serde(default)]
    pub from_plain: bool,
    /// What a plain program reaches with it, in the fewest changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaches: Option<Goal>,
    /// What each change does alone, where there are several and each was measured: they lead from the point before to the point after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<FindingStep>,
}

/// One of several changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingStep {
    /// What is changed: `8 outstanding`.
    pub change: String,
    /// The point after it.
    pub point: usize,
    /// How many times the rate before this change.
    pub gain: f64,
    /// Its 95 % interval.
    pub gain_interval_95: Option<[f64; 2]>,
    /// Processor time of the process for a MiB in ns, after it.
    pub cpu_ns_per_mib: Option<f64>,
    /// 99th percentile of the latency in ns, after it.
    pub p99_ns: Option<u64>,
}

/// What a simulated machine would do with something changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// What is changed: `one more bus`.
    pub change: String,
    /// The same as a setting of the machine.
    pub settings: String,
    /// Read or write.
    pub op: OpKind,
    /// The rate with it, in bytes per second.
    pub throughput_bytes_per_s: f64,
    /// How many times the rate without it.
    pub gain: f64,
    /// The busiest part with it; `latency` where none is busy.
    pub then: String,
    /// A command that predicts it again.
    pub check: String,
}

words! {
    /// Whether a rule holds on this machine.
    RuleState {
        /// True here: the machine keeps it, or following it pays.
        Held = "held",
        /// Not so here: the machine is set against it, or following it does not pay.
        Broken = "broken",
        /// There is nothing here that it could be about, or it was not measured.
        NotApplicable = "not_applicable",
    }
}

/// A published rule for fast sequential I/O, and what this machine says to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// The rule in a few words.
    pub rule: String,
    /// Whether it holds here.
    pub state: RuleState,
    /// The figure that says so.
    pub evidence: String,
}

/// A half-power point: the smallest setting that reaches half of the peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfPower {
    /// What is varied.
    pub of: Varied,
    /// What is held: `depth 8`, `64 KiB requests`.
    pub at: String,
    /// Read or write.
    pub op: OpKind,
    /// The peak that is halved, in bytes per second.
    pub peak_bytes_per_s: f64,
    /// Where the peak is from.
    pub peak_from: PeakSource,
    /// The smallest measured setting that reaches half; absent where none does.
    pub smallest: Option<f64>,
    /// Where the curve crosses half, between measured settings.
    pub crossing: Option<f64>,
    /// The 95 % interval of the crossing.
    pub interval_95: Option<[f64; 2]>,
    /// The smallest setting measured reaches half already: the true half-power point is at or below it.
    pub at_or_below: bool,
}
