use machine::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// At the start of a trace file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// With arguments; empty if names are hidden or the recorder did not start it.
    pub command: Vec<String>,
    /// Empty if hidden or unknown.
    pub host: String,
    /// With the version: `Linux 6.12.5`.
    pub kernel: String,
    /// Since 1970 (UTC), if known.
    pub started_unix_ns: Option<Nanos>,
    /// Such as `halfpower 0.1.0`, `strace`.
    pub source: String,
    /// Names are hashes with a key that was thrown away.
    pub anonymous: bool,
}

/// Known only at the recording's end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    pub elapsed_ns: Nanos,
    pub lost: u64,
    pub requests: u64,
    /// Without the program's share of tracing; `None` if not measured.
    pub recorder_cpu_ns: Option<Nanos>,
    /// As a shell shows it; `None` if the recorder did not start the command, or it still ran.
    pub exit_status: Option<i32>,
    /// Sentences about missing requests.
    pub missing: Vec<String>,
    /// Calls whose requests show only at the devices, counted by name.
    pub only_at_devices: BTreeMap<String, u64>,
}
