//! fio's `verify`.
//!
//! Each program can verify the other's files. The header is little-endian, as Debian's fio 3.33
//! writes it on x86: 0 magic (16 bits), 2 method (16), 4 length (32), 8 seed of the data (64), 16
//! offset in the file (64), 24 time (2 x 32), 32 thread (16), 34 request number (16), 36 CRC-32C of
//! all this (32, without the final inversion), 40 the checksum of the data after it. fio does not
//! check seed, time, thread and number.

use crate::fio::options::job_options::Options;
use crate::fio::options::method::{HEADER, Method};
use crate::fio::options::pattern::Fill;
use machine::units::show_size;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh32::xxh32;
use xxhash_rust::xxh64::xxh64;

const MAGIC: u16 = 0xacca;
/// Marks blocks whose seed is the data's XXH64. It is in the nanoseconds field, which fio keeps
/// below 10^9.
const OURS: u32 = u32::from_le_bytes(*b"hpwr");

/// Jones' polynomial.
const CRC_64: crc::Crc<u64> = crc::Crc::<u64>::new(&crc::Algorithm {
    width: 64,
    poly: 0xad93_d235_94c9_35a9,
    init: 0,
    refin: true,
    refout: true,
    xorout: 0,
    check: 0xe9c6_d914_c4b8_d9ca,
    residue: 0,
});
const CRC_32: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::Algorithm {
    xorout: 0,
    check: 0x89a1_897f,
    residue: 0,
    ..crc::CRC_32_CKSUM
});
const CRC_7: crc::Crc<u8> = crc::Crc::<u8>::new(&crc::CRC_7_MMC);
const CRC_16: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_ARC);

impl Method {
    fn checksum(self, data: &[u8], place: &mut [u8]) {
        match self {
            Method::Meta | Method::PatternHeader | Method::Pattern | Method::Nothing => {}
            Method::Md5 => place.copy_from_slice(&Md5::digest(data)),
            Method::Crc64 => place.copy_from_slice(&CRC_64.checksum(data).to_le_bytes()),
            Method::Crc32c => place.copy_from_slice(&(!crc32c::crc32c(data)).to_le_bytes()),
            Method::Crc16 => place.copy_from_slice(&CRC_16.checksum(data).to_le_bytes()),
            Method::Xxhash => place.copy_from_slice(&xxh32(data, 1).to_le_bytes()),
            Method::Sha1 => {
                let digest = Sha1::digest(data);
                let words = digest.chunks_exact(4).flat_map(|word| word.iter().rev());
                place.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
            }
            Method::Crc32 => place.copy_from_slice(&CRC_32.checksum(data).to_le_bytes()),
            Method::Crc7 => place[0] = CRC_7.checksum(data),
            Method::Sha3With224 => place.copy_from_slice(&Sha3_224::digest(data)),
            Method::Sha3With256 => place.copy_from_slice(&Sha3_256::digest(data)),
            Method::Sha3With384 => place.copy_from_slice(&Sha3_384::digest(data)),
            Method::Sha3With512 => place.copy_from_slice(&Sha3_512::digest(data)),
            Method::Sha256 => sha256(data, place),
            Method::Sha512 => {
                let rest = &data[data.len() / 128 * 128..];
                place.copy_from_slice(&data[..128]);
                place[..rest.len()].copy_from_slice(rest);
            }
        }
    }
}

/// fio's variant: little-endian length in the padding, and each state word's lowest byte, written
/// over the start of the last block.
fn sha256(data: &[u8], place: &mut [u8]) {
    let mut state: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let (blocks, rest) = data.split_at(data.len() / 64 * 64);
    let mut last = [0u8; 128];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    let end = if rest.len() < 56 { 64 } else { 128 };
    last[end - 8..end].copy_from_slice(&(data.len() as u64 * 8).to_le_bytes());
    for block in blocks.chunks_exact(64).chain(last[..end].chunks_exact(64)) {
        sha2::compress256(
            &mut state,
            std::slice::from_ref(sha2::digest::generic_array::GenericArray::from_slice(block)),
        );
    }
    place.copy_from_slice(&last[end - 64..end]);
    place.iter_mut().zip(state).for_each(|(byte, word)| *byte = word as u8);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) method: Method,
    /// Empty: any data.
    pub(crate) pattern: Fill,
    /// 0: restart at each request.
    pub(crate) pattern_interval: usize,
    /// `None`: a whole request.
    pub(crate) interval_bytes: Option<u32>,
    pub(crate) header_at: usize,
}

impl Check {
    pub(crate) fn of(options: &Options) -> Option<Check> {
        options.verifies().map(|method| Check {
            method,
            pattern: options.pattern.clone(),
            pattern_interval: options.pattern_interval as usize,
            interval_bytes: options.verify_interval,
            header_at: options.verify_offset as usize,
        })
    }

    fn interval(&self, block: &[u8]) -> usize {
        let interval = self
            .interval_bytes
            .map_or(block.len(), |bytes| bytes as usize)
            .clamp(1, block.len().max(1));
        // As in fio, an interval that does not divide the request is ignored.
        if block.len().is_multiple_of(interval) { interval } else { block.len() }
    }

    pub(crate) fn stamp(&self, offset: u64, request: &mut [u8]) {
        if !self.pattern.is_empty() {
            self.pattern.put(offset, self.pattern_interval, request);
        }
        if matches!(self.method, Method::Pattern | Method::Nothing) {
            return;
        }
        let interval = self.interval(request);
        for (index, block) in request.chunks_mut(interval).enumerate() {
            self.stamp_block(offset + (index * interval) as u64, block);
            self.swap_header(block);
        }
    }

    fn swap_header(&self, block: &mut [u8]) {
        let len = self.method.header_bytes();
        if self.header_at >= len && self.header_at + len <= block.len() {
            let (first, rest) = block.split_at_mut(self.header_at);
            first[..len].swap_with_slice(&mut rest[..len]);
        }
    }

    fn stamp_block(&self, offset: u64, block: &mut [u8]) {
        let len = block.len() as u32;
        let (number, bytes) = self.method.facts();
        let (header, data) = block.split_at_mut(HEADER + bytes);
        let (header, place) = header.split_at_mut(HEADER);
        self.method.checksum(data, place);
        header[..2].copy_from_slice(&MAGIC.to_le_bytes());
        header[2..4].copy_from_slice(&number.to_le_bytes());
        header[4..8].copy_from_slice(&len.to_le_bytes());
        header[8..16].copy_from_slice(&xxh64(data, 0).to_le_bytes());
        header[16..24].copy_from_slice(&offset.to_le_bytes());
        header[24..28].fill(0);
        header[28..32].copy_from_slice(&OURS.to_le_bytes());
        header[32..36].fill(0);
        let sum = !crc32c::crc32c(&header[..36]);
        header[36..].copy_from_slice(&sum.to_le_bytes());
    }

    pub(crate) fn fault(&self, offset: u64, request: &[u8]) -> Option<Fault> {
        if self.method == Method::Nothing {
            return None;
        }
        if self.method == Method::Pattern {
            return self.not_the_pattern(offset, request, 0, 0);
        }
        let interval = self.interval(request);
        let fault = |(index, block): (usize, &[u8])| {
            if self.header_at == 0 {
                return self.block_fault(offset, index * interval, block);
            }
            let mut block = block.to_vec();
            self.swap_header(&mut block);
            self.block_fault(offset, index * interval, &block)
        };
        request.chunks(interval).enumerate().find_map(fault)
    }

    /// Ignores `skipped` bytes. The pattern begins with the request, the block `within` bytes
    /// later.
    fn not_the_pattern(
        &self,
        request_offset: u64,
        block: &[u8],
        within: usize,
        skipped: usize,
    ) -> Option<Fault> {
        let wanted =
            |at: usize| self.pattern.byte(request_offset, self.pattern_interval, within + at);
        let (at, _) =
            block.iter().enumerate().skip(skipped).find(|(at, byte)| **byte != wanted(*at))?;
        let offset = request_offset + within as u64;
        let why = Why::NotThePattern { at: offset + at as u64, found: block[at] };
        Some(Fault { offset, len: block.len() as u64, why })
    }

    fn block_fault(&self, request_offset: u64, within: usize, block: &[u8]) -> Option<Fault> {
        let offset = request_offset + within as u64;
        let of = |why: Why| Some(Fault { offset, len: block.len() as u64, why });
        let (number, bytes) = self.method.facts();
        let long = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap_or_default());
        let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().unwrap_or_default());
        let half = |at: usize| u16::from_le_bytes(block[at..at + 2].try_into().unwrap_or_default());
        if block.len() < HEADER + bytes || half(0) != MAGIC {
            return of(Why::NoHeader);
        }
        if !crc32c::crc32c(&block[..36]) != word(36) {
            return of(Why::Checksum);
        }
        if half(2) != number {
            return of(Why::OtherMethod);
        }
        if long(16) != offset || word(4) as usize != block.len() {
            return of(Why::Elsewhere { belongs: long(16), len: u64::from(word(4)) });
        }
        let (header, data) = block.split_at(HEADER + bytes);
        let mut sum = [0u8; 128];
        self.method.checksum(data, &mut sum[..bytes]);
        let ours = word(28) == OURS;
        if header[HEADER..] != sum[..bytes] || (ours && long(8) != xxh64(data, 0)) {
            return of(Why::Checksum);
        }
        // fio's own writes with a pattern fill all of the data with it.
        if self.pattern.is_empty() {
            None
        } else {
            self.not_the_pattern(request_offset, block, within, HEADER + bytes)
        }
    }
}

pub(crate) fn repeat(pattern: &[u8], buffer: &mut [u8]) {
    buffer.chunks_mut(pattern.len()).for_each(|part| part.copy_from_slice(&pattern[..part.len()]));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    NoHeader,
    OtherMethod,
    Checksum,
    Elsewhere { belongs: u64, len: u64 },
    NotThePattern { at: u64, found: u8 },
}

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
            Why::NoHeader => {
                f.write_str("has no header: no job with verify wrote it, or it was lost")
            }
            Why::OtherMethod => f.write_str("was written with another verify method"),
            Why::Checksum => {
                f.write_str("does not match its checksum: it was changed, or written in part")
            }
            Why::Elsewhere { belongs, len } => {
                write!(f, "is sound but was written as {} at byte {belongs}", show_size(len))
            }
            Why::NotThePattern { at, found } => {
                write!(f, "is not the pattern: byte {at} is {found:#04x}")
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct VerifyStats {
    pub(crate) check: Check,
    bytes: AtomicU64,
    unjudged: AtomicU64,
    faults: AtomicU64,
    bad: Mutex<BadBlocks>,
}

#[derive(Debug, Default)]
struct BadBlocks {
    first: Option<Fault>,
    /// Files and offsets: every pass finds a bad block again.
    places: HashSet<(usize, u64)>,
}

const MAX_PLACES: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(crate) struct CloneVerify {
    stats: Arc<VerifyStats>,
    files: Arc<[usize]>,
}

impl Deref for CloneVerify {
    type Target = VerifyStats;

    fn deref(&self) -> &VerifyStats {
        &self.stats
    }
}

impl CloneVerify {
    pub(crate) fn new(stats: &Arc<VerifyStats>, files: &[usize]) -> CloneVerify {
        CloneVerify { stats: stats.clone(), files: files.into() }
    }

    pub(crate) fn check_block(&self, target: u32, offset: u64, block: &[u8]) {
        let file = self.files.get(target as usize).copied().unwrap_or_default();
        self.stats.check_block(file, offset, block);
    }
}

impl VerifyStats {
    pub(crate) fn new(check: Check) -> VerifyStats {
        let zero = || AtomicU64::new(0);
        VerifyStats {
            check,
            bytes: zero(),
            unjudged: zero(),
            faults: zero(),
            bad: Mutex::default(),
        }
    }

    fn check_block(&self, file: usize, offset: u64, block: &[u8]) {
        self.bytes.fetch_add(block.len() as u64, Ordering::Relaxed);
        if let Some(fault) = self.check.fault(offset, block) {
            self.faults.fetch_add(1, Ordering::Relaxed);
            let mut bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
            if bad.places.len() < MAX_PLACES {
                bad.places.insert((file, fault.offset));
            }
            bad.first.get_or_insert(fault);
        }
    }

    pub(crate) fn leave(&self, bytes: usize) {
        self.unjudged.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn unjudged(&self) -> Option<String> {
        let bytes = self.unjudged.load(Ordering::Relaxed);
        (bytes > 0).then(|| {
            format!(
                "verify: {} of the {} read back could not be judged: other writes overlapped them (fio may call such blocks bad)",
                show_size(bytes),
                show_size(bytes + self.bytes())
            )
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Every pass counts, as in fio.
    pub(crate) fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    pub(crate) fn complaint(&self) -> Option<String> {
        let bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        let first = bad.first.as_ref()?;
        Some(match bad.places.len() {
            1 => format!("verify: {first}"),
            MAX_PLACES => {
                format!("verify: {MAX_PLACES} or more blocks are not what was written; {first}")
            }
            count => format!("verify: {count} blocks are not what was written; {first}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::options::method::METHODS;
    use crate::fio::options::pattern::pattern;
    use proptest::prelude::*;

    fn check(method: Method) -> Check {
        let patterned = matches!(method, Method::Pattern | Method::PatternHeader);
        let pattern = if patterned { pattern("0xdeadbe").unwrap() } else { Fill::default() };
        Check { method, pattern, pattern_interval: 0, interval_bytes: None, header_at: 0 }
    }

    #[test]
    fn blocks_are_checked_for_offset_and_data() {
        for (name, method, ..) in METHODS {
            let check = check(method);
            if method == Method::Nothing {
                assert_eq!(check.fault(8192, &[0; 4096]), None, "nothing is compared");
                continue;
            }
            let mut block = vec![7u8; 4096];
            check.stamp(8192, &mut block);
            assert_eq!(check.fault(8192, &block), None, "{name}");
            let zeros = check.fault(8192, &[0; 4096]).unwrap().to_string();
            if method == Method::Pattern {
                block[1000] ^= 1;
                assert!(
                    check.fault(8192, &block).unwrap().to_string().contains("byte 9192 is 0xac")
                );
                continue;
            }
            assert!(zeros.contains("no header"), "{name}: {zeros}");
            assert!(
                check
                    .fault(4096, &block)
                    .unwrap()
                    .to_string()
                    .contains("written as 4 KiB at byte 8192"),
                "{name}"
            );
        }
        let mut block = vec![7u8; 4096];
        check(Method::Crc32c).stamp(0, &mut block);
        assert!(
            check(Method::Xxhash)
                .fault(0, &block)
                .unwrap()
                .to_string()
                .contains("another verify method")
        );
    }

    #[test]
    fn each_interval_has_a_header_and_the_pattern_fills_the_rest() {
        let check = Check {
            pattern: pattern("0x010203").unwrap(),
            interval_bytes: Some(512),
            ..check(Method::Meta)
        };
        let mut block = vec![0u8; 4096];
        check.stamp(4096, &mut block);
        assert_eq!(
            (check.fault(4096, &block), block[3584], block[3584 + 40]),
            (None, 0xca, [1, 2, 3][(3584 + 40) % 3])
        );
        let one = Check { interval_bytes: None, ..check.clone() };
        assert!(one.fault(4096, &block).is_some(), "another interval");
        block[4000] ^= 1;
        assert!(check.fault(4096, &block).is_some());
    }

    proptest! {
        #[test]
        fn no_flipped_bit_passes(
            bit in 0usize..8 * 600,
            (_, method, ..) in prop::sample::select(METHODS[1..].to_vec()),
            header_at in prop::sample::select(vec![0usize, 200, 431]),
        ) {
            let check = Check { header_at, ..check(method) };
            let mut block: Vec<u8> = (0..600u32).map(|i| (i * 31) as u8).collect();
            check.stamp(1 << 33, &mut block);
            prop_assert_eq!(check.fault(1 << 33, &block), None);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check.fault(1 << 33, &block).is_some());
        }
    }
}
