//! A target's bytes on its members.

mod mirror;
mod raid10;
mod raid5;
mod stripe;

use machine::Op;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// The host's processor sends a command for each piece.
    #[default]
    Host,
    /// The adapter sends a request's pieces over its disk buses.
    Adapter,
    /// An array with buses of its own and one bus to the host.
    Array,
}

impl Maker {
    pub fn name(self) -> &'static str {
        match self {
            Maker::Host => "host",
            Maker::Adapter => "adapter",
            Maker::Array => "array",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// RAID 0.
    #[default]
    Stripe,
    /// RAID 1.
    Mirror,
    Raid10,
    Raid5,
}

impl Kind {
    pub fn min_members(self) -> u32 {
        match self {
            Kind::Stripe => 1,
            Kind::Mirror => 2,
            Kind::Raid5 => 3,
            Kind::Raid10 => 4,
        }
    }

    pub fn takes(self, members: u32) -> bool {
        members >= self.min_members() && (self != Kind::Raid10 || members.is_multiple_of(2))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub kind: Kind,
    pub members: u32,
    pub chunk: u64,
    /// Bytes from the start of a row to a file's first byte: file systems ignore chunks.
    pub start: u64,
    /// The member, and the bytes at the start of its replacement that are rebuilt.
    pub failed: Option<(u32, u64)>,
    pub member_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub member: u32,
    pub op: Op,
    pub offset: u64,
    pub bytes: u64,
}

/// The first in parallel, then the second.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Plan {
    pub first: Vec<Piece>,
    pub second: Vec<Piece>,
    /// Computed before the writes, or after the reads that replace a failed member's data.
    pub parity_bytes: u64,
}

impl Layout {
    pub fn data_members(&self) -> u64 {
        match self.kind {
            Kind::Stripe => u64::from(self.members),
            Kind::Mirror => 1,
            Kind::Raid10 => u64::from(self.members) / 2,
            Kind::Raid5 => u64::from(self.members) - 1,
        }
    }

    fn row_bytes(&self) -> u64 {
        self.chunk * self.data_members()
    }

    pub fn bytes(&self) -> u64 {
        let whole = if self.members == 1 {
            self.member_bytes
        } else {
            self.member_bytes / self.chunk * self.row_bytes()
        };
        whole.saturating_sub(self.start)
    }

    pub fn plan(&self, op: Op, offset: u64, bytes: u64, plan: &mut Plan) {
        plan.first.clear();
        plan.second.clear();
        plan.parity_bytes = 0;
        let offset = offset + self.start;
        match self.kind {
            _ if self.members == 1 => plan.first.push(Piece { member: 0, op, offset, bytes }),
            Kind::Stripe => stripe::plan(self, op, offset, bytes, plan),
            Kind::Mirror => mirror::plan(self, op, offset, bytes, plan),
            Kind::Raid10 => raid10::plan(self, op, offset, bytes, plan),
            Kind::Raid5 => raid5::plan(self, op, offset, bytes, plan),
        }
    }

    /// The rows to lock: concurrent updates of one parity block would corrupt it.
    pub fn exclusive_rows(&self, op: Op, offset: u64, bytes: u64) -> Option<Range<u64>> {
        if op == Op::Read || self.members == 1 || !matches!(self.kind, Kind::Raid5) {
            return None;
        }
        let begin = offset + self.start;
        Some(begin / self.row_bytes()..(begin + bytes).div_ceil(self.row_bytes()))
    }

    /// The bytes include a whole chunk.
    pub fn fill_a_chunk(&self, offset: u64, bytes: u64) -> bool {
        let begin = offset + self.start;
        begin.next_multiple_of(self.chunk) + self.chunk <= begin + bytes
    }

    fn each_chunk(&self, offset: u64, bytes: u64, mut each: impl FnMut(u64, u64, u64)) {
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let inside = at % self.chunk;
            let bytes = (self.chunk - inside).min(end - at);
            each(at / self.chunk, inside, bytes);
            at += bytes;
        }
    }

    fn lost(&self, member: u32, offset: u64, bytes: u64) -> bool {
        self.failed.is_some_and(|(failed, restored)| failed == member && offset + bytes > restored)
    }

    pub fn rebuild(&self, plan: &mut Plan) {
        plan.first.clear();
        plan.second.clear();
        plan.parity_bytes = 0;
        let Some((failed, restored)) = self.failed else { return };
        let bytes = self.chunk.min(self.member_bytes.saturating_sub(restored));
        if bytes == 0 || self.kind == Kind::Stripe {
            return;
        }
        let piece = |member, op| Piece { member, op, offset: restored, bytes };
        let mut whole = (0..self.members)
            .filter(|&member| member != failed)
            .map(|member| piece(member, Op::Read));
        match self.kind {
            Kind::Mirror => plan.first.extend(whole.next()),
            Kind::Raid10 => plan.first.push(piece(raid10::partner(failed), Op::Read)),
            Kind::Stripe | Kind::Raid5 => {
                plan.first.extend(whole);
                plan.parity_bytes = bytes * u64::from(self.members - 1);
            }
        }
        plan.second.push(piece(failed, Op::Write));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn layout(members: u32, kind: Kind) -> Layout {
        Layout { kind, members, chunk: 65536, start: 0, failed: None, member_bytes: 64 << 20 }
    }

    fn planned(layout: &Layout, op: Op, offset: u64, bytes: u64) -> Plan {
        let mut plan = Plan::default();
        layout.plan(op, offset, bytes, &mut plan);
        plan
    }

    const RAID5: Kind = Kind::Raid5;

    #[test]
    fn twelve_kilobytes_off_the_chunk_every_request_splits() {
        let off = Layout { start: 12288, ..layout(4, Kind::Stripe) };
        for layout in [off, layout(4, Kind::Stripe)] {
            let plan = planned(&layout, Op::Read, 65536 + 12288 - layout.start, 65536);
            let parts: Vec<(u32, u64)> = plan.first.iter().map(|p| (p.member, p.bytes)).collect();
            assert_eq!(parts, [(1, 52 << 10), (2, 12 << 10)]);
        }
    }

    #[test]
    fn a_whole_row_is_written_without_reading() {
        let layout = layout(4, RAID5);
        let plan = planned(&layout, Op::Write, 0, 3 * 65536);
        assert!(plan.second.is_empty() && plan.first.iter().all(|p| p.op == Op::Write));
        assert_eq!((plan.first.len(), plan.parity_bytes), (4, 3 * 65536));
        let plan = planned(&layout, Op::Write, 0, 65536);
        assert_eq!((plan.first.len(), plan.second.len(), plan.parity_bytes), (2, 2, 3 * 65536));
        // When most of a row is written, the rest is read instead of the old data.
        let plan = planned(&layout, Op::Write, 0, 3 * 65536 - 4096);
        assert_eq!(plan.first, [Piece { member: 2, op: Op::Read, offset: 61440, bytes: 4096 }]);
        assert_eq!(plan.second.len(), 4);
    }

    #[test]
    fn a_degraded_read_takes_the_row_from_the_others_and_a_restored_one_does_not() {
        let failed = |restored| Layout { failed: Some((0, restored)), ..layout(4, RAID5) };
        let plan = planned(&failed(0), Op::Read, 0, 4096);
        let from: Vec<u32> = plan.first.iter().map(|p| p.member).collect();
        assert_eq!((from, plan.parity_bytes), (vec![1, 2, 3], 3 * 4096));
        assert_eq!(planned(&failed(65536), Op::Read, 0, 4096).first.len(), 1);
        // A write to the lost member changes only the parity.
        let plan = planned(&failed(0), Op::Write, 0, 4096);
        assert!(plan.first.iter().chain(&plan.second).all(|p| p.member != 0));
        assert_eq!(plan.second, [Piece { member: 3, op: Op::Write, offset: 0, bytes: 4096 }]);
        let mut plan = Plan::default();
        failed(65536).rebuild(&mut plan);
        assert_eq!((plan.first.len(), plan.second[0].member, plan.second[0].offset), (3, 0, 65536));
    }

    #[test]
    fn a_mirror_writes_to_all_and_reads_in_turn() {
        let mirror = layout(2, Kind::Mirror);
        assert_eq!(planned(&mirror, Op::Write, 4096, 4096).first.len(), 2);
        let reader = |layout: &Layout, chunk: u64| {
            planned(layout, Op::Read, chunk * 65536, 65536).first[0].member
        };
        assert_eq!((reader(&mirror, 0), reader(&mirror, 1)), (0, 1));
        let broken = Layout { failed: Some((1, 0)), ..mirror };
        assert_eq!((reader(&broken, 0), reader(&broken, 1)), (0, 0));
        assert_eq!(planned(&broken, Op::Write, 4096, 4096).first.len(), 1);
    }

    #[test]
    fn a_raid_10_is_a_stripe_over_pairs() {
        let raid10 = layout(4, Kind::Raid10);
        assert_eq!((raid10.data_members(), raid10.bytes()), (2, 2 * raid10.member_bytes));
        let on = |layout: &Layout, op, chunk: u64| -> Vec<(u32, u64)> {
            let plan = planned(layout, op, chunk * 65536, 65536);
            plan.first.iter().map(|piece| (piece.member, piece.offset / 65536)).collect()
        };
        assert_eq!(
            (on(&raid10, Op::Write, 0), on(&raid10, Op::Write, 3)),
            (vec![(0, 0), (1, 0)], vec![(2, 1), (3, 1)])
        );
        // The disks of a pair alternate on reads.
        let readers: Vec<_> = (0..4).flat_map(|chunk| on(&raid10, Op::Read, chunk)).collect();
        assert_eq!(readers, [(0, 0), (2, 0), (1, 1), (3, 1)]);
        let broken = Layout { failed: Some((3, 0)), ..raid10 };
        assert_eq!(
            (on(&broken, Op::Read, 3), on(&broken, Op::Write, 1)),
            (vec![(2, 1)], vec![(2, 0)])
        );
        let mut plan = Plan::default();
        broken.rebuild(&mut plan);
        assert_eq!((plan.first[0].member, plan.second[0].member, plan.first.len()), (2, 3, 1));
        assert!(Kind::Raid10.takes(6) && !Kind::Raid10.takes(5) && !Kind::Raid10.takes(2));
    }

    #[test]
    fn only_writes_with_parity_exclude_each_other() {
        let row = 3 * 65536;
        assert_eq!(layout(4, RAID5).exclusive_rows(Op::Write, row - 1, 2), Some(0..2));
        assert_eq!(layout(4, RAID5).exclusive_rows(Op::Read, 0, 4096), None);
        assert_eq!(layout(4, Kind::Stripe).exclusive_rows(Op::Write, 0, 4096), None);
    }

    fn kinds() -> impl Strategy<Value = Kind> {
        prop_oneof![Just(Kind::Stripe), Just(RAID5)]
    }

    proptest! {
        #[test]
        fn no_two_blocks_share_a_place(members in 3u32..7, kind in kinds(), start in 0u64..500) {
            let layout = layout(members, kind);
            let mut seen = BTreeSet::new();
            for block in start..start + 300 {
                let plan = planned(&layout, Op::Read, block * 4096, 4096);
                prop_assert_eq!(plan.first.len(), 1);
                let piece = plan.first[0];
                prop_assert!(piece.member < members && piece.offset + piece.bytes <= layout.member_bytes);
                prop_assert!(seen.insert((piece.member, piece.offset)));
            }
        }

        #[test]
        fn pieces_add_up(offset in 0u64..1 << 22, bytes in 1u64..1 << 21, members in 1u32..6, start in 0u64..1 << 17) {
            let layout = Layout { start, ..layout(members, Kind::Stripe) };
            let plan = planned(&layout, Op::Write, offset, bytes);
            prop_assert_eq!(plan.first.iter().map(|p| p.bytes).sum::<u64>(), bytes);
        }

        #[test]
        fn what_parity_writes_are_the_data_and_their_parity(
            offset in 0u64..1 << 22, bytes in 1u64..1 << 21, members in 3u32..6, failed in proptest::option::of(0u32..3),
        ) {
            let layout = Layout { failed: failed.map(|member| (member, 0)), ..layout(members, RAID5) };
            let plan = planned(&layout, Op::Write, offset, bytes);
            let pieces = || plan.first.iter().chain(&plan.second);
            prop_assert!(pieces().all(|p| Some(p.member) != failed), "{:?}", plan);
            let written: u64 = pieces().filter(|p| p.op == Op::Write).map(|p| p.bytes).sum();
            // Per row: the data plus at most one chunk of parity, minus the failed member's share.
            let rows = (offset + bytes).div_ceil(layout.row_bytes()) - offset / layout.row_bytes();
            prop_assert!(written <= bytes + rows * layout.chunk);
            prop_assert!(failed.is_some() || written > bytes);
        }
    }
}
