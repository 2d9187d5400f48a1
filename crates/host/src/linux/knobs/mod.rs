//! Settings that can change a target's speed, in tables: `queue` for block devices, `system` for
//! memory and CPUs, `mounted` for mounts.

mod entry;
pub mod journal;
mod knob;
mod known;
mod lock;
mod mounted;
mod place;
mod queue;
mod session;
mod system;
mod values;

pub use knob::HostKnob;
pub use place::Place;
pub use session::Session;

use super::facts::{Roots, Under};
use std::path::Path;

pub fn may_set() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn find(roots: &Roots, paths: &[&Path]) -> machine::Result<Vec<HostKnob>> {
    let under: Vec<Under> = paths
        .iter()
        .map(|path| super::facts::under(roots, path))
        .collect::<machine::Result<_>>()?;
    let mut knobs = queue::knobs(roots, &under);
    knobs.extend(mounted::knobs(roots, paths));
    knobs.extend(system::knobs(roots, &under));
    Ok(knobs)
}
