//! Terminal and CSV output for synthetic documents, kept as snapshots.

mod support;

use machine::{Engine, Figure, Warning};
use measure::stats::Ratio;
use report::terminal::{answer, details, points, tables};
use results::{Axis, ConcurrentWorkload, Interference, Overview};
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

#[test]
fn warnings_that_differ_only_in_figures_are_one() {
    let mut sweep = support::sweep();
    for (number, point) in sweep.points.iter_mut().enumerate() {
        let Some(numbers) = &mut point.numbers else { continue };
        let busy = Figure::rounded(1.0 + number as f64 / 10.0, 1);
        numbers.doubts = vec![Warning::of("others kept {} processors busy", [busy])];
        numbers.warnings = numbers.doubts.iter().map(Warning::to_string).collect();
    }
    let text = points(&sweep, 100, false);
    assert_eq!(text.matches("! others kept").count(), 1, "{text}");
    assert!(text.contains("! others kept 1.0 to 2.4 processors busy (direct read"), "{text}");
    assert!(text.contains("and 13 more)"), "{text}");
    sweep.points.remove(9);
    assert!(points(&sweep, 100, false).contains("busy (all 14 points)"));
}

#[test]
fn advice_without_a_p99_costs_mean_latency() {
    let mut study = support::study();
    for finding in &mut study.answer.as_mut().unwrap().findings {
        finding.p99_ns = None;
        let [before, after] = finding.points;
        let mean = study.points[before].numbers.as_ref().unwrap().latency_ns.mean;
        study.points[after].numbers.as_mut().unwrap().latency_ns.mean = mean * 7.0;
    }
    assert!(answer(&study, 100, false).contains("  latency ×7.0, CPU −69 %"));
}

#[test]
fn advice_that_a_burst_credit_ends_says_so() {
    let mut study = support::study();
    let of = |study: &results::Results| {
        answer(study, 140, false).matches("CPU −69 %, burst only").count()
    };
    let findings = &study.answer.as_ref().unwrap().findings;
    let after = findings[0].points[1];
    let others = findings.iter().filter(|one| one.points[1] == after).count();
    study.points[after].workload.workload.pattern = workload::Pattern::Random;
    assert_eq!(of(&study), 0);
    study.target.layers[0].facts.bursts = vec![machine::BurstFacts {
        in_requests: true,
        burst_per_s: 1e9,
        sustained_per_s: 300.0,
        lasts_s: 60.0,
    }];
    assert_eq!(of(&study), others);
}

#[test]
fn half_power_is_in_the_unit_of_its_figure() {
    let mut study = support::study();
    let figures = study.experiments.iter_mut().flat_map(|one| &mut one.figures);
    for figure in figures {
        figure.y = Axis::Iops;
        for series in &mut figure.series {
            series.values.iter_mut().for_each(|value| value.point = Some(0));
        }
    }
    let text = tables(&study, 140, false);
    let halves = text.lines().filter(|line| line.starts_with("half power of"));
    assert!(halves.clone().count() > 3 && halves.clone().all(|line| line.ends_with("/s")));
    assert!(!halves.clone().any(|line| line.contains("MiB/s")), "{text}");
}

#[test]
fn single_random_requests_are_those_that_the_advice_compares_with() {
    let single = |engine, iops: f64| {
        let workload = workload::Workload {
            pattern: workload::Pattern::Random,
            engine,
            ..support::workload(true, 4096, 1)
        };
        let mut point = support::point(workload, 1);
        let numbers = point.numbers.as_mut().unwrap();
        (numbers.iops, numbers.throughput_bytes_per_s) = (iops, iops * 4096.0);
        point
    };
    let mut run = support::run();
    run.points = vec![single(Engine::Sync, 12_000.0), single(Engine::IoUring, 18_000.0)];
    let overview = Overview::of(&run).unwrap();
    assert_eq!(overview.speeds[0].random_single.as_ref().unwrap().iops, 12_000.0);
    let classic = overview.classic.iter().find(|row| row.name == "RND4K Q1T1").unwrap();
    assert_eq!(classic.read.unwrap().iops, 12_000.0);
    // Only measured values need a row.
    let mut study = support::study();
    for point in &mut study.points {
        let workload = &mut point.workload.workload;
        if (workload.request_bytes, workload.depth) == (4096, 32) {
            workload.depth = 31;
        }
    }
    study.points.extend(run.points.clone());
    let page = report::html(&study).unwrap();
    assert!(page.contains("RND4K Q1T1") && !page.contains("RND4K Q32T1"));
    run.points.remove(0);
    let overview = Overview::of(&run).unwrap();
    assert_eq!(overview.speeds[0].random_single.as_ref().unwrap().iops, 18_000.0);
}

#[test]
fn ratios_of_rounds_that_are_no_quotients_are_explained() {
    let mut run = support::sweep();
    run.points.truncate(1);
    let alone = run.points[0].numbers.as_ref().unwrap();
    let rate = alone.throughput_bytes_per_s;
    let ratio = |mean: f64| Some(Ratio { median: mean, mean, low: mean, high: mean, n_pairs: 5 });
    let mut with = |times: f64| {
        let one = ConcurrentWorkload {
            point: 0,
            target: "/srv/data".into(),
            throughput_bytes_per_s: rate * 0.5,
            interval_95: None,
            throughput_ratio: ratio(times),
            latency_ns: run.points[0].numbers.as_ref().unwrap().latency_ns.clone(),
            p99_interval_95_ns: None,
            p99_ratio: ratio(1.0),
            warnings: Vec::new(),
        };
        run.interference = Some(Interference {
            workloads: vec![one],
            throughput_bytes_per_s: rate * 0.5,
            throughput_ratio: None,
            process_busy_percent: 1.0,
            process_ns_per_mib: 1.0,
            process_ns_per_mib_alone: 1.0,
            sentence: String::new(),
        });
        points(&run, 80, false)
    };
    assert!(!with(0.5).contains("typical ratio of one round"));
    assert!(with(0.4).contains("typical ratio of one round"));
}

#[test]
fn a_stage_is_named_once() {
    let mut study = support::study();
    let ladder = study.ladder.as_mut().unwrap();
    let memory = ladder.stages.iter().position(|one| one.name == "copy").unwrap();
    let kind = ladder.stages[0].kind.name();
    ladder.stages[0].name = kind.into();
    ladder.stages.push(ladder.stages[memory].clone());
    ladder.stages.last_mut().unwrap().name = "memory bus".into();
    let text = report::terminal::ladder(&study, 120, false);
    assert!(!text.contains(&format!("{kind} {kind}")) && !text.contains("copy copy"), "{text}");
    assert!(text.contains("  memory bus ") && !text.contains("copy memory"), "{text}");
}
