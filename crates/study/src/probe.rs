use crate::context::{OpSpeed, Speed, StudyContext};
use crate::plan::Plan;
use crate::sampler::{LONGEST_RUN_NS, Sampler};
use machine::units::show_size;
use machine::{Error, Machine, Nanos, Result, THROTTLE_SLICE_NS};
use measure::Repeated;
use workload::{OpKind, Pattern, Workload};

/// Per run, if runs repeat exactly.
const QUIET_REQUESTS: f64 = 2000.0;

const LONGEST_QUIET_NS: f64 = 10e9;

/// Fits any of the usual requests.
const MIN_BYTES: u64 = 4096;

const SHORTEST_RUN_NS: f64 = 30e6;

/// Of the budget, for one run: longer studies see effects that settle slowly.
const RUN_SHARE: f64 = 3e-4;

/// A probing run is longer than a burst of throttled requests.
const PROBE_RUN_NS: Nanos = 150_000_000;

/// A probing run takes at most one part in this many of what may still be written.
const PARTS_OF_ALLOWANCE: u64 = 50;

/// Of a probing run, in rounds of the requests outstanding.
const MIN_TURNS: u64 = 8;

const BURSTY_SAMPLES: usize = 2;

/// Until measured, in bytes per second: low, so no flush takes long.
const PROBE_FLUSH: f64 = 4e6;

const BURSTS_A_RUN: u64 = 2;

const REQUESTS_A_RUN: f64 = 20.0;

const PROBES: [(u32, u32, Pattern); 4] = [
    (4096, 1, Pattern::Random),
    (65_536, 1, Pattern::Seq),
    (4096, 16, Pattern::Random),
    (1 << 20, 2, Pattern::Seq),
];

pub(crate) fn probe<M: Machine>(sampler: &mut Sampler<'_, M>, plan: &Plan) -> Result<StudyContext> {
    let facts = sampler.machine.target_facts(sampler.target);
    if facts.size_bytes < MIN_BYTES {
        let [min, size] = [MIN_BYTES, facts.size_bytes].map(show_size);
        let why = format!("a study needs at least {min}, and this is {size}");
        return Err(Error::refused(facts.name, why, "name a larger file, or give a larger --size"));
    }
    let unknown = OpSpeed { bytes_per_s: 1e9, iops: 1e5 };
    let mut setting = StudyContext {
        members: facts.members,
        clients: sampler.machine.clients(),
        one_file: sampler.machine.one_file(),
        facts,
        engines: sampler.machine.capabilities().engines,
        speed: Speed { read: unknown, write: unknown, flush_bytes_per_s: PROBE_FLUSH },
        run_ns: PROBE_RUN_NS,
        seed: plan.seed,
    };
    // A throttle that the system reports counts even if these runs do not show it.
    let throttled = setting.facts.is_throttled();
    let mut bursts = 0;
    let mut min_run = SHORTEST_RUN_NS.max(plan.budget_ns as f64 * RUN_SHARE);
    for op in setting.ops() {
        let (speed, single) = probe_one(sampler, &setting, op, &mut bursts)?;
        match op {
            OpKind::Write => setting.speed.write = speed,
            _ => setting.speed.read = speed,
        }
        min_run = min_run.max(single * REQUESTS_A_RUN).min(LONGEST_RUN_NS);
    }
    if setting.facts.writable && !setting.facts.in_memory {
        let index = sampler.push(setting.flushed_write(65_536), None);
        sampler.run(index)?;
        let numbers = sampler.entries[index].point().numbers.as_ref();
        let synced = numbers.map(|numbers| numbers.throughput_bytes_per_s);
        setting.speed.flush_bytes_per_s =
            synced.unwrap_or(PROBE_FLUSH).min(setting.speed.write.bytes_per_s);
    }
    // Probing runs are too short to count.
    sampler.entries.clear();
    sampler.bursty = sampler.noisy && (throttled || bursts >= BURSTY_SAMPLES);
    setting.run_ns = if !sampler.noisy {
        let speeds = setting.ops().into_iter().map(|op| setting.speed_of(&setting.base(op)).iops);
        let slower = speeds.fold(f64::INFINITY, f64::min);
        (QUIET_REQUESTS / slower * 1e9).clamp(SHORTEST_RUN_NS, LONGEST_QUIET_NS) as Nanos
    } else if sampler.bursty {
        (min_run as Nanos).max(BURSTS_A_RUN * THROTTLE_SLICE_NS).next_multiple_of(THROTTLE_SLICE_NS)
    } else {
        min_run as Nanos
    };
    Ok(setting)
}

/// Returns the speed and the shortest mean request time in ns; counts the runs in bursts.
fn probe_one<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    op: OpKind,
    bursts: &mut usize,
) -> Result<(OpSpeed, f64)> {
    let align = setting.facts.direct_align_bytes;
    let largest =
        (setting.facts.size_bytes / 2).clamp(u64::from(align), 1 << 30) as u32 / align * align;
    let (mut speed, mut single) = (OpSpeed { bytes_per_s: 0.0, iops: 0.0 }, f64::MAX);
    for (request, depth, pattern) in PROBES {
        let request = request.max(align).min(largest);
        let left = Some(sampler.machine.may_write()).filter(|&left| left < u64::MAX);
        let limit_bytes = left.filter(|_| op == OpKind::Write).map(|left| {
            (left / PARTS_OF_ALLOWANCE).max(u64::from(request) * u64::from(depth) * MIN_TURNS)
        });
        let workload = Workload { pattern, limit_bytes, ..setting.deep(op, request, depth) };
        let index = sampler.push(workload, None);
        sampler.run(index)?;
        let entry = &sampler.entries[index];
        if let Some(sample) = entry.samples().first() {
            speed.iops = speed.iops.max(sample.iops());
            speed.bytes_per_s = speed.bytes_per_s.max(sample.iops() * f64::from(request));
            single = single.min(sample.mean_service_ns);
            *bursts += usize::from(sample.is_bursty());
        } else if let Some(failure) = &entry.measured.failure {
            return Err(Error::Unsupported(format!("a first {op} failed: {failure}")));
        }
    }
    // No byte may be written any more, so no later run needs this speed.
    if speed.iops == 0.0 { Ok((setting.speed.write, 0.0)) } else { Ok((speed, single)) }
}
