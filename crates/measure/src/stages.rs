//! A request's time: to the block layer, in it, at the device, and back.

use crate::observed::{Observed, Observer};
use crate::sample::{Options, Sample, sample_as};
use crate::stream::Stream;
use machine::{
    Allocation, BlockTimes, CacheState, Completion, DeviceUse, Error, Machine, Nanos, Request,
    RequestTimes, Result, Stage, StageTime, TimesSource,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use workload::{Stop, Workload};

/// Enough for a mean, few enough for a trace.
const TRACED_REQUESTS: f64 = 4000.0;

const TRACED_NS: [f64; 2] = [20e6, 300e6];

/// Larger differences count.
const AS_MANY: f64 = 0.02;

/// Uses the device counters, if program and devices count the same requests or, past the page
/// cache, the same bytes in a uniform split or merge. The error is a clause after "because".
pub fn counted_times(
    workload: &Workload,
    samples: &[&Sample],
) -> std::result::Result<RequestTimes, String> {
    let requests: u64 = samples.iter().map(|sample| sample.requests_with_ramp).sum();
    let bytes: u64 = samples.iter().map(|sample| sample.bytes_with_ramp).sum();
    let devices: Option<Vec<DeviceUse>> =
        samples.iter().map(|sample| sample.usage.device).collect();
    let devices = devices.ok_or("no block device is below that counts")?;
    let sum = |part: fn(&DeviceUse) -> u64| devices.iter().map(part).sum::<u64>();
    let at_devices = sum(|device| device.reads + device.writes);
    if requests == 0 || at_devices == 0 {
        return Err("no request reached a device".into());
    }
    let each = at_devices as f64 / requests as f64;
    let as_many = (each - 1.0).abs() <= AS_MANY;
    if !as_many && !workload.buffering.is_direct() {
        return Err("the page cache makes other requests of the program's".into());
    }
    let moved = sum(|device| device.read_bytes + device.write_bytes) as f64 / bytes.max(1) as f64;
    if !as_many && (moved - 1.0).abs() > AS_MANY {
        let why = "others' requests, or a volume's copies or parity, are among them";
        return Err(format!("the devices moved {moved:.2} bytes for each of the program's: {why}"));
    }
    let measured: u64 = samples.iter().map(|sample| sample.requests).sum();
    let whole =
        samples.iter().map(|sample| sample.mean_service_ns * sample.requests as f64).sum::<f64>()
            / measured.max(1) as f64;
    // Requests have one size, so their parts are equal, and so are merged requests. A mean over the
    // devices' requests is therefore also a mean over bytes and over the program's requests. Some
    // kernels count in ticks of a millisecond or more.
    let mean = |ns: u64| ns as f64 / at_devices as f64;
    let inside = mean(sum(|device| device.weighted_ns)).min(whole);
    let around = (Stage::SubmitAndCompletion, whole - inside);
    let stages = match devices.iter().map(|device| device.queue_ns).sum::<Option<u64>>() {
        None => vec![around, (Stage::QueueAndDevice, inside)],
        Some(queue) => {
            let queue = mean(queue).min(inside);
            let mut stages = vec![around, (Stage::Queue, queue)];
            let mut left = inside - queue;
            // A device may read ahead while no request waits for it, so its parts may be busy for
            // longer than requests waited.
            let mut part = |stage: Stage, worked: fn(&DeviceUse) -> Option<u64>| {
                if let Some(worked) = devices.iter().map(worked).sum::<Option<u64>>() {
                    let ns = mean(worked).min(left);
                    left -= ns;
                    stages.push((stage, ns));
                }
            };
            part(Stage::Link, |device| device.link_ns);
            part(Stage::Media, |device| device.media_ns);
            stages.push((Stage::Device, left));
            stages
        }
    };
    Ok(RequestTimes {
        device_requests_per_request: (!as_many).then_some(each),
        ..request_times(TimesSource::DeviceCounters, requests, &stages)
    })
}

/// Makes a short separate run. `None` if the machine cannot trace, others interfere, or the block
/// layer splits requests. `iops` is the rate so far. Fails only on the user's interrupt: other
/// errors would show in the runs that count.
pub fn traced_times<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
    iops: f64,
) -> Result<Option<RequestTimes>> {
    // An extra run must not move bytes beyond a byte limit, nor reuse data that the previous run
    // left.
    let counted_out = workload.limit_bytes.is_some() || !matches!(workload.stop, Stop::AfterNs(_));
    let again = workload.allocation == Allocation::Written
        && workload.cache != CacheState::Cold
        && workload.load.is_empty()
        && !counted_out;
    if !workload.buffering.is_direct()
        || !again
        || !machine.capabilities().traces_requests
        || iops <= 0.0
    {
        return Ok(None);
    }
    let long = (TRACED_REQUESTS * 1e9 / iops).clamp(TRACED_NS[0], TRACED_NS[1]);
    let short = Workload { stop: Stop::AfterNs(long as Nanos), ..workload.clone() };
    let sums = Arc::new(Sums::default());
    let options = Options { trace: true, ..Options::default() };
    let made = sample_as(machine, target, &short, options, 1, |stream| Observed {
        stream,
        observer: sums.clone(),
    })
    .map(|(sample, _)| sample);
    match made {
        Ok(sample) => Ok(sample.usage.block_times.iter().find_map(|&seen| stages_of(seen, &sums))),
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Err(_) => Ok(None),
    }
}

/// Times modulo 2^64; only differences are used.
#[derive(Debug, Default)]
struct Sums {
    requests: AtomicU64,
    issued_at: AtomicU64,
    returned_at: AtomicU64,
}

impl Sums {
    fn issued(&self, now: Nanos) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.issued_at.fetch_add(now, Ordering::Relaxed);
    }

    fn returned(&self, now: Nanos) {
        self.returned_at.fetch_add(now, Ordering::Relaxed);
    }
}

/// `None` unless both sums cover the same requests.
fn stages_of(seen: BlockTimes, sums: &Sums) -> Option<RequestTimes> {
    let of = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
    if of(&sums.requests) != seen.bios || seen.bios == 0 {
        return None;
    }
    let done_at = seen.queued_at_sum.wrapping_add(seen.queue_ns).wrapping_add(seen.device_ns);
    // The trace has microsecond resolution, so a stage that takes no time may come out negative.
    let between = |from: u64, to: u64| (to.wrapping_sub(from) as i64).max(0) as f64;
    let requests = seen.bios as f64;
    let stages = [
        (Stage::Submit, between(of(&sums.issued_at), seen.queued_at_sum) / requests),
        (Stage::Queue, seen.queue_ns as f64 / requests),
        (Stage::Device, seen.device_ns as f64 / requests),
        (Stage::Completion, between(done_at, of(&sums.returned_at)) / requests),
    ];
    Some(request_times(TimesSource::TracePoints, seen.bios, &stages))
}

fn request_times(source: TimesSource, requests: u64, stages: &[(Stage, f64)]) -> RequestTimes {
    let whole: f64 = stages.iter().map(|(_, mean)| mean).sum();
    let stage = |&(stage, mean_ns): &(Stage, f64)| StageTime {
        stage,
        mean_ns,
        percent: mean_ns / whole.max(1.0) * 100.0,
    };
    RequestTimes {
        source,
        requests,
        device_requests_per_request: None,
        stages: stages.iter().map(stage).collect(),
    }
}

impl Observer for Arc<Sums> {
    fn issued(&mut self, _request: &Request, now: Nanos) {
        Sums::issued(self, now);
    }

    fn ended(&mut self, _stream: &Stream, _completion: Completion, now: Nanos) {
        self.returned(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::stats::Verdict;
    use machine::{Buffering, Usage};

    fn sample(device: DeviceUse) -> Sample {
        Sample {
            measured_ns: 1_000_000_000,
            requests: 1000,
            bytes: 65_536_000,
            rate: 1000.0,
            latency: [Histogram::new(), Histogram::new()],
            slice_ns: 10_000_000,
            empty_share: 0.0,
            slice_rates: Vec::new(),
            warm_up_rates: Vec::new(),
            warm_up_ns: 0,
            verdict: Verdict::Steady,
            mean_depth: 1.0,
            mean_service_ns: 1e6,
            usage: Usage { elapsed_ns: 1_000_000_000, device: Some(device), ..Usage::default() },
            requests_with_ramp: 1000,
            bytes_with_ramp: 65_536_000,
            intervals: Vec::new(),
            together: None,
        }
    }

    fn counted(
        device: DeviceUse,
        buffering: Buffering,
    ) -> std::result::Result<RequestTimes, String> {
        counted_times(&Workload { buffering, ..Workload::default() }, &[&sample(device)])
    }

    fn at_devices(reads: u64, weighted_ns: u64) -> DeviceUse {
        DeviceUse { reads, read_bytes: 65_536_000, weighted_ns, ..DeviceUse::default() }
    }

    fn means(times: &RequestTimes) -> Vec<(Stage, f64)> {
        times.stages.iter().map(|one| (one.stage, one.mean_ns.round())).collect()
    }

    #[test]
    fn merged_and_split_requests_have_stages() {
        let direct =
            |reads, weighted| counted(at_devices(reads, weighted), Buffering::Direct).unwrap();
        let one = direct(1000, 600_000_000);
        assert_eq!(means(&one), [(Stage::SubmitAndCompletion, 4e5), (Stage::QueueAndDevice, 6e5)]);
        assert_eq!(one.device_requests_per_request, None);
        // Merged: eight requests became one, in flight for 800 us. Split: each became four of 150
        // us.
        let merged = direct(125, 100_000_000);
        assert_eq!(
            means(&merged),
            [(Stage::SubmitAndCompletion, 2e5), (Stage::QueueAndDevice, 8e5)]
        );
        assert_eq!(merged.device_requests_per_request, Some(0.125));
        let split = direct(4000, 600_000_000);
        assert_eq!(means(&split)[1], (Stage::QueueAndDevice, 15e4));
        assert_eq!(split.device_requests_per_request, Some(4.0));
    }

    #[test]
    fn missing_stages_have_a_reason() {
        let why = |device, buffering| counted(device, buffering).unwrap_err();
        assert!(why(at_devices(125, 1), Buffering::Buffered).contains("page cache"));
        let copies = DeviceUse { read_bytes: 131_072_000, ..at_devices(2000, 1) };
        assert!(why(copies, Buffering::Direct).contains("moved 2.00 bytes"));
        assert!(why(DeviceUse::default(), Buffering::Direct).contains("no request"));
        let mut uncounted = sample(DeviceUse::default());
        uncounted.usage.device = None;
        let why = counted_times(&Workload::default(), &[&uncounted]).unwrap_err();
        assert!(why.contains("no block device"), "{why}");
    }

    #[test]
    fn link_and_media_are_separate_if_known() {
        let known = DeviceUse {
            queue_ns: Some(100_000_000),
            link_ns: Some(200_000_000),
            media_ns: Some(900_000_000),
            ..at_devices(1000, 700_000_000)
        };
        let expected = [
            (Stage::SubmitAndCompletion, 3e5),
            (Stage::Queue, 1e5),
            (Stage::Link, 2e5),
            (Stage::Media, 4e5),
            (Stage::Device, 0.0),
        ];
        assert_eq!(
            means(&counted(known, Buffering::Direct).unwrap()),
            expected,
            "media that worked ahead, too"
        );
    }

    #[test]
    fn the_stages_are_the_differences_of_the_sums() {
        let sums = Sums::default();
        // Two requests issued 10 and 20 us before the clock wraps, each in flight for 100 us.
        let start = u64::MAX - 5_000;
        for at in [start, start.wrapping_add(10_000)] {
            sums.issued(at);
            sums.returned(at.wrapping_add(100_000));
        }
        let queued_at_sum = start.wrapping_mul(2).wrapping_add(10_000 + 2 * 3_000);
        let seen =
            BlockTimes { bios: 2, queued_at_sum, queue_ns: 2 * 17_000, device_ns: 2 * 70_000 };
        let times = stages_of(seen, &sums).unwrap();
        let reported: Vec<(Stage, f64, f64)> =
            times.stages.iter().map(|one| (one.stage, one.mean_ns, one.percent.round())).collect();
        assert_eq!(
            reported,
            [
                (Stage::Submit, 3_000.0, 3.0),
                (Stage::Queue, 17_000.0, 17.0),
                (Stage::Device, 70_000.0, 70.0),
                (Stage::Completion, 10_000.0, 10.0)
            ]
        );
        assert_eq!(
            stages_of(BlockTimes { bios: 3, ..seen }, &sums),
            None,
            "others' requests are among them"
        );
    }
}
