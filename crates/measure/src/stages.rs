//! Where the time of a request goes: to the block layer, in it, at the device, and back.

use crate::sample::{Options, Sample, sample_as};
use crate::stream::Stream;
use machine::{
    Allocation, BlockTimes, CacheState, Completion, Error, Machine, Nanos, Next, Request, RequestSource, RequestTimes,
    Result, Stage, StageTime, TimesSource,
};
use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use workload::{Stop, Workload};

/// So many requests tell their mean well, and their trace is small.
const TRACED_REQUESTS: f64 = 4000.0;

/// A traced run is as long as those take, within these.
const TRACED_NS: [f64; 2] = [20e6, 300e6];

/// The devices' requests are the program's where they are as many, but for this share.
const AS_MANY: f64 = 0.02;

/// The stages by the devices' own counters; none where the devices' requests are not those of the program.
pub fn counted_times(samples: &[&Sample]) -> Option<RequestTimes> {
    let requests: u64 = samples.iter().map(|sample| sample.requests_with_ramp).sum();
    let (mut at_devices, mut weighted) = (0, 0);
    for sample in samples {
        let device = sample.usage.device?;
        at_devices += device.reads + device.writes;
        weighted += device.weighted_ns;
    }
    if requests == 0 || (at_devices as f64 / requests as f64 - 1.0).abs() > AS_MANY {
        return None;
    }
    let measured: u64 = samples.iter().map(|sample| sample.requests).sum();
    let whole = samples.iter().map(|sample| sample.mean_service_ns * sample.requests as f64).sum::<f64>()
        / measured.max(1) as f64;
    // The kernel counts in ticks of a millisecond or more on some systems.
    let inside = (weighted as f64 / at_devices as f64).min(whole);
    let stages = [(Stage::SubmitAndCompletion, whole - inside), (Stage::QueueAndDevice, inside)];
    Some(told(TimesSource::DeviceCounters, requests, &stages))
}

/// The stages by trace points, in a short run of its own; none where the machine cannot trace, where others' requests come between,
/// or where a request of the program is several of the block layer's.
///
/// `iops` is the rate of the workload's runs so far.
///
/// # Errors
/// The user's interrupt. What else goes wrong shows in the runs that count.
pub fn traced_times<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
    iops: f64,
) -> Result<Option<RequestTimes>> {
    // A run more must not move bytes that were counted out, nor find what the one before it left.
    let counted_out = workload.limit_bytes.is_some() || !matches!(workload.stop, Stop::AfterNs(_));
    let again = workload.allocation == Allocation::Written && workload.cache != CacheState::Cold && !counted_out;
    if !workload.buffering.is_direct() || !again || !machine.capabilities().traces_requests || iops <= 0.0 {
        return Ok(None);
    }
    let long = (TRACED_REQUESTS * 1e9 / iops).clamp(TRACED_NS[0], TRACED_NS[1]);
    let short = Workload { stop: Stop::AfterNs(long as Nanos), ..workload.clone() };
    let sums = Arc::new(Sums::default());
    let options = Options { trace: true, ..Options::default() };
    let made = sample_as(machine, target, &short, options, |stream| Noting { stream, sums: sums.clone() });
    match made {
        Ok(sample) => Ok(sample.usage.block_times.iter().find_map(|&seen| stages_of(seen, &sums))),
        Err(Error::Interrupted) => Err(Error::Interrupted),
        Err(_) => Ok(None),
    }
}

/// Sums of times modulo 2^64: only differences are used.
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

/// The stages between the sums of the program and those of the block layer, where both are of the same requests.
fn stages_of(seen: BlockTimes, sums: &Sums) -> Option<RequestTimes> {
    let of = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
    if of(&sums.requests) != seen.bios || seen.bios == 0 {
        return None;
    }
    let done_at = seen.queued_at_sum.wrapping_add(seen.queue_ns).wrapping_add(seen.device_ns);
    // The trace tells microseconds, so a stage that takes none may come out below nothing.
    let between = |from: u64, to: u64| (to.wrapping_sub(from) as i64).max(0) as f64;
    let requests = seen.bios as f64;
    let stages = [
        (Stage::Submit, between(of(&sums.issued_at), seen.queued_at_sum) / requests),
        (Stage::Queue, seen.queue_ns as f64 / requests),
        (Stage::Device, seen.device_ns as f64 / requests),
        (Stage::Completion, between(done_at, of(&sums.returned_at)) / requests),
    ];
    Some(told(TimesSource::TracePoints, seen.bios, &stages))
}

fn told(source: TimesSource, requests: u64, stages: &[(Stage, f64)]) -> RequestTimes {
    let whole: f64 = stages.iter().map(|(_, mean)| mean).sum();
    let stage =
        |&(stage, mean_ns): &(Stage, f64)| StageTime { stage, mean_ns, percent: mean_ns / whole.max(1.0) * 100.0 };
    RequestTimes { source, requests, stages: stages.iter().map(stage).collect() }
}

/// A stream that notes when its requests were issued and returned.
struct Noting {
    stream: Stream,
    sums: Arc<Sums>,
}

impl Borrow<Stream> for Noting {
    fn borrow(&self) -> &Stream {
        &self.stream
    }
}

impl RequestSource for Noting {
    fn depth(&self) -> u32 {
        self.stream.depth()
    }

    fn max_request(&self) -> u32 {
        self.stream.max_request()
    }

    fn writes(&self) -> bool {
        self.stream.writes()
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        self.stream.fill_buffers(buffers);
    }

    fn begin(&mut self, now: Nanos) {
        self.stream.begin(now);
    }

    fn next(&mut self, now: Nanos) -> Next {
        let next = self.stream.next(now);
        if let Next::Issue(_) = next {
            self.sums.issued(now);
        }
        next
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.sums.returned(now);
        self.stream.complete(completion, now);
    }

    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        self.stream.fill(request, buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_are_the_differences_of_the_sums() {
        let sums = Sums::default();
        // Two requests, issued at 10 and 20 us before the clock's number wraps, each 100 us under way.
        let start = u64::MAX - 5_000;
        for at in [start, start.wrapping_add(10_000)] {
            sums.issued(at);
            sums.returned(at.wrapping_add(100_000));
        }
        let queued_at_sum = start.wrapping_mul(2).wrapping_add(10_000 + 2 * 3_000);
        let seen = BlockTimes { bios: 2, queued_at_sum, queue_ns: 2 * 17_000, device_ns: 2 * 70_000 };
        let times = stages_of(seen, &sums).unwrap();
        let told: Vec<(Stage, f64, f64)> =
            times.stages.iter().map(|one| (one.stage, one.mean_ns, one.percent.round())).collect();
        assert_eq!(
            told,
            [
                (Stage::Submit, 3_000.0, 3.0),
                (Stage::Queue, 17_000.0, 17.0),
                (Stage::Device, 70_000.0, 70.0),
                (Stage::Completion, 10_000.0, 10.0)
            ]
        );
        assert_eq!(stages_of(BlockTimes { bios: 3, ..seen }, &sums), None, "others' requests are among them");
    }
}
