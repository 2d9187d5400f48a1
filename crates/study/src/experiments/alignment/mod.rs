//! The loss of requests off the boundaries below.

use super::prelude::*;
use machine::TargetFacts;
use machine::units::MIB;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "alignment",
    "Alignment",
    "What does misalignment cost, off the file system's block, the sector, the page, the partition or the stripe's chunk?",
    &[&BY_SHIFT, &BY_SIZE],
    grid,
    conclude,
);

/// A sector, half a page, a page, three pages (the 1997 study's), a partition start at sector 63;
/// on a stripe also before a chunk's end.
const SHIFTS: [u32; 6] = [0, 512, 2048, 4096, 12 << 10, 32_256];

const PUBLISHED: u32 = 12 << 10;

const REQUESTS: [(u32, u32); 2] = [(4096, 1), (65_536, 8)];

const SIZES: [(u32, Rank); 6] = [
    (8 << 10, Rank::Usual),
    (16 << 10, Rank::Usual),
    (32 << 10, Rank::Rich),
    (64 << 10, Rank::Core),
    (128 << 10, Rank::Usual),
    (192 << 10, Rank::Rich),
];
const DEPTH: u32 = 3;

/// The best of several is too good by chance: its interval counts this much wider.
const CHOSEN: f64 = 1.5;

static BY_SHIFT: CurveSet = CurveSet::new(
    Axis::OffsetBytes,
    3,
    &[FigureDesign::new("alignment", "Random requests by their shift", Axis::BytesPerS)],
);

static BY_SIZE: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    3,
    &[FigureDesign::new(
        "alignment_by_size",
        "Sequential requests, 3 outstanding, by size, on the chunk and off it",
        Axis::BytesPerS,
    )],
);

fn curve(op: OpKind, request: u32, depth: u32) -> Curve {
    Curve::variant(&BY_SHIFT, op, format!("{} x {depth}", show_size(u64::from(request))))
}

fn by_size(op: OpKind, shift: u32) -> Curve {
    let from = match shift {
        0 => "from the start".to_owned(),
        _ => format!("{} after it", show_size(u64::from(shift))),
    };
    Curve::variant(&BY_SIZE, op, from)
}

fn chunk(facts: &TargetFacts) -> Option<u32> {
    let below = || facts.layers.iter().find_map(|layer| layer.facts.array.as_ref()?.chunk_bytes);
    let own = facts.chunk_bytes.filter(|_| facts.shared_by_members().is_none());
    let chunk = own.or_else(below)?;
    (2 * u64::from(PUBLISHED)..=MIB).contains(&chunk).then_some(chunk as u32)
}

fn shifts(facts: &TargetFacts) -> Vec<u32> {
    let mut shifts = SHIFTS.to_vec();
    if let Some(chunk) = chunk(facts) {
        shifts.extend(SHIFTS.iter().filter(|shift| **shift > 0).map(|shift| chunk - shift % chunk));
        shifts.extend([chunk / 4, chunk / 2]);
        shifts.sort_unstable();
        shifts.dedup();
    }
    shifts
}

fn published(facts: &TargetFacts) -> Vec<u32> {
    chunk(facts).map_or(Vec::new(), |chunk| vec![0, PUBLISHED, chunk - PUBLISHED])
}

fn grid(setting: &StudyContext) -> Grid {
    let mut grid = Grid::new(setting);
    let align = if setting.direct() { setting.facts.direct_align_bytes } else { 1 };
    for shift in shifts(&setting.facts) {
        if !shift.is_multiple_of(align) {
            let [shift, align] = [shift, align].map(|bytes| show_size(u64::from(bytes)));
            grid.notes.push(format!(
                "a shift of {shift} is not a multiple of {align}, which direct I/O needs here"
            ));
            continue;
        }
        for op in setting.ops() {
            for (request, depth) in REQUESTS.into_iter().filter(|(request, _)| *request >= align) {
                let deep = setting.deep(op, request, depth);
                let workload =
                    Workload { offset_bytes: u64::from(shift), pattern: Pattern::Random, ..deep };
                grid.add(curve(op, request, depth), shift, workload, Rank::Core);
            }
        }
    }
    let sizes = || SIZES.into_iter().filter(|(size, _)| size.is_multiple_of(align));
    for shift in published(&setting.facts).into_iter().filter(|shift| shift.is_multiple_of(align)) {
        for op in setting.ops() {
            for (size, rank) in sizes() {
                let deep = setting.deep(op, size, DEPTH);
                let workload = Workload { offset_bytes: u64::from(shift), ..deep };
                grid.add(by_size(op, shift), size, workload, rank);
            }
        }
    }
    grid
}

fn chosen(reading: &Reading) -> Reading {
    let wider = |end: f64| reading.y + (end - reading.y) * CHOSEN;
    Reading { interval_95: reading.interval_95.map(|ends| ends.map(wider)), ..*reading }
}

fn aligned(readings: &[Reading]) -> Option<Reading> {
    let start = readings.iter().copied().find(|reading| reading.x == 0.0)?;
    let best = best(readings)?;
    let gain = chosen(&start).change_to(&chosen(&best)).gain();
    Some(if gain.is_some() { best } else { start })
}

fn distance(from: f64, to: f64, chunk: Option<u32>) -> f64 {
    let Some(chunk) = chunk.map(f64::from) else { return (to - from).abs() };
    let after = (to - from).rem_euclid(chunk);
    after.min(chunk - after)
}

struct Case {
    name: String,
    who: String,
    readings: Vec<Reading>,
}

fn cases(found: &Found<'_>) -> Vec<Case> {
    let mut cases = Vec::new();
    for op in OPS {
        for (request, depth) in REQUESTS {
            let series = curve(op, request, depth);
            let request = show_size(u64::from(request));
            cases.push(Case {
                readings: found.curve(&series),
                name: series.name.to_string(),
                who: match depth {
                    1 => format!("{op}s of {request}"),
                    _ => format!("{depth} {op}s of {request}"),
                },
            });
        }
        cases.push(Case {
            name: format!("sequential {op}s, 64 KiB x {DEPTH}"),
            who: format!("{DEPTH} sequential {op}s of 64 KiB"),
            readings: by_offset(found, op, 64 << 10),
        });
    }
    cases
}

fn by_offset(found: &Found<'_>, op: OpKind, bytes: u32) -> Vec<Reading> {
    let at = |shift: u32| {
        let reading = found.at(&by_size(op, shift), bytes)?;
        Some(Reading { x: f64::from(shift), ..reading })
    };
    published(&found.setting.facts).into_iter().filter_map(at).collect()
}

/// Of the published figure.
pub(crate) fn extremes(found: &Found<'_>, op: OpKind, bytes: u32) -> Option<[usize; 2]> {
    let readings = by_offset(found, op, bytes);
    let (best, worst) = (best(&readings)?, worst(&readings)?);
    (best.point != worst.point).then_some([best.point, worst.point])
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut conclusion = Conclusion::default();
    let chunk = chunk(&found.setting.facts);
    let mut harmed: Vec<(String, String)> = Vec::new();
    let mut off: Vec<String> = Vec::new();
    let (mut unharmed, mut unsure) = (0, 0);
    for Case { name, who, readings } in cases(found) {
        let Some(aligned) = aligned(&readings) else { continue };
        let others: Vec<Reading> =
            readings.iter().copied().filter(|one| one.x != aligned.x).collect();
        let Some(worst) = worst(&others) else { continue };
        let start = others.iter().find(|one| one.x == 0.0);
        let later = start.and_then(|start| Some((start, start.change_to(&aligned).gain()?)));
        let by = size(distance(aligned.x, worst.x, chunk));
        if let Some((start, gain)) = later {
            let at = size(aligned.x);
            off.push(format!("{who} gain {} from {at} on", percent(gain)));
            conclusion.comparisons.push(Comparison::new(
                Change::Alignment,
                *start,
                aligned,
                format!("Begin {at} later: this target does not start on a boundary ({name})"),
                "partitions and files that begin on a chunk boundary",
            ));
            continue;
        }
        match aligned.change_to(&worst) {
            Effect::By(change) if change < 0.0 => {
                let loss = format!("lose {} when misaligned by {by}", percent(-change));
                match harmed.iter_mut().find(|(known, _)| *known == loss) {
                    Some((_, all)) => *all += &format!(" and {who}"),
                    None => harmed.push((loss, who)),
                }
            }
            Effect::Unsure => unsure += 1,
            _ => unharmed += 1,
        }
        conclusion.comparisons.push(Comparison::new(
            Change::Alignment,
            worst,
            aligned,
            format!("Align requests: {by} off, they are slower ({name})"),
            "offsets that are multiples of the request size",
        ));
    }
    let capital = |text: &str| format!("{}{}", text[..1].to_uppercase(), &text[1..]);
    if !off.is_empty() {
        let what = chunk.map_or("a boundary".to_owned(), |chunk| {
            format!("a boundary of its {} chunks", show_size(u64::from(chunk)))
        });
        conclusion
            .sentences
            .push(format!("The target does not start on {what}: {}.", off.join(", ")));
    }
    let mut losses: Vec<String> =
        harmed.iter().map(|(loss, who)| format!("{} {loss}.", capital(who))).collect();
    match (losses.is_empty() && off.is_empty(), unharmed, unsure) {
        (_, 0, 0) => {}
        (true, _, 0) => losses
            .push("Alignment makes no difference: misaligned requests lose less than 5 %.".into()),
        (true, 0, _) => losses.push(format!("Whether alignment matters is undecided: {UNEVEN}.")),
        (true, ..) => losses.push(format!(
            "Alignment makes no difference in the decided cases; elsewhere {UNEVEN}."
        )),
        (false, _, 0) => losses.push("The other requests lose nothing.".into()),
        (false, ..) => losses.push(format!("For the other requests {UNEVEN}.")),
    }
    conclusion.sentences.extend(losses);
    conclusion.sentences.extend(OPS.into_iter().filter_map(|op| largest_loss(found, op)));
    conclusion
}

fn largest_loss(found: &Found<'_>, op: OpKind) -> Option<String> {
    let losses = SIZES.into_iter().filter_map(|(bytes, _)| {
        let readings = by_offset(found, op, bytes);
        let (best, worst) = (best(&readings)?, worst(&readings)?);
        match chosen(&best).change_to(&chosen(&worst)) {
            Effect::By(less) if less < 0.0 => Some((bytes, -less)),
            _ => None,
        }
    });
    let (bytes, loss) = losses.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "Sequential {op}s lose up to {} off the chunk ({}, {DEPTH} outstanding).",
        percent(loss),
        show_size(u64::from(bytes))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(rates: &[(f64, f64)], half_width: f64) -> Vec<Reading> {
        let reading = |(point, &(x, y)): (usize, &(f64, f64))| Reading {
            x,
            y,
            interval_95: Some([y * (1.0 - half_width), y * (1.0 + half_width)]),
            exact: false,
            point,
        };
        rates.iter().enumerate().map(reading).collect()
    }

    #[test]
    fn the_aligned_offset_is_the_certainly_fastest() {
        let off = [(0.0, 80.0), (12288.0, 80.0), (53248.0, 100.0)];
        assert_eq!(aligned(&readings(&off, 0.02)).unwrap().x, 53248.0);
        assert_eq!(aligned(&readings(&off, 0.2)).unwrap().x, 0.0, "chance is no evidence");
        assert_eq!(distance(53248.0, 0.0, Some(65536)), 12288.0);
    }
}
