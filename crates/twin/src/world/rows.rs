//! Parity updates of a row exclude each other from the first read to the last write.

use super::{Owner, Transfer, World};
use crate::volume::Plan;
use machine::Op;
use std::ops::Range;

impl World {
    /// If `false`, the transfer is launched when it gets its rows.
    pub(super) fn has_rows(&mut self, number: u32) -> bool {
        let transfer = &self.transfers[number];
        if transfer.rows.is_some() {
            return true;
        }
        let file = self.files.of(transfer.offset);
        let rows = if transfer.owner == Owner::Rebuild {
            let row = transfer.offset / file.layout.chunk;
            Some(row..row + 1)
        } else {
            file.exclusive_rows(
                transfer.op,
                transfer.offset,
                transfer.bytes,
                transfer.owner.is_metadata(),
            )
        };
        let Some(rows) = rows else { return true };
        if !self.rows.take(&rows) {
            self.rows.waiting.push_back((number, rows));
            return false;
        }
        self.transfers[number].rows = Some(rows);
        true
    }

    pub(super) fn give_rows(&mut self, rows: &Range<u64>) {
        for (number, rows) in self.rows.give(rows) {
            self.transfers[number].rows = Some(rows);
            if self.array.is_some() {
                while self.joins_next(number) {}
            }
            self.launch(number);
        }
    }

    /// Adds the next write that waits for a transfer's rows and continues where it ends, if both
    /// together fill a chunk: an array has the data of all commands it received, and so updates
    /// the parity once.
    fn joins_next(&mut self, number: u32) -> bool {
        let Transfer { op, offset, bytes, .. } = self.transfers[number];
        let Some(held) = self.transfers[number].rows.clone() else { return false };
        let (transfers, file) = (&self.transfers, self.files.of(offset));
        let follows = |&(other, ref rows): &(u32, Range<u64>)| {
            let other = &transfers[other];
            op == Op::Write
                && other.op == Op::Write
                && other.offset == offset + bytes
                && rows.start < held.end
                && file.layout.fill_a_chunk(offset - file.start, bytes + other.bytes)
        };
        let Some(index) = self.rows.waiting.iter().position(follows) else { return false };
        let Some(rows) = self.rows.join(&held, index) else { return false };
        let (other, _) = self.rows.waiting.remove(index).expect("it was found there");
        let next = &self.transfers[other];
        let part = (next.owner, next.offset, next.bytes);
        self.transfers.release(other);
        let transfer = &mut self.transfers[number];
        if transfer.joined.is_empty() {
            transfer.joined.push((transfer.owner, offset, bytes));
        }
        transfer.joined.push(part);
        transfer.bytes += part.2;
        transfer.rows = Some(rows);
        true
    }

    pub fn rebuild_next(&mut self) {
        let layout = self.files[super::files::VOLUME].layout;
        let Some((_, restored)) = layout.failed.filter(|_| self.rebuilds) else { return };
        let mut plan = Plan::default();
        layout.rebuild(&mut plan);
        if let Some(piece) = plan.second.first() {
            // Addressed by its offset on the replacement.
            self.transfer(self.now(), Owner::Rebuild, Op::Write, restored, piece.bytes, false);
        }
    }

    pub(super) fn rebuilt(&mut self, bytes: u64) {
        if let Some((_, restored)) = self.files[super::files::VOLUME].layout.failed {
            self.files.restored(restored + bytes);
        }
        self.rebuild_next();
    }
}
