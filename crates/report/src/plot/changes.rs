//! Changes and runs as dots.

use super::scene::tenth;
use machine::units::show_change;
use results::compare::{Difference, Verdict};
use serde::Serialize;
use std::f64::consts::LN_2;

/// The table has all rows.
pub(crate) const MAX: usize = 60;

const WIDTH: f64 = 760.0;
const NAMES: f64 = 300.0;
const VALUES: f64 = 80.0;
const ROW: f64 = 20.0;
const RUNS_ROW: f64 = 28.0;
const AXIS: f64 = 24.0;
const LETTERS: usize = 44;
const FACTOR_TICKS: f64 = 6.0;

#[derive(Serialize)]
pub(crate) struct Changes {
    width: f64,
    height: f64,
    /// `None` if out of range.
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
    /// `None` if there are only runs.
    x: Option<f64>,
    whisker: Option<[f64; 2]>,
    /// `better`, `worse` or empty.
    class: &'static str,
    text: String,
    a: Vec<f64>,
    b: Vec<f64>,
}

/// Doubling and halving are equally far from zero; a rate that fell to nothing counts as a
/// ten-thousandth.
fn log_ratio(percent: f64) -> f64 {
    (percent / 100.0).max(-0.9999).ln_1p()
}

struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn with_zero(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((0.0f64, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
        let room = ((high - low) * 0.04).max(0.005);
        Scale { low: if low < 0.0 { low - room } else { -room }, high: high + room }
    }

    fn at(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        tenth(NAMES + share * (WIDTH - NAMES - VALUES))
    }

    fn ticks(&self) -> Vec<Tick> {
        if self.high > LN_2 || self.low < -LN_2 { self.factors() } else { self.percents() }
    }

    fn factors(&self) -> Vec<Tick> {
        let few = |base: &f64| (self.high - self.low) / base.ln() <= FACTOR_TICKS;
        let base = [2.0, 10.0, 100.0].into_iter().find(few).unwrap_or(1000.0f64);
        let ends = [(self.low / base.ln()).ceil() as i32, (self.high / base.ln()).floor() as i32];
        let tick = |power: i32| Tick {
            x: self.at(f64::from(power) * base.ln()),
            text: match power {
                0 => "0".into(),
                1.. => format!("{:.0} times", base.powi(power)),
                _ => format!("1/{:.0}", base.powi(-power)),
            },
        };
        (ends[0]..=ends[1]).map(tick).collect()
    }

    fn percents(&self) -> Vec<Tick> {
        let [low, high] = [self.low, self.high].map(|log| log.exp_m1() * 100.0);
        let rough = (high - low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|by| by * power)
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
        let digits = if step < 1.0 { 1 } else { 0 };
        let tick = |place: i64| {
            let value = place as f64 * step;
            Tick {
                x: self.at(log_ratio(value)),
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

/// Name, change and interval in percent, CSS class.
type ChangeRow<'a> = (&'a str, f64, Option<[f64; 2]>, &'static str);

fn draw(rows: &[ChangeRow<'_>]) -> Changes {
    let values = rows.iter().flat_map(|(_, percent, interval, _)| {
        [Some(*percent), interval.map(|i| i[0]), interval.map(|i| i[1])]
    });
    let scale = Scale::with_zero(values.flatten().map(log_ratio));
    let at = |percent: f64| scale.at(log_ratio(percent));
    let row = |(place, &(name, percent, interval, class)): (usize, &ChangeRow<'_>)| Row {
        y: AXIS + (place as f64 + 0.5) * ROW,
        name: cut(name),
        x: Some(at(percent)),
        whisker: interval.map(|ends| ends.map(at)),
        class,
        text: show_change(percent),
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

/// Draws each row on its own scale; `None` if runs are unknown.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(changes: &[f64]) -> Vec<String> {
        let rows: Vec<_> = changes.iter().map(|&percent| ("", percent, None)).collect();
        super::changes(&rows, true).ticks.into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn large_changes_have_an_axis_of_factors() {
        assert_eq!(ticks(&[3.0, 13.2]), ["0", "+5 %", "+10 %"]);
        assert_eq!(ticks(&[-50.0, 55_342.2]), ["0", "10 times", "100 times"]);
        let drawn = changes(&[("", 300.0, None), ("", -75.0, None)], true);
        let [up, down] = [&drawn.rows[0], &drawn.rows[1]].map(|row| row.x.unwrap());
        assert!((up + down - 2.0 * drawn.zero.unwrap()).abs() < 0.3, "4 times and a quarter");
        assert_eq!(drawn.rows[0].text, "4.00 times");
    }
}
