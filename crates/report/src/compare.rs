use crate::format::{grouped, rate_number, short_count};
use crate::html::environment;
use crate::terminal::{Tone, paint, table, wrap};
use crate::{Error, plot};
use machine::text::printable;
use machine::units::{parse_size, show_change, show_change_range, show_time};
use minijinja::context;
use minijinja::value::Value;
use results::compare::{Comparison, Difference, Measure, Method, Verdict};
use serde::Serialize;

const MAX_NAMED: usize = 5;

pub(crate) fn value(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Iops | Measure::Operations if value < 999.995 => format!("{value:.2}"),
        Measure::Iops | Measure::Operations => grouped(value.round()),
        Measure::Throughput => rate_number(value),
        _ => show_time(value),
    }
}

fn interval(interval: Option<[f64; 2]>) -> String {
    interval.map_or(String::new(), show_change_range)
}

fn word(one: &Difference) -> String {
    let [better, worse] = one.measure.words();
    match one.verdict {
        Verdict::Better => better.into(),
        Verdict::Worse => worse.into(),
        Verdict::NoDifference => match one.detectable_percent {
            Some(seen) if seen > 0.0 => {
                format!("no difference (≥ {} % would show)", short_count(round_up(seen)))
            }
            _ => "no difference".into(),
        },
        Verdict::Untold => "one value a side".into(),
        Verdict::Changing => "the rate changed while measured".into(),
    }
}

fn round_up(percent: f64) -> f64 {
    let step = 10f64.powf(percent.abs().max(1e-9).log10().floor() - 1.0);
    (percent / step).ceil() * step
}

fn keys(rows: &[&Difference]) -> Vec<String> {
    let Some(first) = rows.first() else { return Vec::new() };
    let names = first.keys.iter().map(|(name, _)| name.clone());
    let of = |row: &Difference, name: &str| {
        row.keys.iter().find(|(key, _)| key == name).map(|(_, text)| text.clone())
    };
    let same_names = rows.iter().all(|row| row.keys.len() == first.keys.len());
    // A single question gets its full name.
    if !same_names || rows.len() == 1 {
        return Vec::new();
    }
    names.filter(|name| rows.iter().any(|row| of(row, name) != of(first, name))).collect()
}

fn rows(comparison: &Comparison, measure: Measure) -> (Vec<String>, Vec<Vec<String>>, usize) {
    let differences: Vec<&Difference> = comparison.of(measure).collect();
    let keys = keys(&differences);
    let mut head: Vec<String> =
        if keys.is_empty() { vec!["question".into()] } else { keys.clone() };
    let left = head.len();
    let reported = differences.iter().any(|one| one.interval_95_percent.is_some());
    let unit = measure.heading();
    head.extend([format!("A {unit}"), format!("B {unit}"), "change".into()]);
    if reported {
        head.extend(["95 % interval".into(), String::new()]);
    }
    let mut more = Vec::new();
    if measure == Measure::Iops {
        more = differences.iter().map(|one| beside(comparison, one)).collect();
        if more.iter().all(Vec::is_empty) {
            more.clear();
        } else {
            head.extend(["A MiB/s", "B MiB/s", "A p50", "B p50"].map(str::to_owned));
        }
    }
    let row = |(place, one): (usize, &&Difference)| {
        let mut cells: Vec<String> = match keys.is_empty() {
            true => vec![printable(&one.label)],
            false => keys
                .iter()
                .map(|name| {
                    one.keys
                        .iter()
                        .find(|(key, _)| key == name)
                        .map_or(String::new(), |(_, text)| printable(text))
                })
                .collect(),
        };
        cells.extend([
            value(measure, one.a),
            value(measure, one.b),
            show_change(one.change_percent),
        ]);
        if reported {
            cells.extend([interval(one.interval_95_percent), word(one)]);
        }
        cells.extend(more.get(place).into_iter().flatten().cloned());
        cells
    };
    (head, differences.iter().enumerate().map(row).collect(), left)
}

fn beside(comparison: &Comparison, one: &Difference) -> Vec<String> {
    let request = one.keys.iter().find(|(key, _)| key == "request");
    let Some(bytes) = request.and_then(|(_, text)| parse_size(&text.replace(' ', "")).ok()) else {
        return Vec::new();
    };
    let rate = |iops: f64| value(Measure::Throughput, iops * bytes as f64);
    let mut latencies = comparison.of(Measure::LatencyP50);
    let latency = latencies.find(|other| other.question == one.question);
    let median = |of: fn(&Difference) -> f64| {
        latency.map_or_else(String::new, |other| value(Measure::LatencyP50, of(other)))
    };
    vec![rate(one.a), rate(one.b), median(|other| other.a), median(|other| other.b)]
}

fn method(comparison: &Comparison) -> String {
    match comparison.method {
        Method::InTurn { blocks: 1 } => "One block of four interleaved runs: simulated machines repeat exactly.".into(),
        Method::InTurn { blocks } => format!(
            "{blocks} blocks of four runs in turn, ABBA or BAAB at random; the intervals hold whenever the measurement stops (confidence sequence)."
        ),
        Method::Apart => {
            "The two were measured at different times, so the difference includes any drift in between.".into()
        }
    }
}

struct KindMean {
    kind: String,
    geometric_mean_percent: f64,
    interval_95_percent: Option<[f64; 2]>,
}

fn kinds(comparison: &Comparison, measure: Measure) -> Vec<KindMean> {
    comparison
        .summaries
        .iter()
        .filter(|one| one.measure == measure && one.kind.is_some())
        .map(|one| {
            let kind = one.kind.clone().unwrap_or_default();
            KindMean {
                kind: printable(&kind),
                geometric_mean_percent: one.geometric_mean_percent,
                interval_95_percent: one.interval_95_percent,
            }
        })
        .collect()
}

const BAR: usize = 30;

fn bars(comparison: &Comparison, measure: Measure, width: usize, colour: bool) -> String {
    let kinds = kinds(comparison, measure);
    // Doubling and halving have bars of the same length.
    let length = |one: &KindMean| (one.geometric_mean_percent / 100.0).ln_1p().abs();
    let max = kinds.iter().map(length).fold(0.0, f64::max);
    if max == 0.0 || width < 60 {
        return String::new();
    }
    let name = kinds.iter().map(|one| one.kind.chars().count()).max().unwrap_or(0);
    let bar = BAR.min(width.saturating_sub(name + 44)).max(8);
    let negative = kinds.iter().any(|one| one.geometric_mean_percent < 0.0);
    let mut out = String::from("\n");
    for one in &kinds {
        let (kind, percent) = (&one.kind, one.geometric_mean_percent);
        let cells = ((length(one) / max * bar as f64).round() as usize).max(1);
        let better = (percent > 0.0) == measure.is_rate();
        let tone = if better { Tone::Good } else { Tone::Doubt };
        let drawn = paint(tone, &"█".repeat(cells), colour);
        let pad = " ".repeat(bar - cells);
        let side = match (negative, percent < 0.0) {
            (false, _) => format!("{drawn}{pad}"),
            (true, true) => format!("{pad}{drawn}│{}", " ".repeat(bar)),
            (true, false) => format!("{}│{drawn}{pad}", " ".repeat(bar)),
        };
        let range = one
            .interval_95_percent
            .map_or(String::new(), |ends| format!("  ({})", show_change_range(ends)));
        out.push_str(&format!("{kind:name$}  {side}  {}{range}\n", show_change(percent)));
    }
    out
}

pub fn terminal(comparison: &Comparison, width: usize, colour: bool) -> String {
    let width = width.max(40);
    let mut out = String::new();
    let mut lines = |tone: Tone, text: &str| {
        for line in wrap(text, width) {
            out.push_str(&paint(tone, &line, colour));
            out.push('\n');
        }
    };
    comparison.warnings.iter().for_each(|warning| lines(Tone::Doubt, &format!("! {warning}")));
    for (place, sentence) in comparison.sentences.iter().enumerate() {
        lines(if place == 0 { Tone::Strong } else { Tone::Plain }, sentence);
    }
    if let Some(measure) = comparison.main_measure() {
        lines(
            Tone::Quiet,
            &format!("A: {}. B: {}. {}", comparison.a, comparison.b, method(comparison)),
        );
        out.push('\n');
        let (head, rows, left) = rows(comparison, measure);
        out.push_str(&table(&head, &rows, left, width, colour));
        out.push_str(&bars(comparison, measure, width, colour));
    }
    for (what, names) in lists(comparison) {
        let named: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
        let more = if names.len() > MAX_NAMED {
            format!(" and {} more", names.len() - MAX_NAMED)
        } else {
            String::new()
        };
        for line in wrap(&format!("{what}: {}{more}", named.join("; ")), width) {
            out.push_str(&paint(Tone::Quiet, &line, colour));
            out.push('\n');
        }
    }
    out
}

fn lists(comparison: &Comparison) -> Vec<(String, &[String])> {
    [
        (format!("Only in {}", comparison.a), &comparison.only_a[..]),
        (format!("Only in {}", comparison.b), &comparison.only_b[..]),
        ("Failed".to_string(), &comparison.failed[..]),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .collect()
}

fn escaped(text: &str) -> String {
    printable(text)
        .chars()
        .flat_map(|c| "\\`*_{}[]<>#|".contains(c).then_some('\\').into_iter().chain([c]))
        .collect()
}

/// Folds tables, for a pull request.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = format!("### {} → {}\n\n", escaped(&comparison.a), escaped(&comparison.b));
    for (place, sentence) in comparison.sentences.iter().enumerate() {
        let text = escaped(sentence);
        out.push_str(&if place == 0 { format!("**{text}**\n\n") } else { format!("{text}\n\n") });
    }
    comparison
        .warnings
        .iter()
        .for_each(|warning| out.push_str(&format!("> ⚠ {}\n\n", escaped(warning))));
    for measure in Measure::ALL {
        let (head, rows, left) = rows(comparison, measure);
        if rows.is_empty() {
            continue;
        }
        out.push_str(&format!(
            "<details><summary>{}: {} points</summary>\n\n",
            measure.heading(),
            rows.len()
        ));
        let line = |cells: &[String]| {
            format!(
                "| {} |\n",
                cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>().join(" | ")
            )
        };
        out.push_str(&line(&head));
        let rule: Vec<&str> =
            (0..head.len()).map(|place| if place < left { "---" } else { "---:" }).collect();
        out.push_str(&format!("| {} |\n", rule.join(" | ")));
        rows.iter().for_each(|row| out.push_str(&line(row)));
        out.push_str("\n</details>\n\n");
    }
    for (what, names) in lists(comparison) {
        out.push_str(&format!("{}: {}\n\n", escaped(&what), escaped(&names.join("; "))));
    }
    out.push_str(&format!(
        "<sub>{} {}: {}</sub>\n",
        comparison.program.name,
        comparison.program.version,
        method(comparison)
    ));
    out
}

#[derive(Serialize)]
struct View {
    title: String,
    head: Vec<String>,
    left: usize,
    rows: Vec<Vec<String>>,
    chart: Option<plot::changes::Changes>,
    kinds: Option<plot::changes::Changes>,
    runs: Option<plot::changes::Changes>,
}

pub fn html(comparison: &Comparison) -> Result<String, Error> {
    let mut environment = environment()?;
    environment.add_template("compare.html", include_str!("../templates/compare.html"))?;
    let views: Vec<View> = Measure::ALL
        .into_iter()
        .filter(|measure| comparison.of(*measure).next().is_some())
        .map(|measure| {
            let (head, rows, left) = rows(comparison, measure);
            let differences: Vec<&Difference> = comparison.of(measure).collect();
            let kinds = kinds(comparison, measure);
            let by_kind: Vec<_> = kinds
                .iter()
                .map(|one| (one.kind.as_str(), one.geometric_mean_percent, one.interval_95_percent))
                .collect();
            View {
                title: measure.heading().into(),
                head,
                left,
                rows,
                // A kind with a single point would repeat it.
                kinds: (!by_kind.is_empty() && by_kind.len() < differences.len())
                    .then(|| plot::changes::changes(&by_kind, measure.is_rate())),
                chart: (differences.len() <= plot::changes::MAX)
                    .then(|| plot::changes::of_differences(&differences)),
                runs: plot::changes::runs(&differences, |number| value(measure, number)),
            }
        })
        .collect();
    let context = context! {
        values => Value::from_safe_string("{}".into()),
        kind => "comparison",
        target => format!("{} → {}", comparison.a, comparison.b),
        about => method(comparison),
        program => format!("{} {}", comparison.program.name, comparison.program.version),
        arguments => comparison.program.arguments.join(" "),
        doubts => comparison.warnings,
        sentences => comparison.sentences,
        views,
        lists => lists(comparison),
        a => comparison.a,
        b => comparison.b,
    };
    Ok(environment.get_template("compare.html")?.render(context)?)
}
