//! One run on several clients.

use crate::histogram::{Histogram, SparseHistogram};
use crate::link::LinkWatch;
use crate::sample::{Options, Sample, sample_as};
use crate::stream::Stream;
use machine::{ClientRuns, Error, Machine, Nanos, Result, client_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::Workload;

/// A client that begins later than this share of a run makes its result doubtful.
pub const LATE_SHARE: f64 = 0.01;

/// The timing of one run on several clients, on the clock of the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientsRun {
    /// The time in which all clients worked, without a warm-up.
    pub window_ns: u64,
    /// Rate of all clients together in the time in which all worked.
    pub throughput_bytes_per_s: f64,
    /// Rate from the first begin until the first client finished (IOR's stonewall).
    pub until_first_finished_bytes_per_s: f64,
    /// Rate from the first begin until the last client finished (IOR's wear-out).
    pub until_last_finished_bytes_per_s: f64,
    /// Time from the first client's begin to the last one's.
    pub begin_spread_ns: u64,
    /// Rank of the client that began last.
    pub began_last: u32,
    /// Time from the first client's end to the last one's.
    pub end_spread_ns: u64,
    /// Rank of the client that finished first.
    pub finished_first: u32,
    /// Rank of the client that finished last.
    pub finished_last: u32,
}

/// One client's share of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientSample {
    pub rank: u32,
    pub host: String,
    pub processors: u32,
    /// While all clients worked.
    pub iops: f64,
    pub latency: [SparseHistogram; 2],
    pub requests: u64,
    pub bytes: u64,
    /// User and system time.
    pub cpu_ns: Nanos,
    pub busy_ns: Nanos,
    pub elapsed_ns: Nanos,
    /// Use of the host's busiest link, if known.
    pub network_percent: Option<f64>,
    /// After the first client's start.
    pub began_late_ns: Nanos,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Together {
    pub run: ClientsRun,
    pub clients: Vec<ClientSample>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClientsOrder {
    pub workload: Workload,
    pub options: Options,
}

pub(crate) fn sample_of_clients(
    runs: &dyn ClientRuns,
    workload: &Workload,
    options: Options,
) -> Result<Sample> {
    let confused = |error: serde_json::Error| {
        Error::Unsupported(format!("a run of several clients cannot be described: {error}"))
    };
    // What the clients did until the user's interrupt does not fit together.
    let options = Options { keep_interrupted: false, ..options };
    let order = ClientsOrder { workload: workload.clone(), options };
    let result = runs.run(&serde_json::to_string(&order).map_err(confused)?)?;
    serde_json::from_str(&result).map_err(confused)
}

pub(crate) fn clients_of(workload: &Workload, all: u32) -> Result<u32> {
    match workload.clients {
        Some(clients) if clients == 0 || clients > all => Err(Error::refused(
            format!("{clients} clients"),
            format!("the machine has {all}"),
            "give a number from 1 to that",
        )),
        clients => Ok(clients.unwrap_or(all)),
    }
}

pub(crate) fn sample_simulated_clients<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workload: &Workload,
    options: Options,
) -> Result<Sample> {
    let clients = clients_of(workload, machine.clients())?;
    if clients > 1 && !workload.intervals().is_empty() {
        return Err(Error::refused(
            "latencies of parts of a run",
            "they are kept for one client only",
            "leave out --load and --latency-every",
        ));
    }
    let links = LinkWatch::begin(machine);
    let all = workload.of_clients(clients);
    let (mut sample, streams) = sample_as(machine, target, &all, options, clients, |one| one)?;
    let links = links.each(machine, sample.usage.elapsed_ns);
    let facts = machine.facts();
    let each = streams.len() / clients as usize;
    let share = |(rank, own): (usize, &[Stream])| {
        let sum = |of: fn(&Stream) -> u64| own.iter().map(of).sum::<u64>();
        let measured_ns = own.iter().map(Stream::measured_ns).max().unwrap_or(0).max(1);
        let mut latency = [Histogram::new(), Histogram::new()];
        for stream in own {
            latency.iter_mut().zip(stream.latency()).for_each(|(sum, one)| sum.merge(one));
        }
        ClientSample {
            rank: rank as u32,
            host: client_name(rank),
            processors: (facts.processors / machine.clients()).max(1),
            iops: sum(Stream::completed) as f64 * 1e9 / measured_ns as f64,
            latency: latency.each_ref().map(SparseHistogram::from),
            requests: sum(Stream::completed_with_ramp),
            bytes: sum(Stream::completed_bytes_with_ramp),
            // The processors of all clients are counted together.
            cpu_ns: (sample.usage.cpu.user_ns + sample.usage.cpu.system_ns) / u64::from(clients),
            busy_ns: sample.usage.cpu.machine_ns / u64::from(clients),
            elapsed_ns: sample.usage.elapsed_ns,
            network_percent: links.get(rank).copied().flatten(),
            began_late_ns: 0,
        }
    };
    let shares: Vec<ClientSample> = streams.chunks(each.max(1)).enumerate().map(share).collect();
    sample.together =
        Some(Box::new(Together { run: timing(&sample, &streams, each.max(1)), clients: shares }));
    Ok(sample)
}

fn timing(sample: &Sample, streams: &[Stream], each: usize) -> ClientsRun {
    let ends: Vec<Nanos> = (streams.chunks(each))
        .map(|own| own.iter().map(Stream::lasted_until).max().unwrap_or(0))
        .collect();
    let of = |rank: Option<usize>| rank.unwrap_or(0);
    let first = of((0..ends.len()).min_by_key(|&rank| ends[rank]));
    let last = of((0..ends.len()).max_by_key(|&rank| ends[rank]));
    let bytes = sample.bytes as f64 / sample.requests.max(1) as f64;
    let rate = sample.iops() * bytes;
    ClientsRun {
        window_ns: sample.measured_ns,
        throughput_bytes_per_s: rate,
        until_first_finished_bytes_per_s: rate,
        until_last_finished_bytes_per_s: sample.rate * bytes,
        begin_spread_ns: 0,
        began_last: 0,
        end_spread_ns: ends.get(last).zip(ends.get(first)).map_or(0, |(last, first)| last - first),
        finished_first: first as u32,
        finished_last: last as u32,
    }
}
