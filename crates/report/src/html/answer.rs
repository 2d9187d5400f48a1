use crate::format::{
    finding_steps, grouped, half_power_lines, no_request_times, percent, plus_minus, range, rate,
    rate_number, request_times, share, trim_zeros,
};
use crate::{advice, plain, sentences};
use machine::units::{MIB, show_size_rounded, show_time, significant};
use results::{
    Answer, Bottleneck, CostModel, CostScope, Finding, HalfPower, Limit, Peak, PeakSource,
    PlainRate, Results, ServiceModel, Varied,
};
use serde::Serialize;
use workload::OpKind;

#[derive(Serialize)]
pub(super) struct AnswerView {
    operations: Vec<Operation>,
    findings: Vec<FindingView>,
    predictions: Vec<String>,
    unproven: Vec<String>,
    checklist: Vec<[String; 3]>,
    costs: Vec<Vec<String>>,
    /// Of the process, if the machine's come first.
    more_costs: Vec<Vec<String>>,
    service_times: Vec<Vec<String>>,
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct Operation {
    name: String,
    peak: Option<PeakView>,
    plain: Vec<String>,
    limits: Vec<LimitView>,
    half_power: Vec<HalfGroup>,
    advertised_half_power: Vec<HalfGroup>,
}

#[derive(Serialize)]
struct LimitView {
    sentence: String,
    trials: Vec<String>,
    excluded: Vec<String>,
    would_refute: Option<String>,
    no_stages: Option<String>,
    /// Only evidence, no verdict.
    open: bool,
}

#[derive(Serialize)]
struct PeakView {
    number: String,
    spread: Option<String>,
    interval: Option<String>,
    how: String,
    settings: String,
    advertised: Option<AdvertisedView>,
}

#[derive(Serialize)]
struct AdvertisedView {
    layer: String,
    rate: String,
    share: String,
    /// In percent of the advertised rate.
    bar: String,
}

#[derive(Serialize)]
struct HalfGroup {
    title: String,
    rows: Vec<[String; 3]>,
}

#[derive(Serialize)]
struct FindingView {
    gain: String,
    title: String,
    evidence: String,
    costs: String,
    steps: String,
    setting: String,
    check: String,
}

pub(super) fn view(results: &Results) -> Option<AnswerView> {
    let answer = results.answer.as_ref()?;
    let (costs, more_costs) = crate::format::costs_by_mode(&answer.costs);
    Some(AnswerView {
        operations: operations(results, answer),
        findings: answer.findings.iter().map(finding).collect(),
        predictions: answer
            .predictions
            .iter()
            .map(|one| sentences::prediction(one).full().to_owned())
            .collect(),
        unproven: answer.unproven.clone(),
        checklist: answer
            .checklist
            .iter()
            .map(|one| [one.rule.clone(), one.state.name().replace('_', " "), one.evidence.clone()])
            .collect(),
        costs: costs.iter().map(|model| cost(model)).collect(),
        more_costs: more_costs.iter().map(|model| cost(model)).collect(),
        service_times: answer.service_times.iter().map(service_time).collect(),
        left_out: answer.left_out.clone(),
    })
}

fn operations(results: &Results, answer: &Answer) -> Vec<Operation> {
    let mut ops: Vec<OpKind> = Vec::new();
    let peaks =
        answer.peaks.iter().map(|peak| peak.op).chain(answer.plain.iter().map(|one| one.op));
    for op in peaks
        .chain(answer.limits.iter().map(|limit| limit.op))
        .chain(answer.half_power.iter().map(|half| half.op))
    {
        if !ops.contains(&op) {
            ops.push(op);
        }
    }
    ops.into_iter()
        .map(|op| Operation {
            name: op.to_string(),
            peak: answer
                .peaks
                .iter()
                .find(|peak| peak.op == op)
                .map(|peak| peak_view(results, peak)),
            plain: plain_program(answer, op),
            limits: answer
                .limits
                .iter()
                .filter(|limit| limit.op == op)
                .map(|limit| limit_view(results, limit))
                .collect(),
            half_power: half_groups(
                answer
                    .half_power
                    .iter()
                    .filter(|half| half.op == op && half.peak_from == PeakSource::Measured),
            ),
            advertised_half_power: half_groups(
                answer
                    .half_power
                    .iter()
                    .filter(|half| half.op == op && half.peak_from == PeakSource::Advertised),
            ),
        })
        .collect()
}

fn limit_view(results: &Results, limit: &Limit) -> LimitView {
    let point = limit.point.and_then(|index| results.points.get(index));
    LimitView {
        no_stages: point.and_then(|point| no_request_times(point, results)),
        sentence: with_stages(results, limit),
        trials: sentences::other_trials(limit),
        excluded: limit.excluded.clone(),
        would_refute: limit.would_refute.clone(),
        open: limit.what == Bottleneck::Unknown,
    }
}

fn plain_program(answer: &Answer, op: OpKind) -> Vec<String> {
    let of_op: Vec<PlainRate> = answer.plain.iter().filter(|one| one.op == op).cloned().collect();
    plain::rates(&of_op).iter().map(|line| format!("plain {line}")).collect()
}

fn with_stages(results: &Results, limit: &Limit) -> String {
    let point = limit.point.and_then(|index| results.points.get(index));
    let times = point.and_then(|point| point.numbers.as_ref()?.achieved.request_times.as_ref());
    match times {
        Some(times) => format!("{} — {}", limit.sentence, request_times(times)),
        None => limit.sentence.clone(),
    }
}

fn peak_view(results: &Results, peak: &Peak) -> PeakView {
    let achieved = peak.throughput_bytes_per_s;
    PeakView {
        number: rate_number(achieved),
        spread: plus_minus(achieved, peak.interval_95),
        interval: peak.interval_95.map(|[low, high]| range(&rate(low), &rate(high))),
        how: results.points.get(peak.point).map(|point| point.workload.short()).unwrap_or_default(),
        settings: peak.settings.clone(),
        advertised: peak.advertised.as_ref().and_then(|advertised| {
            let part = achieved / advertised.throughput_bytes_per_s * 100.0;
            Some(AdvertisedView {
                layer: advertised.layer.clone(),
                rate: rate(advertised.throughput_bytes_per_s),
                share: share(achieved, advertised.throughput_bytes_per_s)?,
                bar: format!("{:.1}", part.clamp(0.0, 100.0)),
            })
        }),
    }
}

fn half_groups<'a>(all: impl Iterator<Item = &'a HalfPower>) -> Vec<HalfGroup> {
    let mut groups: Vec<(String, Vec<&HalfPower>)> = Vec::new();
    for half in all {
        let what = if half.of == Varied::Depth {
            "Half of the peak, by depth"
        } else {
            "Half of the peak, by request size"
        };
        let title = if half.peak_from == PeakSource::Measured {
            what.to_string()
        } else {
            format!("{what}, of the {} {}", half.peak_from, rate(half.peak_bytes_per_s))
        };
        match groups.iter_mut().find(|(known, _)| *known == title) {
            Some((_, members)) => members.push(half),
            None => groups.push((title, vec![half])),
        }
    }
    let rows = |members: &[&HalfPower]| {
        half_power_lines(members)
            .into_iter()
            .map(|line| [line.at, line.value, line.interval])
            .collect()
    };
    groups.into_iter().map(|(title, members)| HalfGroup { title, rows: rows(&members) }).collect()
}

fn finding(finding: &Finding) -> FindingView {
    FindingView {
        gain: advice::gain(finding),
        title: finding.title.clone(),
        evidence: finding.evidence.clone(),
        costs: advice::figures(finding),
        steps: finding_steps(finding),
        setting: finding.setting.clone(),
        check: finding.check.clone(),
    }
}

fn cost(cost: &CostModel) -> Vec<String> {
    let mib = MIB as f64;
    let interval = |[low, high]: [f64; 2], factor: f64| {
        range(&show_time(low * factor), &show_time(high * factor))
    };
    let instructions = match (cost.instructions_per_request, cost.instructions_per_byte) {
        (Some(request), Some(byte)) => {
            format!("{} + {} a byte", grouped(request.round()), trim_zeros(&significant(byte, 2)))
        }
        (Some(request), None) => grouped(request.round()),
        _ => String::new(),
    };
    vec![
        cost.mode.to_string(),
        show_time(cost.ns_per_request),
        interval(cost.ns_per_request_interval_95, 1.0),
        show_time(cost.ns_per_byte * mib),
        interval(cost.ns_per_byte_interval_95, mib),
        if cost.whose == CostScope::Machine {
            "whole machine".into()
        } else {
            cost.whose.to_string()
        },
        instructions,
        format!("{} %", percent(cost.rms_residual * 100.0)),
    ]
}

fn service_time(service: &ServiceModel) -> Vec<String> {
    let [low, high] = service.fixed_ns_interval_95;
    vec![
        service.sizes_bytes.map_or(service.mode.to_string(), |[min, max]| {
            format!("{}, {} to {}", service.mode, show_size_rounded(min), show_size_rounded(max))
        }),
        show_time(service.fixed_ns),
        range(&show_time(low), &show_time(high)),
        service.rate_bytes_per_s.map_or("no rise".into(), rate),
        service
            .rate_interval_95
            .map(|[low, high]| range(&rate(low), &rate(high)))
            .unwrap_or_default(),
        service.knee_bytes.map(show_size_rounded).unwrap_or_default(),
        format!(
            "{} %, at most {} %",
            percent(service.rms_residual * 100.0),
            percent(service.max_residual * 100.0)
        ),
    ]
}
