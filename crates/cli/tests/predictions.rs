//! The predictions in the answer of a study.

use machine::{Op, TargetSpec};
use predict::outlook::add;
use predict::whatif::what_if;
use results::{LimitOf, Predicted, Program, Results};
use study::{Effort, Plan};
use twin::{Setup, Twin};
use workload::OpKind;

fn predictions(name: &str) -> Vec<Predicted> {
    predictions_of(&Setup::parse(name).expect("a machine"))
}

fn predictions_of(setup: &Setup) -> Vec<Predicted> {
    let plan = Plan {
        budget_ns: 60_000_000_000,
        effort: Effort::Quick,
        only: vec!["depth".into()],
        seed: 7,
    };
    let twin = Twin::new(setup.clone());
    let program = Program { name: "test".into(), version: String::new(), arguments: Vec::new() };
    let mut results =
        study::study(&twin, &TargetSpec::default(), &plan, program, &mut |_| {}).expect("a study");
    add(setup, &mut results);
    assert_eq!(results::rules::check(&results), []);
    fits_a_screen(&results);
    results.answer.expect("an answer").predictions
}

fn fits_a_screen(results: &Results) {
    let answer = results.answer.as_ref().expect("an answer");
    let text = report::terminal::answer(results, 100, false);
    assert!(text.lines().count() <= 30, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let details = report::terminal::details(results, 100, false);
    assert!(answer.predictions.is_empty() || details.contains("Predict"), "{details}");
    for limit in answer.limits.iter().filter(|limit| limit.of == LimitOf::Peak) {
        let beginning: String = limit.sentence.chars().take(20).collect();
        assert!(text.contains(&beginning), "{beginning}: {text}");
    }
}

fn with<'a>(all: &'a [Predicted], op: OpKind, words: &str) -> Option<&'a Predicted> {
    all.iter().find(|one| one.op == op && one.change.contains(words))
}

#[test]
fn a_full_bus_wants_an_adapter_for_each_three_drives() {
    // The 1997 study: three drives fill a bus.
    let all = predictions("gateway-1997,disks=6");
    let reads = with(&all, OpKind::Read, "an adapter for each 3 drives")
        .unwrap_or_else(|| panic!("{all:?}"));
    assert!(reads.settings == "buses=2" && reads.gain > 1.6, "{reads:?}");
}

#[test]
fn a_stripe_wants_about_one_request_more_than_it_has_drives() {
    let all = predictions("gateway-1997,disks=2");
    let one = with(&all, OpKind::Write, "for N drives").unwrap_or_else(|| panic!("{all:?}"));
    let depth: u32 =
        one.settings.strip_prefix("depth=").and_then(|depth| depth.parse().ok()).expect("a depth");
    assert!((3..=4).contains(&depth) && one.gain > 1.5, "{one:?}");
    // Each drive reads ahead: one read at a time keeps both busy.
    assert!(with(&all, OpKind::Read, "outstanding").is_none(), "{all:?}");
}

#[test]
fn three_outstanding_do_what_the_write_cache_does() {
    for (name, settings) in [("gateway-1997", "depth="), ("gateway-1997,wce=on", "wce=off,depth=")]
    {
        let all = predictions(name);
        let one = with(&all, OpKind::Write, "what the write cache does")
            .unwrap_or_else(|| panic!("{all:?}"));
        let depth: u32 = one
            .settings
            .strip_prefix(settings)
            .and_then(|depth| depth.parse().ok())
            .expect("a depth");
        assert!((2..=3).contains(&depth), "{one:?}");
    }
    assert!(
        with(&predictions("nvme"), OpKind::Write, "write cache").is_none(),
        "it has none to turn off"
    );
}

#[test]
fn whatever_part_limits_a_machine_one_more_of_it_or_a_faster_one_is_predicted() {
    let gateway = |settings: &str, change: &dyn Fn(&mut Setup)| {
        let mut setup = Setup::parse(&format!("gateway-1997,{settings}")).expect("a machine");
        change(&mut setup);
        setup
    };
    let adapter = |setup: &mut Setup| {
        let name = "2940UW".to_owned();
        setup.description.adapter = Some(twin::description::Adapter {
            name,
            bytes_per_s: 8e6,
            advertised_bytes_per_s: None,
            buses: 1,
        });
    };
    let cases = [
        (gateway("disks=3", &adapter), "one more adapter", "buses=2"),
        (
            gateway("disks=4,buses=4", &|one| one.description.pci_bytes_per_s = Some(12e6)),
            "an I/O bus twice as fast",
            "pci=200",
        ),
        (
            gateway("disks=2,buses=2", &|one| {
                one.description.processor.request_ns_per_byte = 500.0
            }),
            "a processor twice as fast",
            "processor=200",
        ),
        (Setup::parse("nas").expect("a machine"), "a network link twice as fast", "link=200"),
    ];
    for (setup, words, settings) in cases {
        let all = predictions_of(&setup);
        let reads = with(&all, OpKind::Read, words).unwrap_or_else(|| panic!("{words}: {all:?}"));
        assert!(reads.settings == settings && reads.gain > 1.3, "{reads:?}");
    }
}

#[test]
fn a_command_predicts_the_same_again() {
    let all = predictions("gateway-1997,disks=4");
    assert!(!all.is_empty());
    for one in all {
        let words = shlex::split(&one.check).expect("words");
        let value = |name: &str| {
            let place = words.iter().position(|word| word == name).expect("the option");
            words[place + 1].clone()
        };
        let setup = Setup::parse(&words[3]).expect("the machine");
        let request = machine::units::parse_size(&value("--request")).expect("a size") as u32;
        let depth = value("--depth").parse().expect("a depth");
        let op = if one.op == OpKind::Write { Op::Write } else { Op::Read };
        let workload = predict::workload(op, request, depth);
        let again =
            what_if(&setup, &value("--set"), &[("it".into(), workload)]).expect("a prediction");
        assert!((again.comparisons[0].gain / one.gain - 1.0).abs() < 1e-9, "{one:?}");
    }
}
