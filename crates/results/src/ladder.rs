//! The layers between a program and its data.

use machine::LayerKind;
use machine::units::{grouped, show_rate, show_size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::OpKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// The load generator with a null backend.
    Generator,
    /// Copies in memory.
    Memory,
    /// The page cache, for data already cached.
    PageCache,
    /// Requests through the page cache, for data not cached.
    Buffered,
    /// The file system or device, past the page cache.
    Direct,
    /// The processors of a simulated machine.
    Processor,
    FileSystem,
    /// Several devices mapped into one.
    Volume,
    Partition,
    /// A block device.
    Device,
    Loop,
    /// A link or controller.
    Link,
    /// An adapter between disk buses and the I/O bus.
    Adapter,
    /// A disk bus.
    Bus,
    /// The I/O bus.
    Pci,
    Network,
    /// A configured limit.
    Throttle,
}

impl StageKind {
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
            LayerKind::MemoryBus => StageKind::Memory,
            LayerKind::Network => StageKind::Network,
            LayerKind::Throttle => StageKind::Throttle,
        }
    }
}

/// The layers from the program down to the media.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ladder {
    pub stages: Vec<Stage>,
    /// Risks of data loss: a volatile write cache, a file system without barriers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    pub kind: StageKind,
    pub name: String,
    /// Reads, then writes. A layer that limits an operation is listed even if its figures are
    /// unknown.
    pub rates: Vec<StageRate>,
    /// Relevant settings, by name and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Stage {
    /// Its kind and its name as they are shown, without words of both.
    pub fn words(&self) -> (&'static str, &str) {
        match (self.kind, self.name.as_str()) {
            (StageKind::Memory, "copy") => ("memory copy", ""),
            // A bus copies nothing.
            (StageKind::Memory, name) => ("memory", name.strip_prefix("memory ").unwrap_or(name)),
            (kind, name) if name == kind.name() => (kind.name(), ""),
            (kind, name) => (kind.name(), name),
        }
    }
}

/// The rates of a layer for one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRate {
    pub op: OpKind,
    /// Peak advertised performance (PAP).
    pub advertised: Option<Advertises>,
    /// Real application performance (RAP).
    pub achieved: Option<Reached>,
    /// Achieved over advertised.
    pub share_percent: Option<f64>,
    /// Share of the time that the layer was busy at the peak, in percent, if it counts that.
    pub busy_percent: Option<f64>,
    /// The smallest request that reaches half of the layer's rate.
    pub half_power_bytes: Option<f64>,
    /// No layer achieved less: this one limits the whole.
    pub narrowest: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advertises {
    pub throughput_bytes_per_s: f64,
    /// Where the rate comes from: a formula, or the component that reports it, without the stage's
    /// name.
    pub formula: String,
}

/// How an achieved rate was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Method {
    /// Requests that reach nothing.
    ToNothing { iops: f64, request_bytes: u32 },
    /// Copies in memory.
    Copies { threads: u32 },
    /// The best rate of reads of cached data in the page-cache experiment.
    Cached { faster_than_memory: bool },
    /// The best rate of writes to the page cache, until the last one returned.
    UntilReturn { faster_than_memory: bool },
    /// The best rate of reads through the page cache of data that were not cached.
    Cold,
    /// The best rate of writes through the page cache, to stable storage.
    Synced,
    /// The peak rate of the operation.
    Peak,
    /// A rate over the share of the time in which the layer was busy.
    WhileBusy {
        /// The requests, such as `64 KiB x 8`; absent for the peak's.
        request: Option<String>,
        throughput_bytes_per_s: f64,
        busy_percent: f64,
    },
    /// Everything at the peak passed through the layer.
    PassedThrough,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let faster = |yes: &bool| if *yes { "; faster than memory's ceiling" } else { "" };
        match self {
            Method::ToNothing { iops, request_bytes } => {
                let size = show_size(u64::from(*request_bytes));
                write!(f, "{} requests/s of {size} without I/O", grouped(iops.round()))
            }
            Method::Copies { threads: 1 } => f.write_str("measured: copying by one thread"),
            Method::Copies { threads } => write!(f, "measured: copying by {threads} threads"),
            Method::Cached { faster_than_memory } => {
                write!(f, "measured{}", faster(faster_than_memory))
            }
            Method::UntilReturn { faster_than_memory } => {
                write!(f, "measured: until the last write returns{}", faster(faster_than_memory))
            }
            Method::Cold => f.write_str("measured with a cold cache"),
            Method::Synced => f.write_str("measured: to stable storage"),
            Method::Peak => f.write_str("measured: the peak"),
            Method::WhileBusy { request, throughput_bytes_per_s, busy_percent } => {
                if let Some(request) = request {
                    write!(f, "{request}: ")?;
                }
                write!(f, "{} / {busy_percent:.1} % busy", show_rate(*throughput_bytes_per_s))
            }
            Method::PassedThrough => f.write_str("passed through at the peak"),
        }
    }
}

impl StageRate {
    pub fn advertised_bytes_per_s(&self) -> Option<f64> {
        self.advertised.as_ref().map(|one| one.throughput_bytes_per_s)
    }

    pub fn achieved_bytes_per_s(&self) -> Option<f64> {
        self.achieved.as_ref().map(|one| one.throughput_bytes_per_s)
    }
}

impl Reached {
    pub fn new(throughput_bytes_per_s: f64, point: Option<usize>, how: Method) -> Reached {
        Reached {
            throughput_bytes_per_s,
            interval_95: None,
            point,
            formula: how.to_string(),
            at_least: how == Method::PassedThrough,
            how: Some(how),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reached {
    pub throughput_bytes_per_s: f64,
    pub interval_95: Option<[f64; 2]>,
    /// Index of the point that measured the rate.
    pub point: Option<usize>,
    /// How the rate was found: `measured`, `passed through at the peak`, or a formula.
    pub formula: String,
    /// `formula` as a value; absent from documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<Method>,
    /// A lower bound: data passed through at this rate, but the layer was not the limit and was not
    /// measured separately.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}
