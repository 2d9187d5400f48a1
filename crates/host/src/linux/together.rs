//! The streams of a run: a thread each, made ready one after another and let go together.

use super::Host;
use super::session::Halt;
use machine::{Asker, Error, Nanos, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// A stream's thread keeps everything large in its arena.
const STACK_BYTES: usize = 256 << 10;

/// Where the streams wait for one another, so that they start together and the counters are taken just before.
#[derive(Default)]
pub(crate) struct Gate {
    /// How many wait, and whether the gate is open.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    /// A stream is ready and waits until the gate opens.
    pub(crate) fn pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        self.changed.notify_all();
        while !state.1 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until so many streams are ready.
    fn wait_for(&self, streams: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.0 < streams {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the streams go.
    fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }
}

/// Runs `stream` for each asker on a thread of its own, all at once: when every one waits at the gate, `start` is called and the gate
/// opens. Returns when `start` says that the run began, and the time of the last completion.
pub(crate) fn all_at_once<A: Asker>(
    host: &Host,
    askers: &mut [A],
    stream: impl Fn(&mut A, Halt<'_>, &Gate) -> Result<Nanos> + Sync,
    start: impl FnOnce() -> Result<Nanos>,
) -> Result<(Nanos, Nanos)> {
    let failed = AtomicBool::new(false);
    let halt = Halt { interrupt: host.interrupt, failed: &failed };
    let gate = Gate::default();
    std::thread::scope(|scope| {
        let mut workers = Vec::with_capacity(askers.len());
        let mut errors = Vec::new();
        let fail = |error: Error, errors: &mut Vec<Error>| {
            failed.store(true, Ordering::Relaxed);
            errors.push(error);
        };
        for asker in askers.iter_mut() {
            let (gate, failed, stream) = (&gate, &failed, &stream);
            let work = move || stream(asker, halt, gate).inspect_err(|_| failed.store(true, Ordering::Relaxed));
            match std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    let refused = format!("the system refuses more than {} threads: {error}", workers.len());
                    fail(Error::Unsupported(refused), &mut errors);
                    break;
                }
            }
        }
        gate.wait_for(workers.len());
        let began = start().unwrap_or_else(|error| {
            fail(error, &mut errors);
            host.clock().now()
        });
        gate.open();
        let mut last = began;
        for worker in workers {
            match worker.join() {
                Ok(Ok(end)) => last = last.max(end),
                Ok(Err(error)) => errors.push(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        // A stream that ended because another failed says only that it was interrupted.
        errors.sort_by_key(|error| matches!(error, Error::Interrupted));
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok((began, last)),
        }
    })
}
