//! A study tells the rate of a drive's write cache from the rate that lasts, or says how far it has
//! looked.

use machine::TargetSpec;
use results::{Lasting, Program, Results};
use study::{Effort, Plan, study};
use twin::Twin;

fn studied(name: &str, only: &[&str], seconds: u64) -> Results {
    let twin = Twin::from_name(name).unwrap();
    let plan = Plan {
        budget_ns: seconds * 1_000_000_000,
        effort: Effort::Quick,
        only: only.iter().map(|&id| id.to_owned()).collect(),
        seed: 7,
    };
    let spec = TargetSpec { places: vec![name.into()], ..TargetSpec::default() };
    let program = Program { name: "halfpower".into(), version: "0".into(), arguments: Vec::new() };
    study(&twin, &spec, &plan, program, &mut |_| {}).unwrap()
}

fn sentence(results: &Results) -> &str {
    let own = results.experiments.iter().find(|experiment| experiment.id == "long_writes");
    &own.unwrap().sentence
}

#[test]
fn the_caches_rate_is_not_taken_for_the_drives() {
    let results = studied("twin:nvme-qlc", &["unbuffered", "depth", "long_writes"], 180);
    let answer = results.answer.as_ref().unwrap();
    let seen = answer.long_writes.as_ref().unwrap();
    let Lasting::Fell { fast, slow_bytes_per_s } = seen.lasting() else { panic!("{seen:?}") };
    assert!((fast.bytes_per_s / 1.8e9 - 1.0).abs() < 0.05, "{seen:?}");
    assert!((slow_bytes_per_s / 100e6 - 1.0).abs() < 0.05, "{seen:?}");
    // What the study wrote before is part of the cache's 140 GB.
    assert!(fast.bytes > 20e9 && fast.bytes < 140e9, "{seen:?}");
    assert!(seen.took_s <= 181.0, "{}", seen.took_s);
    let doubt = answer.doubts.iter().find(|doubt| doubt.contains("then at 95."));
    assert!(doubt.is_some_and(|doubt| doubt.contains("study --sustained")), "{:?}", answer.doubts);
    assert!(
        sentence(&results).starts_with("Writes run at 1716 MiB/s for"),
        "{}",
        sentence(&results)
    );
    assert_eq!(results::rules::check(&results), []);
}

#[test]
fn what_the_time_did_not_suffice_for_is_said() {
    let results = studied("twin:nvme-qlc", &["unbuffered", "depth", "long_writes"], 20);
    let answer = results.answer.as_ref().unwrap();
    let seen = answer.long_writes.as_ref().unwrap();
    assert_eq!(seen.lasting(), Lasting::AsFarAsSeen);
    assert!(seen.took_s <= 21.0 && seen.written_bytes > 30 << 30, "{seen:?}");
    // 1 TB at 1.8 GB/s, and the rests of a sustained run.
    let needs_s = seen.needs_s.unwrap();
    assert!((needs_s / (1000.0 / 1.8 / 0.7) - 1.0).abs() < 0.02, "{needs_s}");
    let said = sentence(&results);
    assert!(
        said.contains("for at least") && said.contains("study --sustained --for 14m"),
        "{said}"
    );
    assert!(
        !answer.doubts.iter().any(|doubt| doubt.contains("--sustained")),
        "{:?}",
        answer.doubts
    );
}

#[test]
fn a_study_that_does_not_want_it_or_may_not_write_says_so() {
    let results = studied("twin:nvme-qlc", &["unbuffered"], 20);
    assert!(results.answer.as_ref().unwrap().long_writes.is_none());
    assert!(sentence(&results).contains("not selected"), "{}", sentence(&results));
    let results = studied("twin:hdd-20tb", &["unbuffered", "long_writes"], 20);
    assert!(sentence(&results).contains("forgets its write cache"), "{}", sentence(&results));
}
