//! A write goes to both disks of its pair; reads alternate.

use super::{Layout, Piece, Plan};
use machine::Op;

pub(super) fn partner(member: u32) -> u32 {
    member ^ 1
}

pub(super) fn plan(layout: &Layout, op: Op, offset: u64, bytes: u64, plan: &mut Plan) {
    let pairs = layout.data_members();
    layout.each_chunk(offset, bytes, |chunk, inside, bytes| {
        let (row, first) = (chunk / pairs, (chunk % pairs) as u32 * 2);
        let offset = row * layout.chunk + inside;
        let whole = |member: &u32| !layout.lost(*member, offset, bytes);
        let both = [first, first + 1];
        let piece = |member| Piece { member, op, offset, bytes };
        if op == Op::Write {
            plan.first.extend(both.into_iter().filter(whole).map(piece));
        } else {
            let turn = both[(row % 2) as usize];
            plan.first.push(piece(if whole(&turn) { turn } else { partner(turn) }));
        }
    });
}
