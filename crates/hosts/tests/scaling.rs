//! The bottleneck of many clients, on made-up rates.

use hosts::{operation_scalings, scalings};
use machine::{TargetFacts, TargetKind, Usage};
use measure::Sample;
use measure::histogram::Histogram;
use measure::stats::Verdict;
use results::{
    Client, ClientNumbers, LatencySummary, MetadataResult, OperationScaling, Point, PointClients,
    Rounds, Scaling, ScalingLimit, jain,
};
use workload::Workload;
use workload::metadata::{MetadataPlan, Operation};

fn facts() -> TargetFacts {
    TargetFacts::new("/shared", TargetKind::TestFile, 1 << 30)
}

/// Returns a point at these rates of its clients, in requests of 64 KiB per second.
fn point(rates: &[f64], of_each: impl Fn(&mut ClientNumbers)) -> Point {
    let rate: f64 = rates.iter().sum();
    let mut reads = Histogram::new();
    reads.record(1_000_000);
    let clients = u32::try_from(rates.len()).ok();
    let workload = Workload { request_bytes: 65536, clients, ..Workload::default() };
    let sample = Sample {
        measured_ns: 1_000_000_000,
        requests: rate as u64,
        bytes: rate as u64 * 65536,
        rate,
        latency: [reads.clone(), Histogram::new()],
        slice_ns: 10_000_000,
        empty_share: 0.0,
        slice_rates: vec![rate; 100],
        warm_up_rates: Vec::new(),
        warm_up_ns: 0,
        verdict: Verdict::Steady,
        mean_depth: rates.len() as f64,
        mean_service_ns: 1e9 / rate,
        usage: Usage { elapsed_ns: 1_000_000_000, ..Usage::default() },
        requests_with_ramp: rate as u64,
        bytes_with_ramp: rate as u64 * 65536,
        intervals: Vec::new(),
        together: None,
    };
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    let client = |(rank, &iops): (usize, &f64)| {
        let mut client = ClientNumbers {
            rank: rank as u32,
            host: format!("node{rank}"),
            throughput_bytes_per_s: iops * 65536.0,
            iops,
            latency_ns: LatencySummary::from(&reads),
            cpu_ns_per_request: 1000.0,
            processor_percent: 10.0,
            network_percent: None,
            began_late_ns: 0,
            of_median: iops / median,
        };
        of_each(&mut client);
        client
    };
    let mut point = Point::from_samples(&workload, &facts(), &[sample]);
    point.numbers.as_mut().unwrap().clients = Some(PointClients {
        fairness: jain(rates),
        each: rates.iter().enumerate().map(client).collect(),
        runs: Vec::new(),
    });
    point
}

/// Returns the scaling of equal clients at these total rates, with 1, 2, 4, ... of them.
fn scaling(totals: &[f64], of_each: impl Fn(&mut ClientNumbers)) -> Scaling {
    let points: Vec<Point> = totals
        .iter()
        .enumerate()
        .map(|(step, total)| {
            let clients = 1usize << step;
            point(&vec![total / clients as f64; clients], &of_each)
        })
        .collect();
    scalings(&points).remove(0)
}

#[test]
fn a_server_that_is_full_gains_nothing_from_more_clients() {
    let found = scaling(&[1000.0, 2000.0, 3900.0, 4000.0, 4010.0], |_| {});
    assert_eq!(found.growth.limit, ScalingLimit::Server);
    assert_eq!((found.growth.half_power_clients, found.growth.knee_clients), (4, 4));
    let efficiency: Vec<f64> = found.steps.iter().map(|step| step.efficiency.unwrap()).collect();
    assert!(
        (efficiency[1] - 1.0).abs() < 1e-9 && (efficiency[4] - 0.250_625).abs() < 1e-6,
        "{efficiency:?}"
    );
}

#[test]
fn clients_that_scale_are_their_own_limit() {
    let found = scaling(&[1000.0, 2000.0, 3950.0, 7900.0], |_| {});
    assert_eq!((found.growth.limit, found.growth.half_power_clients), (ScalingLimit::Client, 4));
    assert_eq!(found.growth.knee_clients, 8, "the rate still grows");
    assert!(!found.growth.processors_busy && found.growth.slow_clients.is_empty());
}

#[test]
fn clients_without_a_free_processor_are_the_limit() {
    let found = scaling(&[1000.0, 1500.0, 1510.0], |client| client.processor_percent = 97.0);
    assert_eq!(found.growth.limit, ScalingLimit::Client);
    assert!(found.growth.processors_busy);
}

#[test]
fn busy_links_are_the_limit_whether_or_not_more_clients_help() {
    for totals in [[1000.0, 2000.0, 4000.0], [1000.0, 1500.0, 1510.0]] {
        let found = scaling(&totals, |client| client.network_percent = Some(94.0));
        assert_eq!(found.growth.limit, ScalingLimit::Network, "{found:?}");
    }
    let idle = scaling(&[1000.0, 1500.0, 1510.0], |client| client.network_percent = Some(30.0));
    assert_eq!(idle.growth.limit, ScalingLimit::Server);
}

#[test]
fn a_slow_client_is_the_limit_by_name() {
    let points = [point(&[1000.0], |_| {}), point(&[1000.0, 1000.0, 500.0, 990.0], |_| {})];
    let found = scalings(&points).remove(0);
    assert_eq!(found.growth.limit, ScalingLimit::Imbalance);
    assert_eq!(found.growth.slow_clients.iter().map(|one| one.rank).collect::<Vec<u32>>(), [2]);
}

#[test]
fn a_slow_client_does_not_limit_the_others_of_a_full_server() {
    let rates: [&[f64]; 3] = [&[1000.0], &[833.0; 3], &[790.0, 780.0, 770.0, 160.0]];
    let points: Vec<_> = rates.iter().map(|rates| point(rates, |_| {})).collect();
    let found = scalings(&points).remove(0);
    assert_eq!(found.growth.limit, ScalingLimit::Server);
    assert_eq!(found.growth.slow_clients.iter().map(|one| one.rank).collect::<Vec<_>>(), [3]);
}

#[test]
fn a_rate_that_grows_less_than_the_clients_is_undecided() {
    let found = scaling(&[1000.0, 1500.0, 2200.0], |_| {});
    assert_eq!(found.growth.limit, ScalingLimit::Undecided);
}

#[test]
fn clients_that_are_faster_together_than_possible_are_undecided() {
    let found = scaling(&[1000.0, 3900.0, 6600.0], |_| {});
    assert_eq!(found.growth.limit, ScalingLimit::Undecided, "{found:?}");
}

#[test]
fn one_number_of_clients_has_no_scaling() {
    assert!(scalings(&[point(&[1000.0, 1000.0], |_| {})]).is_empty());
}

/// Returns the scaling of creations at these rates of each client, with 1, 2, 3, ... of them.
fn of_creations(each: &[&[f64]], processor_percent: f64) -> OperationScaling {
    of_operation(Operation::Create, &MetadataPlan::default(), each, processor_percent)
}

fn of_operation(
    operation: Operation,
    plan: &MetadataPlan,
    each: &[&[f64]],
    processor_percent: f64,
) -> OperationScaling {
    let plan = MetadataPlan { rounds: 1, ..plan.clone() };
    let measured: Vec<MetadataResult> = (each.iter())
        .map(|rates| {
            let clients = rates.len() as u32;
            let count = u64::from(plan.files) * u64::from(clients);
            let mut rounds: [Rounds; Operation::ALL.len()] = Default::default();
            let own = &mut rounds[operation as usize];
            (0..count).for_each(|_| own.latency.record(1000));
            own.elapsed_ns.push((count as f64 * 1e9 / rates.iter().sum::<f64>()) as u64);
            let mut result = MetadataResult::new(&plan, clients, &rounds).unwrap();
            result.operations[0].client_rates_per_s = rates.to_vec();
            result.operations[0].processor_percent = Some(processor_percent);
            result
        })
        .collect();
    let rank = |rank: u32| Client {
        rank,
        host: format!("node{rank}"),
        processors: 2,
        clock_offset_ns: 0,
        clock_error_ns: 0,
    };
    let ranks: Vec<Client> = (0..8).map(rank).collect();
    let mut found = operation_scalings(&measured, &ranks);
    assert_eq!(found.len(), 1, "only one operation");
    found.remove(0)
}

#[test]
fn a_client_that_reads_its_own_files_is_not_compared_with_those_that_read_files_of_others() {
    let plan = MetadataPlan { file_bytes: 4096, shift: 1, ..MetadataPlan::default() };
    let each: [&[f64]; 3] = [&[9e3], &[1e3; 2], &[1e3; 3]];
    let read = of_operation(Operation::Read, &plan, &each, 20.0);
    let numbers: Vec<u32> = read.steps.iter().map(|step| step.clients).collect();
    assert_eq!((numbers, read.peak_per_s), (vec![2, 3], 3000.0));
    assert_eq!(read.title(), "read (4 KiB, by another client)");
    let made = of_operation(Operation::Create, &plan, &each, 20.0);
    assert_eq!((made.steps.len(), made.title().as_str()), (3, "create (4 KiB)"));
}

#[test]
fn operations_on_files_have_a_half_power_number_of_clients_and_a_limit() {
    let full = of_creations(&[&[1e3], &[1e3; 2], &[833.0; 3], &[625.0; 4]], 20.0);
    assert_eq!((full.growth.half_power_clients, full.growth.knee_clients), (2, 3));
    assert_eq!(full.growth.limit, ScalingLimit::Server);
    let said = full.sentence();
    assert!(said.starts_with("2 clients reach half of the peak of 2500/s"), "{said}");
    assert!(said.contains("more than 3 gain nothing; the server is the limit"), "{said}");
    let busy = of_creations(&[&[1e3], &[600.0; 2], &[410.0; 3]], 95.0);
    assert!(busy.growth.limit == ScalingLimit::Client && busy.growth.processors_busy);
    let free = of_creations(&[&[1e3], &[1e3; 2], &[1e3; 3]], 20.0);
    assert_eq!(free.growth.limit, ScalingLimit::Client);
    let one_slow = of_creations(&[&[1e3], &[1e3; 2], &[1e3, 1e3, 300.0]], 20.0);
    assert_eq!(one_slow.growth.limit, ScalingLimit::Imbalance);
    assert_eq!(one_slow.growth.slow_clients[0].host, "node2");
}
