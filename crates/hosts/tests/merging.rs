//! Merged runs: the window in which all work, and latencies that equal the union.

use hosts::{ClientRun, merge, merged_latency};
use machine::{Figure, Usage, Warning};
use measure::histogram::Histogram;
use measure::stats::Verdict;
use measure::{ClientsRun, Options, Sample};
use proptest::prelude::*;
use results::Client;
use workload::{Stop, Workload};

const SLICE_NS: u64 = 1_000_000;

fn clients(count: usize) -> Vec<Client> {
    let client = |rank: usize| Client {
        rank: rank as u32,
        host: format!("node{rank}"),
        processors: 4,
        clock_offset_ns: 0,
        clock_error_ns: 0,
    };
    (0..count).map(client).collect()
}

fn run(rate: f64, length_ns: u64, latencies: &[u64]) -> Sample {
    let requests = (rate * length_ns as f64 / 1e9).round() as u64;
    let mut reads = Histogram::new();
    latencies.iter().for_each(|&ns| reads.record(ns));
    Sample {
        measured_ns: length_ns,
        requests,
        bytes: requests * 4096,
        rate,
        latency: [reads, Histogram::new()],
        slice_ns: SLICE_NS,
        empty_share: 0.0,
        slice_rates: vec![rate; (length_ns / SLICE_NS) as usize],
        warm_up_rates: Vec::new(),
        warm_up_ns: 0,
        verdict: Verdict::Steady,
        mean_depth: 1.0,
        mean_service_ns: 1e9 / rate,
        usage: Usage { elapsed_ns: length_ns, ..Usage::default() },
        requests_with_ramp: requests,
        bytes_with_ramp: requests * 4096,
        intervals: Vec::new(),
        together: None,
    }
}

fn client_run(rank: usize, sample: Sample, began_ns: i64) -> ClientRun {
    ClientRun { rank, sample, began_ns, network_percent: None }
}

fn timed(ns: u64) -> Workload {
    Workload { stop: Stop::AfterNs(ns), request_bytes: 4096, ..Workload::default() }
}

fn timing(merged: &Sample) -> &ClientsRun {
    &merged.together.as_ref().unwrap().run
}

proptest! {
    #[test]
    fn the_rate_is_that_of_the_window_in_which_all_work(
        each in prop::collection::vec((10_000.0f64..1e6, 0i64..300_000_000, 800_000_000u64..1_200_000_000), 1..12),
    ) {
        let runs: Vec<ClientRun> = each.iter().enumerate().map(|(rank, &(rate, began_ns, length))| {
            client_run(rank, run(rate, length, &[1000]), began_ns)
        }).collect();
        let by_bytes = Workload { stop: Stop::AfterBytes(1 << 20), ..timed(1) };
        let merged = merge(&runs, &clients(runs.len()), &by_bytes, Options::default()).unwrap();
        let sum: f64 = each.iter().map(|one| one.0).sum();
        // The last request may be rounded away.
        prop_assert!((merged.rate / sum - 1.0).abs() < 0.01, "{} for {sum}", merged.rate);
        let shares = &merged.together.as_ref().unwrap().clients;
        for (found, one) in shares.iter().map(|share| share.iops).zip(&each) {
            prop_assert!((found / one.0 - 1.0).abs() < 0.01, "{found} for {}", one.0);
        }
        let last_begin = each.iter().map(|one| one.1).max().unwrap();
        let end = |one: &(f64, i64, u64)| one.1 + one.2 as i64;
        let first_end = each.iter().map(end).min().unwrap();
        prop_assert!((timing(&merged).window_ns as i64 - (first_end - last_begin)).abs() <= 1);
        let first_begin = each.iter().map(|one| one.1).min().unwrap();
        let last_end = each.iter().map(end).max().unwrap();
        prop_assert_eq!(timing(&merged).begin_spread_ns as i64, last_begin - first_begin);
        prop_assert_eq!(timing(&merged).end_spread_ns as i64, last_end - first_end);
        prop_assert_eq!(each[timing(&merged).began_last as usize].1, last_begin);
        prop_assert_eq!(end(&each[timing(&merged).finished_last as usize]), last_end);
        prop_assert_eq!(end(&each[timing(&merged).finished_first as usize]), first_end);
        // The rate until the last has finished counts all data, and time in which some rest.
        let all: u64 = runs.iter().map(|run| run.sample.bytes).sum();
        let wear_out = all as f64 * 1e9 / (last_end - first_begin) as f64;
        prop_assert!((timing(&merged).until_last_finished_bytes_per_s / wear_out - 1.0).abs() < 1e-6);
        prop_assert_eq!(merged.requests, runs.iter().map(|run| run.sample.requests).sum::<u64>());
        prop_assert!(merged.slice_rates.iter().all(|rate| (rate / sum - 1.0).abs() < 0.01));
    }

    #[test]
    fn merged_latencies_equal_the_union(each in prop::collection::vec(prop::collection::vec(1u64..1 << 40, 0..50), 1..10)) {
        let samples: Vec<Sample> = each.iter().map(|latencies| run(1e5, 1_000_000_000, latencies)).collect();
        let mut union = Histogram::new();
        each.iter().flatten().for_each(|&ns| union.record(ns));
        let [reads, writes] = merged_latency(&samples);
        prop_assert_eq!(&reads, &union);
        prop_assert!(writes.is_empty());
        let runs: Vec<ClientRun> = samples.into_iter().enumerate()
            .map(|(rank, sample)| client_run(rank, sample, 0)).collect();
        let merged = merge(&runs, &clients(runs.len()), &timed(1_000_000_000), Options::default()).unwrap();
        prop_assert_eq!(&merged.latency[0], &union);
    }
}

#[test]
fn a_slow_second_half_counts_only_while_all_work() {
    // The first client stops after half the time; the second then has everything to itself.
    let mut second = run(100_000.0, 1_000_000_000, &[1000]);
    for (slice, rate) in second.slice_rates.iter_mut().enumerate() {
        *rate = if slice < 500 { 50_000.0 } else { 150_000.0 };
    }
    let runs = [client_run(0, run(50_000.0, 500_000_000, &[1000]), 0), client_run(1, second, 0)];
    let by_bytes = Workload { stop: Stop::AfterBytes(1), ..timed(1) };
    let merged = merge(&runs, &clients(2), &by_bytes, Options::default()).unwrap();
    assert!((merged.rate / 100_000.0 - 1.0).abs() < 0.01, "{}", merged.rate);
    assert_eq!(timing(&merged).window_ns, 500_000_000);
    assert_eq!((timing(&merged).finished_first, timing(&merged).finished_last), (0, 1));
}

#[test]
fn runs_that_never_overlap_have_no_rate() {
    let late = client_run(1, run(1e5, 10_000_000, &[5]), 20_000_000);
    let early = client_run(0, run(1e5, 10_000_000, &[5]), 0);
    let error = merge(&[early, late], &clients(2), &timed(10_000_000), Options::default());
    let words = error.unwrap_err().to_string();
    assert!(words.contains("rank 0 (node0) had ended before rank 1 (node1) began"), "{words}");
}

#[test]
fn requests_after_the_deadline_are_outside_the_window() {
    // The last request of one client takes 200 ms more than the run.
    let slow = run(1000.0, 1_200_000_000, &[5]);
    let runs = [client_run(0, run(1000.0, 1_000_000_000, &[5]), 0), client_run(1, slow, 0)];
    let merged = merge(&runs, &clients(2), &timed(1_000_000_000), Options::default()).unwrap();
    assert_eq!((timing(&merged).window_ns, timing(&merged).end_spread_ns), (1_000_000_000, 0));
}

#[test]
fn a_rate_with_a_final_flush_ends_when_the_data_of_all_clients_is_stable() {
    let flushed = |rank, began_ns, sync_ns| {
        let mut own = client_run(rank, run(1000.0, 1_000_000_000, &[5]), began_ns);
        own.sample.usage.sync_ns = Some(sync_ns);
        own
    };
    // The second begins 200 ms later; the flush of the first takes longer.
    let runs = [flushed(0, 0, 700_000_000), flushed(1, 200_000_000, 100_000_000)];
    let merged = merge(&runs, &clients(2), &timed(1_000_000_000), Options::default()).unwrap();
    let rate = 2000.0 / 1.7;
    assert!((merged.iops() / rate - 1.0).abs() < 1e-9, "{} and not {rate}", merged.iops());
}

#[test]
fn what_the_kernel_counts_for_a_computer_counts_once_per_host() {
    let mut runs: Vec<ClientRun> =
        (0..4).map(|rank| client_run(rank, run(1e5, 1_000_000_000, &[5]), 0)).collect();
    for run in &mut runs {
        run.sample.usage.cpu.machine_ns = 100;
        run.sample.usage.cpu.user_ns = 10;
    }
    let mut clients = clients(4);
    clients[1].host = clients[0].host.clone();
    let merged = merge(&runs, &clients, &timed(1_000_000_000), Options::default()).unwrap();
    let cpu = merged.usage.cpu;
    assert_eq!((cpu.machine_ns, cpu.user_ns), (300, 40), "three hosts, four processes");
}

#[test]
fn a_warning_of_one_client_has_its_name_and_one_of_several_comes_once() {
    let busy = |value| Warning::of("{} processors were busy", [Figure::rounded(value, 1)]);
    let warned = |rank: usize, warnings: Vec<Warning>| {
        let mut sample = run(1e5, 10_000_000, &[5]);
        sample.usage.warnings = warnings;
        client_run(rank, sample, 0)
    };
    let runs = [
        warned(0, vec![busy(0.3), busy(0.4)]),
        warned(1, vec!["a journal".into(), busy(0.9)]),
        warned(2, vec![]),
    ];
    let merged = merge(&runs, &clients(3), &timed(10_000_000), Options::default()).unwrap();
    let said: Vec<String> = merged.usage.warnings.iter().map(Warning::to_string).collect();
    assert_eq!(said, ["2 clients: 0.3 to 0.9 processors were busy", "rank 1 (node1): a journal"]);
}
