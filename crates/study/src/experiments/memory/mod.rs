//! The speed of memory, and of a file in the page cache.

use super::prelude::*;
use machine::{MemoryKind, MemoryUse};

pub(super) static EXPERIMENT: Experiment = Experiment {
    needs_memory: true,
    ..Experiment::new(
        "memory",
        "Memory and page cache",
        "How fast is memory, and a file in the page cache? That is the ceiling of buffered I/O.",
        &[&RESIDENT],
        grid,
        conclude,
    )
};

static RESIDENT: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    3,
    &[FigureDesign::new("memory", "A file in the page cache, by request size", Axis::BytesPerS)],
)
.with_half_power();

fn resident(op: OpKind) -> Curve {
    Curve::of(&RESIDENT, format!("resident file, {op}"))
}

fn grid(setting: &StudyContext) -> Grid {
    let mut grid = Grid::default();
    for op in setting.ops() {
        for (size, rank) in setting.sizes() {
            let Some(workload) = setting.resident(op, size) else { continue };
            let core = matches!(size, 4096 | 65_536 | 1_048_576);
            grid.add(
                resident(op),
                size,
                workload,
                if core { Rank::Core } else { rank.max(Rank::Usual) },
            );
        }
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut sentences = Vec::new();
    match found.memory {
        Ok(rates) => sentences.extend(copies(rates)),
        Err(why) => sentences.push(format!("Memory could not be measured: {why}.")),
    }
    for (op, subject) in [(OpKind::Read, "Page-cache reads"), (OpKind::Write, "Page-cache writes")]
    {
        sentences.extend(reach(subject, &found.curve(&resident(op)), show_rate));
    }
    let reads = found.curve(&resident(OpKind::Read));
    Conclusion {
        sentences,
        comparisons: Comparison::of_sizes(&reads, "Read from the page cache").into_iter().collect(),
        memory: found.memory.as_ref().cloned().unwrap_or_default(),
        ..Conclusion::default()
    }
}

fn copies(rates: &[MemoryUse]) -> Option<String> {
    let mut copies: Vec<(u32, f64)> = rates
        .iter()
        .filter(|one| one.kind == MemoryKind::Copy)
        .filter_map(|one| Some((one.threads, one.mean_bytes_per_s()?)))
        .collect();
    copies.sort_by_key(|(threads, _)| *threads);
    let (first, last) = (copies.first()?, copies.last()?);
    let all = if last.0 > first.0 {
        format!(", {} threads at {}", last.0, show_rate(last.1))
    } else {
        String::new()
    };
    Some(format!("One thread copies memory at {}{all}.", show_rate(first.1)))
}
