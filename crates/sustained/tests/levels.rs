//! Levels of made series are found where they are.

use proptest::prelude::*;
use sustained::{SeriesPoint, levels};
use workload::rng::{hash, unit};

fn series(seconds: usize, seed: u64, rate: impl Fn(f64) -> f64) -> Vec<SeriesPoint> {
    let mut written = 0.0;
    let point = |second: usize| {
        let from = written;
        // Within a second the rate may change.
        for _ in 0..100 {
            written += rate(written) / 100.0;
        }
        let wobble = 1.0 + 0.01 * (unit(hash(seed, second as u64)) - 0.5);
        SeriesPoint {
            from_s: second as f64,
            served_s: wobble,
            from_bytes: from as u64,
            bytes: (written - from) as u64,
            requests: 1000,
            p99_ns: 1_000_000,
            temperature_c: None,
        }
    };
    (0..seconds).map(point).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_cliff_is_found_at_its_place(
        fast in 2e8..5e9f64, share in 0.03..0.6f64, seconds in 8..200usize, seed in 0..1000u64,
    ) {
        let cliff = fast * (seconds as f64 + 0.37);
        let rate = |written: f64| if written < cliff { fast } else { fast * share };
        let points = series(seconds * 2 + 20, seed, rate);
        let found = levels(&points);
        prop_assert_eq!(found.len(), 2, "{:?}", found);
        prop_assert!((found[0].bytes_per_s / fast - 1.0).abs() < 0.02);
        prop_assert!((found[1].bytes_per_s / (fast * share) - 1.0).abs() < 0.02);
        prop_assert!((found[0].to_bytes as f64 / cliff - 1.0).abs() < 0.02, "{found:?} {cliff}");
    }

    #[test]
    fn a_constant_rate_is_one_level(rate in 1e6..5e9f64, seconds in 8..300usize, seed in 0..1000u64) {
        prop_assert_eq!(levels(&series(seconds, seed, |_| rate)).len(), 1);
    }

    #[test]
    fn levels_cover_all_bytes_without_gaps(
        rates in proptest::collection::vec(1e8..3e9f64, 1..6), seed in 0..1000u64,
    ) {
        let rate = |written: f64| rates[((written / 3e10) as usize).min(rates.len() - 1)];
        let points = series(160, seed, rate);
        let found = levels(&points);
        let last = points.last().unwrap();
        prop_assert_eq!(found[0].from_bytes, 0);
        prop_assert_eq!(found.last().unwrap().to_bytes, last.from_bytes + last.bytes);
        for pair in found.windows(2) {
            prop_assert_eq!(pair[0].to_bytes, pair[1].from_bytes);
        }
    }
}

#[test]
fn no_points_have_no_level() {
    assert!(levels(&[]).is_empty());
}
