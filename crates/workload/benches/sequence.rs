//! Cost per request: sequences, data, self-describing blocks.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use machine::Buffering;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use workload::verify::Verifier;
use workload::{Cursor, Data, Filler, Pattern, Sequence, Workload};

/// Slightly more blocks than a power of two: the longest walk of the permutation.
const REGION: (u64, u64) = (0, (1 << 30) + 4096);

fn workload(pattern: Pattern, read_percent: u8) -> Workload {
    Workload { pattern, read_percent, request_bytes: 4096, ..Workload::default() }
}

fn sequences(c: &mut Criterion) {
    let mut group = c.benchmark_group("next");
    group.throughput(Throughput::Elements(1));
    let patterns = [
        ("seq", Pattern::Seq),
        ("random", Pattern::Random),
        ("backward", Pattern::Backward),
        ("stride", Pattern::Stride(65_536)),
        ("zipf", Pattern::Zipf(0.99)),
        ("hot_cold", Pattern::HotCold { hot_percent: 10, access_percent: 90 }),
    ];
    for (name, pattern) in patterns {
        let mut sequence = Sequence::new(&workload(pattern, 100), REGION, 0, Cursor::Own)
            .expect("a sound workload");
        group.bench_function(name, |b| b.iter(|| black_box(sequence.next())));
    }
    let mut mixed = Sequence::new(&workload(Pattern::Random, 70), REGION, 0, Cursor::Own)
        .expect("a sound workload");
    group.bench_function("random_mixed", |b| b.iter(|| black_box(mixed.next())));
    let shared = Cursor::Shared(Arc::new(AtomicU64::new(0)));
    let mut shared = Sequence::new(&workload(Pattern::Random, 100), REGION, 0, shared)
        .expect("a sound workload");
    group.bench_function("random_shared", |b| b.iter(|| black_box(shared.next())));
    let mut even = Sequence::new(&workload(Pattern::Random, 100), (0, 1 << 30), 0, Cursor::Own)
        .expect("a sound workload");
    group.bench_function("random_power_of_two", |b| b.iter(|| black_box(even.next())));
    group.finish();
}

fn fillers(c: &mut Criterion) {
    let mut group = c.benchmark_group("stamp_4k");
    group.throughput(Throughput::Bytes(4096));
    let base = Workload { buffering: Buffering::Direct, ..workload(Pattern::Random, 0) };
    let half = Data { duplicate_percent: 50, ..Data::default() };
    for (name, workload) in [
        ("kept_body", base.clone()),
        ("fresh_body", Workload { buffering: Buffering::Buffered, ..base.clone() }),
        ("half_repeat", Workload { data: half, ..base }),
    ] {
        let mut filler = Filler::new(&workload);
        let mut buffer = vec![0; 4096];
        filler.fill_buffers(&mut buffer);
        group.bench_function(name, |b| b.iter(|| filler.stamp(black_box(&mut buffer))));
    }
    group.finish();
    c.bench_function("new_random", |b| {
        let workload = workload(Pattern::Random, 100);
        b.iter_batched(
            || (),
            |()| Sequence::new(&workload, REGION, 0, Cursor::Own),
            BatchSize::SmallInput,
        );
    });
}

fn verification(c: &mut Criterion) {
    let mut group = c.benchmark_group("verify_4k");
    group.throughput(Throughput::Bytes(4096));
    let verifier =
        Verifier::new(&workload(Pattern::Random, 0), REGION, 1).expect("a sound workload");
    let mut buffer = vec![0; 4096];
    group.bench_function("fill", |b| {
        b.iter(|| {
            let generation = verifier.fill(8192, black_box(&mut buffer));
            verifier.wrote(8192, generation, true);
        });
    });
    let mut faults = Vec::new();
    group.bench_function("check", |b| {
        b.iter(|| verifier.check(8192, black_box(&buffer), verifier.expected(8192), &mut faults));
    });
    assert!(faults.is_empty(), "sound data were called wrong");
    group.finish();
}

criterion_group!(benches, sequences, fillers, verification);
criterion_main!(benches);
