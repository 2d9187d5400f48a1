//! Many requests at once: depth, mechanism, random, streams, stripe.

use crate::design::{Cell, Design, FigureDesign, Rank, Setting, Shape, Way};
use crate::result::Axis;
use machine::{Engine, units};
use workload::{Pattern, Workload};

/// Depths of the 1997 study (1, 3, 8) and what modern devices need beyond.
const DEPTHS: [(u32, Rank); 7] =
    [(1, Rank::Core), (3, Rank::Usual), (8, Rank::Core), (32, Rank::Core), (64, Rank::Rich), (128, Rank::Usual), (256, Rank::Rich)];

pub(crate) fn depth(setting: &Setting) -> Design {
    let mut cells = Vec::new();
    for way in setting.ways() {
        for (depth, depth_rank) in DEPTHS {
            for (size, rank) in setting.sizes() {
                let core = matches!(size, 4096 | 65_536 | 1_048_576);
                let rank = if core { depth_rank } else { rank.max(depth_rank).max(Rank::Usual) };
                let rank = if depth == 1 && setting.direct() { Rank::Core.max(rank) } else { rank };
                let workload = setting.deep(way, size, depth);
                cells.push(Cell::new(by_way(way, "depth_read", "depth_write"), format!("depth {depth}"), f64::from(size), workload, rank));
            }
        }
    }
    mechanisms(setting, &mut cells);
    let figure = |id, title, group, x, y| FigureDesign { id, title, group, x, y, half_power: true };
    let mut figures = vec![figure("depth_read", "Reading: request size x depth", "depth_read", Axis::RequestBytes, Axis::BytesPerS)];
    if setting.facts.writable {
        figures.push(figure("depth_write", "Writing: request size x depth", "depth_write", Axis::RequestBytes, Axis::BytesPerS));
    }
    figures.push(figure("mechanism", "Mechanisms: random reads of 4 KiB by depth", "mechanism", Axis::Depth, Axis::Iops));
    Design {
        id: "depth",
        title: "Request size and depth",
        question: "How many requests outstanding, how large, and by which mechanism?",
        skipped: None,
        notes: setting.note(),
        figures,
        cells,
    }
}

fn by_way(way: Way, read: &'static str, write: &'static str) -> &'static str {
    match way {
        Way::Read => read,
        Way::Write => write,
    }
}

/// The same random reads by each mechanism that is to be had.
fn mechanisms(setting: &Setting, cells: &mut Vec<Cell>) {
    let request = 4096.max(setting.facts.direct_align_bytes);
    let base = Workload { request_bytes: request, pattern: Pattern::Random, ..setting.base(Way::Read) };
    for &engine in &setting.engines {
        for (depth, rank) in DEPTHS {
            let depth_fits = engine.is_async() || engine == Engine::Threads;
            if (!depth_fits && depth > 1) || (engine == Engine::Threads && depth == 1) || depth > 128 {
                continue;
            }
            let workload = if engine == Engine::Mmap {
                // A mapping goes through the cache; dropped first, each touch is a read.
                let buffering = machine::Buffering::Buffered;
                let cache = if setting.facts.in_memory { machine::CacheState::AsIs } else { machine::CacheState::Cold };
                Workload { engine, buffering, cache, hint: machine::Hint::Random, ..base.clone() }
            } else {
                Workload { engine, depth, ..base.clone() }
            };
            cells.push(Cell::new("mechanism", engine.name(), f64::from(depth), workload, rank));
        }
    }
}

pub(crate) fn random(setting: &Setting) -> Design {
    let mut cells = Vec::new();
    let grid =
        [(1u32, 1u32, Rank::Core), (1, 4, Rank::Core), (2, 4, Rank::Usual), (4, 4, Rank::Core), (8, 4, Rank::Usual), (16, 4, Rank::Core)]
            .into_iter()
            .chain([(32, 4, Rank::Usual), (64, 4, Rank::Rich), (128, 4, Rank::Rich), (256, 4, Rank::Rich)]);
    for (threads, depth, rank) in grid {
        for way in setting.ways() {
            for size in [4096u32, 8192] {
                let request = size.max(setting.facts.direct_align_bytes);
                let rank = if size == 8192 { rank.max(Rank::Usual) } else { rank };
                let workload = Workload { pattern: Pattern::Random, threads, ..setting.deep(way, request, depth) };
                let series = format!("{}, {}", way.name(), units::show_size(u64::from(request)));
                cells.push(Cell::new("random", series, f64::from(threads * depth), workload, rank));
            }
        }
    }
    Design {
        id: "random",
        title: "Random access",
        question: "How many small random requests per second, as threads with 4 outstanding each are added?",
        skipped: None,
        notes: setting.note(),
        figures: vec![FigureDesign {
            id: "random",
            title: "Random requests, by requests outstanding",
            group: "random",
            x: Axis::Depth,
            y: Axis::Iops,
            half_power: true,
        }],
        cells,
    }
}

pub(crate) fn streams(setting: &Setting) -> Design {
    let mut cells = Vec::new();
    for (threads, rank) in [(1u32, Rank::Core), (2, Rank::Core), (4, Rank::Core), (8, Rank::Usual), (16, Rank::Core)] {
        for way in setting.ways() {
            let workload = Workload { threads, ..setting.deep(way, 65_536, 1) };
            cells.push(Cell::new("streams", way.name(), f64::from(threads), workload, rank));
        }
    }
    Design {
        id: "streams",
        title: "Competing streams",
        question: "What becomes of sequential streams when several compete?",
        skipped: None,
        notes: setting.note(),
        figures: vec![FigureDesign {
            id: "streams",
            title: "Sequential streams of 64 KiB requests together, by their number",
            group: "streams",
            x: Axis::Threads,
            y: Axis::BytesPerS,
            half_power: false,
        }],
        cells,
    }
}

pub(crate) fn stripe(setting: &Setting) -> Design {
    let members = setting.members;
    let all: Vec<u32> = (0..members).collect();
    let mut cells = Vec::new();
    if members > 1 {
        for way in setting.ways() {
            for (chunk, rank) in
                [(4u64, Rank::Core), (16, Rank::Core), (64, Rank::Core), (256, Rank::Core), (1024, Rank::Core), (4096, Rank::Usual)]
            {
                let chunk = chunk * units::KIB;
                let shape = Shape { members: all.clone(), chunk };
                if u64::from(setting.facts.direct_align_bytes) > chunk {
                    continue;
                }
                let workload = setting.deep(way, 65_536, 8);
                cells.push(Cell::new("stripe_chunk", way.name(), chunk as f64, workload, rank).shaped(shape));
            }
            for depth in [1u32, 2, 4, 8, 16, 32] {
                let shape = Shape { members: all.clone(), chunk: 64 * units::KIB };
                cells.push(
                    Cell::new("stripe_depth", way.name(), f64::from(depth), setting.deep(way, 65_536, depth), Rank::Core).shaped(shape),
                );
            }
            for count in 1..=members {
                let shape = Shape { members: (0..count).collect(), chunk: 64 * units::KIB };
                cells.push(
                    Cell::new("stripe_members", way.name(), f64::from(count), setting.deep(way, 1 << 20, 8), Rank::Core).shaped(shape),
                );
            }
            for member in 0..members {
                let shape = Shape { members: vec![member], chunk: 64 * units::KIB };
                let series = format!("{}, each alone", way.name());
                cells.push(
                    Cell::new("stripe_single", series, f64::from(member + 1), setting.deep(way, 1 << 20, 8), Rank::Core).shaped(shape),
                );
            }
        }
    }
    let figure = |id, title, group, x, half_power| FigureDesign { id, title, group, x, y: Axis::BytesPerS, half_power };
    Design {
        id: "stripe",
        title: "Striping",
        question: "What do several targets give together, as RAID 0, against the sum of each alone?",
        skipped: (members < 2).then(|| "it needs several targets: name them all after the command".into()),
        notes: setting.note(),
        figures: vec![
            figure("stripe_members", "1 MiB requests, 8 outstanding, by the number of members", "stripe_members", Axis::Members, false),
            figure("stripe_single", "Each member alone", "stripe_single", Axis::Members, false),
            figure("stripe_chunk", "64 KiB requests, 8 outstanding, by stripe chunk", "stripe_chunk", Axis::ChunkBytes, true),
            figure("stripe_depth", "64 KiB requests on a 64 KiB chunk, by depth", "stripe_depth", Axis::Depth, true),
        ],
        cells,
    }
}
