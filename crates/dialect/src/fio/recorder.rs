//! What fio's reports need of each request, recorded around a stream.

use super::backlog::Backlog;
use super::flow::Flow;
use super::iolog::{Action, Entry, Guide, Wish};
use super::plan::Job;
use super::result::Recorded;
use super::steady::{STEP_NS, Watch};
use super::translate;
use super::turns::FileTurns;
use super::verify::{VerifyStats, repeat};
use machine::{Completion, Nanos, Next, Op, Request, RequestSource, Stability};
use measure::Stream;
use measure::histogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use workload::rng;

/// Time over which fio averages rates for their spread.
pub(crate) const SPREAD_NS: Nanos = 500_000_000;
/// Windows for which there is room from the beginning.
const WINDOWS: usize = 4096;
/// Lines of a log without averages for which there is room from the beginning.
const LINES: usize = 1 << 16;

/// Requests of one direction in one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of their latencies.
    pub latency_ns: u64,
    /// The greatest of these.
    pub greatest_ns: u64,
}

impl Sum {
    /// Adds another.
    pub fn add(&mut self, other: Sum) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latency_ns = self.latency_ns.saturating_add(other.latency_ns);
        self.greatest_ns = self.greatest_ns.max(other.greatest_ns);
    }
}

/// Sums in equal windows of time, by direction.
#[derive(Debug, Clone)]
pub struct Windows {
    /// Width of a window.
    pub width_ns: Nanos,
    end: Nanos,
    open: [Sum; 2],
    /// The windows that are over.
    pub closed: Vec<[Sum; 2]>,
}

impl Windows {
    fn new(width_ns: Nanos) -> Windows {
        Windows { width_ns, end: Nanos::MAX, open: [Sum::default(); 2], closed: Vec::with_capacity(WINDOWS) }
    }

    fn begin(&mut self, now: Nanos) {
        self.end = now.saturating_add(self.width_ns);
    }

    #[inline(always)]
    fn add(&mut self, now: Nanos, op: Op, bytes: u64, latency_ns: Nanos) {
        while now >= self.end {
            self.closed.push(std::mem::take(&mut self.open));
            self.end += self.width_ns;
        }
        self.open[op as usize].add(Sum { requests: 1, bytes, latency_ns, greatest_ns: latency_ns });
    }

    /// The windows that are over, or the open one where there is no other.
    pub fn whole(&self) -> Vec<[Sum; 2]> {
        if self.closed.is_empty() { vec![self.open] } else { self.closed.clone() }
    }
}

/// One request in a log without averages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// When it ended, from the beginning of what is measured.
    pub at_ns: Nanos,
    /// Its latency.
    pub latency_ns: Nanos,
    /// What it did.
    pub op: Op,
    /// Its bytes.
    pub bytes: u32,
    /// Where it went in its file.
    pub offset: u64,
}

/// Counts by power of two, as fio's report has them: 0, 1..=4, ..=8, ..=16, ..=32, ..=64, more.
pub type Batches = [u64; 7];

fn batch(count: u32) -> usize {
    match count {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

/// What one stream recorded.
#[derive(Debug, Clone)]
pub struct Record {
    /// Latencies from issue to completion of reads and of writes, where they are not those of the stream.
    pub from_issue: Option<[Histogram; 2]>,
    /// Requests by direction.
    pub requests: [u64; 2],
    /// Bytes by direction.
    pub bytes: [u64; 2],
    /// Rates for their spread.
    pub spread: Windows,
    /// The averaged log.
    pub log: Option<Windows>,
    /// The log without averages.
    pub lines: Option<Vec<Line>>,
    /// Times of syncs between requests.
    pub syncs: Histogram,
    /// Requests by those outstanding with them: 1, 2, 4, ..., 64 and more.
    pub depths: Batches,
    /// Submissions by their requests.
    pub submitted: Batches,
    /// Takings of completions by their requests.
    pub completed: Batches,
    /// When what is measured began and last ended something.
    pub span: (Nanos, Nanos),
    /// What was read back meanwhile.
    pub read_back: Option<Recorded>,
    /// Every request in order, with when it was issued.
    pub(crate) trace: Option<Vec<Entry>>,
    /// The first so many requests of the sequence are done.
    pub(crate) progress: Option<u64>,
}

/// A stream with what is recorded of it.
pub(crate) struct Recorder {
    stream: Stream,
    record: Record,
    turns: FileTurns,
    delay: Nanos,
    ramp: Nanos,
    starts: Nanos,
    measured_from: Nanos,
    begun: bool,
    issued: Box<[(Nanos, Op, u32)]>,
    in_flight: u32,
    issued_in_row: u32,
    completed_in_row: u32,
    sync_every: u64,
    sync_what: Stability,
    /// Writes issued since the last sync.
    unsynced: u64,
    due: Option<Stability>,
    /// Bytes of a pass, at the end of which the cache is dropped where another follows; 0: never.
    pass_bytes: u64,
    /// Bytes issued in this pass.
    passed: u64,
    batches: Option<Batching>,
    watched: Option<Watched>,
    /// Writes describe themselves; where nothing writes, reads are checked.
    verify: Option<Arc<VerifyStats>>,
    /// Where each outstanding request goes, where somebody wants to know.
    offsets: Box<[u64]>,
    /// What writes carry, again and again; empty: the stream's data.
    pattern: Box<[u8]>,
    pauses: Option<Pauses>,
    exit: Option<Exit>,
    backlog: Option<Backlog>,
    flow: Option<Flow>,
    guide: Option<Guide>,
    /// Every request, where somebody wants to repeat them.
    trace: Option<Vec<Entry>>,
    progress: Option<Progress>,
}

/// How far a stream came in its sequence.
struct Progress {
    /// Number of the request in each slot; the greatest: none.
    numbers: Box<[u64]>,
    issued: u64,
    /// Requests that are on stable storage, and those that the sync under way will bring there.
    synced: u64,
    syncing: u64,
    /// Only these count.
    synced_only: bool,
}

impl Progress {
    /// The first so many requests are done.
    fn done(&self) -> u64 {
        self.numbers.iter().copied().min().unwrap_or(u64::MAX).min(self.issued)
    }

    fn issue(&mut self, slot: u32) {
        self.numbers[slot as usize] = self.issued;
        self.issued += 1;
    }
}

/// Pauses after every few requests.
#[derive(Debug, Clone, Copy)]
struct Pauses {
    ns: Nanos,
    blocks: u64,
    /// Requests since the last pause.
    issued: u64,
    until: Nanos,
}

impl Pauses {
    /// What to do instead of asking the stream; `None`: ask it. As in fio what is under way is waited for first.
    fn before(&mut self, now: Nanos, in_flight: u32) -> Option<Next> {
        if self.issued < self.blocks {
            return (now < self.until).then_some(Next::WaitUntil(self.until));
        }
        if in_flight > 0 {
            return Some(Next::WaitForCompletion);
        }
        (self.issued, self.until) = (0, now + self.ns);
        Some(Next::WaitUntil(self.until))
    }
}

/// The end of the jobs that `exitall` ends together.
#[derive(Debug, Clone)]
pub(crate) struct Exit {
    /// Where one of these is set, this stream ends.
    pub(crate) heeds: [Arc<AtomicBool>; 2],
    /// What this stream sets when it is done.
    pub(crate) sets: Option<Arc<AtomicBool>>,
}

impl Exit {
    fn is_due(&self) -> bool {
        self.heeds.iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Requests submitted and replaced in groups.
#[derive(Debug, Clone, Copy)]
struct Batching {
    /// Submitted together.
    submit: u32,
    /// Completions that are waited for before any is replaced.
    complete: u32,
    /// Free slots are being filled.
    filling: bool,
    /// Issued since the last submission.
    row: u32,
    /// Completed since the last filling.
    done: u32,
}

impl Batching {
    /// Of a job's options on a stream that keeps `depth` requests; `None`: what is free is filled at once.
    fn of(job: &Job, depth: u32) -> Option<Batching> {
        let options = &job.options;
        // 0 is fio's word for all.
        let all = |count: u32| if count == 0 { depth } else { count.min(depth) };
        // A full queue is down to its low mark after the completions between them.
        let down = options.low.map_or(1, |low| depth.saturating_sub(low));
        let (submit, complete) = (options.batch.map_or(1, all), options.batch_complete.max(down).clamp(1, depth));
        let asked = options.batch.is_some() || complete > 1;
        (asked && depth > 1).then_some(Batching { submit, complete, filling: true, row: 0, done: 0 })
    }

    /// What to do instead of asking the stream; `None`: ask it.
    fn before(&mut self, now: Nanos, in_flight: u32, depth: u32) -> Option<Next> {
        if !self.filling {
            let enough = self.done >= self.complete.min(self.done + in_flight) && depth - in_flight >= self.submit;
            if !enough && in_flight > 0 {
                return Some(Next::WaitForCompletion);
            }
            (self.filling, self.done, self.row) = (true, 0, 0);
        }
        if self.row == self.submit {
            self.row = 0;
            self.filling = depth - in_flight >= self.submit;
            // No time passes: what was issued goes to the kernel.
            return Some(if self.filling { Next::WaitUntil(now) } else { Next::WaitForCompletion });
        }
        None
    }

    /// After what the stream said.
    fn after(&mut self, next: Next) {
        match next {
            Next::Issue(_) => self.row += 1,
            Next::WaitForCompletion | Next::Done => self.filling = false,
            Next::WaitUntil(_) => {}
        }
    }
}

/// A stream's part in watching for a steady rate.
struct Watched {
    watch: Arc<Watch>,
    /// End of the current second, and its number.
    end: Nanos,
    second: u64,
    sums: [u64; 2],
    left: bool,
}

impl Watched {
    /// Tells the seconds that are over.
    #[inline]
    fn pass_to(&mut self, now: Nanos) {
        while now >= self.end {
            self.watch.tell(self.second, std::mem::take(&mut self.sums));
            self.second += 1;
            self.end += STEP_NS;
        }
    }
}

impl Recorder {
    /// Around a stream of a job whose requests go to files in these turns; `chance` draws its delay.
    pub(crate) fn new(stream: Stream, job: &Job, turns: FileTurns, chance: u64) -> Recorder {
        let options = &job.options;
        let depth = stream.depth() as usize;
        let average = options.logs.any().then_some(options.logs.average_ms);
        let sync_every = options.fsync.max(options.fdatasync);
        Recorder {
            record: Record {
                from_issue: job.rate_iops().map(|_| [Histogram::new(), Histogram::new()]),
                requests: [0; 2],
                bytes: [0; 2],
                spread: Windows::new(SPREAD_NS),
                log: average.filter(|&ms| ms > 0).map(|ms| Windows::new(ms * 1_000_000)),
                lines: average.filter(|&ms| ms == 0).map(|_| Vec::with_capacity(LINES)),
                syncs: Histogram::new(),
                depths: [0; 7],
                submitted: [0; 7],
                completed: [0; 7],
                span: (0, 0),
                read_back: None,
                trace: None,
                progress: None,
            },
            turns,
            delay: delay_of(options.start_delay_ns, chance),
            ramp: options.ramp_ns,
            starts: 0,
            measured_from: 0,
            begun: false,
            issued: vec![(0, Op::Read, 0); depth].into_boxed_slice(),
            in_flight: 0,
            issued_in_row: 0,
            completed_in_row: 0,
            sync_every,
            sync_what: if options.fsync > 0 { Stability::File } else { Stability::Data },
            unsynced: 0,
            due: None,
            pass_bytes: 0,
            passed: 0,
            batches: Batching::of(job, depth as u32),
            watched: None,
            verify: None,
            offsets: vec![0; if average == Some(0) { depth } else { 0 }].into_boxed_slice(),
            pattern: options.buffer_pattern.as_slice().into(),
            pauses: translate::pauses(job).then_some(Pauses {
                ns: options.think_ns,
                blocks: options.think_blocks,
                issued: 0,
                until: 0,
            }),
            exit: None,
            backlog: None,
            flow: None,
            guide: None,
            trace: options.logs.requests.as_ref().map(|_| Vec::with_capacity(LINES)),
            progress: job.saves_state().then(|| Progress {
                numbers: vec![u64::MAX; depth].into_boxed_slice(),
                issued: 0,
                synced: 0,
                syncing: 0,
                // What is synced at the end is all.
                synced_only: options.state_synced && !options.end_fsync,
            }),
            stream,
        }
    }

    /// Tells its rate to a watch, and ends when that finds it steady.
    pub(crate) fn watched_by(&mut self, watch: Arc<Watch>, after: Nanos) {
        // The end of the first second, from the beginning of what is measured.
        self.watched = Some(Watched { watch, end: after + STEP_NS, second: 0, sums: [0; 2], left: false });
    }

    /// Stamps writes and, where there are none, checks reads. After so many requests, or writes where reads do not count, the writes are
    /// read back; none: at the end.
    pub(crate) fn verified_in(&mut self, stats: Arc<VerifyStats>, every: Option<(u64, bool)>) {
        self.offsets = vec![0; self.issued.len()].into_boxed_slice();
        if let Some(every) = every.filter(|_| self.stream.writes()) {
            self.backlog = Some(Backlog::new(every, self.stream.depth(), stats.clone()));
        }
        self.verify = Some(stats);
    }

    /// Ends with others, and they with it.
    pub(crate) fn exits_with(&mut self, exit: Exit) {
        self.exit = Some(exit);
    }

    /// Does what a guide says, in the place of its own sequence.
    pub(crate) fn guided_by(&mut self, guide: Guide) {
        self.guide = Some(guide);
    }

    /// What the guide wants now, in a free slot.
    fn follow(&mut self, now: Nanos) -> Next {
        let over = if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion };
        let Some(guide) = self.guide.as_mut().filter(|_| !self.stream.is_over(now)) else { return over };
        match guide.wish(now) {
            Wish::Over => over,
            Wish::Later(then) => Next::WaitUntil(then),
            Wish::Sync(what) => {
                guide.done();
                self.due = Some(what);
                Next::WaitUntil(now)
            }
            Wish::Request(entry) => {
                let mut next = self.stream.next(now);
                if let Next::Issue(request) = &mut next {
                    guide.done();
                    if let Action::Request(op) = entry.action {
                        request.op = op;
                    }
                    (request.target, request.offset, request.len) = (u32::from(entry.file), entry.offset, entry.len);
                    self.stream.serves_as(request.slot, request.op);
                }
                next
            }
        }
    }

    /// Keeps its activity in proportion to others.
    pub(crate) fn flows_with(&mut self, mut flow: Flow) {
        if self.delay == 0 {
            flow.expect();
        }
        self.flow = Some(flow);
    }

    /// What ends or holds this stream beside its own workload; `None`: ask it.
    #[inline(always)]
    fn held(&mut self, now: Nanos) -> Option<Next> {
        if self.exit.as_ref().is_some_and(Exit::is_due) {
            return Some(if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion });
        }
        if self.stream.is_over(now) {
            return None;
        }
        let pause = self.pauses.as_mut().and_then(|pauses| pauses.before(now, self.in_flight));
        pause.or_else(|| self.flow.as_ref().and_then(|flow| flow.before(now)))
    }

    /// Drops the cache after each pass of so many bytes that another one follows.
    pub(crate) fn cold_passes(&mut self, bytes: u64) {
        self.pass_bytes = bytes;
    }

    /// A sync after every so many writes, and an empty cache for every pass; `None`: go on. As in fio nothing waits for the writes that
    /// are under way, and nothing is synced after the last.
    #[inline(always)]
    fn upkeep(&mut self, now: Nanos) -> Option<Next> {
        let sync = self.sync_every > 0 && self.unsynced >= self.sync_every;
        let turn = self.pass_bytes > 0 && self.passed >= self.pass_bytes;
        if !(sync || turn) || self.stream.is_over(now) {
            return None;
        }
        if !sync && self.in_flight > 0 {
            return Some(Next::WaitForCompletion);
        }
        self.due = Some(if sync { self.sync_what } else { Stability::Uncached });
        if let Some(progress) = self.progress.as_mut().filter(|_| sync) {
            progress.syncing = progress.done();
        }
        // No time passes: what was issued goes to the kernel, and then the machine asks what is due.
        Some(Next::WaitUntil(now))
    }

    /// Requests done, ramp included.
    pub(crate) fn completed_with_ramp(&self) -> u64 {
        self.stream.completed_with_ramp()
    }

    /// What the watch has to say to the next request; `None`: go on.
    fn heed_watch(&mut self, now: Nanos) -> Option<Next> {
        let watched = self.watched.as_mut()?;
        watched.pass_to(now);
        if !watched.watch.is_steady() {
            return None;
        }
        Some(if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion })
    }

    /// The stream and its record, after the run.
    pub(crate) fn into_parts(self) -> (Stream, Record) {
        let read_back = self.backlog.map(Backlog::recorded);
        let reached = |progress: Progress| if progress.synced_only { progress.synced } else { progress.done() };
        let progress = self.progress.map(reached);
        (self.stream, Record { read_back, trace: self.trace, progress, ..self.record })
    }

    #[cold]
    fn start(&mut self, now: Nanos) {
        self.begun = true;
        self.stream.begin(now);
        if let Some(flow) = &mut self.flow {
            flow.join(now);
        }
        if let Some(guide) = &mut self.guide {
            guide.begin(now);
        }
        self.measured_from = now + self.ramp;
        self.record.span = (self.measured_from, self.measured_from);
        self.record.spread.begin(self.measured_from);
        if let Some(log) = &mut self.record.log {
            log.begin(self.measured_from);
        }
        if let Some(watched) = &mut self.watched {
            watched.end += self.measured_from;
        }
    }

    /// Counts the requests issued in a row.
    #[inline(always)]
    fn end_of_row(&mut self) {
        if self.issued_in_row > 0 {
            self.record.submitted[batch(self.issued_in_row)] += 1;
            self.issued_in_row = 0;
        }
    }
}

/// A delay from the shortest to the longest.
fn delay_of([least, most]: [Nanos; 2], chance: u64) -> Nanos {
    least + rng::below(rng::mix(chance), most - least + 1)
}

impl RequestSource for Recorder {
    fn depth(&self) -> u32 {
        self.stream.depth()
    }

    fn max_request(&self) -> u32 {
        self.stream.max_request()
    }

    fn writes(&self) -> bool {
        self.stream.writes()
    }

    #[inline(always)]
    fn sync_due(&self) -> Option<Stability> {
        self.due
    }

    fn synced(&mut self, began: Nanos, ended: Nanos) {
        let due = self.due.take();
        if due == Some(Stability::Uncached) {
            self.passed = 0;
            return;
        }
        self.unsynced = 0;
        if let Some(progress) = &mut self.progress {
            progress.synced = progress.syncing;
        }
        if let (Some(trace), Some(what)) = (&mut self.trace, due) {
            let at_ns = began.saturating_sub(self.measured_from - self.ramp);
            trace.push(Entry { at_ns, action: Action::Sync(what), file: 0, offset: 0, len: 0 });
        }
        if began >= self.measured_from {
            self.record.syncs.record(ended.saturating_sub(began));
        }
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        self.stream.fill_buffers(buffers);
    }

    fn begin(&mut self, now: Nanos) {
        self.starts = now + self.delay;
        if self.delay == 0 {
            self.start(now);
        }
    }

    #[inline(always)]
    fn next(&mut self, now: Nanos) -> Next {
        if self.completed_in_row > 0 {
            self.record.completed[batch(self.completed_in_row)] += 1;
            self.completed_in_row = 0;
        }
        if !self.begun {
            if now < self.starts {
                return Next::WaitUntil(self.starts);
            }
            self.start(now);
        }
        if self.watched.is_some()
            && let Some(next) = self.heed_watch(now)
        {
            self.end_of_row();
            if let (Next::Done, Some(flow)) = (next, &mut self.flow) {
                flow.leave();
            }
            return next;
        }
        if let Some(backlog) = &mut self.backlog
            && let Some(next) = backlog.before(now, self.in_flight, self.stream.is_over(now))
        {
            self.end_of_row();
            return next;
        }
        if (self.exit.is_some() || self.pauses.is_some() || self.flow.is_some())
            && let Some(next) = self.held(now)
        {
            self.end_of_row();
            if let (Next::Done, Some(flow)) = (next, &mut self.flow) {
                flow.leave();
            }
            return next;
        }
        if let Some(next) = self.upkeep(now) {
            self.end_of_row();
            return next;
        }
        if let Some(batches) = &mut self.batches
            && let Some(next) = batches.before(now, self.in_flight, self.issued.len() as u32)
        {
            self.end_of_row();
            return next;
        }
        let mut next = if self.guide.is_some() { self.follow(now) } else { self.stream.next(now) };
        if let Some(batches) = &mut self.batches {
            batches.after(next);
        }
        if let (Next::Done, Some(Exit { sets: Some(flag), .. })) = (next, &self.exit) {
            flag.store(true, Ordering::Relaxed);
        }
        if let (Next::Done, Some(watched)) = (next, &mut self.watched)
            && !std::mem::replace(&mut watched.left, true)
        {
            watched.watch.leave();
        }
        if let (Next::Done, Some(flow)) = (next, &mut self.flow) {
            flow.leave();
        }
        if let Next::Issue(request) = &mut next {
            self.issued[request.slot as usize] = (now, request.op, request.len);
            if self.guide.is_none() {
                self.turns.place(request);
            }
            if let Some(offset) = self.offsets.get_mut(request.slot as usize) {
                *offset = request.offset;
            }
            if let Some(backlog) = &mut self.backlog {
                backlog.issued(*request);
            }
            self.unsynced += u64::from(request.op == Op::Write);
            self.passed += u64::from(request.len);
            if let Some(pauses) = &mut self.pauses {
                pauses.issued += 1;
            }
            if let Some(flow) = &self.flow {
                flow.issued();
            }
            if let Some(progress) = &mut self.progress {
                progress.issue(request.slot);
            }
            if let Some(trace) = &mut self.trace {
                let at_ns = now - (self.measured_from - self.ramp);
                let (offset, len) = (request.offset, request.len);
                let action = Action::Request(request.op);
                trace.push(Entry { at_ns, action, file: request.target as u16, offset, len });
            }
            self.in_flight += 1;
            self.issued_in_row += 1;
            self.record.depths[(self.in_flight.ilog2() as usize).min(6)] += 1;
        } else {
            self.end_of_row();
        }
        next
    }

    #[inline(always)]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        if let Some(backlog) = self.backlog.as_mut().filter(|backlog| backlog.is_reading()) {
            backlog.complete(completion, now);
            return;
        }
        // An engine that serves where it is asked completes without asking again.
        self.end_of_row();
        self.stream.complete(completion, now);
        if let Some(progress) = &mut self.progress {
            progress.numbers[completion.slot as usize] = u64::MAX;
        }
        self.in_flight -= 1;
        self.completed_in_row += 1;
        let (issued, op, bytes) = self.issued[completion.slot as usize];
        if let Some(batches) = &mut self.batches {
            batches.done += 1;
        }
        if now < self.measured_from {
            return;
        }
        let latency = now - issued;
        let record = &mut self.record;
        record.requests[op as usize] += 1;
        record.bytes[op as usize] += u64::from(bytes);
        record.span.1 = now;
        if let Some(watched) = &mut self.watched {
            watched.pass_to(now);
            if now + STEP_NS >= watched.end {
                watched.sums[0] += 1;
                watched.sums[1] += u64::from(bytes);
            }
        }
        if let Some(from_issue) = &mut record.from_issue {
            from_issue[op as usize].record(latency);
        }
        record.spread.add(now, op, u64::from(bytes), latency);
        if let Some(log) = &mut record.log {
            log.add(now, op, u64::from(bytes), latency);
        }
        if let Some(lines) = &mut record.lines {
            let offset = self.offsets[completion.slot as usize];
            lines.push(Line { at_ns: now - self.measured_from, latency_ns: latency, op, bytes, offset });
        }
    }

    #[inline(always)]
    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        if self.pattern.is_empty() {
            self.stream.fill(request, buffer);
        } else {
            repeat(&self.pattern, buffer);
        }
        if let Some(stats) = &self.verify {
            stats.check.stamp(request.offset, buffer);
        }
    }

    fn checks(&self) -> bool {
        self.verify.is_some() && (self.backlog.is_some() || !self.stream.writes())
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        if let Some(backlog) = &self.backlog {
            // Reads of a mix are its own: what they find may be from before.
            if backlog.is_reading() {
                backlog.check(slot, data);
            }
        } else if let Some(stats) = &self.verify {
            stats.check(self.offsets[slot as usize], data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::arrange::ClonePlan;
    use crate::fio::plan::job;

    /// What a job on one file of 4 blocks asks of the machine until it is done: r and w for requests, S for syncs, C for an empty cache,
    /// and a dot for each completion. With depth each request completes when no other can be issued.
    fn asked_and_done(settings: &str, blocks: u64) -> String {
        let job = job(settings);
        let clone =
            ClonePlan { number: 1, job: (0, 0), files: vec![0], part: (0, 4 * 4096), limit_bytes: Some(blocks * 4096) };
        let workload = translate::clone_workload(&job, &clone, 1);
        let filler = workload::Filler::new(&workload);
        let stream = Stream::new(&workload, (0, 4 * 4096), (0, 0), workload::Cursor::Own, filler, 0).unwrap();
        let mut recorder = Recorder::new(stream, &job, translate::turns(&job, &clone, 1), 0);
        if job.options.invalidate {
            recorder.cold_passes(4 * 4096);
        }
        recorder.begin(0);
        let (mut text, mut outstanding) = (String::new(), Vec::new());
        loop {
            match recorder.next(0) {
                Next::Issue(request) => {
                    text.push(if request.op == Op::Read { 'r' } else { 'w' });
                    outstanding.push(request);
                    continue;
                }
                Next::Done => return text,
                Next::WaitUntil(_) => {}
                Next::WaitForCompletion => {
                    let request = outstanding.remove(0);
                    text.push('.');
                    recorder.complete(Completion { slot: request.slot, result: request.len as i32 }, 0);
                }
            }
            if let Some(what) = recorder.sync_due() {
                text.push(if what == Stability::Uncached { 'C' } else { 'S' });
                recorder.synced(0, 0);
            }
        }
    }

    fn asked(settings: &str, blocks: u64) -> String {
        asked_and_done(settings, blocks).replace('.', "")
    }

    #[test]
    fn a_queue_that_is_full_is_filled_again_when_it_is_low() {
        let settings = "rw=read invalidate=0 ioengine=io_uring iodepth=4";
        assert_eq!(asked_and_done(settings, 7), "rrrr.r.r.r....");
        assert_eq!(asked_and_done(&format!("{settings} iodepth_low=1"), 10), "rrrr...rrr...rrr....");
        assert_eq!(asked_and_done(&format!("{settings} iodepth_low=0"), 8), "rrrr....rrrr....");
    }

    #[test]
    fn every_pass_begins_with_an_empty_cache_and_every_few_writes_end_with_a_sync() {
        assert_eq!(asked("rw=read", 12), "rrrrCrrrrCrrrr");
        assert_eq!(asked("rw=randread ioengine=io_uring iodepth=3", 8), "rrrrCrrrr");
        assert_eq!(asked("rw=write fsync=2", 6), "wwSwwSCww");
        assert_eq!(asked("rw=write ioengine=io_uring iodepth=4 fsync=1", 4), "wSwSwSw");
    }
}
