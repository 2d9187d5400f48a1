//! The stages between a program and its data, advertised over achieved.

use machine::LayerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::OpKind;

/// What a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// The program that issues requests, with nothing behind it.
    Generator,
    /// Copying in main memory.
    Memory,
    /// The page cache: data that are there already.
    PageCache,
    /// The file system through the page cache, data not there yet.
    Buffered,
    /// The file system or device past the page cache.
    Direct,
    /// The processors of a simulated machine.
    Processor,
    /// A file system.
    FileSystem,
    /// A mapping of several devices into one.
    Volume,
    /// A partition.
    Partition,
    /// A block device.
    Device,
    /// A loop device.
    Loop,
    /// A link or controller.
    Link,
    /// An adapter between disk buses and the I/O bus.
    Adapter,
    /// A disk bus.
    Bus,
    /// The I/O bus.
    Pci,
    /// A network.
    Network,
    /// A limit set from outside.
    Throttle,
}

impl StageKind {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            StageKind::Generator => "generator",
            StageKind::Memory => "memory copy",
            StageKind::PageCache => "page cache",
            StageKind::Buffered => "buffered",
            StageKind::Direct => "direct",
            StageKind::Processor => "processor",
            StageKind::FileSystem => "file system",
            StageKind::Volume => "volume",
            StageKind::Partition => "partition",
            StageKind::Device => "device",
            StageKind::Loop => "loop",
            StageKind::Link => "link",
            StageKind::Adapter => "adapter",
            StageKind::Bus => "bus",
            StageKind::Pci => "PCI",
            StageKind::Network => "network",
            StageKind::Throttle => "throttle",
        }
    }
}

impl From<LayerKind> for StageKind {
    fn from(kind: LayerKind) -> StageKind {
        match kind {
            LayerKind::FileSystem => StageKind::FileSystem,
            LayerKind::Volume => StageKind::Volume,
            LayerKind::Partition => StageKind::Partition,
            LayerKind::Disk => StageKind::Device,
            LayerKind::Loop => StageKind::Loop,
            LayerKind::Link => StageKind::Link,
            LayerKind::Adapter => StageKind::Adapter,
            LayerKind::Bus => StageKind::Bus,
            LayerKind::Pci => StageKind::Pci,
            LayerKind::Network => StageKind::Network,
            LayerKind::Throttle => StageKind::Throttle,
        }
    }
}

/// The stages from the program down to what stores the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ladder {
    /// From the program down.
    pub stages: Vec<Stage>,
    /// What could lose data here: a volatile write cache, a file system without barriers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// What it is.
    pub kind: StageKind,
    /// Its name.
    pub name: String,
    /// Its rate by operation: reads, then writes; empty where nothing is known of either. A stage that limits an operation has a rate for
    /// it, without figures where none are known.
    pub rates: Vec<StageRate>,
    /// The settings that matter, by name and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, String)>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The rate of a stage for one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRate {
    /// Read or write.
    pub op: OpKind,
    /// What it promises: peak advertised performance (PAP).
    pub advertised: Option<Advertises>,
    /// What it gave: real application performance (RAP).
    pub achieved: Option<Reached>,
    /// Achieved over advertised, in percent.
    pub share_percent: Option<f64>,
    /// Share of the time in which it worked at the peak, in percent, where it counts that.
    pub busy_percent: Option<f64>,
    /// The smallest request, in bytes, that gets half of what the stage gave.
    pub half_power_bytes: Option<f64>,
    /// No stage gave less: it limits the whole.
    pub narrowest: bool,
}

/// A rate that a stage promises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advertises {
    /// In bytes per second.
    pub throughput_bytes_per_s: f64,
    /// Where it is from: the formula that computes it, or who tells it.
    pub formula: String,
}

/// A rate that a stage gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    /// In bytes per second.
    pub throughput_bytes_per_s: f64,
    /// Its 95 % interval.
    pub interval_95: Option<[f64; 2]>,
    /// The point that it was measured by.
    pub point: Option<usize>,
    /// How it was measured: `measured`, `passed through at the peak`, or a formula.
    pub formula: String,
    /// It passed through a stage that was not measured alone and is not the limit: the stage gives this at least.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}
