//! Data is correct for any requests, order of completions and failed member.

use super::*;
use crate::arena::{Arena, Extra};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// Pieces take effect in random order, to expose invalid overlaps.
struct InMemory {
    members: Rc<RefCell<Vec<Vec<u8>>>>,
    pieces: Vec<(u32, Request, *mut u8)>,
    seed: u64,
    fails_after: Option<u32>,
}

impl Session for InMemory {
    fn issue(&mut self, file: u32, request: &Request, at: *mut u8) {
        self.pieces.push((file, *request, at));
    }

    fn submit(&mut self, _wait: Wait) -> io::Result<()> {
        Ok(())
    }

    fn hand_over(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn discard(&mut self, _request: &Request) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reap(&mut self, mut take: impl FnMut(Completion)) {
        // A third of the pieces, at least one; the rest later.
        for _ in 0..self.pieces.len().div_ceil(3) {
            self.seed =
                self.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let index = (self.seed >> 33) as usize % self.pieces.len();
            let (member, request, at) = self.pieces.swap_remove(index);
            let range = request.offset as usize..request.offset as usize + request.len as usize;
            let member = &mut self.members.borrow_mut()[member as usize][range];
            let fails = self.fails_after == Some(0);
            self.fails_after = self.fails_after.map(|left| left.saturating_sub(1));
            if fails {
                take(Completion { slot: request.slot, result: -5 });
                continue;
            }
            // SAFETY: the session under test passed `len` bytes.
            let data = unsafe { std::slice::from_raw_parts_mut(at, request.len as usize) };
            match request.op {
                Op::Read => data.copy_from_slice(member),
                Op::Write => member.copy_from_slice(data),
            }
            take(Completion { slot: request.slot, result: request.len as i32 });
        }
    }

    fn queued(&mut self) -> u32 {
        0
    }

    fn sync(&mut self, _what: Stability, _target: Option<u32>) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Frozen;

impl Time for Frozen {
    fn now(self) -> Nanos {
        0
    }

    fn pass(self, _for_ns: Nanos) {}
}

const ROWS: u64 = 6;
const DEPTH: u32 = 4;

struct Set {
    layout: Layout,
    members: Rc<RefCell<Vec<Vec<u8>>>>,
    expected: Vec<u8>,
    busy: BusyRows,
    seed: u64,
}

/// The offset and length of a request in bytes; `Some` writes this byte's pattern.
type TestRequest = (u64, u32, Option<u8>);

impl Set {
    fn new(layout: Layout, seed: u64) -> Set {
        let mut expected = vec![0; (layout.row_bytes() * ROWS) as usize];
        machine::fill_random(seed, &mut expected);
        let mut members = vec![vec![0; (layout.chunk * ROWS) as usize]; layout.members as usize];
        for piece in layout.pieces(0, expected.len() as u32) {
            let to = piece.offset as usize..piece.offset as usize + piece.len as usize;
            members[piece.member as usize][to]
                .copy_from_slice(&expected[piece.at as usize..][..piece.len as usize]);
        }
        for row in 0..ROWS {
            let parity = layout.parity_member(row) as usize;
            for at in (row * layout.chunk) as usize..((row + 1) * layout.chunk) as usize {
                members[parity][at] = 0;
                members[parity][at] = members.iter().fold(0, |sum, member| sum ^ member[at]);
            }
        }
        Set {
            layout,
            members: Rc::new(RefCell::new(members)),
            expected,
            busy: BusyRows::default(),
            seed,
        }
    }

    fn run(
        &mut self,
        how: Raid5,
        asked: &[TestRequest],
        fails_after: Option<u32>,
    ) -> Vec<(Vec<u8>, i32)> {
        let max = asked.iter().map(|one| one.1).max().unwrap_or(1);
        let tally = PartCounters::default();
        let stride = self.layout.scratch_bytes(max);
        let mut ended = vec![(Vec::new(), 0); asked.len()];
        for batch in 0..asked.len().div_ceil(2 * DEPTH as usize) {
            let mut arenas: Vec<Arena> = (0..2)
                .map(|_| {
                    Arena::with(DEPTH, max, 0, machine::Memory::Pages, scratch(stride)).unwrap()
                })
                .collect();
            let mut sessions: Vec<_> = (0..2)
                .map(|stream| {
                    let seed = self.seed + stream as u64 + batch as u64;
                    let inner = InMemory {
                        members: self.members.clone(),
                        pieces: Vec::new(),
                        seed,
                        fails_after,
                    };
                    let (layout, busy, tally) = (self.layout, &self.busy, &tally);
                    let scratch = (arenas[stream].scratch(), stride);
                    ParitySession::new(
                        inner,
                        Setup { layout, how, busy, tally, time: Frozen, depth: DEPTH, scratch },
                    )
                })
                .collect();
            let mut left = 0;
            let first = batch * 2 * DEPTH as usize;
            for (index, &(offset, len, write)) in
                asked.iter().enumerate().skip(first).take(2 * DEPTH as usize)
            {
                let (stream, slot) = (index % 2, (index - first) as u32 / 2);
                let at = arenas[stream].write_place(slot);
                let op = if let Some(byte) = write {
                    // SAFETY: the slot has room for the longest request.
                    unsafe { std::slice::from_raw_parts_mut(at, len as usize) }.fill(byte);
                    Op::Write
                } else {
                    Op::Read
                };
                sessions[stream].issue(0, &Request { op, target: 0, offset, len, slot }, at);
                left += 1;
            }
            for turn in 0.. {
                if left == 0 {
                    break;
                }
                assert!(turn < 100_000, "requests wait for ever");
                for (stream, session) in sessions.iter_mut().enumerate() {
                    session.submit(Wait::One).unwrap();
                    session.reap(|completion| {
                        left -= 1;
                        let index = first + 2 * completion.slot as usize + stream;
                        let len = asked[index].1 as usize;
                        // SAFETY: the request is complete.
                        let data = unsafe {
                            std::slice::from_raw_parts(
                                arenas[stream].read_place(completion.slot),
                                len,
                            )
                        };
                        ended[index] = (data.to_vec(), completion.result);
                    });
                }
            }
        }
        self.seed += 1000;
        ended
    }

    fn write(&mut self, how: Raid5, asked: &[TestRequest]) {
        for (ended, &(offset, len, write)) in self.run(how, asked, None).iter().zip(asked) {
            assert_eq!(ended.1, len as i32);
            self.expected[offset as usize..][..len as usize].fill(write.unwrap());
        }
    }

    fn check(&mut self, how: Raid5, len: u32) {
        let all = self.expected.len() as u64;
        let asked: Vec<TestRequest> = (0..all)
            .step_by(len as usize)
            .map(|at| (at, u64::from(len).min(all - at) as u32, None))
            .collect();
        for ((data, result), &(offset, len, _)) in self.run(how, &asked, None).iter().zip(&asked) {
            assert_eq!(*result, len as i32);
            assert!(
                data[..] == self.expected[offset as usize..][..len as usize],
                "{how:?}: {len} bytes at {offset}"
            );
        }
    }
}

fn scratch(scratch: u64) -> Extra {
    Extra { scratch, start: 0 }
}

fn failed(member: u32) -> Raid5 {
    Raid5 { failed: Some(member), rebuild: false }
}

fn disjoint(all: u64, parts: &[(f64, f64, u8)]) -> Vec<TestRequest> {
    let slice = all / parts.len() as u64;
    let of = |(index, &(from, to, byte)): (usize, &(f64, f64, u8))| {
        let (from, to) = ((from * slice as f64) as u64, (to * slice as f64) as u64);
        (
            index as u64 * slice + from.min(to),
            (from.max(to) - from.min(to)).max(1).min(slice - from.min(to)) as u32,
            Some(byte),
        )
    };
    parts.iter().enumerate().map(of).collect()
}

fn parts() -> impl Strategy<Value = Vec<(f64, f64, u8)>> {
    proptest::collection::vec((0.0..1.0f64, 0.0..=1.0f64, any::<u8>()), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn data_survives_any_failed_member(
        members in 3u32..7, chunk in select_chunk(), whole in parts(), degraded in parts(), victim in 0u32..7, len in 1u32..9000, seed in any::<u32>(),
    ) {
        let layout = Layout { members, chunk };
        let victim = victim % members;
        let mut set = Set::new(layout, u64::from(seed));
        let all = set.expected.len() as u64;
        set.write(Raid5::default(), &disjoint(all, &whole));
        set.check(Raid5::default(), len);
        for member in 0..members {
            set.check(failed(member), len);
        }
        set.members.borrow_mut()[victim as usize].fill(0xee);
        set.write(failed(victim), &disjoint(all, &degraded));
        set.check(failed(victim), len);
        prop_assert!(set.members.borrow()[victim as usize].iter().all(|&byte| byte == 0xee), "nothing is written to what has failed");
        let member_bytes = chunk * ROWS;
        let rebuild: Vec<TestRequest> =
            (0..member_bytes).step_by(len as usize).map(|at| (at, u64::from(len).min(member_bytes - at) as u32, Some(0))).collect();
        set.run(Raid5 { failed: Some(victim), rebuild: true }, &rebuild, None);
        set.check(Raid5::default(), len);
        for member in 0..members {
            set.check(failed(member), len);
        }
    }

    #[test]
    fn an_error_is_reported_once(members in 3u32..6, fails_after in 0u32..9, whole in parts()) {
        let mut set = Set::new(Layout { members, chunk: 1024 }, 7);
        let all = set.expected.len() as u64;
        let asked = disjoint(all, &whole);
        let ended = set.run(Raid5::default(), &asked, Some(fails_after));
        prop_assert!(ended.iter().zip(&asked).all(|(one, asked)| one.1 == asked.1 as i32 || one.1 == -5), "{ended:?}");
        prop_assert!(set.busy.take(&(0..4096)), "no row stays taken");
    }
}

fn select_chunk() -> impl Strategy<Value = u64> {
    proptest::sample::select(vec![512u64, 1024, 4096])
}

#[test]
fn parity_takes_the_fewest_requests() {
    let layout = Layout { members: 5, chunk: 4096 };
    let mut set = Set::new(layout, 3);
    let requests = |set: &mut Set, op, how, asked: TestRequest| {
        let tally = PartCounters::default();
        let arena = Arena::with(
            1,
            asked.1,
            0,
            machine::Memory::Pages,
            scratch(layout.scratch_bytes(asked.1)),
        )
        .unwrap();
        let inner = InMemory {
            members: set.members.clone(),
            pieces: Vec::new(),
            seed: 1,
            fails_after: None,
        };
        let scratch = (arena.scratch(), layout.scratch_bytes(asked.1));
        let setup =
            Setup { layout, how, busy: &set.busy, tally: &tally, time: Frozen, depth: 1, scratch };
        let mut session = ParitySession::new(inner, setup);
        session.issue(
            0,
            &Request { op, target: 0, offset: asked.0, len: asked.1, slot: 0 },
            arena.read_place(0),
        );
        let (mut reads, mut writes, mut done) = (0, 0, false);
        while !done {
            let fresh = |op| session.inner.pieces.iter().filter(|piece| piece.1.op == op).count();
            (reads, writes) = (reads.max(fresh(Op::Read)), writes.max(fresh(Op::Write)));
            session.reap(|_| done = true);
        }
        (reads, writes)
    };
    let pieces = |set: &mut Set, how, asked: TestRequest| requests(set, Op::Write, how, asked);
    let whole = Raid5::default();
    assert_eq!(
        pieces(&mut set, whole, (0, 4 * 4096, None)),
        (0, 5),
        "a whole row is written and nothing read"
    );
    assert_eq!(pieces(&mut set, whole, (0, 4096, None)), (2, 2), "old data and old parity");
    assert_eq!(
        pieces(&mut set, whole, (0, 3 * 4096, None)),
        (1, 4),
        "the one chunk that is not written"
    );
    // Row 0: data on members 0 to 3, parity on member 4.
    assert_eq!(pieces(&mut set, failed(4), (0, 4096, None)), (0, 1), "no parity to keep");
    assert_eq!(
        pieces(&mut set, failed(0), (0, 4096, None)),
        (3, 1),
        "the data goes only into the parity"
    );
    assert_eq!(
        pieces(&mut set, failed(3), (0, 4096, None)),
        (2, 2),
        "what has failed is not touched"
    );
    let read = |set: &mut Set, how, asked: TestRequest| requests(set, Op::Read, how, asked).0;
    assert_eq!(read(&mut set, failed(0), (0, 4 * 4096, None)), 4, "the rest of the row, once");
    assert_eq!(read(&mut set, failed(0), (0, 4096, None)), 4, "the rest of the row");
    assert_eq!(read(&mut set, failed(3), (0, 2 * 4096, None)), 2, "only what is there");
    assert_eq!(read(&mut set, failed(4), (0, 4 * 4096, None)), 4, "no data is missing");
}
