//! Recorded reports of other tools, and our own in their forms, read back.

use dialect::reading::{is_report, read_report};
use results::compare::{Measure, Measurement, Side};

const MIB: f64 = 1_048_576.0;

fn side(text: &str) -> Side {
    assert!(is_report("x", text));
    read_report("x", text).unwrap_or_else(|error| panic!("{error}"))
}

fn of(one: &Measurement, measure: Measure) -> Option<f64> {
    one.readings.iter().find(|reading| reading.measure == measure).map(|reading| reading.value)
}

fn case<'a>(side: &'a Side, settings: &[(&str, &str)]) -> &'a Measurement {
    let has = |one: &&Measurement| {
        let key = |(name, value): &(&str, &str)| {
            one.keys.iter().any(|(own, text)| own == name && text == value)
        };
        settings.iter().all(key)
    };
    let found: Vec<&Measurement> = side.asked.iter().filter(has).collect();
    assert_eq!(found.len(), 1, "{settings:?} in {side:#?}");
    found[0]
}

fn snapshot(text: &str) -> &str {
    text.splitn(3, "---\n").nth(2).expect("a snapshot has a head")
}

fn three_forms(text: &str) -> [String; 3] {
    let (before, rest) = text.split_once("{\n").expect("JSON");
    let (json, normal) = rest.split_once("\n}\n").expect("the end of the JSON");
    let (head, terse): (Vec<&str>, Vec<&str>) =
        before.lines().partition(|line| !line.contains(';'));
    [terse.concat(), format!("{{\n{json}\n}}\n"), format!("{}\n{normal}", head.join("\n"))]
}

#[test]
fn every_form_of_one_run_of_fio_has_the_same_figures() {
    for text in [
        include_str!("data/recordings/fio-3.33-terse-2.txt"),
        include_str!("data/recordings/fio-3.33-terse-3.txt"),
        include_str!("data/recordings/fio-3.33-terse-4.txt"),
        include_str!("data/recordings/fio-3.33-terse-5.txt"),
    ] {
        let forms = three_forms(text);
        let [terse, json, normal] = forms.each_ref().map(|form| side(form));
        for does in ["read", "write"] {
            let [terse, json, normal] =
                [&terse, &json, &normal].map(|side| case(side, &[("job", "j"), ("does", does)]));
            for (measure, printed) in [
                // The terse form has whole IOPS, KiB/s and us; the normal one three digits.
                (Measure::Iops, [2e-4, 1e-2]),
                (Measure::Throughput, [1e-4, 1e-2]),
                (Measure::LatencyMean, [1e-4, 1e-3]),
                (Measure::LatencyP50, [0.03, 0.03]),
                (Measure::LatencyP99, [0.02, 0.02]),
                (Measure::LatencyP999, [0.02, 0.02]),
            ] {
                let exact = of(json, measure).unwrap();
                for (form, tolerance) in [terse, normal].into_iter().zip(printed) {
                    let own =
                        of(form, measure).unwrap_or_else(|| panic!("{measure:?} in {form:#?}"));
                    assert!(
                        (own / exact - 1.0).abs() < tolerance,
                        "{does} {measure:?}: {own}, {exact}"
                    );
                }
            }
        }
    }
}

#[test]
fn fio_2_writes_microseconds_and_binary_kilobytes() {
    let json = side(include_str!("data/recordings/fio-2.1.json"));
    let text = side(include_str!("data/recordings/fio-2.1.txt"));
    for (side, iops) in [(&json, 6553.6), (&text, 6553.0)] {
        let read = case(side, &[("job", "a"), ("does", "read")]);
        for (measure, value) in [
            (Measure::Iops, iops),
            (Measure::Throughput, 26214.0 * 1024.0),
            (Measure::LatencyMean, 151_750.0),
            (Measure::LatencyP50, 143_000.0),
            (Measure::LatencyP99, 290_000.0),
            (Measure::LatencyP999, 1_020_000.0),
        ] {
            assert_eq!(of(read, measure), Some(value), "{measure:?}");
        }
    }
    assert_eq!(case(&text, &[("rw", "randread")]).kind, "random reads");
}

#[test]
fn clones_in_a_normal_report_are_one_run_and_another_run_is_a_repeat() {
    let text = include_str!("data/recordings/fio-2.1.txt");
    let (head, rest) = text.split_once("a: (groupid").unwrap();
    let (job, tail) = rest.split_once("Run status").unwrap();
    let job = format!("a: (groupid{job}");
    let clones = side(&format!("{head}{job}{job}Run status{tail}"));
    let read = case(&clones, &[("job", "a")]);
    assert_eq!(of(read, Measure::Iops), Some(2.0 * 6553.0));
    assert_eq!(of(read, Measure::LatencyMean), Some(151_750.0));
    assert_eq!(of(read, Measure::LatencyP50), None, "percentiles cannot be added");
    let repeats = side(&text.repeat(2));
    let iops = &case(&repeats, &[("job", "a")]).readings[0];
    assert_eq!((iops.value, iops.runs.len()), (6553.0, 2));
}

#[test]
fn diskspds_text_has_the_figures_of_its_xml() {
    let text = side(snapshot(include_str!(
        "snapshots/diskspd_reports__text_with_latencies_and_spread.snap"
    )));
    let xml = side(snapshot(include_str!(
        "snapshots/diskspd_reports__xml_with_latencies_and_spread.snap"
    )));
    let [text_case, xml_case] = [&text, &xml].map(|side| {
        assert_eq!(side.asked.len(), 1);
        &side.asked[0]
    });
    assert_eq!(text_case.question, xml_case.question, "they can be compared");
    for (measure, value) in [
        (Measure::Iops, 1600.0),
        (Measure::Throughput, 6.25 * MIB),
        (Measure::LatencyMean, 263_000.0),
        (Measure::LatencyP50, 200_000.0),
        (Measure::LatencyP99, 600_000.0),
        (Measure::LatencyP999, 600_000.0),
    ] {
        assert_eq!(of(text_case, measure), Some(value), "{measure:?}");
        // The recorded XML leaves out some percentiles.
        let exact = of(xml_case, measure).unwrap_or(value);
        // The text has two or three digits after the point.
        assert!((exact / value - 1.0).abs() < 1e-3, "{measure:?}: {exact}");
    }
    let plain = side(snapshot(include_str!(
        "snapshots/diskspd_reports__text_of_reads_alone_without_latencies.snap"
    )));
    let reads =
        case(&plain, &[("does", "reads"), ("block", "4096"), ("threads", "2"), ("stride", "4096")]);
    assert_eq!(of(reads, Measure::Iops), Some(1100.0));
    assert_eq!(of(reads, Measure::LatencyMean), None);
}

#[test]
fn iozones_throughput_mode_and_tables_for_spreadsheets() {
    let throughput = side(snapshot(include_str!(
        "snapshots/iozone_reports__the_throughput_mode_in_the_originals_words.snap"
    )));
    let write = case(
        &throughput,
        &[
            ("test", "initial writer"),
            ("processes", "2"),
            ("file KiB", "1024"),
            ("record KiB", "64"),
        ],
    );
    assert_eq!(of(write, Measure::Throughput), Some(3072.0 * 1024.0));
    assert_eq!(throughput.asked.len(), 2);
    let sheet = "Excel output is below:\n\n\"Writer report\"\n        \"4\"  \"8\"\n\"64\"   1001 1002 \n\"128\"   0 1003 \n\n\"Re-reader report\"\n        \"4\"  \"8\"\n\"64\"   2001 2002 \n";
    let sheet = side(sheet);
    let at = |test, file, record| {
        of(
            case(&sheet, &[("test", test), ("file KiB", file), ("record KiB", record)]),
            Measure::Throughput,
        )
    };
    assert_eq!(at("write", "64", "8"), Some(1002.0 * 1024.0));
    assert_eq!(at("write", "128", "8"), Some(1003.0 * 1024.0));
    assert_eq!(at("reread", "64", "4"), Some(2001.0 * 1024.0));
    assert_eq!(sheet.asked.len(), 5, "a skipped size has no figure");
}

#[test]
fn sysbenchs_rates_are_of_each_direction() {
    let all = side(include_str!("data/recordings/sysbench-1.0.20.txt"));
    let read = case(&all, &[("does", "read"), ("test", "random r/w")]);
    assert_eq!(of(read, Measure::Iops), Some(SYSBENCH[0]));
    assert_eq!(of(read, Measure::Throughput), Some(SYSBENCH[1] * MIB));
    let write = case(
        &all,
        &[("does", "write"), ("test", "random r/w"), ("threads", "2"), ("block", "16KiB")],
    );
    assert_eq!(of(write, Measure::Iops), Some(SYSBENCH[2]));
    let fsync = case(&all, &[("does", "fsync"), ("test", "random r/w")]);
    assert_eq!(of(fsync, Measure::Operations), Some(SYSBENCH[3]));
    let latency = case(&all, &[("does", "all operations"), ("test", "random r/w")]);
    assert_eq!(of(latency, Measure::LatencyMean), Some(SYSBENCH[4] * 1e6));
    assert_eq!(of(latency, Measure::LatencyP99), Some(SYSBENCH[5] * 1e6));
    // A test of one direction has no figure of the other.
    assert!(!all.asked.iter().any(|one| one.question.contains("does=write test=random read")));
}

/// The figures of the recorded random r/w test.
const SYSBENCH: [f64; 6] = [7023.08, 109.74, 4682.05, 474.16, 0.16, 7.84];

#[test]
fn postmarks_terse_line_has_the_rates_of_the_full_report() {
    let all = side(include_str!("data/recordings/postmark-1.51-terse.txt"));
    for (operation, measure, value) in [
        ("whole run", Measure::Duration, 2e9),
        ("transaction", Measure::Operations, 2500.0),
        ("create", Measure::Operations, 1515.0),
        ("create alone", Measure::Operations, 500.0),
        ("create in transactions", Measure::Operations, 1265.0),
        ("read", Measure::Operations, 1227.0),
        ("append", Measure::Operations, 1268.5),
        ("delete", Measure::Operations, 1515.0),
        ("delete alone", Measure::Operations, 560.0),
        ("delete in transactions", Measure::Operations, 1235.0),
        ("data read", Measure::Throughput, 8_174_893.0),
        ("data written", Measure::Throughput, 10_058_517.0),
    ] {
        let one = case(&all, &[("operation", operation)]);
        assert_eq!(of(one, measure), Some(value), "{operation}");
    }
    assert_eq!(all.asked.len(), 12);
}

#[test]
fn mdtests_table_has_a_rate_for_each_operation() {
    let text = include_str!("data/recordings/mdtest-4.0.txt");
    // Versions before 4.0 have a colon after the operation.
    for text in [text.to_string(), text.replace("creation    ", "creation   :")] {
        let all = side(&text);
        let create = case(&all, &[("operation", "File creation"), ("tasks", "2")]);
        assert_eq!(of(create, Measure::Operations), Some(1950.125));
        assert_eq!(all.asked.len(), 5, "an operation that was not run has no rate");
    }
}

#[test]
fn repetitions_of_ior_and_elbencho_are_runs() {
    let ior = side(include_str!("data/recordings/ior-4.0.json"));
    let write = case(&ior, &[("does", "write"), ("xfersize", "262144 bytes"), ("tasks", "2")]);
    assert_eq!(of(write, Measure::Throughput), Some(105.0 * MIB));
    assert_eq!(of(write, Measure::Iops), Some(420.0));
    assert_eq!(of(write, Measure::LatencyMean), Some(4_500_000.0));
    assert_eq!(write.readings[0].runs.len(), 2);
    let elbencho = side(include_str!("data/recordings/elbencho-3.csv"));
    let read =
        case(&elbencho, &[("operation", "READ"), ("threads", "2"), ("block size", "131072")]);
    assert_eq!(of(read, Measure::Throughput), Some(1680.0 * MIB));
    assert_eq!(of(read, Measure::Iops), Some(13440.0));
    assert_eq!(of(read, Measure::LatencyMean), Some(148_000.0));
    assert_eq!(read.readings[0].runs.len(), 2);
    let made = case(&elbencho, &[("operation", "MKDIRS")]);
    assert_eq!(of(made, Measure::Operations), Some(4000.0));
    assert_eq!(of(made, Measure::LatencyMean), Some(200_000.0));
    assert_eq!(of(made, Measure::Throughput), None);
}

#[test]
fn damaged_lines_are_named() {
    let terse = three_forms(include_str!("data/recordings/fio-3.33-terse-3.txt"))[0].clone();
    let normal = include_str!("data/recordings/fio-2.1.txt");
    let diskspd =
        snapshot(include_str!("snapshots/diskspd_reports__text_with_latencies_and_spread.snap"));
    let mdtest = include_str!("data/recordings/mdtest-4.0.txt");
    let sysbench = include_str!("data/recordings/sysbench-1.0.20.txt");
    let elbencho = include_str!("data/recordings/elbencho-3.csv");
    let sheet = "\"Writer report\"\n        \"4\"  \"8\"\n\"64\"   1001 1002 1003\n";
    let throughput = "\tChildren see throughput for  2 readers \t= fast kB/sec\n";
    let line_of =
        |text: &str, mark: &str| text.lines().position(|line| line.contains(mark)).unwrap() + 1;
    for (text, words) in [
        (terse.replacen(";0;0;", ";0;", 1), ["line 1".to_string(), "read".into()]),
        (format!("{terse}\n{terse}\n"), ["line 2".into(), "'j' is there twice".into()]),
        (
            normal.replace("iops=6553", "iops=6,553"),
            [format!("line {}", line_of(normal, "iops=6553")), "'6,553'".into()],
        ),
        (
            normal.replace("avg=151.75", "avg=?"),
            [format!("line {}", line_of(normal, "avg=151.75")), "'?'".into()],
        ),
        (
            diskspd.replace("1600.00", "1600,00"),
            [format!("line {}", line_of(diskspd, "1600.00")), "'1600,00'".into()],
        ),
        (
            mdtest.replace("1950.125", "x"),
            [format!("line {}", line_of(mdtest, "1950.125")), "'x'".into()],
        ),
        (
            sysbench.replace("109.74", "x"),
            [format!("line {}", line_of(sysbench, "109.74")), "'x'".into()],
        ),
        (elbencho.replace(",6400,", ",x,"), ["line 3".into(), "'x'".into()]),
        (elbencho.replace(",6400,", ","), ["line 3".into(), "cells".into()]),
        (sheet.into(), ["line 3".into(), "3 figures".into()]),
        (throughput.into(), ["line 1".into(), "'fast'".into()]),
    ] {
        let error = read_report("x", &text).expect_err(&words[1]).to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    }
}
