use crate::repeat::{Measured, PointStatus, Repeated, Repeats, ramp, repeat};
use crate::sample::{Job, Sample, alignment, run_jobs, streams};
use machine::{Error, Machine, Nanos, Result, RunOptions};
use workload::Stop;

#[derive(Default)]
struct JobRuns {
    alone: Measured,
    together: Measured,
}

/// Runs each job by itself and all at once, round after round, so drift affects both equally.
/// Refuses a workload that stops after an amount of data.
pub(crate) fn measure_concurrent<M: Machine>(
    machine: &M,
    jobs: &[Job<'_, M::Target>],
    repeats: Repeats,
    on_progress: impl FnMut(usize, usize),
) -> Result<(Vec<Measured>, Vec<Measured>)> {
    if let Some(job) = jobs.iter().find(|job| !matches!(job.workload.stop, Stop::AfterNs(_))) {
        let why = "concurrent workloads must run for a time: one that stops after an amount of data would end before the others";
        return Err(Error::refused(job.workload.short(), why, "give --runtime instead of --bytes"));
    }
    let runs = jobs.iter().map(|_| JobRuns::default()).collect();
    let mut subject = ConcurrentJobs { machine, jobs, runs, on_progress };
    // Each job by itself, in order, then all.
    repeat(&mut subject, &(0..=jobs.len()).collect::<Vec<_>>(), repeats.on(machine))?;
    Ok(subject.runs.into_iter().map(|one| (one.alone, one.together)).unzip())
}

struct ConcurrentJobs<'a, M: Machine, P> {
    machine: &'a M,
    jobs: &'a [Job<'a, M::Target>],
    runs: Vec<JobRuns>,
    on_progress: P,
}

impl<M: Machine, P> ConcurrentJobs<'_, M, P> {
    fn running(&self, arrangement: usize) -> std::ops::Range<usize> {
        if arrangement < self.jobs.len() {
            arrangement..arrangement + 1
        } else {
            0..self.jobs.len()
        }
    }

    fn measured(&mut self, arrangement: usize, job: usize) -> &mut Measured {
        let runs = &mut self.runs[job];
        if arrangement < self.jobs.len() { &mut runs.alone } else { &mut runs.together }
    }
}

impl<M: Machine, P: FnMut(usize, usize)> Repeated for ConcurrentJobs<'_, M, P> {
    fn status(&self, arrangement: usize) -> PointStatus {
        match self.runs.get(arrangement) {
            Some(runs) => runs.alone.status(),
            // If one job cannot run, none does.
            None => {
                let status = self.runs[0].together.status();
                PointStatus {
                    closed: self.runs.iter().any(|one| one.together.failure.is_some()),
                    ..status
                }
            }
        }
    }

    fn half_width(&self, arrangement: usize) -> f64 {
        match self.runs.get(arrangement) {
            Some(runs) => runs.alone.half_width(),
            None => self.runs.iter().map(|one| one.together.half_width()).fold(0.0, f64::max),
        }
    }

    fn run(&mut self, arrangement: usize) -> Result<()> {
        let running = self.running(arrangement);
        let mut ramp_ns = 0;
        for job in running.clone() {
            let workload = self.jobs[job].workload;
            ramp_ns = ramp_ns.max(ramp(workload, &self.measured(arrangement, job).samples));
        }
        let ended = run_once(self.machine, &self.jobs[running.clone()], ramp_ns);
        let first = running.start;
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
                    self.measured(arrangement, job)
                        .push(Err(Error::Unsupported(error.to_string())))?;
                }
            }
        }
        let runs = self.measured(arrangement, first).samples.len();
        (self.on_progress)(arrangement, runs);
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.machine.now()
    }
}

fn run_once<M: Machine>(
    machine: &M,
    jobs: &[Job<'_, M::Target>],
    ramp_ns: Nanos,
) -> Result<Vec<Result<Sample>>> {
    let sources = |job: &Job<'_, M::Target>| {
        job.workload.check(job.facts.size_bytes, alignment(job.workload, job.facts))?;
        streams(job.workload, job.facts, ramp_ns)
    };
    let ran = run_jobs(machine, jobs, RunOptions::default, || jobs.iter().map(sources).collect())?;
    Ok(ran.into_iter().map(|one| one.map(|(sample, _)| sample)).collect())
}
