//! Tests of shaped streams and of pools.

use super::pool::PoolThread;
use super::stream::{Shared, ToolStream};
use super::*;
use machine::{Buffering, Completion, Engine, Next, RequestSource};
use workload::Stop;

const BLOCK: u64 = 4096;

fn shared() -> Arc<Shared> {
    Arc::new(Shared {
        stonewall: true,
        first_done: AtomicBool::new(false),
        stop: AtomicBool::new(false),
    })
}

fn six_reads(blocks: u64) -> Workload {
    Workload {
        request_bytes: BLOCK as u32,
        buffering: Buffering::Buffered,
        region_start_bytes: 10 * BLOCK,
        region_bytes: Some(blocks * BLOCK),
        stop: Stop::AfterBytes(6 * BLOCK),
        ..Workload::default()
    }
}

fn stream(shape: &RequestShape, thread: u64, blocks: u64, shared: &Arc<Shared>) -> ToolStream {
    stream_of(&six_reads(blocks), shape, thread, shared)
}

fn stream_of(
    workload: &Workload,
    shape: &RequestShape,
    thread: u64,
    shared: &Arc<Shared>,
) -> ToolStream {
    let region = workload.region(u64::MAX >> 1);
    let stream =
        Stream::new(workload, region, (0, 0), Cursor::Own, Filler::new(workload), 0).unwrap();
    let mut stream = ToolStream::new(stream, thread, workload, shape, region, shared, 0);
    stream.begin(1000);
    stream
}

fn step(stream: &mut ToolStream, now: &mut Nanos, ns: Nanos) -> Option<f64> {
    loop {
        match stream.next(*now) {
            Next::Issue(request) => {
                *now += ns;
                stream
                    .complete(Completion { slot: request.slot, result: request.len as i32 }, *now);
                return Some(request.offset as f64 / BLOCK as f64);
            }
            Next::WaitUntil(then) => *now = then,
            Next::Discard(_) => panic!("no tool's stream discards"),
            Next::Done => return None,
            Next::WaitForCompletion => unreachable!("every request has ended"),
        }
    }
}

fn offsets(shape: RequestShape, blocks: u64) -> Vec<f64> {
    let mut stream = stream(&shape, 1, blocks, &shared());
    let mut now = 1000;
    std::iter::from_fn(|| step(&mut stream, &mut now, 10)).collect()
}

fn many_offsets(shape: RequestShape, blocks: u64) -> Vec<f64> {
    let stop = Stop::AfterBytes(blocks * BLOCK);
    let workload = Workload { pattern: workload::Pattern::Random, stop, ..six_reads(blocks) };
    let mut stream = stream_of(&workload, &shape, 1, &shared());
    let mut now = 1000;
    std::iter::from_fn(|| step(&mut stream, &mut now, 10)).collect()
}

#[test]
fn some_requests_follow_the_one_before_and_ranges_have_their_shares() {
    let follows =
        many_offsets(RequestShape { follows_percent: Some(70), ..RequestShape::default() }, 4000);
    let count =
        follows.windows(2).filter(|pair| pair[1] == pair[0] + 1.0 || pair[1] == 10.0).count();
    assert!(count.abs_diff(2800) < 150, "{count} of 4000");
    let range = |(percent, end)| RequestRange { percent, end };
    let ranges = [(90, 0.1), (5, 0.3), (5, 1.0)].map(range).to_vec();
    let places = many_offsets(RequestShape { ranges, ..RequestShape::default() }, 4000);
    let within = |from: f64, to: f64| {
        let (from, to) = (10.0 + 4000.0 * from, 10.0 + 4000.0 * to);
        places.iter().filter(|&&place| place >= from && place < to).count()
    };
    let shares = [within(0.0, 0.1), within(0.1, 0.3), within(0.3, 1.0)];
    assert!(shares[0].abs_diff(3600) < 120 && shares[1].abs_diff(200) < 80, "{shares:?}");
    assert_eq!(shares.iter().sum::<usize>(), 4000);
}

#[test]
fn a_burst_is_followed_by_a_pause() {
    let shape = RequestShape { burst: Some((2, 1_000_000)), ..RequestShape::default() };
    let mut stream = stream(&shape, 1, 4, &shared());
    let mut now = 1000;
    let times: Vec<Nanos> =
        std::iter::from_fn(|| step(&mut stream, &mut now, 10).map(|_| now)).collect();
    assert_eq!(times, [1010, 1020, 1_001_030, 1_001_040, 2_001_050, 2_001_060]);
}

#[test]
fn places_are_apart_as_far_as_the_tool_asks_and_start_where_it_asks() {
    assert_eq!(offsets(RequestShape::default(), 4), [10.0, 11.0, 12.0, 13.0, 10.0, 11.0]);
    assert_eq!(
        offsets(RequestShape { step_bytes: Some(BLOCK / 2), ..RequestShape::default() }, 5),
        [10.0, 10.5, 11.0, 11.5, 12.0, 10.0]
    );
    assert_eq!(
        offsets(RequestShape { step_bytes: Some(3 * BLOCK), ..RequestShape::default() }, 3),
        [10.0, 13.0, 16.0, 10.0, 13.0, 16.0]
    );
    assert_eq!(
        offsets(
            RequestShape {
                threads: ThreadOrder::Apart { bytes: 3 * BLOCK, room_bytes: 7 * BLOCK },
                ..RequestShape::default()
            },
            4
        ),
        [13.0, 10.0, 11.0, 12.0, 13.0, 10.0]
    );
}

#[test]
fn threads_that_begin_between_the_places_of_the_first_keep_places_of_their_own() {
    // Two threads start a block apart and step by two over five blocks: 0 2 4 and 1 3.
    let shape = RequestShape {
        threads: ThreadOrder::Apart { bytes: BLOCK, room_bytes: 4 * BLOCK },
        step_bytes: Some(2 * BLOCK),
        ..RequestShape::default()
    };
    assert_eq!(offsets(shape.clone(), 3), [11.0, 13.0, 11.0, 13.0, 11.0, 13.0]);
    let mut first = stream(&shape, 0, 3, &shared());
    let mut now = 1000;
    let places: Vec<f64> = std::iter::from_fn(|| step(&mut first, &mut now, 10)).collect();
    assert_eq!(places, [10.0, 12.0, 14.0, 10.0, 12.0, 14.0]);
    // Starts five half blocks in, at the third of its own offsets.
    let threads = ThreadOrder::Apart { bytes: 5 * BLOCK / 2, room_bytes: 4 * BLOCK };
    assert_eq!(
        offsets(RequestShape { threads, ..RequestShape::default() }, 5),
        [12.5, 13.5, 10.5, 11.5, 12.5, 13.5]
    );
}

#[test]
fn what_the_tool_wants_to_know_of_each_request_is_kept() {
    let mut stream =
        stream(&RequestShape { log: true, ..RequestShape::default() }, 0, 3, &shared());
    let mut now = 1000;
    while step(&mut stream, &mut now, 25).is_some() {}
    assert_eq!(stream.result.trace.log, [10, 11, 12, 10, 11, 12].map(|block| (block * BLOCK, 25)));
    assert_eq!((stream.result.trace.began, stream.result.trace.ended), (1000, 1150));
}

#[test]
fn with_a_stonewall_the_slower_counts_until_the_faster_is_done_and_goes_on() {
    let (shape, shared) = (RequestShape::default(), shared());
    let (mut fast, mut slow) = (stream(&shape, 0, 8, &shared), stream(&shape, 1, 8, &shared));
    let began = 1000;
    let (mut a, mut b) = (began, began);
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
    assert_eq!(
        (fast.result.trace.counted, slow.result.trace.counted, rest),
        (Some((6, began + 60)), Some((3, began + 60)), 3)
    );
}

fn drawn(weights: &[u32], outstanding: u32, seed: u64, count: usize) -> Vec<u32> {
    let timed = Workload {
        stop: Stop::AfterNs(1_000_000),
        engine: Engine::IoUring,
        depth: outstanding,
        ..six_reads(8)
    };
    let streams =
        weights.iter().map(|_| stream_of(&timed, &RequestShape::default(), 0, &shared())).collect();
    let mut thread = PoolThread::new(streams, weights, Some(outstanding), seed);
    thread.begin(0);
    let (mut under_way, mut targets) = (std::collections::VecDeque::new(), Vec::new());
    while targets.len() < count {
        match thread.next(1) {
            Next::Issue(request) => {
                assert!(
                    under_way.iter().all(|other: &machine::Request| other.slot != request.slot),
                    "one slot, one request"
                );
                targets.push(request.target);
                under_way.push_back(request);
            }
            Next::WaitForCompletion => {
                assert_eq!(
                    under_way.len(),
                    outstanding as usize,
                    "all that may be are outstanding"
                );
                let ended = under_way.pop_front().unwrap();
                thread.complete(Completion { slot: ended.slot, result: ended.len as i32 }, 1);
            }
            other => panic!("{other:?}"),
        }
    }
    // At the end the thread waits for its outstanding requests, then it is done.
    while let Some(ended) = under_way.pop_front() {
        assert_eq!(thread.next(2_000_000), Next::WaitForCompletion);
        thread.complete(Completion { slot: ended.slot, result: ended.len as i32 }, 2_000_000);
    }
    assert_eq!(thread.next(2_000_000), Next::Done);
    let counted: u64 = thread.streams.iter().map(|stream| stream.result.stream.completed()).sum();
    assert_eq!(counted, count as u64);
    assert!(
        thread.streams.iter().all(|stream| stream.result.stream.measured_ns() == 2_000_000),
        "all were there to the end"
    );
    targets
}

#[test]
fn a_thread_of_a_pool_draws_its_targets_by_their_weights_and_a_seed_repeats() {
    let targets = drawn(&[1, 0, 3], 4, 7, 8000);
    let of = |target: u32| targets.iter().filter(|one| **one == target).count();
    assert!(
        of(0).abs_diff(2000) < 150 && of(1) == 0 && of(0) + of(2) == 8000,
        "{} to the first",
        of(0)
    );
    assert_eq!(drawn(&[1, 0, 3], 4, 7, 100), targets[..100], "it depends only on the seed");
    assert_ne!(drawn(&[1, 0, 3], 4, 8, 100), targets[..100]);
}

#[test]
fn data_that_is_not_the_pattern_stops_everybody() {
    let shape =
        RequestShape { pattern: Some(u64::from_le_bytes([9; 8])), ..RequestShape::default() };
    let shared = shared();
    let (mut stream, mut other) = (stream(&shape, 0, 8, &shared), stream(&shape, 1, 8, &shared));
    let Next::Issue(request) = stream.next(1000) else { unreachable!() };
    let mut data = vec![9; BLOCK as usize];
    stream.check(request.slot, &data);
    assert_eq!(stream.wrong, None);
    data[100] = 8;
    stream.check(request.slot, &data);
    assert_eq!(stream.wrong, Some(10 * BLOCK + 96));
    stream.complete(Completion { slot: request.slot, result: request.len as i32 }, 1010);
    assert_eq!((stream.next(1010), other.next(1010)), (Next::Done, Next::Done));
}

#[test]
fn a_run_by_the_clock_has_its_length() {
    let second = 1_000_000_000;
    let timed = Workload { stop: Stop::AfterNs(2 * second), ..six_reads(100) };
    let rated = Workload { rate_iops: Some(2.0), ..timed.clone() };
    let thinking = Workload { think_ns: 700_000_000, ..timed.clone() };
    let pauses = RequestShape { burst: Some((1, 700_000_000)), ..RequestShape::default() };
    let plain = RequestShape::default();
    for (workload, shape, requests) in
        [(&rated, &plain, 4), (&thinking, &plain, 3), (&timed, &pauses, 3)]
    {
        let mut stream = stream_of(workload, shape, 0, &shared());
        let mut now = 1000;
        let made = std::iter::from_fn(|| step(&mut stream, &mut now, 1000)).count();
        assert_eq!((made, stream.result.stream.measured_ns()), (requests, 2 * second));
    }
    // A run by its bytes ends with its last request.
    let by_bytes = Workload { rate_iops: Some(2.0), ..six_reads(100) };
    let mut stream = stream_of(&by_bytes, &plain, 0, &shared());
    let mut now = 1000;
    assert_eq!(std::iter::from_fn(|| step(&mut stream, &mut now, 1000)).count(), 6);
    assert_eq!(stream.result.stream.measured_ns(), 5 * second / 2 + 1000);
}
