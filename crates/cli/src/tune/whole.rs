//! Workloads of `tune` with their own requests.

use super::{Arguments, limits, not_empty, only_root};
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::Watch;
use crate::replay::ReplayJob;
use crate::run_words::workload_options;
use crate::small_files::SmallFiles;
use crate::target::{Where, is_twin};
use crate::unfinished::{Unfinished, refuse_twin};
use application::replay::{Class, ReplayDocument};
use host::Host;
use host::facts::Roots;
use host::files::directory_facts;
use host::knobs::journal::{JournalError, state_directory};
use host::knobs::{HostKnob, Session};
use machine::{Alternative, Knob, Machine, Nanos, Result, TargetFacts, TargetSpec, with_settings};
use measure::Sample;
use results::compare::{Measure, RUN_MEASURES};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use tune::knobs::Scene;
use tune::{Plan, Scope, Subject, Target, Tuning, Whole};
use twin::Twin;
use workload::Workload;

type Values = [f64; RUN_MEASURES.len()];

const OF_A_TARGET: [&str; 6] =
    ["--destroy-data", "--destroy-signature", "--seed", "--size", "--chunk", "--raid"];

pub(super) enum Work {
    SmallFiles(SmallFiles),
    Replay(Box<ReplayJob>, Class),
}

impl Work {
    pub(super) fn asked(
        arguments: &Arguments,
        spec: &TargetSpec,
    ) -> std::result::Result<Option<(Work, Whole)>, Failure> {
        if let Some(trace) = &arguments.replay {
            return Work::replay(arguments, trace).map(Some);
        }
        let asked = SmallFiles::of(arguments.postmark.as_deref(), arguments.metadata.as_deref())?;
        let Some(asked) = asked else { return Ok(None) };
        if let Some(option) = workload_options::<Arguments>().first() {
            let why = "it has no such requests; leave it out";
            return Err(Failure::Usage(format!("{option}: {}: {why}", asked.name())));
        }
        let [directory] = &spec.places[..] else {
            return Err(Failure::Usage(format!(
                "{}: name one directory or simulated machine",
                asked.name()
            )));
        };
        asked.check(directory)?;
        let options = match (&arguments.postmark, &arguments.metadata) {
            (Some(file), _) => format!("--postmark {}", quoted(&file.display().to_string())),
            (None, options) => format!("--metadata {}", quoted(options.as_deref().unwrap_or(""))),
        };
        let whole = Whole::of_many_files(asked.name(), options);
        Ok(Some((Work::SmallFiles(asked), whole)))
    }

    fn replay(arguments: &Arguments, trace: &Path) -> std::result::Result<(Work, Whole), Failure> {
        let options = workload_options::<Arguments>();
        let of_target =
            |option: &str| OF_A_TARGET.iter().any(|one| option.split('=').next() == Some(*one));
        if let Some(option) = options.iter().find(|option| !of_target(option)) {
            let why = "a replay asks what was recorded; its own options belong in --replay-options";
            return Err(Failure::Usage(format!("{option}: {why}")));
        }
        let own = arguments.replay_options.as_deref().unwrap_or("");
        let target = &arguments.workload.target;
        let job = ReplayJob::on_target(target, trace, ("--replay-options", own))?;
        let class = job.script.slowest();
        let whole = Whole {
            name: job.trace.clone(),
            options: format!("--replay {}", quoted(&trace.display().to_string())),
            arm_options: Some(own.to_owned()),
            like: job.script.like(),
            many_files: false,
            rate: Measure::Iops,
            latency_of: Some(class.to_string()),
        };
        Ok((Work::Replay(Box::new(job), class), whole))
    }

    fn run(&self, places: &[PathBuf]) -> Result<Values> {
        if crate::interrupt::flag().load(Ordering::Relaxed) {
            return Err(machine::Error::Interrupted);
        }
        match self {
            Work::SmallFiles(asked) => {
                let rate = results::compare::speed(&asked.run(&places[0])?);
                Ok(std::array::from_fn(|place| if place == 0 { rate } else { f64::NAN }))
            }
            Work::Replay(job, class) => {
                let targets: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
                let document = if is_twin(targets[0]) {
                    let machine = Twin::from_name(&targets[0].to_string_lossy())?;
                    job.run_on(&machine, &targets, &mut |_| {})?
                } else {
                    let machine = Host::new(crate::interrupt::flag());
                    job.run_on(&machine, &targets, &mut |_| {})?
                };
                Ok(values(&document, *class))
            }
        }
    }

    fn facts(&self, spec: &TargetSpec, roots: &Roots) -> Result<TargetFacts> {
        match self {
            Work::SmallFiles(_) => directory_facts(&spec.places),
            Work::Replay(..) => host::facts::foreseen(spec, roots),
        }
    }
}

fn values(document: &ReplayDocument, class: Class) -> Values {
    let of_class = document.classes.iter().find(|one| one.class == class);
    let latency = of_class.and_then(|one| one.latency);
    RUN_MEASURES.map(|measure| {
        let ns = match measure {
            Measure::Throughput => return document.requests as f64 / document.elapsed_s.mean,
            Measure::LatencyP50 => latency.map(|latency| latency.p50_ns),
            Measure::LatencyP99 => latency.map(|latency| latency.p99_ns),
            _ => None,
        };
        ns.map_or(f64::NAN, |ns| ns as f64)
    })
}

fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |word| word.into_owned())
}

pub(super) fn tuning(
    context: &Context,
    (place, spec): (Where, &TargetSpec),
    arguments: &Arguments,
    (work, whole): (Work, Whole),
) -> std::result::Result<Tuning, Failure> {
    refuse_twin(arguments.workload.resume)?;
    let words = super::target(&arguments.workload.target, spec);
    match place {
        Where::Twin(twin) => on_twin(context, &twin, spec, arguments, (work, whole, words)),
        Where::Host(host) => on_host(context, &host, spec, arguments, (work, whole, words)),
    }
}

struct OnTwin {
    work: Work,
    place: PathBuf,
    knobs: Vec<Knob>,
    wanted: String,
    watch: Watch,
}

impl Subject for OnTwin {
    fn now(&self) -> Nanos {
        self.watch.now()
    }

    fn set(&mut self, settings: &[(usize, &str)]) -> Result<()> {
        let each = settings.iter().map(|(knob, value)| (&self.knobs[*knob].name, value));
        self.wanted = each.map(|(name, value)| format!(",{name}={value}")).collect();
        Ok(())
    }

    fn run(&mut self, _workload: &Workload, _before: &[Sample]) -> Result<Sample> {
        Err(machine::Error::Unsupported("only work with requests of its own runs here".into()))
    }

    fn run_whole(&mut self) -> Result<Values> {
        let name = with_settings(&self.place.to_string_lossy(), &self.wanted);
        self.work.run(&[PathBuf::from(name)])
    }

    fn on_block(&mut self, what: &str, passed_ns: Nanos) {
        self.watch.at(passed_ns, what);
    }
}

type What = (Work, Whole, Target);

fn on_twin(
    context: &Context,
    machine: &Twin,
    spec: &TargetSpec,
    arguments: &Arguments,
    (work, whole, words): What,
) -> std::result::Result<Tuning, Failure> {
    let knobs = twin::knobs::knobs(machine.setup());
    let facts = machine.target_facts(&machine.volume());
    let engines = machine.capabilities().engines;
    let value = |number: usize, value: &str| twin::knobs::alternative(&knobs[number].name, value);
    let scene = || Scene { facts: &facts, engines: &engines };
    let scope = Scope { knobs: &knobs, value: &value, scene: scene() };
    let plan = Plan::of_whole(whole, &scope, &arguments.knob).map_err(Failure::Usage)?;
    let plan = not_empty(plan, arguments)?;
    let limits = limits(arguments, false);
    if !arguments.yes {
        return Ok(Tuning::planned(&plan, &words, limits, crate::context::program()));
    }
    let began_unix_s = crate::history::now_unix_s();
    let watch = Watch::new(context.console.time_bar(arguments.budget));
    let (place, knobs) = (spec.places[0].clone(), knobs.clone());
    let mut subject = OnTwin { work, place, knobs, wanted: String::new(), watch };
    let tuning =
        tune::tune(&mut subject, &plan, &scene(), &words, limits, crate::context::program());
    subject.watch.end();
    let tuning = tuning?;
    crate::history::keep_tuning(context, &tuning, &machine.facts(), &facts, began_unix_s);
    Ok(tuning)
}

struct OnHost {
    work: Work,
    places: Vec<PathBuf>,
    session: Session,
    watch: Watch,
}

impl Subject for OnHost {
    fn now(&self) -> Nanos {
        self.watch.now()
    }

    fn set(&mut self, settings: &[(usize, &str)]) -> Result<()> {
        self.session.set(settings)
    }

    fn run(&mut self, _workload: &Workload, _before: &[Sample]) -> Result<Sample> {
        Err(machine::Error::Unsupported("only work with requests of its own runs here".into()))
    }

    fn run_whole(&mut self) -> Result<Values> {
        self.work.run(&self.places)
    }

    fn on_block(&mut self, what: &str, passed_ns: Nanos) {
        self.watch.at(passed_ns, what);
    }
}

fn on_host(
    context: &Context,
    machine: &Host,
    spec: &TargetSpec,
    arguments: &Arguments,
    (work, whole, words): What,
) -> std::result::Result<Tuning, Failure> {
    super::exist(spec)?;
    let roots = Roots::default();
    let places: Vec<&Path> = spec.places.iter().map(PathBuf::as_path).collect();
    let found = host::knobs::find(&roots, &places)?;
    let facts = work.facts(spec, &roots)?;
    let engines = machine.capabilities().engines;
    let knobs: Vec<Knob> = found.iter().map(|one| one.knob.clone()).collect();
    let value = |number: usize, value: &str| -> Alternative { found[number].alternative(value) };
    let scene = || Scene { facts: &facts, engines: &engines };
    let scope = Scope { knobs: &knobs, value: &value, scene: scene() };
    let plan = Plan::of_whole(whole, &scope, &arguments.knob).map_err(Failure::Usage)?;
    let plan = not_empty(only_root(plan, found.len()), arguments)?;
    let limits = limits(arguments, true);
    if !arguments.yes {
        return Ok(Tuning::planned(&plan, &words, limits, crate::context::program()));
    }
    if let Work::Replay(job, _) = &work {
        // Refused before a setting is changed.
        job.prepare(machine, &places)?;
    }
    let began_unix_s = crate::history::now_unix_s();
    let tried: Vec<(HostKnob, Vec<String>)> = found
        .into_iter()
        .enumerate()
        .map(|(number, knob)| (knob, plan.values_of(number)))
        .collect();
    let mut reported = Vec::new();
    let journal = state_directory().ok_or(JournalError::NoPlace)?;
    let session = Session::begin(&journal, &roots, &tried, &mut reported)?;
    let watch = Unfinished::nowhere(context, "tune").watch(context, arguments.budget);
    let mut subject = OnHost { work, places: spec.places.clone(), session, watch };
    let tuning =
        tune::tune(&mut subject, &plan, &scene(), &words, limits, crate::context::program());
    subject.watch.end();
    // Restore before printing, so that a reader of the result finds the original settings.
    let not_put_back = subject.session.end();
    reported.iter().chain(&not_put_back).for_each(|sentence| context.console.tell(sentence));
    let mut tuning = tuning?;
    tuning.warnings.extend(reported.into_iter().chain(not_put_back));
    crate::history::keep_tuning(context, &tuning, &machine.facts(), &facts, began_unix_s);
    Ok(tuning)
}
