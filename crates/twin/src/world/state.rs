//! State of the running computer.

use crate::bus::{Bus, BusKind, Pci};
use machine::Nanos;
use std::collections::VecDeque;
use std::ops::Range;

/// The only device on its bus.
pub(crate) struct Controller {
    pub bus: Bus,
    pub(super) free_at: Nanos,
    /// Never a limit.
    pub memory: Pci,
}

impl Controller {
    pub fn new(kind: &BusKind) -> Self {
        Controller { bus: Bus::new(kind), free_at: 0, memory: Pci::new(None) }
    }

    pub fn rest(&mut self) {
        self.bus.rest();
        self.memory.rest();
        self.free_at = 0;
    }
}

#[derive(Default)]
pub(super) struct Rows {
    pub(super) held: Vec<Range<u64>>,
    pub(super) waiting: VecDeque<(u32, Range<u64>)>,
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Rows {
    pub(super) fn take(&mut self, rows: &Range<u64>) -> bool {
        let free = !self
            .held
            .iter()
            .chain(self.waiting.iter().map(|(_, asked)| asked))
            .any(|other| overlap(other, rows));
        if free {
            self.held.push(rows.clone());
        }
        free
    }

    /// Extends held rows over those of a waiting transfer; `None` if another holds some of them.
    pub(super) fn join(&mut self, held: &Range<u64>, waiting: usize) -> Option<Range<u64>> {
        let all = held.start..held.end.max(self.waiting[waiting].1.end);
        let others = self.held.iter().filter(|other| *other != held);
        if others.clone().any(|other| overlap(other, &all)) {
            return None;
        }
        *self.held.iter_mut().find(|other| *other == held)? = all.clone();
        Some(all)
    }

    pub(super) fn give(&mut self, rows: &Range<u64>) -> Vec<(u32, Range<u64>)> {
        if let Some(index) = self.held.iter().position(|held| held == rows) {
            self.held.swap_remove(index);
        }
        let mut granted = Vec::new();
        for (number, rows) in std::mem::take(&mut self.waiting) {
            if self.take(&rows) {
                granted.push((number, rows));
            } else {
                self.waiting.push_back((number, rows));
            }
        }
        granted
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Reader {
    pub(super) end: u64,
    pub(super) in_order: u32,
    pub(super) window: u32,
    pub(super) ahead: VecDeque<u64>,
    pub(super) reading: u32,
}

#[derive(Default)]
pub(crate) struct Writer {
    pub(super) outstanding: u32,
    pub(super) throttled: VecDeque<u32>,
    pub(super) quota: u64,
    pub(super) scan_scheduled: bool,
    pub(super) active: bool,
    /// The writer of the newest write gave a sequential hint.
    pub(super) hinted: bool,
    pub(super) readers: Vec<Reader>,
}
