//! Copies to and from a memory-mapped file.

use super::open::{Open, Setup, discard, synchronise};
use crate::linux::sys;
use crate::session::BlockingSession;
use machine::{Hint, Op, Request, Stability};
use rustix::fs::OFlags;
use rustix::mm::{self, Advice, MapFlags, MsyncFlags, ProtFlags};
use std::cell::Cell;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

pub(crate) struct Mapped<'a> {
    fds: &'a [RawFd],
    files: Vec<Mapping>,
}

struct Mapping {
    base: *mut u8,
    len: usize,
    /// A flush follows each store: O_DSYNC does not apply to stores.
    durable: bool,
}

impl<'f> Open<'f> for Mapped<'f> {
    fn open(setup: Setup<'f, '_>) -> io::Result<Self> {
        let Setup { fds, end, writes, hint, .. } = setup;
        catch_bus_errors()?;
        let files =
            fds.iter().map(|&fd| Mapping::new(fd, end, writes, hint)).collect::<io::Result<_>>()?;
        Ok(Mapped { fds, files })
    }
}

impl Mapping {
    fn new(fd: RawFd, len: u64, writes: bool, hint: Hint) -> io::Result<Mapping> {
        let len = len as usize;
        let write = if writes { ProtFlags::WRITE } else { ProtFlags::empty() };
        let advice = match hint {
            Hint::None => Advice::Normal,
            Hint::Sequential => Advice::Sequential,
            Hint::Random => Advice::Random,
        };
        // SAFETY: a stream's files stay open as long as its session.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        // O_SYNC includes this bit; `OFlags::DSYNC` is all of O_SYNC.
        let dsync = OFlags::from_bits_retain(libc::O_DSYNC as u32);
        let durable = rustix::fs::fcntl_getfl(file)?.contains(dsync);
        // SAFETY: a new shared mapping of a file that stays open as long as the session, at an
        // address that the kernel chooses. The advice applies to our own mapping; if it fails, only
        // speed changes.
        let base = unsafe {
            let base = mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | write,
                MapFlags::SHARED,
                file,
                0,
            )?;
            let _ = mm::madvise(base, len, advice);
            base
        };
        Ok(Mapping { base: base.cast(), len, durable })
    }

    /// # Safety
    /// The range is inside the mapping.
    unsafe fn flush(&self, offset: usize, len: usize) -> rustix::io::Result<()> {
        // The mapping begins at a page, and msync takes whole pages.
        let page = sys::page_size();
        let from = offset / page * page;
        // SAFETY: as the caller promises, except for the start of the page, which is mapped too.
        unsafe { mm::msync(self.base.add(from).cast(), offset + len - from, MsyncFlags::SYNC) }
    }
}

impl BlockingSession for Mapped<'_> {
    #[inline(always)]
    fn perform(&mut self, request: &Request, at: *mut u8) -> i32 {
        let file = &self.files[request.target as usize];
        let (offset, len) = (request.offset as usize, request.len as usize);
        if offset.checked_add(len).is_none_or(|end| end > file.len) {
            return -libc::EINVAL;
        }
        // SAFETY: the range was checked to be inside the mapping; `at` is `len` bytes of the arena.
        let failed = unsafe {
            let mapped = file.base.add(offset);
            match request.op {
                Op::Read => copy_or_fail(mapped, at, mapped, len),
                Op::Write => copy_or_fail(at, mapped, mapped, len),
            }
        };
        if failed {
            return -libc::EIO;
        }
        if file.durable && request.op == Op::Write {
            // SAFETY: the range was checked to be inside the mapping.
            if let Err(error) = unsafe { file.flush(offset, len) } {
                return -error.raw_os_error();
            }
        }
        request.len as i32
    }

    fn discard(&mut self, request: &Request) -> io::Result<()> {
        discard(self.fds, request)
    }

    fn sync(&mut self, what: Stability, target: Option<u32>) -> io::Result<()> {
        synchronise(self.fds, what, target)
    }
}

thread_local! {
    /// The mapped range, and whether a page failed.
    static COPYING: Cell<(usize, usize, bool)> = const { Cell::new((0, 0, false)) };
}

/// True if a page was unavailable: the file shrank or its device failed.
///
/// # Safety
/// `from` is valid for reads of `len` bytes, `to` for writes; `mapped` is the mapped one.
#[inline(always)]
unsafe fn copy_or_fail(from: *const u8, to: *mut u8, mapped: *mut u8, len: usize) -> bool {
    COPYING.set((mapped as usize, len, false));
    // The handler runs during the copy: publish the range before it, and read the result after it.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    compiler_fence(Ordering::SeqCst);
    let (_, _, failed) = COPYING.replace((0, 0, false));
    failed
}

/// Maps zeros over the failed page, so its request fails; any other SIGBUS ends the process.
extern "C" fn on_bus_error(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    let (start, len, _) = COPYING.get();
    // SAFETY: the kernel passes a valid structure to the handler.
    let address = unsafe { (*info).si_addr() } as usize;
    // SAFETY: sysconf has no preconditions and is safe in a handler.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    // SAFETY: the page belongs to our own mapping, used only by this thread; `mmap`, `signal` and
    // `raise` are safe in a handler.
    unsafe {
        if (start..start + len).contains(&address) {
            let replaced = libc::mmap(
                (address / page * page) as *mut libc::c_void,
                page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            );
            if replaced != libc::MAP_FAILED {
                COPYING.set((start, len, true));
                return;
            }
        }
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
        libc::raise(libc::SIGBUS);
    }
}

fn catch_bus_errors() -> io::Result<()> {
    static CAUGHT: OnceLock<bool> = OnceLock::new();
    let caught = *CAUGHT.get_or_init(|| {
        // SAFETY: an all-zero action is valid; the handler has the signature that SA_SIGINFO
        // requires.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) == 0
        }
    });
    if caught { Ok(()) } else { Err(io::Error::other("SIGBUS cannot be caught")) }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once. It cannot fail: the range is the mapping's.
        let _ = unsafe { mm::munmap(self.base.cast(), self.len) };
    }
}
