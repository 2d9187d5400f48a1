//! Files by io_uring: opening, transfers and closing are linked and go to the kernel as one submission.

use io_uring::{IoUring, opcode, squeue, types};
use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

/// Requests in one submission; a file of more blocks takes several.
const ENTRIES: u32 = 64;

/// The ring's only file slot.
const SLOT: u32 = 0;

/// What a completion belongs to: the upper half of its user data. The lower half is the bytes to be moved.
const OPEN: u64 = 1 << 32;
const MOVE: u64 = 2 << 32;
const CLOSE: u64 = 3 << 32;
const OTHER: u64 = 4 << 32;

/// A ring of one thread for one file at a time.
pub(super) struct Chain {
    ring: IoUring,
}

/// How far a file's requests have come.
#[derive(Default)]
struct Progress {
    moved: u64,
    opened: bool,
    closed: bool,
    /// A transfer was short: what was linked to it was not done.
    short: bool,
    error: Option<i32>,
}

impl Progress {
    fn note(&mut self, user_data: u64, result: i32) {
        if result < 0 {
            // A cancelled request only follows from the one that failed or fell short before it.
            if result != -libc::ECANCELED && self.error.is_none() {
                self.error = Some(-result);
            }
            return;
        }
        match user_data & !u64::from(u32::MAX) {
            OPEN => self.opened = true,
            CLOSE => self.closed = true,
            MOVE => {
                self.moved += result as u64;
                self.short |= (result as u64) < user_data - MOVE;
            }
            _ => {}
        }
    }
}

impl Chain {
    pub(super) fn new() -> io::Result<Chain> {
        // Not bound to the thread that makes it: workers are handed out before their threads start.
        let ring = IoUring::builder().setup_coop_taskrun().build(ENTRIES).or_else(|_| IoUring::new(ENTRIES))?;
        ring.submitter().register_files_sparse(1)?;
        Ok(Chain { ring })
    }

    /// Opens, writes by blocks, brings to stable storage where asked, closes.
    pub(super) fn write(
        &mut self,
        room: RawFd,
        name: &CStr,
        flags: i32,
        content: &[u8],
        block: usize,
        sync: bool,
    ) -> io::Result<()> {
        let pieces = content.chunks(block).map(|piece| {
            // Offset -1 is where the file stands: a new one at its start, an appended one at its end.
            let write = opcode::Write::new(types::Fixed(SLOT), piece.as_ptr(), piece.len() as u32).offset(u64::MAX);
            write.build().user_data(MOVE + piece.len() as u64)
        });
        let flush = sync.then(|| opcode::Fsync::new(types::Fixed(SLOT)).build().user_data(OTHER));
        let moved = self.run(open(room, name, flags), pieces.chain(flush))?;
        if moved == content.len() as u64 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Opens, reads by blocks into `into` (which has room for one), closes. Returns how many bytes there were.
    pub(super) fn read(
        &mut self,
        room: RawFd,
        name: &CStr,
        into: &mut [u8],
        bytes: u64,
        block: usize,
    ) -> io::Result<u64> {
        let at = into.as_mut_ptr();
        let block = (block as u64).min(into.len() as u64).max(1);
        let pieces = (0..bytes.div_ceil(block)).map(|index| {
            let len = block.min(bytes - index * block);
            let read = opcode::Read::new(types::Fixed(SLOT), at, len as u32).offset(index * block);
            read.build().user_data(MOVE + len)
        });
        self.run(open(room, name, libc::O_RDONLY), pieces)
    }

    /// Deletes a file.
    pub(super) fn unlink(&mut self, room: RawFd, name: &CStr) -> io::Result<()> {
        let mut progress = Progress::default();
        self.push(&opcode::UnlinkAt::new(types::Fd(room), name.as_ptr()).build().user_data(OTHER))?;
        self.finish(1, &mut progress)?;
        progress.error.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
    }

    /// Opens, does the pieces in order, closes; returns the bytes that they moved. Names and buffers live in the
    /// caller, which waits here.
    fn run(&mut self, open: squeue::Entry, pieces: impl Iterator<Item = squeue::Entry>) -> io::Result<u64> {
        let close = || opcode::Close::new(types::Fixed(SLOT)).build().user_data(CLOSE);
        let mut entries = [open].into_iter().chain(pieces).chain([close()]).peekable();
        let mut progress = Progress::default();
        while entries.peek().is_some() && progress.error.is_none() && !progress.short {
            let mut pushed = 0;
            while pushed < ENTRIES
                && let Some(entry) = entries.next()
            {
                pushed += 1;
                let last = pushed == ENTRIES || entries.peek().is_none();
                self.push(&if last { entry } else { entry.flags(squeue::Flags::IO_LINK) })?;
            }
            self.finish(pushed, &mut progress)?;
        }
        if progress.opened && !progress.closed {
            self.push(&close())?;
            self.finish(1, &mut progress)?;
        }
        progress.error.map_or(Ok(progress.moved), |error| Err(io::Error::from_raw_os_error(error)))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: what the entry points to outlives `finish`, which the caller waits in.
        unsafe { self.ring.submission().push(entry) }.map_err(|_| io::Error::other("the submission ring is full"))
    }

    /// Submits and waits for so many completions.
    fn finish(&mut self, requests: u32, progress: &mut Progress) -> io::Result<()> {
        let mut open = requests;
        while open > 0 {
            match self.ring.submit_and_wait(open as usize) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    result?;
                }
            }
            for completion in self.ring.completion() {
                open -= 1;
                progress.note(completion.user_data(), completion.result());
            }
        }
        Ok(())
    }
}

fn open(room: RawFd, name: &CStr, flags: i32) -> squeue::Entry {
    let slot = types::DestinationSlot::try_from_slot_target(SLOT).expect("slot 0 is in range");
    opcode::OpenAt::new(types::Fd(room), name.as_ptr())
        .flags(flags)
        .mode(0o666)
        .file_index(Some(slot))
        .build()
        .user_data(OPEN)
}
