//! What a study is asked to do.

use machine::Nanos;

/// How much of each grid is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// The corners.
    Quick,
    /// What shows the shape of every curve.
    Normal,
    /// Everything.
    Full,
}

/// What a study is asked to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Time for all of it, on the machine's clock.
    pub budget_ns: Nanos,
    /// How much of each grid.
    pub effort: Effort,
    /// Only these experiments ([`crate::experiment_ids`]); empty: all.
    pub only: Vec<String>,
    /// Seeds everything random.
    pub seed: u64,
}

impl Plan {
    /// Whether an experiment is wanted.
    pub fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == id)
    }
}
