//! Writing to standard output or error never panics; a closed pipe is no error.

use crate::failure::Failure;
use crate::progress::{Bar, Display, Mode, Progress};
use machine::text::{PrintableWriter, printable};
use machine::units::Units;
use std::io::{self, ErrorKind, IsTerminal, Stdout, Write};
use std::sync::Arc;

#[derive(Clone, Default)]
pub(crate) struct Console {
    progress: Arc<Progress>,
    /// Rank 0 speaks for all ranks.
    silent: bool,
}

impl Console {
    pub(crate) fn silent() -> Console {
        Console { silent: true, ..Console::default() }
    }

    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let print = || {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        };
        match self.suspended(print) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(cannot_print(error)),
            _ => Ok(()),
        }
    }

    pub(crate) fn tell(&self, message: &str) {
        if self.silent {
            return;
        }
        // Standard error may be closed.
        self.suspended(|| drop(writeln!(io::stderr(), "halfpower: {}", printable(message))));
    }

    pub(crate) fn warn(&self, warnings: &[String]) {
        warnings.iter().for_each(|warning| self.tell(&format!("warning: {warning}")));
    }

    pub(crate) fn report(&self) -> Report {
        Report { to: PrintableWriter(io::stdout()), progress: Arc::clone(&self.progress) }
    }

    pub(crate) fn suspended<T>(&self, print: impl FnOnce() -> T) -> T {
        self.progress.suspended(print)
    }

    pub(crate) fn display(&self, mode: Mode) -> Display {
        Display::start(&self.progress, mode)
    }

    pub(crate) fn show_in(&self, units: Units) {
        self.progress.show_in(units);
    }

    pub(crate) fn bar(&self, steps: u64) -> Bar {
        Bar::of_steps(&self.progress, steps)
    }

    pub(crate) fn time_bar(&self, budget_ns: u64) -> Bar {
        Bar::of_time(&self.progress, budget_ns)
    }
}

pub(crate) fn cannot_print(error: io::Error) -> Failure {
    Failure::Run(format!("cannot write to standard output: {error}"))
}

/// Escapes unprintable names; discards output once the pipe is closed.
pub(crate) struct Report {
    to: PrintableWriter<Stdout>,
    progress: Arc<Progress>,
}

impl Write for Report {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let within_line = bytes.last() != Some(&b'\n') && io::stdout().is_terminal();
        match self.progress.reported(within_line, || self.to.write(bytes)) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush().or_else(|error| {
            if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
        })
    }
}
