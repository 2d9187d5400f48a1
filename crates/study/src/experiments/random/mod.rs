//! Small random requests, with a rising number of threads at depth four.

use super::prelude::*;
use crate::sentences::per_second;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "random",
    "Random access",
    "How does the rate of small random requests grow with the number of threads, each at depth 4?",
    &[&BY_DEPTH],
    grid,
    conclude,
);

const STEPS: [(u32, u32, Rank); 10] = [
    (1, 1, Rank::Core),
    (1, 4, Rank::Core),
    (2, 4, Rank::Usual),
    (4, 4, Rank::Core),
    (8, 4, Rank::Usual),
    (16, 4, Rank::Core),
    (32, 4, Rank::Usual),
    (64, 4, Rank::Rich),
    (128, 4, Rank::Rich),
    (256, 4, Rank::Rich),
];

static BY_DEPTH: CurveSet = CurveSet::new(
    Axis::Depth,
    1,
    &[FigureDesign::new("random", "Random requests, by requests outstanding", Axis::Iops)],
)
.with_half_power();

fn curve(op: OpKind, request: u32) -> Curve {
    Curve::variant(&BY_DEPTH, op, show_size(u64::from(request))).ordered(request)
}

/// Database pages, or the target's sector if larger.
fn sizes(setting: &StudyContext) -> Vec<(u32, Rank)> {
    let mut sizes = [(4096, Rank::Core), (8192, Rank::Usual)]
        .map(|(size, rank): (u32, Rank)| (size.max(setting.facts.direct_align_bytes), rank))
        .to_vec();
    sizes.dedup_by_key(|(size, _)| *size);
    sizes
}

fn grid(setting: &StudyContext) -> Grid {
    let mut grid = Grid::new(setting);
    for (threads, depth, rank) in STEPS {
        for op in setting.ops() {
            for (size, size_rank) in sizes(setting) {
                let deep = setting.deep(op, size, depth);
                let workload = Workload { pattern: Pattern::Random, threads, ..deep };
                grid.add(curve(op, size), threads * depth, workload, rank.max(size_rank));
            }
        }
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut conclusion = Conclusion::default();
    for op in OPS {
        for (number, (request, _)) in sizes(found.setting).into_iter().enumerate() {
            let of_size = curve(op, request);
            let readings = found.curve(&of_size);
            if number == 0 {
                conclusion.sentences.extend(sentence(op, request, &readings));
            }
            let title = |depth| {
                format!("Keep {depth} random requests outstanding, not one ({})", of_size.name)
            };
            conclusion.comparisons.extend(Comparison::of_depths(&readings, title));
        }
    }
    conclusion
}

fn sentence(op: OpKind, request: u32, curve: &[Reading]) -> Option<String> {
    let (one, good) = (curve.first()?, smallest(curve, ENOUGH)?);
    let subject = format!("{} of {}", plural(op), show_size(u64::from(request)));
    let rate = |reading: &Reading| per_second(reading.y);
    let max = curve.last()?;
    // The largest measured depth may still be below the optimum.
    let beyond = if good.x < max.x {
        format!("keeping more gains {}", beyond(&good, curve))
    } else {
        "more were not tried".into()
    };
    Some(match one.change_to(&good) {
        Effect::By(more) if good.x > one.x => format!(
            "{subject} reach {} with {} outstanding, {} what one at a time gets; {beyond}.",
            rate(&good),
            good.x,
            times(more + 1.0)
        ),
        Effect::Unsure if good.x > one.x => {
            format!(
                "{subject} seem to gain up to {} outstanding ({}), but {UNEVEN}.",
                good.x,
                rate(&good)
            )
        }
        _ => format!(
            "{subject} reach {} one at a time; keeping more outstanding gains nothing.",
            rate(one)
        ),
    })
}

fn beyond(good: &Reading, curve: &[Reading]) -> String {
    let deeper: Vec<Reading> = curve.iter().copied().filter(|reading| reading.x > good.x).collect();
    let gain = best(&deeper).and_then(|best| good.change_to(&best).gain());
    gain.map_or("nothing".into(), percent)
}
