//! Figures: axes and curves.

use crate::answer::HalfPower;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure: what is on its axes, and its series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Unique in the document: a short name for files and anchors.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What x is.
    pub x: Axis,
    /// What y is.
    pub y: Axis,
    /// Its curves.
    pub series: Vec<Series>,
}

/// What an axis shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Request size in bytes; logarithmic.
    RequestBytes,
    /// Requests outstanding over all streams; logarithmic.
    Depth,
    /// Streams; logarithmic.
    Threads,
    /// Completions waited for at a time; logarithmic.
    Completions,
    /// Shift of every request in bytes; each value stands for itself.
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
    /// How many times as fast; from zero.
    Gain,
}

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its values, by rising x. Points that failed have no y.
    pub values: Vec<Value>,
    /// Where it reaches half of the peak, if it is a curve of which that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_power: Option<HalfPower>,
}

/// One value of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// On the x axis.
    pub x: f64,
    /// On the y axis; absent where the point failed.
    pub y: Option<f64>,
    /// The 95 % interval of y.
    pub interval_95: Option<[f64; 2]>,
    /// The point in the document's list, where y is a figure of one.
    pub point: Option<usize>,
}
