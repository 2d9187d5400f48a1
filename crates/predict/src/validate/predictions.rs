//! For figures of the study whose values are not given here.

use super::published::Measured;
use super::{MIB, outcome};
use crate::Result;
use machine::Op;
use serde::Serialize;

/// Without known values, and so without an error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Named as `fig9`.
    pub name: String,
    pub about: String,
    pub points: Vec<Predicted>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predicted {
    pub series: String,
    pub disks: u32,
    pub request_bytes: u32,
    /// An MB is 2^20 bytes.
    pub mb_per_s: f64,
    /// An MB is 2^20 bytes.
    pub cpu_ms_per_mb: f64,
}

const ULTRA: &str = "st34371w";

const SIZES_KB: [u32; 4] = [2, 8, 64, 192];

/// Name, operation and write cache.
const KINDS: [(&str, Op, bool); 3] = [
    ("unbuf read", Op::Read, false),
    ("unbuf write", Op::Write, false),
    ("unbuf write wce", Op::Write, true),
];

fn ultra(disks: u32, op: Op, wce: bool) -> Measured {
    Measured {
        figure: "",
        series: "",
        drive: ULTRA.into(),
        disks,
        buses: 1,
        op,
        buffered: false,
        wce,
        depth: 3,
        request_kb: 0,
        value: f64::NAN,
        unit: "MB/s",
        extends: false,
        aligned: false,
        raid5: None,
        radial: None,
    }
}

fn curve(machine: &str, series: &str, asked: &Measured, more: &str) -> Result<Vec<Predicted>> {
    let point = |request_kb: u32| {
        let outcome = outcome(machine, &Measured { request_kb, ..asked.clone() }, more)?;
        Ok(Predicted {
            series: series.to_owned(),
            disks: asked.disks,
            request_bytes: request_kb << 10,
            mb_per_s: outcome.bytes_per_s() / MIB,
            cpu_ms_per_mb: outcome.cpu_ms_per_mib(),
        })
    };
    SIZES_KB.into_iter().map(point).collect()
}

pub(super) fn predictions(machine: &str) -> Result<Vec<Prediction>> {
    let figure = |name: &str, about: &str, points: Vec<Vec<Predicted>>| Prediction {
        name: name.into(),
        about: about.into(),
        points: points.into_iter().flatten().collect(),
    };
    let mut by_disks = Vec::new();
    for disks in 1..=4 {
        for (name, op, wce) in KINDS {
            by_disks.push(curve(machine, name, &ultra(disks, op, wce), "")?);
        }
    }
    let mut misaligned = Vec::new();
    for (name, op, wce) in
        [("read misaligned", Op::Read, false), ("write misaligned", Op::Write, true)]
    {
        misaligned.push(curve(machine, name, &ultra(4, op, wce), "")?);
    }
    let mut striping = Vec::new();
    for maker in ["host", "adapter", "array"] {
        for (name, op, wce) in [("read", Op::Read, false), ("write wce", Op::Write, true)] {
            let more = format!(",striping={maker}");
            let series = format!("{name}, striped by the {maker}");
            striping.push(curve(machine, &series, &ultra(4, op, wce), &more)?);
        }
    }
    let mut raid5 = Vec::new();
    for (maker, by_host) in [("host", true), ("array", false)] {
        for (name, op) in [("read", Op::Read), ("write", Op::Write)] {
            let asked = Measured { raid5: Some(by_host), ..ultra(4, op, false) };
            raid5.push(curve(machine, &format!("{name}, RAID 5 by the {maker}"), &asked, "")?);
        }
    }
    Ok(vec![
        figure("fig9", "one to four Ultra drives on one bus, three deep", by_disks),
        figure(
            "fig13_misaligned",
            "four Ultra drives, 12 KB off the chunk, three deep",
            misaligned,
        ),
        figure(
            "fig15_fig16",
            "rate and processor time of three ways to stripe four Ultra drives, three deep",
            striping,
        ),
        figure(
            "fig17_raid5",
            "rate and processor time of RAID 5 over four Ultra drives, three deep",
            raid5,
        ),
    ])
}
