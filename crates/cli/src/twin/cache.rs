//! `halfpower twin cache`: what a cache in memory would do for a trace or a workload.

use super::{json, percent, table};
use crate::Failure;
use crate::arguments::pattern;
use clap::Args;
use machine::units::{GIB, KIB, MIB, parse_size, show_size, show_size_rounded, show_time, significant};
use machine::{Machine, Op};
use serde::Serialize;
use std::io::Read;
use std::path::Path;
use twin::trace::{CACHE_BLOCK, CacheGain, Pace, Record, Replay, cache_gains, distances};
use twin::{Setup, Twin};
use workload::{Cursor, Sequence, Workload};

/// Accesses beyond which a sample of the blocks is looked at unless another share is asked for.
const MANY_ACCESSES: u64 = 20_000_000;

/// What the command line says.
#[derive(Args, Clone)]
pub(super) struct Arguments {
    /// A block trace (lines of time_ns,op,offset,bytes; - is standard input), or an order of requests: seq, random, backward, stride:SIZE,
    /// zipf:THETA, hotcold:HOT%:ACCESS%
    #[arg(value_name = "TRACE|WORKLOAD")]
    source: String,
    /// The machine without the cache
    #[arg(long, value_name = "NAME", default_value = "server-2003")]
    machine: String,
    /// Sizes of the cache
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size, default_value = "4m,16m,64m,128m,256m,512m,1g")]
    sizes: Vec<u64>,
    /// Percent of the blocks that the sampled curve looks at
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = share)]
    sample: f64,
    /// Requests kept outstanding in the replay, as soon as one is done; recorded: at the times of the trace
    #[arg(long, value_name = "N|recorded", value_parser = pace, default_value = "1")]
    pace: Pace,
    /// Of a workload: requests
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    requests: u64,
    /// Of a workload: size of a request
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "4k")]
    request: u64,
    /// Of a workload: bytes of its file
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "512m")]
    size: u64,
    /// Of a workload: percent of the requests that read
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(0..=100))]
    read_percent: u8,
    /// Of a workload: seeds everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print as JSON on standard output
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.map(|percent| percent / 100.0).ok_or_else(|| format!("'{text}' is not a percentage above 0 and up to 100"))
}

fn pace(text: &str) -> Result<Pace, String> {
    if text == "recorded" {
        return Ok(Pace::Recorded);
    }
    let depth = text.parse().ok().filter(|depth| (1..=1024).contains(depth));
    depth.map(Pace::Outstanding).ok_or_else(|| format!("'{text}' is neither a whole number from 1 to 1024 nor the word recorded"))
}

/// What a trace is.
#[derive(Serialize)]
struct Facts {
    requests: usize,
    reads: usize,
    bytes: u64,
    /// Of different blocks.
    footprint_bytes: u64,
    block_bytes: u64,
    accesses: u64,
}

/// A size of the cache.
#[derive(Serialize)]
struct Row {
    cache_bytes: u64,
    /// Absent where the trace is so long that only a sample was looked at.
    miss_ratio_exact: Option<f64>,
    miss_ratio_sampled: f64,
    speed_up_write_back: f64,
    speed_up_write_through: f64,
}

#[derive(Serialize)]
struct Caching {
    source: String,
    machine: String,
    trace: Facts,
    sampled_share: f64,
    without_cache: Replay,
    sizes: Vec<Row>,
}

/// Miss ratios and speed-ups by size.
pub(super) fn cache(arguments: &Arguments) -> Result<(), Failure> {
    let setup = Setup::parse(&arguments.machine)?;
    let mut sizes = arguments.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if let Some(size) = sizes.iter().find(|size| **size < MIB) {
        return Err(Failure::Usage(format!("--sizes {size}: too small for a cache of blocks; give at least 1m")));
    }
    let records = records(arguments, &setup)?;
    let caching = caching(arguments, &setup, &records, &sizes)?;
    if arguments.json {
        println!("{}", json("cache", &caching)?);
    } else {
        print(&caching, arguments.pace);
    }
    Ok(())
}

/// The requests: of a file, of standard input, or drawn.
fn records(arguments: &Arguments, setup: &Setup) -> Result<Vec<Record>, Failure> {
    let source = arguments.source.as_str();
    if source == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| Failure::Run(format!("cannot read standard input: {error}")))?;
        return Ok(twin::trace::parse(&text)?);
    }
    if let Ok(pattern) = pattern(source) {
        return drawn(arguments, pattern, setup);
    }
    let path = Path::new(source);
    match std::fs::read_to_string(path) {
        Ok(text) => twin::trace::parse(&text).map_err(|error| Failure::Usage(format!("{source}: {error}"))),
        Err(error) => Err(Failure::Usage(format!(
            "{source}: {error}; give a trace of lines time_ns,op,offset,bytes, or one of seq, random, backward, stride:1M, zipf:1.1, \
             hotcold:10:90"
        ))),
    }
}

/// The requests of a workload, in the very order in which it would be run.
fn drawn(arguments: &Arguments, pattern: workload::Pattern, setup: &Setup) -> Result<Vec<Record>, Failure> {
    let twin = Twin::new(setup.clone());
    let size = arguments.size.min(twin.target_facts(&twin.volume(None)).size_bytes);
    let request_bytes = u32::try_from(arguments.request).ok().filter(|bytes| (512..=GIB as u32).contains(bytes) && bytes % 512 == 0);
    let request_bytes = request_bytes
        .ok_or_else(|| Failure::Usage(format!("--request {}: give a multiple of 512 bytes from 512 to 1g", arguments.request)))?;
    let workload = Workload { pattern, request_bytes, read_percent: arguments.read_percent, seed: arguments.seed, ..Workload::default() };
    workload.check(size, 512)?;
    let mut sequence = Sequence::new(&workload, workload.region(size), 0, Cursor::Own)?;
    // A workload has no times of its own: at the pace of a trace it would be issued all at once.
    if arguments.pace == Pace::Recorded {
        return Err(Failure::Usage("--pace recorded: a workload has no times; give the requests to be kept outstanding".into()));
    }
    Ok((0..arguments.requests)
        .map(|time_ns| {
            let (op, offset, bytes) = sequence.next();
            Record { time_ns, op, offset, bytes }
        })
        .collect())
}

fn caching(arguments: &Arguments, setup: &Setup, records: &[Record], sizes: &[u64]) -> Result<Caching, Failure> {
    let accesses: u64 = records.iter().map(|record| (record.offset % CACHE_BLOCK + u64::from(record.bytes)).div_ceil(CACHE_BLOCK)).sum();
    let exact = (accesses <= MANY_ACCESSES).then(|| distances(records, None));
    let sampled = distances(records, Some(arguments.sample)).curve(CACHE_BLOCK, sizes.iter().copied());
    let exact_curve = exact.as_ref().map(|exact| exact.curve(CACHE_BLOCK, sizes.iter().copied()));
    let blocks = exact.as_ref().map_or_else(|| distances(records, Some(arguments.sample)).blocks(), |exact| exact.blocks());
    let (without_cache, gains) = cache_gains(setup, records, arguments.pace, sizes, Some(arguments.sample))?;
    let row = |(place, gain): (usize, &CacheGain)| Row {
        cache_bytes: gain.cache.cache_bytes,
        miss_ratio_exact: exact_curve.as_ref().map(|curve| curve[place].miss_ratio),
        miss_ratio_sampled: sampled[place].miss_ratio,
        speed_up_write_back: gain.write_back,
        speed_up_write_through: gain.write_through,
    };
    Ok(Caching {
        source: arguments.source.clone(),
        machine: setup.name.clone(),
        trace: Facts {
            requests: records.len(),
            reads: records.iter().filter(|record| record.op == Op::Read).count(),
            bytes: records.iter().map(|record| u64::from(record.bytes)).sum(),
            footprint_bytes: (blocks * CACHE_BLOCK as f64) as u64,
            block_bytes: CACHE_BLOCK,
            accesses,
        },
        sampled_share: arguments.sample,
        without_cache,
        sizes: gains.iter().enumerate().map(row).collect(),
    })
}

fn print(caching: &Caching, pace: Pace) {
    let trace = &caching.trace;
    println!(
        "{}: {} requests, {:.0} % reads, {} over {} of different blocks of {} KiB",
        caching.source,
        trace.requests,
        trace.reads as f64 / trace.requests.max(1) as f64 * 100.0,
        show_size_rounded(trace.bytes as f64),
        show_size_rounded(trace.footprint_bytes as f64),
        trace.block_bytes / KIB,
    );
    let without = &caching.without_cache;
    let waited = if pace == Pace::Recorded { without.waited_ns } else { without.elapsed_ns };
    println!("without a cache on {}: {}\n", caching.machine, show_time(waited as f64));
    let row = |one: &Row| {
        let exact = one.miss_ratio_exact.map_or_else(|| "not counted".into(), percent);
        let gain = |value: f64| format!("x{}", significant(value, 3));
        let (back, through) = (gain(one.speed_up_write_back), gain(one.speed_up_write_through));
        vec![show_size(one.cache_bytes), exact, percent(one.miss_ratio_sampled), back, through]
    };
    let rows: Vec<_> = caching.sizes.iter().map(row).collect();
    let sampled = format!("of {} of the blocks", percent(caching.sampled_share));
    table(&["cache", "misses", &sampled, "write-back", "write-through"], &rows, 0);
    println!("\n{}", sentence(caching));
}

fn sentence(caching: &Caching) -> String {
    let best = caching.sizes.iter().map(|row| row.speed_up_write_back).fold(0.0, f64::max);
    let Some(enough) = caching.sizes.iter().find(|row| row.speed_up_write_back >= 0.9 * best) else { return String::new() };
    format!(
        "A cache of {} that writes lazily makes it {} times as fast, one that writes through {} times.",
        show_size(enough.cache_bytes),
        significant(enough.speed_up_write_back, 3),
        significant(enough.speed_up_write_through, 3)
    )
}
