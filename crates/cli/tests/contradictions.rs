//! Documents that contradict themselves are refused by whatever reads them.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn halfpower(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_halfpower"))
        .args(arguments)
        .current_dir(directory)
        .env("HALFPOWER_HISTORY", "none")
        .output()
        .unwrap()
}

#[test]
fn a_document_whose_figures_disagree_is_refused_and_the_field_is_named() {
    let here = tempfile::tempdir().unwrap();
    let run = halfpower(&["run", "twin:gateway-1997", "--runtime", "10ms", "--json"], here.path());
    let sound: Value = serde_json::from_slice(&run.stdout).unwrap();
    let text = serde_json::to_string(&sound).unwrap();
    let good = here.path().join("good.json");
    fs::write(&good, format!("\u{feff}{text}")).unwrap();
    let read = |name: &str| {
        let report = halfpower(&["report", name, "--output", "out", "--force"], here.path());
        let compare = halfpower(&["compare", name, "good.json"], here.path());
        [report, compare].map(|output| {
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        })
    };
    for (code, stderr) in read("good.json") {
        assert_eq!(code, Some(0), "a byte-order mark does no harm: {stderr}");
    }
    let rate = sound["points"][0]["throughput_bytes_per_s"].as_f64().unwrap();
    let edits: [(&[&str], Value, &str); 12] = [
        (&["throughput_bytes_per_s"], json!(-3.0), "throughput_bytes_per_s"),
        (&["iops"], json!(-1.0), "iops"),
        (&["iops"], json!(1.0), "iops"),
        (&["interval_95"], json!([rate * 2.0, rate]), "interval_95"),
        (&["interval_95"], json!([rate * 2.0, rate * 3.0]), "interval_95"),
        (&["latency_ns", "p50"], json!(u64::MAX), "latency_ns"),
        (&["latency_ns", "max"], json!(0), "latency_ns"),
        (&["repeats"], json!(0), "repeats"),
        (&["repeats"], json!(77), "repeats"),
        (&["workload", "request_bytes"], json!(0), "request_bytes"),
        (&["workload", "depth"], json!(0), "depth"),
        (&["workload", "threads"], json!(0), "threads"),
    ];
    for (path, value, field) in edits {
        let mut edited = sound.clone();
        let place = path.iter().fold(&mut edited["points"][0], |place, key| &mut place[*key]);
        *place = value;
        fs::write(here.path().join("bad.json"), serde_json::to_string(&edited).unwrap()).unwrap();
        for (code, stderr) in read("bad.json") {
            assert_eq!(code, Some(2), "{path:?}: {stderr}");
            for words in ["bad.json", "points[0]", field] {
                assert!(stderr.contains(words), "{path:?}: {stderr}");
            }
        }
    }
    fs::write(here.path().join("bad.json"), text.replacen("\"seed\":", "\"seed\":1,\"seed\":", 1))
        .unwrap();
    for (code, stderr) in read("bad.json") {
        assert!(code == Some(2) && stderr.contains("twice"), "{stderr}");
    }
}

#[test]
fn a_report_lists_what_an_answer_contradicts() {
    let here = tempfile::tempdir().unwrap();
    let study =
        halfpower(&["study", "twin:virtio", "--quick", "--json", "--output", "out"], here.path());
    let sound: Value = serde_json::from_slice(&study.stdout).unwrap();
    let check = |document: &Value| {
        fs::write(here.path().join("study.json"), document.to_string()).unwrap();
        let output = halfpower(&["report", "--check", "study.json"], here.path());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(check(&sound), (Some(0), "no contradiction\n".into()));
    assert!(!here.path().join("report.html").exists(), "a check writes nothing");
    let mut edited = sound.clone();
    edited["answer"]["findings"][0]["evidence"] = json!("twice as fast");
    let (code, said) = check(&edited);
    assert!(code == Some(1) && said.contains("says twice as fast"), "{said}");
    let mut edited = sound;
    edited["answer"]["peaks"][0]["throughput_bytes_per_s"] = json!(1e12);
    let (code, said) = check(&edited);
    assert!(
        code == Some(1)
            && said.contains("one quantity has one value, but the peak of reads is 1000000000000"),
        "{said}"
    );
}
