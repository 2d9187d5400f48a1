//! Blocks that describe themselves, and reading them back: fio's `verify`.
//!
//! With a checksum every block begins with a header: where it belongs, how long it is, and the checksum of both and of its data. With a
//! pattern the block is the pattern, again and again.

use super::result::Recorded;
use super::turns::FileTurns;
use machine::units::show_size;
use machine::{Completion, Nanos, Next, Op, Request, RequestSource};
use measure::histogram::Histogram;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use workload::Sequence;
use xxhash_rust::xxh64::xxh64;

/// Bytes before the data of a block.
const HEADER: usize = 40;
/// The least block: a header and some data.
pub(crate) const LEAST_BYTES: u64 = 64;
const MAGIC: [u8; 8] = *b"hpverify";

/// How a block is known to be what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// XXH64.
    Xxhash,
    /// The block is this, repeated.
    Pattern(Vec<u8>),
}

impl Method {
    fn number(&self) -> u32 {
        match self {
            Method::Crc32c => 1,
            Method::Xxhash => 2,
            Method::Pattern(_) => 3,
        }
    }

    /// The checksum of what a header says and of the data behind it.
    fn checksum(&self, says: &[u8], data: &[u8]) -> u64 {
        match self {
            Method::Crc32c => u64::from(crc32c::crc32c_append(crc32c::crc32c(says), data)),
            _ => xxh64(data, xxh64(says, 0)),
        }
    }

    /// Makes a block of it, at this offset.
    pub(crate) fn stamp(&self, offset: u64, block: &mut [u8]) {
        if let Method::Pattern(pattern) = self {
            block.chunks_mut(pattern.len()).for_each(|part| part.copy_from_slice(&pattern[..part.len()]));
            return;
        }
        let len = block.len() as u32;
        let (header, data) = block.split_at_mut(HEADER);
        header[..8].copy_from_slice(&MAGIC);
        header[8..16].copy_from_slice(&offset.to_le_bytes());
        header[16..20].copy_from_slice(&len.to_le_bytes());
        header[20..24].copy_from_slice(&self.number().to_le_bytes());
        header[24..32].fill(0);
        let checksum = self.checksum(&header[..32], data);
        header[32..].copy_from_slice(&checksum.to_le_bytes());
    }

    /// What is wrong with a block that lies at this offset.
    pub(crate) fn fault(&self, offset: u64, block: &[u8]) -> Option<Fault> {
        let of = |why: Why| Some(Fault { offset, len: block.len() as u64, why });
        if let Method::Pattern(pattern) = self {
            let wanted = pattern.iter().cycle();
            let at = block.iter().zip(wanted).position(|(byte, wanted)| byte != wanted)?;
            return of(Why::NotThePattern { at: offset + at as u64, found: block[at] });
        }
        let word = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap_or_default());
        let half = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().unwrap_or_default());
        if block.len() < HEADER || block[..8] != MAGIC {
            return of(Why::NoHeader);
        }
        if half(20) != self.number() {
            return of(Why::OtherMethod);
        }
        if self.checksum(&block[..32], &block[HEADER..]) != word(32) {
            return of(Why::Checksum);
        }
        if word(8) != offset || half(16) as usize != block.len() {
            return of(Why::Elsewhere { belongs: word(8), len: u64::from(half(16)) });
        }
        None
    }
}

/// Why a block is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    NoHeader,
    OtherMethod,
    Checksum,
    Elsewhere { belongs: u64, len: u64 },
    NotThePattern { at: u64, found: u8 },
}

/// A block that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    offset: u64,
    len: u64,
    why: Why,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the block of {} at byte {} ", show_size(self.len), self.offset)?;
        match self.why {
            Why::NoHeader => f.write_str("bears no header: no job of halfpower's with verify wrote it, or it was lost"),
            Why::OtherMethod => f.write_str("was written with another verify method"),
            Why::Checksum => f.write_str("does not match its checksum: it was changed, or written in part"),
            Why::Elsewhere { belongs, len } => {
                write!(f, "is sound but was written as {} at byte {belongs}", show_size(len))
            }
            Why::NotThePattern { at, found } => write!(f, "is not the pattern: byte {at} is {found:#04x}"),
        }
    }
}

/// What was checked, over all streams of a job.
#[derive(Debug)]
pub(crate) struct VerifyStats {
    pub(crate) method: Method,
    bytes: AtomicU64,
    faults: AtomicU64,
    first: Mutex<Option<Fault>>,
}

impl VerifyStats {
    pub(crate) fn new(method: Method) -> VerifyStats {
        VerifyStats { method, bytes: AtomicU64::new(0), faults: AtomicU64::new(0), first: Mutex::new(None) }
    }

    /// Checks a block.
    pub(crate) fn check(&self, offset: u64, block: &[u8]) {
        self.bytes.fetch_add(block.len() as u64, Ordering::Relaxed);
        if let Some(fault) = self.method.fault(offset, block) {
            self.faults.fetch_add(1, Ordering::Relaxed);
            self.first.lock().unwrap_or_else(|broken| broken.into_inner()).get_or_insert(fault);
        }
    }

    /// Bytes that were checked.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The faults in words.
    pub(crate) fn complaint(&self) -> Option<String> {
        let first = self.first.lock().unwrap_or_else(|broken| broken.into_inner()).clone()?;
        let count = self.faults.load(Ordering::Relaxed);
        Some(if count == 1 {
            format!("verify: {first}")
        } else {
            format!("verify: {count} blocks are not what was written; {first}")
        })
    }
}

/// Reads back what a stream wrote: walks its sequence again.
pub(crate) struct Reader<'a> {
    sequence: Sequence,
    /// Requests of the sequence that are still to be walked.
    left: u64,
    turns: FileTurns,
    max_request: u32,
    free: Vec<u32>,
    /// Where each outstanding request goes, and since when.
    issued: Box<[(u64, Nanos)]>,
    stats: &'a VerifyStats,
    latency: Histogram,
    bytes: u64,
    span: (Nanos, Nanos),
}

impl<'a> Reader<'a> {
    /// Over the first `requests` of a sequence, `depth` at a time.
    pub(crate) fn new(
        sequence: Sequence,
        requests: u64,
        turns: FileTurns,
        depth: u32,
        max_request: u32,
        stats: &'a VerifyStats,
    ) -> Self {
        Reader {
            sequence,
            left: requests,
            turns,
            max_request,
            free: (0..depth).collect(),
            issued: vec![(0, 0); depth as usize].into_boxed_slice(),
            stats,
            latency: Histogram::new(),
            bytes: 0,
            span: (0, 0),
        }
    }

    /// What reading back took: reads and nothing else.
    pub(crate) fn recorded(self) -> Recorded {
        Recorded {
            requests: [self.latency.count(), 0],
            bytes: [self.bytes, 0],
            latency: [self.latency, Histogram::new()],
            runtime_ns: self.span.1.saturating_sub(self.span.0),
            ..Recorded::default()
        }
    }
}

impl RequestSource for Reader<'_> {
    fn depth(&self) -> u32 {
        self.issued.len() as u32
    }

    fn max_request(&self) -> u32 {
        self.max_request
    }

    fn writes(&self) -> bool {
        false
    }

    fn begin(&mut self, now: Nanos) {
        self.span = (now, now);
    }

    fn next(&mut self, now: Nanos) -> Next {
        while self.left > 0 {
            let Some(slot) = self.free.pop() else { return Next::WaitForCompletion };
            self.left -= 1;
            let (op, offset, len) = self.sequence.next();
            let mut request = Request { op, target: 0, offset, len, slot };
            self.turns.place(&mut request);
            if op == Op::Write {
                self.issued[slot as usize] = (request.offset, now);
                return Next::Issue(Request { op: Op::Read, ..request });
            }
            self.free.push(slot);
        }
        if self.free.len() == self.issued.len() { Next::Done } else { Next::WaitForCompletion }
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.free.push(completion.slot);
        self.latency.record(now - self.issued[completion.slot as usize].1);
        self.bytes += u64::from(completion.result.unsigned_abs());
        self.span.1 = now;
    }

    fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}

    fn checks(&self) -> bool {
        true
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        self.stats.check(self.issued[slot as usize].0, data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_block_is_known_by_its_place_and_its_data() {
        for method in [Method::Crc32c, Method::Xxhash] {
            let mut block = vec![7u8; 4096];
            method.stamp(8192, &mut block);
            assert_eq!(method.fault(8192, &block), None);
            assert!(method.fault(4096, &block).unwrap().to_string().contains("written as 4 KiB at byte 8192"));
            let zeros = method.fault(8192, &[0; 4096]).unwrap().to_string();
            assert!(zeros.contains("no header"), "{zeros}");
        }
        let mut block = vec![7u8; 4096];
        Method::Crc32c.stamp(0, &mut block);
        assert!(Method::Xxhash.fault(0, &block).unwrap().to_string().contains("another verify method"));
        let pattern = Method::Pattern(vec![0xde, 0xad, 0xbe]);
        pattern.stamp(4096, &mut block);
        assert_eq!(pattern.fault(4096, &block), None);
        block[1000] ^= 1;
        assert!(pattern.fault(4096, &block).unwrap().to_string().contains("byte 5096 is 0xac"));
    }

    proptest! {
        #[test]
        fn no_flipped_bit_passes(bit in 0usize..8 * 600, method in prop::sample::select(vec![Method::Crc32c, Method::Xxhash, Method::Pattern(vec![1, 2, 3, 4, 5])])) {
            let mut block: Vec<u8> = (0..600u32).map(|i| (i * 31) as u8).collect();
            method.stamp(1 << 33, &mut block);
            prop_assert_eq!(method.fault(1 << 33, &block), None);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(method.fault(1 << 33, &block).is_some());
        }
    }
}
