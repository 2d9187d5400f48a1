//! The values of options that are one of several, and of those that belong together.

use super::super::histlog::HistogramLog;
use machine::Engine;

/// fio's names of engines; the first of an engine's is the usual one.
const ENGINES: [(&str, Engine); 10] = [
    ("psync", Engine::Sync),
    ("sync", Engine::Sync),
    ("vsync", Engine::Sync),
    ("pvsync", Engine::Sync),
    ("pvsync2", Engine::Sync),
    ("libaio", Engine::Libaio),
    ("io_uring", Engine::IoUring),
    // Threads with blocking calls, in the C library.
    ("posixaio", Engine::Threads),
    ("mmap", Engine::Mmap),
    ("null", Engine::Null),
];

/// Takes a value of `ioengine`.
pub(super) fn parse_engine(text: &str) -> Result<Engine, String> {
    let found = ENGINES.iter().find(|(name, _)| *name == text).map(|(_, engine)| *engine);
    let names = || ENGINES.map(|(name, _)| name).join(", ");
    found.ok_or_else(|| format!("not supported; write one of {}", names()))
}

/// fio's usual name of an engine.
pub(crate) fn engine_name(engine: Engine) -> &'static str {
    ENGINES.iter().find(|(_, one)| *one == engine).map_or(engine.name(), |(name, _)| name)
}

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// When the call returns.
    None,
    /// Data and metadata on stable storage (O_SYNC).
    Full,
    /// Data on stable storage (O_DSYNC).
    Data,
}

/// How a file that is to be written is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallocate {
    /// As long as it is to be, without space.
    None,
    /// Space reserved.
    Reserve,
}

/// Which of several files a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileService {
    /// They take turns request by request.
    RoundRobin,
    /// One after the other is gone through.
    Sequential,
    /// It is drawn.
    Random,
}

/// How random blocks are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Every block as often as any other.
    Uniform,
    /// Zipf's law with this exponent.
    Zipf(f64),
    /// Self-similar with this share: 0.2 is 80 % of the requests to 20 % of the blocks.
    Pareto(f64),
    /// Normal, with its deviation and its mean in percent of the file.
    Normal {
        /// Standard deviation.
        deviation: f64,
        /// Mean.
        center: f64,
    },
    /// So many percent of the requests go to the first so many percent of the file.
    Zones {
        /// Percent of the requests.
        access: u8,
        /// Percent of the file.
        share: u8,
    },
    /// Zones of the file from its start to its end.
    ManyZones(Vec<Zone>),
}

/// A zone of a file in which so many of the requests go, all places alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Percent of the requests.
    pub access: u8,
    /// Percent of the file.
    pub share: u8,
}

/// `zonemode=strided`: after so many bytes so many are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strides {
    /// `zonemode`: none, or strided; `None`: strided where there is a `zonesize`.
    pub strided: Option<bool>,
    /// `zonesize`: bytes moved in each zone.
    pub size: u64,
    /// `zonerange`: bytes of a zone, where they are more.
    pub range: u64,
    /// `zoneskip`: bytes between two zones.
    pub skip: u64,
}

impl Strides {
    /// Whether it is asked for.
    pub fn are_on(&self) -> bool {
        self.strided.unwrap_or(self.size > 0)
    }

    /// Bytes left out after each zone's.
    pub fn left_out(&self) -> u64 {
        self.range.saturating_sub(self.size).saturating_add(self.skip)
    }
}

/// The logs of a job: their prefix, where wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    /// `write_bw_log`.
    pub bandwidth: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `write_lat_log`.
    pub latency: Option<String>,
    /// `write_hist_log`.
    pub histogram: Option<String>,
    /// `log_hist_msec`; 0: no histograms.
    pub histogram_ms: u64,
    /// `log_hist_coarseness`.
    pub coarseness: u32,
    /// `log_avg_msec`; 0: a line for each request.
    pub average_ms: u64,
    /// `log_offset`: lines tell where each request went.
    pub offset: bool,
    /// `log_prio`: the last column is the priority of the request in hexadecimal digits.
    pub priority: bool,
    /// `log_unix_epoch`: times count from 1970 and not from the beginning.
    pub epoch: bool,
    /// `per_job_logs`: each clone has files of its own.
    pub per_job: bool,
    /// `log_window_value`: what is told of the latencies of a window.
    pub window: WindowValue,
    /// `log_issue_time`: the last column is when a request was issued, in nanoseconds.
    pub issue_time: bool,
    /// `write_iolog`: every request in its order, to be repeated with `read_iolog`.
    pub requests: Option<String>,
}

/// What a line of an averaged log tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowValue {
    /// The mean.
    #[default]
    Mean,
    /// The greatest.
    Greatest,
    /// The mean and the greatest.
    Both,
}

/// `unified_rw_reporting`: how the directions are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unified {
    /// Each by itself.
    #[default]
    Apart,
    /// All as one.
    Mixed,
    /// Each by itself, and all as one.
    Both,
}

/// Which jobs `exitall` ends with the first one that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitWhat {
    /// Those of its reporting group.
    Group,
    /// All that run with it.
    Stonewall,
    /// These, and what would run after them.
    All,
}

impl Default for Logs {
    fn default() -> Self {
        let none = None::<String>;
        Logs {
            bandwidth: none.clone(),
            iops: none.clone(),
            latency: none.clone(),
            histogram: none.clone(),
            histogram_ms: 0,
            coarseness: 0,
            average_ms: 0,
            offset: false,
            priority: false,
            epoch: false,
            per_job: true,
            window: WindowValue::Mean,
            issue_time: false,
            requests: none,
        }
    }
}

impl Logs {
    /// The log of histograms, where one is wanted.
    pub(crate) fn histograms(&self) -> Option<HistogramLog> {
        let wanted = self.histogram.is_some() && self.histogram_ms > 0;
        wanted.then(|| HistogramLog::new(self.histogram_ms * 1_000_000, self.coarseness))
    }

    /// Whether any log is wanted.
    pub fn any(&self) -> bool {
        self.bandwidth.is_some() || self.iops.is_some() || self.latency.is_some()
    }
}
