use machine::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// The corners of every curve.
    Quick,
    /// Enough for the shape of every curve.
    Normal,
    Full,
}

#[derive(Debug, Clone)]
pub struct Plan {
    /// On the machine's clock.
    pub budget_ns: Nanos,
    pub effort: Effort,
    /// The [`crate::experiment_ids`] to run; empty: all.
    pub only: Vec<String>,
    pub seed: u64,
}

impl Plan {
    pub fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == id)
    }
}
