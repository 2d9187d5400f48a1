//! The answer of a study on one screen.

use super::{Line, Tone, fit, pad, points, render, wrap, wrap_most};
use crate::format::{
    costs_by_mode, duration, finding_costs, finding_steps, fixed_span, grouped, half_power_lines,
    plural, plus_minus, rate, share,
};
use crate::plain;
use crate::sentences::{self, Versions};
use machine::text::printable;
use machine::units::{MIB, show_size, show_time, significant};
use results::{
    Answer, Bottleneck, CostModel, CostScope, Finding, HalfPower, Limit, LimitOf, PeakSource,
    Point, Results, Rule, Varied,
};
use unicode_width::UnicodeWidthStr;
use workload::OpKind;

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
const MIN: Detail = Detail {
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
    let max = if width >= 100 { 24 } else { 22 };
    let mut detail = MIN;
    let mut lines = compose(results, answer, detail, width);
    for more in MORE {
        let mut richer = detail;
        more(&mut richer);
        let longer = compose(results, answer, richer, width);
        if longer.len() <= max {
            (detail, lines) = (richer, longer);
        }
    }
    lines.truncate(max);
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
    let plain_rates = plain::rates(&answer.plain, room)
        .into_iter()
        .map(|line| vec![(Tone::Plain, fit(&line, room))]);
    part("Plain", Tone::Quiet, plain_rates.collect());
    part("Limit", Tone::Quiet, limits(&answer.limits, detail, room));
    part("Half", Tone::Quiet, half_power(&answer.half_power, detail, room));
    let (costs, more_costs) = costs_by_mode(&answer.costs);
    part(
        "CPU",
        Tone::Quiet,
        costs.into_iter().chain(more_costs).take(detail.costs).map(cost).collect(),
    );
    let findings = answer
        .findings
        .iter()
        .take(3)
        .enumerate()
        .flat_map(|(place, finding)| change(place + 1, finding, &results.points, detail, room));
    let enough = plain::enough(&answer.plain, room)
        .into_iter()
        .flat_map(|text| sentence(Tone::Good, &text, room, 1));
    part("Change", Tone::Quiet, enough.chain(findings).collect());
    let predicted = answer
        .predictions
        .iter()
        .take(detail.predictions)
        .flat_map(|one| shortened(&sentences::prediction(one), room, 1));
    part("Predict", Tone::Quiet, predicted.collect());
    part("Rules", Tone::Quiet, rules(&answer.checklist, detail.rule_lines, room));
    let left_out = answer
        .left_out
        .iter()
        .take(detail.left_out)
        .flat_map(|text| sentence(Tone::Quiet, text, room, 1));
    part("Omitted", Tone::Quiet, left_out.collect());
    lines
}

/// The target on the left, points and time on the right.
fn title(results: &Results, width: usize) -> Line {
    let spent =
        format!("{}, {}", plural(results.points.len(), "point"), duration(results.elapsed_ns));
    let name = fit(&printable(&results.target.name), width.saturating_sub(spent.width() + 2));
    let gap = width.saturating_sub(name.width() + spent.width());
    vec![(Tone::Strong, name), (Tone::Plain, " ".repeat(gap)), (Tone::Quiet, spent)]
}

fn sentence(tone: Tone, text: &str, room: usize, max: usize) -> Vec<Line> {
    wrap_most(text, room, max).into_iter().map(|line| vec![(tone, line)]).collect()
}

/// The longest version of a sentence that takes at most this many lines, or the shortest.
fn shortened(versions: &Versions, room: usize, max: usize) -> Vec<Line> {
    let said = versions.fitting(|text| wrap(text, room).len() <= max);
    wrap(said, room).into_iter().map(|line| vec![(Tone::Plain, line)]).collect()
}

/// A bottleneck, and the request size that it limits.
type BySize = (Bottleneck, Option<u32>);

/// The peaks' limits in a sentence each, and all others in one line: `plain reads: bus; random
/// reads of 4 KiB: media`.
fn limits(limits: &[Limit], detail: Detail, room: usize) -> Vec<Line> {
    let (peaks, others): (Vec<&Limit>, Vec<&Limit>) =
        limits.iter().partition(|limit| limit.of == LimitOf::Peak);
    let sentences = peaks
        .iter()
        .flat_map(|limit| shortened(&sentences::limit(limit), room, detail.limit_lines));
    // The kind of rate, and its bottleneck from each request size on.
    let mut groups: Vec<(LimitOf, OpKind, Vec<BySize>)> = Vec::new();
    for limit in others {
        let found = (limit.what, limit.request_bytes);
        match groups.iter_mut().find(|(of, op, _)| (*of, *op) == (limit.of, limit.op)) {
            Some((_, _, all)) if all.last().is_some_and(|last| last.0 == limit.what) => {}
            Some((_, _, all)) => all.push(found),
            None => groups.push((limit.of, limit.op, vec![found])),
        }
    }
    let with_size = |(what, bytes): &BySize| {
        let size = bytes.map(|bytes| show_size(u64::from(bytes))).unwrap_or_default();
        format!("{} ({size})", what.name().replace('_', " "))
    };
    let words = groups.iter().map(|(of, op, all)| {
        format!("{of} {op}s: {}", all.iter().map(with_size).collect::<Vec<_>>().join(", "))
    });
    let words: Vec<String> = words.collect();
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
        let mut line = vec![
            (Tone::Plain, pad(peak.op.name(), 6)),
            (Tone::Strong, rate(peak.throughput_bytes_per_s)),
        ];
        if let Some(spread) = plus_minus(peak.throughput_bytes_per_s, peak.interval_95) {
            line.push((Tone::Plain, format!(" {spread}")));
        }
        if let Some(advertised) = &peak.advertised
            && let Some(part) =
                share(peak.throughput_bytes_per_s, advertised.throughput_bytes_per_s)
        {
            line.push((
                Tone::Plain,
                format!(", {part} of what {} allows", printable(&advertised.layer)),
            ));
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
        sentence(
            Tone::Plain,
            &format!("{name}: {}", settings_at(members)),
            room,
            detail.half_power_lines,
        )
    });
    lines.collect()
}

/// `98 KiB at depth 1, 39 KiB at 2, 18 KiB at 4 to 8`: common words appear once.
fn settings_at(members: &[&HalfPower]) -> String {
    let lines = half_power_lines(members);
    let said = lines.iter().enumerate().map(|(place, line)| {
        let at = match line.fixed {
            Some(fixed) if place > 0 => fixed_span(fixed, false, false),
            _ => line.at.clone(),
        };
        format!("{} at {}", line.value, printable(&at))
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
    let interval =
        finding.gain_interval_95.map(|ends| ends.map(show)).filter(|[low, high]| low != high);
    let interval = interval.map(|[low, high]| format!(" ({low}–{high})")).unwrap_or_default();
    format!("×{}{interval}", show(finding.gain))
}

fn change(
    number: usize,
    finding: &Finding,
    points: &[Point],
    detail: Detail,
    room: usize,
) -> Vec<Line> {
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
    let mut add = |tone, name: &str, text: &str, max| {
        for line in wrap_most(&format!("{name}{text}"), room - 3, max) {
            lines.push(vec![(Tone::Plain, "   ".into()), (tone, line)]);
        }
    };
    let evidence = sentences::evidence(finding, points);
    let evidence = evidence.fitting(|text| wrap(text, room - 3).len() <= detail.evidence_lines);
    add(Tone::Plain, "", evidence, detail.evidence_lines);
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
    use results::{BusyPart, Cause, LimitChange, LimitTrial, Meaning};

    #[test]
    fn a_sentence_loses_clauses_and_never_a_part_of_one() {
        let ratio = LimitTrial {
            change: String::new(),
            changed: Some(LimitChange::Deeper { from: 8, to: 16 }),
            before: 0,
            after: None,
            iops_ratio: Some(1.0),
            iops_ratio_interval_95: None,
            outcome: String::new(),
            meaning: Some(Meaning::NotLatency),
            tests_verdict: true,
        };
        let part = |name: &str, busy_percent| BusyPart { name: name.into(), busy_percent };
        let others = vec![part("disk", 60.0), part("PCI", 22.0)];
        let bus = Limit {
            of: LimitOf::Peak,
            op: OpKind::Read,
            request_bytes: None,
            point: None,
            throughput_bytes_per_s: Some(15.8 * MIB as f64),
            what: Bottleneck::Bus,
            cause: Some(Cause::Busiest { part: part("bus", 100.0), others }),
            plain_write: None,
            sentence: String::new(),
            excluded: Vec::new(),
            exclusions: Vec::new(),
            trials: vec![ratio],
            would_refute: None,
            refutation: None,
        };
        let bus = bus.with_sentences();
        let text = "reads are limited by the bus: busy 100 % of the time at 15.8 MiB/s (disk 60 %, PCI 22 %); 16 outstanding instead of 8: no change, so not latency";
        assert_eq!(bus.sentence, text);
        let said = |room, max| -> String {
            let lines = shortened(&sentences::limit(&bus), room, max);
            let lines: Vec<String> = lines.iter().map(|line| line[0].1.clone()).collect();
            lines.join(" ")
        };
        assert_eq!(said(90, 2), text);
        assert_eq!(
            said(90, 1),
            "reads are limited by the bus: busy 100 % of the time at 15.8 MiB/s (disk 60 %, PCI 22 %)"
        );
        assert_eq!(
            said(70, 1),
            "reads are limited by the bus: busy 100 % of the time at 15.8 MiB/s"
        );
        assert_eq!(
            said(30, 1),
            "reads are limited by the bus: busy 100 % of the time at 15.8 MiB/s",
            "it wraps"
        );
    }
}
