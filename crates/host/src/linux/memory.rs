//! Main memory by read, write and copy, with one thread and with all: the ceiling of everything buffered.

use super::clock::Clock;
use machine::{MemoryUse, Nanos};
use std::hint::black_box;
use std::sync::Barrier;

/// Each thread's buffer: several times any processor cache of its share.
const BYTES: usize = 64 << 20;

/// Rates of each kind, several repeats in about `for_ns` altogether.
pub(crate) fn measure(clock: Clock, for_ns: Nanos) -> Vec<MemoryUse> {
    let all = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let counts = if all > 1 { vec![1, all] } else { vec![1] };
    let kinds: [(&str, fn(&mut [u64], &mut [u64])); 3] = [("read", read), ("write", write), ("copy", copy)];
    let each_ns = for_ns / (kinds.len() * counts.len()) as u64;
    let mut results = Vec::new();
    for threads in counts {
        for (kind, work) in kinds {
            results.push(MemoryUse { kind: kind.into(), threads, rates_bytes_per_s: rates(clock, threads, each_ns, work) });
        }
    }
    results
}

fn rates(clock: Clock, threads: u32, for_ns: Nanos, work: fn(&mut [u64], &mut [u64])) -> Vec<f64> {
    let barrier = Barrier::new(threads as usize);
    let passes: Vec<Vec<Nanos>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let (mut a, mut b) = (vec![1u64; BYTES / 8], vec![2u64; BYTES / 8]);
                    work(&mut a, &mut b);
                    barrier.wait();
                    let start = clock.now();
                    let mut times = Vec::new();
                    // At least three passes: one number has no interval.
                    while times.len() < 3 || (clock.now() - start < for_ns && times.len() < 200) {
                        let began = clock.now();
                        work(black_box(&mut a), black_box(&mut b));
                        times.push(clock.now() - began);
                    }
                    times
                })
            })
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    let shortest = passes.iter().map(Vec::len).min().unwrap_or(0);
    (0..shortest).map(|pass| passes.iter().map(|times| BYTES as f64 / (times[pass].max(1) as f64 / 1e9)).sum()).collect()
}

fn read(a: &mut [u64], _: &mut [u64]) {
    // Eight sums: the additions must not be the limit.
    let mut sums = [0u64; 8];
    for chunk in a.chunks_exact(8) {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*value);
        }
    }
    black_box(sums);
}

fn write(a: &mut [u64], _: &mut [u64]) {
    a.fill(black_box(3));
}

fn copy(a: &mut [u64], b: &mut [u64]) {
    b.copy_from_slice(a);
}
