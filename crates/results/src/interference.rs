//! Workloads alone and concurrently.

use crate::point::{LatencySummary, Point};
use machine::units::show_rate;
use machine::{Machine, Result};
use measure::histogram::Histogram;
use measure::stats::{self, Ratio};
use measure::{Measured, RequestPart, RunRequest, RunSamples, Runner, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interference {
    /// Each workload while all others ran; its separate result is a point of the document.
    pub workloads: Vec<ConcurrentWorkload>,
    /// Combined rate of the workloads when run concurrently.
    pub throughput_bytes_per_s: f64,
    /// The combined rate over the sum of the separate rates; absent if the repeats give no
    /// interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_ratio: Option<Ratio>,
    /// Processor time of the process when run concurrently, in percent of one processor.
    pub process_busy_percent: f64,
    /// Processor time of the process per MiB when run concurrently, in nanoseconds.
    pub process_ns_per_mib: f64,
    /// Processor time of the process per MiB when run separately, in nanoseconds: total processor
    /// time over total data.
    pub process_ns_per_mib_alone: f64,
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConcurrentWorkload {
    /// Index of the point with this workload run by itself.
    pub point: usize,
    pub target: String,
    /// Rate while the others ran.
    pub throughput_bytes_per_s: f64,
    /// The 95 % interval of the mean rate.
    pub interval_95: Option<[f64; 2]>,
    /// The rate while the others ran over the separate rate, by rounds; absent if the repeats give
    /// no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_ratio: Option<Ratio>,
    /// Latency while the others ran.
    pub latency_ns: LatencySummary,
    /// The 95 % interval of the 99th percentile while the others ran, if the repeats give one.
    pub p99_interval_95_ns: Option<[f64; 2]>,
    /// The 99th percentile over that of the separate run, by rounds; absent if the repeats give no
    /// interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ratio: Option<Ratio>,
    pub warnings: Vec<String>,
}

/// Measures a point per part, and their interference unless a part failed.
pub fn measure_interference<M: Machine>(
    runner: &mut Runner<'_, M>,
    request: &RunRequest,
    on_run: impl FnMut(usize, usize),
) -> Result<(Vec<Point>, std::result::Result<Interference, String>)> {
    let samples = runner.run(request, on_run)?;
    let point = |(part, alone): (&RequestPart, &Measured)| {
        Point::of(&part.workload, &samples.facts[part.target], alone)
    };
    let points: Vec<Point> = request.parts.iter().zip(&samples.parts).map(point).collect();
    let mut each = samples.parts.iter().zip(&samples.together);
    let failed =
        each.find_map(|(alone, together)| alone.failure.as_ref().or(together.failure.as_ref()));
    let found = match failed {
        Some(error) => Err(error.clone()),
        None => of(&request.parts, &samples, &points).ok_or_else(|| "they were not run".to_owned()),
    };
    Ok((points, found))
}

fn p99(sample: &Sample) -> f64 {
    let mut both: Histogram = sample.latency[0].clone();
    both.merge(&sample.latency[1]);
    both.percentile(99.0) as f64
}

fn rate(sample: &Sample) -> f64 {
    sample.iops() * sample.bytes as f64 / sample.requests.max(1) as f64
}

fn process_ns(sample: &Sample) -> f64 {
    (sample.usage.cpu.user_ns + sample.usage.cpu.system_ns) as f64
}

fn ratio(alone: &Measured, together: &Measured, value: fn(&Sample) -> f64) -> Option<Ratio> {
    let pairs = alone.samples.iter().zip(&together.samples);
    let (alone, together): (Vec<f64>, Vec<f64>) = pairs.map(|(a, b)| (value(a), value(b))).unzip();
    stats::ratio_interval(&alone, &together)
}

fn of(parts: &[RequestPart], samples: &RunSamples, points: &[Point]) -> Option<Interference> {
    let mut workloads = Vec::new();
    let each = || samples.parts.iter().zip(&samples.together);
    for (point, (part, (alone, with_others))) in parts.iter().zip(each()).enumerate() {
        let facts = &samples.facts[part.target];
        let together = Point::from_samples(&part.workload, facts, &with_others.samples).numbers?;
        let of_runs: Vec<f64> = with_others.samples.iter().map(p99).collect();
        workloads.push(ConcurrentWorkload {
            point,
            target: facts.name.clone(),
            throughput_bytes_per_s: together.throughput_bytes_per_s,
            interval_95: together.interval_95,
            throughput_ratio: ratio(alone, with_others, rate),
            latency_ns: together.latency_ns,
            p99_interval_95_ns: stats::estimate_values(&of_runs).map(|p99| [p99.low, p99.high]),
            p99_ratio: ratio(alone, with_others, p99),
            warnings: together.warnings,
        });
    }
    let rounds =
        each().map(|(alone, together)| alone.samples.len().min(together.samples.len())).min()?;
    let sum = |of: &[Measured], round: usize| -> f64 {
        of.iter().map(|one| rate(&one.samples[round])).sum()
    };
    let (alone, together): (Vec<f64>, Vec<f64>) = (0..rounds)
        .map(|round| (sum(&samples.parts, round), sum(&samples.together, round)))
        .unzip();
    // When all run concurrently, each sample holds the processor time of the whole process.
    let all_ns: f64 = samples.together[0].samples.iter().map(process_ns).sum();
    let elapsed_ns = |sample: &Sample| sample.usage.elapsed_ns as f64;
    let longest: f64 = (0..samples.together[0].samples.len())
        .map(|run| {
            samples
                .together
                .iter()
                .filter_map(|one| one.samples.get(run))
                .map(elapsed_ns)
                .fold(0.0, f64::max)
        })
        .sum();
    let mib = |one: &Measured| {
        one.samples.iter().map(|sample| sample.bytes_with_ramp as f64).sum::<f64>() / 1048576.0
    };
    let all_mib: f64 = samples.together.iter().map(mib).sum();
    let alone_ns: f64 = samples.parts.iter().flat_map(|one| &one.samples).map(process_ns).sum();
    let alone_mib: f64 = samples.parts.iter().map(mib).sum();
    let mut found = Interference {
        throughput_bytes_per_s: workloads.iter().map(|one| one.throughput_bytes_per_s).sum(),
        throughput_ratio: stats::ratio_interval(&alone, &together),
        process_busy_percent: all_ns / longest.max(1.0) * 100.0,
        process_ns_per_mib: all_ns / all_mib.max(f64::MIN_POSITIVE),
        process_ns_per_mib_alone: alone_ns / alone_mib.max(f64::MIN_POSITIVE),
        workloads,
        sentence: String::new(),
    };
    found.sentence = found.said(points);
    Some(found)
}

impl Interference {
    fn said(&self, points: &[Point]) -> String {
        let name = |one: &ConcurrentWorkload| {
            let several = self.workloads.iter().any(|other| other.target != one.target);
            if several { one.target.clone() } else { points[one.point].workload.short() }
        };
        let alone = |one: &ConcurrentWorkload| points[one.point].numbers.as_ref();
        let mut parts = Vec::new();
        let worst = |value: &dyn Fn(&ConcurrentWorkload) -> Option<f64>| {
            let valued = self.workloads.iter().filter_map(|one| Some((one, value(one)?)));
            valued.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let p99 = |one: &ConcurrentWorkload| match one.p99_ratio {
            Some(ratio) => ratio.is_different().then_some(ratio.mean),
            None => Some(one.latency_ns.p99 as f64 / alone(one)?.latency_ns.p99.max(1) as f64),
        };
        match worst(&p99).filter(|(_, times)| *times > 1.0) {
            Some((one, times)) => {
                parts.push(format!("the p99 of {} is {times:.1} times that by itself", name(one)))
            }
            None => parts.push("no p99 rises by more than its interval".into()),
        }
        let lost = |one: &ConcurrentWorkload| match one.throughput_ratio {
            Some(ratio) => ratio.is_different().then_some(1.0 - ratio.mean),
            None => Some(1.0 - one.throughput_bytes_per_s / alone(one)?.throughput_bytes_per_s),
        };
        if let Some((one, share)) = worst(&lost).filter(|(_, share)| *share > 0.0) {
            parts.push(format!("{} keeps {:.0} % of its rate", name(one), (1.0 - share) * 100.0));
        }
        let sum: f64 = self
            .workloads
            .iter()
            .filter_map(alone)
            .map(|numbers| numbers.throughput_bytes_per_s)
            .sum();
        let together = show_rate(self.throughput_bytes_per_s);
        parts.push(match self.throughput_ratio {
            Some(ratio) if !ratio.is_different() => {
                format!("all at once give {together}, equal to the sum of each by itself within the interval")
            }
            Some(ratio) => format!(
                "all at once give {together}, {:.0} % ({:.0} to {:.0}) of the sum of each by itself",
                ratio.mean * 100.0,
                ratio.low * 100.0,
                ratio.high * 100.0
            ),
            None => format!(
                "all at once give {together}, {:.0} % of the sum of each by itself",
                self.throughput_bytes_per_s / sum * 100.0
            ),
        });
        parts.join("; ")
    }
}
