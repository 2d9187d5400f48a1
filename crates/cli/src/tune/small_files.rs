//! PostMark and operations on many files as the workload of `tune`.

use super::{Arguments, limits, not_empty, only_root};
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::progress::Watch;
use crate::small_files::SmallFiles;
use crate::target::Where;
use crate::unfinished::{Unfinished, refuse_twin};
use host::facts::Roots;
use host::files::directory_facts;
use host::knobs::journal::{JournalError, state_directory};
use host::knobs::{HostKnob, Session};
use machine::{Alternative, Knob, Machine, Nanos, Result, TargetFacts, TargetSpec, with_settings};
use measure::Sample;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use tune::knobs::Scene;
use tune::{Plan, Scope, Subject, Target, Tuning, Whole};
use twin::Twin;
use workload::Workload;

/// The workload of `--postmark` or `--metadata`, with that option; `None` without either.
pub(super) fn asked(
    arguments: &Arguments,
) -> std::result::Result<Option<(SmallFiles, Whole)>, Failure> {
    let asked = SmallFiles::of(arguments.postmark.as_deref(), arguments.metadata.as_deref())?;
    let Some(asked) = asked else { return Ok(None) };
    if let Some(option) = crate::compare::workload_option() {
        let why = "it has no such requests; leave it out";
        return Err(Failure::Usage(format!("{option}: {}: {why}", asked.name())));
    }
    let options = match (&arguments.postmark, &arguments.metadata) {
        (Some(file), _) => format!("--postmark {}", quoted(&file.display().to_string())),
        (None, options) => format!("--metadata {}", quoted(options.as_deref().unwrap_or(""))),
    };
    let whole = Whole { name: asked.name().into(), options };
    Ok(Some((asked, whole)))
}

fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |word| word.into_owned())
}

pub(super) fn tuning(
    context: &Context,
    (place, spec): (Where, &TargetSpec),
    arguments: &Arguments,
    (asked, whole): (SmallFiles, Whole),
) -> std::result::Result<Tuning, Failure> {
    let [directory] = &spec.places[..] else {
        return Err(Failure::Usage(format!(
            "{}: name one directory or simulated machine",
            asked.name()
        )));
    };
    asked.check(directory)?;
    refuse_twin(arguments.workload.resume)?;
    let words = Target { places: vec![directory.display().to_string()], options: Vec::new() };
    match place {
        Where::Twin(twin) => on_twin(context, &twin, directory, arguments, (asked, whole, words)),
        Where::Host(host) => on_host(context, &host, directory, arguments, (asked, whole, words)),
    }
}

/// A simulated machine, new for each run.
struct OnTwin {
    asked: SmallFiles,
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
        Err(machine::Error::Unsupported("only whole benchmarks run here".into()))
    }

    fn run_whole(&mut self) -> Result<f64> {
        if crate::interrupt::flag().load(Ordering::Relaxed) {
            return Err(machine::Error::Interrupted);
        }
        let name = with_settings(&self.place.to_string_lossy(), &self.wanted);
        Ok(results::compare::speed(&self.asked.run(Path::new(&name))?))
    }

    fn on_block(&mut self, what: &str, passed_ns: Nanos) {
        self.watch.at(passed_ns, what);
    }
}

type What = (SmallFiles, Whole, Target);

fn on_twin(
    context: &Context,
    machine: &Twin,
    place: &Path,
    arguments: &Arguments,
    (asked, whole, words): What,
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
    let watch = Watch::new(arguments.budget);
    let (place, knobs) = (place.to_owned(), knobs.clone());
    let mut subject = OnTwin { asked, place, knobs, wanted: String::new(), watch };
    let tuning =
        tune::tune(&mut subject, &plan, &scene(), &words, limits, crate::context::program());
    subject.watch.end();
    let tuning = tuning?;
    crate::history::keep_tuning(context, &tuning, &machine.facts(), &facts, began_unix_s);
    Ok(tuning)
}

/// A directory of this computer, whose knobs are set through the journal.
struct OnHost {
    asked: SmallFiles,
    place: PathBuf,
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
        Err(machine::Error::Unsupported("only whole benchmarks run here".into()))
    }

    fn run_whole(&mut self) -> Result<f64> {
        Ok(results::compare::speed(&self.asked.run(&self.place)?))
    }

    fn on_block(&mut self, what: &str, passed_ns: Nanos) {
        self.watch.at(passed_ns, what);
    }
}

fn on_host(
    context: &Context,
    machine: &host::Host,
    place: &Path,
    arguments: &Arguments,
    (asked, whole, words): What,
) -> std::result::Result<Tuning, Failure> {
    let roots = Roots::default();
    let found = host::knobs::find(&roots, &[place])?;
    let facts: TargetFacts = directory_facts(&[place.to_owned()])?;
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
    let began_unix_s = crate::history::now_unix_s();
    let tried: Vec<(HostKnob, Vec<String>)> = found
        .into_iter()
        .enumerate()
        .map(|(number, knob)| (knob, plan.values_of(number)))
        .collect();
    let mut reported = Vec::new();
    let journal = state_directory().ok_or(JournalError::NoPlace)?;
    let session = Session::begin(&journal, &roots, &tried, &mut reported)?;
    let watch = Unfinished::nowhere("tune").watch(arguments.budget);
    let mut subject = OnHost { asked, place: place.to_owned(), session, watch };
    let tuning =
        tune::tune(&mut subject, &plan, &scene(), &words, limits, crate::context::program());
    subject.watch.end();
    // Restore before printing, so that a reader of the result finds the original settings.
    let not_put_back = subject.session.end();
    reported.iter().chain(&not_put_back).for_each(|sentence| output::tell(sentence));
    let mut tuning = tuning?;
    tuning.warnings.extend(reported.into_iter().chain(not_put_back));
    crate::history::keep_tuning(context, &tuning, &machine.facts(), &facts, began_unix_s);
    Ok(tuning)
}
