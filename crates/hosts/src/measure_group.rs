//! The loop of rank 0: every workload with every number of clients, in turn, until each is precise.

use crate::document::{ClientNumbers, HostsPoint, HostsRun};
use crate::group::Group;
use crate::lead::{Error, LATE_SHARE, Leader, OpenGroup};
use crate::merge::{ClientRun, Merged, merge, merged_latency};
use crate::message::Client;
use machine::units::show_time;
use machine::{Error as MachineError, Figure, Machine, Nanos, TargetFacts, Warning};
use measure::histogram::Histogram;
use measure::{Measured, PointStatus, Repeated, Repeats, Sample, next_run, repeat};
use results::{LatencySummary, Point};
use workload::{Stop, Workload};

/// The order in which ranks join: one of each host, then the second of each, and so on.
pub fn joining_order(clients: &[Client]) -> Vec<usize> {
    let place = |index: usize| {
        let own = &clients[index].host;
        clients[..index].iter().filter(|one| one.host == *own).count()
    };
    let mut order: Vec<usize> = (0..clients.len()).collect();
    order.sort_by_key(|&index| place(index));
    order
}

/// A workload with a number of clients, while it is measured.
struct Case<'w> {
    workload: &'w Workload,
    part: usize,
    ranks: Vec<usize>,
    merged: Measured,
    runs: Vec<HostsRun>,
    /// The samples of each rank, in the order of the ranks, and its rates.
    each: Vec<Vec<Sample>>,
    iops: Vec<Vec<f64>>,
    late_ns: Vec<u64>,
    network_percent: Vec<Vec<f64>>,
}

/// A run that has just ended.
pub struct GroupProgress<'p> {
    /// Number of clients, and the workload's index.
    pub clients: usize,
    pub part: usize,
    /// Runs of that point so far.
    pub runs: usize,
    /// All points with results so far.
    pub points: &'p dyn Fn(&[Client]) -> Vec<HostsPoint>,
    pub client_list: &'p [Client],
}

struct Cases<'c, 'a, G: Group, M: Machine, P> {
    leader: &'c mut Leader<'a, G, M>,
    open: &'c mut OpenGroup<'a, M>,
    facts: &'c TargetFacts,
    cases: Vec<Case<'c>>,
    on_progress: P,
    ended: Option<Error>,
}

impl<G: Group, M: Machine, P: FnMut(GroupProgress<'_>)> Repeated for Cases<'_, '_, G, M, P> {
    fn status(&self, point: usize) -> PointStatus {
        self.cases[point].merged.status()
    }

    fn half_width(&self, point: usize) -> f64 {
        self.cases[point].merged.half_width()
    }

    fn run(&mut self, point: usize) -> machine::Result<()> {
        let case = &mut self.cases[point];
        let machine = self.leader.machine();
        // Under a throttle it waits until the last slice is over, for all clients.
        let options = next_run(machine, self.facts, case.workload, &case.merged.samples);
        let run_ns = match case.workload.stop {
            Stop::AfterNs(ns) => Some(ns),
            Stop::AfterBytes(_) => None,
        };
        let ran = self.leader.run(self.open, &case.ranks, case.part, options, run_ns);
        let merged = match ran {
            Ok(runs) => merge(&runs, self.leader.clients(), case.workload, options)
                .map(|merged| (runs, merged))
                .map_err(|error| MachineError::Unsupported(error.to_string())),
            Err(Error::Failed(failures)) => {
                Err(MachineError::Unsupported(Error::Failed(failures).to_string()))
            }
            Err(error) => {
                self.ended = Some(error);
                return Err(MachineError::Interrupted);
            }
        };
        match merged {
            Ok((runs, merged)) => case.keep(runs, merged)?,
            Err(error) => case.merged.push(Err(error))?,
        }
        let (cases, facts) = (&self.cases, self.facts);
        let points = |clients: &[Client]| points(cases, facts, clients);
        (self.on_progress)(GroupProgress {
            clients: cases[point].ranks.len(),
            part: cases[point].part,
            runs: cases[point].merged.samples.len(),
            points: &points,
            client_list: self.leader.clients(),
        });
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.leader.machine().now()
    }
}

impl Case<'_> {
    fn keep(&mut self, runs: Vec<ClientRun>, merged: Merged) -> machine::Result<()> {
        let first = runs.iter().map(|run| run.began_ns).min().unwrap_or(0);
        for (place, run) in runs.into_iter().enumerate() {
            let late = (run.began_ns - first) as u64;
            self.late_ns[place] = self.late_ns[place].max(late);
            self.iops[place].push(merged.iops[place]);
            self.network_percent[place].extend(run.network_percent);
            self.each[place].push(run.sample);
        }
        self.runs.push(merged.run);
        self.merged.push(Ok(merged.sample))
    }

    fn point(&self, facts: &TargetFacts, clients: &[Client]) -> HostsPoint {
        let mut by_client: Vec<ClientNumbers> = Vec::new();
        for (place, &rank) in self.ranks.iter().enumerate() {
            if self.each[place].is_empty() {
                continue;
            }
            by_client.push(self.client(place, &clients[rank]));
        }
        let mut rates: Vec<f64> = by_client.iter().map(|one| one.throughput_bytes_per_s).collect();
        let fairness = jain(&rates);
        rates.sort_by(f64::total_cmp);
        let median = rates.get(rates.len() / 2).copied().unwrap_or(0.0);
        if median > 0.0 {
            by_client
                .iter_mut()
                .for_each(|one| one.of_median = one.throughput_bytes_per_s / median);
        }
        let mut point = HostsPoint {
            clients: self.ranks.len() as u32,
            point: Point::of(self.workload, facts, &self.merged),
            runs: self.runs.clone(),
            by_client,
            fairness,
            warnings: Vec::new(),
        };
        point.warnings = warnings(&point, self.workload, clients);
        point
    }

    fn client(&self, place: usize, client: &Client) -> ClientNumbers {
        let (samples, iops) = (&self.each[place], &self.iops[place]);
        let [mut both, writes] = merged_latency(samples);
        both.merge(&writes);
        let sum = |of: &dyn Fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>() as f64;
        let requests = sum(&|sample| sample.requests_with_ramp).max(1.0);
        let bytes = sum(&|sample| sample.bytes_with_ramp);
        let iops = mean(iops).unwrap_or(0.0);
        let cpu = sum(&|sample| sample.usage.cpu.user_ns + sample.usage.cpu.system_ns);
        let busy = sum(&|sample| sample.usage.cpu.machine_ns);
        let elapsed = sum(&|sample| sample.usage.elapsed_ns).max(1.0);
        ClientNumbers {
            rank: client.rank,
            host: client.host.clone(),
            throughput_bytes_per_s: iops * bytes / requests,
            iops,
            latency_ns: LatencySummary::from(&both as &Histogram),
            cpu_ns_per_request: cpu / requests,
            processor_percent: busy / elapsed / f64::from(client.processors.max(1)) * 100.0,
            network_percent: mean(&self.network_percent[place]),
            began_late_ns: self.late_ns[place],
            of_median: 1.0,
        }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Jain's fairness index; `None` without rates.
pub fn jain(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

/// A client with less than this share of the median is slow.
pub(crate) const SLOW_SHARE: f64 = 0.75;

fn warnings(point: &HostsPoint, workload: &Workload, clients: &[Client]) -> Vec<String> {
    let mut all: Vec<Warning> = Vec::new();
    for one in &point.by_client {
        if point.by_client.len() > 2 && one.of_median < SLOW_SHARE {
            let slow = Warning::of(
                " is slow: it reaches {} % of the clients' median rate",
                [Figure::rounded(one.of_median * 100.0, 0)],
            );
            all.push(Warning::from(clients[one.rank as usize].name().to_string()).then(slow));
        }
    }
    for run in &point.runs {
        let length = match workload.stop {
            Stop::AfterNs(ns) => ns,
            Stop::AfterBytes(_) => run.window_ns + run.begin_spread_ns + run.end_spread_ns,
        };
        let share = |ns: u64| ns as f64 / length.max(1) as f64;
        let name = |rank: u32| clients[rank as usize].name().to_string();
        let of_run = |ns: u64| {
            let time = Figure::new(ns as f64, show_time(ns as f64));
            Warning::of("{} ({} % of the run)", [time, Figure::rounded(share(ns) * 100.0, 0)])
        };
        if share(run.begin_spread_ns) > LATE_SHARE {
            let late = Warning::from(name(run.began_last) + " began ")
                .then(of_run(run.begin_spread_ns))
                .then(" after the first client: the rate is that of the time in which all worked");
            all.push(late);
        }
        // Clients with an amount of data finish when they can: that is a result.
        let timed = matches!(workload.stop, Stop::AfterNs(_));
        if timed && share(run.end_spread_ns.saturating_sub(run.begin_spread_ns)) > LATE_SHARE {
            let apart = Warning::from(name(run.finished_last) + " finished ")
                .then(of_run(run.end_spread_ns))
                .then(" after ".to_owned() + &name(run.finished_first));
            all.push(apart);
        }
    }
    Warning::merged(&all).into_iter().map(|(warning, _)| warning.to_string()).collect()
}

/// The points that have results.
fn points(cases: &[Case<'_>], facts: &TargetFacts, clients: &[Client]) -> Vec<HostsPoint> {
    let measured = cases.iter().filter(|case| !case.merged.samples.is_empty());
    let all = measured.map(|case| case.point(facts, clients));
    all.filter(|one| one.point.numbers.is_some()).collect()
}

/// The points measured before the end.
pub struct GroupMeasurement {
    pub points: Vec<HostsPoint>,
    /// The reason for an early end.
    pub ended: Option<Error>,
}

/// Measures every workload with every number of clients. A failed run is the error of its point.
///
/// `on_progress` is called after each run.
pub fn measure_group<'a, G: Group, M: Machine>(
    leader: &mut Leader<'a, G, M>,
    open: &mut OpenGroup<'a, M>,
    workloads: &[Workload],
    numbers: &[usize],
    repeats: Repeats,
    on_progress: impl FnMut(GroupProgress<'_>),
) -> GroupMeasurement {
    let order = joining_order(leader.clients());
    let mut cases = Vec::new();
    for (part, workload) in workloads.iter().enumerate() {
        for &clients in numbers {
            let ranks: Vec<usize> = order.iter().copied().take(clients).collect();
            cases.push(Case {
                workload,
                part,
                merged: Measured::default(),
                runs: Vec::new(),
                each: ranks.iter().map(|_| Vec::new()).collect(),
                iops: ranks.iter().map(|_| Vec::new()).collect(),
                late_ns: vec![0; ranks.len()],
                network_percent: vec![Vec::new(); ranks.len()],
                ranks,
            });
        }
    }
    let facts = open.all_facts();
    let all: Vec<usize> = (0..cases.len()).collect();
    let mut subject = Cases { leader, open, facts: &facts, cases, on_progress, ended: None };
    let ended = repeat(&mut subject, &all, repeats);
    let ended = match (subject.ended.take(), ended) {
        (Some(error), _) => Some(error),
        (None, Err(_)) => Some(Error::Interrupted),
        (None, Ok(())) => None,
    };
    let clients = subject.leader.clients();
    let points = match ended {
        Some(_) => points(&subject.cases, &facts, clients),
        None => subject.cases.iter().map(|case| case.point(&facts, clients)).collect(),
    };
    GroupMeasurement { points, ended }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client(rank: u32, host: &str) -> Client {
        Client { rank, host: host.into(), processors: 2, clock_offset_ns: 0, clock_error_ns: 0 }
    }

    #[test]
    fn clients_join_on_different_hosts_first() {
        let hosts = ["a", "a", "b", "b", "c"];
        let clients: Vec<Client> =
            hosts.iter().enumerate().map(|(rank, host)| client(rank as u32, host)).collect();
        assert_eq!(joining_order(&clients), [0, 2, 4, 1, 3]);
        assert_eq!(joining_order(&clients[..1]), [0]);
    }

    proptest! {
        #[test]
        fn fairness_is_one_for_equal_rates_and_a_share_for_one(n in 1usize..50, rate in 1.0f64..1e9) {
            prop_assert!((jain(&vec![rate; n]).unwrap() - 1.0).abs() < 1e-9);
            let mut one = vec![0.0; n];
            one[n - 1] = rate;
            prop_assert!((jain(&one).unwrap() - 1.0 / n as f64).abs() < 1e-9);
        }
    }
}
