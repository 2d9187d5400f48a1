use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A week takes no more memory than an hour.
const MAX_POINTS: usize = 4096;

/// A stretch of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesPoint {
    /// Start of the stretch, in seconds since the start of the run.
    pub from_s: f64,
    /// Time in which requests were served.
    pub served_s: f64,
    /// Bytes written before the stretch.
    pub from_bytes: u64,
    pub bytes: u64,
    pub requests: u64,
    /// The 99th percentile of the latency; of merged points the highest.
    pub p99_ns: u64,
    /// Highest temperature of the device, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
}

impl SeriesPoint {
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.served_s
    }

    fn join(&mut self, next: &SeriesPoint) {
        self.served_s += next.served_s;
        self.bytes += next.bytes;
        self.requests += next.requests;
        self.p99_ns = self.p99_ns.max(next.p99_ns);
        self.temperature_c = self.temperature_c.max_by(next.temperature_c);
    }
}

trait MaxBy {
    fn max_by(self, other: Self) -> Self;
}

impl MaxBy for Option<f64> {
    fn max_by(self, other: Self) -> Self {
        match (self, other) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        }
    }
}

/// The rate of a run over time and over bytes, in bounded memory.
///
/// ```
/// use sustained::{Series, SeriesPoint};
///
/// let mut series = Series::default();
/// for second in 0..1_000_000u64 {
///     series.push(SeriesPoint {
///         from_s: second as f64,
///         served_s: 1.0,
///         from_bytes: second << 20,
///         bytes: 1 << 20,
///         requests: 1,
///         p99_ns: 1000,
///         temperature_c: None,
///     });
/// }
/// assert!(series.points().len() <= 4096);
/// assert_eq!(series.bytes(), 1_000_000 << 20);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Series {
    points: Vec<SeriesPoint>,
    /// Pushed points per kept point, minus one.
    merged: u32,
    /// Pushed points in the last kept one.
    last: u32,
}

impl Series {
    pub fn points(&self) -> &[SeriesPoint] {
        &self.points
    }

    pub fn bytes(&self) -> u64 {
        self.points.last().map_or(0, |point| point.from_bytes + point.bytes)
    }

    pub fn push(&mut self, point: SeriesPoint) {
        if let Some(last) = self.points.last_mut().filter(|_| self.last <= self.merged) {
            last.join(&point);
            self.last += 1;
            return;
        }
        if self.points.len() == MAX_POINTS {
            let pair = |pair: &[SeriesPoint]| {
                let mut one = pair[0];
                pair[1..].iter().for_each(|next| one.join(next));
                one
            };
            self.points = self.points.chunks(2).map(pair).collect();
            self.merged = 2 * self.merged + 1;
        }
        self.points.push(point);
        self.last = 1;
    }
}
