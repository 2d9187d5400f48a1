//! A command that waits before its first instruction until the recording runs.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread::JoinHandle;

pub(super) struct StoppedChild {
    pub(super) process: u32,
    go: File,
    /// `spawn` returns only when the command has replaced this program.
    spawned: JoinHandle<io::Result<Child>>,
}

impl StoppedChild {
    pub(super) fn start(words: &[OsString]) -> io::Result<StoppedChild> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut command = Command::new(program);
        command.args(arguments);
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        let (number_end, number): (OwnedFd, OwnedFd) = pipe()?;
        let (go_end, go): (OwnedFd, OwnedFd) = pipe()?;
        let (number_raw, go_end_raw, go_raw) =
            (number.as_raw_fd(), go_end.as_raw_fd(), go.as_raw_fd());
        let wait = move || {
            // SAFETY: only calls that are safe after fork, on descriptors that the closures of the
            // parent keep open until the command has started.
            unsafe {
                let own = libc::getpid().to_le_bytes();
                let written = libc::write(number_raw, own.as_ptr().cast(), own.len());
                // So that the end of the recorder is seen below.
                libc::close(go_raw);
                let mut byte = 0_u8;
                let got = libc::read(go_end_raw, (&raw mut byte).cast(), 1);
                if written != own.len() as isize || got != 1 {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
            }
            Ok(())
        };
        // SAFETY: as above.
        unsafe { command.pre_exec(wait) };
        let spawned = std::thread::Builder::new().name("command".into()).spawn(move || {
            let child = command.spawn();
            drop((number, go_end));
            child
        })?;
        let mut own = [0; 4];
        let mut number_end = File::from(number_end);
        if let Err(error) = number_end.read_exact(&mut own) {
            // It could not be forked.
            return Err(spawned.join().ok().and_then(Result::err).unwrap_or(error));
        }
        Ok(StoppedChild { process: u32::from_le_bytes(own), go: File::from(go), spawned })
    }

    pub(super) fn go(mut self) -> io::Result<Child> {
        self.go.write_all(&[1])?;
        self.spawned.join().map_err(|_| io::Error::other("the thread that starts it failed"))?
    }
}
