//! The study on a machine whose runs differ: what it says is as sure as it says, although where it measures depends on what it saw.

use machine::{
    Access, Capabilities, Completion, Engine, MachineFacts, MemoryUse, Nanos, Next, NullBackend, Part, Request,
    RequestSource, RunOptions, RunUsage, Stability, TargetFacts, TargetSpec,
};
use measure::Repeats;
use results::{Bottleneck, LimitOf, Point, Program, Results};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use study::{Effort, Plan};
use twin::description::Drive;
use twin::settings::Setup;
use twin::{Twin, preset};
use workload::{OpKind, Workload, rng};

/// A part of a run in which the rate keeps to one value.
const STRETCH_NS: f64 = 10e6;

/// A simulated machine whose runs are faster or slower by chance, each as a whole and from stretch to stretch. The mean rate is that of the
/// machine without noise.
struct Noisy {
    twin: Twin,
    seed: u64,
    runs: AtomicU64,
    /// Standard deviation of the rate of a run, as a share of it, and of a stretch within a run.
    between: f64,
    within: f64,
}

impl Noisy {
    /// Of mean 1 and standard deviation 1 about it: a sum of three uniform numbers, so that no rate comes near zero.
    fn chance(seed: u64, number: u64) -> f64 {
        let uniform = |part: u64| rng::hash(rng::hash(seed, number), part) as f64 / u64::MAX as f64 - 0.5;
        (uniform(1) + uniform(2) + uniform(3)) * 2.0
    }
}

/// The clock of one run, which goes as fast as the run is fast: what takes a second of the machine's time takes less of the program's.
#[derive(Clone, Copy)]
struct Warp {
    seed: u64,
    run: u64,
    between: f64,
    within: f64,
    /// The machine's time at the beginning; none before.
    began: Option<Nanos>,
    /// Both clocks at the beginning of the present stretch, and its number.
    at: (f64, f64),
    stretch: u64,
}

impl Warp {
    /// Of the present stretch.
    fn speed(&self) -> f64 {
        let run = 1.0 + self.between * Noisy::chance(self.seed, self.run * 1_000_003);
        run * (1.0 + self.within * Noisy::chance(self.seed ^ self.run, self.stretch + 1))
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

/// A source that lives by the warped clock.
struct Warped<'a, S> {
    source: &'a mut S,
    warp: Warp,
}

/// A part of a run whose sources do.
struct WarpedPart<'a, T, S> {
    targets: Vec<&'a T>,
    access: Access,
    processors: &'a [u32],
    sources: Vec<Warped<'a, S>>,
}

impl<S: RequestSource> RequestSource for Warped<'_, S> {
    fn depth(&self) -> u32 {
        self.source.depth()
    }

    fn max_request(&self) -> u32 {
        self.source.max_request()
    }

    fn writes(&self) -> bool {
        self.source.writes()
    }

    fn sync_due(&self) -> Option<Stability> {
        self.source.sync_due()
    }

    fn begin(&mut self, now: Nanos) {
        self.source.begin(self.warp.program_time(now));
    }

    fn next(&mut self, now: Nanos) -> Next {
        match self.source.next(self.warp.program_time(now)) {
            Next::WaitUntil(_) => panic!("nothing here waits for a time"),
            next => next,
        }
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.source.complete(completion, self.warp.program_time(now));
    }

    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        self.source.fill(request, buffer);
    }
}

impl machine::Machine for Noisy {
    type Target = <Twin as machine::Machine>::Target;

    fn facts(&self) -> MachineFacts {
        self.twin.facts()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { noisy: true, engines: vec![Engine::Sync, Engine::IoUring], ..self.twin.capabilities() }
    }

    fn now(&self) -> Nanos {
        self.twin.now()
    }

    fn pause(&self, for_ns: Nanos) {
        self.twin.pause(for_ns);
    }

    fn open(&self, spec: &TargetSpec) -> machine::Result<Self::Target> {
        self.twin.open(spec)
    }

    fn target_facts(&self, target: &Self::Target) -> TargetFacts {
        self.twin.target_facts(target)
    }

    fn run<S: RequestSource>(
        &self,
        parts: &mut [Part<'_, Self::Target, S>],
        options: RunOptions,
    ) -> machine::Result<RunUsage> {
        let (seed, run) = (self.seed, self.runs.fetch_add(1, Ordering::Relaxed));
        let (between, within) = (self.between, self.within);
        let warp = Warp { seed, run, between, within, began: None, at: (0.0, 0.0), stretch: 0 };
        let mut warped: Vec<WarpedPart<'_, Self::Target, S>> = parts
            .iter_mut()
            .map(|part| {
                let sources = part.sources.iter_mut().map(|source| Warped { source, warp }).collect();
                let (targets, access) = (part.targets.clone(), part.access.clone());
                WarpedPart { targets, access, processors: part.processors, sources }
            })
            .collect();
        let mut parts: Vec<Part<'_, Self::Target, Warped<'_, S>>> = warped
            .iter_mut()
            .map(|part| Part {
                targets: part.targets.clone(),
                access: part.access.clone(),
                sources: &mut part.sources,
                processors: part.processors,
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

    fn restripe(&self, target: &mut Self::Target, members: &[u32], chunk: u64) -> machine::Result<()> {
        self.twin.restripe(target, members, chunk)
    }

    fn memory(&self, for_ns: Nanos) -> machine::Result<Vec<MemoryUse>> {
        self.twin.memory(for_ns)
    }
}

/// A disk behind a hypervisor that four workers serve: nothing of it depends on what was before.
fn twin() -> Twin {
    let mut machine = preset::load("virtio").expect("a preset");
    machine.file_system.command_bytes = 64 << 20;
    let Some(Drive::Virtio(disk)) = machine.drives.get_mut("vda") else { panic!("virtio has a vda") };
    (disk.notify_us, disk.workers, disk.read_us, disk.write_us) = (20.0, 4, 2000.0, 3000.0);
    (disk.read_bytes_per_s, disk.write_bytes_per_s, disk.total_bytes_per_s) = (60e6, 50e6, 200e6);
    Twin::new(Setup::of(machine))
}

const EXPERIMENTS: [&str; 3] = ["unbuffered", "depth", "random"];

fn study(seed: u64, between: f64, budget_s: u64) -> Results {
    let plan = Plan {
        budget_ns: budget_s * 1_000_000_000,
        effort: Effort::Quick,
        only: EXPERIMENTS.map(String::from).to_vec(),
        seed,
    };
    let program = Program { name: "test".into(), version: "0".into(), arguments: Vec::new() };
    let noisy = Noisy { twin: twin(), seed, runs: AtomicU64::new(0), between, within: 0.1 };
    study::study(&noisy, &TargetSpec::default(), &plan, program, &mut |_| {}).expect("a study")
}

/// The rate of a workload on the machine without noise, in bytes per second.
fn truth(known: &mut BTreeMap<String, f64>, workload: &Workload) -> f64 {
    let name = format!("{} {:?}", workload.options(), workload.stop);
    *known.entry(name).or_insert_with(|| {
        let twin = twin();
        let mut target = machine::Machine::open(&twin, &TargetSpec::default()).expect("a target");
        let one = std::slice::from_ref(workload);
        let points = results::measure_points(&twin, &mut target, one, Repeats::exactly(1), |_, _| {}).expect("a run");
        points[0].rate().expect("a rate")
    })
}

/// How many intervals hold the truth, of how many.
#[derive(Debug, Default, Clone, Copy)]
struct Coverage {
    held: usize,
    of: usize,
}

impl Coverage {
    fn add(&mut self, point: &Point, truth: f64) {
        let numbers = point.numbers.as_ref().expect("it was measured");
        let Some([low, high]) = numbers.interval_95 else { return };
        self.of += 1;
        self.held += usize::from((low..=high).contains(&truth));
    }

    fn share(&self) -> f64 {
        self.held as f64 / self.of.max(1) as f64
    }
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let mut known = BTreeMap::new();
    let (mut all, mut by_runs) = (Coverage::default(), BTreeMap::<u32, Coverage>::new());
    let (mut peaks, mut wide, mut points, mut verdicts) = (Coverage::default(), 0, 0, 0);
    let mut widths = Vec::new();
    let seeds = 32;
    for seed in 101..101 + seeds {
        let results = study(seed, 0.2, 50);
        for point in &results.points {
            let truth = truth(&mut known, &point.workload);
            let numbers = point.numbers.as_ref().expect("nothing fails here");
            all.add(point, truth);
            by_runs.entry(numbers.repeats.min(6)).or_default().add(point, truth);
            wide += usize::from(numbers.relative_half_width.is_none_or(|width| width > 0.25));
            points += 1;
        }
        let answer = results.answer.as_ref().expect("an answer");
        for peak in &answer.peaks {
            let point = &results.points[peak.point];
            peaks.add(point, truth(&mut known, &point.workload));
            widths.push(point.numbers.as_ref().and_then(|numbers| numbers.relative_half_width).unwrap_or(f64::MAX));
        }
        let read = answer.limits.iter().find(|one| one.of == LimitOf::Peak && one.op == OpKind::Read);
        verdicts += usize::from(read.is_some_and(|one| one.what == Bottleneck::Device));
    }
    widths.sort_by(f64::total_cmp);
    let width = widths[widths.len() / 2];
    println!("{all:?}, width of peaks {width:.3}, wide {wide} of {points}, by runs {by_runs:?}");
    assert!((0.93..=0.97).contains(&all.share()), "{all:?}");
    assert!(peaks.share() >= 0.85, "{peaks:?}");
    assert!(width < 0.25, "{widths:?}");
    assert!(wide * 5 <= points * 2, "{wide} of {points} points are uncertain by more than 25 %");
    assert!(verdicts * 10 >= seeds as usize * 9, "{verdicts} of {seeds}");
}
