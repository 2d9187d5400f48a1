use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nanoseconds, on the machine's own clock.
pub type Nanos = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Read,
    Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub op: Op,
    /// Index into [`crate::Part::targets`].
    pub target: u32,
    /// Bytes from the target's start.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Below [`RequestSource::depth`]; also identifies the buffer.
    pub slot: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    pub slot: u32,
    /// Bytes done, or Linux's negative error number.
    pub result: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Issue(Request),
    /// Discard these blocks; completes before the next call, or fails the run.
    Discard(Request),
    /// Completions still arrive.
    WaitUntil(Nanos),
    WaitForCompletion,
    /// Nothing is in flight.
    Done,
}

/// What a sync brings to stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// The data, and what reading it back needs (`fdatasync`).
    Data,
    /// The data, times and other metadata (`fsync`).
    File,
    /// No sync: drops clean pages, so the next pass reads them again.
    Uncached,
    /// No sync: moves this part's dirty pages to the device (`sync_file_range`).
    Moved { how: Writeback, offset: u64, bytes: u64 },
}

/// In this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Writeback {
    /// Waits for pages that are being written.
    pub wait_before: bool,
    /// Begins to write dirty pages.
    pub write: bool,
    pub wait_after: bool,
}

/// Keeps its requests outstanding and issues the next one on each completion.
///
/// The machine owns the loop, the clock and the buffers. All methods are on the hot path.
///
/// ```
/// use machine::{Completion, Nanos, Next, Op, Request, RequestSource};
///
/// struct Reads(u64);
///
/// impl RequestSource for Reads {
///     fn depth(&self) -> u32 {
///         1
///     }
///     fn max_request(&self) -> u32 {
///         4096
///     }
///     fn writes(&self) -> bool {
///         false
///     }
///     fn begin(&mut self, _now: Nanos) {}
///     fn next(&mut self, _now: Nanos) -> Next {
///         if self.0 == 100 {
///             return Next::Done;
///         }
///         let offset = self.0 * 4096;
///         self.0 += 1;
///         Next::Issue(Request { op: Op::Read, target: 0, offset, len: 4096, slot: 0 })
///     }
///     fn complete(&mut self, _completion: Completion, _now: Nanos) {}
///     fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}
/// }
///
/// let Next::Issue(first) = Reads(0).next(0) else { panic!("a request") };
/// assert_eq!((first.offset, first.len), (0, 4096));
/// ```
pub trait RequestSource: Send {
    /// Slots are `0..depth`.
    fn depth(&self) -> u32;

    /// In bytes; also each buffer's length.
    fn max_request(&self) -> u32;

    /// Returns whether any request may be a write.
    fn writes(&self) -> bool;

    /// Returns whether the machine can ask [`RequestSource::outstanding`] instead of remembering
    /// requests.
    #[inline(always)]
    fn keeps_requests(&self) -> bool {
        false
    }

    fn outstanding(&self, _slot: u32) -> Request {
        unreachable!("only sources that keep their requests are asked")
    }

    /// Returns the sync due before the next request. The machine asks after completions, and
    /// answers with [`RequestSource::synced`].
    #[inline(always)]
    fn sync_due(&self) -> Option<Stability> {
        None
    }

    /// Returns `None` for all.
    fn sync_target(&self) -> Option<u32> {
        None
    }

    /// Returns the journal blocks of the due sync or, with a slot, of the durable write just issued
    /// there. `None`: a simulated file system decides; a real one always does.
    fn journal_blocks(&self, _slot: Option<u32>) -> Option<u32> {
        None
    }

    fn synced(&mut self, _began: Nanos, _ended: Nanos) {}

    /// Fills the buffers before the run, only on machines with data. At depth 1 they are 256 KiB or
    /// more, used in turn.
    fn fill_buffers(&mut self, _buffers: &mut [u8]) {}

    /// Called when all sources are ready, just before the first [`RequestSource::next`].
    fn begin(&mut self, now: Nanos);

    fn next(&mut self, now: Nanos) -> Next;

    /// Returns a request on a fast path; after `None`, call [`RequestSource::next`].
    #[inline(always)]
    fn next_fast(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    /// Returns whether the machine calls [`RequestSource::submitted`]: it then submits and waits in
    /// separate calls.
    #[inline(always)]
    fn times_submission(&self) -> bool {
        false
    }

    #[inline(always)]
    fn gives_priorities(&self) -> bool {
        false
    }

    /// Returns [`crate::IoPriority::bits`] of the next request; 0: the part's. Only called if
    /// supported.
    fn priority(&self, _slot: u32) -> u16 {
        0
    }

    /// Reports that all requests so far are submitted; the call returned at `now`. Not used with
    /// blocking calls.
    #[inline(always)]
    fn submitted(&mut self, _now: Nanos) {}

    /// `now`: when it was noticed.
    fn complete(&mut self, completion: Completion, now: Nanos);

    /// Reports a failed or short request. `true`: the source has counted it and freed its slot; the
    /// run continues without [`RequestSource::complete`]. `false` ends the source's run with the
    /// error.
    #[cold]
    fn failed(&mut self, _completion: Completion, _now: Nanos) -> bool {
        false
    }

    /// Returns a request in slot 0 for a blocking call, if no other is outstanding; `None`: call
    /// [`RequestSource::next`]. [`RequestSource::complete_sync`] completes it, so the source need
    /// not store it.
    #[inline(always)]
    fn next_sync(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    #[inline(always)]
    fn complete_sync(&mut self, _request: &Request, _since: Nanos, _now: Nanos) {}

    /// Fills a write's buffer, only on machines with data.
    fn fill(&mut self, request: &Request, buffer: &mut [u8]);

    fn checks(&self) -> bool {
        false
    }

    /// Checks a successful read, before [`RequestSource::complete`].
    fn check(&mut self, _slot: u32, _data: &[u8]) {}
}
