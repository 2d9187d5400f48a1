//! Makes a script's files, and runs its threads.

use super::ReplayError;
use super::document::{ClassResult, Quantity, ReplayDocument, SCHEMA};
use super::script::{Act, FileScript, MAX_DEPTH, Script, Step, ThreadScript};
use super::source::{ReplaySource, Spot};
use crate::Latency;
use machine::{
    Access, Allocation, Buffering, CacheState, Engine, Error, Hint, Machine, Memory, Nanos,
    NewFile, Part, Reap, ResourceUse, RunOptions, Scheduling, TargetFacts, TargetSpec, Warning,
};
use measure::histogram::Histogram;
use std::path::{Path, PathBuf};

/// More files share one target.
const MAX_FILES: usize = 256;
/// Files of one target begin at multiples of this.
const REGION: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// The recorded pauses, divided by this.
    Recorded(f64),
    AsFastAsPossible,
}

/// The page cache before each run.
pub type Cache = CacheState;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// In this directory, or on this simulated machine.
    Files(PathBuf),
    Regions(TargetSpec),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    pub pace: Pace,
    /// Of each thread; `None`: as recorded.
    pub depth: Option<u32>,
    pub runs: u32,
    pub cache: Cache,
}

impl Settings {
    fn speed(&self) -> f64 {
        match self.pace {
            Pace::Recorded(speed) => speed,
            Pace::AsFastAsPossible => f64::INFINITY,
        }
    }

    fn depth(&self, script: &Script, thread: &ThreadScript) -> u32 {
        let blind = self.pace == Pace::AsFastAsPossible && !script.has_durations;
        let max = self.depth.unwrap_or(if blind { 1 } else { MAX_DEPTH });
        thread.depth.clamp(1, max.max(1))
    }
}

struct Places {
    specs: Vec<TargetSpec>,
    spots: Vec<Spot>,
    /// Bytes of the largest target.
    used: u64,
}

impl Places {
    fn new(files: &[FileScript], layout: &Layout) -> Places {
        match layout {
            Layout::Files(place) if files.len() <= MAX_FILES => {
                let specs = files.iter().enumerate().map(|(at, file)| spec(place, file, at));
                let spots = (0..files.len() as u32).map(|target| Spot { target, base: 0 });
                let used = files.iter().map(|file| file.bytes).max().unwrap_or(0);
                Places { specs: specs.collect(), spots: spots.collect(), used }
            }
            _ => {
                let (mut base, mut spots) = (0_u64, Vec::new());
                for file in files {
                    spots.push(Spot { target: 0, base });
                    base = base.saturating_add(file.bytes.next_multiple_of(REGION));
                }
                let spec = match layout {
                    Layout::Files(place) => {
                        let filled = files.iter().any(|file| file.filled);
                        let (grows_from, allocated) = (None, false);
                        let all = FileScript {
                            bytes: base,
                            filled,
                            grows_from,
                            allocated,
                            ..files[0].clone()
                        };
                        spec(place, &all, 0)
                    }
                    Layout::Regions(spec) => TargetSpec { size: Some(base), ..spec.clone() },
                };
                Places { specs: vec![spec], spots, used: base }
            }
        }
    }

    fn open<M: Machine>(&self, machine: &M, writes: bool) -> machine::Result<Vec<M::Target>> {
        machine.open_all(&self.specs, &mut |facts| self.check(facts, writes))
    }

    fn check(&self, facts: &[TargetFacts], writes: bool) -> machine::Result<()> {
        let hint = "name it again after --destroy-data to write it";
        facts.iter().try_for_each(|facts| measure::check_writable(facts, writes, hint))?;
        let [only] = facts else { return Ok(()) };
        if only.size_bytes >= self.used {
            return Ok(());
        }
        let show = machine::units::show_size;
        Err(Error::refused(
            only.name.clone(),
            format!("it has {}, and the trace's files {}", show(only.size_bytes), show(self.used)),
            "name a larger target",
        ))
    }
}

fn spec(place: &Path, file: &FileScript, number: usize) -> TargetSpec {
    let mut name = place.as_os_str().to_owned();
    if place.as_os_str().as_encoded_bytes().starts_with(b"twin:") {
        name.push(format!("#replay-{number}"));
    }
    TargetSpec {
        places: vec![name.into()],
        size: Some(file.bytes),
        new_file: match file.grows_from {
            Some(bytes) => NewFile::Grows(bytes),
            None if file.filled => NewFile::Filled,
            None if file.allocated => NewFile::Reserved,
            None => NewFile::Sparse,
        },
        ..TargetSpec::default()
    }
}

/// A sync or discard takes the mode of the file's first request.
fn mode(steps: &[Step], step: &Step) -> Buffering {
    if matches!(step.act, Act::Move(_)) {
        return step.buffering();
    }
    let same = |other: &&Step| other.file == step.file && matches!(other.act, Act::Move(_));
    steps.iter().find(same).map_or(Buffering::Buffered, Step::buffering)
}

/// Targets are a file's target and mode; spots are by step.
struct ThreadPlan {
    targets: Vec<(u32, Buffering)>,
    spots: Vec<Spot>,
    access: Access,
}

fn plan(
    thread: &ThreadScript,
    places: &Places,
    engines: &[Engine],
    depth: u32,
    cache: Cache,
) -> ThreadPlan {
    let mut targets: Vec<(u32, Buffering)> = Vec::new();
    let mut syncs = std::collections::HashMap::new();
    let mut spots = Vec::with_capacity(thread.steps.len());
    for step in &thread.steps {
        let spot = places.spots[step.file as usize];
        let is_move = matches!(step.act, Act::Move(_));
        let mode = if is_move {
            step.buffering()
        } else {
            *syncs.entry(step.file).or_insert_with(|| mode(&thread.steps, step))
        };
        let wanted = (spot.target, mode);
        let target = targets.iter().position(|known| *known == wanted).unwrap_or_else(|| {
            targets.push(wanted);
            targets.len() - 1
        });
        spots.push(Spot { target: target as u32, base: spot.base });
    }
    let first = targets.first().map_or(Buffering::Buffered, |(_, mode)| *mode);
    // Dirty pages are watched if there may be any.
    let any_buffered = targets.iter().any(|(_, mode)| *mode == Buffering::Buffered);
    let engine = if thread.engine.is_async() {
        Engine::for_depth(depth.max(2), engines)
    } else {
        thread.engine
    };
    let access = Access {
        engine,
        buffering: if any_buffered { Buffering::Buffered } else { first },
        metadata_sync: false,
        hint: Hint::None,
        memory: Memory::Pages,
        allocation: Allocation::Written,
        cache,
        reap: Reap::default(),
        kernel_polls: false,
        sync_at_end: false,
        region: (0, places.used),
    };
    ThreadPlan { targets, spots, access }
}

struct Runs {
    elapsed_ns: Vec<Nanos>,
    latencies: Vec<Histogram>,
    requests: Vec<u64>,
    bytes: Vec<u64>,
    warnings: Vec<Warning>,
    resources: Vec<ResourceUse>,
}

/// Makes and removes a script's files, to refuse a target that cannot hold them.
pub fn prepare<M: Machine>(machine: &M, script: &Script, layout: &Layout) -> machine::Result<()> {
    Places::new(&script.files, layout).open(machine, script.writes()).map(drop)
}

/// Calls `on_run` before each run, from 1.
pub fn replay<M: Machine>(
    machine: &M,
    script: &Script,
    (trace, format): (&str, &str),
    layout: &Layout,
    settings: &Settings,
    on_run: &mut dyn FnMut(u32),
) -> Result<ReplayDocument, ReplayError> {
    let places = Places::new(&script.files, layout);
    let engines = machine.capabilities().engines;
    let plans: Vec<ThreadPlan> = script
        .threads
        .iter()
        .map(|thread| {
            plan(thread, &places, &engines, settings.depth(script, thread), settings.cache)
        })
        .collect();
    let mut runs = Runs {
        elapsed_ns: Vec::new(),
        latencies: vec![Histogram::new(); script.classes.len()],
        requests: vec![0; script.classes.len()],
        bytes: vec![0; script.classes.len()],
        warnings: Vec::new(),
        resources: Vec::new(),
    };
    let open = || places.open(machine, script.writes());
    let mut targets = open()?;
    let facts = machine.target_facts(&targets[0]);
    for number in 1..=settings.runs {
        on_run(number);
        // A hole is one only once.
        if number > 1 && !script.files.iter().all(FileScript::stays) {
            drop(std::mem::take(&mut targets));
            targets = open()?;
        }
        run(machine, script, &plans, &targets, settings, &mut runs)?;
    }
    let seconds = |ns: Nanos| ns as f64 * 1e-9;
    let elapsed: Vec<f64> = runs.elapsed_ns.iter().map(|&ns| seconds(ns)).collect();
    let elapsed_s = Quantity::of(&elapsed)
        .ok_or_else(|| ReplayError::Unsuitable("no runs; give at least one".into()))?;
    let classes = script.classes.iter().enumerate().map(|(at, (class, recorded))| ClassResult {
        class: *class,
        requests: runs.requests[at],
        bytes: runs.bytes[at],
        latency: Latency::of(&runs.latencies[at]),
        recorded_latency: Latency::of(recorded),
    });
    let target = match layout {
        Layout::Files(place) => place.display().to_string(),
        Layout::Regions(_) => facts.name.clone(),
    };
    Ok(ReplayDocument {
        schema: SCHEMA.to_owned(),
        trace: trace.to_owned(),
        format: format.to_owned(),
        target,
        simulated: machine.facts().simulated,
        speed: settings.speed().is_finite().then(|| settings.speed()),
        direct: script.is_direct(),
        depth: settings.depth,
        cache: settings.cache,
        runs: settings.runs,
        threads: script.threads.len() as u64,
        files: script.files.len() as u64,
        requests: script.requests,
        bytes: script.bytes,
        recorded_s: seconds(script.recorded_ns),
        requests_per_s: elapsed_s.rate_of(script.requests as f64),
        throughput_bytes_per_s: elapsed_s.rate_of(script.bytes as f64),
        elapsed_s,
        runs_s: elapsed,
        classes: classes.collect(),
        skipped: script.skipped,
        resources: runs.resources,
        facts: Some((machine.facts(), facts)),
        warnings: Warning::merged(&runs.warnings)
            .into_iter()
            .map(|(warning, _)| warning.to_string())
            .collect(),
    })
}

fn run<M: Machine>(
    machine: &M,
    script: &Script,
    plans: &[ThreadPlan],
    targets: &[M::Target],
    settings: &Settings,
    runs: &mut Runs,
) -> Result<(), ReplayError> {
    let classes = script.classes.len();
    let mut sources: Vec<ReplaySource<'_>> = script
        .threads
        .iter()
        .zip(plans)
        .map(|(thread, plan)| {
            let depth = settings.depth(script, thread);
            ReplaySource::new(thread, plan.spots.clone(), depth, settings.speed(), classes)
        })
        .collect();
    let mut parts: Vec<Part<'_, M::Target, ReplaySource<'_>>> = sources
        .iter_mut()
        .zip(plans)
        .map(|(source, plan)| Part {
            targets: plan.targets.iter().map(|(target, _)| &targets[*target as usize]).collect(),
            buffering: plan.targets.iter().map(|(_, mode)| *mode).collect(),
            access: plan.access.clone(),
            sources: std::slice::from_mut(source),
            scheduling: Scheduling::default(),
        })
        .collect();
    let usage = machine.run(&mut parts, RunOptions::default())?;
    drop(parts);
    let mut elapsed = 0;
    for part in usage.parts {
        elapsed = elapsed.max(part?.elapsed_ns);
    }
    runs.elapsed_ns.push(elapsed);
    runs.warnings.extend(usage.warnings);
    runs.resources = usage.resources;
    runs.requests.fill(0);
    runs.bytes.fill(0);
    for source in &sources {
        for class in 0..classes {
            runs.latencies[class].merge(&source.latencies[class]);
            runs.requests[class] += source.latencies[class].count();
            runs.bytes[class] += source.bytes[class];
        }
    }
    Ok(())
}
