//! A pipe holds 64 KiB by default: a larger request takes several calls of `splice` and `vmsplice`.

use super::open::{Open, Setup, discard, synchronise};
use crate::session::BlockingSession;
use machine::{Op, Request, Stability};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, pipe_with, splice, vmsplice};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

pub(crate) struct Spliced<'a> {
    fds: &'a [RawFd],
    pipe: Pipe,
}

/// Empty, except during a request.
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

impl Pipe {
    fn new() -> rustix::io::Result<Pipe> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Pipe { out, into })
    }

    fn read(&self, fd: BorrowedFd<'_>, offset: u64, data: &mut [u8]) -> rustix::io::Result<usize> {
        let mut from = offset;
        let held = retry_on_intr(|| {
            splice(fd, Some(&mut from), &self.into, None, data.len(), SpliceFlags::MORE)
        })?;
        let mut taken = 0;
        while taken < held {
            let rest = [IoSliceRaw::from_slice_mut(&mut data[taken..held])];
            // SAFETY: from the reading end, the call copies into `rest`.
            taken += retry_on_intr(|| unsafe { vmsplice(&self.out, &rest, SpliceFlags::MOVE) })?;
        }
        Ok(held)
    }

    fn write(&self, fd: BorrowedFd<'_>, offset: u64, data: &[u8]) -> rustix::io::Result<usize> {
        let all = [IoSliceRaw::from_slice(data)];
        // SAFETY: the pipe refers to the pages of `data`, and is empty again before they change.
        let held = retry_on_intr(|| unsafe { vmsplice(&self.into, &all, SpliceFlags::NONBLOCK) })?;
        let mut to = offset;
        let mut given = 0;
        while given < held {
            let left = held - given;
            match retry_on_intr(|| {
                splice(&self.out, None, fd, Some(&mut to), left, SpliceFlags::MOVE)
            })? {
                0 => return Err(Errno::IO),
                bytes => given += bytes,
            }
        }
        Ok(held)
    }
}

impl Spliced<'_> {
    fn transfer(&mut self, request: &Request, data: &mut [u8]) -> (usize, rustix::io::Result<()>) {
        // SAFETY: a stream's files stay open as long as its session.
        let fd = unsafe { BorrowedFd::borrow_raw(self.fds[request.target as usize]) };
        let mut done = 0;
        while done < data.len() {
            let (offset, rest) = (request.offset + done as u64, &mut data[done..]);
            let moved = match request.op {
                Op::Read => self.pipe.read(fd, offset, rest),
                Op::Write => self.pipe.write(fd, offset, rest),
            };
            match moved {
                Ok(0) => break,
                Ok(bytes) => done += bytes,
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }
}

impl<'f> Open<'f> for Spliced<'f> {
    fn open(setup: Setup<'f, '_>) -> io::Result<Self> {
        Ok(Spliced { fds: setup.fds, pipe: Pipe::new()? })
    }
}

impl BlockingSession for Spliced<'_> {
    fn perform(&mut self, request: &Request, at: *mut u8) -> i32 {
        // SAFETY: `at` is `len` bytes of the session's arena.
        let data = unsafe { std::slice::from_raw_parts_mut(at, request.len as usize) };
        let (done, end) = self.transfer(request, data);
        let Err(error) = end else { return done as i32 };
        // The pipe may hold data of this request, which the next must not move: without a new one,
        // even a request that was done in part has failed.
        match Pipe::new() {
            Ok(pipe) => self.pipe = pipe,
            Err(error) => return -Errno::raw_os_error(error),
        }
        if done == 0 { -Errno::raw_os_error(error) } else { done as i32 }
    }

    fn discard(&mut self, request: &Request) -> io::Result<()> {
        discard(self.fds, request)
    }

    fn sync(&mut self, what: Stability, target: Option<u32>) -> io::Result<()> {
        synchronise(self.fds, what, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn request(op: Op, target: u32, offset: u64, data: &[u8]) -> Request {
        Request { op, target, offset, len: data.len() as u32, slot: 0 }
    }

    #[test]
    fn blocks_larger_than_a_pipe_move_both_ways_also_after_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        std::fs::write(&path, []).unwrap();
        let both = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let reader = std::fs::File::open(&path).unwrap();
        let fds = [both.as_raw_fd(), reader.as_raw_fd()];
        let mut session = Spliced { fds: &fds, pipe: Pipe::new().unwrap() };

        let mut data: Vec<u8> = (0..300_000_u32).map(|index| (index % 251) as u8).collect();
        let write = request(Op::Write, 0, 12_345, &data);
        assert_eq!(session.perform(&write, data.as_mut_ptr()), 300_000);
        assert_eq!(std::fs::read(&path).unwrap()[12_345..], data);

        // The pipe is full when the write fails; the next request must not find that data.
        let mut other = vec![255; 4096];
        let refused = request(Op::Write, 1, 0, &other);
        assert_eq!(session.perform(&refused, other.as_mut_ptr()), -libc::EBADF);
        let mut back = vec![0; 300_000];
        let read = request(Op::Read, 0, 12_345, &back);
        assert_eq!(session.perform(&read, back.as_mut_ptr()), 300_000);
        assert!(back == data);

        // Past the end there is less to read, then nothing.
        let read = request(Op::Read, 0, 312_000, &back);
        assert_eq!(session.perform(&read, back.as_mut_ptr()), 345);
        assert_eq!(back[..345], data[299_655..]);
        let read = request(Op::Read, 0, 400_000, &back);
        assert_eq!(session.perform(&read, back.as_mut_ptr()), 0);
    }
}
