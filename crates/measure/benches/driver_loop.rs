//! Cost of the driver's loop per request: with a null backend, and with a no-op in the kernel for
//! each request.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use host::Host;
use machine::{Engine, Machine, NullBackend, TargetSpec};
use measure::{Stream, streams};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use workload::{Pattern, Stop, Workload};

static INTERRUPT: AtomicBool = AtomicBool::new(false);

const REQUESTS: u64 = 200_000;

fn benches(c: &mut Criterion) {
    let host = Host::new(&INTERRUPT);
    let spec = TargetSpec {
        places: vec![std::env::temp_dir()],
        size: Some(16 << 20),
        ..TargetSpec::default()
    };
    let target = host.open(&spec).expect("a directory for temporary files");
    let facts = host.target_facts(&target);
    let mut group = c.benchmark_group("loop");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(20);
    let cases = [
        ("blocking, null", Engine::Sync, 1, 100, NullBackend::Null),
        ("asynchronous, null", Engine::IoUring, 32, 100, NullBackend::Null),
        ("asynchronous, null, writes", Engine::IoUring, 32, 0, NullBackend::Null),
        ("io_uring, no-ops", Engine::IoUring, 32, 100, NullBackend::NoOp),
    ];
    for (name, engine, depth, read_percent, backend) in cases {
        let workload = Workload {
            engine,
            depth,
            read_percent,
            pattern: Pattern::Random,
            request_bytes: 4096,
            stop: Stop::AfterBytes(REQUESTS * 4096),
            ..Workload::default()
        };
        let access = workload.access(facts.size_bytes);
        let once = || {
            let mut sources = streams(&workload, &facts, 0).expect("a workload that fits");
            // Without io_uring this has no engine to measure.
            match host.measure_ceiling(&target, &access, backend, &mut sources) {
                Ok(true) => Duration::from_nanos(sources.iter().map(Stream::measured_ns).sum()),
                _ => Duration::ZERO,
            }
        };
        if once().is_zero() {
            eprintln!("loop/{name}: not to be had here");
            continue;
        }
        group.bench_function(name, |b| b.iter_custom(|times| (0..times).map(|_| once()).sum()));
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
