//! Requests through the file-system cache.

use super::state::Reader;
use super::{Owner, Request, World};
use crate::cpu::Work;
use crate::event::Event;
use machine::{Hint, Nanos, Op};

impl World {
    pub(super) fn issue_buffered(&mut self, number: u32) {
        let request = self.requests[number];
        if request.op == Op::Read {
            self.read_ahead(&request);
        }
        let cost = if request.op == Op::Read { self.costs.read } else { self.costs.write };
        let calls = self.costs.calls(self.more_calls(&request));
        let at = self.cpu.work_of(request.source, Work::Program, self.now(), cost + calls);
        self.cpu.work(Work::Uncharged, self.now(), self.costs.uncharged);
        self.kernel.at(at, Event::Step(number));
    }

    pub(super) fn step(&mut self, number: u32) {
        let request = self.requests[number];
        let end = request.offset + u64::from(request.len);
        if request.at >= end {
            self.copied(number);
            return;
        }
        let unit = request.at / self.fs.unit_bytes;
        let unit_end = ((unit + 1) * self.fs.unit_bytes).min(end);
        let copied = match request.op {
            Op::Read => self.pages_present(number, unit, request.at, unit_end),
            Op::Write => self.pages_writable(&request, number, unit, unit_end),
        };
        if copied {
            let cost = self.copy_cost(&request, unit, unit_end);
            self.requests[number].at = unit_end;
            let at = self.cpu.work_of(request.source, Work::Program, self.now(), cost);
            self.kernel.at(at, Event::Step(number));
        }
    }

    fn copy_cost(&mut self, request: &Request, unit: u64, end: u64) -> Nanos {
        let (bytes, unit_bytes) = (end - request.at, self.fs.unit_bytes);
        match request.op {
            Op::Read => {
                let (pages, page) =
                    (self.cache.pages(unit, request.at, end), self.cache.page_bytes());
                let entry = self.cache.entry(unit);
                let fresh = u64::from((entry.fresh & pages).count_ones()) * page;
                entry.fresh &= !pages;
                let large = u64::from(request.len) >= unit_bytes;
                let first =
                    self.costs.first_read_fs + if large { self.costs.large_read_fs } else { 0 };
                (bytes * self.costs.read_fs + fresh * first) / super::FS
            }
            Op::Write => {
                let before = request.at - request.offset;
                let beyond = (before + bytes).saturating_sub(unit_bytes.max(before));
                (bytes * self.costs.write_fs + beyond * self.costs.large_write_fs) / super::FS
            }
        }
    }

    /// If `false`, the request resumes when the pages are in memory.
    fn pages_present(&mut self, number: u32, unit: u64, at: u64, end: u64) -> bool {
        let wanted = self.cache.pages(unit, at, end);
        let entry = self.cache.entry(unit);
        if entry.reading & wanted != 0 {
            entry.waiters.push(number);
            return false;
        }
        let missing = wanted & !entry.valid;
        if missing == 0 {
            return true;
        }
        entry.waiters.push(number);
        self.fetch(unit, missing, self.requests[number].source, false);
        false
    }

    /// Partial pages are read first; writers above the dirty limit wait.
    fn pages_writable(&mut self, request: &Request, number: u32, unit: u64, end: u64) -> bool {
        let (page, at, valid) =
            (self.cache.page_bytes(), request.at, self.files.of(request.offset).valid);
        let mut partial = 0;
        if !at.is_multiple_of(page) && at / page * page < valid {
            partial |= self.cache.pages(unit, at, at + 1);
        }
        if !end.is_multiple_of(page) && end < valid {
            partial |= self.cache.pages(unit, end - 1, end);
        }
        let wanted = self.cache.pages(unit, at, end);
        let entry = self.cache.entry(unit);
        if entry.reading & wanted != 0 {
            entry.waiters.push(number);
            return false;
        }
        let missing = partial & !entry.valid;
        if missing != 0 {
            entry.waiters.push(number);
            // One page at a time: the two ends of a request are two faults.
            self.fetch(unit, missing & missing.wrapping_neg(), request.source, false);
            return false;
        }
        if self.writes_through(request) {
            self.cache.entry(unit).valid |= wanted;
        } else {
            let fresh = u64::from((wanted & !self.cache.entry(unit).dirty).count_ones()) * page;
            if fresh > 0 && self.cache.dirty_bytes + fresh > self.fs.dirty_bytes {
                self.throttle(number);
                return false;
            }
            self.cache.dirty(unit, wanted);
            self.files.of_mut(at).dirty += fresh;
            self.dirtied(request);
        }
        let file = self.files.of_mut(at);
        file.valid = file.valid.max(end);
        true
    }

    fn fetch(&mut self, unit: u64, pages: u64, source: u32, ahead: bool) {
        let page = self.cache.page_bytes();
        let (first, last) =
            (u64::from(pages.trailing_zeros()), 64 - u64::from(pages.leading_zeros()));
        let span = (u64::MAX >> (64 - (last - first))) << first;
        let offset = unit * self.fs.unit_bytes + first * page;
        let bytes = ((last - first) * page).min(self.files.of(offset).end() - offset);
        self.cache.entry(unit).reading |= span;
        let (before, _) = self.costs.paging(bytes);
        let at = if ahead {
            self.cpu.work(Work::System, self.now(), before)
        } else {
            self.cpu.work_of(source, Work::Program, self.now(), before)
        };
        let ahead = ahead.then_some(source);
        self.transfer(at, Owner::Unit { unit, pages: span, ahead }, Op::Read, offset, bytes, false);
    }

    pub(super) fn unit_read(&mut self, unit: u64, pages: u64, ahead: Option<u32>, bytes: u64) {
        let (_, after) = self.costs.paging(bytes);
        let at = self.cpu.work(Work::System, self.now(), after);
        let entry = self.cache.entry(unit);
        entry.reading &= !pages;
        entry.valid |= pages;
        entry.fresh |= pages;
        let waiters = std::mem::take(&mut entry.waiters);
        for &number in &waiters {
            self.kernel.at(at, Event::Step(number));
        }
        if let Some(source) = ahead {
            self.writer.readers[source as usize].reading -= 1;
            self.read_ahead_next(source);
        }
    }

    fn read_ahead(&mut self, request: &Request) {
        let (source, offset, end) =
            (request.source, request.offset, request.offset + u64::from(request.len));
        let hint = self.accesses[request.part as usize].hint;
        if self.writer.readers.len() <= source as usize {
            self.writer.readers.resize(source as usize + 1, Reader::default());
        }
        let reader = &mut self.writer.readers[source as usize];
        reader.in_order = if offset == reader.end { reader.in_order + 1 } else { 1 };
        reader.end = end;
        if hint == Hint::Random || reader.in_order < self.fs.sequential_requests {
            return;
        }
        let factor = if hint == Hint::Sequential { self.fs.sequential_hint_factor } else { 1 };
        reader.window = self.fs.read_ahead_units * factor;
        let unit = (end - 1) / self.fs.unit_bytes;
        let limit = self.files.of(offset).end().div_ceil(self.fs.unit_bytes);
        for ahead in unit + 1..=(unit + u64::from(reader.window)).min(limit.saturating_sub(1)) {
            if !reader.ahead.contains(&ahead)
                && self.cache.get(ahead).is_none_or(|unit| unit.valid == 0 && unit.reading == 0)
            {
                reader.ahead.push_back(ahead);
            }
        }
        self.read_ahead_next(source);
    }

    fn read_ahead_next(&mut self, source: u32) {
        loop {
            let reader = &mut self.writer.readers[source as usize];
            if reader.reading >= reader.window {
                return;
            }
            let Some(unit) = reader.ahead.pop_front() else { return };
            let start = unit * self.fs.unit_bytes;
            let end = (start + self.fs.unit_bytes).min(self.files.of(start).end());
            let all = self.cache.pages(unit, start, end);
            let entry = self.cache.entry(unit);
            let missing = all & !entry.valid & !entry.reading;
            if missing != 0 {
                self.writer.readers[source as usize].reading += 1;
                self.fetch(unit, missing, source, true);
            }
        }
    }

    fn copied(&mut self, number: u32) {
        let request = self.requests[number];
        if request.op == Op::Read || !self.writes_through(&request) {
            self.kernel.at(self.now(), Event::Deliver(number));
            return;
        }
        let page = self.cache.page_bytes();
        let (start, end) = (
            request.offset / page * page,
            (request.offset + u64::from(request.len)).div_ceil(page) * page,
        );
        let bytes = end.min(self.files.of(start).end()) - start;
        let at = self.cpu.work_of(
            request.source,
            Work::Program,
            self.now(),
            self.costs.transfer(bytes).0,
        );
        self.transfer(at, Owner::Through(number), Op::Write, start, bytes, true);
    }

    pub(super) fn written_through(&mut self, number: u32) {
        let request = self.requests[number];
        let cost = self.costs.transfer(u64::from(request.len)).1;
        let at = self.cpu.work_of(request.source, Work::System, self.now(), cost);
        self.end_durable(at, number, self.fs.write_through_logs);
    }
}
