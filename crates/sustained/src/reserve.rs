//! A store is a token bucket: full, it passes the fast rate; empty, the slow one. Two in a row make
//! three levels.

use crate::document::Recovery;
use crate::falls::{Falls, falls};
use crate::level::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A credit predicts a recovery with at most this relative error. The second holds if the slow rate
/// is [`CLEAR_SHARE`] of the fast one or more: a cache emptied at the slow rate would then bring
/// back clearly less.
const CREDIT_FITS: [f64; 2] = [0.03, 0.1];
const CLEAR_SHARE: f64 = 0.2;
/// A recovery is complete from this share on; below [`NOTHING`] it is noise.
const COMPLETE: f64 = 0.95;
const NOTHING: f64 = 0.01;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReserveKind {
    /// A credit earned at the slow rate, also under load, and spent above it: a volume's burst
    /// credit.
    Credit,
    /// A cache filled by writes and emptied at rest: a drive's write cache.
    Cache,
    /// No rest was long enough to decide.
    Unknown,
}

/// The store behind a fast beginning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reserve {
    pub kind: ReserveKind,
    /// Rate while the store lasts.
    pub fast_bytes_per_s: f64,
    /// Rate after the store is used up.
    pub slow_bytes_per_s: f64,
    /// Bytes written before the store was used up (of a credit: including what was earned
    /// meanwhile).
    pub fast_bytes: f64,
    /// Time until the store was used up, in seconds.
    pub empties_in_s: f64,
    /// Bytes that the store holds when full.
    pub size_bytes: f64,
    /// Rate at which the store refills at rest; absent if unknown.
    pub refill_bytes_per_s: Option<f64>,
    /// Time at rest in which an empty store refills, in seconds; absent if the rate is unknown.
    pub refills_in_s: Option<f64>,
}

/// The stores behind a run's levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reserves {
    pub first: Reserve,
    /// It ends at the second fall.
    pub second: Option<Reserve>,
}

/// Fits the model to levels and rests. `None` without a cliff. A `rotating` disk has no credit: its
/// memory always empties at the platters' rate, which looks the same.
pub fn reserves(levels: &[Level], recoveries: &[Recovery], rotating: bool) -> Option<Reserves> {
    let falls = falls(levels)?;
    let last = Store::of(&falls, recoveries, rotating);
    if falls.middle.is_none() {
        return Some(Reserves { first: last.reserve(&falls, recoveries, 0.0), second: None });
    }
    let first = before(&falls, last.kind);
    Some(Reserves { first, second: Some(last.reserve(&falls, recoveries, first.size_bytes)) })
}

fn before(falls: &Falls, last: ReserveKind) -> Reserve {
    let rate = falls.fast.bytes_per_s;
    let slow = falls.middle.map_or(falls.slow, |middle| middle.bytes_per_s);
    let spent = falls.fast.to_bytes as f64;
    let size_bytes = spent * (1.0 - slow / rate);
    // The next store decides how fast a cache is emptied at rest.
    let refill = (last == ReserveKind::Credit).then_some(slow);
    Reserve {
        kind: last,
        fast_bytes_per_s: rate,
        slow_bytes_per_s: slow,
        fast_bytes: spent,
        empties_in_s: spent / rate,
        size_bytes,
        refill_bytes_per_s: refill,
        refills_in_s: refill.map(|refill| size_bytes / refill),
    }
}

struct Store {
    kind: ReserveKind,
    /// 1 if the store earns the slow rate under load too; 0 if only at rest.
    earns: f64,
}

impl Store {
    fn of(falls: &Falls, recoveries: &[Recovery], rotating: bool) -> Store {
        let partial: Vec<&Recovery> = partial(falls, recoveries).collect();
        let fits = CREDIT_FITS[usize::from(falls.slow / falls.fast.bytes_per_s >= CLEAR_SHARE)];
        let credit = |one: &&Recovery| {
            let earned = spent(falls, one.fast_bytes, one.middle_bytes, 1.0);
            (earned / (falls.slow * one.rest_s) - 1.0).abs() <= fits
        };
        let earns = !partial.is_empty() && partial.iter().all(credit);
        let kind = match (partial.is_empty(), earns && !rotating) {
            (true, _) => ReserveKind::Unknown,
            (false, true) => ReserveKind::Credit,
            (false, false) => ReserveKind::Cache,
        };
        Store { kind, earns: f64::from(u8::from(earns)) }
    }

    /// `first_bytes` are those in a store before it.
    fn reserve(&self, falls: &Falls, recoveries: &[Recovery], first_bytes: f64) -> Reserve {
        let (to_bytes, last) = (falls.bytes(), falls.middle.unwrap_or(falls.fast));
        let first_bytes = if self.earns > 0.0 { 0.0 } else { first_bytes };
        let in_middle = falls.middle.map_or(0.0, |middle| middle.bytes() as f64);
        let own = |fast, middle| spent(falls, fast, middle, self.earns) - first_bytes;
        let size_bytes = own(falls.fast.to_bytes as f64, in_middle);
        // A delay before emptying starts affects the longest rest the smallest amount.
        let longest = partial(falls, recoveries).max_by(|a, b| a.rest_s.total_cmp(&b.rest_s));
        let refill = longest
            .map(|one| own(one.fast_bytes, one.middle_bytes) / one.rest_s)
            .filter(|refill| *refill > 0.0);
        Reserve {
            kind: self.kind,
            fast_bytes_per_s: last.bytes_per_s,
            slow_bytes_per_s: falls.slow,
            fast_bytes: to_bytes,
            empties_in_s: match falls.middle {
                None => to_bytes / last.bytes_per_s,
                Some(middle) => middle.to_s,
            },
            size_bytes,
            refill_bytes_per_s: refill,
            refills_in_s: refill.map(|refill| size_bytes / refill),
        }
    }
}

fn spent(falls: &Falls, fast: f64, middle: f64, earns: f64) -> f64 {
    let own = |bytes: f64, rate: f64| bytes * (1.0 - earns * falls.slow / rate);
    let of_middle = falls.middle.map_or(0.0, |level| own(middle, level.bytes_per_s));
    own(fast, falls.fast.bytes_per_s) + of_middle
}

fn partial<'a>(
    falls: &Falls,
    recoveries: &'a [Recovery],
) -> impl Iterator<Item = &'a Recovery> + use<'a> {
    let whole = falls.bytes();
    let share = move |one: &Recovery| one.bytes() / whole;
    recoveries.iter().filter(move |one| !one.cut_short && (NOTHING..COMPLETE).contains(&share(one)))
}
