//! Several clients at once.

use crate::LatencySummary;
use machine::units::show_time;
use machine::{Figure, Warning};
use measure::histogram::Histogram;
use measure::{ClientSample, ClientsRun, LATE_SHARE, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::{Stop, Workload};

/// The clients of a document: one per rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clients {
    pub ranks: Vec<Client>,
    /// Whether all clients see a file that rank 0 made in the target directory; absent if the
    /// target is not a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_directory: Option<bool>,
}

/// A rank that takes part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    pub rank: u32,
    /// Name of the client's host.
    pub host: String,
    /// Processors of the host.
    pub processors: u32,
    /// The client's clock minus that of rank 0, at the last run.
    pub clock_offset_ns: i64,
    /// The largest possible error of the clock offset.
    pub clock_error_ns: u64,
}

impl Client {
    pub fn name(&self) -> String {
        name(self.rank, &self.host)
    }
}

fn name(rank: u32, host: &str) -> String {
    format!("rank {rank} ({host})")
}

/// A point's clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointClients {
    /// Jain's index of the clients' rates: 1 if all are equal, 1/n if one of n has everything
    /// (Jain, Chiu and Hawe, DEC-TR-301, 1984).
    pub fairness: Option<f64>,
    /// The share of each client.
    pub each: Vec<ClientNumbers>,
    /// The timing of the clients in each run.
    pub runs: Vec<ClientsRun>,
}

/// The share of one client in a point; rates are means over the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientNumbers {
    pub rank: u32,
    pub host: String,
    /// Rate in the window in which all clients worked.
    pub throughput_bytes_per_s: f64,
    pub iops: f64,
    /// Latency of all requests of this client.
    pub latency_ns: LatencySummary,
    /// User and system time of the process per request.
    pub cpu_ns_per_request: f64,
    /// Busy time of the host's processors, in percent of all of them.
    pub processor_percent: f64,
    /// Use of the host's busiest network link, in percent of its speed; absent if no link of it has
    /// a known speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_percent: Option<f64>,
    /// Largest delay of this client's begin behind the first client's.
    pub began_late_ns: u64,
    /// This client's rate over the median of all clients' rates.
    pub of_median: f64,
}

impl ClientNumbers {
    pub fn name(&self) -> String {
        name(self.rank, &self.host)
    }

    fn is_slow(&self) -> bool {
        self.of_median < SLOW_SHARE
    }
}

/// A client below this share of the median is slow.
pub const SLOW_SHARE: f64 = 0.75;

impl PointClients {
    pub(crate) fn of(samples: &[Sample]) -> Option<PointClients> {
        let all: Vec<_> = samples.iter().filter_map(|one| one.together.as_deref()).collect();
        let ranks = all.first()?.clients.iter().map(|one| one.rank);
        let mut each: Vec<ClientNumbers> = ranks
            .filter_map(|rank| {
                let own = all.iter().flat_map(|one| &one.clients).filter(|one| one.rank == rank);
                numbers(&own.collect::<Vec<_>>())
            })
            .collect();
        let mut rates: Vec<f64> = each.iter().map(|one| one.throughput_bytes_per_s).collect();
        let fairness = jain(&rates);
        rates.sort_by(f64::total_cmp);
        let median = rates.get(rates.len() / 2).copied().unwrap_or(0.0);
        if median > 0.0 {
            each.iter_mut().for_each(|one| one.of_median = one.throughput_bytes_per_s / median);
        }
        let runs = all.into_iter().map(|one| one.run.clone()).collect();
        Some(PointClients { fairness, each, runs })
    }

    /// Of two clients, neither is the usual one.
    pub fn slow(&self) -> impl Iterator<Item = &ClientNumbers> {
        let several = self.each.len() > 2;
        self.each.iter().filter(move |one| several && one.is_slow())
    }

    pub(crate) fn warnings(&self, workload: &Workload) -> Vec<Warning> {
        let mut all: Vec<Warning> = Vec::new();
        for one in self.slow() {
            let slow = Warning::of(
                " is slow: it reaches {} % of the clients' median rate",
                [Figure::rounded(one.of_median * 100.0, 0)],
            );
            all.push(Warning::from(one.name()).then(slow));
        }
        let name = |rank: u32| {
            let one = self.each.iter().find(|one| one.rank == rank);
            one.map_or_else(|| format!("rank {rank}"), ClientNumbers::name)
        };
        for run in &self.runs {
            let length = match workload.stop {
                Stop::AfterNs(ns) => ns,
                Stop::AfterBytes(_) => run.window_ns + run.begin_spread_ns + run.end_spread_ns,
            };
            let share = |ns: u64| ns as f64 / length.max(1) as f64;
            let of_run = |ns: u64| {
                let time = Figure::new(ns as f64, show_time(ns as f64));
                Warning::of("{} ({} % of the run)", [time, Figure::rounded(share(ns) * 100.0, 0)])
            };
            if share(run.begin_spread_ns) > LATE_SHARE {
                let late = Warning::from(name(run.began_last) + " began ")
                    .then(of_run(run.begin_spread_ns))
                    .then(
                        " after the first client: the rate is that of the time in which all worked",
                    );
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
        Warning::merged(&all).into_iter().map(|(warning, _)| warning).collect()
    }
}

fn numbers(runs: &[&ClientSample]) -> Option<ClientNumbers> {
    let first = runs.first()?;
    let mut latency = Histogram::new();
    runs.iter().flat_map(|run| &run.latency).for_each(|one| latency.merge_sparse(one));
    let sum =
        |of: &dyn Fn(&ClientSample) -> u64| runs.iter().map(|run| of(run)).sum::<u64>() as f64;
    let requests = sum(&|run| run.requests).max(1.0);
    let iops = runs.iter().map(|run| run.iops).sum::<f64>() / runs.len() as f64;
    let elapsed = sum(&|run| run.elapsed_ns).max(1.0);
    let links: Vec<f64> = runs.iter().filter_map(|run| run.network_percent).collect();
    Some(ClientNumbers {
        rank: first.rank,
        host: first.host.clone(),
        throughput_bytes_per_s: iops * sum(&|run| run.bytes) / requests,
        iops,
        latency_ns: LatencySummary::from(&latency),
        cpu_ns_per_request: sum(&|run| run.cpu_ns) / requests,
        processor_percent: sum(&|run| run.busy_ns) / elapsed / f64::from(first.processors.max(1))
            * 100.0,
        network_percent: (!links.is_empty())
            .then(|| links.iter().sum::<f64>() / links.len() as f64),
        began_late_ns: runs.iter().map(|run| run.began_late_ns).max().unwrap_or(0),
        of_median: 1.0,
    })
}

/// Jain's fairness index; `None` without rates.
pub fn jain(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}
