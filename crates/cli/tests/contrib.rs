//! The files in `contrib` name commands, options and metrics that exist.

mod common;

use common::{Ended, HALFPOWER, command, finish, skip};
use report::openmetrics::OpenMetrics;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const CONTRIB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib");

fn read(name: &str) -> String {
    fs::read_to_string(format!("{CONTRIB}/{name}")).unwrap()
}

fn yaml(name: &str) -> Option<Value> {
    const PARSER: &str =
        "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let python = |script: &str| {
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", script]).arg(format!("{CONTRIB}/{name}")).output()
    };
    if !python("import yaml").is_ok_and(|output| output.status.success()) {
        skip("no python3-yaml");
        return None;
    }
    let output = python(PARSER).unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn measured() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("data")).unwrap();
    let ended = run_in(place.path(), "sweep data --size 4m --runtime 30ms --repeats 2");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place
}

fn run_in(place: &Path, words: &str) -> Ended {
    let mut run = command(HALFPOWER, words.split(' '));
    run.current_dir(place).env("HALFPOWER_HISTORY", place.join("history.sqlite"));
    finish(run)
}

fn assert_checked(ended: &Ended, metrics: &Path) {
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    let text = fs::read_to_string(metrics).unwrap();
    assert!(text.contains("\nhalfpower_check_slower{"), "{text}");
}

#[test]
fn the_service_checks_its_instance() {
    let service = read("systemd/halfpower-check@.service");
    let line = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let place = measured();
    let words = line
        .replace("/usr/bin/halfpower ", "")
        .replace("%f", "data")
        .replace("/var/lib/prometheus/node-exporter/", "")
        .replace("%i", "data");
    let ended = run_in(place.path(), &format!("{words} --budget 5s"));
    assert_checked(&ended, &place.path().join("halfpower-data.prom"));
    assert_eq!(ended.stdout.lines().count(), 1, "--quiet: {ended:?}");
}

#[test]
fn systemd_accepts_the_units() {
    let verify = ["verify", "--man=no", "./halfpower-check@data.service"];
    let known = Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status();
    if !known.is_ok_and(|status| status.success()) {
        return skip("no systemd-analyze");
    }
    let place = tempfile::tempdir().unwrap();
    for suffix in ["service", "timer"] {
        let unit = read(&format!("systemd/halfpower-check@.{suffix}"));
        let unit = unit.replace("/usr/bin/halfpower", HALFPOWER);
        fs::write(place.path().join(format!("halfpower-check@data.{suffix}")), unit).unwrap();
    }
    let mut units = command("systemd-analyze", verify);
    units.arg("./halfpower-check@data.timer").current_dir(place.path());
    let ended = finish(units);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let next = read("systemd/halfpower-check@.timer");
    let next = next.lines().find_map(|line| line.strip_prefix("OnCalendar=")).unwrap();
    assert_eq!(finish(command("systemd-analyze", ["calendar", next])).code, Some(0));
}

#[test]
fn the_cron_job_checks_its_volume() {
    let Some(job) = yaml("kubernetes/check.yaml") else { return };
    assert_eq!((&job["apiVersion"], &job["kind"]), (&"batch/v1".into(), &"CronJob".into()));
    let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let named = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap();
        let mut names: Vec<String> =
            list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(named(&pod["volumes"]), named(&container["volumeMounts"]));
    let words: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let place = measured();
    let words = words.join(" ").replace("/data", "data").replace("/metrics/", "");
    let ended = run_in(place.path(), &format!("{words} --budget 5s"));
    assert_checked(&ended, &place.path().join("halfpower.prom"));
}

#[test]
fn the_action_measures_and_compares() {
    let Some(action) = yaml("github-action/action.yml") else { return };
    assert_eq!(action["runs"]["using"], "composite");
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).display().to_string();
    let results = at("results.json");
    let values = [
        ("inputs.target", "twin:nvme".to_owned()),
        ("inputs.options", action["inputs"]["options"]["default"].as_str().unwrap().to_owned()),
        ("inputs.slower", action["inputs"]["slower"]["default"].as_str().unwrap().to_owned()),
        ("inputs.baseline", results.clone()),
        ("steps.measure.outputs.results", results.clone()),
        ("runner.temp", place.path().display().to_string()),
        ("github.action_path", format!("{CONTRIB}/github-action")),
    ];
    let programs = Path::new(HALFPOWER).parent().unwrap().to_str().unwrap();
    for step in action["runs"]["steps"].as_array().unwrap() {
        let script = step["run"].as_str().unwrap();
        let mut bash = command("bash", ["-eo", "pipefail", "-c", script]);
        bash.env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()))
            .env("GITHUB_OUTPUT", at("output"))
            .env("GITHUB_STEP_SUMMARY", at("summary"));
        for (name, value) in step["env"].as_object().unwrap() {
            let filled = values.iter().fold(value.as_str().unwrap().to_owned(), |text, one| {
                text.replace(&format!("${{{{ {} }}}}", one.0), &one.1)
            });
            assert!(!filled.contains("${{"), "{filled}");
            bash.env(name, filled);
        }
        let ended = finish(bash);
        assert_eq!(ended.code, Some(0), "{script}: {ended:?}");
    }
    assert_eq!(fs::read_to_string(at("output")).unwrap(), format!("results={results}\n"));
    assert!(fs::read_to_string(at("summary")).unwrap().contains("difference"), "the comparison");
}

#[test]
fn the_dashboard_shows_metrics_that_exist() {
    let board: Value = serde_json::from_str(&read("grafana/halfpower.json")).unwrap();
    let known = OpenMetrics::names();
    let metrics = |text: &str| -> Vec<String> {
        text.split(|one: char| !(one.is_ascii_alphanumeric() || one == '_'))
            .filter(|word| word.starts_with("halfpower_"))
            .map(str::to_owned)
            .collect()
    };
    let panels = board["panels"].as_array().unwrap();
    let mut ids: Vec<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    for panel in panels {
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            let shown = metrics(target["expr"].as_str().unwrap());
            assert_eq!(shown.len(), 1, "{target}");
        }
    }
    for name in metrics(&board.to_string()) {
        assert!(known.contains(&name), "{name}");
    }
    ids.dedup();
    assert_eq!(ids.len(), panels.len());
}
