//! A noisy simulated machine.

use machine::{
    Access, Capabilities, Completion, Engine, Layer, LayerKind, MachineFacts, MemoryUse, Nanos,
    Next, NullBackend, Part, Request, RequestSource, RunOptions, RunUsage, Scheduling, TargetFacts,
    TargetKind, TargetSpec, WrappedSource,
};
use std::sync::atomic::{AtomicU64, Ordering};
use twin::description::Drive;
use twin::settings::Setup;
use twin::{Twin, preset};
use workload::rng;

/// `total` is in bytes per second. At 80 MB/s, reads at depth 1 reach half of the peak at about 240
/// KiB.
pub fn disk(total: f64) -> Twin {
    let mut machine = preset::load("virtio").expect("a preset");
    machine.file_system.command_bytes = 64 << 20;
    let Some(Drive::Virtio(disk)) = machine.drives.get_mut("vda") else {
        panic!("virtio has a vda")
    };
    (disk.notify_us, disk.workers, disk.read_us, disk.write_us) = (20.0, 4, 2000.0, 3000.0);
    (disk.read_bytes_per_s, disk.write_bytes_per_s, disk.total_bytes_per_s) = (60e6, 50e6, total);
    Twin::new(Setup::of(machine))
}

const STRETCH_NS: f64 = 10e6;

/// The mean rate is that of the machine without noise.
pub struct Noisy {
    twin: Twin,
    seed: u64,
    runs: AtomicU64,
    /// The relative standard deviations of the rate, between runs and between stretches of a run.
    between: f64,
    within: f64,
    /// The machine reports a throttle, so a study assumes admission in bursts.
    throttled: bool,
    /// Another program's share of the machine, and the runs during which it takes it.
    pub load: Option<(f64, [u64; 2])>,
}

impl Noisy {
    pub fn new(twin: Twin, seed: u64, between: f64, throttled: bool) -> Noisy {
        Noisy { twin, seed, runs: AtomicU64::new(0), between, within: 0.1, throttled, load: None }
    }

    /// Returns a number with mean 1 and standard deviation 1: a sum of three uniform ones, so no
    /// rate gets near zero.
    fn chance(seed: u64, number: u64) -> f64 {
        let uniform =
            |part: u64| rng::hash(rng::hash(seed, number), part) as f64 / u64::MAX as f64 - 0.5;
        (uniform(1) + uniform(2) + uniform(3)) * 2.0
    }
}

#[derive(Clone, Copy)]
struct Warp {
    seed: u64,
    run: u64,
    between: f64,
    within: f64,
    left: f64,
    /// The machine's time at the start; `None` before.
    began: Option<Nanos>,
    /// Both clocks at the start of the current stretch.
    at: (f64, f64),
    stretch: u64,
}

impl Warp {
    fn speed(&self) -> f64 {
        let run = 1.0 + self.between * Noisy::chance(self.seed, self.run * 1_000_003);
        self.left
            * run
            * (1.0 + self.within * Noisy::chance(self.seed ^ self.run, self.stretch + 1))
    }

    fn program_time(&mut self, now: Nanos) -> Nanos {
        let began = *self.began.get_or_insert(now);
        let passed = (now - began) as f64;
        loop {
            let speed = self.speed();
            let ends = self.at.0 + STRETCH_NS * speed;
            if passed < ends {
                return began + (self.at.1 + (passed - self.at.0) / speed) as Nanos;
            }
            self.at = (ends, self.at.1 + STRETCH_NS);
            self.stretch += 1;
        }
    }
}

struct Warped<'a, S> {
    source: &'a mut S,
    warp: Warp,
}

struct WarpedPart<'a, T, S> {
    targets: Vec<&'a T>,
    access: Access,
    scheduling: Scheduling<'a>,
    sources: Vec<Warped<'a, S>>,
}

impl<S: RequestSource> WrappedSource for Warped<'_, S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self.source
    }

    fn inner_mut(&mut self) -> &mut S {
        self.source
    }

    fn synced(&mut self, began: Nanos, ended: Nanos) {
        let [began, ended] = [began, ended].map(|at| self.warp.program_time(at));
        self.source.synced(began, ended);
    }

    fn begin(&mut self, now: Nanos) {
        self.source.begin(self.warp.program_time(now));
    }

    fn next(&mut self, now: Nanos) -> Next {
        let program = self.warp.program_time(now);
        match self.source.next(program) {
            // The speed may change meanwhile; then the source waits again.
            Next::WaitUntil(until) => {
                let wait = until.saturating_sub(program) as f64 * self.warp.speed();
                Next::WaitUntil(now + (wait as Nanos).max(1000))
            }
            next => next,
        }
    }

    fn next_fast(&mut self, now: Nanos) -> Option<Request> {
        self.source.next_fast(self.warp.program_time(now))
    }

    fn submitted(&mut self, now: Nanos) {
        self.source.submitted(self.warp.program_time(now));
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.source.complete(completion, self.warp.program_time(now));
    }

    fn failed(&mut self, completion: Completion, now: Nanos) -> bool {
        self.source.failed(completion, self.warp.program_time(now))
    }
}

impl machine::Machine for Noisy {
    type Target = <Twin as machine::Machine>::Target;

    fn facts(&self) -> MachineFacts {
        self.twin.facts()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            noisy: true,
            engines: vec![Engine::Sync, Engine::IoUring],
            ..self.twin.capabilities()
        }
    }

    fn now(&self) -> Nanos {
        // A real clock always advances.
        self.twin.pause(1);
        self.twin.now()
    }

    fn pause(&self, for_ns: Nanos) {
        self.twin.pause(for_ns);
    }

    fn open(&self, spec: &TargetSpec) -> machine::Result<Self::Target> {
        self.twin.open(spec)
    }

    fn target_facts(&self, target: &Self::Target) -> TargetFacts {
        // A simulated volume repeats exactly and needs no interval; this one behaves like a real
        // one.
        let mut facts = TargetFacts { kind: TargetKind::Device, ..self.twin.target_facts(target) };
        facts.layers.extend(self.throttled.then(|| Layer::new(LayerKind::Throttle, "a throttle")));
        facts
    }

    fn run<S: RequestSource>(
        &self,
        parts: &mut [Part<'_, Self::Target, S>],
        options: RunOptions,
    ) -> machine::Result<RunUsage> {
        let (seed, run) = (self.seed, self.runs.fetch_add(1, Ordering::Relaxed));
        let (between, within) = (self.between, self.within);
        let loaded = |(share, [first, last]): (f64, [u64; 2])| {
            if (first..last).contains(&run) { 1.0 - share } else { 1.0 }
        };
        let left = self.load.map_or(1.0, loaded);
        let warp =
            Warp { seed, run, between, within, left, began: None, at: (0.0, 0.0), stretch: 0 };
        let mut warped: Vec<WarpedPart<'_, Self::Target, S>> = parts
            .iter_mut()
            .map(|part| {
                let sources =
                    part.sources.iter_mut().map(|source| Warped { source, warp }).collect();
                let (targets, access) = (part.targets.clone(), part.access.clone());
                WarpedPart { targets, access, scheduling: part.scheduling, sources }
            })
            .collect();
        let mut parts: Vec<Part<'_, Self::Target, Warped<'_, S>>> = warped
            .iter_mut()
            .map(|part| Part {
                targets: part.targets.clone(),
                access: part.access.clone(),
                buffering: Vec::new(),
                sources: &mut part.sources,
                scheduling: part.scheduling,
            })
            .collect();
        self.twin.run(&mut parts, options)
    }

    fn measure_ceiling<S: RequestSource>(
        &self,
        target: &Self::Target,
        access: &Access,
        backend: NullBackend,
        sources: &mut [S],
    ) -> machine::Result<bool> {
        self.twin.measure_ceiling(target, access, backend, sources)
    }

    fn restripe(
        &self,
        target: &mut Self::Target,
        members: &[u32],
        chunk: u64,
    ) -> machine::Result<()> {
        self.twin.restripe(target, members, chunk)
    }

    fn memory(&self, for_ns: Nanos) -> machine::Result<Vec<MemoryUse>> {
        self.twin.memory(for_ns)
    }
}
