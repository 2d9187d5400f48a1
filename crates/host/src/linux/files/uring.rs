//! Open, transfers and close are linked and submitted together.

use crate::linux::ring::{Entry, FileEntry, Opcode, Rings, setup};
use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

const ENTRIES: u32 = 64;

const SLOT: u32 = 0;

/// The upper half of the user data; the lower is the request's length.
const OPEN: u64 = 1 << 32;
const MOVE: u64 = 2 << 32;
const CLOSE: u64 = 3 << 32;
const OTHER: u64 = 4 << 32;

pub(super) struct Chain {
    ring: Rings,
}

#[derive(Default)]
struct Progress {
    moved: u64,
    opened: bool,
    closed: bool,
    short: bool,
    error: Option<i32>,
}

impl Progress {
    fn note(&mut self, user_data: u64, result: i32) {
        if result < 0 {
            // A cancelled request only follows from an earlier one that failed or was short.
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
        // Not bound to this thread: workers are created before their threads start.
        let make = |flags| Rings::new(ENTRIES, 2 * ENTRIES, flags);
        let ring = make(setup::COOP_TASKRUN).or_else(|_| make(0))?;
        ring.register_files(&[-1])?;
        Ok(Chain { ring })
    }

    pub(super) fn write(
        &mut self,
        room: RawFd,
        name: &CStr,
        flags: i32,
        content: &[u8],
        block: usize,
        sync: bool,
    ) -> io::Result<()> {
        // Offset -1 is the file position: the start of a new file, the end of an appended one.
        let pieces = content
            .chunks(block)
            .map(|piece| transfer(true, piece.as_ptr(), piece.len() as u64, u64::MAX));
        let flush =
            sync.then(|| Entry { data: OTHER, ..Entry::of_file(Opcode::Fsync, false, SLOT) });
        let moved = self.run(open(room, name, flags), pieces.chain(flush))?;
        if moved == content.len() as u64 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

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
        let pieces = (0..bytes.div_ceil(block))
            .map(|index| transfer(false, at, block.min(bytes - index * block), index * block));
        self.run(open(room, name, libc::O_RDONLY), pieces)
    }

    pub(super) fn unlink(&mut self, room: RawFd, name: &CStr) -> io::Result<()> {
        let mut progress = Progress::default();
        let entry = Entry {
            address: name.as_ptr() as usize as u64,
            data: OTHER,
            ..Entry::of_fd(Opcode::UnlinkAt, room)
        };
        self.push(entry.into())?;
        self.finish(1, &mut progress)?;
        progress.error.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
    }

    /// The caller owns names and buffers until this returns.
    fn run(&mut self, open: FileEntry, pieces: impl Iterator<Item = Entry>) -> io::Result<u64> {
        let mut entries =
            [open].into_iter().chain(pieces.map(FileEntry::from)).chain([close()]).peekable();
        let mut progress = Progress::default();
        while entries.peek().is_some() && progress.error.is_none() && !progress.short {
            let mut pushed = 0;
            while pushed < ENTRIES
                && let Some(entry) = entries.next()
            {
                pushed += 1;
                let last = pushed == ENTRIES || entries.peek().is_none();
                self.push(if last {
                    entry
                } else {
                    FileEntry { entry: entry.entry.linked(), ..entry }
                })?;
            }
            self.finish(pushed, &mut progress)?;
        }
        if progress.opened && !progress.closed {
            self.push(close())?;
            self.finish(1, &mut progress)?;
        }
        progress.error.map_or(Ok(progress.moved), |error| Err(io::Error::from_raw_os_error(error)))
    }

    fn push(&mut self, entry: FileEntry) -> io::Result<()> {
        if self.ring.push_file(entry) {
            Ok(())
        } else {
            Err(io::Error::other("the submission ring is full"))
        }
    }

    fn finish(&mut self, requests: u32, progress: &mut Progress) -> io::Result<()> {
        let mut open = requests;
        while open > 0 {
            match self.ring.submit_and_wait(open) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => result?,
            }
            self.ring.reap(|one| {
                open -= 1;
                progress.note(one.data, one.result);
            });
        }
        Ok(())
    }
}

fn transfer(writes: bool, at: *const u8, len: u64, offset: u64) -> Entry {
    let of_file = Entry::of_file(Opcode::Read, writes, SLOT);
    Entry { offset, address: at as usize as u64, len: len as u32, data: MOVE + len, ..of_file }
}

fn open(room: RawFd, name: &CStr, flags: i32) -> FileEntry {
    let of_name = Entry {
        address: name.as_ptr() as usize as u64,
        len: 0o666,
        data: OPEN,
        ..Entry::of_fd(Opcode::OpenAt, room)
    };
    FileEntry { entry: of_name, flags: flags as u32, slot: Some(SLOT) }
}

fn close() -> FileEntry {
    // The slot must be the only file: descriptor 0 with a slot means no descriptor.
    FileEntry {
        entry: Entry { data: CLOSE, ..Entry::of_fd(Opcode::Close, 0) },
        flags: 0,
        slot: Some(SLOT),
    }
}
