//! A later process takes over an interrupted measurement's finished runs. The clock continues, so a
//! budget counts both processes' time, and decisions by time are the same.

use crate::sample::Options;
use machine::units::show_size;
use machine::{
    Access, Buffers, Capabilities, ClientRuns, Error, LayerKind, Machine, MachineFacts, MemoryUse,
    Nanos, NullBackend, Part, ProcessorTimes, RequestSource, Result, RunLog, RunOptions, RunUsage,
    TargetFacts, TargetKind, TargetSpec, Wear,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use workload::Workload;

#[derive(Serialize)]
struct Description<'a> {
    target: &'a str,
    size_bytes: u64,
    workload: &'a Workload,
    count_instructions: bool,
    trace: bool,
    until_deadline: bool,
}

pub(crate) fn description(facts: &TargetFacts, workload: &Workload, options: Options) -> String {
    let Options { count_instructions, trace, until_deadline, .. } = options;
    let (target, size_bytes) = (facts.name.as_str(), facts.size_bytes);
    let all =
        Description { target, size_bytes, workload, count_instructions, trace, until_deadline };
    serde_json::to_string(&all).unwrap_or_default()
}

/// The machine and the targets when opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    pub machine: MachineFacts,
    pub targets: Vec<TargetFacts>,
    /// Of the user's files. A name may lead to another file later.
    #[serde(default)]
    pub file_numbers: Vec<Option<u64>>,
}

fn users_file(facts: &TargetFacts) -> Option<u64> {
    facts.file_number.filter(|_| facts.kind == TargetKind::File)
}

/// Settings may change in between; the parts of a device may not.
fn parts(facts: &TargetFacts) -> Vec<(LayerKind, &str, Option<&PathBuf>)> {
    let layers = facts.layers.iter();
    layers
        .map(|layer| (layer.kind, layer.name.as_str(), layer.facts.backing_file.as_ref()))
        .collect()
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunLine {
    run: String,
    /// On the measurement's clock.
    ended_ns: Nanos,
    result: Box<RawValue>,
}

struct Kept {
    ended_ns: Nanos,
    result: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    pub version: String,
    pub settings: Vec<String>,
    pub unix_s: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalLine {
    Begun(Begun),
    Opened(Box<Opened>),
    Run(RunLine),
}

pub type WriteLine = Box<dyn FnMut(&JournalLine) + Send>;

/// Runs of earlier processes, and new ones.
pub struct Journal {
    state: Mutex<State>,
    began: Instant,
}

struct State {
    kept: HashMap<String, VecDeque<Kept>>,
    pending: usize,
    shift_ns: Nanos,
    before: Option<Opened>,
    opened: Option<Opened>,
    write: WriteLine,
    written: usize,
}

impl Journal {
    pub fn new(before: Option<Opened>, runs: Vec<RunLine>, write: WriteLine) -> Journal {
        let pending = runs.len();
        let mut kept: HashMap<String, VecDeque<Kept>> = HashMap::new();
        for RunLine { run, ended_ns, result } in runs {
            let one = Kept { ended_ns, result: result.get().to_owned() };
            kept.entry(run).or_default().push_back(one);
        }
        let state = State { kept, pending, shift_ns: 0, before, opened: None, write, written: 0 };
        Journal { state: Mutex::new(state), began: Instant::now() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Over all processes.
    pub fn now(&self) -> Nanos {
        self.began.elapsed().as_nanos() as Nanos + self.shift_ns()
    }

    fn shift_ns(&self) -> Nanos {
        self.state().shift_ns
    }

    /// Runs of earlier processes not recalled yet.
    pub fn pending(&self) -> usize {
        self.state().pending
    }

    pub fn written(&self) -> usize {
        self.state().written
    }

    /// Sentences about changes since the earlier process.
    pub fn changes(&self) -> Vec<String> {
        let state = self.state();
        let (Some(before), Some(now)) = (&state.before, &state.opened) else { return Vec::new() };
        let named = |facts: &MachineFacts| {
            let fixed = [
                ("system", facts.system.clone()),
                ("processors", facts.processors.to_string()),
                ("machine", facts.name.clone()),
            ];
            let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
            fixed.into_iter().chain(facts.settings.clone()).collect::<BTreeMap<_, _>>()
        };
        let (before, now) = (named(&before.machine), named(&now.machine));
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let value = |all: &BTreeMap<String, String>, name: &String| {
            all.get(name).map_or_else(|| "unknown".to_owned(), Clone::clone)
        };
        names
            .into_iter()
            .filter(|name| before.get(*name) != now.get(*name))
            .map(|name| {
                format!(
                    "{name} is {} now and was {} when the earlier runs were made",
                    value(&now, name),
                    value(&before, name)
                )
            })
            .collect()
    }

    /// Keeps the earlier process's sizes, for the same offsets.
    fn sized(&self, specs: &[TargetSpec]) -> Vec<TargetSpec> {
        let state = self.state();
        let before = state.before.as_ref().map_or(&[][..], |before| &before.targets);
        let mut specs = specs.to_vec();
        if before.len() == specs.len() {
            for (spec, facts) in specs.iter_mut().zip(before) {
                let stripe_of_new = facts.kind == TargetKind::Stripe
                    && spec.raid5.is_none()
                    && spec.destroy.is_empty();
                let chosen = facts.kind == TargetKind::TestFile || stripe_of_new;
                if chosen && spec.size.is_none() {
                    spec.size = Some(facts.size_bytes);
                }
            }
        }
        specs
    }

    fn check_same(&self, now: &[TargetFacts]) -> Result<()> {
        let state = self.state();
        // Targets that are opened later are parts of the first.
        let Some(before) = state.before.as_ref().filter(|_| state.opened.is_none()) else {
            return Ok(());
        };
        let refused = |what: String, why: String| {
            Err(Error::refused(what, why, "leave --resume out to start over"))
        };
        if before.targets.len() != now.len() {
            let why = format!("the interrupted command had {} targets", before.targets.len());
            return refused("--resume".into(), why);
        }
        let numbers = before.file_numbers.iter().copied().chain(std::iter::repeat(None));
        for ((before, number), now) in before.targets.iter().zip(numbers).zip(now) {
            let another = number.is_some_and(|number| users_file(now) != Some(number))
                || (before.kind, before.direct_align_bytes, before.block_bytes)
                    != (now.kind, now.direct_align_bytes, now.block_bytes)
                || now.kind == TargetKind::Device && parts(before) != parts(now);
            if before.devices != now.devices {
                let why = format!(
                    "it is on {} now, and the interrupted command measured {}",
                    now.devices.join(", "),
                    before.devices.join(", ")
                );
                return refused(format!("--resume: {}", now.name), why);
            }
            if before.size_bytes != now.size_bytes {
                let why = format!(
                    "it has {} now, and had {} when the command was interrupted",
                    show_size(now.size_bytes),
                    show_size(before.size_bytes)
                );
                return refused(format!("--resume: {}", now.name), why);
            }
            if another {
                let why = "another file or device has this name now".to_owned();
                return refused(format!("--resume: {}", now.name), why);
            }
        }
        Ok(())
    }

    fn note_opened(&self, machine: MachineFacts, targets: Vec<TargetFacts>) {
        let mut state = self.state();
        // Targets that a study opens later are parts of the first.
        if state.opened.is_some() {
            return;
        }
        let file_numbers = targets.iter().map(users_file).collect();
        let opened = Opened { machine, targets, file_numbers };
        (state.write)(&JournalLine::Opened(Box::new(opened.clone())));
        state.opened = Some(opened);
    }

    fn recall(&self, run: &str) -> Option<String> {
        let mut state = self.state();
        let Kept { ended_ns, result } = state.kept.get_mut(run)?.pop_front()?;
        state.pending -= 1;
        let now = self.began.elapsed().as_nanos() as Nanos + state.shift_ns;
        state.shift_ns += ended_ns.saturating_sub(now);
        Some(result)
    }

    fn keep(&self, run: String, result: &str) {
        let Ok(result) = RawValue::from_string(result.to_owned()) else { return };
        let line = RunLine { run, ended_ns: self.now(), result };
        let mut state = self.state();
        state.written += 1;
        (state.write)(&JournalLine::Run(line));
    }
}

/// A machine that keeps finished runs in a [`Journal`].
pub struct Resumable<M> {
    machine: M,
    journal: Arc<Journal>,
    /// Distinguishes runs with the same description: settings and stripe.
    scope: RefCell<[String; 2]>,
    /// Due before the next run, unless that is a kept one.
    owed_ns: Cell<Nanos>,
}

impl<M> Resumable<M> {
    pub fn new(machine: M, journal: Arc<Journal>) -> Resumable<M> {
        Resumable { machine, journal, scope: RefCell::default(), owed_ns: Cell::new(0) }
    }

    pub fn inner(&self) -> &M {
        &self.machine
    }

    pub fn into_inner(self) -> M {
        self.machine
    }

    pub fn set_scope(&self, settings: String) {
        self.scope.borrow_mut()[0] = settings;
    }

    fn scoped(&self, run: &str) -> String {
        let [settings, stripe] = &*self.scope.borrow();
        format!("{run}{settings}{stripe}")
    }
}

impl<M: Machine> RunLog for Resumable<M> {
    fn recall(&self, run: &str) -> Option<String> {
        let kept = self.journal.recall(&self.scoped(run))?;
        self.owed_ns.set(0);
        Some(kept)
    }

    fn keep(&self, run: &str, result: &str) {
        self.journal.keep(self.scoped(run), result);
    }
}

impl<M: Machine> Machine for Resumable<M> {
    type Target = M::Target;

    fn facts(&self) -> MachineFacts {
        self.machine.facts()
    }

    fn capabilities(&self) -> Capabilities {
        self.machine.capabilities()
    }

    fn now(&self) -> Nanos {
        self.machine.now() + self.journal.shift_ns()
    }

    fn add_own_processes(&self, processes: &[u32]) {
        self.machine.add_own_processes(processes);
    }

    fn pause(&self, for_ns: Nanos) {
        if self.journal.pending() > 0 {
            self.owed_ns.set(self.owed_ns.get().max(for_ns));
        } else {
            self.machine.pause(for_ns);
        }
    }

    fn open(&self, spec: &TargetSpec) -> Result<M::Target> {
        self.open_checked(spec, |_| Ok(()))
    }

    fn open_all(
        &self,
        specs: &[TargetSpec],
        check: &mut dyn FnMut(&[TargetFacts]) -> Result<()>,
    ) -> Result<Vec<M::Target>> {
        let mut both = |facts: &[TargetFacts]| {
            self.journal.check_same(facts)?;
            check(facts)
        };
        let targets = self.machine.open_all(&self.journal.sized(specs), &mut both)?;
        let facts = targets.iter().map(|target| self.machine.target_facts(target)).collect();
        self.journal.note_opened(self.machine.facts(), facts);
        Ok(targets)
    }

    fn check_memory(&self, streams: &[Buffers]) -> Result<()> {
        self.machine.check_memory(streams)
    }

    fn target_facts(&self, target: &M::Target) -> TargetFacts {
        self.machine.target_facts(target)
    }

    fn run<S: RequestSource>(
        &self,
        parts: &mut [Part<'_, M::Target, S>],
        options: RunOptions,
    ) -> Result<RunUsage> {
        self.machine.pause(self.owed_ns.take());
        let mut usage = self.machine.run(parts, options)?;
        usage.since_start_ns += self.journal.shift_ns();
        Ok(usage)
    }

    fn measure_ceiling<A: RequestSource>(
        &self,
        target: &M::Target,
        access: &Access,
        backend: NullBackend,
        sources: &mut [A],
    ) -> Result<bool> {
        self.machine.measure_ceiling(target, access, backend, sources)
    }

    fn below(&self, target: &M::Target) -> Option<machine::Below> {
        self.machine.below(target)
    }

    fn restripe(&self, target: &mut M::Target, members: &[u32], chunk: u64) -> Result<()> {
        self.scope.borrow_mut()[1] = format!("{members:?} {chunk}");
        self.machine.restripe(target, members, chunk)
    }

    fn keep(&self, target: &mut M::Target) {
        self.machine.keep(target);
    }

    fn may_write(&self) -> u64 {
        self.machine.may_write()
    }

    fn wrote_before(&self, bytes: u64) {
        self.machine.wrote_before(bytes);
    }

    fn discard(&self, target: &M::Target) -> Result<()> {
        self.machine.discard(target)
    }

    fn celsius(&self, target: &M::Target) -> Option<f64> {
        self.machine.celsius(target)
    }

    fn wear(&self, target: &M::Target) -> Vec<Wear> {
        self.machine.wear(target)
    }

    fn run_log(&self) -> Option<&dyn RunLog> {
        Some(self)
    }

    fn clients(&self) -> u32 {
        self.machine.clients()
    }

    fn one_file(&self) -> std::result::Result<(), String> {
        self.machine.one_file()
    }

    fn client_runs(&self) -> Option<&dyn ClientRuns> {
        self.machine.client_runs()
    }

    fn processors(&self) -> Vec<ProcessorTimes> {
        self.machine.processors()
    }

    fn memory(&self, for_ns: Nanos) -> Result<Vec<MemoryUse>> {
        self.machine.memory(for_ns)
    }
}
