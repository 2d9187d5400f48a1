//! fio's `latency_target`: the depth doubles from 1 until a window misses the target, then bisects.
//! When it no longer changes, the job runs and reports one more window.

use crate::fio::options::latency_goal::LatencyGoal;
use machine::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Issue,
    Hold,
    Measure,
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Search {
    goal: LatencyGoal,
    max: u32,
    depth: u32,
    /// Highest depth that met the target, and lowest that failed.
    held: u32,
    failed: Option<u32>,
    /// Consecutive windows that met it just below the failed depth.
    held_in_row: u32,
    /// The window's start, requests and late requests.
    since: Nanos,
    done: u64,
    late: u64,
    drains: bool,
    found: bool,
    measures: bool,
}

impl Search {
    pub(crate) fn new(goal: LatencyGoal, max: u32) -> Search {
        Search {
            goal,
            max,
            depth: 1,
            held: 1,
            failed: None,
            held_in_row: 0,
            since: 0,
            done: 0,
            late: 0,
            drains: false,
            found: false,
            measures: false,
        }
    }

    pub(crate) fn begin(&mut self, now: Nanos) {
        self.since = now;
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    #[inline]
    pub(crate) fn before(&mut self, now: Nanos, in_flight: u32) -> Step {
        if !self.drains && now >= self.since.saturating_add(self.goal.window_ns) {
            let in_time = (self.done - self.late) as f64 * 100.0;
            // A window without a completion misses the target.
            if self.done > 0 && in_time >= self.goal.percent * self.done as f64 {
                if self.grow(now) {
                    return Step::End;
                }
            } else if !self.shrink() {
                // Even depth 1 misses the target: extend the window until enough requests meet it.
                return if in_flight < self.depth { Step::Issue } else { Step::Hold };
            }
        }
        if self.drains {
            if in_flight > 0 {
                return Step::Hold;
            }
            self.drains = false;
            self.begin_window(now);
            if self.found && !self.measures {
                self.measures = true;
                return Step::Measure;
            }
        }
        if in_flight < self.depth { Step::Issue } else { Step::Hold }
    }

    /// `false`: too slow, and no smaller depth is left.
    #[inline]
    pub(crate) fn complete(&mut self, latency_ns: Nanos) -> bool {
        if self.drains {
            return true;
        }
        self.done += 1;
        if latency_ns <= self.goal.target_ns {
            return true;
        }
        self.late += 1;
        self.goal.percent < 100.0 || self.shrink()
    }

    fn begin_window(&mut self, now: Nanos) {
        (self.since, self.done, self.late) = (now, 0, 0);
    }

    /// The search is over.
    fn grow(&mut self, now: Nanos) -> bool {
        let before = self.depth;
        self.held = before;
        if self.failed == Some(before + 1) {
            // The higher depth may have failed by chance.
            self.held_in_row += 1;
            if self.held_in_row == 3 {
                (self.failed, self.held_in_row) = (Some(before + 2), 0);
            }
        }
        self.depth =
            self.failed.map_or(before * 2, |failed| u32::midpoint(before, failed)).min(self.max);
        self.begin_window(now);
        if self.goal.goes_on || self.depth != before {
            return false;
        }
        if self.found {
            return true;
        }
        (self.found, self.drains) = (true, true);
        false
    }

    /// `false`: the depth was 1 already.
    fn shrink(&mut self) -> bool {
        if self.depth == 1 {
            return false;
        }
        self.failed = Some(self.depth);
        if self.depth == self.held {
            self.held -= 1;
        }
        self.depth = u32::midpoint(self.depth, self.held).max(1);
        (self.held_in_row, self.drains) = (0, true);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depth found and the steps reached.
    fn searched(goal: LatencyGoal, max: u32, late_percent_above: u32) -> (u32, [bool; 2]) {
        let mut search = Search::new(goal, max);
        let (mut now, mut in_flight, mut kinds) = (0, 0, [false; 2]);
        search.begin(now);
        for turn in 0..200_000u32 {
            match search.before(now, in_flight) {
                Step::Issue => in_flight += 1,
                Step::Hold => {
                    let latency = u64::from(in_flight) * 100_000;
                    now += latency;
                    for request in 0..in_flight {
                        let late = (turn + request) % 100 < late_percent_above;
                        assert!(
                            search.complete(if late { latency * 100 } else { latency }),
                            "depth {}",
                            search.depth()
                        );
                    }
                    in_flight = 0;
                }
                Step::Measure => kinds[0] = true,
                Step::End => {
                    kinds[1] = true;
                    break;
                }
            }
        }
        (search.depth(), kinds)
    }

    fn goal(target_us: u64, percent: f64) -> LatencyGoal {
        LatencyGoal {
            target_ns: target_us * 1000,
            window_ns: 50_000_000,
            percent,
            ..LatencyGoal::default()
        }
    }

    #[test]
    fn the_highest_depth_within_the_target_is_found() {
        for (target_us, max, depth) in [
            (100, 64, 1),
            (250, 64, 2),
            (750, 64, 7),
            (1700, 64, 17),
            (2000, 16, 16),
            (90_000, 128, 128),
        ] {
            assert_eq!(
                searched(goal(target_us, 99.0), max, 0),
                (depth, [true, true]),
                "{target_us} us of {max}"
            );
        }
    }

    #[test]
    fn late_requests_within_the_percentile_are_accepted() {
        assert_eq!(searched(goal(750, 90.0), 64, 5), (7, [true, true]));
        // The target is never met: depth 1 until the job ends.
        assert_eq!(searched(goal(750, 99.0), 64, 5), (1, [false, false]));
    }

    #[test]
    fn latency_run_searches_until_the_job_ends() {
        let (depth, ends) = searched(LatencyGoal { goes_on: true, ..goal(750, 99.0) }, 64, 0);
        assert!((7..=8).contains(&depth) && ends == [false, false], "{depth} {ends:?}");
    }

    #[test]
    fn with_100_percent_one_late_request_shrinks_the_depth() {
        let mut search = Search::new(goal(750, 100.0), 64);
        search.begin(0);
        for now in [60_000_000, 120_000_000, 180_000_000] {
            assert!(search.complete(1000));
            search.before(now, 0);
        }
        assert_eq!(search.depth(), 8);
        assert!(search.complete(800_000));
        assert_eq!((search.depth(), search.before(180_000_001, 3)), (6, Step::Hold));
        assert!(search.complete(800_000), "requests of the previous depth no longer count");
        assert_eq!((search.depth(), search.before(180_000_002, 0)), (6, Step::Issue));
        let mut alone = Search::new(goal(750, 100.0), 64);
        alone.begin(0);
        assert!(!alone.complete(800_000));
    }
}
