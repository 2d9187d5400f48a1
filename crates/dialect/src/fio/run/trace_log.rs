//! `write_iolog`: all requests in order.

use super::core::{Core, Issue};
use super::filter::{Filter, ignores};
use super::finished::Finished;
use super::stream_stats::{LINES, TRIM};
use crate::fio::options::job_options::Options;
use crate::fio::options::trace::{Action, Entry};
use machine::{Nanos, Stability};

pub(crate) struct TraceLog(Vec<Entry>);

impl TraceLog {
    pub(crate) fn of(options: &Options) -> Option<TraceLog> {
        options.logs.requests.as_ref().map(|_| TraceLog(Vec::with_capacity(LINES)))
    }
}

impl Filter for TraceLog {
    fn issued(&mut self, core: &mut Core, issue: &Issue) {
        let at_ns = issue.now - (core.measured_from - core.ramp);
        let request = &issue.request;
        let action = if issue.side == TRIM { Action::Trim } else { Action::Request(request.op) };
        let (file, offset, len) = (request.target, request.offset, request.len);
        self.0.push(Entry { at_ns, action, file, offset, len });
    }

    fn synced(&mut self, core: &mut Core, what: Stability, began: Nanos, _ended: Nanos) {
        if matches!(what, Stability::File | Stability::Data) {
            let at_ns = began.saturating_sub(core.measured_from - core.ramp);
            self.0.push(Entry { at_ns, action: Action::Sync(what), file: 0, offset: 0, len: 0 });
        }
    }

    fn finish(self: Box<Self>, finished: &mut Finished) {
        finished.record.trace = Some(self.0);
    }

    ignores!(begin before idle completed owes left fails read_back fill check);
}
