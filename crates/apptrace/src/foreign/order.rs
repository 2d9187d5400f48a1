//! Sorts requests by their start, within a window.

use super::{ForeignError, Result};
use crate::{Event, Request};
use machine::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const WINDOW: usize = 1 << 16;

struct Waiting {
    order: Reverse<(Nanos, u64)>,
    request: Request,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

/// Files and threads pass at once, so before their requests.
pub(super) struct Ordered<I> {
    from: I,
    waiting: BinaryHeap<Waiting>,
    other: VecDeque<Event>,
    taken: u64,
    began: Option<Nanos>,
    last: Nanos,
    ended: bool,
    failed: Option<ForeignError>,
}

impl<I> Ordered<I> {
    pub(super) fn new(from: I) -> Ordered<I> {
        Ordered {
            from,
            waiting: BinaryHeap::new(),
            other: VecDeque::new(),
            taken: 0,
            began: None,
            last: 0,
            ended: false,
            failed: None,
        }
    }
}

impl<I: Iterator<Item = Result<Event>>> Iterator for Ordered<I> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended && self.other.is_empty() && self.waiting.len() <= WINDOW {
            match self.from.next() {
                Some(Ok(Event::Request(request))) => {
                    let order = Reverse((request.at_ns, self.taken));
                    self.taken += 1;
                    self.waiting.push(Waiting { order, request });
                }
                Some(Ok(event)) => self.other.push_back(event),
                end => {
                    self.ended = true;
                    self.failed = end.and_then(Result::err);
                }
            }
        }
        // Nobody uses half of a faulty trace.
        if let Some(error) = self.failed.take() {
            self.waiting.clear();
            self.other.clear();
            return Some(Err(error));
        }
        if let Some(event) = self.other.pop_front() {
            return Some(Ok(event));
        }
        let Waiting { mut request, .. } = self.waiting.pop()?;
        if request.at_ns < self.last {
            let late = machine::units::show_time((self.last - request.at_ns) as f64);
            self.ended = true;
            self.waiting.clear();
            return Some(Err(ForeignError::Whole(format!(
                "a request starts {late} before one that comes {WINDOW} requests earlier; sort the trace by time"
            ))));
        }
        self.last = request.at_ns;
        request.at_ns -= *self.began.get_or_insert(request.at_ns);
        Some(Ok(Event::Request(request)))
    }
}
