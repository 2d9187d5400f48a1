use crate::verify::UNIT_BYTES;
use crate::{Error, Pattern, SizeMix, Stop, Workload};
use machine::units::show_size;
use machine::{Allocation, Reap};

pub const MAX_REQUEST_BYTES: u32 = 1 << 30;
pub use machine::MAX_DEPTH;
/// Streams or, with [`machine::Engine::Threads`], all their threads.
pub const MAX_THREADS: u32 = 4096;
/// One per nanosecond, the clock's resolution.
pub const MAX_RATE_IOPS: f64 = 1e9;

/// Refuses bytes that direct I/O cannot have; an alignment of 0 allows all.
pub fn check_direct(name: &str, bytes: u64, align_bytes: u32) -> Result<(), Error> {
    if align_bytes == 0 || bytes.is_multiple_of(u64::from(align_bytes)) {
        return Ok(());
    }
    let align = show_size(u64::from(align_bytes));
    refuse(
        format!("{name} {} with direct I/O", show_size(bytes)),
        format!("direct I/O on this target needs multiples of {align}"),
        "use a multiple, or buffered I/O",
    )
}

pub(crate) fn refuse<T>(
    what: String,
    why: impl Into<String>,
    hint: impl Into<String>,
) -> Result<T, Error> {
    Err(Error::refused(what, why, hint))
}

impl Workload {
    /// Direct I/O needs multiples of `align_bytes`. The error is the first invalid setting.
    ///
    /// ```
    /// use workload::Workload;
    ///
    /// let odd = Workload { request_bytes: 1000, ..Workload::default() };
    /// let error = odd.check(1 << 30, 512).unwrap_err();
    /// assert!(error.to_string().contains("1000"), "{error}");
    /// ```
    pub fn check(&self, size_bytes: u64, align_bytes: u32) -> Result<(), Error> {
        self.check_pattern()?;
        self.check_concurrency()?;
        self.check_timing()?;
        self.check_load()?;
        self.check_data()?;
        self.check_access(align_bytes)?;
        self.check_region(size_bytes)
    }

    pub(crate) fn check_pattern(&self) -> Result<(), Error> {
        let request = self.request_bytes;
        if request == 0 || request > MAX_REQUEST_BYTES {
            let what = format!("request size {}", show_size(u64::from(request)));
            return refuse(
                what,
                "request sizes are from 1 B to 1 GiB",
                "choose one of them, such as 64k",
            );
        }
        if self.read_percent > 100 {
            return refuse(
                format!("{} % reads", self.read_percent),
                "a share is at most 100 %",
                "use 0 to 100",
            );
        }
        match self.pattern {
            Pattern::Seq
            | Pattern::Together
            | Pattern::Random
            | Pattern::Uniform
            | Pattern::Backward => Ok(()),
            Pattern::Stride(bytes) if bytes == 0 || !bytes.is_multiple_of(u64::from(request)) => {
                refuse(
                    format!("stride {}", show_size(bytes)),
                    format!(
                        "it is not a multiple of the request size {}",
                        show_size(u64::from(request))
                    ),
                    "use a multiple of the request size, at least one",
                )
            }
            Pattern::Columns(0) => {
                refuse("0 columns".into(), "each row needs at least one block", "use 1 or more")
            }
            Pattern::Columns(columns) if columns < self.threads => refuse(
                format!("{columns} columns for {} streams", self.threads),
                "each stream needs at least one column",
                "use more columns or fewer streams",
            ),
            Pattern::Zipf(theta) if !(theta > 0.0 && theta.is_finite()) => refuse(
                format!("zipf exponent {theta}"),
                "it must be above 0",
                "use about 1 (0.99 and 1.2 are common)",
            ),
            Pattern::HotCold { hot_percent, .. } if !(1..=99).contains(&hot_percent) => refuse(
                format!("{hot_percent} % hot"),
                "the cold part of the region would be empty",
                "use 1 to 99 for the hot share of the region",
            ),
            Pattern::HotCold { access_percent, .. } if access_percent > 100 => refuse(
                format!("{access_percent} % of the requests hot"),
                "a share is at most 100 %",
                "use 0 to 100",
            ),
            Pattern::Pareto(h) if !(h > 0.0 && h < 1.0) => refuse(
                format!("pareto share {h}"),
                "it must be between 0 and 1",
                "use 0.2 for 80 % of the requests to 20 % of the blocks",
            ),
            Pattern::Normal { deviation_percent, .. }
                if !(deviation_percent > 0.0 && deviation_percent <= 100.0) =>
            {
                refuse(
                    format!("a normal distribution with a deviation of {deviation_percent} %"),
                    "it is a share of the region above 0 %",
                    "use a percentage up to 100, such as 20",
                )
            }
            Pattern::Normal { center_percent, .. } if !(0.0..=100.0).contains(&center_percent) => {
                refuse(
                    format!("a normal distribution around {center_percent} %"),
                    "the center must be in the region",
                    "use 0 to 100 %",
                )
            }
            Pattern::Stride(_)
            | Pattern::Columns(_)
            | Pattern::Zipf(_)
            | Pattern::HotCold { .. }
            | Pattern::Pareto(_)
            | Pattern::Normal { .. } => Ok(()),
        }?;
        self.check_sizes()
    }

    fn check_concurrency(&self) -> Result<(), Error> {
        let (depth, threads) = (self.depth, self.threads);
        if depth == 0 || depth > MAX_DEPTH {
            return refuse(
                format!("depth {depth}"),
                "a stream keeps from 1 to 65536 requests outstanding",
                "choose a depth in this range",
            );
        }
        if threads == 0 || threads > MAX_THREADS {
            return refuse(
                format!("{threads} threads"),
                "a run has from 1 to 4096 streams",
                "choose a number in this range",
            );
        }
        if depth > self.engine.max_depth() {
            return refuse(
                format!("depth {depth} with the engine {}", self.engine),
                "its calls block, so one request is outstanding at a time",
                "use depth 1 and more threads, or the engine threads, io_uring or libaio",
            );
        }
        if self.reap == Reap::AtLeast(0) || self.reap != Reap::default() && !self.engine.is_async()
        {
            return refuse(
                format!("waiting for {} completions with the engine {}", self.reap, self.engine),
                "its calls return with one request each",
                "wait for 1, or use the engine io_uring or libaio",
            );
        }
        if self.engine.has_workers() && self.outstanding() > MAX_THREADS {
            return refuse(
                format!("depth {depth} in {threads} streams with the engine {}", self.engine),
                format!("it needs {} threads, and a run has at most 4096", self.outstanding()),
                "lower the depth or the streams, or use the engine io_uring",
            );
        }
        Ok(())
    }

    fn check_timing(&self) -> Result<(), Error> {
        if let Some(rate) = self.rate_iops.filter(|rate| !(*rate > 0.0 && *rate <= MAX_RATE_IOPS)) {
            return refuse(
                format!("rate {rate} requests/s"),
                "a rate is above 0 and at most 10^9",
                "choose a rate in this range, or none to run at full speed",
            );
        }
        match self.stop {
            Stop::AfterNs(0) => refuse(
                "a run of 0 s".into(),
                "nothing would be measured",
                "give it a time above 0, such as 1s",
            ),
            Stop::AfterBytes(bytes) => self.check_bytes("a run", bytes),
            Stop::AfterNs(_) => Ok(()),
        }?;
        self.limit_bytes.map_or(Ok(()), |bytes| self.check_bytes("a limit", bytes))
    }

    fn check_bytes(&self, what: &str, bytes: u64) -> Result<(), Error> {
        if bytes >= u64::from(self.request_bytes) {
            return Ok(());
        }
        refuse(
            format!("{what} of {}", show_size(bytes)),
            format!("it is less than one request of {}", show_size(u64::from(self.request_bytes))),
            "move at least one request",
        )
    }

    fn check_data(&self) -> Result<(), Error> {
        let data = self.data;
        for (percent, name) in
            [(data.compressible_percent, "compressible"), (data.duplicate_percent, "duplicate")]
        {
            if percent > 100 {
                return refuse(
                    format!("{percent} % {name}"),
                    "a share is at most 100 %",
                    "use 0 to 100",
                );
            }
            if percent > 0 && data.verify {
                return refuse(
                    format!("{percent} % {name} with verification"),
                    "verified blocks hold checksums, which neither compress nor repeat",
                    "leave out one of the two",
                );
            }
        }
        if data.verify && !self.writes() {
            return refuse(
                "reads only with verification".into(),
                "only data that the run itself wrote can be checked",
                "use write or mix",
            );
        }
        if data.verify && self.allocation != Allocation::Written {
            return refuse(
                format!("the allocation {} with verification", self.allocation.name()),
                "its file is gone when the run ends",
                "use the allocation written",
            );
        }
        if data.verify && !self.engine.does_io() {
            return refuse(
                "the engine null with verification".into(),
                "it moves no data",
                "use another engine",
            );
        }
        if data.verify && !self.request_bytes.is_multiple_of(UNIT_BYTES) {
            return refuse(
                format!(
                    "request size {} with verification",
                    show_size(u64::from(self.request_bytes))
                ),
                format!("verified blocks are made of units of {UNIT_BYTES} B"),
                format!("use a multiple of {UNIT_BYTES} B"),
            );
        }
        Ok(())
    }

    fn check_access(&self, align_bytes: u32) -> Result<(), Error> {
        if self.engine.is_mapped() && self.buffering.is_direct() {
            return refuse(
                "direct I/O with the engine mmap".into(),
                "mapped memory is the file-system cache",
                "use buffered, or the engine sync",
            );
        }
        let grows = matches!(self.allocation, Allocation::Extend | Allocation::Truncate);
        if grows && self.read_percent > 0 {
            return refuse(
                format!(
                    "{} % reads with the allocation {}",
                    self.read_percent,
                    self.allocation.name()
                ),
                "the file starts empty, so it has nothing to read",
                "write only, or use the allocation written",
            );
        }
        let mut values = vec![
            ("request size", u64::from(self.request_bytes)),
            ("offset", self.offset_bytes),
            ("region start", self.region_start_bytes),
        ];
        values.extend(self.align_bytes.map(|bytes| ("alignment", u64::from(bytes))));
        for mix in self.sizes.iter().flat_map(|sizes| [&sizes.read, &sizes.write]) {
            match mix {
                SizeMix::Range { unaligned: true, .. } => values.push(("unaligned size", 1)),
                SizeMix::Range { min_bytes, .. } => {
                    values.push(("request size", u64::from(*min_bytes)))
                }
                SizeMix::Shares(shares) => values
                    .extend(shares.iter().map(|share| ("request size", u64::from(share.bytes)))),
            }
        }
        if self.buffering.is_direct() {
            values.iter().try_for_each(|(name, bytes)| check_direct(name, *bytes, align_bytes))?;
        }
        Ok(())
    }

    fn check_region(&self, size_bytes: u64) -> Result<(), Error> {
        if self.region_start_bytes >= size_bytes {
            return refuse(
                format!("region start {}", show_size(self.region_start_bytes)),
                format!("the target ends at {}", show_size(size_bytes)),
                "start before its end",
            );
        }
        let room = size_bytes - self.region_start_bytes;
        if let Some(bytes) = self.region_bytes.filter(|bytes| *bytes > room) {
            return refuse(
                format!(
                    "a region of {} from {}",
                    show_size(bytes),
                    show_size(self.region_start_bytes)
                ),
                format!("only {} of the target are left there", show_size(room)),
                "shorten the region, or leave its length out to go to the end",
            );
        }
        let region = self.region(size_bytes);
        for stream in [0, self.threads - 1] {
            crate::Sequence::new(self, region, stream, crate::Cursor::Own)?;
        }
        Ok(())
    }

    pub(crate) fn region_too_small(&self, region_bytes: u64) -> Error {
        let request = show_size(u64::from(self.request_bytes));
        let streams = if self.pattern.is_divided() { self.threads } else { 1 };
        let why = match (streams, self.offset_bytes) {
            (1, 0) => format!("it is too small for one request of {request}"),
            (1, shift) => {
                format!(
                    "it is too small for one request of {request} after the offset of {}",
                    show_size(shift)
                )
            }
            (n, _) => {
                format!("it is too small for one request of {request} for each of {n} streams")
            }
        };
        Error::refused(
            format!("a region of {}", show_size(region_bytes)),
            why,
            "use smaller requests, fewer streams or a larger target",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Data;
    use machine::{Buffering, Engine};

    const SIZE: u64 = 1 << 30;

    fn error(change: impl FnOnce(&mut Workload)) -> Option<String> {
        let mut workload = Workload::default();
        change(&mut workload);
        workload.check(SIZE, 512).err().map(|error| error.to_string())
    }

    #[test]
    fn valid_workloads_pass() {
        assert_eq!(error(|_| ()), None);
        assert_eq!(error(|w| (w.engine, w.depth) = (Engine::IoUring, 65_536)), None);
        assert_eq!(error(|w| (w.engine, w.depth, w.threads) = (Engine::Threads, 64, 64)), None);
        assert_eq!(
            error(|w| (w.region_start_bytes, w.region_bytes) = (512, Some(SIZE - 512))),
            None
        );
        assert_eq!(error(|w| (w.offset_bytes, w.buffering) = (1, Buffering::Buffered)), None);
        assert_eq!(error(|w| w.pattern = Pattern::Zipf(1.0)), None);
        assert_eq!(error(|w| (w.read_percent, w.data.verify) = (0, true)), None);
        assert_eq!(
            error(|w| (w.engine, w.buffering) = (Engine::mapped(), Buffering::Buffered)),
            None
        );
    }

    #[test]
    fn invalid_values_are_named() {
        type Change = Box<dyn FnOnce(&mut Workload)>;
        let cases: Vec<(&str, Change)> = vec![
            ("request size 0 B", Box::new(|w| w.request_bytes = 0)),
            ("request size 1073741825 B", Box::new(|w| w.request_bytes = (1 << 30) + 1)),
            ("101 % reads", Box::new(|w| w.read_percent = 101)),
            ("stride 0 B", Box::new(|w| w.pattern = Pattern::Stride(0))),
            ("stride 96 KiB", Box::new(|w| w.pattern = Pattern::Stride(96 << 10))),
            ("stride 1 GiB", Box::new(|w| w.pattern = Pattern::Stride(SIZE))),
            ("0 columns", Box::new(|w| w.pattern = Pattern::Columns(0))),
            (
                "2 columns for 3 streams",
                Box::new(|w| (w.pattern, w.threads) = (Pattern::Columns(2), 3)),
            ),
            ("one row of 65536 blocks", Box::new(|w| w.pattern = Pattern::Columns(65_536))),
            ("exponent 0", Box::new(|w| w.pattern = Pattern::Zipf(0.0))),
            ("exponent NaN", Box::new(|w| w.pattern = Pattern::Zipf(f64::NAN))),
            ("exponent inf", Box::new(|w| w.pattern = Pattern::Zipf(f64::INFINITY))),
            ("pareto share 1", Box::new(|w| w.pattern = Pattern::Pareto(1.0))),
            ("pareto share NaN", Box::new(|w| w.pattern = Pattern::Pareto(f64::NAN))),
            (
                "deviation of 0 %",
                Box::new(|w| {
                    w.pattern = Pattern::Normal {
                        deviation_percent: 0.0,
                        center_percent: 50.0,
                        scattered: false,
                    }
                }),
            ),
            (
                "around 101 %",
                Box::new(|w| {
                    w.pattern = Pattern::Normal {
                        deviation_percent: 5.0,
                        center_percent: 101.0,
                        scattered: false,
                    }
                }),
            ),
            (
                "0 % hot",
                Box::new(|w| w.pattern = Pattern::HotCold { hot_percent: 0, access_percent: 9 }),
            ),
            (
                "100 % hot",
                Box::new(|w| w.pattern = Pattern::HotCold { hot_percent: 100, access_percent: 9 }),
            ),
            (
                "200 % of the requests",
                Box::new(|w| w.pattern = Pattern::HotCold { hot_percent: 10, access_percent: 200 }),
            ),
            ("depth 0", Box::new(|w| w.depth = 0)),
            ("depth 65537", Box::new(|w| (w.engine, w.depth) = (Engine::IoUring, 65_537))),
            ("depth 2 with the engine sync", Box::new(|w| w.depth = 2)),
            (
                "depth 2 with the engine mmap",
                Box::new(|w| {
                    (w.depth, w.engine, w.buffering) = (2, Engine::mapped(), Buffering::Buffered)
                }),
            ),
            ("0 threads", Box::new(|w| w.threads = 0)),
            ("4097 threads", Box::new(|w| w.threads = 4097)),
            (
                "needs 8192 threads",
                Box::new(|w| (w.engine, w.depth, w.threads) = (Engine::Threads, 128, 64)),
            ),
            ("rate 0", Box::new(|w| w.rate_iops = Some(0.0))),
            ("rate -3", Box::new(|w| w.rate_iops = Some(-3.0))),
            ("rate NaN", Box::new(|w| w.rate_iops = Some(f64::NAN))),
            ("rate inf", Box::new(|w| w.rate_iops = Some(f64::INFINITY))),
            ("run of 0 s", Box::new(|w| w.stop = Stop::AfterNs(0))),
            ("run of 1 KiB", Box::new(|w| w.stop = Stop::AfterBytes(1024))),
            ("101 % compressible", Box::new(|w| w.data.compressible_percent = 101)),
            ("101 % duplicate", Box::new(|w| w.data.duplicate_percent = 101)),
            (
                "10 % duplicate",
                Box::new(|w| {
                    w.data = Data { duplicate_percent: 10, verify: true, ..Data::default() }
                }),
            ),
            (
                "request size 1000 B",
                Box::new(|w| {
                    (w.request_bytes, w.buffering, w.data.verify, w.read_percent) =
                        (1000, Buffering::Buffered, true, 0)
                }),
            ),
            ("reads only with verification", Box::new(|w| w.data.verify = true)),
            (
                "the engine null with verification",
                Box::new(|w| (w.engine, w.read_percent, w.data.verify) = (Engine::Null, 0, true)),
            ),
            ("engine mmap", Box::new(|w| w.engine = Engine::mapped())),
            ("allocation extend", Box::new(|w| w.allocation = Allocation::Extend)),
            ("request size 1000 B", Box::new(|w| w.request_bytes = 1000)),
            ("offset 1 B", Box::new(|w| w.offset_bytes = 1)),
            ("region start 100 B", Box::new(|w| w.region_start_bytes = 100)),
            ("region start 1 GiB", Box::new(|w| w.region_start_bytes = SIZE)),
            ("region of 2 GiB", Box::new(|w| w.region_bytes = Some(2 << 30))),
            ("region of 4 KiB", Box::new(|w| w.region_bytes = Some(4096))),
            (
                "after the offset of 1 MiB",
                Box::new(|w| (w.region_bytes, w.offset_bytes) = (Some(1 << 20), 1 << 20)),
            ),
            (
                "for each of 32 streams",
                Box::new(|w| (w.region_bytes, w.threads) = (Some(1 << 20), 32)),
            ),
        ];
        for (words, change) in cases {
            let error = error(change).unwrap_or_else(|| panic!("'{words}' was not refused"));
            assert!(error.contains(words), "'{words}' is not in: {error}");
            assert!(error.contains("; "), "the hint is missing: {error}");
        }
    }
}
