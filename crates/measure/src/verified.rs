//! Verification: writes carry self-describing data, reads are checked, and everything written is
//! read back.

use crate::live::SecondLog;
use crate::observed::{Observed, Observer};
use crate::repeat::{Measured, Repeats, repeat_workloads};
use crate::runner::Runner;
use crate::sample::sample_as;
use crate::stream::Stream;
use machine::units::show_capacity;
use machine::{
    Access, CacheState, Completion, Engine, Error, Hint, Machine, Nanos, Next, Op, Request,
    RequestSource, Result,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use workload::Workload;
use workload::verify::{Expected, Fault, Log, Verifier};

const MAX_DESCRIBED: usize = 100;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Bytes that were compared with the data this run wrote.
    pub checked_bytes: u64,
    /// Bytes that were not judged: this run had not written them yet, or the write failed.
    #[serde(default)]
    pub unjudged_bytes: u64,
    /// Number of faults by kind: `flipped`, `torn`, `misdirected`, `lost`, `stale` and `foreign`.
    pub faults: std::collections::BTreeMap<String, u64>,
    pub first_faults: Vec<String>,
}

impl Verification {
    pub fn fault_count(&self) -> u64 {
        self.faults.values().sum()
    }

    /// About bytes that could not be judged.
    pub fn unjudged(&self) -> Option<String> {
        let size = show_capacity(self.unjudged_bytes as f64);
        (self.unjudged_bytes > 0).then(|| {
            format!(
                "{size} more could not be judged: this run had not written them when they were read"
            )
        })
    }

    fn add(&mut self, read: u64, checked: u64, faults: &[Fault]) {
        self.checked_bytes += checked;
        self.unjudged_bytes += read - checked;
        for fault in faults {
            *self.faults.entry(fault.kind.name().into()).or_default() += 1;
            if self.first_faults.len() < MAX_DESCRIBED {
                self.first_faults.push(fault.to_string());
            }
        }
    }
}

/// One for all streams of a run.
#[derive(Debug)]
pub struct VerifyStats {
    verifier: Verifier,
    log: Option<Mutex<Log<File>>>,
    found: Mutex<Verification>,
    /// The log must then not be trusted.
    log_error: Mutex<Option<io::Error>>,
}

impl VerifyStats {
    /// Records every write in `log`.
    pub fn new(verifier: Verifier, log: Option<File>) -> io::Result<VerifyStats> {
        let log = log.map(|file| Log::create(file, &verifier).map(Mutex::new)).transpose()?;
        Ok(VerifyStats { verifier, log, found: Mutex::default(), log_error: Mutex::default() })
    }

    pub fn found(&self) -> Verification {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns it only once.
    pub fn log_error(&self) -> Option<io::Error> {
        self.log_error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn log(&self, note: impl FnOnce(&mut Log<File>) -> io::Result<()>) {
        let Some(log) = &self.log else { return };
        if let Err(error) = note(&mut log.lock().unwrap_or_else(PoisonError::into_inner)) {
            self.log_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    fn check(&self, offset: u64, data: &[u8], issued: Expected) {
        let mut faults = Vec::new();
        let checked = self.verifier.check(offset, data, issued, &mut faults);
        self.found.lock().unwrap_or_else(PoisonError::into_inner).add(
            data.len() as u64,
            checked,
            &faults,
        );
    }
}

#[derive(Debug, Clone)]
struct PendingRequest {
    op: Op,
    offset: u64,
    len: u32,
    generation: u32,
    expected: Option<Expected>,
}

#[derive(Debug)]
struct Verifying {
    stats: Arc<VerifyStats>,
    asked: Box<[PendingRequest]>,
}

impl Verifying {
    fn observe(stream: Stream, stats: Arc<VerifyStats>) -> Observed<Verifying> {
        let none =
            PendingRequest { op: Op::Read, offset: 0, len: 0, generation: 0, expected: None };
        let asked = vec![none; stream.depth() as usize].into_boxed_slice();
        Observed { stream, observer: Verifying { stats, asked } }
    }
}

impl Observer for Verifying {
    fn issued(&mut self, request: &Request, _now: Nanos) {
        let Request { op, offset, len, slot, .. } = *request;
        let expected = (op == Op::Read).then(|| self.stats.verifier.expected(offset));
        self.asked[slot as usize] = PendingRequest { op, offset, len, generation: 0, expected };
    }

    fn ended(&mut self, _stream: &Stream, completion: Completion, _now: Nanos) {
        let PendingRequest { op, offset, len, generation, .. } =
            self.asked[completion.slot as usize];
        if op == Op::Write {
            let ok = completion.result == len as i32;
            self.stats.verifier.wrote(offset, generation, ok);
            self.stats.log(|log| log.ended(offset, generation, ok));
        }
    }

    /// Does nothing: each write is filled when it is issued.
    fn fill_buffers(&mut self, _stream: &mut Stream, _buffers: &mut [u8]) {}

    fn fill(&mut self, _stream: &mut Stream, request: &Request, buffer: &mut [u8]) {
        let generation = self.stats.verifier.fill(request.offset, buffer);
        self.asked[request.slot as usize].generation = generation;
        self.stats.log(|log| log.begun(request.offset, generation));
    }

    fn checks(&self, _stream: &Stream) -> bool {
        true
    }

    fn check(&mut self, _stream: &mut Stream, slot: u32, data: &[u8]) {
        let asked = &mut self.asked[slot as usize];
        if let Some(expected) = asked.expected.take() {
            self.stats.check(asked.offset, data, expected);
        }
    }
}

struct ReadBack<'a> {
    stats: &'a VerifyStats,
    block: u32,
    next: Option<u64>,
    asked: Box<[(u64, Option<Expected>)]>,
    free: Vec<u32>,
}

impl RequestSource for ReadBack<'_> {
    fn depth(&self) -> u32 {
        self.asked.len() as u32
    }

    fn max_request(&self) -> u32 {
        self.block
    }

    fn writes(&self) -> bool {
        false
    }

    fn begin(&mut self, _now: Nanos) {}

    fn next(&mut self, _now: Nanos) -> Next {
        let Some(offset) = self.next else {
            return if self.free.len() == self.asked.len() {
                Next::Done
            } else {
                Next::WaitForCompletion
            };
        };
        let Some(slot) = self.free.pop() else { return Next::WaitForCompletion };
        let verifier = &self.stats.verifier;
        self.next = verifier.next_written(offset + u64::from(self.block));
        self.asked[slot as usize] = (offset, Some(verifier.expected(offset)));
        Next::Issue(Request { op: Op::Read, target: 0, offset, len: self.block, slot })
    }

    fn complete(&mut self, completion: Completion, _now: Nanos) {
        self.free.push(completion.slot);
    }

    fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}

    fn checks(&self) -> bool {
        true
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        let (offset, expected) = &mut self.asked[slot as usize];
        if let Some(expected) = expected.take() {
            self.stats.check(*offset, data, expected);
        }
    }
}

/// Reads past the page cache or after dropping it.
pub fn read_back<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    access: &Access,
    depth: u32,
    stats: &VerifyStats,
) -> Result<()> {
    let (start, _, block) = stats.verifier.area();
    let engine = if access.engine.is_async() && access.engine.does_io() {
        access.engine
    } else {
        Engine::Sync
    };
    let depth = if engine.is_async() { depth.max(1) } else { 1 };
    let access = Access {
        engine,
        cache: CacheState::Cold,
        hint: Hint::None,
        sync_at_end: false,
        ..access.clone()
    };
    let mut reader = ReadBack {
        stats,
        block,
        next: stats.verifier.next_written(start),
        asked: (0..depth).map(|_| (0, None)).collect(),
        free: (0..depth).rev().collect(),
    };
    machine.run_one(target, &access, std::slice::from_mut(&mut reader)).map(|_| ())
}

/// Reads back everything after the last run. `run` distinguishes runs of the same workload;
/// `fill_seed` is the initial data's. Each write is in `log` before it is issued.
pub fn measure_verified<M: Machine>(
    runner: &mut Runner<'_, M>,
    workload: &Workload,
    repeats: Repeats,
    (run, fill_seed): (u64, Option<u64>),
    log: Option<File>,
    on_progress: impl FnMut(usize, usize),
) -> Result<(Measured, Verification)> {
    let (machine, facts, seconds) = (runner.machine(), runner.facts()[0].clone(), runner.seconds());
    let target = runner.target_mut(0);
    let verifier =
        Verifier::new(workload, workload.region(facts.size_bytes), run)?.filled_with(fill_seed);
    let log_failed = || Error::io("cannot write", "the log of the writes");
    let stats = Arc::new(VerifyStats::new(verifier, log).map_err(log_failed())?);
    let once = |_, options| {
        let watched = seconds.as_ref().map(SecondLog::begin_run);
        sample_as(machine, target, workload, options, 1, |mut stream| {
            watched.iter().for_each(|run| stream.watch(run.clone()));
            Verifying::observe(stream, stats.clone())
        })
        .map(|(sample, _)| sample)
    };
    let mut measured = Vec::new();
    let work = [(workload, facts.clone())];
    repeat_workloads(machine, &work, repeats, once, on_progress, &mut measured)?;
    if let Some(error) = stats.log_error() {
        return Err(log_failed()(error));
    }
    read_back(machine, target, &workload.access(facts.size_bytes), workload.depth, &stats)?;
    Ok((measured.remove(0), stats.found()))
}
