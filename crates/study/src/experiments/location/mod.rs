//! Speed at the ends of the target.

use super::prelude::*;
use machine::units::show_size_rounded;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "location",
    "Location",
    "Is one end of the target faster than the other?",
    &[&BY_POSITION],
    grid,
    conclude,
);

const POSITIONS: u64 = 9;

const REQUEST: u32 = 256 << 10;

static BY_POSITION: CurveSet = CurveSet::new(
    Axis::Position,
    3,
    &[FigureDesign::new("location", "256 KiB requests by position", Axis::BytesPerS)],
);

fn curve(op: OpKind) -> Curve {
    Curve::of(&BY_POSITION, op)
}

fn grid(setting: &StudyContext) -> Grid {
    let (size, request) = (setting.facts.size_bytes, u64::from(REQUEST));
    if size < 64 * request {
        let size = show_size_rounded(size as f64);
        return Grid::skipped(format!("{size} are too small to distinguish positions"));
    }
    let mut grid = Grid::new(setting);
    let window = (size / 16 / request).max(1) * request;
    for position in 0..POSITIONS {
        let start = ((size - window) / (POSITIONS - 1) * position) / request * request;
        let rank = if position % 2 == 0 { Rank::Core } else { Rank::Usual };
        for op in setting.ops() {
            let deep = setting.deep(op, REQUEST, 1);
            let workload =
                Workload { region_start_bytes: start, region_bytes: Some(window), ..deep };
            grid.add(curve(op), position as f64 / (POSITIONS - 1) as f64, workload, rank);
        }
    }
    grid
}

pub(crate) fn ends(found: &Found<'_>, op: OpKind) -> Option<[usize; 2]> {
    let curve = found.curve(&curve(op));
    let [start, end] = [curve.first()?, curve.last()?];
    (start.x == 0.0 && end.x == 1.0).then_some([start.point, end.point])
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let (mut sentences, mut alike, mut unsure) = (Vec::new(), Vec::new(), Vec::new());
    for op in OPS {
        let curve = found.curve(&curve(op));
        let (Some(start), Some(end)) = (curve.first(), curve.last()) else { continue };
        match start.change_to(end) {
            Effect::By(change) => sentences.push(format!(
                "{} are {} {} at the end than at the start ({} against {}).",
                plural(op),
                percent(change.abs()),
                if change < 0.0 { "slower" } else { "faster" },
                show_rate(end.y),
                show_rate(start.y)
            )),
            Effect::Nothing => alike.push(op),
            Effect::Unsure => unsure.push(op),
        }
    }
    if !alike.is_empty() {
        sentences.push(format!("{} are as fast at the end as at the start.", together(&alike)));
    }
    if !unsure.is_empty() {
        let ops = together(&unsure).to_lowercase();
        sentences.push(format!("Whether {ops} are slower at one end is undecided: {UNEVEN}."));
    }
    Conclusion { sentences, ..Conclusion::default() }
}
