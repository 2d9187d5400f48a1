//! One ring per thread, single issuer, deferred task work, registered files and buffers.

use super::open::{Open, Setup, discard, synchronise};
use crate::linux::ring::{Entry, Opcode, Rings, TimeLimit, Transfers, setup};
use crate::session::{Session, TICK_NS, Wait};
use machine::{Completion, Op, REAP_WAIT_NS, Request, Stability};
use rustix::process::{Resource, getrlimit};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

const MAX_REGISTERED: usize = 1 << 30;

const MAX_RING: u32 = 4096;

const MIN_RING: u32 = 8;

/// With this much lockable memory, a ring of any size is available.
const AMPLE_LOCKED: u64 = 1 << 20;

/// User data of the timer that ends every wait within [`TICK_NS`]: a limit on each wait costs more.
const TICK: u64 = u64::MAX;

static TICK_TIME: TimeLimit = TimeLimit::new(TICK_NS as u32);

/// For kernels without a minimum wait time.
static REAP_TIME: TimeLimit = TimeLimit::new(REAP_WAIT_NS as u32);

struct Queue {
    ring: Rings,
    backlog: VecDeque<Entry>,
    /// No wait ends early, as the ring has no timers: each looks once.
    kernel_polls: bool,
}

pub(crate) struct Ring<'a> {
    queue: Queue,
    fds: &'a [RawFd],
    transfers: Transfers,
}

impl<'f> Open<'f> for Ring<'f> {
    /// With zero entries the kernel only checks permission; a ring takes milliseconds.
    fn available() -> bool {
        let mut parameters = [0u8; 120];
        // SAFETY: the parameters are as long as the kernel's `struct io_uring_params`.
        let result = unsafe {
            libc::syscall(libc::SYS_io_uring_setup, 0 as libc::c_uint, parameters.as_mut_ptr())
        };
        let permitted =
            result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
        let locked = getrlimit(Resource::Memlock).current;
        permitted
            && (locked.is_none_or(|limit| limit >= AMPLE_LOCKED) || build(MIN_RING, false).is_ok())
    }

    fn open(setup: Setup<'f, '_>) -> io::Result<Self> {
        let Setup { fds, entries, arena, register, kernel_polls, tally, .. } = setup;
        let ring = build(entries, kernel_polls)?;
        ring.register_files(fds)?;
        let bytes = arena.bytes();
        let small = bytes.len() <= MAX_REGISTERED;
        // SAFETY: the registered range is the arena's mapping, which outlives the ring.
        let registered = register && small && unsafe { ring.register_buffer(bytes) }.is_ok();
        if register && small && !registered {
            // Unregistered buffers cost speed, not correctness.
            tally.note_unregistered();
        }
        let mut queue = Queue { ring, backlog: VecDeque::new(), kernel_polls };
        if !kernel_polls {
            queue.start_tick();
        }
        let read = if registered { Opcode::ReadFixed } else { Opcode::Read };
        Ok(Ring { queue, fds, transfers: Transfers::new(read) })
    }
}

impl Queue {
    #[inline(always)]
    fn push(&mut self, entry: Entry) {
        let Entry { what, offset, address, len, data } = entry;
        if !self.ring.push(entry) {
            self.put_aside(what, offset, address, len, data);
        }
    }

    /// A whole entry would go through memory for every request.
    #[cold]
    #[inline(never)]
    fn put_aside(&mut self, what: u64, offset: u64, address: u64, len: u32, data: u64) {
        self.backlog.push_back(Entry { what, offset, address, len, data });
    }

    #[cold]
    fn start_tick(&mut self) {
        let time = std::ptr::from_ref(&TICK_TIME) as usize as u64;
        self.push(Entry { address: time, len: 1, data: TICK, ..Entry::of_none(Opcode::Timeout) });
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        if !self.backlog.is_empty() {
            self.submit_backlog()?;
        }
        let waited = match wait {
            _ if self.kernel_polls => self.ring.submit_and_wait(0),
            Wait::One => self.ring.submit_and_wait(1),
            // A zero timeout would still arm a timer.
            Wait::For(0) => self.ring.submit_and_wait(0),
            wait => self.wait_within(wait),
        };
        match waited {
            // The wait timed out with nothing submitted; not a failure.
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(()),
            waited => waited,
        }
    }

    #[inline(never)]
    fn wait_within(&mut self, wait: Wait) -> io::Result<()> {
        match wait {
            Wait::Several(completions) if self.ring.has_min_wait() => self
                .ring
                .submit_and_wait_within(completions, &TICK_TIME, (REAP_WAIT_NS / 1000) as u32),
            Wait::Several(completions) => {
                self.ring.submit_and_wait_within(completions, &REAP_TIME, 0)
            }
            Wait::For(ns) => self.ring.submit_and_wait_within(1, &TimeLimit::new(ns as u32), 0),
            Wait::One => self.ring.submit_and_wait(1),
        }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if !self.backlog.is_empty() {
            self.submit_backlog()?;
        }
        self.ring.submit()
    }

    #[cold]
    fn submit_backlog(&mut self) -> io::Result<()> {
        while !self.backlog.is_empty() {
            self.ring.submit()?;
            let before = self.backlog.len();
            while let Some(&entry) = self.backlog.front()
                && self.ring.push(entry)
            {
                self.backlog.pop_front();
            }
            if self.backlog.len() == before {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        Ok(())
    }

    fn queued(&self) -> u32 {
        self.ring.queued() + self.backlog.len() as u32
    }
}

fn build(entries: u32, kernel_polls: bool) -> io::Result<Rings> {
    // One more for the timer.
    let mut entries = entries.saturating_add(1).clamp(MIN_RING, MAX_RING);
    loop {
        match build_sized(entries, if kernel_polls { setup::IOPOLL } else { 0 }) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                if entries == MIN_RING {
                    let why = "no memory may be locked (ulimit -l); raise the limit, or use --engine libaio";
                    return Err(io::Error::other(why));
                }
                entries = (entries / 2).max(MIN_RING);
            }
            built => return built,
        }
    }
}

fn build_sized(entries: u32, flags: u32) -> io::Result<Rings> {
    let completions = entries.saturating_mul(2);
    let new = |more| Rings::new(entries, completions, flags | more);
    new(setup::SINGLE_ISSUER | setup::DEFER_TASKRUN)
        .or_else(|_| new(setup::COOP_TASKRUN))
        .or_else(|_| new(0))
}

impl Session for Ring<'_> {
    #[inline(always)]
    fn issue(&mut self, file: u32, request: &Request, at: *mut u8) {
        let &Request { op, offset, len, slot, .. } = request;
        let of_file = self.transfers.of_file(op == Op::Write, file);
        self.queue.push(Entry {
            offset,
            address: at as usize as u64,
            len,
            data: u64::from(slot),
            ..of_file
        });
    }

    fn set_priority(&mut self, bits: u16) {
        self.transfers.set_priority(bits);
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        self.queue.submit(wait)
    }

    #[inline(always)]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        let mut ticked = false;
        self.queue.ring.reap(|one| {
            if one.data == TICK {
                ticked = true;
                return;
            }
            take(Completion { slot: one.data as u32, result: one.result });
        });
        if ticked {
            self.queue.start_tick();
        }
    }

    #[inline(always)]
    fn hand_over(&mut self) -> io::Result<()> {
        self.queue.hand_over()
    }

    fn discard(&mut self, request: &Request) -> io::Result<()> {
        discard(self.fds, request)
    }

    fn queued(&mut self) -> u32 {
        self.queue.queued()
    }

    fn sync(&mut self, what: Stability, target: Option<u32>) -> io::Result<()> {
        synchronise(self.fds, what, target)
    }
}

pub(crate) struct NoOps {
    queue: Queue,
}

impl Open<'_> for NoOps {
    fn open(setup: Setup<'_, '_>) -> io::Result<NoOps> {
        let (ring, backlog) = (build(setup.entries, false)?, VecDeque::new());
        Ok(NoOps { queue: Queue { ring, backlog, kernel_polls: false } })
    }
}

impl Session for NoOps {
    #[inline(always)]
    fn issue(&mut self, _file: u32, request: &Request, _at: *mut u8) {
        // A no-op returns 0, but the loop expects the length.
        let data = u64::from(request.len) << 32 | u64::from(request.slot);
        self.queue.push(Entry { data, ..Entry::of_none(Opcode::Nop) });
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        self.queue.submit(wait)
    }

    #[inline(always)]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        self.queue.ring.reap(|one| {
            take(Completion { slot: one.data as u32, result: (one.data >> 32) as i32 })
        });
    }

    #[inline(always)]
    fn hand_over(&mut self) -> io::Result<()> {
        self.queue.hand_over()
    }

    fn discard(&mut self, _request: &Request) -> io::Result<()> {
        Ok(())
    }

    fn queued(&mut self) -> u32 {
        self.queue.queued()
    }

    fn sync(&mut self, _what: Stability, _target: Option<u32>) -> io::Result<()> {
        Ok(())
    }
}
