//! Published tests of a laptop's RAM cache, by the code of `halfpower iozone` and `halfpower
//! postmark`.

use super::{Figure, Point, plain, published};
use crate::{Error, Result};
use dialect::iozone::{self, Measured};
use dialect::postmark::{self, Config};
use machine::units::show_size;
use std::io;
use std::sync::atomic::AtomicBool;
use twin::{Setup, Twin, TwinFiles};

const MACHINES: [&str; 2] = ["laptop-xp", "laptop-xp,ramcache=256m"];
const NAMES: [&str; 2] = ["without RAM cache", "RAM cache"];

pub(super) const IOZONE: &str = "iozone_write";
pub(super) const POSTMARK: &str = "postmark";
pub const PARTS: &str = "postmark_parts";

pub(super) fn figures() -> Result<Vec<Figure>> {
    let [totals, parts] = postmark_times()?;
    Ok(vec![iozone_writes()?, totals, parts])
}

fn iozone_writes() -> Result<Figure> {
    let mut points = Vec::new();
    for (index, machine) in MACHINES.into_iter().enumerate() {
        let cells = write_matrix(machine)?;
        for row in published::iozone() {
            let (file, record) = (row.file_kb << 10, row.record_kb << 10);
            let of =
                |one: &&Measured| (one.cell.file_bytes, one.cell.record_bytes) == (file, record);
            let cell = cells.iter().find(of).ok_or(Error::Broken("a cell of IOzone's matrix"))?;
            let series = format!("{}, {} file", NAMES[index], show_size(file));
            let simulated = cell.rate() / 1024.0;
            points.push(plain(&series, "", 1, record as u32, row.kb_per_s[index], simulated));
        }
    }
    Ok(Figure::new(IOZONE, "KB/s", points))
}

fn write_matrix(machine: &str) -> Result<Vec<Measured>> {
    let target = format!("twin:{machine}");
    let words =
        ["-a", "-i", "0", "-+n", "-n", "4m", "-g", "512m", "-y", "4m", "-q", "16m", "-f", &target];
    let options = iozone::parse(&words.map(str::to_owned))?;
    Ok(iozone::run(&Twin::from_name(machine)?, &options, 0, &mut io::sink())?.cells)
}

/// The totals, and the parts without the RAM cache.
fn postmark_times() -> Result<[Figure; 2]> {
    let (mut points, mut parts) = (Vec::new(), Vec::new());
    for (index, machine) in MACHINES.into_iter().enumerate() {
        let mut config = Config::default();
        let plan = &mut config.plan;
        (plan.number, plan.transactions, plan.subdirectories) = (10_000, 20_000, 5);
        (plan.low_bytes, plan.high_bytes) = (500, 100_000);
        (plan.read_block_bytes, plan.write_block_bytes) = (4096, 4096);
        let files = TwinFiles::new(&Setup::parse(machine)?);
        let run = postmark::run(&files, &config, &AtomicBool::new(false), &mut io::sink());
        let phases = run.map_err(|_| Error::Broken("PostMark"))?.phases;
        let seconds = phases.total_ns as f64 * 1e-9;
        if index == 0 {
            let simulated = [phases.create_ns, phases.transactions_ns, phases.delete_ns];
            for ((name, measured), ns) in published::POSTMARK_PARTS_S.into_iter().zip(simulated) {
                parts.push(plain(name, "", 1, 0, measured, ns as f64 * 1e-9));
            }
        }
        let measured = published::POSTMARK_S[index];
        points.push(Point { depth: 1, ..plain(NAMES[index], "", 1, 0, measured, seconds) });
    }
    Ok([Figure::new(POSTMARK, "seconds", points), Figure::new(PARTS, "seconds", parts)])
}
