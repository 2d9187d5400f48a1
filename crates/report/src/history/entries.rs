//! Several entries of the history.

use super::{HistoryRow, LevelBreaks, View, environment, remark, value, view};
use crate::Error;
use crate::format::date;
use crate::terminal::{Tone, fit, paint, table, wrap};
use machine::text::printable;
use machine::units::show_change;
use minijinja::context;
use minijinja::value::Value;
use results::compare::Measure;
use results::history::{Entry, Occurrence};
use serde::Serialize;

/// Oldest first, with the figures of their common questions.
#[derive(Debug, Clone)]
pub struct EntryComparison {
    pub entries: Vec<Entry>,
    /// An entry's index, and what changed before it.
    pub changes: Vec<(usize, Vec<String>)>,
    pub questions: Vec<Vec<(Measure, HistoryRow)>>,
}

const MAX_FACTS: usize = 6;

impl EntryComparison {
    fn changed(&self, max: usize) -> Vec<String> {
        let sentence = |(place, facts): &(usize, Vec<String>)| {
            let shown: Vec<&str> = facts.iter().take(max).map(String::as_str).collect();
            let more = match facts.len().saturating_sub(max) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let of = &self.entries[*place];
            format!(
                "Changed before entry {} ({}): {}{more}.",
                of.id,
                date(of.began_unix_s),
                shown.join("; ")
            )
        };
        let said: Vec<String> = self.changes.iter().map(sentence).collect();
        if said.is_empty() { vec!["Nothing else changed between them.".into()] } else { said }
    }

    fn sentence(question: &[(Measure, HistoryRow)]) -> String {
        let say = |(measure, row): &(Measure, HistoryRow)| {
            let values = &row.trend.values;
            let (first, last) = (values.first()?, values.last()?);
            let beyond = match (first.interval_95, last.interval_95) {
                (Some(a), Some(b)) if a[1] < b[0] || b[1] < a[0] => ", beyond both intervals",
                (Some(_), Some(_)) => ", within the intervals",
                _ => "",
            };
            let name = if measure.is_rate() { "rate" } else { measure.heading() };
            Some(format!(
                "{name} {} at first, {} at last ({}{beyond})",
                value(*measure, first.value),
                value(*measure, last.value),
                show_change((last.value / first.value - 1.0) * 100.0)
            ))
        };
        let said: Vec<String> = question.iter().filter_map(say).collect();
        said.join("; ") + "."
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |one: &Entry| {
            vec![
                one.id.to_string(),
                date(one.began_unix_s),
                one.kind.clone(),
                printable(&one.target),
                one.version.clone(),
                printable(&remark(one)),
            ]
        };
        self.entries.iter().map(row).collect()
    }
}

const HEAD: [&str; 6] = ["entry", "date", "kind", "target", "version", "tags, note, command"];

pub fn entries(all: &EntryComparison, width: usize, colour: bool) -> String {
    let width = width.max(40);
    let mut rows = all.rows();
    for row in &mut rows {
        row[3] = fit(&row[3], 24);
        row[5] = fit(&row[5], width.saturating_sub(70).max(16));
    }
    let mut out = table(&HEAD.map(String::from), &rows, HEAD.len(), width, colour);
    let mut say = |tone: Tone, text: &str| {
        for line in wrap(text, width) {
            out += &paint(tone, &line, colour);
            out.push('\n');
        }
    };
    all.changed(MAX_FACTS).iter().for_each(|sentence| say(Tone::Quiet, sentence));
    for question in &all.questions {
        let label = question.first().map_or("", |(_, row)| &row.trend.label);
        say(Tone::Strong, &printable(label));
        say(Tone::Quiet, &EntryComparison::sentence(question));
    }
    out
}

#[derive(Serialize)]
struct QuestionView {
    title: String,
    sentence: String,
    views: Vec<View>,
    rows: Vec<Vec<String>>,
}

fn cells(measure: Measure, found: Option<&Occurrence>) -> [String; 2] {
    let Some(found) = found else { return Default::default() };
    let interval = found.interval_95.map_or_else(String::new, |[low, high]| {
        format!("{} to {}", value(measure, low), value(measure, high))
    });
    [value(measure, found.value), interval]
}

fn question_view(all: &EntryComparison, question: &[(Measure, HistoryRow)]) -> QuestionView {
    let row = |entry: &Entry| {
        let mut row = vec![entry.id.to_string(), date(entry.began_unix_s)];
        for (measure, one) in question {
            let found = one.trend.values.iter().find(|value| value.entry == entry.id);
            row.extend(cells(*measure, found));
        }
        row
    };
    QuestionView {
        title: question.first().map_or_else(String::new, |(_, row)| row.trend.label.clone()),
        sentence: EntryComparison::sentence(question),
        views: question.iter().map(|(one, row)| view(row, *one, LevelBreaks::Machines)).collect(),
        rows: all.entries.iter().map(row).collect(),
    }
}

pub fn entries_html(all: &EntryComparison, program: &str) -> Result<String, Error> {
    let mut environment = environment()?;
    environment.add_template("entries.html", include_str!("../../templates/entries.html"))?;
    let mut targets: Vec<&str> = all.entries.iter().map(|one| one.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    let views: Vec<QuestionView> =
        all.questions.iter().map(|one| question_view(all, one)).collect();
    let context = context! {
        values => Value::from_safe_string("{}".into()),
        kind => "history",
        target => targets.join(", "),
        about => format!("{} entries compared, from the history", all.entries.len()),
        program,
        head => HEAD,
        rows => all.rows(),
        changes => all.changed(usize::MAX),
        questions => views,
    };
    Ok(environment.get_template("entries.html")?.render(context)?)
}
