//! The results of IOR's tests.

use super::Options;
use super::task::Layout;
use crate::tasks::{Member, seconds};
use machine::Nanos;
use machine::units::MIB;
use measure::histogram::Histogram;
use results::{Latency, Point};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The direction of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Write,
    Read,
}

impl Direction {
    /// IOR's word.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Write => "write",
            Direction::Read => "read",
        }
    }
}

/// A deadline that ended a phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stonewall {
    /// The time from the first transfer until the last task noticed the deadline.
    pub after_ns: Nanos,
    /// Transfers of the slowest and of the fastest task until then.
    pub fewest: u64,
    pub most: u64,
    /// Bytes of all tasks until then.
    pub bytes: u64,
}

/// The share of one task in a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskShare {
    pub task: u32,
    pub host: String,
    pub bytes: u64,
    /// The time from the task's begin until it had closed its file.
    pub total_ns: Nanos,
    pub began_late_ns: Nanos,
}

/// One phase of one repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    pub direction: Direction,
    pub repetition: u32,
    /// Bytes of all tasks.
    pub bytes: u64,
    pub transfers: u64,
    /// The time from the first task's begin to the last one's end, of each part; `total_ns` of all.
    pub open_ns: Nanos,
    pub transfer_ns: Nanos,
    pub close_ns: Nanos,
    pub total_ns: Nanos,
    /// Times of the transfers of all tasks.
    pub latency: Latency,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stonewall: Option<Stonewall>,
    pub by_task: Vec<TaskShare>,
}

impl Phase {
    /// Over the whole time, as IOR counts.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / seconds(self.total_ns.max(1))
    }

    pub(super) fn mib_per_s(&self) -> f64 {
        self.bytes_per_s() / MIB as f64
    }

    /// Per second of transfer time.
    pub fn iops(&self) -> f64 {
        self.transfers as f64 / seconds(self.transfer_ns.max(1))
    }
}

/// One test: a set of options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestResult {
    pub began_unix_s: u64,
    pub tasks: u32,
    pub hosts: u32,
    pub tasks_per_host: u32,
    pub block_bytes: u64,
    pub transfer_bytes: u64,
    pub segments: u64,
    pub file_per_task: bool,
    pub phases: Vec<Phase>,
    /// Transfers that returned other data than was written, of those that were checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong_transfers: Option<u64>,
    /// Writes and reads as points, with the interval of their repetitions.
    pub points: Vec<Point>,
    #[serde(skip)]
    pub(super) options: Options,
}

impl TestResult {
    pub(super) fn new(options: &Options, layout: &Layout, members: &[Member], now: u64) -> Self {
        TestResult {
            began_unix_s: now,
            tasks: members.len() as u32,
            hosts: crate::tasks::hosts(members) as u32,
            tasks_per_host: crate::tasks::per_host(members) as u32,
            block_bytes: layout.block_bytes,
            transfer_bytes: layout.transfer_bytes,
            segments: layout.segments,
            file_per_task: layout.per_task,
            phases: Vec::new(),
            wrong_transfers: None,
            points: Vec::new(),
            options: options.clone(),
        }
    }

    pub(super) fn of(&self, direction: Direction) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(move |phase| phase.direction == direction)
    }
}

/// All tests of a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IorResult {
    pub command: String,
    pub tests: Vec<TestResult>,
    /// Whether the user ended the run early: the tests have what was done until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
}

impl IorResult {
    pub fn wrong_transfers(&self) -> u64 {
        self.tests.iter().filter_map(|test| test.wrong_transfers).sum()
    }
}

/// The deviation divides by the number of values.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / count).sqrt())
}

pub(super) fn sample(phase: &Phase, tasks: u32, latency: &Histogram) -> measure::Sample {
    let none = Histogram::new();
    let latency = match phase.direction {
        Direction::Read => [latency.clone(), none],
        Direction::Write => [none, latency.clone()],
    };
    measure::Sample {
        measured_ns: phase.total_ns,
        requests: phase.transfers,
        bytes: phase.bytes,
        rate: phase.transfers as f64 / seconds(phase.total_ns.max(1)),
        mean_service_ns: latency.iter().map(Histogram::mean).fold(0.0, f64::max),
        latency,
        slice_ns: phase.total_ns.max(1),
        empty_share: 0.0,
        slice_rates: Vec::new(),
        warm_up_rates: Vec::new(),
        warm_up_ns: 0,
        verdict: measure::stats::Verdict::Steady,
        mean_depth: f64::from(tasks),
        usage: machine::Usage { elapsed_ns: phase.total_ns, ..machine::Usage::default() },
        requests_with_ramp: phase.transfers,
        bytes_with_ramp: phase.bytes,
        intervals: Vec::new(),
        together: None,
    }
}
