use super::prelude::*;
use crate::found::typical_ns;
use results::ServiceMode;

pub(super) static EXPERIMENT: Experiment = Experiment::new(
    "device_cache",
    "The device's own cache",
    "How long does a read take that the device has cached, has prefetched, or has never seen?",
    &[&BY_SIZE],
    grid,
    conclude,
);

/// Enough to prefetch the next small block, but less than a revolution (8.3 ms at 7200 rpm): after
/// an idle one some drives end a stream.
const PREFETCH_PAUSE_NS: u64 = 7_000_000;

/// A hit is this many times as fast as a miss.
const CACHED: f64 = 1.5;

static BY_SIZE: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    2,
    &[FigureDesign::new(
        "device_cache",
        "Typical service time of one direct read, by request size",
        Axis::ServiceNs,
    )],
);

fn curve(mode: ServiceMode) -> Curve {
    Curve::of(&BY_SIZE, mode)
}

fn grid(setting: &StudyContext) -> Grid {
    if !setting.direct() {
        return Grid::skipped(setting.not_direct());
    }
    let mut grid = Grid::default();
    for (size, rank) in setting.sizes().into_iter().filter(|(size, _)| *size <= 1 << 20) {
        let read = Workload { request_bytes: size, ..setting.base(OpKind::Read) };
        let again = Workload { region_bytes: Some(u64::from(size)), ..read.clone() };
        let paused = Workload { think_ns: PREFETCH_PAUSE_NS, ..read.clone() };
        let miss = Workload { pattern: Pattern::Random, ..read };
        grid.add(curve(ServiceMode::SameBlock), size, again, rank);
        grid.add(curve(ServiceMode::NextBlock), size, paused, rank);
        grid.add(curve(ServiceMode::Miss), size, miss, rank);
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let modes = [ServiceMode::SameBlock, ServiceMode::NextBlock, ServiceMode::Miss];
    let [again, ahead, miss] = modes.map(|mode| found.at(&curve(mode), 4096));
    let service_times = modes
        .into_iter()
        .flat_map(|mode| models::service_times(found, &curve(mode), mode, typical_ns));
    Conclusion {
        service_times: service_times.collect(),
        sentences: miss.and_then(|miss| sentence(miss, again, ahead)).into_iter().collect(),
        ..Conclusion::default()
    }
}

fn sentence(miss: Reading, again: Option<Reading>, ahead: Option<Reading>) -> Option<String> {
    let (again, ahead) = (again?, ahead?);
    let quicker = |hit: Reading| (miss.y / hit.y >= CACHED).then(|| times(miss.y / hit.y));
    let request = size(miss.x);
    let said = match (quicker(again), quicker(ahead)) {
        (Some(again), Some(ahead)) => {
            format!(
                "rereading a block is {again} as fast, and a sequential read after a pause {ahead}"
            )
        }
        (Some(again), None) => {
            format!(
                "rereading a block is {again} as fast; a sequential read after a pause is not faster"
            )
        }
        (None, Some(ahead)) => {
            format!(
                "a sequential read after a pause is {ahead} as fast; rereading a block is not faster"
            )
        }
        (None, None) => {
            "neither rereading a block nor a sequential read after a pause is faster".into()
        }
    };
    Some(format!("A random {request} read takes {}; {said}.", show_time(miss.y)))
}
