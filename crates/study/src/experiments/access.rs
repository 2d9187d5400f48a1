//! One request at a time, through the page cache and past it: memory, buffered, unbuffered, cost, device cache.

use crate::design::{Cell, Design, FigureDesign, Rank, Setting, Way};
use crate::result::Axis;
use machine::{Buffering, CacheState, Hint};
use workload::{Pattern, Workload};

/// The pause before a prefetched block is asked for: more than a revolution of the slowest drive, so that what a drive reads ahead is there.
const PREFETCH_PAUSE_NS: u64 = 12_000_000;

fn resident(setting: &Setting, way: Way, request: u32) -> Workload {
    Workload {
        request_bytes: request,
        buffering: Buffering::Buffered,
        cache: CacheState::Warm,
        region_bytes: Some(setting.resident_bytes()),
        ..setting.base(way)
    }
}

pub(crate) fn memory(setting: &Setting) -> Design {
    let mut cells = Vec::new();
    for way in setting.ways() {
        let fits = |size: u32| u64::from(size) * 2 <= setting.resident_bytes();
        for (size, rank) in setting.sizes().into_iter().filter(|(size, _)| fits(*size)) {
            let rank = if matches!(size, 4096 | 65_536 | 1_048_576) { Rank::Core } else { rank.max(Rank::Usual) };
            cells.push(Cell::new("memory", format!("resident file, {}", way.name()), f64::from(size), resident(setting, way, size), rank));
        }
    }
    Design {
        id: "memory",
        title: "Memory and page cache",
        question: "How fast is memory, and a file that lies in the page cache? It is the ceiling of buffered I/O.",
        skipped: None,
        notes: Vec::new(),
        figures: vec![FigureDesign {
            id: "memory",
            title: "A file in the page cache, by request size",
            group: "memory",
            x: Axis::RequestBytes,
            y: Axis::BytesPerS,
            half_power: true,
        }],
        cells,
    }
}

pub(crate) fn buffered(setting: &Setting) -> Design {
    let mut cells = Vec::new();
    let read = Workload { buffering: Buffering::Buffered, cache: CacheState::Cold, ..setting.base(Way::Read) };
    for (size, rank) in setting.sizes() {
        let x = f64::from(size);
        if !setting.facts.in_memory {
            let cold = Workload { request_bytes: size, ..read.clone() };
            cells.push(Cell::new("buffered", "read, cold", x, cold.clone(), rank));
            let hinted = Workload { hint: Hint::Sequential, ..cold };
            cells.push(Cell::new(
                "buffered",
                "read, cold, sequential hint",
                x,
                hinted,
                rank.max(if size == 65_536 { Rank::Core } else { Rank::Usual }),
            ));
        }
        if u64::from(size) * 2 <= setting.resident_bytes() {
            cells.push(Cell::new("buffered", "read, warm", x, resident(setting, Way::Read, size), rank));
        }
        if setting.facts.writable {
            let write = setting.flushed_write(size);
            cells.push(Cell::new("buffered", "write, to the last return", x, write.clone(), rank));
            cells.push(Cell::new("buffered", "write, to stable storage", x, write, rank).synced());
        }
    }
    Design {
        id: "buffered",
        title: "Out of the box",
        question: "What does a simple program get, reading and writing through the page cache one request at a time?",
        skipped: None,
        notes: Vec::new(),
        figures: vec![FigureDesign {
            id: "buffered",
            title: "Buffered synchronous I/O, by request size",
            group: "buffered",
            x: Axis::RequestBytes,
            y: Axis::BytesPerS,
            half_power: true,
        }],
        cells,
    }
}

pub(crate) fn unbuffered(setting: &Setting) -> Design {
    let mut cells = Vec::new();
    for (size, rank) in setting.sizes() {
        for way in setting.ways() {
            let plain = Workload { request_bytes: size, ..setting.base(way) };
            cells.push(Cell::new("unbuffered", way.name(), f64::from(size), plain.clone(), rank));
            if way == Way::Write {
                let through = Workload { buffering: Buffering::DirectDsync, ..plain };
                let rank = if matches!(size, 4096 | 65_536 | 1_048_576) { rank } else { rank.max(Rank::Usual) };
                cells.push(Cell::new("unbuffered", "write, write-through", f64::from(size), through, rank));
            }
        }
    }
    let skipped = (!setting.direct()).then(|| setting.not_direct());
    Design {
        id: "unbuffered",
        title: "Past the page cache",
        question: "What does the storage itself give to one request at a time, and what does it cost to have each write on stable storage?",
        cells: if skipped.is_some() { Vec::new() } else { cells },
        skipped,
        notes: Vec::new(),
        figures: vec![FigureDesign {
            id: "unbuffered",
            title: "Direct synchronous I/O, by request size",
            group: "unbuffered",
            x: Axis::RequestBytes,
            y: Axis::BytesPerS,
            half_power: true,
        }],
    }
}

pub(crate) fn cost(setting: &Setting) -> Design {
    let mut cells = Vec::new();
    let direct = if setting.direct() { "direct" } else { "cold" };
    for (size, rank) in setting.sizes() {
        let x = f64::from(size);
        for way in setting.ways() {
            if setting.direct() {
                cells.push(Cell::new(
                    "cost",
                    format!("{direct} {}", way.name()),
                    x,
                    Workload { request_bytes: size, ..setting.base(way) },
                    rank,
                ));
            }
            if u64::from(size) * 2 <= setting.resident_bytes() {
                let cached = resident(setting, way, size);
                cells.push(Cell::new("cost", format!("buffered {}", way.name()), x, cached, rank));
            }
        }
    }
    let figure = |id, title, y| FigureDesign { id, title, group: "cost", x: Axis::RequestBytes, y, half_power: false };
    Design {
        id: "cost",
        title: "What a request costs",
        question: "How much processor time does a request take, and a byte?",
        skipped: None,
        notes: Vec::new(),
        figures: vec![
            figure("cost_per_mib", "Processor time per MiB, by request size", Axis::CpuNsPerMib),
            figure("cost_per_request", "Processor time per request, by request size", Axis::CpuNsPerRequest),
        ],
        cells,
    }
}

pub(crate) fn device_cache(setting: &Setting) -> Design {
    let mut cells = Vec::new();
    let sizes = setting.sizes().into_iter().filter(|(size, _)| *size <= 1 << 20);
    for (size, rank) in sizes {
        let x = f64::from(size);
        let read = Workload { request_bytes: size, ..setting.base(Way::Read) };
        let again = Workload { region_bytes: Some(u64::from(size)), ..read.clone() };
        let paused = Workload { think_ns: PREFETCH_PAUSE_NS, ..read.clone() };
        let miss = Workload { pattern: Pattern::Random, ..read.clone() };
        cells.push(Cell::new("device_cache", "the same block again", x, again, rank));
        cells.push(Cell::new("device_cache", "the next block after a pause", x, paused, rank));
        cells.push(Cell::new("device_cache", "a miss", x, miss, rank));
    }
    let skipped = (!setting.direct()).then(|| setting.not_direct());
    Design {
        id: "device_cache",
        title: "The device's own cache",
        question: "What does a request cost that the device has read before, has read ahead, or has never seen?",
        cells: if skipped.is_some() { Vec::new() } else { cells },
        skipped,
        notes: Vec::new(),
        figures: vec![FigureDesign {
            id: "device_cache",
            title: "Service time of one direct read, by request size",
            group: "device_cache",
            x: Axis::RequestBytes,
            y: Axis::ServiceNs,
            half_power: false,
        }],
    }
}
