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
type Work = fn(&mut [u64], &mut [u64], Option<&File>);

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
    let with = |threads| {
        let kinds = rates(clock, threads, each_ns, interrupt);
        kinds.into_iter().map(move |(kind, rates_bytes_per_s)| MemoryUse { kind: kind.into(), threads, rates_bytes_per_s })
    };
    counts.into_iter().flat_map(with).collect()
}

/// Rates of each kind with so many threads, pass by pass. Buffers and files are made once: that takes longer than a pass.
fn rates(clock: Clock, threads: u32, each_ns: Nanos, interrupt: &AtomicBool) -> Vec<(&'static str, Vec<f64>)> {
    let barrier = Barrier::new(threads as usize);
    let passes: Vec<Vec<Vec<Nanos>>> = std::thread::scope(|scope| {
        let one = || {
            let (mut a, mut b) = (vec![1u64; BYTES / 8], vec![2u64; BYTES / 8]);
            let file = sys::memory_file().ok();
            file_write(&mut a, &mut b, file.as_ref());
            let times = |(kind, work): (&str, Work)| {
                barrier.wait();
                // Without such a file its two rates are absent, and the others are as they are.
                if file.is_none() && kind.starts_with("file") {
                    return Vec::new();
                }
                passes(clock, each_ns, interrupt, || work(black_box(&mut a), black_box(&mut b), file.as_ref()))
            };
            KINDS.map(times).to_vec()
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    let of = |kind: usize| {
        let shortest = passes.iter().map(|thread| thread[kind].len()).min().unwrap_or(0);
        (0..shortest).map(|pass| passes.iter().map(|thread| BYTES as f64 / (thread[kind][pass].max(1) as f64 / 1e9)).sum()).collect()
    };
    KINDS.iter().enumerate().map(|(kind, (name, _))| (*name, of(kind))).collect()
}

/// How long each pass took, the first left out: at least three, for one number has no interval.
fn passes(clock: Clock, for_ns: Nanos, interrupt: &AtomicBool, mut pass: impl FnMut()) -> Vec<Nanos> {
    pass();
    let start = clock.now();
    let mut times = Vec::new();
    while !interrupt.load(Ordering::Relaxed) && (times.len() < 3 || (clock.now() - start < for_ns && times.len() < 200)) {
        let began = clock.now();
        pass();
        times.push(clock.now() - began);
    }
    times
}

fn read(a: &mut [u64], _: &mut [u64], _: Option<&File>) {
    // Eight sums: the additions must not be the limit.
    let mut sums = [0u64; 8];
    for chunk in a.chunks_exact(8) {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*value);
        }
    }
    black_box(sums);
}

fn write(a: &mut [u64], _: &mut [u64], _: Option<&File>) {
    a.fill(black_box(3));
}

fn copy(a: &mut [u64], b: &mut [u64], _: Option<&File>) {
    b.copy_from_slice(a);
}

/// The buffer as bytes.
fn bytes(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any bytes are valid words and the other way round; the length is that of the words.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), std::mem::size_of_val(words)) }
}

fn file_read(_: &mut [u64], b: &mut [u64], file: Option<&File>) {
    let Some(file) = file else { return };
    for (index, request) in bytes(b).chunks_mut(REQUEST).enumerate() {
        // A file in memory fails only when memory does, and then the rate shows it.
        let _ = file.read_at(request, (index * REQUEST) as u64);
    }
}

fn file_write(_: &mut [u64], b: &mut [u64], file: Option<&File>) {
    let Some(file) = file else { return };
    for (index, request) in bytes(b).chunks_mut(REQUEST).enumerate() {
        let _ = file.write_at(request, (index * REQUEST) as u64);
    }
}
