mod support;

use machine::units::{Units, show_in};
use report::terminal::{answer, points};

#[test]
fn rates_and_capacities_are_shown_in_decimal_units() {
    let _si = show_in(Units::Si);
    let mut study = support::study();
    study.restate();
    let screen = answer(&study, 100, false);
    // 1672 MiB/s.
    assert!(screen.contains("1753 MB/s") && screen.contains("reads, MB/s"), "{screen}");
    assert!(!screen.contains("MiB/s") && !screen.contains("GiB"), "{screen}");
    assert!(screen.contains("plain program, 64 KiB"), "requests keep their size: {screen}");
    let sweep = points(&support::sweep(), 120, false);
    assert!(sweep.contains("MB/s") && !sweep.contains("MiB/s"), "{sweep}");
    let page = report::html(&study).expect("a page");
    assert!(page.contains("1753 MB/s") || page.contains("1753 MB&#x2f;s"));
    assert!(page.contains("of 10<sup>6</sup> bytes"));
}
