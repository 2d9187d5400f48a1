use super::contested::Contest;
use super::failures::JobError;
use super::pending_verify::Piece;
use super::stream_stats::StreamStats;
use measure::Stream;

pub(crate) struct Finished {
    pub(crate) stream: Stream,
    pub(crate) record: StreamStats,
    /// No room was left, or failed requests counted as done.
    pub(crate) complete: bool,
    pub(crate) no_space: bool,
    /// Writes, in reading order.
    pub(crate) kept: Vec<Piece>,
    pub(crate) contest: Option<Contest>,
    /// Of an operation on whole files.
    pub(crate) failed: Option<JobError>,
}
