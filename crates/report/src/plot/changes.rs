//! Changes as dots with intervals on a line through zero, and the runs of both sides as dots.

use super::scene::tenth;
use results::compare::{Difference, Verdict};
use serde::Serialize;

/// Maximum rows of a chart; the table has all of them.
pub(crate) const MAX: usize = 60;

/// Width of the drawing, of the names at its left and of the values at its right.
const WIDTH: f64 = 760.0;
const NAMES: f64 = 300.0;
const VALUES: f64 = 80.0;
const ROW: f64 = 20.0;
/// Height of a row of runs, which has two lines.
const RUNS_ROW: f64 = 28.0;
const AXIS: f64 = 24.0;
const LETTERS: usize = 44;

#[derive(Serialize)]
pub(crate) struct Changes {
    width: f64,
    height: f64,
    /// Position of zero, if it is in range.
    zero: Option<f64>,
    ticks: Vec<Tick>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Tick {
    x: f64,
    text: String,
}

#[derive(Serialize)]
struct Row {
    y: f64,
    name: String,
    /// Position of the mean; `None` if the row has only runs.
    x: Option<f64>,
    whisker: Option<[f64; 2]>,
    /// `better`, `worse` or empty.
    class: &'static str,
    text: String,
    a: Vec<f64>,
    b: Vec<f64>,
}

/// A scale from values to positions.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Over all values and zero.
    fn with_zero(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((0.0f64, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
        let room = ((high - low) * 0.04).max(0.5);
        Scale { low: if low < 0.0 { low - room } else { -room }, high: high + room }
    }

    fn at(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        tenth(NAMES + share * (WIDTH - NAMES - VALUES))
    }

    /// Round values in the range: steps of 1, 2 or 5.
    fn ticks(&self) -> Vec<Tick> {
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|by| by * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        let digits = if step < 1.0 { 1 } else { 0 };
        let tick = |place: i64| {
            let value = place as f64 * step;
            Tick {
                x: self.at(value),
                text: if place == 0 { "0".into() } else { format!("{value:+.digits$} %") },
            }
        };
        (first..=last).map(tick).collect()
    }
}

fn cut(name: &str) -> String {
    if name.chars().count() <= LETTERS {
        name.into()
    } else {
        name.chars().take(LETTERS - 1).collect::<String>() + "…"
    }
}

pub(crate) fn changes(of: &[(&str, f64, Option<[f64; 2]>)], more_is_better: bool) -> Changes {
    let rows: Vec<_> = of
        .iter()
        .map(|&(name, percent, interval)| {
            let sure = interval.is_some_and(|[low, high]| low > 0.0 || high < 0.0);
            let class = match (sure, (percent > 0.0) == more_is_better) {
                (false, _) => "",
                (true, true) => "better",
                (true, false) => "worse",
            };
            (name, percent, interval, class)
        })
        .collect();
    draw(&rows)
}

pub(crate) fn of_differences(differences: &[&Difference]) -> Changes {
    let class = |verdict: Verdict| match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        _ => "",
    };
    let rows: Vec<_> = differences
        .iter()
        .map(|one| {
            (one.label.as_str(), one.change_percent, one.interval_95_percent, class(one.verdict))
        })
        .collect();
    draw(&rows)
}

/// A row's name, its change and the change's interval in percent, and its class.
type ChangeRow<'a> = (&'a str, f64, Option<[f64; 2]>, &'static str);

fn draw(rows: &[ChangeRow<'_>]) -> Changes {
    let values = rows.iter().flat_map(|(_, percent, interval, _)| {
        [Some(*percent), interval.map(|i| i[0]), interval.map(|i| i[1])]
    });
    let scale = Scale::with_zero(values.flatten());
    let row = |(place, &(name, percent, interval, class)): (usize, &ChangeRow<'_>)| Row {
        y: AXIS + (place as f64 + 0.5) * ROW,
        name: cut(name),
        x: Some(scale.at(percent)),
        whisker: interval.map(|[low, high]| [scale.at(low), scale.at(high)]),
        class,
        text: format!("{:+.1} %", (percent * 10.0).round() / 10.0 + 0.0),
        a: Vec::new(),
        b: Vec::new(),
    };
    Changes {
        width: WIDTH,
        height: AXIS + rows.len() as f64 * ROW + 6.0,
        zero: Some(scale.at(0.0)),
        ticks: scale.ticks(),
        rows: rows.iter().enumerate().map(row).collect(),
    }
}

/// The runs of both sides of each difference, each row on its own scale from its minimum to its
/// maximum; `None` if runs are unknown.
pub(crate) fn runs(differences: &[&Difference], show: impl Fn(f64) -> String) -> Option<Changes> {
    let known: Vec<&&Difference> = differences
        .iter()
        .filter(|one| one.runs_a.len() + one.runs_b.len() > 2)
        .take(MAX)
        .collect();
    let rows: Vec<Row> = known
        .iter()
        .enumerate()
        .map(|(place, one)| {
            let all = || one.runs_a.iter().chain(&one.runs_b).copied();
            let (low, high) =
                all().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            let room = ((high - low) * 0.05).max(high.abs() * 1e-6);
            let scale = Scale { low: low - room, high: high + room };
            let at = |runs: &[f64]| runs.iter().map(|value| scale.at(*value)).collect();
            Row {
                y: AXIS + (place as f64 + 0.5) * RUNS_ROW,
                name: cut(&one.label),
                x: None,
                whisker: None,
                class: "",
                text: format!("{}–{}", show(low), show(high)),
                a: at(&one.runs_a),
                b: at(&one.runs_b),
            }
        })
        .collect();
    (!rows.is_empty()).then(|| Changes {
        width: WIDTH + VALUES,
        height: AXIS + rows.len() as f64 * RUNS_ROW + 6.0,
        zero: None,
        ticks: Vec::new(),
        rows,
    })
}
