use machine::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The subject, place and time of a recording, at the start of a trace file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Empty if names are hidden or the recorder did not start the program.
    pub command: Vec<String>,
    /// Empty if names are hidden or it is unknown.
    pub host: String,
    /// `Linux 6.12.5`.
    pub kernel: String,
    /// The start, since 1970 (UTC); `None` if unknown.
    pub started_unix_ns: Option<Nanos>,
    /// The recording program: `halfpower 0.1.0`, `strace`.
    pub source: String,
    /// Names are hashes with a key that was thrown away.
    pub anonymous: bool,
}

/// Facts known only when a recording has ended, at the end of a trace file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    pub elapsed_ns: Nanos,
    /// Events that the recording missed.
    pub lost: u64,
    pub requests: u64,
    /// Of the recorder, without the program's own share of the tracing; `None` if not measured.
    pub recorder_cpu_ns: Option<Nanos>,
    /// As a shell shows it; `None` if the recorder did not start the command, or it still ran.
    pub exit_status: Option<i32>,
    /// Sentences about missing requests.
    pub missing: Vec<String>,
    /// Calls whose requests show only at the devices: names and counts.
    pub only_at_devices: BTreeMap<String, u64>,
}
