//! Sizes, tests, and the workload of each.

use super::Options;
use super::options::LAST_TEST;
use machine::units::{KIB, MIB};
use machine::{Allocation, Buffering, CacheState, Engine, Memory};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::{Pattern, Stop, Workload};

/// Buffer of C's standard I/O: a page, the `st_blksize` of common file systems.
pub const STDIO_BYTES: u64 = 4 * KIB;

/// Default, in records.
pub const STRIDE: u32 = 17;

/// In larger files `-a` skips records under 64 KiB.
const LARGE_FILE: u64 = 16 * MIB;

/// One column of the report: a pass over the file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // Each is named after the original's column.
pub enum Test {
    Write,
    Rewrite,
    Read,
    Reread,
    RandomRead,
    RandomWrite,
    BackwardRead,
    RecordRewrite,
    StrideRead,
    Fwrite,
    Refwrite,
    Fread,
    Refread,
    /// Half of the processes read and half write, at random offsets; throughput mode only.
    Mixed,
    Pwrite,
    Repwrite,
    Pread,
    Repread,
    Pwritev,
    Repwritev,
    Preadv,
    Repreadv,
}

impl Test {
    /// The columns of every report, in order.
    pub const CLASSIC: [Test; 13] = [
        Test::Write,
        Test::Rewrite,
        Test::Read,
        Test::Reread,
        Test::RandomRead,
        Test::RandomWrite,
        Test::BackwardRead,
        Test::RecordRewrite,
        Test::StrideRead,
        Test::Fwrite,
        Test::Refwrite,
        Test::Fread,
        Test::Refread,
    ];

    /// The columns of tests 9 to 12.
    pub const POSITIONED: [Test; 8] = [
        Test::Pwrite,
        Test::Repwrite,
        Test::Pread,
        Test::Repread,
        Test::Pwritev,
        Test::Repwritev,
        Test::Preadv,
        Test::Repreadv,
    ];

    /// In order.
    pub fn of(number: u8) -> &'static [Test] {
        match number {
            0 => &[Test::Write, Test::Rewrite],
            1 => &[Test::Read, Test::Reread],
            2 => &[Test::RandomRead, Test::RandomWrite],
            3 => &[Test::BackwardRead],
            4 => &[Test::RecordRewrite],
            5 => &[Test::StrideRead],
            6 => &[Test::Fwrite, Test::Refwrite],
            7 => &[Test::Fread, Test::Refread],
            8 => &[Test::Mixed],
            9 => &[Test::Pwrite, Test::Repwrite],
            10 => &[Test::Pread, Test::Repread],
            11 => &[Test::Pwritev, Test::Repwritev],
            12 => &[Test::Preadv, Test::Repreadv],
            _ => &[],
        }
    }

    /// In `-R`.
    pub fn report_title(self) -> String {
        format!("{} report", self.title())
    }

    pub fn title(self) -> &'static str {
        match self {
            Test::Write => "Writer",
            Test::Rewrite => "Re-writer",
            Test::Read => "Reader",
            Test::Reread => "Re-Reader",
            Test::RandomRead => "Random read",
            Test::RandomWrite => "Random write",
            Test::BackwardRead => "Backward read",
            Test::RecordRewrite => "Record rewrite",
            Test::StrideRead => "Stride read",
            Test::Fwrite => "Fwrite",
            Test::Refwrite => "Re-Fwrite",
            Test::Fread => "Fread",
            Test::Refread => "Re-Fread",
            Test::Mixed => "Mixed workload",
            Test::Pwrite => "Pwrite",
            Test::Repwrite => "Re-Pwrite",
            Test::Pread => "Pread",
            Test::Repread => "Re-Pread",
            Test::Pwritev => "Pwritev",
            Test::Repwritev => "Re-Pwritev",
            Test::Preadv => "Preadv",
            Test::Repreadv => "Re-Preadv",
        }
    }

    /// The word for the processes.
    pub fn doers(self) -> &'static str {
        match self {
            Test::Write => "initial writers",
            Test::Rewrite => "rewriters",
            Test::Read => "readers",
            Test::Reread => "re-readers",
            Test::RandomRead => "random readers",
            Test::RandomWrite => "random writers",
            Test::BackwardRead => "reverse readers",
            Test::RecordRewrite => "record rewriters",
            Test::StrideRead => "stride readers",
            Test::Fwrite => "fwriters",
            Test::Refwrite => "re-fwriters",
            Test::Fread => "freaders",
            Test::Refread => "re-freaders",
            Test::Mixed => "mixed workload",
            Test::Pwrite => "pwrite writers",
            Test::Repwrite => "re-pwrite writers",
            Test::Pread => "pread readers",
            Test::Repread => "re-pread readers",
            Test::Pwritev => "pwritev writers",
            Test::Repwritev => "re-pwritev writers",
            Test::Preadv => "preadv readers",
            Test::Repreadv => "re-preadv readers",
        }
    }

    /// The test repeats the previous one.
    pub fn is_second(self) -> bool {
        use Test::{Refread, Refwrite, Repread, Repreadv, Repwrite, Repwritev, Reread, Rewrite};
        matches!(
            self,
            Rewrite | Reread | Refwrite | Refread | Repwrite | Repread | Repwritev | Repreadv
        )
    }

    /// The test grows the file from empty.
    pub fn creates(self) -> bool {
        matches!(self, Test::Write | Test::Fwrite)
    }

    pub fn writes(self) -> bool {
        use Test::{
            Fwrite, Mixed, Pwrite, Pwritev, RandomWrite, RecordRewrite, Refwrite, Repwrite,
            Repwritev, Rewrite, Write,
        };
        matches!(
            self,
            Write
                | Rewrite
                | RandomWrite
                | RecordRewrite
                | Fwrite
                | Refwrite
                | Mixed
                | Pwrite
                | Repwrite
                | Pwritev
                | Repwritev
        )
    }

    fn is_stdio(self) -> bool {
        matches!(self, Test::Fwrite | Test::Refwrite | Test::Fread | Test::Refread)
    }
}

/// A file size with a record size, in bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Cell {
    pub file_bytes: u64,
    pub record_bytes: u64,
}

fn doubling(from: u64, to: u64) -> Vec<u64> {
    std::iter::successors(Some(from), |size| size.checked_mul(2))
        .take_while(|size| *size <= to)
        .collect()
}

impl Options {
    /// File sizes with record sizes up to each, in report order.
    pub fn cells(&self) -> Vec<Cell> {
        let one =
            |given: &[u64], default| if given.is_empty() { vec![default] } else { given.to_vec() };
        let auto_files = self.auto && self.files.is_empty();
        let files = if auto_files {
            doubling(self.file_range.0.unwrap_or(64 * KIB), self.file_range.1.unwrap_or(512 * MIB))
        } else {
            one(&self.files, 512 * KIB)
        };
        let chosen =
            !self.records.is_empty() || !self.files.is_empty() || self.record_range != (None, None);
        let mut cells = Vec::new();
        for file_bytes in files {
            let records = if self.auto && self.records.is_empty() {
                let min = if file_bytes > LARGE_FILE && !self.all_records && !chosen {
                    64 * KIB
                } else {
                    4 * KIB
                };
                doubling(
                    self.record_range.0.unwrap_or(min),
                    self.record_range.1.unwrap_or(16 * MIB),
                )
            } else {
                one(&self.records, 4 * KIB)
            };
            cells.extend(
                records
                    .into_iter()
                    .filter(|record| *record <= file_bytes)
                    .map(|record_bytes| Cell { file_bytes, record_bytes }),
            );
        }
        cells
    }

    /// Over each file, in order.
    pub fn passes(&self) -> Vec<Test> {
        let mut numbers: Vec<u8> =
            if self.tests.is_empty() { (0..=7).collect() } else { self.tests.clone() };
        if self.extensions && self.tests.is_empty() {
            numbers.extend(9..=LAST_TEST);
        }
        let mut sorted = numbers;
        sorted.sort_unstable();
        sorted.dedup();
        let wanted = |test: &Test| !(self.no_retests && test.is_second());
        sorted.iter().flat_map(|number| Test::of(*number)).copied().filter(wanted).collect()
    }

    /// Of the throughput mode.
    pub fn child_counts(&self) -> Vec<u32> {
        let mut counts = self.children.clone();
        if let (low, Some(high)) = self.child_range {
            counts.extend(low.unwrap_or(1)..=high);
        } else if let (Some(low), None) = self.child_range {
            counts.push(low);
        }
        counts
    }

    pub fn reads_in_mix(&self, child: u32, children: u32) -> bool {
        match self.readers_percent {
            Some(percent) => child < percent * children / 100,
            None => child.is_multiple_of(2),
        }
    }

    fn buffering(&self) -> Buffering {
        match (self.direct, self.sync || self.read_sync || self.dsync || self.mmap_sync) {
            (true, true) => Buffering::DirectDsync,
            (true, false) => Buffering::Direct,
            (false, true) => Buffering::BufferedDsync,
            (false, false) => Buffering::Buffered,
        }
    }

    /// Of one process; `reader` selects the half of the mix.
    ///
    /// * Tests 9 to 12 equal 0 and 1: all blocking requests here are `pread` and `pwrite` of one
    ///   buffer per record.
    /// * In tests 6 and 7, records larger than [`STDIO_BYTES`] go straight to the kernel, as in the
    ///   C library; smaller ones are combined.
    /// * A stride beyond the end of a small file wraps around, which makes the order sequential.
    pub fn workload(&self, cell: Cell, test: Test, reader: bool) -> Workload {
        let request = if test.is_stdio() {
            cell.record_bytes.max(STDIO_BYTES.min(cell.file_bytes))
        } else {
            cell.record_bytes
        };
        let bytes = cell.file_bytes / request * request;
        let step = u64::from(self.stride.unwrap_or(STRIDE));
        let pattern = match test {
            Test::RandomRead | Test::RandomWrite | Test::Mixed => Pattern::Random,
            Test::BackwardRead => Pattern::Backward,
            Test::StrideRead if step > 1 && step < bytes / request => {
                Pattern::Stride(step * request)
            }
            _ => Pattern::Seq,
        };
        let writes = test.writes() && !(test == Test::Mixed && reader);
        let (engine, depth) = match self.asynchronous {
            Some((_, depth)) if !test.is_stdio() => (Engine::IoUring, depth),
            _ if self.mmap && !test.is_stdio() => (Engine::mapped(), 1),
            _ => (Engine::Sync, 1),
        };
        Workload {
            read_percent: if writes { 0 } else { 100 },
            pattern,
            request_bytes: request as u32,
            depth,
            threads: 1,
            engine,
            // Standard I/O uses the page cache, regardless of other options.
            buffering: if test.is_stdio() { Buffering::Buffered } else { self.buffering() },
            allocation: if test.creates() && !self.mmap {
                Allocation::Extend
            } else {
                Allocation::Written
            },
            memory: Memory::Pages,
            // A record that is rewritten repeatedly is cached after the first time.
            cache: if self.uncached.is_some() && test != Test::RecordRewrite {
                CacheState::Cold
            } else {
                CacheState::AsIs
            },
            region_bytes: Some(if test == Test::RecordRewrite { request } else { bytes }),
            stop: Stop::AfterBytes(bytes),
            think_ns: u64::from(self.think_ms.unwrap_or(0)) * 1_000_000,
            sync_at_end: self.flush && writes,
            seed: self.seed.unwrap_or(1),
            ..Workload::default()
        }
    }
}
