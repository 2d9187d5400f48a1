use super::contested::Contest;
use super::failures::JobError;
use super::finished::Finished;
use super::group::{Group, Verified, backlog, repeats, seed, streams_of};
use super::pending_verify::{Piece, Read};
use super::result::CloneStats;
use super::verify::CloneVerify;
use crate::fio::options::error::FioError;
use crate::fio::plan::arrange::ClonePlan;
use crate::fio::plan::translate;
use crate::fio::plan::turns::FileTurns;
use machine::{Completion, Machine, Nanos, Next, Op, Part, Request, RequestSource, Scheduling};
use measure::histogram::Histogram;
use std::collections::HashSet;
use workload::{Cursor, Sequence, Workload};

pub(crate) enum Written {
    Walk(Box<Walk>),
    Pieces(std::vec::IntoIter<Piece>),
}

impl Iterator for Written {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        match self {
            Written::Walk(walk) => walk.next(),
            Written::Pieces(pieces) => pieces.next(),
        }
    }
}

pub(crate) struct Walk {
    sequence: Sequence,
    turns: FileTurns,
    left: u64,
    left_bytes: u64,
    /// As in fio, repeated offsets are read once.
    seen: Option<HashSet<(u32, u64)>>,
}

impl Walk {
    pub(crate) fn new(
        sequence: Sequence,
        turns: FileTurns,
        requests: u64,
        bytes: Option<u64>,
        repeats: bool,
    ) -> Walk {
        let seen = repeats.then(HashSet::new);
        Walk { sequence, turns, left: requests, left_bytes: bytes.unwrap_or(u64::MAX), seen }
    }

    fn next(&mut self) -> Option<Piece> {
        while self.left > 0 {
            self.left -= 1;
            let (op, offset, len) = self.sequence.next();
            let len = u64::from(len).min(self.left_bytes) as u32;
            self.left_bytes -= u64::from(len);
            let mut request = Request { op, target: 0, offset, len, slot: 0 };
            let placed = self.turns.place(&mut request);
            let Request { target, offset, len, .. } = request;
            if op == Op::Write
                && placed
                && self.seen.as_mut().is_none_or(|seen| seen.insert((target, offset)))
            {
                return Some(Piece { target, offset, len });
            }
        }
        None
    }
}

pub(crate) struct Reader {
    written: Written,
    max_request: u32,
    free: Vec<u32>,
    issued: Box<[Read]>,
    stats: CloneVerify,
    contest: Option<Contest>,
    latency: Histogram,
    bytes: u64,
    span: (Nanos, Nanos),
}

impl Reader {
    pub(crate) fn new(
        written: Written,
        depth: u32,
        max_request: u32,
        stats: CloneVerify,
        contest: Option<Contest>,
    ) -> Self {
        Reader {
            written,
            max_request,
            free: (0..depth).collect(),
            issued: vec![Read::default(); depth as usize].into_boxed_slice(),
            stats,
            contest,
            latency: Histogram::new(),
            bytes: 0,
            span: (0, 0),
        }
    }

    pub(crate) fn recorded(self) -> CloneStats {
        CloneStats::of_reads(self.latency, self.bytes, self.span.1.saturating_sub(self.span.0))
    }
}

impl RequestSource for Reader {
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
        let Some(&slot) = self.free.last() else { return Next::WaitForCompletion };
        match self.written.next() {
            Some(piece) => {
                self.free.pop();
                self.issued[slot as usize] = Read::of(piece, now, self.contest.as_ref());
                Next::Issue(piece.reading(slot))
            }
            None if self.free.len() == self.issued.len() => Next::Done,
            None => Next::WaitForCompletion,
        }
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.free.push(completion.slot);
        self.latency.record(now - self.issued[completion.slot as usize].since);
        self.bytes += u64::from(completion.result.unsigned_abs());
        self.span.1 = now;
    }

    fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}

    fn checks(&self) -> bool {
        true
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        self.issued[slot as usize].check(&self.stats, self.contest.as_ref(), data);
    }
}

impl<'a, M: Machine> Group<'a, M> {
    pub(super) fn read_back(
        &self,
        recorders: &mut [Finished],
        verified: &Verified,
        errors: &mut [Option<JobError>],
    ) -> Result<Vec<(u32, CloneStats)>, FioError> {
        let mut rest = recorders;
        let (mut asked, mut readers) = (Vec::new(), Vec::new());
        for clone in &self.clones {
            let (job, place) = (self.job_of(clone), clone.job.1);
            let (own, others) = rest.split_at_mut(streams_of(job) as usize);
            rest = others;
            let options = &job.options;
            let wanted = options.do_verify
                && options.writes
                && backlog(job, clone).is_none()
                && errors[place].is_none();
            // As in fio, a job whose time is over or that filled the disk reads nothing back.
            let done: u64 = own.iter().map(|one| one.stream.completed_bytes_with_ramp()).sum();
            let whole = clone.limit_bytes.is_some_and(|limit| done >= limit)
                || own.iter().any(|one| one.complete);
            let late = (options.runtime_ns > 0 && !whole) || own.iter().any(|one| one.no_space);
            let Some(stats) = verified[place].as_ref().filter(|_| wanted && !late) else {
                continue;
            };
            let seed = seed(job, self.chance);
            let workload = translate::clone_workload(job, clone, seed);
            let depth = if workload.engine.is_async() { workload.depth } else { 1 };
            let contest = own.first().and_then(|one| one.contest.clone());
            let pieces: Vec<Piece> =
                own.iter_mut().flat_map(|one| std::mem::take(&mut one.kept)).collect();
            let written = match job.keeps_writes() {
                true => Written::Pieces(pieces.into_iter()),
                false => Written::Walk(Box::new(self.walk(clone, &workload, own)?)),
            };
            asked.push(*clone);
            let stats = CloneVerify::new(stats, &clone.files);
            readers.push(Reader::new(written, depth, workload.request_bytes, stats, contest));
        }
        if readers.is_empty() {
            return Ok(Vec::new());
        }
        let part = |(clone, reader): (&&'a ClonePlan, _)| {
            let access = translate::access(self.job_of(clone), self.arrangement.file_bytes(clone));
            let sources = std::slice::from_mut(reader);
            (
                clone.job.1,
                Part {
                    targets: self.targets_of(clone),
                    access,
                    buffering: Vec::new(),
                    sources,
                    scheduling: Scheduling::default(),
                },
            )
        };
        self.run_parts(asked.iter().zip(&mut readers).map(part).collect(), errors)?;
        Ok(asked
            .iter()
            .map(|clone| clone.number)
            .zip(readers.into_iter().map(Reader::recorded))
            .collect())
    }

    fn walk(
        &self,
        clone: &ClonePlan,
        workload: &Workload,
        own: &[Finished],
    ) -> Result<Walk, FioError> {
        let job = self.job_of(clone);
        let turns = translate::turns(job, clone, seed(job, self.chance));
        let sequence =
            Sequence::new(workload, workload.region(self.arrangement.bytes(clone)), 0, Cursor::Own)
                .map_err(|error| FioError::Machine { job: job.shown(), source: error.into() })?;
        let mut requests: u64 = own.iter().map(|one| one.stream.completed_with_ramp()).sum();
        let repeats = repeats(job);
        if !job.options.reads && job.sizes().is_none() && !repeats {
            // There is only one pass.
            requests = requests.min(turns.pass_bytes() / job.request_bytes());
        }
        // With several sizes, the last request may have been cut short.
        Ok(Walk::new(sequence, turns, requests, job.sizes().and(clone.limit_bytes), repeats))
    }
}
