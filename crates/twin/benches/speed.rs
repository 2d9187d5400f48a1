//! Simulated requests per second of this computer's time.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use machine::Op;
use std::hint::black_box;
use twin::Twin;
use twin::program::Program;

fn speed(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulated requests");
    for (name, settings, depth) in [
        ("depth 1, 64 KiB, one disk", "drive=st34371w", 1),
        ("depth 1, 64 KiB, one NVMe SSD", "", 1),
        ("depth 8, 64 KiB, four disks", "drive=st34371w,disks=4,buses=2", 8),
    ] {
        let machine = if settings.is_empty() { "nvme".to_owned() } else { format!("gateway-1997,{settings}") };
        let twin = Twin::from_name(&machine).expect("a preset");
        let mut volume = twin.volume(None);
        let mut program = Program::study(Op::Read, 64 << 10, depth);
        (program.region, program.bytes) = (1 << 30, 4 << 30);
        group.throughput(Throughput::Elements(program.bytes / u64::from(program.request_bytes)));
        group.bench_function(name, |b| b.iter(|| black_box(program.run(&twin, &mut volume).expect("it runs"))));
    }
    group.finish();
}

criterion_group! { name = benches; config = Criterion::default().sample_size(10); targets = speed }
criterion_main!(benches);
