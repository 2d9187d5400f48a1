//! Gain of a partition that starts on a chunk over one at sector 63: SQLIO's matrix on the 2003
//! server.
//!
//! Source: the published tables of a RAID 10 with 64 KB stripes, that is 32 KB on each of its two
//! pairs: 8 KB blocks in one file, 1 to 256 threads with four outstanding each, which share one
//! file position.

use super::{Bar, bar, published};
use crate::{Result, run, workload};
use machine::Op;
use serde::Serialize;
use twin::Twin;
use workload::{OpKind, Pattern, Stop, Workload};

/// Without a write cache: in the published sequential writes all outstanding requests together take
/// one revolution, whatever the depth.
const VOLUME: &str = "server-2003,disks=4,raid=10,stripe=32k,wce=off";

/// On a chunk, and at sector 63.
const STARTS: [&str; 2] = ["64k", "32256"];

/// The published file has 80 GB; these disks hold 70.
const FILE_BYTES: u64 = 64 << 30;

const BLOCKS: u64 = 3072;

const BLOCK_BYTES: u32 = 8192;

const THREAD_DEPTH: u32 = 4;

/// Tolerance of an average, in percentage points.
const MAX_POINTS_OFF: f64 = 5.0;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    pub op: OpKind,
    pub random: bool,
    /// With four requests outstanding each.
    pub threads: u32,
    /// Published, in percent.
    pub measured: f64,
    /// In percent.
    pub simulated: f64,
}

/// Simulates every row of the published table.
pub fn gains() -> Result<Vec<Gain>> {
    let gain = |row: published::Alignment| {
        let [aligned, sector_63] = STARTS.map(|start| rate(start, &row));
        let simulated = (aligned? / sector_63? - 1.0) * 100.0;
        let published::Alignment { op, random, threads, gain_percent } = row;
        Ok(Gain { op, random, threads, measured: gain_percent, simulated })
    };
    published::alignment().into_iter().map(gain).collect()
}

fn rate(start: &str, row: &published::Alignment) -> Result<f64> {
    let twin = Twin::from_name(&format!("{VOLUME},start={start}"))?;
    let file = twin.file(None, Some(FILE_BYTES))?;
    let pattern = if row.random { Pattern::Random } else { Pattern::Seq };
    let stop = Stop::AfterBytes(BLOCKS * u64::from(BLOCK_BYTES));
    let op = if row.op == OpKind::Write { Op::Write } else { Op::Read };
    let asked = workload(op, BLOCK_BYTES, THREAD_DEPTH * row.threads);
    Ok(run(&twin, &file, &Workload { pattern, region_bytes: None, stop, ..asked })?.iops())
}

/// Published and simulated means over all threads, in percent.
pub fn mean(gains: &[Gain], of: impl Fn(&Gain) -> bool) -> (f64, f64) {
    let chosen: Vec<&Gain> = gains.iter().filter(|gain| of(gain)).collect();
    let mean = |value: fn(&Gain) -> f64| {
        chosen.iter().map(|gain| value(gain)).sum::<f64>() / chosen.len().max(1) as f64
    };
    (mean(|gain| gain.measured), mean(|gain| gain.simulated))
}

pub(super) fn bars(gains: &[Gain]) -> Vec<Bar> {
    let distance = |(measured, simulated): (f64, f64)| (measured - simulated).abs();
    vec![
        bar(
            "SQLIO, an aligned partition's gain, random blocks, distance in points",
            MAX_POINTS_OFF,
            distance(mean(gains, |gain| gain.random)),
        ),
        bar(
            "SQLIO, an aligned partition's gain, sequential blocks, distance in points",
            MAX_POINTS_OFF,
            distance(mean(gains, |gain| !gain.random)),
        ),
        bar(
            "SQLIO, an aligned partition's gain, all, distance in points",
            MAX_POINTS_OFF,
            distance(mean(gains, |_| true)),
        ),
    ]
}
