//! Ends streams that are too slow, and searches for the queue depth.

use super::core::{Core, Issue};
use super::filter::{Filter, ignores};
use super::latency_search::{Search, Step};
use super::min_rate::{RateWatch, StopReason};
use super::stream_stats::{Done, StreamStats};
use crate::fio::plan::jobs::Job;
use machine::{Nanos, Next};

pub(crate) struct Limits {
    /// Of reads and other requests; 0: none.
    max_ns: [Nanos; 2],
    rates: Option<RateWatch>,
    /// `number_ios` with several sizes.
    requests_left: Option<u64>,
    /// Recorded once the depth is found.
    search: Option<(Search, Box<StreamStats>)>,
}

impl Limits {
    pub(crate) fn of(job: &Job, depth: u32) -> Option<Limits> {
        let options = &job.options;
        let goal = options.latency;
        let limits = Limits {
            max_ns: goal.max_ns,
            rates: (options.min_rates.any() && !job.is_threaded())
                .then(|| RateWatch::new(options.min_rates)),
            requests_left: options.number_ios.filter(|_| job.sizes().is_some()),
            search: goal
                .searches()
                .then(|| (Search::new(goal, depth), Box::new(StreamStats::new(job)))),
        };
        let any = limits.max_ns != [0; 2]
            || limits.rates.is_some()
            || limits.requests_left.is_some()
            || limits.search.is_some();
        any.then_some(limits)
    }
}

impl Filter for Limits {
    fn begin(&mut self, core: &Core) {
        if let Some((search, _)) = &mut self.search {
            search.begin(core.measured_from);
        }
        if let Some(rates) = &mut self.rates {
            rates.begin(core.measured_from);
        }
    }

    fn before(&mut self, core: &mut Core, now: Nanos) -> Option<Next> {
        let (search, found) =
            self.search.as_mut().filter(|_| now >= core.measured_from && !core.is_over(now))?;
        let step = search.before(now, core.in_flight);
        core.record.depth_found = search.depth();
        match step {
            Step::Issue => None,
            Step::Hold => Some(Next::WaitForCompletion),
            Step::Measure => {
                found.depth_found = search.depth();
                std::mem::swap(&mut core.record, found);
                core.stream.measure_anew(now);
                core.ramp += now - core.measured_from;
                core.measured_from = now;
                core.record.begin(now);
                None
            }
            Step::End => {
                (core.ended, core.leaves) = (true, true);
                Some(core.over())
            }
        }
    }

    fn issued(&mut self, core: &mut Core, _issue: &Issue) {
        if let Some(left) = &mut self.requests_left {
            *left = left.saturating_sub(1);
            core.ended |= *left == 0;
        }
    }

    fn completed(&mut self, core: &mut Core, _slot: u32, _whole: bool, done: Option<&Done>) {
        let Some(done) = done else { return };
        let (side, latency_ns) = (done.side, done.latency_ns);
        let max = self.max_ns[side.min(1)];
        let held = self.search.as_mut().is_none_or(|(search, _)| search.complete(latency_ns));
        let slow = !held || (max > 0 && latency_ns > max);
        let rate = self.rates.as_mut().and_then(|rates| rates.complete(done.at, side, done.bytes));
        if let Some(why) =
            slow.then_some(StopReason::Latency(latency_ns)).or(rate).filter(|_| !core.ended)
        {
            (core.ended, core.fails) = (true, true);
            core.record.gave_up = Some(why);
        }
    }

    ignores!(idle synced owes left fails read_back fill check finish);
}
