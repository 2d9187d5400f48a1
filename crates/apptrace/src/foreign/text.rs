//! Parts of text traces.

use super::{ForeignError, MAX_NAMES, Result};
use crate::{Event, Index, Kind, Thread, TracedFile};
use machine::Nanos;
use std::collections::{HashMap, VecDeque};
use std::io::BufRead;

/// Shows at most 40 untrusted characters.
pub(super) fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("'{}{more}'", machine::text::printable(&shown))
}

pub(super) fn quoted_bytes(bytes: &[u8]) -> String {
    quoted(String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).lines().next().unwrap_or(""))
}

pub(super) fn number(name: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{name} {} is not a whole number", quoted(text)))
}

/// Drops digits after the nanoseconds.
pub(super) fn seconds(name: &str, text: &str) -> Result<Nanos, String> {
    let wrong = || format!("{name} {} is not a time in seconds", quoted(text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(wrong());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    let mut ns = 0;
    for place in 0..9 {
        ns = ns * 10 + fraction.as_bytes().get(place).map_or(0, |digit| u64::from(digit - b'0'));
    }
    whole.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(ns)).ok_or_else(wrong)
}

pub(super) fn check_end(offset: u64, bytes: u64) -> Result<(), String> {
    offset.checked_add(bytes).map(drop).ok_or_else(|| {
        format!("a request of {bytes} bytes at {offset} ends beyond 64 bits; correct it")
    })
}

pub(super) struct Lines<R> {
    from: R,
    max_bytes: usize,
    pub(super) line: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(from: R, max_bytes: usize) -> Lines<R> {
        Lines { from, max_bytes, line: 0 }
    }

    pub(super) fn next(&mut self) -> Result<Option<String>> {
        self.line += 1;
        files::next_line(&mut self.from, self.max_bytes)
            .map_err(|error| self.wrong(format!("it cannot be read: {error}")))
    }

    pub(super) fn wrong(&self, reason: String) -> ForeignError {
        ForeignError::Line { line: self.line, reason }
    }
}

#[derive(Default)]
pub(super) struct Names {
    files: HashMap<String, Index>,
    threads: HashMap<u32, Index>,
    next_file: Index,
}

impl Names {
    pub(super) fn file(
        &mut self,
        name: &str,
        kind: Kind,
        size_bytes: Option<u64>,
        out: &mut VecDeque<Event>,
    ) -> Result<Index, String> {
        if let Some(&file) = self.files.get(name) {
            return Ok(file);
        }
        if self.files.len() == MAX_NAMES {
            return Err(format!("it names more than {MAX_NAMES} files; read a part of it"));
        }
        let file = self.next_file;
        self.next_file += 1;
        self.files.insert(name.to_owned(), file);
        out.push_back(Event::File(TracedFile { name: name.to_owned(), kind, size_bytes }));
        Ok(file)
    }

    /// Lets a later file have the same name.
    pub(super) fn forget(&mut self, name: &str) -> Option<Index> {
        self.files.remove(name)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let Some(file) = self.files.remove(from) {
            self.files.insert(to.to_owned(), file);
        }
    }

    pub(super) fn thread(
        &mut self,
        process: u32,
        thread: u32,
        name: Option<&str>,
        out: &mut VecDeque<Event>,
    ) -> Result<Index, String> {
        if let Some(&index) = self.threads.get(&thread) {
            return Ok(index);
        }
        if self.threads.len() == MAX_NAMES {
            return Err(format!("it names more than {MAX_NAMES} threads; read a part of it"));
        }
        let index = self.threads.len() as Index;
        self.threads.insert(thread, index);
        out.push_back(Event::Thread(Thread { process, thread, name: name.map(str::to_owned) }));
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        for (text, ns) in [("0.551706", 551_706_000), ("12", 12_000_000_000), (".5", 500_000_000)] {
            assert_eq!(seconds("time", text), Ok(ns));
        }
        assert_eq!(seconds("time", "1700000000.1234567891"), Ok(1_700_000_000_123_456_789));
        for text in ["", ".", "-1", "1e3", "1.2.3", "99999999999999999999", "18446744074"] {
            assert!(seconds("time", text).is_err(), "{text}");
        }
    }
}
