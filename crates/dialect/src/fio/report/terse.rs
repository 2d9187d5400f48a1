//! A line per entry, with figures separated by semicolons.

use super::direction::Ordered;
use super::direction::{Direction, Latency};
use super::json::{self, JobReport};
use crate::fio::run::result::{Entry, FioResult};
use std::fmt::Write;

const PERCENTILES: usize = 20;

/// `version`: 2 to 5.
pub fn terse(result: &FioResult, version: u8) -> String {
    result.entries().iter().map(|entry| line(entry, result, version) + "\n").collect()
}

fn line(entry: &Entry<'_>, result: &FioResult, version: u8) -> String {
    let report = json::job(entry, result, false);
    let mut fields: Vec<String> = vec![version.to_string()];
    if version > 2 {
        fields.push(json::FIO_VERSION.into());
    }
    // A separator within a name would split the field.
    fields.extend([
        report.jobname.replace(';', "_"),
        report.groupid.to_string(),
        report.error.to_string(),
    ]);
    for (_, direction) in
        report.directions.named().filter(|(name, _)| version != 3 || *name != "trim")
    {
        fields.extend(of_direction(direction, entry, version));
    }
    fields.extend(of_machine(&report));
    if version > 2 {
        for disk in json::disks(result) {
            let counts = [
                disk.read_ios,
                disk.write_ios,
                disk.read_merges,
                disk.write_merges,
                disk.read_ticks,
                disk.write_ticks,
                disk.in_queue,
            ];
            fields.push(disk.name);
            fields.extend(counts.map(|count| count.to_string()));
            fields.push(format!("{:.2}%", disk.util));
        }
    }
    let mut line = fields.join(";");
    if let Some(text) = &report.desc {
        // Writing to a String cannot fail.
        let _ = write!(line, "{}{text}", if version == 2 { "\n;" } else { ";" });
    }
    line
}

/// In microseconds.
fn of_latency(latency: &Latency) -> [String; 4] {
    let real = |ns: f64| format!("{:.6}", ns / 1000.0);
    [
        (latency.min / 1000).to_string(),
        (latency.max / 1000).to_string(),
        real(latency.mean),
        real(latency.stddev),
    ]
}

fn of_direction(direction: &Direction, entry: &Entry<'_>, version: u8) -> Vec<String> {
    let mut fields: Vec<String> =
        [direction.io_kbytes, direction.bw, direction.iops as u64, direction.runtime]
            .map(|n| n.to_string())
            .into();
    fields.extend(of_latency(&direction.slat_ns));
    fields.extend(of_latency(&direction.clat_ns));
    let options = &entry.job.job.options;
    // As in fio, total latencies are preferred if requested.
    let shown = if options.lat_percentiles { &direction.lat_ns } else { &direction.clat_ns };
    let found = shown.percentile.as_ref().map_or(&[][..], |Ordered(list)| list);
    let asked = &options.percentiles;
    for index in 0..PERCENTILES {
        fields.push(match (found.get(index), asked.get(index)) {
            (Some((name, ns)), _) => format!("{name}%={}", ns / 1000),
            (None, Some(percentile)) if options.clat_percentiles || options.lat_percentiles => {
                format!("{percentile:.6}%=0")
            }
            _ => "0%=0".into(),
        });
    }
    fields.extend(of_latency(&direction.lat_ns));
    fields.extend([
        direction.bw_min.to_string(),
        direction.bw_max.to_string(),
        format!("{:.6}%", direction.bw_agg),
    ]);
    fields.extend([direction.bw_mean, direction.bw_dev].map(|rate| format!("{rate:.6}")));
    if version == 5 {
        fields.extend(
            [direction.bw_samples, direction.iops_min, direction.iops_max].map(|n| n.to_string()),
        );
        fields
            .extend([direction.iops_mean, direction.iops_stddev].map(|rate| format!("{rate:.6}")));
        fields.push(direction.iops_samples.to_string());
    }
    fields
}

fn of_machine(report: &JobReport) -> Vec<String> {
    let mut fields: Vec<String> =
        [report.usr_cpu, report.sys_cpu].map(|percent| format!("{percent:.6}%")).into();
    fields.extend([report.ctx, report.majf, report.minf].map(|count| count.to_string()));
    fields.extend(report.iodepth_level.0.iter().map(|(_, percent)| format!("{percent:.1}%")));
    let bands = report.latency_us.0.iter().chain(&report.latency_ms.0);
    fields.extend(bands.map(|(_, percent)| format!("{percent:.2}%")));
    fields
}
