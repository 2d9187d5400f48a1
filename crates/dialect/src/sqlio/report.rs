use super::{Access, Caching, FileJob, Kind, Multi, Options};
use measure::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Whole milliseconds below 24, and one for the rest.
pub const BUCKETS: usize = 25;

/// The figures of a run in the report's units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Requests per second.
    pub ios_per_s: f64,
    /// 2^20 bytes per second.
    pub mib_per_s: f64,
    /// Latencies, reported with `-L`.
    pub latency: LatencyFigures,
    /// User, system and idle share of all processors in percent, reported with `-U`.
    pub cpu_percent: [f64; 3],
    /// User, system and idle share of each processor in percent, reported with `-Up`.
    pub processors_percent: Vec<[f64; 3]>,
}

/// Latencies in whole milliseconds, like the original's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyFigures {
    pub min_ms: u64,
    pub avg_ms: u64,
    pub max_ms: u64,
    /// Percentage of the requests by milliseconds; the last bucket is 24 and more.
    pub percent: Vec<u32>,
}

pub fn figures(requests: u64, bytes: u64, ns: u64, latency: &Histogram) -> Figures {
    const MS: u64 = 1_000_000;
    let seconds = ns.max(1) as f64 / 1e9;
    let mut counts = [0u64; BUCKETS];
    for bucket in latency.iter() {
        counts[((bucket.middle() / MS) as usize).min(BUCKETS - 1)] += bucket.count;
    }
    let total = latency.count().max(1) as f64;
    Figures {
        ios_per_s: requests as f64 / seconds,
        mib_per_s: bytes as f64 / seconds / (1 << 20) as f64,
        latency: LatencyFigures {
            min_ms: latency.min() / MS,
            avg_ms: latency.mean() as u64 / MS,
            max_ms: latency.max() / MS,
            percent: counts
                .iter()
                .map(|count| (*count as f64 / total * 100.0).round() as u32)
                .collect(),
        },
        cpu_percent: [0.0; 3],
        processors_percent: Vec::new(),
    }
}

/// Truncates to two decimals, like the original.
pub(super) fn cut(value: f64) -> f64 {
    // A whole hundredth in decimal may be slightly smaller in binary.
    ((value * 100.0 + 1e-9).floor()) / 100.0
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `sizes`: bytes in use, and whether the user gave them.
pub fn before(options: &Options, jobs: &[FileJob], sizes: &[(u64, bool)]) -> String {
    let mut text = String::from("sqlio v1.5.SG\n");
    // Writing to a string cannot fail.
    match options.latency {
        Some(('P', _)) => text += "using processor rdtsc timings, assume 1000 Mhz speed\n",
        Some(_) => {
            text += "using system counter for latency timings, 1000000000 counts per second\n"
        }
        None => {}
    }
    let threads: u32 = jobs.iter().map(|job| job.threads).sum();
    let plural = |count: u32, word: &str| {
        if count == 1 { format!("{count} {word}") } else { format!("{count} {word}s") }
    };
    if let Some(path) = &options.parameters {
        let _ = writeln!(text, "parameter file used: {}", path.display());
        let mut first = 0;
        for job in jobs {
            let which = if job.threads == 1 {
                format!("{first}")
            } else {
                format!("{first}-{}", first + job.threads - 1)
            };
            let _ = writeln!(
                text,
                "\tfile {} with {} ({which}) using mask {:#x} ({})",
                job.path.display(),
                plural(job.threads, "thread"),
                job.mask,
                job.mask
            );
            first += job.threads;
        }
    }
    let kind = options.kind.unwrap_or_default();
    let (doing, way) = if kind == Kind::Read { ("reading", "from") } else { ("writing", "to") };
    let seconds = options.run_ns.unwrap_or(30_000_000_000) as f64 / 1e9;
    let names: Vec<String> = jobs.iter().map(|job| job.path.display().to_string()).collect();
    let files = if names.len() == 1 { "file" } else { "files" };
    let _ = writeln!(
        text,
        "{} {doing} for {seconds} secs {way} {files} {}",
        plural(threads, "thread"),
        listed(&names)
    );
    let block = options.block_bytes() / 1024;
    let _ = match options.access() {
        Access::Random => writeln!(text, "\tusing {block}KB random IOs"),
        Access::Sequential => writeln!(text, "\tusing {block}KB sequential IOs"),
        Access::Stripes(columns) => {
            let stripe = u64::from(columns) * u64::from(block);
            writeln!(
                text,
                "\tusing {block}KB IOs over {stripe}KB stripes with {} IOs per run",
                options.rows.unwrap_or(64)
            )
        }
    };
    if let Some(depth) = options.outstanding.filter(|depth| *depth > 0) {
        let _ = writeln!(text, "\tenabling multiple I/Os per thread with {depth} outstanding");
    }
    match options.multi {
        Some(Multi::Copy(blocks)) => {
            writeln!(text, "\tusing multi-buffer I/O with {blocks} blocks, copied")
                .unwrap_or_default()
        }
        Some(Multi::Scatter(blocks)) => {
            writeln!(text, "\tusing scatter/gather I/O with {blocks} blocks").unwrap_or_default()
        }
        None => {}
    }
    text += match options.caching.unwrap_or_default() {
        Caching::None => "\tbuffering set to not use file nor disk caches (as is SQL Server)\n",
        Caching::Both => "\tbuffering set to use both file and disk caches\n",
        Caching::Hardware => "\tbuffering set to use hardware disk cache (but not file cache)\n",
        Caching::Software => "\tbuffering set to use software file cache (but not disk cache)\n",
    };
    for (job, (bytes, given)) in jobs.iter().zip(sizes) {
        let which = if *given { "specified" } else { "current" };
        let _ = writeln!(
            text,
            "using {which} size: {} MB for file: {}",
            bytes >> 20,
            job.path.display()
        );
    }
    text + "initialization done\n"
}

pub fn report(options: &Options, figures: &Figures) -> String {
    let mut text = String::from("CUMULATIVE DATA:\nthroughput metrics:\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "IOs/sec:{:9.2}", figures.ios_per_s);
    let _ = writeln!(text, "MBs/sec:{:9.2}", cut(figures.mib_per_s));
    if options.latency.is_some() {
        let latency = &figures.latency;
        let _ = writeln!(
            text,
            "latency metrics:\nMin_Latency(ms): {}\nAvg_Latency(ms): {}\nMax_Latency(ms): {}",
            latency.min_ms, latency.avg_ms, latency.max_ms
        );
        text += "histogram:\nms:";
        for bucket in 0..BUCKETS {
            let mark = if bucket == BUCKETS - 1 { "+" } else { "" };
            let _ = if bucket == 0 {
                write!(text, "{bucket:>2}")
            } else {
                write!(text, "{bucket:>3}{mark}")
            };
        }
        text += "\n%:";
        latency.percent.iter().for_each(|percent| write!(text, "{percent:>3}").unwrap_or_default());
        text.push('\n');
    }
    if let Some(each) = options.cpu {
        let line = |[user, system, idle]: [f64; 3]| {
            format!("user {user:6.2} % kernel {system:6.2} % idle {idle:6.2} %")
        };
        let _ = writeln!(text, "CPU metrics:\nall processors: {}", line(figures.cpu_percent));
        if each {
            figures.processors_percent.iter().enumerate().for_each(|(cpu, shares)| {
                writeln!(text, "processor {cpu:>3}:  {}", line(*shares)).unwrap_or_default()
            });
        }
    }
    text
}
