//! Interference between workloads: each one by itself compared with all concurrently.

use crate::point::{LatencySummary, Point};
use machine::units::show_rate;
use machine::{Machine, Result, TargetFacts};
use measure::histogram::Histogram;
use measure::stats::{self, Ratio};
use measure::{Job, JobRuns, Repeats, Sample, measure_concurrent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Workloads that ran separately and concurrently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interference {
    /// Each workload while all others ran; its separate result is a point of the document.
    pub workloads: Vec<ConcurrentWorkload>,
    /// Combined rate of all workloads running concurrently.
    pub throughput_bytes_per_s: f64,
    /// The combined rate over the sum of the separate rates; absent if the repeats give no
    /// interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_ratio: Option<Ratio>,
    /// Processor time of the process when all run concurrently, in percent of one processor.
    pub process_busy_percent: f64,
    /// Processor time of the process per MiB when all run concurrently.
    pub process_ns_per_mib: f64,
    /// The same for separate runs: total processor time over total data.
    pub process_ns_per_mib_alone: f64,
    /// The conclusion in a sentence.
    pub sentence: String,
}

/// A workload that ran together with others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConcurrentWorkload {
    /// Index of its point when run by itself.
    pub point: usize,
    pub target: String,
    /// Rate while the others ran.
    pub throughput_bytes_per_s: f64,
    /// The 95 % interval of the mean rate.
    pub interval_95: Option<[f64; 2]>,
    /// That rate over the separate rate, by rounds; absent if the repeats give no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_ratio: Option<Ratio>,
    /// Latency while the others ran.
    pub latency_ns: LatencySummary,
    /// The 95 % interval of the 99th percentile, if the repeats give one.
    pub p99_interval_95_ns: Option<[f64; 2]>,
    /// 99th percentile over that of the separate run, by rounds; absent if the repeats give no
    /// interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ratio: Option<Ratio>,
    /// Warnings about this workload.
    pub warnings: Vec<String>,
}

/// Measures each job by itself and all concurrently: one point per job, and their interference,
/// unless a job failed.
///
/// # Errors
/// As [`measure_concurrent`].
pub fn measure_interference<M: Machine>(
    machine: &M,
    jobs: &[Job<'_, M::Target>],
    repeats: Repeats,
    on_run: impl FnMut(usize),
) -> Result<(Vec<Point>, std::result::Result<Interference, String>)> {
    let facts: Vec<TargetFacts> = jobs.iter().map(|job| machine.target_facts(job.target)).collect();
    let company = measure_concurrent(machine, jobs, repeats, on_run)?;
    let points: Vec<Point> = jobs
        .iter()
        .zip(&facts)
        .zip(&company)
        .map(|((job, facts), company)| Point::of(&job.workload, facts, &company.alone))
        .collect();
    let failed = company.iter().find_map(|one| one.alone.failure.as_ref().or(one.together.failure.as_ref()));
    let found = match failed {
        Some(error) => Err(error.to_string()),
        None => of(jobs, &facts, &company, &points).ok_or_else(|| "they were not run".to_owned()),
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

/// The ratio between runs of the same round.
fn ratio(company: &JobRuns, value: fn(&Sample) -> f64) -> Option<Ratio> {
    let pairs = company.alone.samples.iter().zip(&company.together.samples);
    let (alone, together): (Vec<f64>, Vec<f64>) = pairs.map(|(a, b)| (value(a), value(b))).unzip();
    stats::ratio_interval(&alone, &together)
}

fn of<T>(jobs: &[Job<'_, T>], facts: &[TargetFacts], company: &[JobRuns], points: &[Point]) -> Option<Interference> {
    let mut workloads = Vec::new();
    for (point, ((job, facts), company)) in jobs.iter().zip(facts).zip(company).enumerate() {
        let together = Point::from_samples(&job.workload, facts, &company.together.samples).numbers?;
        let of_runs: Vec<f64> = company.together.samples.iter().map(p99).collect();
        workloads.push(ConcurrentWorkload {
            point,
            target: facts.name.clone(),
            throughput_bytes_per_s: together.throughput_bytes_per_s,
            interval_95: together.interval_95,
            throughput_ratio: ratio(company, rate),
            latency_ns: together.latency_ns,
            p99_interval_95_ns: stats::estimate_values(&of_runs).map(|p99| [p99.low, p99.high]),
            p99_ratio: ratio(company, p99),
            warnings: together.warnings,
        });
    }
    let rounds = company.iter().map(|one| one.alone.samples.len().min(one.together.samples.len())).min()?;
    let sum = |round: usize, together: bool| -> f64 {
        company.iter().map(|one| rate(&if together { &one.together } else { &one.alone }.samples[round])).sum()
    };
    let (alone, together): (Vec<f64>, Vec<f64>) =
        (0..rounds).map(|round| (sum(round, false), sum(round, true))).unzip();
    // When all run concurrently, each sample holds the processor time of the whole process.
    let all_ns: f64 = company[0].together.samples.iter().map(process_ns).sum();
    let elapsed_ns = |sample: &Sample| sample.usage.elapsed_ns as f64;
    let longest: f64 = (0..company[0].together.samples.len())
        .map(|run| company.iter().filter_map(|one| one.together.samples.get(run)).map(elapsed_ns).fold(0.0, f64::max))
        .sum();
    let mib = |samples: &[Sample]| samples.iter().map(|sample| sample.bytes_with_ramp as f64).sum::<f64>() / 1048576.0;
    let all_mib: f64 = company.iter().map(|one| mib(&one.together.samples)).sum();
    let alone_ns: f64 = company.iter().flat_map(|one| &one.alone.samples).map(process_ns).sum();
    let alone_mib: f64 = company.iter().map(|one| mib(&one.alone.samples)).sum();
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
    /// The conclusion: who loses how much, and whether the combined rate is below the separate
    /// ones.
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
            Some((one, times)) => parts.push(format!("the p99 of {} is {times:.1} times that alone", name(one))),
            None => parts.push("no p99 rises by more than its interval".into()),
        }
        let lost = |one: &ConcurrentWorkload| match one.throughput_ratio {
            Some(ratio) => ratio.is_different().then_some(1.0 - ratio.mean),
            None => Some(1.0 - one.throughput_bytes_per_s / alone(one)?.throughput_bytes_per_s),
        };
        if let Some((one, share)) = worst(&lost).filter(|(_, share)| *share > 0.0) {
            parts.push(format!("{} keeps {:.0} % of its rate", name(one), (1.0 - share) * 100.0));
        }
        let sum: f64 = self.workloads.iter().filter_map(alone).map(|numbers| numbers.throughput_bytes_per_s).sum();
        let together = show_rate(self.throughput_bytes_per_s);
        parts.push(match self.throughput_ratio {
            Some(ratio) if !ratio.is_different() => {
                format!("all at once give {together}, equal to the sum of each alone within the interval")
            }
            Some(ratio) => format!(
                "all at once give {together}, {:.0} % ({:.0} to {:.0}) of the sum of each alone",
                ratio.mean * 100.0,
                ratio.low * 100.0,
                ratio.high * 100.0
            ),
            None => format!(
                "all at once give {together}, {:.0} % of the sum of each alone",
                self.throughput_bytes_per_s / sum * 100.0
            ),
        });
        parts.join("; ")
    }
}
