//! Main memory by read, write and copy, with one thread and with all: the ceiling of everything buffered.

use super::clock::Clock;
use super::sys;
use machine::{MemoryUse, Nanos};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Each thread's buffer: several times any processor cache of its share.
const BYTES: usize = 64 << 20;

/// One pass over the buffers of a thread; the second is also where a file in memory is copied from and to.
type Work = fn(&mut [u64], &mut [u64], &File);

/// What is measured, in the order of the report. The last two go through the kernel to a file that lives in memory.
const KINDS: [(&str, Work); 5] =
    [("read", read), ("write", write), ("copy", copy), ("file in memory, read", file_read), ("file in memory, write", file_write)];

/// Bytes of one request to the file in memory.
const REQUEST: usize = 1 << 20;

/// Rates of each kind, several repeats in about `for_ns` altogether; after an interrupt, of those that were done.
pub(crate) fn measure(clock: Clock, for_ns: Nanos, interrupt: &AtomicBool) -> Vec<MemoryUse> {
    let all = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let counts = if all > 1 { vec![1, all] } else { vec![1] };
    let each_ns = for_ns / (KINDS.len() * counts.len()) as u64;
    let mut results = Vec::new();
    for threads in counts {
        for (kind, work) in KINDS {
            let rates_bytes_per_s = rates(clock, threads, each_ns, work, interrupt);
            if interrupt.load(Ordering::Relaxed) {
                return results;
            }
            results.push(MemoryUse { kind: kind.into(), threads, rates_bytes_per_s });
        }
    }
    results
}

fn rates(clock: Clock, threads: u32, for_ns: Nanos, work: Work, interrupt: &AtomicBool) -> Vec<f64> {
    let barrier = Barrier::new(threads as usize);
    let passes: Vec<Vec<Nanos>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let (mut a, mut b) = (vec![1u64; BYTES / 8], vec![2u64; BYTES / 8]);
                    // Without such a file its two rates are absent, and the others are as they are.
                    let Ok(file) = sys::memory_file() else {
                        barrier.wait();
                        return Vec::new();
                    };
                    file_write(&mut a, &mut b, &file);
                    work(&mut a, &mut b, &file);
                    barrier.wait();
                    let start = clock.now();
                    let mut times = Vec::new();
                    // At least three passes: one number has no interval.
                    while !interrupt.load(Ordering::Relaxed) && (times.len() < 3 || (clock.now() - start < for_ns && times.len() < 200)) {
                        let began = clock.now();
                        work(black_box(&mut a), black_box(&mut b), &file);
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

fn read(a: &mut [u64], _: &mut [u64], _: &File) {
    // Eight sums: the additions must not be the limit.
    let mut sums = [0u64; 8];
    for chunk in a.chunks_exact(8) {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*value);
        }
    }
    black_box(sums);
}

fn write(a: &mut [u64], _: &mut [u64], _: &File) {
    a.fill(black_box(3));
}

fn copy(a: &mut [u64], b: &mut [u64], _: &File) {
    b.copy_from_slice(a);
}

/// The buffer as bytes.
fn bytes(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any bytes are valid words and the other way round; the length is that of the words.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), std::mem::size_of_val(words)) }
}

fn file_read(_: &mut [u64], b: &mut [u64], file: &File) {
    for (index, request) in bytes(b).chunks_mut(REQUEST).enumerate() {
        // A file in memory fails only when memory does, and then the rate shows it.
        let _ = file.read_at(request, (index * REQUEST) as u64);
    }
}

fn file_write(_: &mut [u64], b: &mut [u64], file: &File) {
    for (index, request) in bytes(b).chunks_mut(REQUEST).enumerate() {
        let _ = file.write_at(request, (index * REQUEST) as u64);
    }
}
