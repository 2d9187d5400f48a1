//! Cost of the latency histogram: record a request, merge two histograms, read a percentile.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use measure::histogram::Histogram;

fn latencies(n: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..n)
        .map(|_| {
            if next() % 100 == 0 {
                1_000_000 + next() % 100_000_000
            } else {
                60_000 + next() % 40_000
            }
        })
        .collect()
}

fn benches(c: &mut Criterion) {
    let values = latencies(4096);
    let mut group = c.benchmark_group("histogram");
    group.throughput(Throughput::Elements(values.len() as u64));
    let mut h = Histogram::new();
    group.bench_function("record", |b| {
        b.iter(|| values.iter().for_each(|&v| h.record(black_box(v))))
    });
    group.throughput(Throughput::Elements(1));
    let mut sum = Histogram::new();
    group.bench_function("merge", |b| b.iter(|| sum.merge(black_box(&h))));
    group.bench_function("percentile", |b| b.iter(|| black_box(&h).percentile(black_box(99.9))));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
