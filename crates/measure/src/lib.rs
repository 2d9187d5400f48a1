//! The driver. A [`Sample`] is one run of one workload; [`Runner`] repeats runs until their
//! interval is narrow enough.

mod ceiling;
mod clients;
mod concurrent;
mod course;
pub mod histogram;
mod link;
pub mod live;
mod observed;
mod over_time;
mod pace;
mod repeat;
mod resume;
mod runner;
mod sample;
mod slices;
mod stages;
pub mod stats;
mod stream;
pub mod turns;
mod verified;

pub use ceiling::{Ceiling, Ceilings};
pub use clients::{ClientSample, ClientsOrder, ClientsRun, LATE_SHARE, Together};
pub use course::{Course, RatePhase, course, course_of_runs};
pub use link::LinkWatch;
pub use over_time::IntervalSample;
pub use repeat::{
    Measured, PointStatus, Repeated, Repeats, await_throttle, cached_before, counted,
    ends_with_flush, first_run, may_run, next_run, of_whole_bursts, ramp, rate_estimate,
    rate_estimate_beside, rate_spread, repeat, rounds,
};
pub use resume::{Begun, Journal, JournalLine, Opened, Resumable, RunLine, WriteLine};
pub use runner::{
    Arrangement, PlannedWrites, RequestPart, RunRequest, RunSamples, Runner, check, check_fits,
    check_memory, check_writable,
};
pub use sample::{
    Job, JobRun, Options, Sample, gather, interrupted_after, note_others, retry_if_paused,
    run_jobs, sample, streams,
};
pub use stages::{counted_times, traced_times};
pub use stream::Stream;
pub use verified::{Verification, VerifyStats, measure_verified, read_back};
