//! Points of many clients.

use crate::format::{plural, plus_minus, rate_number, rate_unit};
use crate::terminal::{Tone, paint, table, wrap};
use machine::text::printable;
use machine::units::{show_rate, show_time, significant};
use measure::ClientsRun;
use results::{Point, PointClients, Results};

/// More clients of a point are only counted.
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

pub(crate) fn are_several(results: &Results) -> bool {
    results.points.iter().any(|point| of(point).is_some())
}

fn of(point: &Point) -> Option<&PointClients> {
    point.numbers.as_ref()?.clients.as_ref()
}

/// The most clients of a point, and their hosts.
fn all(results: &Results) -> (usize, usize) {
    let mut hosts: Vec<&str> = match &results.clients {
        Some(clients) => clients.ranks.iter().map(|one| one.host.as_str()).collect(),
        None => {
            let most = results.points.iter().filter_map(of).max_by_key(|one| one.each.len());
            most.iter().flat_map(|one| &one.each).map(|one| one.host.as_str()).collect()
        }
    };
    let clients = hosts.len();
    hosts.sort_unstable();
    hosts.dedup();
    (clients, hosts.len())
}

pub(crate) fn terminal(results: &Results, width: usize, colour: bool) -> String {
    let mut text = Text { out: String::new(), width: width.max(40), colour };
    let (clients, hosts) = all(results);
    let title = format!(
        "{} on {} of {}",
        results.target.name,
        plural(clients, "client"),
        plural(hosts, "host")
    );
    text.say(Tone::Strong, &title);
    for one in &results.scaling {
        text.say(Tone::Strong, &one.sentence());
        one.model.iter().for_each(|model| text.say(Tone::Quiet, &model.outlook()));
    }
    text.out.push('\n');
    points(&mut text, results);
    for (point, of) in last_points(results) {
        clients_of(&mut text, point, of);
    }
    results.warnings.iter().for_each(|warning| text.mark("!", Tone::Doubt, warning));
    text.out
}

fn points(text: &mut Text, result: &Results) {
    let efficiency = |point: usize| {
        let mut steps = result.scaling.iter().flat_map(|one| &one.steps);
        let step = steps.find(|step| step.point as usize == point)?;
        Some(format!("{:.0} %", step.efficiency? * 100.0))
    };
    let rows: Vec<Vec<String>> = (result.points.iter().enumerate())
        .map(|(index, one)| {
            let mut row = vec![
                printable(&short(one)),
                one.workload.clients.map_or(String::new(), |clients| clients.to_string()),
            ];
            let Some(numbers) = &one.numbers else {
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
                of(one)
                    .and_then(|of| of.fairness)
                    .map_or(String::new(), |index| significant(index, 3)),
            ]);
            row
        })
        .collect();
    let header = ["workload", "clients", rate_unit(), "", "p50", "p99", "efficiency", "fairness"];
    text.table(&header, &rows, 1);
    for one in &result.points {
        let about = one.workload.short();
        if let Some(error) = &one.error {
            text.mark("x", Tone::Failed, &format!("{about} failed: {error}"));
        }
        for warning in one.numbers.iter().flat_map(|numbers| &numbers.warnings) {
            text.mark("!", Tone::Doubt, &format!("{warning} ({about})"));
        }
    }
}

fn short(point: &Point) -> String {
    let workload = point.workload.workload.clone();
    workload::Workload { clients: None, ..workload }.short()
}

fn last_points(result: &Results) -> Vec<(&Point, &PointClients)> {
    let mut last: Vec<(&Point, &PointClients)> = Vec::new();
    for one in result.points.iter().filter_map(|one| Some((one, of(one)?))) {
        match last.iter_mut().find(|known| short(known.0) == short(one.0)) {
            Some(known) if known.1.each.len() < one.1.each.len() => *known = one,
            Some(_) => {}
            None => last.push(one),
        }
    }
    last
}

fn clients_of(text: &mut Text, point: &Point, of: &PointClients) {
    text.out.push('\n');
    text.say(Tone::Strong, &point.workload.short());
    let rows: Vec<Vec<String>> = (of.each.iter().take(LISTED))
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
    if of.each.len() > LISTED {
        let more = of.each.len() - LISTED;
        text.say(Tone::Quiet, &format!("and {}; --json has all", plural(more, "more client")));
    }
    let mean = |value: &dyn Fn(&ClientsRun) -> f64| {
        of.runs.iter().map(value).sum::<f64>() / of.runs.len().max(1) as f64
    };
    let timing = format!(
        "All worked together for {} of each run. Until the first finished: {}; until the last: {}.",
        show_time(mean(&|run| run.window_ns as f64)),
        show_rate(mean(&|run| run.until_first_finished_bytes_per_s)),
        show_rate(mean(&|run| run.until_last_finished_bytes_per_s)),
    );
    text.say(Tone::Plain, &timing);
}
