//! The gain of more clients: the half-power number, the knee, and the bottleneck.

use crate::model::model;
use measure::stats::median;
use results::{ClientNumbers, Point, PointClients, Question, Scaling, ScalingLimit, ScalingStep};
use workload::Workload;

/// The factor from which more clients gain something.
const GAIN: f64 = 1.05;

/// The share of n times the rate of one client from which n clients do not hinder one another.
const EFFICIENT: f64 = 0.85;

/// Clients that are together faster than this many times their own rate were disturbed in the
/// run of one client: such rates do not show a limit.
const IMPOSSIBLE: f64 = 1.15;

/// The percentage from which the processors of a host are its limit.
const BUSY_PERCENT: f64 = 90.0;

/// The percentage of its speed from which a network link is the limit of a client: the rest are
/// headers and pauses of the protocol.
const LINK_PERCENT: f64 = 85.0;

/// Returns the scaling of each workload that was measured with several numbers of clients.
pub fn scalings(points: &[Point]) -> Vec<Scaling> {
    let mut questions: Vec<Question> = Vec::new();
    for question in points.iter().filter_map(of_any_clients) {
        if !questions.contains(&question) {
            questions.push(question);
        }
    }
    questions.iter().filter_map(|question| scaling(question, points)).collect()
}

/// Returns the question of a point with a number of clients, whatever the number.
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
    if steps.len() < 2 {
        return None;
    }
    let rate = |step: &ScalingStep| step.throughput_bytes_per_s;
    let peak = steps.iter().map(rate).fold(0.0, f64::max);
    let half = steps.iter().find(|step| rate(step) >= peak / 2.0)?.clients;
    let knee = steps.iter().find(|step| rate(step) * GAIN >= peak)?.clients;
    let last = &steps[steps.len() - 1];
    let most = &points[last.point as usize];
    let workload = Workload { clients: None, ..most.workload.workload.clone() };
    let most = most.numbers.as_ref()?.clients.as_ref()?;
    Some(Scaling {
        workload: workload.short(),
        peak_bytes_per_s: peak,
        half_power_clients: half,
        knee_clients: knee,
        limit: limit(&steps, knee, most),
        processors_busy: are_busy(most),
        slow_clients: most.slow().map(Into::into).collect(),
        model: model(&steps),
        steps,
    })
}

/// Finds the limit from the rates and from the largest number of clients.
fn limit(steps: &[ScalingStep], knee: u32, most: &PointClients) -> ScalingLimit {
    let last = &steps[steps.len() - 1];
    if most.slow().next().is_some() && are_others_free(steps, most) {
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

/// Returns whether the median client is about as fast as a client by itself. If not, all share a
/// limit, and a faster client would only take from the others.
fn are_others_free(steps: &[ScalingStep], most: &PointClients) -> bool {
    let alone = steps.first().filter(|step| step.clients == 1);
    let rates: Vec<f64> = most.each.iter().map(|one| one.throughput_bytes_per_s).collect();
    alone.is_none_or(|one| median(&rates) >= EFFICIENT * one.throughput_bytes_per_s)
}

fn all(clients: &PointClients, is: impl Fn(&ClientNumbers) -> bool) -> bool {
    !clients.each.is_empty() && clients.each.iter().all(is)
}

/// Returns whether no client has a free processor.
fn are_busy(clients: &PointClients) -> bool {
    all(clients, |one| one.processor_percent >= BUSY_PERCENT)
}
