//! What a partition gains that begins with a chunk and not at sector 63: SQLIO's matrix on the server of 2003.
//!
//! Source: the published tables of a RAID 10 with stripes of 64 KB, which are 32 KB on each of its two pairs: blocks of 8 KB in one file, four
//! outstanding for each of 1 to 256 threads, which go through the file together.

use super::{Bar, bar, published};
use crate::{Result, run, workload};
use machine::Op;
use serde::Serialize;
use twin::Twin;
use workload::{OpKind, Pattern, Stop, Workload};

/// Without write cache: the published sequential writes take a revolution for what is outstanding, however much that is.
const VOLUME: &str = "server-2003,disks=4,raid=10,stripe=32k,wce=off";

/// Where the partition begins: with a chunk, and at sector 63.
const STARTS: [&str; 2] = ["64k", "32256"];

/// The published file has 80 GB; these disks hold 70.
const FILE_BYTES: u64 = 64 << 30;

/// Blocks of each run.
const BLOCKS: u64 = 3072;

const BLOCK_BYTES: u32 = 8192;

/// Requests that a thread keeps outstanding.
const EACH: u32 = 4;

/// How far, in points, an average may be from the published one.
const MOST_POINTS: f64 = 5.0;

/// What an aligned partition gains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// Read or write.
    pub op: OpKind,
    /// Whether blocks lie anywhere or follow one another.
    pub random: bool,
    /// Threads with four requests outstanding each.
    pub threads: u32,
    /// Published, in percent.
    pub measured: f64,
    /// What the twin says, in percent.
    pub simulated: f64,
}

/// Every row of the published table beside the simulation.
///
/// # Errors
/// None is expected of the machine that comes with the program.
pub fn gains() -> Result<Vec<Gain>> {
    let gain = |row: published::Alignment| {
        let [aligned, sector_63] = STARTS.map(|start| rate(start, &row));
        let simulated = (aligned? / sector_63? - 1.0) * 100.0;
        let published::Alignment { op, random, threads, gain_percent } = row;
        Ok(Gain { op, random, threads, measured: gain_percent, simulated })
    };
    published::alignment().into_iter().map(gain).collect()
}

/// Blocks per second.
fn rate(start: &str, row: &published::Alignment) -> Result<f64> {
    let twin = Twin::from_name(&format!("{VOLUME},start={start}"))?;
    let file = twin.file(None, Some(FILE_BYTES))?;
    let pattern = if row.random { Pattern::Random } else { Pattern::Seq };
    let stop = Stop::AfterBytes(BLOCKS * u64::from(BLOCK_BYTES));
    let op = if row.op == OpKind::Write { Op::Write } else { Op::Read };
    let asked = workload(op, BLOCK_BYTES, EACH * row.threads);
    Ok(run(&twin, &file, &Workload { pattern, region_bytes: None, stop, ..asked })?.iops())
}

/// The mean over all threads of what was published and of what is simulated, in percent.
pub fn mean(gains: &[Gain], of: impl Fn(&Gain) -> bool) -> (f64, f64) {
    let chosen: Vec<&Gain> = gains.iter().filter(|gain| of(gain)).collect();
    let mean =
        |value: fn(&Gain) -> f64| chosen.iter().map(|gain| value(gain)).sum::<f64>() / chosen.len().max(1) as f64;
    (mean(|gain| gain.measured), mean(|gain| gain.simulated))
}

/// The averages that the model is held to.
pub(super) fn bars(gains: &[Gain]) -> Vec<Bar> {
    let distance = |(measured, simulated): (f64, f64)| (measured - simulated).abs();
    vec![
        bar(
            "SQLIO, an aligned partition's gain, random blocks, distance in points",
            MOST_POINTS,
            distance(mean(gains, |gain| gain.random)),
        ),
        bar(
            "SQLIO, an aligned partition's gain, sequential blocks, distance in points",
            MOST_POINTS,
            distance(mean(gains, |gain| !gain.random)),
        ),
        bar(
            "SQLIO, an aligned partition's gain, all, distance in points",
            MOST_POINTS,
            distance(mean(gains, |_| true)),
        ),
    ]
}
