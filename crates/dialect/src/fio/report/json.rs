//! fio's JSON and a `halfpower` object.

use super::direction::{Directions, Latency, Ordered, direction, latency_of};
use super::steadystate::SteadyReport;
use crate::fio::options::job_options::Options;
use crate::fio::options::kinds::Unified;
use crate::fio::run::result::{Entry, FioResult};
use crate::fio::run::steady::Steady;
use crate::fio::run::stream_stats::merged;
use crate::fio::run::system_stats::DiskUse;
use machine::{DeviceUse, Layer, MachineFacts};
use measure::histogram::Histogram;
use results::Point;
use serde::Serialize;

/// The layout's version and this program's, in fio's format.
pub const FIO_VERSION: &str = concat!("fio-3.33-halfpower-", env!("CARGO_PKG_VERSION"));

const SCHEMA: &str = "halfpower.fio/1";

fn strings(given: &[(String, String)]) -> Ordered<String> {
    Ordered(given.to_vec())
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "fio version")]
    version: &'static str,
    timestamp: u64,
    timestamp_ms: u64,
    time: String,
    #[serde(rename = "global options", skip_serializing_if = "Option::is_none")]
    global: Option<Ordered<String>>,
    jobs: Vec<JobReport>,
    disk_util: Vec<DiskReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_idleness: Option<Ordered<f64>>,
    halfpower: Ours<'a>,
}

#[derive(Serialize)]
pub(crate) struct JobReport {
    pub(crate) jobname: String,
    pub(crate) groupid: u32,
    pub(crate) job_start: u64,
    pub(crate) error: i32,
    pub(crate) eta: u32,
    pub(crate) elapsed: u64,
    #[serde(rename = "job options")]
    pub(crate) options: Ordered<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) desc: Option<String>,
    #[serde(flatten)]
    pub(crate) directions: Directions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sync: Option<SyncReport>,
    pub(crate) job_runtime: u64,
    pub(crate) usr_cpu: f64,
    pub(crate) sys_cpu: f64,
    pub(crate) ctx: u64,
    pub(crate) majf: u64,
    pub(crate) minf: u64,
    pub(crate) iodepth_level: Ordered<f64>,
    pub(crate) iodepth_submit: Ordered<f64>,
    pub(crate) iodepth_complete: Ordered<f64>,
    pub(crate) latency_ns: Ordered<f64>,
    pub(crate) latency_us: Ordered<f64>,
    pub(crate) latency_ms: Ordered<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_err: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_error: Option<i32>,
    pub(crate) latency_depth: u32,
    pub(crate) latency_target: u64,
    pub(crate) latency_percentile: f64,
    pub(crate) latency_window: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) steadystate: Option<SteadyReport>,
}

#[derive(Serialize)]
pub(crate) struct SyncReport {
    pub(crate) total_ios: u64,
    pub(crate) lat_ns: Latency,
}

#[derive(Serialize)]
pub(crate) struct DiskReport {
    pub(crate) name: String,
    pub(crate) read_ios: u64,
    pub(crate) write_ios: u64,
    pub(crate) read_sectors: u64,
    pub(crate) write_sectors: u64,
    pub(crate) read_merges: u64,
    pub(crate) write_merges: u64,
    pub(crate) read_ticks: u64,
    pub(crate) write_ticks: u64,
    pub(crate) in_queue: u64,
    pub(crate) util: f64,
}

#[derive(Serialize)]
struct Ours<'a> {
    schema: &'static str,
    version: &'static str,
    elapsed_ns: u64,
    warnings: &'a [String],
    notes: [&'static str; 5],
    machine: &'a MachineFacts,
    jobs: Vec<OurJob<'a>>,
    groups: Vec<OurGroup<'a>>,
}

#[derive(Serialize)]
struct OurJob<'a> {
    jobname: &'a str,
    groupid: u32,
    numjobs: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified_bytes: Option<u64>,
    point: &'a Point,
}

#[derive(Serialize)]
struct OurGroup<'a> {
    jobnames: Vec<&'a str>,
    elapsed_ns: u64,
    cpu_user_ns: u64,
    cpu_system_ns: u64,
    cpu_machine_ns: u64,
    sync_at_end_ns: Option<u64>,
    device: Option<DeviceUse>,
    devices: &'a [String],
    layers: &'a [Layer],
}

const NOTES: [&str; 5] = [
    "jobs are threads of one process, as with fio's thread=1: large buffered writes of several jobs may be slower than by processes",
    "slat_ns is empty for engines that block (psync and similar, mmap, null, posixaio), for trims, and with disable_slat or gtod_reduce: clat_ns then equals lat_ns; disable_clat, disable_lat and gtod_reduce remove latencies here but not in point",
    "clat_ns and lat_ns count from the issue of a request; with a rate, point.latency_ns counts from the time at which it was due",
    "reads of the verification count as reads of the job, as in fio, but not in the spread of the rates",
    "usr_cpu, sys_cpu, ctx, majf and minf of jobs that ran together are the process's totals, divided in proportion to requests",
];

/// `plus`: `json+`, with all latency buckets.
pub fn json(result: &FioResult, plus: bool) -> String {
    let document = Document {
        version: FIO_VERSION,
        timestamp: result.ended_unix_ms / 1000,
        timestamp_ms: result.ended_unix_ms,
        time: crate::calendar::ctime(result.ended_unix_ms / 1000),
        global: (!result.plan.global.is_empty()).then(|| strings(&result.plan.global)),
        jobs: result.entries().iter().map(|entry| job(entry, result, plus)).collect(),
        disk_util: disks(result),
        cpu_idleness: result.idle_percent().map(|percent| {
            let each = result.each_idle().iter();
            let each = each.map(|(processor, percent)| (format!("cpu-{processor}"), *percent));
            Ordered([("system".to_string(), percent)].into_iter().chain(each).collect())
        }),
        halfpower: ours(result),
    };
    serde_json::to_string_pretty(&document).expect("a document of plain values") + "\n"
}

fn ours(result: &FioResult) -> Ours<'_> {
    Ours {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        elapsed_ns: result.elapsed_ns,
        warnings: &result.warnings,
        notes: NOTES,
        machine: &result.machine,
        jobs: (result.groups.iter().flat_map(|group| &group.jobs))
            .map(|job| OurJob {
                jobname: &job.job.name,
                groupid: job.job.group_id,
                numjobs: job.job.options.clones,
                verified_bytes: job.verified_bytes,
                point: &job.point,
            })
            .collect(),
        groups: (result.groups.iter())
            .map(|group| OurGroup {
                jobnames: group.jobs.iter().map(|job| job.job.name.as_str()).collect(),
                elapsed_ns: group.usage.elapsed_ns,
                cpu_user_ns: group.usage.cpu.user_ns,
                cpu_system_ns: group.usage.cpu.system_ns,
                cpu_machine_ns: group.usage.cpu.machine_ns,
                sync_at_end_ns: group.usage.sync_ns,
                device: group.usage.device,
                devices: &group.facts.devices,
                layers: &group.facts.layers,
            })
            .collect(),
    }
}

pub(crate) fn job(entry: &Entry<'_>, result: &FioResult, plus: bool) -> JobReport {
    let (job, recorded) = (&entry.job.job, &entry.recorded);
    let options = &job.options;
    let apart = |side: usize| {
        (options.unified != Unified::Mixed).then(|| direction(entry, result, Some(side), plus))
    };
    let part = recorded.requests.iter().sum::<u64>() as f64 / entry.group.requests().max(1) as f64;
    let of = |count: u64| (count as f64 * part).round() as u64;
    // A set whose jobs all failed has no elapsed time.
    let elapsed_ns = entry.group.usage.elapsed_ns.max(recorded.runtime_ns).max(1) as f64;
    let cpu = |ns: f64| ns * part * 100.0 / elapsed_ns / f64::from(entry.clones);
    let (counts, [user_ns, system_ns]) = (entry.group.counts, entry.group.cpu_ns());
    // As in fio, the bands are of completion latencies.
    let latency =
        if options.reports_completion { merged(&recorded.completion) } else { Histogram::new() };
    let syncs = if options.reports_completion { &recorded.syncs } else { &Histogram::new() };
    JobReport {
        jobname: entry.name.into(),
        groupid: job.group_id,
        job_start: entry.job.began_unix_ms,
        error: entry.error.map_or(entry.failures.first, |error| error.errno),
        eta: 0,
        elapsed: result.elapsed_ns.div_ceil(1_000_000_000),
        options: effective(&job.given, &result.plan.global, options),
        desc: options.description.clone(),
        directions: Directions {
            read: apart(0),
            write: apart(1),
            trim: apart(2),
            mixed: (options.unified != Unified::Apart)
                .then(|| direction(entry, result, None, plus)),
        },
        sync: (options.unified != Unified::Mixed).then(|| SyncReport {
            // As in fio, data-only syncs count in the latencies but not in the number.
            total_ios: recorded.full_syncs,
            lat_ns: latency_of(syncs, (!syncs.is_empty()).then_some(options), plus),
        }),
        job_runtime: recorded.runtime_ns / 1_000_000 * u64::from(entry.clones),
        usr_cpu: cpu(user_ns),
        sys_cpu: cpu(system_ns),
        ctx: of(counts.context_switches),
        majf: of(counts.major_faults),
        minf: of(counts.minor_faults),
        iodepth_level: percents(&["1", "2", "4", "8", "16", "32", ">=64"], &recorded.depths),
        iodepth_submit: percents(&["0", "4", "8", "16", "32", "64", ">=64"], &recorded.submitted),
        iodepth_complete: percents(&["0", "4", "8", "16", "32", "64", ">=64"], &recorded.completed),
        latency_ns: bands(&latency, &NS_BANDS, 1, 0),
        latency_us: bands(&latency, &US_BANDS, 1000, 1000),
        latency_ms: bands(&latency, &MS_BANDS, 1_000_000, 1_000_000),
        total_err: options.tolerated.any().then_some(entry.failures.count),
        first_error: options.tolerated.any().then_some(entry.failures.first),
        latency_depth: if recorded.depth_found > 0 { recorded.depth_found } else { options.depth },
        latency_target: options.latency.target_ns,
        latency_percentile: options.latency.percent,
        latency_window: options.latency.window_ns / 1000,
        steadystate: entry.job.steady.as_ref().map(Steady::report),
    }
}

/// Adds defaults that readers look up.
fn effective(
    given: &[(String, String)],
    global: &[(String, String)],
    options: &Options,
) -> Ordered<String> {
    let mut all = given.to_vec();
    let [read, write] = [0, 1].map(|side| options.blocks[side].bounds().map_or(0, |(_, max)| max));
    let size = if read == write { read.to_string() } else { format!("{read},{write}") };
    let wanted = [
        ("rw", options.mode.to_string()),
        ("bs", size),
        ("iodepth", options.depth.to_string()),
        ("numjobs", options.clones.to_string()),
        ("ioengine", options.engine_name.clone()),
    ];
    for (name, value) in wanted {
        if !given.iter().chain(global).any(|(key, _)| key == name) {
            all.push((name.into(), value));
        }
    }
    Ordered(all)
}

fn percents(names: &[&str], counts: &[u64]) -> Ordered<f64> {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    Ordered(
        names
            .iter()
            .zip(counts)
            .map(|(name, &count)| (name.to_string(), count as f64 * 100.0 / total))
            .collect(),
    )
}

const NS_BANDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
const US_BANDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
const MS_BANDS: [u64; 12] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000, u64::MAX];

/// Bands exclude their upper bounds, counted in `unit` ns; the first begins at `from` ns.
fn bands(latency: &Histogram, bounds: &[u64], unit: u64, from: u64) -> Ordered<f64> {
    let total = latency.count().max(1) as f64;
    let mut low = from;
    let mut bands = Vec::with_capacity(bounds.len());
    for &bound in bounds {
        let high = bound.saturating_mul(unit);
        let count: u64 = latency
            .iter()
            .filter(|bucket| bucket.middle() >= low && bucket.middle() < high)
            .map(|bucket| bucket.count)
            .sum();
        let name = if bound == u64::MAX { ">=2000".into() } else { bound.to_string() };
        bands.push((name, count as f64 * 100.0 / total));
        low = high;
    }
    Ordered(bands)
}

pub(crate) fn disks(result: &FioResult) -> Vec<DiskReport> {
    let mut sums: Vec<(DiskUse, u64)> = Vec::new();
    for group in &result.groups {
        for disk in &group.disks {
            match sums.iter_mut().find(|(sum, _)| sum.name == disk.name) {
                None => sums.push((disk.clone(), group.usage.elapsed_ns)),
                Some((sum, elapsed)) => {
                    *elapsed += group.usage.elapsed_ns;
                    for side in 0..2 {
                        sum.requests[side] += disk.requests[side];
                        sum.sectors[side] += disk.sectors[side];
                        sum.merges[side] += disk.merges[side];
                        sum.ticks_ms[side] += disk.ticks_ms[side];
                    }
                    sum.queue_ms += disk.queue_ms;
                    sum.busy_ms += disk.busy_ms;
                }
            }
        }
    }
    sums.into_iter()
        .map(|(sum, elapsed)| DiskReport {
            name: sum.name,
            read_ios: sum.requests[0],
            write_ios: sum.requests[1],
            read_sectors: sum.sectors[0],
            write_sectors: sum.sectors[1],
            read_merges: sum.merges[0],
            write_merges: sum.merges[1],
            read_ticks: sum.ticks_ms[0],
            write_ticks: sum.ticks_ms[1],
            in_queue: sum.queue_ms,
            util: (sum.busy_ms as f64 * 1e8 / elapsed.max(1) as f64).min(100.0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_count_every_latency_once() {
        let mut latency = Histogram::new();
        for ns in [1, 980, 1010, 1950, 2020, 980_000, 1_020_000, 1_900_000_000, 5_000_000_000] {
            latency.record(ns);
        }
        let ns = bands(&latency, &NS_BANDS, 1, 0);
        let us = bands(&latency, &US_BANDS, 1000, 1000);
        let ms = bands(&latency, &MS_BANDS, 1_000_000, 1_000_000);
        let sum: f64 =
            [&ns, &us, &ms].iter().flat_map(|bands| &bands.0).map(|(_, percent)| percent).sum();
        assert!((sum - 100.0).abs() < 1e-9, "{sum}");
        let one = 100.0 / 9.0;
        let of = |bands: &Ordered<f64>, name: &str| {
            bands.0.iter().find(|(band, _)| band == name).unwrap().1
        };
        assert!((of(&us, "2") - 2.0 * one).abs() < 1e-9 && (of(&us, "4") - one).abs() < 1e-9);
        assert!((of(&ms, "2") - one).abs() < 1e-9 && (of(&ms, ">=2000") - one).abs() < 1e-9);
    }
}
