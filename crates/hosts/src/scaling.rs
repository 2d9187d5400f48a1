//! The gain of more clients: the half-power number, the knee, and the bottleneck.

use crate::document::{ClientNumbers, HostsPoint, Scaling, ScalingLimit, ScalingStep};
use crate::measure_group::SLOW_SHARE;
use crate::model::model;
use measure::stats::median;
use results::WorkloadRecord;

/// More clients gain something from this factor on.
const GAIN: f64 = 1.05;

/// With this share of n times the rate of one client, n clients do not hinder one another.
const EFFICIENT: f64 = 0.85;

/// Clients that are together faster than this many times their own rate were disturbed in the
/// run of one client: such rates do not show a limit.
const IMPOSSIBLE: f64 = 1.15;

/// The processors of a host are its limit from this share on.
const BUSY_PERCENT: f64 = 90.0;

/// A network link is the limit of a client from this share of its speed on: the rest are headers
/// and pauses of the protocol.
const LINK_PERCENT: f64 = 85.0;

/// The scaling of each workload that was measured with several numbers of clients.
pub fn scalings(points: &[HostsPoint]) -> Vec<Scaling> {
    let mut workloads: Vec<&WorkloadRecord> = Vec::new();
    for one in points {
        if !workloads.contains(&&one.point.workload) {
            workloads.push(&one.point.workload);
        }
    }
    workloads.into_iter().filter_map(|workload| scaling(workload, points)).collect()
}

fn scaling(workload: &WorkloadRecord, points: &[HostsPoint]) -> Option<Scaling> {
    let mut steps: Vec<ScalingStep> = (points.iter().enumerate())
        .filter(|(_, one)| one.point.workload == *workload)
        .filter_map(|(index, one)| {
            let numbers = one.point.numbers.as_ref()?;
            Some(ScalingStep {
                clients: one.clients,
                point: index as u32,
                throughput_bytes_per_s: numbers.throughput_bytes_per_s,
                interval_95: numbers.interval_95,
                efficiency: None,
                fairness: one.fairness,
            })
        })
        .collect();
    steps.sort_by_key(|step| step.clients);
    let one =
        steps.first().filter(|step| step.clients == 1).map(|step| step.throughput_bytes_per_s);
    for step in &mut steps {
        let ideal = one.map(|rate| rate * f64::from(step.clients));
        step.efficiency = ideal.map(|ideal| step.throughput_bytes_per_s / ideal);
    }
    if steps.len() < 2 {
        return None;
    }
    let rate = |step: &ScalingStep| step.throughput_bytes_per_s;
    let peak = steps.iter().map(rate).fold(0.0, f64::max);
    let half = steps.iter().find(|step| rate(step) >= peak / 2.0)?.clients;
    let knee = steps.iter().find(|step| rate(step) * GAIN >= peak)?.clients;
    let last = &steps[steps.len() - 1];
    let most = &points[last.point as usize];
    Some(Scaling {
        workload: workload.short(),
        peak_bytes_per_s: peak,
        half_power_clients: half,
        knee_clients: knee,
        limit: limit(&steps, knee, most),
        processors_busy: are_busy(most),
        slow_clients: slow(most).map(|one| one.rank).collect(),
        model: model(&steps),
        steps,
    })
}

/// The limit, from the rates and from the largest number of clients.
fn limit(steps: &[ScalingStep], knee: u32, most: &HostsPoint) -> ScalingLimit {
    let last = &steps[steps.len() - 1];
    if slow(most).next().is_some() && are_others_free(steps, most) {
        return ScalingLimit::Imbalance;
    }
    if all(most, |one| one.network_percent.is_some_and(|percent| percent >= LINK_PERCENT)) {
        return ScalingLimit::Network;
    }
    if steps.iter().any(|step| step.efficiency.is_some_and(|share| share > IMPOSSIBLE)) {
        return ScalingLimit::Undecided;
    }
    if last.efficiency.is_some_and(|efficiency| efficiency >= EFFICIENT) {
        return ScalingLimit::Client;
    }
    // Clients on hosts without a free processor compete for it, not for the storage.
    if are_busy(most) {
        return ScalingLimit::Client;
    }
    if knee < last.clients { ScalingLimit::Server } else { ScalingLimit::Undecided }
}

/// Whether the median client is about as fast as a client alone. If not, all share a limit, and a
/// faster client would only take from the others.
fn are_others_free(steps: &[ScalingStep], most: &HostsPoint) -> bool {
    let alone = steps.first().filter(|step| step.clients == 1);
    let rates: Vec<f64> = most.by_client.iter().map(|one| one.throughput_bytes_per_s).collect();
    alone.is_none_or(|one| median(&rates) >= EFFICIENT * one.throughput_bytes_per_s)
}

fn all(point: &HostsPoint, is: impl Fn(&ClientNumbers) -> bool) -> bool {
    !point.by_client.is_empty() && point.by_client.iter().all(is)
}

/// No client has a free processor.
fn are_busy(point: &HostsPoint) -> bool {
    all(point, |one| one.processor_percent >= BUSY_PERCENT)
}

/// Clients far below the others' rate; with two, neither is the usual one.
fn slow(point: &HostsPoint) -> impl Iterator<Item = &ClientNumbers> {
    let several = point.by_client.len() > 2;
    point.by_client.iter().filter(move |one| several && one.of_median < SLOW_SHARE)
}
