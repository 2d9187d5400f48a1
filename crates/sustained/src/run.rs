//! A run at work: its writes, and what they showed so far.

use crate::document::{
    ReadsDuring, Recovery, SUSTAINED_SCHEMA, StopReason, SustainSettings, SustainedResult,
};
use crate::falls::falls;
use crate::judge::{has_settled, heat, steady};
use crate::level::levels;
use crate::plan::{LOOK_EVERY, Progress, SustainPlan};
use crate::reserve::reserves;
use crate::sentences::sentences;
use crate::series::{Series, SeriesPoint};
use crate::unseen::unseen;
use crate::writer::{Writer, rotating};
use machine::{Error, Machine, Nanos, Result, Warning};
use results::Program;
use workload::Workload;

pub(crate) struct Run<'a, 'm, M: Machine> {
    pub(crate) plan: &'a SustainPlan,
    pub(crate) workload: Workload,
    pub(crate) writer: Writer<'m, M>,
    pub(crate) program: Program,
    pub(crate) on_step: &'a mut dyn FnMut(Progress<'_>) -> bool,
    pub(crate) series: Series,
    /// The target rested while it was still fast.
    pub(crate) rested: bool,
}

const RESTED: &str = "the run was interrupted before its rate fell: the target rested meanwhile, so a cache or credit may look larger than it is";

const KEEP_EVERY_S: f64 = 30.0;

impl<M: Machine> Run<'_, '_, M> {
    pub(crate) fn left_s(&self) -> f64 {
        self.share_s(1.0) - self.writer.passed_s()
    }

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

    pub(crate) fn first(
        &mut self,
        share: f64,
        keep: &mut dyn FnMut(&SustainedResult),
    ) -> Result<StopReason> {
        let (mut steps, mut kept_s) = (0, 0.0);
        let end_s = self.share_s(share);
        loop {
            let left_s = end_s - self.writer.passed_s();
            if left_s <= 0.0 {
                return Ok(StopReason::Time);
            }
            let ns = self.plan.step_ns.min((left_s * 1e9) as Nanos + 1);
            let gaps = self.writer.gaps();
            let Some(point) = self.step("writing", ns, u64::MAX)? else {
                return Ok(StopReason::MaxWritten);
            };
            if self.writer.gaps() != gaps && self.fills_gap(&self.series.clone())? {
                continue;
            }
            self.series.push(point);
            steps += 1;
            if steps % LOOK_EVERY == 0 && self.has_settled(&self.series) {
                return Ok(StopReason::Settled);
            }
            if self.writer.passed_s() - kept_s >= KEEP_EVERY_S {
                kept_s = self.writer.passed_s();
                let result = self.result(StopReason::Interrupted, Vec::new(), None);
                keep(&SustainedResult { sentences: sentences(&result), ..result });
            }
        }
    }

    /// Waits less if the rests need the bytes left.
    pub(crate) fn has_settled(&self, series: &Series) -> bool {
        let most =
            if self.writer.left() < self.plan.max_written / 2 { 0 } else { self.plan.for_ns };
        has_settled(series.points(), most)
    }

    /// The target rested between two processes: if the rate had fallen before, leaves out the
    /// writes until it has fallen again.
    pub(crate) fn fills_gap(&mut self, series: &Series) -> Result<bool> {
        let Some(falls) = falls(&levels(series.points())) else {
            self.rested = true;
            return Ok(false);
        };
        self.until_fallen(&falls, "writing on").map(|_| true)
    }

    pub(crate) fn result(
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
        warnings.extend(self.rested.then(|| RESTED.to_owned()));
        let stores = reserves(&levels, &recoveries, rotating(&facts));
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
            reserve: stores.map(|stores| stores.first),
            second_reserve: stores.and_then(|stores| stores.second),
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
