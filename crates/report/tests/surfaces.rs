mod support;

use report::surfaces::{Cliff, Surface, surfaces};

#[test]
fn hostile_names_and_odd_tables_become_no_markup() {
    let surface = Surface {
        title: "<script>alert(1)</script>".into(),
        rows: vec![65_536, 131_072, 262_144],
        columns: vec![4096],
        // Too few rows and cells, and invalid rates.
        bytes_per_s: vec![vec![Some(1e9)], vec![Some(f64::NAN)]],
        spread_percent: vec![vec![Some(3.0)]],
        cliff: Some(Cliff { first_slow_row: 9, sentence: "a & b".into() }),
    };
    let results = support::run();
    let page = surfaces(&results, &[surface]).expect("a page");
    assert!(
        !page.contains("<script>alert")
            && page.contains("&lt;script&gt;alert(1)")
            && page.contains("a &amp; b")
    );
    assert!(
        page.contains("954 MiB/s") && page.contains("repeats within 3"),
        "the value and its spread"
    );
    assert!(!surfaces(&results, &[]).expect("a page").contains("<figure"));
}

#[test]
fn every_value_is_in_the_table_and_under_the_pointer() {
    let all = support::surfaces();
    let page = surfaces(&support::sweep(), &all).expect("a page");
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    let values: usize =
        all.iter().flat_map(|surface| &surface.bytes_per_s).flatten().flatten().count();
    assert_eq!(
        page.matches("class=\"peak\"").count(),
        2 * values,
        "in a wide room and a narrow one"
    );
    let cells: usize = all.iter().map(|surface| surface.rows.len() * surface.columns.len()).sum();
    assert_eq!(page.matches("<td>").count(), cells);
    assert_eq!(page.matches("class=\"cliff\"").count(), 2, "the one surface that has a cliff");
    assert_eq!(page.matches("<tr class=\"after-cliff\">").count(), 1);
}
