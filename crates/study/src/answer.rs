//! What the points of a study say together.

use crate::bench::Bench;
use crate::design::{Shape, Way};
use crate::draw::{Laid, PeakRates};
use crate::findings::findings;
use crate::limits;
use crate::models;
use crate::result::{Advertised, Answer, Experiment, Peak, Results};
use crate::sentences;
use machine::{Machine, units};
use measure::Point;
use workload::Workload;

pub(crate) fn answer<M: Machine>(
    results: &mut Results,
    bench: &Bench<'_, M>,
    laid: &[Laid],
    peaks: &[(Way, usize)],
    left_out: Vec<String>,
) {
    let facts = results.target.clone();
    let points = &results.points;
    let peaks: Vec<Peak> = peaks
        .iter()
        .filter_map(|&(way, place)| {
            let numbers = points[place].numbers.as_ref()?;
            Some(Peak {
                op: way.name().into(),
                throughput_bytes_per_s: numbers.throughput_bytes_per_s,
                interval_95: numbers.interval_95,
                point: place,
                settings: settings(points[place].workload.options(), bench.entries[place].shape.as_ref()),
                advertised: limits::advertised(&facts, way.name()),
            })
        })
        .collect();
    let of = |op: &str| peaks.iter().find(|peak| peak.op == op);
    let rate = |op: &str| of(op).map(|peak| peak.throughput_bytes_per_s);
    let advertised = |op: &str| of(op).and_then(|peak| peak.advertised.as_ref()).map(|one: &Advertised| one.throughput_bytes_per_s);
    let measured = PeakRates { read: rate("read"), write: rate("write") };
    let advertised = PeakRates { read: advertised("read"), write: advertised("write") };
    let find = |experiments: &[Experiment], id: &str| experiments.iter().find(|one| one.id == id).cloned();
    let half_power = find(&results.experiments, "depth")
        .map(|depth| models::half_power_points(&depth, points, measured, advertised))
        .unwrap_or_default();
    let costs = find(&results.experiments, "cost").map(|cost| models::costs(&cost, points)).unwrap_or_default();
    let service_times = models::service_times(&results.experiments, points);
    let limits = peaks.iter().map(|peak| limits::limit(peak, &points[peak.point], more(peak, points), &facts, &results.machine)).collect();
    for experiment in &mut results.experiments {
        experiment.sentence = sentences::sentence(experiment, &costs, &service_times);
    }
    results.answer = Some(Answer {
        doubts: doubts(results, &peaks, bench.noisy),
        limits,
        half_power,
        costs,
        service_times,
        findings: findings(laid, &bench.entries, &results.points, &facts.name.replace(", ", " ")),
        left_out,
        peaks,
    });
    results.warnings = facts.warnings;
}

/// The options of a peak, with the stripe's shape.
fn settings(options: String, shape: Option<&Shape>) -> String {
    match shape {
        Some(shape) if shape.members.len() > 1 => format!("{options} --chunk {}", units::show_size(shape.chunk).replace(' ', "")),
        _ => options,
    }
}

/// The best rate with the same operation and at least twice as many requests outstanding.
fn more(peak: &Peak, points: &[Point]) -> Option<f64> {
    let workload = &points[peak.point].workload;
    points
        .iter()
        .filter(|point| point.workload.read_percent == workload.read_percent && point.workload.buffering == workload.buffering)
        .filter(|point| {
            let bytes = |workload: &Workload| u64::from(workload.outstanding()) * u64::from(workload.request_bytes);
            bytes(&point.workload) >= 2 * bytes(workload)
        })
        .filter_map(Point::rate)
        .max_by(f64::total_cmp)
}

/// Reasons not to trust the answer, the gravest first: of the target, then of the peaks, then those that many points share.
fn doubts(results: &Results, peaks: &[Peak], noisy: bool) -> Vec<String> {
    let mut doubts = results.target.warnings.clone();
    for peak in peaks {
        for warning in results.points[peak.point].numbers.iter().flat_map(|numbers| &numbers.warnings) {
            let said = format!("the best {}: {warning}", peak.op);
            if !doubts.contains(&said) && !doubts.contains(warning) {
                doubts.push(said);
            }
        }
    }
    let failed = results.points.iter().filter(|point| point.error.is_some()).count();
    if failed > 0 {
        doubts.push(format!("{failed} of {} points failed; they are shown as failed", results.points.len()));
    }
    // Where nothing is noisy, an interval is no doubt: it tells how even the one run was.
    let wide = results
        .points
        .iter()
        .filter(|point| point.numbers.as_ref().is_some_and(|numbers| numbers.relative_half_width.is_none_or(|width| width > 0.25)))
        .count();
    if noisy && wide * 3 > results.points.len() {
        doubts.push(format!(
            "{wide} of {} points are uncertain by more than 25 %: the machine is noisy, or the budget small; give it more time (--budget)",
            results.points.len()
        ));
    }
    doubts
}

/// What the budget left out, in a sentence each.
pub(crate) fn left_out<M: Machine>(bench: &Bench<'_, M>, laid: &[Laid]) -> Vec<String> {
    let mut said = Vec::new();
    for one in laid {
        let missed = one
            .places
            .iter()
            .flatten()
            .filter(|&&place| bench.entries[place].samples.is_empty() && bench.entries[place].failure.is_none())
            .count();
        if missed > 0 {
            said.push(format!("{}: {missed} of {} points were not reached in the time", one.design.title, one.places.len()));
        }
    }
    said.extend(bench.left_out.iter().cloned());
    if bench.too_long > 0 {
        said.push(format!("{} points whose single round of requests would outlast several runs", bench.too_long));
    }
    said
}

/// Leaves what was never run out of the experiments and off the bench; returns where the peaks are then.
pub(crate) fn keep_reached<M: Machine>(bench: &mut Bench<'_, M>, laid: &mut [Laid], peaks: &[(Way, usize)]) -> Vec<(Way, usize)> {
    let places = bench.drop_unreached();
    for place in laid.iter_mut().flat_map(|one| &mut one.places) {
        *place = place.and_then(|place| places[place]);
    }
    peaks.iter().filter_map(|&(way, place)| Some((way, places[place]?))).collect()
}
