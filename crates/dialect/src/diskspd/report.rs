use super::ThreadPool;
use super::profile::{Caching, Profile, Target, TimeSpan};
use super::result::{DiskspdResult, Half, SpanResult, Topology};
use crate::calendar;
use std::fmt::Write;

/// In whole units, like the original.
fn size(bytes: u64) -> String {
    let units = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = units.iter().find(|(_, unit)| bytes >= *unit);
    unit.map_or(format!("{bytes}B"), |(name, unit)| format!("{}{name}", bytes / unit))
}

fn exact(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = units.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or(bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

pub fn text(profile: &Profile, result: &DiskspdResult) -> String {
    let mut text = profile_text(profile, &result.command);
    // Writing to a string cannot fail.
    let system = &result.system;
    let _ = write!(
        text,
        "System information:\n\n\tcomputer name: {}\n\tstart time: {}\n\n\tcpu count:\t\t{}\n",
        system.computer,
        calendar::year_first(system.began_unix_s),
        system.processors
    );
    if let Some(Topology { cores, nodes, sockets }) = system.topology {
        // Only Windows has groups of processors, of up to 64 each.
        let _ = writeln!(
            text,
            "\tcore count:\t\t{cores}\n\tgroup count:\t\t1\n\tnode count:\t\t{nodes}\n\tsocket count:\t\t{sockets}"
        );
    }
    text.push('\n');
    for (index, (span, figures)) in profile.spans.iter().zip(&result.spans).enumerate() {
        let _ = writeln!(text, "Results for timespan {}:\n{}\n", index + 1, "*".repeat(79));
        text += &results(span, figures, system.processors);
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "halfpower: {warning}");
    }
    text
}

pub fn profile_text(profile: &Profile, command: &str) -> String {
    let spans = profile.spans.iter().zip(1..).map(|(span, number)| parameters(number, span));
    format!("\nCommand Line: diskspd {command}\n\nInput parameters:\n\n")
        + &spans.collect::<String>()
}

fn parameters(number: usize, span: &TimeSpan) -> String {
    let mut lines = vec![format!("\ttimespan: {number:>3}"), "\t-------------".into()];
    let mut say = |line: String| lines.push(format!("\t{line}"));
    say(format!("duration: {}s", span.duration_s));
    say(format!("warm up time: {}s", span.warm_up_s));
    say(format!("cool down time: {}s", span.cool_down_s));
    if !span.processors.is_empty() {
        say(format!(
            "affinity: {}",
            span.processors.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        ));
    }
    if span.latency {
        say("measuring latency".into());
    }
    if let Some(ms) = span.interval_ms {
        say(format!("gathering IOPS at intervals of {ms}ms"));
    }
    say(format!("random seed: {}", span.seed));
    if let Some(pool) = &span.pool {
        say(format!("thread pool with {} threads", pool.threads));
        say(format!(
            "number of outstanding I/O operations per thread: {}",
            pool.outstanding.unwrap_or(0)
        ));
    }
    for target in &span.targets {
        say(format!("path: '{}'", target.path.display()));
        target_lines(target, span.pool.as_ref(), span.completion_routines)
            .into_iter()
            .for_each(|line| say(format!("\t{line}")));
    }
    lines.join("\n") + "\n\n"
}

fn target_lines(
    target: &Target,
    pool: Option<&ThreadPool>,
    completion_routines: bool,
) -> Vec<String> {
    let mut lines = vec!["think time: 0ms".to_string(), "burst size: 0".into()];
    lines.push(
        match target.caching {
            Caching::Cached => "using software cache",
            Caching::Uncached => "software cache disabled",
            Caching::Mapped => "memory mapped I/O enabled",
        }
        .into(),
    );
    let through = if target.write_through {
        "hardware write cache disabled, writethrough on"
    } else {
        "using hardware write cache, writethrough off"
    };
    lines.push(through.into());
    lines.push(match target.write_percent {
        0 => "performing read test".into(),
        100 => "performing write test".into(),
        percent => format!("performing mix test (read/write ratio: {}/{percent})", 100 - percent),
    });
    if target.source == super::Source::Zero {
        lines.push("zeroing write buffers".into());
    }
    if let Some(bytes) = target.source_bytes {
        lines.push(format!("write buffer size: {}", exact(bytes)));
        lines.push(
            target.source_file.as_ref().map_or("write buffer data: random fill".into(), |path| {
                format!("write buffer data: from file '{}'", path.display())
            }),
        );
    }
    if target.large_pages {
        lines.push("using large pages".into());
    }
    lines.push(format!("block size: {}", exact(u64::from(target.block_bytes))));
    lines.push(match target.random_bytes {
        Some(align) => format!("using random I/O (alignment: {})", exact(align)),
        None => {
            format!(
                "using {}sequential I/O (stride: {})",
                if target.interlocked { "interlocked " } else { "" },
                exact(target.step_bytes())
            )
        }
    });
    lines.push(if pool.is_some_and(|pool| pool.outstanding.is_some()) {
        format!("relative IO weight in thread pool: {}", target.weight)
    } else {
        format!("number of outstanding I/O operations per thread: {}", target.outstanding)
    });
    if target.base_bytes > 0 {
        lines.push(format!("base file offset: {}", exact(target.base_bytes)));
    }
    if let Some(max) = target.max_bytes {
        lines.push(format!("max file size: {}", exact(max)));
    }
    if target.thread_stride_bytes > 0 {
        lines.push(format!("thread stride size: {}", exact(target.thread_stride_bytes)));
    }
    if let Some(rate) = target.throughput_bytes_per_ms {
        lines.push(format!("throughput rate-limited to {rate} B/ms"));
    }
    if let Some(rate) = target.throughput_iops {
        lines.push(format!("throughput rate-limited to {rate} IOPS"));
    }
    if pool.is_none() {
        lines.push(format!("threads per file: {}", target.threads));
        if target.outstanding > 1 {
            lines.push(
                if completion_routines {
                    "using completion routines instead of I/O Completion Ports"
                } else {
                    "using I/O Completion Ports"
                }
                .into(),
            );
        }
    }
    lines.push("IO priority: normal".into());
    lines
}

fn results(span: &TimeSpan, figures: &SpanResult, processors_of_system: u32) -> String {
    let mut text = format!(
        "actual test time:\t{:.2}s\nthread count:\t\t{}\n",
        seconds(figures),
        figures.thread_count()
    );
    if let Some(outstanding) = span.pool.and_then(|pool| pool.outstanding) {
        text += &format!("request count:\t\t{outstanding}\n");
    }
    text += &format!("proc count:\t\t{processors_of_system}\n\n");
    text += &processors(figures);
    for (title, of) in [
        ("Total IO", (|reads, writes| Half::plus(reads, writes)) as fn(&Half, &Half) -> Half),
        ("Read IO", |reads, _| reads.clone()),
        ("Write IO", |_, writes| writes.clone()),
    ] {
        text += &section(title, span, figures, of);
    }
    if span.latency {
        text += &percentiles(figures);
    }
    text
}

fn seconds(figures: &SpanResult) -> f64 {
    figures.elapsed_ns.max(1) as f64 / 1e9
}

fn processors(figures: &SpanResult) -> String {
    let line = "-".repeat(40);
    let shares = |[user, kernel, idle]: [f64; 3]| {
        format!("{:6.2}%| {user:6.2}%| {kernel:6.2}%| {idle:6.2}%", user + kernel)
    };
    let mut text = format!("CPU |  Usage |  User  | Kernel |  Idle\n{line}\n");
    // Writing to a string cannot fail.
    for (number, one) in figures.processors_percent.iter().enumerate() {
        let _ = writeln!(text, "{number:>4}| {}", shares(*one));
    }
    let count = figures.processors_percent.len().max(1) as f64;
    let mean = [0, 1, 2]
        .map(|part| figures.processors_percent.iter().map(|one| one[part]).sum::<f64>() / count);
    text + &format!("{line}\navg.| {}\n\n", shares(mean))
}

fn section(
    title: &str,
    span: &TimeSpan,
    figures: &SpanResult,
    of: fn(&Half, &Half) -> Half,
) -> String {
    let mut header =
        String::from("thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |");
    header += if span.latency { "  AvgLat  |" } else { "" };
    header += if span.interval_ms.is_some() { " IopsStdDev |" } else { "" };
    header += if span.latency { " LatStdDev |" } else { "" };
    header += "  file";
    let line = "-".repeat(header.len() + 5);
    let mut text = format!("{title}\n{header}\n{line}\n");
    let mut sum = Half::default();
    // Writing to a string cannot fail.
    for thread in &figures.threads {
        let half = of(&thread.reads, &thread.writes);
        let _ = writeln!(
            text,
            "{:>6} | {} | {} ({})",
            thread.id,
            columns(span, figures, &half),
            thread.path,
            size(thread.file_bytes)
        );
        sum = sum.plus(&half);
    }
    let _ = writeln!(text, "{line}\ntotal:   {}\n", columns(span, figures, &sum));
    text
}

fn columns(span: &TimeSpan, figures: &SpanResult, half: &Half) -> String {
    let seconds = seconds(figures);
    let mut text = format!(
        "{:>15} | {:>12} | {:>10.2} | {:>10.2}",
        half.bytes,
        half.requests,
        half.bytes as f64 / seconds / (1 << 20) as f64,
        half.requests as f64 / seconds
    );
    // Writing to a string cannot fail.
    if span.latency {
        let _ = write!(text, " | {:>8.3}", half.latency.mean() / 1e6);
    }
    if let Some(ms) = span.interval_ms {
        let _ = write!(text, " | {:>10.2}", half.rate_deviation(ms));
    }
    if span.latency {
        let _ = write!(text, " |  {:>8.3}", half.latency_deviation_ns() / 1e6);
    }
    text
}

pub(super) const PERCENTILES: [(&str, f64); 13] = [
    ("25th", 25.0),
    ("50th", 50.0),
    ("75th", 75.0),
    ("90th", 90.0),
    ("95th", 95.0),
    ("99th", 99.0),
    ("3-nines", 99.9),
    ("4-nines", 99.99),
    ("5-nines", 99.999),
    ("6-nines", 99.9999),
    ("7-nines", 99.99999),
    ("8-nines", 99.999999),
    ("9-nines", 99.9999999),
];

pub(super) fn sums(figures: &SpanResult) -> [Half; 3] {
    let reads = figures.threads.iter().fold(Half::default(), |sum, thread| sum.plus(&thread.reads));
    let writes =
        figures.threads.iter().fold(Half::default(), |sum, thread| sum.plus(&thread.writes));
    let both = reads.plus(&writes);
    [reads, writes, both]
}

fn percentiles(figures: &SpanResult) -> String {
    let sums = sums(figures);
    let mut text = format!(
        "Total latency distribution:\n  %-ile |  Read (ms) | Write (ms) | Total (ms)\n{}\n",
        "-".repeat(46)
    );
    let mut row = |name: &str, of: &dyn Fn(&Half) -> u64| {
        let shown = |half: &Half| {
            if half.latency.is_empty() {
                "N/A".to_string()
            } else {
                format!("{:.3}", of(half) as f64 / 1e6)
            }
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:>7} | {:>10} | {:>10} | {:>10}",
            shown(&sums[0]),
            shown(&sums[1]),
            shown(&sums[2])
        );
    };
    row("min", &|half| half.latency.min());
    for (name, percent) in PERCENTILES {
        row(name, &move |half| half.latency.percentile(percent));
    }
    row("max", &|half| half.latency.max());
    text + "\n"
}
