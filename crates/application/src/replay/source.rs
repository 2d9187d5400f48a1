//! A recorded thread as a source of requests.

use super::script::{Act, After, Step, ThreadScript};
use machine::{Completion, Nanos, Next, Request, RequestSource, Stability};
use measure::histogram::Histogram;

const NEVER: Nanos = Nanos::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) struct Spot {
    pub target: u32,
    pub base: u64,
}

#[derive(Debug)]
pub struct ReplaySource<'a> {
    steps: &'a [Step],
    spots: Vec<Spot>,
    depth: u32,
    max_request: u32,
    writes: bool,
    /// Divides recorded pauses; infinite for none.
    speed: f64,
    next: usize,
    ended: u32,
    began: Nanos,
    starts: Vec<Nanos>,
    ends: Vec<Nanos>,
    slots: Vec<u32>,
    free: Vec<u32>,
    sync: Option<(Stability, u32)>,
    /// Excess of the pauses so far, by which the next are shorter.
    late: Nanos,
    pub(super) latencies: Vec<Histogram>,
    pub(super) bytes: Vec<u64>,
}

impl<'a> ReplaySource<'a> {
    pub(super) fn new(
        thread: &'a ThreadScript,
        spots: Vec<Spot>,
        depth: u32,
        speed: f64,
        classes: usize,
    ) -> ReplaySource<'a> {
        let steps = thread.steps.as_slice();
        let moved = steps.iter().filter(|step| matches!(step.act, Act::Move(_)));
        ReplaySource {
            steps,
            spots,
            depth,
            max_request: moved.map(|step| step.bytes).max().unwrap_or(1).next_multiple_of(512),
            writes: steps.iter().any(|step| step.act != Act::Move(machine::Op::Read)),
            speed,
            next: 0,
            ended: 0,
            began: 0,
            starts: vec![NEVER; steps.len()],
            ends: vec![NEVER; steps.len()],
            slots: vec![0; depth as usize],
            free: (0..depth).rev().collect(),
            sync: None,
            late: 0,
            latencies: vec![Histogram::new(); classes],
            bytes: vec![0; classes],
        }
    }

    /// `None`: it must wait for a completion.
    fn due(&self, step: &Step) -> Option<Nanos> {
        let since = match step.after {
            After::Begin => self.began,
            After::End(at) => self.ends[at as usize],
            After::Start(at) => self.starts[at as usize],
        };
        if since == NEVER || self.ended < step.ended {
            return None;
        }
        let pause = (step.pause_ns as f64 / self.speed) as Nanos;
        Some(since.saturating_add(pause).saturating_sub(self.late.min(pause)))
    }

    fn end(&mut self, at: usize, now: Nanos) {
        let step = &self.steps[at];
        self.ends[at] = now;
        self.ended += 1;
        let class = usize::from(step.class);
        self.latencies[class].record(now.saturating_sub(self.starts[at]));
        if matches!(step.act, Act::Move(_)) {
            self.bytes[class] += u64::from(step.bytes);
        }
    }

    fn start(&mut self, step: &Step, due: Nanos, now: Nanos) {
        // The last pause was shortened by what was late; what this one adds is late now.
        let pause = (step.pause_ns as f64 / self.speed) as Nanos;
        self.late -= self.late.min(pause);
        if pause > 0 {
            self.late += now - due;
        }
        self.starts[self.next] = now;
        self.next += 1;
    }
}

impl RequestSource for ReplaySource<'_> {
    fn depth(&self) -> u32 {
        self.depth
    }

    fn max_request(&self) -> u32 {
        self.max_request
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn sync_due(&self) -> Option<Stability> {
        self.sync.map(|(what, _)| what)
    }

    fn sync_target(&self) -> Option<u32> {
        self.sync.map(|(_, target)| target)
    }

    fn journal_blocks(&self, slot: Option<u32>) -> Option<u32> {
        // A sync that is due was the last step to start.
        let step = slot.map_or(self.next - 1, |slot| self.slots[slot as usize] as usize);
        self.steps[step].journal_blocks
    }

    fn synced(&mut self, began: Nanos, ended: Nanos) {
        self.sync = None;
        let at = self.next - 1;
        self.starts[at] = began;
        self.end(at, ended);
    }

    fn begin(&mut self, now: Nanos) {
        self.began = now;
    }

    fn next(&mut self, now: Nanos) -> Next {
        if self.sync.is_some() {
            return Next::WaitUntil(now);
        }
        let Some(step) = self.steps.get(self.next) else {
            return if self.ended as usize == self.steps.len() {
                Next::Done
            } else {
                Next::WaitForCompletion
            };
        };
        let Some(due) = self.due(step) else { return Next::WaitForCompletion };
        if due > now {
            return Next::WaitUntil(due);
        }
        let spot = self.spots[self.next];
        if let Act::Sync(what) = step.act {
            self.start(step, due, now);
            self.sync = Some((what, spot.target));
            // No time passes: the machine submits what was issued, then asks for the sync.
            return Next::WaitUntil(now);
        }
        let Some(slot) = self.free.pop() else { return Next::WaitForCompletion };
        self.slots[slot as usize] = self.next as u32;
        let request = Request {
            op: if let Act::Move(op) = step.act { op } else { machine::Op::Write },
            target: spot.target,
            offset: step.offset + spot.base,
            len: step.bytes,
            slot,
        };
        self.start(step, due, now);
        if step.act == Act::Discard { Next::Discard(request) } else { Next::Issue(request) }
    }

    fn complete(&mut self, completion: Completion, now: Nanos) {
        self.free.push(completion.slot);
        self.end(self.slots[completion.slot as usize] as usize, now);
    }

    fn fill(&mut self, _request: &Request, _buffer: &mut [u8]) {}
}
