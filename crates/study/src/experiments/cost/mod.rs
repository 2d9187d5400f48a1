//! What a request costs the processor, and a byte.

use super::prelude::*;
use machine::units::{MIB, show_size_rounded};
use results::{CostMode, CostModel, CostScope};

pub(super) static EXPERIMENT: Experiment = Experiment {
    counts_instructions: |cell| matches!(cell.workload.request_bytes, 4096 | 65_536 | 1_048_576),
    ..Experiment::new(
        "cost",
        "What a request costs",
        "How much processor time does a request take, and a byte?",
        &[&BY_SIZE],
        grid,
        conclude,
    )
};

static BY_SIZE: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    2,
    &[
        FigureDesign::new("cost_per_mib", "Processor time per MiB, by request size", Axis::CpuNsPerMib),
        FigureDesign::new("cost_per_request", "Processor time per request, by request size", Axis::CpuNsPerRequest),
    ],
);

fn curve(mode: CostMode) -> Curve {
    Curve::of(&BY_SIZE, mode)
}

/// The direct and the buffered mode of an operation.
fn modes(op: OpKind) -> (CostMode, CostMode) {
    match op {
        OpKind::Write => (CostMode::DirectWrite, CostMode::BufferedWrite),
        _ => (CostMode::DirectRead, CostMode::BufferedRead),
    }
}

fn grid(setting: &Setting) -> Grid {
    let mut grid = Grid::default();
    for (size, rank) in setting.sizes() {
        for op in setting.ops() {
            let (direct, buffered) = modes(op);
            if setting.direct() {
                grid.add(curve(direct), size, Workload { request_bytes: size, ..setting.base(op) }, rank);
            }
            if let Some(cached) = setting.resident(op, size) {
                grid.add(curve(buffered), size, cached, rank);
            }
        }
    }
    grid
}

fn conclude(found: &Found<'_>) -> Conclusion {
    let mut conclusion = Conclusion::default();
    for op in OPS {
        let (direct, buffered) = modes(op);
        let models = [direct, buffered].map(|mode| models::costs(found, &curve(mode), mode));
        conclusion.sentences.extend(sentence(op, &models));
        conclusion.costs.extend(models.into_iter().flatten());
    }
    conclusion
}

/// What a direct and a buffered request cost, and which is cheaper from which size on.
fn sentence(op: OpKind, models: &[Vec<CostModel>; 2]) -> Option<String> {
    let [direct, buffered] =
        [0, 1].map(|mode: usize| models[mode].iter().find(|model| model.whose == CostScope::Process));
    let cost = |model: &CostModel| {
        let per_mib = show_time(model.ns_per_byte * MIB as f64);
        format!("{} of processor time and {per_mib} a MiB", show_time(model.ns_per_request))
    };
    let (direct, buffered) = match (direct, buffered) {
        (Some(direct), Some(buffered)) => (direct, buffered),
        (Some(one), None) | (None, Some(one)) => return Some(format!("A {} costs {}.", one.mode, cost(one))),
        (None, None) => return None,
    };
    let (request, byte) = (direct.ns_per_request - buffered.ns_per_request, buffered.ns_per_byte - direct.ns_per_byte);
    let cheaper = match (request > 0.0, byte > 0.0) {
        (true, true) => format!("direct {op}s cost less above {}", show_size_rounded(request / byte)),
        (false, false) => format!("direct {op}s cost less below {}", show_size_rounded(request / byte)),
        (false, true) => format!("direct {op}s cost less at every size"),
        (true, false) => format!("buffered {op}s cost less at every size"),
    };
    Some(format!("A direct {op} costs {}, a buffered one {}: {cheaper}.", cost(direct), cost(buffered)))
}
