//! Implements [`RequestSource`].

use super::FioStream;
use crate::fio::run::core::Issue;
use crate::fio::run::verify::repeat;
use machine::{Completion, Nanos, Next, Request, RequestSource, Stability};

impl RequestSource for FioStream {
    fn depth(&self) -> u32 {
        self.core.stream.depth()
    }

    fn max_request(&self) -> u32 {
        self.core.stream.max_request()
    }

    fn writes(&self) -> bool {
        self.core.stream.writes()
    }

    #[inline(always)]
    fn sync_due(&self) -> Option<Stability> {
        self.core.due.map(|(what, _)| what)
    }

    fn sync_target(&self) -> Option<u32> {
        self.core.due.and_then(|(_, file)| file)
    }

    fn synced(&mut self, began: Nanos, ended: Nanos) {
        let Some(what) = self.core.synced(began, ended) else { return };
        self.filters
            .iter_mut()
            .for_each(|filter| filter.synced(&mut self.core, what, began, ended));
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        self.core.stream.fill_buffers(buffers);
    }

    fn begin(&mut self, now: Nanos) {
        self.starts = now + self.delay;
        if self.delay == 0 {
            self.start(now);
        }
    }

    #[inline(always)]
    fn next(&mut self, now: Nanos) -> Next {
        match self.next_request(now) {
            Next::Done => self.at_end(now),
            next => next,
        }
    }

    #[inline(always)]
    fn gives_priorities(&self) -> bool {
        self.core.gives_priorities
    }

    fn priority(&self, slot: u32) -> u16 {
        // Reads of the verification are recorded as such.
        if self.core.reads_back { 0 } else { self.core.slots[slot as usize].given }
    }

    #[inline(always)]
    fn times_submission(&self) -> bool {
        self.core.submissions.is_some()
    }

    #[inline(always)]
    fn submitted(&mut self, now: Nanos) {
        self.core.submitted(now);
    }

    #[inline(always)]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        if self.core.reads_back {
            self.filters.iter_mut().for_each(|filter| filter.read_back(completion, now));
            return;
        }
        let (whole, done) = self.core.complete(completion, now);
        if !self.filters_each {
            return;
        }
        for filter in &mut self.filters {
            filter.completed(&mut self.core, completion.slot, whole, done.as_ref());
        }
        self.announce();
    }

    fn failed(&mut self, completion: Completion, now: Nanos) -> bool {
        let tolerated = self.core.failed(completion, now);
        if tolerated {
            for filter in &mut self.filters {
                filter.completed(&mut self.core, completion.slot, true, None);
            }
        } else {
            self.core.fails = true;
            self.announce();
        }
        tolerated
    }

    #[inline(always)]
    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        if self.core.pattern.is_empty() {
            self.core.stream.fill(request, buffer);
        } else {
            repeat(&self.core.pattern, buffer);
        }
        self.filters.iter_mut().for_each(|filter| filter.fill(request, buffer));
    }

    fn checks(&self) -> bool {
        self.core.checks
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        for filter in &mut self.filters {
            filter.check(&mut self.core, slot, data);
        }
        self.announce();
    }
}

impl FioStream {
    #[inline(always)]
    fn next_request(&mut self, now: Nanos) -> Next {
        self.core.end_of_completions();
        if !self.begun {
            if now < self.starts {
                return Next::WaitUntil(self.starts);
            }
            self.start(now);
        }
        if (self.filters_each || self.core.passed >= self.core.pass_bytes)
            && let Some(next) = self.held(now)
        {
            return next;
        }
        let next = self.core.next(now);
        match next {
            Next::Issue(request) | Next::Discard(request) => {
                if self.filters_each {
                    self.issued(request, now);
                }
            }
            idle => self.idle(idle),
        }
        next
    }

    fn issued(&mut self, request: Request, now: Nanos) {
        let side = usize::from(self.core.slots[request.slot as usize].side);
        let issue = Issue { request, side, now };
        for filter in &mut self.filters {
            filter.issued(&mut self.core, &issue);
        }
    }

    fn idle(&mut self, next: Next) {
        if std::mem::take(&mut self.core.is_full) {
            self.leave(true);
            return;
        }
        self.core.end_of_row();
        self.filters.iter_mut().for_each(|filter| filter.idle(next));
        if let Next::Done = next {
            // A stream that was ended from outside has not made all of its requests.
            self.leave(!self.core.ended);
        }
    }

    fn held(&mut self, now: Nanos) -> Option<Next> {
        let mut filters = self.filters.iter_mut();
        let next = filters.find_map(|filter| filter.before(&mut self.core, now))?;
        if self.core.leaves {
            self.leave(true);
        }
        self.core.end_of_row();
        if let Next::Done = next {
            self.leave(false);
        }
        Some(next)
    }

    #[cold]
    fn at_end(&mut self, now: Nanos) -> Next {
        if let Some(due) = self.core.wait_for_rest(now) {
            return Next::WaitUntil(due);
        }
        if self.is_clocked {
            self.core.lasts_until(self.core.stream.lasted_until());
        }
        let owed = self.filters.iter_mut().find_map(|filter| filter.owes(&self.core));
        self.core.due = owed.map(|what| (what, None));
        if self.core.due.is_none() {
            return Next::Done;
        }
        self.core.between_passes = true;
        Next::WaitUntil(now)
    }
}
