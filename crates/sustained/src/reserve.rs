//! The store behind a fast beginning: writes fill it or requests spend it. It is modelled as two
//! token buckets. A full bucket passes the fast rate; an empty one passes the slow rate.

use crate::document::Recovery;
use crate::level::{Level, bytes_at};
use crate::series::SeriesPoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fall to less than this share of the rate is a cliff.
const FELL: f64 = 0.85;
/// A credit explains a recovery if its prediction is this close; the second holds if the slow rate
/// is [`CLEAR_SHARE`] of the fast one or more, because a cache emptied at the slow rate would then
/// bring back clearly less.
const CREDIT_FITS: [f64; 2] = [0.03, 0.1];
const CLEAR_SHARE: f64 = 0.2;
/// A recovery is complete from this share on. Below [`NOTHING`] it is noise.
const COMPLETE: f64 = 0.95;
const NOTHING: f64 = 0.01;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReserveKind {
    /// Earned at the slow rate, also under load, and spent above it: a volume's burst credit.
    Credit,
    /// Filled by writes and emptied at rest: a drive's write cache.
    Cache,
    /// No rest was long enough to decide.
    Unknown,
}

/// The store behind a fast beginning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reserve {
    pub kind: ReserveKind,
    /// While it lasts.
    pub fast_bytes_per_s: f64,
    /// After it.
    pub slow_bytes_per_s: f64,
    /// Written at the fast rate before it was empty (of a credit: including what was earned
    /// meanwhile).
    pub fast_bytes: f64,
    /// Time in which it was empty.
    pub empties_in_s: f64,
    /// Bytes of its own: what it holds when full.
    pub size_bytes: f64,
    /// Growth at rest; absent if no rest was long enough.
    pub refill_bytes_per_s: Option<f64>,
    /// Time at rest from empty to full.
    pub refills_in_s: Option<f64>,
}

/// Bytes of a stretch that passed at the fast rate.
pub fn fast_bytes(points: &[SeriesPoint], fast: f64, slow: f64) -> f64 {
    let bytes: u64 = points.iter().map(|point| point.bytes).sum();
    let seconds: f64 = points.iter().map(|point| point.served_s).sum();
    bytes_at(fast, slow, bytes as f64, seconds)
}

/// The first level after which the rate falls for good, and the rate that lasts.
pub(crate) fn cliff(levels: &[Level]) -> Option<(Level, f64)> {
    let lasts = levels.last()?.bytes_per_s;
    let fast = levels
        .windows(2)
        .find(|pair| pair[1].bytes_per_s < pair[0].bytes_per_s * FELL && !pair[0].slides)?[0];
    (lasts < fast.bytes_per_s * FELL).then_some((fast, lasts))
}

/// Fits the model to the levels of a run and to what rests brought back. `None` without a cliff.
pub fn reserve(levels: &[Level], recoveries: &[Recovery]) -> Option<Reserve> {
    let (fast, slow) = cliff(levels)?;
    let rate = fast.bytes_per_s;
    let spent = fast.to_bytes as f64;
    let own_share = 1.0 - slow / rate;
    let partial: Vec<&Recovery> = recoveries
        .iter()
        .filter(|one| !one.cut_short)
        .filter(|one| (NOTHING..COMPLETE).contains(&(one.fast_bytes / spent)))
        .collect();
    let complete = recoveries.iter().any(|one| one.fast_bytes >= spent * COMPLETE);
    let credit = |one: &Recovery| {
        let expected = slow * one.rest_s / own_share;
        let fits = CREDIT_FITS[usize::from(slow / rate >= CLEAR_SHARE)];
        (one.fast_bytes / expected - 1.0).abs() <= fits
    };
    let kind = match &partial[..] {
        [] => ReserveKind::Unknown,
        all if all.iter().all(|one| credit(one)) => ReserveKind::Credit,
        _ => ReserveKind::Cache,
    };
    let size_bytes = if kind == ReserveKind::Credit { spent * own_share } else { spent };
    // A delay before emptying starts affects the longest rest the smallest amount.
    let longest = partial.iter().max_by(|a, b| a.rest_s.total_cmp(&b.rest_s));
    let refill = longest.map(|one| {
        let own = if kind == ReserveKind::Credit { own_share } else { 1.0 };
        own * one.fast_bytes / one.rest_s
    });
    let refills_in_s = match (refill, complete) {
        (Some(refill), _) => Some(size_bytes / refill),
        _ => None,
    };
    Some(Reserve {
        kind,
        fast_bytes_per_s: rate,
        slow_bytes_per_s: slow,
        fast_bytes: spent,
        empties_in_s: spent / rate,
        size_bytes,
        refill_bytes_per_s: refill,
        refills_in_s,
    })
}
