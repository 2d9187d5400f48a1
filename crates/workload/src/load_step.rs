//! A step of a load, as data.

use machine::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A part of a load: a constant rate for some time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadStep {
    /// Requests per second over all streams, evenly spaced; 0 is a pause.
    pub rate_iops: f64,
    /// Length of the step.
    pub duration_ns: Nanos,
}

/// As for `--load`: `1000:30s`.
impl fmt::Display for LoadStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.rate_iops, time_option(self.duration_ns))
    }
}

/// Formats a time as options take it, exactly: `30s`, `1500ms`.
pub fn time_option(ns: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}
