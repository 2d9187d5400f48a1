//! The meaning of the options: jobs, their files, and the workloads they ask for. No I/O.

pub(super) mod arrange;
pub(super) mod checks;
pub(super) mod jobs;
pub(super) mod state;
pub(super) mod translate;
pub(super) mod turns;
