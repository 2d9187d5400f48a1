//! The sentence that each experiment's numbers support.

use crate::result::{Axis, CostModel, Experiment, Figure, Series, ServiceModel, Value};
use machine::units::{show_rate, show_size, show_time, significant};
use measure::stats::median;

/// Says what an experiment found; where it was skipped or nothing was measured, that.
pub(crate) fn sentence(experiment: &Experiment, costs: &[CostModel], services: &[ServiceModel]) -> String {
    if let Some(reason) = &experiment.skipped {
        return format!("Skipped: {reason}.");
    }
    let said: Vec<String> = match experiment.id.as_str() {
        "memory" => memory(experiment),
        "cost" => cost(costs),
        "device_cache" => device_cache(services),
        "alignment" => extremes(experiment, "loses", |x| format!("a shift of {}", show_size(x as u64))),
        "location" => location(experiment),
        "allocation" => allocation(experiment),
        "streams" => streams(experiment),
        "stripe" => stripe(experiment),
        // A course over time is to be looked at.
        _ => experiment.figures.iter().filter(|figure| figure.x != Axis::TimeNs).flat_map(curves).collect(),
    };
    if said.is_empty() { "Too little could be measured to say anything.".into() } else { said.join(" ") }
}

fn best(series: &Series) -> Option<(f64, f64)> {
    let measured = series.values.iter().filter_map(|value| Some((value.x, value.y?)));
    measured.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn at(series: &Series, x: f64) -> Option<f64> {
    series.values.iter().find(|value| value.x == x).and_then(|value| value.y)
}

fn named<'a>(figure: &'a Figure, name: &str) -> Option<&'a Series> {
    figure.series.iter().find(|series| series.name == name)
}

fn show_y(axis: Axis, y: f64) -> String {
    match axis {
        Axis::Iops => format!("{} requests/s", significant(y, 3)),
        Axis::BytesPerS => show_rate(y),
        _ => show_time(y),
    }
}

fn show_x(axis: Axis, x: f64) -> String {
    match axis {
        Axis::RequestBytes | Axis::ChunkBytes => show_size(x as u64),
        Axis::Depth => format!("depth {x}"),
        _ => format!("{x}"),
    }
}

/// For each curve: its best, and where it reaches half of that.
fn curves(figure: &Figure) -> Vec<String> {
    let say = |series: &Series| {
        let (x, y) = best(series)?;
        let half = series.half_power.as_ref().and_then(|half| {
            let smallest = show_x(figure.x, half.smallest?);
            Some(if half.at_or_below { format!(", half of it at {smallest} or less") } else { format!(", half of it from {smallest}") })
        });
        Some(format!("{}: {} at {}{}.", capital(&series.name), show_y(figure.y, y), show_x(figure.x, x), half.unwrap_or_default()))
    };
    figure.series.iter().filter_map(say).collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn memory(experiment: &Experiment) -> Vec<String> {
    let mut said = Vec::new();
    let most = experiment.memory.iter().map(|one| one.threads).max().unwrap_or(1);
    for threads in if most > 1 { vec![1, most] } else { vec![1] } {
        let rates: Vec<String> = experiment
            .memory
            .iter()
            .filter(|one| one.threads == threads && !one.rates_bytes_per_s.is_empty())
            .map(|one| format!("{} {}", one.kind, show_rate(median(&one.rates_bytes_per_s))))
            .collect();
        if !rates.is_empty() {
            said.push(format!("{threads} thread{}: {}.", if threads == 1 { "" } else { "s" }, rates.join(", ")));
        }
    }
    said.extend(experiment.figures.iter().flat_map(curves));
    said
}

fn cost(costs: &[CostModel]) -> Vec<String> {
    let say = |model: &CostModel| {
        let mib = model.ns_per_byte * (1u64 << 20) as f64;
        format!("{}: {} a request and {} a MiB.", capital(&model.mode), show_time(model.ns_per_request.max(0.0)), show_time(mib.max(0.0)))
    };
    costs.iter().filter(|model| model.whose == "process").map(say).collect()
}

fn device_cache(services: &[ServiceModel]) -> Vec<String> {
    let say = |model: &ServiceModel| {
        let rate = model.rate_bytes_per_s.map(|rate| format!(" + size / {}", show_rate(rate))).unwrap_or_default();
        format!("{}: {}{rate}.", capital(&model.mode), show_time(model.fixed_ns.max(0.0)))
    };
    services.iter().filter(|model| !model.mode.starts_with("direct ")).map(say).collect()
}

/// How much the worst place of each curve loses against x = 0.
fn extremes(experiment: &Experiment, verb: &str, name: impl Fn(f64) -> String) -> Vec<String> {
    let Some(figure) = experiment.figures.first() else { return Vec::new() };
    let say = |series: &Series| {
        let aligned = at(series, 0.0)?;
        let (x, worst) = series
            .values
            .iter()
            .filter(|value| value.x > 0.0)
            .filter_map(|value| Some((value.x, value.y?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        let loss = (1.0 - worst / aligned) * 100.0;
        Some(if loss < 5.0 {
            format!("{}: no shift costs more than 5 %.", capital(&series.name))
        } else {
            format!("{}: {} {verb} {loss:.0} %.", capital(&series.name), name(x))
        })
    };
    figure.series.iter().filter_map(say).collect()
}

fn location(experiment: &Experiment) -> Vec<String> {
    let Some(figure) = experiment.figures.first() else { return Vec::new() };
    let say = |series: &Series| {
        let measured: Vec<&Value> = series.values.iter().filter(|value| value.y.is_some()).collect();
        let (first, last) = (measured.first()?.y?, measured.last()?.y?);
        let change = (last / first - 1.0) * 100.0;
        Some(if change.abs() < 10.0 {
            format!("{}: the same at the start and at the end ({}).", capital(&series.name), show_rate(first))
        } else {
            format!("{}: {} at the start, {} at the end ({change:+.0} %).", capital(&series.name), show_rate(first), show_rate(last))
        })
    };
    figure.series.iter().filter_map(say).collect()
}

fn allocation(experiment: &Experiment) -> Vec<String> {
    let Some(figure) = experiment.figures.first() else { return Vec::new() };
    let mut said = Vec::new();
    for depth in ["depth 1", "depth 8"] {
        let Some(written) = named(figure, &format!("written, {depth}")).and_then(|series| at(series, 65_536.0)) else { continue };
        let others: Vec<String> = ["reserved", "extend", "truncate"]
            .iter()
            .filter_map(|state| {
                let rate = named(figure, &format!("{state}, {depth}")).and_then(|series| at(series, 65_536.0))?;
                Some(format!("{state} {:.0} %", rate / written * 100.0))
            })
            .collect();
        if !others.is_empty() {
            said.push(format!(
                "64 KiB writes at {depth}: {} into space written before; of that rate, {}.",
                show_rate(written),
                others.join(", ")
            ));
        }
    }
    said
}

fn streams(experiment: &Experiment) -> Vec<String> {
    let Some(figure) = experiment.figures.first() else { return Vec::new() };
    let say = |series: &Series| {
        let one = at(series, 1.0)?;
        let most = series.values.iter().rev().find(|value| value.y.is_some())?;
        Some(format!("{}: one stream {}, {} together {}.", capital(&series.name), show_rate(one), most.x, show_rate(most.y?)))
    };
    figure.series.iter().filter_map(say).collect()
}

fn stripe(experiment: &Experiment) -> Vec<String> {
    let figure = |id: &str| experiment.figures.iter().find(|figure| figure.id == id);
    let mut said = Vec::new();
    for op in ["read", "write"] {
        let together =
            figure("stripe_members").and_then(|figure| named(figure, op)).and_then(|series| series.values.last()).and_then(|value| value.y);
        let singles: Option<f64> = figure("stripe_single")
            .and_then(|figure| named(figure, &format!("{op}, each alone")))
            .map(|series| series.values.iter().filter_map(|value| value.y).sum());
        if let (Some(together), Some(sum)) = (together, singles) {
            said.push(format!(
                "{}: {} together, {:.0} % of the {} that the members give one by one.",
                capital(op),
                show_rate(together),
                together / sum * 100.0,
                show_rate(sum)
            ));
        }
        for (id, what) in [("stripe_depth", "depth"), ("stripe_chunk", "chunk")] {
            let half = figure(id).and_then(|figure| named(figure, op)).and_then(|series| series.half_power.as_ref());
            if let Some(smallest) = half.and_then(|half| half.smallest) {
                let shown = if what == "chunk" { show_size(smallest as u64) } else { format!("{smallest}") };
                let below = if half.is_some_and(|half| half.at_or_below) { " or less" } else { "" };
                said.push(format!("Its half-power {what} is {shown}{below}."));
            }
        }
    }
    said
}
