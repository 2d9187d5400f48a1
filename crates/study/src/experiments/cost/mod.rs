//! Processor cost per request and per byte.

use super::prelude::*;
use super::{buffered, unbuffered};
use machine::units::significant;
use machine::units::{MIB, show_size_rounded};
use results::{CostMode, CostModel, CostScope};

pub(super) static EXPERIMENT: Experiment = Experiment {
    counts_instructions: |cell| matches!(cell.workload.request_bytes, 4096 | 65_536 | 1_048_576),
    ..Experiment::new(
        "cost",
        "Processor cost",
        "How much processor time does a request take, and how much a byte?",
        &[&BY_SIZE],
        grid,
        conclude,
    )
};

const LARGE: f64 = 65_536.0;

/// In processors.
const MIN_SAVING: f64 = 0.05;

static BY_SIZE: CurveSet = CurveSet::new(
    Axis::RequestBytes,
    2,
    &[
        FigureDesign::new(
            "cost_per_mib",
            "Processor time per MiB, by request size",
            Axis::CpuNsPerMib,
        ),
        FigureDesign::new(
            "cost_per_request",
            "Processor time per request, by request size",
            Axis::CpuNsPerRequest,
        ),
    ],
);

fn curve(mode: CostMode) -> Curve {
    Curve::of(&BY_SIZE, mode)
}

fn modes(op: OpKind) -> (CostMode, CostMode) {
    match op {
        OpKind::Write => (CostMode::DirectWrite, CostMode::BufferedWrite),
        _ => (CostMode::DirectRead, CostMode::BufferedRead),
    }
}

fn grid(setting: &StudyContext) -> Grid {
    let mut grid = Grid::default();
    for (size, rank) in setting.sizes() {
        for op in setting.ops() {
            let (direct, buffered) = modes(op);
            if setting.direct() {
                grid.add(
                    curve(direct),
                    size,
                    Workload { request_bytes: size, ..setting.base(op) },
                    rank,
                );
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
        conclusion.sentences.extend(sentence(found, op, &models));
        for (mode, models) in [direct, buffered].into_iter().zip(&models) {
            if models.is_empty() && models::could_have_model(found, &curve(mode)) {
                conclusion.sentences.push(format!(
                    "No simple model fits the processor time of a {mode}: it is not a fixed time and a time for each byte."
                ));
            }
        }
        conclusion.costs.extend(models.into_iter().flatten());
    }
    conclusion
}

fn sentence(found: &Found<'_>, op: OpKind, models: &[Vec<CostModel>; 2]) -> Option<String> {
    let [direct, buffered] = [0, 1]
        .map(|mode: usize| models[mode].iter().find(|model| model.whose == CostScope::Process));
    let cost = |model: &CostModel| {
        let per_mib = show_time(model.ns_per_byte * MIB as f64);
        format!("{} a request and {per_mib} a MiB", show_time(model.ns_per_request))
    };
    let (direct, buffered) = match (direct, buffered) {
        (Some(direct), Some(buffered)) => (direct, buffered),
        (Some(one), None) | (None, Some(one)) => {
            return Some(format!("A {} takes {} of the processor.", one.mode, cost(one)));
        }
        (None, None) => return None,
    };
    let (request, byte) = (
        direct.ns_per_request - buffered.ns_per_request,
        buffered.ns_per_byte - direct.ns_per_byte,
    );
    let knee = request / byte;
    let cheaper = match (request > 0.0, byte > 0.0) {
        (true, true) => {
            format!("Direct {op}s take less of the processor above {}", show_size_rounded(knee))
        }
        (false, false) => {
            format!("Direct {op}s take less of the processor below {}", show_size_rounded(knee))
        }
        (false, true) => format!("Direct {op}s take less of the processor at every size"),
        (true, false) => format!("Buffered {op}s take less of the processor at every size"),
    };
    let mut said =
        format!("{cheaper}: {}, against {} for a file in the cache.", cost(direct), cost(buffered));
    said.extend(saving(found, op, byte - request / LARGE));
    Some(said)
}

fn saving(found: &Found<'_>, op: OpKind, ns_per_byte: f64) -> Option<String> {
    let rate = found.measured.of(op)?.bytes_per_s;
    let processors = ns_per_byte * rate / 1e9;
    if processors < MIN_SAVING {
        return None;
    }
    let size = size(LARGE);
    let saved = format!(
        " Direct {op}s from {size} on save {} processors at {}",
        significant(processors, 2),
        show_rate(rate)
    );
    let curves = if op == OpKind::Write {
        (&buffered::SYNCED, &unbuffered::WRITE)
    } else {
        (&buffered::COLD, &unbuffered::READ)
    };
    let (through, past) = (found.at(curves.0, LARGE), found.at(curves.1, LARGE));
    Some(match through.zip(past).map(|(through, past)| through.change_to(&past)) {
        Some(Effect::By(less)) if less < 0.0 => {
            format!(
                "{saved}; keep several outstanding, because single ones are {} slower.",
                percent(-less)
            )
        }
        Some(Effect::By(_) | Effect::Nothing) => format!("{saved}, and cost nothing."),
        Some(Effect::Unsure) | None => format!("{saved}."),
    })
}
