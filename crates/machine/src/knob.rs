//! Knobs of a machine: settings that can be changed while it runs.

/// One knob, at all its places under a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// Its name (`read_ahead_kb`).
    pub name: String,
    /// What it belongs to (`vda`, `/srv`, `this computer`).
    pub of: String,
    /// What it does, in a few words.
    pub about: String,
    /// Its value now; where its places differ, all values.
    pub present: String,
    /// Values worth trying.
    pub alternatives: Vec<Alternative>,
    /// Which workloads it can matter to.
    pub matters: Matters,
    /// Other knobs that it sets anew when it changes: the two cannot be tried together.
    pub resets: Vec<String>,
}

/// A value that a knob can be given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alternative {
    /// The value.
    pub value: String,
    /// How data can be lost with it; none where it cannot.
    pub risk: Option<String>,
    /// What keeps it after a restart.
    pub keep: Vec<Keep>,
    /// The shell command that sets it; none where no command does.
    pub command: Option<String>,
    /// The option of a command line that sets it (`--chunk 64k`).
    pub option: Option<String>,
    /// The shell command that puts the present value back.
    pub put_back: Option<String>,
}

/// A line that keeps a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// Where it goes: a file, or what it is.
    pub place: String,
    /// The line.
    pub line: String,
}

/// Which workloads a knob can matter to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matters {
    /// To every workload.
    #[default]
    Always,
    /// To reads through the file-system cache.
    BufferedReads,
    /// To writes through the file-system cache.
    BufferedWrites,
    /// To requests through the file-system cache.
    Buffered,
    /// To writes.
    Writes,
    /// To requests past the file-system cache.
    Direct,
}
