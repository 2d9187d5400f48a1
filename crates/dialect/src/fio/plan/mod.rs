//! Turns options into workloads, without I/O.

pub(super) mod arrange;
pub(super) mod checks;
pub(super) mod jobs;
pub(super) mod regions;
pub(super) mod state;
pub(super) mod tausworthe;
pub(super) mod translate;
pub(super) mod turns;
pub(super) mod whole_files;
