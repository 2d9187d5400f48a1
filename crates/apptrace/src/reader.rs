use crate::code::{self, Last};
use crate::event::{Event, Renamed, Request, Thread, TracedFile};
use crate::header::{Header, Summary};
use crate::{Error, Result};
use std::io::{self, Read};
use xxhash_rust::xxh3::xxh3_64;

/// Holds at most one block, whatever the bytes are. Reads a cut file to its last whole block;
/// [`TraceReader::is_truncated`] then says so. After an error there are no more events.
pub struct TraceReader<R: Read> {
    from: R,
    header: Header,
    summary: Option<Summary>,
    block: Vec<u8>,
    at: usize,
    number: u64,
    last: Last,
    threads: u32,
    files: u32,
    is_ended: bool,
    is_truncated: bool,
}

impl<R: Read> TraceReader<R> {
    pub fn new(mut from: R) -> Result<TraceReader<R>> {
        let mut start = [0; 8 + 4 + 8];
        let got = fill(&mut from, &mut start)?;
        if !start[..got].starts_with(code::MAGIC) {
            return Err(Error::NotATrace);
        }
        if got > 7 && start[7] != code::VERSION {
            return Err(Error::Version(start[7]));
        }
        if got < start.len() {
            return Err(Error::Header("the file ends in it".into()));
        }
        let length = u32::from_le_bytes([start[8], start[9], start[10], start[11]]) as usize;
        if length > code::MAX_JSON_BYTES {
            return Err(Error::Header(format!("it has {length} bytes")));
        }
        let mut json = Vec::new();
        if (&mut from).take(length as u64).read_to_end(&mut json)? < length {
            return Err(Error::Header("the file ends in it".into()));
        }
        if xxh3_64(&json).to_le_bytes() != start[12..] {
            return Err(Error::Header("its checksum differs".into()));
        }
        let header =
            serde_json::from_slice(&json).map_err(|error| Error::Header(error.to_string()))?;
        Ok(TraceReader {
            from,
            header,
            summary: None,
            block: Vec::new(),
            at: 0,
            number: 0,
            last: Last::default(),
            threads: 0,
            files: 0,
            is_ended: false,
            is_truncated: false,
        })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// `None` before the last event, or if the file was cut.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The file had no summary: the recorder was killed, or the file was cut.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    fn next_block(&mut self) -> Result<bool> {
        let mut head = [0; code::BLOCK_HEAD_BYTES];
        let got = fill(&mut self.from, &mut head)?;
        if got < head.len() {
            self.is_truncated = self.summary.is_none();
            if got > 0 && self.summary.is_some() {
                return Err(self.invalid("bytes follow the summary"));
            }
            return Ok(false);
        }
        self.number += 1;
        if self.summary.is_some() {
            return Err(self.invalid("a block follows the summary"));
        }
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > code::MAX_BLOCK_BYTES {
            return Err(Error::BlockBytes { block: self.number, bytes: length as u64 });
        }
        self.block.clear();
        self.at = 0;
        self.last = Last::default();
        if (&mut self.from).take(length as u64).read_to_end(&mut self.block)? < length {
            self.block.clear();
            self.is_truncated = true;
            return Ok(false);
        }
        if xxh3_64(&self.block).to_le_bytes() != head[5..] {
            return Err(Error::Checksum { block: self.number });
        }
        match head[0] {
            code::EVENTS => Ok(true),
            code::SUMMARY => {
                let summary = serde_json::from_slice(&self.block)
                    .map_err(|_| self.invalid("its summary is not one"))?;
                self.summary = Some(summary);
                self.block.clear();
                self.next_block()
            }
            _ => Err(self.invalid("its kind is not known")),
        }
    }

    fn event(&mut self) -> Result<Event> {
        match self.byte()? {
            code::THREAD => {
                if self.threads == code::MAX_INDICES {
                    return Err(self.invalid("more than 2^24 threads"));
                }
                self.threads += 1;
                let (process, thread) = (self.small()?, self.small()?);
                let name = if self.flag()? { Some(self.name()?) } else { None };
                Ok(Event::Thread(Thread { process, thread, name }))
            }
            code::FILE => {
                if self.files == code::MAX_INDICES {
                    return Err(self.invalid("more than 2^24 files"));
                }
                self.files += 1;
                let name = self.name()?;
                let kind = self.byte()?;
                let kind = self.of(&code::KINDS, kind)?;
                let size_bytes = if self.flag()? { Some(self.varint()?) } else { None };
                Ok(Event::File(TracedFile { name, kind, size_bytes }))
            }
            code::RENAMED => {
                let file = self.small()?;
                if file >= self.files {
                    return Err(self.invalid("a new name of a file that is not there"));
                }
                Ok(Event::Renamed(Renamed { file, name: self.name()? }))
            }
            code::LOST => Ok(Event::Lost(self.varint()?)),
            tag if tag & code::REQUEST != 0 => self.request(tag).map(Event::Request),
            _ => Err(self.invalid("an event of an unknown kind")),
        }
    }

    fn request(&mut self, tag: u8) -> Result<Request> {
        let bits = self.byte()?;
        let access = self.of(&code::ACCESSES, tag & 0x0f)?;
        let interface = self.of(&code::INTERFACES, bits & 0x07)?;
        let since = code::unzigzag(self.varint()?);
        let at_ns = self.last.at_ns.wrapping_add(since as u64);
        self.last.at_ns = at_ns;
        let duration_ns = if tag & code::HAS_DURATION != 0 { Some(self.varint()?) } else { None };
        let thread = if bits & code::HAS_THREAD != 0 { Some(self.small()?) } else { None };
        let file = self.small()?;
        if file >= self.files || thread.is_some_and(|index| index >= self.threads) {
            return Err(self.invalid("a request of a file or thread that is not there"));
        }
        let from_end =
            if tag & code::HAS_OFFSET != 0 { Some(code::unzigzag(self.varint()?)) } else { None };
        let bytes = self.varint()?;
        let offset = from_end.map(|from_end| {
            let end = self.last.end(file);
            let offset = end.wrapping_add(from_end as u64);
            *end = offset.wrapping_add(bytes);
            offset
        });
        let result = if bits & code::DONE != 0 {
            Some(i64::try_from(bytes).map_err(|_| self.invalid("a request of 2^63 bytes"))?)
        } else if self.flag()? {
            Some(code::unzigzag(self.varint()?))
        } else {
            None
        };
        Ok(Request {
            at_ns,
            duration_ns,
            thread,
            file,
            access,
            interface,
            offset,
            bytes,
            result,
            open: code::open_file(bits, interface),
        })
    }

    fn invalid(&self, what: &'static str) -> Error {
        Error::Invalid { block: self.number, what }
    }

    fn of<T: Copy>(&self, table: &[T], number: u8) -> Result<T> {
        table.get(usize::from(number)).copied().ok_or(self.invalid("an unknown value"))
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.block.get(self.at).copied();
        self.at += 1;
        byte.ok_or(self.invalid("it ends in an event"))
    }

    fn flag(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.invalid("an unknown value")),
        }
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.invalid("a number above 2^64"))
    }

    fn small(&mut self) -> Result<u32> {
        u32::try_from(self.varint()?).map_err(|_| self.invalid("a number above 2^32"))
    }

    fn name(&mut self) -> Result<String> {
        let length = self.varint()?;
        if length > code::MAX_NAME_BYTES as u64 {
            return Err(self.invalid("a name of more than 4096 bytes"));
        }
        let end = self.at + length as usize;
        let bytes = self.block.get(self.at..end).ok_or(self.invalid("it ends in a name"))?;
        let name = std::str::from_utf8(bytes).map_err(|_| self.invalid("a name is not UTF-8"))?;
        self.at = end;
        Ok(name.to_owned())
    }
}

impl<R: Read> Iterator for TraceReader<R> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        while !self.is_ended && self.at >= self.block.len() {
            match self.next_block() {
                Ok(true) => {}
                Ok(false) => self.is_ended = true,
                Err(error) => {
                    self.is_ended = true;
                    return Some(Err(error));
                }
            }
        }
        if self.is_ended {
            return None;
        }
        let event = self.event();
        self.is_ended = event.is_err();
        Some(event)
    }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match from.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
