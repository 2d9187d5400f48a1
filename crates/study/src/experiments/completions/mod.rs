//! Reaping several completions at a time, and polling.

use super::prelude::*;
use machine::{Reap, TargetKind};

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "completions",
    "Completions at a time",
    "Does it pay to wait for several completions at a time, or to poll before sleeping?",
    &[&BY_COMPLETIONS, &POLLING],
    grid,
    conclude,
);

/// A depth of which half at once is worth waiting for.
const DEPTH: u32 = 32;

const COMPLETIONS: [(u32, Rank); 4] =
    [(1, Rank::Core), (4, Rank::Usual), (8, Rank::Core), (16, Rank::Usual)];

static BY_COMPLETIONS: CurveSet = CurveSet::new(
    Axis::Completions,
    4,
    &[FigureDesign::new(
        "completions",
        "Random requests, by completions waited for at a time",
        Axis::Iops,
    )],
);

static POLLING: CurveSet = CurveSet::new(
    Axis::Completions,
    5,
    &[FigureDesign::new(
        "polling",
        "Random requests of a program that polls for each completion",
        Axis::Iops,
    )],
);

fn curve(op: OpKind) -> Curve {
    Curve::of(&BY_COMPLETIONS, op)
}

fn polling(op: OpKind) -> Curve {
    Curve::variant(&POLLING, op, "polled")
}

fn grid(setting: &StudyContext) -> Grid {
    if setting.facts.kind == TargetKind::Simulated {
        return Grid::skipped("the simulated processor takes each completion as it comes");
    }
    if !setting.deep_engine().is_async() {
        return Grid::skipped("it needs io_uring or libaio, and this kernel offers neither");
    }
    let mut grid = Grid::new(setting);
    let request = setting.facts.direct_align_bytes.max(4096);
    let waiting =
        |op, reap| Workload { pattern: Pattern::Random, reap, ..setting.deep(op, request, DEPTH) };
    for (completions, rank) in COMPLETIONS {
        for op in setting.ops() {
            grid.add(curve(op), completions, waiting(op, Reap::AtLeast(completions)), rank);
        }
    }
    for op in setting.ops() {
        grid.add(polling(op), 1, waiting(op, Reap::Poll), Rank::Usual);
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut conclusion = Conclusion::default();
    let (mut waiting, mut polled_ops) = (Vec::new(), Vec::new());
    for op in OPS {
        let series = curve(op);
        let readings = found.curve(&series);
        let (Some(one), Some(best)) = (readings.first(), best(&readings)) else { continue };
        waiting.push((
            op,
            match one.change_to(&best) {
                Effect::By(more) if more > 0.0 => {
                    format!(
                        "gain {} from waiting for {} completions at a time",
                        percent(more),
                        best.x
                    )
                }
                Effect::Unsure => {
                    format!("may gain from waiting for several completions at a time: {UNEVEN}")
                }
                _ => "gain nothing from waiting for several completions at a time".into(),
            },
        ));
        let title = format!("Wait for {} completions at a time ({})", best.x, series.name);
        let setting =
            format!("min_complete {} (io_uring_enter), or min_nr {0} (io_getevents)", best.x);
        conclusion.comparisons.push(Comparison::new(
            Change::Completions,
            *one,
            best,
            title,
            setting,
        ));
        let Some(&polled) = found.curve(&polling(op)).first() else { continue };
        polled_ops.push((
            op,
            match one.change_to(&polled) {
                Effect::By(more) if more > 0.0 => {
                    format!("gain {} from polling, which keeps a processor busy", percent(more))
                }
                Effect::Unsure => format!("may gain from polling: {UNEVEN}"),
                _ => "gain nothing from polling".into(),
            },
        ));
        let title = format!("Poll for completions before sleeping ({})", series.name);
        let setting = "poll the completion queue for 100 us before a sleep".to_owned();
        conclusion.comparisons.push(Comparison::new(
            Change::Completions,
            *one,
            polled,
            title,
            setting,
        ));
    }
    conclusion.sentences = statements(waiting);
    conclusion.sentences.extend(statements(polled_ops));
    if let Some(first) = conclusion.sentences.first_mut() {
        *first = format!("With {DEPTH} outstanding, {}{}", first[..1].to_lowercase(), &first[1..]);
    }
    conclusion
}
