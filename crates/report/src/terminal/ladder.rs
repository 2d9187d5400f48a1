//! The ladder in a terminal.

use super::one_point::phases;
use super::{Line, Tone, fit, pad, render, wrap};
use crate::format::{bar_share, buses_at_peaks, plus_minus, rate, stage_settings};
use crate::sentences;
use machine::text::printable;
use machine::units::show_size_rounded;
use results::{Bottleneck, Ladder, LimitOf, Results, Stage, StageRate};
use unicode_width::UnicodeWidthStr;
use workload::OpKind;

const BAR: usize = 14;

const MIN_RATE_WIDTH: usize = 12;

/// Reads, then writes; empty without a ladder.
pub fn ladder(results: &Results, width: usize, colour: bool) -> String {
    let Some(ladder) = &results.ladder else { return String::new() };
    let width = width.max(60);
    let mut lines: Vec<Line> =
        vec![vec![(Tone::Strong, fit(&printable(&results.target.name), width))]];
    for op in [OpKind::Read, OpKind::Write] {
        let table = of_op(ladder, op, width);
        if !table.is_empty() {
            lines.push(Vec::new());
            lines.extend(table);
        }
    }
    let limits = results.answer.iter().flat_map(|answer| &answer.limits);
    for limit in limits {
        // Without a verdict, all evidence is shown.
        let unknown = limit.what == Bottleneck::Unknown;
        if unknown || limit.of == LimitOf::Peak {
            lines.extend(text("Limit    ", Tone::Plain, sentences::limit(limit).full(), width));
        }
        if unknown {
            let tried = sentences::other_trials(limit).join("; ");
            let excluded = limit.excluded.join("; ");
            let reported = [("Tried    ", tried), ("Excluded ", excluded)]
                .into_iter()
                .filter(|(_, words)| !words.is_empty());
            lines.extend(reported.flat_map(|(name, words)| text(name, Tone::Plain, &words, width)));
        }
    }
    for (op, bus) in buses_at_peaks(results) {
        lines.extend(text("Bus      ", Tone::Plain, &format!("{op}s: {}", phases(bus)), width));
    }
    let reported = settings(ladder, width);
    if !reported.is_empty() {
        lines.push(Vec::new());
        lines.extend(reported);
    }
    for stage in &ladder.stages {
        lines.extend(
            stage
                .warnings
                .iter()
                .flat_map(|warning| text("Wrong    ", Tone::Doubt, warning, width)),
        );
    }
    lines.extend(ladder.risks.iter().flat_map(|risk| text("Risk     ", Tone::Doubt, risk, width)));
    render(&lines, width, colour)
}

fn text(name: &str, tone: Tone, words: &str, width: usize) -> Vec<Line> {
    let body = wrap(words, width.saturating_sub(name.width())).into_iter().enumerate();
    body.map(|(at, line)| {
        let name = if at == 0 { name.to_owned() } else { " ".repeat(name.width()) };
        vec![(Tone::Quiet, name), (tone, line)]
    })
    .collect()
}

fn of_op(ladder: &Ladder, op: OpKind, width: usize) -> Vec<Line> {
    let rates: Vec<(&Stage, &StageRate)> = ladder
        .stages
        .iter()
        .filter_map(|stage| Some((stage, stage.rates.iter().find(|rate| rate.op == op)?)))
        .collect();
    if rates.is_empty() {
        return Vec::new();
    }
    let max = rates
        .iter()
        .flat_map(|(_, one)| [one.advertised_bytes_per_s(), one.achieved_bytes_per_s()])
        .flatten()
        .fold(0.0, f64::max);
    // Stage, advertised, achieved, spread, share, half power, busy, bar, with a space between them.
    // A memory rate has more digits than a disk's.
    let reported = rates
        .iter()
        .map(|(_, one)| reached(one))
        .chain(rates.iter().filter_map(|(_, one)| one.advertised_bytes_per_s().map(rate)));
    let column = reported.map(|text| text.width()).fold(MIN_RATE_WIDTH, usize::max);
    let name = width.saturating_sub(2 * (column + 1) + 8 + 6 + 9 + 6 + BAR + 1).clamp(12, 34);
    let row = |cells: [&str; 7]| {
        let [stage, promised, reached, spread, share, half, busy] = cells;
        let stage = pad(&fit(stage, name), name);
        format!(
            "{stage} {promised:>column$} {reached:>column$} {spread:>7} {share:>5} {half:>8} {busy:>5} "
        )
    };
    let title = format!("  {op}s");
    let head = [&*title, "advertised", "achieved", "", "share", "half at", "busy"];
    let mut lines = vec![vec![(Tone::Strong, row(head))]];
    for (stage, one) in rates {
        let mark = if one.narrowest { "> " } else { "  " };
        let spread = one
            .achieved
            .as_ref()
            .and_then(|one| plus_minus(one.throughput_bytes_per_s, one.interval_95));
        let (kind, name) = stage.words();
        let cells = [
            format!("{mark}{kind} {}", printable(name)).trim_end().to_owned(),
            one.advertised_bytes_per_s().map(rate).unwrap_or_default(),
            reached(one),
            spread.unwrap_or_default(),
            one.share_percent.map(|share| format!("{share:.0} %")).unwrap_or_default(),
            one.half_power_bytes.map(show_size_rounded).unwrap_or_default(),
            one.busy_percent.map(|busy| format!("{busy:.0} %")).unwrap_or_default(),
        ];
        let cells = row(cells.each_ref().map(String::as_str));
        let tone = if one.narrowest { Tone::Good } else { Tone::Plain };
        lines.push(vec![
            (tone, cells),
            (tone, bar(one.advertised_bytes_per_s(), one.achieved_bytes_per_s(), max)),
        ]);
    }
    lines
}

fn reached(one: &StageRate) -> String {
    let Some(reached) = &one.achieved else { return String::new() };
    format!("{}{}", if reached.at_least { "≥" } else { "" }, rate(reached.throughput_bytes_per_s))
}

fn bar(advertised: Option<f64>, achieved: Option<f64>, max: f64) -> String {
    let columns = |rate| (bar_share(rate, max) * BAR as f64).round().max(1.0) as usize;
    let full = achieved.map_or(0, columns);
    let promised = advertised.map_or(0, columns);
    let mut bar = "█".repeat(full.min(BAR));
    bar += &"░".repeat(promised.saturating_sub(full));
    pad(&bar, BAR)
}

fn settings(ladder: &Ladder, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for stage in &ladder.stages {
        let reported: Vec<String> = [formulas(stage), stage_settings(stage)]
            .into_iter()
            .filter(|one| !one.is_empty())
            .collect();
        let reported = match reported.join("; ") {
            reported if reported.is_empty() && stage.rates.is_empty() => {
                "no details known".to_owned()
            }
            reported => reported,
        };
        if reported.is_empty() {
            continue;
        }
        let (kind, name) = stage.words();
        let name = pad(&fit(&format!("{kind} {}", printable(name)), 30), 31);
        lines.extend(text(&name, Tone::Plain, &reported, width));
    }
    lines
}

fn formulas(stage: &Stage) -> String {
    let short = |one: &StageRate| Some((one.op, one.advertised.as_ref()?.formula.clone()));
    let reported: Vec<(OpKind, String)> = stage.rates.iter().filter_map(short).collect();
    match &reported[..] {
        [] => String::new(),
        [(_, first), ..] if reported.iter().all(|(_, formula)| formula == first) => {
            format!("advertised: {}", printable(first))
        }
        _ => {
            let each: Vec<String> = reported
                .iter()
                .map(|(op, formula)| format!("{op}s: {}", printable(formula)))
                .collect();
            format!("advertised {}", each.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_any_length_align() {
        let stage = |mib_per_s: f64| {
            let rate = mib_per_s * f64::from(1 << 20);
            let reached = results::Reached::new(rate, None, results::Method::Peak);
            let rate = StageRate {
                op: OpKind::Read,
                advertised: None,
                achieved: Some(reached),
                share_percent: None,
                busy_percent: Some(9.0),
                half_power_bytes: None,
                narrowest: false,
            };
            let kind = results::StageKind::Memory;
            Stage {
                kind,
                name: "copy".into(),
                rates: vec![rate],
                settings: Vec::new(),
                warnings: Vec::new(),
            }
        };
        let ladder = Ladder {
            stages: vec![stage(447_832.0), stage(16.0), stage(1_234_567.0)],
            risks: Vec::new(),
        };
        let rows: Vec<String> =
            of_op(&ladder, OpKind::Read, 100).into_iter().map(|row| row[0].1.clone()).collect();
        assert!(rows[1].contains("447,832 MiB/s"), "{rows:?}");
        let widths: Vec<usize> = rows.iter().map(|row| row.width()).collect();
        assert!(widths.iter().all(|&one| one == widths[0]), "{rows:?}");
    }

    #[test]
    fn a_bar_shows_both_rates_by_their_factors() {
        let full = |text: &str| text.chars().filter(|&c| c == '█').count();
        let light = |text: &str| text.chars().filter(|&c| c == '░').count();
        let one = bar(Some(1e9), Some(1e8), 1e9);
        assert_eq!((full(&one), light(&one)), (9, 5), "a tenth is a third of three decades less");
        let over = bar(Some(1e8), Some(1e9), 1e9);
        assert_eq!((full(&over), light(&over)), (BAR, 0));
        assert_eq!(bar(None, None, 1e9).trim(), "");
    }
}
