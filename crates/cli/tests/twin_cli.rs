//! `halfpower twin` and simulated targets; everything is deterministic.

mod common;

use common::{HALFPOWER, command, ended, finish, halfpower, halfpower_in, number, points};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const MIB: f64 = 1024.0 * 1024.0;

fn prints(words: &str) -> String {
    let ended = halfpower(words);
    assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
    ended.stdout
}

/// Returns the MiB/s of every point.
fn rates(words: &str) -> Vec<f64> {
    let document = halfpower(&format!("{words} --json")).good_json();
    points(&document).iter().map(|point| number(point, "/throughput_bytes_per_s") / MIB).collect()
}

fn near(a: f64, b: f64, share: f64) -> bool {
    (a / b - 1.0).abs() <= share
}

#[test]
fn list_and_show() {
    let list = halfpower("twin list --json").good_json();
    let names: Vec<&str> = list["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    let text = prints("twin list");
    for wanted in [
        "gateway-1997",
        "server-2003",
        "nvme",
        "sata-ssd",
        "hdd-20tb",
        "cloud",
        "cloud-burst",
        "cloud-hdd",
        "nvme-hot",
        "nvme-qlc",
        "virtio",
        "nas",
    ] {
        assert!(names.contains(&wanted) && text.contains(wanted), "{wanted}: {names:?}");
        let shown = halfpower(&format!("twin show {wanted} --json")).good_json();
        assert_eq!(shown["schema"], "halfpower.twin/1");
        let numbers = shown["numbers"].as_array().unwrap();
        assert!(
            numbers.len() > 30
                && numbers.iter().all(|one| !one["source"].as_str().unwrap().is_empty()),
            "{wanted}"
        );
        assert!(number(&shown, "/fitted") <= 25.0, "{wanted}");
    }
    for setting in ["disks=N", "wce=on|off", "ramcache=SIZE"] {
        assert!(text.contains(setting), "{text}");
    }
    let text = prints("twin show twin:gateway-1997,disks=4,buses=2");
    for wanted in [
        "16.0 GiB on 4 x st15150w on 2 buses, write cache off",
        "drives.st15150w.rpm",
        "7200",
        "fast-wide",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn the_chunk_option_sets_the_disks_chunk() {
    let words = "--op read --direct --request 64k --depth 3 --bytes 16m";
    let run = |target: &str| halfpower(&format!("run {target} {words} --json")).good_json();
    let given = run("twin:gateway-1997,disks=4 --chunk 8k");
    assert_eq!(given["target"]["chunk_bytes"].as_u64(), Some(8192));
    let described = run("twin:gateway-1997,disks=4,stripe=8k");
    assert_eq!(
        given["points"][0]["throughput_bytes_per_s"],
        described["points"][0]["throughput_bytes_per_s"]
    );
    let otherwise = run("twin:gateway-1997,disks=4");
    assert_ne!(
        given["points"][0]["throughput_bytes_per_s"],
        otherwise["points"][0]["throughput_bytes_per_s"]
    );
    let refused = halfpower(&format!("run twin:gateway-1997,disks=4 --chunk 1000 {words}"));
    assert!(refused.code == Some(2) && refused.stderr.contains("multiple of 512"), "{refused:?}");
}

#[test]
fn a_machine_file_is_shown_changed_and_used() {
    let directory = tempfile::tempdir().unwrap();
    let mine = directory.path().join("mine.toml");
    fs::write(&mine, prints("twin show nvme --toml").replace("read_us = 36", "read_us = 72"))
        .unwrap();
    let words = "--op read --pattern random --request 4k --bytes 4m --size 1g";
    let (one, two) = (
        rates(&format!("run twin:nvme {words}")),
        rates(&format!("run twin:{} {words}", mine.display())),
    );
    assert!(two[0] < 0.7 * one[0], "{one:?} {two:?}");
    let shown = halfpower(&format!("twin show {} --json", mine.display())).good_json();
    let numbers = shown["numbers"].as_array().unwrap();
    let read = numbers.iter().find(|one| one["path"] == "drives.ssd.read_us").unwrap();
    assert_eq!(read["value"], 72.0);
}

#[test]
fn an_invalid_machine_file_is_refused_with_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let preset = prints("twin show gateway-1997 --toml");
    let line_of =
        |text: &str, what: &str| 1 + text.lines().position(|line| line.contains(what)).unwrap();
    let file = directory.path().join("wrong.toml");
    let refused = |from: &str, to: &str, line: Option<&str>, words: &[&str]| {
        let text = preset.replacen(from, to, 1);
        assert_ne!(text, preset, "'{from}' is in the preset");
        fs::write(&file, &text).unwrap();
        let name = file.display();
        for used in ["study twin:", "run twin:", "sweep twin:", "twin show ", "twin whatif "] {
            let more = if used.contains("whatif") { " --set disks=2" } else { "" };
            let ended = halfpower_in(directory.path(), &format!("{used}{name}{more}"));
            ended.refused(words);
            if let Some(what) = line {
                ended.refused(&[&format!("wrong.toml, line {}:", line_of(&text, what))]);
            }
        }
    };
    refused("rpm = 7200\n", "", None, &["rpm", "missing", "line "]);
    refused("rpm = 7200", "rpm = -7200", Some("rpm = -7200"), &["rpm", "-7200", "negative"]);
    refused("heads = 21", "heads = 0", Some("heads = 0"), &["heads", "zero"]);
    refused(
        "bus = \"fast-wide\"",
        "bus = \"fast-wild\"",
        Some("fast-wild"),
        &["fast-wild", "[buses]"],
    );
    refused(
        "disks = 1\nbuses = 1",
        "disks = 1\nbuses = 2",
        Some("buses = 2"),
        &["more buses than disks"],
    );
    refused("rpm = 7200", "rpm = many", None, &["wrong.toml, line "]);
    assert!(
        !directory.path().join("halfpower-out").exists(),
        "a study that is refused leaves nothing"
    );
}

#[test]
fn errors_name_the_value_and_the_fix() {
    for (words, named) in [
        ("twin show gateway-1998", &["gateway-1998", "gateway-1997"][..]),
        ("twin show no/such.toml", &["no/such.toml"]),
        ("twin whatif gateway-1997 --set disks=0", &["disks=0", "from 1 to 64"]),
        ("twin whatif gateway-1997 --set colour=red", &["colour=red", "wce=on|off"]),
        ("twin whatif gateway-1997 --set depth=0", &["depth=0", "from 1 to 4096"]),
        ("twin whatif gateway-1997 --set disks=2 --request 1000", &["1000", "multiple of 512"]),
        ("twin cache", &["block trace", "--pattern"]),
        ("twin cache no-such-trace.csv", &["no-such-trace.csv", "No such file", "name a trace"]),
        ("twin cache Cargo.toml", &["Cargo.toml", "no known trace", "time_ns,op,offset,bytes"]),
        ("twin cache --pattern zipf:1.1 --sizes 64k", &["65536", "1m"]),
        ("twin cache --pattern zipf:1.1 --request 1000", &["1000", "512"]),
        ("twin cache --pattern seq --machine nothing", &["nothing", "server-2003"]),
        ("twin cache --pattern seq --sample 0", &["'0'", "percentage"]),
        ("twin fit no-such.json", &["no-such.json"]),
        ("twin fit x.json --output y.json", &["y.json", ".toml"]),
        ("run twin:gateway-1997,raid=5", &["raid=5", "3 disks"]),
        ("run twin:gateway-1997,disks=2,buses=3", &["buses=3", "fewer buses"]),
        ("run twin:gateway-1997 --engine mmap", &["mmap", "buffered"]),
    ] {
        halfpower(words).refused(named);
    }
}

#[test]
fn validate_meets_every_goal() {
    let text = prints("twin validate");
    assert!(
        text.contains("23 of 23 bars held")
            && text.contains("mean error")
            && !text.contains("missed"),
        "{text}"
    );
    let every = prints("twin validate --points");
    // Only points that are far off are listed without it.
    assert!(every.lines().count() > text.lines().count() + 100, "{text}");
    assert!(
        every.lines().count() > 500 && every.contains("23 of 23 bars held"),
        "{}",
        every.lines().count()
    );
    let document = halfpower("twin validate --json").good_json();
    let count = |which: &str| document[which].as_array().unwrap().len();
    let (fitted, solved) = (count("fitted"), count("solved"));
    assert!(solved > 24 && fitted > 0, "{fitted} {solved}");
    let said = format!("{fitted} fitted numbers and {solved} solved from the figures");
    assert!(text.contains(&said), "{said}: {text}");
    let bars = document["bars"].as_array().unwrap();
    assert!(bars.len() >= 10);
    for bar in bars {
        assert!(bar["holds"] == true && number(bar, "/value") <= number(bar, "/limit"), "{bar}");
        assert!(text.contains(bar["name"].as_str().unwrap()), "{bar}");
    }
    for figure in document["figures"].as_array().unwrap() {
        let errors: Vec<f64> = figure["points"]
            .as_array()
            .unwrap()
            .iter()
            .map(|point| (number(point, "/simulated") / number(point, "/measured") - 1.0).abs())
            .collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!((mean - number(figure, "/mean_error")).abs() < 1e-9, "{}", figure["name"]);
        let worst = errors.iter().copied().fold(0.0, f64::max);
        assert!((worst - number(figure, "/worst_error")).abs() < 1e-9, "{}", figure["name"]);
    }
}

/// Checks figures 7 and 10, with one request outstanding: each drive of a stripe is idle while the
/// program reads the others' chunks.
#[test]
fn one_small_request_at_a_time_is_slower_on_a_stripe_than_on_one_drive() {
    let rate = |volume: &str, request: &str| {
        let run = format!("run twin:gateway-1997,{volume} --direct --engine sync --size 100m");
        rates(&format!("{run} --pattern seq --op read --request {request}"))[0]
    };
    for (drive, disks, one, stripe) in [("st15150w", 4, 2.47, 1.88), ("st34371w", 3, 5.51, 5.14)] {
        let here = [
            rate(&format!("drive={drive},wce=off"), "2k"),
            rate(&format!("drive={drive},wce=off,disks={disks},start=12k"), "2k"),
        ];
        assert!(here[1] < here[0], "{drive}: {here:?}");
        for (here, published) in here.into_iter().zip([one, stripe]) {
            assert!(near(here, published, 0.05), "{drive}: {here}, published {published}");
        }
    }
}

#[test]
fn whatif_compares_the_figures() {
    let words =
        "twin whatif gateway-1997 --set disks=2 --op read --pattern seq --request 64k --depth 8";
    let document = halfpower(&format!("{words} --json")).good_json();
    let [one] = &document["comparisons"].as_array().unwrap()[..] else { panic!("{document:#}") };
    assert_eq!(
        (&one["before"]["bottleneck"], &document["changes"]),
        (&Value::from("disk mechanics"), &Value::from("disks=2"))
    );
    assert!(near(number(one, "/gain"), 2.0, 0.02), "{one:#}");
    assert!(near(
        number(one, "/before/throughput_bytes_per_s"),
        number(one, "/after/throughput_bytes_per_s") / number(one, "/gain"),
        1e-9
    ));
    let text = prints(words);
    assert!(
        text.contains("read seq 64 KiB x 8")
            && text.contains("disk mechanics 100%")
            && text.contains("×1.99"),
        "{text}"
    );
    // A fifth disk on a full bus gains nothing, a second bus helps; several changes at once.
    let gain = |set: &str| {
        let words = format!(
            "twin whatif gateway-1997,disks=4 {set} --op read --pattern seq --request 64k --depth 8 --json"
        );
        number(&halfpower(&words).good_json(), "/comparisons/0/gain")
    };
    assert!(
        gain("--set disks=5") < 1.05
            && gain("--set buses=2") > 1.5
            && gain("--set disks=8 --set buses=4") > 1.9
    );
    // Half the latency, a write cache, a chunk, a request size and a depth.
    let gain = |machine: &str, set: &str, op: &str| {
        let words = format!(
            "twin whatif {machine} --set {set} --op {op} --pattern random --request 4k --depth 1 --json"
        );
        number(&halfpower(&words).good_json(), "/comparisons/0/gain")
    };
    assert!(gain("nvme", "latency=50", "read") > 1.6);
    assert!(gain("gateway-1997", "wce=on", "write") > 1.2);
    assert!(gain("nvme", "depth=16", "read") > 5.0);
    assert!(gain("nvme", "request=64k", "read") > 3.0);
    assert!(near(gain("gateway-1997,disks=2", "stripe=128k", "read"), 1.0, 0.3));
}

#[test]
fn one_question_has_one_answer() {
    // Seeks, a write cache, a processor, and credit that a used machine would have spent.
    let cases = [
        ("gateway-1997,wce=on", "wce=off", "--op write --pattern random --request 4k --depth 1"),
        ("gateway-1997", "disks=2", "--op read --pattern seq --request 64k --depth 3"),
        ("nvme", "disks=2", "--op read --pattern random --request 4k --depth 32"),
        ("cloud-burst", "disks=2", "--op read --pattern random --request 4k --depth 16"),
    ];
    for (machine, change, words) in cases {
        let target = format!("twin:{machine}");
        let rate = |target: &str| {
            let document = halfpower(&format!("run {target} {words} --json")).good_json();
            number(&document, "/points/0/throughput_bytes_per_s")
        };
        let changed = machine::with_settings(&target, change);
        let gain = rate(&changed) / rate(&target);
        let whatif =
            halfpower(&format!("twin whatif {machine} --set {change} {words} --json")).good_json();
        let arms = finish(command(
            HALFPOWER,
            ["compare", "--a", &target, "--b", &changed, "--json"]
                .into_iter()
                .chain(words.split(' ')),
        ));
        let tune =
            halfpower(&format!("tune {target} --yes --knob {change} {words} --json")).good_json();
        let found = [
            number(&whatif, "/comparisons/0/gain"),
            1.0 + rate_change(&arms.good_json()["differences"]) / 100.0,
            1.0 + rate_change(&tune["tried"][0]["differences"]) / 100.0,
        ];
        assert!(found.iter().all(|one| near(*one, gain, 1e-9)), "{machine}: {gain}, {found:?}");
    }
}

fn rate_change(differences: &Value) -> f64 {
    let mut all = differences.as_array().unwrap().iter();
    let rate = all.find(|one| one["measure"] == "throughput").unwrap();
    rate["change_percent"].as_f64().unwrap()
}

#[test]
fn a_burst_is_named_with_its_length() {
    let run = |machine: &str| {
        let words = format!("run twin:{machine} --op read --pattern random --request 4k --json");
        halfpower(&words).good_json()
    };
    let document = run("cloud-burst");
    let burst = "volume sustains only 300 requests/s: it bursts to 3000 requests/s for 33 min";
    let warnings = document["target"]["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|one| one.as_str().unwrap().contains(burst)), "{warnings:?}");
    let layers = document["target"]["layers"].as_array().unwrap();
    let facts = layers.iter().find_map(|layer| layer["facts"]["bursts"].get(0)).unwrap();
    assert_eq!((number(facts, "/burst_per_s"), number(facts, "/lasts_s")), (3000.0, 2000.0));
    assert!(!run("cloud").to_string().contains("bursts to"));
}

fn measured(directory: &Path, machine: &str) -> std::path::PathBuf {
    let words = "--op read,write --pattern seq,random --request 4k,16k,64k,1m --depth 1,4,32 --bytes 16m --size 1g --json";
    let file = directory.join("measured.json");
    fs::write(&file, prints(&format!("sweep twin:{machine} {words}"))).unwrap();
    file
}

#[test]
fn fit_recovers_a_machine() {
    let directory = tempfile::tempdir().unwrap();
    // A machine that differs from every preset: half again the latency, twice the workers.
    let truth = directory.path().join("truth.toml");
    let preset = prints("twin show virtio --toml");
    fs::write(
        &truth,
        preset
            .replace("read_us = 58", "read_us = 90")
            .replace("workers = 2", "workers = 4")
            .replace("write_us = 35", "write_us = 20"),
    )
    .unwrap();
    let results = measured(directory.path(), &truth.display().to_string());
    let machine = directory.path().join("fitted.toml");
    let words = format!("twin fit {} --output {} --seed 7", results.display(), machine.display());
    let document = halfpower(&format!("{words} --json")).good_json();
    let judged = document["points"].as_array().unwrap();
    let held = judged.iter().filter(|point| point["held_out"] == true).count();
    assert_eq!((judged.len(), held), (48, 16));
    assert!(number(&document, "/held_out_median_error") < 0.15, "{:#}", document["fitted"]);
    let text = prints(&words);
    assert!(
        text.contains("held out: median error") && text.contains("drives.vda.read_us"),
        "{text}"
    );
    // The fitted file is a valid machine and has the same speed.
    let run = "--op read --pattern random --request 4k --depth 4 --bytes 16m --size 1g";
    let (is, was) = (
        rates(&format!("run twin:{} {run}", machine.display())),
        rates(&format!("run twin:{} {run}", truth.display())),
    );
    assert!(near(is[0], was[0], 0.15), "{is:?} {was:?}");
    let shown = prints(&format!("twin show {}", machine.display()));
    assert!(shown.contains("fitted to measurements"), "{shown}");
    // Another seed holds out another third.
    let other =
        halfpower(&format!("twin fit {} --preset virtio --seed 8 --json", results.display()))
            .good_json();
    let held = |document: &Value| -> Vec<bool> {
        document["points"]
            .as_array()
            .unwrap()
            .iter()
            .map(|point| point["held_out"] == true)
            .collect()
    };
    assert_ne!(held(&document), held(&other));
}

#[test]
fn fit_refuses_unsuitable_results() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("few.json");
    fs::write(
        &file,
        prints("sweep twin:virtio --request 4k,64k --depth 1,8 --bytes 1m --size 64m --json"),
    )
    .unwrap();
    halfpower(&format!("twin fit {}", file.display())).refused(&[
        "few.json",
        "4 of its 4 points",
        "9 are needed",
        "--pattern seq,random",
    ]);
    fs::write(
        &file,
        prints("sweep twin:virtio --buffered --request 4k,8k,16k,32k,64k --depth 1,8 --bytes 1m --size 64m --json"),
    )
    .unwrap();
    halfpower(&format!("twin fit {}", file.display())).refused(&["0 of its 10 points"]);
    fs::write(&file, "{}").unwrap();
    halfpower(&format!("twin fit {}", file.display())).refused(&["few.json"]);
}

fn trace(path: &Path) {
    let mut text = String::from("time_ns,op,offset,bytes\n# three passes\n");
    for index in 0..3 * 128u64 {
        let op = if index < 256 { 'r' } else { 'w' };
        text += &format!("{},{op},{},65536\n", index * 1_000_000, index % 128 * 65536);
    }
    fs::write(path, text).unwrap();
}

#[test]
fn cache_of_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.csv");
    trace(&file);
    let words = format!("twin cache {} --sizes 2m,8m,16m", file.display());
    let document = halfpower(&format!("{words} --json")).good_json();
    assert_eq!(
        (number(&document, "/trace/requests"), number(&document, "/misses/footprint_bytes")),
        (384.0, 8.0 * MIB)
    );
    let misses = |bytes: f64| {
        let curve = document["misses"]["exact"].as_array().unwrap();
        number(
            curve.iter().find(|one| number(one, "/cache_bytes") == bytes).unwrap(),
            "/miss_ratio",
        )
    };
    // A loop over 8 MiB always misses in a smaller LRU cache; one that holds it misses only in the
    // first pass.
    assert_eq!(misses(2.0 * MIB), 1.0);
    assert!(near(misses(8.0 * MIB), 1.0 / 3.0, 1e-9) && near(misses(16.0 * MIB), 1.0 / 3.0, 1e-9));
    let gains = document["gains"].as_array().unwrap();
    assert!(near(number(&gains[0], "/write_through"), 1.0, 0.02), "{gains:#?}");
    assert!(
        number(&gains[2], "/write_back") > number(&gains[2], "/write_through")
            && number(&gains[2], "/write_through") > 1.3
    );
    let text = prints(&words);
    assert!(
        text.contains("384 requests, 67 % reads")
            && text.contains("16 MiB")
            && text.contains("write-through"),
        "{text}"
    );
    assert_eq!(text, prints(&words), "the same on every run");
    // From standard input, at the recorded times.
    let mut child =
        command(HALFPOWER, ["twin", "cache", "-", "--sizes", "16m", "--recorded", "--json"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(&file).unwrap()).unwrap();
    let recorded = ended(child).good_json();
    assert_eq!(
        (&recorded["depth"], &recorded["source"]),
        (&Value::Null, &Value::from("standard input"))
    );
    assert!(number(&recorded, "/gains/0/write_back") > 1.0);
    // A malformed line.
    fs::write(&file, "1,r,0,4096\n2,x,0,4096\n").unwrap();
    halfpower(&format!("twin cache {}", file.display())).refused(&[
        "trace.csv",
        "line 2",
        "'x'",
        "r or w",
    ]);
    fs::write(&file, "").unwrap();
    halfpower(&format!("twin cache {}", file.display())).refused(&["no requests"]);
}

#[test]
fn cache_of_a_workload() {
    let words = "twin cache --op mix --read-percent 50 --pattern zipf:1.1 --request 4k --size 1g --bytes 400m --sizes 4m,64m";
    let document = halfpower(&format!("{words} --sample 50 --json")).good_json();
    assert_eq!(number(&document, "/trace/requests"), 102_400.0);
    let reads = number(&document, "/trace/reads");
    assert!(near(reads, 51_200.0, 0.02), "{reads}");
    let (exact, sampled) = (
        document["misses"]["exact"].as_array().unwrap(),
        document["misses"]["sampled"]["curve"].as_array().unwrap(),
    );
    let apart =
        |(a, b): (&Value, &Value)| (number(a, "/miss_ratio") - number(b, "/miss_ratio")).abs();
    let worst = exact.iter().zip(sampled).map(apart).fold(0.0, f64::max);
    assert!(
        (worst - number(&document, "/misses/sampled/error")).abs() < 1e-12 && worst < 0.01,
        "{worst}"
    );
    assert_eq!(document["misses"]["sampled"]["error_estimated"], false);
    let gains = document["gains"].as_array().unwrap();
    assert!(number(&gains[1], "/write_back") > number(&gains[1], "/write_through"), "{gains:#?}");
    let text = prints(&format!("{words} --sample 50"));
    assert!(
        text.contains("misses, sampled") && text.contains("of the miss ratio, against all blocks"),
        "{text}"
    );
    // Four threads at depth 8, on another machine.
    let deep =
        halfpower("twin cache --pattern random --threads 4 --depth 8 --size 8m --machine virtio --sizes 16m --json")
            .good_json();
    assert_eq!((number(&deep, "/depth"), number(&deep, "/trace/requests")), (32.0, 512.0));
}

#[test]
fn the_sweep_of_the_published_machine() {
    let machine = "twin:gateway-1997,drive=st15150w,disks=4,buses=2,wce=off,stripe=64k";
    let words = format!(
        "sweep {machine} --op read --direct --request 2k,4k,8k,16k,32k,64k,128k,192k --depth 3 --bytes 100M --json"
    );
    let document = halfpower(&words).good_json();
    let points = points(&document);
    assert_eq!(points.len(), 8);
    let rates: Vec<f64> =
        points.iter().map(|point| number(point, "/throughput_bytes_per_s") / MIB).collect();
    let cpu: Vec<f64> =
        points.iter().map(|point| number(point, "/cpu_ns_per_request/system")).collect();
    assert!(rates.windows(2).all(|pair| pair[1] > 0.95 * pair[0]), "{rates:?}");
    // Four disks of 6.7 MB/s on two buses: 64 KB requests reach their full rate.
    assert!((20.0..28.0).contains(&rates[5]) && rates[0] < rates[5] / 2.0, "{rates:?}");
    assert!(cpu.windows(2).all(|pair| pair[1] >= pair[0]) && cpu[0] > 50_000.0, "{cpu:?}");
    assert_eq!(
        document["points"],
        halfpower(&words).good_json()["points"],
        "the same on every run"
    );
}

/// Checks figures 15 and 16 of the 1997 study: stripes of the host, the adapter and an array.
#[test]
fn the_processor_pays_only_for_the_stripe_that_the_host_makes() {
    let at = |start: &str, by: &str, request: &str| {
        let words = format!(
            "sweep twin:gateway-1997,drive=st34371w,disks=4,buses=2,start={start},striping={by} --op read --request {request} --depth 3 --bytes 32M --json"
        );
        let document = halfpower(&words).good_json();
        let value = |path: &str| number(&points(&document)[0], path);
        (value("/cpu_ns_per_request/system"), value("/throughput_bytes_per_s"))
    };
    let [host, adapter, array] = ["host", "adapter", "array"].map(|by| at("12k", by, "192k"));
    assert!(host.0 > 1.5 * adapter.0, "four pieces against one request: {host:?} {adapter:?}");
    assert!(near(adapter.0, array.0, 0.02), "{adapter:?} {array:?}");
    assert!(near(host.1, adapter.1, 0.03), "the same disk buses: {host:?} {adapter:?}");
    assert!(array.1 < 0.95 * adapter.1, "two disk buses, one bus to an array: {array:?}");
    let whole = ["host", "adapter", "array"].map(|by| at("0", by, "64k").0);
    assert!(whole.iter().all(|one| near(*one, whole[0], 0.02)), "one chunk each: {whole:?}");
}

#[test]
fn raid_5_extending_shifted_and_buffered() {
    let at = |machine: &str, words: &str| {
        rates(&format!("sweep twin:gateway-1997,drive=st15150w,{machine} --bytes 32M {words}"))
    };
    // Not aligned to the chunk, like most files: the request does not cover whole rows.
    let cpu = |parity: &str| {
        let words = format!(
            "sweep twin:gateway-1997,disks=4,raid=5,start=12k,parity={parity} --op write --request 192k --depth 3 --bytes 32M --json"
        );
        let document = halfpower(&words).good_json();
        (
            number(&points(&document)[0], "/cpu_ns_per_request/system"),
            number(&points(&document)[0], "/throughput_bytes_per_s"),
        )
    };
    let (host, array) = (cpu("host"), cpu("array"));
    assert!(
        array.0 < 0.6 * host.0 && array.1 > host.1,
        "an array spares the processor: {host:?} {array:?}"
    );
    let (plain, parity) = (
        at("disks=4", "--op write --request 16k --depth 8"),
        at("disks=4,raid=5", "--op write --request 16k --depth 8"),
    );
    assert!(parity[0] < plain[0] / 2.0, "small writes read and write parity: {plain:?} {parity:?}");
    let (one, deep, extending) = (
        at("disks=1", "--op write --request 16k --depth 1"),
        at("disks=1", "--op write --request 16k --depth 8"),
        at("disks=1", "--op write --request 16k --depth 8 --allocate extend"),
    );
    assert!(
        deep[0] > 3.0 * one[0] && near(extending[0], one[0], 0.05),
        "extending takes one at a time: {one:?} {deep:?} {extending:?}"
    );
    let (aligned, shifted) = (
        at("disks=3", "--op read --request 64k --depth 3"),
        at("disks=3", "--op read --request 64k --depth 3 --offset 12k"),
    );
    assert!(shifted[0] < 0.97 * aligned[0], "off the chunk: {aligned:?} {shifted:?}");
    let (direct, buffered) = (
        at("disks=1", "--op read --request 2k"),
        at("disks=1", "--op read --request 2k --buffered --cache cold"),
    );
    assert!(buffered[0] > 1.5 * direct[0], "read-ahead helps small reads: {direct:?} {buffered:?}");
}

/// The study: growing costs up to 20 % at 4 and 64 KB, and gains at 2 KB, which must not be read
/// first: 3.7 MB/s without write cache.
#[test]
fn growing_a_buffered_file_costs_little_and_gains_at_2_kb() {
    let rates = |wce: &str, allocation: &str| {
        let words = format!(
            "sweep twin:gateway-1997,drive=st34371w,disks=1,wce={wce} --op write --buffered \
             --hint sequential --cache cold --request 2k,4k,64k --allocate {allocation} \
             --size 40m --bytes 40m --end-fdatasync --json"
        );
        let document = halfpower(&words).good_json();
        let value = |point| number(point, "/achieved/synced_bytes_per_s");
        points(&document).iter().map(value).collect::<Vec<f64>>()
    };
    for wce in ["on", "off"] {
        let (written, growing) = (rates(wce, "written"), rates(wce, "extend"));
        assert_eq!(growing.len(), 3);
        for at in [1, 2] {
            let ratio = growing[at] / written[at];
            assert!((0.8..0.98).contains(&ratio), "{wce}: {written:?} {growing:?}");
        }
        assert!(growing[0] > 1.4 * written[0], "{wce}: {written:?} {growing:?}");
        assert!(wce == "on" || near(growing[0], 3.7e6, 0.1), "{growing:?}");
    }
}

#[test]
fn a_workload_ends_at_the_disks_end() {
    // The disk has 4 GiB: a file of 16 GiB does not fit, and without a size the whole disk is used.
    halfpower("run twin:gateway-1997 --size 16g --request 64k")
        .refused(&["16 GiB", "smaller size"]);
    let document =
        halfpower("run twin:gateway-1997 --pattern random --request 64k --bytes 8m --json")
            .good_json();
    assert!(number(&document, "/target/size_bytes") < 4.5e9);
    assert!(points(&document)[0].get("error").is_none());
    halfpower("run twin:gateway-1997 --size 1m --request 2m --bytes 8m")
        .refused(&["2 MiB", "1 MiB"]);
}

#[test]
fn the_pages_in_a_browser() {
    let browser = or_skip!(common::browser::browser());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.csv");
    trace(&file);
    let pages = [
        ("validate", "twin validate".to_owned(), 12),
        ("whatif", "twin whatif gateway-1997 --set disks=2".to_owned(), 4),
        ("cache", format!("twin cache {} --sample 50", file.display()), 2),
    ];
    for (kind, words, min) in pages {
        let out = directory.path().join(kind);
        let text = prints(&format!("{words} --output {}", out.display()));
        let page = out.join("report.html");
        assert!(text.contains(&page.display().to_string()), "{text}");
        let document: Value =
            serde_json::from_str(&fs::read_to_string(out.join("results.json")).unwrap()).unwrap();
        assert_eq!(document["kind"], kind);
        for width in [1280, 600] {
            let seen = common::browser::look_at(
                &browser,
                &fs::read_to_string(&page).unwrap(),
                width,
                false,
            );
            let figures = common::browser::check(&seen, width);
            assert!(figures.len() >= min, "{kind}: {figures:?}");
            assert!(seen["tables"].as_u64() > Some(1), "{kind}");
            for figure in seen["figures"].as_array().unwrap().iter().filter(|_| kind == "validate")
            {
                let curves = figure["curves"].as_u64().unwrap();
                assert!(
                    curves >= 2 && curves.is_multiple_of(2),
                    "each measured curve has a simulated one: {figure}"
                );
            }
        }
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let shell = format!("{HALFPOWER} twin validate --points | head -1; exit ${{PIPESTATUS[0]}}");
    let ended = finish(command("bash", ["-c", &shell]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // Such as `halfpower: 0:13: 1598 MiB/s`; on a busy computer it takes more than a minute.
    let of_progress = |line: &str| {
        let passed = line.strip_prefix("halfpower: ").unwrap_or_default();
        passed.starts_with(|first: char| first.is_ascii_digit())
    };
    assert!(ended.stderr.lines().all(of_progress), "{}", ended.stderr);
}

#[test]
fn the_p99_search_by_depth_matches_an_exhaustive_search() {
    let usual = "twin:virtio --pattern random --request 4k --runtime 500ms";
    let depths: Vec<String> = (1..=40).map(|depth: u32| depth.to_string()).collect();
    let all = halfpower(&format!("sweep {usual} --depth {} --json", depths.join(","))).good_json();
    let measured: Vec<(f64, f64)> = points(&all)
        .iter()
        .map(|point| (number(point, "/latency_ns/p99"), number(point, "/throughput_bytes_per_s")))
        .collect();
    let at_most = |goal: f64| {
        measured.iter().filter(|one| one.0 <= goal).map(|one| one.1).fold(0.0, f64::max)
    };
    for goal_us in [100, 150, 250, 400, 700] {
        let found = halfpower(&format!("sweep {usual} --p99 {goal_us}us --json")).good_json();
        let goal = &found["latency_goals"][0];
        let truth = at_most(f64::from(goal_us) * 1e3);
        match goal["throughput_bytes_per_s"].as_f64() {
            None => assert_eq!(truth, 0.0, "{goal_us} us: {goal}"),
            Some(rate) => {
                assert!(near(rate, truth, 0.02), "{goal_us} us: {} of {}", rate / MIB, truth / MIB)
            }
        }
    }
    let said = prints(&format!("sweep {usual} --p99 400us"));
    assert!(said.contains("p99 within 400 us: at most"), "{said}");
}

#[test]
fn the_p99_search_by_rate_matches_an_exhaustive_search() {
    // Seek times of a disk vary, so requests queue long before it is fully busy.
    let usual = "twin:gateway-1997 --pattern random --request 8k --runtime 20s";
    let found = |goal_ms: u32| {
        let found =
            halfpower(&format!("sweep {usual} --p99 {goal_ms}ms --by rate --json")).good_json();
        let goal = found["latency_goals"][0].clone();
        assert_eq!(
            (goal["by"].as_str(), goal["sure"].as_bool()),
            (Some("rate"), Some(true)),
            "{goal}"
        );
        (goal, points(&found)[0].clone())
    };
    let goals: Vec<_> = [10, 40, 100, 300, 100_000].into_iter().map(|ms| (ms, found(ms))).collect();
    let (_, (_, first)) = &goals[0];
    let (greatest, depth) = (number(first, "/iops"), number(first, "/workload/depth"));
    assert!(
        first["workload"]["rate_iops"].is_null(),
        "without a given rate the maximum is measured"
    );
    let step = greatest / 20.0;
    let measured: Vec<(f64, f64)> = (1..=20)
        .map(|at| {
            let rate = (f64::from(at) * step).floor();
            let point =
                halfpower(&format!("run {usual} --depth {depth} --rate {rate} --json")).good_json();
            (rate, number(&points(&point)[0], "/latency_ns/p99"))
        })
        .collect();
    for (goal_ms, (goal, _)) in goals {
        let within = |one: &&(f64, f64)| one.1 <= f64::from(goal_ms) * 1e6;
        // The highest rate from 0 up to which all meet the goal.
        let truth = measured.iter().take_while(within).last().map_or(0.0, |one| one.0);
        let rate = goal["rate_iops"].as_f64().unwrap_or(0.0);
        // The true value is between two that were tried; the search stops within 1/32.
        let [low, high] = [truth * (1.0 - 1.0 / 32.0) - 1.0, (truth + step) * 1.01];
        assert!(
            (low..high).contains(&rate),
            "{goal_ms} ms: {rate} of {truth}, step {step}: {measured:?} {goal}"
        );
        if rate > 0.0 {
            let reported = number(&goal, "/throughput_bytes_per_s");
            let interval = [number(&goal, "/interval_95/0"), number(&goal, "/interval_95/1")];
            assert!(interval[0] <= reported && reported <= interval[1], "{goal}");
            assert!(near(reported, rate * 8192.0, 0.02), "what is offered is served: {goal}");
        }
    }
    let said = prints(&format!("sweep {usual} --p99 100ms --by rate"));
    assert!(said.contains("p99 within 100 ms: at most") && said.contains("requests/s"), "{said}");
}

#[test]
fn a_run_reports_the_bus_phases() {
    let words = "run twin:gateway-1997,drive=st34371w,disks=3,start=12k --op read --request 64k --depth 3 --bytes 32m";
    let document = halfpower(&format!("{words} --json")).good_json();
    let resources = document["points"][0]["achieved"]["resources"].as_array().unwrap();
    let bus = resources.iter().find(|one| one["name"] == "bus").unwrap();
    let phases = bus["phases"].as_array().unwrap();
    let of = |name: &str| {
        phases.iter().find(|phase| phase["name"] == name).unwrap()["percent"].as_f64().unwrap()
    };
    // Table 4 shows 80.4 % Data In for three disks.
    assert!((72.0..89.0).contains(&of("Data In")), "{phases:?}");
    let all: f64 = phases.iter().map(|phase| phase["percent"].as_f64().unwrap()).sum();
    assert!((all - 100.0).abs() < 1e-6, "{all}");
    assert!(
        resources.iter().filter(|one| one["name"] != "bus").all(|one| one.get("phases").is_none()),
        "{resources:?}"
    );
    let text = prints(words);
    assert!(
        text.contains("the bus worked") && text.contains("Data In") && text.contains("Message In"),
        "{text}"
    );
}

#[test]
fn every_advice_delivers_its_gain() {
    let out = tempfile::tempdir().unwrap();
    let words = "study twin:gateway-1997,disks=2 --quick --only buffered,unbuffered,depth,allocation --json --output";
    let study = halfpower(&format!("{words} {}", out.path().join("study").display())).good_json();
    let rate = |point: &Value| {
        let flushed = point.pointer("/achieved/synced_bytes_per_s").and_then(Value::as_f64);
        flushed.unwrap_or_else(|| number(point, "/throughput_bytes_per_s"))
    };
    let findings = study["answer"]["findings"].as_array().unwrap();
    for finding in findings {
        // Remove the shell's quotes: no argument contains a blank.
        let check = finding["check"].as_str().unwrap().replace('\'', "");
        let documents: Vec<Value> = check
            .split("; ")
            .map(|words| {
                halfpower(&format!("{} --json", words.strip_prefix("halfpower ").unwrap()))
                    .good_json()
            })
            .collect();
        let rates: Vec<f64> = documents.iter().flat_map(points).map(rate).collect();
        let [before, after] = rates[..] else { panic!("{rates:?}: {check}") };
        let interval = |end: usize| finding["gain_interval_95"][end].as_f64().unwrap();
        let again = after / before;
        // The study's runs and these may end with different requests.
        assert!(again > interval(0) * 0.95 && again < interval(1) * 1.05, "{again}: {finding}");
    }
    assert!(findings.len() >= 5, "{findings:?}");
    for one in study["answer"]["predictions"].as_array().unwrap() {
        let check = one["check"].as_str().unwrap().strip_prefix("halfpower ").unwrap();
        let document = halfpower(&format!("{check} --json")).good_json();
        assert!(
            near(number(&document, "/comparisons/0/gain"), number(one, "/gain"), 0.05),
            "{one}: {document}"
        );
    }
}
