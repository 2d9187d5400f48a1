use crate::answer::HalfPower;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

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
    /// Clients at the same time; logarithmic.
    Clients,
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
    /// Time from issue to completion in ns, typical or a percentile; logarithmic.
    ServiceNs,
    /// Size of a cache; logarithmic.
    CacheBytes,
    /// Share of accesses that a cache misses, 0 to 1.
    MissShare,
    /// Speedup; from zero.
    Gain,
}

/// A curve's name in parts, for figures with several kinds of curves.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CurveName {
    /// Name of the group of curves that have one colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Cow<'static, str>>,
    /// Name that distinguishes the curve in its group.
    pub variant: Cow<'static, str>,
    /// The number in which curves differ, such as their depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<f64>,
}

impl CurveName {
    pub const fn new(variant: &'static str) -> CurveName {
        CurveName { group: None, variant: Cow::Borrowed(variant), order: None }
    }

    pub const fn of(group: &'static str, variant: &'static str) -> CurveName {
        CurveName {
            group: Some(Cow::Borrowed(group)),
            variant: Cow::Borrowed(variant),
            order: None,
        }
    }

    #[must_use]
    pub fn in_group(self, group: impl ToString) -> CurveName {
        CurveName { group: Some(group.to_string().into()), ..self }
    }

    /// Sets the order among curves that differ in a number.
    #[must_use]
    pub fn ordered(self, order: impl Into<f64>) -> CurveName {
        CurveName { order: Some(order.into()), ..self }
    }
}

impl From<String> for CurveName {
    fn from(variant: String) -> CurveName {
        CurveName { variant: variant.into(), ..CurveName::default() }
    }
}

impl From<&str> for CurveName {
    fn from(variant: &str) -> CurveName {
        variant.to_owned().into()
    }
}

impl fmt::Display for CurveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) => write!(f, "{group}, {}", self.variant),
            None => f.write_str(&self.variant),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// The name in parts, if it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<CurveName>,
    /// Values in ascending order of x. Failed points have no y.
    pub values: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_power: Option<HalfPower>,
}

impl Series {
    pub fn new(name: impl Into<CurveName>, values: Vec<Value>) -> Series {
        let parts = name.into();
        let name = parts.to_string();
        let parts = Some(parts).filter(|parts| parts.group.is_some() || parts.order.is_some());
        Series { name, parts, values, half_power: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    pub x: f64,
    /// The measured value; absent if the point failed.
    pub y: Option<f64>,
    /// The 95 % interval of y.
    pub interval_95: Option<[f64; 2]>,
    /// Index of the point, if y is a figure of a single point.
    pub point: Option<usize>,
}
