//! A run in halfpower's terms.

use super::result::per_second;
use super::{Command, PostmarkResult};
use machine::files::{FileEngine, FileSync};
use results::{LatencySummary, OperationRate};
use workload::smallfile::SmallFilePlan;

impl PostmarkResult {
    /// Commands for changed settings that affect the work.
    pub fn settings(&self) -> String {
        let (plan, usual) = (&self.plan, SmallFilePlan::default());
        let engine = match self.engine {
            FileEngine::Stdio | FileEngine::Syscalls => {
                Command::SetBuffering(self.engine == FileEngine::Stdio)
            }
            FileEngine::IoUring => Command::SetEngine(self.engine),
        };
        let all = [
            (plan.number != usual.number, Command::SetNumber(plan.number)),
            (plan.transactions != usual.transactions, Command::SetTransactions(plan.transactions)),
            (
                (plan.low_bytes, plan.high_bytes) != (usual.low_bytes, usual.high_bytes),
                Command::SetSize(plan.low_bytes, plan.high_bytes),
            ),
            (plan.subdirectories_used() > 0, Command::SetSubdirectories(plan.subdirectories)),
            (
                plan.read_block_bytes != usual.read_block_bytes,
                Command::SetRead(plan.read_block_bytes),
            ),
            (
                plan.write_block_bytes != usual.write_block_bytes,
                Command::SetWrite(plan.write_block_bytes),
            ),
            (plan.bias_read != usual.bias_read, Command::SetBiasRead(plan.bias_read)),
            (plan.bias_create != usual.bias_create, Command::SetBiasCreate(plan.bias_create)),
            (plan.seed != usual.seed, Command::SetSeed(plan.seed)),
            (self.engine != FileEngine::Stdio, engine),
            (self.threads != 1, Command::SetThreads(self.threads)),
            (self.sync != FileSync::None, Command::SetSync(self.sync)),
        ];
        all.iter()
            .filter(|(differs, _)| *differs)
            .map(|(_, command)| command.to_string())
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Over the report's times: the whole run for created and deleted files, the transactions for
    /// reads and appends, their own phase for files outside the transactions.
    pub fn operation_rates(&self) -> Vec<OperationRate> {
        let (counts, phases, settings) = (&self.counts, &self.phases, self.settings());
        let rate = |operation: &str, count: u64, ns: u64| OperationRate {
            operation: operation.into(),
            settings: settings.clone(),
            count,
            per_s: per_second(count as f64, ns),
            interval_95: None,
            latency_ns: self
                .latency
                .get(operation)
                .map(|latency| LatencySummary::from(&latency.histogram)),
            cpu_ns: None,
        };
        let transactions = OperationRate {
            interval_95: self
                .transactions_interval
                .map(|interval| [interval.low_per_s, interval.high_per_s]),
            cpu_ns: Some(self.cpu_per_transaction_ns),
            ..rate("transaction", u64::from(self.transactions()), phases.transactions_ns)
        };
        let others = [
            rate("create alone", counts.created_alone, phases.create_ns),
            rate("create", counts.created(), phases.total_ns),
            rate("read", counts.read, phases.transactions_ns),
            rate("append", counts.appended, phases.transactions_ns),
            rate("delete", counts.deleted(), phases.total_ns),
            rate("delete alone", counts.deleted_alone, phases.delete_ns),
        ];
        std::iter::once(transactions)
            .chain(others.into_iter().filter(|rate| rate.count > 0))
            .collect()
    }
}
