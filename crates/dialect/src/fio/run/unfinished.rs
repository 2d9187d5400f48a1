//! Groups that have not ended or did not run.

use super::group::{Group, facts_together, streams_of};
use super::result::{CloneStats, GroupResult, JobResult};
use super::system_stats::{Counts, DiskUse, SystemStats};
use machine::{Machine, Nanos, TargetFacts, Usage};

pub(crate) struct Unfinished<'a> {
    /// Its clones are empty.
    pub(crate) group: GroupResult,
    /// Each stream's job and clone.
    pub(crate) streams: Vec<(usize, usize)>,
    pub(crate) before: (Counts, Vec<DiskUse>),
    pub(crate) system_stats: &'a dyn SystemStats,
}

impl Unfinished<'_> {
    pub(crate) fn with(
        &self,
        recorded: impl IntoIterator<Item = CloneStats>,
        elapsed_ns: Nanos,
    ) -> GroupResult {
        let mut group = self.group.clone();
        for ((job, clone), part) in self.streams.iter().zip(recorded) {
            group.jobs[*job].clones[*clone].recorded.add(&part);
        }
        group.counts = self.system_stats.counts().since(self.before.0);
        let [user_ns, system_ns] = group.counts.cpu_ns;
        group.usage.elapsed_ns = elapsed_ns;
        (group.usage.cpu.user_ns, group.usage.cpu.system_ns) = (user_ns, system_ns);
        group.disks =
            DiskUse::all_since(&self.system_stats.disks(&group.facts.devices), &self.before.1);
        group
    }
}

impl<M: Machine> Group<'_, M> {
    pub(super) fn unfinished(
        &self,
        facts: &TargetFacts,
        before: &(Counts, Vec<DiskUse>),
        unix_ms: u64,
    ) -> Unfinished<'_> {
        let jobs: Vec<JobResult> =
            (0..self.jobs.len()).map(|index| self.still_running(index, unix_ms)).collect();
        let mut streams = Vec::new();
        for clone in &self.clones {
            let all = &jobs[clone.job.1].clones;
            let place = all.iter().position(|one| one.number == clone.number).unwrap_or(0);
            let count = streams_of(self.job_of(clone)) as usize;
            streams.extend(std::iter::repeat_n((clone.job.1, place), count));
        }
        let group = GroupResult {
            jobs,
            usage: Usage::default(),
            process_ns: None,
            counts: Counts::default(),
            disks: Vec::new(),
            facts: facts.clone(),
        };
        let (before, system_stats) = (before.clone(), self.system_stats);
        Unfinished { group, streams, before, system_stats }
    }

    pub(super) fn without_runs(&self) -> GroupResult {
        let unix_ms = self.system_stats.unix_ms();
        GroupResult {
            jobs: (0..self.jobs.len()).map(|index| self.without_a_run(index, unix_ms)).collect(),
            usage: Usage::default(),
            process_ns: None,
            counts: Counts::default(),
            disks: Vec::new(),
            facts: facts_together(self.facts.iter()).unwrap_or_else(|| self.never_opened()),
        }
    }
}
