//! `history show` of several entries.

use super::with_changes;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use report::history::{EntryComparison, HistoryRow};
use results::compare::Measure;
use results::history::{Entry, History, HistoryError, Occurrence, difference, trends};
use std::path::Path;

const MEASURES: [Measure; 3] = [Measure::Throughput, Measure::Duration, Measure::LatencyP99];

pub(super) fn show(
    context: &Context,
    history: &History,
    ids: &[i64],
    html: Option<&Path>,
) -> Result<(), Failure> {
    let page = output::optional(context, "--html", html, &[])?;
    let all = comparison(history, ids)?;
    let Some(page) = page else {
        return context.console.print(&report::history::entries(
            &all,
            output::width(),
            output::colour(),
        ));
    };
    let program = crate::context::program();
    let text =
        report::history::entries_html(&all, &format!("{} {}", program.name, program.version));
    let text = text.map_err(|error| Failure::Run(format!("cannot draw the page: {error}")))?;
    output::save(&page, &text)
}

fn comparison(history: &History, ids: &[i64]) -> Result<EntryComparison, Failure> {
    let mut entries: Vec<Entry> =
        ids.iter().map(|id| Ok(history.get(*id)?.0)).collect::<Result<_, HistoryError>>()?;
    entries.sort_by_key(|one| (one.began_unix_s, one.id));
    entries.dedup_by_key(|one| one.id);
    let mut changes = Vec::new();
    for (place, pair) in entries.windows(2).enumerate() {
        let changed =
            difference(&history.fingerprint(pair[0].id)?, &history.fingerprint(pair[1].id)?);
        if !changed.is_empty() {
            changes.push((place + 1, changed));
        }
    }
    let mut questions: Vec<Vec<(Measure, HistoryRow)>> = Vec::new();
    for measure in MEASURES {
        for trend in trends(readings(history, &entries, measure)?) {
            // A question of one entry compares nothing.
            let first = trend.values.first().map(|one| one.entry);
            if trend.values.iter().all(|one| Some(one.entry) == first) {
                continue;
            }
            let name = trend.question.clone();
            let row = (measure, with_changes(history, trend)?);
            match questions.iter_mut().find(|rows| rows[0].1.trend.question == name) {
                Some(rows) => rows.push(row),
                None => questions.push(vec![row]),
            }
        }
    }
    if questions.is_empty() {
        let shown: Vec<String> = ids.iter().map(ToString::to_string).collect();
        return Err(Failure::Usage(format!(
            "entries {}: no workload was measured in two of them; name entries of the same command, such as two studies of a target",
            shown.join(", ")
        )));
    }
    Ok(EntryComparison { entries, changes, questions })
}

/// Returns the oldest reading first.
fn readings(
    history: &History,
    entries: &[Entry],
    measure: Measure,
) -> Result<Vec<Occurrence>, HistoryError> {
    let mut targets: Vec<&str> = entries.iter().map(|one| one.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut found = Vec::new();
    for target in targets {
        found.extend(history.occurrences(target, measure)?);
    }
    found.retain(|one| entries.iter().any(|entry| entry.id == one.entry));
    found.sort_by_key(|one| (one.began_unix_s, one.entry));
    Ok(found)
}
