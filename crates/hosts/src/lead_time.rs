//! From an order to the agreed start: enough time to prepare.

use ::machine::{Allocation, Buffering, CacheState, Nanos};
use workload::Workload;

const MARGIN_NS: Nanos = 10_000_000;

/// Preparing twice differs by less, mostly.
const SPREAD: f64 = 1.5;

const FIRST_NS: Nanos = 30_000_000;

const MAX_NS: Nanos = 60_000_000_000;

/// What remains of the earlier need if a run needed less.
const KEPT: f64 = 0.8;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Preparation {
    Run { read_percent: u8, buffering: Buffering, cache: CacheState, allocation: Allocation },
    Job,
}

impl From<&Workload> for Preparation {
    fn from(workload: &Workload) -> Self {
        let &Workload { read_percent, buffering, cache, allocation, .. } = workload;
        Preparation::Run { read_percent, buffering, cache, allocation }
    }
}

#[derive(Debug, Default)]
pub(crate) struct LeadTimes {
    needed: Vec<(Preparation, Nanos)>,
}

impl LeadTimes {
    pub(crate) fn of(&self, wanted: impl Into<Preparation>) -> Nanos {
        let wanted = wanted.into();
        let known = self.needed.iter().find(|(preparation, _)| *preparation == wanted);
        known.map_or(FIRST_NS, |&(_, needed)| {
            ((needed as f64 * SPREAD) as Nanos).saturating_add(MARGIN_NS).min(MAX_NS)
        })
    }

    /// `needed` is from an order until the last rank was ready.
    pub(crate) fn learn(&mut self, made: impl Into<Preparation>, needed: Nanos) {
        let preparation = made.into();
        match self.needed.iter_mut().find(|(known, _)| *known == preparation) {
            Some((_, old)) => *old = needed.max((*old as f64 * KEPT) as Nanos),
            None => self.needed.push((preparation, needed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_preparation_delays_no_other_and_is_forgotten() {
        let mut times = LeadTimes::default();
        let cold = Workload { cache: CacheState::Cold, ..Workload::default() };
        let warm = Workload { cache: CacheState::Warm, ..Workload::default() };
        assert_eq!(times.of(&cold), FIRST_NS);
        times.learn(&cold, 1_000_000_000);
        assert_eq!(times.of(&cold), 1_500_000_000 + MARGIN_NS);
        assert_eq!(times.of(&warm), FIRST_NS);
        for _ in 0..40 {
            times.learn(&cold, 1_000_000);
        }
        assert!(times.of(&cold) < 2 * MARGIN_NS, "{}", times.of(&cold));
    }
}
