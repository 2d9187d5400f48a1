//! The storage's own rate at depth 1.

use super::prelude::*;
use machine::Buffering;
use results::ServiceMode;

pub(super) static EXPERIMENT: Experiment = Experiment {
    refines: true,
    ..Experiment::new(
        "unbuffered",
        "Past the page cache",
        "How fast is the storage with one request at a time, and what does it cost to make each write durable?",
        &[&BY_SIZE],
        grid,
        conclude,
    )
};

static BY_SIZE: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    0,
    &[FigureDesign::new("unbuffered", "Direct synchronous I/O, by request size", Axis::BytesPerS)],
)
.with_half_power()
.with_every_size();

pub(super) const READ: Curve = Curve::named(&BY_SIZE, "read");
pub(super) const WRITE: Curve = Curve::named(&BY_SIZE, "write");
const WRITE_THROUGH: Curve = Curve::named(&BY_SIZE, "write, write-through");

fn grid(setting: &StudyContext) -> Grid {
    if !setting.direct() {
        return Grid::skipped(setting.not_direct());
    }
    let mut grid = Grid::default();
    for (size, rank) in setting.sizes() {
        grid.add(READ, size, Workload { request_bytes: size, ..setting.base(OpKind::Read) }, rank);
        if setting.facts.writable {
            let write = Workload { request_bytes: size, ..setting.base(OpKind::Write) };
            let through = Workload { buffering: Buffering::DirectDsync, ..write.clone() };
            grid.add(WRITE, size, write, rank);
            let corner = matches!(size, 4096 | 65_536 | 1_048_576);
            grid.add(
                WRITE_THROUGH,
                size,
                through,
                if corner { rank } else { rank.max(Rank::Usual) },
            );
        }
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let [read, write, through] = [&READ, &WRITE, &WRITE_THROUGH].map(|series| found.curve(series));
    let mut sentences: Vec<String> =
        reach("Single direct reads", &read, show_rate).into_iter().collect();
    sentences.extend(reach("Single direct writes", &write, show_rate));
    let mut comparisons: Vec<Comparison> = [
        (&read, "Read sequentially, past the cache,"),
        (&write, "Write sequentially, past the cache,"),
        (&through, "Write through"),
    ]
    .into_iter()
    .filter_map(|(curve, verb)| Comparison::of_sizes(curve, verb))
    .collect();
    if let (Some(through), Some(plain)) = (found.at(&WRITE_THROUGH, 4096), found.at(&WRITE, 4096)) {
        sentences.push(match plain.change_to(&through) {
            Effect::By(less) if less < 0.0 => {
                format!(
                    "Waiting for stable storage after each 4 KiB write costs {} of the rate.",
                    percent(-less)
                )
            }
            Effect::Unsure => {
                format!("The cost of write-through for 4 KiB writes is undecided: {UNEVEN}.")
            }
            _ => "Write-through costs 4 KiB writes nothing.".into(),
        });
        let title = "Do not write every 4 KiB through: gather them and flush once, if the last ones may be lost";
        let setting = "group commits; fdatasync once for many writes";
        comparisons.push(Comparison::new(Change::Durability, through, plain, title, setting));
    }
    let modes = [
        (&READ, ServiceMode::DirectRead),
        (&WRITE, ServiceMode::DirectWrite),
        (&WRITE_THROUGH, ServiceMode::WriteThrough),
    ];
    let mut service_times = Vec::new();
    for (series, mode) in modes {
        let times =
            models::service_times(found, series, mode, |numbers| numbers.achieved.mean_service_ns);
        if times.is_empty() && models::could_have_model(found, series) {
            sentences.push(format!(
                "No simple model fits the time of a {mode}: it is not a fixed time and a time for each byte."
            ));
        }
        service_times.extend(times);
    }
    Conclusion { sentences, comparisons, service_times, ..Conclusion::default() }
}
