//! Tests on synthetic points of known truth.

mod answer;
mod checklist;
mod experiments;
mod grids;
mod ladder;
mod models;
mod probing;
mod software_limits;
mod verdict;

use crate::context::{OpSpeed, Speed, StudyContext};
use crate::experiments::ALL;
use crate::experiments::Trial;
use crate::found::{Found, PeakRates};
use crate::grid::Cell;
use crate::sampler::Entry;
use machine::{CpuTimes, Engine, MemoryKind, MemoryUse, TargetFacts, TargetKind, Usage};
use measure::Sample;
use measure::histogram::Histogram;
use measure::stats::Verdict;
use results::{LongWrites, Point, WriteLevel};
use workload::Workload;

fn facts() -> TargetFacts {
    TargetFacts {
        physical_block_bytes: 4096,
        block_bytes: 4096,
        ..TargetFacts::new("target", TargetKind::TestFile, 8 << 30)
    }
}

fn setting() -> StudyContext {
    let speed = OpSpeed { bytes_per_s: 2e9, iops: 5e5 };
    StudyContext {
        one_file: Err("there is one client".into()),
        facts: TargetFacts {
            members: 4,
            chunk_bytes: Some(65_536),
            kind: TargetKind::Stripe,
            ..facts()
        },
        engines: Engine::ALL.into_iter().filter(|engine| engine.does_io()).collect(),
        speed: Speed { read: speed, write: speed, flush_bytes_per_s: 1e9 },
        run_ns: 100_000_000,
        seed: 7,
        members: 4,
        clients: 1,
    }
}

pub(crate) fn run(workload: &Workload, iops: f64) -> Sample {
    let service_ns = f64::from(workload.outstanding()) * 1e9 / iops;
    let mut latency = Histogram::new();
    latency.record(service_ns as u64);
    let latency =
        if workload.writes() { [Histogram::new(), latency] } else { [latency, Histogram::new()] };
    let (requests, request) = (iops.round() as u64, u64::from(workload.request_bytes));
    // Cost of a request: 2 us plus 0.1 ns per byte direct, 1 us plus 0.3 ns per byte buffered.
    let (fixed, per_byte) =
        if workload.buffering.is_direct() { (2000.0, 0.1) } else { (1000.0, 0.3) };
    let cpu_ns = ((fixed + per_byte * request as f64) * requests as f64) as u64;
    Sample {
        measured_ns: 1_000_000_000,
        requests,
        bytes: requests * request,
        rate: iops,
        latency,
        slice_ns: 10_000_000,
        empty_share: 0.0,
        slice_rates: (0..99).map(|slice| iops * (0.99 + 0.01 * f64::from(slice % 3))).collect(),
        warm_up_rates: Vec::new(),
        warm_up_ns: 0,
        verdict: Verdict::Steady,
        mean_depth: f64::from(workload.outstanding()),
        mean_service_ns: service_ns,
        usage: Usage {
            elapsed_ns: 1_000_000_000,
            sync_ns: workload.sync_at_end.then_some(1_000_000_000),
            cpu: CpuTimes { user_ns: cpu_ns, machine_ns: cpu_ns * 2, ..CpuTimes::default() },
            ..Usage::default()
        },
        requests_with_ramp: requests,
        bytes_with_ramp: requests * request,
        intervals: Vec::new(),
        together: None,
    }
}

fn entry(workload: Workload, runs_iops: &[f64]) -> Entry {
    let mut entry = Entry::new(workload, None, facts());
    for iops in runs_iops {
        entry.measured.push(Ok(run(&entry.workload, *iops))).expect("a run is not an interrupt");
    }
    entry
}

struct Measured {
    setting: StudyContext,
    trials: Vec<Trial>,
    entries: Vec<Entry>,
    points: Vec<Point>,
    memory: Result<Vec<MemoryUse>, String>,
    long_writes: crate::long_writes::Seen,
}

impl Measured {
    fn new(setting: StudyContext, truth: impl Fn(&Cell) -> Option<f64>) -> Measured {
        let mut entries = Vec::new();
        let trial = |experiment: &&'static crate::experiments::Experiment| {
            let mut grid = (experiment.grid)(&setting);
            for cell in &mut grid.cells {
                let Some(iops) = truth(cell) else { continue };
                cell.point = Some(entries.len());
                let mut made = entry(cell.workload.clone(), &[iops; 3]);
                made.shape = cell.shape.clone();
                entries.push(made);
            }
            Trial { experiment, grid }
        };
        let trials = ALL.iter().map(trial).collect();
        let points = entries.iter().map(|entry: &Entry| entry.point().clone()).collect();
        let copy = |threads, rate| MemoryUse {
            kind: MemoryKind::Copy,
            threads,
            rates_bytes_per_s: vec![rate; 3],
        };
        let memory = Ok(vec![copy(1, 8e9), copy(4, 20e9)]);
        let level =
            |rate: f64, seconds| WriteLevel { bytes_per_s: rate, bytes: rate * seconds, seconds };
        let long_writes = Ok(LongWrites {
            request_bytes: 1 << 20,
            depth: 16,
            levels: vec![level(1e9, 10.0), level(1e8, 5.0)],
            peak_bytes_per_s: None,
            written_bytes: 10_500_000_000,
            took_s: 15.0,
            out_of_bytes: false,
            needs_s: None,
            course: Vec::new(),
        });
        Measured { setting, trials, entries, points, memory, long_writes }
    }

    fn found(&self) -> Found<'_> {
        let peak = PeakRates { read: Some(2e9.into()), write: Some(1e9.into()) };
        Found {
            setting: &self.setting,
            grids: self.trials.iter().map(|trial| &trial.grid).collect(),
            entries: &self.entries,
            points: &self.points,
            measured: peak,
            advertised: PeakRates { read: Some(4e9.into()), write: None },
            memory: &self.memory,
            long_writes: &self.long_writes,
        }
    }
}

/// Requests per second.
fn device(workload: &Workload) -> f64 {
    let bytes = f64::from(workload.request_bytes);
    let max = if workload.writes() { 1e9 } else { 2e9 };
    let one = 100e-6 + bytes / 500e6;
    (f64::from(workload.outstanding()) / one).min(max / bytes)
}
