//! Writes for a limited time, without rests.

use crate::falls::cliff;
use crate::level::{Level, levels};
use crate::plan::Progress;
use crate::series::{Series, SeriesPoint};
use crate::unseen::needed_s;
use crate::writer::{Writer, check_writable};
use machine::{Error, Machine, Nanos, Result};
use workload::Workload;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookLimits {
    pub for_ns: Nanos,
    pub max_written: u64,
    /// Of a step, which is one point.
    pub step_ns: Nanos,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    pub points: Vec<SeriesPoint>,
    pub levels: Vec<Level>,
    pub written_bytes: u64,
    pub took_s: f64,
    pub out_of_bytes: bool,
    /// The run length that shows what follows the last level, if known.
    pub needs_s: Option<f64>,
}

/// Fails if the target is unwritable, or on an interrupt or a failure in the first step; later ones
/// only end the run.
pub fn look<M: Machine>(
    machine: &M,
    target: &M::Target,
    workload: &Workload,
    limits: LookLimits,
    on_step: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<Look> {
    let mut writer = Writer::new(machine, target, limits.max_written);
    check_writable(&writer.facts)?;
    measure::check(workload, &writer.facts)?;
    let mut series = Series::default();
    let mut out_of_bytes = false;
    loop {
        let left_s = limits.for_ns as f64 * 1e-9 - writer.passed_s();
        if left_s <= 0.0 {
            break;
        }
        let ns = limits.step_ns.min((left_s * 1e9) as Nanos + 1);
        let point = match writer.step(workload, ns, u64::MAX) {
            Ok(Some(point)) => point,
            Ok(None) => {
                out_of_bytes = true;
                break;
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) if series.points().is_empty() => return Err(error),
            Err(_) => break,
        };
        series.push(point);
        let goes_on = on_step(Progress {
            doing: "writing",
            passed_s: writer.passed_s(),
            written_bytes: writer.written(),
            bytes_per_s: point.bytes_per_s(),
        });
        if !goes_on {
            return Err(Error::Interrupted);
        }
    }
    let points = series.points().to_vec();
    let levels = levels(&points);
    // After a fall, a run of the usual length shows the rest.
    let flat = levels.last().filter(|_| cliff(&levels).is_none());
    let needs_s = flat.and_then(|last| needed_s(&writer.facts, last, series.bytes()));
    Ok(Look {
        levels,
        written_bytes: writer.written(),
        took_s: points.iter().map(|point| point.served_s).sum(),
        points,
        out_of_bytes,
        needs_s,
    })
}
