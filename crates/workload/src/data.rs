//! The data of writes: incompressible and never repeated, unless requested.

use crate::rng::{SplitMix64, below, derive, hash};
use crate::{Data, Workload};
use machine::fill_random;
use std::sync::Arc;

/// Deduplication's and compression's unit. Other request sizes use 512 B sectors.
pub const BLOCK_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;
/// A stamp makes a block unique within the run.
const STAMP_BYTES: usize = 16;
/// The largest record that file systems commonly compress as one (btrfs, ZFS). Bodies must not
/// repeat in it.
const RECORD_BYTES: u32 = 128 << 10;
/// Several records, but fits an L2 cache.
const POOL_BYTES: usize = 1 << 20;
const TEMPLATES: u64 = 16;

const PURPOSE_DATA: u64 = 4;

/// For write buffers.
///
/// Every block (4 KiB, or 512 B) gets a stamp that is unique in the run, so deduplication finds
/// nothing. The body stays in the buffer if no read overwrites it, and requests are as long as a
/// compressor's record, bypass the cache, or are issued one at a time (see
/// [`machine::RequestSource::fill_buffers`]). Otherwise each block gets a fresh body from a pool
/// longer than any record, so that small writes in one record do not compress against each other.
///
/// ```
/// use workload::{Filler, Workload};
///
/// let mut filler = Filler::new(&Workload { read_percent: 0, ..Workload::default() });
/// let (mut first, mut second) = (vec![0; 4096], vec![0; 4096]);
/// filler.stamp(&mut first);
/// filler.stamp(&mut second);
/// assert_ne!(first, second);
/// ```
#[derive(Debug, Clone)]
pub struct Filler {
    data: Data,
    block: usize,
    head: usize,
    /// `None`: bodies stay in the buffers.
    pool: Option<Arc<[u8]>>,
    position: usize,
    counter: u64,
    /// For the first half of every stamp.
    seed: u64,
    repeated_seed: u64,
    /// For the second half of every stamp.
    tag: u64,
}

/// Bytes before the zeros.
fn head_of(len: usize, compressible_percent: u8) -> usize {
    len - len * usize::from(compressible_percent.min(100)) / 100
}

impl Filler {
    /// For source 0.
    pub fn new(workload: &Workload) -> Self {
        let data = workload.data;
        let request = workload.request_bytes;
        let block =
            if request.is_multiple_of(BLOCK_BYTES as u32) { BLOCK_BYTES } else { SECTOR_BYTES };
        let seed = derive(workload.seed, PURPOSE_DATA, 0);
        let repeated_seed = data.repeated_seed.map_or(seed, |seed| derive(seed, PURPOSE_DATA, 0));
        let gathered =
            request < RECORD_BYTES && !workload.buffering.is_direct() && workload.depth > 1;
        // Zeros at the end of a block stay in place only if every buffer begins with a whole block.
        let shifting =
            data.compressible_percent > 0 && !request.is_multiple_of(SECTOR_BYTES as u32);
        let fresh = workload.read_percent > 0 || data.duplicate_percent > 0 || gathered || shifting;
        let pool = (fresh && workload.writes() && !data.verify).then(|| {
            let mut bytes = vec![0; POOL_BYTES];
            fill_random(repeated_seed, &mut bytes);
            Arc::from(bytes)
        });
        let head = head_of(block, data.compressible_percent);
        let tag = hash(seed, 0);
        Filler { data, block, head, pool, position: 0, counter: 0, seed, repeated_seed, tag }
    }

    /// For another source, whose blocks differ. The pool is shared.
    pub fn fork(&self, source: u64) -> Self {
        let tag = hash(self.seed, source);
        // Whole sectors apart, so that copies stay aligned.
        let position = below(tag, (POOL_BYTES / SECTOR_BYTES) as u64) as usize * SECTOR_BYTES;
        Filler { tag, position, counter: 0, ..self.clone() }
    }

    /// Returns whether writes copy fresh bodies.
    pub fn copies(&self) -> bool {
        self.pool.is_some()
    }

    /// Before the first write. Each starts at a multiple of the block or, with odd request sizes,
    /// anywhere.
    pub fn fill_buffers(&self, buffers: &mut [u8]) {
        fill_random(self.tag, buffers);
        if self.data.compressible_percent > 0 {
            for block in buffers.chunks_mut(self.block) {
                let head = head_of(block.len(), self.data.compressible_percent);
                block[head..].fill(0);
            }
        }
    }

    #[inline]
    pub fn stamp(&mut self, buffer: &mut [u8]) {
        if self.pool.is_some() {
            return self.copy(buffer);
        }
        for block in buffer.chunks_mut(self.block) {
            let stamp = self.next_stamp();
            let head = if block.len() == self.block {
                self.head
            } else {
                head_of(block.len(), self.data.compressible_percent)
            };
            if head >= STAMP_BYTES {
                block[..STAMP_BYTES].copy_from_slice(&stamp);
            } else {
                block[..head].copy_from_slice(&stamp[..head]);
            }
        }
    }

    /// Unique: both hashes are bijections of the counter and of the tag.
    #[inline]
    fn next_stamp(&mut self) -> [u8; STAMP_BYTES] {
        let counter = self.counter;
        self.counter += 1;
        stamp_bytes(hash(self.seed, counter), hash(self.tag, counter))
    }

    #[inline(never)]
    fn copy(&mut self, buffer: &mut [u8]) {
        let Some(pool) = self.pool.clone() else { return };
        for block in buffer.chunks_mut(self.block) {
            let head = head_of(block.len(), self.data.compressible_percent);
            let random = hash(self.tag ^ self.seed, self.counter);
            let repeats = below(random, 100) < u64::from(self.data.duplicate_percent);
            let (from, stamp) = if repeats {
                self.counter += 1;
                self.template(random, block.len())
            } else {
                if self.position + head > pool.len() {
                    self.position = 0;
                }
                let from = self.position;
                self.position += head;
                (from, self.next_stamp())
            };
            block[..head].copy_from_slice(&pool[from..from + head]);
            let stamped = head.min(STAMP_BYTES);
            block[..stamped].copy_from_slice(&stamp[..stamped]);
            block[head..].fill(0);
        }
    }

    /// Returns a position and stamp that all fillers of the run share.
    fn template(&self, random: u64, len: usize) -> (usize, [u8; STAMP_BYTES]) {
        let templates = match self.data.repeated_blocks {
            0 => TEMPLATES,
            blocks => blocks,
        };
        let number = below(hash(self.seed, random), templates);
        let mut generator = SplitMix64::new(derive(self.repeated_seed, number, len as u64));
        // Their stamps differ, so their bodies may be equal.
        let from = number as usize % (POOL_BYTES / BLOCK_BYTES) * BLOCK_BYTES;
        (from, stamp_bytes(generator.next_u64(), generator.next_u64()))
    }
}

fn stamp_bytes(first: u64, second: u64) -> [u8; STAMP_BYTES] {
    (u128::from(second) << 64 | u128::from(first)).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Buffering;
    use std::collections::{HashMap, HashSet};

    fn workload(request: u32, data: Data, buffering: Buffering, read_percent: u8) -> Workload {
        Workload { request_bytes: request, data, buffering, read_percent, ..Workload::default() }
    }

    const WALK_BYTES: usize = 256 << 10;

    fn written(workload: &Workload, sources: u64, writes: usize) -> Vec<u8> {
        let first = Filler::new(workload);
        let mut device = Vec::new();
        for source in 0..sources {
            let mut filler = first.fork(source);
            let request = workload.request_bytes as usize;
            // Of several buffers, the first to become free is reused every time.
            let places = if workload.depth == 1 { (WALK_BYTES / request).max(1) } else { 1 };
            let mut buffers = vec![0; places * request];
            filler.fill_buffers(&mut buffers);
            for place in (0..places).cycle().take(writes) {
                let buffer = &mut buffers[place * request..][..request];
                if workload.read_percent > 0 {
                    buffer.fill(0); // A read of zeros used the buffer in between.
                }
                filler.stamp(buffer);
                device.extend_from_slice(buffer);
            }
        }
        device
    }

    fn saved_percent(device: &[u8], record: usize) -> f64 {
        let compressed: usize =
            device.chunks(record).map(|r| lz4_flex::block::compress(r).len().min(r.len())).sum();
        100.0 * (1.0 - compressed as f64 / device.len() as f64)
    }

    fn repeated_percent(device: &[u8], block: usize) -> f64 {
        let different: HashSet<&[u8]> = device.chunks(block).collect();
        100.0 * (1.0 - different.len() as f64 / (device.len() / block) as f64)
    }

    #[test]
    fn nothing_compresses_and_nothing_repeats_by_default() {
        for (request, buffering, reads, depth) in [
            (4096, Buffering::Direct, 0, 1),
            (4096, Buffering::Buffered, 0, 1),
            (4096, Buffering::Buffered, 0, 2),
            (4096, Buffering::Direct, 50, 1),
            (512, Buffering::Direct, 0, 1),
            (512, Buffering::Buffered, 30, 1),
            (1 << 20, Buffering::Buffered, 0, 1),
            (65_536, Buffering::Buffered, 0, 1),
            (65_536, Buffering::Buffered, 0, 2),
        ] {
            let workload =
                Workload { depth, ..workload(request, Data::default(), buffering, reads) };
            let device = written(&workload, 2, (1 << 20) / request as usize + 3);
            let block = (request as usize).min(BLOCK_BYTES);
            assert_eq!(repeated_percent(&device, block), 0.0, "{request} {buffering:?}");
            let saved = saved_percent(&device, block);
            assert!(saved < 0.5, "{saved:.2} % saved of blocks, {request} {buffering:?}");
            // Small requests that bypass the cache reach the device one by one; otherwise they are
            // gathered into records.
            if !buffering.is_direct() {
                let saved = saved_percent(&device, RECORD_BYTES as usize);
                assert!(saved < 0.5, "{saved:.2} % saved of records, {request} {buffering:?}");
            }
        }
    }

    #[test]
    fn compresses_as_requested() {
        for percent in [0u8, 1, 10, 25, 50, 75, 90, 99, 100] {
            for (request, buffering, reads) in [
                (4096, Buffering::Direct, 0),
                (4096, Buffering::Buffered, 0),
                (65_536, Buffering::Direct, 50),
                (1 << 20, Buffering::Direct, 0),
            ] {
                let data = Data { compressible_percent: percent, ..Data::default() };
                let device = written(
                    &workload(request, data, buffering, reads),
                    1,
                    (1 << 20) / request as usize + 1,
                );
                let saved = saved_percent(&device, BLOCK_BYTES);
                assert!(
                    (saved - f64::from(percent)).abs() <= 3.0,
                    "{percent} % ordered, {saved:.1} % found at {request} B"
                );
            }
        }
    }

    #[test]
    fn repeats_come_from_as_many_blocks_as_requested() {
        for (repeated_blocks, expected) in [(0, 16), (1, 1), (500, 500)] {
            let data = Data { duplicate_percent: 100, repeated_blocks, ..Data::default() };
            let device = written(&workload(4096, data, Buffering::Direct, 0), 2, 8192);
            let distinct: HashSet<&[u8]> = device.chunks(BLOCK_BYTES).collect();
            assert_eq!(distinct.len(), expected);
        }
    }

    #[test]
    fn workloads_with_one_seed_of_repeats_repeat_the_same_blocks() {
        let distinct = |repeated_seed| {
            let data = Data {
                duplicate_percent: 50,
                repeated_blocks: 300,
                repeated_seed,
                ..Data::default()
            };
            let both = [1, 2].map(|seed| {
                let one = workload(4096, data, Buffering::Direct, 0);
                written(&Workload { seed, ..one }, 1, 8192)
            });
            let each: Vec<HashSet<&[u8]>> =
                both.iter().map(|device| device.chunks(BLOCK_BYTES).collect()).collect();
            each[0].intersection(&each[1]).count()
        };
        assert_eq!((distinct(None), distinct(Some(7))), (0, 300));
    }

    #[test]
    fn repeats_as_requested_across_fillers() {
        for percent in [0u8, 5, 30, 50, 80, 100] {
            for request in [4096, 32_768] {
                let data = Data { duplicate_percent: percent, ..Data::default() };
                let device = written(
                    &workload(request, data, Buffering::Direct, 0),
                    2,
                    (32 << 20) / request as usize,
                );
                let found = repeated_percent(&device, BLOCK_BYTES);
                assert!(
                    (found - f64::from(percent)).abs() <= 1.0,
                    "{percent} % ordered, {found:.2} % found"
                );
            }
        }
    }

    #[test]
    fn repeating_and_compressible_together() {
        let data = Data { compressible_percent: 40, duplicate_percent: 30, ..Data::default() };
        let device = written(&workload(4096, data, Buffering::Direct, 0), 1, 8192);
        assert!((repeated_percent(&device, BLOCK_BYTES) - 30.0).abs() <= 1.5);
        assert!((saved_percent(&device, BLOCK_BYTES) - 40.0).abs() <= 3.0);
        let mut times: HashMap<&[u8], u32> = HashMap::new();
        device.chunks(BLOCK_BYTES).for_each(|block| *times.entry(block).or_default() += 1);
        let repeating = times.values().filter(|&&n| n > 1).count();
        assert_eq!(repeating as u64, TEMPLATES, "a small set repeats");
    }

    #[test]
    fn odd_sizes_are_filled_to_the_last_byte() {
        for request in [1u32, 7, 100, 513, 5000] {
            for compressible_percent in [0u8, 50] {
                let data = Data { compressible_percent, ..Data::default() };
                let device = written(&workload(request, data, Buffering::Buffered, 0), 1, 300);
                assert_eq!(device.len(), 300 * request as usize);
                if compressible_percent == 0 && request >= 100 {
                    assert_eq!(repeated_percent(&device, request as usize), 0.0, "{request}");
                    // A run of zeros as long as a stamp would be a hole in the data.
                    assert!(
                        !device.windows(STAMP_BYTES).any(|w| w.iter().all(|&b| b == 0)),
                        "{request}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_same_seed_writes_the_same_data() {
        let of = |seed| {
            written(
                &Workload { seed, ..workload(4096, Data::default(), Buffering::Buffered, 0) },
                1,
                20,
            )
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
