//! Stretches with a rate of their own, from the change points of [`measure::stats::phases`].

use crate::saw_tooth::saw_tooth;
use crate::series::SeriesPoint;
use measure::stats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MAX_BLOCKS: usize = 400;
/// Half the interval of a block's rate, as a share: request boundaries move it this much.
const UNCERTAIN: f64 = 0.02;
/// As a share of the median; a shorter block is joined with the next.
const SHORT: f64 = 0.5;

/// A stretch of a run with a rate of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Start of the stretch, in seconds since the start of the run.
    pub from_s: f64,
    pub to_s: f64,
    /// Bytes written before the stretch.
    pub from_bytes: u64,
    pub to_bytes: u64,
    pub bytes_per_s: f64,
    pub requests_per_s: f64,
    /// Median of the 99th percentiles of the stretch's points.
    pub p99_ns: u64,
    /// Highest 99th percentile of the stretch's points.
    pub worst_p99_ns: u64,
    /// The rate slid from this one to that of the next level.
    pub slides: bool,
    /// The rate goes up and down between about these; `bytes_per_s` is its mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saw_tooth: Option<[f64; 2]>,
}

impl Level {
    pub fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }

    pub fn bytes(&self) -> u64 {
        self.to_bytes - self.from_bytes
    }
}

struct Block {
    first: usize,
    end: usize,
    rate: f64,
}

fn blocks(points: &[SeriesPoint]) -> Vec<Block> {
    let times: Vec<f64> = points.iter().map(|point| point.served_s).collect();
    let total: f64 = times.iter().sum();
    let min = (total / MAX_BLOCKS as f64).max(stats::median(&times) * SHORT);
    let mut all: Vec<Block> = Vec::new();
    let mut first = 0;
    let (mut seconds, mut bytes) = (0.0, 0);
    for (index, point) in points.iter().enumerate() {
        seconds += point.served_s;
        bytes += point.bytes;
        if seconds >= min {
            all.push(Block { first, end: index + 1, rate: bytes as f64 / seconds });
            (first, seconds, bytes) = (index + 1, 0.0, 0);
        }
    }
    all
}

/// How many of `bytes`, which took `seconds`, moved at `fast`; the rest moved at `slow`.
pub(crate) fn bytes_at(fast: f64, slow: f64, bytes: f64, seconds: f64) -> f64 {
    ((seconds - bytes / slow) / (1.0 / fast - 1.0 / slow)).clamp(0.0, bytes)
}

/// One level if the rate did not change. A change within a point is located by its time at both
/// rates; teeth at the end are one level.
pub fn levels(points: &[SeriesPoint]) -> Vec<Level> {
    let Some(teeth) = saw_tooth(points) else { return plain(points) };
    let mut all = plain(&points[..teeth.from]);
    let last = level(points, teeth.from as f64, points.len() as f64, None, false);
    all.push(Level { saw_tooth: Some(teeth.rates), ..last });
    all
}

fn plain(points: &[SeriesPoint]) -> Vec<Level> {
    let blocks = blocks(points);
    if blocks.is_empty() {
        return Vec::new();
    }
    let rates: Vec<f64> = blocks.iter().map(|block| block.rate).collect();
    let Some(course) = stats::phases(&rates, UNCERTAIN) else {
        return vec![level(points, 0.0, points.len() as f64, None, false)];
    };
    if course.gradual {
        let half = points.len() as f64 / 2.0;
        let ends = [course.phases[0].rate, course.phases[1].rate];
        return vec![
            level(points, 0.0, half, Some(ends[0]), true),
            level(points, half, points.len() as f64, Some(ends[1]), false),
        ];
    }
    // The blocks next to a change may be part of it.
    let inner = |phase: &stats::Phase| {
        let (mut from, mut to) = (phase.values.start, phase.values.end);
        if to - from > 2 {
            from += usize::from(phase.values.start > 0);
            to -= usize::from(phase.values.end < blocks.len());
        }
        let part = &points[blocks[from].first..blocks[to - 1].end];
        let bytes: u64 = part.iter().map(|point| point.bytes).sum();
        bytes as f64 / part.iter().map(|point| point.served_s).sum::<f64>()
    };
    let own: Vec<f64> = course.phases.iter().map(inner).collect();
    let mut at = 0.0;
    let mut all = Vec::with_capacity(own.len());
    for (index, pair) in course.phases.windows(2).enumerate() {
        let first = blocks[pair[0].values.end.saturating_sub(1)].first;
        let last = blocks[pair[1].values.start.min(blocks.len() - 1)].end;
        let end = boundary(points, first..last, own[index], own[index + 1]);
        all.push(level(points, at, end, Some(own[index]), false));
        at = end;
    }
    all.push(level(points, at, points.len() as f64, own.last().copied(), false));
    all
}

/// A fractional index.
fn boundary(points: &[SeriesPoint], range: std::ops::Range<usize>, before: f64, after: f64) -> f64 {
    let part = &points[range.clone()];
    let bytes: u64 = part.iter().map(|point| point.bytes).sum();
    let seconds: f64 = part.iter().map(|point| point.served_s).sum();
    let mut left = bytes_at(before, after, bytes as f64, seconds);
    for (index, point) in part.iter().enumerate() {
        if left <= point.bytes as f64 {
            return (range.start + index) as f64 + left / point.bytes.max(1) as f64;
        }
        left -= point.bytes as f64;
    }
    range.end as f64
}

/// `from` and `to` are fractional indices.
fn level(points: &[SeriesPoint], from: f64, to: f64, rate: Option<f64>, slides: bool) -> Level {
    let last = points.len() - 1;
    let place = |at: f64| {
        let index = (at.floor() as usize).min(last);
        let share = at - index as f64;
        let point = &points[index];
        let bytes = point.from_bytes + (point.bytes as f64 * share) as u64;
        // Within a point that holds a change, bytes pass at two rates.
        (point.from_s + point.served_s * share, bytes)
    };
    let ((from_s, from_bytes), (to_s, to_bytes)) = (place(from), place(to));
    let first = (from.ceil() as usize).min(last);
    let part = &points[first..(to.floor() as usize).clamp(first + 1, points.len())];
    let p99s: Vec<f64> = part.iter().map(|point| point.p99_ns as f64).collect();
    let requests: u64 = part.iter().map(|point| point.requests).sum();
    let bytes: u64 = part.iter().map(|point| point.bytes).sum();
    let seconds: f64 = part.iter().map(|point| point.served_s).sum();
    let bytes_per_s = rate.unwrap_or(bytes as f64 / seconds);
    Level {
        from_s,
        to_s,
        from_bytes,
        to_bytes,
        bytes_per_s,
        requests_per_s: bytes_per_s * requests as f64 / bytes.max(1) as f64,
        p99_ns: stats::median(&p99s) as u64,
        worst_p99_ns: part.iter().map(|point| point.p99_ns).max().unwrap_or(0),
        slides,
        saw_tooth: None,
    }
}
