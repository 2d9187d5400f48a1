use super::profile::{Caching, Format, Profile, RangeLength, Source, Target, TimeSpan};
use crate::parse::{NotServed, no_nul, number_of, refuse, refuse_option, shortened};
use crate::rows::OptionKind::{Flag, Value};
use crate::rows::{Own, Row, put, set_own};
use machine::units::{GIB, KIB, MIB};
use machine::{Hint, Result};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// With `-X` only its format is set.
    pub profile: Profile,
    /// `-X`
    pub file: Option<PathBuf>,
    /// In addition to `-X`, whose `*1` is the first of them.
    pub targets: Vec<PathBuf>,
    pub overrides: Overrides,
    /// `-Rp`
    pub profile_only: bool,
    /// `-z` without a number ([`Options::seeded`]).
    pub clock_seeds: bool,
    pub typed: Option<String>,
    pub json: Option<PathBuf>,
    pub destroy: Vec<PathBuf>,
    pub destroy_signed: bool,
}

/// Settings that override `-X`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Overrides {
    /// `-d`
    pub duration_s: Option<u32>,
    /// `-W`
    pub warm_up_s: Option<u32>,
    /// `-C`
    pub cool_down_s: Option<u32>,
    /// `-z`
    pub seed: Option<u32>,
}

#[derive(Clone, Copy)]
enum Size {
    Bytes(u64),
    Blocks(u64),
}

impl Size {
    fn parse(words: &str, text: &str) -> Result<Size> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let wrong = || {
            refuse(
                shortened(words),
                "it is not a size",
                "write bytes, or a number with K, M, G, T or b (blocks)",
            )
        };
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let Some(number) = digits.parse::<u64>().ok().filter(|_| plain) else { return wrong() };
        let unit = match &text[digits.len()..] {
            "" => 1,
            "K" | "k" => KIB,
            "M" | "m" => MIB,
            "G" | "g" => GIB,
            "T" | "t" => GIB << 10,
            "b" | "B" if number < 1 << 32 => return Ok(Size::Blocks(number)),
            _ => return wrong(),
        };
        // An exbibyte or more is a typo.
        number
            .checked_mul(unit)
            .filter(|bytes| *bytes < 1 << 60)
            .map_or_else(wrong, |bytes| Ok(Size::Bytes(bytes)))
    }

    fn bytes(self, block: u32) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::Blocks(blocks) => blocks * u64::from(block),
        }
    }
}

/// May be in blocks, until the block size is known.
#[derive(Default)]
struct Sizes {
    block: Option<Size>,
    random: Option<Option<Size>>,
    stride: Option<Size>,
    /// `-s`
    sequential: bool,
    base: Option<Size>,
    /// `-B<base>:<length>`
    length: Option<Size>,
    max: Option<Size>,
    thread_stride: Option<Size>,
    create: Option<Size>,
    source: Option<Size>,
}

struct Reading {
    options: Options,
    span: TimeSpan,
    target: Target,
    sizes: Sizes,
    paths: Vec<PathBuf>,
    /// `-F`
    all_threads: Option<u32>,
    /// `-O`
    all_outstanding: Option<u32>,
    /// `-rs`
    random_percent: Option<u8>,
    /// `-Nv`
    flush_mapped: bool,
    /// The first that conflicts with `-X`.
    run_option: Option<String>,
}

/// Without the program's name.
pub fn parse(arguments: &[String]) -> Result<Options> {
    no_nul(arguments)?;
    let mut reading = Reading {
        options: Options::default(),
        span: TimeSpan::default(),
        target: Target::new(PathBuf::new()),
        sizes: Sizes::default(),
        paths: Vec::new(),
        all_threads: None,
        all_outstanding: None,
        random_percent: None,
        flush_mapped: false,
        run_option: None,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            set_own(OWN, &mut reading.options, long, || words.next().map(String::as_str))?;
        } else if let Some(glued) = word.strip_prefix('-').or_else(|| slashed(word)) {
            reading.glued(word, glued)?;
        } else if word.is_empty() {
            return refuse("a target", "its name is empty", "name one");
        } else {
            reading.paths.push(word.into());
        }
    }
    reading.finish()
}

/// The Windows spelling `/w100`; an existing file, or a path with a directory, is a target.
fn slashed(word: &str) -> Option<&str> {
    let option = word.strip_prefix('/')?;
    let is_path = option.is_empty() || option.contains('/') || Path::new(word).exists();
    (!is_path).then_some(option)
}

/// Values of `-e`.
const ETW: [&str; 11] = [
    "PROCESS",
    "THREAD",
    "IMAGE_LOAD",
    "DISK_IO",
    "MEMORY_PAGE_FAULTS",
    "MEMORY_HARD_FAULTS",
    "NETWORK",
    "REGISTRY",
    "p",
    "q",
    "c",
];

const NOT_SERVED: [NotServed; 8] = [
    (
        "rd",
        "ranges are in percent or in bytes",
        "write -rdpct<IO>/<PERCENT>:... or -rdabs<IO>/<SIZE>:...",
    ),
    ("I", "priorities of requests are not served", "start halfpower under ionice"),
    (
        "p",
        "requests of one thread to the same place are not supported",
        "use one thread for each of them: -t with the number of -o, and -o1 -T0",
    ),
    ("ag", "processors are in one group here", "give only their numbers: -a0,1"),
    ("a#", "the # only stands for a number in the original's help", "give the processors: -a0,1"),
    ("A", "the original has no such option", "name processors with a small letter: -a0,1"),
    (
        "y",
        "events of Windows that programs wait for are not served",
        "leave it out, and start the other program separately",
    ),
    ("e", "these events of Windows are not known", "leave it out"),
];

fn not_taken<T>(spelling: &str, word: &str) -> Result<T> {
    refuse_option(spelling, word, &NOT_SERVED, "see halfpower diskspd --help")
}

static OWN: &[Own<Options>] = &[
    Row::new("json", (), Value(|o, text| put(&mut o.json, Ok(Some(text.into()))))),
    Row::new(
        "destroy-data",
        (),
        Value(|o, text| {
            o.destroy.push(text.into());
            Ok(())
        }),
    ),
    Row::new("destroy-signature", (), Flag(|o, on| o.destroy_signed = on)),
];

impl Reading {
    /// `spelling` is `-b4K` or `/b4K`.
    fn glued(&mut self, spelling: &str, word: &str) -> Result<()> {
        let mut letters = word.chars();
        let Some(letter) = letters.next() else {
            return refuse("-", "an option is missing", "leave it out");
        };
        let value = letters.as_str();
        // The original accepts these in addition to a profile.
        if !matches!(letter, 'X' | 'R' | 'd' | 'W' | 'C' | 'v' | 'z') {
            self.run_option.get_or_insert_with(|| shortened(spelling));
        }
        let whole =
            |min: u64, max: u64| number_of(spelling, value, min, max).map(|value| value as u32);
        let size = || Size::parse(spelling, value).map(Some);
        let days = 86_400_000;
        match letter {
            'b' => self.sizes.block = size()?,
            'B' => {
                let (base, length) = value
                    .split_once(':')
                    .map_or((value, None), |(base, length)| (base, Some(length)));
                self.sizes.base = Some(Size::parse(spelling, base)?);
                self.sizes.length =
                    length.map(|length| Size::parse(spelling, length)).transpose()?;
            }
            'c' => self.sizes.create = size()?,
            'C' => self.options.overrides.cool_down_s = Some(whole(0, days)?),
            'd' => self.options.overrides.duration_s = Some(whole(1, days)?),
            'D' => {
                self.span.interval_ms =
                    Some(if value.is_empty() { 1000 } else { whole(1, 86_400_000)? })
            }
            'f' => match value {
                "r" => self.target.hint = Hint::Random,
                "s" => self.target.hint = Hint::Sequential,
                // Windows keeps temporary files in its cache; data written here stays there anyway.
                "t" => {}
                _ => self.sizes.max = size()?,
            },
            'F' => self.all_threads = Some(whole(1, 1024)?),
            'g' => match value.strip_suffix('i') {
                Some(rate) => {
                    let rate = number_of(spelling, rate, 1, u64::from(u32::MAX))? as u32;
                    (self.target.throughput_iops, self.target.throughput_bytes_per_ms) =
                        (Some(rate), None);
                }
                None => {
                    let rate = whole(1, u64::from(u32::MAX))?;
                    (self.target.throughput_iops, self.target.throughput_bytes_per_ms) =
                        (None, Some(rate));
                }
            },
            'h' if value.is_empty() => {
                (self.target.caching, self.target.write_through) = (Caching::Uncached, true)
            }
            'L' if value.is_empty() => self.span.latency = true,
            // Threads are not pinned unless -a names processors.
            'n' if value.is_empty() => {}
            'a' if value == "g" => {}
            // The report is always verbose.
            'v' if matches!(value, "" | "s") => {}
            // Every engine has one method, so it changes only the report.
            'x' if value.is_empty() => self.span.completion_routines = true,
            // Progress dots are not printed.
            'P' => drop((!value.is_empty()).then(|| whole(1, u64::from(u32::MAX))).transpose()?),
            'l' if value.is_empty() => self.target.large_pages = true,
            // The default priority.
            'I' if value == "3" => {}
            // Windows kernel events do not exist here.
            'e' if ETW.contains(&value) => {}
            'a' => {
                // The only processor group is number 0.
                let listed = value.strip_prefix("g0,").unwrap_or(value);
                if listed.contains('g') {
                    return not_taken(spelling, "ag");
                }
                if listed.starts_with('#') {
                    return not_taken(spelling, word);
                }
                for text in listed.split(',') {
                    self.span.processors.push(number_of(spelling, text, 0, 1023)? as u32);
                }
            }
            'N' => match value {
                "v" => self.flush_mapped = true,
                "n" | "i" => {
                    return refuse(
                        shortened(spelling),
                        "it flushes persistent memory past the system, which is not supported",
                        "use -Nv, which flushes the mapped view after each write",
                    );
                }
                _ => {
                    return refuse(shortened(spelling), "it has the letter v, n or i", "write -Nv");
                }
            },
            'o' => self.target.outstanding = whole(1, u64::from(workload::MAX_DEPTH))?,
            'O' => self.all_outstanding = Some(whole(1, u64::from(workload::MAX_DEPTH))?),
            'i' => self.target.burst = Some(whole(1, u64::from(u32::MAX))?),
            'j' => self.target.pause_ms = Some(whole(1, 86_400_000)?),
            'r' if value.starts_with('s') => {
                let percent = number_of(spelling, &value[1..], 0, 100)? as u8;
                self.random_percent = Some(percent);
                self.sizes.random.get_or_insert(None);
            }
            'r' if value.starts_with('d') => {
                let length: fn(&str, &str) -> Result<RangeLength> = match value.get(1..4) {
                    Some("pct") => |spelling, text| {
                        Ok(RangeLength::Percent(number_of(spelling, text, 1, 100)? as u8))
                    },
                    Some("abs") => |spelling, text| match Size::parse(spelling, text)? {
                        Size::Bytes(bytes) => Ok(RangeLength::Bytes(bytes)),
                        Size::Blocks(_) => refuse(
                            shortened(spelling),
                            "a range is in bytes",
                            "write it with K, M, G or T",
                        ),
                    },
                    _ => return not_taken(spelling, word),
                };
                self.target.ranges = (value[4..].split(':'))
                    .map(|range| {
                        let (requests, target) = range.split_once('/').unwrap_or((range, ""));
                        let requests = number_of(spelling, requests, 0, 100)? as u8;
                        Ok((requests, length(spelling, target)?))
                    })
                    .collect::<Result<_>>()?;
                self.sizes.random.get_or_insert(None);
            }
            'r' => self.sizes.random = Some(if value.is_empty() { None } else { size()? }),
            'R' => {
                let format = value.strip_prefix('p').inspect(|_| self.options.profile_only = true);
                self.options.profile.format = match format.unwrap_or(value) {
                    "" | "text" => Format::Text,
                    "xml" => Format::Xml,
                    _ => return not_taken(spelling, word),
                }
            }
            's' => {
                let (interlocked, stride) =
                    value.strip_prefix('i').map_or((false, value), |stride| (true, stride));
                self.target.interlocked = interlocked;
                self.sizes.sequential = true;
                self.sizes.stride =
                    if stride.is_empty() { None } else { Some(Size::parse(spelling, stride)?) };
            }
            'S' => self.caching(spelling, value)?,
            't' => self.target.threads = whole(1, 1024)?,
            'T' => self.sizes.thread_stride = size()?,
            'w' => {
                self.target.write_percent = if value.is_empty() { 0 } else { whole(0, 100)? as u8 }
            }
            'W' => self.options.overrides.warm_up_s = Some(whole(0, days)?),
            'X' if !value.is_empty() => self.options.file = Some(value.into()),
            'z' => {
                self.options.clock_seeds = value.is_empty();
                let seed =
                    if value.is_empty() { None } else { Some(whole(0, u64::from(u32::MAX))?) };
                self.options.overrides.seed = seed;
            }
            'Z' => {
                (self.target.source, self.sizes.source, self.target.source_file) = match value {
                    "" => (Source::Zero, None, None),
                    "r" => (Source::Random, None, None),
                    _ => {
                        let (bytes, file) = value
                            .split_once(',')
                            .map_or((value, None), |(bytes, file)| (bytes, Some(file)));
                        if file == Some("") {
                            return refuse(
                                shortened(spelling),
                                "the file's name is missing",
                                "write -Z1M,FILE, or leave out the comma",
                            );
                        }
                        let size = Size::parse(spelling, bytes)?;
                        (Source::Random, Some(size), file.map(PathBuf::from))
                    }
                }
            }
            _ => return not_taken(spelling, word),
        }
        Ok(())
    }

    fn caching(&mut self, spelling: &str, letters: &str) -> Result<()> {
        let mut mode = None;
        let mut through = false;
        for letter in letters.chars() {
            let chosen = match letter {
                'b' => Caching::Cached,
                // The local cache of a remote file is the page cache.
                'u' | 'r' => Caching::Uncached,
                'm' => Caching::Mapped,
                'h' => {
                    through = true;
                    Caching::Uncached
                }
                'w' => {
                    through = true;
                    continue;
                }
                _ => return not_taken(spelling, &format!("S{letters}")),
            };
            if mode.replace(chosen).is_some_and(|other| other != chosen) {
                return refuse(
                    shortened(spelling),
                    "it names two ways",
                    "use one of b, u, r, m and h, and w",
                );
            }
        }
        let bare = if letters.is_empty() { Caching::Uncached } else { Caching::Cached };
        (self.target.caching, self.target.write_through) = (mode.unwrap_or(bare), through);
        Ok(())
    }

    fn finish(mut self) -> Result<Options> {
        if self.options.file.is_some() {
            if let Some(other) = self.run_option {
                return refuse(other, "the profile of -X says it", "leave it out, or -X");
            }
            self.options.targets = self.paths;
            return Ok(self.options);
        }
        std::mem::take(&mut self.options.overrides).change(&mut self.span);
        match (self.all_threads, self.all_outstanding) {
            (Some(threads), _) if self.target.threads > 1 => {
                return refuse(
                    format!("-F{threads} and -t{}", self.target.threads),
                    "threads are shared by all targets, or each target has its own",
                    "leave out one of the two",
                );
            }
            (None, Some(outstanding)) => {
                return refuse(
                    format!("-O{outstanding}"),
                    "it is for the threads of -F",
                    "use -o, requests of each target, or add -F",
                );
            }
            _ => {}
        }
        if self.flush_mapped && self.target.caching != Caching::Mapped {
            return refuse("-Nv", "it flushes mapped memory", "add -Sm, or use -Sw without -N");
        }
        self.target.write_through |= self.flush_mapped;
        if self.sizes.sequential && self.sizes.random.is_some() {
            if self.target.interlocked {
                return refuse(
                    "-r and -si",
                    "requests are random or sequential",
                    "leave out one of the two",
                );
            }
            // As in the original, -r wins.
            self.sizes.stride = None;
        }
        if self.sizes.length.is_some() && self.sizes.max.is_some() {
            return refuse(
                "-B and -f",
                "both say where the last request ends",
                "leave out the length of -B, or -f",
            );
        }
        let block = self
            .sizes
            .block
            .map_or(u64::from(self.target.block_bytes), |size| size.bytes(self.target.block_bytes));
        let Ok(block) = u32::try_from(block) else {
            return refuse(
                format!("-b{block}"),
                "a request has at most 1 GiB",
                "use a smaller one",
            );
        };
        let bytes = |size: Size| size.bytes(block);
        let target = Target {
            block_bytes: block,
            random_bytes: self.sizes.random.map(|align| align.map_or(u64::from(block), bytes)),
            stride_bytes: self.sizes.stride.map(bytes),
            base_bytes: self.sizes.base.map_or(0, bytes),
            max_bytes: match (self.sizes.base, self.sizes.length) {
                (Some(base), Some(length)) => Some(bytes(base).saturating_add(bytes(length))),
                _ => self.sizes.max.map(bytes),
            },
            thread_stride_bytes: self.sizes.thread_stride.map_or(0, bytes),
            create_bytes: self.sizes.create.map(bytes),
            source_bytes: self.sizes.source.map(bytes),
            ..self.target
        }
        .with_random_percent(self.random_percent);
        self.span.targets =
            self.paths.into_iter().map(|path| Target { path, ..target.clone() }).collect();
        if let Some(threads) = self.all_threads {
            self.span.share_threads(threads, self.all_outstanding);
        }
        self.options.profile.spans = vec![self.span];
        self.options.profile.check()?;
        Ok(self.options)
    }
}

impl Overrides {
    pub(super) fn change(self, span: &mut TimeSpan) {
        let settings = [
            (self.duration_s, &mut span.duration_s),
            (self.warm_up_s, &mut span.warm_up_s),
            (self.cool_down_s, &mut span.cool_down_s),
            (self.seed, &mut span.seed),
        ];
        settings.into_iter().for_each(|(said, setting)| *setting = said.unwrap_or(*setting));
    }
}

impl Options {
    /// Takes the seed from the clock if `-z` has no number.
    pub fn seeded(mut self, clock: u32) -> Options {
        if std::mem::take(&mut self.clock_seeds) {
            self.profile.spans.iter_mut().for_each(|span| span.seed = clock);
            self.overrides.seed = self.file.is_some().then_some(clock);
        }
        self
    }
}
