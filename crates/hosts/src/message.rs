//! The messages between rank 0 and the others.

use ::machine::{Error, Nanos, TargetFacts};
use measure::{Options, RunRequest, Sample};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use workload::Workload;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Must be the same for all.
    pub version: String,
    pub host: String,
    pub processors: u32,
    pub process: u32,
    /// Identifies the kernel and its set of process numbers.
    pub process_space: String,
    /// Clocks with the same identifier agree; empty if unknown.
    pub clock_space: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Count these processes of the rank's host as our own.
    Own(Vec<u32>),
    Clock,
    /// Check the targets; write nothing before [`Order::Go`].
    Open(RunRequest),
    /// Look for a file that rank 0 made in this directory, or that of the targets.
    Look {
        directory: Option<PathBuf>,
        marker: Marker,
    },
    Go,
    /// A rank refused: write nothing.
    Stop,
    Run {
        workload: Box<Workload>,
        options: Options,
    },
    /// `start` is on the rank's clock.
    Job {
        job: String,
        start: Option<Nanos>,
    },
    Finish,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    Clock(Nanos),
    Checked(Result<(), Failure>),
    Seen(bool),
    Opened(Result<Vec<TargetFacts>, Failure>),
    Ran(Result<Ran, Failure>),
    Job {
        answer: Result<String, Failure>,
        /// From the order's arrival to the start.
        early_ns: Nanos,
    },
    Finished,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ran {
    pub(crate) sample: Box<Sample>,
    /// The busiest link's; `None` if unknown.
    pub(crate) network_percent: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) name: String,
    pub(crate) content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub message: String,
    /// The command line is at fault.
    pub usage: bool,
    pub interrupted: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure {
            usage: error.is_usage(),
            interrupted: matches!(error, Error::Interrupted),
            message: error.to_string(),
        }
    }
}
