//! Where and how a file lies: allocation, alignment, location.

use crate::design::{Cell, Design, FigureDesign, Rank, Setting, Way};
use crate::result::Axis;
use machine::{Allocation, TargetKind, units};
use workload::Workload;

pub(crate) fn allocation(setting: &Setting) -> Design {
    let states = [Allocation::Written, Allocation::Reserved, Allocation::Extend, Allocation::Truncate];
    let mut cells = Vec::new();
    for (size, rank) in [(4u32 << 10, Rank::Usual), (64 << 10, Rank::Core), (1 << 20, Rank::Core)] {
        if size < setting.facts.direct_align_bytes {
            continue;
        }
        for state in states {
            for depth in [1u32, 8] {
                let deep = setting.deep(Way::Write, size, depth);
                let bytes = setting.flushable(size);
                let workload = Workload { allocation: state, region_bytes: Some(bytes), ..deep };
                let series = format!("{}, depth {depth}", state.name());
                cells.push(Cell::new("allocation", series, f64::from(size), workload, rank));
            }
        }
    }
    let made = setting.facts.kind == TargetKind::TestFile
        || setting.facts.kind == TargetKind::Stripe
        || setting.facts.kind == TargetKind::Simulated;
    let skipped = if !setting.facts.writable {
        Some("the target is only read".to_string())
    } else if !made {
        Some("only in a directory can files be made in other states".to_string())
    } else {
        None
    };
    Design {
        id: "allocation",
        title: "Allocation",
        question: "What does it cost to write where nothing was written before?",
        cells: if skipped.is_some() { Vec::new() } else { cells },
        skipped,
        notes: setting.note(),
        figures: vec![FigureDesign {
            id: "allocation",
            title: "Writes by the state of the file's space",
            group: "allocation",
            x: Axis::RequestBytes,
            y: Axis::BytesPerS,
            half_power: false,
        }],
    }
}

/// Shifts off the natural place: a sector, half a page, a page, three pages (the 1997 study's), a partition start at sector 63.
const SHIFTS: [u64; 6] = [0, 512, 2048, 4096, 12 << 10, 32_256];

pub(crate) fn alignment(setting: &Setting) -> Design {
    let mut cells = Vec::new();
    let mut notes = setting.note();
    let align = if setting.direct() { u64::from(setting.facts.direct_align_bytes) } else { 1 };
    for shift in SHIFTS {
        if !shift.is_multiple_of(align) {
            notes.push(format!(
                "a shift of {} is no multiple of the {} that direct I/O takes here",
                units::show_size(shift),
                units::show_size(align)
            ));
            continue;
        }
        for way in setting.ways() {
            for (size, depth, rank) in [(4096u32, 1u32, Rank::Core), (65_536, 8, Rank::Core)] {
                if u64::from(size) < align {
                    continue;
                }
                let workload = Workload { offset_bytes: shift, pattern: workload::Pattern::Random, ..setting.deep(way, size, depth) };
                let series = format!("{}, {} x {depth}", way.name(), units::show_size(u64::from(size)));
                cells.push(Cell::new("alignment", series, shift as f64, workload, rank));
            }
        }
    }
    Design {
        id: "alignment",
        title: "Alignment",
        question: "What do requests lose that begin off the file system's block, the sector, the page or a partition's start?",
        skipped: None,
        notes,
        figures: vec![FigureDesign {
            id: "alignment",
            title: "Random requests by their shift",
            group: "alignment",
            x: Axis::OffsetBytes,
            y: Axis::BytesPerS,
            half_power: false,
        }],
        cells,
    }
}

pub(crate) fn location(setting: &Setting) -> Design {
    let size = setting.facts.size_bytes;
    let request = 256u32 << 10;
    let mut cells = Vec::new();
    let places = 9u64;
    let window = (size / 16 / u64::from(request)).max(1) * u64::from(request);
    for place in 0..places {
        let start = ((size - window.min(size)) / (places - 1) * place) / u64::from(request) * u64::from(request);
        let rank = if place % 2 == 0 { Rank::Core } else { Rank::Usual };
        for way in setting.ways() {
            let workload = Workload { region_start_bytes: start, region_bytes: Some(window), ..setting.deep(way, request, 1) };
            cells.push(Cell::new("location", way.name(), place as f64 / (places - 1) as f64, workload, rank));
        }
    }
    let skipped =
        (size < 64 * u64::from(request)).then(|| format!("{} are too few to tell places apart", units::show_size_rounded(size as f64)));
    Design {
        id: "location",
        title: "Location",
        question: "Is one end of the target faster than the other?",
        cells: if skipped.is_some() { Vec::new() } else { cells },
        skipped,
        notes: setting.note(),
        figures: vec![FigureDesign {
            id: "location",
            title: "256 KiB requests by position",
            group: "location",
            x: Axis::Position,
            y: Axis::BytesPerS,
            half_power: false,
        }],
    }
}
