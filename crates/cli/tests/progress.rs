//! A running command shows plain lines on standard error, never on standard output.

mod common;

use common::places::memory_directory;
use common::{Ended, HALFPOWER, alone, command, finish, halfpower};
use std::time::{Duration, Instant};

fn progress(shown: &Ended) -> Vec<&str> {
    shown.stderr.lines().filter(|line| line.starts_with("halfpower: 0:")).collect()
}

#[test]
fn a_long_run_shows_a_number_within_three_seconds() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let words = format!(
        "run {} --size 8m --runtime 5s --repeats 1 --max-repeats 1 --json",
        place.path().display()
    );
    let shown = halfpower(&words);
    let document = shown.good_json();
    let lines = progress(&shown);
    // The next line would follow ten seconds later.
    assert_eq!(lines.len(), 1, "{shown:?}");
    assert!(lines[0].starts_with("halfpower: 0:0") && lines[0].contains("MiB/s"), "{}", lines[0]);
    assert!(document["points"][0]["iops"].as_f64() > Some(0.0));

    let silent = halfpower(&format!("{words} --progress none"));
    silent.good_json();
    assert_eq!(progress(&silent), [""; 0], "{silent:?}");
}

#[test]
fn dialects_show_the_rate_too() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("x.dat");
    for words in [
        format!("diskspd -c8M -d4 -W0 -b64K {} --progress lines", file.display()),
        format!(
            "--progress lines fio --name=a --filename={} --size=8m --rw=read --time_based --runtime=4 --output=/dev/null",
            file.display()
        ),
    ] {
        let shown = halfpower(&words);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        let lines = progress(&shown);
        assert!(lines.len() == 1 && lines[0].contains("MiB/s"), "{words}: {shown:?}");
    }
    // fio's own tests take anything on standard error for a failure.
    let quiet = halfpower(&format!(
        "fio --name=a --filename={} --size=8m --rw=read --time_based --runtime=4 --output=/dev/null",
        file.display()
    ));
    assert_eq!(quiet.code, Some(0), "{quiet:?}");
    assert_eq!(progress(&quiet), [""; 0], "{quiet:?}");
}

#[test]
fn a_short_command_shows_nothing() {
    let shown = halfpower("run twin:nvme --progress lines");
    assert_eq!((shown.code, &*shown.stderr), (Some(0), ""));
    halfpower("run twin:nvme --progress loud").refused(&["--progress", "loud", "lines"]);
}

#[test]
fn a_closed_standard_error_disturbs_nothing() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let words = format!(
        "{HALFPOWER} run {} --size 8m --runtime 3s --repeats 1 --json 2>&-",
        place.path().display()
    );
    let shown = finish(command("sh", ["-c", &words]));
    shown.good_json();
}

#[test]
fn a_terminal_has_a_bar() {
    let _alone = alone();
    let script = std::process::Command::new("script").arg("--version").output();
    if !script.is_ok_and(|output| output.status.success()) {
        return common::skip("script (util-linux) is not installed");
    }
    let place = tempfile::tempdir().unwrap();
    let run = format!(
        "stty cols 80; {HALFPOWER} run {} --size 8m --runtime 3s --repeats 1 --max-repeats 1",
        place.path().display()
    );
    let mut command = command("script", ["-qec", &run, "/dev/null"]);
    command.env("TERM", "xterm");
    let began = Instant::now();
    let shown = finish(command);
    assert!(began.elapsed() > Duration::from_secs(3));
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains(" %  ") && shown.stdout.contains("IOPS, mean"), "{shown:?}");
    assert!(!shown.stdout.contains("halfpower: 0:"), "{shown:?}");
}

#[test]
fn dialects_show_the_rate_and_the_time_left_on_a_terminal() {
    let _alone = alone();
    let script = std::process::Command::new("script").arg("--version").output();
    if !script.is_ok_and(|output| output.status.success()) {
        return common::skip("script (util-linux) is not installed");
    }
    for (words, rate) in [
        ("diskspd -c8M -d20 -W0 -b64K x.dat", "IOPS, mean"),
        ("sqlio -kW -s20 -b8 -fsequential --size 8m x.dat", "IOPS, mean"),
        ("iozone -a -o -n 4m -g 64m -i 0 -f x.dat", "IOPS, mean"),
        ("metadata . --files 100000 --sync all", "operations/s, mean"),
        ("fio --name=a --size=8m --rw=read --time_based --runtime=20", "IOPS, mean"),
        ("postmark run", " left  "),
    ] {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("run"), "set transactions 1000000000\nrun\n").unwrap();
        let run = format!("stty cols 80; timeout --foreground -s INT 3 {HALFPOWER} {words}");
        let mut command = command("script", ["-qec", &run, "/dev/null"]);
        command.env("TERM", "xterm").current_dir(place.path());
        let shown = finish(command).stdout;
        assert!(shown.contains(rate) && shown.contains(" left"), "{words}: {shown}");
    }
}

#[test]
fn live_has_a_line_for_every_second() {
    let _alone = alone();
    let place = memory_directory();
    let words = format!(
        "run {} --size 8m --request 4k --buffered --rate 2000 --runtime 3s --repeats 2 --max-repeats 2 --live --json",
        place.path().display()
    );
    let shown = halfpower(&words);
    let document = shown.good_json();
    let seconds = document["seconds"].as_array().unwrap();
    assert_eq!(seconds.len(), 6, "{seconds:#?}");
    for (number, second) in seconds.iter().enumerate() {
        let of = |name: &str| second[name].as_f64().unwrap();
        assert_eq!((of("run") as usize, of("second") as usize), (number / 3, number % 3));
        // The schedule is the truth: 2000 requests in each second.
        assert!((1900.0..2100.0).contains(&of("iops")), "{second:#}");
        let rate = of("iops") * 4096.0;
        assert!((of("throughput_bytes_per_s") / rate - 1.0).abs() < 1e-6, "{second:#}");
        assert!(of("latency_p50_ns") > 0.0 && of("latency_p99_ns") >= of("latency_p50_ns"));
        assert!((0.0..2.0).contains(&of("mean_depth")), "{second:#}");
    }
    let lines: Vec<Vec<&str>> =
        shown.stderr.lines().map(|line| line.split_whitespace().collect()).collect();
    let has = |run: &str, second: &str| {
        lines.iter().any(|line| line.len() > 5 && line[0] == run && line[1] == second)
    };
    assert!(has("run", "second") && has("1", "1") && has("2", "3"), "{}", shown.stderr);

    let page = place.path().join("results.json");
    std::fs::write(&page, &shown.stdout).unwrap();
    let report = halfpower(&format!("report {} --output {0}.d", page.display()));
    assert_eq!(report.code, Some(0), "{report:?}");
    let page = std::fs::read_to_string(format!("{}.d/report.html", page.display())).unwrap();
    assert!(
        page.contains("Rate of every second") && page.contains("99th percentile of every second")
    );

    halfpower("sweep twin:nvme --live").refused(&["--live", "halfpower run"]);
}
