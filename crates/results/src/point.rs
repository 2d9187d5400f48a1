use crate::achieved::{Achieved, CpuPerRequest, mean};
use crate::checks;
use crate::over_time::{IntervalNumbers, over_time};
use crate::rate_change::RateChange;
use machine::units::MIB;
use machine::{Allocation, CacheState, Machine, TargetFacts, TargetKind, Warning};
use measure::histogram::Histogram;
use measure::{
    Ceiling, Measured, Repeats, RunSamples, Runner, Sample, Verification, counted, ends_with_flush,
    rate_estimate, stats,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::{OpKind, Workload};

/// Runs from which an interval is settled.
const SETTLED_RUNS: u32 = 3;

/// One workload with its figures, or the reason for its failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The requested workload.
    pub workload: WorkloadRecord,
    /// The figures; absent if the point failed.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Numbers>,
    /// Why the point failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Result of verifying the data, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// The stripe, if it was changed for this point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe: Option<StripeRecord>,
    /// Each run starts and ends between two bursts of a throttle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_bursts: bool,
}

/// The members of the target that served a point, and their chunk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct StripeRecord {
    pub members: Vec<u32>,
    pub chunk_bytes: u64,
}

/// A workload with its operation by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadRecord {
    pub op: OpKind,
    #[serde(flatten)]
    pub workload: Workload,
}

impl From<Workload> for WorkloadRecord {
    fn from(workload: Workload) -> Self {
        WorkloadRecord { op: workload.op(), workload }
    }
}

impl Point {
    /// Whether the rate is that of the whole target: such rates of an operation have one peak.
    ///
    /// A rate of a cache is not, nor one of a part of the target, nor one of a short run whose
    /// requests a throttle admitted in advance.
    pub fn measures_target(&self, facts: &TargetFacts) -> bool {
        let workload = &self.workload;
        let whole =
            self.stripe.as_ref().is_none_or(|one| one.members.len() as u32 == facts.members)
                && workload.allocation == Allocation::Written
                && workload.engine.does_io()
                && workload.think_ns == 0
                && workload.rate_iops.is_none()
                && workload.load.is_empty();
        if facts.in_memory || !whole {
            return whole && !workload.sync_at_end;
        }
        let of_bursts =
            !facts.is_throttled() || facts.kind == TargetKind::Simulated || self.whole_bursts;
        workload.region_bytes.is_none() && of_bursts && self.reaches_device()
    }

    /// Whether the device serves the requests, or has the data when the time ends.
    pub fn reaches_device(&self) -> bool {
        let workload = &self.workload;
        let cached = self.numbers.as_ref().and_then(|numbers| numbers.achieved.cached_read_percent);
        workload.buffering.is_direct()
            || match workload.op {
                OpKind::Read => {
                    workload.cache == CacheState::Cold
                        && cached.is_none_or(|percent| percent <= checks::CACHED_PERCENT)
                }
                _ => workload.sync_at_end || workload.buffering.is_dsync(),
            }
    }

    /// Runs from which an interval is settled; one suffices if runs repeat exactly.
    pub fn is_settled(&self, facts: &TargetFacts) -> bool {
        let enough = if facts.kind == TargetKind::Simulated { 1 } else { SETTLED_RUNS };
        self.numbers.as_ref().is_some_and(|numbers| numbers.repeats >= enough)
    }

    /// Processor time of the process per MiB in ns.
    pub fn cpu_ns_per_mib(&self) -> Option<f64> {
        let per_request = self.numbers.as_ref()?.cpu_ns_per_request.process();
        Some(per_request * MIB as f64 / f64::from(self.workload.request_bytes))
    }
}

impl std::ops::Deref for WorkloadRecord {
    type Target = Workload;

    fn deref(&self) -> &Workload {
        &self.workload
    }
}

/// The figures of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Numbers {
    /// Mean rate of the runs: total bytes over total time. For writes the time ends with the final
    /// flush, if requested (`sync_at_end`), and otherwise when the last write returns.
    pub throughput_bytes_per_s: f64,
    /// Requests per second.
    pub iops: f64,
    /// The 95 % interval of the mean rate in bytes per second: lower and upper end; absent after a
    /// single short run.
    pub interval_95: Option<[f64; 2]>,
    /// Half the interval over the rate: 0.03 is plus or minus 3 %.
    pub relative_half_width: Option<f64>,
    /// Runs that count. Runs with a warm-up are excluded if two others exist.
    pub repeats: u32,
    /// Rate of each run.
    pub runs_bytes_per_s: Vec<f64>,
    /// Other figures of each run, in the same order; comparisons derive their intervals from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunNumbers>,
    /// Time from issue (open loop: from the scheduled time) to completion, reads and writes
    /// together.
    pub latency_ns: LatencySummary,
    /// Latency of the reads of a mix.
    pub read_latency_ns: Option<LatencySummary>,
    /// Latency of the writes of a mix.
    pub write_latency_ns: Option<LatencySummary>,
    /// Rate and latency in each step of a load that changes over time, or in each window of a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<IntervalNumbers>,
    /// How the rate changed during the measurement; absent if one rate describes the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_change: Option<RateChange>,
    /// Processor time per request.
    pub cpu_ns_per_request: CpuPerRequest,
    /// The load that the runs achieved.
    pub achieved: Achieved,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
    /// The same with their figures apart, so that those of several points can be merged; older
    /// documents have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Warning>,
}

/// The figures of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunNumbers {
    pub latency_p50_ns: u64,
    pub latency_p99_ns: u64,
    pub latency_p999_ns: u64,
    /// User and system time of the process per request.
    pub cpu_ns_per_request: f64,
}

impl RunNumbers {
    pub fn of(sample: &Sample) -> RunNumbers {
        let mut both = sample.latency[0].clone();
        both.merge(&sample.latency[1]);
        let cpu = sample.usage.cpu.user_ns + sample.usage.cpu.system_ns;
        RunNumbers {
            latency_p50_ns: both.percentile(50.0),
            latency_p99_ns: both.percentile(99.0),
            latency_p999_ns: both.percentile(99.9),
            cpu_ns_per_request: cpu as f64 / sample.requests_with_ramp.max(1) as f64,
        }
    }
}

/// A latency distribution in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySummary {
    pub mean: f64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub p9999: u64,
    pub p99999: u64,
    pub p999999: u64,
    /// Exact maximum.
    pub max: u64,
    pub count: u64,
}

/// A percentile needs this many requests above it: with fewer it is an accident.
const REQUESTS_ABOVE: f64 = 10.0;

impl LatencySummary {
    /// The percentiles, such as 99.9, with enough requests above them, and their latencies in ns,
    /// lowest first.
    pub fn percentiles(&self) -> impl DoubleEndedIterator<Item = (f64, u64)> {
        let all = [
            (50.0, self.p50),
            (90.0, self.p90),
            (99.0, self.p99),
            (99.9, self.p999),
            (99.99, self.p9999),
            (99.999, self.p99999),
            (99.9999, self.p999999),
        ];
        let count = self.count as f64;
        // The error of the subtraction is far below a request.
        let above = move |percentile: f64| count * (100.0 - percentile) / 100.0 + 1e-3;
        all.into_iter().filter(move |(percentile, _)| above(*percentile) >= REQUESTS_ABOVE)
    }

    /// The 99th percentile, if enough requests are slower.
    pub fn settled_p99(&self) -> Option<u64> {
        self.percentiles().find(|(percentile, _)| *percentile == 99.0).map(|(_, ns)| ns)
    }
}

impl From<&Histogram> for LatencySummary {
    fn from(h: &Histogram) -> Self {
        LatencySummary {
            mean: h.mean(),
            min: h.min(),
            p50: h.percentile(50.0),
            p90: h.percentile(90.0),
            p99: h.percentile(99.0),
            p999: h.percentile(99.9),
            p9999: h.percentile(99.99),
            p99999: h.percentile(99.999),
            p999999: h.percentile(99.9999),
            max: h.max(),
            count: h.count(),
        }
    }
}

impl Point {
    /// A point that could not be measured.
    pub fn failed(workload: Workload, error: impl ToString) -> Point {
        Point {
            workload: workload.into(),
            numbers: None,
            error: Some(error.to_string()),
            verification: None,
            stripe: None,
            whole_bursts: false,
        }
    }

    /// A point from the measurement of a workload.
    pub fn of(workload: &Workload, facts: &TargetFacts, measured: &Measured) -> Point {
        match &measured.failure {
            Some(error) => Point::failed(workload.clone(), error),
            None => {
                Point::from_samples(workload, facts, &measured.samples).beside(measured.ceiling)
            }
        }
    }

    /// Adds the result of verifying the data.
    #[must_use]
    pub fn verified(mut self, found: Verification) -> Point {
        if let Some(numbers) = &mut self.numbers {
            numbers.warn(checks::little_judged(&found));
        }
        Point { verification: Some(found), ..self }
    }

    /// Summarizes the samples of one workload. Without samples the point is failed.
    pub fn from_samples(workload: &Workload, facts: &TargetFacts, samples: &[Sample]) -> Point {
        if samples.is_empty() {
            return Point::failed(workload.clone(), "it was not run");
        }
        Point {
            workload: workload.clone().into(),
            numbers: Some(Numbers::from_samples(workload, facts, samples)),
            error: None,
            verification: None,
            stripe: None,
            whole_bursts: false,
        }
    }

    /// Adds the driver's ceiling, and a warning if the rate came close to it.
    pub fn beside(mut self, ceiling: Option<Ceiling>) -> Point {
        if let (Some(numbers), Some(ceiling)) = (&mut self.numbers, ceiling) {
            let percent = numbers.iops / ceiling.lowest_iops() * 100.0;
            numbers.achieved.driver_ceiling_iops = Some(ceiling.generator_iops);
            numbers.achieved.no_op_ceiling_iops = ceiling.no_op_iops;
            numbers.achieved.of_ceiling_percent = Some(percent);
            numbers.warn(checks::near_ceiling(&self.workload, percent, ceiling.lowest_iops()));
        }
        self
    }

    /// Finds out where the time of this point's requests goes, from trace points if available.
    ///
    /// # Errors
    /// The user's interrupt.
    pub fn trace<M: Machine>(
        &mut self,
        machine: &M,
        target: &mut M::Target,
        workload: &Workload,
    ) -> machine::Result<()> {
        let Some(numbers) = &mut self.numbers else { return Ok(()) };
        let times = measure::traced_times(machine, target, workload, numbers.iops)?;
        if let Some(times) = times {
            numbers.achieved.set_request_times(times);
        }
        Ok(())
    }

    /// The operation: `read`, `write`, `mix 70 %`.
    pub fn operation(&self) -> String {
        match self.workload.op {
            OpKind::Mix => format!("mix {} %", self.workload.read_percent),
            op => op.name().into(),
        }
    }

    /// Cache and durability settings in a word or two.
    pub fn mode(&self) -> String {
        let workload = &self.workload;
        let mut text = workload.buffering.name().replace('_', " ");
        if workload.cache != CacheState::AsIs {
            text = format!("{text} {}", workload.cache.name());
        }
        if workload.writes() && workload.allocation != Allocation::Written {
            text = format!("{text} {}", workload.allocation.name());
        }
        text
    }

    /// End of the time counted for buffered writes; `None` for other workloads.
    pub fn written_until(&self) -> Option<&'static str> {
        let numbers = self.numbers.as_ref()?;
        let workload = &self.workload;
        let returns_early =
            workload.writes() && !workload.buffering.is_direct() && !workload.buffering.is_dsync();
        match numbers.achieved.returned_bytes_per_s {
            Some(_) if workload.writes() => Some("until stable storage"),
            None if returns_early => Some("until the last write returned"),
            _ => None,
        }
    }

    pub fn rate(&self) -> Option<f64> {
        self.numbers.as_ref().map(|numbers| numbers.throughput_bytes_per_s)
    }
}

fn mean_request(workload: &Workload, samples: &[&Sample]) -> f64 {
    let requests: u64 = samples.iter().map(|sample| sample.requests).sum();
    if workload.sizes.is_none() || requests == 0 {
        return f64::from(workload.request_bytes);
    }
    samples.iter().map(|sample| sample.bytes).sum::<u64>() as f64 / requests as f64
}

impl Numbers {
    /// Adds warnings.
    pub fn warn(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        for warning in warnings {
            self.warnings.push(warning.to_string());
            self.doubts.push(warning);
        }
    }

    /// Removes the warnings of this kind.
    pub fn retract(&mut self, kind: &Warning) {
        self.doubts.retain(|warning| !warning.is_like(kind));
        self.warnings = self.doubts.iter().map(Warning::to_string).collect();
    }

    /// The warnings, of an older document without figures.
    pub fn doubts(&self) -> Vec<Warning> {
        if self.doubts.is_empty() {
            return self.warnings.iter().map(|text| Warning::from(text.as_str())).collect();
        }
        self.doubts.clone()
    }

    /// Mean rate until the last request returned, without the final flush.
    pub fn returned_bytes_per_s(&self) -> f64 {
        self.achieved.returned_bytes_per_s.unwrap_or(self.throughput_bytes_per_s)
    }

    /// Replaces the interval by an estimate that pools the variance over several points.
    pub fn set_estimate(&mut self, rate: &stats::Estimate) {
        // Without requests the mean size is undefined.
        if self.iops <= 0.0 {
            return;
        }
        let bytes = self.throughput_bytes_per_s / self.iops;
        (self.iops, self.throughput_bytes_per_s) = (rate.mean, rate.mean * bytes);
        self.interval_95 = Some([rate.low * bytes, rate.high * bytes]);
        self.relative_half_width = Some(rate.relative_half_width);
        self.note_flush();
    }

    /// Replaces the interval by a wider one, in bytes per second.
    pub fn set_interval(&mut self, interval: [f64; 2]) {
        let rate = self.throughput_bytes_per_s;
        let [low, high] = interval;
        self.interval_95 = Some(interval);
        self.relative_half_width = (rate > 0.0).then(|| (high - low) / 2.0 / rate);
        self.note_flush();
    }

    /// Also sets the fields of the rate to stable storage, if the rate includes a flush.
    fn note_flush(&mut self) {
        if self.achieved.returned_bytes_per_s.is_some() {
            self.achieved.synced_bytes_per_s = Some(self.throughput_bytes_per_s);
            self.achieved.synced_interval_95 = self.interval_95;
        }
    }

    /// Whether two measurements differ significantly and by enough to matter.
    pub fn differs(&self, other: &Numbers) -> bool {
        let apart = match (self.interval_95, other.interval_95) {
            (Some([low, high]), Some([other_low, other_high])) => {
                low > other_high || high < other_low
            }
            _ => false,
        };
        apart && self.is_far_from(other)
    }

    /// Whether the rates differ by enough to matter, whatever their intervals.
    pub fn is_far_from(&self, other: &Numbers) -> bool {
        let factor = self.throughput_bytes_per_s / other.throughput_bytes_per_s;
        !(1.0 / checks::CHANGE_FACTOR..=checks::CHANGE_FACTOR).contains(&factor)
    }

    fn from_samples(workload: &Workload, facts: &TargetFacts, samples: &[Sample]) -> Numbers {
        let interval = rate_estimate(samples);
        let all = samples;
        let samples = &counted(samples)[..];
        let request = mean_request(workload, samples);
        let rates: Vec<f64> = samples.iter().map(|sample| sample.iops()).collect();
        let iops = interval.map_or_else(|| mean(&rates), |interval| interval.mean);
        let mut latency = [Histogram::new(), Histogram::new()];
        for sample in samples {
            for (sum, part) in latency.iter_mut().zip(&sample.latency) {
                sum.merge(part);
            }
        }
        let mut both = latency[0].clone();
        both.merge(&latency[1]);
        let mix = !latency[0].is_empty() && !latency[1].is_empty();
        let mut achieved = Achieved::from_samples(workload, samples);
        if ends_with_flush(samples) {
            let returned: Vec<f64> =
                samples.iter().map(|sample| sample.returned_iops() * request).collect();
            achieved.returned_bytes_per_s = Some(mean(&returned));
        }
        let mut numbers = Numbers {
            throughput_bytes_per_s: iops * request,
            iops,
            interval_95: interval.map(|interval| [interval.low * request, interval.high * request]),
            relative_half_width: interval.map(|interval| interval.relative_half_width),
            repeats: samples.len() as u32,
            runs_bytes_per_s: rates.iter().map(|rate| rate * request).collect(),
            runs: samples.iter().map(|sample| RunNumbers::of(sample)).collect(),
            latency_ns: LatencySummary::from(&both),
            read_latency_ns: mix.then(|| LatencySummary::from(&latency[0])),
            write_latency_ns: mix.then(|| LatencySummary::from(&latency[1])),
            over_time: over_time(samples),
            rate_change: checks::rate_change(workload, facts, all, request),
            cpu_ns_per_request: CpuPerRequest::from_samples(samples),
            achieved,
            warnings: Vec::new(),
            doubts: Vec::new(),
        };
        numbers.note_flush();
        numbers.warn(checks::warnings(workload, facts, all, &numbers));
        numbers
    }
}

/// The warnings of all points. Warnings that differ only in their figures are merged into one, with
/// the number of points.
pub fn folded_warnings<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<String> {
    let numbers = points.filter_map(|point| point.numbers.as_ref());
    let all: Vec<Warning> = numbers.flat_map(Numbers::doubts).collect();
    let shown = |(warning, count): &(Warning, usize)| match count {
        1 => warning.to_string(),
        count => format!("{warning} (at {count} points)"),
    };
    Warning::merged(&all).iter().map(shown).collect()
}

/// The points of workloads that were measured on one target.
pub fn points_of(workloads: &[Workload], samples: &RunSamples) -> Vec<Point> {
    let facts = &samples.facts[0];
    workloads
        .iter()
        .zip(&samples.parts)
        .map(|(workload, measured)| Point::of(workload, facts, measured))
        .collect()
}

/// Measures several workloads on one target in turn: one point each.
///
/// # Errors
/// The user's interrupt. Any other failure becomes the point's error.
pub fn measure_points<M: Machine>(
    runner: &mut Runner<'_, M>,
    workloads: &[Workload],
    repeats: Repeats,
    on_run: impl FnMut(usize, usize),
) -> machine::Result<Vec<Point>> {
    Ok(points_of(workloads, &runner.in_turn(workloads, repeats, on_run)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::TargetKind;
    use measure::stats::Verdict;

    fn facts() -> TargetFacts {
        TargetFacts {
            name: "t".into(),
            kind: TargetKind::File,
            size_bytes: 1 << 30,
            writable: false,
            direct: true,
            direct_refused: None,
            direct_align_bytes: 512,
            physical_block_bytes: 512,
            block_bytes: 512,
            members: 1,
            chunk_bytes: None,
            raid5: None,
            in_memory: false,
            devices: Vec::new(),
            layers: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A run of one second at this rate with constant latency.
    fn run(rate: f64, latency_ns: u64, warm_up_ns: u64) -> Sample {
        let mut reads = Histogram::new();
        reads.record(latency_ns);
        let wave = |slice: u32| rate * (1.0 + 0.01 * f64::from(slice % 3) - 0.01);
        Sample {
            measured_ns: 1_000_000_000,
            requests: rate as u64,
            bytes: rate as u64 * 65536,
            rate,
            latency: [reads, Histogram::new()],
            slice_ns: 10_000_000,
            empty_share: 0.0,
            slice_rates: (0..99).map(wave).collect(),
            warm_up_rates: Vec::new(),
            warm_up_ns,
            verdict: Verdict::Steady,
            mean_depth: 1.0,
            mean_service_ns: 1e9 / rate,
            usage: machine::Usage::default(),
            requests_with_ramp: rate as u64,
            bytes_with_ramp: rate as u64 * 65536,
            intervals: Vec::new(),
        }
    }

    fn numbers(samples: &[Sample]) -> Numbers {
        Point::from_samples(&Workload::default(), &facts(), samples)
            .numbers
            .expect("it was measured")
    }

    #[test]
    fn the_longest_visit_stands_for_a_workload() {
        let visit = |rate: f64, request_bytes: u32, runs: usize| {
            let workload = Workload { request_bytes, ..Workload::default() };
            Point::from_samples(&workload, &facts(), &vec![run(rate, 1000, 0); runs])
        };
        // The short visits are faster, and another size is another workload.
        let points = [
            visit(300.0, 65536, 2),
            visit(200.0, 65536, 3),
            visit(400.0, 65536, 1),
            visit(9.0, 4096, 1),
        ];
        assert_eq!(crate::representatives(&points), [1, 3]);
        let failed = Point::failed(Workload::default(), "no");
        assert!(crate::representatives(&[failed]).is_empty());
        let equal = [visit(1.0, 4096, 1), visit(2.0, 4096, 1)];
        assert_eq!(crate::representatives(&equal), [0], "the first of equals");
    }

    #[test]
    fn equally_long_runs_have_equal_weight() {
        // The slow run has empty slices, so its slices are fewer and wider.
        let slow = run(100.0, 1000, 0);
        let slices: Vec<f64> =
            slow.slice_rates.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        let slow = Sample { slice_ns: slow.slice_ns * 2, slice_rates: slices, ..slow };
        let iops = numbers(&[run(300.0, 1000, 0), slow]).iops;
        assert!((iops - 200.0).abs() < 1e-6, "{iops}");
    }

    #[test]
    fn the_interval_contains_the_rate() {
        let series: [&[f64]; 6] = [
            &[640.0, 160.0, 160.0, 160.0, 160.0],
            &[640.0, 640.0, 640.0, 160.0],
            &[100.0, 101.0, 400.0, 99.0, 100.0, 102.0, 98.0],
            &[1.0, 1000.0],
            &[100.0; 12],
            &[5.0],
        ];
        for rates in series {
            let samples: Vec<Sample> = rates.iter().map(|rate| run(*rate, 1000, 0)).collect();
            let found = numbers(&samples);
            let [low, high] = found.interval_95.expect("99 slices give one");
            assert!((low..=high).contains(&found.throughput_bytes_per_s), "{rates:?}: {found:?}");
            let half = (high - found.throughput_bytes_per_s) / found.throughput_bytes_per_s;
            assert!(
                (half - found.relative_half_width.unwrap()).abs() < 1e-9,
                "the width is that of the same interval"
            );
        }
    }

    #[test]
    fn a_limit_drop_between_runs_is_reported() {
        let found = numbers(&[run(640.0, 1000, 0), run(64.0, 1000, 0)]);
        let said = "the rate changed: 40 MiB/s, then 4 MiB/s from 0 ns on (after 40.0 MiB)";
        assert!(
            found.warnings.iter().any(|warning| warning.starts_with(said)),
            "{:?}",
            found.warnings
        );
        assert!(
            found.rate_change.is_some_and(|change| change.phases.len() == 2 && !change.within_run)
        );
        assert_eq!(
            numbers(&[run(640.0, 1000, 0), run(630.0, 1000, 0)]).warnings,
            Vec::<String>::new()
        );
    }

    #[test]
    fn measurements_differ_if_their_intervals_do() {
        let at = |rate: f64| {
            numbers(&[run(rate, 1000, 0), run(rate * 1.01, 1000, 0), run(rate * 0.99, 1000, 0)])
        };
        assert!(at(640.0).differs(&at(160.0)) && at(160.0).differs(&at(640.0)));
        assert!(!at(640.0).differs(&at(600.0)), "too near");
        let wide = numbers(&[run(100.0, 1000, 0), run(500.0, 1000, 0)]);
        assert!(!wide.differs(&at(1000.0)), "its interval holds the other");
    }

    #[test]
    fn rate_and_latencies_are_of_the_same_runs() {
        let warming = run(50.0, 1_000_000, 300_000_000);
        let found = numbers(&[warming.clone(), run(100.0, 1000, 0), run(100.0, 1000, 0)]);
        assert_eq!(
            (found.repeats, found.runs_bytes_per_s.len(), found.latency_ns.count),
            (2, 2, 2)
        );
        assert!(found.latency_ns.max < 1_000_000 && (found.iops - 100.0).abs() < 1e-6, "{found:?}");
        assert_eq!(
            numbers(&[warming, run(100.0, 1000, 0)]).repeats,
            2,
            "a single run gives no interval between runs"
        );
    }
}
