//! The bench: cells become samples, in an interleaved order, within the time there is.

use crate::design::{Cell, Setting, Shape};
use machine::{Error, Machine, Nanos, Result, TargetFacts};
use measure::{Ceiling, Ceilings, Options, Point, Sample, THROTTLE_SLICE_NS, half_width, of_whole_bursts, ramp, sample};
use std::cell::OnceCell;
use workload::{Workload, rng};

/// More than this many runs' length for one round of requests is left out.
const ROUND_RUNS: f64 = 4.0;

/// A run should hold at least so many rounds of requests.
const ROUNDS_A_RUN: f64 = 6.0;

/// Longest run of quick requests where runs are repeated.
pub(crate) const LONGEST_RUN_NS: f64 = 1e9;

/// Half the 95 % interval that is tight enough.
pub(crate) const TIGHT: f64 = 0.03;

/// Runs beyond which a point is left as it is.
const MOST_SAMPLES: usize = 12;

/// One workload on the bench.
pub(crate) struct Entry {
    pub(crate) workload: Workload,
    pub(crate) shape: Option<Shape>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) failure: Option<String>,
    facts: TargetFacts,
    /// Matters so much more than another in the last rounds.
    weight: f64,
    /// Time at the start of each run that is not measured.
    pub(crate) ramp_ns: Nanos,
    /// Its requests are admitted in bursts of several: its runs begin and end between two of them.
    pub(crate) in_bursts: bool,
    instructions_per_request: Option<f64>,
    ceiling: Option<Ceiling>,
    /// What the samples say together, once somebody asked: the statistics cost more than some runs.
    point: OnceCell<Point>,
    /// Half the 95 % interval as a share of the rate, likewise.
    half_width: OnceCell<f64>,
}

impl Entry {
    /// The point so far.
    pub(crate) fn point(&self) -> &Point {
        self.point.get_or_init(|| match &self.failure {
            Some(why) => Point::failed(self.workload.clone(), why),
            None => {
                let mut point = Point::from_samples(&self.workload, &self.facts, &self.samples).beside(self.ceiling);
                if let Some(numbers) = &mut point.numbers {
                    numbers.achieved.instructions_per_request = self.instructions_per_request;
                }
                point
            }
        })
    }

    fn half_width(&self) -> f64 {
        *self.half_width.get_or_init(|| half_width(&self.samples))
    }

    /// There is something new to be said.
    fn changed(&mut self) {
        (self.point, self.half_width) = (OnceCell::new(), OnceCell::new());
    }
}

/// What the study tells while it goes on.
pub struct Progress<'a> {
    /// The point being measured, in short.
    pub doing: &'a str,
    /// Time passed since the study began.
    pub passed_ns: Nanos,
    /// Time that it will take at most.
    pub budget_ns: Nanos,
}

/// The bench.
pub(crate) struct Bench<'a, M: Machine> {
    pub(crate) machine: &'a M,
    pub(crate) target: &'a mut M::Target,
    pub(crate) entries: Vec<Entry>,
    /// What was left out, a reason each.
    pub(crate) left_out: Vec<String>,
    /// Cells left out because one round of their requests takes too long.
    pub(crate) too_long: usize,
    told: &'a mut dyn FnMut(Progress<'_>),
    began: Nanos,
    budget: Nanos,
    /// Two runs of a workload differ. Where they do not, each is run once, and as long as it takes: time costs nothing there.
    pub(crate) noisy: bool,
    whole: Shape,
    shape: Shape,
    seed: u64,
    /// Mean time that a sample takes beyond its run.
    overhead: f64,
    /// Requests are admitted in bursts.
    pub(crate) bursty: bool,
    ceilings: Ceilings,
}

impl<'a, M: Machine> Bench<'a, M> {
    pub(crate) fn new(
        machine: &'a M,
        target: &'a mut M::Target,
        began: Nanos,
        budget: Nanos,
        seed: u64,
        told: &'a mut dyn FnMut(Progress<'_>),
    ) -> Bench<'a, M> {
        let facts = machine.target_facts(target);
        let whole = Shape { members: (0..facts.members).collect(), chunk: facts.chunk_bytes.unwrap_or(0) };
        Bench {
            machine,
            target,
            entries: Vec::new(),
            left_out: Vec::new(),
            too_long: 0,
            told,
            began,
            budget,
            noisy: machine.capabilities().noisy,
            shape: whole.clone(),
            whole,
            seed,
            overhead: 5e6,
            bursty: false,
            ceilings: Ceilings::default(),
        }
    }

    /// What every entry says so far.
    pub(crate) fn points(&self) -> Vec<Point> {
        self.entries.iter().map(|entry| entry.point().clone()).collect()
    }

    /// Time since the study began.
    pub(crate) fn passed(&self) -> Nanos {
        self.machine.now().saturating_sub(self.began)
    }

    /// A point in time at this share of the budget; where nothing is noisy, time is no object.
    pub(crate) fn at(&self, share: f64) -> Nanos {
        if !self.noisy {
            return Nanos::MAX;
        }
        self.began + (self.budget as f64 * share) as Nanos
    }

    /// Tells what goes on.
    pub(crate) fn tell(&mut self, doing: &str) {
        let passed_ns = self.passed();
        (self.told)(Progress { doing, passed_ns, budget_ns: self.budget });
    }

    /// Puts a cell on the bench; the same workload stands there once. Returns its place, or none where it would take too long.
    pub(crate) fn add(&mut self, cell: &Cell, setting: &Setting) -> Option<usize> {
        // Fewer members of a stripe are slower.
        let share = cell.shape.as_ref().map_or(1.0, |shape| shape.members.len() as f64 / f64::from(setting.members.max(1)));
        let speed = setting.speed_of(&cell.workload);
        let round = speed.round_ns(cell.workload.outstanding(), cell.workload.request_bytes) / share;
        if self.noisy && round > ROUND_RUNS * setting.run_ns as f64 {
            self.too_long += 1;
            return None;
        }
        let mut cell = cell.clone();
        let burst = speed.bytes_per_s * share * THROTTLE_SLICE_NS as f64 / 1e9;
        let at_device = cell.workload.buffering.is_direct() && cell.workload.limit_bytes.is_none() && cell.workload.think_ns == 0;
        let in_bursts = self.bursty && at_device && f64::from(cell.workload.request_bytes) * 2.0 <= burst;
        if let workload::Stop::AfterNs(ns) = &mut cell.workload.stop {
            // Large rounds need longer runs: two requests tell no rate.
            let longest = if self.noisy { ROUND_RUNS * setting.run_ns as f64 } else { f64::INFINITY };
            let wanted = (round * ROUNDS_A_RUN).min(longest) as Nanos;
            *ns = if in_bursts { (*ns).max(wanted).next_multiple_of(THROTTLE_SLICE_NS) } else { (*ns).max(wanted) };
        }
        let found = self.entries.iter().position(|entry| entry.workload == cell.workload && entry.shape == cell.shape);
        Some(found.unwrap_or_else(|| {
            let place = self.push(cell.workload.clone(), cell.shape.clone());
            self.entries[place].in_bursts = in_bursts;
            place
        }))
    }

    /// Puts a workload on the bench.
    pub(crate) fn push(&mut self, workload: Workload, shape: Option<Shape>) -> usize {
        let facts = self.machine.target_facts(self.target);
        self.entries.push(Entry {
            workload,
            shape,
            samples: Vec::new(),
            failure: None,
            facts,
            weight: 1.0,
            ramp_ns: 0,
            in_bursts: false,
            instructions_per_request: None,
            ceiling: None,
            point: OnceCell::new(),
            half_width: OnceCell::new(),
        });
        self.entries.len() - 1
    }

    /// Makes some entries matter more in the last rounds.
    pub(crate) fn weigh(&mut self, places: &[usize], weight: f64) {
        for &place in places {
            self.entries[place].weight = weight;
        }
    }

    /// One more sample of an entry. A failure is the entry's own.
    ///
    /// # Errors
    /// The user's interrupt.
    pub(crate) fn sample(&mut self, place: usize) -> Result<()> {
        let doing = self.entries[place].workload.short();
        self.tell(&doing);
        let shape = self.entries[place].shape.clone().unwrap_or_else(|| self.whole.clone());
        let began = self.machine.now();
        let entry = &self.entries[place];
        let options = if entry.in_bursts {
            of_whole_bursts(self.machine, entry.ramp_ns)
        } else {
            Options { ramp_ns: ramp(&entry.workload, &entry.samples).max(entry.ramp_ns), ..Options::default() }
        };
        let made = self.bring(&shape).and_then(|()| sample(self.machine, self.target, &self.entries[place].workload, options));
        let took = self.machine.now().saturating_sub(began) as f64;
        let entry = &mut self.entries[place];
        entry.facts = self.machine.target_facts(self.target);
        entry.changed();
        match made {
            Ok(one) => {
                let beyond = (took - one.usage.elapsed_ns as f64).max(0.0);
                self.overhead = 0.9 * self.overhead + 0.1 * beyond;
                entry.samples.push(one);
                if entry.samples.len() == 1 {
                    entry.ceiling = self.ceilings.of(self.machine, self.target, &entry.workload);
                }
                Ok(())
            }
            Err(Error::Interrupted) => Err(Error::Interrupted),
            Err(error) => {
                entry.failure = Some(error.to_string());
                Ok(())
            }
        }
    }

    /// Counts the instructions of an entry in a run of its own.
    ///
    /// # Errors
    /// The user's interrupt.
    pub(crate) fn count(&mut self, place: usize) -> Result<()> {
        let workload = self.entries[place].workload.clone();
        self.tell(&format!("instructions of {}", workload.short()));
        match sample(self.machine, self.target, &workload, Options { count_instructions: true, ..Options::default() }) {
            Ok(one) => {
                let counted = one.usage.cpu.instructions_user;
                let entry = &mut self.entries[place];
                entry.instructions_per_request = counted.map(|count| count as f64 / one.requests_with_ramp.max(1) as f64);
                entry.changed();
                Ok(())
            }
            Err(Error::Interrupted) => Err(Error::Interrupted),
            // The timed pass tells of the failure.
            Err(_) => Ok(()),
        }
    }

    /// Brings the target into a shape.
    fn bring(&mut self, shape: &Shape) -> Result<()> {
        if self.shape != *shape {
            self.machine.restripe(self.target, &shape.members, shape.chunk)?;
            self.shape = shape.clone();
        }
        Ok(())
    }

    /// Samples entries a round at a time, each round in another random order, until each has `least` samples or the time is up.
    /// Returns the entries that were not reached at all.
    ///
    /// # Errors
    /// The user's interrupt.
    pub(crate) fn rounds(&mut self, places: &[usize], least: usize, until: Nanos) -> Result<Vec<usize>> {
        let least = if self.noisy { least } else { least.min(1) };
        for round in 1..=least {
            for place in self.shuffled(places) {
                let entry = &self.entries[place];
                if entry.failure.is_some() || entry.samples.len() >= round {
                    continue;
                }
                if self.machine.now().saturating_add(self.cost(place)) > until {
                    continue;
                }
                self.sample(place)?;
            }
        }
        Ok(places
            .iter()
            .copied()
            .filter(|&place| self.entries[place].samples.is_empty() && self.entries[place].failure.is_none())
            .collect())
    }

    /// Forgets the entries that were never reached; returns where each of the others went.
    pub(crate) fn drop_unreached(&mut self) -> Vec<Option<usize>> {
        let mut places = Vec::with_capacity(self.entries.len());
        let mut kept = 0;
        for entry in &self.entries {
            let reached = !entry.samples.is_empty() || entry.failure.is_some();
            places.push(reached.then_some(kept));
            kept += usize::from(reached);
        }
        self.entries.retain(|entry| !entry.samples.is_empty() || entry.failure.is_some());
        places
    }

    /// Samples the widest entries until all are tight or the time is up.
    ///
    /// # Errors
    /// The user's interrupt.
    pub(crate) fn tighten(&mut self, places: &[usize], until: Nanos) -> Result<()> {
        if !self.noisy {
            return Ok(());
        }
        let mut open: Vec<usize> = places.to_vec();
        loop {
            open.retain(|&place| {
                let entry = &self.entries[place];
                entry.failure.is_none()
                    && !entry.samples.is_empty()
                    && entry.samples.len() < MOST_SAMPLES
                    && entry.half_width() > TIGHT
                    && self.machine.now() + self.cost(place) <= until
            });
            let widest = open.iter().copied().max_by(|&a, &b| self.urgency(a).total_cmp(&self.urgency(b)));
            match widest {
                Some(place) => self.sample(place)?,
                None => return Ok(()),
            }
        }
    }

    /// How much another sample of an entry would help: its width, less for what was tried often.
    fn urgency(&self, place: usize) -> f64 {
        let entry = &self.entries[place];
        entry.half_width().min(2.0) * entry.weight / entry.samples.len() as f64
    }

    /// About how long another sample of an entry takes.
    fn cost(&self, place: usize) -> Nanos {
        let entry = &self.entries[place];
        let run = match (entry.samples.last(), entry.workload.stop) {
            (Some(last), _) => last.usage.elapsed_ns + last.usage.sync_ns.unwrap_or(0),
            (None, workload::Stop::AfterNs(ns)) => ns,
            (None, workload::Stop::AfterBytes(_)) => 0,
        };
        run + self.overhead as Nanos
    }

    fn shuffled(&mut self, places: &[usize]) -> Vec<usize> {
        self.seed = rng::hash(self.seed, 1);
        let mut keyed: Vec<(u64, usize)> = places.iter().map(|&place| (rng::hash(self.seed, place as u64), place)).collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, place)| place).collect()
    }
}
