//! The statistics accept any numbers: they return a sensible estimate or none, and never panic.

use measure::stats::{
    HalfPower, Point, Reached, Spread, estimate_beside, estimate_runs, estimate_values, half_power,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn number() -> impl Strategy<Value = f64> {
    let edges = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::INFINITY,
        f64::NAN,
        1e-300,
        1e300,
    ];
    prop_oneof![prop::sample::select(edges), any::<f64>(), 1.0..1e6, (0..4u8).prop_map(f64::from)]
}

proptest! {
    #[test]
    fn half_power_points(points in vec((number(), number(), number(), number()), 0..8), peak in number(), ends in any::<Option<[u8; 2]>>()) {
        let points: Vec<Point> = points.into_iter().map(|(x, y, low, high)| Point { x, y, low, high }).collect();
        let ends = ends.map(|ends| ends.map(f64::from));
        if let Some(HalfPower { half, reached }) = half_power(&points, peak, ends) {
            prop_assert!(half.is_finite() && half > 0.0 || peak < f64::MIN_POSITIVE);
            let settings = || points.iter().map(|point| point.x);
            if let Reached::At { setting, crossing, .. } = reached {
                let (min, max) = (settings().fold(f64::MAX, f64::min), settings().fold(0.0, f64::max));
                prop_assert!((min..=max).contains(&crossing), "{crossing} in {min} to {max}");
                prop_assert!(settings().any(|x| x == setting));
            }
        }
    }

    #[test]
    fn intervals(runs in vec(vec(number(), 0..20), 0..9), variance in number(), degrees in 0.1..1e4) {
        let common = Spread { variance, degrees };
        let firsts: Vec<f64> = runs.iter().filter_map(|run| run.first().copied()).collect();
        let all = [estimate_runs(&runs), estimate_values(&firsts), estimate_beside(&runs, Some(common)), estimate_beside(&runs, None)];
        for one in all.into_iter().flatten() {
            prop_assert!(one.mean.is_finite() && one.low <= one.mean && one.mean <= one.high, "{one:?}");
        }
    }
}

#[test]
fn a_zero_mean_has_no_relative_spread() {
    let runs = [vec![1.0], vec![0.0, -1.0]];
    assert_eq!(
        estimate_beside(&runs, Some(Spread { variance: 0.1, degrees: 3.0 })),
        estimate_runs(&runs)
    );
}
