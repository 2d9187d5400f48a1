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
    assert_eq!(points, 403 + 48 + 48, "every published point is there");
    let given: Vec<u32> = validation.groups.iter().map(|group| group.points).collect();
    assert_eq!(given, [315, 88], "throughput and processor time apart");
}
