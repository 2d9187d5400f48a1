//! Tables 2, 3 and 4 of the 1997 study.

use super::{Figure, MIB, OFF_THE_CHUNK, Point, plain, published, twin};
use crate::{Result, run, workload};
use machine::{Engine, Machine, MemoryKind, Op};
use twin::Twin;
use twin::bus::Phase;
use workload::{Stop, Workload};

pub(super) fn table2(machine: &str) -> Result<Figure> {
    let twin = Twin::from_name(machine)?;
    let rates = twin.memory(0)?;
    let rate = |kind: MemoryKind| {
        let one = rates.iter().find(|one| one.kind == kind);
        one.and_then(|one| one.rates_bytes_per_s.first()).map_or(f64::NAN, |rate| rate / MIB)
    };
    let point = |(name, kind, measured): (&'static str, MemoryKind, f64)| {
        plain(name, "", 1, 0, measured, rate(kind))
    };
    Ok(Figure::new("table2", "MB/s", published::table2().into_iter().map(point).collect()))
}

pub(super) fn table3(machine: &str) -> Result<(Figure, Figure)> {
    let (mut hits, mut again) = (Vec::new(), Vec::new());
    for (request_bytes, drive, same, measured) in published::table3() {
        let machine = twin(machine, &drive, 1, ",wce=off")?;
        let volume = machine.volume();
        let mut asked = Workload { engine: Engine::Sync, ..workload(Op::Read, request_bytes, 1) };
        asked.stop = Stop::AfterBytes(u64::from(request_bytes) * 2000);
        asked.region_bytes = Some(if same { u64::from(request_bytes) } else { 100 << 20 });
        // A pause between requests lets the prefetch stay ahead. It is shorter than a revolution,
        // after which an idle drive ends its stream.
        asked.think_ns = if same { 0 } else { 7_000_000 };
        // The Ultra drive misses from time to time.
        let median_ms = run(&machine, &volume, &asked)?.median_latency_ns as f64 * 1e-6;
        let point = plain(
            if same { "cache hit" } else { "prefetch hit" },
            &drive,
            1,
            request_bytes,
            measured,
            median_ms,
        );
        if same { again.push(point) } else { hits.push(point) }
    }
    Ok((
        Figure::new("table3_prefetch_hit", "ms", hits),
        Figure::new("table3_cache_hit", "ms", again),
    ))
}

/// Shares of bus time, for Ultra-Wide drives read at depth 3.
pub(super) fn table4(machine: &str) -> Result<Figure> {
    let mut points = Vec::new();
    for (name, request_bytes, disks, measured) in published::table4() {
        let machine = twin(machine, "st34371w", disks, if disks > 1 { OFF_THE_CHUNK } else { "" })?;
        let volume = machine.volume();
        run(&machine, &volume, &workload(Op::Read, request_bytes, 3))?;
        let phases = volume.bus_phases()[0];
        let busy = phases.busy() as f64;
        let simulated = match Phase::ALL.iter().find(|phase| phase.name() == name) {
            Some(&phase) => phases.get(phase) as f64 / busy * 100.0,
            None => busy / volume.ran_ns() as f64 * 100.0,
        };
        points.push(Point {
            depth: 3,
            ..plain(name, "st34371w", disks, request_bytes, measured, simulated)
        });
    }
    Ok(Figure::new("table4", "percent", points))
}
