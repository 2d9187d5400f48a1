//! What more clients gain: the half-power number, the knee, and the bottleneck.

use crate::model::model;
use measure::stats::median;
use results::{
    Client, ClientNumbers, Growth, GrowthNumbers, MetadataResult, OperationResult,
    OperationScaling, OperationStep, Point, PointClients, Question, SLOW_SHARE, Scaling,
    ScalingLimit, ScalingStep, SlowClient, jain,
};
use workload::Workload;
use workload::metadata::Operation;

/// From this share of n times one client's rate, n clients do not hinder one another.
const EFFICIENT: f64 = 0.85;

/// Clients faster together than this many times their own rate show no limit: the run of one client
/// was disturbed.
const IMPOSSIBLE: f64 = 1.15;

const BUSY_PERCENT: f64 = 90.0;

/// The rest of a link's speed goes to headers and pauses of the protocol.
const LINK_PERCENT: f64 = 85.0;

/// One for each workload measured with several numbers of clients.
pub fn scalings(points: &[Point]) -> Vec<Scaling> {
    let mut questions: Vec<Question> = Vec::new();
    for question in points.iter().filter_map(of_any_clients) {
        if !questions.contains(&question) {
            questions.push(question);
        }
    }
    questions.iter().filter_map(|question| scaling(question, points)).collect()
}

fn of_any_clients(point: &Point) -> Option<Question> {
    let workload = &point.workload.workload;
    workload.clients.map(|_| Question::of(&Workload { clients: None, ..workload.clone() }))
}

fn scaling(question: &Question, points: &[Point]) -> Option<Scaling> {
    // Of several visits to one workload the last counts.
    let mut steps: Vec<ScalingStep> = (points.iter().enumerate().rev())
        .filter(|(_, one)| of_any_clients(one).as_ref() == Some(question))
        .filter_map(|(index, one)| {
            let numbers = one.numbers.as_ref()?;
            Some(ScalingStep {
                clients: one.workload.clients?,
                point: index as u32,
                throughput_bytes_per_s: numbers.throughput_bytes_per_s,
                interval_95: numbers.interval_95,
                efficiency: None,
                fairness: numbers.clients.as_ref().and_then(|clients| clients.fairness),
            })
        })
        .collect();
    steps.sort_by_key(|step| step.clients);
    steps.dedup_by_key(|step| step.clients);
    let one =
        steps.first().filter(|step| step.clients == 1).map(|step| step.throughput_bytes_per_s);
    for step in &mut steps {
        let ideal = one.map(|rate| rate * f64::from(step.clients));
        step.efficiency = ideal.map(|ideal| step.throughput_bytes_per_s / ideal);
    }
    let rates: Vec<(u32, f64)> =
        steps.iter().map(|step| (step.clients, step.throughput_bytes_per_s)).collect();
    let growth = GrowthNumbers::of(&rates)?;
    let last = &steps[steps.len() - 1];
    let most = &points[last.point as usize];
    let workload = Workload { clients: None, ..most.workload.workload.clone() };
    let most = most.numbers.as_ref()?.clients.as_ref()?;
    Some(Scaling {
        workload: workload.short(),
        peak_bytes_per_s: growth.peak,
        growth: Growth {
            half_power_clients: growth.half,
            knee_clients: growth.knee,
            limit: limit(&steps, growth, most),
            processors_busy: are_busy(most),
            slow_clients: most.slow().map(Into::into).collect(),
        },
        model: model(&steps),
        steps,
    })
}

fn limit(steps: &[ScalingStep], growth: GrowthNumbers, most: &PointClients) -> ScalingLimit {
    if most.slow().next().is_some() && are_others_free(steps, most) {
        return ScalingLimit::Imbalance;
    }
    if all(most, |one| one.network_percent.is_some_and(|percent| percent >= LINK_PERCENT)) {
        return ScalingLimit::Network;
    }
    let efficiencies: Vec<Option<f64>> = steps.iter().map(|step| step.efficiency).collect();
    limit_of_growth(&efficiencies, growth, are_busy(most))
}

fn limit_of_growth(
    efficiencies: &[Option<f64>],
    growth: GrowthNumbers,
    processors_busy: bool,
) -> ScalingLimit {
    if efficiencies.iter().flatten().any(|&share| share > IMPOSSIBLE) {
        return ScalingLimit::Undecided;
    }
    if efficiencies.last().is_some_and(|last| last.is_some_and(|share| share >= EFFICIENT)) {
        return ScalingLimit::Client;
    }
    // Clients on hosts without a free processor compete for it, not for the storage.
    if processors_busy {
        return ScalingLimit::Client;
    }
    if growth.knee < growth.most { ScalingLimit::Server } else { ScalingLimit::Undecided }
}

/// Requires results of one plan.
pub fn operation_scalings(measured: &[MetadataResult], ranks: &[Client]) -> Vec<OperationScaling> {
    let of = |operation| operation_scaling(operation, measured, ranks);
    Operation::ALL.into_iter().filter_map(of).collect()
}

fn operation_scaling(
    operation: Operation,
    measured: &[MetadataResult],
    ranks: &[Client],
) -> Option<OperationScaling> {
    let mut of_all: Vec<(u32, &OperationResult)> = (measured.iter())
        .filter_map(|one| {
            let found = one.operations.iter().find(|result| result.operation == operation)?;
            // Such a rate cannot be compared with those of files of others.
            (!one.is_served_by_own_cache(operation)).then_some((one.clients, found))
        })
        .collect();
    of_all.sort_by_key(|one| one.0);
    let rates: Vec<(u32, f64)> =
        of_all.iter().map(|(clients, result)| (*clients, result.rate_per_s)).collect();
    let growth = GrowthNumbers::of(&rates)?;
    let one = rates.first().filter(|one| one.0 == 1).map(|one| one.1);
    let efficiency = |clients: u32, rate: f64| one.map(|one| rate / (one * f64::from(clients)));
    let steps: Vec<OperationStep> = (of_all.iter())
        .map(|(clients, result)| OperationStep {
            clients: *clients,
            per_s: result.rate_per_s,
            interval_95: result.rate_interval_per_s.map(|rate| [rate.low, rate.high]),
            efficiency: efficiency(*clients, result.rate_per_s),
            fairness: jain(&result.client_rates_per_s),
        })
        .collect();
    let (_, last) = of_all.last()?;
    let slow_clients = slow(&last.client_rates_per_s, ranks);
    let free = one.is_none_or(|one| median(&last.client_rates_per_s) >= EFFICIENT * one);
    let busy = last.processor_percent.is_some_and(|percent| percent >= BUSY_PERCENT);
    let efficiencies: Vec<Option<f64>> = steps.iter().map(|step| step.efficiency).collect();
    let limit = match slow_clients.is_empty() || !free {
        true => limit_of_growth(&efficiencies, growth, busy),
        false => ScalingLimit::Imbalance,
    };
    Some(OperationScaling {
        operation: operation.name().into(),
        files: measured.first().map_or(String::new(), |one| one.plan.files_in_words()),
        by_another_client: measured.iter().any(|one| one.plan.shift > 0 && operation.visits()),
        steps,
        peak_per_s: growth.peak,
        growth: Growth {
            half_power_clients: growth.half,
            knee_clients: growth.knee,
            limit,
            processors_busy: busy,
            slow_clients,
        },
    })
}

/// With two clients, neither is the usual one.
fn slow(rates: &[f64], ranks: &[Client]) -> Vec<SlowClient> {
    let usual = median(rates);
    if rates.len() < 3 || usual <= 0.0 {
        return Vec::new();
    }
    (rates.iter().zip(ranks))
        .filter(|(rate, _)| **rate < usual * SLOW_SHARE)
        .map(|(rate, client)| SlowClient {
            rank: client.rank,
            host: client.host.clone(),
            of_median: rate / usual,
        })
        .collect()
}

/// False if the median client is slower than one by itself: then all share a limit, and a faster
/// client would only take from the others.
fn are_others_free(steps: &[ScalingStep], most: &PointClients) -> bool {
    let alone = steps.first().filter(|step| step.clients == 1);
    let rates: Vec<f64> = most.each.iter().map(|one| one.throughput_bytes_per_s).collect();
    alone.is_none_or(|one| median(&rates) >= EFFICIENT * one.throughput_bytes_per_s)
}

fn all(clients: &PointClients, is: impl Fn(&ClientNumbers) -> bool) -> bool {
    !clients.each.is_empty() && clients.each.iter().all(is)
}

fn are_busy(clients: &PointClients) -> bool {
    all(clients, |one| one.processor_percent >= BUSY_PERCENT)
}
