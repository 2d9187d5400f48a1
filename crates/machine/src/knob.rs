/// For all devices or files under a target that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// As `read_ahead_kb`.
    pub name: String,
    /// `vda`, `/srv`, `this computer`.
    pub of: String,
    /// In a few words.
    pub about: String,
    /// All values if they differ.
    pub present: String,
    pub alternatives: Vec<Alternative>,
    pub matters: Matters,
    /// A change resets them: the two cannot be tried together.
    pub resets: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alternative {
    pub value: String,
    /// How it can lose data, if it can.
    pub risk: Option<String>,
    pub keep: Vec<Keep>,
    /// Of a shell, if there is one.
    pub command: Option<String>,
    /// Of the command line (`--chunk 64k`).
    pub option: Option<String>,
    /// The shell command for the current value.
    pub put_back: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The file for the line, or a description.
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
    /// Not requests of one file.
    SmallFiles,
}
