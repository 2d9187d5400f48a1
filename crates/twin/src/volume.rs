//! How a target's bytes lie on its members: stripes, and parity that rotates.

use machine::Op;

/// Who computes parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parity {
    /// The computer's processor.
    Host,
    /// The array's own hardware.
    Array,
}

/// How members form one volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Members.
    pub members: u32,
    /// Bytes of a chunk.
    pub chunk: u64,
    /// RAID 5, and who computes its parity; else RAID 0.
    pub parity: Option<Parity>,
    /// Bytes of each member.
    pub member_bytes: u64,
}

/// A part of a transfer on one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Which member.
    pub member: u32,
    /// Read or write.
    pub op: Op,
    /// First byte on the member.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What a transfer does to the members: the first pieces together, then, when all are done, the second.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Done together.
    pub first: Vec<Piece>,
    /// Done together after them.
    pub second: Vec<Piece>,
    /// Bytes to be combined into parity before the writes.
    pub parity_bytes: u64,
}

impl Layout {
    /// Members' worth of data in a row.
    pub fn data_members(&self) -> u64 {
        u64::from(self.members) - u64::from(self.parity.is_some())
    }

    /// Bytes of the volume.
    pub fn bytes(&self) -> u64 {
        if self.members == 1 {
            return self.member_bytes;
        }
        self.member_bytes / self.chunk * self.chunk * self.data_members()
    }

    /// Plans a transfer into `plan`, whose vectors are used again.
    pub fn plan(&self, op: Op, offset: u64, bytes: u64, plan: &mut Plan) {
        plan.first.clear();
        plan.second.clear();
        plan.parity_bytes = 0;
        if self.members == 1 {
            plan.first.push(Piece { member: 0, op, offset, bytes });
        } else if self.parity.is_some() && op == Op::Write {
            self.plan_parity(offset, bytes, plan);
        } else {
            self.each_chunk(offset, bytes, |piece| plan.first.push(Piece { op, ..piece }));
        }
    }

    /// Calls for the part of every chunk, as a read.
    fn each_chunk(&self, offset: u64, bytes: u64, mut each: impl FnMut(Piece)) {
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let chunk = at / self.chunk;
            let inside = at % self.chunk;
            let bytes = (self.chunk - inside).min(end - at);
            let row = chunk / self.data_members();
            let column = chunk % self.data_members();
            let member = if self.parity.is_some() {
                (self.parity_member(row) + 1 + column) % u64::from(self.members)
            } else {
                column
            };
            each(Piece { member: member as u32, op: Op::Read, offset: row * self.chunk + inside, bytes });
            at += bytes;
        }
    }

    /// Parity goes round backwards and the data follow it, so that a sequential reader meets every member in turn.
    fn parity_member(&self, row: u64) -> u64 {
        let n = u64::from(self.members);
        n - 1 - row % n
    }

    /// Row by row: a whole row is written with its parity; of a part, old data and old parity are read first.
    fn plan_parity(&self, offset: u64, bytes: u64, plan: &mut Plan) {
        let row_bytes = self.chunk * self.data_members();
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let row = at / row_bytes;
            let row_end = ((row + 1) * row_bytes).min(end);
            let parity = self.parity_member(row) as u32;
            if row_end - at == row_bytes {
                self.each_chunk(at, row_bytes, |piece| plan.first.push(Piece { op: Op::Write, ..piece }));
                plan.first.push(Piece { member: parity, op: Op::Write, offset: row * self.chunk, bytes: self.chunk });
                plan.parity_bytes += row_bytes;
            } else {
                let (mut low, mut high) = (u64::MAX, 0);
                self.each_chunk(at, row_end - at, |piece| {
                    plan.first.push(piece);
                    plan.second.push(Piece { op: Op::Write, ..piece });
                    low = low.min(piece.offset);
                    high = high.max(piece.offset + piece.bytes);
                });
                let old = Piece { member: parity, op: Op::Read, offset: low, bytes: high - low };
                plan.first.push(old);
                plan.second.push(Piece { op: Op::Write, ..old });
                // Old data out of the parity, new data into it.
                plan.parity_bytes += 2 * (row_end - at);
            }
            at = row_end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn layout(members: u32, parity: Option<Parity>) -> Layout {
        Layout { members, chunk: 65536, parity, member_bytes: 64 << 20 }
    }

    #[test]
    fn twelve_kilobytes_off_the_chunk_every_request_splits() {
        let mut plan = Plan::default();
        layout(4, None).plan(Op::Read, 65536 + 12288, 65536, &mut plan);
        let parts: Vec<(u32, u64)> = plan.first.iter().map(|p| (p.member, p.bytes)).collect();
        assert_eq!(parts, [(1, 52 << 10), (2, 12 << 10)]);
    }

    #[test]
    fn a_whole_row_is_written_without_reading() {
        let mut plan = Plan::default();
        layout(4, Some(Parity::Host)).plan(Op::Write, 0, 3 * 65536, &mut plan);
        assert!(plan.second.is_empty() && plan.first.iter().all(|p| p.op == Op::Write));
        assert_eq!(plan.first.len(), 4);
        layout(4, Some(Parity::Host)).plan(Op::Write, 0, 65536, &mut plan);
        assert_eq!((plan.first.len(), plan.second.len()), (2, 2));
    }

    proptest! {
        #[test]
        fn no_two_blocks_share_a_place(members in 2u32..7, parity: bool, start in 0u64..500) {
            let layout = layout(members, parity.then_some(Parity::Host));
            let mut plan = Plan::default();
            let mut seen = BTreeSet::new();
            for block in start..start + 300 {
                layout.plan(Op::Read, block * 4096, 4096, &mut plan);
                prop_assert_eq!(plan.first.len(), 1);
                let piece = plan.first[0];
                prop_assert!(piece.member < members && piece.offset + piece.bytes <= layout.member_bytes);
                prop_assert!(seen.insert((piece.member, piece.offset)));
            }
        }

        #[test]
        fn pieces_add_up(offset in 0u64..1 << 22, bytes in 1u64..1 << 21, members in 1u32..6) {
            let mut plan = Plan::default();
            layout(members, None).plan(Op::Write, offset, bytes, &mut plan);
            prop_assert_eq!(plan.first.iter().map(|p| p.bytes).sum::<u64>(), bytes);
        }
    }
}
