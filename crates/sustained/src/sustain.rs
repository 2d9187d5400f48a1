//! Writes at full speed until the rate that lasts is known, then rests and writes again.

use crate::document::{
    ReadsDuring, Recovery, SUSTAINED_SCHEMA, StopReason, SustainSettings, SustainedResult, Unseen,
    WearChange,
};
use crate::level::{Level, levels};
use crate::reserve::{cliff, fast_bytes, reserve};
use crate::sentences::sentences;
use crate::series::{Series, SeriesPoint};
use crate::steady::{WINDOW, steady_state};
use crate::writer::Writer;
use machine::{Engine, Error, Machine, Nanos, Result, TargetFacts, TargetKind, Warning};
use results::Program;
use workload::{Pattern, Stop, Workload};

/// Steps of the last level before it can be the rate that lasts.
const MIN_LAST_STEPS: usize = 25;
/// The last level must be this long, as a share of the time before it: a drive may have a second,
/// slower stage.
const LAST_SHARE: f64 = 0.5;
/// The share of the time that the first writes may take; rests and reads need the rest.
pub(crate) const FIRST_SHARE: f64 = 0.7;
/// Levels are looked for after this many steps.
pub(crate) const LOOK_EVERY: usize = 8;
/// Length of the first rest, and its largest share of the time left; each next is longer by the
/// factor.
const FIRST_REST_S: f64 = 10.0;
const REST_SHARE: f64 = 0.125;
const LONGER: f64 = 6.0;
const MAX_RESTS: usize = 3;
/// Steps after a rest are shorter by this, for a finer end.
const FINER: u64 = 4;
/// The rate has fallen again if this many steps are within [`NEAR`] of the rate that lasts.
const FALLEN_STEPS: usize = 3;
const NEAR: f64 = 1.15;
/// Largest temperature below the highest of the run at which heat explains a fall, and the smallest
/// rise that counts as heating.
const HOTTEST_C: f64 = 3.0;
const HEATED_C: f64 = 10.0;

/// Settings of a sustained run.
#[derive(Debug, Clone, PartialEq)]
pub struct SustainPlan {
    /// Longest time.
    pub for_ns: Nanos,
    /// Most bytes to write.
    pub max_written: u64,
    pub request_bytes: u32,
    /// [`Pattern::Seq`] or [`Pattern::Random`].
    pub pattern: Pattern,
    pub depth: u32,
    /// Length of a step: one point of the result.
    pub step_ns: Nanos,
    /// Also measure with these shares of the target filled, in percent, ascending.
    pub fills: Vec<u8>,
    /// Bytes that may be written over the drive's life, if known.
    pub endurance_bytes: Option<u64>,
    pub seed: u64,
}

impl Default for SustainPlan {
    /// Ten minutes and at most 100 GiB, 1 MiB requests in sequence.
    fn default() -> Self {
        SustainPlan {
            for_ns: 600_000_000_000,
            max_written: 100 << 30,
            request_bytes: 1 << 20,
            pattern: Pattern::Seq,
            depth: 16,
            step_ns: 1_000_000_000,
            fills: Vec::new(),
            endurance_bytes: None,
            seed: 1,
        }
    }
}

impl SustainPlan {
    /// The writes, without a place.
    pub fn workload(&self, engines: &[Engine]) -> Workload {
        Workload {
            read_percent: 0,
            pattern: self.pattern,
            request_bytes: self.request_bytes,
            depth: self.depth,
            engine: Engine::for_depth(self.depth, engines),
            seed: self.seed,
            ..Workload::default()
        }
    }
}

/// Progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    pub doing: &'a str,
    pub passed_s: f64,
    pub written_bytes: u64,
    pub bytes_per_s: f64,
}

/// Writes to a target past its caches and its credit. `on_step` is called after each step, and
/// each second of a rest; `false` ends the run. `keep` gets the result so far every 30 s.
///
/// # Errors
/// The target may not be written, or the first request failed. A later failure or an interrupt ends
/// the run with the points measured so far.
pub fn sustain<M: Machine>(
    machine: &M,
    target: &M::Target,
    plan: &SustainPlan,
    program: Program,
    on_step: &mut dyn FnMut(Progress<'_>) -> bool,
    keep: &mut dyn FnMut(&SustainedResult),
) -> Result<SustainedResult> {
    let writer = Writer::new(machine, target, plan.max_written);
    crate::writer::check_writable(&writer.facts)?;
    let workload = plan.workload(&machine.capabilities().engines);
    measure::check(&workload, &writer.facts)?;
    let before = machine.wear(target);
    let mut run = Run { plan, workload, writer, program, on_step, series: Series::default() };
    let mut recoveries = Vec::new();
    let mut reads = None;
    let mut fills = Vec::new();
    let share = 1.0 / (plan.fills.len() + 1) as f64;
    let ended = run.first(share * FIRST_SHARE, keep).and_then(|stopped| {
        run.after(share, &mut recoveries, &mut reads)?;
        run.fills(&recoveries, &mut fills)?;
        Ok(stopped)
    });
    if run.series.points().is_empty() {
        ended?;
        return Err(Error::Interrupted);
    }
    // The rates until then are as good as without the failure.
    let (stopped, failure) = match ended {
        Ok(stopped) => (stopped, None),
        Err(Error::Interrupted) => (StopReason::Interrupted, None),
        Err(error) => (StopReason::Failed, Some(error.to_string())),
    };
    let after = machine.wear(target);
    let wear = WearChange::of(before, after, plan.endurance_bytes, None);
    let mut of_run = run.result(stopped, recoveries, reads);
    of_run.unseen.extend(crate::fills::unseen(plan, &of_run, &fills));
    let result = SustainedResult { failure, fills, wear, ..of_run };
    Ok(SustainedResult { sentences: sentences(&result), ..result })
}

pub(crate) struct Run<'a, 'm, M: Machine> {
    pub(crate) plan: &'a SustainPlan,
    pub(crate) workload: Workload,
    pub(crate) writer: Writer<'m, M>,
    program: Program,
    on_step: &'a mut dyn FnMut(Progress<'_>) -> bool,
    pub(crate) series: Series,
}

const KEEP_EVERY_S: f64 = 30.0;

impl<M: Machine> Run<'_, '_, M> {
    pub(crate) fn left_s(&self) -> f64 {
        self.share_s(1.0) - self.writer.passed_s()
    }

    /// The end of a share of the time.
    pub(crate) fn share_s(&self, share: f64) -> f64 {
        self.plan.for_ns as f64 * 1e-9 * share
    }

    pub(crate) fn step(
        &mut self,
        doing: &str,
        ns: Nanos,
        max_bytes: u64,
    ) -> Result<Option<SeriesPoint>> {
        let point = self.writer.step(&self.workload, ns, max_bytes)?;
        if let Some(point) = &point {
            self.report(doing, point.bytes_per_s())?;
        }
        Ok(point)
    }

    pub(crate) fn report(&mut self, doing: &str, bytes_per_s: f64) -> Result<()> {
        let goes_on = (self.on_step)(Progress {
            doing,
            passed_s: self.writer.passed_s(),
            written_bytes: self.writer.written(),
            bytes_per_s,
        });
        if goes_on { Ok(()) } else { Err(Error::Interrupted) }
    }

    /// Writes until the rate has fallen and stays, or to the limits.
    fn first(&mut self, share: f64, keep: &mut dyn FnMut(&SustainedResult)) -> Result<StopReason> {
        let (mut steps, mut kept_s) = (0, 0.0);
        let end_s = self.share_s(share);
        loop {
            let left_s = end_s - self.writer.passed_s();
            if left_s <= 0.0 {
                return Ok(StopReason::Time);
            }
            let ns = self.plan.step_ns.min((left_s * 1e9) as Nanos + 1);
            let Some(point) = self.step("writing", ns, u64::MAX)? else {
                return Ok(StopReason::MaxWritten);
            };
            self.series.push(point);
            steps += 1;
            if steps % LOOK_EVERY == 0 && has_settled(self.series.points()) {
                return Ok(StopReason::Settled);
            }
            if self.writer.passed_s() - kept_s >= KEEP_EVERY_S {
                kept_s = self.writer.passed_s();
                let result = self.result(StopReason::Interrupted, Vec::new(), None);
                keep(&SustainedResult { sentences: sentences(&result), ..result });
            }
        }
    }

    /// Rests, and reads during writes.
    fn after(
        &mut self,
        share: f64,
        recoveries: &mut Vec<Recovery>,
        reads: &mut Option<ReadsDuring>,
    ) -> Result<()> {
        *reads = self.reads()?;
        let levels = levels(self.series.points());
        let Some((fast, slow)) = cliff(&levels) else { return Ok(()) };
        let full = fast.to_bytes as f64;
        let left_s = |run: &Self| run.share_s(share) - run.writer.passed_s();
        let mut rest_s = FIRST_REST_S.min(left_s(self) * REST_SHARE);
        while recoveries.len() < MAX_RESTS {
            // The writes after a rest take as long as the fast level at most, and the steps that
            // show its end.
            let steps_s = self.plan.step_ns as f64 * 1e-9;
            let writes_s = full / fast.bytes_per_s + steps_s;
            if left_s(self) < rest_s + writes_s.min(rest_s * 2.0) {
                return Ok(());
            }
            self.rest(rest_s)?;
            let Some(recovery) = self.recover(&fast, slow, rest_s)? else { return Ok(()) };
            recoveries.push(recovery);
            let share = recovery.fast_bytes / full;
            if recovery.cut_short || share >= 0.5 {
                return Ok(());
            }
            rest_s *= if share > 0.1 { 2.0 } else { LONGER };
        }
        Ok(())
    }

    pub(crate) fn rest(&mut self, seconds: f64) -> Result<()> {
        let end_s = self.writer.passed_s() + seconds;
        loop {
            self.report("resting", 0.0)?;
            let left_s = end_s - self.writer.passed_s();
            if left_s <= 0.0 {
                return Ok(());
            }
            self.writer.machine.pause((left_s.min(1.0) * 1e9) as Nanos + 1);
        }
    }

    /// Writes after a rest until the rate has fallen again.
    fn recover(&mut self, fast: &Level, slow: f64, rest_s: f64) -> Result<Option<Recovery>> {
        let mut points: Vec<SeriesPoint> = Vec::new();
        let ns = (self.plan.step_ns / FINER).max(1);
        let max = fast.to_bytes as f64 * 1.3;
        let mut fallen = 0;
        let mut bytes = 0.0;
        let cut_short = loop {
            if self.left_s() <= 0.0 {
                break true;
            }
            let Some(point) = self.step("writing after a rest", ns, u64::MAX)? else {
                break true;
            };
            bytes += point.bytes as f64;
            fallen = if point.bytes_per_s() < slow * NEAR { fallen + 1 } else { 0 };
            points.push(point);
            if fallen >= FALLEN_STEPS || bytes > max {
                break false;
            }
        };
        if points.is_empty() {
            return Ok(None);
        }
        let fast_bytes = fast_bytes(&points, fast.bytes_per_s, slow);
        Ok(Some(Recovery { rest_s, fast_bytes, cut_short }))
    }

    /// Reads of 4 KiB, then the same during writes at the rate that lasts.
    fn reads(&mut self) -> Result<Option<ReadsDuring>> {
        let facts = &self.writer.facts;
        let request = facts.direct_align_bytes.max(4096);
        let written = self.series.bytes().min(facts.size_bytes) / u64::from(request);
        if written < 1024 || self.writer.left() == 0 {
            return Ok(None);
        }
        let ns = self.plan.step_ns;
        let reads = Workload {
            read_percent: 100,
            pattern: Pattern::Random,
            request_bytes: request,
            depth: 1,
            engine: Engine::Sync,
            region_bytes: Some(written * u64::from(request)),
            stop: Stop::AfterNs(ns),
            ..self.workload.clone()
        };
        let alone = self.writer.read(&reads)?;
        let Some(during) = self.writer.step_with(&self.workload, &reads, ns)? else {
            return Ok(None);
        };
        Ok(Some(ReadsDuring {
            alone_mean_ns: alone.mean_service_ns,
            alone_p99_ns: alone.latency[0].percentile(99.0),
            during_mean_ns: during.mean_service_ns,
            during_p99_ns: during.latency[0].percentile(99.0),
        }))
    }

    fn result(
        &self,
        stopped: StopReason,
        recoveries: Vec<Recovery>,
        reads: Option<ReadsDuring>,
    ) -> SustainedResult {
        let points = self.series.points().to_vec();
        let levels = levels(&points);
        let facts = self.writer.facts.clone();
        let mut warnings = facts.warnings.clone();
        let of_steps = Warning::merged(&self.writer.warnings);
        warnings.extend(of_steps.iter().map(|(warning, _)| warning.to_string()));
        SustainedResult {
            schema: SUSTAINED_SCHEMA.into(),
            program: self.program.clone(),
            settings: SustainSettings {
                for_s: self.plan.for_ns as f64 * 1e-9,
                max_written_bytes: self.plan.max_written,
                request_bytes: self.plan.request_bytes,
                pattern: self.plan.pattern,
                depth: self.plan.depth,
                engine: self.workload.engine,
            },
            sentences: Vec::new(),
            warnings,
            reserve: reserve(&levels, &recoveries),
            steady: levels.last().and_then(|last| steady(&points, last)),
            slowed_by_heat_at_c: heat(&points, &levels),
            fills: Vec::new(),
            wear: None,
            unseen: unseen(&facts, &levels, &points, &recoveries, stopped),
            target: facts,
            levels,
            recoveries,
            reads,
            stopped,
            failure: None,
            written_bytes: self.writer.written(),
            took_s: self.writer.passed_s(),
            points,
        }
    }
}

/// Whether the rate has fallen and stays.
pub(crate) fn has_settled(points: &[SeriesPoint]) -> bool {
    let levels = levels(points);
    let (Some((_, _)), Some(last)) = (cliff(&levels), levels.last()) else { return false };
    let (start_s, from_s) = (points[0].from_s, last.from_s);
    let steps = points.iter().filter(|point| point.from_s >= from_s).count();
    steps >= MIN_LAST_STEPS && last.seconds() >= (from_s - start_s) * LAST_SHARE
}

/// Steady state of the last level, in five parts of equal length.
fn steady(points: &[SeriesPoint], last: &Level) -> Option<crate::SteadyCheck> {
    let first = points.iter().position(|point| point.from_s >= last.from_s)?;
    let rates: Vec<f64> = points[first..].iter().map(SeriesPoint::bytes_per_s).collect();
    // The last step may be short.
    let rates = &rates[..rates.len().saturating_sub(1)];
    let length = rates.len() / WINDOW;
    if length == 0 {
        return None;
    }
    let rates = &rates[rates.len() - length * WINDOW..];
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let rounds: Vec<f64> = rates.chunks(length).map(mean).collect();
    steady_state(&rounds, rates)
}

/// The temperature at the first fall, if the device had heated up and was at its hottest.
fn heat(points: &[SeriesPoint], levels: &[Level]) -> Option<f64> {
    let (fast, _) = cliff(levels)?;
    let at = points.iter().rposition(|point| point.from_s <= fast.to_s)?;
    let near = &points[at.saturating_sub(1)..(at + 2).min(points.len())];
    let temperatures = || points.iter().filter_map(|point| point.temperature_c);
    let hottest = temperatures().fold(f64::MIN, f64::max);
    let coldest = temperatures().fold(f64::MAX, f64::min);
    let here = near.iter().filter_map(|point| point.temperature_c).fold(f64::MIN, f64::max);
    (here >= hottest - HOTTEST_C && hottest >= coldest + HEATED_C).then_some(here)
}

/// Time of a sustained run that sees the end of a reported burst credit, if that is later than this.
fn credit_needs_s(facts: &TargetFacts, passed_s: f64) -> Option<f64> {
    let bursts = facts.layers.iter().flat_map(|layer| &layer.facts.bursts);
    let credit_s = bursts.map(|burst| burst.lasts_s).fold(0.0, f64::max);
    (credit_s > passed_s).then_some(credit_s * (1.0 + LAST_SHARE) / FIRST_SHARE)
}

/// Time of a sustained run that writes all of a target.
fn whole_needs_s(facts: &TargetFacts, last: &Level) -> f64 {
    facts.size_bytes as f64 / last.bytes_per_s / FIRST_SHARE
}

/// Time of a sustained run that shows what comes after a level, if that is known. A test file says
/// nothing about the size of the drive.
pub(crate) fn needed_s(facts: &TargetFacts, last: &Level, written: u64) -> Option<f64> {
    let whole = facts.kind != TargetKind::TestFile && written < facts.size_bytes;
    credit_needs_s(facts, last.to_s).or_else(|| whole.then(|| whole_needs_s(facts, last)))
}

fn unseen(
    facts: &TargetFacts,
    levels: &[Level],
    points: &[SeriesPoint],
    recoveries: &[Recovery],
    stopped: StopReason,
) -> Vec<Unseen> {
    let mut all = Vec::new();
    let Some(last) = levels.last() else { return all };
    let written = points.last().map_or(0, |point| point.from_bytes + point.bytes) as f64;
    let Some((fast, _)) = cliff(levels) else {
        if let Some(needs_s) = credit_needs_s(facts, last.to_s) {
            all.push(Unseen {
                what: "the end of the burst credit that the volume reports".into(),
                needs_s: Some(needs_s),
                needs_bytes: Some(needs_s * FIRST_SHARE * last.bytes_per_s),
            });
        } else if stopped == StopReason::MaxWritten && written >= facts.size_bytes as f64 {
            all.push(Unseen {
                what: format!(
                    "a cache larger than {}: give a larger --max-written",
                    machine::units::show_size_rounded(written)
                ),
                needs_s: None,
                needs_bytes: None,
            });
        } else if written < facts.size_bytes as f64 {
            let whole = facts.size_bytes as f64;
            all.push(Unseen {
                what: "what happens when all of the target has been written".into(),
                needs_s: Some(whole_needs_s(facts, last)),
                needs_bytes: Some(whole),
            });
        }
        return all;
    };
    if stopped != StopReason::Settled {
        let needs_s = fast.to_s * (1.0 + LAST_SHARE);
        all.push(Unseen {
            what: "whether the rate falls again".into(),
            needs_s: Some(needs_s.max(last.from_s * (1.0 + LAST_SHARE)) / FIRST_SHARE),
            needs_bytes: Some(last.from_bytes as f64 + last.from_s * LAST_SHARE * last.bytes_per_s),
        });
    }
    // A drive may have a third stage, and collects garbage once all of it was written.
    if stopped == StopReason::Settled
        && facts.kind != TargetKind::TestFile
        && written < facts.size_bytes as f64
    {
        let left = facts.size_bytes as f64 - written;
        all.push(Unseen {
            what: "whether the rate falls again before all of the target has been written".into(),
            needs_s: Some((last.to_s + left / last.bytes_per_s) / FIRST_SHARE),
            needs_bytes: Some(facts.size_bytes as f64),
        });
    }
    if recoveries.iter().all(|one| one.cut_short || one.fast_bytes < fast.to_bytes as f64 * 0.01) {
        let needs_s = last.to_s / FIRST_SHARE + 10.0 * FIRST_REST_S;
        all.push(Unseen {
            what: "how fast it recovers at rest".into(),
            needs_s: Some(needs_s),
            needs_bytes: Some(written + fast.to_bytes as f64),
        });
    }
    all
}
