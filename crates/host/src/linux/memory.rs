//! Memory bandwidth, the ceiling of buffered I/O.

use super::clock::Clock;
use super::facts::{Roots, memory_left};
use super::sys;
use crate::run_streams::refused_thread;
use crate::session::Time;
use machine::{Error, MemoryKind, MemoryUse, Nanos, Result, units};
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};

/// Several times a thread's share of any CPU cache.
const MAX_BYTES: u64 = 64 << 20;

/// Smaller buffers would measure the caches.
const MIN_BYTES: u64 = 8 << 20;

/// Each thread has two buffers, and an in-memory file.
const BUFFERS: u64 = 3;

/// Divides the available bytes.
const SHARE: u64 = 2;

type Work = fn(&mut [u64], &mut [u64], &File) -> io::Result<()>;

/// The last two go through the kernel to an in-memory file.
const KINDS: [(MemoryKind, Work); 5] = [
    (MemoryKind::Read, read),
    (MemoryKind::Write, write),
    (MemoryKind::Copy, copy),
    (MemoryKind::FileRead, file_read),
    (MemoryKind::FileWrite, file_write),
];

const REQUEST: usize = 1 << 20;

pub(crate) fn measure(
    clock: Clock,
    for_ns: Nanos,
    interrupt: &AtomicBool,
) -> Result<Vec<MemoryUse>> {
    let all = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let bytes = buffer_bytes(memory_left(&Roots::default()), all)?;
    let counts = if all > 1 { vec![1, all] } else { vec![1] };
    let each_ns = for_ns / (KINDS.len() * counts.len()) as u64;
    let mut measured = Vec::new();
    for threads in counts {
        let rates = rates(clock, threads, bytes, each_ns, interrupt)?;
        measured.extend(
            rates.into_iter().zip(KINDS).map(|(rates_bytes_per_s, (kind, _))| MemoryUse {
                kind,
                threads,
                rates_bytes_per_s,
            }),
        );
    }
    if interrupt.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(measured) }
}

fn buffer_bytes(left: Option<u64>, threads: u32) -> Result<usize> {
    let each = left.unwrap_or(u64::MAX) / SHARE / (BUFFERS * u64::from(threads));
    let bytes = each.min(MAX_BYTES) / REQUEST as u64 * REQUEST as u64;
    if bytes < MIN_BYTES {
        return Err(Error::Unsupported(format!(
            "memory is not measured: {threads} threads need {}, but only {} are available",
            units::show_size(MIN_BYTES * BUFFERS * SHARE * u64::from(threads)),
            units::show_size_rounded(left.unwrap_or(0) as f64)
        )));
    }
    Ok(bytes as usize)
}

/// Buffers are created once: that takes longer than a pass.
fn rates(
    clock: Clock,
    threads: u32,
    bytes: usize,
    each_ns: Nanos,
    interrupt: &AtomicBool,
) -> Result<Vec<Vec<f64>>> {
    let barrier = Barrier::new(threads as usize);
    // No thread waits at the barrier before all have started.
    let complete = OnceLock::new();
    let one = || {
        if !complete.wait() {
            return Ok(Vec::new());
        }
        let (mut a, mut b) = (vec![1u64; bytes / 8], vec![2u64; bytes / 8]);
        let mut file =
            sys::memory_file().and_then(|file| file_write(&mut a, &mut b, &file).map(|()| file));
        let mut times = Vec::new();
        for (_, work) in KINDS {
            // A failed thread still waits, so the others do not hang.
            barrier.wait();
            if let Ok(open) = &file {
                match passes(clock, each_ns, interrupt, || {
                    work(black_box(&mut a), black_box(&mut b), open)
                }) {
                    Ok(passes) => times.push(passes),
                    Err(error) => file = Err(error),
                }
            }
        }
        file.map(|_| times)
    };
    let passes: io::Result<Vec<Vec<Vec<Nanos>>>> = std::thread::scope(|scope| {
        let mut refused = None;
        let mut workers = Vec::new();
        for _ in 0..threads {
            match std::thread::Builder::new().spawn_scoped(scope, one) {
                Ok(worker) => workers.push(worker),
                Err(error) => refused = Some(refused_thread(&error)),
            }
        }
        let _ = complete.set(refused.is_none());
        let ended = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let passes = ended.collect();
        refused.map_or(Ok(passes), Err)
    })?;
    let passes = passes.map_err(Error::io("cannot measure", "memory"))?;
    let of = |kind: usize| {
        let shortest = passes.iter().map(|thread| thread[kind].len()).min().unwrap_or(0);
        (0..shortest)
            .map(|pass| {
                passes
                    .iter()
                    .map(|thread| bytes as f64 / (thread[kind][pass].max(1) as f64 / 1e9))
                    .sum()
            })
            .collect()
    };
    Ok((0..KINDS.len()).map(of).collect())
}

/// Omits the first pass; makes three or more, since a single one has no interval.
fn passes(
    clock: Clock,
    for_ns: Nanos,
    interrupt: &AtomicBool,
    mut pass: impl FnMut() -> io::Result<()>,
) -> io::Result<Vec<Nanos>> {
    pass()?;
    let start = clock.now();
    let mut times = Vec::new();
    while !interrupt.load(Ordering::Relaxed)
        && (times.len() < 3 || (clock.now() - start < for_ns && times.len() < 200))
    {
        let began = clock.now();
        pass()?;
        times.push(clock.now() - began);
    }
    Ok(times)
}

fn read(a: &mut [u64], _: &mut [u64], _: &File) -> io::Result<()> {
    // Eight sums, so that additions are not the limit.
    let mut sums = [0u64; 8];
    for chunk in a.chunks_exact(8) {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*value);
        }
    }
    black_box(sums);
    Ok(())
}

fn write(a: &mut [u64], _: &mut [u64], _: &File) -> io::Result<()> {
    a.fill(black_box(3));
    Ok(())
}

fn copy(a: &mut [u64], b: &mut [u64], _: &File) -> io::Result<()> {
    b.copy_from_slice(a);
    Ok(())
}

fn bytes(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: any bytes are valid words and vice versa; the length is that of the words.
    unsafe {
        std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), std::mem::size_of_val(words))
    }
}

fn file_read(_: &mut [u64], b: &mut [u64], file: &File) -> io::Result<()> {
    for (index, request) in bytes(b).chunks_mut(REQUEST).enumerate() {
        file.read_exact_at(request, (index * REQUEST) as u64)?;
    }
    Ok(())
}

fn file_write(_: &mut [u64], b: &mut [u64], file: &File) -> io::Result<()> {
    for (index, request) in bytes(b).chunks_mut(REQUEST).enumerate() {
        file.write_all_at(request, (index * REQUEST) as u64)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_memory_file_is_an_error() {
        let (mut a, mut b) = (vec![0u64; REQUEST / 4], vec![0u64; REQUEST / 4]);
        let only_read = File::open("/dev/zero").unwrap();
        assert!(file_write(&mut a, &mut b, &only_read).is_err());
        let empty = sys::memory_file().unwrap();
        assert!(
            file_read(&mut a, &mut b, &empty).is_err(),
            "a short read moved less than its rate says"
        );
    }

    #[test]
    fn buffers_are_bounded_by_available_memory() {
        assert_eq!(buffer_bytes(Some(1 << 40), 8).unwrap() as u64, MAX_BYTES);
        let some = buffer_bytes(Some(1 << 30), 16).unwrap() as u64;
        assert!(some * BUFFERS * 16 <= 1 << 29 && some >= MIN_BYTES, "{some}");
        assert!(buffer_bytes(Some(1 << 30), 128).unwrap_err().to_string().contains("128 threads"));
    }
}
