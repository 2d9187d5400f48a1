mod entries;

pub use entries::{EntryComparison, entries, entries_html};

use crate::format::{date, plural, rate};
use crate::terminal::{Tone, fit, paint, table, wrap};
use crate::{Error, html, plot::scene::tenth};
use machine::text::printable;
use machine::units::{show_change, show_change_range};
use minijinja::context;
use minijinja::value::Value;
use results::compare::Measure;
use results::history::{Entry, Trend};
use serde::Serialize;

pub fn list(entries: &[Entry], width: usize, colour: bool) -> String {
    if entries.is_empty() {
        return "no entry\n".into();
    }
    let head = ["id", "date", "kind", "target", "points", "best", "p99", "tags, note, command"]
        .map(String::from);
    let command = width.saturating_sub(82).max(20);
    let row = |one: &Entry| {
        vec![
            one.id.to_string(),
            date(one.began_unix_s),
            one.kind.clone(),
            fit(&printable(&one.target), 28),
            if one.readings > 0 { one.readings.to_string() } else { String::new() },
            one.best_bytes_per_s.map_or(String::new(), rate),
            one.best_p99_ns.map_or(String::new(), machine::units::show_time),
            fit(&printable(&remark(one)), command),
        ]
    };
    let rows: Vec<Vec<String>> = entries.iter().map(row).collect();
    table(&head, &rows, head.len(), width.max(40), colour)
}

fn remark(one: &Entry) -> String {
    let tags: String = one.tags.iter().map(|tag| format!("[{tag}] ")).collect();
    tags + one.note.as_ref().unwrap_or(&one.command)
}

#[derive(Debug, Clone)]
pub struct HistoryRow {
    pub trend: Trend,
    /// A reading's index, and what changed before it.
    pub machine: Vec<(usize, Vec<String>)>,
}

const MAX_FACTS: usize = 4;

fn value(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Throughput => rate(value),
        measure if measure.is_rate() => {
            format!("{} {}", crate::format::short_count(value), measure.heading())
        }
        _ => machine::units::show_time(value),
    }
}

fn sentences(reported: &HistoryRow) -> Vec<(Tone, String)> {
    let HistoryRow { trend, machine } = reported;
    let day = |place: usize| date(trend.values[place].began_unix_s);
    let mut said: Vec<(usize, Tone, String)> = trend
        .changes
        .iter()
        .map(|one| {
            let percent = (one.change.ratio - 1.0) * 100.0;
            let interval =
                show_change_range([one.change.low, one.change.high].map(|end| (end - 1.0) * 100.0));
            let change = show_change(percent);
            let entry = trend.values[one.at].entry;
            (
                one.at,
                Tone::Strong,
                format!("From {} on (entry {entry}): {change} ({interval}).", day(one.at)),
            )
        })
        .collect();
    said.extend(machine.iter().map(|(place, facts)| {
        let more = if facts.len() > MAX_FACTS {
            format!(" and {} more", facts.len() - MAX_FACTS)
        } else {
            String::new()
        };
        let facts: Vec<&str> = facts.iter().take(MAX_FACTS).map(String::as_str).collect();
        (
            *place,
            Tone::Quiet,
            format!("Machine changed before {}: {}{more}.", day(*place), facts.join("; ")),
        )
    }));
    said.sort_by_key(|(place, _, _)| *place);
    said.into_iter().map(|(_, tone, text)| (tone, text)).collect()
}

fn summary(reported: &HistoryRow, measure: Measure) -> String {
    let values = &reported.trend.values;
    let (first, last) = (&values[0], &values[values.len() - 1]);
    let changes = match (reported.trend.changes.len(), values.len()) {
        (0, few) if few < 6 => "too few to find a change".to_string(),
        (0, _) => "no change found".to_string(),
        (1, _) => "1 change".to_string(),
        (count, _) => format!("{count} changes"),
    };
    format!(
        "{} from {} to {}: {} at first, {} at last; {changes}",
        plural(values.len(), "reading"),
        date(first.began_unix_s),
        date(last.began_unix_s),
        value(measure, first.value),
        value(measure, last.value)
    )
}

pub fn trends(all: &[HistoryRow], measure: Measure, width: usize, colour: bool) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let width = width.max(40);
    let mut out = String::new();
    for reported in all {
        let values: Vec<f64> = reported.trend.values.iter().map(|one| one.value).collect();
        // Only the newest readings if not all fit.
        let shown = &values[values.len().saturating_sub(width)..];
        let max = shown.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let bars: String = shown
            .iter()
            .map(|value| BARS[((value / max * 8.0).ceil() as usize).clamp(1, 8) - 1])
            .collect();
        out.push_str(&paint(Tone::Strong, &fit(&printable(&reported.trend.label), width), colour));
        out.push('\n');
        out.push_str(&bars);
        out.push('\n');
        for line in wrap(&summary(reported, measure), width) {
            out.push_str(&line);
            out.push('\n');
        }
        for (tone, sentence) in sentences(reported) {
            for line in wrap(&sentence, width) {
                out.push_str(&paint(tone, &line, colour));
                out.push('\n');
            }
        }
        out.push('\n');
    }
    if out.is_empty() { "no reading of this target\n".into() } else { out }
}

const SIZE: [f64; 2] = [760.0, 200.0];
const LEFT: f64 = 90.0;
const BOTTOM: f64 = 24.0;

#[derive(Serialize)]
struct View {
    title: String,
    measure: &'static str,
    summary: String,
    sentences: Vec<String>,
    width: f64,
    height: f64,
    left: f64,
    bottom: f64,
    line: String,
    whiskers: String,
    dots: Vec<(f64, f64, String)>,
    levels: String,
    changes: Vec<f64>,
    machine: Vec<f64>,
    max: String,
    first: String,
    last: String,
    rows: Vec<[String; 3]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LevelBreaks {
    Changes,
    /// Also at changes of the machine: a few readings show no change of the trend, and a mean over
    /// different machines is meaningless.
    Machines,
}

fn view(reported: &HistoryRow, measure: Measure, breaks: LevelBreaks) -> View {
    let values = &reported.trend.values;
    let top = values
        .iter()
        .map(|one| one.interval_95.map_or(one.value, |[_, high]| high.min(one.value * 2.0)));
    let max = top.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let step = (SIZE[0] - LEFT - 10.0) / (values.len().max(2) - 1) as f64;
    let x = |place: f64| tenth(LEFT + place * step);
    let y = |value: f64| tenth((SIZE[1] - BOTTOM) - value / max * (SIZE[1] - BOTTOM - 10.0));
    let mut line = String::new();
    let mut whiskers = String::new();
    let mut dots = Vec::new();
    for (place, one) in values.iter().enumerate() {
        let at = x(place as f64);
        line += &format!("{}{at} {}", if place == 0 { 'M' } else { 'L' }, y(one.value));
        if let Some([low, high]) = one.interval_95 {
            whiskers += &format!("M{at} {}V{}", y(low.max(0.0)), y(high.min(max)));
        }
        dots.push((
            at,
            y(one.value),
            format!(
                "{}: {}, entry {}",
                date(one.began_unix_s),
                value(measure, one.value),
                one.entry
            ),
        ));
    }
    let mut ends: Vec<usize> = vec![0];
    ends.extend(reported.trend.changes.iter().map(|one| one.at));
    if breaks == LevelBreaks::Machines {
        ends.extend(reported.machine.iter().map(|(place, _)| *place));
    }
    ends.push(values.len());
    ends.sort_unstable();
    ends.dedup();
    let level = |pair: &[usize]| {
        let part = &values[pair[0]..pair[1]];
        let mean = part.iter().map(|one| one.value).sum::<f64>() / part.len() as f64;
        format!("M{} {}H{}", x(pair[0] as f64), y(mean), x(pair[1] as f64 - 1.0))
    };
    View {
        title: reported.trend.label.clone(),
        measure: measure.heading(),
        summary: summary(reported, measure),
        sentences: sentences(reported).into_iter().map(|(_, text)| text).collect(),
        width: SIZE[0],
        height: SIZE[1],
        left: LEFT,
        bottom: SIZE[1] - BOTTOM,
        line,
        whiskers,
        dots,
        levels: ends.windows(2).map(level).collect(),
        changes: reported.trend.changes.iter().map(|one| x(one.at as f64 - 0.5)).collect(),
        machine: reported.machine.iter().map(|(place, _)| x(*place as f64 - 0.5)).collect(),
        max: value(measure, max),
        first: date(values[0].began_unix_s),
        last: date(values[values.len() - 1].began_unix_s),
        rows: values
            .iter()
            .map(|one| [one.entry.to_string(), date(one.began_unix_s), value(measure, one.value)])
            .collect(),
    }
}

fn environment() -> Result<minijinja::Environment<'static>, Error> {
    let mut environment = html::environment()?;
    environment.add_template("trend.css", include_str!("../templates/trend.css"))?;
    environment
        .add_template("trend-figure.html", include_str!("../templates/trend-figure.html"))?;
    Ok(environment)
}

pub fn trends_html(
    target: &str,
    all: &[HistoryRow],
    measure: Measure,
    program: &str,
) -> Result<String, Error> {
    let mut environment = environment()?;
    environment.add_template("trend.html", include_str!("../templates/trend.html"))?;
    let context = context! {
        values => Value::from_safe_string("{}".into()),
        kind => "trend",
        target,
        about => format!("{} over time, from the history", measure.heading()),
        program,
        views => all
            .iter()
            .map(|reported| view(reported, measure, LevelBreaks::Changes))
            .collect::<Vec<_>>(),
    };
    Ok(environment.get_template("trend.html")?.render(context)?)
}
