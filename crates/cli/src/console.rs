//! Standard output and standard error. Writing never panics; a closed pipe is not an error.

use crate::failure::Failure;
use machine::text::{PrintableWriter, printable};
use std::io::{self, ErrorKind, IsTerminal, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let print = || {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    match crate::progress::suspended(print) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(cannot_print(error)),
        _ => Ok(()),
    }
}

pub(crate) fn cannot_print(error: io::Error) -> Failure {
    Failure::Run(format!("cannot write to standard output: {error}"))
}

/// Standard output for another tool's report. Escapes unprintable names; discards output once the
/// pipe is closed.
pub(crate) struct Report(PrintableWriter<Stdout>);

pub(crate) fn report() -> Report {
    Report(PrintableWriter(io::stdout()))
}

impl Write for Report {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let within_line = bytes.last() != Some(&b'\n') && io::stdout().is_terminal();
        match crate::progress::reported(within_line, || self.0.write(bytes)) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().or_else(|error| {
            if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
        })
    }
}

/// Another process reports everything.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Makes [`tell`] silent: rank 0 speaks for all.
pub(crate) fn be_silent() {
    SILENT.store(true, Ordering::Relaxed);
}

pub(crate) fn tell(message: &str) {
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    // Standard error may be closed.
    let print = || drop(writeln!(io::stderr(), "halfpower: {}", printable(message)));
    crate::progress::suspended(print);
}

pub(crate) fn warn(warnings: &[String]) {
    warnings.iter().for_each(|warning| tell(&format!("warning: {warning}")));
}
