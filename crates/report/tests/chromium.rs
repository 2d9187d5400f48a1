//! The page in a headless browser: no errors, all figures, no overlapping text, tooltips, printing.
//! Skipped without Chromium, unless HALFPOWER_REQUIRE=all.

mod support;

use results::Results;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use support::browser::{self, browse, look_at, text};

fn browser() -> Option<PathBuf> {
    browser::browser()
        .inspect_err(|why| {
            assert!(
                std::env::var("HALFPOWER_REQUIRE").as_deref() != Ok("all"),
                "HALFPOWER_REQUIRE=all and {why}"
            );
            eprintln!("skipped: {why}");
        })
        .ok()
}

fn look(browser: &Path, results: &Results, width: u32, dark: bool) -> Value {
    look_at(browser, &report::html(results).expect("a page"), width, dark)
}

fn check(seen: &Value, width: u32, figures: usize) {
    assert_eq!(browser::check(seen, width).len(), figures);
}

fn figures_of(results: &Results) -> usize {
    results
        .experiments
        .iter()
        .map(|experiment| experiment.figures.len() + usize::from(!experiment.memory.is_empty()))
        .sum()
}

#[test]
fn a_study_in_both_widths_and_themes() {
    let Some(browser) = browser() else { return };
    let results = support::study();
    let mut pages = Vec::new();
    for width in [1280, 420] {
        for dark in [false, true] {
            let seen = look(&browser, &results, width, dark);
            check(&seen, width, figures_of(&results));
            let unbuffered = seen["figures"]
                .as_array()
                .expect("figures")
                .iter()
                .find(|figure| text(&figure["id"]).contains("unbuffered"));
            let hover = text(&unbuffered.expect("the figure is there")["hover"]).to_string();
            for wanted in
                ["requests", "MiB/s", "95 % interval", "runs; latency p50", "p99", "direct"]
            {
                assert!(hover.contains(wanted), "{wanted} is among the values: {hover}");
            }
            let themes: Vec<&str> =
                seen["theme"].as_array().expect("themes").iter().map(text).collect();
            let [system, light, night, again] = themes[..] else {
                panic!("four looks: {themes:?}")
            };
            assert_eq!(system, if dark { night } else { light }, "the system's theme is followed");
            assert_eq!(again, system, "the button comes round");
            assert_ne!(light, night, "the themes differ");
            pages.push(system.to_string());
        }
    }
    assert_eq!((&pages[0], &pages[1]), (&pages[2], &pages[3]), "themes do not depend on the width");
}

#[test]
fn a_sweep_a_run_and_operations_on_files() {
    let Some(browser) = browser() else { return };
    let seen = look(&browser, &support::sweep(), 1280, false);
    check(&seen, 1280, 2);
    let seen = look(&browser, &support::sweep(), 420, true);
    check(&seen, 420, 2);
    for results in [support::run(), support::metadata()] {
        check(&look(&browser, &results, 420, false), 420, 0);
    }
}

#[test]
fn crowded_and_empty_figures() {
    let Some(browser) = browser() else { return };
    let results = support::crowded();
    for width in [1280, 420] {
        check(&look(&browser, &results, width, false), width, figures_of(&results));
    }
}

#[test]
fn surfaces_in_both_widths_and_themes() {
    let Some(browser) = browser() else { return };
    let page = report::surfaces::surfaces(&support::sweep(), &support::surfaces()).expect("a page");
    for (width, dark) in [(1280, false), (420, true)] {
        let seen = look_at(&browser, &page, width, dark);
        check(&seen, width, 3);
        let hover = text(&seen["figures"][0]["hover"]);
        assert!(
            hover.contains("record ")
                && hover.contains("file ")
                && hover.contains("/s")
                && hover.contains("repeats within"),
            "{hover}"
        );
        let themes: Vec<&str> =
            seen["theme"].as_array().expect("themes").iter().map(text).collect();
        assert_ne!(themes[1], themes[2], "the themes differ");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (file, pdf) =
        (directory.path().join("surfaces.html"), directory.path().join("surfaces.pdf"));
    fs::write(&file, page).expect("the page is written");
    browse(&browser, &file, directory.path(), &[&format!("--print-to-pdf={}", pdf.display())]);
    let bytes = fs::read(&pdf).expect("a PDF");
    assert!(bytes.starts_with(b"%PDF-") && bytes.len() > 20_000, "{} bytes", bytes.len());
}

#[test]
fn it_prints() {
    let Some(browser) = browser() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("report.html");
    fs::write(&page, report::html(&support::study()).expect("a page"))
        .expect("the page is written");
    let pdf = directory.path().join("report.pdf");
    browse(
        &browser,
        &page,
        directory.path(),
        &[&format!("--print-to-pdf={}", pdf.display()), "--blink-settings=preferredColorScheme=0"],
    );
    let bytes = fs::read(&pdf).expect("a PDF");
    assert!(bytes.starts_with(b"%PDF-") && bytes.len() > 30_000, "{} bytes", bytes.len());
    let text = String::from_utf8_lossy(&bytes);
    let pages = text.matches("/Type /Page\n").count().max(text.matches("/Type /Page ").count());
    assert!((4..=14).contains(&pages), "{pages} pages");
}
