//! `check --replay`.

use super::Arguments;
use crate::compare::FAILED;
use crate::context::Context;
use crate::failure::Failure;
use crate::history::REPLAY;
use crate::output;
use crate::replay::{ReplayJob, measurements, replayed};
use application::replay::{Pace, ReplayDocument, Script, Settings};
use results::compare::{Comparison, FailIf, Side, WORTH_PERCENT, compare};
use results::history::{Filter, Fingerprint, History, difference};
use std::path::{Path, PathBuf};

/// Enough for an interval.
const RUNS: u32 = 3;

pub(super) fn check(
    context: &Context,
    arguments: &Arguments,
    trace: &Path,
    limit: &FailIf,
) -> Result<(), Failure> {
    let mut job = ReplayJob::on_target(&arguments.target, trace, ("--replay", ""))?;
    let history = crate::history::open(context)?;
    let target = target_name(&job.targets);
    let (id, baseline) =
        baseline(&history, arguments.baseline, &target, (&job.trace, &job.script))?;
    if !job.is_simulated() {
        let busy = arguments.load.look(context)?;
        busy.iter().for_each(|warning| context.console.tell(warning));
    }
    if baseline.direct {
        job.script.make_direct();
    }
    job.settings = Settings {
        pace: baseline.speed.map_or(Pace::AsFastAsPossible, Pace::Recorded),
        depth: baseline.depth,
        runs: RUNS.max(baseline.runs),
        cache: baseline.cache,
    };
    let now = replayed(context, &job)?;
    let side = |name: &str, of: &ReplayDocument| Side {
        name: name.to_owned(),
        asked: measurements(of),
        warnings: of.warnings.clone(),
    };
    let mut comparison = compare(
        &side(&format!("entry {id}"), &baseline),
        &side("now", &now),
        crate::context::program(),
        WORTH_PERCENT,
    );
    if let Some((machine, target)) = &now.facts {
        let own = Fingerprint::of_facts(machine, target, env!("CARGO_PKG_VERSION"));
        let changed = difference(&history.fingerprint(id)?, &own);
        if !changed.is_empty() {
            let changed = changed.join("; ");
            comparison.sentences.push(format!("Also changed since entry {id}: {changed}."));
        }
    }
    report(context, arguments, &target, &comparison, limit)
}

fn report(
    context: &Context,
    arguments: &Arguments,
    target: &str,
    comparison: &Comparison,
    limit: &FailIf,
) -> Result<(), Failure> {
    let slower = limit.failed(comparison);
    if arguments.json {
        context.console.print(&output::json(comparison.to_json())?)?;
    } else if arguments.quiet {
        let verdict = if slower.is_empty() { "ok" } else { "slower" };
        let sentence = comparison.sentences.first().map_or("", String::as_str);
        context.console.print(&format!("{target}: {verdict}: {sentence}\n"))?;
    } else {
        context.console.print(&report::compare::terminal(
            comparison,
            output::width(),
            output::colour(),
        ))?;
    }
    if slower.is_empty() {
        return Ok(());
    }
    if !arguments.quiet {
        slower.iter().for_each(|one| context.console.tell(&one.sentence));
    }
    Err(Failure::Printed(FAILED))
}

fn target_name(targets: &[PathBuf]) -> String {
    let names: Vec<String> =
        targets.iter().map(|target| target.to_string_lossy().into_owned()).collect();
    names.join(", ")
}

/// By default the first: a later one may be slower already.
fn baseline(
    history: &History,
    named: Option<i64>,
    target: &str,
    (trace, script): (&str, &Script),
) -> Result<(i64, ReplayDocument), Failure> {
    let of_target = Filter {
        target: Some(crate::history::absolute(target)),
        kind: Some(REPLAY.to_owned()),
        ..Filter::default()
    };
    let ids: Vec<i64> = match named {
        Some(id) => vec![id],
        None => history.list(&of_target)?.iter().rev().map(|entry| entry.id).collect(),
    };
    for id in ids {
        let (entry, text) = history.get(id)?;
        let document: Option<ReplayDocument> =
            (entry.kind == REPLAY).then(|| serde_json::from_str(&text).ok()).flatten();
        let same = document.filter(|one| {
            one.requests == script.requests
                && one.threads == script.thread_count() as u64
                && one.bytes == script.bytes
        });
        if let Some(document) = same {
            return Ok((id, document));
        }
    }
    Err(Failure::Usage(match named {
        Some(id) => format!("--baseline {id}: this entry is no replay of {trace}"),
        None => format!(
            "{target}: the history holds no replay of {trace} on it; make one with halfpower replay {trace} {target}"
        ),
    }))
}
