//! Competing sequential streams.

use super::prelude::*;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "streams",
    "Competing streams",
    "How do several sequential streams share the target?",
    &[&BY_COUNT],
    grid,
    conclude,
);

const COUNTS: [(u32, Rank); 5] =
    [(1, Rank::Core), (2, Rank::Core), (4, Rank::Core), (8, Rank::Usual), (16, Rank::Core)];

static BY_COUNT: CurveSet = CurveSet::new(
    Axis::Threads,
    2,
    &[FigureDesign::new(
        "streams",
        "Sequential streams of 64 KiB requests together, by their number",
        Axis::BytesPerS,
    )],
);

fn curve(op: OpKind) -> Curve {
    Curve::of(&BY_COUNT, op)
}

fn grid(setting: &StudyContext) -> Grid {
    let mut grid = Grid::new(setting);
    for (threads, rank) in COUNTS {
        for op in setting.ops() {
            grid.add(curve(op), threads, Workload { threads, ..setting.deep(op, 65_536, 1) }, rank);
        }
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let say = |op: OpKind| {
        let curve = found.curve(&curve(op));
        let (one, max) = (curve.first()?, curve.last()?);
        let together = format!("{}: {} streams together get", plural(op), max.x);
        let rates = format!("{} against {}", show_rate(max.y), show_rate(one.y));
        let sentence = match one.change_to(max) {
            Effect::By(more) if more >= 1.0 => {
                format!("{together} {} what one gets ({rates}).", times(more + 1.0))
            }
            Effect::By(more) if more > 0.0 => {
                format!("{together} {} more than one ({rates}).", percent(more))
            }
            Effect::By(less) => {
                format!(
                    "{together} {} less than one: they disturb each other ({rates}).",
                    percent(-less)
                )
            }
            Effect::Nothing => {
                format!("{together} as much as one ({}), and share it.", show_rate(max.y))
            }
            Effect::Unsure => {
                format!("{together} {}, one {}: {UNEVEN}.", show_rate(max.y), show_rate(one.y))
            }
        };
        (max.x > one.x).then_some(sentence)
    };
    Conclusion { sentences: OPS.into_iter().filter_map(say).collect(), ..Conclusion::default() }
}
