//! Several targets combined as RAID 0.

use super::prelude::*;
use crate::found::NOTICEABLE;
use crate::grid::StripeShape;
use machine::units::KIB;
use std::collections::BTreeSet;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "stripe",
    "Striping",
    "How fast are several targets as RAID 0, relative to the sum of their single rates?",
    &[&MEMBERS, &ALONE, &BY_CHUNK, &BY_DEPTH],
    grid,
    conclude,
);

const CHUNK: u64 = 64 * KIB;

const CHUNKS: [(u64, Rank); 6] = [
    (4 * KIB, Rank::Core),
    (16 * KIB, Rank::Core),
    (64 * KIB, Rank::Core),
    (256 * KIB, Rank::Core),
    (1024 * KIB, Rank::Core),
    (4096 * KIB, Rank::Usual),
];

static MEMBERS: CurveSet = CurveSet::new(
    Axis::Members,
    3,
    &[FigureDesign::new(
        "stripe_members",
        "1 MiB requests, 8 outstanding, by the number of members",
        Axis::BytesPerS,
    )],
);

static ALONE: CurveSet = CurveSet::new(
    Axis::Members,
    3,
    &[FigureDesign::new("stripe_single", "Each member by itself", Axis::BytesPerS)],
);

static BY_CHUNK: CurveSet = CurveSet::new(
    Axis::ChunkBytes,
    3,
    &[FigureDesign::new(
        "stripe_chunk",
        "64 KiB requests, 8 outstanding, by stripe chunk",
        Axis::BytesPerS,
    )],
)
.with_half_power();

static BY_DEPTH: CurveSet = CurveSet::new(
    Axis::Depth,
    3,
    &[FigureDesign::new(
        "stripe_depth",
        "64 KiB requests on a 64 KiB chunk, by depth",
        Axis::BytesPerS,
    )],
)
.with_half_power();

fn members(op: OpKind) -> Curve {
    Curve::of(&MEMBERS, op)
}

fn alone(op: OpKind) -> Curve {
    Curve::variant(&ALONE, op, "each by itself")
}

fn by_chunk(op: OpKind) -> Curve {
    Curve::of(&BY_CHUNK, op)
}

fn by_depth(op: OpKind) -> Curve {
    Curve::of(&BY_DEPTH, op)
}

/// With exactly as many requests as members, one is often idle.
fn depths(count: u32) -> BTreeSet<u32> {
    [1, 2, 4, 8, 16, 32, count + 1].into()
}

fn grid(setting: &StudyContext) -> Grid {
    let count = setting.members;
    if count < 2 {
        return Grid::skipped("it needs several targets: name them all after the command");
    }
    if let Some(shared) = setting.facts.shared_by_members() {
        return Grid::skipped(format!(
            "the targets share {}, so they do not form a stripe",
            shared.name
        ));
    }
    if setting.facts.raid5.is_some() {
        return Grid::skipped(
            "the members of a RAID 5 set hold its parity: they are not measured individually, and the chunk is fixed",
        );
    }
    let mut grid = Grid::new(setting);
    let all = |chunk| Some(StripeShape { members: (0..count).collect(), chunk });
    for op in setting.ops() {
        for (chunk, rank) in CHUNKS.into_iter().filter(|(chunk, _)| *chunk >= setting.align()) {
            grid.add(by_chunk(op), chunk as f64, setting.deep(op, 65_536, 8), rank).shape =
                all(chunk);
        }
        for depth in depths(count) {
            let deep = setting.deep(op, 65_536, depth);
            grid.add(by_depth(op), depth, deep, Rank::Core).shape = all(CHUNK);
        }
        let mut large = |series, x, members| {
            let shape = StripeShape { members, chunk: CHUNK };
            grid.add(series, x, setting.deep(op, 1 << 20, 8), Rank::Core).shape = Some(shape);
        };
        for number in 1..=count {
            large(members(op), number, (0..number).collect());
        }
        for member in 0..count {
            large(alone(op), member + 1, vec![member]);
        }
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut conclusion = Conclusion::default();
    for op in OPS {
        let chunks = found.curve(&by_chunk(op));
        let depths = found.curve(&by_depth(op));
        conclusion.sentences.extend(share_of_sum(found, op));
        if let (Some(chunk), Some(depth)) = (smallest(&chunks, ENOUGH), smallest(&depths, ENOUGH)) {
            let count = found.setting.members;
            let formula = if depth.x == f64::from(count + 1) { ", N + 1" } else { "" };
            conclusion.sentences.push(format!(
                "For 64 KiB {op}s on {count} members a chunk of {} and {} outstanding{formula} suffice.",
                size(chunk.x),
                depth.x
            ));
        }
        if let (Some(worst), Some(best)) = (worst(&chunks), best(&chunks)) {
            let [best_size, worst_size] = [best.x, worst.x].map(size);
            let title = format!("Stripe {op}s in chunks of {best_size}, not {worst_size}");
            let setting = format!("stripe chunk {best_size}");
            conclusion.comparisons.push(Comparison::new(
                Change::Chunk,
                worst,
                best,
                title,
                setting,
            ));
        }
        let title =
            |depth: f64| format!("Keep {depth} {op}s of 64 KiB outstanding on the stripe, not one");
        conclusion.comparisons.extend(Comparison::of_depths(&depths, title));
    }
    conclusion
}

fn share_of_sum(found: &Found<'_>, op: OpKind) -> Option<String> {
    let alone = found.curve(&alone(op));
    let by_number = found.curve(&members(op));
    let together = by_number.last().filter(|together| together.x == alone.len() as f64)?;
    let sum: f64 = alone.iter().map(|reading| reading.y).sum();
    Some(format!(
        "{} reach {} on {} members, {} of the sum of their single rates{}.",
        plural(op),
        show_rate(together.y),
        together.x,
        percent(together.y / sum),
        knee(&by_number).map(|knee| format!(": {knee}")).unwrap_or_default()
    ))
}

/// `None` if each member adds something, or runs are too uneven.
fn knee(by_number: &[Reading]) -> Option<String> {
    let best = best(by_number)?;
    let filled = |one: &Reading| {
        one.y >= best.y * (1.0 - NOTICEABLE) && one.change_to(&best) == Effect::Nothing
    };
    let smallest = by_number.iter().position(filled)? + 1;
    let all = by_number.len();
    let every_number = by_number.iter().zip(1u32..).all(|(one, number)| one.x == f64::from(number));
    if smallest == all || !every_number {
        return None;
    }
    let (verb, it) = if smallest == 1 {
        ("member fills", "they would share")
    } else {
        ("members fill", "they share")
    };
    let rest = match all - smallest {
        1 => format!("the {} adds nothing", ordinal(all)),
        rest => format!("the other {} add nothing", count(rest)),
    };
    let rate = show_rate(by_number[smallest - 1].y);
    Some(format!("{} {verb} what {it} ({rate}); {rest}", count(smallest)))
}

fn count(number: usize) -> String {
    let words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    words.get(number - 1).map_or_else(|| number.to_string(), ToString::to_string)
}

fn ordinal(number: usize) -> String {
    let words = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
        "tenth",
    ];
    words.get(number - 1).map_or_else(|| "last".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rates` are in MiB/s, of one member, two, and so on.
    fn said(rates: &[f64], half_width: Option<f64>) -> Option<String> {
        let reading = |(point, &rate): (usize, &f64)| {
            let y = rate * (1u64 << 20) as f64;
            let interval_95 = half_width.map(|share| [y * (1.0 - share), y * (1.0 + share)]);
            Reading { x: point as f64 + 1.0, y, interval_95, exact: half_width.is_none(), point }
        };
        knee(&rates.iter().enumerate().map(reading).collect::<Vec<Reading>>())
    }

    #[test]
    fn the_knee_is_the_smallest_sufficient_stripe() {
        let three = "three members fill what they share (15.8 MiB/s); the fourth adds nothing";
        assert_eq!(said(&[6.65, 13.3, 15.8, 15.8], Some(0.02)).as_deref(), Some(three));
        // A simulated machine needs no interval.
        assert_eq!(said(&[6.65, 13.3, 15.8, 15.9], None).as_deref(), Some(three));
        let one = "one member fills what they would share (100 MiB/s); the other two add nothing";
        assert_eq!(said(&[100.0, 101.0, 99.0], Some(0.02)).as_deref(), Some(one));
        assert_eq!(said(&[6.65, 13.3, 20.0, 26.0], Some(0.02)), None, "each adds as much");
        assert_eq!(said(&[6.65, 13.3, 15.8, 15.8], Some(0.3)), None, "nobody knows");
    }
}
