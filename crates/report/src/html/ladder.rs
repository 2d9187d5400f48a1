//! The ladder on the page.

use crate::format::{bar_share, buses_at_peaks, percent, plus_minus, rate};
use machine::units::show_size_rounded;
use results::{Results, Stage, StageRate};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct LadderView {
    stages: Vec<StageView>,
    risks: Vec<String>,
    buses: Vec<BusView>,
}

#[derive(Serialize)]
struct BusView {
    op: String,
    name: String,
    busy: String,
    phases: Vec<(String, String)>,
}

fn bus_views(results: &Results) -> Vec<BusView> {
    let all = buses_at_peaks(results).into_iter();
    all.map(|(op, bus)| BusView {
        op: op.to_string(),
        name: bus.name.clone(),
        busy: format!("{} %", percent(bus.busy_percent)),
        phases: bus
            .phases
            .iter()
            .map(|one| (one.name.clone(), format!("{} %", percent(one.percent))))
            .collect(),
    })
    .collect()
}

#[derive(Serialize)]
struct StageView {
    kind: &'static str,
    name: String,
    rates: Vec<RateView>,
    settings: String,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct RateView {
    op: String,
    advertised: String,
    promised_by: String,
    achieved: String,
    spread: String,
    measured_by: String,
    share: String,
    half: String,
    busy: String,
    promised: String,
    reached: String,
    narrowest: bool,
}

pub(super) fn view(results: &Results) -> Option<LadderView> {
    let ladder = results.ladder.as_ref()?;
    let rates = ladder.stages.iter().flat_map(|stage| &stage.rates);
    let max = rates
        .flat_map(|one| [one.advertised_bytes_per_s(), one.achieved_bytes_per_s()])
        .flatten()
        .fold(0.0, f64::max);
    let stage = |stage: &Stage| {
        let (kind, name) = stage.words();
        StageView {
            kind,
            name: name.to_owned(),
            rates: stage.rates.iter().map(|one| rate_view(one, max)).collect(),
            settings: crate::format::stage_settings(stage),
            warnings: stage.warnings.clone(),
        }
    };
    Some(LadderView {
        stages: ladder.stages.iter().map(stage).collect(),
        risks: ladder.risks.clone(),
        buses: bus_views(results),
    })
}

fn at_least(reached: &results::Reached) -> &'static str {
    if reached.at_least { "at least " } else { "" }
}

fn rate_view(one: &StageRate, max: f64) -> RateView {
    let bar =
        |rate: Option<f64>| format!("{:.1}", rate.map_or(0.0, |rate| bar_share(rate, max)) * 100.0);
    let achieved = one.achieved.as_ref();
    RateView {
        op: one.op.to_string(),
        advertised: one.advertised_bytes_per_s().map(rate).unwrap_or_default(),
        promised_by: one.advertised.as_ref().map(|one| one.formula.clone()).unwrap_or_default(),
        achieved: achieved
            .map(|one| format!("{}{}", at_least(one), rate(one.throughput_bytes_per_s)))
            .unwrap_or_default(),
        spread: achieved
            .and_then(|one| plus_minus(one.throughput_bytes_per_s, one.interval_95))
            .unwrap_or_default(),
        measured_by: achieved.map(|one| one.formula.clone()).unwrap_or_default(),
        share: one.share_percent.map(|share| format!("{} %", percent(share))).unwrap_or_default(),
        half: one.half_power_bytes.map(show_size_rounded).unwrap_or_default(),
        busy: one.busy_percent.map(|busy| format!("{} %", percent(busy))).unwrap_or_default(),
        promised: bar(one.advertised_bytes_per_s()),
        reached: bar(one.achieved_bytes_per_s()),
        narrowest: one.narrowest,
    }
}
