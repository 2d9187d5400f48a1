//! Reports of other tools as sides of a comparison, and texts that are not reports.

use dialect::reading::read_report;
use proptest::prelude::*;
use results::compare::{Measure, Side, read_table};

/// Words that make each reader begin.
const MARKS: [&str; 6] = [
    "{\"fio version\":",
    "<Results>",
    "Iozone:\n  kB  reclen    write\n",
    "seconds of transactions",
    "IOs/sec:",
    "op,iops\n",
];

fn text(snapshot: &str) -> &str {
    snapshot.splitn(3, "---\n").nth(2).expect("a snapshot has a head")
}

fn value(side: &Side, label: &str, measure: Measure) -> f64 {
    let asked = side
        .asked
        .iter()
        .find(|one| one.label == label)
        .unwrap_or_else(|| panic!("{label} in {side:#?}"));
    asked.readings.iter().find(|one| one.measure == measure).expect("the measure").value
}

#[test]
fn iozones_own_columns() {
    let all = read_report(
        "x",
        text(include_str!(
            "snapshots/iozone_reports__the_automatic_mode_in_the_originals_columns.snap"
        )),
    )
    .unwrap();
    assert_eq!(all.asked.len(), 8 * 13);
    assert_eq!(value(&all, "random write, 128, 8", Measure::Throughput), 7713.0 * 1024.0);
    let skipped = read_report(
        "x",
        text(include_str!(
            "snapshots/iozone_reports__columns_of_tests_that_were_skipped_are_blank.snap"
        )),
    )
    .unwrap();
    assert_eq!(
        value(&skipped, "stride read, 64, 4", Measure::Iops),
        1653.0,
        "blank columns are not values"
    );
    assert_eq!(value(&skipped, "random read, 64, 4", Measure::Iops), 1153.0);
}

#[test]
fn diskspds_own_xml() {
    let xml = text(include_str!("snapshots/diskspd_reports__xml_with_latencies_and_spread.snap"));
    let side = read_report("x", xml).unwrap();
    assert_eq!(side.asked.len(), 1);
    assert_eq!(side.asked[0].kind, "random mixes, 30 % writes");
    let of = |measure| {
        side.asked[0].readings.iter().find(|one| one.measure == measure).map(|one| one.value)
    };
    assert_eq!(
        (of(Measure::LatencyMean), of(Measure::LatencyP50)),
        (Some(263_000.0), Some(200_000.0))
    );
    assert!(of(Measure::Iops).is_some());
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(before in "\\PC{0,40}", mark in prop::sample::select(&MARKS[..]), after in "[\\PC\\n\\t\",<>/{}:\\[\\]0-9.]{0,300}") {
        let text = format!("{before}{mark}{after}");
        let _ = read_report("x", &text);
        let _ = read_table("x", &text, None);
    }

    #[test]
    fn a_row_of_any_width_is_read_or_refused(cells in prop::collection::vec("[ 0-9é]{0,12}", 0..30)) {
        let _ = read_report("x", &format!("Iozone:\n  kB  reclen    write\n{}\n\n", cells.concat()));
    }
}
