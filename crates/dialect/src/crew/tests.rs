//! Where requests go, what is noted of them, and who waits for whom.

use super::player::{Common, Player};
use super::*;
use machine::Buffering;
use machine::{Asker, Completion, Next};
use workload::Stop;

const BLOCK: u64 = 4096;

fn job(shape: Shape, blocks: u64) -> Job {
    let workload = Workload {
        request_bytes: BLOCK as u32,
        buffering: Buffering::Buffered,
        region_start_bytes: 10 * BLOCK,
        region_bytes: Some(blocks * BLOCK),
        stop: Stop::AfterBytes(6 * BLOCK),
        ..Workload::default()
    };
    Job { workload, shape }
}

fn common(expected: usize) -> Arc<Common> {
    Arc::new(Common {
        expected,
        ready: AtomicUsize::new(0),
        start: AtomicU64::new(0),
        stonewall: true,
        first_done: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    })
}

fn player(job: &Job, common: &Arc<Common>) -> Player {
    let region = job.workload.region(u64::MAX >> 1);
    let stream = Stream::new(&job.workload, region, (0, 0), Cursor::Own, Filler::new(&job.workload), 0).unwrap();
    Player::new(stream, job, region, common, 0)
}

/// Where the next request goes, in blocks; it takes `ns`. `None` when there is none.
fn step(player: &mut Player, now: &mut Nanos, ns: Nanos) -> Option<f64> {
    loop {
        match player.next(*now) {
            Next::Issue(request) => {
                *now += ns;
                player.complete(Completion { slot: request.slot, result: request.len as i32 }, *now);
                return Some(request.offset as f64 / BLOCK as f64);
            }
            Next::WaitUntil(then) => *now = then,
            Next::Done => return None,
            Next::WaitForCompletion => unreachable!("every request has ended"),
        }
    }
}

fn offsets(shape: Shape, blocks: u64) -> Vec<f64> {
    let mut player = player(&job(shape, blocks), &common(1));
    let mut now = 1000;
    std::iter::from_fn(|| step(&mut player, &mut now, 10)).collect()
}

#[test]
fn places_are_apart_as_far_as_the_tool_asks_and_start_where_it_asks() {
    assert_eq!(offsets(Shape::default(), 4), [10.0, 11.0, 12.0, 13.0, 10.0, 11.0]);
    assert_eq!(offsets(Shape { step_bytes: Some(BLOCK / 2), ..Shape::default() }, 5), [10.0, 10.5, 11.0, 11.5, 12.0, 10.0]);
    assert_eq!(offsets(Shape { step_bytes: Some(3 * BLOCK), ..Shape::default() }, 3), [10.0, 13.0, 16.0, 10.0, 13.0, 16.0]);
    assert_eq!(offsets(Shape { rotate_bytes: 3 * BLOCK, ..Shape::default() }, 4), [13.0, 10.0, 11.0, 12.0, 13.0, 10.0]);
}

#[test]
fn what_the_tool_wants_to_know_of_each_request_is_kept() {
    let mut player = player(&job(Shape { log: true, ..Shape::default() }, 3), &common(1));
    let mut now = 1000;
    while step(&mut player, &mut now, 25).is_some() {}
    assert_eq!(player.notes.log, [10, 11, 12, 10, 11, 12].map(|block| (block * BLOCK, 25)));
    assert_eq!((player.notes.began, player.notes.ended), (1000, 1150));
}

#[test]
fn with_a_stonewall_the_slower_counts_until_the_faster_is_done_and_goes_on() {
    let shared = common(2);
    let (mut fast, mut slow) = (player(&job(Shape::default(), 8), &shared), player(&job(Shape::default(), 8), &shared));
    let mut now = 1000;
    // The first waits for the second.
    assert!(matches!(fast.next(now), Next::WaitUntil(then) if then > now));
    assert!(matches!(slow.next(now), Next::WaitUntil(then) if then == now + SETTLE_NS));
    now += SETTLE_NS;
    let began = now;
    let (mut a, mut b) = (now, now);
    for _ in 0..3 {
        step(&mut fast, &mut a, 10);
        step(&mut fast, &mut a, 10);
        step(&mut slow, &mut b, 20);
    }
    assert_eq!(step(&mut fast, &mut a, 10), None);
    let mut rest = 0;
    while step(&mut slow, &mut b, 20).is_some() {
        rest += 1;
    }
    assert_eq!((fast.notes.counted, slow.notes.counted, rest), (Some((6, began + 60)), Some((3, began + 60)), 3));
}

#[test]
fn data_that_is_not_the_pattern_stops_everybody() {
    let shared = common(1);
    let mut player = player(&job(Shape { pattern: Some(u64::from_le_bytes([9; 8])), ..Shape::default() }, 8), &shared);
    let Next::Issue(request) = player.next(1000) else { unreachable!() };
    let mut data = vec![9; BLOCK as usize];
    player.check(request.slot, &data);
    assert_eq!(player.wrong, None);
    data[100] = 8;
    player.check(request.slot, &data);
    assert_eq!(player.wrong, Some(10 * BLOCK + 96));
    player.complete(Completion { slot: request.slot, result: request.len as i32 }, 1010);
    assert_eq!(player.next(1010), Next::Done);
}
