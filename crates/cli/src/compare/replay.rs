//! `compare --replay`.

use super::arguments::Arguments;
use super::arms::set_up;
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::Watch;
use crate::replay::ReplayJob;
use application::replay::Class;
use machine::Nanos;
use measure::turns::{self, Stop, in_turn};
use results::compare::{Comparison, InTurn, Measure, Measurement, Series};
use std::path::Path;

const CLASSES: usize = 8;
/// Requests per second, the time, and the p99 of each class.
const VALUES: usize = 2 + CLASSES;

struct Both<'a> {
    context: &'a Context,
    arms: [ReplayJob; 2],
    classes: Vec<Class>,
    setups: [Option<&'a str>; 2],
    watch: Watch,
}

impl turns::Arms<VALUES> for Both<'_> {
    type Error = Failure;

    fn now(&self) -> Nanos {
        self.watch.now()
    }

    fn run(&mut self, arm: usize, _question: usize) -> Result<[f64; VALUES], Stop<Failure>> {
        set_up(self.setups, arm)?;
        let document =
            self.arms[arm].run(self.context, &mut |_| {}).map_err(|error| match error {
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
        self.watch.at(passed_ns, &format!("{}, block {block}", self.arms[0].trace));
    }
}

fn asked(label: String) -> Measurement {
    Measurement { question: label.clone(), label, kind: "replay".into(), ..Measurement::default() }
}

pub(super) fn compare(
    context: &Context,
    arguments: &Arguments,
    trace: &Path,
    [a, b]: [&str; 2],
) -> Result<Comparison, Failure> {
    let first = ReplayJob::of_words("--a", trace, a)?;
    let second = ReplayJob::of_words("--b", trace, b)?;
    let name = first.trace.clone();
    let exact = first.is_simulated() && second.is_simulated();
    let limits = arguments.limits(!exact, arguments.workload.target.seed);
    let mut both = Both {
        context,
        classes: first.script.classes.iter().map(|(class, _)| *class).take(CLASSES).collect(),
        arms: [first, second],
        setups: [arguments.a_setup.as_deref(), arguments.b_setup.as_deref()],
        watch: Watch::new(context.console.time_bar(arguments.budget)),
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
        worth_percent: arguments.worth_percent(),
        series: &all,
        failed: failed.collect(),
        warnings,
    };
    Ok(Comparison::in_turn(reported, crate::context::program()))
}
