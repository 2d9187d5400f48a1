//! io_uring: one ring a thread, single issuer, task work deferred to the wait, files and buffers registered.

use super::open::{Open, Setup, discard, synchronise};
use crate::session::{Session, TICK_NS, Wait};
use io_uring::{IoUring, opcode, squeue, types};
use machine::{Completion, Op, REAP_WAIT_NS, Request, Stability};
use rustix::process::{Resource, getrlimit};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

/// The kernel takes at most this many bytes in one registered buffer.
const REGISTERED_MOST: usize = 1 << 30;

/// The largest submission ring; more outstanding requests than this go in several submissions.
const RING_MOST: u32 = 4096;

/// The smallest ring that is worth having.
const RING_LEAST: u32 = 8;

/// With this much memory that may be locked, every ring is to be had.
const AMPLE_LOCKED: u64 = 1 << 20;

/// The user data of the timer that ends every wait within [`TICK_NS`]. A wait with a time limit of its own would cost
/// each turn more.
const TICK: u64 = u64::MAX;

static TICK_TIME: types::Timespec = types::Timespec::new().nsec(TICK_NS as u32);

/// io_uring_enter's flag under which deferred completions are delivered (IORING_ENTER_GETEVENTS).
const ENTER_GETEVENTS: u32 = 1;

/// Where the kernel cannot wait for one after some time, all wait for that time.
static REAP_TIME: types::Timespec = types::Timespec::new().nsec(REAP_WAIT_NS as u32);

/// A ring, and the entries that found no room in it.
struct Queue {
    ring: IoUring,
    backlog: VecDeque<squeue::Entry>,
}

/// A ring with its files registered and, where the memory limit allows, its buffers.
pub(crate) struct Ring<'a> {
    queue: Queue,
    fds: &'a [RawFd],
    registered: bool,
}

impl<'f> Open<'f> for Ring<'f> {
    /// Asked for a ring of no entries: permission is checked first, and making and closing a real one takes
    /// milliseconds.
    fn available() -> bool {
        let mut parameters = [0u8; 120];
        // SAFETY: the parameters are as long as the kernel's `struct io_uring_params`.
        let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 0 as libc::c_uint, parameters.as_mut_ptr()) };
        let permitted = result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
        let locked = getrlimit(Resource::Memlock).current;
        permitted && (locked.is_none_or(|limit| limit >= AMPLE_LOCKED) || build(RING_LEAST).is_ok())
    }

    fn open(setup: Setup<'f, '_>) -> io::Result<Self> {
        let Setup { fds, entries, arena, register, tally, .. } = setup;
        let ring = build(entries)?;
        ring.submitter().register_files(fds)?;
        let bytes = arena.bytes();
        let whole = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let small = bytes.len() <= REGISTERED_MOST;
        // SAFETY: the registered range is the arena's mapping, which outlives the ring.
        let registered = register && small && unsafe { ring.submitter().register_buffers(&[whole]) }.is_ok();
        if register && small && !registered {
            // The locked-memory limit costs speed, not truth.
            tally.note_unregistered();
        }
        let mut queue = Queue { ring, backlog: VecDeque::new() };
        queue.start_tick();
        Ok(Ring { queue, fds, registered })
    }
}

impl Queue {
    #[inline(always)]
    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the buffer stays untouched until the completion, and the arena outlives the ring.
        if unsafe { self.ring.submission().push(entry) }.is_err() {
            self.put_aside(entry);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_aside(&mut self, entry: &squeue::Entry) {
        self.backlog.push_back(entry.clone());
    }

    #[cold]
    fn start_tick(&mut self) {
        self.push(&opcode::Timeout::new(&TICK_TIME).build().user_data(TICK));
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        if !self.backlog.is_empty() {
            self.submit_backlog()?;
        }
        let waited = match wait {
            Wait::One => self.ring.submit_and_wait(1),
            Wait::Several(completions) => {
                let most = if self.ring.params().is_feature_min_timeout() {
                    types::SubmitArgs::new().min_wait_usec((REAP_WAIT_NS / 1000) as u32).timespec(&TICK_TIME)
                } else {
                    types::SubmitArgs::new().timespec(&REAP_TIME)
                };
                self.ring.submitter().submit_with_args(completions as usize, &most)
            }
            // A timeout of none would arm a timer.
            Wait::For(0) => {
                let len = self.ring.submission().len();
                // SAFETY: no argument goes with it.
                unsafe { self.ring.submitter().enter::<()>(len as u32, 0, ENTER_GETEVENTS, None) }
            }
            Wait::For(ns) => {
                let timeout = types::Timespec::new().nsec(ns as u32);
                self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&timeout))
            }
        };
        match waited {
            // The end of a wait in which nothing was submitted; it is no failure.
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(()),
            waited => waited.map(drop),
        }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if !self.backlog.is_empty() {
            self.submit_backlog()?;
        }
        self.ring.submit().map(drop)
    }

    /// Gives the kernel what is in the ring, and fills it from the backlog, until the backlog is in the ring.
    #[cold]
    fn submit_backlog(&mut self) -> io::Result<()> {
        while !self.backlog.is_empty() {
            self.ring.submit()?;
            let mut room = self.ring.submission();
            let before = self.backlog.len();
            while let Some(entry) = self.backlog.front() {
                // SAFETY: as in `push`.
                if unsafe { room.push(entry) }.is_err() {
                    break;
                }
                self.backlog.pop_front();
            }
            if self.backlog.len() == before {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        Ok(())
    }

    fn queued(&mut self) -> u32 {
        (self.ring.submission().len() + self.backlog.len()) as u32
    }
}

/// The leanest ring that this kernel offers, smaller than asked for where no more memory may be locked: the backlog has the rest.
fn build(entries: u32) -> io::Result<IoUring> {
    // One more for the timer.
    let mut entries = entries.saturating_add(1).clamp(RING_LEAST, RING_MOST);
    loop {
        match build_sized(entries) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                if entries == RING_LEAST {
                    let why = "no memory may be locked (ulimit -l); raise the limit, or use --engine libaio";
                    return Err(io::Error::other(why));
                }
                entries = (entries / 2).max(RING_LEAST);
            }
            built => return built,
        }
    }
}

fn build_sized(entries: u32) -> io::Result<IoUring> {
    let completions = entries.saturating_mul(2);
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(completions)
        .build(entries)
        .or_else(|_| IoUring::builder().setup_coop_taskrun().setup_cqsize(completions).build(entries))
        .or_else(|_| IoUring::builder().setup_cqsize(completions).build(entries))
}

impl Session for Ring<'_> {
    #[inline(always)]
    fn issue(&mut self, file: u32, request: &Request, at: *mut u8) {
        let fd = types::Fixed(file);
        let &Request { offset, len, slot, .. } = request;
        let data = u64::from(slot);
        let queue = &mut self.queue;
        // Each entry goes into the ring where it is made: one that passes through a variable is copied twice.
        match (request.op, self.registered) {
            (Op::Read, true) => {
                queue.push(&opcode::ReadFixed::new(fd, at, len, 0).offset(offset).build().user_data(data))
            }
            (Op::Write, true) => {
                queue.push(&opcode::WriteFixed::new(fd, at, len, 0).offset(offset).build().user_data(data))
            }
            (Op::Read, false) => queue.push(&opcode::Read::new(fd, at, len).offset(offset).build().user_data(data)),
            (Op::Write, false) => queue.push(&opcode::Write::new(fd, at, len).offset(offset).build().user_data(data)),
        }
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        self.queue.submit(wait)
    }

    #[inline(always)]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        let mut ticked = false;
        for entry in self.queue.ring.completion() {
            if entry.user_data() == TICK {
                ticked = true;
                continue;
            }
            take(Completion { slot: entry.user_data() as u32, result: entry.result() });
        }
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

    fn sync(&mut self, what: Stability) -> io::Result<()> {
        synchronise(self.fds, what)
    }
}

/// A ring whose requests go to the kernel and back and no further: what the ring and the loop around it can do.
pub(crate) struct NoOps {
    queue: Queue,
}

impl Open<'_> for NoOps {
    fn open(setup: Setup<'_, '_>) -> io::Result<NoOps> {
        Ok(NoOps { queue: Queue { ring: build(setup.entries)?, backlog: VecDeque::new() } })
    }
}

impl Session for NoOps {
    #[inline(always)]
    fn issue(&mut self, _file: u32, request: &Request, _at: *mut u8) {
        // A no-op's own result is 0; the driver wants the length.
        self.queue.push(&opcode::Nop::new().build().user_data(u64::from(request.len) << 32 | u64::from(request.slot)));
    }

    #[inline(always)]
    fn submit(&mut self, wait: Wait) -> io::Result<()> {
        self.queue.submit(wait)
    }

    #[inline(always)]
    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        for entry in self.queue.ring.completion() {
            take(Completion { slot: entry.user_data() as u32, result: (entry.user_data() >> 32) as i32 });
        }
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

    fn sync(&mut self, _what: Stability) -> io::Result<()> {
        Ok(())
    }
}
