//! fio's lines that people and scripts look for, and halfpower's additions.

use super::direction::Ordered;
use super::direction::{Direction, Latency, PriorityReport};
use super::json::{self};
use crate::fio::options::kinds::Unified;
use crate::fio::run::failures::Failures;
use crate::fio::run::result::{CloneStats, Entry, FioResult, JobResult};
use machine::units::{show_size_rounded, show_time, significant};
use std::fmt::{self, Write};

const NO_WRITE_FAILS: &str = "writing to a String cannot fail";

pub fn text(result: &FioResult) -> String {
    let mut text = String::new();
    write(&mut text, result).expect(NO_WRITE_FAILS);
    text
}

fn write(text: &mut String, result: &FioResult) -> fmt::Result {
    let entries = result.entries();
    for (index, entry) in entries.iter().enumerate() {
        entry_text(text, entry, result)?;
        let last = entries.get(index + 1).is_none_or(|next| !std::ptr::eq(next.job, entry.job));
        let joined = |job: &&JobResult| {
            job.job.options.group_reporting && job.job.group_id == entry.job.job.group_id
        };
        let jobs = entry
            .group
            .jobs
            .iter()
            .filter(|job| last && (std::ptr::eq(*job, entry.job) || joined(job)));
        jobs.into_iter().try_for_each(|job| job_text(text, job))?;
    }
    groups_text(text, &entries)?;
    let disks = json::disks(result);
    if !disks.is_empty() {
        writeln!(text, "\nDisk stats (read/write):")?;
    }
    for disk in disks {
        writeln!(
            text,
            "  {}: ios={}/{}, merge={}/{}, ticks={}/{}, in_queue={}, util={:.2}%",
            disk.name,
            disk.read_ios,
            disk.write_ios,
            disk.read_merges,
            disk.write_merges,
            disk.read_ticks,
            disk.write_ticks,
            disk.in_queue,
            disk.util
        )?;
    }
    if let Some(percent) = result.idle_percent() {
        writeln!(text, "\nCPU idleness:\n  system: {percent:3.2}%")?;
        let each: Vec<String> =
            result.each_idle().iter().map(|(_, percent)| format!("{percent:3.2}%")).collect();
        if !each.is_empty() {
            writeln!(text, "  percpu: {}", each.join(", "))?;
        }
    }
    for group in &result.groups {
        if let Some(ns) = group.usage.sync_ns {
            writeln!(text, "flush at the end, part of the time above: {}", show_time(ns as f64))?;
        }
    }
    result.warnings.iter().try_for_each(|warning| writeln!(text, "warning: {warning}"))
}

fn entry_text(text: &mut String, entry: &Entry<'_>, result: &FioResult) -> fmt::Result {
    let (job, recorded) = (&entry.job.job, &entry.recorded);
    let options = &job.options;
    let report = json::job(entry, result, false);
    let time = crate::calendar::ctime(result.ended_unix_ms / 1000);
    let error = report.error;
    writeln!(
        text,
        "\n{}: (groupid={}, jobs={}): err={error:2}: pid={}: {time}",
        entry.name,
        job.group_id,
        entry.clones,
        std::process::id()
    )?;
    if let Some(description) = &options.description {
        writeln!(text, "  Description  : [{description}]")?;
    }
    let sync = if entry.job.job.is_direct() { "direct" } else { "buffered" };
    writeln!(
        text,
        "  {} {}, {} x {}, {sync}",
        options.mode,
        job.sizes_shown(),
        options.engine_name,
        job.effective_depth()
    )?;
    for (name, direction) in report.directions.named() {
        direction_text(text, name, direction)?;
    }
    bands_text(
        text,
        &[("nsec", &report.latency_ns), ("usec", &report.latency_us), ("msec", &report.latency_ms)],
    )?;
    if let Some(sync) = report.sync.as_ref().filter(|sync| sync.total_ios > 0) {
        writeln!(text, "  fsync/fdatasync/sync_file_range:")?;
        latency_text(text, "sync", &sync.lat_ns)?;
        percentiles_text(text, "sync", &sync.lat_ns)?;
    }
    writeln!(
        text,
        "  cpu          : usr={:.2}%, sys={:.2}%, ctx={}, majf={}, minf={}",
        report.usr_cpu, report.sys_cpu, report.ctx, report.majf, report.minf
    )?;
    for (title, Ordered(shares)) in [
        ("  IO depths    ", &report.iodepth_level),
        ("     submit    ", &report.iodepth_submit),
        ("     complete  ", &report.iodepth_complete),
    ] {
        let shares: Vec<String> =
            shares.iter().map(|(name, percent)| format!("{name}={percent:.1}%")).collect();
        writeln!(text, "{title}: {}", shares.join(", "))?;
    }
    let issued =
        if options.unified == Unified::Mixed { recorded.unified() } else { recorded.clone() };
    let [reads, writes, trims] = issued.requests;
    let syncs = recorded.full_syncs;
    writeln!(
        text,
        "     issued rwts: total={reads},{writes},{trims},{syncs} short=0,0,0,0 dropped=0,0,0,0"
    )?;
    if let Failures { count: count @ 1.., first } = entry.failures {
        let named = std::io::Error::from_raw_os_error(first).to_string();
        let named = named.split(" (os error").next().unwrap_or_default();
        writeln!(text, "     errors    : total={count}, first_error={first}/<{named}>")?;
    }
    writeln!(
        text,
        "     latency   : target={}, window={}, percentile={:.2}%, depth={}",
        report.latency_target,
        report.latency_window,
        report.latency_percentile,
        report.latency_depth
    )
}

fn direction_text(text: &mut String, name: &str, direction: &Direction) -> fmt::Result {
    if direction.runtime == 0 {
        return Ok(());
    }
    let bytes = direction.bw_bytes as f64;
    let tail = if name == "write" { "; 0 zone resets" } else { "" };
    writeln!(
        text,
        "  {name}: IOPS={}, BW={}/s ({}/s)({}/{}msec){tail}",
        short(direction.iops, 1000.0, ["", "k", "M", "G", "T"]),
        binary(bytes),
        decimal(bytes),
        binary(direction.io_bytes as f64),
        direction.runtime
    )?;
    if direction.slat_ns.count > 0 {
        latency_text(text, "slat", &direction.slat_ns)?;
    }
    latency_text(text, "clat", &direction.clat_ns)?;
    latency_text(text, "lat", &direction.lat_ns)?;
    let priorities: Vec<_> = direction.prios.iter().filter_map(PriorityReport::named).collect();
    priorities.iter().try_for_each(|(name, latency)| latency_text(text, name, latency))?;
    percentiles_text(text, "slat", &direction.slat_ns)?;
    percentiles_text(text, "clat", &direction.clat_ns)?;
    percentiles_text(text, "lat", &direction.lat_ns)?;
    let all: u64 = priorities.iter().map(|(_, latency)| latency.count).sum();
    for (name, latency) in &priorities {
        let share = latency.count as f64 * 100.0 / all as f64;
        percentiles_text(text, &format!("{name} ({share:.2}% of IOs)"), latency)?;
    }
    if direction.bw_samples > 1 {
        writeln!(
            text,
            "   bw (  KiB/s): min={:5}, max={:5}, per={:.2}%, avg={:.2}, stdev={:.2}, samples={}",
            direction.bw_min,
            direction.bw_max,
            direction.bw_agg,
            direction.bw_mean,
            direction.bw_dev,
            direction.bw_samples
        )?;
        writeln!(
            text,
            "   iops        : min={:5}, max={:5}, avg={:.2}, stdev={:.2}, samples={}",
            direction.iops_min,
            direction.iops_max,
            direction.iops_mean,
            direction.iops_stddev,
            direction.iops_samples
        )?;
    }
    Ok(())
}

/// As in fio, the largest unit that keeps enough digits.
fn unit(latency: &Latency) -> (&'static str, f64) {
    let fits = |ns: f64| {
        latency.min as f64 > 2.0 * ns
            && latency.max as f64 > 99.999 * ns
            && latency.mean > 2.0 * ns
            && latency.stddev > ns
    };
    [("msec", 1e6), ("usec", 1e3)].into_iter().find(|(_, ns)| fits(*ns)).unwrap_or(("nsec", 1.0))
}

fn latency_text(text: &mut String, name: &str, latency: &Latency) -> fmt::Result {
    let (unit, ns) = unit(latency);
    let whole = |value: u64| match value as f64 / ns {
        value if value < 99_999.5 => format!("{value:.0}"),
        value if value < 9_999_950.0 => format!("{:.1}k", value / 1e3),
        value => format!("{:.0}k", value / 1e3),
    };
    writeln!(
        text,
        "    {name:>4} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        whole(latency.min),
        whole(latency.max),
        latency.mean / ns,
        latency.stddev / ns
    )
}

fn percentiles_text(text: &mut String, name: &str, latency: &Latency) -> fmt::Result {
    let Some(Ordered(list)) = &latency.percentile else { return Ok(()) };
    let (unit, ns) = unit(latency);
    let values: Vec<String> =
        list.iter().map(|(_, value)| format!("{:.0}", *value as f64 / ns)).collect();
    let width = values.iter().map(String::len).max().unwrap_or(1);
    writeln!(text, "    {name} percentiles ({unit}):")?;
    let cells: Vec<String> = list
        .iter()
        .zip(&values)
        .map(|((name, _), value)| {
            format!("{:>5.2}th=[{value:>width$}]", name.parse::<f64>().unwrap_or(0.0))
        })
        .collect();
    let rows: Vec<String> = cells
        .chunks((73 / (12 + width)).max(1))
        .map(|row| format!("     | {}", row.join(", ")))
        .collect();
    writeln!(text, "{}", rows.join(",\n"))
}

fn bands_text(text: &mut String, bands: &[(&str, &Ordered<f64>)]) -> fmt::Result {
    for (unit, Ordered(shares)) in bands {
        let shares: Vec<String> = (shares.iter().filter(|(_, percent)| *percent > 0.0))
            .map(|(name, percent)| format!("{name}={:.2}%", percent.max(0.01)))
            .collect();
        for row in shares.chunks(5) {
            writeln!(text, "  lat ({unit})   : {}", row.join(", "))?;
        }
    }
    Ok(())
}

fn groups_text(text: &mut String, entries: &[Entry<'_>]) -> fmt::Result {
    let mut ids: Vec<u32> = entries.iter().map(|entry| entry.job.job.group_id).collect();
    ids.dedup();
    for id in ids {
        let members = || entries.iter().filter(|entry| entry.job.job.group_id == id);
        // As in fio, the first job of a group decides the layout.
        let unified =
            members().next().map_or(Unified::Apart, |entry| entry.job.job.options.unified);
        let own: Vec<&CloneStats> = members().map(|entry| &entry.recorded).collect();
        let whole: Vec<CloneStats> = own.iter().map(|recorded| recorded.unified()).collect();
        let all: Vec<&CloneStats> = whole.iter().collect();
        let apart = [("READ", &own, 0), ("WRITE", &own, 1), ("TRIM", &own, 2)];
        let apart = apart.into_iter().filter(|_| unified != Unified::Mixed);
        let mixed = (unified != Unified::Apart).then_some(("MIXED", &all, 0));
        writeln!(text, "\nRun status group {id} (all jobs):")?;
        for (name, recorded, side) in apart.chain(mixed) {
            let used: Vec<&&CloneStats> =
                recorded.iter().filter(|recorded| recorded.requests[side] > 0).collect();
            if used.is_empty() {
                continue;
            }
            let rates = || used.iter().map(|recorded| recorded.bytes_per_s(side));
            let times = || used.iter().map(|recorded| (recorded.runtime_ns / 1_000_000).max(1));
            let bytes = used.iter().map(|recorded| recorded.bytes[side]).sum::<u64>() as f64;
            let (min, max) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
            let longest = times().max().unwrap_or(1);
            let whole = bytes * 1000.0 / longest as f64;
            writeln!(
                text,
                "{name:>7}: bw={}/s ({}/s), {}/s-{}/s ({}/s-{}/s), io={} ({}), run={}-{longest}msec",
                binary(whole),
                decimal(whole),
                binary(min),
                binary(max),
                decimal(min),
                decimal(max),
                binary(bytes),
                decimal(bytes),
                times().min().unwrap_or(1)
            )?;
        }
    }
    Ok(())
}

fn short(value: f64, base: f64, units: [&str; 5]) -> String {
    let (mut value, mut unit) = (value, 0);
    while value >= 9999.5 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    let decimals = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}{}", units[unit])
}

fn binary(bytes: f64) -> String {
    short(bytes, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
}

fn decimal(bytes: f64) -> String {
    short(bytes, 1000.0, ["B", "kB", "MB", "GB", "TB"])
}

fn job_text(text: &mut String, result: &JobResult) -> fmt::Result {
    if let Some(error) = &result.error {
        writeln!(text, "  failed: {}", error.text)?;
    }
    let Some(numbers) = &result.point.numbers else { return Ok(()) };
    let job = &result.job;
    let who = if job.options.clones > 1 {
        format!("all {} of {}: ", job.options.clones, job.name)
    } else {
        String::new()
    };
    if let Some(bytes) = result.verified_bytes.filter(|bytes| *bytes > 0) {
        writeln!(text, "  verified: {}, all of it as written", show_size_rounded(bytes as f64))?;
    }
    if let Some(steady) = &result.steady {
        let (unit, mark) = if steady.criterion.bandwidth {
            ("bandwidth", " B/s")
        } else {
            ("rate", " requests/s")
        };
        let what = if steady.criterion.slope { "slope" } else { "greatest deviation" };
        let mark = if steady.criterion.percent { " %" } else { mark };
        writeln!(
            text,
            "  {who}steady: {} ({what} of the {unit} {}{mark} over {} s, {}{mark} allowed)",
            if steady.attained { "yes" } else { "no" },
            significant(steady.found, 3),
            steady.criterion.window(),
            significant(steady.criterion.limit, 3),
        )?;
    }
    let interval = numbers.relative_half_width.map_or(String::new(), |half| {
        format!("rate within {} % (95 %), ", significant(half * 100.0, 2))
    });
    let cpu = numbers.cpu_ns_per_request;
    writeln!(
        text,
        "  {who}{interval}depth {} of {}, processor {} a request ({} of it the program's), {} of the machine",
        significant(numbers.achieved.mean_depth, 3),
        job.effective_depth() * job.options.clones,
        show_time(cpu.user + cpu.system),
        show_time(cpu.user),
        show_time(cpu.machine)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_fio() {
        // From the report of Debian's fio 3.33.
        assert_eq!(
            (binary(4096.0), binary(40960.0), binary(63.6 * 1048576.0)),
            ("4096B".into(), "40.0KiB".into(), "63.6MiB".into())
        );
        assert_eq!(
            (decimal(2_925_714.0), binary(2_925_714.0)),
            ("2926kB".into(), "2857KiB".into())
        );
        let iops = |value: f64| short(value, 1000.0, ["", "k", "M", "G", "T"]);
        assert_eq!(
            (iops(5742.3), iops(52_130.0), iops(521_300.0)),
            ("5742".into(), "52.1k".into(), "521k".into())
        );
    }
}
