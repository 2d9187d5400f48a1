//! The model is held to the published figures of the 1997 study.

use predict::validate::validate;

#[test]
fn every_bar_holds_and_the_figures_are_the_same_on_every_run() {
    let validation = validate().unwrap();
    assert_eq!(validate().unwrap(), validation);
    for bar in &validation.bars {
        assert!(bar.holds, "{}: {:.4}, at most {}", bar.name, bar.value, bar.limit);
    }
    assert!(validation.fitted.len() <= 25, "{:?}", validation.fitted);
    let points: usize = validation.figures.iter().map(|figure| figure.points.len()).sum();
    assert!(points > 450, "every published point is there: {points}");
}
