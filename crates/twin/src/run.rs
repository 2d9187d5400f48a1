//! One run of a simulated computer.

use crate::device::disk::geometry::SECTOR;
use crate::event::Event;
use crate::world::files::Barrier;
use crate::world::{LogOwner, World};
use machine::{
    Access, Buffering, Completion, Error, Nanos, Next, OnFailure, Request, RequestSource, Result,
    Stability,
};
use std::collections::VecDeque;

struct Job {
    files: Vec<u32>,
    accesses: Vec<u32>,
    aligns: Vec<u64>,
    blocking: bool,
    oldest_first: bool,
    sync_at_end: bool,
    left: usize,
    outcome: Ended,
    failed: Option<Error>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ended {
    pub elapsed_ns: Nanos,
    /// From the last completion to stable storage, if requested.
    pub sync_ns: Option<Nanos>,
}

fn align(buffering: Buffering) -> u64 {
    if buffering.is_direct() { SECTOR } else { 1 }
}

struct Source<'a, S> {
    source: &'a mut S,
    part: usize,
    done: bool,
    wake: Nanos,
    syncing: Option<Nanos>,
    /// Oldest first, if completions are in that order.
    order: VecDeque<(u32, Option<Completion>)>,
}

impl<S: RequestSource> Source<'_, S> {
    fn complete_in_order(&mut self, completion: Completion, now: Nanos) -> bool {
        if let Some(one) =
            self.order.iter_mut().find(|(slot, end)| *slot == completion.slot && end.is_none())
        {
            one.1 = Some(completion);
        }
        let mut any = false;
        while let Some(&(_, Some(completion))) = self.order.front() {
            self.order.pop_front();
            self.source.complete(completion, now);
            any = true;
        }
        any
    }
}

#[derive(Clone, Copy)]
enum Waiter {
    Source(u32, Stability),
    Part(usize),
}

pub(crate) struct Run<'a, S> {
    world: &'a mut World,
    jobs: Vec<Job>,
    sources: Vec<Source<'a, S>>,
    began: Nanos,
    on_failure: OnFailure,
    refused: Option<Error>,
    open: usize,
    waiting: Vec<(Waiter, Barrier)>,
}

impl<'a, S: RequestSource> Run<'a, S> {
    pub(crate) fn new(world: &'a mut World, began: Nanos, on_failure: OnFailure) -> Self {
        let (jobs, sources, waiting) = (Vec::new(), Vec::new(), Vec::new());
        Run { world, jobs, sources, began, on_failure, refused: None, open: 0, waiting }
    }

    /// `buffering` is that of each file; empty: all as in the access.
    pub(crate) fn add(
        &mut self,
        access: &Access,
        buffering: &[Buffering],
        files: Vec<u32>,
        (sources, clients): (&'a mut [S], u32),
    ) {
        let (count, all) = (sources.len().max(1) as u64, u64::from(clients.max(1)));
        let client = |index: usize| (index as u64 * all / count) as u32;
        self.world.clients.extend((0..sources.len()).map(client));
        let first = self.world.accesses.len() as u32;
        self.world.prepare(access, &files);
        let mut accesses = vec![first; files.len()];
        let mut aligns = vec![align(access.buffering); files.len()];
        for (index, &buffering) in buffering.iter().enumerate().take(files.len()) {
            accesses[index] = self.world.accesses.len() as u32;
            self.world.accesses.push(Access { buffering, ..access.clone() });
            aligns[index] = align(buffering);
        }
        let part = self.jobs.len();
        self.jobs.push(Job {
            files,
            blocking: !access.engine.is_async(),
            oldest_first: access.engine.is_async()
                && self.world.shape_of(access.engine).oldest_first(),
            accesses,
            aligns,
            sync_at_end: access.sync_at_end,
            left: sources.len(),
            outcome: Ended::default(),
            failed: None,
        });
        let asker = |source| Source {
            source,
            part,
            done: false,
            wake: Nanos::MAX,
            syncing: None,
            order: VecDeque::new(),
        };
        self.sources.extend(sources.iter_mut().map(asker));
    }

    pub(crate) fn go(mut self) -> Result<Vec<Result<Ended>>> {
        self.all();
        if let Some(error) = self.refused {
            return Err(error);
        }
        Ok(self.jobs.into_iter().map(|job| job.failed.map_or(Ok(job.outcome), Err)).collect())
    }

    fn all(&mut self) {
        self.open = self.jobs.len();
        for asker in &mut self.sources {
            asker.source.begin(self.began);
        }
        for part in 0..self.jobs.len() {
            if self.jobs[part].left == 0 {
                self.end(part);
            }
        }
        for source in 0..self.sources.len() as u32 {
            self.ask(source);
        }
        while self.open > 0 && self.refused.is_none() {
            let Some(event) = self.world.kernel.take() else { return self.nothing_comes() };
            match event {
                Event::Deliver(number) => self.deliver(number),
                Event::Wake(source) => {
                    self.sources[source as usize].wake = Nanos::MAX;
                    self.ask(source);
                }
                Event::Synced(source) => self.synced(source),
                event => self.world.handle(event),
            }
            if !self.waiting.is_empty() {
                self.stable();
            }
        }
    }

    fn nothing_comes(&mut self) {
        for part in 0..self.jobs.len() {
            let left = self.jobs[part].left;
            let syncs = |(waiter, _): &(Waiter, Barrier)| matches!(waiter, Waiter::Part(other) if *other == part);
            if left > 0 || self.waiting.iter().any(syncs) {
                let why =
                    format!("{left} streams wait for an event that never occurs on this machine");
                self.fail(part, Error::Unsupported(why));
            }
        }
    }

    fn fail(&mut self, part: usize, error: Error) {
        self.sources
            .iter_mut()
            .filter(|asker| asker.part == part)
            .for_each(|asker| asker.done = true);
        self.jobs[part].left = 0;
        self.open -= 1;
        match self.on_failure {
            OnFailure::EndRun => self.refused = self.refused.take().or(Some(error)),
            OnFailure::EndPart => self.jobs[part].failed = Some(error),
        }
    }

    fn deliver(&mut self, number: u32) {
        let request = self.world.finish(number);
        let asker = &mut self.sources[request.source as usize];
        if asker.done {
            return;
        }
        let now = self.world.kernel.now();
        self.jobs[asker.part].outcome.elapsed_ns = now;
        let completion = Completion { slot: request.slot, result: request.len as i32 };
        if !self.jobs[asker.part].oldest_first {
            asker.source.complete(completion, self.began + now);
        } else if !asker.complete_in_order(completion, self.began + now) {
            return;
        }
        self.ask(request.source);
    }

    fn sync(&mut self, waiter: Waiter) {
        let files = self.synced_files(waiter);
        let barrier = self.world.flush(&files);
        self.waiting.push((waiter, barrier));
        self.stable();
    }

    fn part_of(&self, waiter: Waiter) -> usize {
        match waiter {
            Waiter::Source(source, _) => self.sources[source as usize].part,
            Waiter::Part(part) => part,
        }
    }

    fn synced_files(&self, waiter: Waiter) -> Vec<u32> {
        let files = &self.jobs[self.part_of(waiter)].files;
        let target = match waiter {
            Waiter::Source(source, _) => self.sources[source as usize].source.sync_target(),
            Waiter::Part(_) => None,
        };
        target.map_or_else(|| files.clone(), |target| vec![files[target as usize]])
    }

    fn journal_blocks(&self, waiter: Waiter) -> u32 {
        let Waiter::Source(source, stability) = waiter else { return 0 };
        let known = self.sources[source as usize].source.journal_blocks(None);
        known.unwrap_or(u32::from(stability == Stability::File))
    }

    fn stable(&mut self) {
        let mut index = 0;
        while index < self.waiting.len() {
            if !self.world.passed(&mut self.waiting[index].1) {
                index += 1;
                continue;
            }
            let (waiter, _) = self.waiting.remove(index);
            let files = self.synced_files(waiter);
            let blocks = self.journal_blocks(waiter);
            let done = self.world.flush_devices(&files, blocks == 0);
            match waiter {
                Waiter::Source(source, _) if blocks == 0 => {
                    self.world.kernel.at(done, Event::Synced(source))
                }
                // The log may describe the data only after the data are written.
                Waiter::Source(source, _) => {
                    let address = self.world.files[files[0]].start;
                    self.world.log(done, LogOwner::Sync(source), address, blocks);
                }
                Waiter::Part(part) => {
                    let outcome = &mut self.jobs[part].outcome;
                    outcome.sync_ns = Some(done - outcome.elapsed_ns);
                    self.open -= 1;
                }
            }
        }
        if self.waiting.is_empty() {
            self.world.flushed();
        }
    }

    fn synced(&mut self, source: u32) {
        let asker = &mut self.sources[source as usize];
        let Some(since) = asker.syncing.take().filter(|_| !asker.done) else { return };
        let now = self.world.kernel.now();
        self.jobs[asker.part].outcome.elapsed_ns = now;
        asker.source.synced(self.began + since, self.began + now);
        self.ask(source);
    }

    fn end(&mut self, part: usize) {
        if self.jobs[part].sync_at_end {
            self.sync(Waiter::Part(part));
        } else {
            self.open -= 1;
        }
    }

    fn ask(&mut self, number: u32) {
        let index = number as usize;
        if self.sources[index].syncing.is_some() || self.sources[index].done {
            return;
        }
        while self.sources[index].source.sync_due() == Some(Stability::Uncached) {
            self.world.cache.drop_clean();
            let now = self.began + self.world.kernel.now();
            self.sources[index].source.synced(now, now);
        }
        if let Some(stability) = self.sources[index].source.sync_due() {
            self.sources[index].syncing = Some(self.world.kernel.now());
            return self.sync(Waiter::Source(number, stability));
        }
        let part = self.sources[index].part;
        loop {
            let now = self.world.kernel.now();
            match self.sources[index].source.next(self.began + now) {
                Next::Issue(request) => {
                    let under_way = self.issue(number, part, request);
                    if self.sources[index].done || (under_way && self.jobs[part].blocking) {
                        return;
                    }
                }
                Next::WaitUntil(until) => {
                    let until = until.saturating_sub(self.began).max(now + 1);
                    if until < self.sources[index].wake {
                        self.sources[index].wake = until;
                        self.world.kernel.at(until, Event::Wake(number));
                    }
                    return;
                }
                Next::Discard(_) => {
                    let what = "a request to discard blocks";
                    let error = Error::refused(
                        what,
                        "a simulated machine does not discard",
                        "ask a real device",
                    );
                    return self.fail(part, error);
                }
                Next::WaitForCompletion => return,
                Next::Done => {
                    self.sources[index].done = true;
                    self.jobs[part].left -= 1;
                    if self.jobs[part].left == 0 {
                        self.end(part);
                    }
                    return;
                }
            }
        }
    }

    /// Truncates the request at the target's end; returns whether it is in flight.
    fn issue(&mut self, source: u32, part: usize, mut request: Request) -> bool {
        let job = &self.jobs[part];
        let target = request.target as usize;
        let Some(&file) = job.files.get(target) else {
            let (what, count) =
                (format!("a request for target {}", request.target), job.files.len());
            let error = Error::refused(what, format!("the part has {count}"), "count them from 0");
            self.fail(part, error);
            return false;
        };
        let file = &self.world.files[file];
        let room = file.size.saturating_sub(request.offset);
        if room == 0 || request.len == 0 {
            let now = self.began + self.world.kernel.now();
            self.sources[source as usize]
                .source
                .complete(Completion { slot: request.slot, result: 0 }, now);
            return false;
        }
        let align = job.aligns[target];
        if !request.offset.is_multiple_of(align) || !u64::from(request.len).is_multiple_of(align) {
            let what = format!("a direct request of {} bytes at {}", request.len, request.offset);
            let hint = format!("give multiples of {} bytes, or go through the cache", align);
            self.fail(part, Error::refused(what, "a device takes whole blocks", hint));
            return false;
        }
        request.len = request.len.min(room.min(u64::from(u32::MAX)) as u32);
        request.offset += file.start;
        if job.oldest_first {
            self.sources[source as usize].order.push_back((request.slot, None));
        }
        let writes = request.op == machine::Op::Write;
        let journal =
            writes.then(|| self.sources[source as usize].source.journal_blocks(Some(request.slot)));
        self.world.issue(job.accesses[target], source, request, journal.flatten());
        true
    }
}
