//! Details shown when the reader points at a value.

use super::experiments::{self, anchor};
use crate::Error;
use crate::format::{axis_place, axis_value, plus_minus, range, rate, short_count};
use crate::plot;
use machine::MemoryUse;
use machine::text::printable;
use machine::units::show_time;
use results::Point;
use results::{Axis, Figure, Results, Value};
use serde::Serialize;

#[derive(Serialize)]
struct FigureValues {
    curves: Vec<CurveValues>,
}

#[derive(Serialize)]
struct CurveValues {
    name: String,
    values: Vec<Shown>,
}

#[derive(Serialize)]
struct Shown {
    x: String,
    y: String,
    lines: Vec<String>,
    doubts: Vec<String>,
}

const MAX_DOUBTS: usize = 3;
const MAX_CHARACTERS: usize = 240;

/// By anchor, safe inside a script element.
pub(super) fn json(results: &Results) -> Result<String, Error> {
    let mut all = std::collections::BTreeMap::new();
    for (place, shown) in experiments::drawn(results).iter().enumerate() {
        let values = match shown {
            experiments::Drawn::Figure(_, figure) => figure_values(figure, &results.points),
            experiments::Drawn::Memory(_, memory) => memory_values(memory),
        };
        all.insert(anchor(place, shown.id()), values);
    }
    Ok(in_script(&serde_json::to_string(&all)?))
}

pub(crate) fn figures_json(figures: &[(usize, &Figure)]) -> Result<String, Error> {
    let all: std::collections::BTreeMap<String, FigureValues> = figures
        .iter()
        .map(|(place, figure)| (anchor(*place, &figure.id), figure_values(figure, &[])))
        .collect();
    Ok(in_script(&serde_json::to_string(&all)?))
}

/// A curve's name, and each value's setting, size and further lines.
pub(crate) type ShownCurve = (String, Vec<(String, String, Vec<String>)>);

/// By anchor, of drawings without axes.
pub(crate) fn shown_json(figures: Vec<(String, Vec<ShownCurve>)>) -> Result<String, Error> {
    let curve = |(name, values): ShownCurve| CurveValues {
        name: printable(&name),
        values: values
            .into_iter()
            .map(|(x, y, lines)| Shown { x, y, lines, doubts: Vec::new() })
            .collect(),
    };
    let all: std::collections::BTreeMap<String, FigureValues> = figures
        .into_iter()
        .map(|(anchor, curves)| {
            (anchor, FigureValues { curves: curves.into_iter().map(curve).collect() })
        })
        .collect();
    Ok(in_script(&serde_json::to_string(&all)?))
}

/// Keeps HTML parsers from taking JSON for markup.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

fn figure_values(figure: &Figure, points: &[Point]) -> FigureValues {
    let curve = |series: &results::Series| CurveValues {
        name: printable(&series.name),
        values: series.values.iter().map(|value| shown(figure, value, points)).collect(),
    };
    FigureValues { curves: figure.series.iter().map(curve).collect() }
}

fn shown(figure: &Figure, value: &Value, points: &[Point]) -> Shown {
    let point = value.point.and_then(|index| points.get(index));
    let mut lines = Vec::new();
    if let (Some(y), Some([low, high])) = (value.y, value.interval_95) {
        let spread = plus_minus(y, value.interval_95).unwrap_or_default();
        lines.push(format!(
            "95 % interval {} ({spread})",
            range(&axis_value(figure.y, low), &axis_value(figure.y, high))
        ));
    }
    let mut doubts = Vec::new();
    if let Some(numbers) = point.and_then(|point| point.numbers.as_ref()) {
        let runs =
            if numbers.repeats == 1 { "1 run".into() } else { format!("{} runs", numbers.repeats) };
        let latency = &numbers.latency_ns;
        lines.push(format!(
            "{runs}; latency p50 {}, p99 {}",
            show_time(latency.p50 as f64),
            show_time(latency.p99 as f64)
        ));
        if figure.y == Axis::Iops {
            lines.push(rate(numbers.throughput_bytes_per_s));
        } else {
            lines.push(format!("{} requests/s", short_count(numbers.iops)));
        }
        doubts.extend(numbers.warnings.iter().map(|text| shortened(text)));
    }
    if let Some(point) = point {
        lines.push(point.workload.short());
        doubts.extend(point.error.iter().map(|text| shortened(text)));
    }
    if doubts.len() > MAX_DOUBTS {
        let more = doubts.len() - MAX_DOUBTS;
        doubts.truncate(MAX_DOUBTS);
        doubts.push(format!("and {more} more"));
    }
    let lines = lines.iter().map(|line| printable(line)).collect();
    let y = value.y.map_or("failed".into(), |y| axis_value(figure.y, y));
    Shown { x: axis_place(figure.x, value.x), y, lines, doubts }
}

fn shortened(text: &str) -> String {
    let text = printable(text);
    if text.chars().count() <= MAX_CHARACTERS {
        text
    } else {
        text.chars().take(MAX_CHARACTERS).chain(['…']).collect()
    }
}

fn memory_values(memory: &[MemoryUse]) -> FigureValues {
    let curve = |usage: &MemoryUse| CurveValues {
        name: plot::memory_name(usage),
        values: usage
            .rates_bytes_per_s
            .iter()
            .enumerate()
            .map(|(repeat, rate)| Shown {
                x: format!("repeat {} of {}", repeat + 1, usage.rates_bytes_per_s.len()),
                y: axis_value(Axis::BytesPerS, *rate),
                lines: Vec::new(),
                doubts: Vec::new(),
            })
            .collect(),
    };
    FigureValues { curves: memory.iter().map(curve).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_ends_early() {
        let text = in_script(&serde_json::to_string("</script><!-- & \u{2028}").expect("a string"));
        assert!(!text.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(
            serde_json::from_str::<String>(&text).expect("still JSON"),
            "</script><!-- & \u{2028}"
        );
    }
}
