//! When an open loop's requests are due, whether or not earlier ones have completed.

use machine::Nanos;
use workload::Workload;

/// In 2^-16 ns, because rates of millions per second need fractions.
const FRACTION_BITS: u32 = 16;
const FRACTION: f64 = (1 << FRACTION_BITS) as f64;

#[derive(Debug, Clone, Copy)]
struct Step {
    /// Between two requests; 0 in a pause.
    interval: u64,
    /// Relative to the beginning.
    end: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Pace {
    interval: u64,
    /// Relative to the beginning.
    next: u64,
    end: u64,
    steps: Box<[Step]>,
    at: usize,
    /// The seed and the number of draws, if arrivals are Poisson.
    drawn: Option<(u64, u64)>,
}

impl Pace {
    /// Takes source `index` of `sources`, which take turns.
    pub(crate) fn new(workload: &Workload, (index, sources): (u64, u64)) -> Option<Pace> {
        let interval = |rate: f64| {
            if rate > 0.0 { (sources as f64 / rate * 1e9 * FRACTION) as u64 } else { 0 }
        };
        if let Some(rate) = workload.rate_iops {
            let interval = interval(rate);
            let next = interval / sources * index;
            let steps = Box::default();
            return Some(Pace { interval, next, end: u64::MAX, steps, at: 0, drawn: None });
        }
        if workload.load.is_empty() {
            return None;
        }
        let mut end: Nanos = 0;
        let steps = workload.load.iter().map(|step| {
            end = end.saturating_add(step.duration_ns);
            Step { interval: interval(step.rate_iops), end: end << FRACTION_BITS }
        });
        let steps = steps.collect();
        let mut pace = Pace { interval: 0, next: 0, end: 0, steps, at: 0, drawn: None };
        pace.enter(0, index as f64 / sources as f64);
        Some(pace)
    }

    /// Relative to the beginning.
    pub(crate) fn due(&self) -> Nanos {
        self.next >> FRACTION_BITS
    }

    #[inline]
    pub(crate) fn advance(&mut self) {
        self.next += self.step();
        if self.next >= self.end {
            self.cross();
        }
    }

    fn step(&mut self) -> u64 {
        let Some((seed, count)) = &mut self.drawn else { return self.interval };
        *count += 1;
        let chance = workload::rng::unit(workload::rng::hash(*seed, *count));
        // Exponential with this mean.
        (self.interval as f64 * -(1.0 - chance).ln()) as u64
    }

    #[cold]
    fn cross(&mut self) {
        let (from, beyond) = (self.end, self.next - self.end);
        self.at += 1;
        self.enter(from, beyond as f64 / self.interval as f64);
    }

    /// Takes the remaining share of an interval as `left`; the share that has passed counts,
    /// whatever the rate was.
    fn enter(&mut self, mut from: u64, mut left: f64) {
        while let Some(&Step { interval, end }) = self.steps.get(self.at) {
            (self.interval, self.end) = (interval, end);
            if interval > 0 {
                self.next = from.saturating_add((left * interval as f64) as u64);
                if self.next < end {
                    return;
                }
                left = (self.next - end) as f64 / interval as f64;
            }
            from = end;
            self.at += 1;
        }
        (self.next, self.end) = (u64::MAX, u64::MAX);
    }

    /// Counts each step's requests that are still due.
    pub(crate) fn left(&self) -> Vec<u64> {
        let mut counts = vec![0; self.steps.len()];
        let mut rest = self.clone();
        while let Some(count) = counts.get_mut(rest.at) {
            let requests = (rest.end - rest.next).div_ceil(rest.interval);
            *count += requests;
            rest.next = rest.next.saturating_add(requests.saturating_mul(rest.interval));
            rest.cross();
        }
        counts
    }

    pub(crate) fn arrive_at_random(&mut self, seed: u64) {
        self.drawn = Some((seed, 0));
        self.next = self.step();
    }

    /// Delays the schedule, which does not catch up; `moved` computes the pause from the interval,
    /// both in ns.
    pub(crate) fn skip(&mut self, moved: impl Fn(f64) -> f64) {
        self.next += (moved(self.interval as f64 / FRACTION) * FRACTION) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::{Stop, parse_load};

    fn of(load: &str, source: (u64, u64)) -> Pace {
        let load = parse_load(load).unwrap();
        let total = load.iter().map(|step| step.duration_ns).sum();
        let workload = Workload { load, stop: Stop::AfterNs(total), ..Workload::default() };
        Pace::new(&workload, source).unwrap()
    }

    /// Returns ms.
    fn times(mut pace: Pace) -> Vec<f64> {
        let mut times = Vec::new();
        while pace.next < u64::MAX {
            times.push((pace.due() as f64 / 1e5).round() / 10.0);
            pace.advance();
        }
        times
    }

    #[test]
    fn each_step_has_its_rate() {
        let expected = [0.0, 10.0, 20.0, 30.0, 32.0, 34.0, 36.0, 38.0];
        assert_eq!(times(of("100:30ms,500:10ms", (0, 1))), expected);
        assert_eq!(times(of("100:20ms,0:50ms,100:20ms", (0, 1))), [0.0, 10.0, 70.0, 80.0]);
    }

    #[test]
    fn an_interval_goes_on_in_the_next_step() {
        // At 25 ms half an interval has passed, so the other half of a shorter one remains.
        assert_eq!(times(of("100:25ms,500:5ms", (0, 1))), [0.0, 10.0, 20.0, 26.0, 28.0]);
        // Steps shorter than an interval add up: 0.3 + 0.3 + 0.4 of it.
        assert_eq!(times(of("10:30ms,10:30ms,10:90ms", (0, 1))), [0.0, 100.0]);
    }

    #[test]
    fn sources_take_turns() {
        let mut all: Vec<f64> =
            (0..4).flat_map(|source| times(of("100:30ms,1000:10ms", (source, 4)))).collect();
        all.sort_by(f64::total_cmp);
        let expected = [0.0, 10.0, 20.0].into_iter().chain((30..40).map(f64::from));
        assert_eq!(all, expected.collect::<Vec<_>>());
    }

    #[test]
    fn what_was_not_issued_is_counted() {
        let mut pace = of("100:30ms,0:5ms,500:10ms", (0, 1));
        assert_eq!(pace.left(), [3, 0, 5]);
        (0..4).for_each(|_| pace.advance());
        assert_eq!(pace.left(), [0, 0, 4]);
        (0..4).for_each(|_| pace.advance());
        assert_eq!((pace.left(), pace.next), (vec![0, 0, 0], u64::MAX));
    }
}
