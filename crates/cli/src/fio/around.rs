//! Work before and after each set of jobs.

use super::schedulers::Schedulers;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::progress::Bar;
use crate::setup_command::{self, Ended};
use dialect::fio::{AroundSets, Job};
use machine::text::printable;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) struct Sets<'a> {
    pub(super) context: &'a Context,
    /// Outputs must not overwrite these.
    pub(super) data: &'a [&'a Path],
    pub(super) bar: &'a Bar,
    pub(super) rest: &'a [Vec<Job>],
    pub(super) schedulers: &'a mut Schedulers,
    pub(super) warnings: Vec<String>,
}

impl AroundSets for Sets<'_> {
    fn begins(&mut self, jobs: &[Job]) -> machine::Result<()> {
        self.bar.expect(self.rest.iter().map(|jobs| longest(jobs)).sum());
        self.rest = self.rest.get(1..).unwrap_or_default();
        self.schedulers.set_next()?;
        let before = |job: &Job| self.run(job, BEFORE, job.options.command_before.as_deref());
        jobs.iter().try_for_each(before)?;
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        self.bar.set_message(printable(&names.join(", ")));
        Ok(())
    }

    fn has_ended(&mut self, jobs: &[Job]) -> bool {
        for job in jobs {
            match self.run(job, AFTER, job.options.command_after.as_deref()) {
                Ok(()) => {}
                Err(machine::Error::Interrupted) => return false,
                // The job has its results all the same.
                Err(error) => self.warnings.push(format!("{}: {error}", job.shown())),
            }
        }
        true
    }
}

const BEFORE: &str = "exec_prerun";
const AFTER: &str = "exec_postrun";

pub(super) fn command_outputs(job: &Job) -> Vec<(&'static str, PathBuf)> {
    let options = &job.options;
    [(BEFORE, &options.command_before), (AFTER, &options.command_after)]
        .into_iter()
        .filter(|(_, command)| command.is_some())
        .map(|(option, _)| (option, output_of(job, option)))
        .collect()
}

fn output_of(job: &Job, option: &str) -> PathBuf {
    format!("{}.{}.txt", job.name, option.trim_start_matches("exec_")).into()
}

impl Sets<'_> {
    fn run(&self, job: &Job, option: &str, command: Option<&str>) -> machine::Result<()> {
        let Some(command) = command else { return Ok(()) };
        let path = output_of(job, option);
        self.bar.set_message(printable(&format!("{}: {option}", job.name)));
        let failed = |why: String| machine::Error::Unsupported(why);
        for _ in 0..job.options.clones {
            let file = match output::output(self.context, option, &path, self.data) {
                Ok(output) => output.grow().map_err(|error| failed(error.to_string()))?,
                Err(Failure::Usage(why) | Failure::Run(why)) => return Err(failed(why)),
                Err(_) => return Err(machine::Error::Interrupted),
            };
            let ended = file
                .stdio()
                .and_then(|output| Ok([output, file.stdio()?]))
                .and_then(|streams| setup_command::run(command, streams))
                .map_err(machine::Error::io("cannot start", "sh"))?;
            file.finish().map_err(|error| failed(error.to_string()))?;
            match ended {
                Ended::Success => {}
                Ended::Interrupted => return Err(machine::Error::Interrupted),
                Ended::Failed(status) => {
                    let path = path.display();
                    return Err(failed(format!("{option} ended with {status}; see {path}")));
                }
            }
        }
        Ok(())
    }
}

fn longest(jobs: &[Job]) -> Option<Duration> {
    let of = |job: &Job| {
        let job = &job.options;
        let all = job.runtime_ns.saturating_add(job.ramp_ns).saturating_add(job.start_delay_ns[1]);
        (job.runtime_ns > 0).then(|| Duration::from_nanos(all))
    };
    jobs.iter().map(of).try_fold(Duration::ZERO, |longest, one| Some(longest.max(one?)))
}
