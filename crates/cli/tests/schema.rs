//! The document: the stored schema is up to date, and the program's output conforms to it.

mod common;

use common::{HALFPOWER, command, finish, halfpower, has_numbers, points};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::fs;

const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema");

fn validator() -> Validator {
    let schema: Value = serde_json::from_str(&results::schema()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn assert_conforms(validator: &Validator, document: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

#[test]
fn the_stored_schemas_are_current() {
    let all = [
        ("results-1.json", results::schema()),
        ("profile-1.json", application::profile::schema()),
        ("replay-1.json", application::replay::schema()),
        ("plan-1.json", predict::plan::schema()),
    ];
    for (name, own) in all {
        let file = format!("{SCHEMAS}/{name}");
        if std::env::var("UPDATE").as_deref() == Ok("1") {
            fs::create_dir_all(SCHEMAS).unwrap();
            fs::write(&file, &own).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            kept == own,
            "schema/{name} is out of date: UPDATE=1 cargo test -p halfpower --test schema rewrites it"
        );
    }
}

#[test]
fn a_run_and_a_sweep_conform() {
    let _one = common::alone();
    let validator = validator();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    let run = halfpower(&format!(
        "run {at} --size 8m --op mix --pattern random --depth 4 --bytes 2m --repeats 3 --json"
    ))
    .good_json();
    assert_conforms(&validator, &run);
    assert_eq!((run["kind"].as_str(), points(&run).len()), (Some("run"), 1));
    let sweep = halfpower(&format!(
        "sweep {at} --size 8m --op read,write --request 4k,64k --bytes 1m --buffered --json"
    ))
    .good_json();
    assert_conforms(&validator, &sweep);
    assert_eq!((sweep["kind"].as_str(), points(&sweep).len()), (Some("sweep"), 4));
    for document in [&run, &sweep] {
        assert_eq!(document["schema"], "halfpower.results/1");
        assert!(
            document["target"]["size_bytes"] == json!(8 << 20)
                && document["machine"]["processors"].as_u64() > Some(0)
        );
        for point in points(document) {
            assert!(has_numbers(point));
            for field in [
                "op",
                "pattern",
                "request_bytes",
                "depth",
                "threads",
                "engine",
                "buffering",
                "allocation",
                "seed",
            ] {
                assert!(point["workload"].get(field).is_some(), "{field} is in {point:#}");
            }
            for (part, fields) in [
                ("latency_ns", ["mean", "p50", "p99", "p999", "max"].as_slice()),
                ("cpu_ns_per_request", &["user", "system", "machine"]),
            ] {
                fields.iter().for_each(|field| {
                    assert!(point[part][field].is_number(), "{part}.{field} is in {point:#}")
                });
            }
            assert!(point.get("interval_95").is_some() && point["warnings"].is_array());
        }
    }
}

#[test]
fn nonconforming_documents_are_found() {
    let _one = common::alone();
    let validator = validator();
    let directory = tempfile::tempdir().unwrap();
    let good = halfpower(&format!(
        "run {} --size 1m --bytes 256k --repeats 1 --json",
        directory.path().display()
    ))
    .good_json();
    assert_conforms(&validator, &good);
    let breaks: [fn(&mut Value); 4] = [
        |document| document["points"] = json!("none"),
        |document| drop(document.as_object_mut().unwrap().remove("machine")),
        |document| document["points"][0]["workload"]["depth"] = json!(-1),
        |document| document["kind"] = json!("guess"),
    ];
    for broken in breaks {
        let mut document = good.clone();
        broken(&mut document);
        assert!(!validator.is_valid(&document), "{document:#}");
    }
}

#[test]
fn a_failed_point_has_an_error_and_no_numbers() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data");
    fs::write(&file, vec![3; 1 << 20]).unwrap();
    // Only files created in a directory can have reserved space.
    let words = ["sweep", file.to_str().unwrap(), "--destroy-data", file.to_str().unwrap()];
    let more = "--op write --allocate written,reserved --bytes 1m --repeats 1 --json".split(' ');
    let document = finish(command(HALFPOWER, words.into_iter().chain(more))).good_json();
    assert_conforms(&validator(), &document);
    let [good, failed] = points(&document) else { panic!("two points: {document:#}") };
    assert!(has_numbers(good) && !has_numbers(failed));
    assert!(failed["error"].as_str().unwrap().contains("reserved"), "{failed:#}");
}

#[test]
fn a_study_conforms_and_its_report_can_be_recreated() {
    let _one = common::alone();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let target = directory.path().join("target");
    fs::create_dir(&target).unwrap();
    let words = format!(
        "study {} --size 32m --budget 8s --quick --json --output {}",
        target.display(),
        out.display()
    );
    let document = halfpower(&words).good_json();
    assert_conforms(&validator(), &document);
    let written: Value =
        serde_json::from_str(&fs::read_to_string(out.join("results.json")).unwrap()).unwrap();
    assert_eq!(written, document, "the file and standard output are the same document");
    let again = directory.path().join("again");
    let made = halfpower(&format!(
        "report {} --output {}",
        out.join("results.json").display(),
        again.display()
    ));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert_eq!(
        fs::read(out.join("report.html")).unwrap(),
        fs::read(again.join("report.html")).unwrap()
    );
    let tables = |at: &std::path::Path| {
        fs::read_dir(at).unwrap().filter(|file| is_csv(file.as_ref().unwrap())).count()
    };
    assert!(tables(&out) > 0 && tables(&out) == tables(&again));
}

fn is_csv(file: &fs::DirEntry) -> bool {
    file.path().extension().is_some_and(|extension| extension == "csv")
}
