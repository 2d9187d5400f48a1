//! One stream of a fio job: records what fio's reports need of each request.

mod source;

use super::backlog::{Backlog, BacklogInterval};
use super::cmdprio::Priorities;
use super::contested::Contest;
use super::failures::{Failures, Tolerated};
use super::flow::Flow;
use super::iolog::{Action, Entry, Guide, TraceStep};
use super::latency::{LatencyGoal, Search, Step};
use super::min_rate::{RateWatch, StopReason};
use super::pacing::{Batching, Exit, Pauses, Watched};
use super::pending_verify::{PendingVerify, Piece, Read};
use super::plan::Job;
use super::steady::{STEP_NS, Watch};
use super::stream_stats::{Done, LINES, StreamStats, TRIM, batch};
use super::translate;
use super::turns::FileTurns;
use super::verify::VerifyStats;
use machine::{Completion, Nanos, Next, Op, Request, RequestSource, Stability};
use measure::Stream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use workload::rng;

pub(crate) struct FioStream {
    stream: Stream,
    record: StreamStats,
    turns: FileTurns,
    delay: Nanos,
    ramp: Nanos,
    starts: Nanos,
    measured_from: Nanos,
    begun: bool,
    issued: Box<[Issued]>,
    submissions: Option<Submissions>,
    trims: Option<Trims>,
    in_flight: u32,
    issued_in_row: u32,
    completed_in_row: u32,
    /// Sync the file after this many writes, and only its data after this many; 0: never.
    sync_every: [u64; 2],
    /// Writes issued: in total, and at the last sync.
    written: [u64; 2],
    due: Option<Stability>,
    /// The pending sync is not one of the syncs between writes.
    between_passes: bool,
    /// The job ends with a timed sync of its files.
    end_sync: bool,
    /// The files have no room for another request.
    ended: bool,
    /// Whether the stream runs until the disk is full, and whether it is full now.
    fills: bool,
    no_space: bool,
    /// Bytes of a pass if something must happen before the next one; otherwise 0.
    pass_bytes: u64,
    cold_passes: bool,
    synced_passes: bool,
    passed: u64,
    batches: Option<Batching>,
    watched: Option<Watched>,
    /// Stamps writes; if the stream does not write, checks reads.
    verify: Option<Arc<VerifyStats>>,
    /// Offset of each outstanding request, if logs or verification need it.
    offsets: Box<[u64]>,
    /// Repeating content of writes; empty: use the stream's data.
    pattern: Box<[u8]>,
    pauses: Option<Pauses>,
    exit: Option<Exit>,
    backlog: Option<Backlog>,
    /// Set if other streams may write the same blocks, or if this stream's writes overlap.
    contest: Option<ContestState>,
    /// Writes to read back at the end, if the sequence cannot reproduce them.
    pieces: Option<PendingVerify>,
    flow: Option<Flow>,
    guide: Option<Guide>,
    trace: Option<Vec<Entry>>,
    progress: Option<Progress>,
    tolerated: Tolerated,
    priorities: Option<Priorities>,
    latency: LatencyGoal,
    /// The search for a queue depth, and the record to use once the depth is found.
    search: Option<(Search, Box<StreamStats>)>,
    rates: Option<RateWatch>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Issued {
    at: Nanos,
    /// Index below [`SIDES`](super::stream_stats::SIDES).
    side: usize,
    bytes: u32,
}

/// Requests of a stream in contested files, by slot.
struct ContestState {
    contest: Contest,
    /// Write numbers in flight; 0: not a write.
    writes: Box<[u64]>,
    reads: Box<[Read]>,
}

/// When the submitting call of each request returned.
struct Submissions {
    /// By slot; the maximum: not yet.
    returned_at: Box<[Nanos]>,
    /// Slots whose submitting call has not returned.
    open: Vec<u32>,
    /// The machine reports it; a simulated one has no such call.
    reported: bool,
}

/// A stream that trims instead of writing, or trims before each write.
struct Trims {
    /// A write follows each trim.
    then_write: bool,
    next_is_one: bool,
    under_way: Option<Request>,
    trimmed: Option<Request>,
}

struct Progress {
    /// Sequence number of the request in each slot; the maximum: empty.
    numbers: Box<[u64]>,
    issued: u64,
    /// Requests on stable storage, and those that the sync in flight will put there.
    synced: u64,
    syncing: u64,
    synced_only: bool,
}

impl Progress {
    /// Number of leading requests of the sequence that are done.
    fn done(&self) -> u64 {
        self.numbers.iter().copied().min().unwrap_or(u64::MAX).min(self.issued)
    }

    fn issue(&mut self, slot: u32) {
        self.numbers[slot as usize] = self.issued;
        self.issued += 1;
    }
}

impl FioStream {
    /// Wraps the stream of a job whose requests go to files in these turns; `chance` seeds its
    /// start delay.
    pub(crate) fn new(mut stream: Stream, job: &Job, turns: FileTurns, chance: u64) -> FioStream {
        let options = &job.options;
        if options.poisson {
            stream.arrive_at_random(rng::derive(chance, PURPOSE_ARRIVALS, 0));
        }
        if (options.reads && options.writes && !options.random && job.sizes().is_some()) || job.spreads() {
            // fio cuts a request at the end of its file (which the two cursors of a mix do not
            // reach) or of the free space, but not when its byte budget runs out.
            stream.end_with_a_whole_request();
        }
        let depth = stream.depth() as usize;
        FioStream {
            record: StreamStats::new(job),
            turns,
            delay: delay_of(options.start_delay_ns, chance),
            ramp: options.ramp_ns,
            starts: 0,
            measured_from: 0,
            begun: false,
            issued: vec![Issued::default(); depth].into_boxed_slice(),
            submissions: job.times_submission().then(|| Submissions {
                returned_at: vec![0; depth].into_boxed_slice(),
                open: Vec::with_capacity(depth),
                reported: false,
            }),
            trims: job.trims().then_some(Trims {
                then_write: options.then_writes,
                next_is_one: options.trims,
                under_way: None,
                trimmed: None,
            }),
            in_flight: 0,
            issued_in_row: 0,
            completed_in_row: 0,
            sync_every: [options.fsync, options.fdatasync],
            written: [0; 2],
            ended: false,
            fills: options.fills,
            no_space: false,
            due: None,
            between_passes: false,
            end_sync: options.end_fsync,
            pass_bytes: 0,
            cold_passes: false,
            synced_passes: false,
            passed: 0,
            batches: Batching::of(job, depth as u32),
            watched: None,
            verify: None,
            offsets: vec![0; if options.logs.any() && options.logs.average_ms == 0 { depth } else { 0 }]
                .into_boxed_slice(),
            pattern: options.buffer_pattern.as_slice().into(),
            pauses: translate::pauses(job).then_some(Pauses {
                ns: options.think_ns,
                blocks: options.think_blocks,
                issued: 0,
                until: 0,
            }),
            exit: None,
            backlog: None,
            contest: None,
            pieces: None,
            flow: None,
            guide: None,
            trace: options.logs.requests.as_ref().map(|_| Vec::with_capacity(LINES)),
            progress: job.saves_state().then(|| Progress {
                numbers: vec![u64::MAX; depth].into_boxed_slice(),
                issued: 0,
                synced: 0,
                syncing: 0,
                // The sync at the end covers everything.
                synced_only: options.state_synced && !options.end_fsync,
            }),
            // Data read back later must have been written.
            tolerated: Tolerated { writes: options.tolerated.writes && options.verify.is_none(), ..options.tolerated },
            priorities: Priorities::of(options, depth, chance),
            latency: options.latency,
            search: options
                .latency
                .searches()
                .then(|| (Search::new(options.latency, depth as u32), Box::new(StreamStats::new(job)))),
            rates: (options.min_rates.any() && !job.is_threaded()).then(|| RateWatch::new(options.min_rates)),
            stream,
        }
    }

    /// Reports its rate to a watch, and ends when the watch finds that rate steady.
    pub(crate) fn watched_by(&mut self, watch: Arc<Watch>, after: Nanos) {
        // The measured part begins at `after`; its first second ends one step later.
        self.watched = Some(Watched { watch, end: after + STEP_NS, second: 0, sums: [0; 2], left: false });
    }

    /// Joins files whose requests may overlap; call before [`FioStream::verified_in`].
    pub(crate) fn contests(&mut self, contest: Contest) {
        let depth = self.issued.len();
        let (writes, reads) = (vec![0; depth].into_boxed_slice(), vec![Read::default(); depth].into_boxed_slice());
        self.contest = Some(ContestState { contest, writes, reads });
    }

    /// Stamps writes; a stream that only reads checks its reads. Writes are read back at the
    /// interval `every`, or at the end if it is `None`. With `repeats` a block may be written
    /// twice.
    pub(crate) fn verified_in(&mut self, stats: Arc<VerifyStats>, every: Option<BacklogInterval>, repeats: bool) {
        self.offsets = vec![0; self.issued.len()].into_boxed_slice();
        if let Some(every) = every.filter(|_| self.stream.writes()) {
            let contest = self.contest.as_ref().map(|own| own.contest.clone());
            self.backlog = Some(Backlog::new(every, self.stream.depth(), repeats, stats.clone(), contest));
        }
        self.verify = Some(stats);
    }

    /// Keeps its writes, which may overlap, to read them back at the end.
    pub(crate) fn keeps_writes(&mut self, overlap: bool) {
        self.pieces = Some(PendingVerify::new(overlap));
    }

    pub(crate) fn contest(&self) -> Option<Contest> {
        self.contest.as_ref().map(|own| own.contest.clone())
    }

    /// Takes the kept writes in the order in which to read them.
    pub(crate) fn take_kept_writes(&mut self) -> Option<Vec<Piece>> {
        self.pieces.as_mut().map(PendingVerify::drain)
    }

    pub(crate) fn exits_with(&mut self, exit: Exit) {
        self.exit = Some(exit);
    }

    pub(crate) fn guided_by(&mut self, guide: Guide) {
        self.guide = Some(guide);
    }

    /// Returns the guide's next step, for a free slot.
    fn follow(&mut self, now: Nanos) -> Next {
        let over = if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion };
        let Some(guide) = self.guide.as_mut().filter(|_| !self.stream.is_over(now)) else { return over };
        match guide.next_step(now) {
            TraceStep::Over => over,
            TraceStep::Later(then) => Next::WaitUntil(then),
            TraceStep::Sync(what) => {
                guide.done();
                self.due = Some(what);
                Next::WaitUntil(now)
            }
            TraceStep::Request(entry) => {
                let mut next = self.stream.next(now);
                if let Next::Issue(request) = &mut next {
                    guide.done();
                    request.op = if let Action::Request(op) = entry.action { op } else { Op::Write };
                    if let Some(trims) = &mut self.trims {
                        trims.next_is_one = entry.action == Action::Trim;
                    }
                    (request.target, request.offset, request.len) = (u32::from(entry.file), entry.offset, entry.len);
                    self.stream.set_slot_op(request.slot, request.op);
                }
                next
            }
        }
    }

    pub(crate) fn flows_with(&mut self, mut flow: Flow) {
        if self.delay == 0 {
            flow.expect();
        }
        self.flow = Some(flow);
    }

    /// Returns a reason to end or wait that is not the workload's own; `None`: ask the stream.
    #[inline(always)]
    fn held(&mut self, now: Nanos) -> Option<Next> {
        if self.ended || self.exit.as_ref().is_some_and(Exit::is_due) {
            return Some(if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion });
        }
        if self.stream.is_over(now) {
            return None;
        }
        let pause = self.pauses.as_mut().and_then(|pauses| pauses.before(now, self.in_flight));
        pause.or_else(|| self.flow.as_ref().and_then(|flow| flow.before(now)))
    }

    /// Makes passes of this many bytes over the files: drops the cache between two if `cold`, and
    /// syncs after each if `synced`.
    pub(crate) fn passes(&mut self, bytes: u64, cold: bool, synced: bool) {
        (self.pass_bytes, self.cold_passes, self.synced_passes) = (bytes, cold, synced);
    }

    /// Whether a pass that ends now must sync its files. As in fio, a job that gave up does not.
    fn owes_end_sync(&self) -> bool {
        self.end_sync && self.written[0] != self.written[1] && self.record.gave_up.is_none()
    }

    /// Returns the sync or cache drop at the end of a pass, if another pass follows.
    fn at_turn(&mut self) -> Option<Stability> {
        if self.synced_passes && self.owes_end_sync() {
            return Some(Stability::File);
        }
        if !self.cold_passes {
            self.passed = 0;
        }
        self.cold_passes.then_some(Stability::Uncached)
    }

    #[cold]
    fn sync_at_end(&mut self, now: Nanos) -> Next {
        if !self.owes_end_sync() {
            return Next::Done;
        }
        (self.between_passes, self.due) = (true, Some(Stability::File));
        Next::WaitUntil(now)
    }

    /// Syncs after every N writes and after each pass, and drops the cache before the next pass;
    /// `None`: go on. As in fio, the syncs between writes do not wait for writes in flight, and the
    /// last write gets such a sync only with `end_fsync`.
    #[inline(always)]
    fn upkeep(&mut self, now: Nanos) -> Option<Next> {
        let sync = self.wanted_sync();
        let turn = self.pass_bytes > 0 && self.passed >= self.pass_bytes;
        if !(sync.is_some() || turn) || self.stream.is_over(now) {
            return None;
        }
        if sync.is_none() && self.in_flight > 0 {
            return Some(Next::WaitForCompletion);
        }
        self.between_passes = sync.is_none();
        self.due = Some(match sync {
            Some(sync) => sync,
            None => self.at_turn()?,
        });
        if let Some(progress) = self.progress.as_mut().filter(|_| sync.is_some()) {
            progress.syncing = progress.done();
        }
        // No time passes: the machine submits what was issued, then asks for the sync.
        Some(Next::WaitUntil(now))
    }

    /// Returns the sync due after these writes. As in fio, if both kinds are due, only the full
    /// sync is made.
    #[inline(always)]
    fn wanted_sync(&self) -> Option<Stability> {
        let [file, data] = self.sync_every;
        let [written, synced] = self.written;
        if file | data == 0 || written == synced {
            return None;
        }
        let asks = |every: u64| every > 0 && written.is_multiple_of(every);
        if asks(file) { Some(Stability::File) } else { asks(data).then_some(Stability::Data) }
    }

    /// Requests done, including the ramp.
    pub(crate) fn completed_with_ramp(&self) -> u64 {
        self.stream.completed_with_ramp()
    }

    /// Bytes of the requests done, including the ramp.
    pub(crate) fn completed_bytes_with_ramp(&self) -> u64 {
        self.stream.completed_bytes_with_ramp()
    }

    /// Whether the stream ran out of room, or some failed requests counted as done.
    pub(crate) fn is_complete(&self) -> bool {
        self.ended || self.record.failures.count > 0
    }

    pub(crate) fn found_no_space(&self) -> bool {
        self.no_space
    }

    fn search(&mut self, now: Nanos) -> Option<Next> {
        if now < self.measured_from || self.stream.is_over(now) {
            return None;
        }
        let (search, found) = self.search.as_mut()?;
        let step = search.before(now, self.in_flight);
        self.record.depth_found = search.depth();
        match step {
            Step::Issue => None,
            Step::Hold => Some(Next::WaitForCompletion),
            Step::Measure => {
                found.depth_found = search.depth();
                std::mem::swap(&mut self.record, found);
                self.stream.measure_anew(now);
                self.ramp += now - self.measured_from;
                self.measured_from = now;
                self.record.begin(now);
                None
            }
            Step::End => {
                self.ended = true;
                self.leave();
                Some(if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion })
            }
        }
    }

    /// Checks a completed request against the maximum latency and the minimum rates.
    #[inline]
    fn check_limits(&mut self, done: &Done) {
        let (side, latency_ns) = (done.side, done.latency_ns);
        let most = self.latency.most_ns[side.min(1)];
        let held = self.search.as_mut().is_none_or(|(search, _)| search.complete(latency_ns));
        let slow = !held || (most > 0 && latency_ns > most);
        let rate = self.rates.as_mut().and_then(|rates| rates.complete(done.at, side, done.bytes));
        if let Some(why) = slow.then_some(StopReason::Latency(latency_ns)).or(rate).filter(|_| !self.ended) {
            self.give_up(why);
        }
    }

    #[cold]
    fn give_up(&mut self, why: StopReason) {
        self.ended = true;
        self.record.gave_up = Some(why);
        if let Some(Exit { sets_on_error: Some(flag), .. }) = &self.exit {
            flag.store(true, Ordering::Relaxed);
        }
    }

    fn check_steady_state(&mut self, now: Nanos) -> Option<Next> {
        let watched = self.watched.as_mut()?;
        watched.report_until(now);
        if !watched.watch.is_steady() {
            return None;
        }
        Some(if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion })
    }

    pub(crate) fn into_parts(self) -> (Stream, StreamStats) {
        let read_back = self.backlog.map(Backlog::recorded);
        let reached = |progress: Progress| if progress.synced_only { progress.synced } else { progress.done() };
        let progress = self.progress.map(reached);
        (self.stream, StreamStats { read_back, trace: self.trace, progress, ..self.record })
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
        self.record.begin(self.measured_from);
        if let Some((search, _)) = &mut self.search {
            search.begin(self.measured_from);
        }
        if let Some(rates) = &mut self.rates {
            rates.begin(self.measured_from);
        }
        if let Some(watched) = &mut self.watched {
            watched.end += self.measured_from;
        }
    }

    #[inline(always)]
    fn submission_of(&mut self, slot: u32, latency_ns: Nanos) -> Option<Nanos> {
        let submissions = self.submissions.as_mut()?;
        if self.issued[slot as usize].side == TRIM {
            return None;
        }
        let returned_at = submissions.returned_at[slot as usize];
        if returned_at == Nanos::MAX {
            // The request completed before its call returned.
            submissions.open.retain(|&open| open != slot);
            return submissions.reported.then_some(latency_ns);
        }
        Some((returned_at - self.issued[slot as usize].at).min(latency_ns))
    }

    /// Ends a trim. Returns whether its write is still to come.
    #[inline(always)]
    fn trim_ended(&mut self) -> bool {
        let Some(trims) = &mut self.trims else { return false };
        let Some(request) = trims.under_way.take().filter(|_| trims.then_write) else { return false };
        trims.trimmed = Some(request);
        true
    }

    /// Counts a tolerated failure; `false`: the stream must stop.
    fn tolerates(&mut self, completion: Completion) -> bool {
        let issued = self.issued[completion.slot as usize];
        if self.fills && issued.side == Op::Write as usize && Failures::is_full(completion) {
            (self.ended, self.no_space) = (true, true);
            return true;
        }
        let tolerated = [self.tolerated.reads, self.tolerated.writes, false][issued.side];
        let reads_back = self.backlog.as_ref().is_some_and(Backlog::is_reading);
        let ignored = self.tolerated.ignored[usize::from(issued.side != Op::Read as usize)];
        match Failures::passing(completion, ignored).filter(|_| tolerated && !reads_back && self.trims.is_none()) {
            Some(failure) => self.record.failures.add(failure),
            None => return false,
        }
        true
    }

    #[inline(always)]
    fn end_of_row(&mut self) {
        if self.issued_in_row > 0 {
            self.record.submitted[batch(self.issued_in_row)] += 1;
            self.issued_in_row = 0;
        }
    }
}

const PURPOSE_ARRIVALS: u64 = 0xa771;

fn delay_of([least, most]: [Nanos; 2], chance: u64) -> Nanos {
    least + rng::below(rng::mix(chance), most - least + 1)
}

#[cfg(test)]
mod tests;
