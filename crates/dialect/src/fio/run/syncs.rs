//! Syncs, work between passes, and how far data is stable.

use super::core::{Core, Issue};
use super::filter::{Filter, ignores};
use super::finished::Finished;
use super::stream_stats::Done;
use crate::fio::options::sync_every::SyncEvery;
use crate::fio::options::value::Amount;
use crate::fio::plan::jobs::Job;
use machine::{Nanos, Next, Op, Stability};

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Passes {
    /// 0: nothing happens between passes.
    pub(crate) bytes: u64,
    pub(crate) cold: bool,
    pub(crate) synced: bool,
}

const UNWRITTEN: (u64, u64) = (u64::MAX, 0);

pub(crate) struct Syncs {
    every: SyncEvery,
    /// In total, and at the last sync.
    written: [u64; 2],
    last_file: u32,
    /// First and last written byte of each file since its last sync, for `sync_file_range`.
    ranges: Box<[(u64, u64)]>,
    /// Writes at the last `sync_file_range`.
    moved: u64,
    at_end: bool,
    last_too: bool,
    passes: Passes,
    progress: Option<Progress>,
}

struct Progress {
    /// Maximum: the slot is empty.
    numbers: Box<[u64]>,
    issued: u64,
    synced: u64,
    syncing: u64,
    synced_only: bool,
}

impl Progress {
    fn done(&self) -> u64 {
        self.numbers.iter().copied().min().unwrap_or(u64::MAX).min(self.issued)
    }
}

impl Syncs {
    pub(crate) fn of(job: &Job, depth: u32, passes: Passes) -> Option<Syncs> {
        let options = &job.options;
        let every = options.sync_every;
        let progress = job.saves_state().then(|| Progress {
            numbers: vec![u64::MAX; depth as usize].into_boxed_slice(),
            issued: 0,
            synced: 0,
            syncing: 0,
            // The sync at the end covers everything.
            synced_only: options.state_synced && !options.end_fsync,
        });
        let asked = every.any() || options.end_fsync || passes.bytes > 0 || progress.is_some();
        let at_end = options.end_fsync;
        let last_too = leaves_rest(job);
        let files = if every.range > 0 { job.file_count() } else { 0 };
        asked.then(|| Syncs {
            every,
            written: [0; 2],
            last_file: 0,
            ranges: vec![UNWRITTEN; files as usize].into_boxed_slice(),
            moved: 0,
            at_end,
            last_too,
            passes,
            progress,
        })
    }

    pub(crate) fn is_between_passes(&self) -> bool {
        !self.every.any() && !self.at_end && self.progress.is_none()
    }

    fn wanted(&self) -> Option<Stability> {
        let [written, synced] = self.written;
        if written == synced || written == self.moved { None } else { self.every.after(written) }
    }

    /// The sync of a file, with its range, which starts again.
    fn of_file(&mut self, what: Stability, file: u32) -> Stability {
        let range = self.ranges.get_mut(file as usize);
        let range = range.map(|range| std::mem::replace(range, UNWRITTEN));
        match (what, range) {
            (Stability::Moved { how, .. }, Some((offset, end))) => {
                Stability::Moved { how, offset, bytes: end.saturating_sub(offset) }
            }
            (what, _) => what,
        }
    }

    fn at_turn(&mut self, core: &mut Core) -> Option<Stability> {
        if self.passes.synced && self.owes(core).is_some() {
            return Some(Stability::File);
        }
        if !self.passes.cold {
            core.passed = 0;
        }
        self.passes.cold.then_some(Stability::Uncached)
    }
}

/// Files end with a rest too short for a request: fio looks for another and syncs before it.
fn leaves_rest(job: &Job) -> bool {
    let options = &job.options;
    let one_pass = options.loops == 1 && !options.time_based;
    if !one_pass || job.sizes().is_some() || options.io_size.is_some() || job.is_guided() {
        return false;
    }
    let bytes = match (options.file_bytes, options.size) {
        (Some([low, high]), _) if low == high => low,
        (None, Some(Amount::Bytes(bytes))) => bytes / u64::from(job.file_count().max(1)),
        _ => return false,
    };
    options.number_ios.is_none() && !bytes.is_multiple_of(job.request_bytes().max(1))
}

impl Filter for Syncs {
    /// As in fio, syncs do not wait for writes in flight, and the last write gets one only with
    /// `end_fsync` or a rest too short for another write.
    fn before(&mut self, core: &mut Core, now: Nanos) -> Option<Next> {
        let sync = self.wanted();
        let turn = core.passed >= core.pass_bytes;
        let is_last = self.last_too && sync.is_some() && !core.ended;
        let over = core.is_over(now) && !(is_last && now < core.stream.deadline());
        if !(sync.is_some() || turn) || over {
            return None;
        }
        if sync.is_none() && core.in_flight > 0 {
            return Some(Next::WaitForCompletion);
        }
        core.between_passes = sync.is_none();
        core.due = Some(match sync {
            Some(sync) => {
                let file = core.turns.sync_file(self.last_file);
                (self.of_file(sync, file), Some(file))
            }
            None => (self.at_turn(core)?, None),
        });
        if let Some(progress) = self.progress.as_mut().filter(|_| sync.is_some()) {
            progress.syncing = progress.done();
        }
        // No time passes: the machine submits what was issued, then asks for the sync.
        Some(Next::WaitUntil(now))
    }

    fn issued(&mut self, _core: &mut Core, issue: &Issue) {
        if issue.side == Op::Write as usize {
            self.written[0] += 1;
            self.last_file = issue.request.target;
            if let Some((first, last)) = self.ranges.get_mut(issue.request.target as usize) {
                let (offset, len) = (issue.request.offset, u64::from(issue.request.len));
                (*first, *last) = ((*first).min(offset), (*last).max(offset + len));
            }
        }
        if let Some(progress) = &mut self.progress {
            progress.numbers[issue.request.slot as usize] = progress.issued;
            progress.issued += 1;
        }
    }

    fn completed(&mut self, _core: &mut Core, slot: u32, whole: bool, _done: Option<&Done>) {
        if let Some(progress) = self.progress.as_mut().filter(|_| whole) {
            progress.numbers[slot as usize] = u64::MAX;
        }
    }

    fn synced(&mut self, core: &mut Core, what: Stability, _began: Nanos, _ended: Nanos) {
        if what == Stability::Uncached {
            core.passed = 0;
            return;
        }
        if matches!(what, Stability::Moved { .. }) {
            self.moved = self.written[0];
            return;
        }
        self.written[1] = self.written[0];
        if let Some(progress) = &mut self.progress {
            progress.synced = progress.syncing;
        }
    }

    /// As in fio, a job that gave up does not sync.
    fn owes(&mut self, core: &Core) -> Option<Stability> {
        let owes =
            self.at_end && self.written[0] != self.written[1] && core.record.gave_up.is_none();
        owes.then_some(Stability::File)
    }

    fn finish(self: Box<Self>, finished: &mut Finished) {
        let reached = |progress: &Progress| {
            if progress.synced_only { progress.synced } else { progress.done() }
        };
        finished.record.progress = self.progress.as_ref().map(reached);
    }

    ignores!(begin idle left fails read_back fill check);
}
