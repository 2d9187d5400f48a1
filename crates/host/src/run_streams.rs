//! Prepares streams in turn, each on its own thread; starts them together.

use crate::pause::{Gaps, LOOK_NS, Looks, WAKE_NS as WATCH_NS};
use crate::session::{Halt, Time};
use machine::{Error, Nanos, OnFailure, OnInterrupt, RequestSource, Result, RunOptions, Start};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

pub(crate) fn refused_thread(error: &std::io::Error) -> Error {
    Error::Unsupported(format!(
        "the system refuses more threads: {error}; ask for fewer, or raise the limit (ulimit -u, or pids.max of the control group)"
    ))
}

/// The system may take this long to remove an ended thread.
const REMOVAL: Duration = Duration::from_millis(200);

/// If refused, ends threads that only show something.
fn spawn<'s, T: Send + 's>(
    scope: &'s std::thread::Scope<'s, '_>,
    body: impl FnOnce() -> T + Send + 's,
) -> std::io::Result<std::thread::ScopedJoinHandle<'s, T>> {
    // A refusal drops the body, so it is kept outside.
    let body = std::sync::Arc::new(Mutex::new(Some(body)));
    let once = || {
        let body = body.clone();
        let run = move || {
            let body = body.lock().unwrap_or_else(PoisonError::into_inner).take();
            body.expect("a thread is started once")()
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run)
    };
    let mut started = once();
    if started.is_err() && machine::live::SPARE.make_room() {
        let until = std::time::Instant::now() + REMOVAL;
        while started.is_err() && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
            started = once();
        }
    }
    started
}

/// Streams keep everything large in their arenas.
pub(crate) const STACK_BYTES: usize = 256 << 10;

/// For all streams to wake before their common start.
const WAKE_NS: Nanos = 200_000;

#[derive(Default)]
struct StartBarrier {
    state: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    ready: usize,
    start: Option<Nanos>,
    ended: usize,
}

struct End<'a>(&'a StartBarrier);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).ended += 1;
        self.0.changed.notify_all();
    }
}

/// Dropped by a stream that cannot start.
pub(crate) struct Ready<'a> {
    barrier: &'a StartBarrier,
}

impl Ready<'_> {
    pub(crate) fn wait(self, halt: Halt<'_>, time: impl Time) {
        let barrier = self.barrier;
        drop(self);
        let mut state = barrier.state.lock().unwrap_or_else(PoisonError::into_inner);
        let start = loop {
            match state.start {
                Some(start) => break start,
                None => state = barrier.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(state);
        halt.pass_until(start, time);
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        self.barrier.state.lock().unwrap_or_else(PoisonError::into_inner).ready += 1;
        self.barrier.changed.notify_all();
    }
}

impl StartBarrier {
    fn wait_for(&self, streams: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.ready < streams {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn open(&self, start: Nanos) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).start = Some(start);
        self.changed.notify_all();
    }

    fn watch(&self, streams: usize, time: impl Time, looks: &Looks, look: impl Fn()) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = time.now() + LOOK_NS;
        while state.ended < streams {
            let waited = self.changed.wait_timeout(state, Duration::from_nanos(WATCH_NS));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let now = time.now();
            looks.note(now);
            if now >= next && state.ended < streams {
                next = now + LOOK_NS;
                look();
            }
        }
    }
}

pub(crate) struct PartStreams<'p, S, W, F> {
    pub(crate) sources: &'p mut [S],
    pub(crate) serve: W,
    /// Called by the part's last stream with its last completion's time, unless one failed.
    pub(crate) finish: F,
}

/// Gaps in which nothing of this process ran, and the snapshots before and after.
pub(crate) fn watched<T, S: Send>(
    time: impl Time + Send,
    look: impl Fn() -> S + Send,
    work: impl FnOnce() -> T,
) -> (T, Option<(Gaps, S, S)>) {
    let barrier = &StartBarrier::default();
    std::thread::scope(|scope| {
        let watch = move || {
            let (before, looks) = (look(), Looks::from(time.now()));
            // Gaps are detected from now on.
            drop(Ready { barrier });
            barrier.watch(1, time, &looks, || {});
            (looks.gaps(), before, look())
        };
        let watcher =
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, watch);
        if watcher.is_ok() {
            barrier.wait_for(1);
        }
        let end = End(barrier);
        let done = work();
        drop(end);
        // Without a thread, nothing is watched.
        let seen = watcher
            .ok()
            .map(|watcher| watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (done, seen)
    })
}

pub(crate) struct RunOutcome<T> {
    pub(crate) began: Nanos,
    pub(crate) waited_ns: Nanos,
    pub(crate) ends: Vec<PartEnd<T>>,
    pub(crate) gaps: Gaps,
}

pub(crate) type PartEnd<T> = Result<(Nanos, T)>;

struct Countdown {
    left: usize,
    last: Nanos,
}

/// When all are ready, calls `start` with the earliest start time; it returns when the run began.
/// Then calls `look` until all have ended.
pub(crate) fn run_streams<S, T, W, F>(
    time: impl Time + Send,
    interrupt: &AtomicBool,
    parts: Vec<PartStreams<'_, S, W, F>>,
    options: RunOptions,
    start: impl FnOnce(Nanos) -> Result<Nanos>,
    look: impl Fn(),
) -> Result<RunOutcome<T>>
where
    S: RequestSource,
    T: Send,
    W: Fn(&mut S, Halt<'_>, Ready<'_>) -> Result<Nanos> + Send + Sync,
    F: Fn(Nanos) -> Result<T> + Send + Sync,
{
    let failed: Vec<AtomicBool> = parts.iter().map(|_| AtomicBool::new(false)).collect();
    let failed_of = |part: usize| match options.on_failure {
        OnFailure::EndRun => &failed[0],
        OnFailure::EndPart => &failed[part],
    };
    let (barrier, looks) = (StartBarrier::default(), Looks::from(time.now()));
    std::thread::scope(|scope| {
        let mut workers = Vec::with_capacity(parts.len());
        let mut refused = None;
        for (number, part) in parts.into_iter().enumerate() {
            let PartStreams { sources, serve, finish } = part;
            let work = PartWork {
                serve,
                finish,
                countdown: Mutex::new(Countdown { left: sources.len(), last: 0 }),
                failed: failed_of(number),
                on_interrupt: options.on_interrupt,
            };
            let work = std::sync::Arc::new(work);
            let mut threads = Vec::with_capacity(sources.len());
            for source in sources {
                let (work, barrier) = (work.clone(), &barrier);
                let halt = Halt { interrupt, failed: failed_of(number), looks: &looks };
                let body = move || {
                    let _end = End(barrier);
                    work.stream(source, halt, Ready { barrier }, time)
                };
                match spawn(scope, body) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        refused.get_or_insert_with(|| refused_thread(&error));
                        break;
                    }
                }
            }
            workers.push(threads);
        }
        let streams = workers.iter().map(Vec::len).sum();
        barrier.wait_for(streams);
        let now = time.now();
        let ready = if streams > 1 { now + WAKE_NS } else { now };
        let at = match options.start {
            Start::Now => ready,
            Start::At(then) => then.max(ready),
        };
        let began = match refused.take().map_or_else(|| start(at), Err) {
            Ok(began) => began,
            Err(error) => {
                failed.iter().for_each(|failed| failed.store(true, Ordering::Relaxed));
                refused = Some(error);
                now
            }
        };
        looks.begin(time.now());
        barrier.open(began);
        barrier.watch(streams, time, &looks, look);
        let gaps = looks.gaps();
        let waited_ns = at - ready;
        let ends: Vec<PartEnd<T>> =
            workers.into_iter().map(|threads| part_end(threads, began)).collect();
        match (refused, options.on_failure) {
            (Some(error), _) => Err(error),
            (None, OnFailure::EndPart) => Ok(RunOutcome { began, waited_ns, ends, gaps }),
            (None, OnFailure::EndRun) => {
                let mut errors = Vec::new();
                let mut fine = Vec::new();
                for end in ends {
                    match end {
                        Ok(end) => fine.push(Ok(end)),
                        Err(error) => errors.push(error),
                    }
                }
                first(errors).map_or(Ok(RunOutcome { began, waited_ns, ends: fine, gaps }), Err)
            }
        }
    })
}

struct PartWork<'p, W, F> {
    serve: W,
    finish: F,
    countdown: Mutex<Countdown>,
    failed: &'p AtomicBool,
    on_interrupt: OnInterrupt,
}

impl<W, F> PartWork<'_, W, F> {
    fn stream<S, T>(
        &self,
        source: &mut S,
        halt: Halt<'_>,
        ready: Ready<'_>,
        time: impl Time,
    ) -> Result<(Nanos, Option<T>)>
    where
        W: Fn(&mut S, Halt<'_>, Ready<'_>) -> Result<Nanos>,
        F: Fn(Nanos) -> Result<T>,
    {
        let served = match (self.serve)(source, halt, ready) {
            // The failure of another stream ends this one with the same error.
            Err(Error::Interrupted)
                if self.on_interrupt == OnInterrupt::EndRun
                    && !self.failed.load(Ordering::Relaxed) =>
            {
                Ok(time.now())
            }
            served => served,
        };
        let end = served.and_then(|last| {
            let part_last = {
                let mut countdown = self.countdown.lock().unwrap_or_else(PoisonError::into_inner);
                countdown.left -= 1;
                countdown.last = countdown.last.max(last);
                (countdown.left == 0).then_some(countdown.last)
            };
            Ok((last, part_last.map(&self.finish).transpose()?))
        });
        end.inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }
}

type StreamThread<'s, T> = std::thread::ScopedJoinHandle<'s, Result<(Nanos, Option<T>)>>;

fn part_end<T>(threads: Vec<StreamThread<'_, T>>, began: Nanos) -> PartEnd<T> {
    let (mut last, mut finished, mut errors) = (began, None, Vec::new());
    for thread in threads {
        match thread.join() {
            Ok(Ok((end, result))) => {
                last = last.max(end);
                finished = finished.or(result);
            }
            Ok(Err(error)) => errors.push(error),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    match (first(errors), finished) {
        (Some(error), _) => Err(error),
        (None, Some(finished)) => Ok((last, finished)),
        (None, None) => Err(Error::Unsupported("a part of the run had nothing to do".into())),
    }
}

/// A cause comes before `Interrupted`, which the other streams return.
fn first(mut errors: Vec<Error>) -> Option<Error> {
    errors.sort_by_key(|error| matches!(error, Error::Interrupted));
    errors.into_iter().next()
}
