//! A run in the terms that all results of halfpower share.

use super::{MetadataPlan, MetadataResult};
use machine::files::FileSync;
use measure::{LatencySummary, OperationRate};

impl MetadataPlan {
    /// What is asked, as options of the command. Rounds make an interval tighter and change nothing; where the files go, the target tells.
    pub fn settings(&self) -> String {
        let mut words = format!("--files {} --directories {} --threads {}", self.files, self.directories, self.threads);
        let usual = MetadataPlan::default();
        let mut add = |differs: bool, option: String| {
            if differs {
                words.push_str(&option);
            }
        };
        add(self.file_bytes > 0, format!(" --file-bytes {}", self.file_bytes));
        add(self.sync != FileSync::None, format!(" --sync {}", self.sync.name()));
        add(self.engine != usual.engine, format!(" --engine {}", self.engine.name()));
        add(self.seed != usual.seed, format!(" --seed {}", self.seed));
        words
    }
}

impl MetadataResult {
    /// The rate of each operation.
    pub fn operation_rates(&self) -> Vec<OperationRate> {
        let settings = self.plan.settings();
        let rate = |operation: &super::OperationResult| OperationRate {
            operation: operation.operation.name().into(),
            settings: settings.clone(),
            count: operation.count * u64::from(self.plan.rounds),
            per_s: operation.rate_per_s,
            interval_95: operation.rate_interval_per_s.as_ref().map(|interval| [interval.low, interval.high]),
            latency_ns: Some(LatencySummary::from(&operation.latency.histogram)),
            cpu_ns: None,
        };
        self.operations.iter().map(rate).collect()
    }
}
