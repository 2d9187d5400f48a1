use crate::stream::Stream;
use machine::{Completion, Nanos, Next, Request, RequestSource, WrappedSource};
use std::borrow::Borrow;

pub(crate) trait Observer: Send {
    #[inline(always)]
    fn issued(&mut self, _request: &Request, _now: Nanos) {}

    /// The request may have failed; the stream has not counted it yet.
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

impl<O: Observer> WrappedSource for Observed<O> {
    type Inner = Stream;

    fn inner(&self) -> &Stream {
        &self.stream
    }

    fn inner_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        self.observer.fill_buffers(&mut self.stream, buffers);
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

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.observer.ended(&self.stream, completion, now);
        self.stream.complete(completion, now);
    }

    #[cold]
    fn failed(&mut self, completion: Completion, now: Nanos) -> bool {
        self.observer.ended(&self.stream, completion, now);
        self.stream.failed(completion, now)
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
