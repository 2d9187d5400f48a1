//! Reads a trace instance in binary, all processors.

use super::RecordError;
use super::clock::TraceClock;
use super::format;
use super::pages;
use super::seen::{Decoder, Seen};
use crate::linux::trace_instance::TraceInstance;
use machine::Nanos;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// More pages wait until the other processors have had their turn.
const MAX_PAGES: u32 = 256;

/// Fields are dropped in this order: files before the instance.
pub(super) struct Pipes {
    processors: Vec<File>,
    pub(super) instance: TraceInstance,
    page: Vec<u8>,
}

impl Pipes {
    pub(super) fn open(instance: TraceInstance) -> Result<Pipes, RecordError> {
        let bytes = format::page_bytes(&instance)
            .ok_or_else(|| RecordError::Format("header_page".into()))?;
        let mut names: Vec<_> = fs::read_dir(instance.path("per_cpu"))?
            .map(|entry| Ok(entry?.path().join("trace_pipe_raw")))
            .collect::<io::Result<_>>()?;
        names.sort();
        let open = |name| OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(name);
        let processors = names.into_iter().map(open).collect::<io::Result<_>>()?;
        Ok(Pipes { instance, processors, page: vec![0; bytes] })
    }

    pub(super) fn files(&self) -> &[File] {
        &self.processors
    }

    /// Lowers `horizon` to the time to which nothing is missing; returns the events lost.
    pub(super) fn read(
        &mut self,
        decoder: &Decoder,
        clock: TraceClock,
        into: &mut Vec<Seen>,
        horizon: &mut Nanos,
    ) -> io::Result<u64> {
        let mut lost = 0;
        for processor in &mut self.processors {
            let mut last = 0;
            let mut pages = 0;
            loop {
                if pages == MAX_PAGES {
                    *horizon = (*horizon).min(last);
                    break;
                }
                match processor.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(bytes) => {
                        lost += pages::read(&self.page[..bytes], |time, event| {
                            let at = clock.monotonic(time);
                            last = at;
                            into.extend(decoder.decode(at, event));
                        });
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
                pages += 1;
            }
        }
        Ok(lost)
    }
}
