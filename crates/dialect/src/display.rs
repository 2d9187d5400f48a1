//! Helpers for the reports of all tools.

use machine::{Error, Machine, Result};
use results::Point;
use std::io::Write;

pub(crate) fn print(out: &mut dyn Write, text: &str) -> Result<()> {
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Error::io("cannot print to", "standard output"))
}

pub(crate) fn fallback<'a, M: Machine>(
    machine: &M,
    points: impl IntoIterator<Item = &'a Point>,
) -> Option<String> {
    let engines = machine.capabilities().engines;
    points.into_iter().find_map(|point| point.workload.engine.fallback(&engines))
}
