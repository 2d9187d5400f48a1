//! Many clients at once: a line for each point, the share of each client, and the conclusions.

use crate::format::{plural, plus_minus, rate_number, rate_unit};
use crate::terminal::{Tone, paint, table, wrap};
use hosts::{HostsPoint, HostsResult};
use machine::text::printable;
use machine::units::{show_rate, show_time, significant};

/// Clients listed of one point; more are counted.
const LISTED: usize = 16;

struct Text {
    out: String,
    width: usize,
    colour: bool,
}

impl Text {
    fn say(&mut self, tone: Tone, text: &str) {
        for line in wrap(text, self.width) {
            self.out.push_str(&paint(tone, &line, self.colour));
            self.out.push('\n');
        }
    }

    /// A text with a mark before its first line.
    fn mark(&mut self, mark: &str, tone: Tone, text: &str) {
        for (place, line) in wrap(text, self.width - 2).into_iter().enumerate() {
            let mark = if place == 0 { mark } else { " " };
            self.out.push_str(&paint(tone, &format!("{mark} {line}"), self.colour));
            self.out.push('\n');
        }
    }

    fn table(&mut self, header: &[&str], rows: &[Vec<String>], left: usize) {
        let header: Vec<String> = header.iter().map(|&name| name.to_owned()).collect();
        self.out.push_str(&table(&header, rows, left, self.width, self.colour));
    }
}

/// The document as text.
pub fn terminal(result: &HostsResult, width: usize, colour: bool) -> String {
    let mut text = Text { out: String::new(), width: width.max(40), colour };
    let mut hosts: Vec<&str> = result.clients.iter().map(|one| one.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let title = format!(
        "{} on {} of {}",
        result.target.name,
        plural(result.clients.len(), "client"),
        plural(hosts.len(), "host")
    );
    text.say(Tone::Strong, &title);
    result.scaling.iter().for_each(|one| text.say(Tone::Strong, &one.sentence));
    text.out.push('\n');
    points(&mut text, result);
    for one in last_points(result) {
        clients(&mut text, one);
    }
    result.warnings.iter().for_each(|warning| text.mark("!", Tone::Doubt, warning));
    text.out
}

fn points(text: &mut Text, result: &HostsResult) {
    let efficiency = |point: usize| {
        let mut steps = result.scaling.iter().flat_map(|one| &one.steps);
        let step = steps.find(|step| step.point as usize == point)?;
        Some(format!("{:.0} %", step.efficiency? * 100.0))
    };
    let rows: Vec<Vec<String>> = (result.points.iter().enumerate())
        .map(|(index, one)| {
            let mut row = vec![printable(&one.point.workload.short()), one.clients.to_string()];
            let Some(numbers) = &one.point.numbers else {
                row.extend(["failed".into(), String::new(), String::new(), String::new()]);
                row.extend([String::new(), String::new()]);
                return row;
            };
            let rate = numbers.throughput_bytes_per_s;
            row.extend([
                rate_number(rate),
                plus_minus(rate, numbers.interval_95).unwrap_or_default(),
                show_time(numbers.latency_ns.p50 as f64),
                show_time(numbers.latency_ns.p99 as f64),
                efficiency(index).unwrap_or_default(),
                one.fairness.map_or(String::new(), |index| significant(index, 3)),
            ]);
            row
        })
        .collect();
    let header = ["workload", "clients", rate_unit(), "", "p50", "p99", "efficiency", "fairness"];
    text.table(&header, &rows, 1);
    for one in &result.points {
        let about = format!(
            "{} with {}",
            one.point.workload.short(),
            plural(one.clients as usize, "client")
        );
        if let Some(error) = &one.point.error {
            text.mark("x", Tone::Failed, &format!("{about} failed: {error}"));
        }
        let numbers = one.point.numbers.iter().flat_map(|numbers| &numbers.warnings);
        for warning in one.warnings.iter().chain(numbers) {
            text.mark("!", Tone::Doubt, &format!("{warning} ({about})"));
        }
    }
}

/// The point with most clients of each workload.
fn last_points(result: &HostsResult) -> Vec<&HostsPoint> {
    let mut last: Vec<&HostsPoint> = Vec::new();
    for one in result.points.iter().filter(|one| one.point.numbers.is_some()) {
        match last.iter_mut().find(|known| known.point.workload == one.point.workload) {
            Some(known) if known.clients < one.clients => *known = one,
            Some(_) => {}
            None => last.push(one),
        }
    }
    last
}

fn clients(text: &mut Text, point: &HostsPoint) {
    text.out.push('\n');
    let name = point.point.workload.short();
    text.say(Tone::Strong, &format!("{name}, {}", plural(point.clients as usize, "client")));
    let rows: Vec<Vec<String>> = (point.by_client.iter().take(LISTED))
        .map(|one| {
            vec![
                format!("{} {}", one.rank, printable(&one.host)),
                rate_number(one.throughput_bytes_per_s),
                format!("{:.0} %", one.of_median * 100.0),
                show_time(one.latency_ns.p50 as f64),
                show_time(one.latency_ns.p99 as f64),
                show_time(one.cpu_ns_per_request),
                format!("{:.0} %", one.processor_percent),
                show_time(one.began_late_ns as f64),
            ]
        })
        .collect();
    let header = [
        "rank, host",
        rate_unit(),
        "of median",
        "p50",
        "p99",
        "CPU/request",
        "CPUs busy",
        "late by",
    ];
    text.table(&header, &rows, 1);
    if point.by_client.len() > LISTED {
        let more = point.by_client.len() - LISTED;
        text.say(Tone::Quiet, &format!("and {}; --json has all", plural(more, "more client")));
    }
    let mean = |of: &dyn Fn(&hosts::HostsRun) -> f64| {
        point.runs.iter().map(of).sum::<f64>() / point.runs.len().max(1) as f64
    };
    let timing = format!(
        "All worked together for {} of each run. Until the first finished: {}; until the last: {}.",
        show_time(mean(&|run| run.window_ns as f64)),
        show_rate(mean(&|run| run.until_first_finished_bytes_per_s)),
        show_rate(mean(&|run| run.until_last_finished_bytes_per_s)),
    );
    text.say(Tone::Plain, &timing);
}
