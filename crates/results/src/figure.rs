use crate::answer::HalfPower;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// In the document; for file names and anchors.
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
    /// Logarithmic.
    RequestBytes,
    /// Requests outstanding over all streams; logarithmic.
    Depth,
    /// Streams; logarithmic.
    Threads,
    /// Awaited at a time; logarithmic.
    Completions,
    /// Of every request; a category per value.
    OffsetBytes,
    /// In the target, 0 to 1.
    Position,
    /// Of a stripe; logarithmic.
    ChunkBytes,
    /// Of a stripe.
    Members,
    /// Since the run began.
    TimeNs,
    /// From zero.
    BytesPerS,
    /// From zero.
    Iops,
    /// Of the whole machine; logarithmic.
    CpuNsPerMib,
    /// Of the whole machine; logarithmic.
    CpuNsPerRequest,
    /// From issue to completion; logarithmic.
    ServiceNs,
    /// Size of a cache; logarithmic.
    CacheBytes,
    /// Of the accesses to a cache, 0 to 1.
    MissShare,
    /// Speedup; from zero.
    Gain,
}

/// In parts, for figures with several kinds of curves.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CurveName {
    /// Shared with other curves: they have one colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Cow<'static, str>>,
    /// Distinguishes the curve in its group.
    pub variant: Cow<'static, str>,
    /// Among curves that differ in a number, such as their depth.
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

    /// Among curves that differ in a number.
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
    /// In the legend.
    pub name: String,
    /// The name in parts, if it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<CurveName>,
    /// In ascending order of x. Failed points have no y.
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
    /// Absent if the point failed.
    pub y: Option<f64>,
    /// Of y.
    pub interval_95: Option<[f64; 2]>,
    /// By index, if y is a figure of a single point.
    pub point: Option<usize>,
}
