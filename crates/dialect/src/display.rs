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

/// The warnings of all points; of those that differ only in their figures the first, with the number of points that bear them.
pub(crate) fn warnings<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<String> {
    let mut kinds: Vec<(String, String, usize)> = Vec::new();
    for warning in points.filter_map(|point| point.numbers.as_ref()).flat_map(|numbers| &numbers.warnings) {
        let kind: String = warning.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
        match kinds.iter_mut().find(|(known, _, _)| *known == kind) {
            Some((_, _, count)) => *count += 1,
            None => kinds.push((kind, warning.clone(), 1)),
        }
    }
    let shown = |(_, warning, count)| {
        if count > 1 { format!("{warning} (the first of {count} points of which this is so)") } else { warning }
    };
    kinds.into_iter().map(shown).collect()
}
