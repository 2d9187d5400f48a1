//! fio's `write_iolog` and `read_iolog`, versions 2 and 3. A line has microseconds since the start,
//! a file, an action and, for requests, offset and length in bytes. Version 2 has `wait` lines
//! instead of times.

use super::text::{Lines, quoted};
use super::{ForeignError, MAX_NAMES, Reader, Result};
use crate::{Access, Event, Interface, Kind, OpenFile, Request, TracedFile};
use machine::{Nanos, Op, Stability};
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::io::{BufRead, Read};

/// A line has a name, an action and two numbers.
const MAX_LINE_BYTES: usize = 8192;

const MICROSECOND_NS: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Request(Op),
    Sync(Stability),
    Trim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Since the start.
    pub at_ns: Nanos,
    pub action: Action,
    /// Index in [`Log::files`].
    pub file: u32,
    pub offset: u64,
    pub len: u32,
}

/// Read a line at a time.
pub struct Log<R> {
    lines: Lines<R>,
    has_times: bool,
    files: Vec<String>,
    numbers: HashMap<String, u32>,
    waited_ns: Nanos,
    waits: bool,
    announced: usize,
}

impl<R: BufRead> Log<R> {
    pub fn new(mut from: R) -> Result<Log<R>> {
        const OTHER: &str = "it is not a trace in text: its first line is not 'fio version 3 iolog' (a trace of blktrace is turned into one with halfpower trace convert --to fio-log)";
        let mut first = Vec::new();
        (&mut from)
            .take(64)
            .read_until(b'\n', &mut first)
            .map_err(|error| ForeignError::Whole(format!("it cannot be read: {error}")))?;
        let has_times = match String::from_utf8_lossy(&first).trim_end() {
            "fio version 2 iolog" => false,
            "fio version 3 iolog" => true,
            _ => return Err(ForeignError::Whole(OTHER.into())),
        };
        let mut lines = Lines::new(from, MAX_LINE_BYTES);
        lines.line = 1;
        Ok(Log {
            lines,
            has_times,
            files: Vec::new(),
            numbers: HashMap::new(),
            waited_ns: 0,
            waits: false,
            announced: 0,
        })
    }

    /// Those added so far.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// `true` for version 3, or after a `wait` line.
    pub fn timed(&self) -> bool {
        self.has_times || self.waits
    }

    /// `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            if let Some(entry) = self.take(&line).map_err(|why| self.lines.wrong(why))? {
                return Ok(Some(entry));
            }
        }
    }

    fn take(&mut self, line: &str) -> Result<Option<Entry>, String> {
        let mut words = line.split_whitespace();
        let Some(mut word) = words.next() else { return Ok(None) };
        let number = |word: &str| {
            word.parse::<u64>().map_err(|_| format!("{} is not a number from 0 up", quoted(word)))
        };
        let mut at_ns = self.waited_ns;
        if self.has_times {
            at_ns = number(word)?.saturating_mul(MICROSECOND_NS);
            word = words.next().ok_or("it has no file after its time")?;
        }
        let (name, action) = (word, words.next().ok_or("it has no action after its file")?);
        let rest: Vec<u64> = words.map(number).collect::<Result<_, _>>()?;
        let action = match (action, rest.as_slice()) {
            ("add", []) => return self.add(name).map(|()| None),
            ("open" | "close", []) => return Ok(None),
            ("wait", [us, ..]) if !self.has_times => {
                self.waited_ns = self.waited_ns.saturating_add(us.saturating_mul(MICROSECOND_NS));
                self.waits = true;
                return Ok(None);
            }
            ("read", [_, _]) => Action::Request(Op::Read),
            ("write", [_, _]) => Action::Request(Op::Write),
            ("trim", [_, _]) => Action::Trim,
            ("sync", _) => Action::Sync(Stability::File),
            ("datasync", _) => Action::Sync(Stability::Data),
            _ => {
                return Err(format!(
                    "{} with {} numbers is not an action of a trace",
                    quoted(action),
                    rest.len()
                ));
            }
        };
        let file = *self
            .numbers
            .get(name)
            .ok_or_else(|| format!("the file {} was not added before", quoted(name)))?;
        let (offset, len) = (rest.first().copied().unwrap_or(0), rest.get(1).copied().unwrap_or(0));
        if matches!(action, Action::Sync(_)) {
            return Ok(Some(Entry { at_ns, action, file, offset: 0, len: 0 }));
        }
        let len = u32::try_from(len).ok().filter(|len| *len > 0).ok_or_else(|| {
            format!("a request of {len} B is not from 1 B to less than 4 GiB; correct its length")
        })?;
        offset.checked_add(len.into()).ok_or("it ends beyond 64 bits")?;
        Ok(Some(Entry { at_ns, action, file, offset, len }))
    }

    fn add(&mut self, name: &str) -> Result<(), String> {
        if !self.numbers.contains_key(name) {
            if self.files.len() == MAX_NAMES {
                return Err(format!("it has more than {MAX_NAMES} files"));
            }
            self.numbers.insert(name.into(), self.files.len() as u32);
            self.files.push(name.into());
        }
        Ok(())
    }

    /// The last line read, from 1.
    pub fn line(&self) -> u64 {
        self.lines.line
    }
}

impl<R: BufRead + Send> Reader for Log<R> {
    fn step(&mut self, out: &mut VecDeque<Event>) -> Result<bool> {
        let Some(entry) = self.next_entry()? else { return Ok(false) };
        for name in &self.files[self.announced..] {
            let file = TracedFile { name: name.clone(), kind: Kind::Unknown, size_bytes: None };
            out.push_back(Event::File(file));
        }
        self.announced = self.files.len();
        let (access, offset) = match entry.action {
            Action::Request(Op::Read) => (Access::Read, Some(entry.offset)),
            Action::Request(Op::Write) => (Access::Write, Some(entry.offset)),
            Action::Trim => (Access::Discard, Some(entry.offset)),
            Action::Sync(Stability::Data) => (Access::SyncData, None),
            Action::Sync(_) => (Access::SyncFile, None),
        };
        out.push_back(Event::Request(Request {
            at_ns: entry.at_ns,
            duration_ns: None,
            thread: None,
            file: entry.file,
            access,
            interface: Interface::SystemCall,
            offset,
            bytes: entry.len.into(),
            result: None,
            open: OpenFile::default(),
        }));
        Ok(true)
    }
}

/// Version 3, sorted by time; `files` are names by number.
///
/// ```
/// use apptrace::foreign::fio_log::{Action, Entry, text};
/// use machine::Op;
///
/// let action = Action::Request(Op::Read);
/// let entry = Entry { at_ns: 2000, action, file: 0, offset: 0, len: 512 };
/// let log = text(&["/a"], &[entry]);
/// assert_eq!(log, "fio version 3 iolog\n0 /a add\n0 /a open\n2 /a read 0 512\n2 /a close\n");
/// ```
pub fn text(files: &[&str], entries: &[Entry]) -> String {
    let mut text = String::from("fio version 3 iolog\n");
    // Writing to a String cannot fail.
    for file in files {
        let _ = writeln!(text, "0 {file} add\n0 {file} open");
    }
    for entry in entries {
        let action = match entry.action {
            Action::Request(Op::Read) => "read",
            Action::Request(Op::Write) => "write",
            Action::Trim => "trim",
            Action::Sync(Stability::Data) => "datasync",
            Action::Sync(_) => "sync",
        };
        let (at, file) = (entry.at_ns / MICROSECOND_NS, files[entry.file as usize]);
        let _ = writeln!(text, "{at} {file} {action} {} {}", entry.offset, entry.len);
    }
    let last = entries.last().map_or(0, |entry| entry.at_ns / MICROSECOND_NS);
    for file in files {
        let _ = writeln!(text, "{last} {file} close");
    }
    text
}
