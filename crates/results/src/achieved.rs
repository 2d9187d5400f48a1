//! A point's achieved load and its cost.

use crate::disturbances::Disturbances;
use machine::units::MIB;
use machine::{RequestTimes, ResourceUse};
use measure::{Sample, stats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::Workload;

/// Processor time of one request in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuPerRequest {
    /// User time of the process.
    pub user: f64,
    /// System time of the process.
    pub system: f64,
    /// Busy time of the machine minus the idle baseline; with kernel threads that work for the
    /// process.
    pub machine: f64,
    /// The 95 % interval of `user + system`; absent if the repeats give none.
    pub process_interval_95: Option<[f64; 2]>,
}

/// The load that the runs achieved, as opposed to the requested one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Achieved {
    /// Total time of all runs.
    pub measured_ns: u64,
    /// Requests in all runs.
    pub requests: u64,
    /// Bytes in all runs.
    pub bytes: u64,
    /// Mean number of requests in flight, as the program sees them.
    pub mean_depth: f64,
    /// Mean time from issue to completion.
    pub mean_service_ns: f64,
    /// Deviation of depth, rate and service time from Little's law.
    pub little_error_percent: f64,
    /// Mean request size at the devices in bytes, by their counters.
    pub device_request_bytes: Option<f64>,
    /// Mean requests in flight at the devices, by the device counters.
    pub device_mean_depth: Option<f64>,
    /// Share of the time that the devices were busy, in percent.
    pub device_busy_percent: Option<f64>,
    /// Device bytes caused by others, per byte that this process requested.
    pub device_bytes_foreign_share: Option<f64>,
    /// Share of the bytes served or absorbed by a cache, in percent.
    pub from_cache_percent: Option<f64>,
    /// The runs bypassed the page cache.
    pub direct: bool,
    /// Busy processors of the whole machine.
    pub busy_processors: f64,
    /// Processor time of the process until its last request returned, in percent of one processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_busy_percent: Option<f64>,
    /// Time in which issuing threads were runnable but not scheduled, in percent: 100 is one thread
    /// all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unserved_percent: Option<f64>,
    /// Time in which the thread that flushes was runnable but not scheduled, in percent of the
    /// flush.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_unserved_percent: Option<f64>,
    /// Peak of the system's dirty pages until the last buffered write returned, in percent of the
    /// threshold at which the kernel starts to throttle writers. Maximum over the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_percent: Option<f64>,
    /// Samples in which the kernel throttled writers, in percent; mean over the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_held_percent: Option<f64>,
    /// Interference from other users of processors and memory.
    #[serde(default)]
    pub disturbances: Disturbances,
    /// Processor time taken by the hypervisor, in percent of one processor.
    pub steal_percent: f64,
    /// How often a stream slept for completions, per request. Each sleep costs a wakeup in the
    /// kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_per_request: Option<f64>,
    /// Completions waited for at a time: as requested or, with `auto`, the maximum that any stream
    /// settled on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_completions: Option<u32>,
    /// Processor time for parity per MiB read or written, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity_ns_per_mib: Option<f64>,
    /// Share of the process's processor time that went into parity, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity_percent: Option<f64>,
    /// Whether the streams polled for completions before they slept: as requested or, with `auto`,
    /// if any stream did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polled: Option<bool>,
    /// Time from the last completion until the data were on stable storage, mean over the runs;
    /// absent without a flush.
    pub sync_ns: Option<f64>,
    /// The rate including the final flush, in bytes per second. It is the rate of the point.
    pub synced_bytes_per_s: Option<f64>,
    /// The 95 % interval of the rate including the flush; absent if the runs give none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced_interval_95: Option<[f64; 2]>,
    /// With a flush at the end: the rate until the last request returned, at which a cache absorbed
    /// the writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned_bytes_per_s: Option<f64>,
    /// Share of the bytes read through the page cache that no device read, in percent; absent if no
    /// device has counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read_percent: Option<f64>,
    /// Share of the bytes written through the page cache that had not reached a device by the end
    /// of the run (after its flush, if any), in percent; absent if no device has counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_write_percent: Option<f64>,
    /// Time excluded at the start of a run as a warm-up; mean over the runs.
    pub warm_up_ns: f64,
    /// User-space instructions per request, counted in a separate run.
    pub instructions_per_request: Option<f64>,
    /// Requests per second with a null backend: the generator's own limit.
    pub driver_ceiling_iops: Option<f64>,
    /// Requests per second with a no-op in the kernel for each: the generator's limit with
    /// io_uring.
    pub no_op_ceiling_iops: Option<f64>,
    /// The rate over the lower of the two ceilings, in percent.
    pub of_ceiling_percent: Option<f64>,
    /// Breakdown of a request's time, from trace points in a separate run or from the device
    /// counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_times: Option<RequestTimes>,
    /// Why the request times are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_times_unknown: Option<String>,
    /// The parts of the machine that count their own busy time, busiest first; means over the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceUse>,
}

impl CpuPerRequest {
    pub fn process(&self) -> f64 {
        self.user + self.system
    }

    pub(crate) fn from_samples(samples: &[&Sample]) -> CpuPerRequest {
        let each = |part: fn(&Sample) -> u64| -> Vec<f64> {
            samples
                .iter()
                .map(|sample| part(sample) as f64 / sample.requests_with_ramp.max(1) as f64)
                .collect()
        };
        let process = each(|sample| sample.usage.cpu.user_ns + sample.usage.cpu.system_ns);
        CpuPerRequest {
            user: mean(&each(|sample| sample.usage.cpu.user_ns)),
            system: mean(&each(|sample| sample.usage.cpu.system_ns)),
            machine: mean(&each(|sample| sample.usage.cpu.machine_ns)),
            process_interval_95: stats::estimate_values(&process)
                .map(|interval| [interval.low, interval.high]),
        }
    }
}

/// The cache's share: of `asked` bytes, `moved` reached a device. `None` for zero bytes.
pub fn cached_percent(asked: f64, moved: f64) -> Option<f64> {
    (asked > 0.0).then(|| ((1.0 - moved / asked) * 100.0).clamp(0.0, 100.0))
}

/// `op` is 0 for reads, 1 for writes; `None` without counters. The kernel counts a process's writes
/// when it dirties pages, so only device counters show what arrived.
fn cached_share(samples: &[&Sample], op: usize) -> Option<f64> {
    let moved = |sample: &Sample| {
        let device = sample.usage.device.or(sample.usage.shared_device)?;
        let own = sample.usage.block_bytes.map_or(0, |(read, _)| read);
        let all = if op == 0 { device.read_bytes.max(own) } else { device.write_bytes };
        Some(all.saturating_sub(sample.usage.others_direct_bytes[op]) as f64)
    };
    let asked =
        |sample: &Sample| sample.bytes_by_op()[op] + sample.usage.others_cached_bytes[op] as f64;
    let own: f64 = samples.iter().map(|sample| sample.bytes_by_op()[op]).sum();
    let moved = samples.iter().map(|sample| moved(sample)).sum::<Option<f64>>()?;
    cached_percent(samples.iter().map(|sample| asked(sample)).sum(), moved).filter(|_| own > 0.0)
}

impl Achieved {
    pub fn set_request_times(&mut self, times: RequestTimes) {
        (self.request_times, self.request_times_unknown) = (Some(times), None);
    }

    pub(crate) fn from_samples(workload: &Workload, samples: &[&Sample]) -> Achieved {
        let runs = samples.len() as f64;
        let sum = |part: &dyn Fn(&Sample) -> f64| -> f64 {
            samples.iter().map(|sample| part(sample)).sum()
        };
        let elapsed = sum(&|sample| sample.usage.elapsed_ns as f64).max(1.0);
        // Machine and device counters include the final flush.
        let counted = elapsed + sum(&|sample| sample.usage.sync_ns.unwrap_or(0) as f64);
        let asked = sum(&|sample| sample.bytes_with_ramp as f64);
        let total = |part: fn(&machine::DeviceUse) -> u64| -> Option<f64> {
            samples
                .iter()
                .map(|sample| sample.usage.device.as_ref().map(|device| part(device) as f64))
                .sum()
        };
        let device_requests = total(|device| device.reads + device.writes);
        let device_bytes = total(|device| device.read_bytes + device.write_bytes);
        let own: Option<f64> = samples
            .iter()
            .map(|sample| sample.usage.block_bytes.map(|(read, written)| (read + written) as f64))
            .sum();
        let process = sum(&|sample| (sample.usage.cpu.user_ns + sample.usage.cpu.system_ns) as f64);
        let parity: Option<f64> =
            samples.iter().map(|sample| sample.usage.parity.map(|parity| parity.ns as f64)).sum();
        let dirty = || samples.iter().filter_map(|sample| sample.usage.dirty);
        let through_cache = !workload.buffering.is_direct();
        let synced: Option<f64> =
            samples.iter().map(|sample| sample.usage.sync_ns.map(|ns| ns as f64)).sum();
        let (request_times, request_times_unknown) = match measure::counted_times(workload, samples)
        {
            Ok(times) => (Some(times), None),
            Err(why) => (None, Some(why)),
        };
        Achieved {
            measured_ns: samples.iter().map(|sample| sample.measured_ns).sum(),
            requests: samples.iter().map(|sample| sample.requests).sum(),
            bytes: samples.iter().map(|sample| sample.bytes).sum(),
            mean_depth: sum(&|sample| sample.mean_depth) / runs,
            mean_service_ns: sum(&|sample| sample.mean_service_ns) / runs,
            little_error_percent: samples
                .iter()
                .map(|sample| sample.little_error())
                .fold(0.0, f64::max)
                * 100.0,
            device_request_bytes: device_requests
                .zip(device_bytes)
                .filter(|(requests, _)| *requests > 0.0)
                .map(|(requests, bytes)| bytes / requests),
            device_mean_depth: total(|device| device.weighted_ns)
                .map(|weighted| weighted / counted),
            device_busy_percent: total(|device| device.busy_ns)
                .map(|busy| (busy / counted * 100.0).min(100.0)),
            device_bytes_foreign_share: device_bytes
                .zip(own)
                .map(|(device, own)| (device - own).max(0.0) / asked),
            from_cache_percent: own.map(|own| ((1.0 - own / asked) * 100.0).clamp(0.0, 100.0)),
            direct: workload.buffering.is_direct(),
            busy_processors: sum(&|sample| sample.usage.cpu.machine_ns as f64) / counted,
            process_busy_percent: samples
                .iter()
                .map(|sample| sample.usage.process_ns.map(|ns| ns as f64))
                .sum::<Option<f64>>()
                .map(|ns| ns / elapsed * 100.0),
            unserved_percent: samples
                .iter()
                .map(|sample| sample.usage.unserved_ns.map(|ns| ns as f64))
                .sum::<Option<f64>>()
                .map(|ns| ns / elapsed * 100.0),
            sync_unserved_percent: samples
                .iter()
                .map(|sample| Some((sample.usage.sync_unserved_ns?, sample.usage.sync_ns?)))
                .try_fold((0, 0), |(waited, flushed), one| {
                    one.map(|one: (u64, u64)| (waited + one.0, flushed + one.1))
                })
                .filter(|&(_, flushed)| flushed > 0)
                .map(|(waited, flushed)| waited as f64 / flushed as f64 * 100.0),
            dirty_percent: dirty().map(|dirty| dirty.max_percent).max_by(f64::total_cmp),
            dirty_held_percent: (dirty().count() == samples.len() && !samples.is_empty())
                .then(|| dirty().map(|dirty| dirty.held_percent).sum::<f64>() / runs),
            disturbances: Disturbances::of(workload, samples),
            steal_percent: sum(&|sample| sample.usage.cpu.steal_ns as f64) / counted * 100.0,
            waits_per_request: samples
                .iter()
                .map(|sample| sample.usage.waits.map(|waits| waits.waits as f64))
                .sum::<Option<f64>>()
                .map(|waits| waits / sum(&|sample| sample.requests_with_ramp as f64).max(1.0)),
            wait_completions: samples
                .iter()
                .filter_map(|sample| sample.usage.waits)
                .map(|waits| waits.completions)
                .max(),
            parity_ns_per_mib: parity.map(|ns| ns / (asked / MIB as f64)),
            parity_percent: parity.map(|ns| ns / process.max(1.0) * 100.0),
            polled: samples
                .iter()
                .filter_map(|sample| sample.usage.waits)
                .map(|waits| waits.polled)
                .max(),
            sync_ns: synced.map(|ns| ns / runs),
            synced_bytes_per_s: None,
            synced_interval_95: None,
            returned_bytes_per_s: None,
            cached_read_percent: through_cache.then(|| cached_share(samples, 0)).flatten(),
            cached_write_percent: through_cache.then(|| cached_share(samples, 1)).flatten(),
            warm_up_ns: sum(&|sample| sample.warm_up_ns as f64) / runs,
            instructions_per_request: None,
            driver_ceiling_iops: None,
            no_op_ceiling_iops: None,
            of_ceiling_percent: None,
            request_times,
            request_times_unknown,
            resources: resources(samples),
        }
    }
}

fn resources(samples: &[&Sample]) -> Vec<ResourceUse> {
    let Some(first) = samples.first() else { return Vec::new() };
    let mut all = first.usage.resources.clone();
    for one in &mut all {
        let same = samples
            .iter()
            .flat_map(|sample| &sample.usage.resources)
            .filter(|other| other.name == one.name);
        one.busy_percent =
            same.clone().map(|other| other.busy_percent).sum::<f64>() / samples.len() as f64;
        for phase in &mut one.phases {
            let of_runs = same
                .clone()
                .flat_map(|other| &other.phases)
                .filter(|other| other.name == phase.name);
            phase.percent = of_runs.map(|other| other.percent).sum::<f64>() / samples.len() as f64;
        }
    }
    all.sort_by(|a, b| b.busy_percent.total_cmp(&a.busy_percent));
    all
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
