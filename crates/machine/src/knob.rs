/// A tunable setting, for all devices or files under a target that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// As `read_ahead_kb`.
    pub name: String,
    /// Its owner: `vda`, `/srv`, `this computer`.
    pub of: String,
    /// Its effect in a few words.
    pub about: String,
    /// All values if they differ.
    pub present: String,
    pub alternatives: Vec<Alternative>,
    pub matters: Matters,
    /// Settings that a change resets: the two cannot be tried together.
    pub resets: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alternative {
    pub value: String,
    /// How it can lose data, if it can.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The file for the line, or a description.
    pub place: String,
    pub line: String,
}

/// The workloads that a setting can affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matters {
    #[default]
    Always,
    BufferedReads,
    BufferedWrites,
    /// Reads and writes through the page cache.
    Buffered,
    Writes,
    /// Requests that bypass the page cache.
    Direct,
    /// Operations on many files, not requests of one.
    SmallFiles,
}
