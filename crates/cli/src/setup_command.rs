//! The user's shell commands between measurements.

use crate::interrupt;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);
/// A signal to this program and the command arrives here within this time.
const SIGNAL_DELAY: Duration = Duration::from_millis(50);
/// An interrupted command may clean up for this long.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) enum Ended {
    Success,
    Failed(ExitStatus),
    Interrupted,
}

/// An interrupt of this program also ends the command.
pub(crate) fn run(command: &str, [output, errors]: [Stdio; 2]) -> io::Result<Ended> {
    // It stays in this program's process group, because `sudo` may ask for a password.
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(output).stderr(errors);
    let mut shell = shell.spawn()?;
    let status = loop {
        if let Some(status) = shell.try_wait()? {
            break status;
        }
        if is_interrupted() {
            return end(&mut shell).map(|()| Ended::Interrupted);
        }
        sleep(POLL);
    };
    if status.success() {
        return Ok(Ended::Success);
    }
    // Ctrl-C may have ended it.
    sleep(SIGNAL_DELAY);
    Ok(if is_interrupted() { Ended::Interrupted } else { Ended::Failed(status) })
}

fn is_interrupted() -> bool {
    interrupt::flag().load(Ordering::Relaxed)
}

fn end(shell: &mut Child) -> io::Result<()> {
    let asked = Instant::now();
    if let Ok(process) = i32::try_from(shell.id()) {
        // SAFETY: `kill` takes no memory; the process has not been waited for, so its number is
        // still its own.
        unsafe { libc::kill(process, libc::SIGTERM) };
    }
    while shell.try_wait()?.is_none() {
        if asked.elapsed() >= PATIENCE {
            shell.kill()?;
        }
        sleep(POLL);
    }
    Ok(())
}
