use crate::failure::Failure;
use clap::Args;
use machine::units::{GIB, parse_size, show_size};
use machine::{Engine, Machine, Op};
use predict::trace::{Pace, Record, read, records};
use std::io::BufReader;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use twin::{Setup, Twin};
use workload::{Cursor, OpKind, Pattern, Sequence, Workload};

/// Requests are kept in memory.
const MAX_REQUESTS: u64 = 50_000_000;

/// A trace file, or a workload in the options of `halfpower run`.
#[derive(Args, Clone)]
pub(super) struct Source {
    /// A trace of any format of `halfpower trace convert`; - is standard input. Without one, --op or
    /// --pattern give a workload
    #[arg(value_name = "TRACE", conflicts_with_all = ["op", "pattern", "request", "size", "bytes", "threads", "offset", "read_percent", "seed"])]
    trace: Option<String>,
    /// Of a workload: read, write or mix [default: read]
    #[arg(long, value_parser = ["read", "write", "mix"])]
    op: Option<String>,
    /// Percent of the requests of a mix that read
    #[arg(long, value_name = "PERCENT", default_value_t = 70, value_parser = clap::value_parser!(u8).range(1..=99))]
    read_percent: u8,
    /// Of a workload: seq, random, backward, stride:SIZE, zipf:THETA or hotcold:HOT%:ACCESS%
    /// [default: seq]
    #[arg(long, value_parser = Pattern::from_str)]
    pattern: Option<Pattern>,
    /// Of a workload: request size
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64k")]
    request: u64,
    /// Of a workload: bytes of its file
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "512m")]
    size: u64,
    /// Of a workload: bytes asked for [default: four times the size]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    bytes: Option<u64>,
    /// Of a workload: streams
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Of a workload: shift of every request
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0")]
    offset: u64,
    /// Of a workload: seeds everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Requests kept outstanding (of a workload: by each stream)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,
    /// Issue the requests of a trace at its own times
    #[arg(long, conflicts_with_all = ["depth", "op", "pattern"])]
    recorded: bool,
}

impl Source {
    pub(super) fn pace(&self) -> Pace {
        if self.recorded {
            Pace::Recorded
        } else {
            Pace::Outstanding(self.depth.saturating_mul(self.threads).min(1024))
        }
    }

    pub(super) fn name(&self) -> String {
        match &self.trace {
            Some(trace) if trace == "-" => "standard input".into(),
            Some(trace) => trace.clone(),
            None => {
                let workload = self.workload(0);
                let op = if workload.op() == OpKind::Mix {
                    format!("{} % reads", workload.read_percent)
                } else {
                    workload.op().to_string()
                };
                let pattern = workload.pattern;
                format!("{op} {pattern} {} of {}", show_size(self.request), show_size(self.size))
            }
        }
    }

    pub(super) fn records(&self, setup: &Setup) -> Result<Vec<Record>, Failure> {
        let Some(source) = self.trace.as_deref() else {
            return if self.op.is_some() || self.pattern.is_some() {
                self.drawn(setup)
            } else {
                let why = "name a block trace (lines of time_ns,op,offset,bytes), or give a workload: --op mix --pattern zipf:1.1 --request 4k";
                Err(Failure::Usage(format!("nothing to try a cache with: {why}")))
            };
        };
        if source == "-" {
            return read(BufReader::new(std::io::stdin()))
                .map_err(|error| Failure::Usage(format!("standard input: {error}")));
        }
        let faulty = |error: String| Failure::Usage(format!("{source}: {error}"));
        let trace = apptrace::foreign::open(Path::new(source)).map_err(|error| {
            faulty(format!("{error}; name a trace, or give a workload with --pattern"))
        })?;
        records(trace.events().1).map_err(|error| faulty(error.to_string()))
    }

    fn workload(&self, request_bytes: u32) -> Workload {
        Workload {
            read_percent: match self.op.as_deref() {
                Some("write") => 0,
                Some("mix") => self.read_percent,
                _ => 100,
            },
            pattern: self.pattern.unwrap_or(Pattern::Seq),
            request_bytes,
            depth: self.depth,
            threads: self.threads,
            // Any engine that supports depth will do: none is run.
            engine: Engine::IoUring,
            offset_bytes: self.offset,
            seed: self.seed,
            ..Workload::default()
        }
    }

    /// Orders the requests as streams at equal speed would issue them.
    fn drawn(&self, setup: &Setup) -> Result<Vec<Record>, Failure> {
        let twin = Twin::new(setup.clone());
        let size = self.size.min(twin.target_facts(&twin.volume()).size_bytes);
        let request = u32::try_from(self.request)
            .ok()
            .filter(|bytes| (512..=GIB as u32).contains(bytes) && bytes % 512 == 0);
        let request = request.ok_or_else(|| {
            Failure::Usage(format!(
                "--request {}: no size of a request; give a multiple of 512 bytes up to 1g",
                self.request
            ))
        })?;
        let workload = self.workload(request);
        workload.check(size, 512)?;
        let requests = self.bytes.unwrap_or(size.saturating_mul(4)) / u64::from(request);
        if !(1..=MAX_REQUESTS).contains(&requests) {
            let why = format!("{requests} requests; give --bytes for 1 to {MAX_REQUESTS} of them");
            return Err(Failure::Usage(format!("a workload of {why}")));
        }
        let shared = Arc::new(AtomicU64::new(0));
        let cursor = || match workload.pattern {
            Pattern::Together => Cursor::Shared(shared.clone()),
            _ => Cursor::Own,
        };
        let streams = (0..workload.threads)
            .map(|stream| Sequence::new(&workload, workload.region(size), stream, cursor()));
        let mut streams = streams.collect::<Result<Vec<_>, _>>()?;
        let count = streams.len() as u64;
        let mut next = |index: u64| -> (Op, u64, u32) { streams[(index % count) as usize].next() };
        Ok((0..requests)
            .map(|time_ns| {
                let (op, offset, bytes) = next(time_ns);
                Record { time_ns, op, offset, bytes }
            })
            .collect())
    }
}
