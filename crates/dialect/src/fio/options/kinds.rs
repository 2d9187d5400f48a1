use machine::{Engine, Nanos};

/// fio's window for the spread of rates.
pub(crate) const SPREAD_NS: Nanos = 500_000_000;

/// An engine's usual name comes first.
const ENGINES: [(&str, Engine); 17] = [
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
    ("splice", Engine::Splice),
    ("null", Engine::Null),
    // Operations on whole files and directories, which transfer no data: [`FileOperation`].
    ("filecreate", Engine::Null),
    ("filestat", Engine::Null),
    ("filedelete", Engine::Null),
    ("dircreate", Engine::Null),
    ("dirstat", Engine::Null),
    ("dirdelete", Engine::Null),
];

/// A later variant takes precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockOption {
    Size,
    Range,
    Split,
}

/// Operation without data transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOperation {
    /// Also opens an existing file.
    Create(Named),
    Stat(Named),
    Delete(Named),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    File,
    Directory,
}

impl FileOperation {
    pub(crate) fn of_engine(name: &str) -> Option<FileOperation> {
        match name {
            "filecreate" => Some(FileOperation::Create(Named::File)),
            "filestat" => Some(FileOperation::Stat(Named::File)),
            "filedelete" => Some(FileOperation::Delete(Named::File)),
            "dircreate" => Some(FileOperation::Create(Named::Directory)),
            "dirstat" => Some(FileOperation::Stat(Named::Directory)),
            "dirdelete" => Some(FileOperation::Delete(Named::Directory)),
            _ => None,
        }
    }

    pub(crate) fn named(self) -> Named {
        match self {
            FileOperation::Create(named)
            | FileOperation::Stat(named)
            | FileOperation::Delete(named) => named,
        }
    }

    pub(crate) fn works_once(self) -> bool {
        matches!(self, FileOperation::Delete(_) | FileOperation::Create(Named::Directory))
    }
}

/// One per line.
pub fn engine_names() -> String {
    ENGINES.map(|(name, _)| format!("\t{name}\n")).concat()
}

pub fn parse_engine(text: &str) -> Result<Engine, String> {
    let found = ENGINES.iter().find(|(name, _)| *name == text).map(|(_, engine)| *engine);
    let names = || ENGINES.map(|(name, _)| name).join(", ");
    found.ok_or_else(|| match text {
        "net" | "netsplice" => "it measures the network, not storage; use fio".into(),
        "cpuio" => "it uses the processor, not storage; start another program to load the processors".into(),
        "falloc" | "ftruncate" | "e4defrag" => {
            "it changes the allocation of files and transfers no data, which is not supported; use fallocate or fill_device for the layout of a job's files".into()
        }
        "exec" => "start the program before or after halfpower".into(),
        _ => format!("not supported; write one of {}", names()),
    })
}

pub(crate) fn engine_name(engine: Engine) -> &'static str {
    ENGINES.iter().find(|(_, one)| *one == engine).map_or(engine.name(), |(name, _)| name)
}

/// One bin per power of two.
pub(crate) const MAX_COARSENESS: u32 = 6;

/// Writes that `verify_only` reads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// The job only writes.
    Writes,
    /// The job also reads.
    Mix,
}

/// When a write counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// The call has returned.
    None,
    /// Data and metadata are stable (O_SYNC).
    Full,
    /// Data is stable (O_DSYNC).
    Data,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallocate {
    /// It grows with each write.
    None,
    /// Full length, without reserving space.
    Truncate,
    Reserve,
    /// Space is reserved, and it grows with each write.
    Keep,
}

/// Requests that `lockfile` makes wait for those of other jobs to the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    All,
    /// Reads wait only for writes.
    Writes,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FileService {
    RoundRobin,
    Sequential,
    Random,
    Zipf(f64),
    /// Self-similar with this share.
    Pareto(f64),
    /// Deviation in percent.
    Normal(f64),
}

impl FileService {
    pub(crate) fn is_skewed(self) -> bool {
        matches!(self, FileService::Zipf(_) | FileService::Pareto(_) | FileService::Normal(_))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    Uniform,
    Zipf(f64),
    /// Self-similar: 0.2 sends 80 % of requests to 20 % of blocks.
    Pareto(f64),
    /// In percent of the file.
    Normal {
        deviation: f64,
        center: f64,
    },
    /// `access` percent of requests go to the first `share` percent.
    Zones {
        access: u8,
        share: u8,
    },
    /// They cover the file in order.
    ManyZones(Vec<Zone>),
}

/// Its requests are uniformly distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    /// Percent of requests.
    pub access: u8,
    /// Percent of the file.
    pub share: u8,
}

/// `zonemode=strided`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strides {
    /// `None`: strided if there is a `zonesize`.
    pub strided: Option<bool>,
    /// Bytes transferred per zone.
    pub size: u64,
    /// Bytes of a zone, if more.
    pub range: u64,
    pub skip: u64,
}

impl Strides {
    pub fn are_on(&self) -> bool {
        self.strided.unwrap_or(self.size > 0)
    }

    /// Bytes without I/O per zone.
    pub fn left_out(&self) -> u64 {
        self.range.saturating_sub(self.size).saturating_add(self.skip)
    }
}

/// Names are file prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logs {
    pub bandwidth: Option<String>,
    pub iops: Option<String>,
    pub latency: Option<String>,
    pub histogram: Option<String>,
    /// 0: no histograms.
    pub histogram_ms: u64,
    pub coarseness: u32,
    /// 0: a line per request.
    pub average_ms: u64,
    pub offset: bool,
    /// Shows priorities in hexadecimal.
    pub priority: bool,
    /// Timestamps count from 1970.
    pub epoch: bool,
    pub per_job: bool,
    pub window: WindowValue,
    /// The last column is the issue time in nanoseconds.
    pub issue_time: bool,
    /// `write_iolog`.
    pub requests: Option<String>,
}

/// Latency in an averaged log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowValue {
    #[default]
    Mean,
    Greatest,
    Both,
}

/// `unified_rw_reporting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unified {
    #[default]
    Apart,
    Mixed,
    Both,
}

/// Jobs that `exitall` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitWhat {
    Group,
    Stonewall,
    /// Jobs of the set, and all later ones.
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
    pub fn any(&self) -> bool {
        self.bandwidth.is_some() || self.iops.is_some() || self.latency.is_some()
    }
}
