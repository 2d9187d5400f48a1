//! Turns workloads into samples, interleaved, within the budget.

use crate::context::StudyContext;
use crate::grid::{Cell, StripeShape};
use machine::{
    CacheState, Machine, Nanos, RequestTimes, Result, THROTTLE_SLICE_NS, TargetFacts, TargetKind,
};
use measure::stats::{Estimate, Spread};
use measure::{
    Ceilings, Measured, Options, PointStatus, Repeated, Repeats, Sample, cached_before, may_run,
    of_whole_bursts, ramp, rate_estimate_beside, rate_spread, repeat, sample, traced_times,
};
use results::{Point, Question, StripeRecord};
use std::cell::OnceCell;
use workload::{Workload, rng};

/// A workload is left out if one round of its requests takes this many runs.
const ROUND_RUNS: f64 = 4.0;

const ROUNDS_A_RUN: f64 = 6.0;

/// For fast requests, if runs are repeated.
pub(crate) const LONGEST_RUN_NS: f64 = 1e9;

pub(crate) const PRECISION: f64 = 0.03;

const MAX_RUNS: u32 = 32;

pub(crate) struct Entry {
    pub(crate) workload: Workload,
    pub(crate) question: Question,
    pub(crate) shape: Option<StripeShape>,
    pub(crate) measured: Measured,
    pub(crate) facts: TargetFacts,
    weight: f64,
    pub(crate) ramp_ns: Nanos,
    pub(crate) in_bursts: bool,
    instructions_per_request: Option<f64>,
    request_times: Option<RequestTimes>,
    /// Between runs of similar points, once known.
    common: Option<Spread>,
    /// Cached: the statistics cost more than some runs.
    point: OnceCell<Point>,
    estimate: OnceCell<Option<Estimate>>,
    /// Of all visits, in bytes per second, if they disagree.
    visits: Option<[f64; 2]>,
}

impl Entry {
    pub(crate) fn new(workload: Workload, shape: Option<StripeShape>, facts: TargetFacts) -> Entry {
        Entry {
            question: Question::of(&workload),
            workload,
            shape,
            measured: Measured::default(),
            facts,
            weight: 1.0,
            ramp_ns: 0,
            in_bursts: false,
            instructions_per_request: None,
            request_times: None,
            common: None,
            point: OnceCell::new(),
            estimate: OnceCell::new(),
            visits: None,
        }
    }

    pub(crate) fn disagrees(&self) -> bool {
        self.visits.is_some()
    }

    fn cover(&mut self, interval: [f64; 2]) {
        self.visits = Some(interval);
        self.point = OnceCell::new();
    }

    fn forget(&mut self) {
        (self.point, self.estimate, self.visits) = (OnceCell::new(), OnceCell::new(), None);
    }

    pub(crate) fn estimate(&self) -> Option<&Estimate> {
        self.estimate.get_or_init(|| rate_estimate_beside(self.samples(), self.common)).as_ref()
    }

    pub(crate) fn has_common_spread(&self) -> bool {
        self.common.is_some()
    }

    /// The page cache and the device each have their own spread.
    fn kind(&self) -> (bool, bool) {
        (self.workload.writes(), self.workload.buffering.is_direct())
    }

    pub(crate) fn point(&self) -> &Point {
        self.point.get_or_init(|| {
            let mut point = Point::of(&self.workload, &self.facts, &self.measured);
            point.stripe = self.shape.as_ref().map(|shape| StripeRecord {
                members: shape.members.clone(),
                chunk_bytes: shape.chunk,
            });
            point.whole_bursts = self.in_bursts;
            if let Some(numbers) = &mut point.numbers {
                if let Some(estimate) = self.estimate().filter(|_| self.common.is_some()) {
                    numbers.set_estimate(estimate);
                }
                if let Some(interval) = self.visits {
                    numbers.set_interval(interval);
                }
                numbers.achieved.instructions_per_request = self.instructions_per_request;
                if let Some(times) = &self.request_times {
                    numbers.achieved.set_request_times(times.clone());
                }
            }
            point
        })
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.measured.samples
    }

    pub(crate) fn repeats_exactly(&self) -> bool {
        self.facts.kind == TargetKind::Simulated
    }

    pub(crate) fn reached(&self) -> bool {
        !self.samples().is_empty() || self.measured.failure.is_some()
    }
}

pub struct Progress<'a> {
    pub doing: &'a str,
    pub passed_ns: Nanos,
    pub budget_ns: Nanos,
}

pub(crate) struct Sampler<'a, M: Machine> {
    pub(crate) machine: &'a M,
    pub(crate) target: &'a mut M::Target,
    pub(crate) entries: Vec<Entry>,
    pub(crate) left_out: Vec<String>,
    /// Workloads with too long a round.
    pub(crate) too_long: usize,
    on_progress: &'a mut dyn FnMut(Progress<'_>),
    began: Nanos,
    budget: Nanos,
    /// Runs are repeated; otherwise each workload runs once, in virtual time.
    pub(crate) noisy: bool,
    whole: StripeShape,
    shape: StripeShape,
    seed: u64,
    /// Of a sample beyond its run, in ns.
    pub(crate) overhead: f64,
    pub(crate) bursty: bool,
    ended: [Nanos; 2],
    ceilings: Ceilings,
}

impl<'a, M: Machine> Sampler<'a, M> {
    pub(crate) fn new(
        machine: &'a M,
        target: &'a mut M::Target,
        began: Nanos,
        budget: Nanos,
        seed: u64,
        on_progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> Sampler<'a, M> {
        let facts = machine.target_facts(target);
        let whole = StripeShape {
            members: (0..facts.members).collect(),
            chunk: facts.chunk_bytes.unwrap_or(0),
        };
        Sampler {
            machine,
            target,
            entries: Vec::new(),
            left_out: Vec::new(),
            too_long: 0,
            on_progress,
            began,
            budget,
            noisy: machine.capabilities().noisy,
            shape: whole.clone(),
            whole,
            seed,
            overhead: 5e6,
            bursty: false,
            ended: [machine.now(); 2],
            ceilings: Ceilings::default(),
        }
    }

    fn note_end(&mut self, workload: &Workload) {
        let now = self.machine.now();
        self.ended
            .iter_mut()
            .zip(kinds(workload))
            .filter(|(_, makes)| *makes)
            .for_each(|(ended, _)| *ended = now);
    }

    fn idle_ns(&self, workload: &Workload) -> Nanos {
        let last = self
            .ended
            .iter()
            .zip(kinds(workload))
            .filter(|(_, makes)| *makes)
            .map(|(ended, _)| *ended)
            .max();
        self.machine.now().saturating_sub(last.unwrap_or_default())
    }

    pub(crate) fn points(&self) -> Vec<Point> {
        self.entries.iter().map(|entry| entry.point().clone()).collect()
    }

    pub(crate) fn budget(&self) -> Nanos {
        self.budget
    }

    pub(crate) fn passed(&self) -> Nanos {
        self.machine.now().saturating_sub(self.began)
    }

    pub(crate) fn at(&self, share: f64) -> Nanos {
        if !self.noisy {
            return Nanos::MAX;
        }
        self.began + (self.budget as f64 * share) as Nanos
    }

    pub(crate) fn report(&mut self, doing: &str) {
        let passed_ns = self.passed();
        (self.on_progress)(Progress { doing, passed_ns, budget_ns: self.budget });
    }

    pub(crate) fn add(&mut self, cell: &Cell, setting: &StudyContext) -> Option<usize> {
        // Fewer members of a stripe are slower.
        let share = cell
            .shape
            .as_ref()
            .map_or(1.0, |shape| shape.members.len() as f64 / f64::from(setting.members.max(1)));
        let speed = setting.speed_of(&cell.workload);
        let clients = cell.workload.clients.unwrap_or(1);
        let outstanding = cell.workload.outstanding().saturating_mul(clients);
        let round = speed.round_ns(outstanding, cell.workload.request_bytes) / share;
        if self.noisy && round > ROUND_RUNS * setting.run_ns as f64 {
            self.too_long += 1;
            return None;
        }
        let mut workload = cell.workload.clone();
        let burst = speed.bytes_per_s * share * THROTTLE_SLICE_NS as f64 / 1e9;
        let past_cache = workload.buffering.is_direct()
            || (!workload.writes() && workload.cache == CacheState::Cold);
        let at_device = past_cache && workload.limit_bytes.is_none() && workload.think_ns == 0;
        let in_bursts =
            self.bursty && at_device && f64::from(workload.request_bytes) * 2.0 <= burst;
        if let workload::Stop::AfterNs(ns) = &mut workload.stop {
            // Large rounds need longer runs: two requests give no rate.
            let longest =
                if self.noisy { ROUND_RUNS * setting.run_ns as f64 } else { f64::INFINITY };
            let wanted = (round * ROUNDS_A_RUN).min(longest) as Nanos;
            *ns = if in_bursts {
                (*ns).max(wanted).next_multiple_of(THROTTLE_SLICE_NS)
            } else {
                (*ns).max(wanted)
            };
        }
        let question = Question::of(&workload);
        let found = self
            .entries
            .iter()
            .position(|entry| entry.question == question && entry.shape == cell.shape);
        Some(found.unwrap_or_else(|| {
            let index = self.push(workload, cell.shape.clone());
            self.entries[index].in_bursts = in_bursts;
            index
        }))
    }

    pub(crate) fn push(&mut self, workload: Workload, shape: Option<StripeShape>) -> usize {
        let facts = self.machine.target_facts(self.target);
        self.entries.push(Entry::new(workload, shape, facts));
        self.entries.len() - 1
    }

    pub(crate) fn weigh(&mut self, indices: &[usize], weight: f64) {
        for &index in indices {
            let entry = &mut self.entries[index];
            entry.weight = entry.weight.max(weight);
        }
    }

    pub(crate) fn weigh_no_more(&mut self, index: usize) {
        self.entries[index].weight = 1.0;
    }

    pub(crate) fn count_instructions(&mut self, index: usize) -> Result<()> {
        let workload = self.entries[index].workload.clone();
        if !may_run(self.machine, &workload) {
            return Ok(());
        }
        self.report(&format!("instructions of {}", workload.short()));
        let options = Options { count_instructions: true, ..Options::default() };
        let mut counting = Measured::default();
        // A failure also shows in the timed runs.
        let counted = sample(self.machine, self.target, &workload, options);
        self.note_end(&workload);
        counting.push(counted)?;
        if let [one] = &counting.samples[..] {
            let entry = &mut self.entries[index];
            let counted = one.usage.cpu.instructions_user;
            entry.instructions_per_request =
                counted.map(|count| count as f64 / one.requests_with_ramp.max(1) as f64);
            entry.forget();
        }
        Ok(())
    }

    pub(crate) fn trace(&mut self, index: usize) -> Result<()> {
        let entry = &self.entries[index];
        let Some(iops) = entry.point().numbers.as_ref().map(|numbers| numbers.iops) else {
            return Ok(());
        };
        let shape = entry.shape.clone().unwrap_or_else(|| self.whole.clone());
        let workload = entry.workload.clone();
        if !may_run(self.machine, &workload) {
            return Ok(());
        }
        self.report(&format!("stages of {}", workload.short()));
        self.restripe(&shape)?;
        let times = traced_times(self.machine, self.target, &workload, iops)?;
        self.note_end(&workload);
        let entry = &mut self.entries[index];
        entry.request_times = times;
        entry.forget();
        Ok(())
    }

    fn restripe(&mut self, shape: &StripeShape) -> Result<()> {
        if self.shape != *shape {
            self.machine.restripe(self.target, &shape.members, shape.chunk)?;
            self.shape = shape.clone();
        }
        Ok(())
    }

    pub(crate) fn rounds(&mut self, indices: &[usize], runs: u32, until: Nanos) -> Result<()> {
        let runs = if self.noisy { runs } else { 1 };
        let budget_ns = until.saturating_sub(self.now());
        repeat(self, indices, Repeats { budget_ns, ..Repeats::exactly(runs) })
    }

    pub(crate) fn runs(&self) -> usize {
        self.entries.iter().map(|entry| entry.samples().len()).sum()
    }

    pub(crate) fn again(&mut self, indices: &[usize], until: Nanos) -> Result<()> {
        for &index in indices {
            let status = self.status(index);
            if self.noisy && !status.closed && self.now().saturating_add(status.cost_ns) <= until {
                self.run(index)?;
            }
        }
        Ok(())
    }

    pub(crate) fn tighten(
        &mut self,
        indices: &[usize],
        precision: f64,
        until: Nanos,
    ) -> Result<()> {
        if !self.noisy {
            return Ok(());
        }
        let budget_ns = until.saturating_sub(self.now());
        repeat(self, indices, Repeats { min: 0, max: MAX_RUNS, precision, budget_ns })
    }

    /// A few runs of one point do not determine the spread.
    pub(crate) fn learn_spread(&mut self) {
        if !self.noisy {
            return;
        }
        let spreads: Vec<((bool, bool), Spread)> = self
            .entries
            .iter()
            .filter_map(|entry| Some((entry.kind(), rate_spread(entry.samples())?)))
            .collect();
        let all: Vec<Spread> = spreads.iter().map(|one| one.1).collect();
        let anywhere = Spread::in_common(&all);
        for entry in &mut self.entries {
            let alike: Vec<Spread> =
                spreads.iter().filter(|one| one.0 == entry.kind()).map(|one| one.1).collect();
            entry.common = Spread::in_common(&alike).or(anywhere);
            entry.forget();
        }
    }

    /// If visits disagree, the target changed in between, and an interval covers them.
    pub(crate) fn unite_visits(&mut self) {
        if !self.noisy {
            return;
        }
        let interval = |entry: &Entry| entry.point().numbers.as_ref()?.interval_95;
        for index in 0..self.entries.len() {
            let one = &self.entries[index];
            let alike = |other: &Entry| other.question == one.question && other.shape == one.shape;
            let visits: Vec<usize> =
                (index..self.entries.len()).filter(|&at| alike(&self.entries[at])).collect();
            let ends: Vec<[f64; 2]> =
                visits.iter().filter_map(|&at| interval(&self.entries[at])).collect();
            let low = ends.iter().map(|one| one[0]).fold(f64::INFINITY, f64::min);
            let high = ends.iter().map(|one| one[1]).fold(0.0, f64::max);
            let apart = ends.iter().any(|one| ends.iter().any(|other| one[1] < other[0]));
            if apart {
                visits.iter().for_each(|&at| self.entries[at].cover([low, high]));
            }
        }
    }

    pub(crate) fn begin_again(&mut self, indices: &[usize]) {
        for &index in indices {
            self.entries[index].measured.begin_again();
            self.entries[index].forget();
        }
    }

    /// The new indices.
    pub(crate) fn drop_unreached(&mut self) -> Vec<Option<usize>> {
        let mut kept = 0..;
        let indices = self
            .entries
            .iter()
            .map(|entry| if entry.reached() { kept.next() } else { None })
            .collect();
        self.entries.retain(Entry::reached);
        indices
    }
}

fn kinds(workload: &Workload) -> [bool; 2] {
    [workload.read_percent > 0, workload.writes()]
}

impl<M: Machine> Repeated for Sampler<'_, M> {
    fn status(&self, index: usize) -> PointStatus {
        let entry = &self.entries[index];
        let run = match (entry.samples().last(), entry.workload.stop) {
            (Some(last), _) => last.usage.elapsed_ns + last.usage.sync_ns.unwrap_or(0),
            (None, workload::Stop::AfterNs(ns)) => ns,
            (None, workload::Stop::AfterBytes(_)) => 0,
        };
        let status = entry.measured.status();
        PointStatus {
            weight: entry.weight,
            cost_ns: run + self.overhead as Nanos,
            closed: status.closed || !may_run(self.machine, &entry.workload),
            ..status
        }
    }

    fn half_width(&self, index: usize) -> f64 {
        self.entries[index]
            .estimate()
            .map_or(f64::INFINITY, |estimate| estimate.relative_half_width)
    }

    fn run(&mut self, index: usize) -> Result<()> {
        let entry = &self.entries[index];
        if !may_run(self.machine, &entry.workload) {
            return Ok(());
        }
        let (workload, shape) =
            (entry.workload.clone(), entry.shape.clone().unwrap_or_else(|| self.whole.clone()));
        self.report(&workload.short());
        let began = self.machine.now();
        let idle_ns = self.idle_ns(&workload);
        let entry = &self.entries[index];
        let options = if entry.in_bursts {
            of_whole_bursts(self.machine, entry.ramp_ns, idle_ns)
        } else {
            let ramp_ns = ramp(&workload, entry.samples()).max(entry.ramp_ns);
            Options { ramp_ns, cache_bytes: cached_before(entry.samples()), ..Options::default() }
        };
        let made = self
            .restripe(&shape)
            .and_then(|()| sample(self.machine, self.target, &workload, options));
        self.note_end(&workload);
        let took = self.machine.now().saturating_sub(began) as f64;
        let entry = &mut self.entries[index];
        entry.facts = self.machine.target_facts(self.target);
        entry.forget();
        if let Ok(one) = &made {
            let beyond = (took - one.usage.elapsed_ns as f64).max(0.0);
            self.overhead = 0.9 * self.overhead + 0.1 * beyond;
        }
        entry.measured.push(made)?;
        if entry.samples().len() == 1 {
            entry.measured.ceiling = self.ceilings.of(self.machine, self.target, &workload);
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.machine.now()
    }

    fn order(&mut self, indices: &[usize]) -> Vec<usize> {
        self.seed = rng::hash(self.seed, 1);
        let mut keyed: Vec<(u64, usize)> =
            indices.iter().map(|&index| (rng::hash(self.seed, index as u64), index)).collect();
        keyed.sort_unstable();
        keyed.into_iter().map(|(_, index)| index).collect()
    }
}
