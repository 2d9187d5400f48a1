//! Findings and doubts, with their words.

use crate::answer::Goal;
use crate::point::Point;
use machine::units::{grouped, show_rate, show_time, significant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use workload::OpKind;

/// The ratio of an interval's ends from which a gain is unknown.
const UNKNOWN: f64 = 100.0;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The recommendation in a few words.
    pub title: String,
    /// Speedup: 1.8 is 80 % faster.
    pub gain: f64,
    pub gain_interval_95: Option<[f64; 2]>,
    /// A sentence with both figures.
    pub evidence: String,
    /// The setting to use.
    pub setting: String,
    /// A command that reproduces the difference.
    pub check: String,
    /// Indices of the points before and after.
    pub points: [usize; 2],
    /// Processor time of the process per MiB in ns: before, after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_mib: Option<[f64; 2]>,
    /// 99th percentile of the latency in ns: before, after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<[u64; 2]>,
    /// The point before is a plain program.
    #[serde(default)]
    pub from_plain: bool,
    /// The goal that a plain program reaches with the fewest changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaches: Option<Goal>,
    /// If there are several changes and each was measured: their effects one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<FindingStep>,
}

/// One of several changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingStep {
    /// The change, such as `8 outstanding`.
    pub change: String,
    /// Index of the point after the change.
    pub point: usize,
    /// Speedup over the previous step.
    pub gain: f64,
    pub gain_interval_95: Option<[f64; 2]>,
    /// Processor time of the process per MiB in ns, after the change.
    pub cpu_ns_per_mib: Option<f64>,
    /// 99th percentile of the latency in ns, after the change.
    pub p99_ns: Option<u64>,
}

pub struct RatesInWords {
    /// With both workloads.
    pub full: String,
    /// Without the workload before the change.
    pub short: String,
}

impl Finding {
    /// `None` if a point was not measured.
    pub fn rates([before, after]: [&Point; 2]) -> Option<RatesInWords> {
        let after = format!("{} with {}", show_rate(after.rate()?), after.workload.short());
        let (rate, with) = (show_rate(before.rate()?), before.workload.short());
        Some(RatesInWords {
            full: format!("{after}, against {rate} with {with}"),
            short: format!("{after}, against {rate}"),
        })
    }
}

/// A recommendation whose gain may be zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UncertainGain {
    /// The recommendation in a few words.
    pub title: String,
    pub gain: f64,
    /// The 95 % interval of the gain; absent after one run.
    pub gain_interval_95: Option<[f64; 2]>,
    /// Indices of the points before and after.
    pub points: [usize; 2],
}

impl fmt::Display for UncertainGain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let two = |value| significant(value, 2);
        write!(f, "{} ({} times", self.title, two(self.gain))?;
        match self.gain_interval_95 {
            None => f.write_str(" in one run)"),
            Some([low, high]) if high < low * UNKNOWN => {
                write!(f, ", {} to {})", two(low), two(high))
            }
            Some(_) => f.write_str(", not settled)"),
        }
    }
}

/// A doubt that the points themselves give, about a peak or the whole study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PeakDoubt {
    /// The same question had another answer earlier.
    Changed { op: OpKind, point: usize, before_bytes_per_s: f64, now_bytes_per_s: f64 },
    /// Half the interval, in percent of the rate, is too wide.
    NotSettled { op: OpKind, percent: f64 },
    /// Another point is faster beyond both intervals.
    FasterElsewhere { op: OpKind, point: usize, throughput_bytes_per_s: f64, workload: String },
    /// The rate is above what a layer advertises, even in the longest run that was made.
    AboveAdvertised {
        op: OpKind,
        layer: String,
        throughput_bytes_per_s: f64,
        admits_bytes_per_s: f64,
    },
    /// A rate that is higher at the beginning: short runs show it.
    Burst { op: OpKind, burst_bytes_per_s: f64, length_s: f64, lasting_bytes_per_s: f64 },
    /// A rate of random requests that is higher at the beginning: short runs show it.
    RandomBurst { op: OpKind, outstanding: u32, burst_iops: f64, length_s: f64, lasting_iops: f64 },
    /// Random writes of a rotating disk that are too fast for its mechanics.
    CachedWrites { write_iops: f64, read_iops: f64 },
    /// Points without figures.
    Failed { failed: usize, of: usize },
    /// Points with a wide interval.
    Uncertain { uncertain: usize, of: usize },
}

impl fmt::Display for PeakDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeakDoubt::Changed { op, before_bytes_per_s, now_bytes_per_s, .. } => write!(
                f,
                "the best {op}: {} when it was measured again at the end, {} before: the target changed during the study",
                show_rate(*now_bytes_per_s),
                show_rate(*before_bytes_per_s)
            ),
            PeakDoubt::NotSettled { op, percent } => {
                write!(
                    f,
                    "the best {op} is not settled: ± {percent:.0} % when the time was up (--budget gives more)"
                )
            }
            PeakDoubt::FasterElsewhere { op, throughput_bytes_per_s, workload, .. } => write!(
                f,
                "the best {op} may be better: {workload} reached {} at another time of the study, so the target's rate changes (--budget gives it more time)",
                show_rate(*throughput_bytes_per_s)
            ),
            PeakDoubt::AboveAdvertised {
                op,
                layer,
                throughput_bytes_per_s,
                admits_bytes_per_s,
            } => write!(
                f,
                "the best {op}: {} is above the {} that {layer} advertises: a cache or a burst credit served it, and no run was long enough to use it up",
                show_rate(*throughput_bytes_per_s),
                show_rate(*admits_bytes_per_s)
            ),
            PeakDoubt::Burst { op, burst_bytes_per_s, length_s, lasting_bytes_per_s } => write!(
                f,
                "{op}s reach {} for the first {} after a rest, then {}: short runs in the tables and figures show this burst",
                show_rate(*burst_bytes_per_s),
                show_time(length_s * 1e9),
                show_rate(*lasting_bytes_per_s)
            ),
            PeakDoubt::RandomBurst { op, outstanding, burst_iops, length_s, lasting_iops } => {
                write!(
                    f,
                    "random {op}s with {outstanding} outstanding reach {} requests/s for the first {}, then {}: short runs in the tables and figures show this burst",
                    grouped(burst_iops.round()),
                    show_time(length_s * 1e9),
                    grouped(lasting_iops.round())
                )
            }
            PeakDoubt::CachedWrites { write_iops, read_iops } => write!(
                f,
                "random writes: {} requests/s, although the disk reads only {}: they go to its write cache, and longer runs fill it: run --op write --pattern random --runtime 1m shows the rate that lasts",
                grouped(write_iops.round()),
                grouped(read_iops.round())
            ),
            PeakDoubt::Failed { failed, of } => {
                write!(f, "{failed} of {of} points failed; they are shown as failed")
            }
            PeakDoubt::Uncertain { uncertain, of } => write!(
                f,
                "{uncertain} of {of} points are uncertain by more than 25 %: the time went to those that decide the answer (--budget gives the others more)"
            ),
        }
    }
}
