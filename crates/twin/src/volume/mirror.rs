//! A write goes to every member; reads of neighbouring chunks alternate.

use super::{Layout, Piece, Plan};
use machine::Op;

pub(super) fn plan(layout: &Layout, op: Op, offset: u64, bytes: u64, plan: &mut Plan) {
    let members = u64::from(layout.members);
    if op == Op::Write {
        let whole = (0..layout.members).filter(|&member| !layout.lost(member, offset, bytes));
        plan.first.extend(whole.map(|member| Piece { member, op, offset, bytes }));
        return;
    }
    layout.each_chunk(offset, bytes, |chunk, inside, bytes| {
        let offset = chunk * layout.chunk + inside;
        let mut member = (chunk % members) as u32;
        if layout.lost(member, offset, bytes) {
            member = (member + 1) % layout.members;
        }
        plan.first.push(Piece { member, op, offset, bytes });
    });
}
