//! The answer of a study on one screen.

use super::{Line, Tone, fit, pad, points, render, wrap, wrap_most};
use crate::format::{
    costs_by_mode, duration, finding_costs, finding_steps, grouped, half_power_lines, plural, plus_minus, prediction,
    rate, share,
};
use crate::plain;
use machine::text::printable;
use machine::units::{MIB, show_size, show_time, significant};
use results::{Answer, CostModel, CostScope, Finding, HalfPower, Limit, LimitOf, PeakSource, Results, Rule, Varied};
use unicode_width::UnicodeWidthStr;

/// Width of the column of part names.
const GUTTER: usize = 8;

/// How much detail to show, so that the answer fits.
#[derive(Clone, Copy)]
struct Detail {
    doubts: usize,
    doubt_lines: usize,
    settings: bool,
    limit_lines: usize,
    /// Lines for limits other than the peaks'.
    other_limit_lines: usize,
    half_power_groups: usize,
    half_power_lines: usize,
    costs: usize,
    predictions: usize,
    /// Lines for the rules.
    rule_lines: usize,
    evidence_lines: usize,
    /// Number of changes shown with their effect on processor time and p99.
    change_costs: usize,
    /// Show the contribution of each change.
    steps: bool,
    setting: bool,
    check: bool,
    left_out: usize,
    spaced: bool,
}

/// The minimum detail.
const LEAST: Detail = Detail {
    doubts: 1,
    doubt_lines: 1,
    settings: false,
    limit_lines: 1,
    other_limit_lines: 1,
    half_power_groups: 1,
    half_power_lines: 1,
    costs: 0,
    predictions: 2,
    rule_lines: 0,
    evidence_lines: 1,
    change_costs: 0,
    steps: false,
    setting: false,
    check: false,
    left_out: 0,
    spaced: false,
};

/// Details to add while there is room, most important first.
const MORE: [fn(&mut Detail); 28] = [
    |d| d.settings = true,
    |d| d.change_costs = 1,
    |d| d.rule_lines = 1,
    |d| d.half_power_groups = 2,
    |d| d.other_limit_lines = 2,
    |d| d.change_costs = 2,
    |d| d.change_costs = 3,
    |d| d.doubt_lines = 2,
    |d| d.limit_lines = 2,
    |d| d.costs = 1,
    |d| d.steps = true,
    |d| d.predictions = 6,
    |d| d.rule_lines = 2,
    |d| d.setting = true,
    |d| d.evidence_lines = 2,
    |d| d.half_power_groups = 4,
    |d| d.half_power_lines = 2,
    |d| d.doubts = 3,
    |d| d.costs = 2,
    |d| d.spaced = true,
    |d| d.check = true,
    |d| d.limit_lines = 4,
    |d| d.half_power_groups = 8,
    |d| d.half_power_lines = 4,
    |d| d.left_out = 2,
    |d| d.evidence_lines = 3,
    |d| d.doubts = 6,
    |d| d.costs = 6,
];

/// The answer of a study on one screen: doubts first, then peaks, a plain program's rates, limits,
/// half-power points, processor cost, and the three changes with the largest gain.
///
/// It has at most 22 lines, and from 100 columns on at most 24. [`super::points`] shows documents
/// without an answer (a run, a sweep).
pub fn answer(results: &Results, width: usize, colour: bool) -> String {
    let Some(answer) = &results.answer else { return points(results, width, colour) };
    let width = width.max(40);
    let most = if width >= 100 { 24 } else { 22 };
    let mut detail = LEAST;
    let mut lines = compose(results, answer, detail, width);
    for more in MORE {
        let mut richer = detail;
        more(&mut richer);
        let longer = compose(results, answer, richer, width);
        if longer.len() <= most {
            (detail, lines) = (richer, longer);
        }
    }
    lines.truncate(most);
    render(&lines, width, colour)
}

/// Lays out the parts.
fn compose(results: &Results, answer: &Answer, detail: Detail, width: usize) -> Vec<Line> {
    let room = width - GUTTER;
    let mut lines = vec![title(results, width)];
    let mut part = |name: &str, tone: Tone, body: Vec<Line>| {
        if body.is_empty() {
            return;
        }
        if detail.spaced {
            lines.push(Vec::new());
        }
        for (place, mut line) in body.into_iter().enumerate() {
            let name = if place == 0 { name } else { "" };
            line.insert(0, (tone, pad(name, GUTTER)));
            lines.push(line);
        }
    };
    part("Doubt", Tone::Doubt, doubts(&answer.doubts, detail, room));
    part("Peak", Tone::Quiet, peaks(results, answer, detail, room));
    let plain_rates = plain::rates(&answer.plain, room).into_iter().map(|line| vec![(Tone::Plain, fit(&line, room))]);
    part("Plain", Tone::Quiet, plain_rates.collect());
    part("Limit", Tone::Quiet, limits(&answer.limits, detail, room));
    part("Half", Tone::Quiet, half_power(&answer.half_power, detail, room));
    let (costs, more_costs) = costs_by_mode(&answer.costs);
    part("CPU", Tone::Quiet, costs.into_iter().chain(more_costs).take(detail.costs).map(cost).collect());
    let findings = answer
        .findings
        .iter()
        .take(3)
        .enumerate()
        .flat_map(|(place, finding)| change(place + 1, finding, detail, room));
    let enough = plain::enough(&answer.plain, room).into_iter().flat_map(|text| sentence(Tone::Good, &text, room, 1));
    part("Change", Tone::Quiet, enough.chain(findings).collect());
    let predicted =
        answer.predictions.iter().take(detail.predictions).flat_map(|one| whole_clauses(&prediction(one), room, 1));
    part("Predict", Tone::Quiet, predicted.collect());
    part("Rules", Tone::Quiet, rules(&answer.checklist, detail.rule_lines, room));
    let left_out = answer.left_out.iter().take(detail.left_out).flat_map(|text| sentence(Tone::Quiet, text, room, 1));
    part("Omitted", Tone::Quiet, left_out.collect());
    lines
}

/// The target on the left, points and time on the right.
fn title(results: &Results, width: usize) -> Line {
    let spent = format!("{}, {}", plural(results.points.len(), "point"), duration(results.elapsed_ns));
    let name = fit(&printable(&results.target.name), width.saturating_sub(spent.width() + 2));
    let gap = width.saturating_sub(name.width() + spent.width());
    vec![(Tone::Strong, name), (Tone::Plain, " ".repeat(gap)), (Tone::Quiet, spent)]
}

fn sentence(tone: Tone, text: &str, room: usize, most: usize) -> Vec<Line> {
    wrap_most(text, room, most).into_iter().map(|line| vec![(tone, line)]).collect()
}

/// A sentence with a reason: if it exceeds `most` lines, whole clauses at its end and a figure in
/// brackets are dropped.
fn whole_clauses(text: &str, room: usize, most: usize) -> Vec<Line> {
    let mut said = text;
    while wrap(said, room).len() > most {
        let shorter = said.rfind("; ").or_else(|| said.strip_suffix(')').and_then(|said| said.rfind(" (")));
        let Some(end) = shorter else { break };
        said = &said[..end];
    }
    wrap(said, room).into_iter().map(|line| vec![(Tone::Plain, line)]).collect()
}

/// Both rates of a finding's evidence; without room, only the new rate.
fn evidence(text: &str, room: usize, most: usize) -> String {
    let before =
        text.rsplit_once(" against ").and_then(|(after, before)| Some((after, before.split_once(" with ")?.0)));
    match before {
        Some((after, before)) if wrap(text, room).len() > most => format!("{after} against {before}"),
        _ => text.to_owned(),
    }
}

/// A limit's sentence, with the experiment that would refute it if none was decisive; it is the
/// first to be dropped.
pub(super) fn with_experiment(limit: &Limit) -> String {
    match &limit.would_refute {
        Some(experiment) => format!("{}; {experiment}", limit.sentence),
        None => limit.sentence.clone(),
    }
}

/// The peaks' limits in a sentence each, and all others in one line: `plain reads: bus; random
/// reads of 4 KiB: media`.
fn limits(limits: &[Limit], detail: Detail, room: usize) -> Vec<Line> {
    let (peaks, others): (Vec<&Limit>, Vec<&Limit>) = limits.iter().partition(|limit| limit.of == LimitOf::Peak);
    let sentences = peaks.iter().flat_map(|limit| whole_clauses(&with_experiment(limit), room, detail.limit_lines));
    let mut words: Vec<(String, Vec<String>)> = Vec::new();
    for limit in others {
        let subject = format!("{} {}s", limit.of, limit.op);
        let size = limit.request_bytes.map(|bytes| show_size(u64::from(bytes))).unwrap_or_default();
        let found = limit.what.name().replace('_', " ");
        match words.iter_mut().find(|(known, _)| *known == subject) {
            Some((_, all)) if all.last().is_some_and(|last| last.starts_with(&format!("{found} "))) => {}
            Some((_, all)) => all.push(format!("{found} ({size})")),
            None => words.push((subject, vec![format!("{found} ({size})")])),
        }
    }
    let words: Vec<String> = words.iter().map(|(subject, all)| format!("{subject}: {}", all.join(", "))).collect();
    let summary = if words.is_empty() {
        Vec::new()
    } else {
        sentence(Tone::Plain, &words.join("; "), room, detail.other_limit_lines)
    };
    sentences.chain(summary).collect()
}

/// The number of rules that hold, with the names of the broken ones if all fit.
fn rules(all: &[Rule], lines: usize, room: usize) -> Vec<Line> {
    let fitting = |text: &String| wrap(text, room).len() <= lines;
    let said = [true, false].into_iter().filter_map(|named| plain::rules(all, named)).find(fitting);
    said.iter().flat_map(|text| sentence(Tone::Plain, text, room, lines)).collect()
}

fn doubts(doubts: &[String], detail: Detail, room: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = doubts
        .iter()
        .take(detail.doubts)
        .flat_map(|text| sentence(Tone::Doubt, text, room, detail.doubt_lines))
        .collect();
    if doubts.len() > detail.doubts {
        lines.push(vec![(
            Tone::Doubt,
            format!("and {} more in the report", plural(doubts.len() - detail.doubts, "doubt")),
        )]);
    }
    lines
}

fn peaks(results: &Results, answer: &Answer, detail: Detail, room: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for peak in &answer.peaks {
        let mut line = vec![(Tone::Plain, pad(peak.op.name(), 6)), (Tone::Strong, rate(peak.throughput_bytes_per_s))];
        if let Some(spread) = plus_minus(peak.throughput_bytes_per_s, peak.interval_95) {
            line.push((Tone::Plain, format!(" {spread}")));
        }
        if let Some(advertised) = &peak.advertised
            && let Some(part) = share(peak.throughput_bytes_per_s, advertised.throughput_bytes_per_s)
        {
            line.push((Tone::Plain, format!(", {part} of what {} allows", printable(&advertised.layer))));
        }
        lines.push(line);
        if detail.settings {
            let how = results
                .points
                .get(peak.point)
                .map_or_else(|| printable(&peak.settings), |point| point.workload.short());
            lines.push(vec![(Tone::Quiet, fit(&format!("      {how}"), room))]);
        }
    }
    lines
}

/// Half-power points: one sentence for each operation and setting.
fn half_power(all: &[HalfPower], detail: Detail, room: usize) -> Vec<Line> {
    let mut groups: Vec<(String, Vec<&HalfPower>)> = Vec::new();
    for half in all {
        let from = if half.peak_from == PeakSource::Measured {
            String::new()
        } else {
            format!(" of the {} peak", half.peak_from)
        };
        let varied = if half.of == Varied::Depth { "depth" } else { "size" };
        let name = format!("{} {varied}{from}", half.op);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(half),
            None => groups.push((name, vec![half])),
        }
    }
    let lines = groups.iter().take(detail.half_power_groups).flat_map(|(name, members)| {
        sentence(Tone::Plain, &format!("{name}: {}", settings_at(members)), room, detail.half_power_lines)
    });
    lines.collect()
}

/// `98 KiB at depth 1, 39 KiB at 2, 18 KiB at 4 to 8`: common words appear once.
fn settings_at(members: &[&HalfPower]) -> String {
    let lines = half_power_lines(members);
    let all = |shares: &dyn Fn(&str) -> bool| lines.iter().all(|line| shares(&line.at));
    let before = if all(&|at| at.starts_with("depth ")) { "depth " } else { "" };
    let after = if all(&|at| at.ends_with(" requests")) { " requests" } else { "" };
    let said = lines.iter().enumerate().map(|(place, line)| {
        let at = if place == 0 { &line.at } else { &line.at[before.len()..line.at.len() - after.len()] };
        format!("{} at {}", line.value, printable(at))
    });
    said.collect::<Vec<_>>().join(", ")
}

fn cost(cost: &CostModel) -> Line {
    let whose = if cost.whose == CostScope::Machine { "whole machine" } else { "process" };
    let text = format!(
        "{}: {} a request + {} a MiB ({whose})",
        cost.mode,
        show_time(cost.ns_per_request),
        show_time(cost.ns_per_byte * MIB as f64)
    );
    vec![(Tone::Plain, text)]
}

/// The gain with its interval: `×1.83 (1.70–1.95)`.
pub(super) fn gain(finding: &Finding) -> String {
    let show = |value: f64| if value >= 99.5 { grouped(value) } else { significant(value, 3) };
    // If runs repeat exactly, the interval is the gain itself.
    let interval = finding.gain_interval_95.map(|ends| ends.map(show)).filter(|[low, high]| low != high);
    let interval = interval.map(|[low, high]| format!(" ({low}–{high})")).unwrap_or_default();
    format!("×{}{interval}", show(finding.gain))
}

fn change(number: usize, finding: &Finding, detail: Detail, room: usize) -> Vec<Line> {
    let gained = gain(finding);
    let mut lines: Vec<Line> = Vec::new();
    let beside = room.saturating_sub(5 + gained.width());
    for (place, title) in wrap_most(&finding.title, beside, 2).into_iter().enumerate() {
        let title = (Tone::Strong, format!("  {title}"));
        lines.push(match place {
            0 => vec![(Tone::Plain, format!("{number}  ")), (Tone::Good, gained.clone()), title],
            _ => vec![(Tone::Plain, " ".repeat(3 + gained.width())), title],
        });
    }
    let mut add = |tone, name: &str, text: &str, most| {
        for line in wrap_most(&format!("{name}{text}"), room - 3, most) {
            lines.push(vec![(Tone::Plain, "   ".into()), (tone, line)]);
        }
    };
    add(Tone::Plain, "", &evidence(&finding.evidence, room - 3, detail.evidence_lines), detail.evidence_lines);
    let costs = finding_costs(finding);
    if number <= detail.change_costs && !costs.is_empty() {
        add(Tone::Plain, "", &costs, 1);
    }
    let steps = finding_steps(finding);
    if detail.steps && !steps.is_empty() {
        add(Tone::Plain, "", &steps, 2);
    }
    if detail.setting {
        add(Tone::Quiet, "setting: ", &finding.setting, detail.evidence_lines);
    }
    if detail.check {
        add(Tone::Quiet, "check: ", &finding.check, detail.evidence_lines);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_loses_clauses_and_never_a_part_of_one() {
        let text = "reads are limited by the bus: busy 100 % at 15.8 MiB/s (disk 60 %, PCI 22 %); 16 instead of 8: no change, so not latency";
        let said = |room, most| -> String {
            let lines: Vec<String> = whole_clauses(text, room, most).iter().map(|line| line[0].1.clone()).collect();
            lines.join(" ")
        };
        assert_eq!(said(90, 2), text);
        assert_eq!(said(90, 1), "reads are limited by the bus: busy 100 % at 15.8 MiB/s (disk 60 %, PCI 22 %)");
        assert_eq!(said(60, 1), "reads are limited by the bus: busy 100 % at 15.8 MiB/s");
        assert_eq!(said(30, 1), "reads are limited by the bus: busy 100 % at 15.8 MiB/s", "it wraps");
    }

    #[test]
    fn evidence_that_is_too_long_keeps_both_rates() {
        let text = "4235 MiB/s with direct read, seq, 1 MiB, against 1569 MiB/s with buffered read, seq";
        assert_eq!(evidence(text, 90, 1), text);
        assert_eq!(evidence(text, 70, 1), "4235 MiB/s with direct read, seq, 1 MiB, against 1569 MiB/s");
        assert_eq!(evidence("no rates at all", 5, 1), "no rates at all");
    }
}
