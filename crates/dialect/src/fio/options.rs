//! The options of one job, with fio's defaults.

use super::steady::Criterion;
use super::value::Amount;
use super::verify::Method;
use workload::SizeMix;

/// fio's own list.
pub(crate) const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// fio's engines that have a counterpart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioEngine {
    /// `sync`, `psync`, `vsync`, `pvsync`, `pvsync2`: one blocking call at a time.
    Blocking,
    /// Linux native asynchronous I/O.
    Libaio,
    /// io_uring.
    IoUring,
    /// POSIX asynchronous I/O: threads with blocking calls.
    PosixAio,
    /// Copies from and to a mapping.
    Mmap,
    /// No I/O: each request is done when it is issued.
    Null,
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
#[derive(Debug, Clone, Copy, PartialEq)]
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
}

/// The logs of a job: their prefix, where wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logs {
    /// `write_bw_log`.
    pub bandwidth: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `write_lat_log`.
    pub latency: Option<String>,
    /// `log_avg_msec`; 0: a line for each request.
    pub average_ms: u64,
}

impl Logs {
    /// Whether any log is wanted.
    pub fn any(&self) -> bool {
        self.bandwidth.is_some() || self.iops.is_some() || self.latency.is_some()
    }
}

/// The options of one job, with fio's defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// `description`.
    pub description: Option<String>,
    /// Reads at all.
    pub reads: bool,
    /// Writes at all.
    pub writes: bool,
    /// In random order.
    pub random: bool,
    /// The value of `rw`, as fio names it.
    pub mode: &'static str,
    /// `rwmixread` (or 100 less `rwmixwrite`).
    pub mix_read: u8,
    /// Request sizes of reads and of writes: `bs`, `bsrange` or `bssplit`.
    pub blocks: [SizeMix; 2],
    /// `blockalign`.
    pub align_bytes: Option<u64>,
    /// `size`.
    pub size: Option<Amount>,
    /// `filesize`: from the least to the greatest.
    pub file_bytes: Option<[u64; 2]>,
    /// `io_size`.
    pub io_size: Option<Amount>,
    /// `loops`.
    pub loops: u64,
    /// `directory`: clones take turns in several.
    pub directories: Vec<String>,
    /// `filename`: one or several, which take turns.
    pub filenames: Vec<String>,
    /// `nrfiles`: files of a job whose names are made.
    pub files: u32,
    /// `file_service_type`.
    pub service: FileService,
    /// `filename_format`.
    pub filename_format: String,
    /// `unlink`: remove the file at the end, whoever made it.
    pub unlink: bool,
    /// `offset`.
    pub offset: Amount,
    /// `offset_increment`.
    pub offset_increment: Amount,
    /// `numjobs`.
    pub clones: u32,
    /// `iodepth`.
    pub depth: u32,
    /// `iodepth_batch`: requests that are submitted together; `None`: those that there are.
    pub batch: Option<u32>,
    /// `iodepth_batch_complete_min`: completions that are waited for.
    pub batch_complete: u32,
    /// `iodepth_batch_complete_max`: the most that are taken at once.
    pub batch_complete_most: Option<u32>,
    /// `ioengine`.
    pub engine: FioEngine,
    /// Its name as written.
    pub engine_name: String,
    /// `direct`.
    pub direct: bool,
    /// `sync`.
    pub sync: SyncMode,
    /// `fsync`: after so many writes; 0: never.
    pub fsync: u64,
    /// `fdatasync`, likewise.
    pub fdatasync: u64,
    /// `end_fsync` or `fsync_on_close`.
    pub end_fsync: bool,
    /// `fallocate`.
    pub fallocate: Fallocate,
    /// `overwrite`: the file is filled before it is written.
    pub overwrite: bool,
    /// `group_reporting`.
    pub group_reporting: bool,
    /// `stonewall`: begins when those before it ended.
    pub stonewall: bool,
    /// `new_group`.
    pub new_group: bool,
    /// `runtime`.
    pub runtime_ns: u64,
    /// `time_based`.
    pub time_based: bool,
    /// `ramp_time`.
    pub ramp_ns: u64,
    /// `startdelay`: from the shortest to the longest.
    pub start_delay_ns: [u64; 2],
    /// `steadystate` with its options.
    pub steady: Criterion,
    /// `rate` in bytes per second of reads and of writes.
    pub rate_bytes: [Option<u64>; 2],
    /// `rate_iops`.
    pub rate_iops: [Option<u64>; 2],
    /// `thinktime`.
    pub think_ns: u64,
    /// `random_distribution`.
    pub distribution: Distribution,
    /// `norandommap`: blocks are drawn with repetition.
    pub no_random_map: bool,
    /// `randseed`.
    pub seed: Option<u64>,
    /// `randrepeat`: the same sequence in every run.
    pub repeatable: bool,
    /// `invalidate`: nothing of the file is in the cache at the start.
    pub invalidate: bool,
    /// `fadvise_hint`.
    pub hint: bool,
    /// `buffer_compress_percentage`; `zero_buffers` is 100.
    pub compressible_percent: u8,
    /// `dedupe_percentage`.
    pub duplicate_percent: u8,
    /// `verify`: blocks describe themselves, and are checked.
    pub verify: Option<Method>,
    /// `verify_pattern`.
    pub pattern: Vec<u8>,
    /// `do_verify`: what was written is read back at the end.
    pub do_verify: bool,
    /// `percentile_list`.
    pub percentiles: Vec<f64>,
    /// `clat_percentiles`.
    pub clat_percentiles: bool,
    /// `lat_percentiles`.
    pub lat_percentiles: bool,
    /// The logs.
    pub logs: Logs,
    /// `kb_base`.
    pub kb_base: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            description: None,
            reads: true,
            writes: false,
            random: false,
            mode: "read",
            mix_read: 50,
            blocks: [SizeMix::one(4096), SizeMix::one(4096)],
            align_bytes: None,
            size: None,
            file_bytes: None,
            io_size: None,
            loops: 1,
            directories: Vec::new(),
            filenames: Vec::new(),
            files: 1,
            service: FileService::RoundRobin,
            filename_format: "$jobname.$jobnum.$filenum".into(),
            unlink: false,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            clones: 1,
            depth: 1,
            batch: None,
            batch_complete: 1,
            batch_complete_most: None,
            engine: FioEngine::Blocking,
            engine_name: "psync".into(),
            direct: false,
            sync: SyncMode::None,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            fallocate: Fallocate::Reserve,
            overwrite: false,
            group_reporting: false,
            stonewall: false,
            new_group: false,
            runtime_ns: 0,
            time_based: false,
            ramp_ns: 0,
            start_delay_ns: [0; 2],
            steady: Criterion::default(),
            rate_bytes: [None; 2],
            rate_iops: [None; 2],
            think_ns: 0,
            distribution: Distribution::Uniform,
            no_random_map: false,
            seed: None,
            repeatable: true,
            invalidate: true,
            hint: true,
            compressible_percent: 0,
            duplicate_percent: 0,
            verify: None,
            pattern: Vec::new(),
            do_verify: true,
            percentiles: PERCENTILES.to_vec(),
            clat_percentiles: true,
            lat_percentiles: false,
            logs: Logs::default(),
            kb_base: 1024,
        }
    }
}

/// Options that are on without a value, and so take none from the next argument.
pub(crate) const SWITCHES: [&str; 10] = [
    "time_based",
    "group_reporting",
    "stonewall",
    "wait_for_previous",
    "thread",
    "norandommap",
    "new_group",
    "exitall",
    "readonly",
    "bs_unaligned",
];

/// One name for an option with several.
pub(crate) fn canonical(name: &str) -> &str {
    match name {
        "blocksize" => "bs",
        "readwrite" => "rw",
        "blockalign" => "ba",
        "io_limit" => "io_size",
        "blocksize_range" => "bsrange",
        "iodepth_batch_submit" => "iodepth_batch",
        "iodepth_batch_complete" => "iodepth_batch_complete_min",
        "ss" => "steadystate",
        "ss_dur" => "steadystate_duration",
        "ss_ramp" => "steadystate_ramp_time",
        "wait_for_previous" => "stonewall",
        "ramp_time" | "ramp" => "ramp_time",
        "start_delay" => "startdelay",
        "iomem" => "mem",
        other => other,
    }
}

impl Options {
    /// How blocks are verified, the pattern filled in.
    pub(crate) fn method(&self) -> Option<Method> {
        match &self.verify {
            Some(Method::Pattern(_)) => Some(Method::Pattern(self.pattern.clone())),
            other => other.clone(),
        }
    }

    /// Percent of the requests that read.
    pub fn read_percent(&self) -> u8 {
        match (self.reads, self.writes) {
            (true, true) => self.mix_read,
            (true, false) => 100,
            _ => 0,
        }
    }
}
