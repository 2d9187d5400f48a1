//! The model is held to the published figures of the 1997 study.

use predict::validate::validate;

#[test]
fn every_bar_holds_and_the_figures_are_the_same_on_every_run() {
    let validation = validate().unwrap();
    assert_eq!(validate().unwrap(), validation);
    for bar in &validation.bars {
        assert!(bar.holds, "{}: {:.4}, at most {}", bar.name, bar.value, bar.limit);
    }
    let points: usize = validation.figures.iter().map(|figure| figure.points.len()).sum();
    assert_eq!(points, 403 + 7 + 48 + 48, "every published point is there");
    let given: Vec<u32> = validation.groups.iter().map(|group| group.points).collect();
    assert_eq!(given, [315, 88], "throughput and processor time apart");
    // What the preset calls solved from figure 2 solves it.
    let writes = validation.figure("fig2_cpu").unwrap().points.iter().filter(|point| point.series.contains("write"));
    for sizes in [[2048, 4096], [32_768, 65_536]] {
        let at = || writes.clone().filter(|point| sizes.contains(&point.request_bytes));
        let (measured, simulated) =
            at().fold((0.0, 0.0), |sums, point| (sums.0 + point.measured, sums.1 + point.simulated));
        assert!((simulated / measured - 1.0f64).abs() < 0.01, "{sizes:?}: {measured} {simulated}");
    }
}
