//! `halfpower tune`.

mod whole;

use crate::arguments::{PointArguments, percent};
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::points::{TURN_RUN_NS, grid, target_of};
use crate::progress::Watch;
use crate::target::{TargetArguments, Where};
use crate::unfinished::{Unfinished, refuse_twin};
use clap::Args;
use host::Host;
use host::facts::Roots;
use host::knobs::journal::{JournalError, state_directory};
use host::knobs::{HostKnob, Session};
use machine::units::{parse_size, parse_time};
use machine::{Alternative, CacheState, Knob, Machine, Nanos, TargetFacts, TargetSpec};
use measure::{Resumable, Runner, Sample, first_run, next_run, sample};
use results::Output;
use results::compare::WORTH_PERCENT;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::Ordering;
use tune::knobs::Scene;
use tune::{LeftOut, Limits, Plan, Scope, Subject, Target, Tuning, Wanted};
use twin::Twin;
use whole::Work;
use workload::{Stop, Workload};

/// Options of `tune`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// Run the trials. Without this option only the plan is shown
    #[arg(long, help_heading = "Tuning")]
    yes: bool,
    /// Try only this knob, with these values instead of the defaults. Required to try a value that
    /// can lose data
    #[arg(long, value_name = "NAME[=VALUE,...]", value_parser = Wanted::from_str, help_heading = "Tuning")]
    knob: Vec<Wanted>,
    /// Stop when a difference is decided, or when any difference is known to be smaller than this
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "5%", help_heading = "Tuning")]
    until: f64,
    /// Stop when this time is up
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "5m", help_heading = "Tuning")]
    budget: u64,
    /// Write the document to this file as JSON
    #[arg(long, value_name = "FILE", help_heading = "Tuning")]
    output: Option<PathBuf>,
    /// Run PostMark instead of requests: a file of its commands up to `run`, without locations
    #[arg(long, value_name = "FILE", conflicts_with = "metadata", help_heading = "Tuning")]
    postmark: Option<PathBuf>,
    /// Create, stat, open, rename, list and delete files instead: options of `metadata` in one word,
    /// '--files 2000 --sync file'
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, help_heading = "Tuning")]
    metadata: Option<String>,
    /// Replay this recorded application instead: a trace of `halfpower record` or of another tool
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["metadata", "postmark"], help_heading = "Tuning")]
    replay: Option<PathBuf>,
    /// Options of `replay` for it, in one word: '--as-fast-as-possible'
    #[arg(
        long,
        value_name = "OPTIONS",
        requires = "replay",
        allow_hyphen_values = true,
        help_heading = "Tuning"
    )]
    replay_options: Option<String>,
    #[command(flatten)]
    workload: PointArguments,
}

pub(crate) fn tune(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    if arguments.workload.verify {
        return Err(Failure::Usage("--verify measures no rate; leave it out".into()));
    }
    crate::concurrent::refuse(&arguments.workload)?;
    crate::points::no_metrics(&arguments.workload)?;
    crate::live::refuse(arguments.workload.live, "tune")?;
    let (place, spec) = target_of(context, &arguments.workload)?;
    let read = arguments.replay.iter().chain(&arguments.postmark);
    let files: Vec<&Path> = spec.places.iter().chain(read).map(PathBuf::as_path).collect();
    let file = output::optional(context, "--output", arguments.output.as_deref(), &files)?;
    if let Some(asked) = Work::asked(arguments, &spec)? {
        let tuning = whole::tuning(context, (place, &spec), arguments, asked)?;
        return show(context, arguments, file.as_ref(), &tuning);
    }
    let unfinished = match &place {
        Where::Host(_) if arguments.yes => {
            Unfinished::begin(context, "tune", &spec.places, arguments.workload.resume)?
        }
        Where::Host(_) if arguments.workload.resume => {
            return Err(Failure::Usage("--resume: only trials are kept; add --yes".into()));
        }
        Where::Host(_) => Unfinished::nowhere(context, "tune"),
        Where::Twin(_) => {
            refuse_twin(arguments.workload.resume)?;
            Unfinished::nowhere(context, "tune")
        }
    };
    let tuning = match place {
        Where::Host(machine) => on_host(context, machine, &spec, arguments, &unfinished),
        Where::Twin(machine) => on_twin(context, *machine, &spec, arguments),
    };
    let shown = tuning.and_then(|tuning| show(context, arguments, file.as_ref(), &tuning));
    unfinished.end(&shown);
    shown
}

fn show(
    context: &Context,
    arguments: &Arguments,
    file: Option<&Output>,
    tuning: &Tuning,
) -> Result<(), Failure> {
    let json = output::json(tuning.to_json())?;
    let shown = match (arguments.workload.json, arguments.yes) {
        (true, _) => context.console.print(&json),
        (false, true) => context.console.print(&report::tune::terminal(
            tuning,
            output::width(),
            output::colour(),
        )),
        (false, false) => {
            context.console.print(&report::tune::plan(tuning, output::width(), output::colour()))
        }
    };
    let saved = file.map_or(Ok(()), |file| output::save(file, &json));
    shown.and(saved)?;
    if crate::interrupt::flag().load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    let all_failed =
        arguments.yes && tuning.tried.iter().all(|one| one.outcome == tune::Outcome::Failed);
    if all_failed && !tuning.tried.is_empty() {
        return Err(Failure::Run("nothing could be tried".into()));
    }
    Ok(())
}

fn workloads(arguments: &Arguments, engines: &[machine::Engine], run_ns: Nanos) -> Vec<Workload> {
    let asked = &arguments.workload;
    let run = match (asked.bytes, asked.runtime) {
        (Some(bytes), _) => Stop::AfterBytes(bytes),
        (None, ns) => Stop::AfterNs(ns.unwrap_or(run_ns)),
    };
    let mut all = grid(asked, engines);
    let cache_is_named =
        std::env::args_os().any(|word| word.to_string_lossy().starts_with("--cache"));
    for workload in &mut all {
        workload.stop = run;
        // With the data already cached, this would measure memory instead of the storage.
        let reads_cached = !workload.buffering.is_direct() && workload.read_percent > 0;
        if reads_cached && !cache_is_named {
            workload.cache = CacheState::Cold;
        }
    }
    all
}

fn check(workloads: &[Workload], facts: &TargetFacts) -> machine::Result<()> {
    workloads.iter().try_for_each(|workload| measure::check(workload, facts))
}

fn target(arguments: &TargetArguments, spec: &TargetSpec) -> Target {
    let mut options = Vec::new();
    if let Some(bytes) = arguments.size.0 {
        options.extend(["--size".to_owned(), bytes.to_string()]);
    }
    for name in &arguments.destroy_data {
        options.extend(["--destroy-data".to_owned(), name.display().to_string()]);
    }
    if arguments.destroy_signature {
        options.push("--destroy-signature".into());
    }
    if let Some(chunk) = arguments.chunk {
        options.extend(["--chunk".to_owned(), chunk.to_string()]);
    }
    Target {
        places: spec.places.iter().map(|place| place.display().to_string()).collect(),
        options,
    }
}

fn limits(arguments: &Arguments, noisy: bool) -> Limits {
    Limits {
        until_percent: arguments.until,
        worth_percent: WORTH_PERCENT.min(arguments.until / 2.0),
        gain_wanted_percent: Some(WORTH_PERCENT.min(arguments.until / 2.0)),
        budget_ns: arguments.budget,
        noisy,
        seed: arguments.workload.target.seed,
    }
}

struct OnHost {
    machine: Resumable<Host>,
    target: host::HostTarget,
    facts: TargetFacts,
    /// `None` if only workload settings are tried.
    session: Option<Session>,
    /// The number of kernel knobs, which is also the index of the stripe's knob.
    of_kernel: usize,
    watch: Watch,
}

impl Subject for OnHost {
    fn now(&self) -> Nanos {
        self.watch.now()
    }

    fn set(&mut self, settings: &[(usize, &str)]) -> machine::Result<()> {
        let (of_kernel, of_stripe): (Vec<_>, Vec<_>) =
            settings.iter().partition(|(knob, _)| *knob < self.of_kernel);
        if let Some(present) = self.facts.chunk_bytes {
            let chunk = match of_stripe.first() {
                Some((_, value)) => {
                    parse_size(value).map_err(|why| refused(tune::STRIPE_UNIT, why))?
                }
                None => present,
            };
            if self.machine.target_facts(&self.target).chunk_bytes != Some(chunk) {
                let members: Vec<u32> = (0..self.facts.members).collect();
                self.machine.restripe(&mut self.target, &members, chunk)?;
            }
        }
        let scope: String =
            settings.iter().map(|(knob, value)| format!(" {knob}={value}")).collect();
        self.machine.set_scope(scope);
        self.session.as_mut().map_or(Ok(()), |session| session.set(&of_kernel))
    }

    fn run(&mut self, workload: &Workload, before: &[Sample]) -> machine::Result<Sample> {
        let options = next_run(&self.machine, &self.facts, workload, before);
        sample(&self.machine, &mut self.target, workload, options)
    }

    fn on_block(&mut self, what: &str, passed_ns: Nanos) {
        self.watch.at(passed_ns, what);
    }
}

fn refused(knob: &str, why: String) -> machine::Error {
    machine::Error::refused(format!("--knob {knob}"), why, "give a size such as 64k")
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Io { .. } => Failure::Run(error.to_string()),
            error => Failure::Usage(error.to_string()),
        }
    }
}

fn exist(spec: &TargetSpec) -> Result<(), Failure> {
    let Some(missing) = spec.places.iter().find(|place| !place.exists()) else { return Ok(()) };
    let hint = "name a directory, a file, a block device or twin:NAME";
    Err(Failure::Usage(format!("{}: no such file or directory; {hint}", missing.display())))
}

fn on_host(
    context: &Context,
    machine: Host,
    spec: &TargetSpec,
    arguments: &Arguments,
    unfinished: &Unfinished,
) -> Result<Tuning, Failure> {
    exist(spec)?;
    let roots = Roots::default();
    let paths: Vec<&Path> = spec.places.iter().map(PathBuf::as_path).collect();
    let found = host::knobs::find(&roots, &paths)?;
    let engines = machine.capabilities().engines;
    let limits = limits(arguments, true);
    let target_words = target(&arguments.workload.target, spec);
    let foreseen = host::facts::foreseen(spec, &roots)?;
    let asked = workloads(arguments, &engines, TURN_RUN_NS);
    check(&asked, &foreseen)?;
    let writes = asked.iter().any(Workload::writes);
    // Refused before a test file is filled.
    let dry = plan(asked, &found, arguments, Scene { facts: &foreseen, engines: &engines })?;
    if !arguments.yes {
        return Ok(Tuning::planned(&dry, &target_words, limits, crate::context::program()));
    }
    let began_unix_s = unfinished.began_unix_s().unwrap_or_else(crate::history::now_unix_s);
    let machine = unfinished.machine(machine);
    context.writes.plan_for(writes, arguments.budget);
    let mut of_target = Vec::new();
    let runner = Runner::open_checked(&machine, std::slice::from_ref(spec), |facts| {
        of_target = workloads(arguments, &engines, TURN_RUN_NS);
        check(&of_target, &facts[0])?;
        Ok(of_target.iter().map(|workload| vec![workload.buffers()]).collect())
    })?;
    let target = runner.into_targets().remove(0);
    let (facts, workloads) = (machine.target_facts(&target), of_target);
    let scene = Scene { facts: &facts, engines: &engines };
    let plan = plan(workloads, &found, arguments, Scene { facts: &facts, engines: &engines })?;
    let tried: Vec<(HostKnob, Vec<String>)> = found
        .into_iter()
        .enumerate()
        .map(|(number, knob)| (knob, plan.values_of(number)))
        .collect();
    let of_kernel = tried.len();
    let mut reported = Vec::new();
    let session = if tried.iter().all(|(_, values)| values.is_empty()) {
        None
    } else {
        let directory = state_directory().ok_or(JournalError::NoPlace)?;
        Some(Session::begin(&directory, &roots, &tried, &mut reported)?)
    };
    let mut subject = OnHost {
        machine,
        target,
        facts: facts.clone(),
        session,
        of_kernel,
        watch: unfinished.watch(context, arguments.budget),
    };
    let tuning =
        tune::tune(&mut subject, &plan, &scene, &target_words, limits, crate::context::program());
    subject.watch.end();
    // Restore before printing, so that a reader of the result finds the original settings.
    let not_put_back = subject.session.map(Session::end).unwrap_or_default();
    reported.iter().chain(&not_put_back).for_each(|sentence| context.console.tell(sentence));
    let mut tuning = tuning?;
    tuning.warnings.extend(reported.into_iter().chain(not_put_back));
    tuning.warnings.extend(unfinished.warnings());
    crate::history::keep_tuning(context, &tuning, &subject.machine.facts(), &facts, began_unix_s);
    Ok(tuning)
}

fn plan(
    workloads: Vec<Workload>,
    found: &[HostKnob],
    arguments: &Arguments,
    scene: Scene<'_>,
) -> Result<Plan, Failure> {
    let facts = scene.facts;
    let knobs: Vec<Knob> =
        found.iter().map(|one| one.knob.clone()).chain(tune::stripe_unit(facts)).collect();
    let value = |number: usize, value: &str| match found.get(number) {
        Some(knob) => knob.alternative(value),
        None => tune::stripe_unit_of(facts, value),
    };
    let scope = Scope { knobs: &knobs, value: &value, scene };
    let plan = Plan::new(workloads, &scope, &arguments.knob).map_err(Failure::Usage)?;
    not_empty(only_root(plan, found.len()), arguments)
}

/// The first `of_kernel` knobs are the kernel's.
fn only_root(mut plan: Plan, of_kernel: usize) -> Plan {
    if !host::knobs::may_set() {
        let (kept, other): (Vec<_>, Vec<_>) = plan.trials.into_iter().partition(
            |trial| !matches!(trial.change, tune::Change::Machine(knob) if knob < of_kernel),
        );
        plan.trials = kept;
        for trial in other {
            let why = format!("{}: only root can set it", trial.to.value);
            plan.left_out.push(LeftOut { knob: trial.knob, of: trial.of, why });
        }
    }
    plan
}

fn not_empty(plan: Plan, arguments: &Arguments) -> Result<Plan, Failure> {
    if plan.trials.is_empty() && arguments.yes {
        let why: Vec<String> =
            plan.left_out.iter().map(|one| format!("{}: {}", one.knob, one.why)).collect();
        return Err(Failure::Usage(format!(
            "nothing to try ({}); name another knob or workload",
            why.join("; ")
        )));
    }
    Ok(plan)
}

struct OnTwin {
    spec: TargetSpec,
    knobs: Vec<Knob>,
    wanted: String,
    watch: Watch,
}

impl Subject for OnTwin {
    fn now(&self) -> Nanos {
        self.watch.now()
    }

    fn set(&mut self, settings: &[(usize, &str)]) -> machine::Result<()> {
        self.wanted = settings
            .iter()
            .map(|(knob, value)| format!(",{}={value}", self.knobs[*knob].name))
            .collect();
        Ok(())
    }

    fn run(&mut self, workload: &Workload, _before: &[Sample]) -> machine::Result<Sample> {
        if crate::interrupt::flag().load(Ordering::Relaxed) {
            return Err(machine::Error::Interrupted);
        }
        // A used machine has data in its caches; each run starts with a new one.
        let name = machine::with_settings(&self.spec.places[0].to_string_lossy(), &self.wanted);
        let machine = Twin::from_name(&name)?;
        let spec = TargetSpec { places: vec![name.into()], ..self.spec.clone() };
        let mut target = machine.open(&spec)?;
        first_run(&machine, &mut target, workload)
    }

    fn on_block(&mut self, what: &str, passed_ns: Nanos) {
        self.watch.at(passed_ns, what);
    }
}

fn on_twin(
    context: &Context,
    machine: Twin,
    spec: &TargetSpec,
    arguments: &Arguments,
) -> Result<Tuning, Failure> {
    let engines = machine.capabilities().engines;
    let knobs = twin::knobs::knobs(machine.setup());
    let target_words = target(&arguments.workload.target, spec);
    let facts = machine.target_facts(&machine.open(spec)?);
    // Runs repeat exactly, so they are as long as those of `run`.
    let workloads = workloads(arguments, &engines, crate::points::RUN_NS);
    check(&workloads, &facts)?;
    let value = |number: usize, value: &str| -> Alternative {
        twin::knobs::alternative(&knobs[number].name, value)
    };
    let scope =
        Scope { knobs: &knobs, value: &value, scene: Scene { facts: &facts, engines: &engines } };
    let plan = not_empty(
        Plan::new(workloads, &scope, &arguments.knob).map_err(Failure::Usage)?,
        arguments,
    )?;
    let limits = limits(arguments, false);
    if !arguments.yes {
        return Ok(Tuning::planned(&plan, &target_words, limits, crate::context::program()));
    }
    let scene = Scene { facts: &facts, engines: &engines };
    let began_unix_s = crate::history::now_unix_s();
    let watch = Watch::new(context.console.time_bar(arguments.budget));
    let mut subject =
        OnTwin { spec: spec.clone(), knobs: knobs.clone(), wanted: String::new(), watch };
    let tuning =
        tune::tune(&mut subject, &plan, &scene, &target_words, limits, crate::context::program());
    subject.watch.end();
    let tuning = tuning?;
    crate::history::keep_tuning(context, &tuning, &machine.facts(), &facts, began_unix_s);
    Ok(tuning)
}
