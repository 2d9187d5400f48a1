//! The report for people.

use super::json::deviation;
use super::result::{Entry, FioResult, JobResult};
use machine::units::{show_rate, show_size_rounded, show_time, significant};
use std::fmt::Write;

/// The report: for each entry its rates with the interval, latencies, depth and processor time, then the devices and the warnings.
pub fn text(result: &FioResult) -> String {
    let mut text = String::new();
    let entries = result.entries();
    for (index, entry) in entries.iter().enumerate() {
        entry_text(&mut text, entry);
        let last = entries.get(index + 1).is_none_or(|next| !std::ptr::eq(next.job, entry.job));
        if last {
            let joined =
                |job: &&JobResult| job.job.options.group_reporting && job.job.group_id == entry.job.job.group_id;
            entry
                .group
                .jobs
                .iter()
                .filter(|job| std::ptr::eq(*job, entry.job) || joined(job))
                .for_each(|job| job_text(&mut text, job));
        }
    }
    // Writing to a String cannot fail.
    for group in &result.groups {
        for disk in &group.disks {
            let seconds = group.usage.elapsed_ns.max(1) as f64 / 1e9;
            let busy = (disk.busy_ms as f64 / 10.0 / seconds).min(100.0);
            let [reads, writes] = disk.requests;
            let _ = writeln!(text, "{}: {reads} reads, {writes} writes, busy {busy:.0} % of {seconds:.2} s", disk.name);
        }
        if let Some(ns) = group.usage.sync_ns {
            let _ = writeln!(text, "to stable storage at the end: {}", show_time(ns as f64));
        }
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

fn entry_text(text: &mut String, entry: &Entry<'_>) {
    let (job, recorded) = (&entry.job.job, &entry.recorded);
    let options = &job.options;
    let streams = if entry.clones > 1 { format!(", {} jobs", entry.clones) } else { String::new() };
    let sync = if options.direct { "direct" } else { "buffered" };
    let _ = writeln!(
        text,
        "{} (group {}{streams}): {} {}, {} x {}, {sync}, {:.2} s",
        job.name,
        job.group_id,
        options.mode,
        job.sizes_shown(),
        options.engine_name,
        job.effective_depth(),
        recorded.runtime_ns as f64 / 1e9
    );
    if let Some(description) = &options.description {
        let _ = writeln!(text, "  {description}");
    }
    for (side, name) in [(0, "read"), (1, "write")] {
        if recorded.requests[side] == 0 {
            continue;
        }
        let rate = recorded.bytes_per_s(side);
        let amount = show_size_rounded(recorded.bytes[side] as f64);
        let _ = writeln!(
            text,
            "  {name:5}  {} requests/s  {} ({:.1} MB/s)  {amount}",
            significant(recorded.iops(side), 4),
            show_rate(rate),
            rate / 1e6
        );
        let latency = &recorded.latency[side];
        let _ = writeln!(
            text,
            "         latency mean {}, deviation {}, least {}, greatest {}",
            show_time(latency.mean()),
            show_time(deviation(latency)),
            show_time(latency.min() as f64),
            show_time(latency.max() as f64)
        );
        if options.clat_percentiles || options.lat_percentiles {
            for line in options.percentiles.chunks(6) {
                let parts: Vec<String> =
                    line.iter().map(|&p| format!("p{p} {}", show_time(latency.percentile(p) as f64))).collect();
                let _ = writeln!(text, "         {}", parts.join("  "));
            }
        }
    }
    if !recorded.syncs.is_empty() {
        let syncs = &recorded.syncs;
        let (mean, p99) = (show_time(syncs.mean()), show_time(syncs.percentile(99.0) as f64));
        let _ = writeln!(
            text,
            "  sync   {} times, mean {mean}, p99 {p99}, greatest {}",
            syncs.count(),
            show_time(syncs.max() as f64)
        );
    }
}

/// What belongs to a job as a whole, all its clones together.
fn job_text(text: &mut String, result: &JobResult) {
    if let Some(error) = &result.error {
        let _ = writeln!(text, "  failed: {}", error.text);
    }
    let Some(numbers) = &result.point.numbers else { return };
    let job = &result.job;
    let who =
        if job.options.clones > 1 { format!("all {} of {}: ", job.options.clones, job.name) } else { String::new() };
    if let Some(bytes) = result.verified_bytes {
        let _ = writeln!(text, "  verified: {}, all of it as written", show_size_rounded(bytes as f64));
    }
    if let Some(steady) = &result.steady {
        let (unit, mark) = if steady.criterion.bandwidth { ("bandwidth", " B/s") } else { ("rate", " requests/s") };
        let what = if steady.criterion.slope { "slope" } else { "greatest deviation" };
        let mark = if steady.criterion.percent { " %" } else { mark };
        let _ = writeln!(
            text,
            "  {}steady: {} ({what} of the {unit} {}{mark} over {} s, {}{mark} allowed)",
            if job.options.clones > 1 {
                format!("all {} of {}: ", job.options.clones, job.name)
            } else {
                String::new()
            },
            if steady.attained { "yes" } else { "no" },
            significant(steady.found, 3),
            steady.criterion.window(),
            significant(steady.criterion.limit, 3),
        );
    }
    let interval = numbers
        .relative_half_width
        .map_or(String::new(), |half| format!("rate within {} % (95 %), ", significant(half * 100.0, 2)));
    let cpu = numbers.cpu_ns_per_request;
    let _ = writeln!(
        text,
        "  {who}{interval}depth {} of {}, processor {} a request ({} of it the program's), {} of the machine",
        significant(numbers.achieved.mean_depth, 3),
        job.effective_depth() * job.options.clones,
        show_time(cpu.user + cpu.system),
        show_time(cpu.user),
        show_time(cpu.machine)
    );
}
