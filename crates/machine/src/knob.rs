//! Tunable settings of a running machine.

/// One setting, for all devices or files under a target that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// Its name (`read_ahead_kb`).
    pub name: String,
    /// Its owner (`vda`, `/srv`, `this computer`).
    pub of: String,
    /// Its effect in a few words.
    pub about: String,
    /// The current value; all values if they differ.
    pub present: String,
    pub alternatives: Vec<Alternative>,
    /// The workloads that it can affect.
    pub matters: Matters,
    /// Other settings that it resets when it changes: the two cannot be tried together.
    pub resets: Vec<String>,
}

/// An alternative value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alternative {
    pub value: String,
    /// How it can lose data; `None` if it cannot.
    pub risk: Option<String>,
    /// How to make it permanent.
    pub keep: Vec<Keep>,
    /// The shell command that sets it, if there is one.
    pub command: Option<String>,
    /// The command-line option that sets it (`--chunk 64k`).
    pub option: Option<String>,
    /// The shell command that restores the current value.
    pub put_back: Option<String>,
}

/// A line that makes a setting permanent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The file for the line, or a description.
    pub place: String,
    pub line: String,
}

/// The workloads that a setting can affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matters {
    /// All workloads.
    #[default]
    Always,
    /// Reads through the page cache.
    BufferedReads,
    /// Writes through the page cache.
    BufferedWrites,
    /// All requests through the page cache.
    Buffered,
    /// All writes.
    Writes,
    /// Requests that bypass the page cache.
    Direct,
}
