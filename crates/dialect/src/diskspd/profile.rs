//! What a run is made of, whether a command line or an XML profile said it.

use super::ThreadPool;
use crate::parse::refuse;
use machine::units::show_size;
use machine::{Buffering, Engine, Hint, Memory, Result};
use std::path::PathBuf;
use workload::{Data, MAX_DEPTH, MAX_REQUEST_BYTES, Pattern, Stop, Workload};

/// Which caches take part (`-S`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Caching {
    /// The page cache.
    #[default]
    Cached,
    /// None in software.
    Uncached,
    /// Mapped memory.
    Mapped,
}

/// The data of writes (`-Z`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// Random bytes, new in each write. The original repeats 0, 1, ... 255, which compresses to nothing.
    #[default]
    Random,
    /// Zeros.
    Zero,
}

/// How the format of results is chosen (`-R`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Xml,
}

/// A file or device and what is done to it. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The file, the device, or a directory to make a file in.
    pub path: PathBuf,
    /// `-b`: a request.
    pub block_bytes: u32,
    /// `-r`: random places, multiples of this.
    pub random_bytes: Option<u64>,
    /// `-rs`: so many percent of the requests go to random places; the others follow the one before. `None`: all are random.
    pub random_percent: Option<u8>,
    /// `-rdpct`: so many percent of the requests go to so many percent of the target, range after range. What is left of both belongs
    /// together.
    pub ranges: Vec<(u8, u8)>,
    /// `-i`: requests of a burst; with it goes a pause.
    pub burst: Option<u32>,
    /// `-j`: milliseconds from one burst to the next.
    pub pause_ms: Option<u32>,
    /// `-s`: from one sequential request to the next; `None`: a block.
    pub stride_bytes: Option<u64>,
    /// `-si`: the threads share one sequence.
    pub interlocked: bool,
    /// `-B`: first byte used.
    pub base_bytes: u64,
    /// `-f`: bytes used, from the file's beginning.
    pub max_bytes: Option<u64>,
    /// `-fs`, `-fr`: the hint to the page cache.
    pub hint: Hint,
    /// `-o`: requests that each thread keeps outstanding.
    pub outstanding: u32,
    /// `-t`: threads.
    pub threads: u32,
    /// `-T`: from one thread's first request to the next thread's.
    pub thread_stride_bytes: u64,
    /// `-w`: percent of the requests that write.
    pub write_percent: u8,
    /// `-S`
    pub caching: Caching,
    /// `-Sw`, `-Sh`: a write counts when it is on stable storage.
    pub write_through: bool,
    /// `-c`: the file is made, this long.
    pub create_bytes: Option<u64>,
    /// `-Z`
    pub source: Source,
    /// `-Z<size>`: bytes of the data that writes go through, again and again; with random data, of which there is always enough, it
    /// changes nothing.
    pub source_bytes: Option<u64>,
    /// `-Z<size>,<file>`: where that data comes from.
    pub source_file: Option<PathBuf>,
    /// `-l`: buffers lie in large pages.
    pub large_pages: bool,
    /// `-g`: bytes per millisecond of each thread.
    pub throughput_bytes_per_ms: Option<u32>,
    /// `-g<n>i`: requests per second of each thread.
    pub throughput_iops: Option<u32>,
    /// `<Weight>`: its part of the requests of a pool, beside the other targets'.
    pub weight: u32,
    /// `<ThreadTargets>`: the threads of the pool that use it, and what they give it instead of that weight; empty: all use it.
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

    /// With `-rs`: all requests and none are what `-r` and `-s` say.
    pub(crate) fn with_random_percent(mut self, percent: Option<u8>) -> Target {
        match percent {
            Some(0) => (self.random_bytes, self.random_percent) = (None, None),
            Some(100) | None => self.random_percent = None,
            some => self.random_percent = some,
        }
        self
    }

    /// Bytes from one place to the next.
    pub fn step_bytes(&self) -> u64 {
        self.random_bytes.or(self.stride_bytes).unwrap_or(u64::from(self.block_bytes))
    }

    /// Bytes in which requests begin, on a file of `size_bytes`.
    pub(crate) fn room_bytes(&self, size_bytes: u64) -> u64 {
        let end = self.max_bytes.unwrap_or(u64::MAX).min(size_bytes);
        end.saturating_sub(self.base_bytes).saturating_sub(u64::from(self.block_bytes))
    }

    /// What makes no sense whatever the file.
    ///
    /// # Errors
    /// The first such setting.
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
            return refuse("-r and -s", "places cannot be 0 bytes apart", "give a larger value, or none");
        }
        if self.random_bytes.is_some() && (self.stride_bytes.is_some() || self.interlocked) {
            return refuse("-r and -s", "requests are random or sequential", "leave out one of the two");
        }
        self.check_ranges()?;
        if self.burst.is_some() != self.pause_ms.is_some() {
            return refuse("-i and -j", "a burst and the pause after it belong together", "give both, or neither");
        }
        if self.random_bytes.is_some() && self.thread_stride_bytes > 0 {
            return refuse("-r and -T", "random threads have no place to start from", "leave out one of the two");
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
        if self.caching == Caching::Mapped && self.write_through {
            return refuse(
                "-Smw",
                "writes to mapped memory cannot be made to wait for stable storage",
                "use -Sm or -Sw",
            );
        }
        if self.max_bytes.is_some_and(|max| max < self.base_bytes.saturating_add(block)) {
            return refuse("-B and -f", "no request fits between them", "begin earlier or end later");
        }
        if [self.throughput_bytes_per_ms, self.throughput_iops].contains(&Some(0)) || self.create_bytes == Some(0) {
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
            return refuse("-rs, -rd and -si", "threads that share one sequence draw no places", "leave out -si");
        }
        let sum = |of: fn(&(u8, u8)) -> u8| self.ranges.iter().map(|range| u32::from(of(range))).sum::<u32>();
        let (requests, target) = (sum(|range| range.0), sum(|range| range.1));
        let empty = self.ranges.iter().any(|range| range.1 == 0);
        if requests > 100 || target > 100 || empty || (target == 100 && requests < 100) {
            let why = format!("{requests} % of the requests go to {target} % of the target");
            return refuse("-rdpct", why, "let each range have some of it, and none of both be left alone");
        }
        Ok(())
    }

    /// The ranges, and what is left as the last of them.
    pub(crate) fn whole_ranges(&self) -> Vec<(u8, u8)> {
        let mut ranges = self.ranges.clone();
        let target: u8 = ranges.iter().map(|range| range.1).sum();
        if !ranges.is_empty() && target < 100 {
            ranges.push((100 - ranges.iter().map(|range| range.0).sum::<u8>(), 100 - target));
        }
        ranges
    }

    /// Requests per second of each thread, where they are limited.
    fn thread_iops(&self) -> Option<f64> {
        let by_bytes = self.throughput_bytes_per_ms.map(|bytes| f64::from(bytes) * 1e3 / f64::from(self.block_bytes));
        self.throughput_iops.map(f64::from).or(by_bytes)
    }

    /// The workload of so many of the target's threads on a file of `size_bytes`, whose region has a block for each place.
    ///
    /// # Errors
    /// A file that is too small.
    pub fn workload(&self, span: &TimeSpan, threads: u32, size_bytes: u64, engines: &[Engine]) -> Result<Workload> {
        let end = self.max_bytes.unwrap_or(u64::MAX).min(size_bytes);
        let block = u64::from(self.block_bytes);
        let Some(room) = end.checked_sub(self.base_bytes).and_then(|bytes| bytes.checked_sub(block)) else {
            let why = format!(
                "no block of {} fits between {} and {}",
                show_size(block),
                show_size(self.base_bytes),
                show_size(end)
            );
            return refuse(self.path.display().to_string(), why, "use smaller blocks or a larger file");
        };
        let places = room / self.step_bytes() + 1;
        // The original refuses a thread that begins behind the end, too.
        let behind = u64::from(self.threads.saturating_sub(1)).saturating_mul(self.thread_stride_bytes);
        if behind > room {
            let why = format!(
                "a thread begins at {}, and there no block fits into it",
                show_size(self.base_bytes.saturating_add(behind))
            );
            return refuse(self.path.display().to_string(), why, "use a smaller -T, fewer threads or a larger file");
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
            data: Data { compressible_percent: if self.source == Source::Zero { 100 } else { 0 }, ..Data::default() },
            seed: u64::from(span.seed) + 1,
            ..Workload::default()
        })
    }
}

/// One run of all its targets at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSpan {
    /// `-d`: seconds that are measured.
    pub duration_s: u32,
    /// `-W`: seconds before.
    pub warm_up_s: u32,
    /// `-C`: seconds after.
    pub cool_down_s: u32,
    /// `-z`: seeds random places and data.
    pub seed: u32,
    /// `-L`: latencies are reported.
    pub latency: bool,
    /// `-D`: the spread of the rate over intervals of so many milliseconds is reported.
    pub interval_ms: Option<u32>,
    /// `-a`: processors that the threads run on; none: all.
    pub processors: Vec<u32>,
    /// `-F`: threads that work on all targets; none: each target has its own.
    pub pool: Option<ThreadPool>,
    /// The files.
    pub targets: Vec<Target>,
}

impl Default for TimeSpan {
    /// The original's defaults, without a target.
    fn default() -> Self {
        TimeSpan {
            duration_s: 10,
            warm_up_s: 5,
            cool_down_s: 0,
            seed: 0,
            latency: false,
            interval_ms: None,
            processors: Vec::new(),
            pool: None,
            targets: Vec::new(),
        }
    }
}

/// Everything that is run, one time span after another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// The runs.
    pub spans: Vec<TimeSpan>,
    /// How results are reported.
    pub format: Format,
}

impl Profile {
    /// What makes no sense whatever the files.
    ///
    /// # Errors
    /// The first such setting.
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
                return refuse("-d, -W or -C", "a run lasts from 1 s to 1000 days", "choose a time between them");
            }
            if span.interval_ms == Some(0) {
                return refuse("-D0", "an interval lasts a millisecond at least", "give a larger value, or none");
            }
            if span.targets.is_empty() {
                return refuse("the targets", "none is named", "name a file, a device or a directory");
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

/// The engine that serves a thread's requests.
pub(super) fn engine(mapped: bool, depth: u32, engines: &[Engine]) -> Engine {
    if mapped { Engine::mapped() } else { Engine::for_depth(depth, engines) }
}
