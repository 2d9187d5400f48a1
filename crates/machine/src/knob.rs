/// A setting of all devices or files under a target that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// The system's name, such as `read_ahead_kb`.
    pub name: String,
    /// Device, mount point or computer: `vda`, `/srv`, `this computer`.
    pub of: String,
    pub about: String,
    /// The current value; all values if they differ.
    pub present: String,
    pub alternatives: Vec<Alternative>,
    pub matters: Matters,
    /// Knobs that a change resets; the two cannot be tried together.
    pub resets: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alternative {
    pub value: String,
    /// How it can lose data, if at all.
    pub risk: Option<String>,
    pub keep: Vec<Keep>,
    pub command: Option<String>,
    /// As in `--chunk 64k`.
    pub option: Option<String>,
    /// A shell command that restores the current value.
    pub put_back: Option<String>,
}

/// A line that makes a value permanent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// A file or a description.
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
    Buffered,
    Writes,
    /// Requests past the page cache.
    Direct,
    SmallFiles,
}
