use crate::code::{self, Last};
use crate::event::{Event, Index, Renamed, Request, Thread, TracedFile};
use crate::header::{Header, Summary};
use crate::{Error, Result};
use std::io::{self, Write};
use xxhash_rust::xxh3::xxh3_64;

const BLOCK_BYTES: usize = 64 << 10;

/// Writes a block at a time. Without [`TraceWriter::finish`] the file has no summary, as if cut.
pub struct TraceWriter<W: Write> {
    to: W,
    block: Vec<u8>,
    last: Last,
    threads: u32,
    files: u32,
    requests: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Fails if the header exceeds 1 MiB.
    pub fn new(mut to: W, header: &Header) -> Result<TraceWriter<W>> {
        let json = json(header)?;
        let mut bytes = Vec::with_capacity(json.len() + 20);
        bytes.extend(code::MAGIC);
        bytes.push(code::VERSION);
        bytes.extend((json.len() as u32).to_le_bytes());
        bytes.extend(xxh3_64(&json).to_le_bytes());
        bytes.extend(json);
        to.write_all(&bytes)?;
        let block = Vec::with_capacity(BLOCK_BYTES + 3 * code::MAX_NAME_BYTES);
        Ok(TraceWriter { to, block, last: Last::default(), threads: 0, files: 0, requests: 0 })
    }

    /// Gives threads and files indices in the order of their events.
    /// Fails if a request names an unknown thread or file, or beyond 2^24 files or threads.
    pub fn event(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::Thread(thread) => self.thread(thread)?,
            Event::File(file) => self.file(file)?,
            Event::Request(request) => self.request(request)?,
            Event::Renamed(Renamed { file, name }) => {
                if *file >= self.files {
                    return Err(invalid("a new name of a file that was not written before it"));
                }
                self.block.push(code::RENAMED);
                self.number((*file).into());
                self.name(name);
            }
            Event::Lost(count) => {
                self.block.push(code::LOST);
                self.number(*count);
            }
        }
        if self.block.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The next thread's index.
    pub fn threads(&self) -> Index {
        self.threads
    }

    /// The next file's index.
    pub fn files(&self) -> Index {
        self.files
    }

    /// Writes events held back, for readers.
    pub fn flush(&mut self) -> Result<()> {
        self.end_block()?;
        Ok(self.to.flush()?)
    }

    /// Ends the trace; counts requests itself.
    /// Fails if the summary exceeds 1 MiB.
    pub fn finish(mut self, summary: Summary) -> Result<W> {
        self.end_block()?;
        let json = json(&Summary { requests: self.requests, ..summary })?;
        self.write_block(code::SUMMARY, &json)?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn thread(&mut self, thread: &Thread) -> Result<()> {
        next_index(&mut self.threads)?;
        self.block.push(code::THREAD);
        self.number(thread.process.into());
        self.number(thread.thread.into());
        self.block.push(u8::from(thread.name.is_some()));
        if let Some(name) = &thread.name {
            self.name(name);
        }
        Ok(())
    }

    fn file(&mut self, file: &TracedFile) -> Result<()> {
        next_index(&mut self.files)?;
        self.block.push(code::FILE);
        self.name(&file.name);
        self.block.push(code::number(&code::KINDS, &file.kind));
        self.block.push(u8::from(file.size_bytes.is_some()));
        if let Some(size) = file.size_bytes {
            self.number(size);
        }
        Ok(())
    }

    fn request(&mut self, request: &Request) -> Result<()> {
        if request.file >= self.files || request.thread.is_some_and(|index| index >= self.threads) {
            return Err(invalid("a request names a file or thread that was not written before it"));
        }
        let access = code::number(&code::ACCESSES, &request.access);
        let interface = code::number(&code::INTERFACES, &request.interface);
        let is_done = request.result.is_some_and(|done| i64::try_from(request.bytes) == Ok(done));
        let set = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        self.block.push(
            code::REQUEST
                | access
                | set(request.duration_ns.is_some(), code::HAS_DURATION)
                | set(request.offset.is_some(), code::HAS_OFFSET),
        );
        self.block.push(
            interface
                | code::open_bits(request.open)
                | set(request.thread.is_some(), code::HAS_THREAD)
                | set(is_done, code::DONE),
        );
        let since = request.at_ns.wrapping_sub(self.last.at_ns) as i64;
        self.number(code::zigzag(since));
        self.last.at_ns = request.at_ns;
        for number in [request.duration_ns, request.thread.map(u64::from)].into_iter().flatten() {
            self.number(number);
        }
        self.number(request.file.into());
        if let Some(offset) = request.offset {
            let end = self.last.end(request.file);
            let from_end = offset.wrapping_sub(*end) as i64;
            *end = offset.wrapping_add(request.bytes);
            self.number(code::zigzag(from_end));
        }
        self.number(request.bytes);
        if !is_done {
            self.block.push(u8::from(request.result.is_some()));
            if let Some(result) = request.result {
                self.number(code::zigzag(result));
            }
        }
        self.requests += 1;
        Ok(())
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.block.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.block.push(value as u8);
    }

    fn name(&mut self, name: &str) {
        let mut end = name.len().min(code::MAX_NAME_BYTES);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        self.number(end as u64);
        self.block.extend(&name.as_bytes()[..end]);
    }

    fn end_block(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        let written = self.write_block(code::EVENTS, &block);
        self.block = block;
        self.block.clear();
        self.last = Last::default();
        written
    }

    fn write_block(&mut self, kind: u8, payload: &[u8]) -> Result<()> {
        let mut head = [0; code::BLOCK_HEAD_BYTES];
        head[0] = kind;
        head[1..5].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        head[5..].copy_from_slice(&xxh3_64(payload).to_le_bytes());
        self.to.write_all(&head)?;
        Ok(self.to.write_all(payload)?)
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>> {
    let json = serde_json::to_vec(value).map_err(|error| Error::Header(error.to_string()))?;
    if json.len() > code::MAX_JSON_BYTES {
        return Err(invalid("its header or summary has more than 1 MiB"));
    }
    Ok(json)
}

fn next_index(count: &mut u32) -> Result<()> {
    if *count == code::MAX_INDICES {
        return Err(invalid("it has more than 2^24 files or threads"));
    }
    *count += 1;
    Ok(())
}

fn invalid(what: &str) -> Error {
    Error::Io(io::Error::new(io::ErrorKind::InvalidInput, what))
}
