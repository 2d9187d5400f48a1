//! A comparison in every view: names are never markup, and every change is shown.

use report::compare::{html, markdown, terminal};
use results::Program;
use results::compare::{Comparison, Measure, Measurement, Reading, Side, compare};

fn side(name: &str, rates: &[(&str, &str, &[f64])]) -> Side {
    let asked = rates.iter().map(|(pattern, label, runs)| Measurement {
        question: format!("{pattern} {label}"),
        label: (*label).into(),
        keys: vec![("pattern".into(), (*pattern).into()), ("request".into(), (*label).into())],
        kind: format!("{pattern} reads"),
        readings: vec![
            Reading::of_runs(Measure::Throughput, runs.to_vec()),
            Reading::of_runs(Measure::LatencyP99, runs.iter().map(|rate| 1e12 / rate).collect()),
        ],
        ..Measurement::default()
    });
    Side { name: name.into(), asked: asked.collect(), warnings: Vec::new() }
}

fn example() -> Comparison {
    let a = side(
        "before.json",
        &[
            ("random", "4 KiB", &[1.00e8, 1.02e8, 0.98e8]),
            ("random", "64 KiB", &[5.0e8, 5.1e8, 4.9e8]),
            ("sequential", "64 KiB", &[9.0e8, 9.1e8, 8.9e8]),
            ("sequential", "1 MiB", &[2.0e9, 2.1e9, 1.9e9]),
        ],
    );
    let b = side(
        "after.json",
        &[
            ("random", "4 KiB", &[1.30e8, 1.31e8, 1.29e8]),
            ("random", "64 KiB", &[6.0e8, 6.1e8, 5.9e8]),
            ("sequential", "64 KiB", &[9.02e8, 9.1e8, 8.92e8]),
            ("sequential", "2 MiB", &[2.0e9, 2.1e9, 1.9e9]),
        ],
    );
    let program = Program {
        name: "halfpower".into(),
        version: "0.1.0".into(),
        arguments: vec!["compare".into()],
    };
    compare(&a, &b, program, 2.0)
}

#[test]
fn in_a_terminal() {
    insta::assert_snapshot!(terminal(&example(), 100, false));
}

#[test]
fn as_markdown() {
    insta::assert_snapshot!(markdown(&example()));
}

#[test]
fn as_a_page() {
    let page = html(&example()).unwrap();
    // Per measure: changes by kind, changes by point, and runs.
    assert_eq!(page.matches("<svg class=\"changes\"").count(), 6);
    assert!(
        page.contains("class=\"better\"") && page.contains("2 MiB") && page.contains("</html>")
    );
}

#[test]
fn names_are_never_markup() {
    let mut hostile = example();
    let name = "<script>alert(1)</script>\u{1b}[2J|`x`";
    hostile.a = name.into();
    hostile.warnings.push(name.into());
    hostile.only_a.push(name.into());
    for one in &mut hostile.differences {
        one.label = name.into();
        one.keys[1].1 = name.into();
    }
    hostile.sentences.push(name.into());
    let page = html(&hostile).unwrap();
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
    assert!(!terminal(&hostile, 80, false).contains('\u{1b}'));
    let text = markdown(&hostile);
    assert!(
        !text.contains("<script>") && !text.contains('\u{1b}') && !text.contains("|`x`"),
        "{text}"
    );
}
