use super::{Layout, Piece, Plan};
use machine::Op;

/// Parity rotates backwards and the data follow it, so a sequential reader uses every member in
/// turn.
fn parity_member(layout: &Layout, row: u64) -> u32 {
    let members = u64::from(layout.members);
    (members - 1 - row % members) as u32
}

fn each_piece(layout: &Layout, offset: u64, bytes: u64, mut each: impl FnMut(Piece)) {
    let data = layout.data_members();
    layout.each_chunk(offset, bytes, |chunk, inside, bytes| {
        let (row, column) = (chunk / data, (chunk % data) as u32);
        let member = (parity_member(layout, row) + 1 + column) % layout.members;
        each(Piece { member, op: Op::Read, offset: row * layout.chunk + inside, bytes });
    });
}

pub(super) fn plan(layout: &Layout, op: Op, offset: u64, bytes: u64, plan: &mut Plan) {
    if op == Op::Read {
        return each_piece(layout, offset, bytes, |piece| read(layout, piece, plan));
    }
    let row_bytes = layout.row_bytes();
    let (mut at, end) = (offset, offset + bytes);
    while at < end {
        let row_end = ((at / row_bytes + 1) * row_bytes).min(end);
        write_row(layout, at, row_end, plan);
        at = row_end;
    }
    if plan.first.is_empty() {
        std::mem::swap(&mut plan.first, &mut plan.second);
    }
}

/// A failed member's data are the XOR of the rest of the row.
fn read(layout: &Layout, piece: Piece, plan: &mut Plan) {
    if !layout.lost(piece.member, piece.offset, piece.bytes) {
        plan.first.push(piece);
        return;
    }
    let others = (0..layout.members).filter(|&member| member != piece.member);
    plan.first.extend(others.map(|member| Piece { member, ..piece }));
    plan.parity_bytes += piece.bytes * u64::from(layout.members - 1);
}

/// First reads the old data and parity, or the rest of the row, whichever is less.
fn write_row(layout: &Layout, at: u64, end: u64, plan: &mut Plan) {
    let row = at / layout.row_bytes();
    let parity = parity_member(layout, row);
    let writes = plan.second.len();
    let (mut low, mut high) = (u64::MAX, 0);
    each_piece(layout, at, end - at, |piece| {
        plan.second.push(Piece { op: Op::Write, ..piece });
        (low, high) = (low.min(piece.offset), high.max(piece.offset + piece.bytes));
    });
    let parity_piece = Piece { member: parity, op: Op::Write, offset: low, bytes: high - low };
    let lost = |piece: &Piece| layout.lost(piece.member, piece.offset, piece.bytes);
    if lost(&parity_piece) {
        // The parity member is lost.
        return;
    }
    let written: Vec<Piece> = plan.second[writes..].to_vec();
    let covered = |member: u32| written.iter().find(|piece| piece.member == member).copied();
    let data = (0..layout.members).filter(|&member| member != parity);
    // The parts of the parity's range that this write leaves unchanged, per member.
    let rest: Vec<Piece> =
        data.flat_map(|member| beside(member, covered(member), low, high)).flatten().collect();
    let bytes_of = |pieces: &[Piece]| pieces.iter().map(|piece| piece.bytes).sum::<u64>();
    let (old, left) = (bytes_of(&written) + parity_piece.bytes, bytes_of(&rest));
    let (writes_lost, leaves_lost) = (written.iter().any(lost), rest.iter().any(lost));
    if writes_lost && leaves_lost {
        // The rest of the lost data must first be reconstructed from the whole row.
        let all = (0..layout.members).map(|member| Piece { member, op: Op::Read, ..parity_piece });
        plan.first.extend(all.filter(|piece| !lost(piece)));
        plan.parity_bytes += parity_piece.bytes * u64::from(layout.members);
    } else if writes_lost || (!leaves_lost && left < old) {
        plan.first.extend(&rest);
        plan.parity_bytes += bytes_of(&written) + left;
    } else {
        plan.first.extend(written.iter().map(|piece| Piece { op: Op::Read, ..*piece }));
        plan.first.push(Piece { op: Op::Read, ..parity_piece });
        // XOR the old data out of the old parity, and the new data in.
        plan.parity_bytes += 2 * bytes_of(&written) + parity_piece.bytes;
    }
    plan.second.retain(|piece| !lost(piece));
    plan.second.push(parity_piece);
}

fn beside(member: u32, written: Option<Piece>, low: u64, high: u64) -> [Option<Piece>; 2] {
    let piece = |from: u64, to: u64| {
        (to > from).then(|| Piece { member, op: Op::Read, offset: from, bytes: to - from })
    };
    match written {
        None => [piece(low, high), None],
        Some(w) => [piece(low, w.offset), piece(w.offset + w.bytes, high)],
    }
}
