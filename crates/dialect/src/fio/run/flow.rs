//! fio's `flow`: keeps jobs in proportion.

use super::core::{Core, Issue};
use super::filter::{Filter, ignores};
use machine::{Nanos, Next};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum lead over the slowest, in requests per unit of weight, to keep a fast device busy
/// between clock ticks; the long-term ratio stays.
const AHEAD: u64 = 8;
const PAUSE_NS: Nanos = 50_000;
/// A member silent for this long has failed.
const SILENT_NS: Nanos = 5_000_000_000;

/// Clones that share a `flow_id`.
#[derive(Debug)]
pub(crate) struct FlowGroup {
    members: Vec<Member>,
    /// First start, plus one; 0: not yet.
    began: AtomicU64,
}

#[derive(Debug)]
struct Member {
    weight: u64,
    /// Requests, as if started with the first member.
    issued: AtomicU64,
    streams: AtomicU64,
    /// When it last asked, plus one; 0: never.
    heard: AtomicU64,
}

impl FlowGroup {
    pub(crate) fn new(weights: impl Iterator<Item = u64>) -> FlowGroup {
        let member = |weight: u64| Member {
            weight: weight.max(1),
            issued: AtomicU64::new(0),
            streams: AtomicU64::new(0),
            heard: AtomicU64::new(0),
        };
        FlowGroup { members: weights.map(member).collect(), began: AtomicU64::new(0) }
    }

    /// In requests per unit of weight.
    fn slowest_other(&self, member: usize, now: Nanos) -> Option<u64> {
        let began = self.began.load(Ordering::Relaxed);
        let running = |(index, other): &(usize, &Member)| {
            // Members that are expected but have not begun count too.
            let heard = other.heard.load(Ordering::Relaxed).max(began);
            *index != member
                && other.streams.load(Ordering::Relaxed) > 0
                && now.saturating_sub(heard) < SILENT_NS
        };
        let others = self.members.iter().enumerate().filter(running);
        others.map(|(_, other)| other.issued.load(Ordering::Relaxed) / other.weight).min()
    }
}

#[derive(Debug)]
pub(crate) struct Flow {
    group: Arc<FlowGroup>,
    member: usize,
    sleep: Nanos,
    joined: bool,
}

impl Flow {
    pub(crate) fn new(group: Arc<FlowGroup>, member: usize, sleep: Nanos) -> Flow {
        Flow { group, member, sleep: sleep.max(PAUSE_NS), joined: false }
    }

    fn own(&self) -> &Member {
        &self.group.members[self.member]
    }

    pub(crate) fn expect(&mut self) {
        self.own().streams.fetch_add(1, Ordering::Relaxed);
        self.joined = true;
    }

    /// An unexpected stream owes nothing for the past.
    fn join(&mut self, now: Nanos) {
        let own = self.own();
        own.heard.store(now + 1, Ordering::Relaxed);
        // Another stream may have been first.
        let _ = self.group.began.compare_exchange(0, now + 1, Ordering::Relaxed, Ordering::Relaxed);
        if self.joined {
            return;
        }
        if own.streams.fetch_add(1, Ordering::Relaxed) == 0
            && let Some(slowest) = self.group.slowest_other(self.member, now)
        {
            own.issued.fetch_max(slowest.saturating_mul(own.weight), Ordering::Relaxed);
        }
        self.joined = true;
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.joined) {
            self.own().streams.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn pause(&self, now: Nanos) -> Option<Next> {
        let own = self.own();
        own.heard.store(now + 1, Ordering::Relaxed);
        let slowest = self.group.slowest_other(self.member, now)?;
        let ahead = own.issued.load(Ordering::Relaxed)
            >= slowest.saturating_add(AHEAD).saturating_mul(own.weight);
        ahead.then_some(Next::WaitUntil(now + self.sleep))
    }

    fn count(&self) {
        self.own().issued.fetch_add(1, Ordering::Relaxed);
    }
}

impl Filter for Flow {
    fn begin(&mut self, core: &Core) {
        self.join(core.measured_from - core.ramp);
    }

    fn before(&mut self, core: &mut Core, now: Nanos) -> Option<Next> {
        if core.is_over(now) { None } else { self.pause(now) }
    }

    fn issued(&mut self, _core: &mut Core, _issue: &Issue) {
        self.count();
    }

    fn left(&mut self, _done: bool) {
        self.leave();
    }

    ignores!(idle completed synced owes fails read_back fill check finish);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(flows: &[Flow], turns: u64, from: Nanos) -> Vec<u64> {
        let mut counts = vec![0; flows.len()];
        for turn in 0..turns {
            for (count, flow) in counts.iter_mut().zip(flows).filter(|(_, flow)| flow.joined) {
                if flow.pause(from + turn).is_none() {
                    flow.count();
                    *count += 1;
                }
            }
        }
        counts
    }

    #[test]
    fn members_keep_their_proportion_until_they_leave() {
        let group = Arc::new(FlowGroup::new([1, 2, 5].into_iter()));
        let mut flows: Vec<Flow> =
            (0..3).map(|member| Flow::new(group.clone(), member, 0)).collect();
        flows.iter_mut().for_each(|flow| flow.join(0));
        let all = shares(&flows, 10_000, 0);
        // All ask equally often: the heaviest is served each time, the others as their weights
        // allow.
        assert!(
            all[0].abs_diff(2000) <= 2 * AHEAD && all[1].abs_diff(4000) <= 4 * AHEAD,
            "{all:?}"
        );
        flows[2].leave();
        let two = shares(&flows, 10_000, 10_000);
        assert!(two[0].abs_diff(5000) <= 4 * AHEAD && two[1] >= 9_900, "{two:?}");
        flows[1].leave();
        assert_eq!(
            shares(&flows, 100, 20_000),
            [100, 0, 0],
            "without other members nothing holds it"
        );
        flows[2].join(30_000);
        let late = shares(&flows, 1000, 30_000);
        assert!(
            late[0].abs_diff(200) <= 2 * AHEAD && late[2] > 900,
            "it owes nothing for the time before: {late:?}"
        );
    }

    #[test]
    fn expected_members_are_waited_for_from_the_beginning() {
        let group = Arc::new(FlowGroup::new([3, 1].into_iter()));
        let mut flows: Vec<Flow> =
            (0..2).map(|member| Flow::new(group.clone(), member, 0)).collect();
        flows.iter_mut().for_each(Flow::expect);
        flows[0].join(0);
        let alone = (0..1000)
            .filter(|_| flows[0].pause(1).is_none().then(|| flows[0].count()).is_some())
            .count();
        assert_eq!(alone as u64, 3 * AHEAD);
        flows[1].join(2);
        assert!(flows[1].pause(2).is_none(), "it has its share");
    }

    #[test]
    fn silent_members_are_not_waited_for() {
        let group = Arc::new(FlowGroup::new([1, 1].into_iter()));
        let mut flows: Vec<Flow> =
            (0..2).map(|member| Flow::new(group.clone(), member, 0)).collect();
        flows.iter_mut().for_each(|flow| flow.join(0));
        for _ in 0..AHEAD {
            assert_eq!(flows[0].pause(1), None);
            flows[0].count();
        }
        assert!(matches!(flows[0].pause(2), Some(Next::WaitUntil(_))), "it is ahead");
        assert_eq!(flows[0].pause(SILENT_NS + 2), None, "the other member is silent");
    }
}
