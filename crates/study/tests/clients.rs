//! Simulated clients of one server: the links decide, so the right number of clients is known.

use machine::{Machine, TargetSpec};
use measure::{Repeats, RunRequest, Runner};
use results::{Program, Results, Scaling, ScalingLimit};
use study::{Effort, Plan};
use twin::Twin;
use workload::Workload;

fn server(clients: u32, server_bytes_per_s: f64) -> Twin {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.toml");
    let text = format!(
        "name = \"server\"\nbase = \"nas\"\n[drives.share]\nlink_bytes_per_s = 10e6\nserver_bytes_per_s = {server_bytes_per_s:e}\nround_trip_us = 100\n"
    );
    std::fs::write(&file, text).unwrap();
    Twin::from_name(&format!("{},clients={clients}", file.display())).unwrap()
}

fn measured(twin: &Twin, clients: u32) -> Scaling {
    let with = |clients: u32| Workload {
        request_bytes: 49_152,
        depth: 4,
        engine: machine::Engine::IoUring,
        clients: Some(clients),
        ..Workload::default()
    };
    let workloads: Vec<Workload> = (1..=clients).map(with).collect();
    let request = RunRequest::in_turn(&TargetSpec::default(), &workloads, Repeats::default());
    let mut runner = Runner::open(twin, &request).unwrap();
    let samples = runner.run(&request, |_, _| {}).unwrap();
    let points = results::points_of(&workloads, &samples);
    for point in &points {
        let of = point.numbers.as_ref().unwrap().clients.as_ref().unwrap();
        assert_eq!(of.each.len() as u32, point.workload.clients.unwrap());
        assert!(of.fairness.unwrap() > 0.99, "{of:?}");
    }
    hosts::scalings(&points).remove(0)
}

#[test]
fn clients_with_10_mb_s_each_fill_a_server_with_25() {
    let twin = server(8, 25e6);
    assert_eq!(twin.clients(), 8);
    let found = measured(&twin, 8);
    for (step, truth) in found.steps.iter().zip([10e6, 20e6, 25e6, 25e6, 25e6, 25e6, 25e6, 25e6]) {
        assert!((step.throughput_bytes_per_s / truth - 1.0).abs() < 0.02, "{step:?}");
    }
    assert_eq!((found.growth.half_power_clients, found.growth.knee_clients), (2, 3), "{found:?}");
    assert_eq!(found.growth.limit, ScalingLimit::Server, "{found:?}");
    let model = found.model.unwrap();
    assert!(model.left_out_error < 0.05, "{model:?}");
    assert!((model.peak_bytes_per_s.unwrap() / 25e6 - 1.0).abs() < 0.02, "{model:?}");
}

#[test]
fn the_links_of_clients_are_the_limit_of_a_fast_server() {
    let found = measured(&server(4, 1e9), 4);
    assert_eq!(
        (found.growth.limit, found.growth.knee_clients),
        (ScalingLimit::Network, 4),
        "{found:?}"
    );
}

fn studied(twin: &Twin) -> Results {
    let plan = Plan {
        budget_ns: 60_000_000_000,
        effort: Effort::Quick,
        only: vec!["clients".into()],
        seed: 7,
    };
    let program = Program { name: "halfpower".into(), version: "0".into(), arguments: Vec::new() };
    study::study(twin, &TargetSpec::default(), &plan, program, &mut |_| {}).unwrap()
}

#[test]
fn a_study_of_simulated_clients_has_their_number_in_its_answer() {
    let results = studied(&server(8, 25e6));
    let large: Vec<&Scaling> =
        results.scaling.iter().filter(|one| one.workload.contains("1 MiB")).collect();
    assert_eq!(large.len(), 2, "reads and writes: {:?}", results.scaling);
    for one in large {
        assert_eq!(one.growth.limit, ScalingLimit::Server, "{one:?}");
        // 1, 2, 4 and 8 clients were measured.
        assert_eq!((one.growth.half_power_clients, one.growth.knee_clients), (2, 4), "{one:?}");
        assert!((one.peak_bytes_per_s / 25e6 - 1.0).abs() < 0.02, "{one:?}");
    }
    let own = results.experiments.iter().find(|one| one.id == "clients").unwrap();
    assert!(own.sentence.contains("2 clients reach half of the peak"), "{}", own.sentence);
    assert!(own.figures.iter().all(|figure| figure.x == results::Axis::Clients));
    let peak = &results.answer.as_ref().unwrap().peaks[0];
    assert!((peak.throughput_bytes_per_s / 25e6 - 1.0).abs() < 0.02, "{peak:?}");
    assert!(peak.settings.contains("--clients"), "{}", peak.settings);
}

#[test]
fn one_client_has_no_experiment_about_clients() {
    let results = studied(&Twin::from_name("nas").unwrap());
    let own = results.experiments.iter().find(|one| one.id == "clients").unwrap();
    assert!(own.skipped.is_some() && results.scaling.is_empty());
    assert!(Twin::from_name("nvme,clients=2").is_err(), "one computer has an NVMe drive");
}
