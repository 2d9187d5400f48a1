//! What a study's first screen leaves out.

use super::{Line, Tone, pad, render, wrap};
use crate::format::{
    costs_by_mode, finding_steps, fixed_span, half_power_lines, plus_minus, rate, share,
};
use crate::{advice, doubts, plain, sentences};
use machine::text::printable;
use machine::units::{MIB, show_time};
use results::{
    Answer, CostModel, CostScope, Finding, HalfPower, Limit, Overview, PeakSource, Results, Varied,
};
use unicode_width::UnicodeWidthStr;

const GUTTER: usize = 8;

/// Empty without an answer.
pub fn details(results: &Results, width: usize, colour: bool) -> String {
    let Some(answer) = &results.answer else { return String::new() };
    let width = width.max(40);
    let mut lines = Vec::new();
    let room = width - GUTTER;
    let mut part = |name: &str, tone: Tone, body: Vec<Line>| {
        for (place, mut line) in body.into_iter().enumerate() {
            let name = if place == 0 { name } else { "" };
            line.insert(0, (tone, pad(name, GUTTER)));
            lines.push(line);
        }
    };
    let say = |tone, texts: &[String]| -> Vec<Line> {
        texts.iter().flat_map(|text| sentence(tone, text, room)).collect()
    };
    part("Doubt", Tone::Doubt, say(Tone::Doubt, &doubts::merged(answer)));
    part("Peak", Tone::Quiet, peaks(results, answer, room));
    part("Plain", Tone::Quiet, say(Tone::Plain, &plain::rates(&answer.plain)));
    part("Limit", Tone::Quiet, answer.limits.iter().flat_map(|one| limit(one, room)).collect());
    part("Half", Tone::Quiet, half_power(&answer.half_power, room));
    let (costs, more_costs) = costs_by_mode(&answer.costs);
    part("CPU", Tone::Quiet, costs.into_iter().chain(more_costs).map(cost).collect());
    let findings = answer.findings.iter().enumerate();
    let findings = findings.flat_map(|(place, finding)| change(place + 1, finding, room));
    part("Change", Tone::Quiet, findings.collect());
    let predicted = answer.predictions.iter().map(|one| sentences::prediction(one).full().into());
    part("Predict", Tone::Quiet, say(Tone::Plain, &predicted.collect::<Vec<String>>()));
    part("Unsure", Tone::Quiet, say(Tone::Quiet, &answer.unproven));
    let rules: Vec<String> = plain::rules(&answer.checklist).into_iter().collect();
    part("Rules", Tone::Quiet, say(Tone::Plain, &rules));
    part("Omitted", Tone::Quiet, say(Tone::Quiet, &answer.left_out));
    lines.push(Vec::new());
    render(&lines, width, colour) + &classic(results, width, colour)
}

pub(super) fn classic(results: &Results, width: usize, colour: bool) -> String {
    let Some(view) = Overview::of(results).and_then(|one| crate::classic::view(&one)) else {
        return String::new();
    };
    let note = view.note.map(|note| format!("  {note}\n")).unwrap_or_default();
    super::table(&view.head, &view.rows, 1, width, colour) + &note + "\n"
}

fn sentence(tone: Tone, text: &str, room: usize) -> Vec<Line> {
    wrap(text, room).into_iter().map(|line| vec![(tone, line)]).collect()
}

fn limit(limit: &Limit, room: usize) -> Vec<Line> {
    let mut lines = sentence(Tone::Plain, sentences::limit(limit).full(), room);
    let mut add = |name: &str, texts: &[String]| {
        if !texts.is_empty() {
            let text = format!("{name}{}", texts.join("; "));
            lines.extend(
                wrap(&text, room - 2)
                    .into_iter()
                    .map(|line| vec![(Tone::Plain, "  ".into()), (Tone::Quiet, line)]),
            );
        }
    };
    add("tried: ", &sentences::other_trials(limit));
    add("excluded: ", &limit.excluded);
    lines
}

fn peaks(results: &Results, answer: &Answer, room: usize) -> Vec<Line> {
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
        let how = results
            .points
            .get(peak.point)
            .map_or_else(|| printable(&peak.settings), |point| point.workload.short());
        let how = wrap(&how, room - 6).into_iter();
        lines.extend(how.map(|line| vec![(Tone::Quiet, format!("      {line}"))]));
    }
    lines
}

fn half_power(all: &[HalfPower], room: usize) -> Vec<Line> {
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
    let lines = groups.iter().flat_map(|(name, members)| {
        sentence(Tone::Plain, &format!("{name}: {}", settings_at(members)), room)
    });
    lines.collect()
}

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

fn change(number: usize, finding: &Finding, room: usize) -> Vec<Line> {
    let gained = advice::gain(finding);
    let mut lines: Vec<Line> = Vec::new();
    let beside = room.saturating_sub(5 + gained.width());
    for (place, title) in wrap(&finding.title, beside).into_iter().enumerate() {
        let title = (Tone::Strong, format!("  {title}"));
        lines.push(match place {
            0 => vec![(Tone::Plain, format!("{number}  ")), (Tone::Good, gained.clone()), title],
            _ => vec![(Tone::Plain, " ".repeat(3 + gained.width())), title],
        });
    }
    let parts = [
        (Tone::Plain, "", finding.evidence.clone()),
        (Tone::Plain, "", advice::figures(finding)),
        (Tone::Plain, "", finding_steps(finding)),
        (Tone::Quiet, "setting: ", finding.setting.clone()),
        (Tone::Quiet, "check: ", finding.check.clone()),
    ];
    for (tone, name, text) in parts.into_iter().filter(|(_, _, text)| !text.is_empty()) {
        let body = wrap(&format!("{name}{text}"), room - 3).into_iter();
        lines.extend(body.map(|line| vec![(Tone::Plain, "   ".into()), (tone, line)]));
    }
    lines
}
