//! Requests of streams with a byte limit add up to the limit, whatever their number. A stream
//! driven through its fast path measures the same as otherwise.

use machine::{Completion, Engine, Next, RequestSource};
use measure::Stream;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use workload::{Cursor, Filler, Pattern, SizeMix, Sizes, Stop, Workload};

const REGION: u64 = 1 << 30;

/// Returns the requests and bytes issued, and the bytes reported as completed.
fn asked(workload: &Workload) -> (u64, u64, u64) {
    asked_in(workload, REGION)
}

fn asked_in(workload: &Workload, region: u64) -> (u64, u64, u64) {
    let together = if workload.engine == Engine::Threads { workload.depth } else { 1 };
    let (mut requests, mut bytes, mut completed) = (0, 0, 0);
    for index in 0..workload.threads {
        let counter = Arc::new(AtomicU64::new(0));
        for hand in 0..together {
            let cursor = if together > 1 { Cursor::Shared(counter.clone()) } else { Cursor::Own };
            let mut stream =
                Stream::new(workload, (0, region), (index, hand), cursor, Filler::new(workload), 0)
                    .unwrap();
            stream.begin(0);
            let mut now = 0;
            while let Next::Issue(request) = stream.next(now) {
                now += 10;
                (requests, bytes) = (requests + 1, bytes + u64::from(request.len));
                stream.complete(Completion { slot: request.slot, result: request.len as i32 }, now);
            }
            assert_eq!(stream.next(now), Next::Done);
            completed += stream.completed_bytes();
        }
    }
    (requests, bytes, completed)
}

proptest! {
    #[test]
    fn the_sum_over_streams_is_what_was_asked(
        threads in 1u32..20, depth in 1u32..20, kilobytes in 1u64..2000, engine in prop::sample::select(vec![Engine::IoUring, Engine::Threads]), random: bool,
    ) {
        let pattern = if random { Pattern::Random } else { Pattern::Seq };
        let bytes = kilobytes * 1024;
        let workload = Workload { threads, depth, engine, pattern, request_bytes: 4096, stop: Stop::AfterBytes(bytes.max(4096)), ..Workload::default() };
        // Only whole requests, as in fio.
        let requests = bytes.max(4096) / 4096;
        prop_assert_eq!(asked(&workload), (requests, requests * 4096, requests * 4096));
        // A byte limit together with a time is divided in the same way.
        let timed = Workload { stop: Stop::AfterNs(1 << 60), limit_bytes: Some(bytes), ..workload };
        prop_assert_eq!(asked(&timed).0, bytes / 4096);
    }

    #[test]
    fn a_file_that_grows_is_written_once_by_all_together(threads in 1u32..9, depth in 1u32..9, blocks in 100u64..2000, engine in prop::sample::select(vec![Engine::IoUring, Engine::Threads]), kind in 0usize..3) {
        let pattern = [Pattern::Seq, Pattern::Backward, Pattern::Columns(50)][kind];
        let bytes = blocks * 4096;
        let workload = Workload {
            threads, depth, engine, pattern, read_percent: 0, request_bytes: 4096, allocation: machine::Allocation::Extend, region_bytes: Some(bytes),
            stop: Stop::AfterNs(1 << 60), ..Workload::default()
        };
        // The rest of a table after its last full row is not visited.
        let visited = if kind == 2 { blocks / 50 * 50 } else { blocks };
        prop_assert_eq!(asked_in(&workload, bytes).0, visited);
    }

    #[test]
    fn sizes_that_differ_come_to_the_same_bytes(threads in 1u32..9, units in 10u64..3000, random: bool, seed: u64) {
        let pattern = if random { Pattern::Random } else { Pattern::Seq };
        let mix = SizeMix::range(512, 8192, false);
        let sizes = Some(Sizes { read: mix.clone(), write: mix });
        let stop = Stop::AfterBytes((units * 512).max(8192));
        let workload = Workload { threads, pattern, sizes, request_bytes: 8192, seed, stop, ..Workload::default() };
        let (requests, bytes, completed) = asked(&workload);
        prop_assert_eq!((bytes, completed), ((units * 512).max(8192), (units * 512).max(8192)));
        prop_assert!(requests >= bytes / 8192);
    }

    #[test]
    fn a_lone_request_is_measured_like_any_other(
        gaps in prop::collection::vec((1u64..9_000_000, 0u64..2000), 1..300), ramp_ms in 0u64..40, run_ms in 1u64..400, read_percent in 0u8..=100,
    ) {
        let stop = Stop::AfterNs(run_ms * 1_000_000);
        let workload = Workload { engine: Engine::Sync, pattern: Pattern::Random, request_bytes: 4096, read_percent, stop, ..Workload::default() };
        let [alone, plain] = [true, false].map(|alone| {
            let mut stream = Stream::new(&workload, (0, REGION), (0, 0), Cursor::Own, Filler::new(&workload), ramp_ms * 1_000_000).unwrap();
            stream.begin(7);
            let (mut now, mut asked) = (7, Vec::new());
            for &(service, pause) in gaps.iter().cycle() {
                let since = now;
                if let Some(request) = alone.then(|| stream.next_sync(now)).flatten() {
                    now += service;
                    stream.complete_sync(&request, since, now);
                    asked.push(request);
                } else if let Next::Issue(request) = stream.next(now) {
                    now += service;
                    stream.complete(Completion { slot: request.slot, result: request.len as i32 }, now);
                    asked.push(request);
                } else {
                    break;
                }
                // As after a sync.
                now += pause;
            }
            (asked, stream)
        });
        prop_assert_eq!(alone.0, plain.0);
        let (alone, plain) = (alone.1, plain.1);
        prop_assert_eq!(alone.latency(), plain.latency());
        prop_assert_eq!(alone.slices(), plain.slices());
        prop_assert_eq!((alone.completed(), alone.completed_bytes()), (plain.completed(), plain.completed_bytes()));
        prop_assert_eq!((alone.until_deadline(), alone.measured_ns()), (plain.until_deadline(), plain.measured_ns()));
        prop_assert_eq!((alone.mean_depth(), alone.mean_service_ns()), (plain.mean_depth(), plain.mean_service_ns()));
    }
}
