//! `halfpower twin cache`.

mod source;

use super::document::{directory, json, percent, program, write};
use crate::context::Context;
use crate::failure::Failure;
use crate::terminal::table;
use clap::Args;
use machine::Op;
use machine::units::{KIB, MIB, parse_size, show_size, show_size_rounded, show_time, significant};
use predict::trace::{
    CACHE_BLOCK, CacheGain, Counting, MissCurve, Pace, Record, Replay, accesses, cache_gains,
    footprint, miss_curve,
};
use report::validation::{Page, Section, Table};
use results::{Axis, Figure, Series, Value};
use serde::Serialize;
use source::Source;
use std::path::PathBuf;
use twin::Setup;

/// Without --sample, every block is counted up to this number.
const MANY_ACCESSES: u64 = 20_000_000;

const SAMPLE_BLOCKS: f64 = 262_144.0;

const MAX_SIZES: usize = 8;

/// Options of `twin cache`.
#[derive(Args, Clone)]
pub(super) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// The machine without the cache: a name of `halfpower twin list`, or a machine file
    #[arg(long, value_name = "NAME", default_value = "server-2003")]
    machine: String,
    /// Cache sizes to try [default: powers of two up to the footprint of the trace]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    sizes: Vec<u64>,
    /// Count this percentage of the blocks instead of all; automatic for a trace of more than 20
    /// million accesses
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    sample: Option<f64>,
    /// Count all blocks of the longest trace
    #[arg(long)]
    exact: bool,
    /// Directory for report.html and results.json
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print as JSON on standard output
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let percent = text
        .trim_end_matches('%')
        .parse::<f64>()
        .ok()
        .filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.map(|percent| percent / 100.0).ok_or_else(|| {
        format!("'{text}' is not a percentage above 0 and up to 100; write --sample 10")
    })
}

#[derive(Serialize)]
struct Facts {
    requests: usize,
    reads: usize,
    bytes: u64,
    block_bytes: u64,
    accesses: u64,
}

#[derive(Serialize)]
struct Caching {
    source: String,
    machine: String,
    trace: Facts,
    /// `None` if the replay keeps the recorded times.
    depth: Option<u32>,
    misses: MissCurve,
    without_cache: Replay,
    gains: Vec<CacheGain>,
}

pub(super) fn cache(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let setup = Setup::parse(&arguments.machine)?;
    let output = directory(context, arguments.output.as_ref())?;
    if let Some(size) = arguments.sizes.iter().find(|size| **size < MIB) {
        return Err(Failure::Usage(format!(
            "--sizes {size}: too small for a cache of blocks of 64 KiB; give at least 1m"
        )));
    }
    let pace = arguments.source.pace();
    let records = arguments.source.records(&setup)?;
    let caching = caching(arguments, &setup, &records, pace)?;
    let document = json("cache", &caching)?;
    if arguments.json {
        context.console.print(&format!("{document}\n"))?;
    } else {
        context.console.print(&text(&caching))?;
    }
    write(context, output.as_ref(), &page(&caching), &document, arguments.json)
}

fn caching(
    arguments: &Arguments,
    setup: &Setup,
    records: &[Record],
    pace: Pace,
) -> Result<Caching, Failure> {
    let (accesses, footprint) = (accesses(records), footprint(records));
    let mut sizes =
        if arguments.sizes.is_empty() { usual_sizes(footprint) } else { arguments.sizes.clone() };
    sizes.sort_unstable();
    sizes.dedup();
    let counting =
        match (arguments.sample, arguments.exact || accesses <= MANY_ACCESSES) {
            (None, true) => Counting::Exact,
            (Some(share), true) => Counting::Both(share),
            (share, false) => Counting::Sampled(share.unwrap_or_else(|| {
                (SAMPLE_BLOCKS * CACHE_BLOCK as f64 / footprint).clamp(0.001, 1.0)
            })),
        };
    let misses = miss_curve(records, &curve_sizes(&sizes), counting);
    let (without_cache, gains) = cache_gains(setup, records, pace, &sizes)?;
    Ok(Caching {
        source: arguments.source.name(),
        machine: setup.name.clone(),
        trace: Facts {
            requests: records.len(),
            reads: records.iter().filter(|record| record.op == Op::Read).count(),
            bytes: records.iter().map(|record| u64::from(record.bytes)).sum(),
            block_bytes: CACHE_BLOCK,
            accesses,
        },
        depth: match pace {
            Pace::Recorded => None,
            Pace::Outstanding(depth) => Some(depth),
        },
        misses,
        without_cache,
        gains,
    })
}

fn usual_sizes(footprint: f64) -> Vec<u64> {
    let mut sizes = vec![(footprint.max(MIB as f64) as u64).next_power_of_two()];
    while sizes.len() < MAX_SIZES && sizes[sizes.len() - 1] > MIB {
        sizes.push(sizes[sizes.len() - 1] / 2);
    }
    sizes
}

/// A curve costs little more than one of its points.
fn curve_sizes(replayed: &[u64]) -> Vec<u64> {
    let mut sizes: Vec<u64> = replayed.to_vec();
    for pair in replayed.windows(2) {
        let ratio = pair[1] as f64 / pair[0] as f64;
        sizes.extend((1..4).map(|step| {
            (pair[0] as f64 * ratio.powf(f64::from(step) / 4.0)) as u64 / CACHE_BLOCK * CACHE_BLOCK
        }));
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn heading(caching: &Caching) -> String {
    let trace = &caching.trace;
    let about = if caching.misses.exact.is_some() { "" } else { "about " };
    format!(
        "{}: {} requests, {:.0} % reads, {} in all, {about}{} of different blocks of {} KiB",
        caching.source,
        trace.requests,
        trace.reads as f64 / trace.requests.max(1) as f64 * 100.0,
        show_size_rounded(trace.bytes as f64),
        show_size_rounded(caching.misses.footprint_bytes),
        trace.block_bytes / KIB,
    )
}

fn base(caching: &Caching) -> String {
    let without = &caching.without_cache;
    match caching.depth {
        Some(1) => format!(
            "Without a cache on {}, one request after the other: {}",
            caching.machine,
            show_time(without.elapsed_ns as f64)
        ),
        Some(depth) => {
            format!(
                "Without a cache on {}, {depth} requests outstanding: {}",
                caching.machine,
                show_time(without.elapsed_ns as f64)
            )
        }
        None => format!(
            "Without a cache on {}, at the trace's times: {} of waiting",
            caching.machine,
            show_time(without.waited_ns as f64)
        ),
    }
}

fn miss_at(curve: &[predict::stack_distance::MissRatio], bytes: u64) -> Option<f64> {
    curve.iter().find(|one| one.cache_bytes == bytes).map(|one| one.miss_ratio)
}

fn rows(caching: &Caching) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let gain = |value: f64| format!("×{}", significant(value, 3));
    let misses = &caching.misses;
    let mut head = vec!["cache"];
    head.extend(misses.exact.iter().map(|_| "misses"));
    head.extend(misses.sampled.iter().map(|_| "misses, sampled"));
    head.extend(["write-back", "write-through"]);
    let row = |one: &CacheGain| {
        let curves = misses.exact.iter().chain(misses.sampled.iter().map(|sampled| &sampled.curve));
        let mut row = vec![show_size(one.cache_bytes)];
        row.extend(
            curves.map(|curve| miss_at(curve, one.cache_bytes).map(percent).unwrap_or_default()),
        );
        row.extend([gain(one.write_back), gain(one.write_through)]);
        row
    };
    (head, caching.gains.iter().map(row).collect())
}

fn sampling(caching: &Caching) -> Option<String> {
    let sampled = caching.misses.sampled.as_ref()?;
    let kind = if sampled.error_estimated {
        "by the distance of its two halves"
    } else {
        "against all blocks"
    };
    let points = |share: f64| format!("{} points", significant(share * 100.0, 2));
    Some(format!(
        "The sample of {} of the blocks is within {} of the miss ratio, {kind}.",
        percent(sampled.share),
        points(sampled.error)
    ))
}

fn sentence(caching: &Caching) -> String {
    let best = caching.gains.iter().map(|one| one.write_back).fold(0.0, f64::max);
    let Some(enough) = caching.gains.iter().find(|one| one.write_back >= 0.9 * best) else {
        return String::new();
    };
    format!(
        "A cache of {} that writes lazily makes it {} times as fast, one that writes through {} times; what lies in the cache at the end is \
         still to be written.",
        show_size(enough.cache_bytes),
        significant(enough.write_back, 3),
        significant(enough.write_through, 3)
    )
}

fn text(caching: &Caching) -> String {
    let (head, rows) = rows(caching);
    let sampling = sampling(caching).map(|text| text + "\n").unwrap_or_default();
    format!(
        "{}\n{}\n\n{}\n{sampling}{}\n",
        heading(caching),
        base(caching),
        table(&head, &rows, 0),
        sentence(caching)
    )
}

fn page(caching: &Caching) -> Page {
    let (head, rows) = rows(caching);
    let head = head.into_iter().map(String::from).collect();
    let series = |name: &str, values: Vec<(u64, f64)>| {
        let value =
            |(x, y): (u64, f64)| Value { x: x as f64, y: Some(y), interval_95: None, point: None };
        Series::new(name, values.into_iter().map(value).collect())
    };
    let curve = |name: &str, curve: &[predict::stack_distance::MissRatio]| {
        series(name, curve.iter().map(|one| (one.cache_bytes, one.miss_ratio)).collect())
    };
    let mut misses: Vec<Series> =
        caching.misses.exact.iter().map(|exact| curve("all blocks", exact)).collect();
    misses.extend(caching.misses.sampled.iter().map(|sampled| {
        curve(&format!("{} of the blocks", percent(sampled.share)), &sampled.curve)
    }));
    let gain = |name: &str, of: fn(&CacheGain) -> f64| {
        series(name, caching.gains.iter().map(|one| (one.cache_bytes, of(one))).collect())
    };
    let gains = vec![
        gain("write-back", |one| one.write_back),
        gain("write-through", |one| one.write_through),
    ];
    let figure = |id: &str, title: &str, y: Axis, series: Vec<Series>| Figure {
        id: id.into(),
        title: title.into(),
        x: Axis::CacheBytes,
        y,
        series,
    };
    Page {
        kind: "cache".into(),
        title: format!("A cache in memory for {}", caching.source),
        about: heading(caching),
        program: program(),
        sections: vec![
            Section {
                title: "Speed-up".into(),
                question:
                    "How much faster would it run with a cache of each size in front of the volume?"
                        .into(),
                sentence: format!("{} {}.", sentence(caching), base(caching)),
                figures: vec![figure(
                    "gain",
                    "Speed-up by cache size, simulated",
                    Axis::Gain,
                    gains,
                )],
                tables: vec![Table { title: String::new(), head, rows, folded: false }],
            },
            Section {
                title: "Misses".into(),
                question: "How often would a cache of each size miss?".into(),
                sentence: sampling(caching)
                    .unwrap_or_else(|| "Counted over all blocks, by stack distance.".into()),
                figures: vec![figure(
                    "misses",
                    "Miss ratio of an LRU cache",
                    Axis::MissShare,
                    misses,
                )],
                tables: Vec::new(),
            },
        ],
    }
}
