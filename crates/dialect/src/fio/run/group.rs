//! A set of concurrent jobs.

use super::backlog::BacklogInterval;
use super::failures::JobError;
use super::result::{FioResult, GroupResult};
use super::status::Status;
use super::system_stats::SystemStats;
use super::verify::VerifyStats;
use crate::fio::options::error::FioError;
use crate::fio::options::value::Amount;
use crate::fio::plan::arrange::{Arrangement, ClonePlan};
use crate::fio::plan::jobs::Job;
use crate::fio::plan::translate;
use machine::{
    Machine, OnFailure, Part, Pause, RequestSource, RunOptions, TargetFacts, TargetKind, Usage,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use workload::Pattern;

pub(crate) enum Ended {
    Whole(GroupResult),
    Interrupted(GroupResult),
}

/// A job that does not run (set, index in it), and its error.
pub(crate) type NotRun = ((usize, usize), Option<JobError>);

pub(super) type Verified = Vec<Option<Arc<VerifyStats>>>;

pub(crate) struct Group<'a, M: Machine> {
    pub(crate) machine: &'a M,
    pub(crate) jobs: &'a [Job],
    pub(crate) number: usize,
    /// Also jobs that do not run.
    pub(crate) asked: &'a Arrangement,
    pub(crate) not_run: &'a [NotRun],
    pub(crate) clones: Vec<&'a ClonePlan>,
    pub(crate) arrangement: &'a Arrangement,
    pub(crate) targets: &'a [M::Target],
    pub(crate) facts: &'a [TargetFacts],
    pub(crate) system_stats: &'a dyn SystemStats,
    /// Seed with `randrepeat=0`.
    pub(crate) chance: u64,
    pub(crate) status: Option<(&'a Status<'a>, FioResult)>,
}

impl<'a, M: Machine> Group<'a, M> {
    pub(crate) fn job_of(&self, clone: &ClonePlan) -> &'a Job {
        &self.jobs[clone.job.1]
    }

    pub(crate) fn facts_of(&self, clones: &[&ClonePlan]) -> TargetFacts {
        let mut files: Vec<usize> = Vec::new();
        clones.iter().for_each(|clone| add_new(&mut files, &clone.files));
        facts_together(files.iter().map(|&file| &self.facts[file]))
            .unwrap_or_else(|| self.never_opened())
    }

    /// Job indexes are for errors.
    pub(super) fn run_parts<S: RequestSource>(
        &self,
        parts: Vec<(usize, Part<'_, M::Target, S>)>,
        errors: &mut [Option<JobError>],
    ) -> Result<(Usage, Option<Pause>), FioError> {
        let (jobs, mut parts): (Vec<usize>, Vec<_>) = parts.into_iter().unzip();
        let locked = self.clones.iter().map(|clone| self.job_of(clone).options.locked_bytes);
        let options = RunOptions {
            on_failure: OnFailure::EndPart,
            locked_bytes: locked.fold(0, u64::saturating_add),
            ..RunOptions::default()
        };
        let failed = |source: machine::Error| {
            let names: Vec<String> = self.jobs.iter().map(Job::shown).collect();
            FioError::Machine { job: names.join(", "), source }
        };
        let devices = |part: &Part<'_, M::Target, S>| -> BTreeSet<String> {
            part.targets
                .iter()
                .flat_map(|target| self.machine.target_facts(target).devices)
                .collect()
        };
        let same_devices = parts.iter().all(|part| devices(part) == devices(&parts[0]));
        let run = self.machine.run(&mut parts, options).map_err(failed)?;
        let mut whole = Usage {
            began: run.began,
            since_start_ns: run.since_start_ns,
            cpu: run.cpu,
            block_bytes: run.block_bytes,
            ..Usage::default()
        };
        (whole.warnings, whole.disturbance) = (run.warnings, run.disturbance);
        for (job, part) in jobs.into_iter().zip(run.parts) {
            match part {
                Ok(part) => {
                    // Processor time up to the last completion of all, like the elapsed time.
                    if part.elapsed_ns >= whole.elapsed_ns {
                        (whole.elapsed_ns, whole.process_ns) = (part.elapsed_ns, part.process_ns);
                    }
                    // All parts share the counters of the same devices.
                    whole.device = part.device.filter(|_| same_devices);
                }
                Err(machine::Error::Interrupted) => {
                    return Err(failed(machine::Error::Interrupted));
                }
                Err(error) => drop(errors[job].get_or_insert_with(|| error.into())),
            }
        }
        Ok((whole, run.paused))
    }

    pub(super) fn targets_of(&self, clone: &ClonePlan) -> Vec<&'a M::Target> {
        clone.files.iter().map(|&file| &self.targets[file]).collect()
    }

    /// Describes files that could not be created.
    pub(super) fn never_opened(&self) -> TargetFacts {
        let files = &self.asked.files;
        let names: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
        let max_bytes = files.iter().map(|file| file.bytes).max().unwrap_or(0);
        TargetFacts {
            direct: false,
            direct_align_bytes: 0,
            physical_block_bytes: 0,
            block_bytes: 0,
            ..TargetFacts::new(names.join(", "), TargetKind::TestFile, max_bytes)
        }
    }
}

/// `None`: reading back only at the end.
pub(super) fn backlog(job: &Job, clone: &ClonePlan) -> Option<BacklogInterval> {
    let options = &job.options;
    let once = !repeats(job) || translate::engine(job).is_async();
    match (options.verify_backlog, clone.limit_bytes) {
        _ if !options.do_verify => None,
        // As in fio, a job that runs for a time reads back after each pass, if its engine queues
        // requests; a blocking one goes on writing until the time is over.
        (0, None)
            if translate::engine(job).is_async()
                && options.verify.is_some()
                && options.writes
                && !job.is_guided() =>
        {
            let pass = translate::turns(job, clone, 0).pass_bytes();
            let pass = match options.io_size {
                Some(Amount::Bytes(bytes)) => bytes,
                _ => pass,
            };
            Some(BacklogInterval::Bytes((pass / u64::from(streams_of(job))).max(1)))
        }
        // As in fio, if requests may repeat a block, blocking engines treat all passes as one.
        (0, Some(bytes)) if clone.passes > 1 && once => {
            Some(BacklogInterval::Bytes((bytes / clone.passes / u64::from(streams_of(job))).max(1)))
        }
        (0, _) => None,
        (writes, _) => Some(BacklogInterval::Writes(writes)),
    }
}

pub(super) fn repeats(job: &Job) -> bool {
    job.overlaps()
        || (!job.covers() && !matches!(translate::pattern(job), Pattern::Seq | Pattern::Random))
}

pub(crate) fn streams_of(job: &Job) -> u32 {
    translate::engine(job).workers(job.effective_depth())
}

pub(super) fn facts_together<'f>(
    mut each: impl Iterator<Item = &'f TargetFacts>,
) -> Option<TargetFacts> {
    let mut whole = each.next()?.clone();
    for facts in each {
        whole.name = format!("{}, {}", whole.name, facts.name);
        whole.direct_refused = whole.direct_refused.or_else(|| facts.direct_refused.clone());
        whole.direct_align_bytes = whole.direct_align_bytes.max(facts.direct_align_bytes);
        add_new(&mut whole.devices, &facts.devices);
        add_new(&mut whole.layers, &facts.layers);
        add_new(&mut whole.warnings, &facts.warnings);
    }
    Some(whole)
}

pub(crate) fn add_new<T: Clone + PartialEq>(known: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !known.contains(one) {
            known.push(one.clone());
        }
    }
}

pub(crate) fn seed(job: &Job, chance: u64) -> u64 {
    match job.options.seed {
        Some(seed) => seed,
        // fio's default, so that runs repeat unless `randrepeat` is off.
        None if job.options.repeatable => 0x89,
        None => chance,
    }
}
