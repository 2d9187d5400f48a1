//! Settings from the command line or an XML profile.

use super::ThreadPool;
use crate::concurrent::RequestRange;
use crate::parse::refuse;
use machine::units::show_size;
use machine::{Buffering, Engine, Hint, Memory, Result};
use std::path::PathBuf;
use workload::{Data, MAX_DEPTH, MAX_REQUEST_BYTES, Pattern, Stop, Workload};

/// `-S`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Caching {
    #[default]
    Cached,
    /// No software cache.
    Uncached,
    Mapped,
}

/// Length of a `-rd` range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeLength {
    /// Of the target.
    Percent(u8),
    Bytes(u64),
}

impl RangeLength {
    /// Percent or bytes.
    pub fn number(self) -> u64 {
        match self {
            RangeLength::Percent(percent) => percent.into(),
            RangeLength::Bytes(bytes) => bytes,
        }
    }
}

/// Data of writes (`-Z`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// New in each write: the original's 0, 1, ... 255 compress to nothing.
    #[default]
    Random,
    Zero,
}

/// `-R`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Text,
    Xml,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// May be a directory for a new file.
    pub path: PathBuf,
    /// `-b`
    pub block_bytes: u32,
    /// `-r`: alignment of random offsets.
    pub random_bytes: Option<u64>,
    /// `-rs`: the others follow the previous request; `None`: all are random.
    pub random_percent: Option<u8>,
    /// `-rdpct`, `-rdabs`: percentages of the requests; the others go to the remaining part.
    pub ranges: Vec<(u8, RangeLength)>,
    /// `-i`: requires a pause.
    pub burst: Option<u32>,
    /// `-j`
    pub pause_ms: Option<u32>,
    /// `-s`; `None`: the block size.
    pub stride_bytes: Option<u64>,
    /// `-si`
    pub interlocked: bool,
    /// `-B`
    pub base_bytes: u64,
    /// `-f`: end of the used bytes.
    pub max_bytes: Option<u64>,
    /// `-fs`, `-fr`
    pub hint: Hint,
    /// `-o`: per thread.
    pub outstanding: u32,
    /// `-t`
    pub threads: u32,
    /// `-T`: between the first requests of neighbouring threads.
    pub thread_stride_bytes: u64,
    /// `-w`
    pub write_percent: u8,
    /// `-S`
    pub caching: Caching,
    /// `-Sw`, `-Sh`: writes complete on stable storage.
    pub write_through: bool,
    /// `-c`
    pub create_bytes: Option<u64>,
    /// `-Z`
    pub source: Source,
    /// `-Z<size>`: writes cycle through it; no effect on random data.
    pub source_bytes: Option<u64>,
    /// `-Z<size>,<file>`
    pub source_file: Option<PathBuf>,
    /// `-l`
    pub large_pages: bool,
    /// `-g`: of each thread.
    pub throughput_bytes_per_ms: Option<u32>,
    /// `-g<n>i`: of each thread.
    pub throughput_iops: Option<u32>,
    /// `<Weight>`: relative share of a pool's requests.
    pub weight: u32,
    /// `<ThreadTargets>`: threads with their weights; empty: all.
    pub thread_weights: Vec<(u32, Option<u32>)>,
}

impl Target {
    /// The original's defaults.
    pub fn new(path: PathBuf) -> Target {
        Target {
            path,
            block_bytes: 64 << 10,
            random_bytes: None,
            random_percent: None,
            ranges: Vec::new(),
            burst: None,
            pause_ms: None,
            stride_bytes: None,
            interlocked: false,
            base_bytes: 0,
            max_bytes: None,
            hint: Hint::None,
            outstanding: 2,
            threads: 1,
            thread_stride_bytes: 0,
            write_percent: 0,
            caching: Caching::Cached,
            write_through: false,
            create_bytes: None,
            source: Source::Random,
            source_bytes: None,
            source_file: None,
            large_pages: false,
            throughput_bytes_per_ms: None,
            throughput_iops: None,
            weight: 1,
            thread_weights: Vec::new(),
        }
    }

    /// 100 % and 0 % equal `-r` and `-s`.
    pub(crate) fn with_random_percent(mut self, percent: Option<u8>) -> Target {
        match percent {
            Some(0) => (self.random_bytes, self.random_percent) = (None, None),
            Some(100) | None => self.random_percent = None,
            some => self.random_percent = some,
        }
        self
    }

    /// The distance between offsets.
    pub fn step_bytes(&self) -> u64 {
        self.random_bytes.or(self.stride_bytes).unwrap_or(u64::from(self.block_bytes))
    }

    pub(crate) fn used_bytes(&self, size_bytes: u64) -> u64 {
        self.max_bytes.unwrap_or(u64::MAX).min(size_bytes).saturating_sub(self.base_bytes)
    }

    /// Requests start within this length.
    pub(crate) fn room_bytes(&self, size_bytes: u64) -> u64 {
        self.used_bytes(size_bytes).saturating_sub(u64::from(self.block_bytes))
    }

    /// Checks what does not depend on the file.
    pub fn check(&self) -> Result<()> {
        let block = u64::from(self.block_bytes);
        if self.block_bytes == 0 || self.block_bytes > MAX_REQUEST_BYTES {
            return refuse(
                format!("-b: a block of {}", show_size(block)),
                "a request has from 1 B to 1 GiB",
                "choose a size between them",
            );
        }
        if self.step_bytes() == 0 {
            return refuse(
                "-r and -s",
                "places cannot be 0 bytes apart",
                "give a larger value, or none",
            );
        }
        if self.random_bytes.is_some() && (self.stride_bytes.is_some() || self.interlocked) {
            return refuse(
                "-r and -s",
                "requests are random or sequential",
                "leave out one of the two",
            );
        }
        self.check_ranges()?;
        if self.burst.is_some() != self.pause_ms.is_some() {
            return refuse(
                "-i and -j",
                "a burst and the pause after it belong together",
                "give both, or neither",
            );
        }
        if self.random_bytes.is_some() && self.thread_stride_bytes > 0 {
            return refuse(
                "-r and -T",
                "random threads have no place to start from",
                "leave out one of the two",
            );
        }
        if self.interlocked && self.thread_stride_bytes > 0 {
            return refuse(
                "-si and -T",
                "threads that share one sequence have no starting points of their own",
                "leave out one of the two",
            );
        }
        if self.outstanding == 0
            || self.outstanding > MAX_DEPTH
            || self.threads == 0
            || self.threads > 1024
            || self.write_percent > 100
        {
            return refuse(
                "-o, -t or -w",
                "there are 1 to 65536 requests outstanding, 1 to 1024 threads, 0 to 100 % writes",
                "choose values between them",
            );
        }
        if self.max_bytes.is_some_and(|max| max < self.base_bytes.saturating_add(block)) {
            return refuse(
                "-B and -f",
                "no request fits between them",
                "begin earlier or end later",
            );
        }
        if [self.throughput_bytes_per_ms, self.throughput_iops].contains(&Some(0))
            || self.create_bytes == Some(0)
        {
            return refuse("-c and -g", "0 is nothing", "give a larger value, or none");
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<()> {
        let part = self.random_percent.is_some() || !self.ranges.is_empty();
        if part && self.random_bytes.is_none() {
            return refuse("-rs and -rd", "they are about random places", "add -r");
        }
        if part && self.interlocked {
            return refuse(
                "-rs, -rd and -si",
                "threads that share one sequence draw no places",
                "leave out -si",
            );
        }
        let requests: u32 = self.ranges.iter().map(|range| u32::from(range.0)).sum();
        if self.ranges.iter().any(|range| matches!(range.1, RangeLength::Bytes(_))) {
            return self.check_ranges_in_bytes(requests);
        }
        let target: u64 = self.ranges.iter().map(|range| range.1.number()).sum();
        let empty = self.ranges.iter().any(|range| range.1.number() == 0);
        if requests > 100 || target > 100 || empty || (target == 100 && requests < 100) {
            let why = format!("{requests} % of the requests go to {target} % of the target");
            return refuse(
                "-rdpct",
                why,
                "give each range a part of the target, and divide both completely or neither",
            );
        }
        Ok(())
    }

    fn check_ranges_in_bytes(&self, requests: u32) -> Result<()> {
        let block = u64::from(self.block_bytes);
        let bytes = |range: &(u8, RangeLength)| match range.1 {
            RangeLength::Bytes(bytes) => Some(bytes),
            RangeLength::Percent(_) => None,
        };
        let lengths: Option<Vec<u64>> = self.ranges.iter().map(bytes).collect();
        if requests > 100
            || lengths.is_none_or(|all| all.iter().any(|bytes| !(block..1 << 60).contains(bytes)))
        {
            return refuse(
                "-rdabs",
                format!(
                    "{requests} % of the requests go to ranges, each of which needs a whole block"
                ),
                "give each range at least the bytes of -b, and all of them at most 100 %",
            );
        }
        Ok(())
    }

    /// Adds the remainder.
    pub(crate) fn whole_ranges(&self, bytes: u64) -> Result<Vec<RequestRange>> {
        let (mut end, mut requests) = (0.0_f64, 0);
        let mut ranges = Vec::new();
        for &(percent, length) in &self.ranges {
            requests += percent;
            end = match length {
                RangeLength::Percent(part) => end + f64::from(part) / 100.0,
                RangeLength::Bytes(part) => end + part as f64 / bytes.max(1) as f64,
            };
            ranges.push(RequestRange { percent, end });
        }
        // Sums of percentages are not exact.
        if end > 1.0 + 1e-9 {
            return refuse(
                "-rdabs",
                format!("the ranges are longer than the {} in use", show_size(bytes)),
                "make them shorter, or the target larger",
            );
        }
        if !ranges.is_empty() && end < 1.0 - 1e-9 {
            ranges.push(RequestRange { percent: 100 - requests, end: 1.0 });
        }
        Ok(ranges)
    }

    fn thread_iops(&self) -> Option<f64> {
        let by_bytes = self
            .throughput_bytes_per_ms
            .map(|bytes| f64::from(bytes) * 1e3 / f64::from(self.block_bytes));
        self.throughput_iops.map(f64::from).or(by_bytes)
    }

    /// Its region has one block per offset.
    pub fn workload(
        &self,
        span: &TimeSpan,
        threads: u32,
        size_bytes: u64,
        engines: &[Engine],
    ) -> Result<Workload> {
        let end = self.max_bytes.unwrap_or(u64::MAX).min(size_bytes);
        let block = u64::from(self.block_bytes);
        let Some(room) =
            end.checked_sub(self.base_bytes).and_then(|bytes| bytes.checked_sub(block))
        else {
            let why = format!(
                "no block of {} fits between {} and {}",
                show_size(block),
                show_size(self.base_bytes),
                show_size(end)
            );
            return refuse(
                self.path.display().to_string(),
                why,
                "use smaller blocks or a larger file",
            );
        };
        let places = room / self.step_bytes() + 1;
        // DISKSPD also refuses a thread that starts past the end.
        let behind =
            u64::from(self.threads.saturating_sub(1)).saturating_mul(self.thread_stride_bytes);
        if behind > room {
            let why = format!(
                "a thread begins at {}, and there no block fits into it",
                show_size(self.base_bytes.saturating_add(behind))
            );
            return refuse(
                self.path.display().to_string(),
                why,
                "use a smaller -T, fewer threads or a larger file",
            );
        }
        let mapped = self.caching == Caching::Mapped;
        let depth = if mapped { 1 } else { self.outstanding };
        Ok(Workload {
            read_percent: 100 - self.write_percent,
            pattern: if self.random_bytes.is_some() { Pattern::Random } else { Pattern::Seq },
            request_bytes: self.block_bytes,
            depth,
            threads,
            engine: engine(mapped, depth, engines),
            buffering: match (self.caching, self.write_through) {
                (Caching::Cached | Caching::Mapped, false) => Buffering::Buffered,
                (Caching::Cached | Caching::Mapped, true) => Buffering::BufferedDsync,
                (Caching::Uncached, false) => Buffering::Direct,
                (Caching::Uncached, true) => Buffering::DirectDsync,
            },
            hint: self.hint,
            memory: if self.large_pages { Memory::Huge } else { Memory::Pages },
            region_start_bytes: self.base_bytes,
            region_bytes: Some(places.saturating_mul(block)),
            stop: Stop::AfterNs(u64::from(span.duration_s) * 1_000_000_000),
            rate_iops: self.thread_iops().map(|rate| rate * f64::from(threads)),
            data: Data {
                compressible_percent: if self.source == Source::Zero { 100 } else { 0 },
                ..Data::default()
            },
            seed: u64::from(span.seed) + 1,
            ..Workload::default()
        })
    }
}

/// Targets that run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSpan {
    /// `-d`
    pub duration_s: u32,
    /// `-W`
    pub warm_up_s: u32,
    /// `-C`
    pub cool_down_s: u32,
    /// `-z`
    pub seed: u32,
    /// `-L`
    pub latency: bool,
    /// `-x`: only for the report.
    pub completion_routines: bool,
    /// `-D`: intervals of the rate's deviation.
    pub interval_ms: Option<u32>,
    /// `-a`; empty: all.
    pub processors: Vec<u32>,
    /// `-F`; `None`: each target has its own threads.
    pub pool: Option<ThreadPool>,
    pub targets: Vec<Target>,
}

impl Default for TimeSpan {
    fn default() -> Self {
        TimeSpan {
            duration_s: 10,
            warm_up_s: 5,
            cool_down_s: 0,
            seed: 0,
            latency: false,
            completion_routines: false,
            interval_ms: None,
            processors: Vec::new(),
            pool: None,
            targets: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    pub spans: Vec<TimeSpan>,
    pub format: Format,
}

impl Profile {
    /// Checks what does not depend on the files.
    pub fn check(&self) -> Result<()> {
        if self.spans.is_empty() {
            return refuse("the profile", "it has no time span", "give one");
        }
        for span in &self.spans {
            if span.duration_s == 0
                || span.duration_s > 86_400_000
                || span.warm_up_s > 86_400_000
                || span.cool_down_s > 86_400_000
            {
                return refuse(
                    "-d, -W or -C",
                    "a run lasts from 1 s to 1000 days",
                    "choose a time between them",
                );
            }
            if span.interval_ms == Some(0) {
                return refuse(
                    "-D0",
                    "the shortest interval is one millisecond",
                    "give a larger value, or none",
                );
            }
            if span.targets.is_empty() {
                return refuse(
                    "the targets",
                    "none is named",
                    "name a file, a device or a directory",
                );
            }
            for target in &span.targets {
                target.check()?;
                if target.path.as_os_str().is_empty() {
                    return refuse("a target", "its name is empty", "name one");
                }
            }
            span.check_pool()?;
        }
        Ok(())
    }
}

pub(super) fn engine(mapped: bool, depth: u32, engines: &[Engine]) -> Engine {
    if mapped { Engine::mapped() } else { Engine::for_depth(depth, engines) }
}
