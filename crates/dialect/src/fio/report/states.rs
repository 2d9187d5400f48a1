//! `verify_state_save`.

use crate::fio::plan::state::{VerifyState, state_path};
use crate::fio::run::result::FioResult;
use std::path::{Path, PathBuf};

/// Paths and texts.
pub fn saved_states(result: &FioResult, directory: &Path) -> Vec<(PathBuf, String)> {
    let jobs =
        result.groups.iter().flat_map(|group| &group.jobs).filter(|job| job.job.saves_state());
    jobs.flat_map(|job| {
        job.clones.iter().filter_map(|clone| {
            let state = VerifyState {
                requests: clone.progress?,
                request_bytes: job.job.request_bytes(),
                random: job.job.options.random,
            };
            Some((state_path(directory, &job.job, clone.number), state.to_string()))
        })
    })
    .collect()
}
