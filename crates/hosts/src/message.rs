//! The messages between rank 0 and the others.

use ::machine::{Error, Nanos, TargetFacts};
use measure::{Options, RunRequest, Sample};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use workload::Workload;

/// The first message of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The program's version; all must be the same.
    pub version: String,
    /// Name of the host.
    pub host: String,
    /// The number of the host's processors.
    pub processors: u32,
    /// The number of the process on its host.
    pub process: u32,
    /// An identifier of the kernel and of its set of process numbers.
    pub process_space: String,
    /// An identifier of the clock: the clocks of two ranks with the same one agree. Empty if
    /// unknown.
    pub clock_space: String,
}

/// An instruction of rank 0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Count these processes of the rank's host as part of the measurement.
    Own(Vec<u32>),
    /// Answer with the time.
    Clock,
    /// Check the targets, then wait for [`Order::Go`] before anything is written.
    Open(RunRequest),
    /// Look for a file that rank 0 made in a directory: the one given, or that of the targets.
    Look {
        directory: Option<PathBuf>,
        marker: Marker,
    },
    /// All ranks have checked their targets.
    Go,
    /// A rank refused: write nothing.
    Stop,
    /// Make one run on the target.
    Run {
        workload: Box<Workload>,
        options: Options,
    },
    /// Do a job that another crate describes, from this time on the rank's clock.
    Job {
        job: String,
        start: Option<Nanos>,
    },
    Finish,
}

/// The answer to an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Answer {
    Clock(Nanos),
    Checked(Result<(), Failure>),
    Seen(bool),
    Opened(Result<Vec<TargetFacts>, Failure>),
    Ran(Result<Ran, Failure>),
    Job {
        answer: Result<String, Failure>,
        /// Time from the order's arrival to the start.
        early_ns: Nanos,
    },
    /// All files are removed.
    Finished,
}

/// One run of a rank.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Ran {
    pub(crate) sample: Box<Sample>,
    /// Use of its busiest network link in percent, if known.
    pub(crate) network_percent: Option<f64>,
}

/// A small file that shows whether two ranks see the same directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    /// The file's name in the target directory.
    pub(crate) name: String,
    pub(crate) content: String,
}

/// An error of a rank, as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub message: String,
    /// The command line is at fault, not the measurement.
    pub usage: bool,
    /// The user interrupted the rank.
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
