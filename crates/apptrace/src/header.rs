use machine::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The subject, place and time of a recording, at the start of a trace file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// The program and its arguments; empty if names are hidden or the recorder did not start it.
    pub command: Vec<String>,
    /// The computer's name; empty if names are hidden or not known.
    pub host: String,
    /// The system and its version: `Linux 6.12.5`.
    pub kernel: String,
    /// When the recording started, in nanoseconds since 1970 (UTC); `None` if not known.
    pub started_unix_ns: Option<Nanos>,
    /// The recording program: `halfpower 0.1.0`, `strace`.
    pub source: String,
    /// Whether names are hashes with a key that was thrown away.
    pub anonymous: bool,
}

/// Facts known only when a recording has ended, at the end of a trace file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    pub elapsed_ns: Nanos,
    pub lost: u64,
    pub requests: u64,
    /// The recorder's CPU time without the program's share of tracing; `None` if not measured.
    pub recorder_cpu_ns: Option<Nanos>,
    /// The exit status of the command as a shell shows it; `None` if it was not started by the
    /// recorder, or still ran.
    pub exit_status: Option<i32>,
    /// Sentences about missing requests.
    pub missing: Vec<String>,
    /// Calls whose requests show only at the devices: names and counts.
    pub only_at_devices: BTreeMap<String, u64>,
}
