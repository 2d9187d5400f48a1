//! Rests after the first writes, and reads during writes.

use crate::document::{ReadsDuring, Recovery};
use crate::falls::{Falls, falls};
use crate::level::levels;
use crate::plan::FIRST_REST_S;
use crate::run::Run;
use crate::series::SeriesPoint;
use machine::{Engine, Machine, Nanos, Result};
use workload::{Pattern, Stop, Workload};

/// The first rest's maximum shares of the fast writes' time and of the time left, and the growth of
/// the next.
const FAST_SHARE: f64 = 0.5;
const REST_SHARE: f64 = 0.125;
const LONGER: f64 = 6.0;
const MAX_RESTS: usize = 3;
/// Steps after a rest are shorter by this factor.
const FINER: u64 = 4;
/// Steps within [`NEAR`] of the lasting rate.
const FALLEN_STEPS: usize = 3;
const NEAR: f64 = 1.15;
/// Writes after a rest end at this multiple of the store.
const MOST: f64 = 1.3;

impl<M: Machine> Run<'_, '_, M> {
    pub(crate) fn after(
        &mut self,
        share: f64,
        recoveries: &mut Vec<Recovery>,
        reads: &mut Option<ReadsDuring>,
    ) -> Result<()> {
        let falls = falls(&levels(self.series.points()));
        *reads = self.reads(falls.as_ref())?;
        let Some(falls) = falls else { return Ok(()) };
        let full = falls.bytes();
        let left_s = |run: &Self| run.share_s(share) - run.writer.passed_s();
        let fast_s = falls.middle.unwrap_or(falls.fast).to_s;
        let mut rest_s = FIRST_REST_S.min(fast_s * FAST_SHARE).min(left_s(self) * REST_SHARE);
        while recoveries.len() < MAX_RESTS {
            // The writes after a rest take as long as the fast ones at most, and the steps that
            // show their end.
            let steps_s = self.plan.step_ns as f64 * 1e-9;
            let writes_s = fast_s + steps_s;
            if left_s(self) < rest_s + writes_s.min(rest_s * 2.0) {
                return Ok(());
            }
            let gaps = self.writer.gaps();
            rest_s = self.rest(rest_s)?;
            let Some(recovery) = self.recover(&falls, rest_s)? else { return Ok(()) };
            if self.writer.gaps() != gaps {
                // The time between two processes was a rest, too; the writes have ended it.
                continue;
            }
            recoveries.push(recovery);
            let share = recovery.bytes() / full;
            if recovery.cut_short || share >= 0.5 {
                return Ok(());
            }
            rest_s *= if share > 0.1 { 2.0 } else { LONGER };
        }
        Ok(())
    }

    /// A kept rest returns the earlier process's seconds.
    pub(crate) fn rest(&mut self, seconds: f64) -> Result<f64> {
        if let Some(kept) = self.writer.kept_rest()? {
            self.report("resting", 0.0)?;
            return Ok(kept);
        }
        let end_s = self.writer.passed_s() + seconds;
        loop {
            self.report("resting", 0.0)?;
            let left_s = end_s - self.writer.passed_s();
            if left_s <= 0.0 {
                self.writer.keep_rest(seconds);
                return Ok(seconds);
            }
            self.writer.machine.pause((left_s.min(1.0) * 1e9) as Nanos + 1);
        }
    }

    fn recover(&mut self, falls: &Falls, rest_s: f64) -> Result<Option<Recovery>> {
        let (points, cut_short) = self.until_fallen(falls, "writing after a rest")?;
        if points.is_empty() {
            return Ok(None);
        }
        let [fast_bytes, middle_bytes] = falls.split(&points);
        Ok(Some(Recovery { rest_s, fast_bytes, middle_bytes, cut_short }))
    }

    /// `true` if a limit ended the writes before the lasting rate.
    pub(crate) fn until_fallen(
        &mut self,
        falls: &Falls,
        doing: &str,
    ) -> Result<(Vec<SeriesPoint>, bool)> {
        let mut points: Vec<SeriesPoint> = Vec::new();
        let ns = (self.plan.step_ns / FINER).max(1);
        let max = falls.bytes() * MOST;
        let mut fallen = 0;
        let mut bytes = 0.0;
        while fallen < FALLEN_STEPS && bytes <= max {
            if self.left_s() <= 0.0 {
                return Ok((points, true));
            }
            let Some(point) = self.step(doing, ns, u64::MAX)? else { return Ok((points, true)) };
            bytes += point.bytes as f64;
            fallen = if point.bytes_per_s() < falls.slow * NEAR { fallen + 1 } else { 0 };
            points.push(point);
        }
        Ok((points, false))
    }

    fn reads(&mut self, falls: Option<&Falls>) -> Result<Option<ReadsDuring>> {
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
        loop {
            let gaps = self.writer.gaps();
            let alone = self.writer.read(&reads)?;
            let Some(during) = self.writer.step_with(&self.workload, &reads, ns)? else {
                return Ok(None);
            };
            if let (Some(falls), true) = (falls, self.writer.gaps() != gaps) {
                self.until_fallen(falls, "writing on")?;
                continue;
            }
            return Ok(Some(ReadsDuring {
                alone_mean_ns: alone.mean_ns,
                alone_p99_ns: alone.p99_ns,
                during_mean_ns: during.mean_ns,
                during_p99_ns: during.p99_ns,
            }));
        }
    }
}
