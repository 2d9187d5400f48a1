//! fio's `--debug`; other categories print nothing.

use crate::fio::options::error::FioError;
use crate::fio::options::job_options::Options;
use crate::fio::options::jobfile::Section;
use crate::fio::plan::jobs::{Plan, globals};
use crate::fio::run::result::FioResult;
use std::fmt::Write;

/// `--debug=parse`: steady-state limits.
pub fn parsed_lines(plan: &Plan) -> String {
    plan.jobs().map(|job| steady_line(&job.options)).collect()
}

/// Of sections without a job, which fio also checks with --parse-only.
pub fn parsed_globals(sections: &[Section]) -> Result<String, FioError> {
    globals(sections).map(|options| steady_line(&options))
}

fn steady_line(options: &Options) -> String {
    let steady = &options.steady;
    if !steady.given {
        return String::new();
    }
    let limit = steady.limit;
    let what = match (steady.percent, steady.bandwidth) {
        (true, _) => format!("threshold to {limit:.6}%"),
        (false, true) => format!("BW threshold to {limit:.0}"),
        (false, false) => format!("IOPS threshold to {limit:.6}"),
    };
    format!("parse    set steady state {what}\n")
}

/// `--debug=random`: seeds, which repeat a job's requests.
pub fn seed_lines(result: &FioResult) -> String {
    let mut text = String::new();
    for job in result.groups.iter().flat_map(|group| &group.jobs) {
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "random   {}: rand_seeds[0]={}", job.job.name, job.point.workload.seed);
    }
    text
}
