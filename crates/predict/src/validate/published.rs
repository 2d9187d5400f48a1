//! E. Riedel, C. van Ingen, J. Gray, "A Performance Study of Sequential I/O on Windows NT 4",
//! Microsoft Research MSR-TR-97-34 and 2nd USENIX Windows NT Symposium, 1998. MB there is 2^20
//! bytes.

use machine::{MemoryKind, Op};
use workload::OpKind;

const MEASUREMENTS: &str = include_str!("../../data/measurements.csv");
const RELEASED: &str = include_str!("../../data/measurements-released.csv");
const TABLE2: &str = include_str!("../../data/table2_memory.csv");
const TABLE3: &str = include_str!("../../data/table3_service_time_ms.csv");
const TABLE4: &str = include_str!("../../data/table4_bus_phases_percent.csv");
const IOZONE: &str = include_str!("../../data/iozone_write_kb_per_s.csv");
const ALIGNMENT: &str = include_str!("../../data/sqlio_partition_alignment.csv");

/// A row of SQLIO's partition-alignment table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alignment {
    pub op: OpKind,
    pub random: bool,
    /// Each with four requests outstanding.
    pub threads: u32,
    /// Of a start at 64 KB over one at sector 63.
    pub gain_percent: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Named as `fig3_throughput`.
    pub figure: &'static str,
    pub series: &'static str,
    pub drive: String,
    pub disks: u32,
    pub buses: u32,
    pub op: Op,
    pub buffered: bool,
    pub wce: bool,
    pub depth: u32,
    /// KiB.
    pub request_kb: u32,
    pub value: f64,
    /// `MB/s` or `CPU ms/MB`.
    pub unit: &'static str,
    pub extends: bool,
    /// The file started on a stripe chunk.
    pub aligned: bool,
    /// RAID 5, with parity by the host or the array.
    pub raid5: Option<bool>,
    /// From 0 at the outer edge to 1.
    pub radial: Option<f64>,
}

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).filter(|line| !line.is_empty()).map(|line| line.split(',').collect())
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// Available when the model was made.
pub fn measurements() -> Vec<Measured> {
    measured(MEASUREMENTS)
}

/// Figures 7 and 10, one and eight deep: released later.
pub fn released() -> Vec<Measured> {
    measured(RELEASED)
}

/// Over four Ultra drives, three deep: released later.
pub fn raid5() -> Vec<Measured> {
    let point =
        |(series, op, by_host, request_kb, value): (&'static str, Op, bool, u32, f64)| Measured {
            figure: "fig17_raid5",
            series,
            drive: "st34371w".into(),
            disks: 4,
            buses: 1,
            op,
            buffered: false,
            wce: false,
            depth: 3,
            request_kb,
            value,
            unit: "MB/s",
            extends: false,
            aligned: false,
            raid5: Some(by_host),
            radial: None,
        };
    [
        ("array read", Op::Read, false, 2, 7.05),
        ("array write", Op::Write, false, 64, 3.72),
        ("host write", Op::Write, true, 64, 2.19),
    ]
    .map(point)
    .into()
}

fn measured(text: &'static str) -> Vec<Measured> {
    let point = |row: Vec<&'static str>| {
        let whole = |index: usize| number(row[index]) as u32;
        Measured {
            figure: row[0],
            series: row[1],
            drive: row[2].to_lowercase(),
            disks: whole(3),
            buses: whole(4),
            op: if row[5] == "read" { Op::Read } else { Op::Write },
            buffered: row[6] == "1",
            wce: row[7] == "1",
            depth: whole(8),
            request_kb: whole(9),
            value: number(row[10]),
            unit: row[11],
            extends: row[12] == "extend",
            aligned: row[1].ends_with(" aligned"),
            raid5: row[12].strip_prefix("RAID5 by ").map(|by| by == "host"),
            radial: row[12].strip_prefix("radial=").map(number),
        }
    };
    rows(text).map(point).collect()
}

/// Method, simulated kind, MB/s.
pub fn table2() -> Vec<(&'static str, MemoryKind, f64)> {
    let same = |kind: &MemoryKind, name: &str| kind.name().eq_ignore_ascii_case(name);
    let kind = |name: &str| match name {
        "Temporary file read" => MemoryKind::Read,
        "Temporary file write" => MemoryKind::Write,
        name if name.starts_with("Memcopy") => MemoryKind::Copy,
        name => {
            let known = MemoryKind::ALL.iter().copied().find(|kind| same(kind, name));
            known.expect("a method of the study")
        }
    };
    rows(TABLE2).map(|row| (row[0], kind(row[0]), number(row[1]))).collect()
}

/// Request bytes, drive, whether the data were read before, milliseconds.
pub fn table3() -> Vec<(u32, String, bool, f64)> {
    let header: Vec<&str> = TABLE3.lines().next().unwrap_or_default().split(',').collect();
    let mut points = Vec::new();
    for row in rows(TABLE3) {
        for (name, value) in header.iter().zip(&row).skip(1) {
            let drive = name.split('_').next().unwrap_or_default().to_lowercase();
            points.push((
                (number(row[0]) * 1024.0) as u32,
                drive,
                name.contains("cache_hit"),
                number(value),
            ));
        }
    }
    points
}

/// A phase (or the utilisation), request bytes, disks, percent.
pub fn table4() -> Vec<(&'static str, u32, u32, f64)> {
    let columns = [(8 << 10, 1), (64 << 10, 1), (64 << 10, 2), (64 << 10, 3)];
    let mut points = Vec::new();
    for row in rows(TABLE4) {
        for (&(bytes, disks), value) in columns.iter().zip(&row[1..]) {
            points.push((row[0], bytes, disks, number(value)));
        }
    }
    points
}

pub fn alignment() -> Vec<Alignment> {
    let row = |row: Vec<&'static str>| Alignment {
        op: if row[0] == "R" { OpKind::Read } else { OpKind::Write },
        random: row[1] == "ran",
        threads: row[2].parse().unwrap_or(0),
        gain_percent: number(row[5]),
    };
    rows(ALIGNMENT).map(row).collect()
}

/// A row of a laptop's IOzone write matrix; KB are 2^10 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Written {
    pub file_kb: u64,
    pub record_kb: u64,
    /// Without and with a RAM cache of 256 MB.
    pub kb_per_s: [f64; 2],
}

pub fn iozone() -> Vec<Written> {
    let row = |row: Vec<&'static str>| Written {
        file_kb: number(row[0]) as u64,
        record_kb: number(row[1]) as u64,
        kb_per_s: [number(row[2]), number(row[3])],
    };
    rows(IOZONE).map(row).collect()
}

/// PostMark's seconds on that laptop (20,000 transactions, 10,000 files), without a RAM cache and
/// with one of 256 MB.
pub const POSTMARK_S: [f64; 2] = [386.0, 196.0];

/// Seconds without a RAM cache.
pub const POSTMARK_PARTS_S: [(&str, f64); 3] =
    [("creation", 70.0), ("transactions", 308.0), ("deletion", 8.0)];
