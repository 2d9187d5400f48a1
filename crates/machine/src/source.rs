//! The two halves of a conversation: a source issues requests, a machine completes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nanoseconds, on the machine's own clock where it is a point in time.
pub type Nanos = u64;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Data comes from the target.
    Read,
    /// Data goes to the target.
    Write,
}

/// One I/O request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Read or write.
    pub op: Op,
    /// Which of the part's targets, by number ([`crate::Part::targets`]); 0 where there is one.
    pub target: u32,
    /// Byte offset in the target.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Which of the source's outstanding requests this is, below [`RequestSource::depth`]; it names the buffer too.
    pub slot: u32,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot of the request that ended.
    pub slot: u32,
    /// Bytes done; below zero a failure, by the negated number that fio gives it, which is Linux's.
    pub result: i32,
}

/// What a source does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Issue this request now, then ask again.
    Issue(Request),
    /// Give the bytes of this request, a write that moves no data, back to the target (discard), and wait for it: it
    /// completes before the source is asked again. A machine that cannot fails the run.
    Discard(Request),
    /// Nothing before this point in time (a rate limit, a think time); completions are still taken.
    WaitUntil(Nanos),
    /// Nothing before a completion.
    WaitForCompletion,
    /// Nothing more, and nothing in flight.
    Done,
}

/// What is to be on stable storage, or out of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// What reading the data back needs (`fdatasync`).
    Data,
    /// The file's times and other metadata too (`fsync`).
    File,
    /// Nothing: what need not be written is dropped from the cache, so that the next pass reads it anew.
    Uncached,
}

/// The unit that asks: a state machine that keeps its requests outstanding and issues the next on each completion.
///
/// The machine owns the loop, the clock and the buffers. All methods are on the hot path and are
/// called with static dispatch.
pub trait RequestSource: Send {
    /// The most requests outstanding at any time; slots are `0..depth`.
    fn depth(&self) -> u32;

    /// The largest request in bytes; every slot has a buffer at least this long.
    fn max_request(&self) -> u32;

    /// Whether any request may be a write.
    fn writes(&self) -> bool;

    /// Whether everything written so far is to be brought to stable storage, or out of the cache, before anything else is asked. The
    /// machine looks after it took completions, and answers with [`RequestSource::synced`].
    #[inline(always)]
    fn sync_due(&self) -> Option<Stability> {
        None
    }

    /// What [`RequestSource::sync_due`] asked for was done, from `began` to `ended`.
    fn synced(&mut self, _began: Nanos, _ended: Nanos) {}

    /// Fills the buffers of a writer once, before the run. Where a writer has one request outstanding, its writes walk through 256 KiB of buffers
    /// at least before one comes again. Machines without data never call it.
    fn fill_buffers(&mut self, _buffers: &mut [u8]) {}

    /// Called once, when all sources of a run are ready, just before the first [`RequestSource::next`].
    fn begin(&mut self, now: Nanos);

    /// What to do now.
    fn next(&mut self, now: Nanos) -> Next;

    /// The request to be issued now, where that alone is the answer; `None`: ask [`RequestSource::next`]. A machine whose loop asks this first has a
    /// shorter way for nearly all requests.
    #[inline(always)]
    fn next_at_once(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    /// Whether [`RequestSource::submitted`] is wanted. A machine that submits in a call of its own then makes that
    /// call and the wait for completions two, so that it can tell when the first returned.
    #[inline(always)]
    fn times_submission(&self) -> bool {
        false
    }

    /// Whether [`RequestSource::priority`] is wanted for each request.
    #[inline(always)]
    fn gives_priorities(&self) -> bool {
        false
    }

    /// The priority of the request that is about to be issued in this slot ([`crate::IoPriority::bits`]); 0: that of the part. A machine whose calls
    /// carry none never asks.
    fn priority(&self, _slot: u32) -> u16 {
        0
    }

    /// All requests issued so far are with the machine. `now` is when the call that gave them returned. Machines whose
    /// calls wait for the request never call it.
    #[inline(always)]
    fn submitted(&mut self, _now: Nanos) {}

    /// A request ended. `now` is when the program learned of it.
    fn complete(&mut self, completion: Completion, now: Nanos);

    /// A request failed, or did less than it was asked. `true`: the source counted it, its slot is free, and the run goes on without
    /// [`RequestSource::complete`]. `false`: the run of this source ends with the error.
    #[cold]
    fn failed(&mut self, _completion: Completion, _now: Nanos) -> bool {
        false
    }

    /// The request to be issued now in slot 0, where that is the whole answer and no other is outstanding; `None`: ask [`RequestSource::next`].
    /// A machine that waits in the call of each request may ask this first; the answer to such a request is [`RequestSource::complete_alone`],
    /// so that a source need not keep what the caller keeps.
    #[inline(always)]
    fn next_alone(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    /// All of a request of [`RequestSource::next_alone`], which was issued at `since`, was done. `now` is when the program learned of it.
    #[inline(always)]
    fn complete_alone(&mut self, _request: &Request, _since: Nanos, _now: Nanos) {}

    /// Puts data into the buffer of a write about to be issued. Machines without data never call it.
    fn fill(&mut self, request: &Request, buffer: &mut [u8]);

    /// Whether [`RequestSource::check`] wants the data of reads.
    fn checks(&self) -> bool {
        false
    }

    /// Looks at the data of a read that ended well, before [`RequestSource::complete`] or [`RequestSource::complete_alone`].
    fn check(&mut self, _slot: u32, _data: &[u8]) {}
}
