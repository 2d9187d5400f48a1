use crate::finding::{Finding, PeakDoubt, UncertainGain};
use crate::limit::Limit;
use crate::long_writes::LongWrites;
use crate::words::words;
use machine::units::show_size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::OpKind;

words! {
    /// The parameter varied to find a half-power point.
    Varied {
        RequestBytes = "request_bytes",
        /// Requests outstanding over all streams.
        Depth = "depth",
        /// The chunk of a stripe, in bytes.
        ChunkBytes = "chunk_bytes",
    }
}

words! {
    /// Source of the peak that a half-power point refers to.
    PeakSource {
        /// The best rate of the study.
        Measured = "measured",
        /// The rate that a lower layer advertises.
        Advertised = "advertised",
    }
}

words! {
    /// The share of the peak that a recommendation reaches.
    Goal {
        Half = "half_of_peak",
        NinetyPercent = "90_percent_of_peak",
    }
}

impl Goal {
    pub fn share(self) -> f64 {
        match self {
            Goal::Half => 0.5,
            Goal::NinetyPercent => 0.9,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Goal::Half => "half of the peak",
            Goal::NinetyPercent => "90 % of the peak",
        }
    }
}

words! {
    /// Requests whose processor cost is modelled.
    CostMode {
        /// Reads that bypass the page cache.
        DirectRead = "direct read",
        /// Writes that bypass the page cache.
        DirectWrite = "direct write",
        /// Reads of a file in the page cache.
        BufferedRead = "buffered read",
        /// Writes to a file in the page cache.
        BufferedWrite = "buffered write",
    }
}

words! {
    /// Scope of the processor time.
    CostScope {
        /// User and system time of the process.
        Process = "process",
        /// Busy time of the machine, with kernel threads.
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
        /// Direct writes, each on stable storage before the next starts.
        WriteThrough = "direct write, write-through",
        /// Direct reads of the same block.
        SameBlock = "the same block again",
        /// Direct reads of the next block after a pause: they detect the device's read-ahead.
        NextBlock = "the next block after a pause",
        /// Direct reads of blocks not read before.
        Miss = "a miss",
    }
}

/// The conclusions of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// Doubts about the results, the most serious first.
    pub doubts: Vec<String>,
    /// Doubts that the points themselves give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peak_doubts: Vec<PeakDoubt>,
    /// Peak rates of reads, then of writes (absent if the target was only read).
    pub peaks: Vec<Peak>,
    /// Rates of plain programs: through the page cache, one request at a time; largest requests
    /// first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain: Vec<PlainRate>,
    /// The limits of the peaks, of plain programs, and of small random requests.
    pub limits: Vec<Limit>,
    pub half_power: Vec<HalfPower>,
    /// Processor costs per request and per byte.
    pub costs: Vec<CostModel>,
    /// Service time by request size.
    pub service_times: Vec<ServiceModel>,
    /// Random requests whose rate does not last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub random_bursts: Vec<RandomBurst>,
    /// Writes at full speed as far as the time allowed; absent if nothing was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_writes: Option<LongWrites>,
    /// Settings worth changing: for plain programs first, cheapest first.
    pub findings: Vec<Finding>,
    /// Predicted rates for a simulated machine with one more part; not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Predicted>,
    /// Recommendations without a significant gain: the interval includes no change, or there is no
    /// interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unproven: Vec<String>,
    /// `unproven` as values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncertain_gains: Vec<UncertainGain>,
    /// Published rules for sequential I/O.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checklist: Vec<Rule>,
    /// One sentence for each experiment that the budget left out.
    pub left_out: Vec<String>,
}

impl Answer {
    pub fn peak(&self, op: OpKind) -> Option<&Peak> {
        self.peaks.iter().find(|peak| peak.op == op)
    }

    /// Relative to the measured peak.
    pub fn half_power_size(&self, op: OpKind, depth: u32) -> Option<&HalfPower> {
        self.half_power.iter().find(|half| {
            (half.op, half.of, half.peak_from) == (op, Varied::RequestBytes, PeakSource::Measured)
                && half.fixed == Some(Fixed::Depth(depth))
        })
    }
}

/// The peak rate of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    pub op: OpKind,
    /// The peak rate: mean of the point's runs.
    pub throughput_bytes_per_s: f64,
    pub interval_95: Option<[f64; 2]>,
    /// Index of the point.
    pub point: usize,
    /// Settings of the peak, as options of `halfpower run`.
    pub settings: String,
    /// The rate that a lower layer advertises, with the layer's name.
    pub advertised: Option<Advertised>,
    /// A cache or a burst credit allows a faster beginning after a rest; the peak is the rate that
    /// lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
}

/// A rate that does not last.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Burst {
    pub throughput_bytes_per_s: f64,
    /// Length of the burst after a rest, in seconds.
    pub length_s: f64,
    /// Index of the point that shows the burst.
    pub point: usize,
}

/// A cache or a credit serves these requests faster at first than in the long run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RandomBurst {
    pub op: OpKind,
    /// Requests outstanding over all threads.
    pub outstanding: u32,
    /// Index of the point with the rate that lasts.
    pub point: usize,
    /// The faster beginning.
    pub burst: Burst,
}

impl Burst {
    /// The run ends at the rate `lasting`.
    pub fn mean_rate(&self, lasting: f64, run_s: f64) -> f64 {
        let extra = (self.throughput_bytes_per_s - lasting).max(0.0) * self.length_s;
        lasting + extra / run_s.max(1e-9)
    }
}

/// Relative (root mean square): a model with more describes no points.
pub const MAX_FIT_ERROR: f64 = 0.2;

/// The rate of a plain program, and its share of the peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlainRate {
    pub op: OpKind,
    pub request_bytes: u32,
    /// Rate of the program; for writes, with the flush at the end.
    pub throughput_bytes_per_s: f64,
    pub interval_95: Option<[f64; 2]>,
    /// The rate over the peak; absent if a cache served a part of it, or if it is above the peak.
    pub share_of_peak: Option<f64>,
    /// The goal reached without any change; absent below half of the peak.
    pub reaches: Option<Goal>,
    /// Index of the point.
    pub point: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advertised {
    pub layer: String,
    pub throughput_bytes_per_s: f64,
}

/// A model of the processor time of a request: cost per request + cost per byte x size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostModel {
    pub mode: CostMode,
    pub whose: CostScope,
    /// Fixed cost of a request, in nanoseconds.
    pub ns_per_request: f64,
    pub ns_per_request_interval_95: [f64; 2],
    pub ns_per_byte: f64,
    pub ns_per_byte_interval_95: [f64; 2],
    /// Root mean square of the relative residuals.
    pub rms_residual: f64,
    /// User-space instructions per request, regardless of size, if counted.
    pub instructions_per_request: Option<f64>,
    /// User-space instructions per byte, if counted.
    pub instructions_per_byte: Option<f64>,
}

/// A model of the service time of a request: fixed time + size / rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceModel {
    pub mode: ServiceMode,
    /// The range of sizes in bytes that the model covers, if other sizes follow another model (a
    /// cache hit versus a miss, for example).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes_bytes: Option<[f64; 2]>,
    /// Fixed time per request, in nanoseconds.
    pub fixed_ns: f64,
    pub fixed_ns_interval_95: [f64; 2],
    /// The rate of the model; absent if the time does not grow with the size.
    pub rate_bytes_per_s: Option<f64>,
    pub rate_interval_95: Option<[f64; 2]>,
    /// Root mean square of the relative residuals.
    pub rms_residual: f64,
    /// Maximum relative residual.
    pub max_residual: f64,
    /// Request size at the knee, if the model has one.
    pub knee_bytes: Option<f64>,
}

/// The rate predicted for a change to a simulated machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// The change, such as `one more bus`.
    pub change: String,
    /// The change as a machine setting.
    pub settings: String,
    pub op: OpKind,
    /// The predicted rate.
    pub throughput_bytes_per_s: f64,
    pub gain: f64,
    /// The busiest part after the change; `latency` if none is busy.
    pub then: String,
    /// A command that repeats the prediction.
    pub check: String,
}

words! {
    /// Whether a rule holds on this machine.
    RuleState {
        /// The machine follows the rule, or following it pays.
        Held = "held",
        /// The machine contradicts the rule, or following it does not pay.
        Broken = "broken",
        /// The runs are too uneven to say.
        Undecided = "undecided",
        /// The rule does not apply here, or was not measured.
        NotApplicable = "not_applicable",
    }
}

/// A published rule for fast sequential I/O.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// The rule in a few words.
    pub rule: String,
    pub state: RuleState,
    /// The figure behind the verdict.
    pub evidence: String,
}

/// The setting that is the same along a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fixed {
    /// Requests outstanding.
    Depth(u32),
    RequestBytes(u64),
}

impl std::fmt::Display for Fixed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fixed::Depth(depth) => write!(f, "depth {depth}"),
            Fixed::RequestBytes(bytes) => write!(f, "{} requests", show_size(*bytes)),
        }
    }
}

impl HalfPower {
    /// Prefers the crossing to the smallest measured setting.
    pub fn setting(&self) -> Option<f64> {
        self.crossing.or(self.smallest)
    }
}

/// The smallest setting that reaches half of the peak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfPower {
    pub of: Varied,
    /// The setting of the curve, such as `depth 8` or `64 KiB requests`.
    pub at: String,
    /// `at` as a value, if it has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Fixed>,
    pub op: OpKind,
    pub peak_bytes_per_s: f64,
    pub peak_from: PeakSource,
    /// The smallest measured setting that reaches half of the peak; absent if none does.
    pub smallest: Option<f64>,
    /// The interpolated setting at which the rate crosses half of the peak.
    pub crossing: Option<f64>,
    /// The 95 % interval of the crossing.
    pub interval_95: Option<[f64; 2]>,
    /// The smallest measured setting already reaches half: the half-power point is there or below.
    pub at_or_below: bool,
}
