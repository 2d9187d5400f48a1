//! A hardware array: only a request's own data cross the host bus.

use super::World;
use crate::volume::Piece;
use machine::{Nanos, Op};

impl World {
    /// `None` without an array.
    pub(super) fn crosses(&mut self, number: u32, write: bool) -> Option<(Nanos, Nanos)> {
        let (now, max) = (self.now(), self.fs.command_bytes);
        let World { array, pci, transfers, .. } = self;
        let (array, transfer) = (array.as_mut()?, &mut transfers[number]);
        if transfer.crossed.is_some() || transfer.owner == super::Owner::Rebuild {
            return transfer.crossed;
        }
        let began = array.free_at.max(now);
        let mut at = began;
        let mut left = transfer.bytes;
        while left > 0 {
            let bytes = left.min(max);
            at = array.bus.command(at, bytes, write, pci);
            left -= bytes;
        }
        array.free_at = at;
        transfer.crossed = Some((began, at));
        transfer.crossed
    }

    /// The array forwards data as they arrive, parity only after all have arrived.
    pub(super) fn arrived(&self, number: u32, before: u64, piece: &Piece) -> Nanos {
        let transfer = &self.transfers[number];
        let Some((began, across)) =
            transfer.crossed.filter(|_| transfer.op == Op::Write && piece.op == Op::Write)
        else {
            return 0;
        };
        let end = before + piece.bytes;
        if end > transfer.bytes {
            across
        } else {
            began + (across - began) * end / transfer.bytes.max(1)
        }
    }
}
