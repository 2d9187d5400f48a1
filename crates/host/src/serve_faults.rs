//! The serving loops over a failing kernel, seeded, in virtual time. A run ends, counts only
//! completed requests, uses no buffer twice and frees none in flight.

use crate::arena::Arena;
use crate::pause::Looks;
use crate::reaping::PartCounters;
use crate::serve::{serve, serve_blocking};
use crate::session::{BlockingSession, Halt, Session, TICK_NS, Time, Wait};
use crate::stripe::Striped;
use machine::rng::SplitMix64;
use machine::{
    Completion, Error, Nanos, Next, Op, REAP_WAIT_NS, Reap, Request, RequestSource, Result,
    Stability,
};
use std::cell::{Cell, RefCell};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

const EINTR: i32 = 4;
const EIO: i32 = 5;
const EBADF: i32 = 9;
const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;

const END_WITHIN: Nanos = 150 * MS + 2 * TICK_NS + 5 * MS;

const MEMBERS: u32 = 3;
const CHUNK: u64 = 512;

struct Random(SplitMix64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.below(times) == 0
    }
}

fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// One in N; 0 for never.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    failed_request: u64,
    lost: u64,
    very_late: u64,
    interrupted_wait: u64,
    queue_full: u64,
    broken_queue: u64,
    failed_sync: u64,
    takes_nothing_after: Option<u64>,
    interrupt_at: Option<Nanos>,
}

#[derive(Clone, Copy)]
struct Held {
    file: u32,
    request: Request,
    at: *mut u8,
    /// `None` if it never completes.
    due: Option<Nanos>,
    result: i32,
}

impl Held {
    fn bytes(&self) -> std::ops::Range<usize> {
        self.at as usize..self.at as usize + self.request.len as usize
    }
}

struct World {
    random: RefCell<Random>,
    faults: Faults,
    striped: bool,
    now: Cell<Nanos>,
    interrupt: AtomicBool,
    queued: RefCell<Vec<Held>>,
    at_kernel: RefCell<Vec<Held>>,
    submissions: Cell<u64>,
    fatal: Cell<bool>,
    dropped: Cell<bool>,
}

impl World {
    fn new(seed: u64, faults: Faults, striped: bool) -> World {
        World {
            random: RefCell::new(Random::new(seed)),
            faults,
            striped,
            now: Cell::new(SECOND),
            interrupt: AtomicBool::new(false),
            queued: RefCell::default(),
            at_kernel: RefCell::default(),
            submissions: Cell::new(0),
            fatal: Cell::new(false),
            dropped: Cell::new(false),
        }
    }

    fn advance(&self, to: Nanos) {
        self.now.set(self.now.get().max(to));
        if self.faults.interrupt_at.is_some_and(|at| self.now.get() >= at) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.borrow_mut().below(limit)
    }

    fn once_in(&self, times: u64) -> bool {
        self.random.borrow_mut().once_in(times)
    }

    fn target_offset(&self, file: u32, offset: u64) -> u64 {
        if !self.striped {
            return offset;
        }
        let (row, within) = (offset / CHUNK, offset % CHUNK);
        (row * u64::from(MEMBERS) + u64::from(file)) * CHUNK + within
    }

    fn result(&self, len: u32) -> i32 {
        if !self.once_in(self.faults.failed_request) {
            return len as i32;
        }
        self.fatal.set(true);
        [-EIO, -EAGAIN, -EINTR, 0, len as i32 - 1, len as i32 / 2][self.below(6) as usize]
    }

    fn transfer(&self, held: &Held) {
        let done = held.result.max(0) as usize;
        for (index, byte) in (0..done as u64).enumerate() {
            let expected = pattern(self.target_offset(held.file, held.request.offset + byte));
            // SAFETY: the buffer of a request in flight, which the test expects to be valid.
            unsafe {
                match held.request.op {
                    Op::Read => held.at.add(index).write(expected),
                    Op::Write => assert_eq!(
                        held.at.add(index).read(),
                        expected,
                        "a write's data changed in flight"
                    ),
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct VirtualTime<'w>(&'w World);

impl Time for VirtualTime<'_> {
    fn now(self) -> Nanos {
        self.0.advance(self.0.now.get() + 100);
        self.0.now.get()
    }

    fn pass(self, for_ns: Nanos) {
        self.0.advance(self.0.now.get() + for_ns);
    }
}

struct Kernel<'w>(&'w World);

impl Session for Kernel<'_> {
    fn issue(&mut self, file: u32, request: &Request, at: *mut u8) {
        let held = Held { file, request: *request, at, due: None, result: 0 };
        let own = held.bytes();
        for other in
            self.0.queued.borrow().iter().chain(self.0.at_kernel.borrow().iter()).map(Held::bytes)
        {
            assert!(
                own.end <= other.start || other.end <= own.start,
                "two requests in flight share a buffer"
            );
        }
        self.0.queued.borrow_mut().push(held);
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let (world, faults) = (self.0, self.0.faults);
        world.submissions.set(world.submissions.get() + 1);
        world.advance(world.now.get() + 500);
        if faults.takes_nothing_after.is_some_and(|after| world.submissions.get() > after)
            && !world.queued.borrow().is_empty()
        {
            return Err(io::Error::from_raw_os_error(EAGAIN));
        }
        if world.once_in(faults.broken_queue) {
            world.fatal.set(true);
            return Err(io::Error::from_raw_os_error(EBADF));
        }
        if world.once_in(faults.queue_full) {
            return Err(io::Error::from_raw_os_error([EAGAIN, EBUSY][world.below(2) as usize]));
        }
        for mut held in world.queued.borrow_mut().drain(..) {
            let latency =
                world.below(2 * MS) + if world.once_in(faults.very_late) { 20 * SECOND } else { 0 };
            held.due = (!world.once_in(faults.lost)).then(|| world.now.get() + latency);
            held.result = world.result(held.request.len);
            world.at_kernel.borrow_mut().push(held);
        }
        Ok(())
    }

    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        self.hand_over()?;
        let (world, faults) = (self.0, self.0.faults);
        if world.once_in(faults.interrupted_wait) {
            return Err(io::Error::from_raw_os_error(EINTR));
        }
        let now = world.now.get();
        let until = now + if let Wait::For(ns) = wait { ns } else { TICK_NS };
        let mut dues: Vec<Nanos> =
            world.at_kernel.borrow().iter().filter_map(|held| held.due).collect();
        dues.sort_unstable();
        let first = dues.first().copied().unwrap_or(until);
        let enough = match wait {
            Wait::Several(completions) => {
                let all = dues.get(completions as usize - 1).copied().unwrap_or(until);
                all.min(first.max(now + REAP_WAIT_NS))
            }
            Wait::One | Wait::For(_) => first,
        };
        world.advance(enough.min(until));
        Ok(())
    }

    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        let world = self.0;
        let mut due = Vec::new();
        world.at_kernel.borrow_mut().retain(|held| {
            let done = held.due.is_some_and(|due| due <= world.now.get());
            if done {
                due.push(*held);
            }
            !done
        });
        // In any order.
        while !due.is_empty() {
            let held = due.swap_remove(world.below(due.len() as u64) as usize);
            world.transfer(&held);
            take(Completion { slot: held.request.slot, result: held.result });
        }
    }

    fn discard(&mut self, _request: &Request) -> io::Result<()> {
        Ok(())
    }

    fn queued(&mut self) -> u32 {
        self.0.queued.borrow().len() as u32
    }

    fn sync(&mut self, _what: Stability, _target: Option<u32>) -> io::Result<()> {
        self.0.sync()
    }
}

impl World {
    fn sync(&self) -> io::Result<()> {
        if self.once_in(self.faults.failed_sync) {
            self.fatal.set(true);
            return Err(io::Error::from_raw_os_error(EIO));
        }
        Ok(())
    }
}

impl BlockingSession for Kernel<'_> {
    fn perform(&mut self, request: &Request, at: *mut u8) -> i32 {
        let world = self.0;
        world.advance(world.now.get() + world.below(2 * MS));
        if world.once_in(world.faults.interrupted_wait) {
            return -EINTR;
        }
        // EINTR is not a failure here: the call is repeated.
        let result = match world.result(request.len) {
            result if result == -EINTR => -EIO,
            result => result,
        };
        world.transfer(&Held { file: request.target, request: *request, at, due: None, result });
        result
    }

    fn discard(&mut self, _request: &Request) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self, _what: Stability, _target: Option<u32>) -> io::Result<()> {
        self.0.sync()
    }
}

impl Drop for Kernel<'_> {
    fn drop(&mut self) {
        self.0.dropped.set(true);
        assert!(
            self.0.at_kernel.borrow().is_empty(),
            "a session is closed with requests in flight"
        );
    }
}

struct Source {
    random: Random,
    depth: u32,
    left: u32,
    outstanding: Vec<Option<Request>>,
    done: u32,
    bad: bool,
    checked: u32,
    unsynced: u32,
    times_submission: bool,
    discards: bool,
    issued_at: Nanos,
}

impl Source {
    fn new(seed: u64, depth: u32, requests: u32) -> Source {
        let outstanding = vec![None; depth as usize];
        Source {
            random: Random::new(!seed),
            depth,
            left: requests,
            outstanding,
            done: 0,
            bad: false,
            checked: 0,
            unsynced: 0,
            times_submission: seed % 2 == 1,
            discards: false,
            issued_at: 0,
        }
    }
}

impl RequestSource for Source {
    fn depth(&self) -> u32 {
        self.depth
    }

    fn max_request(&self) -> u32 {
        2048
    }

    fn writes(&self) -> bool {
        true
    }

    fn sync_due(&self) -> Option<Stability> {
        (self.unsynced > 9).then_some(Stability::Data)
    }

    fn synced(&mut self, began: Nanos, ended: Nanos) {
        assert!(began <= ended);
        self.unsynced = 0;
    }

    fn times_submission(&self) -> bool {
        self.times_submission
    }

    fn submitted(&mut self, now: Nanos) {
        assert!(
            self.times_submission
                && now >= self.issued_at
                && self.outstanding.iter().any(Option::is_some)
        );
    }

    fn begin(&mut self, _now: Nanos) {}

    fn next(&mut self, now: Nanos) -> Next {
        assert!(!self.bad, "a run goes on after a failed request");
        let free = self.outstanding.iter().position(Option::is_none);
        match free {
            Some(slot) if self.left > 0 => {
                if self.random.once_in(50) {
                    return Next::WaitUntil(now + self.random.below(3600 * SECOND / 1000));
                }
                let len = (self.random.below(16) as u32 + 1) * 128;
                let op = if self.random.once_in(2) { Op::Read } else { Op::Write };
                let request = Request {
                    op,
                    target: 0,
                    offset: self.random.below(1 << 20) * 128,
                    len,
                    slot: slot as u32,
                };
                self.left -= 1;
                self.outstanding[slot] = Some(request);
                if op == Op::Write && self.discards && self.random.once_in(8) {
                    return Next::Discard(request);
                }
                self.issued_at = now;
                Next::Issue(request)
            }
            _ if self.left == 0 && self.outstanding.iter().all(Option::is_none) => Next::Done,
            _ => Next::WaitForCompletion,
        }
    }

    fn complete(&mut self, completion: Completion, _now: Nanos) {
        let request = self.outstanding[completion.slot as usize]
            .take()
            .expect("a slot completes that was not in use");
        if completion.result == request.len as i32 {
            self.done += 1;
            self.unsynced += 1;
        } else {
            self.bad = true;
        }
    }

    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        (request.offset..).zip(buffer).for_each(|(offset, byte)| *byte = pattern(offset));
    }

    fn checks(&self) -> bool {
        true
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        let request = self.outstanding[slot as usize].expect("data of a slot that is not in use");
        assert_eq!(data.len(), request.len as usize);
        assert!(
            (request.offset..).zip(data).all(|(offset, &byte)| byte == pattern(offset)),
            "wrong data"
        );
        self.checked += 1;
    }
}

fn run(seed: u64, faults: Faults, how: How) -> (World, Source, Result<Nanos>) {
    let world = World::new(seed, faults, how == How::Striped);
    let mut random = Random::new(seed ^ 0x5EED);
    let depth = if how == How::Blocking { 1 } else { random.below(8) as u32 + 1 };
    let requests = random.below(60) as u32 + 1;
    let mut source = Source::new(seed, depth, requests);
    source.discards = how != How::Striped;
    let reap = [Reap::AtLeast(1), Reap::AtLeast(random.below(9) as u32 + 1), Reap::Auto]
        [random.below(3) as usize];
    let tally = PartCounters::default();
    let failed = AtomicBool::new(false);
    let ended = {
        let mut arena = Arena::new(
            depth,
            source.max_request(),
            crate::arena::WALK_BYTES,
            machine::Memory::Huge,
        )
        .unwrap();
        let looks = Looks::from(0);
        let (time, halt) = (
            VirtualTime(&world),
            Halt { interrupt: &world.interrupt, failed: &failed, looks: &looks },
        );
        match how {
            How::Queued => {
                serve(Kernel(&world), &mut source, &mut arena, time, halt, (reap, &tally))
            }
            How::Striped => {
                let striped = Striped::new(Kernel(&world), MEMBERS, CHUNK, depth);
                serve(striped, &mut source, &mut arena, time, halt, (reap, &tally))
            }
            How::Blocking => serve_blocking(Kernel(&world), &mut source, &mut arena, time, halt),
        }
    };
    // The device continues after the run: this faults if the buffers were freed.
    for held in world.at_kernel.borrow().iter().chain(world.queued.borrow().iter()) {
        // SAFETY: requests are still in flight only if the arena was leaked.
        unsafe { held.at.write_volatile(1) };
    }
    let what = format!("seed {seed}, {how:?}, {faults:?}: {ended:?}");
    match &ended {
        Ok(_) => {
            assert!(!world.fatal.get(), "a failure ended well: {what}");
            assert_eq!(source.done, requests, "{what}");
            assert!(world.at_kernel.borrow().is_empty() && world.dropped.get(), "{what}");
        }
        Err(Error::Interrupted) => {
            let at = faults.interrupt_at.unwrap_or_else(|| panic!("nobody interrupted: {what}"));
            assert!(
                world.now.get() <= at.max(SECOND) + END_WITHIN,
                "ended too late, at {}: {what}",
                world.now.get()
            );
        }
        Err(_) => assert!(world.fatal.get() || faults.takes_nothing_after.is_some(), "{what}"),
    }
    (world, source, ended)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Queued,
    Striped,
    Blocking,
}

const HOWS: [How; 3] = [How::Queued, How::Striped, How::Blocking];

#[test]
fn late_disordered_and_interrupted_completions_change_nothing() {
    for seed in 0..1500 {
        let faults =
            Faults { very_late: 40, interrupted_wait: 5, queue_full: 7, ..Faults::default() };
        let (_, source, ended) = run(seed, faults, HOWS[seed as usize % 3]);
        assert!(ended.is_ok() && source.checked <= source.done, "seed {seed}: {ended:?}");
    }
}

#[test]
fn every_failure_ends_the_run_with_an_error_and_nothing_in_flight() {
    let mut failures = 0;
    for seed in 0..3000 {
        let faults = Faults {
            failed_request: 20,
            very_late: 50,
            interrupted_wait: 9,
            queue_full: 9,
            broken_queue: if seed % 2 == 0 { 60 } else { 0 },
            failed_sync: 3,
            ..Faults::default()
        };
        let (world, _, ended) = run(seed, faults, HOWS[seed as usize % 3]);
        failures += u32::from(ended.is_err());
        assert_eq!(ended.is_err(), world.fatal.get(), "seed {seed}: {ended:?}");
        assert!(
            world.at_kernel.borrow().is_empty(),
            "seed {seed}: left requests in flight: {ended:?}"
        );
    }
    assert!(failures > 1500, "only {failures} of the runs met a fault");
}

#[test]
fn lost_completions_end_by_the_interrupt_and_keep_their_buffers() {
    let mut lost = 0;
    for seed in 0..1500 {
        let interrupt_at = Some(SECOND + Random::new(seed).below(3 * SECOND));
        let faults = Faults {
            lost: 15,
            failed_request: 60,
            interrupted_wait: 9,
            interrupt_at,
            ..Faults::default()
        };
        let (world, ..) = run(seed, faults, HOWS[seed as usize % 2]);
        let in_flight = !world.at_kernel.borrow().is_empty();
        assert_eq!(world.dropped.get(), !in_flight, "seed {seed}");
        lost += u32::from(in_flight);
    }
    assert!(lost > 500, "only {lost} of the runs lost a completion");
}

#[test]
fn a_kernel_that_takes_nothing_ends_the_run_with_an_error() {
    for seed in 0..600 {
        let faults =
            Faults { takes_nothing_after: Some(seed % 40), very_late: 30, ..Faults::default() };
        let (_, _, ended) = run(seed, faults, HOWS[seed as usize % 2]);
        if let Err(error) = ended {
            assert!(error.to_string().contains("cannot submit to the kernel's queue"), "{error}");
        }
    }
}

#[test]
fn an_interrupt_ends_think_times_and_throttled_runs() {
    struct Thinker;
    impl RequestSource for Thinker {
        fn depth(&self) -> u32 {
            2
        }
        fn max_request(&self) -> u32 {
            4096
        }
        fn writes(&self) -> bool {
            false
        }
        fn begin(&mut self, _now: Nanos) {}
        fn next(&mut self, now: Nanos) -> Next {
            Next::WaitUntil(now + 3600 * SECOND)
        }
        fn complete(&mut self, _completion: Completion, _now: Nanos) {}
        fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}
    }
    let world =
        World::new(1, Faults { interrupt_at: Some(2 * SECOND), ..Faults::default() }, false);
    let failed = AtomicBool::new(false);
    let mut arena = Arena::new(2, 4096, 0, machine::Memory::Huge).unwrap();
    let looks = Looks::from(0);
    let halt = Halt { interrupt: &world.interrupt, failed: &failed, looks: &looks };
    let ended = serve(
        Kernel(&world),
        &mut Thinker,
        &mut arena,
        VirtualTime(&world),
        halt,
        (Reap::default(), &PartCounters::default()),
    );
    assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    assert!(world.now.get() < 2 * SECOND + END_WITHIN);
}
