//! Stamps writes, checks reads, and keeps writes to read back.

use super::backlog::{Backlog, BacklogInterval};
use super::contested::Contest;
use super::core::{Core, Issue};
use super::filter::{Filter, ignores};
use super::finished::Finished;
use super::pending_verify::{PendingVerify, Piece, Read};
use super::stream_stats::{Done, TRIM};
use super::verify::CloneVerify;
use machine::{Completion, Nanos, Next, Op, Request, RequestSource};

pub(crate) struct Verification {
    pub(crate) stats: CloneVerify,
    /// `None`: only at the end.
    pub(crate) every: Option<BacklogInterval>,
    pub(crate) batch: u64,
    pub(crate) repeats: bool,
    pub(crate) keeps: bool,
}

pub(crate) struct Verifying {
    /// `None`: only other streams verify.
    stats: Option<CloneVerify>,
    contest: Option<ContestState>,
    backlog: Option<Backlog>,
    kept: Option<PendingVerify>,
}

struct ContestState {
    contest: Contest,
    /// 0: not a write.
    writes: Box<[u64]>,
    reads: Box<[Read]>,
}

impl Verifying {
    pub(crate) fn of(
        asked: Option<Verification>,
        contest: Option<Contest>,
        core: &mut Core,
    ) -> Option<Verifying> {
        if asked.is_none() && contest.is_none() {
            return None;
        }
        let depth = core.depth();
        let mut own = Verifying { stats: None, contest: None, backlog: None, kept: None };
        if let Some(Verification { stats, every, batch, repeats, keeps }) = asked {
            let writes = core.stream.writes();
            own.backlog = every.filter(|_| writes).map(|every| {
                Backlog::new((every, batch), depth, repeats, stats.clone(), contest.clone())
            });
            own.kept = keeps.then(|| PendingVerify::new(repeats));
            core.checks = own.backlog.is_some() || !writes;
            own.stats = Some(stats);
        }
        own.contest = contest.map(|contest| ContestState {
            contest,
            writes: vec![0; depth as usize].into_boxed_slice(),
            reads: vec![Read::default(); depth as usize].into_boxed_slice(),
        });
        Some(own)
    }
}

impl Filter for Verifying {
    fn before(&mut self, core: &mut Core, now: Nanos) -> Option<Next> {
        let backlog = self.backlog.as_mut()?;
        let late = now >= core.stream.deadline();
        let next = backlog.before(now, core.in_flight, core.is_over(now), late);
        core.reads_back = backlog.is_reading();
        next
    }

    fn issued(&mut self, core: &mut Core, issue: &Issue) {
        let Issue { request, side, now, .. } = issue;
        if let Some(backlog) = self.backlog.as_mut().filter(|_| *side != TRIM) {
            backlog.issued(*request);
            core.stream.adjust_budget(backlog.beyond() as i64);
        }
        if let Some(own) = &mut self.contest {
            own.issued(request, *side == TRIM, *now);
        }
        if let Some(kept) = self.kept.as_mut().filter(|_| *side == Op::Write as usize) {
            kept.add(request);
        }
    }

    fn completed(&mut self, _core: &mut Core, slot: u32, _whole: bool, _done: Option<&Done>) {
        if let Some(own) = &mut self.contest {
            own.ended(slot);
        }
    }

    fn read_back(&mut self, completion: Completion, now: Nanos) {
        if let Some(backlog) = &mut self.backlog {
            backlog.complete(completion, now);
        }
    }

    fn fill(&mut self, request: &Request, buffer: &mut [u8]) {
        if let Some(stats) = &self.stats {
            stats.check.stamp(request.offset, buffer);
        }
    }

    fn check(&mut self, core: &mut Core, slot: u32, data: &[u8]) {
        if let Some(backlog) = &self.backlog {
            // The mix's own reads are not checked: they may return older data.
            if backlog.is_reading() {
                backlog.check(slot, data);
            }
            return;
        }
        let Some(stats) = &self.stats else { return };
        match &self.contest {
            Some(own) => own.reads[slot as usize].check(stats, Some(&own.contest), data),
            None => {
                let request = &core.slots[slot as usize];
                stats.check_block(request.target, request.offset, data);
            }
        }
        core.fails |= !core.tolerated.verify && stats.faults() > 0;
    }

    fn finish(self: Box<Self>, finished: &mut Finished) {
        finished.record.apart_ns = self.backlog.as_ref().map_or(0, Backlog::apart_ns);
        finished.record.read_back = self.backlog.map(Backlog::recorded);
        finished.kept = self.kept.map_or_else(Vec::new, |mut kept| kept.drain());
        finished.contest = self.contest.map(|own| own.contest);
    }

    ignores!(begin idle synced owes left fails);
}

impl ContestState {
    fn issued(&mut self, request: &Request, trims: bool, now: Nanos) {
        let (slot, piece) = (request.slot as usize, Piece::from(request));
        if trims || request.op == Op::Write {
            self.writes[slot] = self.contest.begin(&piece, !trims);
        } else {
            self.reads[slot] = Read::of(piece, now, Some(&self.contest));
        }
    }

    fn ended(&mut self, slot: u32) {
        let number = std::mem::take(&mut self.writes[slot as usize]);
        if number > 0 {
            self.contest.end(number);
        }
    }
}
