use machine::Nanos;

/// How much of each grid to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// The corners.
    Quick,
    /// Enough for the shape of every curve.
    Normal,
    Full,
}

#[derive(Debug, Clone)]
pub struct Plan {
    /// Total budget, on the machine's clock.
    pub budget_ns: Nanos,
    /// How much of each grid to run.
    pub effort: Effort,
    /// Only these experiments ([`crate::experiment_ids`]); empty: all.
    pub only: Vec<String>,
    pub seed: u64,
}

impl Plan {
    pub fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == id)
    }
}
