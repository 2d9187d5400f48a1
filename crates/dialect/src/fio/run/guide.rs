//! Replaces a stream's own sequence.

use super::read_back::Written;
use crate::fio::options::trace::{Action, Entry, Trace};
use machine::{Nanos, Op, Stability};
use std::sync::Arc;

pub(crate) enum Guide {
    Trace(TracePlayer),
    Writes(Writes),
}

impl Guide {
    pub(crate) fn begin(&mut self, now: Nanos) {
        if let Guide::Trace(player) = self {
            player.began = now;
        }
    }

    /// The step stays until [`Guide::done`].
    pub(crate) fn next_step(&mut self, now: Nanos) -> TraceStep {
        match self {
            Guide::Trace(player) => player.next_step(now),
            Guide::Writes(writes) => writes.next_step(),
        }
    }

    pub(crate) fn done(&mut self) {
        match self {
            Guide::Trace(player) => player.next += 1,
            Guide::Writes(writes) => writes.ahead = None,
        }
    }
}

/// Reads what a `verify_only` job would write.
pub(crate) struct Writes {
    written: Written,
    ahead: Option<Entry>,
}

impl Writes {
    pub(crate) fn new(written: Written) -> Writes {
        Writes { written, ahead: None }
    }

    fn next_step(&mut self) -> TraceStep {
        if self.ahead.is_none() {
            self.ahead = self.written.next().map(|piece| Entry {
                at_ns: 0,
                action: Action::Request(Op::Read),
                file: piece.target,
                offset: piece.offset,
                len: piece.len,
            });
        }
        self.ahead.map_or(TraceStep::Over, TraceStep::Request)
    }
}

#[derive(Debug)]
pub(crate) struct TracePlayer {
    trace: Arc<Trace>,
    next: usize,
    passes: u64,
    began: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceStep {
    Request(Entry),
    Sync(Stability, u32),
    Later(Nanos),
    Over,
}

impl TracePlayer {
    pub(crate) fn new(trace: Arc<Trace>, passes: u64) -> TracePlayer {
        TracePlayer { trace, next: 0, passes: passes.saturating_sub(1), began: 0 }
    }

    fn next_step(&mut self, now: Nanos) -> TraceStep {
        if self.next == self.trace.entries.len() && self.passes > 0 && self.next > 0 {
            (self.next, self.passes, self.began) = (0, self.passes - 1, now);
        }
        let Some(entry) = self.trace.entries.get(self.next) else { return TraceStep::Over };
        let due = self.began.saturating_add(entry.at_ns);
        if self.trace.timed && due > now {
            return TraceStep::Later(due);
        }
        match entry.action {
            Action::Sync(what) => TraceStep::Sync(what, entry.file),
            _ => TraceStep::Request(*entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_keeps_times_and_repeats() {
        let text = "fio version 3 iolog\n0 /a add\n0 /a read 0 512\n10 /a sync 0 0\n";
        let mut player =
            Guide::Trace(TracePlayer::new(Arc::new(Trace::read(text.as_bytes()).unwrap()), 2));
        player.begin(1000);
        for began in [1000, 12_000] {
            assert!(matches!(player.next_step(began), TraceStep::Request(Entry { offset: 0, .. })));
            player.done();
            assert_eq!(player.next_step(began + 9999), TraceStep::Later(began + 10_000));
            assert_eq!(player.next_step(began + 10_000), TraceStep::Sync(Stability::File, 0));
            player.done();
            player.next_step(12_000);
        }
        assert_eq!(player.next_step(30_000), TraceStep::Over);
    }
}
