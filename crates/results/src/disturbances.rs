//! Other users of processors and memory.

use machine::{Engine, Figure, PressureUse, QuotaUse, Warning};
use measure::Sample;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::Workload;

/// In processors: more than an idle system's housekeeping.
const OTHERS_MATTER: f64 = 0.1;
/// Quota periods in which the program was held.
const THROTTLED_PERCENT: f64 = 5.0;
/// Time runnable but not scheduled.
const CONTENTION_PERCENT: f64 = 5.0;
const MEMORY_PERCENT: f64 = 10.0;
/// Time in which other tasks waited for storage.
const IO_PERCENT: f64 = 20.0;
/// With more cached bytes, this program does not wait for storage.
const FROM_CACHE_PERCENT: f64 = 95.0;

/// Other users of the computer during the runs, by the kernel's counts. Pressure is that of the
/// program's control group, or of the system if it is in the root group (pressure stall
/// information).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Disturbances {
    /// Number of processors kept busy by other programs, mean over the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_processors: Option<f64>,
    /// Time in which issuing threads were runnable and not scheduled, in percent, mean over the
    /// threads; absent unless other programs kept processors busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention_percent: Option<f64>,
    /// Periods in which a quota held the program, in percent of those in which it wanted a
    /// processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_throttled_percent: Option<f64>,
    /// Number of periods in which a processor quota held the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_throttled_periods: Option<u64>,
    /// Time for which a processor quota held the program, in percent of the runs' time: 100 is one
    /// processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_held_percent: Option<f64>,
    /// Time in which some task waited for a processor, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_percent: Option<f64>,
    /// Time in which some task waited for memory, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_pressure_percent: Option<f64>,
    /// Time in which all tasks that were not idle waited for memory, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_full_pressure_percent: Option<f64>,
    /// Time in which some task waited for storage, in percent; this program's own waits are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_pressure_percent: Option<f64>,
    /// Time in which all tasks that were not idle waited for storage, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_full_pressure_percent: Option<f64>,
}

fn threads(workload: &Workload) -> f64 {
    let each = if workload.engine == Engine::Threads { workload.depth } else { 1 };
    f64::from((workload.threads * each).max(1))
}

impl Disturbances {
    pub(crate) fn of(workload: &Workload, samples: &[&Sample]) -> Disturbances {
        let each = || samples.iter().map(|sample| sample.usage.disturbance);
        let runs = samples.len().max(1) as f64;
        let asked_ns: u64 = samples.iter().map(|sample| sample.usage.elapsed_ns).sum();
        // The kernel's counts go on until the final flush is over.
        let counted_ns =
            asked_ns + samples.iter().map(|sample| sample.usage.sync_ns.unwrap_or(0)).sum::<u64>();
        let percent = |ns: u64| ns as f64 / counted_ns.max(1) as f64 * 100.0;
        let others = each().map(|one| one.others_processors).sum::<f64>() / runs;
        let unserved_ns: Option<u64> = samples.iter().map(|sample| sample.usage.unserved_ns).sum();
        // A wait that began before the run may be longer than a short run.
        let contention = unserved_ns
            .map(|ns| (ns as f64 / asked_ns.max(1) as f64 * 100.0 / threads(workload)).min(100.0));
        let quotas: Vec<QuotaUse> = each().filter_map(|one| one.quota).collect();
        let quota = |of: fn(&QuotaUse) -> u64| {
            (!quotas.is_empty()).then(|| quotas.iter().map(of).sum::<u64>())
        };
        let (periods, throttled) = (quota(|one| one.periods), quota(|one| one.throttled));
        let pressures: Option<Vec<PressureUse>> = each().map(|one| one.pressure).collect();
        let pressure = |of: fn(&PressureUse) -> u64| {
            let pressures = pressures.as_ref().filter(|all| !all.is_empty())?;
            Some(percent(pressures.iter().map(of).sum()).min(100.0))
        };
        Disturbances {
            others_processors: (others > 0.0).then_some(others),
            contention_percent: contention.filter(|_| others > OTHERS_MATTER),
            quota_throttled_percent: periods
                .zip(throttled)
                .map(|(periods, throttled)| throttled as f64 / periods.max(1) as f64 * 100.0),
            quota_throttled_periods: throttled,
            quota_held_percent: quota(|one| one.throttled_ns).map(percent),
            cpu_pressure_percent: pressure(|one| one.cpu_some_ns),
            memory_pressure_percent: pressure(|one| one.memory_some_ns),
            memory_full_pressure_percent: pressure(|one| one.memory_full_ns),
            io_pressure_percent: pressure(|one| one.io_some_ns),
            io_full_pressure_percent: pressure(|one| one.io_full_ns),
        }
    }

    pub(crate) fn doubts(&self, cached_percent: Option<f64>) -> Vec<Warning> {
        let mut said = Vec::new();
        let percent = |value| Figure::rounded(value, 0);
        let held = self.quota_throttled_percent.filter(|held| *held >= THROTTLED_PERCENT);
        if let (Some(held), Some(periods)) = (held, self.quota_throttled_periods) {
            said.push(Warning::of(
                "the processor quota of the control group held this program in {} % of its periods ({} of them): the rate is that of the quota; \
                 raise it (cpu.max) to measure the target",
                [percent(held), Figure::count(periods)],
            ));
        }
        let contention =
            self.contention_percent.filter(|share| held.is_none() && *share >= CONTENTION_PERCENT);
        if let Some(contention) = contention {
            said.push(Warning::of(
                "CPU contention: other programs kept its threads waiting for a processor for {} % of the time",
                [percent(contention)],
            ));
        }
        if let Some(some) = self.memory_pressure_percent.filter(|some| *some >= MEMORY_PERCENT) {
            said.push(Warning::of(
                "memory was short: tasks waited for it for {} % of the time (pressure stall information); free memory, or raise the control \
                 group's limit",
                [percent(some)],
            ));
        }
        let cached = cached_percent.is_some_and(|cached| cached >= FROM_CACHE_PERCENT);
        if let Some(some) = self.io_pressure_percent.filter(|some| cached && *some >= IO_PERCENT) {
            said.push(Warning::of(
                "other programs waited for storage for {} % of the time (pressure stall information), while a cache served this one",
                [percent(some)],
            ));
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_words_of_its_own() {
        let said = |disturbances: Disturbances| {
            let all = disturbances.doubts(Some(100.0));
            all.iter().map(Warning::to_string).collect::<Vec<_>>().join("; ")
        };
        let contended = Disturbances {
            contention_percent: Some(40.0),
            others_processors: Some(1.9),
            ..Disturbances::default()
        };
        assert!(said(contended).starts_with(
            "CPU contention: other programs kept its threads waiting for a processor for 40 %"
        ));
        let held = Disturbances {
            quota_throttled_percent: Some(95.0),
            quota_throttled_periods: Some(105),
            quota_held_percent: Some(80.0),
            ..contended
        };
        assert!(
            said(held).starts_with("the processor quota") && !said(held).contains("contention"),
            "{}",
            said(held)
        );
        let short = Disturbances { memory_pressure_percent: Some(23.0), ..Disturbances::default() };
        assert!(said(short).starts_with("memory was short: tasks waited for it for 23 %"));
        let storage = Disturbances { io_pressure_percent: Some(50.0), ..Disturbances::default() };
        assert!(said(storage).starts_with("other programs waited for storage for 50 %"));
        assert!(storage.doubts(Some(0.0)).is_empty(), "its own waits");
        let little = Disturbances {
            contention_percent: Some(1.0),
            quota_throttled_percent: Some(1.0),
            memory_pressure_percent: Some(1.0),
            ..Disturbances::default()
        };
        assert!(little.doubts(Some(100.0)).is_empty());
    }
}
