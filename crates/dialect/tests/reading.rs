//! Reports of other tools as sides of a comparison, and other texts.

use dialect::reading::read_report;
use proptest::prelude::*;
use results::compare::{Measure, Side, read_table};

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
    assert_eq!(
        value(&all, "random write, file KiB 128, record KiB 8", Measure::Throughput),
        7713.0 * 1024.0
    );
    let skipped = read_report(
        "x",
        text(include_str!(
            "snapshots/iozone_reports__columns_of_tests_that_were_skipped_are_blank.snap"
        )),
    )
    .unwrap();
    assert_eq!(
        value(&skipped, "stride read, file KiB 64, record KiB 4", Measure::Iops),
        1653.0,
        "blank columns are not values"
    );
    assert_eq!(value(&skipped, "random read, file KiB 64, record KiB 4", Measure::Iops), 1153.0);
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
        let _ = (read_report("x", &text), read_report("x_lat.log", &text));
        let _ = read_table("x", &text, None, &[]);
    }

    #[test]
    fn a_row_of_any_width_is_read_or_refused(cells in prop::collection::vec("[ 0-9é]{0,12}", 0..30)) {
        let _ = read_report("x", &format!("Iozone:\n  kB  reclen    write\n{}\n\n", cells.concat()));
    }
}

fn fios_clone(iops: u32, mean_ns: u32, bins: &str) -> String {
    format!(
        r#"{{"jobname":"j","groupid":0,"elapsed":2,"job options":{{"rw":"randread","numjobs":"2"}},"usr_cpu":10.0,"sys_cpu":20.0,"job_runtime":1000,
        "read":{{"iops":{iops},"bw_bytes":{},"total_ios":1000,"lat_ns":{{"mean":{mean_ns}}},
        "clat_ns":{{"bins":{{{bins}}},"percentile":{{"50.000000":70000,"99.000000":200000}}}}}}}}"#,
        iops * 4096
    )
}

fn fios_report(written_ms: u64, entries: &[String]) -> String {
    format!(
        "{{\"fio version\":\"fio-3.33\",\"timestamp_ms\":{written_ms},\"jobs\":[{}]}}\n",
        entries.join(",")
    )
}

#[test]
fn clones_of_a_fio_job_are_one_run() {
    let clones =
        [fios_clone(1000, 100, r#""50":900,"90":100"#), fios_clone(3000, 300, r#""60":1000"#)];
    let side = read_report("x", &fios_report(5000, &clones)).unwrap();
    assert_eq!(side.asked.len(), 1, "{side:#?}");
    let of = |measure| {
        let reading = side.asked[0].readings.iter().find(|one| one.measure == measure);
        reading.map(|one| (one.value, one.runs.len()))
    };
    assert_eq!(of(Measure::Iops), Some((4000.0, 0)), "they ran at once, and once");
    assert_eq!(of(Measure::Throughput), Some((4000.0 * 4096.0, 0)));
    assert_eq!(of(Measure::LatencyMean), Some((200.0, 0)), "the mean over all requests");
    // 900 + 1000 of 2000 requests took at most 60 ns.
    assert_eq!(of(Measure::LatencyP50), Some((60.0, 0)));
    assert_eq!(of(Measure::LatencyP99), Some((90.0, 0)));
    // 30 % of 1 s each for 2000 requests.
    assert_eq!(of(Measure::Cpu), Some((300_000.0, 0)));
    let without = [fios_clone(1000, 100, ""), fios_clone(3000, 300, "")];
    let side = read_report("x", &fios_report(5000, &without)).unwrap();
    let measures: Vec<Measure> = side.asked[0].readings.iter().map(|one| one.measure).collect();
    assert!(!measures.contains(&Measure::LatencyP50), "percentiles cannot be added: {measures:?}");
}

#[test]
fn repeated_reports_of_fio_are_runs_and_unfinished_ones_are_not() {
    let report = |written_ms, iops| fios_report(written_ms, &[fios_clone(iops, 100, "")]);
    let runs = |text: &str| {
        let side = read_report("x", text).unwrap();
        let iops = side.asked[0].readings.iter().find(|one| one.measure == Measure::Iops).unwrap();
        (iops.value, iops.runs.clone())
    };
    // Each took up to 2 s.
    let repeated = [report(5000, 100), "fio: a note\n".into(), report(6100, 300)].concat();
    assert_eq!(runs(&repeated), (200.0, vec![100.0, 300.0]));
    // The second run began before the first report: it is the same run.
    let status = [report(5000, 100), report(5900, 300)].concat();
    assert_eq!(runs(&status), (300.0, Vec::new()));
    let cut = [report(5000, 100), "{\"fio version\":\n".into()].concat();
    let error = read_report("x", &cut).unwrap_err().to_string();
    assert!(error.contains("line 5"), "{error}");
}

fn iozones_table() -> String {
    let row = "              64       4     1001     1002     1003     1004";
    format!("{IOZONES_HEAD}\n{row}{:>47}\n\niozone test complete.\n", 1009)
}

const IOZONES_HEAD: &str = "\tIozone: Performance Test of File I/O
                                                              random    random     bkwd    record    stride
              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite frewrite    fread  freread";

#[test]
fn an_indented_iozone_table_has_the_same_columns() {
    let table = iozones_table();
    let plain = read_report("x", &table).unwrap();
    assert_eq!(
        value(&plain, "stride read, file KiB 64, record KiB 4", Measure::Throughput),
        1009.0 * 1024.0
    );
    for indent in ["    ", "\t", "         ", "> "] {
        let lines: Vec<String> = table.lines().map(|line| format!("{indent}{line}")).collect();
        let indented = read_report("x", &lines.join("\n")).unwrap();
        assert_eq!(indented.asked, plain.asked, "{indent:?}");
    }
    let twice = read_report("x", &table.repeat(2)).unwrap();
    assert_eq!(twice.asked[0].readings[0].runs.len(), 2, "each table is a run");
}

#[test]
fn what_a_tool_would_not_write_is_an_error_that_names_the_line() {
    let table = iozones_table();
    let line_4 = |row: &str| {
        let lines: Vec<&str> = table.lines().collect();
        [&lines[..3], &[row], &lines[4..]].concat().join("\n")
    };
    let row = table.lines().nth(3).unwrap();
    let sqlio = "IOs/sec:  400,00\n";
    let postmark = "\t10 seconds of transactions (x per second)\n";
    for (text, words) in [
        (line_4(&format!("  {row}")), ["line 4", "'64'"]),
        (line_4(row.trim_start()), ["line 4", "'64'"]),
        (line_4(&row.replace("1003", "fast")), ["line 4", "'fast'"]),
        (line_4(&row.replace(" 1001 ", "1 001 ")), ["line 4", "'1'"]),
        (sqlio.into(), ["line 1", "'400,00'"]),
        (postmark.into(), ["line 1", "'x'"]),
    ] {
        let error = read_report("x", &text).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    }
}

fn log(name: &str, text: &str) -> Side {
    read_report(name, text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn fios_logs_of_windows_are_means() {
    // fio 3.33 with rate_iops=200,100 and log_avg_msec=500 wrote these lines.
    let rates = "500, 800, 0, 0, 0\n500, 400, 1, 0, 0\n1000, 808, 0, 0, 0\n1000, 400, 1, 0, 0\n";
    let side = log("avg_bw.1.log", rates);
    assert_eq!(value(&side, "bandwidth, read", Measure::Throughput), 804.0 * 1024.0);
    assert_eq!(value(&side, "bandwidth, write", Measure::Throughput), 400.0 * 1024.0);
    let iops = log("avg_iops.log", "500, 200, 0, 0, 0\n1000, 202, 0, 0, 0\n");
    assert_eq!(value(&iops, "requests, read", Measure::Iops), 201.0);
    let latency = log("avg_clat.12.log", "500, 158672, 0, 0, 0\n1000, 7994, 0, 0, 0\n");
    let readings = &latency.asked[0].readings;
    assert_eq!(latency.asked[0].label, "completion latency, read");
    assert_eq!((readings.len(), readings[0].measure), (1, Measure::LatencyMean));
    assert_eq!(readings[0].value, 83_333.0, "means of windows have no percentiles");
}

#[test]
fn fios_logs_of_requests_are_counted() {
    let lines = |value: u32| format!("{}, {value}, 0, 4096, 0\n", value / 1000);
    let text: String = (1..=1000).map(|n| lines(n * 1000)).collect();
    let latency = log("raw_lat.1.log", &text);
    let of = |measure| value(&latency, "latency, read", measure);
    assert_eq!(of(Measure::LatencyMean), 500_500.0);
    assert_eq!((of(Measure::LatencyP50), of(Measure::LatencyP99)), (500_000.0, 990_000.0));
    assert_eq!(of(Measure::LatencyP999), 999_000.0);
    // Each line is a request, and its value is not the job's rate.
    let rate = log("raw_bw.1.log", &text);
    assert_eq!(value(&rate, "bandwidth, read", Measure::Iops), 1000.0);
    assert_eq!(value(&rate, "bandwidth, read", Measure::Throughput), 4_096_000.0);
}

#[test]
fn a_log_that_does_not_say_its_unit_is_refused() {
    for (name, text, words) in [
        ("x_lat.1.log", "1, 5, 0, 4096\n", "four columns are of an older fio"),
        ("x_lat.1.log", "1, 5, 0, 4096, 0\n2, x, 0, 4096, 0\n", "line 2: 'x' is not a number"),
        ("x_bw.log", "1, 5, 3, 4096, 0\n", "line 1: direction 3 is not 0 (read)"),
        ("x_bw.log", "1, 5, 0, 4096, 0\n7\n", "line 2: it has not the four to six columns"),
        ("x.log", "1, 5, 0, 4096, 0\n", "not a report that can be compared"),
    ] {
        let error = read_report(name, text).unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {words} in {error}");
    }
}

#[test]
fn postmarks_terse_report_has_the_cases_of_the_full_one() {
    // The order of the fields is that of PostMark 1.5.
    let terse = "32 18 11.11 3.13 50.00 2.22 5.00 5.11 3.13 50.00 2.22 2764.80 40960.00\n";
    let side = read_report("x", terse).unwrap();
    assert_eq!(side.asked.len(), 12);
    let of = |label, measure| value(&side, label, measure);
    assert_eq!(of("whole run", Measure::Duration), 32e9);
    assert_eq!(of("transaction", Measure::Operations), 11.11);
    assert_eq!(of("create alone", Measure::Operations), 50.0);
    assert_eq!(of("delete in transactions", Measure::Operations), 2.22);
    assert_eq!(of("data written", Measure::Throughput), 40960.0);
    // The full report of such a run, in PostMark's words.
    let own = "Time:\n\t32 seconds total\n\t18 seconds of transactions (11 per second)\n\nFiles:\n\t100 created (3 per second)\n\
               \t\tCreation alone: 50 files (50 per second)\n\t\tMixed with transactions: 40 files (2 per second)\n\
               \t90 read (5 per second)\n\t92 appended (5 per second)\n\t100 deleted (3 per second)\n\
               \t\tDeletion alone: 50 files (50 per second)\n\t\tMixed with transactions: 40 files (2 per second)\n\nData:\n\
               \t86.40 kilobytes read (2.70 kilobytes per second)\n\t1.25 megabytes written (40.00 kilobytes per second)\n";
    let full = read_report("x", own).unwrap();
    assert_eq!(full.asked.len(), side.asked.len());
    for one in &full.asked {
        let known = side.asked.iter().any(|other| other.question == one.question);
        assert!(known, "{} is not in the terse report", one.question);
    }
    let twice = read_report("x", &terse.repeat(2)).unwrap();
    assert_eq!(twice.asked[0].readings[0].runs.len(), 2, "each line is a run");
    read_report("x", &terse.replace("11.11", "11.1")).expect_err("PostMark writes two decimals");
}

const OLD_SYSBENCH: &str = "sysbench 0.4.12:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 2

Extra file open flags: 0
128 files, 16Mb each
2Gb total file size
Block size 16Kb
Using synchronous I/O mode
Doing random r/w test

Operations performed:  6000 reads, 4000 writes, 12800 Other = 22800 Total
Read 93.75Mb  Written 62.5Mb  Total transferred 156.25Mb  (15.625Mb/sec)
 1000.00 Requests/sec executed

Test execution summary:
    total time:                          10.0000s
    total number of events:              10000
    per-request statistics:
         min:                                  0.00ms
         avg:                                  0.25ms
         max:                                 99.01ms
         approx.  95 percentile:               1.50ms
";

#[test]
fn reports_of_sysbench_before_1_0_count_the_whole_run() {
    let side = read_report("x", OLD_SYSBENCH).unwrap();
    let rest = "random r/w, 16Kb, threads 2, synchronous, 128 files, 16Mb";
    let of = |does: &str, measure| value(&side, &format!("{does}, {rest}"), measure);
    assert_eq!((of("read", Measure::Iops), of("write", Measure::Iops)), (600.0, 400.0));
    assert_eq!(of("read", Measure::Throughput), 93.75 * 104_857.6);
    assert_eq!(of("write", Measure::Throughput), 62.5 * 104_857.6);
    assert_eq!(of("all operations", Measure::LatencyMean), 250_000.0);
    for (was, is, words) in [
        ("6000 reads", "6,000 reads", ["line 13", "'6,000'"]),
        ("93.75Mb", "93.75MB", ["line 14", "'93.75MB' is not a size"]),
        ("10.0000s", "10,0s", ["line 18", "'10,0'"]),
    ] {
        let error = read_report("x", &OLD_SYSBENCH.replace(was, is)).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    }
}
