//! The reports of jobs that still run.

use super::result::FioResult;
use machine::Nanos;

/// Reports of a run that has not ended.
pub struct Status<'a> {
    pub interval_ns: Nanos,
    /// Receives the groups that have ended, and the running one without points.
    pub report: &'a (dyn Fn(&FioResult) + Sync),
}
