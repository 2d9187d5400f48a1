//! Many clients at once: a line for each point, the share of each client, and the conclusions.

use crate::format::{plural, plus_minus, rate_number, rate_unit};
use crate::terminal::{Tone, paint, table, wrap};
use hosts::{
    ClientNumbers, HostsPoint, HostsResult, ModelForm, Scaling, ScalingLimit, ScalingModel,
};
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
    for one in &result.scaling {
        text.say(Tone::Strong, &sentence(one, &result.points));
        one.model.iter().for_each(|model| text.say(Tone::Quiet, &outlook(model)));
    }
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

/// A model with a larger error says nothing about more clients.
const MODEL_ERROR: f64 = 0.1;

/// The outlook of a model for more clients.
pub fn outlook(model: &ScalingModel) -> String {
    if model.left_out_error > MODEL_ERROR {
        return format!(
            "The rates follow no model: it is off by {:.0} % at a number of clients that it was not fitted to, so it gives no rate for more clients.",
            model.left_out_error * 100.0
        );
    }
    let form = match model.form {
        ModelForm::SharedLimit => "each client has its own rate until a limit that all share",
        ModelForm::Waiting => "clients wait for one another",
    };
    let each = model.predicted.iter().map(|one| {
        format!("{} with {} clients", show_rate(one.throughput_bytes_per_s), one.clients)
    });
    let each: Vec<String> = each.collect();
    format!(
        "Expected: {}. The model ({form}) is off by at most {:.0} % at a number of clients that it was not fitted to.",
        each.join(", "),
        model.left_out_error * 100.0
    )
}

/// The conclusion about more clients.
pub fn sentence(scaling: &Scaling, points: &[HostsPoint]) -> String {
    let Some(last) = scaling.steps.last() else { return String::new() };
    let (most, knee, half) = (last.clients, scaling.knee_clients, scaling.half_power_clients);
    let clients = |number: u32| plural(number as usize, "client");
    let peak = show_rate(scaling.peak_bytes_per_s);
    let reach = if half == 1 { "reaches" } else { "reach" };
    let begin = format!("{} {reach} half of the peak of {peak}", clients(half));
    let more = if knee < most {
        format!("more than {knee} gain nothing")
    } else {
        format!("the rate still grows at {}", clients(most))
    };
    let efficiency = last.efficiency.map_or(String::new(), |share| {
        let share = share * 100.0;
        format!(" ({} get {share:.0} % of {most} times the rate of one)", clients(most))
    });
    let why = match scaling.limit {
        ScalingLimit::Client if scaling.processors_busy => {
            "the clients are the limit: their processors are busy".into()
        }
        ScalingLimit::Client => {
            "each client is its own limit, and more clients would gain more".into()
        }
        ScalingLimit::Server => "the server is the limit".into(),
        ScalingLimit::Network => {
            "the clients' network links are the limit: they carry what they can".into()
        }
        ScalingLimit::Imbalance => {
            let shares = points.get(last.point as usize).map_or(&[][..], |point| &point.by_client);
            let is_slow = |one: &&ClientNumbers| scaling.slow_clients.contains(&one.rank);
            let name = |one: &ClientNumbers| {
                format!("rank {} ({}) at {:.0} %", one.rank, one.host, one.of_median * 100.0)
            };
            let names: Vec<String> = shares.iter().filter(is_slow).map(name).collect();
            let is = if names.len() == 1 { "is" } else { "are" };
            format!("the clients are not equal: {} of the median rate {is} slow", names.join(", "))
        }
        ScalingLimit::Undecided => {
            "what limits them is not decided: measure with more clients, or longer".into()
        }
    };
    format!("{begin}; {more}; {why}{efficiency}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosts::ScalingStep;

    fn scaling(limit: ScalingLimit, knee: u32, busy: bool) -> Scaling {
        let step = |clients: u32| ScalingStep {
            clients,
            point: 0,
            throughput_bytes_per_s: 1e6,
            interval_95: None,
            efficiency: Some(0.5),
            fairness: None,
        };
        Scaling {
            workload: "w".into(),
            steps: vec![step(1), step(8)],
            peak_bytes_per_s: 1e6,
            half_power_clients: 4,
            knee_clients: knee,
            limit,
            processors_busy: busy,
            slow_clients: vec![2],
            model: None,
        }
    }

    #[test]
    fn an_outlook_gives_rates_and_its_error() {
        let model = ScalingModel {
            form: ModelForm::Waiting,
            peak_bytes_per_s: Some(1e9),
            left_out_error: 0.07,
            predicted: vec![hosts::ScalingPrediction { clients: 16, throughput_bytes_per_s: 8e8 }],
        };
        let said = outlook(&model);
        assert!(said.contains("with 16 clients") && said.contains("at most 7 %"), "{said}");
        let bad = outlook(&ScalingModel { left_out_error: 0.4, ..model });
        assert!(bad.contains("off by 40 %") && !bad.contains("16"), "{bad}");
    }

    #[test]
    fn a_conclusion_names_the_number_of_clients_and_the_limit() {
        let said = |limit, knee, busy| sentence(&scaling(limit, knee, busy), &[]);
        let server = said(ScalingLimit::Server, 4, false);
        assert!(server.starts_with("4 clients reach half of the peak of "), "{server}");
        assert!(server.contains("more than 4 gain nothing; the server is the limit"), "{server}");
        assert!(server.ends_with("(8 clients get 50 % of 8 times the rate of one)."), "{server}");
        let client = said(ScalingLimit::Client, 8, false);
        assert!(client.contains("the rate still grows at 8 clients"), "{client}");
        assert!(said(ScalingLimit::Client, 4, true).contains("their processors are busy"));
        assert!(said(ScalingLimit::Network, 4, false).contains("network links"));
        assert!(said(ScalingLimit::Undecided, 8, false).contains("measure with more clients"));
    }
}
