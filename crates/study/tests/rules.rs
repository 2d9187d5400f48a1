//! A finished document contradicts none of its rules; one that was changed does.

use machine::TargetSpec;
use results::rules::{Rule, check};
use results::{Answer, Limit, LimitOf, Overview, PeakDoubt, Program, Results};
use study::{Effort, Plan};
use twin::Twin;
use workload::OpKind;

fn study(name: &str) -> Results {
    let plan = Plan { budget_ns: 60_000_000_000, effort: Effort::Quick, only: Vec::new(), seed: 7 };
    let program = Program { name: "test".into(), version: "0".into(), arguments: Vec::new() };
    let twin = Twin::from_name(name).expect("a machine");
    study::study(&twin, &TargetSpec::default(), &plan, program, &mut |_| {}).expect("a study")
}

fn broken(results: &Results, change: impl FnOnce(&mut Answer)) -> Vec<Rule> {
    let mut changed = results.clone();
    change(changed.answer.as_mut().expect("an answer"));
    check(&changed).iter().map(|one| one.rule).collect()
}

#[test]
fn random_writes_of_a_disk_are_those_past_its_cache() {
    let results = study("hdd-20tb");
    let overview = Overview::of(&results).unwrap();
    let [reads, writes] = &overview.speeds[..] else { panic!("reads and writes") };
    let (read, best) = (reads.random.as_ref().unwrap(), writes.random.as_ref().unwrap());
    let single = writes.random_single.as_ref().unwrap();
    // The heads move for a write as for a read.
    assert!((0.5..2.0).contains(&(best.iops / read.iops)), "{} of {}", best.iops, read.iops);
    assert!(single.iops <= best.iops * 1.1, "{} of {}", single.iops, best.iops);
    let burst = writes.random_burst.unwrap().burst;
    assert!(burst.throughput_bytes_per_s > best.iops * 4096.0 * 50.0, "{burst:?}");
    let doubts = &results.answer.as_ref().unwrap().peak_doubts;
    let of_random = doubts.iter().filter(|doubt| matches!(doubt, PeakDoubt::RandomBurst { .. }));
    assert_eq!(of_random.count(), 1);
    let rows = overview.classic.iter().filter(|row| row.name.starts_with("RND"));
    let marked = rows.filter_map(|row| row.write).map(|rate| rate.burst).collect::<Vec<_>>();
    assert!(!marked.is_empty() && marked.iter().all(|marked| *marked), "{marked:?}");
    let is_random = |limit: &&mut Limit| (limit.of, limit.op) == (LimitOf::Random, OpKind::Write);
    let at_burst = broken(&results, |answer| {
        let burst = answer.random_bursts[0].burst.point;
        answer.limits.iter_mut().find(is_random).unwrap().point = Some(burst);
    });
    assert!(at_burst.contains(&Rule::OneValue), "{at_burst:?}");
}

#[test]
fn a_rate_on_credit_names_the_rate_after_it() {
    let overview = Overview::of(&study("cloud-burst")).unwrap();
    let reads = &overview.speeds[0];
    let credit = reads.random_credit.unwrap();
    assert_eq!((credit.burst_per_s, credit.sustained_per_s), (3000.0, 300.0));
    assert_eq!(credit.sustained_bytes_per_s(4096), 300.0 * 4096.0);
    assert_eq!(reads.peak_credit, None, "its bytes are not on credit");
    let overview = Overview::of(&study("cloud-hdd")).unwrap();
    let rates = overview.speeds.iter().map(|one| one.peak_credit.unwrap().sustained_per_s);
    assert_eq!(rates.collect::<Vec<_>>(), [40.0 * 1048576.0; 2]);
}

#[test]
fn a_study_contradicts_nothing_and_a_changed_figure_is_found() {
    for name in ["hdd-20tb", "gateway-1997"] {
        let results = study(name);
        assert_eq!(check(&results), [], "{name}");
    }
    let results = study("virtio");
    assert_eq!(check(&results), []);
    let peak = broken(&results, |answer| answer.peaks[0].throughput_bytes_per_s *= 1.01);
    assert!(
        peak.len() > 2 && peak.iter().all(|rule| *rule == Rule::OneValue),
        "everything that refers to it: {peak:?}"
    );
    let share = broken(&results, |answer| answer.plain[0].share_of_peak = Some(0.123));
    assert_eq!(share, [Rule::OneValue]);
    let limit = broken(&results, |answer| answer.limits[0].throughput_bytes_per_s = Some(1.0));
    assert_eq!(limit, [Rule::OneValue]);
    let half = broken(&results, |answer| answer.half_power[0].peak_bytes_per_s /= 2.0);
    assert!(half.contains(&Rule::OneValue) && half.contains(&Rule::OneHalfPower), "{half:?}");
    let evidence = broken(&results, |answer| answer.findings[0].evidence.push('0'));
    assert_eq!(evidence, [Rule::FindingAgrees]);
    let gain = broken(&results, |answer| {
        answer.findings[0].gain_interval_95 = Some([2.0, 3.0]);
        answer.findings[0].gain = 4.0;
    });
    assert_eq!(gain, [Rule::FindingAgrees]);
}
