//! The interface between request sources and machines: a source issues requests, a machine
//! completes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nanoseconds; points in time are on the machine's own clock.
pub type Nanos = u64;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// From the target.
    Read,
    /// To the target.
    Write,
}

/// One I/O request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub op: Op,
    /// Index into the part's targets ([`crate::Part::targets`]); 0 for a single target.
    pub target: u32,
    /// Byte offset in the target.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
    /// Slot of the request in its source, below [`RequestSource::depth`]; also identifies the
    /// buffer.
    pub slot: u32,
}

/// The completion of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Slot of the completed request.
    pub slot: u32,
    /// Bytes done; below zero a failure, by the negated number that fio gives it, which is Linux's.
    pub result: i32,
}

/// The next action of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Issue this request now, then call again.
    Issue(Request),
    /// Discard the bytes of this request (a write without data) and wait for it: it completes
    /// before the next call. A machine without discard fails the run.
    Discard(Request),
    /// Issue nothing before this point in time (a rate limit, a think time); completions are still
    /// processed.
    WaitUntil(Nanos),
    /// Issue nothing before a completion.
    WaitForCompletion,
    /// Finished, with nothing in flight.
    Done,
}

/// Kind of synchronization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// The data and what reading it back needs (`fdatasync`).
    Data,
    /// Also the file's times and other metadata (`fsync`).
    File,
    /// No sync: clean pages are dropped from the cache, so the next pass reads them again.
    Uncached,
}

/// A source of requests: a state machine that keeps its requests outstanding and issues the next
/// one on each completion.
///
/// The machine owns the loop, the clock and the buffers. All methods are on the hot path and are
/// called with static dispatch.
pub trait RequestSource: Send {
    /// Maximum number of requests outstanding; slots are `0..depth`.
    fn depth(&self) -> u32;

    /// Maximum request size in bytes; every slot has a buffer at least this long.
    fn max_request(&self) -> u32;

    /// Whether any request may be a write.
    fn writes(&self) -> bool;

    /// A sync that must happen before the next request. The machine checks after it has processed
    /// completions, and answers with [`RequestSource::synced`].
    #[inline(always)]
    fn sync_due(&self) -> Option<Stability> {
        None
    }

    /// Reports that the sync requested by [`RequestSource::sync_due`] ran from `began` to `ended`.
    fn synced(&mut self, _began: Nanos, _ended: Nanos) {}

    /// Fills the buffers of a writer once, before the run. A writer with one request outstanding
    /// cycles through at least 256 KiB of buffers. Machines without data never call it.
    fn fill_buffers(&mut self, _buffers: &mut [u8]) {}

    /// Called once when all sources of a run are ready, just before the first
    /// [`RequestSource::next`].
    fn begin(&mut self, now: Nanos);

    /// The next action.
    fn next(&mut self, now: Nanos) -> Next;

    /// Fast path: the request to issue now, if that is the whole answer; `None`: call
    /// [`RequestSource::next`]. A machine whose loop calls this first saves time for almost all
    /// requests.
    #[inline(always)]
    fn next_fast(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    /// Whether to call [`RequestSource::submitted`]. The machine then submits and waits in separate
    /// calls, so that it knows when the first returned.
    #[inline(always)]
    fn times_submission(&self) -> bool {
        false
    }

    /// Whether to call [`RequestSource::priority`] for each request.
    #[inline(always)]
    fn gives_priorities(&self) -> bool {
        false
    }

    /// The I/O priority of the request about to be issued in this slot
    /// ([`crate::IoPriority::bits`]); 0: that of the part. Machines whose calls have no priority
    /// never call it.
    fn priority(&self, _slot: u32) -> u16 {
        0
    }

    /// Reports that all requests issued so far have been submitted; the call returned at `now`.
    /// Machines with blocking calls never call it.
    #[inline(always)]
    fn submitted(&mut self, _now: Nanos) {}

    /// Reports a completion. `now` is when the program noticed it.
    fn complete(&mut self, completion: Completion, now: Nanos);

    /// Reports a failed or short request. Returns `true` if the source has counted it and freed its
    /// slot: the run continues without [`RequestSource::complete`]. `false` ends this source's run
    /// with the error.
    #[cold]
    fn failed(&mut self, _completion: Completion, _now: Nanos) -> bool {
        false
    }

    /// Fast path for blocking calls: the request to issue now in slot 0, if that is the whole
    /// answer and no other request is outstanding; `None`: call [`RequestSource::next`]. Such a
    /// request completes with [`RequestSource::complete_sync`], so the source need not store what
    /// the caller knows.
    #[inline(always)]
    fn next_sync(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    /// Reports the full completion of a request from [`RequestSource::next_sync`], issued at
    /// `since`. `now` is when the program noticed it.
    #[inline(always)]
    fn complete_sync(&mut self, _request: &Request, _since: Nanos, _now: Nanos) {}

    /// Puts data into the buffer of a write about to be issued. Machines without data never call
    /// it.
    fn fill(&mut self, request: &Request, buffer: &mut [u8]);

    /// Whether to call [`RequestSource::check`] with the data of reads.
    fn checks(&self) -> bool {
        false
    }

    /// Checks the data of a successful read, before [`RequestSource::complete`] or
    /// [`RequestSource::complete_sync`].
    fn check(&mut self, _slot: u32, _data: &[u8]) {}
}
