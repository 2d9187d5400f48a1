//! Replay of block traces, and cache simulation.

use crate::stack_distance::{MissRatio, StackDistances};
use crate::{Error, Result};
use apptrace::foreign::{Events, ForeignError};
use machine::{
    Access, Allocation, Buffering, CacheState, Completion, Engine, Hint, Machine, Memory, Nanos,
    Next, Op, Reap, Request, RequestSource,
};
use serde::Serialize;
use std::io::BufRead;
use twin::{Setup, Twin, WritePolicy};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Record {
    /// From the trace's start to the issue.
    pub time_ns: Nanos,
    pub op: Op,
    pub offset: u64,
    pub bytes: u32,
}

/// Reads any format of [`apptrace::foreign`], such as lines of `time_ns,op,offset,bytes`.
pub fn parse(text: &str) -> Result<Vec<Record>> {
    read(std::io::Cursor::new(text.to_owned().into_bytes()))
}

/// Kept in memory, 24 B each.
const MAX_RECORDS: usize = 1 << 25;
/// Files follow one another, each at a multiple of this.
const FILE_STEP: u64 = 1 << 40;

/// As [`parse`], a part at a time; at most 2^25 requests.
pub fn read(from: impl BufRead + Send + 'static) -> Result<Vec<Record>> {
    records(apptrace::foreign::read(from)?.events().1)
}

/// Each file or device has its own part of the addresses; the first begins at 0. At most 2^25 reads
/// and writes.
pub fn records(events: Events) -> Result<Vec<Record>> {
    let whole = |why: String| Error::Trace(ForeignError::Whole(why));
    let mut records: Vec<Record> = Vec::new();
    for event in events {
        let apptrace::Event::Request(request) = event? else { continue };
        let op = match request.access {
            apptrace::Access::Read => Op::Read,
            apptrace::Access::Write => Op::Write,
            _ => continue,
        };
        let bytes =
            request.result.map_or(request.bytes, |done| request.bytes.min(done.max(0) as u64));
        let (Some(offset), 1..) = (request.offset, bytes) else { continue };
        if records.len() == MAX_RECORDS {
            return Err(whole(format!(
                "more than {MAX_RECORDS} requests; name a part of the trace"
            )));
        }
        let bytes = u32::try_from(bytes).map_err(|_| {
            whole(format!("a request of {bytes} bytes; at most 4 GiB are replayed"))
        })?;
        let offset = u64::from(request.file).saturating_mul(FILE_STEP).saturating_add(offset);
        records.push(Record { time_ns: request.at_ns, op, offset, bytes });
    }
    if records.is_empty() {
        return Err(whole("no requests; write time_ns,op,offset,bytes a line".into()));
    }
    let first = records.iter().map(|record| record.time_ns).min().unwrap_or(0);
    records.iter_mut().for_each(|record| record.time_ns -= first);
    records.sort_by_key(|record| record.time_ns);
    Ok(records)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Recorded,
    /// A closed loop at this depth.
    Outstanding(u32),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replay {
    pub machine: String,
    /// From the first request to the last completion.
    pub elapsed_ns: Nanos,
    pub waited_ns: Nanos,
    pub requests: u64,
    pub bytes: u64,
    /// Of the bytes, if there is a RAM cache.
    pub cache_hits: Option<f64>,
}

/// Bypasses the machine's file-system cache. An application's requests become whole sectors.
pub fn replay(twin: &Twin, records: &[Record], pace: Pace) -> Result<Replay> {
    let volume = twin.volume();
    let facts = twin.target_facts(&volume);
    let (size, sector) = (facts.size_bytes, facts.direct_align_bytes);
    let access = Access {
        engine: Engine::IoUring,
        buffering: Buffering::Direct,
        metadata_sync: false,
        reap: Reap::default(),
        kernel_polls: false,
        hint: Hint::None,
        memory: Memory::Huge,
        allocation: Allocation::Written,
        cache: CacheState::AsIs,
        sync_at_end: false,
        region: (0, size),
    };
    let mut replayer = Replayer::new(records, pace, size, sector);
    let usage = twin.run_one(&volume, &access, std::slice::from_mut(&mut replayer))?;
    Ok(Replay {
        machine: twin.setup().name.clone(),
        elapsed_ns: usage.elapsed_ns,
        waited_ns: replayer.waited,
        requests: replayer.requests,
        bytes: replayer.bytes,
        cache_hits: volume.ram_cache_hits(),
    })
}

struct Replayer<'a> {
    records: &'a [Record],
    at: usize,
    pace: Pace,
    size: u64,
    sector: u32,
    began: Nanos,
    free: Vec<u32>,
    issued: Vec<Nanos>,
    flying: u32,
    waited: Nanos,
    requests: u64,
    bytes: u64,
}

/// Beyond it a timed replay falls behind, as a real computer would.
const MAX_DEPTH: u32 = 1024;

impl<'a> Replayer<'a> {
    fn new(records: &'a [Record], pace: Pace, size: u64, sector: u32) -> Self {
        let depth = match pace {
            Pace::Recorded => MAX_DEPTH,
            Pace::Outstanding(depth) => depth.clamp(1, MAX_DEPTH),
        };
        Replayer {
            records,
            at: 0,
            pace,
            size,
            sector,
            began: 0,
            free: (0..depth).rev().collect(),
            issued: vec![0; depth as usize],
            flying: 0,
            waited: 0,
            requests: 0,
            bytes: 0,
        }
    }
}

impl Replayer<'_> {
    fn sectors_of(&self, record: &Record) -> (u64, u32) {
        let sector = u64::from(self.sector);
        let start = record.offset / sector * sector;
        let end = (record.offset + u64::from(record.bytes)).next_multiple_of(sector);
        (start, u32::try_from(end - start).unwrap_or(u32::MAX / self.sector * self.sector))
    }
}

impl RequestSource for Replayer<'_> {
    fn depth(&self) -> u32 {
        self.issued.len() as u32
    }

    fn max_request(&self) -> u32 {
        self.records.iter().map(|record| self.sectors_of(record).1).max().unwrap_or(1)
    }

    fn writes(&self) -> bool {
        true
    }

    fn begin(&mut self, now: Nanos) {
        self.began = now;
    }

    fn next(&mut self, now: Nanos) -> Next {
        let Some(record) = self.records.get(self.at) else {
            return if self.flying == 0 { Next::Done } else { Next::WaitForCompletion };
        };
        if self.pace == Pace::Recorded && self.began + record.time_ns > now {
            return Next::WaitUntil(self.began + record.time_ns);
        }
        let Some(slot) = self.free.pop() else { return Next::WaitForCompletion };
        self.at += 1;
        self.flying += 1;
        self.issued[slot as usize] = now;
        let (offset, len) = self.sectors_of(record);
        // A trace of a larger volume wraps around on this one.
        let room = self.size.saturating_sub(u64::from(len)).max(1);
        let sector = u64::from(self.sector);
        let offset = if offset < room { offset } else { offset % room / sector * sector };
        Next::Issue(Request { op: record.op, target: 0, offset, len, slot })
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.flying -= 1;
        self.requests += 1;
        self.bytes += completion.result.max(0) as u64;
        self.waited += now - self.issued[completion.slot as usize];
        self.free.push(completion.slot);
    }

    fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}
}

pub const CACHE_BLOCK: u64 = 4096;

fn blocks_of(record: &Record) -> std::ops::RangeInclusive<u64> {
    record.offset / CACHE_BLOCK..=(record.offset + u64::from(record.bytes.max(1)) - 1) / CACHE_BLOCK
}

/// To blocks of [`CACHE_BLOCK`] bytes.
pub fn accesses(records: &[Record]) -> u64 {
    records.iter().map(|record| blocks_of(record).count() as u64).sum()
}

/// Estimates distinct bytes from one block in 64.
pub fn footprint(records: &[Record]) -> f64 {
    distances(records, StackDistances::sampled(1.0 / 64.0)).blocks() * CACHE_BLOCK as f64
}

fn distances(records: &[Record], mut distances: StackDistances) -> StackDistances {
    for record in records {
        blocks_of(record).for_each(|block| distances.access(block));
    }
    distances
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Counting {
    Exact,
    /// A hashed sample of the blocks, at this rate.
    Sampled(f64),
    Both(f64),
}

/// For LRU caches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MissCurve {
    /// Estimated for a sample.
    pub footprint_bytes: f64,
    pub exact: Option<Vec<MissRatio>>,
    pub sampled: Option<Sampled>,
}

impl MissCurve {
    /// The more accurate curve.
    pub fn best(&self) -> &[MissRatio] {
        self.exact
            .as_deref()
            .or(self.sampled.as_ref().map(|sampled| sampled.curve.as_slice()))
            .unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sampled {
    pub share: f64,
    pub curve: Vec<MissRatio>,
    /// The maximum error against the exact curve or, without one, half of the largest difference
    /// between halves of the sample.
    pub error: f64,
    pub error_estimated: bool,
}

fn max_difference(a: &[MissRatio], b: &[MissRatio]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a.miss_ratio - b.miss_ratio).abs()).fold(0.0, f64::max)
}

/// Sizes in bytes.
pub fn miss_curve(records: &[Record], sizes: &[u64], counting: Counting) -> MissCurve {
    let curve = |distances: &StackDistances| distances.curve(CACHE_BLOCK, sizes.iter().copied());
    let all = (!matches!(counting, Counting::Sampled(_)))
        .then(|| distances(records, StackDistances::exact()));
    let exact = all.as_ref().map(curve);
    let mut blocks = all.map(|all| all.blocks());
    let sampled = match counting {
        Counting::Exact => None,
        Counting::Sampled(share) | Counting::Both(share) => {
            let some = distances(records, StackDistances::sampled(share));
            blocks = blocks.or(Some(some.blocks()));
            let sampled = curve(&some);
            let error = exact.as_ref().map_or_else(
                || {
                    let [a, b] = StackDistances::sampled_halves(share)
                        .map(|half| curve(&distances(records, half)));
                    max_difference(&a, &b) / 2.0
                },
                |exact| max_difference(exact, &sampled),
            );
            Some(Sampled { share, curve: sampled, error, error_estimated: exact.is_none() })
        }
    };
    MissCurve { footprint_bytes: blocks.unwrap_or(0.0) * CACHE_BLOCK as f64, exact, sampled }
}

/// Speed-up factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheGain {
    pub cache_bytes: u64,
    pub write_back: f64,
    pub write_through: f64,
}

/// Replays also without a RAM cache.
pub fn cache_gains(
    setup: &Setup,
    records: &[Record],
    pace: Pace,
    sizes: &[u64],
) -> Result<(Replay, Vec<CacheGain>)> {
    let with = |cache: Option<(u64, WritePolicy)>| {
        let mut setup = setup.clone();
        setup.ram_cache = cache;
        replay(&Twin::new(setup), records, pace)
    };
    let base = with(None)?;
    // At the trace's own pace the cost is the waiting time, not the elapsed time.
    let cost = |replay: &Replay| match pace {
        Pace::Recorded => replay.waited_ns.max(1) as f64,
        Pace::Outstanding(_) => replay.elapsed_ns.max(1) as f64,
    };
    let of = |policy: WritePolicy| -> Result<Vec<f64>> {
        sizes.iter().map(|&bytes| Ok(cost(&base) / cost(&with(Some((bytes, policy)))?))).collect()
    };
    let (back, through) = std::thread::scope(|scope| {
        let back = std::thread::Builder::new().spawn_scoped(scope, || of(WritePolicy::Back));
        let through = of(WritePolicy::Through);
        // Without a thread, the replays run one after the other.
        let back = match back {
            Ok(back) => back.join().unwrap_or(Err(Error::Broken("a replay"))),
            Err(_) => of(WritePolicy::Back),
        };
        (back, through)
    });
    let gains = sizes.iter().zip(back?).zip(through?);
    let gains = gains
        .map(|((&cache_bytes, write_back), write_through)| CacheGain {
            cache_bytes,
            write_back,
            write_through,
        })
        .collect();
    Ok((base, gains))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_reads_and_its_errors_name_the_line() {
        let records =
            parse("time_ns,op,offset,bytes\n# a note\n1000,r,0,4096\n2000,W,8192,512\n").unwrap();
        assert_eq!(records[1], Record { time_ns: 1000, op: Op::Write, offset: 8192, bytes: 512 });
        for (text, word) in [
            ("1,r,0\n", "line 1: 3 fields"),
            ("1,r,0,1\n2,x,0,1\n", "line 2: op 'x'"),
            ("a,r,0,1", "line 1: time_ns 'a'"),
            ("", "no requests"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_cache_that_holds_the_working_set_pays() {
        // Random 4 KiB writes and reads over 16 MiB, most blocks several times.
        let mut state = 7u64;
        let records: Vec<Record> = (0..20_000u64)
            .map(|index| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let op = if state >> 40 & 1 == 0 { Op::Read } else { Op::Write };
                Record {
                    time_ns: index * 1_000_000,
                    op,
                    offset: (state >> 33) % (4 << 10) * 4096,
                    bytes: 4096,
                }
            })
            .collect();
        let setup = Setup::parse("gateway-1997").unwrap();
        let sizes = [2 << 20, 64 << 20];
        let (base, gains) = cache_gains(&setup, &records, Pace::Outstanding(1), &sizes).unwrap();
        assert_eq!(base.requests, 20_000);
        let curve = miss_curve(&records, &sizes, Counting::Exact);
        assert!(curve.best()[0].miss_ratio > curve.best()[1].miss_ratio);
        assert_eq!(
            curve.footprint_bytes,
            4096.0
                * records.iter().map(|r| r.offset).collect::<std::collections::HashSet<_>>().len()
                    as f64
        );
        assert!(
            gains[1].write_back > 2.0 && gains[1].write_back > gains[0].write_back,
            "{gains:?}"
        );
        assert!(
            gains[1].write_back > gains[1].write_through && gains[1].write_through >= 1.0,
            "{gains:?}"
        );
    }

    #[test]
    fn a_sample_reports_its_error() {
        // Popular blocks with a long tail.
        let mut state = 3u64;
        let mut record = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let draw = ((state >> 33) as f64 / f64::from(1u32 << 31)).powi(3);
            Record {
                time_ns: 0,
                op: Op::Read,
                offset: (draw * 100_000.0) as u64 * 4096,
                bytes: 4096,
            }
        };
        let records: Vec<Record> = (0..300_000).map(|_| record()).collect();
        let sizes: Vec<u64> = (0..9).map(|power| (1 << 20) << power).collect();
        let both = miss_curve(&records, &sizes, Counting::Both(0.2));
        let (known, sampled) =
            (both.sampled.clone().unwrap(), miss_curve(&records, &sizes, Counting::Sampled(0.2)));
        let estimated = sampled.sampled.as_ref().unwrap();
        assert!(known.error < 0.01 && !known.error_estimated, "{known:?}");
        assert!(
            estimated.error_estimated && (known.error / 4.0..0.02).contains(&estimated.error),
            "{known:?} {estimated:?}"
        );
        assert_eq!(known.curve, estimated.curve);
        assert!((sampled.footprint_bytes / both.footprint_bytes - 1.0).abs() < 0.05);
        assert!((footprint(&records) / both.footprint_bytes - 1.0).abs() < 0.2);
    }
}
