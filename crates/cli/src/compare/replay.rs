//! Replays a recorded application on two arms, in turn: `compare --replay TRACE --a ... --b ...`.

use super::Arguments;
use super::arms::set_up;
use crate::failure::Failure;
use crate::progress::Watch;
use crate::replay;
use crate::target::{is_twin, machine_of, on_machine};
use application::replay::{Class, ReplayDocument, ReplayError, Script, Settings};
use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches};
use machine::text::printable;
use machine::{Error, Nanos};
use measure::turns::{self, Limits, Stop, in_turn};
use results::compare::{Comparison, InTurn, Measure, Measurement, Series, WORTH_PERCENT};
use std::path::Path;

/// Classes of requests whose latency is compared.
const CLASSES: usize = 8;
/// Requests per second, the time, and the 99th percentile of each class.
const VALUES: usize = 2 + CLASSES;

/// Options of `replay` that an arm must not have.
const NOT_OF_AN_ARM: [&str; 3] = ["repeats", "dry_run", "json"];

/// Parses an arm: its target and options of `replay`.
fn arguments_of(option: &str, trace: &Path, own: &str) -> Result<replay::Arguments, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{option} '{own}': {why}"));
    let words = shlex::split(own).ok_or_else(|| wrong("a quotation mark is not closed".into()))?;
    let begin = ["replay".into(), trace.as_os_str().to_owned()];
    let command = replay::Arguments::augment_args(Command::new("replay"));
    let matches = command
        .try_get_matches_from(begin.into_iter().chain(words.into_iter().map(Into::into)))
        .map_err(|error| wrong(error.render().to_string()))?;
    let given = |name: &&&str| matches.value_source(name) == Some(ValueSource::CommandLine);
    if let Some(name) = NOT_OF_AN_ARM.iter().find(given) {
        let name = name.replace('_', "-");
        return Err(wrong(format!("--{name} belongs to halfpower replay; leave it out")));
    }
    replay::Arguments::from_arg_matches(&matches).map_err(|error| wrong(error.to_string()))
}

struct ReplayArm {
    arguments: replay::Arguments,
    script: Script,
    settings: Settings,
}

impl ReplayArm {
    fn new(option: &str, trace: &Path, own: &str) -> Result<(ReplayArm, &'static str), Failure> {
        let arguments = arguments_of(option, trace, own)?;
        let (mut script, format) = replay::load(trace)?;
        if arguments.direct() {
            script.make_direct();
        }
        let settings = Settings { runs: 1, ..arguments.settings() };
        Ok((ReplayArm { arguments, script, settings }, format))
    }

    fn is_simulated(&self) -> bool {
        self.arguments.targets().iter().any(|target| is_twin(target))
    }

    /// One replay. A simulated machine is a new one each time, with nothing in its caches.
    fn run(&self, trace: (&str, &str)) -> Result<ReplayDocument, Failure> {
        let layout = self.arguments.layout();
        let document = on_machine!(machine_of(&self.arguments.targets())?, |machine| {
            application::replay::replay(
                &machine,
                &self.script,
                trace,
                &layout,
                &self.settings,
                &mut |_| {},
            )
        });
        document.map_err(|error| match error {
            ReplayError::Machine(Error::Interrupted) => Failure::Interrupted,
            error => error.into(),
        })
    }
}

struct Both<'a> {
    arms: [ReplayArm; 2],
    classes: Vec<Class>,
    setups: [Option<&'a str>; 2],
    trace: (&'a str, &'a str),
    watch: Watch,
}

impl turns::Arms<VALUES> for Both<'_> {
    type Error = Failure;

    fn now(&self) -> Nanos {
        self.watch.now()
    }

    fn run(&mut self, arm: usize, _question: usize) -> Result<[f64; VALUES], Stop<Failure>> {
        self.setups[arm].map_or(Ok(()), |command| set_up(command, arm)).map_err(Stop::All)?;
        let document = self.arms[arm].run(self.trace).map_err(|error| match error {
            Failure::Interrupted => Stop::Interrupted(error),
            error => Stop::All(error),
        })?;
        let elapsed_s = document.elapsed_s.mean;
        let mut values = [f64::NAN; VALUES];
        values[0] = document.requests as f64 / elapsed_s;
        values[1] = elapsed_s * 1e9;
        for (place, class) in self.classes.iter().enumerate() {
            let of = document.classes.iter().find(|one| one.class == *class);
            if let Some(latency) = of.and_then(|one| one.latency) {
                values[2 + place] = latency.p99_ns as f64;
            }
        }
        Ok(values)
    }

    fn on_block(&mut self, _question: usize, block: usize, passed_ns: Nanos) {
        self.watch.at(passed_ns, &format!("{}, block {block}", self.trace.0));
    }
}

fn asked(label: String) -> Measurement {
    Measurement { question: label.clone(), label, kind: "replay".into(), ..Measurement::default() }
}

/// Replays the trace on both arms in turn until the difference is decided or the time is up.
pub(super) fn compare(
    arguments: &Arguments,
    trace: &Path,
    [a, b]: [&str; 2],
) -> Result<Comparison, Failure> {
    let (first, format) = ReplayArm::new("--a", trace, a)?;
    let (second, _) = ReplayArm::new("--b", trace, b)?;
    let name = printable(&trace.to_string_lossy());
    let exact = first.is_simulated() && second.is_simulated();
    let limits = Limits {
        until: arguments.until / 100.0,
        budget_ns: arguments.budget,
        max_blocks: usize::MAX,
        gain_wanted: None,
        noisy: !exact,
        seed: arguments.workload.target.seed,
    };
    let mut both = Both {
        classes: first.script.classes.iter().map(|(class, _)| *class).take(CLASSES).collect(),
        arms: [first, second],
        setups: [arguments.a_setup.as_deref(), arguments.b_setup.as_deref()],
        trace: (&name, format),
        watch: Watch::new(arguments.budget),
    };
    let turns = in_turn(&mut both, 1, limits)?;
    both.watch.end();
    let answer = &turns.answers[0];
    let series = |place: usize, measure: Measure, label: String| Series {
        asked: asked(label),
        measure,
        a: answer.blocks.iter().map(|block| block[0][place]).collect(),
        b: answer.blocks.iter().map(|block| block[1][place]).collect(),
        exact,
    };
    let all: Vec<Series> = std::iter::once(series(1, Measure::Duration, name.clone()))
        .chain(
            both.classes
                .iter()
                .enumerate()
                .map(|(place, class)| series(2 + place, Measure::LatencyP99, class.to_string())),
        )
        .filter(|one| one.a.iter().chain(&one.b).flatten().all(|value| value.is_finite()))
        .filter(|one| !one.a.is_empty())
        .collect();
    let mut warnings = Vec::new();
    if turns.interrupted {
        warnings.push("interrupted: what was measured until then is reported".to_owned());
    }
    if turns.open() > 0 {
        warnings.push(format!(
            "still open when it stopped: neither a difference nor its absence to within {} % is sure; give it more --budget",
            arguments.until
        ));
    }
    let names = [a.trim(), b.trim()];
    let failed =
        answer.failed.iter().map(|(arm, why)| format!("{name}: failed on {}: {why}", names[*arm]));
    let reported = InTurn {
        a: names[0],
        b: names[1],
        blocks: answer.blocks.len() as u32,
        worth_percent: arguments.worth.unwrap_or(WORTH_PERCENT.min(arguments.until / 2.0)),
        series: &all,
        failed: failed.collect(),
        warnings,
    };
    Ok(Comparison::in_turn(reported, crate::context::program()))
}
