//! The cost of writing to unwritten space.

use super::prelude::*;
use machine::{Allocation, TargetKind};
use results::CurveName;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "allocation",
    "Allocation",
    "What does it cost to write to new space?",
    &[&BY_SIZE],
    grid,
    conclude,
);

const STATES: [Allocation; 4] =
    [Allocation::Written, Allocation::Reserved, Allocation::Extend, Allocation::Truncate];

const DEPTHS: [u32; 2] = [1, 8];

static BY_SIZE: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    1,
    &[FigureDesign::new("allocation", "Writes by the file's allocation", Axis::BytesPerS)],
);

fn curve(state: Allocation, depth: u32) -> Curve {
    let variant = CurveName::from(format!("depth {depth}")).ordered(depth);
    Curve { set: &BY_SIZE, name: variant.in_group(state.name()) }
}

/// Flushed at the end: the page cache hides the cost of growth.
fn buffered(state: Allocation) -> Curve {
    Curve::of(&BY_SIZE, format!("{}, buffered", state.name()))
}

/// Of the rate.
const NAMED: f64 = 0.01;

const BUFFERED_STATES: [Allocation; 2] = [Allocation::Written, Allocation::Extend];

fn grid(setting: &StudyContext) -> Grid {
    if !setting.facts.writable {
        return Grid::skipped("the target is only read");
    }
    if !matches!(
        setting.facts.kind,
        TargetKind::TestFile | TargetKind::Stripe | TargetKind::Simulated
    ) {
        return Grid::skipped("other allocation states need a directory as the target");
    }
    let mut grid = Grid::new(setting);
    for (size, rank) in [(4u32 << 10, Rank::Usual), (64 << 10, Rank::Core), (1 << 20, Rank::Core)] {
        if size < setting.facts.direct_align_bytes {
            continue;
        }
        for allocation in BUFFERED_STATES.into_iter().filter(|_| size < 1 << 20) {
            let write = setting.flushed_write(size);
            let workload = Workload {
                allocation,
                region_bytes: Some(setting.flushable(size)),
                limit_bytes: None,
                ..write
            };
            grid.add(buffered(allocation), size, workload, Rank::Usual).synced = true;
        }
        for allocation in STATES {
            for depth in DEPTHS {
                let deep = setting.deep(OpKind::Write, size, depth);
                let workload =
                    Workload { allocation, region_bytes: Some(setting.flushable(size)), ..deep };
                grid.add(curve(allocation, depth), size, workload, rank);
            }
        }
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let at = |state, depth| found.at(&curve(state, depth), 65_536);
    let mut comparisons = Vec::new();
    for depth in DEPTHS.into_iter().rev() {
        let Some(before) = at(Allocation::Extend, depth) else { continue };
        for (state, words, setting) in [
            (
                Allocation::Written,
                "Write into space that was written before",
                "preallocate the file, then overwrite it in place",
            ),
            (
                Allocation::Reserved,
                "Reserve a file's space before writing it",
                "fallocate to the final size first",
            ),
        ] {
            let Some(after) = at(state, depth) else { continue };
            let title = format!("{words}, do not extend it as you write (64 KiB, depth {depth})");
            comparisons.push(Comparison::new(Change::Allocation, before, after, title, setting));
        }
    }
    Conclusion {
        sentences: sentence(at).into_iter().chain(buffered_sentence(found)).collect(),
        comparisons,
        ..Conclusion::default()
    }
}

fn buffered_sentence(found: &Found<'_>) -> Option<String> {
    let at = |size: u32| {
        let [written, extend] = BUFFERED_STATES.map(|state| found.at(&buffered(state), size));
        let (written, extend) = (written?, extend?);
        // A small cost matters, too: such a file grows for as long as it is written.
        let sure = written.sure_change_to(&extend).filter(|change| change.abs() >= NAMED);
        let change = sure.map_or_else(|| written.change_to(&extend), Effect::By);
        Some((effect(change), show_size(u64::from(size))))
    };
    let start = "Through the page cache extending the file";
    Some(match (at(4096), at(65_536)) {
        (Some((small, size)), Some((large, other))) if small == large => {
            format!("{start} {small} ({size} and {other} requests).")
        }
        (Some((small, size)), Some((large, other))) => {
            format!("{start} {small} with {size} requests, and {large} with {other} ones.")
        }
        (Some((one, size)), None) | (None, Some((one, size))) => {
            format!("{start} {one} ({size} requests).")
        }
        (None, None) => return None,
    })
}

fn sentence(at: impl Fn(Allocation, u32) -> Option<Reading>) -> Option<String> {
    let mut said = Vec::new();
    at(Allocation::Written, DEPTHS[0]).or(at(Allocation::Written, DEPTHS[1]))?;
    let (mut same, mut unsure) = (0, 0);
    for (state, doing) in [
        (Allocation::Extend, "extending the file"),
        (Allocation::Truncate, "truncating it first"),
        (Allocation::Reserved, "writing reserved space"),
    ] {
        let effects: Vec<(String, u32)> = DEPTHS
            .into_iter()
            .filter_map(|depth| {
                let change = at(Allocation::Written, depth)?.change_to(&at(state, depth)?);
                match change {
                    Effect::By(_) => return Some((effect(change), depth)),
                    Effect::Nothing => same += 1,
                    Effect::Unsure => unsure += 1,
                }
                None
            })
            .collect();
        match effects.as_slice() {
            [] => {}
            [(one, _), (other, _)] if one == other => {
                said.push(format!("{doing} {one}, at any depth"))
            }
            several => {
                let each = several
                    .iter()
                    .map(|(effect, depth)| format!("{effect} with {depth} outstanding"));
                said.push(format!("{doing} {}", each.collect::<Vec<_>>().join(" and ")));
            }
        }
    }
    Some(match (said.is_empty(), same, unsure) {
        (true, 0, 0) => return None,
        (true, _, 0) => {
            "Overwriting, filling reserved space and extending the file are equally fast with 64 KiB writes.".into()
        }
        (true, ..) => format!("The cost of extending a file with 64 KiB writes is undecided: {UNEVEN}."),
        (false, ..) => {
            let said = said.join("; ");
            format!("{}{}, relative to overwriting with 64 KiB writes.", said[..1].to_uppercase(), &said[1..])
        }
    })
}
