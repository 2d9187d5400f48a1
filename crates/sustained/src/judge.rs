//! Whether the rate has settled, is steady, and falls because of heat.

use crate::falls::cliff;
use crate::level::{Level, levels};
use crate::series::SeriesPoint;
use crate::steady::{SteadyCheck, Unsteady, WINDOW, steady_state};
use machine::Nanos;

const MIN_LAST_STEPS: usize = 25;
/// The last level's minimum share of the time before it: a drive may have a second, slower stage.
pub(crate) const LAST_SHARE: f64 = 0.5;
/// Its minimum share of the given time, up to a limit: a small cache before a large one fills at
/// once.
const LAST_SHARE_OF_ALL: f64 = 0.05;
const LAST_MOST_S: f64 = 300.0;
/// Heat explains a fall at most this far below the run's maximum.
const HOTTEST_C: f64 = 3.0;
/// The minimum rise that is heating.
const HEATED_C: f64 = 10.0;
/// In teeth from heat, the rate falls at this much more than it rises at.
const TOOTH_C: f64 = 1.0;

pub(crate) fn has_settled(points: &[SeriesPoint], for_ns: Nanos) -> bool {
    let levels = levels(points);
    let (Some(_), Some(last)) = (cliff(&levels), levels.last()) else { return false };
    let (start_s, from_s) = (points[0].from_s, last.from_s);
    let steps = points.iter().filter(|point| point.from_s >= from_s).count();
    let floor_s = (for_ns as f64 * 1e-9 * LAST_SHARE_OF_ALL).min(LAST_MOST_S);
    steps >= MIN_LAST_STEPS && last.seconds() >= ((from_s - start_s) * LAST_SHARE).max(floor_s)
}

pub(crate) fn steady(points: &[SeriesPoint], last: &Level) -> Option<SteadyCheck> {
    let first = points.iter().position(|point| point.from_s >= last.from_s)?;
    let rates: Vec<f64> = points[first..].iter().map(SeriesPoint::bytes_per_s).collect();
    // The last step may be short.
    let rates = &rates[..rates.len().saturating_sub(1)];
    let length = rates.len() / WINDOW;
    if length == 0 {
        return None;
    }
    let rates = &rates[rates.len() - length * WINDOW..];
    let rounds: Vec<f64> = rates.chunks(length).map(mean).collect();
    let check = steady_state(&rounds, rates)?;
    // A window of few teeth may look like a drift or a step.
    let contradicted_by = last.saw_tooth.map(|_| Unsteady::Rhythm).or(check.contradicted_by);
    Some(SteadyCheck { contradicted_by, ..check })
}

/// The temperature at the falls, if the device had heated up and was hottest.
pub(crate) fn heat(points: &[SeriesPoint], levels: &[Level]) -> Option<f64> {
    let celsius: Vec<f64> = points.iter().filter_map(|point| point.temperature_c).collect();
    let hottest = celsius.iter().copied().fold(f64::MIN, f64::max);
    let coldest = celsius.iter().copied().fold(f64::MAX, f64::min);
    if hottest < coldest + HEATED_C {
        return None;
    }
    if let Some(last) = levels.last().filter(|last| last.saw_tooth.is_some()) {
        return heat_of_teeth(points, last).filter(|falls_at| *falls_at >= hottest - HOTTEST_C);
    }
    let (fast, _) = cliff(levels)?;
    let at = points.iter().rposition(|point| point.from_s <= fast.to_s)?;
    let near = &points[at.saturating_sub(1)..(at + 2).min(points.len())];
    let here = near.iter().filter_map(|point| point.temperature_c).fold(f64::MIN, f64::max);
    (here >= hottest - HOTTEST_C).then_some(here)
}

fn heat_of_teeth(points: &[SeriesPoint], level: &Level) -> Option<f64> {
    let [low, high] = level.saw_tooth?;
    let middle = (low * high).sqrt();
    let first = points.iter().position(|point| point.from_s >= level.from_s)?;
    let (mut falls, mut rises) = (Vec::new(), Vec::new());
    for pair in points[first..].windows(2) {
        let is_high = [&pair[0], &pair[1]].map(|point| point.bytes_per_s() >= middle);
        // A point has the temperature of its end.
        let Some(celsius) = pair[0].temperature_c else { continue };
        match is_high {
            [true, false] => falls.push(celsius),
            [false, true] => rises.push(celsius),
            _ => {}
        }
    }
    if falls.len() < 2 || rises.len() < 2 {
        return None;
    }
    let falls_at = mean(&falls);
    (falls_at >= mean(&rises) + TOOTH_C).then_some(falls_at)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
