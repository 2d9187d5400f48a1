//! fio's options and their values.

pub(super) mod choices;
pub(super) mod cmdprio;
pub(super) mod command;
pub(super) mod criterion;
pub(super) mod error;
pub(super) mod job_options;
pub(super) mod jobfile;
pub(super) mod kinds;
pub(super) mod latency_goal;
pub(super) mod method;
pub(super) mod min_rates;
pub(super) mod pattern;
pub(super) mod sync_every;
pub(super) mod table;
pub(super) mod tolerated;
pub(super) mod trace;
pub(super) mod value;
