//! Compares parity with a copy of as many bytes in as much memory, by vectors, number of sources
//! and size of a piece.
//!
//! `cargo bench -p halfpower-host --bench parity` prints bytes read and written per second; the
//! last column is relative to `memcpy`. One source is a copy by the same vectors.

use host::parity::Vectors;
use std::hint::black_box;
use std::time::Instant;

const MOVED: usize = 256 << 20;

/// Turns alternate with the copy; the best counts, because disturbances only slow it down.
const TURNS: usize = 7;

const SIZES: [usize; 5] = [4 << 10, 64 << 10, 256 << 10, 1 << 20, 32 << 20];

const PAGE: usize = 4096;

fn room(bytes: usize, value: u8) -> Vec<u8> {
    vec![value; bytes + PAGE]
}

fn pages(room: &mut [u8], bytes: usize) -> &mut [u8] {
    let skip = room.as_ptr().align_offset(PAGE);
    &mut room[skip..skip + bytes]
}

fn seconds(mut work: impl FnMut(), times: usize) -> f64 {
    let began = Instant::now();
    (0..times).for_each(|_| work());
    began.elapsed().as_secs_f64()
}

fn main() {
    println!(
        "{:>10} {:>8} {:>8} {:>11} {:>11} {:>7}",
        "piece", "sources", "vectors", "parity", "memcpy", "ratio"
    );
    for size in SIZES {
        let mut data: Vec<Vec<u8>> = (0..7).map(|seed| room(size, seed as u8 + 1)).collect();
        let data: Vec<&[u8]> = data.iter_mut().map(|piece| &*pages(piece, size)).collect();
        let mut to = room(size, 0);
        let to = pages(&mut to, size);
        for count in [1, 2, 3, 5, 7] {
            let sources = &data[..count];
            let moved = (count + 1) * size;
            let (mut from, mut onto) = (room(moved / 2, 1), room(moved / 2, 1));
            let (from, onto) = (&*pages(&mut from, moved / 2), pages(&mut onto, moved / 2));
            for vectors in Vectors::available() {
                let (mut parity, mut copy) = (0.0f64, 0.0f64);
                for _ in 0..TURNS {
                    let times = (MOVED / moved).max(1);
                    let took =
                        seconds(|| vectors.xor(black_box(&mut *to), black_box(sources)), times);
                    parity = parity.max((times * moved) as f64 / took);
                    let took =
                        seconds(|| black_box(&mut *onto).copy_from_slice(black_box(from)), times);
                    copy = copy.max((times * moved) as f64 / took);
                }
                println!(
                    "{:>6} KiB {count:>8} {:>8} {:>6.1} GB/s {:>6.1} GB/s {:>7.2}",
                    size >> 10,
                    format!("{vectors:?}").to_lowercase(),
                    parity / 1e9,
                    copy / 1e9,
                    parity / copy
                );
            }
        }
    }
}
