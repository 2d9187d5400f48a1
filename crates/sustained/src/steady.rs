//! SNIA's rule uses five values, so a slow drift, fitting teeth of a saw, or two levels in turn can
//! satisfy it; a stricter check uses all values within the five rounds.

use measure::stats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rounds of SNIA's measurement window.
pub const WINDOW: usize = 5;
/// Maximum range in the window, in percent of the mean (SNIA PTS 2.0.2, 2.1.24 "Steady State").
pub const MAX_RANGE_PERCENT: f64 = 20.0;
/// Maximum rise of the best linear fit over the window, in percent of the mean.
pub const MAX_SLOPE_PERCENT: f64 = 10.0;
/// For the stricter check.
const MIN_VALUES: usize = 20;
/// From this correlation at any distance up to a third of the window, values have a pattern; and
/// the spread, as a share of the mean, below which it does not matter. Noise exceeds the
/// correlation in fewer than 1 of 500 windows of 60 values.
const PATTERN: f64 = 0.45;
const MATTERS: f64 = 0.06;
/// Of noise, from the 10th to the 90th percentile, as a share of the mean.
const MAX_SPREAD: f64 = 0.3;
/// Over the window, as a share, if beyond noise.
const MAX_DRIFT: f64 = 0.03;
/// Beyond noise, in standard errors of the slope.
const DRIFT_SIGMAS: f64 = 4.0;

/// Whether a window is in steady state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyCheck {
    /// Mean of the rounds.
    pub mean: f64,
    /// Range of the rounds, in percent of the mean.
    pub range_percent: f64,
    /// Rise of the best linear fit from the first to the last round, in percent of the mean.
    pub slope_percent: f64,
    /// The best linear fit at the first and at the last round.
    pub line: [f64; 2],
    /// The specification's rule holds.
    pub to_specification: bool,
    /// Why the rate is not steady although the rule may hold.
    pub contradicted_by: Option<Unsteady>,
}

impl SteadyCheck {
    /// The rule holds and nothing contradicts it.
    pub fn is_steady(&self) -> bool {
        self.to_specification && self.contradicted_by.is_none()
    }
}

/// A pattern that five rounds do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unsteady {
    /// The rate still rises or falls.
    Drift,
    /// The rate changed once within the window.
    Step,
    /// The rate moves in a rhythm longer than a value.
    Rhythm,
    /// The values spread widely, as between two levels.
    Spread,
}

impl Unsteady {
    /// Ends a sentence that begins "the rate …".
    pub fn sentence(self) -> &'static str {
        match self {
            Unsteady::Drift => "still drifts",
            Unsteady::Step => "changed within the window",
            Unsteady::Rhythm => "moves in a rhythm",
            Unsteady::Spread => "jumps between levels",
        }
    }
}

/// Judges the last [`WINDOW`] of `rounds`; `None` with fewer. `within` are values of shorter, equal
/// stretches in the same window, and may be empty.
///
/// ```
/// let check = sustained::steady_state(&[100.0, 104.0, 99.0, 101.0, 98.0], &[]).unwrap();
/// assert!(check.to_specification && check.range_percent < 6.0);
/// ```
pub fn steady_state(rounds: &[f64], within: &[f64]) -> Option<SteadyCheck> {
    let window = &rounds[rounds.len().checked_sub(WINDOW)?..];
    if !window.iter().all(|value| value.is_finite() && *value > 0.0) {
        return None;
    }
    let mean = window.iter().sum::<f64>() / WINDOW as f64;
    let (low, high) = window
        .iter()
        .fold((f64::MAX, 0.0f64), |(low, high), &value| (low.min(value), high.max(value)));
    let slope = slope(window);
    let half = slope * (WINDOW - 1) as f64 / 2.0;
    let range_percent = 100.0 * (high - low) / mean;
    let slope_percent = 100.0 * 2.0 * half / mean;
    Some(SteadyCheck {
        mean,
        range_percent,
        slope_percent,
        line: [mean - half, mean + half],
        to_specification: range_percent <= MAX_RANGE_PERCENT
            && slope_percent.abs() <= MAX_SLOPE_PERCENT,
        contradicted_by: contradiction(within),
    })
}

fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (mut product, mut squares) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let x = at as f64 - middle;
        product += x * (value - mean);
        squares += x * x;
    }
    product / squares
}

fn contradiction(values: &[f64]) -> Option<Unsteady> {
    if values.len() < MIN_VALUES {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((count - 1.0) * share).round() as usize];
    let spread = (at(0.9) - at(0.1)) / mean;
    let slope = slope(values);
    let middle = (count - 1.0) / 2.0;
    let rest: Vec<f64> = (values.iter().enumerate())
        .map(|(at, value)| value - mean - slope * (at as f64 - middle))
        .collect();
    let squares: f64 = rest.iter().map(|value| value * value).sum();
    let error = (squares / (count - 2.0) / (count * (count * count - 1.0) / 12.0)).sqrt();
    if (slope * (count - 1.0)).abs() > MAX_DRIFT * mean && slope.abs() > DRIFT_SIGMAS * error {
        return Some(Unsteady::Drift);
    }
    if let Some(course) = stats::phases(values, 0.0) {
        return Some(if course.gradual { Unsteady::Drift } else { Unsteady::Step });
    }
    match stats::judge(values).verdict {
        stats::Verdict::Drifting { .. } | stats::Verdict::WarmingUp { .. } => {
            return Some(Unsteady::Drift);
        }
        stats::Verdict::BurstExhausted { .. } => return Some(Unsteady::Step),
        _ => {}
    }
    if spread > MAX_SPREAD {
        return Some(Unsteady::Spread);
    }
    let correlation = |lag: usize| {
        rest.iter().zip(&rest[lag..]).map(|(one, later)| one * later).sum::<f64>() / squares
    };
    let patterned = || (1..=rest.len() / 3).any(|lag| correlation(lag).abs() > PATTERN);
    (spread > MATTERS && squares > 0.0 && patterned()).then_some(Unsteady::Rhythm)
}
