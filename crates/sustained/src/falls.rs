//! Each fall of the rate ends a store behind a fast beginning.

use crate::level::{Level, bytes_at};
use crate::series::SeriesPoint;

/// A fall to less than this share of the rate is a cliff.
pub(crate) const FELL: f64 = 0.85;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Falls {
    pub(crate) fast: Level,
    pub(crate) middle: Option<Level>,
    pub(crate) slow: f64,
}

impl Falls {
    pub(crate) fn bytes(&self) -> f64 {
        self.middle.unwrap_or(self.fast).to_bytes as f64
    }

    /// Bytes at the fast and the middle rate.
    pub(crate) fn split(&self, points: &[SeriesPoint]) -> [f64; 2] {
        let fast = self.fast.bytes_per_s;
        let Some(middle) = self.middle.map(|middle| middle.bytes_per_s) else {
            return [at_rate(points, fast, self.slow), 0.0];
        };
        // The point that holds the change belongs to the first part.
        let slower = |point: &SeriesPoint| point.bytes_per_s() < (fast * middle).sqrt();
        let change = points.iter().position(slower).map_or(points.len(), |at| at + 1);
        let (first, rest) = points.split_at(change.min(points.len()));
        let next = rest.first().map_or(self.slow, SeriesPoint::bytes_per_s);
        // The first store may outlast the second, so that the rate falls at once.
        if next < (middle * self.slow).sqrt() {
            return [at_rate(first, fast, self.slow), 0.0];
        }
        [at_rate(first, fast, middle), at_rate(rest, middle, self.slow)]
    }
}

fn at_rate(points: &[SeriesPoint], fast: f64, slow: f64) -> f64 {
    let bytes: u64 = points.iter().map(|point| point.bytes).sum();
    let seconds: f64 = points.iter().map(|point| point.served_s).sum();
    bytes_at(fast, slow, bytes as f64, seconds)
}

/// The first level after which the rate falls for good, and the lasting rate.
pub(crate) fn cliff(levels: &[Level]) -> Option<(Level, f64)> {
    let lasts = levels.last()?.bytes_per_s;
    let fast = levels
        .windows(2)
        .find(|pair| pair[1].bytes_per_s < pair[0].bytes_per_s * FELL && !pair[0].slides)?[0];
    (lasts < fast.bytes_per_s * FELL).then_some((fast, lasts))
}

pub(crate) fn falls(levels: &[Level]) -> Option<Falls> {
    let (fast, slow) = cliff(levels)?;
    Some(Falls { fast, middle: middle(levels, &fast, slow), slow })
}

fn middle(levels: &[Level], fast: &Level, slow: f64) -> Option<Level> {
    let from = levels.iter().position(|level| level.from_bytes >= fast.to_bytes)?;
    let own = &levels[from..levels.len() - 1];
    let (first, last) = (own.first()?, own.last()?);
    let bytes: u64 = own.iter().map(Level::bytes).sum();
    let rate = bytes as f64 / own.iter().map(Level::seconds).sum::<f64>();
    let near = |level: &Level| level.bytes_per_s > rate * FELL && level.bytes_per_s < rate / FELL;
    let falls = rate < fast.bytes_per_s * FELL && slow < rate * FELL;
    let plain = own.iter().all(|level| near(level) && level.saw_tooth.is_none());
    (falls && plain).then_some(Level {
        to_s: last.to_s,
        to_bytes: last.to_bytes,
        bytes_per_s: rate,
        ..*first
    })
}
