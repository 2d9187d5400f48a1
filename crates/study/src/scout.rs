//! A few runs that tell how fast the target goes about, so that grids and lengths fit it.

use crate::bench::{Bench, LONGEST_RUN_NS};
use crate::design::{OpSpeed, Setting, Speed, Way};
use crate::plan::Plan;
use machine::{Error, LayerKind, Machine, Nanos, Result};
use measure::THROTTLE_SLICE_NS;
use workload::{Pattern, Workload};

/// Requests that a run holds, about, on a machine whose runs are all alike.
const QUIET_REQUESTS: f64 = 2000.0;

/// Longest run there, of quick requests.
const LONGEST_QUIET_NS: f64 = 10e9;

/// Shortest run.
const SHORTEST_RUN_NS: f64 = 30e6;

/// Length of a scouting run: more than one of the bursts in which throttled requests are admitted.
const SCOUTING_RUN_NS: Nanos = 150_000_000;

/// So many scouting runs in bursts are no accident.
const BURSTY_SAMPLES: usize = 2;

/// What a flush is thought to do before one was seen: so little that no flush takes long.
const SCOUTING_FLUSH: f64 = 4e6;

/// Runs on a target that admits requests in bursts last so many of them at least.
const BURSTS_A_RUN: u64 = 2;

/// A run should hold at least so many single requests.
const REQUESTS_A_RUN: f64 = 20.0;

/// A few runs that tell how fast the target goes about, so that grids and lengths fit it.
pub(crate) fn scout<M: Machine>(bench: &mut Bench<'_, M>, plan: &Plan) -> Result<Setting> {
    let facts = bench.machine.target_facts(bench.target);
    let unknown = OpSpeed { bytes_per_s: 1e9, iops: 1e5 };
    let members = facts.members;
    let mut setting = Setting {
        facts,
        engines: bench.machine.capabilities().engines,
        speed: Speed { read: unknown, write: unknown, flush_bytes_per_s: SCOUTING_FLUSH },
        run_ns: SCOUTING_RUN_NS,
        seed: plan.seed,
        members,
    };
    let align = setting.facts.direct_align_bytes;
    // A throttle that the system tells of is one, whether or not these runs show it.
    let mut bursts = 0;
    let throttled = setting.facts.layers.iter().any(|layer| layer.kind == LayerKind::Throttle);
    let mut least_run = SHORTEST_RUN_NS as Nanos;
    for way in setting.ways() {
        let mut speed = OpSpeed { bytes_per_s: 0.0, iops: 0.0 };
        let mut single = f64::MAX;
        for (request, depth, pattern) in
            [(4096u32, 1, Pattern::Random), (65_536, 1, Pattern::Seq), (4096, 16, Pattern::Random), (1 << 20, 2, Pattern::Seq)]
        {
            let request = request.max(align).min((setting.facts.size_bytes / 2).max(u64::from(align)) as u32 / align * align);
            let workload = Workload { pattern, ..setting.deep(way, request, depth) };
            let place = bench.push(workload, None);
            bench.sample(place)?;
            if let Some(sample) = bench.entries[place].samples.first() {
                speed.iops = speed.iops.max(sample.iops());
                speed.bytes_per_s = speed.bytes_per_s.max(sample.iops() * f64::from(request));
                single = single.min(sample.mean_service_ns);
                bursts += usize::from(sample.is_bursty());
            } else if let Some(failure) = bench.entries[place].failure.clone() {
                return Err(Error::Unsupported(format!("a first {} failed: {failure}", way.name())));
            }
        }
        match way {
            Way::Read => setting.speed.read = speed,
            Way::Write => setting.speed.write = speed,
        }
        least_run = least_run.max((single * REQUESTS_A_RUN) as Nanos).min(LONGEST_RUN_NS as Nanos);
    }
    if setting.facts.writable && !setting.facts.in_memory {
        let place = bench.push(setting.flushed_write(65_536), None);
        bench.sample(place)?;
        let synced = bench.entries[place].point().numbers.as_ref().and_then(|numbers| numbers.achieved.synced_bytes_per_s);
        setting.speed.flush_bytes_per_s = synced.unwrap_or(SCOUTING_FLUSH).min(setting.speed.write.bytes_per_s);
    }
    // Scouting runs were too short to count.
    bench.entries.clear();
    if !bench.noisy {
        let slower = setting.ways().iter().map(|way| setting.speed_of(&setting.base(*way)).iops).fold(f64::INFINITY, f64::min);
        setting.run_ns = (QUIET_REQUESTS / slower * 1e9).clamp(SHORTEST_RUN_NS, LONGEST_QUIET_NS) as Nanos;
        return Ok(setting);
    }
    bench.bursty = throttled || bursts >= BURSTY_SAMPLES;
    setting.run_ns =
        if bench.bursty { least_run.max(BURSTS_A_RUN * THROTTLE_SLICE_NS).next_multiple_of(THROTTLE_SLICE_NS) } else { least_run };
    Ok(setting)
}
