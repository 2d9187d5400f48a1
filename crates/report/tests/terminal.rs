//! Terminal and CSV output for synthetic documents, kept as snapshots.

mod support;

use report::terminal::{answer, details, points, tables};
use unicode_width::UnicodeWidthStr;

#[test]
fn answers() {
    insta::assert_snapshot!("answer-80", answer(&support::study(), 80, false));
    insta::assert_snapshot!("answer-100", answer(&support::study(), 100, false));
    insta::assert_snapshot!("answer-80-colour", answer(&support::study(), 80, true));
}

#[test]
fn the_page_shows_the_source_of_an_advertised_rate() {
    let page = report::html(&support::study()).unwrap().replace("&#x2f;", "/");
    // In the page's text, not only in a tooltip.
    assert!(page.contains("<small>PCIe 4.0 x4: 16 GT/s x 4 lanes x 128/130</small>"));
    assert!(page.contains("at least 1672 MiB/s") && page.contains("scheduler none</small>"));
    let mut bare = support::study();
    let ladder = bare.ladder.as_mut().unwrap();
    ladder.stages[5].rates.clear();
    ladder.stages[5].settings.clear();
    assert!(report::html(&bare).unwrap().contains("no rate is known"));
    assert!(report::terminal::ladder(&bare, 100, false).contains("no details known"));
}

#[test]
fn a_ladder() {
    insta::assert_snapshot!("ladder-100", report::terminal::ladder(&support::study(), 100, false));
    insta::assert_snapshot!("ladder-80", report::terminal::ladder(&support::study(), 80, false));
    assert_eq!(report::terminal::ladder(&support::sweep(), 80, false), "");
}

#[test]
fn an_answer_fits_one_screen() {
    let mut results = support::study();
    for width in [60, 80, 99, 100, 140] {
        for doubts in [0, 1, 3, 9] {
            let answer_part = results.answer.as_mut().expect("a study has an answer");
            answer_part.doubts = vec![
                    "a reason to doubt that needs more than a line of eighty columns to be given in full, and then some"
                        .into();
                    doubts
                ];
            let text = answer(&results, width, false);
            let max = if width < 80 { 40 } else { 30 };
            let count = text.lines().count();
            assert!(count <= max, "{count} lines at {width} columns:\n{text}");
            assert!(
                text.lines().all(|line| line.width() <= width),
                "no line is wider than {width}:\n{text}"
            );
            let below = text.split_once('\n').expect("lines").1;
            assert!(!below.contains('…'), "only the title is cut at {width} columns:\n{text}");
            for wanted in [
                "How fast?",
                "plain program, 64 KiB",
                "1672 MiB/s",
                " IOPS, p99 ",
                "Why not faster?",
                "reads are limited by the device",
                "What to do?",
                "×1.73 (1.64–1.83)",
                "p99 ×4.6, CPU −69 %",
                "×2.08",
                "×1.38",
            ] {
                assert!(
                    text.contains(wanted),
                    "{wanted} is in the answer at {width} columns:\n{text}"
                );
            }
        }
    }
}

#[test]
fn the_evidence_is_in_the_details() {
    let text = details(&support::study(), 80, false);
    assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    insta::assert_snapshot!("details-80", text);
    assert_eq!(details(&support::run(), 80, false), "");
}

#[test]
fn the_page_answers_three_questions_before_everything_else() {
    let page = report::html(&support::study()).expect("a page");
    let places = [
        "<h2>How fast?</h2>",
        "plain program, 64 KiB",
        "IOPS, p99",
        "<h2>Why not faster?</h2>",
        "Reads, from the program down",
        "<h2>What to do?</h2>",
        "SEQ1M Q8T1",
        "<details",
        "94 % of the peak with 64 KiB",
    ];
    let found = places.map(|text| page.find(text).unwrap_or_else(|| panic!("{text}")));
    assert!(found.is_sorted(), "{found:?}");
}

#[test]
fn points_of_a_sweep_and_a_run() {
    insta::assert_snapshot!("sweep-80", points(&support::sweep(), 80, false));
    insta::assert_snapshot!("sweep-60", points(&support::sweep(), 60, false));
    insta::assert_snapshot!("run-80", points(&support::run(), 80, false));
    let mut failed = support::run();
    failed.points[0] = support::sweep().points.remove(9);
    insta::assert_snapshot!("run-failed-80", points(&failed, 80, false));
}

#[test]
fn operations_on_files() {
    insta::assert_snapshot!("metadata-100", points(&support::metadata(), 100, false));
    let files = results::csv(&support::metadata());
    let (name, text) = &files[1];
    assert_eq!(name, "operations.csv");
    insta::assert_snapshot!("csv-operations.csv", text.replace("\r\n", "\n"));
}

#[test]
fn tables_of_a_study() {
    insta::assert_snapshot!("tables-80", tables(&support::study(), 80, false));
}

#[test]
fn csv_files() {
    let files = results::csv(&support::study());
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "points.csv",
            "memory.csv",
            "buffered.csv",
            "unbuffered.csv",
            "cost.csv",
            "depth.csv",
            "random.csv",
            "allocation.csv",
            "alignment.csv",
            "streams.csv",
            "location.csv",
            "device_cache.csv"
        ]
    );
    for (name, text) in &files {
        let head: Vec<&str> = text.split("\r\n").take(4).collect();
        if ["points.csv", "memory.csv", "cost.csv"].contains(&name.as_str()) {
            insta::assert_snapshot!(format!("csv-{name}"), head.join("\n"));
        }
        let columns = head[0].split(',').count();
        for row in text.split("\r\n").filter(|row| !row.is_empty() && !row.contains('"')) {
            assert_eq!(row.split(',').count(), columns, "{name}: {row}");
        }
    }
}

#[test]
fn a_failed_point_has_an_error_and_no_number() {
    let (_, text) = results::csv(&support::sweep()).remove(0);
    let header: Vec<&str> = text.lines().next().expect("a header").split(',').collect();
    let row: Vec<&str> = text.lines().nth(10).expect("the failed point").split(',').collect();
    let cell =
        |name: &str| row[header.iter().position(|column| *column == name).expect("a column")];
    assert_eq!(cell("throughput_bytes_per_s"), "");
    assert_eq!(cell("latency_p99_ns"), "");
    assert!(cell("error").contains("Input/output error"));
}
