//! Reports while jobs run.

use super::result::FioResult;
use machine::Nanos;

pub struct Status<'a> {
    pub interval_ns: Nanos,
    /// Receives ended groups, and the running one without points.
    pub report: &'a (dyn Fn(&FioResult) + Sync),
}
