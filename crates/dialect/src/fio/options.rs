//! The options of one job, understood one by one.

use super::jobfile::cut;
use super::refused::{accepts_anyway, unknown};
use super::value::{Amount, Reason, amount, by_direction, number, same_range, size, switch, time_ns};

/// Nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;
/// The most percentiles that fio takes.
const MOST_PERCENTILES: usize = 20;
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

/// How random blocks are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Every block as often as any other.
    Uniform,
    /// Zipf's law with this exponent.
    Zipf(f64),
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
    /// `name`, where it was an option.
    pub name: Option<String>,
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
    /// Request size of reads and of writes.
    pub request_bytes: [u64; 2],
    /// `blockalign`.
    pub align_bytes: Option<u64>,
    /// `size`.
    pub size: Option<Amount>,
    /// `filesize`.
    pub file_bytes: Option<u64>,
    /// `io_size`.
    pub io_size: Option<Amount>,
    /// `loops`.
    pub loops: u64,
    /// `directory`.
    pub directory: Option<String>,
    /// `filename`.
    pub filename: Option<String>,
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
    /// `startdelay`.
    pub start_delay_ns: u64,
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
            name: None,
            description: None,
            reads: true,
            writes: false,
            random: false,
            mode: "read",
            mix_read: 50,
            request_bytes: [4096; 2],
            align_bytes: None,
            size: None,
            file_bytes: None,
            io_size: None,
            loops: 1,
            directory: None,
            filename: None,
            filename_format: "$jobname.$jobnum.$filenum".into(),
            unlink: false,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            clones: 1,
            depth: 1,
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
            start_delay_ns: 0,
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
        "iodepth_batch_complete_min" => "iodepth_batch_complete",
        "wait_for_previous" => "stonewall",
        "ramp_time" | "ramp" => "ramp_time",
        "start_delay" => "startdelay",
        "iomem" => "mem",
        other => other,
    }
}

/// A value that must be there.
fn need(value: Option<&str>) -> Result<&str, Reason> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| "it has no value; write one after the =".into())
}

impl Options {
    /// Takes one option.
    ///
    /// # Errors
    /// A value that is none, an option that halfpower does not serve or nobody knows; the reason alone.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), Reason> {
        let name = canonical(name);
        let groups = [Self::set_order, Self::set_files, Self::set_access, Self::set_time, Self::set_data, Self::set_report];
        for group in groups {
            if group(self, name, value)? {
                return Ok(());
            }
        }
        if accepts_anyway(name, value)? { Ok(()) } else { Err(unknown(name)) }
    }

    fn set_order(&mut self, name: &str, value: Option<&str>) -> Result<bool, Reason> {
        let kb_base = self.kb_base;
        let bytes = |text: &str| size(text, kb_base);
        match name {
            "rw" => self.set_mode(need(value)?)?,
            "rwmixread" => self.mix_read = number(need(value)?, 0, 100)? as u8,
            "rwmixwrite" => self.mix_read = 100 - number(need(value)?, 0, 100)? as u8,
            "bs" => self.request_bytes = by_direction(need(value)?, bytes)?,
            "bsrange" => self.request_bytes = by_direction(need(value)?, |text| same_range(text, bytes))?,
            "bssplit" => self.request_bytes = by_direction(need(value)?, |text| split(text, kb_base))?,
            "ba" => self.align_bytes = Some(by_direction(need(value)?, bytes)?[usize::from(!self.reads)]),
            "iodepth" => self.depth = number(need(value)?, 1, u64::from(workload::MAX_DEPTH))? as u32,
            "numjobs" => self.clones = number(need(value)?, 1, u64::from(workload::MAX_THREADS))? as u32,
            "random_distribution" => self.distribution = distribution(need(value)?)?,
            "norandommap" => self.no_random_map = switch(value)?,
            "randseed" => self.seed = Some(number(need(value)?, 0, u64::MAX)?),
            "randrepeat" | "allrandrepeat" => self.repeatable = switch(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_mode(&mut self, text: &str) -> Result<(), Reason> {
        let (reads, writes, random, mode) = match text {
            "read" => (true, false, false, "read"),
            "write" => (false, true, false, "write"),
            "randread" => (true, false, true, "randread"),
            "randwrite" => (false, true, true, "randwrite"),
            "rw" | "readwrite" => (true, true, false, "rw"),
            "randrw" => (true, true, true, "randrw"),
            "trim" | "randtrim" | "trimwrite" | "randtrimwrite" | "rwtrim" => {
                return Err("halfpower does not trim; use read, write, rw, randread, randwrite or randrw".into());
            }
            _ if text.contains(':') => return Err("the number after the colon is not served; leave it out".into()),
            _ => return Err("it is none of read, write, rw, randread, randwrite, randrw".into()),
        };
        (self.reads, self.writes, self.random, self.mode) = (reads, writes, random, mode);
        Ok(())
    }

    fn set_files(&mut self, name: &str, value: Option<&str>) -> Result<bool, Reason> {
        let kb_base = self.kb_base;
        match name {
            "directory" => self.directory = Some(one_path(need(value)?)?),
            "filename" => self.filename = Some(one_path(need(value)?)?),
            "filename_format" => self.filename_format = need(value)?.into(),
            "unlink" => self.unlink = switch(value)?,
            "size" => self.size = Some(not_nothing(amount(need(value)?, kb_base)?)?),
            "io_size" => self.io_size = Some(not_nothing(amount(need(value)?, kb_base)?)?),
            "filesize" => self.file_bytes = Some(same_range(need(value)?, |text| size(text, kb_base))?),
            "loops" => self.loops = number(need(value)?, 1, u64::from(u32::MAX))?,
            "offset" => self.offset = amount(need(value)?, kb_base)?,
            "offset_increment" => self.offset_increment = amount(need(value)?, kb_base)?,
            "fallocate" => {
                self.fallocate = match need(value)? {
                    "none" | "0" | "truncate" => Fallocate::None,
                    "native" | "posix" | "1" => Fallocate::Reserve,
                    "keep" => return Err("space beyond the end of a file is not served; use native or none".into()),
                    _ => return Err("it is none of native, posix, truncate, none".into()),
                }
            }
            "overwrite" => self.overwrite = switch(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_access(&mut self, name: &str, value: Option<&str>) -> Result<bool, Reason> {
        match name {
            "ioengine" => self.set_engine(need(value)?)?,
            "direct" => self.direct = switch(value)?,
            "buffered" => self.direct = !switch(value)?,
            "sync" => {
                self.sync = match need(value)? {
                    "none" | "0" => SyncMode::None,
                    "sync" | "1" => SyncMode::Full,
                    "dsync" => SyncMode::Data,
                    _ => return Err("it is none of 0, 1, none, sync, dsync".into()),
                }
            }
            "fsync" => self.fsync = number(need(value)?, 0, u64::from(u32::MAX))?,
            "fdatasync" => self.fdatasync = number(need(value)?, 0, u64::from(u32::MAX))?,
            "end_fsync" | "fsync_on_close" => self.end_fsync = switch(value)?,
            "invalidate" => self.invalidate = switch(value)?,
            "fadvise_hint" => {
                self.hint = match need(value)? {
                    "0" | "none" => false,
                    "1" => true,
                    _ => return Err("it is neither 0 nor 1: the hint follows from rw".into()),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_engine(&mut self, text: &str) -> Result<(), Reason> {
        self.engine = match text {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => FioEngine::Blocking,
            "libaio" => FioEngine::Libaio,
            "io_uring" => FioEngine::IoUring,
            "posixaio" => FioEngine::PosixAio,
            "mmap" => FioEngine::Mmap,
            "null" => return Err("an engine that moves no data is not served; use psync on a file in memory (/dev/shm)".into()),
            _ => return Err("halfpower serves sync, psync, vsync, pvsync, pvsync2, libaio, io_uring, posixaio and mmap".into()),
        };
        self.engine_name = text.into();
        Ok(())
    }

    fn set_time(&mut self, name: &str, value: Option<&str>) -> Result<bool, Reason> {
        let kb_base = self.kb_base;
        let rate = |text: &str| -> Result<Option<u64>, Reason> {
            if text.is_empty() { Ok(None) } else { size(text, kb_base).map(|rate| Some(rate).filter(|&rate| rate > 0)) }
        };
        match name {
            "runtime" => self.runtime_ns = time_ns(need(value)?, SECOND_NS)?,
            "time_based" => self.time_based = switch(value)?,
            "ramp_time" => self.ramp_ns = time_ns(need(value)?, SECOND_NS)?,
            "startdelay" => self.start_delay_ns = same_range(need(value)?, |text| time_ns(text, SECOND_NS))?,
            "thinktime" => self.think_ns = time_ns(need(value)?, 1000)?,
            "rate" => self.rate_bytes = by_direction(need(value)?, rate)?,
            "rate_iops" => self.rate_iops = by_direction(need(value)?, rate)?,
            "stonewall" => self.stonewall = switch(value)?,
            "new_group" => self.new_group = switch(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_data(&mut self, name: &str, value: Option<&str>) -> Result<bool, Reason> {
        let percent = || number(need(value)?, 0, 100).map(|percent| percent as u8);
        match name {
            "buffer_compress_percentage" => self.compressible_percent = percent()?,
            "zero_buffers" => self.compressible_percent = if switch(value)? { 100 } else { 0 },
            "dedupe_percentage" => self.duplicate_percent = percent()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_report(&mut self, name: &str, value: Option<&str>) -> Result<bool, Reason> {
        // A log without a name is called after its job.
        let prefix = || Some(value.unwrap_or_default().to_string());
        match name {
            "name" => self.name = Some(need(value)?.into()),
            "description" => self.description = Some(value.unwrap_or_default().into()),
            "group_reporting" => self.group_reporting = switch(value)?,
            "percentile_list" => self.percentiles = percentiles(need(value)?)?,
            "clat_percentiles" => self.clat_percentiles = switch(value)?,
            "lat_percentiles" => self.lat_percentiles = switch(value)?,
            "write_bw_log" => self.logs.bandwidth = prefix(),
            "write_iops_log" => self.logs.iops = prefix(),
            "write_lat_log" => self.logs.latency = prefix(),
            "log_avg_msec" => self.logs.average_ms = number(need(value)?, 0, 86_400_000)?,
            "kb_base" => {
                self.kb_base = match need(value)? {
                    "1024" => 1024,
                    "1000" => 1000,
                    _ => return Err("it is neither 1000 nor 1024; write one of these".into()),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
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

/// One path; a colon divides several, unless a backslash stands before it.
fn one_path(text: &str) -> Result<String, Reason> {
    let mut path = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if characters.peek() == Some(&':') => path.extend(characters.next()),
            ':' => {
                return Err(
                    "it names several; a job of halfpower's has one: give each a job of its own (a colon in a name is written \\:)".into(),
                );
            }
            c => path.push(c),
        }
    }
    Ok(path)
}

fn not_nothing(amount: Amount) -> Result<Amount, Reason> {
    if matches!(amount, Amount::Bytes(0) | Amount::Percent(0)) {
        Err("nothing would be left to do; give more than 0".into())
    } else {
        Ok(amount)
    }
}

/// A division of request sizes of which one size has everything.
fn split(text: &str, kb_base: u64) -> Result<u64, Reason> {
    let (bytes, percent) = text.split_once('/').unwrap_or((text, ""));
    if text.contains(':') || !matches!(percent, "" | "100") {
        return Err("halfpower's requests have one size; use bs".into());
    }
    size(bytes, kb_base)
}

fn distribution(text: &str) -> Result<Distribution, Reason> {
    let (name, values) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "random" => Ok(Distribution::Uniform),
        "zipf" => {
            let theta: f64 = if values.is_empty() {
                1.1
            } else {
                values.parse().map_err(|_| "its exponent is not one number; write zipf:1.2".to_string())?
            };
            if theta > 0.0 && theta.is_finite() {
                Ok(Distribution::Zipf(theta))
            } else {
                Err("its exponent is not above 0; write zipf:1.2".into())
            }
        }
        "zoned" => zones(values),
        "pareto" | "normal" | "gauss" | "zoned_abs" => Err("it is not served; use random, zipf:1.2 or zoned:90/10:10/90".into()),
        _ => Err("it is none of random, zipf:1.2, zoned:90/10:10/90".into()),
    }
}

/// Two zones that cover everything.
fn zones(values: &str) -> Result<Distribution, Reason> {
    let wrong = || "halfpower has two zones that cover all: write zoned:90/10:10/90 (90 % of the requests to the first 10 %)".to_string();
    let zones: Vec<[u64; 2]> = values
        .split(':')
        .map(|zone| {
            let (access, share) = zone.split_once('/').ok_or_else(wrong)?;
            let explained = |why: Reason| format!("{why}; {}", wrong());
            Ok([number(access, 0, 100).map_err(explained)?, number(share, 1, 99).map_err(explained)?])
        })
        .collect::<Result<_, Reason>>()?;
    match zones.as_slice() {
        [[a, s], [b, t]] if a + b == 100 && s + t == 100 => Ok(Distribution::Zones { access: *a as u8, share: *s as u8 }),
        _ => Err(wrong()),
    }
}

fn percentiles(text: &str) -> Result<Vec<f64>, Reason> {
    let mut list = Vec::new();
    for part in text.split(':') {
        let value: f64 = part.trim().parse().map_err(|_| format!("'{}' is not a number; write 50:99:99.9", cut(part)))?;
        if !(0.0..=100.0).contains(&value) {
            return Err(format!("{value} is not a percentile; write numbers from 0 to 100"));
        }
        list.push(value);
    }
    if list.len() > MOST_PERCENTILES {
        return Err(format!("it has {} percentiles; leave some out: the most is {MOST_PERCENTILES}", list.len()));
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}
