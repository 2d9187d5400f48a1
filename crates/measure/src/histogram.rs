//! Latencies in 128 equal buckets per octave, so a bucket's middle is within 0.4 % of its values.
//! Below 256 ns each value has a bucket.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = ((64 - SUB_BITS) as usize + 1) << SUB_BITS;
/// A power of two: masking the index replaces the bounds check.
const TABLE: usize = BUCKETS.next_power_of_two();

/// Latencies in ns. Count, sum, minimum and maximum are exact. Recording never allocates or panics.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "SparseHistogram", into = "SparseHistogram")]
pub struct Histogram {
    counts: Box<[u64; TABLE]>,
    count: u64,
    /// 64 bits last 584 years of latencies, but checking for overflow costs more than 128.
    sum: u128,
    min: u64,
    max: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub low: u64,
    pub high: u64,
    pub count: u64,
}

impl Bucket {
    pub fn middle(&self) -> u64 {
        self.low + (self.high - self.low) / 2
    }
}

#[inline]
fn index_of(ns: u64) -> usize {
    // Below 128 the shift is 0 and the value is the index; above, ns >> shift is in 128..256.
    let shift = (63 - SUB_BITS) - (ns | SUB).leading_zeros();
    ((u64::from(shift) << SUB_BITS) + (ns >> shift)) as usize
}

fn bounds_of(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < SUB {
        return (index, index);
    }
    let shift = (index >> SUB_BITS) - 1;
    let low = (index - (shift << SUB_BITS)) << shift;
    (low, low + ((1 << shift) - 1))
}

/// Compares only what the public methods return.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let exact = |h: &Self| (h.count, h.sum(), h.min, h.max);
        exact(self) == exact(other) && self.counts == other.counts
    }
}

impl Eq for Histogram {}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("min", &self.min())
            .field("p50", &self.percentile(50.0))
            .field("p99", &self.percentile(99.0))
            .field("max", &self.max)
            .finish()
    }
}

impl Histogram {
    /// Allocates; nothing else does.
    pub fn new() -> Self {
        let counts = vec![0; TABLE].into_boxed_slice().try_into().expect("a vector of TABLE words");
        Histogram { counts, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[index_of(ns) & (TABLE - 1)] += 1;
        self.count += 1;
        self.sum += u128::from(ns);
        // New extremes are rare, so a branch is cheaper than two moves.
        if ns < self.min {
            self.new_min(ns);
        }
        if ns > self.max {
            self.new_max(ns);
        }
    }

    #[cold]
    fn new_min(&mut self, ns: u64) {
        self.min = ns;
    }

    #[cold]
    fn new_max(&mut self, ns: u64) {
        self.max = ns;
    }

    pub fn record_n(&mut self, ns: u64, times: u64) {
        if times == 0 {
            return;
        }
        let cell = &mut self.counts[index_of(ns)];
        *cell = cell.saturating_add(times);
        self.count = self.count.saturating_add(times);
        self.sum = self.sum.saturating_add(u128::from(ns) * u128::from(times));
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        for index in index_of(other.min)..=index_of(other.max) {
            self.counts[index] += other.counts[index];
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        if other.buckets.is_empty() {
            return;
        }
        for &(low, count) in &other.buckets {
            self.counts[index_of(low)] += count;
            self.count += count;
        }
        self.sum = self.sum.saturating_add(u128::from(other.sum_ns));
        self.min = self.min.min(other.min_ns);
        self.max = self.max.max(other.max_ns);
    }

    /// Returns the values since an earlier state; minimum and maximum are their buckets'.
    pub fn since(&self, before: &Histogram) -> Histogram {
        let mut new = Histogram::new();
        for bucket in self.iter() {
            let index = index_of(bucket.low);
            let count = bucket.count - before.counts[index];
            if count > 0 {
                new.counts[index] = count;
                new.min = new.min.min(bucket.low.max(self.min));
                new.max = new.max.max(bucket.high.min(self.max));
            }
        }
        new.count = self.count - before.count;
        new.sum = self.sum - before.sum;
        new
    }

    /// Keeps its memory.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.counts[index_of(self.min)..=index_of(self.max)].fill(0);
        }
        (self.count, self.sum, self.min, self.max) = (0, 0, u64::MAX, 0);
    }

    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns ns; saturates after 584 years.
    pub fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// 0 when empty.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// 0 when empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Exact; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum() as f64 / self.count as f64 }
    }

    /// Nearest rank, within 0.4 %; `p` = 0 and 100 are exact. `p` is clamped to 0..=100. 0 when
    /// empty.
    pub fn percentile(&self, p: f64) -> u64 {
        let rank = nearest_rank(p, self.count);
        if rank <= 1 {
            return self.min();
        }
        if rank >= self.count {
            return self.max;
        }
        let mut below = 0;
        for bucket in self.iter() {
            below += bucket.count;
            if below >= rank {
                return bucket.middle().clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Yields those not empty, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Bucket> + '_ {
        let range = if self.count == 0 { 0..0 } else { index_of(self.min)..index_of(self.max) + 1 };
        range.filter(|&index| self.counts[index] > 0).map(|index| {
            let (low, high) = bounds_of(index);
            Bucket { low, high, count: self.counts[index] }
        })
    }
}

fn nearest_rank(p: f64, count: u64) -> u64 {
    let exact = p.clamp(0.0, 100.0) * count as f64 / 100.0;
    let whole = exact.round();
    // 99.9999 % of a million is 999,999, although the binary product is slightly larger.
    let rank =
        if (exact - whole).abs() <= exact * 4.0 * f64::EPSILON { whole } else { exact.ceil() };
    (rank as u64).clamp(count.min(1), count)
}

/// The serialized form: only the buckets that are not empty. It also takes less memory, for
/// histograms that are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Histogram")]
pub struct SparseHistogram {
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
    /// Smallest latency in ns and number of requests. Buckets are 1 ns wide below 256 ns, and 1/128
    /// of their octave above.
    buckets: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SparseError {
    #[error(
        "no histogram bucket begins at {low_ns} ns; the nearest below begins at {nearest_ns} ns"
    )]
    NotABound { low_ns: u64, nearest_ns: u64 },
    #[error(
        "the histogram's {what} of {value_ns} ns is not in its {end} bucket, which holds {low_ns} to {high_ns} ns"
    )]
    Extreme {
        /// "minimum" or "maximum".
        what: &'static str,
        /// "first" or "last".
        end: &'static str,
        value_ns: u64,
        low_ns: u64,
        high_ns: u64,
    },
}

impl From<Histogram> for SparseHistogram {
    fn from(h: Histogram) -> Self {
        SparseHistogram::from(&h)
    }
}

impl From<&Histogram> for SparseHistogram {
    fn from(h: &Histogram) -> Self {
        SparseHistogram {
            sum_ns: h.sum(),
            min_ns: h.min(),
            max_ns: h.max,
            buckets: h.iter().map(|b| (b.low, b.count)).collect(),
        }
    }
}

impl TryFrom<SparseHistogram> for Histogram {
    type Error = SparseError;

    fn try_from(sparse: SparseHistogram) -> Result<Self, SparseError> {
        let mut h = Histogram::new();
        for &(low, count) in &sparse.buckets {
            let (nearest, _) = bounds_of(index_of(low));
            if nearest != low {
                return Err(SparseError::NotABound { low_ns: low, nearest_ns: nearest });
            }
            h.record_n(low, count);
        }
        if h.count == 0 {
            return Ok(h);
        }
        let inside = |what, end, value_ns: u64, bucket: u64| {
            let (low_ns, high_ns) = bounds_of(index_of(bucket));
            if (low_ns..=high_ns).contains(&value_ns) {
                Ok(value_ns)
            } else {
                Err(SparseError::Extreme { what, end, value_ns, low_ns, high_ns })
            }
        };
        h.min = inside("minimum", "first", sparse.min_ns, h.min)?;
        h.max = inside("maximum", "last", sparse.max_ns, h.max)?;
        h.sum = u128::from(sparse.sum_ns);
        Ok(h)
    }
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        SparseHistogram::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::Histogram").into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        SparseHistogram::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn latency() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift)
    }

    fn of(values: &[u64]) -> Histogram {
        let mut h = Histogram::new();
        values.iter().for_each(|&v| h.record(v));
        h
    }

    #[test]
    fn buckets_tile_the_whole_range() {
        let mut next = 0u64;
        for index in 0..BUCKETS {
            let (low, high) = bounds_of(index);
            assert_eq!(low, next, "bucket {index}");
            assert_eq!((index_of(low), index_of(high)), (index, index));
            assert!(high - low < (low / 128).max(1), "bucket {index} is wider than 1/128 of {low}");
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends at u64::MAX");
    }

    #[test]
    fn high_percentiles_of_a_million_are_exact() {
        let mut h = Histogram::new();
        h.record_n(200, 999_998);
        h.record(50_000);
        h.record(9_999_999);
        assert_eq!(h.percentile(99.9998), 200);
        let p = h.percentile(99.9999) as f64;
        assert!((p / 50_000.0 - 1.0).abs() < 0.005, "the 999,999th of a million is 50 us, not {p}");
        assert_eq!(h.percentile(100.0), 9_999_999);
        assert_eq!(h.percentile(0.0), h.min());
    }

    #[test]
    fn an_empty_histogram_returns_zeros() {
        let h = Histogram::new();
        assert_eq!((h.count(), h.min(), h.max(), h.percentile(50.0), h.mean()), (0, 0, 0, 0, 0.0));
        assert_eq!(h.iter().count(), 0);
    }

    #[test]
    fn contradictory_documents_are_refused() {
        let read = |text: &str| serde_json::from_str::<Histogram>(text).map_err(|e| e.to_string());
        let no_bound =
            read(r#"{"sum_ns":257,"min_ns":257,"max_ns":257,"buckets":[[257,1]]}"#).unwrap_err();
        assert!(no_bound.contains("257") && no_bound.contains("256"), "{no_bound}");
        let extreme =
            read(r#"{"sum_ns":256,"min_ns":256,"max_ns":300,"buckets":[[256,1]]}"#).unwrap_err();
        assert!(extreme.contains("maximum of 300"), "{extreme}");
        assert_eq!(
            read(r#"{"sum_ns":0,"min_ns":0,"max_ns":0,"buckets":[]}"#).unwrap(),
            Histogram::new()
        );
    }

    proptest! {
        #[test]
        fn percentiles_match_a_sorted_vector(mut values in prop::collection::vec(latency(), 1..400), p in 0.0f64..=100.0) {
            let h = of(&values);
            values.sort_unstable();
            let n = values.len();
            for p in [p, 50.0, 99.0, 99.9, 99.9999, 100.0] {
                let truth = values[(p * n as f64 / 100.0).ceil().max(1.0) as usize - 1] as f64;
                let found = h.percentile(p) as f64;
                prop_assert!((found - truth).abs() <= truth * 0.004, "p{p}: {found} for {truth}");
            }
            prop_assert_eq!(h.min(), values[0]);
            prop_assert_eq!(h.max(), values[n - 1]);
            prop_assert_eq!(h.percentile(100.0), values[n - 1]);
            prop_assert_eq!(h.count(), n as u64);
            prop_assert_eq!(h.sum(), values.iter().fold(0u64, |a, &v| a.saturating_add(v)));
        }

        #[test]
        fn values_since_a_state_are_those_recorded_after_it(a in prop::collection::vec(latency(), 0..100), b in prop::collection::vec(latency(), 1..100)) {
            let before = of(&a);
            let new = of(&[a, b.clone()].concat()).since(&before);
            let truth = of(&b);
            prop_assert_eq!((new.count(), new.sum()), (truth.count(), truth.sum()));
            for p in [50.0, 99.0, 100.0] {
                let (found, truth) = (new.percentile(p) as f64, truth.percentile(p) as f64);
                prop_assert!((found - truth).abs() <= truth * 0.008, "p{p}: {found} for {truth}");
            }
        }

        #[test]
        fn merging_is_recording_both(a in prop::collection::vec(latency(), 0..100), b in prop::collection::vec(latency(), 0..100)) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let both = of(&[a, b].concat());
            prop_assert_eq!(&merged, &both);
            merged.clear();
            prop_assert_eq!(merged, Histogram::new());
        }

        #[test]
        fn stored_and_read_again_is_the_same(values in prop::collection::vec(latency(), 0..100)) {
            let h = of(&values);
            let text = serde_json::to_string(&h).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), h);
        }
    }
}
