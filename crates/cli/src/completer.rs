//! Completes targets.

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use std::ffi::OsStr;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Targets;

impl ValueCompleter for Targets {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let begun = current.to_string_lossy();
        let twins = twin::preset::names()
            .map(|name| format!("twin:{name}"))
            .filter(|name| name.starts_with(begun.as_ref()))
            .map(CompletionCandidate::new);
        let mut found = PathCompleter::any().complete(current);
        found.extend(twins);
        found
    }
}
