//! What does misalignment cost?

use super::prelude::*;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "alignment",
    "Alignment",
    "What does misalignment cost, off the file system's block, the sector, the page or the partition?",
    &[&BY_SHIFT],
    grid,
    conclude,
);

/// Offsets: a sector, half a page, a page, three pages (the 1997 study's), a partition start at
/// sector 63.
const SHIFTS: [u32; 6] = [0, 512, 2048, 4096, 12 << 10, 32_256];

const REQUESTS: [(u32, u32); 2] = [(4096, 1), (65_536, 8)];

static BY_SHIFT: CurveSet = CurveSet::new(
    Axis::OffsetBytes,
    3,
    &[FigureDesign::new("alignment", "Random requests by their shift", Axis::BytesPerS)],
);

fn curve(op: OpKind, request: u32, depth: u32) -> Curve {
    Curve::of(&BY_SHIFT, format!("{op}, {} x {depth}", show_size(u64::from(request))))
}

fn grid(setting: &StudyContext) -> Grid {
    let mut grid = Grid::new(setting);
    let align = if setting.direct() { setting.facts.direct_align_bytes } else { 1 };
    for shift in SHIFTS {
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
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut conclusion = Conclusion::default();
    let mut harmed: Vec<(String, String)> = Vec::new();
    let (mut unharmed, mut unsure) = (0, 0);
    for op in OPS {
        for (request, depth) in REQUESTS {
            let series = curve(op, request, depth);
            let (aligned, shifted): (Vec<Reading>, Vec<Reading>) =
                found.curve(&series).into_iter().partition(|reading| reading.x == 0.0);
            let (Some(aligned), Some(worst)) = (aligned.first(), worst(&shifted)) else { continue };
            match aligned.change_to(&worst) {
                Effect::By(change) if change < 0.0 => {
                    let request = show_size(u64::from(request));
                    let who = if depth == 1 {
                        format!("{op}s of {request}")
                    } else {
                        format!("{depth} {op}s of {request}")
                    };
                    let loss =
                        format!("lose {} when misaligned by {}", percent(-change), size(worst.x));
                    match harmed.iter_mut().find(|(known, _)| *known == loss) {
                        Some((_, all)) => *all += &format!(" and {who}"),
                        None => harmed.push((loss, who)),
                    }
                }
                Effect::Unsure => unsure += 1,
                _ => unharmed += 1,
            }
            let title =
                format!("Align requests: {} off, they are slower ({})", size(worst.x), series.name);
            let setting = "offsets that are multiples of the request size";
            conclusion.comparisons.push(Comparison::new(
                Change::Alignment,
                worst,
                *aligned,
                title,
                setting,
            ));
        }
    }
    let capital = |text: &str| format!("{}{}", text[..1].to_uppercase(), &text[1..]);
    let mut losses: Vec<String> =
        harmed.iter().map(|(loss, who)| format!("{} {loss}.", capital(who))).collect();
    match (losses.is_empty(), unharmed, unsure) {
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
    conclusion.sentences = losses;
    conclusion
}
