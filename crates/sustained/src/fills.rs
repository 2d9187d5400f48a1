//! A fuller drive has a smaller write cache and less spare space for garbage collection.

use crate::document::{FillResult, Recovery, SustainedResult, Unseen};
use crate::level::levels;
use crate::plan::{FIRST_SHARE, LOOK_EVERY, SustainPlan};
use crate::reserve::reserves;
use crate::run::Run;
use crate::series::Series;
use crate::writer::rotating;
use machine::{Machine, Nanos, Result};
use workload::{Pattern, Workload};

/// If the store's time is unknown.
const REST_S: f64 = 60.0;
/// A factor on what the store needs.
const LONGER: f64 = 1.1;
/// Of the time left.
const REST_SHARE: f64 = 0.5;

pub(crate) fn unseen(
    plan: &SustainPlan,
    result: &SustainedResult,
    found: &[FillResult],
) -> Vec<Unseen> {
    let rate = result.levels.last().map_or(0.0, |level| level.bytes_per_s);
    let size = result.target.size_bytes as f64;
    let parts = (plan.fills.len() + 1) as f64;
    let missing = plan.fills.iter().skip(found.len()).map(|&percent| {
        let bytes = size * f64::from(percent) / 100.0;
        // Each part of the time must hold a fill, its rest and the writes after it.
        let needs_s = (rate > 0.0).then(|| parts * bytes / rate / (REST_SHARE * FIRST_SHARE));
        let what = format!("the rate with {percent} % of the target filled");
        Unseen { what, needs_s, needs_bytes: Some(bytes * 1.5) }
    });
    missing.collect()
}

impl<M: Machine> Run<'_, '_, M> {
    /// On an error, the fills so far stay in `found`.
    pub(crate) fn fills(
        &mut self,
        recoveries: &[Recovery],
        found: &mut Vec<FillResult>,
    ) -> Result<()> {
        let size = self.writer.facts.size_bytes;
        let first = levels(self.series.points());
        let rotating = rotating(&self.writer.facts);
        let stores = reserves(&first, recoveries, rotating);
        let known = stores.and_then(|one| one.second.unwrap_or(one.first).refills_in_s);
        let all = self.plan.fills.len() as f64;
        for (number, &percent) in self.plan.fills.iter().enumerate() {
            let ends_s = self.share_s((number as f64 + 2.0) / (all + 1.0));
            let space = (size as f64 * f64::from(percent) / 100.0) as u64;
            let filled = self.fill(space, ends_s)?;
            let left_s = ends_s - self.writer.passed_s();
            if !filled || left_s <= 0.0 {
                return Ok(());
            }
            let rest_s = known.map_or(REST_S, |seconds| seconds * LONGER).min(left_s * REST_SHARE);
            let rest_s = self.rest(rest_s)?;
            let until_s = ends_s - left_s * (1.0 - FIRST_SHARE) * (1.0 - REST_SHARE);
            let (series, settled) = self.again(until_s)?;
            let levels = levels(series.points());
            if levels.is_empty() {
                return Ok(());
            }
            let reserve = reserves(&levels, &[], rotating).map(|stores| stores.first);
            found.push(FillResult { percent, rest_s, levels, reserve, settled });
        }
        Ok(())
    }

    fn fill(&mut self, space: u64, ends_s: f64) -> Result<bool> {
        let workload = Workload { pattern: Pattern::Seq, ..self.workload.clone() };
        self.writer.within(space);
        let end = self.writer.measured().saturating_add(space);
        while self.writer.measured() + u64::from(workload.request_bytes) <= end {
            if self.writer.passed_s() >= ends_s {
                return Ok(false);
            }
            let left = end - self.writer.measured();
            let Some(point) = self.writer.step(&workload, self.plan.step_ns, left)? else {
                return Ok(false);
            };
            self.report("filling", point.bytes_per_s())?;
        }
        self.writer.within(space);
        Ok(true)
    }

    /// Counts bytes and times from the call.
    fn again(&mut self, until_s: f64) -> Result<(Series, bool)> {
        let (start_s, start_bytes) = (self.writer.passed_s(), self.writer.measured());
        let mut series = Series::default();
        let mut steps = 0;
        loop {
            let left_s = until_s - self.writer.passed_s();
            if left_s <= 0.0 {
                return Ok((series, false));
            }
            let ns = self.plan.step_ns.min((left_s * 1e9) as Nanos + 1);
            let gaps = self.writer.gaps();
            let Some(mut point) = self.step("writing a fuller target", ns, u64::MAX)? else {
                return Ok((series, false));
            };
            if self.writer.gaps() != gaps && self.fills_gap(&series)? {
                continue;
            }
            point.from_s -= start_s;
            point.from_bytes -= start_bytes;
            series.push(point);
            steps += 1;
            if steps % LOOK_EVERY == 0 && self.has_settled(&series) {
                return Ok((series, true));
            }
        }
    }
}
