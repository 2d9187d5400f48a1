use super::{Layout, Piece, Plan};
use machine::Op;

pub(super) fn plan(layout: &Layout, op: Op, offset: u64, bytes: u64, plan: &mut Plan) {
    let members = u64::from(layout.members);
    layout.each_chunk(offset, bytes, |chunk, inside, bytes| {
        let (row, member) = (chunk / members, (chunk % members) as u32);
        plan.first.push(Piece { member, op, offset: row * layout.chunk + inside, bytes });
    });
}
