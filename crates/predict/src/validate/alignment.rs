//! SQLIO's published matrix of a partition on a chunk against sector 63: RAID 10 with 64 KB
//! stripes, 32 KB on each of two pairs; 8 KB blocks, 1 to 256 threads with four outstanding, one
//! shared position.

use super::bars::in_points;
use super::{Bar, published};
use crate::{Error, Result};
use dialect::sqlio::Options;
use dialect::sqlio::matrix::{self, Entry};
use machine::TargetSpec;
use serde::Serialize;
use twin::Twin;
use workload::OpKind;

/// Has no write cache: in the published sequential writes all outstanding requests together take
/// one revolution, whatever the depth.
const VOLUME: &str = "server-raid10";

/// On a chunk, and at sector 63.
const STARTS: [&str; 2] = ["64k", "32256"];

/// The published file has 80 GB; the volume holds 70.
const FILE_BYTES: u64 = 64 << 30;

const RUN: &str = "5s";

const MAX_POINTS_OFF: f64 = 5.0;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    pub op: OpKind,
    pub random: bool,
    /// Each with four requests outstanding.
    pub threads: u32,
    /// Published, in percent.
    pub measured: f64,
    /// In percent.
    pub simulated: f64,
}

/// As `halfpower sqlio --matrix`.
pub fn gains() -> Result<Vec<Gain>> {
    let words = ["--matrix", "--repeats", "1", "--runtime", RUN].map(str::to_owned);
    let options = dialect::sqlio::parse(&words)?;
    let [sector_63, aligned] = [entries(STARTS[1], &options)?, entries(STARTS[0], &options)?];
    let gain = |row: published::Alignment| {
        let published::Alignment { op, random, threads, gain_percent } = row;
        let ios = |entries: &[Entry]| {
            let asked =
                (if op == OpKind::Write { 'W' } else { 'R' }, if random { "ran" } else { "seq" });
            let same = |one: &&Entry| (one.op, &*one.pattern) == asked && one.threads == threads;
            entries.iter().find(same).and_then(Entry::best)
        };
        let ratio = ios(&aligned).zip(ios(&sector_63)).map(|(aligned, other)| aligned / other);
        let ratio = ratio.ok_or(Error::Broken("a point of the SQLIO study"))?;
        Ok(Gain { op, random, threads, measured: gain_percent, simulated: (ratio - 1.0) * 100.0 })
    };
    published::alignment().into_iter().map(gain).collect()
}

fn entries(start: &str, options: &Options) -> Result<Vec<Entry>> {
    let name = format!("{VOLUME},start={start}");
    let twin = Twin::from_name(&name)?;
    let spec =
        TargetSpec { places: vec![name.into()], size: Some(FILE_BYTES), ..TargetSpec::default() };
    let mut runner = matrix::open(&twin, &[spec], options)?;
    Ok(matrix::run(&mut runner, options, |_, _, _| ())?.entries)
}

/// Published and simulated, over all threads, in percent.
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
        in_points(
            "SQLIO, an aligned partition's gain, random blocks, distance in points",
            MAX_POINTS_OFF,
            distance(mean(gains, |gain| gain.random)),
        ),
        in_points(
            "SQLIO, an aligned partition's gain, sequential blocks, distance in points",
            MAX_POINTS_OFF,
            distance(mean(gains, |gain| !gain.random)),
        ),
        in_points(
            "SQLIO, an aligned partition's gain, all, distance in points",
            MAX_POINTS_OFF,
            distance(mean(gains, |_| true)),
        ),
    ]
}
