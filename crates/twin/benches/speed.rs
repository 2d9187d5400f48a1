//! Simulated requests per second of wall-clock time.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use machine::{Engine, Machine};
use std::hint::black_box;
use twin::Twin;
use workload::{Stop, Workload};

fn speed(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulated requests");
    for (name, machine, depth) in [
        ("depth 1, 64 KiB, one disk", "gateway-1997,drive=st34371w", 1),
        ("depth 1, 64 KiB, one NVMe SSD", "nvme", 1),
        ("depth 8, 64 KiB, four disks", "gateway-1997,drive=st34371w,disks=4,buses=2", 8),
    ] {
        let twin = Twin::from_name(machine).expect("a preset");
        let (volume, bytes) = (twin.volume(), 4 << 30);
        let workload = Workload {
            depth,
            engine: Engine::IoUring,
            region_bytes: Some(1 << 30),
            stop: Stop::AfterBytes(bytes),
            ..Workload::default()
        };
        let facts = twin.target_facts(&volume);
        let access = workload.access(facts.size_bytes);
        group.throughput(Throughput::Elements(bytes / u64::from(workload.request_bytes)));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut streams = measure::streams(&workload, &facts, 0).expect("it fits");
                black_box(twin.run_one(&volume, &access, &mut streams).expect("it runs"));
            });
        });
    }
    group.finish();
}

criterion_group! { name = benches; config = Criterion::default().sample_size(10); targets = speed }
criterion_main!(benches);
