//! The rate of many ranks is that of the window in which all work.

use crate::curve::Curve;
use ::machine::{CpuTimes, DeviceUse, Figure, Nanos, Reap, Usage, Waits, Warning};
use measure::histogram::{Histogram, SparseHistogram};
use measure::{ClientSample, ClientsRun, Options, Sample, Together, stats};
use results::Client;
use workload::{Stop, Workload};

#[derive(Debug, Clone)]
pub struct ClientRun {
    pub rank: usize,
    pub sample: Sample,
    /// After the agreed start, on rank 0's clock; negative if early.
    pub began_ns: i64,
    /// The busiest link's, if known.
    pub network_percent: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{first} had ended before {last} began: at no time did all clients work; make the runs longer (--runtime)"
)]
pub struct NoWindow {
    first: String,
    last: String,
}

fn ramp_ns(workload: &Workload, options: Options) -> Nanos {
    let learning = if workload.reap == Reap::Auto { machine::REAP_LEARNING_NS } else { 0 };
    options.ramp_ns.max(learning)
}

/// Panics without runs.
pub fn merge(
    runs: &[ClientRun],
    clients: &[Client],
    workload: &Workload,
    options: Options,
) -> Result<Sample, NoWindow> {
    assert!(!runs.is_empty(), "there is always rank 0");
    let ramp = i64::try_from(ramp_ns(workload, options)).unwrap_or(i64::MAX);
    let curves: Vec<Curve> =
        runs.iter().map(|run| Curve::of(&run.sample, run.began_ns + ramp)).collect();
    // Requests in flight at the deadline are answered with less and less competition.
    let measured_end = |curve: &Curve| match workload.stop {
        Stop::AfterNs(ns) => curve.end().min(curve.begin() + ns as f64),
        Stop::AfterBytes(_) => curve.end(),
    };
    let name = |index: usize| clients[runs[index].rank].name();
    let order = |of: &dyn Fn(&Curve) -> f64| {
        let mut order: Vec<usize> = (0..curves.len()).collect();
        order.sort_by(|&a, &b| of(&curves[a]).total_cmp(&of(&curves[b])));
        order
    };
    let begins = order(&Curve::begin);
    let ends = order(&measured_end);
    let (latest, first_end) = (begins[begins.len() - 1], ends[0]);
    let last_end = ends[ends.len() - 1];
    let warm_up = runs.iter().map(|run| run.sample.warm_up_ns).max().unwrap_or(0);
    let opened = curves[latest].begin();
    let to = measured_end(&curves[first_end]);
    if to <= opened {
        return Err(NoWindow { first: name(first_end), last: name(latest) });
    }
    // A warm-up that is seen is excluded, unless nothing were left.
    let from = if opened + (warm_up as f64) < to { opened + warm_up as f64 } else { opened };
    let seconds = (to - from) / 1e9;
    let iops: Vec<f64> = curves.iter().map(|curve| curve.between(from, to) / seconds).collect();
    let bytes_each: Vec<f64> = (runs.iter())
        .map(|run| run.sample.bytes as f64 / run.sample.requests.max(1) as f64)
        .collect();
    let bytes_per_s = |from: f64, to: f64| {
        let each = curves.iter().zip(&bytes_each);
        each.map(|(curve, bytes)| curve.between(from, to) * bytes).sum::<f64>() / (to - from) * 1e9
    };
    let begin = curves[begins[0]].begin();
    let first = runs.iter().map(|run| run.began_ns).min().unwrap_or(0);
    let end = measured_end(&curves[last_end]);
    let run = ClientsRun {
        window_ns: (to - from) as u64,
        throughput_bytes_per_s: bytes_per_s(from, to),
        until_first_finished_bytes_per_s: bytes_per_s(begin, to),
        until_last_finished_bytes_per_s: bytes_per_s(begin, end),
        begin_spread_ns: (opened - begin) as u64,
        began_last: runs[latest].rank as u32,
        end_spread_ns: (end - to) as u64,
        finished_first: runs[first_end].rank as u32,
        finished_last: runs[last_end].rank as u32,
    };
    let mut sample = sum(runs, clients);
    sample.rate = iops.iter().sum();
    // The mean time in the window, by Little's law.
    sample.mean_service_ns = sample.mean_depth / sample.rate.max(f64::MIN_POSITIVE) * 1e9;
    sample.measured_ns = (curves.iter().map(Curve::end).fold(f64::MIN, f64::max) - begin) as u64;
    sample.warm_up_ns = 0;
    sample.slice_ns = runs.iter().map(|run| run.sample.slice_ns).max().unwrap_or(1).max(1);
    let slices = ((to - from) / sample.slice_ns as f64) as usize;
    let width = sample.slice_ns as f64;
    sample.slice_rates = (0..slices)
        .map(|slice| {
            let start = from + slice as f64 * width;
            curves.iter().map(|curve| curve.between(start, start + width)).sum::<f64>() * 1e9
                / width
        })
        .collect();
    sample.warm_up_rates = Vec::new();
    sample.verdict = stats::judge(&sample.slice_rates).verdict;
    if from > opened {
        // The next run begins with a ramp of this length.
        sample.warm_up_ns = warm_up;
        sample.warm_up_rates = vec![sample.rate; (warm_up / sample.slice_ns) as usize];
    }
    let shares =
        runs.iter().zip(iops).map(|(run, iops)| share(run, &clients[run.rank], iops, first));
    sample.together = Some(Box::new(Together { run, clients: shares.collect() }));
    Ok(sample)
}

fn share(run: &ClientRun, client: &Client, iops: f64, first: i64) -> ClientSample {
    let (cpu, elapsed_ns) = (run.sample.usage.cpu, run.sample.usage.elapsed_ns);
    ClientSample {
        rank: client.rank,
        host: client.host.clone(),
        processors: client.processors,
        iops,
        latency: run.sample.latency.each_ref().map(SparseHistogram::from),
        requests: run.sample.requests_with_ramp,
        bytes: run.sample.bytes_with_ramp,
        cpu_ns: cpu.user_ns + cpu.system_ns,
        busy_ns: cpu.machine_ns,
        elapsed_ns,
        network_percent: run.network_percent,
        began_late_ns: run.began_ns.abs_diff(first),
    }
}

/// Reads, writes.
pub fn merged_latency<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> [Histogram; 2] {
    let mut all = [Histogram::new(), Histogram::new()];
    for sample in samples {
        all.iter_mut().zip(&sample.latency).for_each(|(sum, one)| sum.merge(one));
    }
    all
}

/// All but the times.
fn sum(runs: &[ClientRun], clients: &[Client]) -> Sample {
    let samples = || runs.iter().map(|run| &run.sample);
    let requests: u64 = samples().map(|sample| sample.requests).sum();
    let service = samples().map(|sample| sample.mean_service_ns * sample.requests as f64);
    let worst = samples().map(|sample| sample.empty_share).fold(0.0, f64::max);
    Sample {
        measured_ns: 0,
        requests,
        bytes: samples().map(|sample| sample.bytes).sum(),
        rate: 0.0,
        latency: merged_latency(samples()),
        slice_ns: 1,
        empty_share: worst,
        slice_rates: Vec::new(),
        warm_up_rates: Vec::new(),
        warm_up_ns: 0,
        verdict: runs[0].sample.verdict,
        mean_depth: samples().map(|sample| sample.mean_depth).sum(),
        mean_service_ns: service.sum::<f64>() / requests.max(1) as f64,
        usage: usage(runs, clients),
        requests_with_ramp: samples().map(|sample| sample.requests_with_ramp).sum(),
        bytes_with_ramp: samples().map(|sample| sample.bytes_with_ramp).sum(),
        intervals: Vec::new(),
        together: None,
    }
}

/// Ranks of a host have the same kernel counts of the whole computer.
fn by_host<'a>(runs: &'a [ClientRun], clients: &[Client]) -> Vec<Vec<&'a ClientRun>> {
    let mut hosts: Vec<(&str, Vec<&ClientRun>)> = Vec::new();
    for run in runs {
        let host = clients[run.rank].host.as_str();
        match hosts.iter_mut().find(|(name, _)| *name == host) {
            Some((_, own)) => own.push(run),
            None => hosts.push((host, vec![run])),
        }
    }
    hosts.into_iter().map(|(_, own)| own).collect()
}

fn usage(runs: &[ClientRun], clients: &[Client]) -> Usage {
    let all = || runs.iter().map(|run| &run.sample.usage);
    let hosts = by_host(runs, clients);
    let of_hosts = |of: &dyn Fn(&Usage) -> Nanos| -> Nanos {
        let busiest = |own: &Vec<&ClientRun>| own.iter().map(|run| of(&run.sample.usage)).max();
        hosts.iter().filter_map(busiest).sum()
    };
    let begin = runs.iter().map(|run| run.began_ns).min().unwrap_or(0);
    let after_begin = |run: &ClientRun, ns: Nanos| (run.began_ns - begin) as u64 + ns;
    let elapsed_ns =
        runs.iter().map(|run| after_begin(run, run.sample.usage.elapsed_ns)).max().unwrap_or(0);
    let synced = runs.iter().filter_map(|run| {
        let usage = &run.sample.usage;
        Some(after_begin(run, usage.elapsed_ns + usage.sync_ns?))
    });
    let sum = |of: &dyn Fn(&Usage) -> Option<Nanos>| -> Option<Nanos> { all().map(of).sum() };
    let pairs = |of: &dyn Fn(&Usage) -> [u64; 2]| {
        all().map(of).fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
    };
    let paused = all().filter_map(|usage| usage.paused).max_by_key(|pause| pause.ns);
    let device = hosts.iter().map(|own| {
        let counted = own.iter().filter_map(|run| run.sample.usage.device);
        counted.max_by_key(|device| device.read_bytes + device.write_bytes)
    });
    Usage {
        began: runs[0].sample.usage.began,
        since_start_ns: runs[0].sample.usage.since_start_ns,
        elapsed_ns,
        sync_ns: synced.max().map(|end| end.saturating_sub(elapsed_ns)),
        cpu: CpuTimes {
            user_ns: all().map(|usage| usage.cpu.user_ns).sum(),
            system_ns: all().map(|usage| usage.cpu.system_ns).sum(),
            machine_ns: of_hosts(&|usage| usage.cpu.machine_ns),
            steal_ns: of_hosts(&|usage| usage.cpu.steal_ns),
            instructions_user: all().map(|usage| usage.cpu.instructions_user).sum(),
        },
        process_ns: sum(&|usage| usage.process_ns),
        unserved_ns: sum(&|usage| usage.unserved_ns),
        sync_unserved_ns: sum(&|usage| usage.sync_unserved_ns),
        dirty: all()
            .filter_map(|usage| usage.dirty)
            .max_by(|a, b| a.max_percent.total_cmp(&b.max_percent)),
        device: device.reduce(add).flatten(),
        waits: all().filter_map(|usage| usage.waits).reduce(|sum, one| Waits {
            waits: sum.waits + one.waits,
            completions: sum.completions.max(one.completions),
            polled: sum.polled || one.polled,
        }),
        block_bytes: all()
            .map(|usage| usage.block_bytes)
            .reduce(|sum, one| sum.zip(one).map(|(a, b)| (a.0 + b.0, a.1 + b.1)))
            .flatten(),
        others_cached_bytes: pairs(&|usage| usage.others_cached_bytes),
        others_direct_bytes: pairs(&|usage| usage.others_direct_bytes),
        warnings: warnings(runs, clients),
        paused,
        ..Usage::default()
    }
}

fn warnings(runs: &[ClientRun], clients: &[Client]) -> Vec<Warning> {
    let merged = Warning::merged(runs.iter().flat_map(|run| &run.sample.usage.warnings));
    let named = |(warning, _): (Warning, usize)| {
        let is_warned =
            |run: &&ClientRun| run.sample.usage.warnings.iter().any(|one| one.is_like(&warning));
        let of = match runs.iter().filter(is_warned).collect::<Vec<_>>()[..] {
            [run] => format!("{}: ", clients[run.rank].name()).into(),
            ref several => Warning::of("{} clients: ", [Figure::count(several.len() as u64)]),
        };
        of.then(warning)
    };
    merged.into_iter().map(named).collect()
}

fn add(sum: Option<DeviceUse>, one: Option<DeviceUse>) -> Option<DeviceUse> {
    let (a, b) = sum.zip(one)?;
    Some(DeviceUse {
        reads: a.reads + b.reads,
        read_bytes: a.read_bytes + b.read_bytes,
        writes: a.writes + b.writes,
        write_bytes: a.write_bytes + b.write_bytes,
        merges: a.merges + b.merges,
        busy_ns: a.busy_ns.max(b.busy_ns),
        weighted_ns: a.weighted_ns + b.weighted_ns,
        flushes: a.flushes + b.flushes,
        ..DeviceUse::default()
    })
}
