//! The options of one job, understood one by one.

use super::choices::{distribution, pattern, percentiles, range, split};
use super::options::{Fallocate, FileService, FioEngine, Options, SyncMode, canonical};
use super::refused::{accepts_anyway, unknown};
use super::value::{Amount, Reason, amount, by_direction, ends, number, size, switch, time_ns};
use super::verify::Method;
use workload::SizeMix;

/// Nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;
/// The most files of a job.
const MOST_FILES: u64 = 1024;

/// A request size.
fn request(text: &str, kb_base: u64) -> Result<u32, Reason> {
    super::choices::request(size(text, kb_base)?)
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
        let groups =
            [Self::set_order, Self::set_files, Self::set_access, Self::set_time, Self::set_data, Self::set_report];
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
            "bs" => self.blocks = by_direction(need(value)?, |text| request(text, kb_base).map(SizeMix::one))?,
            "bsrange" => self.blocks = by_direction(need(value)?, |text| range(text, kb_base))?,
            "bssplit" => self.blocks = by_direction(need(value)?, |text| split(text, kb_base))?,
            "ba" => self.align_bytes = Some(by_direction(need(value)?, bytes)?[usize::from(!self.reads)]),
            "iodepth" => self.depth = number(need(value)?, 1, u64::from(workload::MAX_DEPTH))? as u32,
            "iodepth_batch" => self.batch = Some(number(need(value)?, 0, u64::from(workload::MAX_DEPTH))? as u32),
            "iodepth_batch_complete_min" => {
                self.batch_complete = number(need(value)?, 0, u64::from(workload::MAX_DEPTH))? as u32
            }
            "iodepth_batch_complete_max" => {
                self.batch_complete_most = Some(number(need(value)?, 0, u64::from(workload::MAX_DEPTH))? as u32);
            }
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
            "directory" => self.directories = paths(need(value)?)?,
            "filename" => self.filenames = paths(need(value)?)?,
            "nrfiles" => self.files = number(need(value)?, 1, MOST_FILES)? as u32,
            "file_service_type" => {
                self.service = match need(value)? {
                    "roundrobin" => FileService::RoundRobin,
                    "sequential" => FileService::Sequential,
                    "random" => FileService::Random,
                    _ => return Err("halfpower serves roundrobin, sequential and random".into()),
                }
            }
            "filename_format" => self.filename_format = need(value)?.into(),
            "unlink" => self.unlink = switch(value)?,
            "size" => self.size = Some(not_nothing(amount(need(value)?, kb_base)?)?),
            "io_size" => self.io_size = Some(not_nothing(amount(need(value)?, kb_base)?)?),
            "filesize" => self.file_bytes = Some(ends(need(value)?, |text| size(text, kb_base))?),
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
        self.engine =
            match text {
                "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => FioEngine::Blocking,
                "libaio" => FioEngine::Libaio,
                "io_uring" => FioEngine::IoUring,
                "posixaio" => FioEngine::PosixAio,
                "mmap" => FioEngine::Mmap,
                "null" => FioEngine::Null,
                _ => return Err(
                    "halfpower serves sync, psync, vsync, pvsync, pvsync2, libaio, io_uring, posixaio, mmap and null"
                        .into(),
                ),
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
            "startdelay" => self.start_delay_ns = ends(need(value)?, |text| time_ns(text, SECOND_NS))?,
            "thinktime" => self.think_ns = time_ns(need(value)?, 1000)?,
            "rate" => self.rate_bytes = by_direction(need(value)?, rate)?,
            "rate_iops" => self.rate_iops = by_direction(need(value)?, rate)?,
            "steadystate" => self.steady.set(need(value)?)?,
            "steadystate_duration" => self.steady.duration_ns = time_ns(need(value)?, SECOND_NS)?,
            "steadystate_ramp_time" => self.steady.ramp_ns = time_ns(need(value)?, SECOND_NS)?,
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
            "verify" => {
                self.verify = match need(value)? {
                    "0" | "none" => None,
                    "crc32c" | "crc32c-intel" => Some(Method::Crc32c),
                    "xxhash" => Some(Method::Xxhash),
                    "pattern" => Some(Method::Pattern(Vec::new())),
                    _ => return Err("halfpower serves crc32c, xxhash and pattern; write one of these".into()),
                }
            }
            "verify_pattern" => self.pattern = pattern(need(value)?)?,
            "do_verify" => self.do_verify = switch(value)?,
            "dedupe_percentage" => self.duplicate_percent = percent()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_report(&mut self, name: &str, value: Option<&str>) -> Result<bool, Reason> {
        // A log without a name is called after its job.
        let prefix = || Some(value.unwrap_or_default().to_string());
        match name {
            // As fio does: a job is called after its section.
            "name" => drop(need(value)?),
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
}

/// Paths with colons between them; a backslash before a colon makes it part of a name.
fn paths(text: &str) -> Result<Vec<String>, Reason> {
    if text.starts_with("twin:") {
        // The colon belongs to the name of a simulated machine, which stands alone.
        return Ok(vec![text.into()]);
    }
    let mut paths = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let last = paths.last_mut().expect("there is always one");
        match c {
            '\\' if characters.peek() == Some(&':') => last.extend(characters.next()),
            ':' => paths.push(String::new()),
            c => last.push(c),
        }
    }
    if paths.iter().any(String::is_empty) {
        return Err("a name between colons is empty; leave out the colon (one in a name is written \\:)".into());
    }
    if paths.len() as u64 > MOST_FILES {
        return Err(format!("it names {} places; the most is {MOST_FILES}", paths.len()));
    }
    Ok(paths)
}

fn not_nothing(amount: Amount) -> Result<Amount, Reason> {
    if matches!(amount, Amount::Bytes(0) | Amount::Percent(0)) {
        Err("nothing would be left to do; give more than 0".into())
    } else {
        Ok(amount)
    }
}
