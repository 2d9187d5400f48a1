//! Measures workloads individually and concurrently, in turn.

use crate::repeat::{Measured, Repeated, Repeats, Standing, ramp, repeat};
use crate::sample::{Sample, gather, note_others, streams, unpaused};
use crate::stream::Stream;
use machine::{Error, Machine, Nanos, Part, Result, RunOptions, TargetFacts};
use workload::{Stop, Workload};

/// A workload and its target. Several jobs may share a target.
#[derive(Debug)]
pub struct Job<'t, T> {
    pub target: &'t T,
    /// The workload. It must stop after a time, not an amount of data, so that all jobs run until
    /// the end.
    pub workload: Workload,
}

/// The measurements of a workload.
#[derive(Debug, Default)]
pub struct JobRuns {
    /// Measured by itself.
    pub alone: Measured,
    /// Measured while all others run. The run with the same index in [`Measured::samples`] belongs
    /// to the same round. Processor time is that of all jobs, because it cannot be attributed to
    /// one.
    pub together: Measured,
}

/// Measures each job by itself and all concurrently, round after round, so drift affects every
/// arrangement equally.
///
/// # Errors
/// The user's interrupt, or a workload that stops after an amount of data. Other errors fail the
/// jobs that ran.
pub fn measure_concurrent<M: Machine>(
    machine: &M,
    jobs: &[Job<'_, M::Target>],
    repeats: Repeats,
    on_run: impl FnMut(usize),
) -> Result<Vec<JobRuns>> {
    if let Some(job) = jobs.iter().find(|job| !matches!(job.workload.stop, Stop::AfterNs(_))) {
        let why = "concurrent workloads must run for a time: one that stops after an amount of data would end before the others";
        return Err(Error::refused(job.workload.short(), why, "give --runtime instead of --bytes"));
    }
    let repeats = if machine.capabilities().noisy { repeats } else { Repeats::exactly(1) };
    let facts = jobs.iter().map(|job| machine.target_facts(job.target)).collect();
    let company = jobs.iter().map(|_| JobRuns::default()).collect();
    let mut subject = ConcurrentJobs { machine, jobs, facts, company, on_run };
    // Each job by itself, in order, then all.
    repeat(&mut subject, &(0..=jobs.len()).collect::<Vec<_>>(), repeats)?;
    Ok(subject.company)
}

struct ConcurrentJobs<'a, M: Machine, P> {
    machine: &'a M,
    jobs: &'a [Job<'a, M::Target>],
    facts: Vec<TargetFacts>,
    company: Vec<JobRuns>,
    on_run: P,
}

impl<M: Machine, P> ConcurrentJobs<'_, M, P> {
    fn running(&self, arrangement: usize) -> std::ops::Range<usize> {
        if arrangement < self.jobs.len() { arrangement..arrangement + 1 } else { 0..self.jobs.len() }
    }

    fn measured(&mut self, arrangement: usize, job: usize) -> &mut Measured {
        let company = &mut self.company[job];
        if arrangement < self.jobs.len() { &mut company.alone } else { &mut company.together }
    }
}

impl<M: Machine, P: FnMut(usize)> Repeated for ConcurrentJobs<'_, M, P> {
    fn standing(&self, arrangement: usize) -> Standing {
        match self.company.get(arrangement) {
            Some(company) => company.alone.standing(),
            // If one job cannot run, none does.
            None => {
                let standing = self.company[0].together.standing();
                Standing { closed: self.company.iter().any(|one| one.together.failure.is_some()), ..standing }
            }
        }
    }

    fn half_width(&self, arrangement: usize) -> f64 {
        match self.company.get(arrangement) {
            Some(company) => company.alone.half_width(),
            None => self.company.iter().map(|one| one.together.half_width()).fold(0.0, f64::max),
        }
    }

    fn run(&mut self, arrangement: usize) -> Result<()> {
        let running = self.running(arrangement);
        let mut ramp_ns = 0;
        for job in running.clone() {
            let workload = &self.jobs[job].workload;
            ramp_ns = ramp_ns.max(ramp(workload, &self.measured(arrangement, job).samples));
        }
        let ended = run_once(self.machine, &self.jobs[running.clone()], &self.facts[running.clone()], ramp_ns);
        (self.on_run)(arrangement);
        match ended {
            Ok(samples) => {
                for (job, sample) in running.zip(samples) {
                    self.measured(arrangement, job).push(sample)?;
                }
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            // The error belongs to the run, so no job has figures of it.
            Err(error) => {
                for job in running {
                    self.measured(arrangement, job).push(Err(Error::Unsupported(error.to_string())))?;
                }
            }
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.machine.now()
    }
}

fn run_once<M: Machine>(
    machine: &M,
    jobs: &[Job<'_, M::Target>],
    facts: &[TargetFacts],
    ramp_ns: Nanos,
) -> Result<Vec<Result<Sample>>> {
    let ((sources, mut usage), left_out) = unpaused(|| {
        let mut sources: Vec<Vec<Stream>> = Vec::with_capacity(jobs.len());
        for (job, facts) in jobs.iter().zip(facts) {
            let align = if job.workload.buffering.is_direct() { facts.direct_align_bytes } else { 1 };
            job.workload.check(facts.size_bytes, align)?;
            sources.push(streams(&job.workload, facts, ramp_ns)?);
        }
        let mut parts: Vec<_> = (jobs.iter().zip(facts))
            .zip(&mut sources)
            .map(|((job, facts), sources)| Part::new(job.target, &job.workload.access(facts.size_bytes), sources))
            .collect();
        let usage = machine.run(&mut parts, RunOptions::default())?;
        drop(parts);
        let paused = usage.paused;
        Ok::<_, Error>(((sources, usage), paused))
    })?;
    usage.warnings.extend(left_out);
    let usage: Vec<_> = usage.by_part().collect();
    let sample = |((job, sources), usage): ((&Job<'_, M::Target>, Vec<Stream>), Result<_>)| {
        gather(&sources, usage?, &job.workload)
    };
    let mut samples: Vec<Result<Sample>> = jobs.iter().zip(sources).zip(usage).map(sample).collect();
    let of_jobs = samples.iter_mut().zip(jobs.iter().zip(facts));
    note_others(of_jobs.filter_map(|(sample, (job, facts))| Some((sample.as_mut().ok()?, &job.workload, facts))));
    Ok(samples)
}
