use super::Interval;
use super::profile::{Profile, TimeSpan};
use super::profile_xml;
use super::report::{PERCENTILES, sums};
use super::result::{DiskspdResult, Half, SpanResult, ThreadResult};
use crate::calendar;
use quick_xml::escape::escape;
use std::fmt::Write;

struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    fn line(&mut self, content: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{}{content}", "  ".repeat(self.depth));
    }

    fn put(&mut self, name: &str, value: impl ToString) {
        self.line(&format!("<{name}>{}</{name}>", escape(value.to_string())));
    }

    fn within(&mut self, name: &str, body: impl FnOnce(&mut Lines)) {
        self.line(&format!("<{name}>"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line(&format!("</{name}>"));
    }
}

pub fn xml(profile: &Profile, result: &DiskspdResult) -> String {
    let mut lines = Lines { text: String::new(), depth: 0 };
    lines.within("Results", |lines| {
        lines.within("System", |lines| {
            lines.put("ComputerName", &result.system.computer);
            lines.within("Tool", |lines| {
                lines.put("Version", "2.2");
                lines.put("VersionDate", "2024/6/3");
            });
            lines.put("RunTime", calendar::year_first(result.system.began_unix_s));
            lines.put("ProcessorCount", result.system.processors);
        });
        lines.text += &profile_xml(profile, 2);
        for (span, figures) in profile.spans.iter().zip(&result.spans) {
            lines.within("TimeSpan", |lines| time_span(lines, span, figures));
        }
    });
    lines.text
}

fn hundredths(value: f64) -> String {
    format!("{value:.2}")
}

fn ms(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

fn time_span(lines: &mut Lines, span: &TimeSpan, figures: &SpanResult) {
    lines.put("TestTimeSeconds", hundredths(figures.elapsed_ns as f64 / 1e9));
    lines.put("ThreadCount", figures.thread_count());
    lines.put("RequestCount", span.pool.and_then(|pool| pool.outstanding).unwrap_or(0));
    lines.put("ProcCount", figures.processors_percent.len());
    lines.within("CpuUtilization", |lines| {
        let shares = |lines: &mut Lines, [user, kernel, idle]: [f64; 3]| {
            lines.put("UsagePercent", hundredths(user + kernel));
            lines.put("UserPercent", hundredths(user));
            lines.put("KernelPercent", hundredths(kernel));
            lines.put("IdlePercent", hundredths(idle));
        };
        for (number, one) in figures.processors_percent.iter().enumerate() {
            lines.within("CPU", |lines| {
                lines.put("Group", 0);
                lines.put("Id", number);
                shares(lines, *one);
            });
        }
        let count = figures.processors_percent.len().max(1) as f64;
        lines.within("Average", |lines| {
            shares(
                lines,
                [0, 1, 2].map(|part| {
                    figures.processors_percent.iter().map(|one| one[part]).sum::<f64>() / count
                }),
            )
        });
    });
    let sums = sums(figures);
    if span.latency {
        lines.within("Latency", |lines| latency(lines, &sums));
    }
    if let Some(interval) = span.interval_ms {
        lines.within("Iops", |lines| rates(lines, span, &sums, interval, figures));
    }
    for targets in figures.threads.chunk_by(|one, other| one.id == other.id) {
        lines.within("Thread", |lines| {
            lines.put("Id", targets[0].id);
            for thread in targets {
                lines.within("Target", |lines| target(lines, span, thread, figures));
            }
        });
    }
}

fn latency(lines: &mut Lines, [reads, writes, both]: &[Half; 3]) {
    let halves = [("Read", "Read", reads), ("Write", "Write", writes), ("Total", "", both)];
    for (name, deviation, half) in halves.iter().filter(|(_, _, half)| half.requests > 0) {
        lines.put(&format!("Average{name}Milliseconds"), ms(half.latency.mean()));
        lines.put(&format!("{deviation}LatencyStdev"), ms(half.latency_deviation_ns()));
    }
    let mut bucket = |percent: f64| {
        lines.within("Bucket", |lines| {
            lines.put("Percentile", percent);
            for (name, _, half) in halves.iter().filter(|(_, _, half)| half.requests > 0) {
                let value = if percent == 0.0 {
                    half.latency.min()
                } else {
                    half.latency.percentile(percent)
                };
                lines.put(&format!("{name}Milliseconds"), ms(value as f64));
            }
        });
    };
    bucket(0.0);
    (1..100).for_each(|percent| bucket(f64::from(percent)));
    PERCENTILES
        .iter()
        .filter(|(_, percent)| *percent > 99.0)
        .for_each(|(_, percent)| bucket(*percent));
    bucket(100.0);
}

fn rates(
    lines: &mut Lines,
    span: &TimeSpan,
    sums: &[Half; 3],
    interval_ms: u32,
    figures: &SpanResult,
) {
    let seconds = figures.elapsed_ns.max(1) as f64 / 1e9;
    for (name, deviation, half) in
        [("Read", "Read", &sums[0]), ("Write", "Write", &sums[1]), ("Total", "", &sums[2])]
    {
        lines.put(&format!("{name}Iops"), hundredths(half.requests as f64 / seconds));
        lines.put(&format!("{deviation}IopsStdDev"), hundredths(half.rate_deviation(interval_ms)));
    }
    // Like the original, each bucket lists reads and writes, with 0 for absent ones.
    let latencies = |name: &str, half: &Half, index: usize| {
        let one = if span.latency { half.interval_latency(index) } else { Interval::default() };
        format!(
            " {name}MinLatencyMilliseconds=\"{}\" {name}MaxLatencyMilliseconds=\"{}\" {name}AvgLatencyMilliseconds=\"{}\" {name}LatencyStdDev=\"{}\"",
            ms(one.min_ns as f64),
            ms(one.max_ns as f64),
            ms(one.mean_ns()),
            ms(one.deviation_ns())
        )
    };
    for (index, total) in sums[2].intervals.iter().enumerate() {
        let of = |half: &Half| half.intervals.get(index).copied().unwrap_or(0);
        let end = (index as u64 + 1) * u64::from(interval_ms);
        lines.line(&format!(
            "<Bucket SampleMillisecond=\"{end}\" Read=\"{}\" Write=\"{}\" Total=\"{total}\"{}{}/>",
            of(&sums[0]),
            of(&sums[1]),
            latencies("Read", &sums[0], index),
            latencies("Write", &sums[1], index)
        ));
    }
}

fn target(lines: &mut Lines, span: &TimeSpan, thread: &ThreadResult, figures: &SpanResult) {
    let both = thread.reads.plus(&thread.writes);
    lines.put("Path", &thread.path);
    lines.put("BytesCount", both.bytes);
    lines.put("FileSize", thread.file_bytes);
    lines.put("IOCount", both.requests);
    lines.put("ReadBytes", thread.reads.bytes);
    lines.put("ReadCount", thread.reads.requests);
    lines.put("WriteBytes", thread.writes.bytes);
    lines.put("WriteCount", thread.writes.requests);
    target_latencies(lines, span, thread, &both);
    if let Some(interval) = span.interval_ms {
        let halves = [thread.reads.clone(), thread.writes.clone(), both];
        lines.within("Iops", |lines| rates(lines, span, &halves, interval, figures));
    }
}

fn target_latencies(lines: &mut Lines, span: &TimeSpan, thread: &ThreadResult, both: &Half) {
    if !span.latency {
        return;
    }
    for (average, deviation, half) in [
        ("AverageReadLatencyMilliseconds", "ReadLatencyStdev", &thread.reads),
        ("AverageWriteLatencyMilliseconds", "WriteLatencyStdev", &thread.writes),
        ("AverageLatencyMilliseconds", "LatencyStdev", both),
    ] {
        if half.requests > 0 {
            lines.put(average, ms(half.latency.mean()));
            lines.put(deviation, ms(half.latency_deviation_ns()));
        }
    }
}
