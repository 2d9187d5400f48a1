//! The results of mdtest.

use crate::tasks::seconds;
use machine::Nanos;
use measure::stats::estimate_values;
use results::{Latency, LatencySummary, OperationRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Directory,
    File,
}

impl Kind {
    /// In items' names.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Directory => "dir",
            Kind::File => "file",
        }
    }
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Create,
    Stat,
    Read,
    Remove,
}

impl Operation {
    /// In the order of an iteration.
    pub const ALL: [Operation; 4] =
        [Operation::Create, Operation::Stat, Operation::Read, Operation::Remove];

    /// mdtest's word.
    pub fn noun(self) -> &'static str {
        match self {
            Operation::Create => "creation",
            Operation::Stat => "stat",
            Operation::Read => "read",
            Operation::Remove => "removal",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Stat => "stat",
            Operation::Read => "read",
            Operation::Remove => "delete",
        }
    }
}

/// One operation on all items of all tasks, or on the trees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// The kind of the items; absent for the tree itself.
    pub kind: Option<Kind>,
    pub operation: Operation,
    pub iteration: u32,
    /// Items of all tasks, or directories.
    pub count: u64,
    /// The time from the first task's begin to the last one's end.
    pub elapsed_ns: Nanos,
    /// Time of each operation; empty for trees.
    pub latency: Latency,
    /// Items of the slowest and of the fastest task until the deadline, if that ended the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stonewall: Option<[u64; 2]>,
}

impl Phase {
    pub fn per_s(&self) -> f64 {
        self.count as f64 / seconds(self.elapsed_ns.max(1))
    }

    /// Such as `File creation`.
    pub fn name(kind: Option<Kind>, operation: Operation) -> String {
        let what = match kind {
            Some(Kind::Directory) => "Directory",
            Some(Kind::File) => "File",
            None => "Tree",
        };
        format!("{what} {}", operation.noun())
    }
}

/// All results of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MdtestResult {
    pub command: String,
    pub tasks: u32,
    pub hosts: u32,
    pub tasks_per_host: u32,
    /// Items of each task.
    pub items: u64,
    /// Directories of a tree.
    pub directories: u64,
    pub phases: Vec<Phase>,
    /// Items with another size or other data than was written.
    pub wrong_items: u64,
    /// Whether the user ended the run early.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
}

impl MdtestResult {
    /// One for each iteration.
    pub fn of(&self, kind: Option<Kind>, operation: Operation) -> Vec<&Phase> {
        let is = |phase: &&Phase| phase.kind == kind && phase.operation == operation;
        self.phases.iter().filter(is).collect()
    }

    /// Over the iterations; `settings`: options that differ from the defaults.
    pub fn operation_rates(&self, settings: &str) -> Vec<OperationRate> {
        let mut rates = Vec::new();
        for kind in [Some(Kind::Directory), Some(Kind::File)] {
            for operation in Operation::ALL {
                let phases = self.of(kind, operation);
                if phases.is_empty() {
                    continue;
                }
                let each: Vec<f64> = phases.iter().map(|phase| phase.per_s()).collect();
                let mut latency = measure::histogram::Histogram::new();
                phases.iter().for_each(|phase| latency.merge(&phase.latency.histogram));
                let suffix = if kind == Some(Kind::Directory) { " directory" } else { "" };
                rates.push(OperationRate {
                    operation: format!("{}{suffix}", operation.verb()),
                    settings: settings.into(),
                    count: phases.iter().map(|phase| phase.count).sum(),
                    per_s: each.iter().sum::<f64>() / each.len() as f64,
                    interval_95: estimate_values(&each).map(|one| [one.low, one.high]),
                    latency_ns: Some(LatencySummary::from(&latency)),
                    cpu_ns: None,
                });
            }
        }
        rates
    }
}
