//! Readers of other tools' traces: each streams in bounded memory, is detected by content, and
//! names a fault's line or byte.

mod blktrace;
mod delimited;
pub mod fio_log;
mod order;
mod strace;
mod text;

use crate::{Event, TraceReader};
use order::Ordered;
use std::collections::VecDeque;
use std::io::BufRead;
use std::path::Path;

/// Threads and files, held in memory.
const MAX_NAMES: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    #[error("line {line}: {reason}")]
    Line { line: u64, reason: String },
    #[error("byte {byte}: {reason}")]
    Byte { byte: u64, reason: String },
    #[error("{0}")]
    Whole(String),
}

pub(crate) type Result<T, E = ForeignError> = std::result::Result<T, E>;

pub type Events = Box<dyn Iterator<Item = Result<Event>> + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Halfpower,
    /// fio's `write_iolog`, versions 2 and 3.
    FioLog,
    Blktrace,
    Delimited(Table),
    /// From `strace -f -ttt -T`.
    Strace,
}

/// Commas, one request a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// `time_ns,op,offset,bytes`.
    Plain,
    /// fio's log, version 1: `rw,offset,length`.
    FioLog1,
    /// MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
    Msr,
    /// Storage Performance Council: `ASU,LBA,size,opcode,timestamp`.
    Spc,
    /// SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`.
    Systor,
    /// Alibaba block traces: `device_id,opcode,offset,length,timestamp`.
    Alibaba,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Halfpower => "halfpower trace",
            Format::FioLog => "fio log",
            Format::Blktrace => "blktrace",
            Format::Strace => "strace",
            Format::Delimited(Table::Plain) => "CSV (time_ns,op,offset,bytes)",
            Format::Delimited(Table::FioLog1) => "fio log, version 1",
            Format::Delimited(Table::Msr) => "MSR Cambridge CSV",
            Format::Delimited(Table::Spc) => "SPC trace",
            Format::Delimited(Table::Systor) => "SYSTOR '17 CSV",
            Format::Delimited(Table::Alibaba) => "Alibaba block trace",
        }
    }
}

/// Needs at least the first line in `head`.
pub fn detect(head: &[u8]) -> Option<Format> {
    if head.starts_with(crate::code::MAGIC) {
        return Some(Format::Halfpower);
    }
    if head.starts_with(b"fio version ") {
        return Some(Format::FioLog);
    }
    if blktrace::is_start(head) {
        return Some(Format::Blktrace);
    }
    let text = String::from_utf8_lossy(head);
    let first = text
        .lines()
        .map(|line| line.trim_start_matches('\u{feff}').trim())
        .find(|line| !line.is_empty() && !line.starts_with('#'))?;
    if strace::is_line(first) {
        return Some(Format::Strace);
    }
    delimited::detect(first).map(Format::Delimited)
}

pub(crate) trait Reader: Send {
    /// `false` at the end of the trace.
    fn step(&mut self, out: &mut VecDeque<Event>) -> Result<bool>;
}

struct Steps<R> {
    reader: R,
    ready: VecDeque<Event>,
    ended: bool,
}

impl<R: Reader> Iterator for Steps<R> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.ended {
            match self.reader.step(&mut self.ready) {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

fn events(reader: impl Reader + 'static) -> Events {
    let steps = Steps { reader, ready: VecDeque::new(), ended: false };
    Box::new(Ordered::new(steps))
}

pub enum Trace {
    Halfpower(Box<TraceReader<Box<dyn BufRead + Send>>>),
    Foreign(Format, Events),
}

impl Trace {
    pub fn events(self) -> (Format, Events) {
        let whole = |error: crate::Error| ForeignError::Whole(error.to_string());
        match self {
            Trace::Halfpower(reader) => {
                (Format::Halfpower, Box::new(reader.map(move |event| event.map_err(whole))))
            }
            Trace::Foreign(format, events) => (format, events),
        }
    }
}

/// Times begin at 0 with the first request; requests are in the order of their start. The iterator
/// ends with the first fault.
pub fn read(mut from: impl BufRead + Send + 'static) -> Result<Trace> {
    let head = from.fill_buf().map_err(|error| ForeignError::Whole(error.to_string()))?;
    let format = detect(head).ok_or_else(|| {
        ForeignError::Whole(if head.is_empty() {
            "no requests: it is empty".into()
        } else {
            format!(
                "no known trace format begins with {}; give a trace of halfpower record, strace -f -ttt -T, blktrace or fio, or lines of time_ns,op,offset,bytes",
                text::quoted_bytes(head)
            )
        })
    })?;
    let events = match format {
        Format::Halfpower => {
            let whole = |error: crate::Error| ForeignError::Whole(error.to_string());
            let from: Box<dyn BufRead + Send> = Box::new(from);
            return Ok(Trace::Halfpower(Box::new(TraceReader::new(from).map_err(whole)?)));
        }
        Format::FioLog => events(fio_log::Log::new(from)?),
        Format::Blktrace => events(blktrace::Blktrace::new(vec![Box::new(from)])?),
        Format::Delimited(table) => events(delimited::Delimited::new(from, table)),
        Format::Strace => events(strace::Strace::new(from)),
    };
    Ok(Trace::Foreign(format, events))
}

const TRACE: files::Input = files::Input::new("a trace", 1 << 40);

/// Detection needs the first line.
const BUFFER_BYTES: usize = 64 << 10;

/// One file of a blktrace (`NAME.blktrace.0`), or only NAME, opens those of all processors.
pub fn open(path: &Path) -> Result<Trace> {
    let opened = |path: &Path| {
        let file = TRACE.open(path).map_err(|error| ForeignError::Whole(error.to_string()))?;
        Ok(std::io::BufReader::with_capacity(BUFFER_BYTES, file))
    };
    let processors = blktrace::files_of(path);
    if processors.len() > 1 || !path.exists() && !processors.is_empty() {
        let sources = processors
            .iter()
            .map(|path| Ok(Box::new(opened(path)?) as Box<dyn BufRead + Send>))
            .collect::<Result<Vec<_>>>()?;
        let events = events(blktrace::Blktrace::new(sources)?);
        return Ok(Trace::Foreign(Format::Blktrace, events));
    }
    read(opened(path)?)
}

#[cfg(test)]
mod tests;
