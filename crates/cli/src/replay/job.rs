//! A replay for `replay`, `compare`, `tune` and `check`.

use super::{Arguments, layout, load};
use crate::context::Context;
use crate::failure::Failure;
use crate::target::{TargetArguments, is_twin, machine_of, on_machine};
use application::replay::{ReplayDocument, ReplayError, Script, Settings, prepare, replay};
use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches};
use machine::text::printable;
use machine::{Error, Machine};
use std::path::{Path, PathBuf};

const OWN_OPTIONS: [&str; 3] = ["repeats", "dry_run", "json"];

#[derive(Debug)]
pub(crate) struct ReplayJob {
    pub(crate) trace: String,
    pub(crate) format: &'static str,
    pub(crate) script: Script,
    pub(crate) settings: Settings,
    pub(crate) targets: Vec<PathBuf>,
    pub(crate) destroy: Vec<PathBuf>,
    pub(crate) destroy_signed: bool,
}

impl ReplayJob {
    pub(crate) fn new(arguments: &Arguments) -> Result<ReplayJob, Failure> {
        let (mut script, format) = load(&arguments.trace)?;
        if arguments.direct {
            script.make_direct();
        }
        Ok(ReplayJob {
            trace: printable(&arguments.trace.to_string_lossy()),
            format,
            script,
            settings: arguments.settings(),
            targets: arguments.targets(),
            destroy: arguments.destroy_data.clone(),
            destroy_signed: arguments.destroy_signature,
        })
    }

    pub(crate) fn of_words(option: &str, trace: &Path, own: &str) -> Result<ReplayJob, Failure> {
        ReplayJob::once(&of_words(option, trace, own)?)
    }

    pub(crate) fn on_target(
        target: &TargetArguments,
        trace: &Path,
        (option, own): (&str, &str),
    ) -> Result<ReplayJob, Failure> {
        let arguments = of_words(option, trace, own)?;
        if !(arguments.targets.is_empty() && arguments.destroy_data.is_empty()) {
            let why = "the target belongs outside of this word";
            return Err(Failure::Usage(format!("{option} '{own}': {why}")));
        }
        let unused = [
            ("--size", target.size.0.is_some()),
            ("--chunk", target.chunk.is_some()),
            ("--raid", target.raid.is_some()),
        ];
        if let Some((unused, _)) = unused.iter().find(|(_, given)| *given) {
            let why = "a replay's files have the recorded sizes; leave it out";
            return Err(Failure::Usage(format!("{unused}: {why}")));
        }
        ReplayJob::once(&Arguments {
            targets: target.targets.clone(),
            destroy_data: target.destroy_data.clone(),
            destroy_signature: target.destroy_signature,
            ..arguments
        })
    }

    fn once(arguments: &Arguments) -> Result<ReplayJob, Failure> {
        let job = ReplayJob::new(arguments)?;
        Ok(ReplayJob { settings: Settings { runs: 1, ..job.settings }, ..job })
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.targets.iter().any(|target| is_twin(target))
    }

    /// Calls `on_run` with each run's number, from 1. A simulated machine starts each with empty
    /// caches.
    pub(crate) fn run(
        &self,
        context: &Context,
        on_run: &mut dyn FnMut(u32),
    ) -> Result<ReplayDocument, Failure> {
        let targets: Vec<&Path> = self.targets.iter().map(PathBuf::as_path).collect();
        let document = on_machine!(machine_of(context, &targets)?, |machine| {
            self.run_on(&machine, &targets, on_run)
        });
        Ok(document?)
    }

    pub(crate) fn prepare<M: Machine>(
        &self,
        machine: &M,
        targets: &[&Path],
    ) -> machine::Result<()> {
        prepare(machine, &self.script, &layout(targets, &self.destroy, self.destroy_signed))
    }

    pub(crate) fn run_on<M: Machine>(
        &self,
        machine: &M,
        targets: &[&Path],
        on_run: &mut dyn FnMut(u32),
    ) -> machine::Result<ReplayDocument> {
        let layout = layout(targets, &self.destroy, self.destroy_signed);
        let trace = (self.trace.as_str(), self.format);
        replay(machine, &self.script, trace, &layout, &self.settings, on_run).map_err(|error| {
            match error {
                ReplayError::Machine(error) => error,
                error => Error::refused(&self.trace, error.to_string(), "name another trace"),
            }
        })
    }
}

fn of_words(option: &str, trace: &Path, own: &str) -> Result<Arguments, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{option} '{own}': {why}"));
    let words = shlex::split(own).ok_or_else(|| wrong("a quotation mark is not closed".into()))?;
    let begin = ["replay".into(), trace.as_os_str().to_owned()];
    let command = Arguments::augment_args(Command::new("replay"));
    let matches = command
        .try_get_matches_from(begin.into_iter().chain(words.into_iter().map(Into::into)))
        .map_err(|error| wrong(error.render().to_string()))?;
    let given = |name: &&&str| matches.value_source(name) == Some(ValueSource::CommandLine);
    if let Some(name) = OWN_OPTIONS.iter().find(given) {
        let name = name.replace('_', "-");
        return Err(wrong(format!("--{name} belongs to halfpower replay; leave it out")));
    }
    Arguments::from_arg_matches(&matches).map_err(|error| wrong(error.to_string()))
}
