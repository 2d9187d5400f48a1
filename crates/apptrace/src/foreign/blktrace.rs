//! blktrace's binary files, one per processor: `struct blk_io_trace` (Linux,
//! include/uapi/linux/blktrace_api.h), in the traced computer's byte order. A request lasts from
//! its queueing (Q) or, without Q, its issue (D) to its completion (C).

use super::text::Names;
use super::{ForeignError, Reader, Result};
use crate::{Access, Event, Interface, Kind, OpenFile, Request};
use machine::Nanos;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// The lowest byte is the version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const RECORD_BYTES: usize = 48;
/// Messages have up to 128 bytes, pass-through commands a few more.
const MAX_PAYLOAD: u16 = 4096;
const SECTOR: u64 = 512;
/// Beyond it, the earliest requests without a known end are given up.
const MAX_PENDING: usize = 1 << 18;
const MAX_FILES: usize = 4096;

const QUEUE: u16 = 1;
const ISSUE: u16 = 7;
const COMPLETE: u16 = 8;
/// A bit of the category, the upper half of the action.
const WRITES: u16 = 1 << 1;
const FLUSH: u16 = 1 << 2;
const PASS_THROUGH: u16 = 1 << 9;
const NOTIFY: u16 = 1 << 10;
const DISCARD: u16 = 1 << 13;
const FUA: u16 = 1 << 15;
const META: u16 = 1 << 12;
const PROCESS: u16 = 0;

pub(super) fn is_start(head: &[u8]) -> bool {
    head.first_chunk::<4>().is_some_and(|magic| {
        let known = |number: u32| number & !0xff == MAGIC;
        known(u32::from_le_bytes(*magic)) || known(u32::from_be_bytes(*magic))
    })
}

/// All processors' files: `NAME.blktrace.N` with the same NAME.
pub(super) fn files_of(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let base = match name.rsplit_once(".blktrace.") {
        Some((base, number)) if number.parse::<u32>().is_ok() => base,
        _ => name,
    };
    (0..MAX_FILES)
        .map(|number| path.with_file_name(format!("{base}.blktrace.{number}")))
        .take_while(|path| path.exists())
        .collect()
}

#[derive(Debug, Clone)]
struct Record {
    time: Nanos,
    sector: u64,
    bytes: u32,
    action: u16,
    category: u16,
    pid: u32,
    device: u32,
    error: u16,
    payload: Vec<u8>,
}

struct Source {
    from: Box<dyn BufRead + Send>,
    at: u64,
    next: Option<Record>,
}

impl Source {
    fn wrong(&self, reason: impl Into<String>) -> ForeignError {
        ForeignError::Byte { byte: self.at, reason: reason.into() }
    }

    /// `false` at the end of the file, if `may_end`.
    fn fill(&mut self, buffer: &mut [u8], may_end: bool) -> Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.from.read(&mut buffer[filled..]) {
                Ok(0) if filled == 0 && may_end => return Ok(false),
                Ok(0) => return Err(self.wrong("the file ends within a record; copy it again")),
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.wrong(format!("it cannot be read: {error}"))),
            }
        }
        Ok(true)
    }

    fn advance(&mut self) -> Result<()> {
        let mut bytes = [0; RECORD_BYTES];
        if !self.fill(&mut bytes, true)? {
            self.next = None;
            return Ok(());
        }
        let big = match (&bytes[..4]).try_into().map(u32::from_le_bytes) {
            Ok(number) if number & !0xff == MAGIC => false,
            Ok(number) if number.swap_bytes() & !0xff == MAGIC => true,
            _ => return Err(self.wrong("no record of blktrace begins here")),
        };
        let u16_at = |at: usize| {
            let two = [bytes[at], bytes[at + 1]];
            if big { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
        };
        let u32_at = |at: usize| {
            let (first, second) = (u32::from(u16_at(at)), u32::from(u16_at(at + 2)));
            if big { first << 16 | second } else { second << 16 | first }
        };
        let u64_at = |at: usize| {
            let (first, second) = (u64::from(u32_at(at)), u64::from(u32_at(at + 4)));
            if big { first << 32 | second } else { second << 32 | first }
        };
        let version = u32_at(0) & 0xff;
        if version != VERSION {
            return Err(self.wrong(format!("version {version} of blktrace, not {VERSION}")));
        }
        let length = u16_at(46);
        if length > MAX_PAYLOAD {
            return Err(self.wrong(format!("a payload of {length} bytes")));
        }
        let action = u32_at(28);
        let mut record = Record {
            time: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action: action as u16,
            category: (action >> 16) as u16,
            pid: u32_at(32),
            device: u32_at(36),
            error: u16_at(44),
            payload: vec![0; usize::from(length)],
        };
        let mut payload = std::mem::take(&mut record.payload);
        self.fill(&mut payload, false)?;
        record.payload = payload;
        self.at += (RECORD_BYTES + usize::from(length)) as u64;
        self.next = Some(record);
        Ok(())
    }
}

/// Device, direction, first sector, number.
type Place = (u32, bool, u64, u64);

pub(super) struct Blktrace {
    sources: Vec<Source>,
    names: Names,
    comms: HashMap<u32, String>,
    /// By start, each with its key in `waiting` and whether its end is known.
    order: VecDeque<(Request, Place, bool)>,
    first: u64,
    number: u64,
    waiting: BTreeMap<Place, u64>,
    queued: bool,
}

impl Blktrace {
    pub(super) fn new(sources: Vec<Box<dyn BufRead + Send>>) -> Result<Blktrace> {
        let mut sources: Vec<Source> =
            sources.into_iter().map(|from| Source { from, at: 0, next: None }).collect();
        for source in &mut sources {
            source.advance()?;
        }
        Ok(Blktrace {
            sources,
            names: Names::default(),
            comms: HashMap::new(),
            order: VecDeque::new(),
            first: 0,
            number: 0,
            waiting: BTreeMap::new(),
            queued: false,
        })
    }

    fn begin(&mut self, record: &Record, out: &mut VecDeque<Event>) -> Result<(), String> {
        let access = match record.category {
            category if category & DISCARD != 0 => Access::Discard,
            category if category & FLUSH != 0 && record.bytes == 0 => Access::Flush,
            category if category & WRITES != 0 => Access::Write,
            _ => Access::Read,
        };
        if record.bytes == 0 && access != Access::Flush {
            return Ok(());
        }
        let offset = record.sector.checked_mul(SECTOR);
        let end = offset.and_then(|offset| offset.checked_add(record.bytes.into()));
        let (Some(offset), Some(_)) = (offset, end) else {
            return Err(format!("sector {} is beyond 64 bits", record.sector));
        };
        // The upper 12 bits are the major number, the lower 20 the minor one.
        let name = format!("{}:{}", record.device >> 20, record.device & 0xf_ffff);
        let file = self.names.file(&name, Kind::BlockDevice, None, out)?;
        let comm = self.comms.get(&record.pid).map(String::as_str);
        let thread = self.names.thread(record.pid, record.pid, comm, out)?;
        let request = Request {
            at_ns: record.time,
            duration_ns: None,
            thread: Some(thread),
            file,
            access,
            interface: Interface::Block,
            offset: (access != Access::Flush).then_some(offset),
            bytes: record.bytes.into(),
            result: None,
            open: OpenFile {
                dsync: record.category & FUA != 0,
                metadata: record.category & META != 0,
                ..OpenFile::default()
            },
        };
        let sector = if access == Access::Flush { u64::MAX } else { record.sector };
        let place = (record.device, record.category & WRITES != 0, sector, self.number);
        self.waiting.insert(place, self.number);
        self.order.push_back((request, place, false));
        self.number += 1;
        Ok(())
    }

    /// Ends all requests within a completed one: the kernel merges them.
    fn end(&mut self, record: &Record) {
        let flush = record.bytes == 0;
        let (from, to) = if flush {
            (u64::MAX, u64::MAX)
        } else {
            let last = u64::from(record.bytes).div_ceil(SECTOR).saturating_sub(1);
            (record.sector, record.sector.saturating_add(last))
        };
        let write = record.category & WRITES != 0;
        let range = (record.device, write, from, 0)..=(record.device, write, to, u64::MAX);
        let ended: Vec<Place> = self.waiting.range(range).map(|(place, _)| *place).collect();
        for place in ended {
            let Some(number) = self.waiting.remove(&place) else { continue };
            let Some(index) = number.checked_sub(self.first) else { continue };
            let Some((request, _, known)) = self.order.get_mut(index as usize) else { continue };
            request.duration_ns = Some(record.time.saturating_sub(request.at_ns));
            let error = i64::from(record.error as i16);
            request.result = Some(if error == 0 {
                request.bytes as i64
            } else {
                error.saturating_abs().saturating_neg()
            });
            *known = true;
        }
    }

    fn take(&mut self, record: &Record, out: &mut VecDeque<Event>) -> Result<(), String> {
        if record.category & NOTIFY != 0 {
            if record.action == PROCESS && self.comms.len() < super::MAX_NAMES {
                let name = record.payload.split(|byte| *byte == 0).next().unwrap_or(&[]);
                self.comms.insert(record.pid, String::from_utf8_lossy(name).into_owned());
            }
            return Ok(());
        }
        if record.category & PASS_THROUGH != 0 {
            return Ok(());
        }
        match record.action {
            QUEUE => {
                self.queued = true;
                self.begin(record, out)
            }
            ISSUE if !self.queued => self.begin(record, out),
            COMPLETE => {
                self.end(record);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn emit(&mut self, all: bool, out: &mut VecDeque<Event>) {
        while let Some((_, _, known)) = self.order.front() {
            if !(*known || all || self.order.len() > MAX_PENDING) {
                break;
            }
            if let Some((request, place, _)) = self.order.pop_front() {
                self.waiting.remove(&place);
                self.first += 1;
                out.push_back(Event::Request(request));
            }
        }
    }
}

impl Reader for Blktrace {
    fn step(&mut self, out: &mut VecDeque<Event>) -> Result<bool> {
        let next = self.sources.iter().enumerate();
        let next = next.filter_map(|(at, source)| Some((source.next.as_ref()?.time, at))).min();
        let Some((_, at)) = next else {
            self.emit(true, out);
            return Ok(false);
        };
        let record = self.sources[at].next.take();
        if let Some(record) = record {
            let taken = self.take(&record, out);
            taken.map_err(|reason| self.sources[at].wrong(reason))?;
        }
        self.sources[at].advance()?;
        self.emit(false, out);
        Ok(true)
    }
}
