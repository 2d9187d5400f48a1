//! Requests through the page cache, one at a time.

mod phases;

use super::prelude::*;
use super::unbuffered;
use machine::{Buffering, CacheState, Hint};

pub(super) static EXPERIMENT: Experiment = Experiment {
    refines: true,
    ..Experiment::new(
        "buffered",
        "Out of the box",
        "How fast is a simple program that reads and writes through the page cache, one request at a time?",
        &[&BY_SIZE],
        grid,
        conclude,
    )
};

static BY_SIZE: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    0,
    &[
        FigureDesign::new("buffered", "Buffered synchronous I/O, by request size", Axis::BytesPerS),
        FigureDesign::new(
            "buffered_cost",
            "Processor time per MiB of buffered synchronous I/O, by request size",
            Axis::CpuNsPerMib,
        ),
    ],
)
.with_half_power();

pub(crate) const COLD: Curve = Curve::in_group(&BY_SIZE, "read", "cold");
pub(crate) const HINTED: Curve = Curve::in_group(&BY_SIZE, "read", "cold, sequential hint");
pub(crate) const WARM: Curve = Curve::in_group(&BY_SIZE, "read", "warm");
pub(crate) const RETURNED: Curve = Curve::in_group(&BY_SIZE, "write", "to the last return");
pub(crate) const SYNCED: Curve = Curve::in_group(&BY_SIZE, "write", "to stable storage");
const HINTED_WRITE: Curve =
    Curve::in_group(&BY_SIZE, "write", "to stable storage, sequential hint");
pub(crate) const REWRITTEN: Curve = Curve::in_group(&BY_SIZE, "write", "warm");
const THROUGH: Curve = Curve::in_group(&BY_SIZE, "write-through", "each on stable storage");

/// The published request size.
const USUAL: u32 = 65_536;

/// Write-through is the slowest way to write.
const THROUGH_SIZES: [u32; 3] = [4096, USUAL, 1 << 20];

fn grid(setting: &StudyContext) -> Grid {
    let mut grid = Grid::default();
    let read = Workload {
        buffering: Buffering::Buffered,
        cache: CacheState::Cold,
        ..setting.base(OpKind::Read)
    };
    for (size, rank) in setting.sizes() {
        if !setting.facts.in_memory {
            let cold = Workload { request_bytes: size, ..read.clone() };
            let hinted = Workload { hint: Hint::Sequential, ..cold.clone() };
            grid.add(COLD, size, cold, rank);
            let of_hint = if size == 65_536 { Rank::Core } else { Rank::Usual };
            grid.add(HINTED, size, hinted, rank.max(of_hint));
        }
        if let Some(warm) = setting.resident(OpKind::Read, size) {
            grid.add(WARM, size, warm, rank);
        }
        if setting.facts.writable {
            let write = setting.flushed_write(size);
            grid.add(RETURNED, size, write.clone(), rank);
            if let Some(warm) = setting.resident(OpKind::Write, size).filter(|_| size == USUAL) {
                grid.add(REWRITTEN, size, warm, Rank::Usual);
            }
            if size == USUAL && !setting.facts.in_memory {
                let hinted = Workload { hint: Hint::Sequential, ..write.clone() };
                grid.add(HINTED_WRITE, size, hinted, Rank::Usual).synced = true;
            }
            if THROUGH_SIZES.contains(&size) && !setting.facts.in_memory {
                let through = Workload {
                    buffering: Buffering::BufferedDsync,
                    limit_bytes: None,
                    sync_at_end: false,
                    ..write.clone()
                };
                grid.add(THROUGH, size, through, Rank::Usual);
            }
            grid.add(SYNCED, size, write, rank).synced = true;
        }
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let writes = found.cells(&RETURNED).into_iter().find(|(cell, _)| cell.x == 65_536.0);
    Conclusion {
        sentences: sentences(found),
        comparisons: comparisons(found),
        figures: writes
            .and_then(|(_, point)| phases::figure(&found.entries[point]))
            .into_iter()
            .collect(),
        ..Conclusion::default()
    }
}

fn sentences(found: &Found<'_>) -> Vec<String> {
    let [cold, warm] = [&COLD, &WARM].map(|curve| found.curve(curve));
    let mut said: Vec<String> = reach("Cold reads", &cold, show_rate).into_iter().collect();
    if let (Some(plain), Some(hinted)) = (found.at(&COLD, 65_536), found.at(&HINTED, 65_536)) {
        said.push(match plain.change_to(&hinted) {
            Effect::Unsure => format!("Whether the sequential hint helps is undecided: {UNEVEN}."),
            change => format!("The sequential hint {} (64 KiB).", effect(change)),
        });
    }
    if let (Some(cold), Some(warm)) = (best(&cold), best(&warm)) {
        said.push(match cold.change_to(&warm) {
            Effect::By(more) if more > 0.0 => {
                format!(
                    "A file in the cache reads {} as fast ({}).",
                    times(more + 1.0),
                    show_rate(warm.y)
                )
            }
            Effect::Unsure => {
                format!("Whether a file in the cache reads faster is undecided: {UNEVEN}.")
            }
            _ => "A file in the cache reads no faster.".into(),
        });
    }
    said.extend(against_direct(OpKind::Read, &cold, &found.curve(&unbuffered::READ)));
    let synced = found.curve(&SYNCED);
    said.extend(against_direct(OpKind::Write, &synced, &found.curve(&unbuffered::WRITE)));
    let [returned, synced] = [best(&found.curve(&RETURNED)), best(&synced)];
    if let (Some(returned), Some(synced)) = (returned, synced) {
        said.push(format!(
            "Writes return at up to {}, and reach stable storage at up to {}.",
            show_rate(returned.y),
            show_rate(synced.y)
        ));
    }
    said.extend(hinted_writes(found));
    said.extend(through(found));
    said.extend(temporary(found));
    said.extend(processor(found));
    said
}

fn hinted_writes(found: &Found<'_>) -> Option<String> {
    let change = found.at(&SYNCED, USUAL)?.change_to(&found.at(&HINTED_WRITE, USUAL)?);
    Some(match change {
        Effect::Unsure => format!("Whether the hint helps writes is undecided: {UNEVEN}."),
        change => format!("For writes the hint {} ({}).", effect(change), size(f64::from(USUAL))),
    })
}

fn through(found: &Found<'_>) -> Option<String> {
    let (synced, through) = (found.at(&SYNCED, USUAL)?, found.at(&THROUGH, USUAL)?);
    let rate = format!(
        "Write-through reaches {} with {} requests",
        show_rate(through.y),
        size(f64::from(USUAL))
    );
    Some(match through.change_to(&synced) {
        Effect::By(more) if more > 0.0 => {
            format!(
                "{rate}; writes that are flushed once at the end are {} as fast.",
                times(more + 1.0)
            )
        }
        Effect::Unsure => format!("{rate}; whether that is slower is undecided, {UNEVEN}."),
        _ => format!("{rate}, as fast as writes that are flushed once at the end."),
    })
}

fn temporary(found: &Found<'_>) -> Option<String> {
    let (write, read) = (found.at(&REWRITTEN, USUAL)?, found.at(&WARM, USUAL)?);
    Some(format!(
        "A temporary file that stays in the cache is written at {} and read at {} ({}).",
        show_rate(write.y),
        show_rate(read.y),
        size(f64::from(USUAL))
    ))
}

fn processor(found: &Found<'_>) -> Option<String> {
    let at = |curve: &Curve| {
        let readings = found.curve_by(curve, Axis::CpuNsPerMib);
        readings.into_iter().find(|reading| reading.x == f64::from(USUAL))
    };
    let of = |(op, through, past): (OpKind, &Curve, &Curve)| {
        let direct = at(past)
            .map(|past| format!(", one of direct {op}s {}", show_time(past.y)))
            .unwrap_or_default();
        let through = show_time(at(through)?.y);
        Some(format!("a MiB of buffered {op}s takes {through} of the processor{direct}"))
    };
    let all =
        [(OpKind::Read, &COLD, &unbuffered::READ), (OpKind::Write, &SYNCED, &unbuffered::WRITE)];
    let said: Vec<String> = all.into_iter().filter_map(of).collect();
    let size = size(f64::from(USUAL));
    (!said.is_empty()).then(|| format!("With {size} requests {}.", said.join("; ")))
}

fn against_direct(op: OpKind, buffered: &[Reading], direct: &[Reading]) -> Option<String> {
    let pairs: Vec<(Reading, Reading)> = buffered
        .iter()
        .filter_map(|one| Some((*one, *direct.iter().find(|other| other.x == one.x)?)))
        .filter(|(one, _)| one.x >= 4096.0)
        .collect();
    let gain = |a: &Reading, b: &Reading| a.change_to(b).gain();
    let of_cache: Vec<(f64, f64)> =
        pairs.iter().map_while(|(one, other)| Some((one.x, gain(other, one)?))).collect();
    let of_direct: Vec<(f64, f64)> =
        pairs.iter().rev().map_while(|(one, other)| Some((one.x, gain(one, other)?))).collect();
    let times = |gain: f64| times(gain + 1.0);
    let small = match of_cache[..] {
        [] => None,
        [(at, gain)] => Some(format!(
            "at {} buffered {op}s are {} as fast as direct ones one at a time",
            size(at),
            times(gain)
        )),
        [(first, gain), .., (last, _)] => Some(format!(
            "up to {} buffered {op}s beat direct ones one at a time: {} as fast at {}",
            size(last),
            times(gain),
            size(first)
        )),
    };
    let large = match of_direct[..] {
        [] => None,
        [(at, gain)] => Some(format!("at {} direct ones are {} as fast", size(at), times(gain))),
        [(last, gain), .., (first, _)] => Some(format!(
            "from {} on direct ones win: {} as fast at {}",
            size(first),
            times(gain),
            size(last)
        )),
    };
    let said = match (small, large) {
        (None, None) => return None,
        (Some(small), Some(large)) => format!("{small}; {large}"),
        (Some(one), None) => one,
        (None, Some(large)) => {
            large.replacen("direct ones", &format!("direct {op}s one at a time"), 1)
        }
    };
    Some(format!("{}{}.", said[..1].to_uppercase(), &said[1..]))
}

fn comparisons(found: &Found<'_>) -> Vec<Comparison> {
    let mut pairs: Vec<Comparison> =
        Comparison::of_sizes(&found.curve(&COLD), "Read through the page cache")
            .into_iter()
            .collect();
    let [cold, hinted] = [COLD, HINTED].map(|curve| found.at(&curve, 65_536));
    if let (Some(cold), Some(direct)) = (cold, found.at(&unbuffered::READ, 65_536)) {
        let (before, after, title, setting) = if direct.y > cold.y {
            let title =
                "Read past the page cache: single sequential reads of 64 KiB are faster direct";
            (cold, direct, title, "direct reads (O_DIRECT)")
        } else {
            let title = "Let the page cache read ahead: single sequential reads are faster buffered than direct";
            (direct, cold, title, "buffered reads")
        };
        pairs.push(Comparison::new(Change::Cache, before, after, title, setting));
    }
    let writes = [SYNCED, HINTED_WRITE].map(|curve| found.at(&curve, USUAL));
    if let [Some(plain), Some(hinted)] = writes {
        let title = "Tell the page cache that you write sequentially";
        let setting = "open the file with a sequential hint (FILE_FLAG_SEQUENTIAL_SCAN)";
        pairs.push(Comparison::new(Change::Cache, plain, hinted, title, setting));
    }
    if let (Some(cold), Some(hinted)) = (cold, hinted) {
        let title = "Tell the page cache that you read sequentially";
        pairs.push(Comparison::new(
            Change::Cache,
            cold,
            hinted,
            title,
            "posix_fadvise(POSIX_FADV_SEQUENTIAL)",
        ));
    }
    pairs
}
