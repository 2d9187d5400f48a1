//! The driver's own ceiling: the loop of a workload with a null backend.

use crate::sample::streams;
use machine::{Engine, Machine, Nanos, NullBackend};
use serde::{Deserialize, Serialize};
use workload::{Stop, Workload};

/// Run time of the loop per attempt: a few thousand requests.
const ATTEMPT_NS: Nanos = 2_000_000;

/// Attempts per backend. The ceiling is the best of them, because brief interference can only lower
/// it.
const ATTEMPTS: usize = 3;

/// Requests per second of the driver if nothing else takes time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// With requests that complete when issued: the limit of the generator.
    pub generator_iops: f64,
    /// With no-op requests in the kernel: the limit of the generator and io_uring; absent for other
    /// engines.
    pub no_op_iops: Option<f64>,
}

impl Ceiling {
    /// The lower of the two ceilings.
    pub fn lowest_iops(&self) -> f64 {
        self.no_op_iops.unwrap_or(self.generator_iops).min(self.generator_iops)
    }
}

/// Ceilings of workloads, each measured once.
#[derive(Debug, Default)]
pub struct Ceilings {
    known: Vec<(Workload, Option<Ceiling>)>,
}

impl Ceilings {
    /// The ceiling of a workload's loop; workloads that the loop cannot distinguish share one.
    /// `None` if the driver has no limit of its own, or if verification needs real data.
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
        stop: Stop::AfterNs(ATTEMPT_NS),
        data: workload.data,
        ..Workload::default()
    };
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
    let requests: u64 = streams.iter().map(crate::Stream::completed).sum();
    let longest = streams.iter().map(crate::Stream::measured_ns).max()?;
    (ran && requests > 0).then(|| requests as f64 * 1e9 / longest.max(1) as f64)
}
