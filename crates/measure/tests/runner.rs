//! A unit of work as data: what is sent to another process comes back as it was measured.

use machine::{Buffering, Engine, Error, TargetSpec};
use measure::histogram::Histogram;
use measure::{Arrangement, Repeats, RequestPart, RunRequest, RunSamples, Runner};
use serde::Serialize;
use serde::de::DeserializeOwned;
use twin::Twin;
use workload::{Pattern, Stop, Workload};

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data")
}

fn through_json<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&json(value)).expect("what was written is read")
}

fn workload(read_percent: u8, seed: u64) -> Workload {
    Workload {
        read_percent,
        pattern: Pattern::Random,
        request_bytes: 8192,
        depth: 4,
        engine: Engine::IoUring,
        stop: Stop::AfterNs(50_000_000),
        seed,
        ..Workload::default()
    }
}

fn request(arrangement: Arrangement) -> RunRequest {
    let spec = TargetSpec {
        places: vec!["twin:nvme".into()],
        size: Some(64 << 20),
        seed: 3,
        ..TargetSpec::default()
    };
    let part =
        |(read_percent, seed)| RequestPart { target: 0, workload: workload(read_percent, seed) };
    let parts = [(100, 1), (0, 2), (70, 3)].map(part).to_vec();
    RunRequest { targets: vec![spec], parts, arrangement, repeats: Repeats::exactly(1) }
}

fn run(request: &RunRequest) -> RunSamples {
    let twin = Twin::from_name("nvme").expect("a machine");
    let mut runner = Runner::open(&twin, request).expect("a target");
    runner.run(request, |_, _| {}).expect("a run")
}

#[test]
fn a_request_and_its_samples_travel_as_json() {
    for arrangement in [Arrangement::InTurn, Arrangement::Concurrent] {
        let asked = request(arrangement);
        let received = through_json(&asked);
        assert_eq!(received, asked);
        let samples = run(&received);
        assert_eq!(json(&samples), json(&run(&asked)), "the same request is the same run");
        let returned = through_json(&samples);
        assert_eq!(json(&returned), json(&samples));
        let all = samples
            .parts
            .iter()
            .chain(&samples.together)
            .zip(returned.parts.iter().chain(&returned.together));
        for (sent, got) in all {
            assert_eq!((sent.samples.len(), got.samples.len(), &got.failure), (1, 1, &None));
            let (sent, got) = (&sent.samples[0], &got.samples[0]);
            assert!(got.requests > 100, "{got:?}");
            assert_eq!(
                (got.latency.clone(), got.iops(), &got.usage),
                (sent.latency.clone(), sent.iops(), &sent.usage)
            );
        }
        assert_eq!(
            returned.together.len(),
            if arrangement == Arrangement::Concurrent { 3 } else { 0 }
        );
    }
}

#[test]
fn histograms_from_two_processes_merge_to_that_of_all() {
    let samples = run(&request(Arrangement::InTurn));
    let [mut all, mut merged] = [Histogram::new(), Histogram::new()];
    for sample in samples.parts.iter().flat_map(|part| &part.samples) {
        for half in &sample.latency {
            all.merge(half);
            let received: Histogram = through_json(half);
            merged.merge(&received);
        }
    }
    assert!(all.count() > 300);
    assert_eq!(merged, all);
    assert_eq!(json(&merged), json(&all));
    // Two halves of one series of latencies.
    let latencies = |range: std::ops::Range<u64>| {
        let mut histogram = Histogram::new();
        range.map(|n| n * n * n % 1_000_003).for_each(|ns| histogram.record(ns));
        histogram
    };
    let mut halves: Histogram = through_json(&latencies(0..5000));
    halves.merge(&through_json(&latencies(5000..10_000)));
    assert_eq!(halves, latencies(0..10_000));
}

#[test]
fn a_failed_part_travels_with_its_reason() {
    let mut asked = request(Arrangement::InTurn);
    // A simulated machine maps no files.
    let mapped = Workload {
        engine: Engine::Mmap,
        depth: 1,
        buffering: Buffering::Buffered,
        ..workload(100, 2)
    };
    asked.parts[1].workload = mapped;
    let samples = through_json(&run(&asked));
    let reason = samples.parts[1].failure.clone().expect("it fails");
    assert!(!reason.is_empty() && samples.parts[1].samples.is_empty());
    assert!(samples.parts[2].failure.is_none());
}

#[test]
fn an_invalid_request_is_refused_before_anything_is_opened() {
    let twin = Twin::from_name("nvme").expect("a machine");
    let refused = |change: &dyn Fn(&mut RunRequest)| {
        let mut asked = request(Arrangement::InTurn);
        change(&mut asked);
        match Runner::open(&twin, &asked) {
            Err(error @ Error::Refused { .. }) => error.to_string(),
            Err(error) => panic!("{error:?}"),
            Ok(_) => panic!("it was opened"),
        }
    };
    assert!(refused(&|asked| asked.parts[0].target = 1).contains("target 1"));
    assert!(refused(&|asked| asked.parts[0].workload.depth = 0).contains("depth"));
    assert!(refused(&|asked| asked.parts[2].workload.offset_bytes = 1 << 40).contains("64 MiB"));
}
