//! Changes of a rate while it is measured, in the logarithms of the rates.
//!
//! Binary segmentation (Scott and Knott 1974; in shorter stretches after Kovács, Bühlmann, Li and
//! Munk, Biometrika 110, 2023). A step counts by a **gap** more than twice as wide as either side
//! and as a value's uncertainty ([`GAP_FACTOR`], [`FEW_FACTOR`], [`LONE_FACTOR`]) or by a **test**:
//! Student's t with autocorrelation.
//!
//! At most 1 of 100 stationary series of 8 or more values shows a change, in the noises of
//! `tests/stats_phases.rs` and `tests/course.rs`; fewer values only with a scatter of up to 20 %.
//! With other load, up to 3 of 100 points of 3 runs of 0.2 to 0.5 s do.

use super::distribution::student_quantile;
use super::series::{Line, autocorrelation_at_1, mean, median};
use std::ops::Range;

/// The interval covers smaller changes.
const MIN_FACTOR: f64 = 1.25;
/// If only the gap between the rates shows a change.
const GAP_FACTOR: f64 = 1.5;
/// With fewer values than [`MIN_TESTED`]. Runs of 200 ms in `tests/data` differ by up to 4 on a
/// loaded machine.
pub(crate) const FEW_FACTOR: f64 = 2.5;
/// With few values, if one side is a single value.
const LONE_FACTOR: f64 = 5.0;
pub(crate) const MIN_TESTED: usize = 8;
const MIN_SIDE: usize = 3;
/// One-sided, of a step whose place is searched for.
const STEP_TAIL: f64 = 0.00003;
const LINE_TAIL: f64 = 0.0001;
/// The share of pairs of both sides in the order of their means.
const IN_ORDER: f64 = 0.9;
const MIN_STRETCH: usize = 6;
/// In widths of the sides, times the stretch's length: the shorter it is, the more often chance
/// makes a gap.
const STRETCH_GAP: f64 = 60.0;
/// As a share of the median or the mean; a stall has no logarithm.
const FLOOR: f64 = 0.001;
const MIN_LINE: usize = 6;
/// A slide that explains this share of the variance needs no test.
const EXPLAINED: f64 = 0.93;

#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    pub values: Range<usize>,
    /// The mean; in a gradual course, at its beginning or end.
    pub rate: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Two or more. A value between two of them belongs to neither.
    pub phases: Vec<Phase>,
    pub gradual: bool,
}

/// Returns `None` if one rate describes the series. `uncertain`: one value's uncertainty, as a
/// share.
pub fn phases(values: &[f64], uncertain: f64) -> Option<Course> {
    if values.len() < 2 || !values.iter().all(|value| value.is_finite() && *value >= 0.0) {
        return None;
    }
    let floor = median(values).max(mean(values)) * FLOOR;
    if floor <= 0.0 {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|value| value.max(floor).ln()).collect();
    let search = Search { logs: &logs, uncertain: uncertain.max(0.0).ln_1p() };
    let mut found = Vec::new();
    search.split(0..logs.len(), &mut found);
    // A single value between two levels was made while one became the other.
    let mut level = 1;
    while level + 1 < found.len() {
        let [before, here, after] =
            [level - 1, level, level + 1].map(|at| mean(&logs[found[at].clone()]));
        let passing =
            found[level].len() == 1 && (before.min(after)..=before.max(after)).contains(&here);
        if passing {
            found.remove(level);
        } else {
            level += 1;
        }
    }
    let phases: Vec<Phase> = found
        .iter()
        .map(|part| Phase { values: part.clone(), rate: mean(&values[part.clone()]) })
        .collect();
    let slide = search.slide();
    let steps_left = left_over(&logs, &found);
    if let Some((from, to, slide_left)) = slide
        && (phases.len() < 2 || slide_left <= steps_left)
    {
        let half = logs.len() / 2;
        let phases = vec![
            Phase { values: 0..half, rate: from.exp() },
            Phase { values: half..logs.len(), rate: to.exp() },
        ];
        return Some(Course { phases, gradual: true });
    }
    (phases.len() > 1).then_some(Course { phases, gradual: false })
}

fn left_over(logs: &[f64], parts: &[Range<usize>]) -> f64 {
    let of = |part: &Range<usize>| {
        let level = mean(&logs[part.clone()]);
        logs[part.clone()].iter().map(|log| (log - level).powi(2)).sum::<f64>()
    };
    let count: usize = parts.iter().map(ExactSizeIterator::len).sum();
    parts.iter().map(of).sum::<f64>() / count.saturating_sub(2 * parts.len()).max(1) as f64
}

struct Search<'a> {
    logs: &'a [f64],
    /// Of one value, as a difference of logarithms.
    uncertain: f64,
}

impl Search<'_> {
    fn split(&self, part: Range<usize>, found: &mut Vec<Range<usize>>) {
        let step = self.step(part.clone()).or_else(|| self.step_of_a_stretch(part.clone()));
        match step {
            Some((before, after)) => {
                self.split(part.start..before.end, found);
                self.split(after.start..part.end, found);
            }
            None => found.push(part),
        }
    }

    /// Leaves out a value measured while the rate changed.
    fn step(&self, part: Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
        let at = best_step(&self.logs[part.clone()])? + part.start;
        let sides = [(at, at), (at - 1, at), (at, at + 1)];
        let steps = sides.into_iter().filter_map(|(end, start)| {
            if end <= part.start || start >= part.end || (end != start && part.len() < 4) {
                return None;
            }
            let (before, after) = (part.start..end, start..part.end);
            // A throttle that tightens may hold everything for a part of the time between.
            let higher = mean(&self.logs[before.clone()]).max(mean(&self.logs[after.clone()]));
            let between = self.logs[end..start].iter().all(|log| *log <= higher);
            let (first, second) = (&self.logs[before.clone()], &self.logs[after.clone()]);
            // One value of many may be an outlier, unless the one in between shares its side.
            let lone = part.len() >= MIN_TESTED && before.len().min(after.len()) < 2;
            let shared = || {
                let middle = &self.logs[end..start];
                let many = if before.len() < after.len() { second } else { first };
                !middle.is_empty() && apart(middle, many) > 2.0 * width(many).max(self.uncertain)
            };
            (between
                && (!lone || shared())
                && (self.gap(part.len(), first, second, 2.0) || tested(first, second)))
            .then_some((before, after))
        });
        // A value in between belongs to a side unless the sides are less than half as wide without
        // it.
        let wide = |step: &(Range<usize>, Range<usize>)| {
            width(&self.logs[step.0.clone()]).max(width(&self.logs[step.1.clone()]))
        };
        steps.reduce(|best, other| if 2.0 * wide(&other) < wide(&best) { other } else { best })
    }

    /// A step that is undone later does not show in the whole.
    fn step_of_a_stretch(&self, part: Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
        let mut length = part.len() / 2;
        while length >= MIN_STRETCH {
            let starts = (part.start..=part.end - length).step_by((length / 2).max(1));
            let steps = starts.filter_map(|start| {
                let at = start + best_step(&self.logs[start..start + length])?;
                let (before, after) = (&self.logs[start..at], &self.logs[at..start + length]);
                let sides = before.len() >= MIN_SIDE && after.len() >= MIN_SIDE;
                (sides && self.gap(length, before, after, (STRETCH_GAP / length as f64).max(3.0)))
                    .then(|| ((mean(after) - mean(before)).abs(), at))
            });
            if let Some((_, at)) = steps.max_by(|a, b| a.0.total_cmp(&b.0)) {
                return Some((part.start..at, at..part.end));
            }
            length /= 2;
        }
        None
    }

    fn gap(&self, count: usize, before: &[f64], after: &[f64], times: f64) -> bool {
        let width = width(before).max(width(after)).max(self.uncertain);
        let factor = match before.len().min(after.len()) {
            _ if count >= MIN_TESTED => GAP_FACTOR,
            1 => LONE_FACTOR,
            _ => FEW_FACTOR,
        };
        apart(before, after) > times * width && (mean(after) - mean(before)).abs() >= factor.ln()
    }

    /// Returns the logarithms at both ends and the variance left over, if the slide counts.
    fn slide(&self) -> Option<(f64, f64, f64)> {
        let n = self.logs.len();
        if n < MIN_LINE {
            return None;
        }
        let rates: Vec<f64> = self.logs.iter().map(|log| log.exp()).collect();
        let (linear, exponential) = (Line::through(&rates), Line::through(self.logs));
        let min = FLOOR * mean(&rates);
        let fits: [Vec<f64>; 2] = [
            (0..n).map(|t| linear.at(t).max(min).ln()).collect(),
            (0..n).map(|t| exponential.at(t)).collect(),
        ];
        let (fit, rest, squares) = fits
            .into_iter()
            .map(|fit| {
                let rest: Vec<f64> =
                    self.logs.iter().zip(&fit).map(|(log, fit)| log - fit).collect();
                let squares: f64 = rest.iter().map(|v| v * v).sum();
                (fit, rest, squares)
            })
            .min_by(|a, b| a.2.total_cmp(&b.2))?;
        let level = mean(self.logs);
        let squares_of = |values: &[f64]| values.iter().map(|v| (v - level).powi(2)).sum::<f64>();
        let (from, to) = (fit[0], fit[n - 1]);
        let change = (to - from).abs();
        let all = squares_of(self.logs);
        let in_order = || {
            n >= MIN_TESTED || self.logs.windows(2).all(|pair| (pair[1] > pair[0]) == (to > from))
        };
        let straight =
            change >= GAP_FACTOR.ln() && squares <= (1.0 - EXPLAINED) * all && in_order();
        let tested = || {
            let noise = Noise::of(&rest, 2);
            let critical = student_quantile(1.0 - LINE_TAIL, noise.degrees) * noise.error;
            let share = 2.0 * squares <= all;
            n >= MIN_TESTED
                && change >= MIN_FACTOR.ln()
                && share
                && squares_of(&fit) > critical * critical
        };
        (straight || tested()).then_some((from, to, squares / (n - 2) as f64))
    }
}

fn ends(part: &[f64]) -> (f64, f64) {
    part.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(*value), high.max(*value))
    })
}

fn width(part: &[f64]) -> f64 {
    let (low, high) = ends(part);
    high - low
}

fn apart(one: &[f64], other: &[f64]) -> f64 {
    let ((one_low, one_high), (other_low, other_high)) = (ends(one), ends(other));
    (one_low - other_high).max(other_low - one_high)
}

/// Returns where a single step explains most of the variance; `None` for one value.
pub(crate) fn best_step(values: &[f64]) -> Option<usize> {
    let n = values.len() as f64;
    let all = mean(values);
    let mut sum = 0.0;
    let explained =
        values.iter().enumerate().take(values.len().checked_sub(1)?).map(|(t, value)| {
            sum += value - all;
            let at = (t + 1) as f64;
            (sum * sum / (at * (n - at)), t + 1)
        });
    explained.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, at)| at)
}

struct Noise {
    error: f64,
    degrees: f64,
}

impl Noise {
    fn of(rest: &[f64], parameters: usize) -> Noise {
        let n = rest.len() as f64;
        let free = (n - parameters as f64).max(1.0);
        let r = autocorrelation_at_1(rest);
        // A fit takes correlation away (Kendall 1954), and one that was searched for more; so the
        // upper end of what it may be counts.
        let phi = (r + (2.0 + 4.0 * r.max(0.0)) / n + 1.0 / n.sqrt()).clamp(0.0, 0.97);
        let inflation = (1.0 + phi) / (1.0 - phi);
        let variance = rest.iter().map(|v| v * v).sum::<f64>() / free;
        Noise { error: (variance * inflation).sqrt(), degrees: (free / inflation).max(2.0) }
    }
}

fn tested(before: &[f64], after: &[f64]) -> bool {
    let (m, n) = (before.len(), after.len());
    if m + n < MIN_TESTED || m.min(n) < MIN_SIDE {
        return false;
    }
    let levels = [mean(before), mean(after)];
    let change = levels[1] - levels[0];
    if change.abs() < MIN_FACTOR.ln() || in_order(before, after, change > 0.0) < IN_ORDER {
        return false;
    }
    let rest: Vec<f64> = before
        .iter()
        .map(|log| log - levels[0])
        .chain(after.iter().map(|log| log - levels[1]))
        .collect();
    let noise = Noise::of(&rest, 2);
    let error = noise.error * (1.0 / m as f64 + 1.0 / n as f64).sqrt();
    change.abs() > student_quantile(1.0 - STEP_TAIL, noise.degrees) * error
}

/// The share of pairs of which the second is larger (`up`) or smaller; equal ones count half.
fn in_order(before: &[f64], after: &[f64], up: bool) -> f64 {
    let mut sorted = before.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |log: &f64| {
        let less = sorted.partition_point(|one| one < log) as f64;
        let equal = sorted.partition_point(|one| one <= log) as f64 - less;
        less + equal / 2.0
    };
    let share = after.iter().map(below).sum::<f64>() / (before.len() * after.len()) as f64;
    if up { share } else { 1.0 - share }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(values: &[f64]) -> Vec<f64> {
        phases(values, 0.02)
            .map_or(Vec::new(), |course| course.phases.iter().map(|one| one.rate).collect())
    }

    #[test]
    fn a_limit_that_falls_within_a_run_leaves_that_run_to_neither_side() {
        assert_eq!(
            rates(&[20.0, 20.1, 20.0, 11.0, 2.0, 2.0, 2.1, 2.0, 2.0, 1.9]),
            [20.033333333333335, 2.0]
        );
        assert_eq!(rates(&[40.0, 4.0]), [40.0, 4.0]);
        assert_eq!(rates(&[40.0, 10.0]), [0.0; 0], "too small for two values");
        assert_eq!(phases(&[40.0, 4.0], 2.5), None, "either is as uncertain as they differ");
        assert_eq!(rates(&[50.0, 90.0, 20.0, 60.0]), [0.0; 0]);
        assert_eq!(rates(&[5.0; 40]), [0.0; 0]);
        assert_eq!(rates(&[0.0; 40]), [0.0; 0]);
        assert_eq!(rates(&[1.0, f64::NAN]), [0.0; 0]);
    }

    #[test]
    fn several_levels_and_a_slope_are_not_one_another() {
        let stairs: Vec<f64> = [20.0, 8.0, 2.0].iter().flat_map(|level| [*level; 6]).collect();
        assert_eq!(rates(&stairs), [20.0, 8.0, 2.0]);
        let slope: Vec<f64> = (0..30)
            .map(|t| 20.0 * 0.97f64.powi(t) * if t % 2 == 0 { 1.01 } else { 0.99 })
            .collect();
        let course = phases(&slope, 0.02).unwrap();
        assert!(course.gradual && (course.phases[0].rate - 20.0).abs() < 0.3, "{course:?}");
        assert!((course.phases[1].rate - 8.27).abs() < 0.3, "{course:?}");
        let saw: Vec<f64> = (0..60).map(|t| if t / 10 % 2 == 0 { 20.0 } else { 5.0 }).collect();
        assert_eq!(rates(&saw), [20.0, 5.0, 20.0, 5.0, 20.0, 5.0]);
    }
}
