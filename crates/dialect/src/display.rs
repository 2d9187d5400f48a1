//! What the reports of all tools share.

use machine::{Error, Machine, Result};
use results::Point;
use std::io::Write;

/// Prints at once.
pub(crate) fn print(out: &mut dyn Write, text: &str) -> Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::io("cannot print to", "standard output"))
}

/// Says that another engine worked than would have where the system offered all, if so.
pub(crate) fn fallback<'a, M: Machine>(machine: &M, points: impl IntoIterator<Item = &'a Point>) -> Option<String> {
    let engines = machine.capabilities().engines;
    points.into_iter().find_map(|point| point.workload.engine.fallback(&engines))
}
