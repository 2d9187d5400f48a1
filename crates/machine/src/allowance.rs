//! A limit on all bytes that a program writes.

use crate::{
    Completion, Nanos, Next, Op, Part, Request, RequestSource, Result, TargetFacts, WrappedSource,
};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Checks before the first byte; `u64` is the most that creating the targets writes.
pub type BeforeWrites = Box<dyn Fn(&[TargetFacts], u64) -> Result<()> + Send + Sync>;

/// Checked before a fill and before each write.
///
/// ```
/// let allowance = machine::Allowance::new(Some(1 << 20), Box::new(|_, _| Ok(())));
/// assert!(allowance.take(1 << 20) && !allowance.take(1));
/// assert!(allowance.is_reached() && allowance.left() == 0);
/// ```
pub struct Allowance {
    max: Option<u64>,
    written: AtomicU64,
    reached: AtomicBool,
    before: BeforeWrites,
}

impl fmt::Debug for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (max, written) = (self.max, self.written());
        f.debug_struct("Allowance").field("max", &max).field("written", &written).finish()
    }
}

impl Allowance {
    pub fn new(max: Option<u64>, before: BeforeWrites) -> Allowance {
        let (written, reached) = (AtomicU64::new(0), AtomicBool::new(false));
        Allowance { max, written, reached, before }
    }

    pub fn is_limited(&self) -> bool {
        self.max.is_some()
    }

    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub fn left(&self) -> u64 {
        self.max.map_or(u64::MAX, |max| max.saturating_sub(self.written()))
    }

    /// Returns whether the limit held back a write.
    pub fn is_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    pub fn opening(&self, targets: &[TargetFacts], fill_bytes: u64) -> Result<()> {
        (self.before)(targets, fill_bytes)
    }

    pub fn take(&self, bytes: u64) -> bool {
        let Some(max) = self.max else {
            self.add(bytes);
            return true;
        };
        let more = |written: u64| written.checked_add(bytes).filter(|all| *all <= max);
        let taken = self.written.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if !taken {
            self.reached.store(true, Ordering::Relaxed);
        }
        taken
    }

    /// Counts bytes already written.
    pub fn add(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: u64) {
        self.written.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// A source that ends at the limit.
#[derive(Debug)]
pub struct AllowedSource<'a, S> {
    source: &'a mut S,
    allowance: &'a Allowance,
    in_flight: u32,
}

impl<'a, S: RequestSource> AllowedSource<'a, S> {
    pub fn new(source: &'a mut S, allowance: &'a Allowance) -> Self {
        AllowedSource { source, allowance, in_flight: 0 }
    }

    /// For the largest request.
    fn may_write(&self) -> bool {
        !self.source.writes() || self.allowance.take(u64::from(self.source.max_request()))
    }

    fn settle(&self, request: Option<&Request>) {
        if self.source.writes() {
            let written = request.filter(|one| one.op == Op::Write).map_or(0, |one| one.len);
            self.allowance.give_back(u64::from(self.source.max_request() - written));
        }
    }

    fn end(&self) -> Next {
        if self.in_flight > 0 { Next::WaitForCompletion } else { Next::Done }
    }
}

impl<S: RequestSource> WrappedSource for AllowedSource<'_, S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self.source
    }

    fn inner_mut(&mut self) -> &mut S {
        self.source
    }

    fn next(&mut self, now: Nanos) -> Next {
        if !self.may_write() {
            return self.end();
        }
        let next = self.source.next(now);
        match &next {
            Next::Issue(request) => {
                self.settle(Some(request));
                self.in_flight += 1;
            }
            _ => self.settle(None),
        }
        next
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.in_flight -= 1;
        self.source.complete(completion, now);
    }

    fn failed(&mut self, completion: Completion, now: Nanos) -> bool {
        let counted = self.source.failed(completion, now);
        self.in_flight -= u32::from(counted);
        counted
    }
}

/// # Errors
/// As `run`; [`crate::Error::Interrupted`] at the limit.
pub fn run_allowed<T, S: RequestSource, R>(
    allowance: &Allowance,
    parts: &mut [Part<'_, T, S>],
    run: impl FnOnce(&mut [Part<'_, T, AllowedSource<'_, S>>]) -> Result<R>,
) -> Result<R> {
    let least = parts
        .iter()
        .flat_map(|part| part.sources.iter())
        .filter(|source| source.writes())
        .map(|source| u64::from(source.max_request()))
        .min();
    if least.is_some_and(|least| allowance.left() < least) {
        allowance.reached.store(true, Ordering::Relaxed);
        return Err(crate::Error::Interrupted);
    }
    let mut sources: Vec<Vec<AllowedSource<'_, S>>> = Vec::with_capacity(parts.len());
    let mut rest = Vec::with_capacity(parts.len());
    for part in parts {
        let Part { targets, access, buffering, sources: own, scheduling } = part;
        sources.push(own.iter_mut().map(|one| AllowedSource::new(one, allowance)).collect());
        rest.push((targets.clone(), access.clone(), buffering.clone(), *scheduling));
    }
    let mut limited: Vec<_> = rest
        .into_iter()
        .zip(&mut sources)
        .map(|((targets, access, buffering, scheduling), sources)| Part {
            targets,
            access,
            buffering,
            sources,
            scheduling,
        })
        .collect();
    run(&mut limited)
}
