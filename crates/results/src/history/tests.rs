use super::*;
use crate::document::{Program, SCHEMA};
use crate::point::{LatencySummary, Numbers, Point};
use crate::{Achieved, CpuPerRequest};
use machine::{Layer, LayerKind, MachineFacts, TargetFacts, TargetKind};
use measure::histogram::Histogram;
use std::collections::BTreeMap;
use std::fs;
use workload::Workload;

fn results(target: &str, unix_s: u64, rate: f64, read_ahead: &str) -> Results {
    let workload = Workload::default();
    let numbers = Numbers {
        throughput_bytes_per_s: rate,
        iops: rate / 65536.0,
        interval_95: Some([rate * 0.99, rate * 1.01]),
        relative_half_width: Some(0.01),
        repeats: 3,
        runs_bytes_per_s: vec![rate; 3],
        runs: Vec::new(),
        latency_ns: LatencySummary::from(&Histogram::new()),
        read_latency_ns: None,
        write_latency_ns: None,
        over_time: Vec::new(),
        rate_change: None,
        cpu_ns_per_request: CpuPerRequest {
            user: 1.0,
            system: 2.0,
            machine: 3.0,
            process_interval_95: None,
        },
        achieved: Achieved::default(),
        clients: None,
        warnings: Vec::new(),
        doubts: Vec::new(),
    };
    let layer = Layer {
        settings: BTreeMap::from([("read_ahead_kb".to_string(), read_ahead.to_string())]),
        ..Layer::new(LayerKind::Disk, "vda")
    };
    Results {
        schema: SCHEMA.into(),
        program: Program {
            name: "halfpower".into(),
            version: "1".into(),
            arguments: vec!["run".into(), target.into()],
        },
        kind: Kind::Run,
        target: TargetFacts {
            physical_block_bytes: 4096,
            block_bytes: 4096,
            devices: vec!["vda".into()],
            layers: vec![layer],
            ..TargetFacts::new(target, TargetKind::TestFile, 1 << 30)
        },
        machine: MachineFacts { name: "north".into(), ..MachineFacts::default() },
        began_unix_s: unix_s,
        elapsed_ns: 1,
        budget_ns: None,
        seed: 1,
        points: vec![Point {
            workload: workload.into(),
            numbers: Some(numbers),
            error: None,
            verification: None,
            stripe: None,
            whole_bursts: false,
        }],
        rates: Vec::new(),
        latency_goals: Vec::new(),
        seconds: Vec::new(),
        interference: None,
        incomplete: false,
        experiments: Vec::new(),
        answer: None,
        ladder: None,
        clients: None,
        scaling: Vec::new(),
        operation_scaling: Vec::new(),
        warnings: Vec::new(),
    }
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/history.sqlite");
    (directory, path)
}

#[test]
fn stored_entries_can_be_read() {
    let (_directory, path) = place();
    let mut history = History::open(&path).unwrap();
    let one = results("/data", 100, 1e9, "128");
    let id = history.keep(&one, "/data", None).unwrap();
    let check = history.keep(&results("/other", 200, 2e9, "128"), "/other", Some("check")).unwrap();
    drop(history);
    let mut history = History::open_existing(&path).unwrap();
    let ids = |filter: &Filter| {
        history.list(filter).unwrap().iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&Filter::default()), [check, id], "the newest first");
    assert_eq!(ids(&Filter { target: Some("/data".into()), ..Filter::default() }), [id]);
    assert_eq!(ids(&Filter { kind: Some("check".into()), ..Filter::default() }), [check]);
    assert_eq!(ids(&Filter { max: Some(1), ..Filter::default() }), [check]);
    assert_eq!(history.results(id).unwrap(), one);
    assert!(matches!(history.results(77), Err(HistoryError::NoEntry(77))));
    assert_eq!(history.remove(&[id, 77]).unwrap(), 1);
    history.compact().unwrap();
    assert_eq!(
        history.occurrences("/data", Measure::Throughput).unwrap(),
        [],
        "its readings went with it"
    );
}

#[test]
fn a_comparison_is_stored_with_both_fingerprints() {
    let (_directory, path) = place();
    let mut history = History::open(&path).unwrap();
    let one = |read_ahead| Fingerprint::of(&results("/data", 1, 1e9, read_ahead));
    let mut keep = |fingerprint| {
        let program =
            Program { name: "halfpower".into(), version: "1".into(), arguments: Vec::new() };
        let document = "{}".to_string();
        let target = "/data -> /data".into();
        let other = Other {
            began_unix_s: 1,
            kind: "compare",
            target,
            fingerprint,
            program: &program,
            document,
        };
        history.keep_other(other, Vec::new()).unwrap()
    };
    let same = keep(Fingerprint::of_both(one("128"), one("128")));
    let other = keep(Fingerprint::of_both(one("128"), one("4")));
    assert_eq!(history.fingerprint(same).unwrap(), one("128"), "common facts appear once");
    let changed =
        difference(&history.fingerprint(same).unwrap(), &history.fingerprint(other).unwrap());
    assert_eq!(
        changed,
        [
            "a: layer 0 disk read_ahead_kb: none -> 128",
            "b: layer 0 disk read_ahead_kb: none -> 4",
            "layer 0 disk read_ahead_kb: 128 -> none"
        ]
    );
    let (entry, _) = history.get(same).unwrap();
    assert_eq!((entry.machine.as_str(), entry.has_points()), ("north", false));
    assert!(matches!(history.results(same), Err(HistoryError::Document { .. })));
}

#[test]
fn a_trend_has_change_points_and_machine_changes() {
    let (_directory, path) = place();
    let mut history = History::open(&path).unwrap();
    for night in 0..30 {
        let rate =
            if night < 20 { 1e9 } else { 7e8 } * (1.0 + 0.01 * ((night * 7 % 5) as f64 - 2.0));
        let read_ahead = if night < 20 { "128" } else { "4" };
        history.keep(&results("/data", 86_400 * night, rate, read_ahead), "/data", None).unwrap();
    }
    let all = trends(history.occurrences("/data", Measure::Throughput).unwrap());
    let [trend] = &all[..] else { panic!("one question: {all:?}") };
    assert_eq!((trend.values.len(), trend.machine_changes.as_slice()), (30, &[20][..]));
    assert_eq!(trend.changes.iter().map(|one| one.at).collect::<Vec<_>>(), [20]);
    let of = |place: usize| history.fingerprint(trend.values[place].entry).unwrap();
    assert_eq!(difference(&of(19), &of(20)), ["layer 0 disk read_ahead_kb: 128 -> 4"]);
    assert_eq!(difference(&of(1), &of(2)), Vec::<String>::new());
}

#[test]
fn an_older_file_is_migrated() {
    let (_directory, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let old = Connection::open(&path).unwrap();
    old.execute_batch(migrations::STEPS[0]).unwrap();
    old.execute_batch(
        "PRAGMA application_id = 1752201074; PRAGMA user_version = 1;
         INSERT INTO entries VALUES (7, 5, 'run', '/data', 'north', 'f', '0', 'run', 0, '{}', '{}');",
    )
    .unwrap();
    drop(old);
    let history = History::open(&path).unwrap();
    assert_eq!(history.list(&Filter::default()).unwrap()[0].id, 7);
    let version: i64 =
        history.connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, migrations::STEPS.len() as i64);
}

#[test]
fn other_files_are_refused_and_unchanged() {
    let (_directory, path) = place();
    drop(History::open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(History::open(&path), Err(HistoryError::Newer { found: 99, .. })));
    let foreign = path.with_file_name("foreign.sqlite");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    assert!(matches!(History::open(&foreign), Err(HistoryError::Foreign { .. })));
    let text = path.with_file_name("text");
    fs::write(
        &text,
        "no database at all, and longer than a header of SQLite, which has a hundred bytes or so, as this line has.",
    )
    .unwrap();
    assert!(matches!(History::open(&text), Err(HistoryError::Sqlite { .. })));
    assert!(matches!(
        History::open_existing(&path.with_file_name("none")),
        Err(HistoryError::Missing { .. })
    ));
    let blocked = path.join("below/a/file");
    assert!(matches!(History::open(&blocked), Err(HistoryError::Directory { .. })));
}

#[test]
fn several_writers_at_once_lose_nothing() {
    let (_directory, path) = place();
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let path = &path;
            scope.spawn(move || {
                for number in 0..10 {
                    let one = results("/data", writer * 100 + number, 1e9, "128");
                    History::open(path).unwrap().keep(&one, "/data", None).unwrap();
                }
            });
        }
    });
    let history = History::open(&path).unwrap();
    assert_eq!(history.list(&Filter::default()).unwrap().len(), 40);
    assert_eq!(history.occurrences("/data", Measure::Throughput).unwrap().len(), 40);
}

#[test]
fn a_file_system_is_another_only_when_it_gets_full() {
    let with = |free: &str| {
        let mut one = results("/data", 1, 1e9, "128");
        one.target.layers[0].settings.insert("free_percent".into(), free.into());
        Fingerprint::of(&one)
    };
    assert_eq!(with("26"), with("24"));
    assert_eq!(
        difference(&with("24"), &with("8")),
        ["layer 0 disk free_percent: 20 or more -> 5 to 10"]
    );
    assert_ne!(with("?"), with("8"));
}
