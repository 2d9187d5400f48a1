//! Schedules by direction, as in fio.

use crate::fio::plan::jobs::Job;
use machine::{Nanos, Op, Request};
use workload::{SizeDraw, rng};

const PURPOSE_ARRIVALS: u64 = 0xa772;

/// The mix decides only while both schedules are due.
#[derive(Debug)]
pub(crate) struct Rates {
    schedules: [Option<Schedule>; 2],
    used: [bool; 2],
    /// `None`: all are the same.
    sizes: Option<[SizeDraw; 2]>,
    seed: u64,
    drawn: u64,
}

#[derive(Debug, Clone, Copy)]
struct Schedule {
    ns_per_byte: f64,
    interval_ns: f64,
    next_ns: f64,
    poisson: bool,
}

impl Rates {
    pub(crate) fn of(job: &Job, seed: u64, streams: u32) -> Option<Rates> {
        let options = &job.options;
        if !job.has_schedules() {
            return None;
        }
        let (share, bytes) = (f64::from(streams), job.rates_bytes());
        let schedule = |side: usize| {
            let (min_bytes, _) = options.blocks[side].bounds()?;
            let bytes_per_s = bytes[side]?;
            let ns_per_byte = 1e9 / bytes_per_s * share;
            let interval_ns = ns_per_byte * f64::from(min_bytes);
            let poisson = options.poisson;
            Some(Schedule { ns_per_byte, interval_ns, next_ns: 0.0, poisson })
        };
        let sizes = job.sizes().map(|_| options.blocks.each_ref().map(SizeDraw::new));
        let reads = options.read_percent();
        Some(Rates {
            schedules: [schedule(0), schedule(1)],
            used: [reads > 0, reads < 100],
            sizes,
            seed: rng::derive(seed, PURPOSE_ARRIVALS, 0),
            drawn: 0,
        })
    }

    pub(crate) fn begin(&mut self, now: Nanos) {
        for side in 0..2 {
            let first_ns = self.step(side, 0);
            if let Some(schedule) = &mut self.schedules[side] {
                let random = if schedule.poisson { first_ns } else { 0.0 };
                schedule.next_ns = now as f64 + random;
            }
        }
    }

    fn due(&self, side: usize) -> Nanos {
        self.schedules[side].map_or(0, |schedule| schedule.next_ns as Nanos)
    }

    pub(crate) fn next_due(&self) -> Nanos {
        let used = (0..2).filter(|&side| self.used[side]);
        used.map(|side| self.due(side)).min().unwrap_or(0)
    }

    /// `None`: now.
    pub(crate) fn wait(&self, now: Nanos) -> Option<Nanos> {
        Some(self.next_due()).filter(|&due| due > now)
    }

    /// Prefers the request's own direction. Returns since when it was due.
    pub(crate) fn direct(&mut self, request: &mut Request, now: Nanos) -> Nanos {
        let mut side = request.op as usize;
        if self.due(side) > now && self.used[1 - side] {
            side = 1 - side;
            request.op = [Op::Read, Op::Write][side];
            if let Some(sizes) = &self.sizes {
                request.len = sizes[side].at(rng::hash(self.seed, self.drawn));
                self.drawn += 1;
            }
        }
        let due = self.due(side);
        let step_ns = self.step(side, request.len);
        match &mut self.schedules[side] {
            Some(schedule) => {
                schedule.next_ns += step_ns;
                due
            }
            None => now,
        }
    }

    /// For requests that change their length after [`Rates::direct`].
    pub(crate) fn resized(&mut self, side: usize, from: u32, to: u32) {
        if let Some(schedule) = self.schedules[side].as_mut().filter(|one| !one.poisson) {
            schedule.next_ns += schedule.ns_per_byte * (f64::from(to) - f64::from(from));
        }
    }

    fn step(&mut self, side: usize, bytes: u32) -> f64 {
        match self.schedules[side] {
            Some(Schedule { poisson: true, interval_ns, .. }) => {
                self.drawn += 1;
                let chance = rng::unit(rng::hash(self.seed, self.drawn));
                interval_ns * -(1.0 - chance).ln()
            }
            Some(Schedule { ns_per_byte, .. }) => ns_per_byte * f64::from(bytes),
            None => 0.0,
        }
    }

    /// `rate_ignore_thinktime`: as in fio, only the direction before the pause does not catch up.
    pub(crate) fn skip(&mut self, pause: Nanos, side: usize) {
        // A trim follows the schedule of writes.
        if let Some(schedule) = &mut self.schedules[side.min(1)] {
            schedule.next_ns += skipped_ns(pause as f64, schedule.interval_ns);
        }
    }
}

/// As in fio, a request is due at the end of a pause.
pub(crate) fn skipped_ns(pause_ns: f64, interval_ns: f64) -> f64 {
    if interval_ns <= pause_ns { pause_ns - interval_ns } else { pause_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::plan::jobs::job;

    fn issued(settings: &str, count: usize, wanted: Op) -> Vec<(Op, u64)> {
        let mut rates = Rates::of(&job(settings), 1, 1).unwrap();
        rates.begin(0);
        let mut now = 0;
        let mut next = || {
            now = rates.wait(now).unwrap_or(now);
            let mut request = Request { op: wanted, target: 0, offset: 0, len: 4096, slot: 0 };
            rates.direct(&mut request, now);
            (request.op, now / 1_000_000)
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn each_direction_has_its_schedule() {
        let (read, write) = (Op::Read, Op::Write);
        let all = [(read, 0), (write, 0), (read, 500), (read, 1000), (write, 1000), (read, 1500)];
        assert_eq!(issued("rw=rw rate_iops=2,1", 6, read), all);
        // The other direction has no rate, so it fills the time.
        assert_eq!(issued("rw=rw rate_iops=1,", 3, read), [(read, 0), (write, 0), (write, 0)]);
    }

    #[test]
    fn random_arrivals_keep_the_rate() {
        let all = issued("rw=rw rate_iops=90,10 rate_process=poisson", 20_000, Op::Read);
        let seconds = all.last().unwrap().1 as f64 / 1000.0;
        for (op, rate) in [(Op::Read, 90.0), (Op::Write, 10.0)] {
            let count = all.iter().filter(|(does, _)| *does == op).count() as f64;
            assert!((count / seconds / rate - 1.0).abs() < 0.05, "{op:?}: {}", count / seconds);
        }
    }

    #[test]
    fn a_pause_that_is_ignored_moves_the_schedules() {
        assert_eq!((skipped_ns(200.0, 100.0), skipped_ns(50.0, 100.0)), (100.0, 50.0));
        let mut rates = Rates::of(&job("rw=rw rate_iops=10,10"), 1, 1).unwrap();
        rates.begin(0);
        rates.skip(50_000_000, Op::Read as usize);
        assert_eq!((rates.due(0), rates.due(1)), (50_000_000, 0), "writes catch up");
    }
}
