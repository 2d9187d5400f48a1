use crate::answer::HalfPower;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure with its axes and curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Unique in the document; used in file names and anchors.
    pub id: String,
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

/// The quantity on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Request size in bytes; logarithmic.
    RequestBytes,
    /// Requests outstanding over all streams; logarithmic.
    Depth,
    /// Streams; logarithmic.
    Threads,
    /// Completions awaited at a time; logarithmic.
    Completions,
    /// Offset of every request in bytes; a category per value.
    OffsetBytes,
    /// Position in the target, 0 to 1.
    Position,
    /// Stripe chunk in bytes; logarithmic.
    ChunkBytes,
    /// Members of a stripe.
    Members,
    /// Time since the run began, in ns.
    TimeNs,
    /// Rate in bytes per second; from zero.
    BytesPerS,
    /// Requests per second; from zero.
    Iops,
    /// Processor time of the whole machine per MiB in ns; logarithmic.
    CpuNsPerMib,
    /// Processor time of the whole machine per request in ns; logarithmic.
    CpuNsPerRequest,
    /// Mean time from issue to completion in ns; logarithmic.
    ServiceNs,
    /// Size of a cache in bytes; logarithmic.
    CacheBytes,
    /// Share of accesses that a cache misses, 0 to 1.
    MissShare,
    /// Speedup; from zero.
    Gain,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Values in ascending order of x. Failed points have no y.
    pub values: Vec<Value>,
    /// The half-power point, if the curve has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_power: Option<HalfPower>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// The x coordinate.
    pub x: f64,
    /// The y coordinate; absent if the point failed.
    pub y: Option<f64>,
    /// The 95 % interval of y.
    pub interval_95: Option<[f64; 2]>,
    /// Index of the point, if y is a figure of a single point.
    pub point: Option<usize>,
}
