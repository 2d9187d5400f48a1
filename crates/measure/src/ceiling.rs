//! The driver's own limit: a workload's loop with a null backend.

use crate::sample::streams;
use machine::{Engine, Machine, Nanos, NullBackend};
use serde::{Deserialize, Serialize};
use workload::{Stop, Workload};

const ATTEMPT_NS: Nanos = 2_000_000;

/// Longer than a scheduler time slice, because more streams than processors take turns.
const ATTEMPT_TOGETHER_NS: Nanos = 8_000_000;

/// The best counts, because brief interference can only lower the ceiling.
const ATTEMPTS: usize = 3;

/// The driver's limit if nothing else takes time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Requests complete when issued: the generator's limit.
    pub generator_iops: f64,
    /// No-op requests in the kernel: the limit with io_uring; absent for other engines.
    pub no_op_iops: Option<f64>,
}

impl Ceiling {
    pub fn lowest_iops(&self) -> f64 {
        self.no_op_iops.unwrap_or(self.generator_iops).min(self.generator_iops)
    }
}

/// Each is measured once.
#[derive(Debug, Default)]
pub struct Ceilings {
    known: Vec<(Workload, Option<Ceiling>)>,
}

impl Ceilings {
    /// Returns the ceiling, shared by workloads that the loop cannot distinguish. `None` if the
    /// driver has no limit of its own, or if verification needs real data.
    pub fn of<M: Machine>(
        &mut self,
        machine: &M,
        target: &M::Target,
        workload: &Workload,
    ) -> Option<Ceiling> {
        if workload.data.verify {
            return None;
        }
        let alike = loop_settings(workload);
        if let Some((_, ceiling)) = self.known.iter().find(|(known, _)| *known == alike) {
            return *ceiling;
        }
        let ceiling =
            measure_ceiling(machine, target, &alike, NullBackend::Null).map(|generator_iops| {
                Ceiling {
                    generator_iops,
                    no_op_iops: measure_ceiling(machine, target, &alike, NullBackend::NoOp),
                }
            });
        self.known.push((alike, ceiling));
        ceiling
    }
}

fn loop_settings(workload: &Workload) -> Workload {
    let mut alike = Workload {
        read_percent: workload.read_percent,
        pattern: workload.pattern,
        request_bytes: workload.request_bytes,
        sizes: workload.sizes.clone(),
        align_bytes: workload.align_bytes,
        depth: workload.depth,
        threads: workload.threads,
        engine: workload.engine,
        data: workload.data,
        ..Workload::default()
    };
    let engine = workload.engine;
    let streams = if engine.is_async() { workload.threads } else { workload.outstanding() };
    let alone = streams == 1;
    alike.stop = Stop::AfterNs(if alone { ATTEMPT_NS } else { ATTEMPT_TOGETHER_NS });
    if !alike.writes() {
        // The loop never looks at the data of reads.
        alike.request_bytes = alike.request_bytes.min(4096);
    }
    if alike.engine.has_workers() && alike.depth == 1 {
        alike.engine = Engine::Sync;
    }
    alike
}

fn measure_ceiling<M: Machine>(
    machine: &M,
    target: &M::Target,
    workload: &Workload,
    backend: NullBackend,
) -> Option<f64> {
    (0..ATTEMPTS).map_while(|_| rehearse(machine, target, workload, backend)).max_by(f64::total_cmp)
}

fn rehearse<M: Machine>(
    machine: &M,
    target: &M::Target,
    workload: &Workload,
    backend: NullBackend,
) -> Option<f64> {
    let facts = machine.target_facts(target);
    let mut streams = streams(workload, &facts, 0).ok()?;
    let ran = machine
        .measure_ceiling(target, &workload.access(facts.size_bytes), backend, &mut streams)
        .ok()?;
    if !ran {
        return None;
    }
    rate_together(streams.iter().map(|stream| Ran {
        began: stream.began(),
        ended: stream.lasted_until(),
        requests: stream.completed(),
    }))
}

struct Ran {
    began: Nanos,
    ended: Nanos,
    requests: u64,
}

/// Counts from the first start to the last end: rates of streams that took turns on a processor do
/// not add up. `None` if the attempt ended too early.
fn rate_together(streams: impl Iterator<Item = Ran>) -> Option<f64> {
    let whole = streams.reduce(|a, b| Ran {
        began: a.began.min(b.began),
        ended: a.ended.max(b.ended),
        requests: a.requests + b.requests,
    })?;
    let ns = whole.ended.saturating_sub(whole.began);
    (whole.requests > 0 && ns >= ATTEMPT_NS / 2).then(|| whole.requests as f64 * 1e9 / ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(began: Nanos, ended: Nanos, requests: u64) -> Ran {
        Ran { began, ended, requests }
    }

    #[test]
    fn streams_that_took_turns_do_not_add_up() {
        let turns = (0..8).map(|i| ran(i * 2_000_000, (i + 1) * 2_000_000, 1_000));
        assert_eq!(rate_together(turns), Some(500_000.0));
        let side_by_side = (0..8).map(|_| ran(0, 2_000_000, 1_000));
        assert_eq!(rate_together(side_by_side), Some(4_000_000.0));
    }

    #[test]
    fn an_attempt_that_ended_early_has_no_rate() {
        assert_eq!(rate_together([ran(7, 7, 32)].into_iter()), None);
        assert_eq!(rate_together([ran(0, 1_000, 32)].into_iter()), None);
        assert_eq!(rate_together([ran(0, 2_000_000, 0)].into_iter()), None);
        assert_eq!(rate_together(std::iter::empty()), None);
    }
}
