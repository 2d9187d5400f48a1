//! A rate that rises and falls in turn, as when a drive gets too hot and cools again.

use crate::series::SeriesPoint;
use measure::stats;

/// Fewer stretches may be a change of level.
const STRETCHES: usize = 5;
/// Maximum ratio of the low rate to the high one.
const TOOTH: f64 = 0.85;
/// Minimum mean points per stretch: single ones are noise.
const LENGTH: usize = 3;
/// A first stretch longer by this factor is not a tooth: a cold drive or a full credit.
const LONG_BEGINNING: usize = 2;
/// Changes within this share of high minus low on each side of the middle do not count.
const HYSTERESIS: f64 = 0.15;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SawTooth {
    pub(crate) from: usize,
    /// Low and high.
    pub(crate) rates: [f64; 2],
}

pub(crate) fn saw_tooth(points: &[SeriesPoint]) -> Option<SawTooth> {
    if points.len() < STRETCHES * LENGTH {
        return None;
    }
    let rates: Vec<f64> = points.iter().map(SeriesPoint::bytes_per_s).collect();
    // What comes first may be faster than any tooth.
    let mut later = rates[rates.len() / 2..].to_vec();
    later.sort_by(f64::total_cmp);
    let at = |share: f64| later[((later.len() - 1) as f64 * share).round() as usize];
    let (low, high) = (at(0.1), at(0.9));
    if low >= high * TOOTH {
        return None;
    }
    let mut from = 0;
    let mut stretches = stretches(&rates, low, high);
    let lengths = |part: &[(usize, bool)], end: usize| -> Vec<usize> {
        let starts = part.iter().map(|one| one.0);
        let ends = part.iter().skip(1).map(|one| one.0).chain([end]);
        starts.zip(ends).map(|(start, end)| end - start).collect()
    };
    let all = lengths(&stretches, rates.len());
    let longest = all.iter().skip(1).max().copied().unwrap_or(0);
    if all.first().is_some_and(|&first| first > longest * LONG_BEGINNING) {
        from = all[0];
        stretches.remove(0);
    }
    let count = stretches.len();
    let is_long = |length: usize| length >= count * LENGTH;
    if count < STRETCHES || !is_long(rates.len() - from) {
        return None;
    }
    Some(SawTooth { from, rates: [false, true].map(|high| usual(&rates, from, &stretches, high)) })
}

/// The starts, and whether the rate is high.
fn stretches(rates: &[f64], low: f64, high: f64) -> Vec<(usize, bool)> {
    let (middle, band) = ((low + high) / 2.0, (high - low) * HYSTERESIS);
    let mut all: Vec<(usize, bool)> = vec![(0, rates[0] >= middle)];
    let mut is_high = rates[0] >= middle;
    for (index, &rate) in rates.iter().enumerate() {
        let now = if is_high { rate > middle - band } else { rate > middle + band };
        if now != is_high {
            is_high = now;
            all.push((index, now));
        }
    }
    all
}

/// The median, because points that hold a change have a rate in between.
fn usual(rates: &[f64], from: usize, stretches: &[(usize, bool)], high: bool) -> f64 {
    let of_kind = |index: usize| {
        stretches.iter().rfind(|one| one.0 <= index).is_some_and(|one| one.1 == high)
    };
    let own = rates.iter().enumerate().skip(from).filter(|(index, _)| of_kind(*index));
    stats::median(&own.map(|(_, rate)| *rate).collect::<Vec<_>>())
}
