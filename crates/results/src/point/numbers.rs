use super::LatencySummary;
use crate::achieved::{Achieved, CpuPerRequest, mean};
use crate::checks;
use crate::clients::PointClients;
use crate::over_time::{IntervalNumbers, over_time};
use crate::rate_change::RateChange;
use machine::{TargetFacts, Warning};
use measure::histogram::Histogram;
use measure::{Sample, counted, ends_with_flush, rate_estimate, stats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::Workload;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Numbers {
    /// Mean of the runs: total bytes over total time. For writes the time ends with the final
    /// flush, if requested (`sync_at_end`), and otherwise when the last write returns.
    pub throughput_bytes_per_s: f64,
    pub iops: f64,
    /// The 95 % interval of the mean rate in bytes per second: lower and upper end; absent after a
    /// single short run.
    pub interval_95: Option<[f64; 2]>,
    /// Half the 95 % interval over the rate: 0.03 is plus or minus 3 %.
    pub relative_half_width: Option<f64>,
    /// Number of runs that count: without those with a warm-up, if there are two others.
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
    /// Processor time per request, in nanoseconds.
    pub cpu_ns_per_request: CpuPerRequest,
    /// The load that the runs achieved.
    pub achieved: Achieved,
    /// The share of each client, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<PointClients>,
    /// Warnings about the figures.
    pub warnings: Vec<String>,
    /// `warnings` with their figures apart, so that those of several points can be merged; older
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
    /// User and system time of the process per request, in nanoseconds.
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

fn mean_request(workload: &Workload, samples: &[&Sample]) -> f64 {
    let requests: u64 = samples.iter().map(|sample| sample.requests).sum();
    if workload.sizes.is_none() || requests == 0 {
        return f64::from(workload.request_bytes);
    }
    samples.iter().map(|sample| sample.bytes).sum::<u64>() as f64 / requests as f64
}

impl Numbers {
    pub fn warn(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        for warning in warnings {
            self.warnings.push(warning.to_string());
            self.doubts.push(warning);
        }
    }

    pub fn retract(&mut self, kind: &Warning) {
        self.doubts.retain(|warning| !warning.is_like(kind));
        self.warnings = self.doubts.iter().map(Warning::to_string).collect();
    }

    /// Those of an older document have no figures.
    pub fn doubts(&self) -> Vec<Warning> {
        if self.doubts.is_empty() {
            return self.warnings.iter().map(|text| Warning::from(text.as_str())).collect();
        }
        self.doubts.clone()
    }

    /// Until the last request, without the final flush.
    pub fn returned_bytes_per_s(&self) -> f64 {
        self.achieved.returned_bytes_per_s.unwrap_or(self.throughput_bytes_per_s)
    }

    /// Its variance is pooled over several points.
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

    /// A wider one, in bytes per second.
    pub fn set_interval(&mut self, interval: [f64; 2]) {
        let rate = self.throughput_bytes_per_s;
        let [low, high] = interval;
        self.interval_95 = Some(interval);
        self.relative_half_width = (rate > 0.0).then(|| (high - low) / 2.0 / rate);
        self.note_flush();
    }

    fn note_flush(&mut self) {
        if self.achieved.returned_bytes_per_s.is_some() {
            self.achieved.synced_bytes_per_s = Some(self.throughput_bytes_per_s);
            self.achieved.synced_interval_95 = self.interval_95;
        }
    }

    /// Significantly, and by enough to matter.
    pub fn differs(&self, other: &Numbers) -> bool {
        let apart = match (self.interval_95, other.interval_95) {
            (Some([low, high]), Some([other_low, other_high])) => {
                low > other_high || high < other_low
            }
            _ => false,
        };
        apart && self.is_far_from(other)
    }

    /// By enough to matter, whatever the intervals.
    pub fn is_far_from(&self, other: &Numbers) -> bool {
        let factor = self.throughput_bytes_per_s / other.throughput_bytes_per_s;
        !(1.0 / checks::CHANGE_FACTOR..=checks::CHANGE_FACTOR).contains(&factor)
    }

    pub(super) fn from_samples(
        workload: &Workload,
        facts: &TargetFacts,
        samples: &[Sample],
    ) -> Numbers {
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
            clients: PointClients::of(all),
            warnings: Vec::new(),
            doubts: Vec::new(),
        };
        numbers.note_flush();
        numbers.warn(checks::warnings(workload, facts, all, &numbers));
        let of_clients = numbers.clients.as_ref().map(|clients| clients.warnings(workload));
        numbers.warn(of_clients.unwrap_or_default());
        numbers
    }
}
