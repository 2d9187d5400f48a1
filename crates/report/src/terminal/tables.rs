use super::{Tone, paint, table, wrap};
use crate::format::{axis_title, axis_value, percent, plus_minus, rate, rate_number, rate_unit};
use crate::plot::peak_on_axis;
use machine::text::printable;
use results::{Experiment, Figure, Point, Results, Series, Value};
use unicode_width::UnicodeWidthStr;

/// One for each figure.
pub fn tables(results: &Results, width: usize, colour: bool) -> String {
    let width = width.max(40);
    let mut out = String::new();
    for experiment in &results.experiments {
        let mut say = |tone, text: &str| {
            for line in wrap(text, width) {
                out.push_str(&paint(tone, &line, colour));
                out.push('\n');
            }
        };
        say(Tone::Strong, &experiment.title);
        say(Tone::Quiet, &experiment.question);
        match &experiment.skipped {
            Some(reason) => say(Tone::Doubt, &format!("skipped: {reason}")),
            None => say(Tone::Plain, &experiment.sentence),
        }
        for left_out in &experiment.left_out {
            say(Tone::Quiet, &format!("left out: {left_out}"));
        }
        out.push_str(&memory(experiment, width, colour));
        for figure in &experiment.figures {
            out.push('\n');
            out.push_str(&one_figure(figure, &results.points, width, colour));
        }
        out.push('\n');
    }
    out
}

fn memory(experiment: &Experiment, width: usize, colour: bool) -> String {
    if experiment.memory.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = experiment
        .memory
        .iter()
        .map(|usage| {
            let show = |value: Option<f64>| value.map(rate_number).unwrap_or_default();
            let rates = &usage.rates_bytes_per_s;
            let (min, max) =
                (rates.iter().copied().reduce(f64::min), rates.iter().copied().reduce(f64::max));
            vec![
                usage.kind.name().to_owned(),
                usage.threads.to_string(),
                show(usage.mean_bytes_per_s()),
                show(min),
                show(max),
            ]
        })
        .collect();
    let header = ["memory", "threads", rate_unit(), "min", "max"].map(String::from);
    format!("\n{}", table(&header, &rows, 1, width, colour))
}

pub(crate) fn xs(figure: &Figure) -> Vec<f64> {
    let mut xs: Vec<f64> =
        figure.series.iter().flat_map(|series| &series.values).map(|value| value.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    xs
}

pub(crate) fn at(series: &Series, x: f64) -> Option<&Value> {
    series.values.iter().find(|value| value.x == x)
}

fn cell(figure: &Figure, value: Option<&Value>) -> String {
    let Some(value) = value else { return String::new() };
    let Some(y) = value.y else { return "failed".into() };
    let shown = match figure.y {
        results::Axis::BytesPerS => rate_number(y),
        axis => axis_value(axis, y),
    };
    match plus_minus(y, value.interval_95) {
        Some(spread) => format!("{shown} {}", spread.replace("± ", "±").replace(" %", "%")),
        None => shown,
    }
}

fn one_figure(figure: &Figure, points: &[Point], width: usize, colour: bool) -> String {
    let unit = axis_title(figure.y);
    let mut out = String::new();
    for line in wrap(&format!("{} ({unit})", figure.title), width) {
        out.push_str(&paint(Tone::Plain, &line, colour));
        out.push('\n');
    }
    let xs = xs(figure);
    let first: Vec<String> = xs.iter().map(|x| axis_value(figure.x, *x)).collect();
    let columns: Vec<Vec<String>> = figure
        .series
        .iter()
        .map(|series| xs.iter().map(|x| cell(figure, at(series, *x))).collect())
        .collect();
    let wide = |cells: &[String]| cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
    let first_width = wide(&first).max(axis_title(figure.x).width());
    let mut next = 0;
    while next < columns.len() {
        let mut used = first_width;
        let begin = next;
        while next < columns.len() {
            let name = printable(&figure.series[next].name).width().min(24);
            used += wide(&columns[next]).max(name) + 2;
            if used > width && next > begin {
                break;
            }
            next += 1;
        }
        let header: Vec<String> = std::iter::once(axis_title(figure.x).to_string())
            .chain(figure.series[begin..next].iter().map(|s| super::fit(&printable(&s.name), 24)))
            .collect();
        let rows: Vec<Vec<String>> = (0..xs.len())
            .map(|row| {
                std::iter::once(first[row].clone())
                    .chain(columns[begin..next].iter().map(|column| column[row].clone()))
                    .collect()
            })
            .collect();
        out.push_str(&table(&header, &rows, 0, width, colour));
    }
    for (series, half) in
        figure.series.iter().filter_map(|series| Some((series, series.half_power.as_ref()?)))
    {
        let interval = crate::format::half_power_interval(half)
            .map(|text| format!(" ({text})"))
            .unwrap_or_default();
        // In the figure's unit, if it can be.
        let shown = |share: f64| match peak_on_axis(figure.y, series, points) {
            Some(peak) => axis_value(figure.y, peak * share),
            None => rate(half.peak_bytes_per_s * share),
        };
        let text = format!(
            "half power of {}: {}{interval}; half of {} is {}",
            printable(&series.name),
            crate::format::half_power_value(half),
            shown(1.0),
            shown(0.5)
        );
        for line in wrap(&text, width) {
            out.push_str(&paint(Tone::Quiet, &line, colour));
            out.push('\n');
        }
    }
    let failed = figure
        .series
        .iter()
        .flat_map(|series| &series.values)
        .filter(|value| value.y.is_none())
        .count();
    if failed > 0 {
        let all = figure.series.iter().map(|series| series.values.len()).sum::<usize>().max(1);
        let text = format!(
            "{failed} of {all} values failed ({} %); points.csv and the report say why",
            percent(failed as f64 / all as f64 * 100.0)
        );
        out.push_str(&paint(Tone::Failed, &text, colour));
        out.push('\n');
    }
    out
}
