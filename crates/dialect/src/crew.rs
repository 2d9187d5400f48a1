//! A crew: the streams of several workloads on several files in one run, started together and, where asked, counted only until the first is done.
//!
//! [`measure::sample`] runs one workload on one target. The tools whose languages are spoken here also run a file a process, a
//! file's threads from different starting points, or readers beside writers, and report each by itself.

use machine::{Asker, Completion, Error, Machine, Nanos, Next, Op, Request, Result, TargetFacts};
use measure::{Sample, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use workload::{Cursor, Filler, Workload};

/// Time from the last stream's readiness to the common start, so that no stream is still asleep then.
const SETTLE_NS: Nanos = 1_000_000;

/// What a tool does to the requests of a workload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    /// Every offset is moved on by so many bytes within the region, around its end.
    pub(crate) rotate_bytes: u64,
    /// The places of the requests are so many bytes apart, and not as many as a request is long. The job's region has then a request's
    /// length for each place, wherever that ends.
    pub(crate) step_bytes: Option<u64>,
    /// Writes carry this pattern, and reads must find it.
    pub(crate) pattern: Option<u64>,
    /// The data of reads is copied once more, in blocks of so many bytes.
    pub(crate) copy_block: Option<usize>,
    /// Offset and latency of every request are kept.
    pub(crate) log: bool,
    /// Completions are counted in intervals of so many nanoseconds, reads and writes apart.
    pub(crate) interval_ns: Option<Nanos>,
    /// The threads of a sequential workload take the next block of one common sequence.
    pub(crate) interlocked: bool,
}

/// Streams of one workload.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) workload: Workload,
    pub(crate) shape: Shape,
}

impl Job {
    /// Bytes that a target must seem to have for the workload's region.
    fn seeming_size(&self, size_bytes: u64) -> u64 {
        match (self.shape.step_bytes, self.workload.region_bytes) {
            (Some(_), Some(bytes)) => size_bytes.max(self.workload.region_start_bytes + bytes),
            _ => size_bytes,
        }
    }
}

/// A file and what is done to it. All jobs of a part reach it the same way: that of the first.
pub(crate) struct Part<'t, T> {
    pub(crate) target: &'t mut T,
    pub(crate) jobs: Vec<Job>,
    /// Its streams run on these processors alone.
    pub(crate) processors: Vec<u32>,
}

/// How a run is made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    /// Time at the start that is run but not measured.
    pub(crate) ramp_ns: Nanos,
    /// When the first stream has done its bytes, the others go on but count no more ([`Notes::counted`]).
    pub(crate) stonewall: bool,
}

/// What the streams of one part measured.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) sample: Sample,
    pub(crate) streams: Vec<Stream>,
    pub(crate) notes: Vec<Notes>,
    /// When the first stream began and the last ended, on the machine's clock.
    pub(crate) span: (Nanos, Nanos),
}

/// What a stream noted beside its measurements.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    /// Offset in bytes and latency of every request, in order of completion.
    pub(crate) log: Vec<(u64, Nanos)>,
    /// Reads and writes completed in each interval.
    pub(crate) intervals: Vec<[u64; 2]>,
    /// When the stream began and when its last request ended.
    pub(crate) began: Nanos,
    pub(crate) ended: Nanos,
    /// Requests done, and the time, when the first stream of a run with a stonewall was done.
    pub(crate) counted: Option<(u64, Nanos)>,
}

/// What all streams of a run share.
struct Common {
    expected: usize,
    ready: AtomicUsize,
    /// When all begin; 0: not yet known.
    start: AtomicU64,
    stonewall: bool,
    /// Somebody is done: the others' counts end here.
    first_done: AtomicBool,
    /// Somebody has failed: nothing more is issued.
    stop: AtomicBool,
}

/// A stream with the tool's shape around it.
struct Player {
    stream: Stream,
    shape: Shape,
    common: Arc<Common>,
    /// First byte and length of the region that offsets stay in.
    region: (u64, u64),
    requests: Box<[(Request, Nanos)]>,
    in_flight: u32,
    scratch: Box<[u8]>,
    notes: Notes,
    measured_from: Nanos,
    ramp: Nanos,
    started: bool,
    announced: bool,
    wrong: Option<u64>,
}

impl Player {
    fn new(stream: Stream, job: &Job, region: (u64, u64), common: &Arc<Common>, ramp: Nanos) -> Player {
        let request = job.workload.request_bytes;
        let none = (Request { op: Op::Read, offset: 0, len: 0, slot: 0 }, 0);
        let expected = match job.workload.stop {
            workload::Stop::AfterBytes(bytes) if job.shape.log => bytes / u64::from(request) + 1,
            _ => 0,
        };
        let intervals = match (job.shape.interval_ns, job.workload.stop) {
            (Some(width), workload::Stop::AfterNs(run)) => run / width.max(1) + 2,
            _ => 0,
        };
        Player {
            requests: vec![none; stream.depth() as usize].into_boxed_slice(),
            shape: job.shape.clone(),
            common: common.clone(),
            region,
            in_flight: 0,
            scratch: vec![0; if job.shape.copy_block.is_some() { request as usize } else { 0 }].into_boxed_slice(),
            notes: Notes { log: Vec::with_capacity(expected as usize), intervals: vec![[0; 2]; intervals as usize], ..Notes::default() },
            measured_from: 0,
            ramp,
            started: false,
            announced: false,
            wrong: None,
            stream,
        }
    }

    /// Waits for the common start; `None` once it has come.
    fn before_start(&mut self, now: Nanos) -> Option<Next> {
        let common = &self.common;
        if !self.announced {
            self.announced = true;
            if common.ready.fetch_add(1, Ordering::AcqRel) + 1 == common.expected {
                common.start.store((now + if common.expected > 1 { SETTLE_NS } else { 0 }).max(1), Ordering::Release);
            }
        }
        match common.start.load(Ordering::Acquire) {
            // A run that fails elsewhere before the start never begins.
            0 if common.stop.load(Ordering::Relaxed) => Some(Next::Done),
            0 => Some(Next::WaitUntil(now + SETTLE_NS / 4)),
            start if start > now => Some(Next::WaitUntil(start)),
            _ => {
                self.started = true;
                self.stream.begin(now);
                self.notes.began = now;
                self.notes.ended = now;
                self.measured_from = now + self.ramp;
                None
            }
        }
    }

    /// Where a request of the workload goes.
    #[inline]
    fn place(&self, offset: u64, len: u32) -> u64 {
        if self.shape.rotate_bytes == 0 && self.shape.step_bytes.is_none() {
            return offset;
        }
        let len = u64::from(len);
        let step = self.shape.step_bytes.unwrap_or(len);
        let (index, places) = ((offset - self.region.0) / len, (self.region.1 / len).max(1));
        self.region.0 + (index * step + self.shape.rotate_bytes) % (places * step)
    }
}

impl Asker for Player {
    fn depth(&self) -> u32 {
        self.stream.depth()
    }

    fn max_request(&self) -> u32 {
        self.stream.max_request()
    }

    fn writes(&self) -> bool {
        self.stream.writes()
    }

    fn fill_buffers(&mut self, buffers: &mut [u8]) {
        match self.shape.pattern {
            Some(pattern) => buffers.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&pattern.to_le_bytes())),
            None => self.stream.fill_buffers(buffers),
        }
    }

    fn begin(&mut self, _now: Nanos) {}

    #[inline]
    fn next(&mut self, now: Nanos) -> Next {
        if !self.started
            && let Some(wait) = self.before_start(now)
        {
            return wait;
        }
        if self.common.stop.load(Ordering::Relaxed) {
            return if self.in_flight == 0 { Next::Done } else { Next::WaitForCompletion };
        }
        if self.common.stonewall && self.notes.counted.is_none() && self.common.first_done.load(Ordering::Relaxed) {
            self.notes.counted = Some((self.stream.completed(), now));
        }
        let next = self.stream.next(now);
        match next {
            Next::Issue(mut request) => {
                request.offset = self.place(request.offset, request.len);
                self.requests[request.slot as usize] = (request, now);
                self.in_flight += 1;
                Next::Issue(request)
            }
            Next::Done => {
                if self.common.stonewall && self.notes.counted.is_none() {
                    self.notes.counted = Some((self.stream.completed(), self.notes.ended));
                    self.common.first_done.store(true, Ordering::Relaxed);
                }
                Next::Done
            }
            wait => wait,
        }
    }

    #[inline]
    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.in_flight -= 1;
        self.notes.ended = now;
        let (request, issued) = self.requests[completion.slot as usize];
        if self.shape.log {
            self.notes.log.push((request.offset, now - issued));
        }
        if let Some(width) = self.shape.interval_ns
            && now >= self.measured_from
            && let Some(count) = self.notes.intervals.get_mut(((now - self.measured_from) / width) as usize)
        {
            count[request.op as usize] += 1;
        }
        self.stream.complete(completion, now);
    }

    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        if self.shape.pattern.is_none() {
            self.stream.fill(request, buffer);
        }
    }

    fn checks(&self) -> bool {
        self.shape.pattern.is_some() || self.shape.copy_block.is_some()
    }

    fn check(&mut self, slot: u32, data: &[u8]) {
        if let Some(pattern) = self.shape.pattern {
            let wanted = pattern.to_le_bytes();
            if let Some(at) = data.chunks_exact(8).position(|word| word != wanted) {
                let offset = self.requests[slot as usize].0.offset + at as u64 * 8;
                self.wrong.get_or_insert(offset);
                self.common.stop.store(true, Ordering::Relaxed);
            }
        }
        if let Some(block) = self.shape.copy_block {
            for (to, from) in self.scratch.chunks_mut(block).zip(data.chunks(block)) {
                to[..from.len()].copy_from_slice(from);
            }
            std::hint::black_box(&self.scratch);
        }
    }
}

/// Runs all parts at once.
///
/// # Errors
/// A workload that makes no sense on its target, an access mode that a target refuses, a failed request, data that is not
/// what was written. The first error ends all parts.
pub(crate) fn run<M>(machine: &M, parts: Vec<Part<'_, M::Target>>, how: Run) -> Result<Vec<Ran>>
where
    M: Machine + Sync,
    M::Target: Send,
{
    let facts: Vec<TargetFacts> = parts.iter().map(|part| machine.target_facts(part.target)).collect();
    let mut crews = Vec::new();
    for (part, facts) in parts.iter().zip(&facts) {
        crews.push(streams(&part.jobs, facts, how.ramp_ns)?);
    }
    let common = Arc::new(Common {
        expected: crews.iter().map(Vec::len).sum(),
        ready: AtomicUsize::new(0),
        start: AtomicU64::new(0),
        stonewall: how.stonewall,
        first_done: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    });
    let work = |part: Part<'_, M::Target>, facts: &TargetFacts, streams: Vec<(Stream, usize)>| -> Result<Ran> {
        let ran = run_part(machine, part, facts, streams, &common, how.ramp_ns);
        if ran.is_err() {
            common.stop.store(true, Ordering::Relaxed);
        }
        ran
    };
    let alone = parts.len() == 1 && parts[0].processors.is_empty();
    let mut work_list = parts.into_iter().zip(&facts).zip(crews).map(|((part, facts), crew)| (part, facts, crew));
    if alone {
        return work_list.by_ref().map(|(part, facts, crew)| work(part, facts, crew)).collect();
    }
    let results: Vec<Result<Ran>> = std::thread::scope(|scope| {
        let work = &work;
        let hands: Vec<_> = work_list.map(|(part, facts, crew)| scope.spawn(move || work(part, facts, crew))).collect();
        hands.into_iter().map(|hand| hand.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    first_failure(results)
}

/// All results, or the first error; one that only says that another stopped the run stands back.
fn first_failure(results: Vec<Result<Ran>>) -> Result<Vec<Ran>> {
    let mut rans = Vec::new();
    let mut errors = Vec::new();
    for result in results {
        match result {
            Ok(ran) => rans.push(ran),
            Err(error) => errors.push(error),
        }
    }
    errors.sort_by_key(|error| matches!(error, Error::Unsupported(_)));
    errors.into_iter().next().map_or(Ok(rans), Err)
}

/// The streams of all jobs of a part, each with the number of its job.
fn streams(jobs: &[Job], facts: &TargetFacts, ramp: Nanos) -> Result<Vec<(Stream, usize)>> {
    let mut all = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let workload = &job.workload;
        let direct = workload.buffering.is_direct();
        if let (true, Some(why)) = (direct, &facts.direct_refused) {
            return Err(Error::Unsupported(format!("{}: {why}", facts.name)));
        }
        let size = job.seeming_size(facts.size_bytes);
        workload.check(size, if direct { facts.direct_align_bytes } else { 1 })?;
        let region = workload.region(size);
        if job.shape.interlocked {
            let one = Workload { threads: 1, ..workload.clone() };
            let shared = Arc::new(AtomicU64::new(0));
            for _ in 0..workload.threads {
                let filler = Filler::new(workload).fork(all.len() as u64);
                all.push((Stream::new(&one, region, (0, 0), Cursor::Shared(shared.clone()), filler, ramp)?, number));
            }
        } else if jobs.len() == 1 && job.shape.step_bytes.is_none() {
            all.extend(measure::streams(workload, facts, ramp)?.into_iter().map(|stream| (stream, number)));
        } else {
            for index in 0..workload.threads {
                let filler = Filler::new(workload).fork(all.len() as u64);
                all.push((Stream::new(workload, region, (index, 0), Cursor::Own, filler, ramp)?, number));
            }
        }
    }
    Ok(all)
}

fn run_part<M: Machine>(
    machine: &M,
    part: Part<'_, M::Target>,
    facts: &TargetFacts,
    streams: Vec<(Stream, usize)>,
    common: &Arc<Common>,
    ramp: Nanos,
) -> Result<Ran> {
    if !part.processors.is_empty() {
        machine.bind(&part.processors)?;
    }
    let first = &part.jobs[0].workload;
    let mut access = first.access(facts.size_bytes);
    if part.jobs.len() > 1 {
        access.region = (0, facts.size_bytes);
    }
    let mut players: Vec<Player> = streams
        .into_iter()
        .map(|(stream, job)| {
            let job = &part.jobs[job];
            Player::new(stream, job, job.workload.region(job.seeming_size(facts.size_bytes)), common, ramp)
        })
        .collect();
    let usage = machine.run(part.target, &access, &mut players)?;
    if let Some(offset) = players.iter().find_map(|player| player.wrong) {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, "the data is not what was written");
        return Err(Error::Request { op: Op::Read, offset, len: first.request_bytes, source });
    }
    let span = (
        players.iter().map(|player| player.notes.began).min().unwrap_or(usage.began),
        players.iter().map(|player| player.notes.ended).max().unwrap_or(usage.began),
    );
    let (streams, notes): (Vec<Stream>, Vec<Notes>) = players.into_iter().map(|player| (player.stream, player.notes)).unzip();
    let sample = measure::gather(&streams, usage, first)?;
    Ok(Ran { sample, streams, notes, span })
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Buffering;
    use workload::Stop;

    const BLOCK: u64 = 4096;

    fn job(shape: Shape, blocks: u64) -> Job {
        let workload = Workload {
            request_bytes: BLOCK as u32,
            buffering: Buffering::Buffered,
            region_start_bytes: 10 * BLOCK,
            region_bytes: Some(blocks * BLOCK),
            stop: Stop::AfterBytes(6 * BLOCK),
            ..Workload::default()
        };
        Job { workload, shape }
    }

    fn common(expected: usize) -> Arc<Common> {
        Arc::new(Common {
            expected,
            ready: AtomicUsize::new(0),
            start: AtomicU64::new(0),
            stonewall: true,
            first_done: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        })
    }

    fn player(job: &Job, common: &Arc<Common>) -> Player {
        let region = job.workload.region(u64::MAX >> 1);
        let stream = Stream::new(&job.workload, region, (0, 0), Cursor::Own, Filler::new(&job.workload), 0).unwrap();
        Player::new(stream, job, region, common, 0)
    }

    /// Where the next request goes, in blocks; it takes `ns`. `None` when there is none.
    fn step(player: &mut Player, now: &mut Nanos, ns: Nanos) -> Option<f64> {
        loop {
            match player.next(*now) {
                Next::Issue(request) => {
                    *now += ns;
                    player.complete(Completion { slot: request.slot, result: request.len as i32 }, *now);
                    return Some(request.offset as f64 / BLOCK as f64);
                }
                Next::WaitUntil(then) => *now = then,
                Next::Done => return None,
                Next::WaitForCompletion => unreachable!("every request has ended"),
            }
        }
    }

    fn offsets(shape: Shape, blocks: u64) -> Vec<f64> {
        let mut player = player(&job(shape, blocks), &common(1));
        let mut now = 1000;
        std::iter::from_fn(|| step(&mut player, &mut now, 10)).collect()
    }

    #[test]
    fn places_are_apart_as_far_as_the_tool_asks_and_start_where_it_asks() {
        assert_eq!(offsets(Shape::default(), 4), [10.0, 11.0, 12.0, 13.0, 10.0, 11.0]);
        assert_eq!(offsets(Shape { step_bytes: Some(BLOCK / 2), ..Shape::default() }, 5), [10.0, 10.5, 11.0, 11.5, 12.0, 10.0]);
        assert_eq!(offsets(Shape { step_bytes: Some(3 * BLOCK), ..Shape::default() }, 3), [10.0, 13.0, 16.0, 10.0, 13.0, 16.0]);
        assert_eq!(offsets(Shape { rotate_bytes: 3 * BLOCK, ..Shape::default() }, 4), [13.0, 10.0, 11.0, 12.0, 13.0, 10.0]);
    }

    #[test]
    fn what_the_tool_wants_to_know_of_each_request_is_kept() {
        let mut player = player(&job(Shape { log: true, ..Shape::default() }, 3), &common(1));
        let mut now = 1000;
        while step(&mut player, &mut now, 25).is_some() {}
        assert_eq!(player.notes.log, [10, 11, 12, 10, 11, 12].map(|block| (block * BLOCK, 25)));
        assert_eq!((player.notes.began, player.notes.ended), (1000, 1150));
    }

    #[test]
    fn with_a_stonewall_the_slower_counts_until_the_faster_is_done_and_goes_on() {
        let shared = common(2);
        let (mut fast, mut slow) = (player(&job(Shape::default(), 8), &shared), player(&job(Shape::default(), 8), &shared));
        let mut now = 1000;
        // The first waits for the second.
        assert!(matches!(fast.next(now), Next::WaitUntil(then) if then > now));
        assert!(matches!(slow.next(now), Next::WaitUntil(then) if then == now + SETTLE_NS));
        now += SETTLE_NS;
        let began = now;
        let (mut a, mut b) = (now, now);
        for _ in 0..3 {
            step(&mut fast, &mut a, 10);
            step(&mut fast, &mut a, 10);
            step(&mut slow, &mut b, 20);
        }
        assert_eq!(step(&mut fast, &mut a, 10), None);
        let mut rest = 0;
        while step(&mut slow, &mut b, 20).is_some() {
            rest += 1;
        }
        assert_eq!((fast.notes.counted, slow.notes.counted, rest), (Some((6, began + 60)), Some((3, began + 60)), 3));
    }

    #[test]
    fn data_that_is_not_the_pattern_stops_everybody() {
        let shared = common(1);
        let mut player = player(&job(Shape { pattern: Some(u64::from_le_bytes([9; 8])), ..Shape::default() }, 8), &shared);
        let Next::Issue(request) = player.next(1000) else { unreachable!() };
        let mut data = vec![9; BLOCK as usize];
        player.check(request.slot, &data);
        assert_eq!(player.wrong, None);
        data[100] = 8;
        player.check(request.slot, &data);
        assert_eq!(player.wrong, Some(10 * BLOCK + 96));
        player.complete(Completion { slot: request.slot, result: request.len as i32 }, 1010);
        assert_eq!(player.next(1010), Next::Done);
    }
}
