//! `verify_state_save` and `verify_state_load`. The file has fio's name, but halfpower's own
//! format.

use super::arrange::Arrangement;
use super::jobs::{Job, Plan};
use crate::fio::options::error::FioError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

const TITLE: &str = "halfpower verify state 1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyState {
    /// Leading requests that are done.
    pub requests: u64,
    pub request_bytes: u64,
    pub random: bool,
}

impl fmt::Display for VerifyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.random { "random" } else { "sequential" };
        writeln!(
            f,
            "{TITLE}\nrequests {}\nrequest_bytes {}\norder {order}",
            self.requests, self.request_bytes
        )
    }
}

impl VerifyState {
    pub fn parse(text: &str) -> Option<VerifyState> {
        let mut lines = text.lines();
        lines.next().filter(|line| *line == TITLE)?;
        let mut value =
            |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ').map(str::to_string);
        let requests = value("requests")?.parse().ok()?;
        let request_bytes = value("request_bytes")?.parse().ok().filter(|&bytes| bytes > 0)?;
        let random = match value("order")?.as_str() {
            "random" => true,
            "sequential" => false,
            _ => return None,
        };
        Some(VerifyState { requests, request_bytes, random })
    }
}

/// `number` is the clone's among those of all jobs, from 1; fio's name counts from 0.
pub(crate) fn state_path(directory: &Path, job: &Job, number: u32) -> PathBuf {
    directory.join(format!("local-{}-{}-verify.state", job.name, number - 1))
}

/// Returns the paths of states for which `verify_state_save` asked.
pub fn asked_states(plan: &Plan, directory: &Path) -> Vec<PathBuf> {
    let clones = plan.jobs().flat_map(|job| (0..job.options.clones).map(move |_| job));
    let asked = clones.zip(1..).filter(|(job, _)| job.options.state_asked);
    asked.map(|(job, number)| state_path(directory, job, number)).collect()
}

/// Limits clones with `verify_state_load` to what was written; refuses a state of other requests.
pub fn load_states(
    arrangement: &mut Arrangement,
    plan: &Plan,
    directory: &Path,
    read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<(), FioError> {
    for clone in &mut arrangement.clones {
        let job = &plan.groups[clone.job.0][clone.job.1];
        if !job.options.state_load || job.options.verify.is_none() {
            continue;
        }
        let path = state_path(directory, job, clone.number);
        let wrong =
            |why: String| job.wrong(format!("verify_state_load: {}: {why}", path.display()));
        let bytes = read(&path).map_err(|error| {
            wrong(format!("cannot read it: {error}; write the files with verify_state_save=1, or leave the option out"))
        })?;
        let state = VerifyState::parse(&String::from_utf8_lossy(&bytes)).ok_or_else(|| {
            wrong("it is not a halfpower state file (fio's own are not supported)".into())
        })?;
        if (state.request_bytes, state.random) != (job.request_bytes(), job.options.random) {
            return Err(wrong(
                "it was written with another request size or order; use the same bs and rw".into(),
            ));
        }
        if state.requests == 0 {
            return Err(wrong("the job had written nothing, so no data can be verified".into()));
        }
        let done = state.requests.saturating_mul(state.request_bytes);
        clone.limit_bytes = Some(clone.limit_bytes.map_or(done, |limit| limit.min(done)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn states_round_trip(requests in 0u64.., request_bytes in 1u64.., random: bool) {
            let state = VerifyState { requests, request_bytes, random };
            prop_assert_eq!(VerifyState::parse(&state.to_string()), Some(state));
        }

        #[test]
        fn no_text_panics(text in "(halfpower verify state 1\n)?([a-z_]* ?[0-9]*\n){0,4}") {
            let _ = VerifyState::parse(&text);
        }
    }
}
