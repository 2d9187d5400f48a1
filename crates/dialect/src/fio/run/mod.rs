//! Runs a plan on a machine: one stream per clone, and its statistics.

pub(super) mod backlog;
pub(super) mod contested;
pub(super) mod coordination;
pub(super) mod execute;
pub(super) mod failures;
pub(super) mod fio_stream;
pub(super) mod flow;
pub(super) mod group;
pub(super) mod guide;
pub(super) mod histogram_log;
pub(super) mod latency_search;
pub(super) mod min_rate;
pub(super) mod outcome;
pub(super) mod pacing;
pub(super) mod pending_verify;
pub(super) mod priorities;
pub(super) mod read_back;
pub(super) mod result;
pub(super) mod steady;
pub(super) mod stream_stats;
pub(super) mod surroundings;
pub(super) mod verify;
