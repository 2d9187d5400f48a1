/// A setting of all devices or files under a target that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// The system's name of the setting, such as `read_ahead_kb`.
    pub name: String,
    /// The device, mount point or computer: `vda`, `/srv`, `this computer`.
    pub of: String,
    /// The purpose, in a few words.
    pub about: String,
    /// The current value; all values if they differ.
    pub present: String,
    pub alternatives: Vec<Alternative>,
    pub matters: Matters,
    /// Other knobs that a change of this one resets; the two cannot be tried together.
    pub resets: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alternative {
    pub value: String,
    /// The way in which it can lose data, if any.
    pub risk: Option<String>,
    pub keep: Vec<Keep>,
    /// The shell command that sets the value, if there is one.
    pub command: Option<String>,
    /// The command-line option that sets the value (`--chunk 64k`).
    pub option: Option<String>,
    /// The shell command that restores the current value.
    pub put_back: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The file to put the line in, or a description.
    pub place: String,
    pub line: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matters {
    #[default]
    Always,
    BufferedReads,
    BufferedWrites,
    Buffered,
    Writes,
    /// Requests that bypass the page cache.
    Direct,
    /// Operations on many files, not requests of one file.
    SmallFiles,
}
