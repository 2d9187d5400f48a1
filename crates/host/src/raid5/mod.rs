//! A partial write reads old data and parity or the rest of the row, whichever is fewer. Without a
//! journal, a kill between data and parity leaves a row with wrong parity.

mod layout;
mod rows;

pub(crate) use layout::Layout;
pub(crate) use rows::BusyRows;

use crate::parity::Vectors;
use crate::reaping::PartCounters;
use crate::session::{Session, Time, Wait};
use layout::{Band, Piece};
use machine::{Completion, Nanos, Op, Raid5, Request, Stability};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;

const RETRY_NS: Nanos = 50_000;

/// Scratch pieces are aligned, for direct I/O.
const PAGE: u64 = 4096;

impl Layout {
    pub(crate) fn scratch_bytes(self, max: u32) -> u64 {
        let (len, members) = (u64::from(max), u64::from(self.members));
        let rows = len / self.row_bytes() + 2;
        // At most four bands of the first and last row are incomplete; each row between has its
        // parity.
        let incomplete = members * (len.min(2 * self.chunk) + 4 * PAGE);
        let whole = rows * self.chunk.next_multiple_of(PAGE);
        // For a failed member's data, the first other part is read into the buffer itself.
        let failed = (members - 2) * (len.min(rows * self.chunk) + (rows + 2) * PAGE);
        // A rebuild reads a piece from each of the others.
        let rebuilt = (members - 2) * (len + PAGE);
        (incomplete + whole).max(failed).max(rebuilt).next_multiple_of(PAGE)
    }

    pub(crate) fn max_pieces(self, max: u32) -> u64 {
        (u64::from(max) / self.row_bytes() + 4) * u64::from(self.members)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Whole,
    Modify,
    Rest,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Rows,
    First,
    Last,
}

#[derive(Clone)]
struct Work {
    request: Request,
    at: *mut u8,
    phase: Phase,
    left: u32,
    expected: u64,
    moved: u64,
    error: i32,
    rows: Range<u64>,
}

pub(crate) struct ParitySession<'a, S, T> {
    inner: S,
    layout: Layout,
    how: Raid5,
    time: T,
    vectors: Vectors,
    busy: &'a BusyRows,
    scratch: *mut u8,
    stride: u64,
    work: Box<[Work]>,
    known: Vec<u32>,
    waiting: VecDeque<u32>,
    tally: &'a PartCounters,
    parity_ns: Nanos,
    parity_bytes: u64,
}

impl<S, T> Drop for ParitySession<'_, S, T> {
    fn drop(&mut self) {
        self.tally.note_parity(self.parity_ns, self.parity_bytes);
    }
}

pub(crate) struct Setup<'a, T> {
    pub(crate) layout: Layout,
    pub(crate) how: Raid5,
    pub(crate) busy: &'a BusyRows,
    pub(crate) tally: &'a PartCounters,
    pub(crate) time: T,
    pub(crate) depth: u32,
    /// [`Layout::scratch_bytes`] for each slot; outlives the session.
    pub(crate) scratch: (*mut u8, u64),
}

impl<'a, S: Session, T: Time> ParitySession<'a, S, T> {
    pub(crate) fn new(inner: S, setup: Setup<'a, T>) -> Self {
        let Setup { layout, how, busy, tally, time, depth, scratch: (scratch, stride) } = setup;
        let none = Work {
            request: Request { op: Op::Read, target: 0, offset: 0, len: 0, slot: 0 },
            at: std::ptr::null_mut(),
            phase: Phase::Last,
            left: 0,
            expected: 0,
            moved: 0,
            error: 0,
            rows: 0..0,
        };
        ParitySession {
            inner,
            layout,
            how,
            time,
            vectors: Vectors::widest(),
            busy,
            scratch,
            stride,
            work: vec![none; depth as usize].into_boxed_slice(),
            known: Vec::with_capacity(depth as usize),
            waiting: VecDeque::with_capacity(depth as usize),
            tally,
            parity_ns: 0,
            parity_bytes: 0,
        }
    }

    fn rows_of(&self, request: &Request) -> Range<u64> {
        let Request { op, offset, len, .. } = *request;
        if self.how.rebuild {
            return offset / self.layout.chunk
                ..(offset + u64::from(len)).div_ceil(self.layout.chunk);
        }
        let lost = |piece: Piece| Some(piece.member) == self.how.failed;
        if op == Op::Write || self.how.failed.is_some() && self.layout.pieces(offset, len).any(lost)
        {
            return self.layout.rows(offset, len);
        }
        0..0
    }

    fn begin(&mut self, slot: u32) {
        let Work { request, at, .. } = self.work[slot as usize];
        let mut scratch = self.scratch_of(slot);
        let first = match (self.how.rebuild, request.op) {
            (true, Op::Read) => {
                let failed = self.how.failed.unwrap_or(0);
                self.piece(slot, Op::Read, failed, request.offset, (at, request.len));
                false
            }
            (true, Op::Write) => {
                let failed = self.how.failed.unwrap_or(0);
                let others = (0..self.layout.members).filter(move |&member| member != failed);
                self.read_parts(slot, others, request.offset, (at, request.len), &mut scratch);
                true
            }
            (false, Op::Read) => self.read(slot, &mut scratch),
            (false, Op::Write) => self.read_for_parity(slot, &mut scratch),
        };
        if first {
            self.work[slot as usize].phase = Phase::First;
        } else if request.op == Op::Write && !self.how.rebuild {
            self.write(slot);
        }
    }

    fn read(&mut self, slot: u32, scratch: &mut Scratch) -> bool {
        let Work { request, at, .. } = self.work[slot as usize];
        for piece in self.layout.pieces(request.offset, request.len) {
            if Some(piece.member) != self.how.failed {
                // SAFETY: the piece is within the request's data.
                let at = unsafe { at.add(piece.at as usize) };
                self.piece(slot, Op::Read, piece.member, piece.offset, (at, piece.len));
            }
        }
        let Some(failed) = self.how.failed else { return false };
        let (layout, mut any) = (self.layout, false);
        for (band, lost) in layout.bands_with(failed, request.offset, request.len) {
            // SAFETY: the column's part of the band is within the request's data.
            let at = unsafe { at.add(band.data_of(lost, layout.chunk) as usize) };
            let on_member = band.on_member(layout.chunk);
            self.read_parts(slot, layout.outside(&band), on_member, (at, band.width), scratch);
            any = true;
        }
        any
    }

    fn read_for_parity(&mut self, slot: u32, scratch: &mut Scratch) -> bool {
        let Request { offset, len, .. } = self.work[slot as usize].request;
        let mut any = false;
        for band in self.layout.bands(offset, len) {
            let (way, on_member) = (self.way(&band), band.on_member(self.layout.chunk));
            let columns = match way {
                Way::Whole | Way::None => 0..0,
                Way::Modify => band.columns.clone(),
                Way::Rest => 0..self.layout.data(),
            };
            let parity = scratch.next(if way == Way::None { 0 } else { band.width });
            if way == Way::Modify {
                let member = self.layout.parity_member(band.row);
                self.piece(slot, Op::Read, member, on_member, (parity, band.width));
            }
            for column in
                columns.filter(|column| way == Way::Modify || !band.columns.contains(column))
            {
                let member = self.layout.member(band.row, column);
                self.piece(
                    slot,
                    Op::Read,
                    member,
                    on_member,
                    (scratch.next(band.width), band.width),
                );
            }
            any |= matches!(way, Way::Modify | Way::Rest);
        }
        any
    }

    /// Chooses the fewest reads that do not need the failed member.
    fn way(&self, band: &Band) -> Way {
        let (written, all) = (band.columns.len() as u32, self.layout.data());
        match self.how.failed {
            Some(failed) if failed == self.layout.parity_member(band.row) => Way::None,
            _ if written == all => Way::Whole,
            Some(failed) if band.columns.contains(&self.layout.column(band.row, failed)) => {
                Way::Rest
            }
            Some(_) => Way::Modify,
            None if written < all - written => Way::Modify,
            None => Way::Rest,
        }
    }

    fn write(&mut self, slot: u32) {
        let Work { request, at, .. } = self.work[slot as usize];
        self.next_phase(slot);
        let mut scratch = self.scratch_of(slot);
        let chunk = self.layout.chunk;
        for band in self.layout.bands(request.offset, request.len) {
            let (way, on_member) = (self.way(&band), band.on_member(chunk));
            // SAFETY: the column's part of the band is within the request's data.
            let data_of = |column: u32| unsafe { at.add(band.data_of(column, chunk) as usize) };
            let parity = scratch.next(if way == Way::None { 0 } else { band.width });
            if way != Way::None {
                let mut sum = Sum::new(self.vectors, parity, band.width);
                let began = self.time.now();
                if way == Way::Modify {
                    sum.add(parity);
                }
                band.columns.clone().for_each(|column| sum.add(data_of(column)));
                let read = match way {
                    Way::Modify => band.columns.len() as u32,
                    Way::Rest => self.layout.data() - band.columns.len() as u32,
                    Way::Whole | Way::None => 0,
                };
                (0..read).for_each(|_| sum.add(scratch.next(band.width)));
                self.parity_bytes += sum.end();
                self.parity_ns += self.time.now() - began;
            }
            for column in band.columns.clone() {
                let member = self.layout.member(band.row, column);
                if Some(member) != self.how.failed {
                    self.piece(slot, Op::Write, member, on_member, (data_of(column), band.width));
                }
            }
            if way != Way::None {
                let member = self.layout.parity_member(band.row);
                self.piece(slot, Op::Write, member, on_member, (parity, band.width));
            }
        }
    }

    fn restore(&mut self, slot: u32) -> Option<Completion> {
        let Work { request, at, .. } = self.work[slot as usize];
        let mut scratch = self.scratch_of(slot);
        if self.how.rebuild {
            let read = self.layout.data();
            self.restore_part((at, request.len), read, std::iter::empty(), &mut scratch);
            self.next_phase(slot);
            let failed = self.how.failed.unwrap_or(0);
            self.piece(slot, Op::Write, failed, request.offset, (at, request.len));
            return None;
        }
        let (layout, failed) = (self.layout, self.how.failed.unwrap_or(0));
        for (band, lost) in layout.bands_with(failed, request.offset, request.len) {
            // SAFETY: the column's part of the band is within the request's data.
            let data_of =
                |column: u32| unsafe { at.add(band.data_of(column, layout.chunk) as usize) };
            let read = layout.members - band.columns.len() as u32;
            let known = band.columns.clone().filter(|&column| column != lost).map(data_of);
            self.restore_part((data_of(lost), band.width), read, known, &mut scratch);
        }
        let work = &mut self.work[slot as usize];
        self.busy.give_back(&std::mem::take(&mut work.rows));
        Some(Completion { slot, result: request.len as i32 })
    }

    fn restore_part(
        &mut self,
        (at, len): (*mut u8, u32),
        read: u32,
        known: impl Iterator<Item = *mut u8>,
        scratch: &mut Scratch,
    ) {
        let began = self.time.now();
        let mut sum = Sum::new(self.vectors, at, len);
        sum.add(at);
        (1..read).for_each(|_| sum.add(scratch.next(len)));
        known.for_each(|part| sum.add(part));
        self.parity_bytes += sum.end();
        self.parity_ns += self.time.now() - began;
    }

    fn read_parts(
        &mut self,
        slot: u32,
        members: impl Iterator<Item = u32>,
        offset: u64,
        (at, len): (*mut u8, u32),
        scratch: &mut Scratch,
    ) {
        for (number, member) in members.enumerate() {
            let to = if number == 0 { at } else { scratch.next(len) };
            self.piece(slot, Op::Read, member, offset, (to, len));
        }
    }

    #[inline]
    fn piece(&mut self, slot: u32, op: Op, member: u32, offset: u64, (at, len): (*mut u8, u32)) {
        let work = &mut self.work[slot as usize];
        work.left += 1;
        work.expected += u64::from(len);
        self.inner.issue(member, &Request { op, offset, len, ..work.request }, at);
    }

    fn next_phase(&mut self, slot: u32) {
        let work = &mut self.work[slot as usize];
        (work.phase, work.expected, work.moved) = (Phase::Last, 0, 0);
    }

    fn scratch_of(&self, slot: u32) -> Scratch {
        let next = unsafe { self.scratch.add(slot as usize * self.stride as usize) };
        Scratch { next, left: self.stride }
    }

    #[cold]
    #[inline(never)]
    fn begin_waiting(&mut self) {
        for _ in 0..self.waiting.len() {
            let Some(slot) = self.waiting.pop_front() else { return };
            if self.busy.take(&self.work[slot as usize].rows) {
                self.work[slot as usize].phase = Phase::Last;
                self.begin(slot);
            } else {
                self.waiting.push_back(slot);
            }
        }
    }
}

/// The same pieces get the same addresses.
struct Scratch {
    next: *mut u8,
    left: u64,
}

impl Scratch {
    fn next(&mut self, len: u32) -> *mut u8 {
        let (at, room) = (self.next, u64::from(len).next_multiple_of(PAGE));
        assert!(room <= self.left, "a request with more pieces than there is room for");
        self.left -= room;
        // SAFETY: the slot has this much room.
        self.next = unsafe { at.add(room as usize) };
        at
    }
}

struct Sum {
    vectors: Vectors,
    to: *mut u8,
    len: u32,
    sources: [*const u8; Sum::AT_ONCE],
    count: usize,
    bytes: u64,
}

impl Sum {
    const AT_ONCE: usize = 32;

    fn new(vectors: Vectors, to: *mut u8, len: u32) -> Sum {
        Sum { vectors, to, len, sources: [std::ptr::null(); Sum::AT_ONCE], count: 0, bytes: 0 }
    }

    /// A source that is the sum itself must be first.
    fn add(&mut self, source: *mut u8) {
        if self.count == Sum::AT_ONCE {
            self.pass();
            self.sources[0] = self.to;
            self.count = 1;
        }
        self.sources[self.count] = source;
        self.count += 1;
        self.bytes += u64::from(self.len);
    }

    fn pass(&mut self) {
        // SAFETY: the session passes pieces of this length, and only the first may be the sum.
        unsafe { self.vectors.xor_raw(self.to, &self.sources[..self.count], self.len as usize) };
    }

    fn end(mut self) -> u64 {
        self.pass();
        self.bytes
    }
}

impl<S: Session, T: Time> Session for ParitySession<'_, S, T> {
    fn issue(&mut self, _file: u32, request: &Request, at: *mut u8) {
        let rows = self.rows_of(request);
        let free = self.busy.take(&rows);
        let phase = if free { Phase::Last } else { Phase::Rows };
        self.work[request.slot as usize] =
            Work { request: *request, at, phase, left: 0, expected: 0, moved: 0, error: 0, rows };
        if free {
            self.begin(request.slot);
        } else {
            self.waiting.push_back(request.slot);
        }
    }

    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        if self.waiting.is_empty() {
            return self.inner.submit(wait);
        }
        self.begin_waiting();
        // Another stream's completion does not end this stream's wait.
        let soon = match wait {
            Wait::For(ns) => Wait::For(ns.min(RETRY_NS)),
            _ => Wait::For(RETRY_NS),
        };
        self.inner.submit(if self.waiting.is_empty() { wait } else { soon })
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.inner.hand_over()
    }

    fn discard(&mut self, _request: &Request) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a stripe's blocks are not discarded"))
    }

    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        let ParitySession { inner, work, known, busy, .. } = self;
        inner.reap(|piece| {
            let work = &mut work[piece.slot as usize];
            work.left -= 1;
            if piece.result < 0 {
                work.error = if work.error < 0 { work.error } else { piece.result };
            } else {
                work.moved += u64::from(piece.result as u32);
            }
            if work.left > 0 {
                return;
            }
            let short = work.expected - work.moved.min(work.expected);
            if work.error == 0 && short == 0 && work.phase == Phase::First {
                known.push(piece.slot);
                return;
            }
            let whole = work.request.len as i32;
            let result = match work.error {
                0 if short == 0 => whole,
                // A member that ends too early makes the request short.
                0 => (whole - short.min(whole as u64) as i32).max(0),
                error => error,
            };
            busy.give_back(&std::mem::take(&mut work.rows));
            take(Completion { slot: piece.slot, result });
        });
        while let Some(slot) = self.known.pop() {
            match (self.work[slot as usize].request.op, self.how.rebuild) {
                (Op::Write, false) => self.write(slot),
                _ => self.restore(slot).into_iter().for_each(&mut take),
            }
        }
    }

    /// Returns all or none, as for a stripe.
    fn queued(&mut self) -> u32 {
        let pieces: u32 = self.work.iter().map(|work| work.left).sum();
        if self.inner.queued() >= pieces { u32::MAX } else { 0 }
    }

    fn sync(&mut self, what: Stability, _target: Option<u32>) -> io::Result<()> {
        self.inner.sync(what, None)
    }
}

#[cfg(test)]
mod tests;
