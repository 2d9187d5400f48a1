//! Verification resumes from a log. Little-endian header of 56 bytes: `HPVERIFY`, version (4),
//! block size (4), seed (8), first block's offset (8), blocks (8), 1 or 0 (4) for a known fill
//! seed, fill seed (8), CRC-32C. Version 1 has no fill seed.
//!
//! Records of 16 bytes: block times four plus kind (8), generation (4), CRC-32C of seed and these
//! 12 bytes. Kinds: 0 settled, 1 begun, 2 done, 3 failed.

use super::generations::{Expected, Generations};
use super::unit::{half, word};
use super::{Grid, MAX_BLOCKS, UNIT_BYTES, Verifier};
use std::io::{self, Read, Write};
use std::sync::Mutex;

const MAGIC: &[u8; 8] = b"HPVERIFY";
const VERSION: u32 = 2;
const HEADER: usize = 56;
const HEADER_1: usize = 48;
const RECORD: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The block has exactly this generation.
    Settled = 0,
    Begun = 1,
    Done = 2,
    Failed = 3,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot read the verification log: {0}")]
    Io(#[from] io::Error),
    #[error(
        "this is not a verification log: it begins with {found:02x?} instead of HPVERIFY; name the log that `run --verify-log` wrote"
    )]
    NotALog { found: Vec<u8> },
    #[error(
        "the verification log has version {found}, and this halfpower reads versions 1 and 2; use the version that wrote it"
    )]
    Version { found: u32 },
    #[error(
        "the verification log is damaged at byte {at}: {what}; it cannot say what was written, so verify from the start with a new run"
    )]
    Damaged { at: u64, what: String },
}

/// Writes each record at once: with an unbuffered file, a killed process loses nothing. To survive
/// a power failure, sync the file before each write.
///
/// ```
/// use workload::Workload;
/// use workload::verify::{Log, Verifier};
///
/// let writer = Workload { read_percent: 0, request_bytes: 4096, ..Workload::default() };
/// let verifier = Verifier::new(&writer, (0, 1 << 20), 1)?;
/// let mut file = Vec::new();
/// let mut log = Log::create(&mut file, &verifier)?;
/// let generation = verifier.fill(0, &mut [0; 4096]);
/// log.begun(0, generation)?;
/// log.ended(0, generation, true)?;
/// let (verifier, resumed) = Verifier::resume(file.as_slice())?;
/// assert_eq!((verifier.next_written(0), resumed.records), (Some(0), 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Log<W: Write> {
    writer: W,
    seed: u64,
    grid: Grid,
}

impl<W: Write> Log<W> {
    /// No write may be in flight.
    pub fn create(writer: W, verifier: &Verifier) -> io::Result<Self> {
        let mut log = Log { writer, seed: verifier.seed, grid: verifier.grid };
        let mut header = [0u8; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&log.grid.request.to_le_bytes());
        header[16..24].copy_from_slice(&log.seed.to_le_bytes());
        header[24..32].copy_from_slice(&log.grid.base.to_le_bytes());
        header[32..40].copy_from_slice(&log.grid.blocks.to_le_bytes());
        header[40..44].copy_from_slice(&u32::from(verifier.fill_seed.is_some()).to_le_bytes());
        header[44..52].copy_from_slice(&verifier.fill_seed.unwrap_or(0).to_le_bytes());
        let sum = crc32c::crc32c(&header[..HEADER - 4]);
        header[HEADER - 4..].copy_from_slice(&sum.to_le_bytes());
        let mut start = header.to_vec();
        let generations = verifier.lock();
        let mut block = generations.next_written(0);
        while let Some(written) = block {
            for (kind, generation) in as_writes(&generations.expected(written)) {
                start.extend_from_slice(&log.record(written, kind, generation));
            }
            if start.len() > 1 << 16 {
                log.writer.write_all(&start)?;
                start.clear();
            }
            block = generations.next_written(written + 1);
        }
        log.writer.write_all(&start)?;
        log.writer.flush()?;
        Ok(log)
    }

    /// Call it after [`Verifier::fill`]. If it fails, do not issue the write.
    pub fn begun(&mut self, offset: u64, generation: u32) -> io::Result<()> {
        let record = self.record(self.grid.block(offset), Kind::Begun, generation);
        self.writer.write_all(&record)
    }

    /// As [`Verifier::wrote`]. Without it either generation passes after a kill.
    pub fn ended(&mut self, offset: u64, generation: u32, ok: bool) -> io::Result<()> {
        let record = self.record(
            self.grid.block(offset),
            if ok { Kind::Done } else { Kind::Failed },
            generation,
        );
        self.writer.write_all(&record)
    }

    fn record(&self, block: u64, kind: Kind, generation: u32) -> [u8; RECORD] {
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&(block << 2 | kind as u64).to_le_bytes());
        record[8..12].copy_from_slice(&generation.to_le_bytes());
        let sum = record_sum(self.seed, &record);
        record[12..].copy_from_slice(&sum.to_le_bytes());
        record
    }
}

fn as_writes(expected: &Expected) -> Vec<(Kind, u32)> {
    if !expected.mixed() {
        return vec![(Kind::Settled, expected.newest)];
    }
    // All overlap. The first completed write replaces the data from before the run; a failed one
    // replaces nothing.
    let mut writes: Vec<_> =
        expected.generations().map(|generation| (Kind::Begun, generation)).collect();
    let mut done = expected.oldest() > 0;
    for generation in expected.generations() {
        writes.push((if done { Kind::Done } else { Kind::Failed }, generation));
        done &= !expected.unknown;
    }
    writes
}

#[cfg(test)]
impl Log<Vec<u8>> {
    pub(super) fn written(&self) -> &[u8] {
        &self.writer
    }
}

fn record_sum(seed: u64, record: &[u8; RECORD]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&seed.to_le_bytes()), &record[..12])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed {
    /// Complete records.
    pub records: u64,
    /// Of a last record cut off by the kill; its write was never issued.
    pub cut_bytes: u64,
}

impl Verifier {
    /// From a killed process's log. For a write in flight, either generation is right. To continue
    /// writing, start a new log with [`Log::create`]. Damage is accepted only at the end.
    pub fn resume(mut log: impl Read) -> Result<(Verifier, Resumed), LogError> {
        let Header { len, seed, grid, fill_seed } = read_header(&mut log)?;
        let mut generations = Generations::new(grid.blocks);
        let mut resumed = Resumed { records: 0, cut_bytes: 0 };
        let mut bad: Option<(u64, String)> = None;
        loop {
            let mut record = [0; RECORD];
            let got = read_up_to(&mut log, &mut record)?;
            let at = len as u64 + resumed.records * RECORD as u64;
            if got < RECORD {
                resumed.cut_bytes += got as u64;
                break;
            }
            if half(&record, 12) != record_sum(seed, &record) {
                if bad.is_none() {
                    bad = Some((at, "a record's checksum is wrong, and records follow it".into()));
                }
                resumed.cut_bytes += RECORD as u64;
                continue;
            }
            if let Some((at, what)) = bad {
                return Err(LogError::Damaged { at, what });
            }
            resumed.records += 1;
            replay(&mut generations, &record, grid.blocks)
                .map_err(|what| LogError::Damaged { at, what })?;
        }
        if let Some((at, what)) = bad.filter(|_| resumed.cut_bytes >= 2 * RECORD as u64) {
            return Err(LogError::Damaged { at, what });
        }
        generations.abandon();
        Ok((Verifier { seed, grid, fill_seed, generations: Mutex::new(generations) }, resumed))
    }
}

struct Header {
    len: usize,
    seed: u64,
    grid: Grid,
    fill_seed: Option<u64>,
}

fn read_header(log: &mut impl Read) -> Result<Header, LogError> {
    let mut header = [0; HEADER];
    let mut got = read_up_to(log, &mut header[..HEADER_1])?;
    if got < 8 || &header[..8] != MAGIC {
        return Err(LogError::NotALog { found: header[..got.min(8)].to_vec() });
    }
    let damaged = |what: &str| LogError::Damaged { at: 0, what: what.into() };
    if got < HEADER_1 {
        return Err(damaged("its header is cut off"));
    }
    let len = match half(&header, 8) {
        1 => HEADER_1,
        VERSION => HEADER,
        found => return Err(LogError::Version { found }),
    };
    got += read_up_to(log, &mut header[HEADER_1..len])?;
    if got < len {
        return Err(damaged("its header is cut off"));
    }
    if half(&header, len - 4) != crc32c::crc32c(&header[..len - 4]) {
        return Err(damaged("its header's checksum is wrong"));
    }
    let grid =
        Grid { request: half(&header, 12), base: word(&header, 24), blocks: word(&header, 32) };
    let end =
        grid.blocks.checked_mul(u64::from(grid.request)).and_then(|len| len.checked_add(grid.base));
    if grid.request == 0
        || !grid.request.is_multiple_of(UNIT_BYTES)
        || grid.blocks > MAX_BLOCKS
        || end.is_none()
    {
        return Err(damaged("its header describes an impossible region"));
    }
    let fill_seed = (len == HEADER && half(&header, 40) == 1).then(|| word(&header, 44));
    Ok(Header { len, seed: word(&header, 16), grid, fill_seed })
}

fn replay(generations: &mut Generations, record: &[u8; RECORD], blocks: u64) -> Result<(), String> {
    let (block, kind, generation) = (word(record, 0) >> 2, word(record, 0) & 3, half(record, 8));
    if block >= blocks {
        return Err(format!("it names block {block} of {blocks}"));
    }
    match kind {
        0 => generations.settle(block, generation),
        1 => generations.begin_as(block, generation),
        _ => generations.end(block, generation, kind == Kind::Done as u64),
    }
    Ok(())
}

/// Fewer bytes only at the end.
fn read_up_to(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match source.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
