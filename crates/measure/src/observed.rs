//! A stream whose requests something else follows: their intervals, their stages, their data.

use crate::stream::Stream;
use machine::{Completion, Nanos, Next, Request, RequestSource, Stability};
use std::borrow::Borrow;

/// Follows a stream's requests. Whatever it leaves out, the stream does.
pub(crate) trait Observer: Send {
    #[inline(always)]
    fn issued(&mut self, _request: &Request, _now: Nanos) {}

    /// A request ended, perhaps failed or short; the stream has not counted it yet.
    #[inline(always)]
    fn ended(&mut self, _stream: &Stream, _completion: Completion, _now: Nanos) {}

    fn fill_buffers(&mut self, stream: &mut Stream, buffers: &mut [u8]) {
        stream.fill_buffers(buffers);
    }

    #[inline(always)]
    fn fill(&mut self, stream: &mut Stream, request: &Request, buffer: &mut [u8]) {
        stream.fill(request, buffer);
    }

    fn checks(&self, stream: &Stream) -> bool {
        stream.checks()
    }

    fn check(&mut self, stream: &mut Stream, slot: u32, data: &[u8]) {
        stream.check(slot, data);
    }
}

#[derive(Debug)]
pub(crate) struct Observed<O> {
    pub(crate) stream: Stream,
    pub(crate) observer: O,
}

impl<O> Borrow<Stream> for Observed<O> {
    fn borrow(&self) -> &Stream {
        &self.stream
    }
}

/// The only delegation of a stream: a method that is missing here is an error.
#[deny(clippy::missing_trait_methods)]
impl<O: Observer> RequestSource for Observed<O> {
    fn depth(&self) -> u32 {
        self.stream.depth()
    }

    fn max_request(&self) -> u32 {
        self.stream.max_request()
    }

    fn writes(&self) -> bool {
        self.stream.writes()
    }

    #[inline(always)]
    fn keeps_requests(&self) -> bool {
        self.stream.keeps_requests()
    }

    #[inline(always)]
    fn outstanding(&self, slot: u32) -> Request {
        self.stream.outstanding(slot)
    }

    #[inline(always)]
    fn sync_due(&self) -> Option<Stability> {
        self.stream.sync_due()
    }

    fn sync_target(&self) -> Option<u32> {
        self.stream.sync_target()
    }

    fn journal_blocks(&self, slot: Option<u32>) -> Option<u32> {
        self.stream.journal_blocks(slot)
    }

    fn synced(&mut self, began: Nanos, ended: Nanos) {
        self.stream.synced(began, ended);
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        self.observer.fill_buffers(&mut self.stream, buffers);
    }

    fn begin(&mut self, now: Nanos) {
        self.stream.begin(now);
    }

    fn next(&mut self, now: Nanos) -> Next {
        let next = self.stream.next(now);
        if let Next::Issue(request) = &next {
            self.observer.issued(request, now);
        }
        next
    }

    #[inline(always)]
    fn next_fast(&mut self, now: Nanos) -> Option<Request> {
        let request = self.stream.next_fast(now)?;
        self.observer.issued(&request, now);
        Some(request)
    }

    #[inline(always)]
    fn times_submission(&self) -> bool {
        self.stream.times_submission()
    }

    #[inline(always)]
    fn gives_priorities(&self) -> bool {
        self.stream.gives_priorities()
    }

    fn priority(&self, slot: u32) -> u16 {
        self.stream.priority(slot)
    }

    #[inline(always)]
    fn submitted(&mut self, now: Nanos) {
        self.stream.submitted(now);
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.observer.ended(&self.stream, completion, now);
        self.stream.complete(completion, now);
    }

    #[cold]
    fn failed(&mut self, completion: Completion, now: Nanos) -> bool {
        self.observer.ended(&self.stream, completion, now);
        self.stream.failed(completion, now)
    }

    /// `None`: the stream would not store the request, and an observer asks for its times.
    #[inline(always)]
    fn next_sync(&mut self, _now: Nanos) -> Option<Request> {
        None
    }

    #[inline(always)]
    fn complete_sync(&mut self, _request: &Request, _since: Nanos, _now: Nanos) {
        unreachable!("next_sync never issues a request");
    }

    #[inline(always)]
    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        self.observer.fill(&mut self.stream, request, buffer);
    }

    fn checks(&self) -> bool {
        self.observer.checks(&self.stream)
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        self.observer.check(&mut self.stream, slot, data);
    }
}
