//! Removes test files of this process and of killed runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Default)]
pub struct Cleanup {
    pub removed: usize,
    /// Paths that stayed, with reason and remedy.
    pub left: Vec<(PathBuf, String)>,
}

static CLEANUP: Mutex<Cleanup> = Mutex::new(Cleanup { removed: 0, left: Vec::new() });

pub fn cleanup() -> Cleanup {
    CLEANUP.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

pub(crate) fn note(path: &Path, outcome: io::Result<()>) {
    let mut cleanup = CLEANUP.lock().unwrap_or_else(PoisonError::into_inner);
    match outcome {
        Ok(()) => cleanup.removed += 1,
        // Another process removed or replaced it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            let hint = if error.kind() == io::ErrorKind::DirectoryNotEmpty {
                "move the rest away, then remove the directory"
            } else {
                "the next run in that directory removes it"
            };
            let left = (path.into(), format!("{error}; {hint}"));
            if !cleanup.left.contains(&left) {
                cleanup.left.push(left);
            }
        }
    }
}

struct Watcher {
    interrupt: fn() -> &'static AtomicBool,
    say: Box<dyn Fn(&str) + Send + Sync>,
}

static WATCHER: OnceLock<Watcher> = OnceLock::new();

/// Reports long removals to `say`; ends one when `interrupt` is true.
pub fn watch_cleanup(
    interrupt: fn() -> &'static AtomicBool,
    say: impl Fn(&str) + Send + Sync + 'static,
) {
    // The first one stays.
    let _ = WATCHER.set(Watcher { interrupt, say: Box::new(say) });
}

const SILENT: Duration = Duration::from_secs(2);

const REPORTS: Duration = Duration::from_secs(10);

pub(crate) struct Progress<'a> {
    directory: &'a Path,
    removed: u64,
    report_at: Instant,
    interrupt: Option<&'static AtomicBool>,
}

impl<'a> Progress<'a> {
    pub(crate) fn of(directory: &'a Path) -> Progress<'a> {
        Progress { directory, removed: 0, report_at: Instant::now() + SILENT, interrupt: None }
    }

    pub(crate) fn step(&mut self) -> bool {
        let Some(watcher) = WATCHER.get() else { return true };
        let interrupt = *self.interrupt.get_or_insert_with(watcher.interrupt);
        let now = Instant::now();
        if now >= self.report_at {
            self.report_at = now + REPORTS;
            (watcher.say)(&format!(
                "removing the files that a killed run left in {} ({} so far); Ctrl-C leaves the rest to the next run",
                self.directory.display(),
                self.removed
            ));
        }
        self.removed += 1;
        !interrupt.load(Ordering::Relaxed)
    }
}
