//! Keeps a run's steps in the machine's [`RunLog`], so that a later process continues.

use crate::series::SeriesPoint;
use machine::{Error, Result, RunLog, Warning};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kept {
    Wrote {
        point: SeriesPoint,
        warnings: Vec<Warning>,
    },
    Read(ReadTimes),
    ReadDuring {
        reads: ReadTimes,
        bytes: u64,
        written_bytes: u64,
    },
    Rested {
        seconds: f64,
    },
    /// A process ended here; its last step may have written this much.
    CutOff {
        bytes: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadTimes {
    pub(crate) mean_ns: f64,
    pub(crate) p99_ns: u64,
}

pub(crate) struct Log<'m> {
    log: Option<&'m dyn RunLog>,
    next: u64,
    /// Kept steps may follow.
    goes_on: bool,
}

impl<'m> Log<'m> {
    pub(crate) fn new(log: Option<&'m dyn RunLog>) -> Log<'m> {
        Log { log, next: 0, goes_on: true }
    }

    fn name(&self) -> String {
        format!("sustained step {}", self.next)
    }

    pub(crate) fn recall(&mut self) -> Result<Option<Kept>> {
        let kept = self.log.filter(|_| self.goes_on).and_then(|log| log.recall(&self.name()));
        let Some(text) = kept else {
            self.goes_on = false;
            return Ok(None);
        };
        self.next += 1;
        serde_json::from_str(&text).map(Some).map_err(|_| other_step())
    }

    /// The earlier process's steps are used up.
    pub(crate) fn is_cut_off(&self) -> bool {
        !self.goes_on && self.next > 0
    }

    pub(crate) fn keep(&mut self, step: &Kept) {
        self.goes_on = false;
        if let (Some(log), Ok(text)) = (self.log, serde_json::to_string(step)) {
            log.keep(&self.name(), &text);
            self.next += 1;
        }
    }
}

pub(crate) fn other_step() -> Error {
    Error::refused(
        "--resume",
        "the kept steps are not those of this command",
        "leave --resume out to start over",
    )
}
