use super::failures::{Failures, JobError};
use super::histogram_log::Interval;
use super::min_rate::StopReason;
use super::steady::Steady;
use super::stream_stats::merged;
use super::stream_stats::{Batches, BySide, Line, SIDES, Sum};
use super::system_stats::{Counts, DiskUse};
use crate::fio::options::command::IdleProfile;
use crate::fio::options::trace::Entry as TraceEntry;
use crate::fio::plan::jobs::{Job, Plan};
use machine::{CpuTimes, MachineFacts, Nanos, TargetFacts, Usage};
use measure::histogram::Histogram;
use results::Point;
use std::path::PathBuf;

/// Of one clone or several.
#[derive(Debug, Clone, Default)]
pub struct CloneStats {
    /// From issue to completion.
    pub latency: BySide,
    /// Until the submitting call returned, if measured.
    pub submission: BySide,
    /// The rest, or all if not measured.
    pub completion: BySide,
    pub requests: [u64; SIDES],
    pub bytes: [u64; SIDES],
    /// Of the measured part.
    pub runtime_ns: Nanos,
    /// Window width of `spread`.
    pub spread_ns: Nanos,
    pub spread: Vec<[Sum; SIDES]>,
    /// Latencies of syncs between requests.
    pub syncs: Histogram,
    /// Of files, not only their data.
    pub full_syncs: u64,
    /// By requests in flight.
    pub depths: Batches,
    /// By requests per call.
    pub submitted: Batches,
    /// By requests per call.
    pub completed: Batches,
    /// Reads for verification.
    pub read_back: Option<Box<CloneStats>>,
    /// Without blocks of wrong data.
    pub failures: Failures,
    /// Latencies by the kernel's priority value.
    pub priorities: Vec<(u16, BySide)>,
    /// By `latency_target`; 0: not used.
    pub depth_found: u32,
    pub gave_up: Option<StopReason>,
}

impl CloneStats {
    /// Adds a concurrent clone.
    pub fn add(&mut self, other: &CloneStats) {
        for (sums, parts) in [
            (&mut self.latency, &other.latency),
            (&mut self.submission, &other.submission),
            (&mut self.completion, &other.completion),
        ] {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| sum.merge(part));
        }
        for (bits, latency) in &other.priorities {
            match self.priorities.iter_mut().find(|(known, _)| known == bits) {
                Some((_, sum)) => {
                    sum.iter_mut().zip(latency).for_each(|(sum, part)| sum.merge(part))
                }
                None => self.priorities.push((*bits, latency.clone())),
            }
        }
        self.syncs.merge(&other.syncs);
        self.full_syncs += other.full_syncs;
        self.depth_found = self.depth_found.max(other.depth_found);
        self.gave_up = self.gave_up.or(other.gave_up);
        self.failures.add(other.failures);
        for (sum, part) in self.requests.iter_mut().zip(&other.requests) {
            *sum += part;
        }
        for (sums, parts) in [
            (&mut self.depths, &other.depths),
            (&mut self.submitted, &other.submitted),
            (&mut self.completed, &other.completed),
        ] {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
        for (sum, part) in self.bytes.iter_mut().zip(&other.bytes) {
            *sum += part;
        }
        match (&mut self.read_back, &other.read_back) {
            (Some(sum), Some(part)) => sum.add(part),
            (sum @ None, Some(part)) => *sum = Some(part.clone()),
            (_, None) => {}
        }
        self.runtime_ns = self.runtime_ns.max(other.runtime_ns);
        self.spread_ns = self.spread_ns.max(other.spread_ns);
        self.spread.resize(self.spread.len().max(other.spread.len()), [Sum::default(); SIDES]);
        for (sums, parts) in self.spread.iter_mut().zip(&other.spread) {
            for (sum, part) in sums.iter_mut().zip(parts) {
                sum.add(*part);
            }
        }
    }

    pub(crate) fn of_reads(latency: Histogram, bytes: u64, runtime_ns: Nanos) -> CloneStats {
        let reads = |histogram: Histogram| [histogram, Histogram::new(), Histogram::new()];
        CloneStats {
            requests: [latency.count(), 0, 0],
            bytes: [bytes, 0, 0],
            completion: reads(latency.clone()),
            latency: reads(latency),
            runtime_ns,
            ..CloneStats::default()
        }
    }

    /// Combines all directions as reads.
    pub fn unified(&self) -> CloneStats {
        let one = |sides: &BySide| [merged(sides), Histogram::new(), Histogram::new()];
        let sum = |sides: &[u64; SIDES]| [sides.iter().sum(), 0, 0];
        let together = |sums: &[Sum; SIDES]| {
            let mut all = Sum::default();
            sums.iter().for_each(|sum| all.add(*sum));
            [all, Sum::default(), Sum::default()]
        };
        CloneStats {
            latency: one(&self.latency),
            submission: one(&self.submission),
            completion: one(&self.completion),
            requests: sum(&self.requests),
            bytes: sum(&self.bytes),
            spread: self.spread.iter().map(together).collect(),
            priorities: self.priorities.iter().map(|(bits, sides)| (*bits, one(sides))).collect(),
            ..self.clone()
        }
    }

    pub fn bytes_per_s(&self, side: usize) -> f64 {
        self.bytes[side] as f64 * 1e9 / self.runtime_ns.max(1) as f64
    }

    pub fn iops(&self, side: usize) -> f64 {
        self.requests[side] as f64 * 1e9 / self.runtime_ns.max(1) as f64
    }

    /// Averaged over `windows` windows.
    pub fn window_iops(&self, side: usize, windows: usize) -> Vec<f64> {
        self.rates(side, windows, |sum| sum.requests)
    }

    /// Per second, averaged over `windows` windows.
    pub fn window_bytes(&self, side: usize, windows: usize) -> Vec<f64> {
        self.rates(side, windows, |sum| sum.bytes)
    }

    fn rates(&self, side: usize, windows: usize, of: fn(&Sum) -> u64) -> Vec<f64> {
        let rate = |sums: &[[Sum; SIDES]], ns: Nanos| {
            sums.iter().map(|sums| of(&sums[side])).sum::<u64>() as f64 * 1e9 / ns.max(1) as f64
        };
        let together = self.spread_ns * windows as u64;
        if self.runtime_ns < together {
            // A shorter run is one sample.
            let all = Some(&self.spread).filter(|all| !all.is_empty());
            return all.map(|all| rate(all, self.runtime_ns)).into_iter().collect();
        }
        self.spread.chunks_exact(windows).map(|sums| rate(sums, together)).collect()
    }
}

#[derive(Debug, Clone)]
pub struct CloneResult {
    /// fio's number, from 1.
    pub number: u32,
    pub recorded: CloneStats,
    /// Averaged: window width and finished windows.
    pub log: Option<(Nanos, Vec<[Sum; SIDES]>)>,
    pub lines: Option<Vec<Line>>,
    pub histograms: Vec<Interval>,
    /// All requests, with their files' paths.
    pub trace: Option<(Vec<PathBuf>, Vec<TraceEntry>)>,
    /// Leading requests done, if the job saves its state.
    pub progress: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct JobResult {
    pub job: Job,
    pub clones: Vec<CloneResult>,
    pub point: Point,
    /// After a failure, figures cover the work before it.
    pub error: Option<JobError>,
    /// Start of the measured part.
    pub began_unix_ms: u64,
    pub steady: Option<Steady>,
    /// Bytes checked; `None` without verification.
    pub verified_bytes: Option<u64>,
    /// Wrong data, if the job continued.
    pub faults: Failures,
}

/// Jobs that ran together.
#[derive(Debug, Clone)]
pub struct GroupResult {
    pub jobs: Vec<JobResult>,
    /// Of all jobs, with the ramp.
    pub usage: Usage,
    /// Processor time up to the last completion; `usage` has the whole run's.
    pub process_ns: Option<Nanos>,
    pub counts: Counts,
    pub disks: Vec<DiskUse>,
    pub facts: TargetFacts,
}

impl GroupResult {
    /// User and system time without starting and ending threads, which is most of a short run.
    pub fn cpu_ns(&self) -> [f64; 2] {
        part_of(self.usage.cpu, self.process_ns)
    }

    pub fn requests(&self) -> u64 {
        self.jobs.iter().flat_map(|job| &job.clones).flat_map(|clone| clone.recorded.requests).sum()
    }
}

/// Scales to a part that used `process_ns`.
fn part_of(cpu: CpuTimes, process_ns: Option<Nanos>) -> [f64; 2] {
    let times = [cpu.user_ns, cpu.system_ns].map(|ns| ns as f64);
    let whole = times[0] + times[1];
    let part = process_ns.map_or(1.0, |ns| (ns as f64 / whole.max(1.0)).min(1.0));
    times.map(|ns| ns * part)
}

#[derive(Debug, Clone)]
pub struct FioResult {
    pub plan: Plan,
    pub groups: Vec<GroupResult>,
    pub warnings: Vec<String>,
    /// By the user; the last group has no points.
    pub interrupted: bool,
    pub machine: MachineFacts,
    /// The report's time.
    pub ended_unix_ms: u64,
    /// Includes laying out files.
    pub elapsed_ns: Nanos,
    pub idle: IdleProfile,
    /// Each processor's number and idle percentage.
    pub processors_idle: Vec<(u32, f64)>,
}

/// A clone, or a whole reporting group.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The first of a group.
    pub job: &'a JobResult,
    pub group: &'a GroupResult,
    /// As in fio, a `name` setting names only the first clone.
    pub name: &'a str,
    pub clones: u32,
    pub recorded: CloneStats,
    pub error: Option<&'a JobError>,
    pub failures: Failures,
}

impl FioResult {
    pub(crate) fn idle_percent(&self) -> Option<f64> {
        let sum = |of: fn(&Usage) -> Nanos| -> f64 {
            self.groups.iter().map(|group| of(&group.usage) as f64).sum()
        };
        let whole_ns = sum(|usage| usage.elapsed_ns) * f64::from(self.machine.processors);
        let busy_ns = sum(|usage| usage.cpu.machine_ns);
        (self.idle != IdleProfile::None && whole_ns > 0.0)
            .then(|| ((1.0 - busy_ns / whole_ns) * 100.0).clamp(0.0, 100.0))
    }

    pub(crate) fn each_idle(&self) -> &[(u32, f64)] {
        if self.idle == IdleProfile::Processors { &self.processors_idle } else { &[] }
    }

    pub fn failures(&self) -> Vec<String> {
        let jobs = self.groups.iter().flat_map(|group| &group.jobs);
        jobs.filter_map(|job| {
            job.error.as_ref().map(|error| format!("{}: {}", job.job.shown(), error.text))
        })
        .collect()
    }

    /// One per clone, or per group with `group_reporting`.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for group in &self.groups {
            for job in group.jobs.iter().filter(|job| job.job.options.stats) {
                for clone in &job.clones {
                    let joins = |entry: &&mut Entry<'_>| {
                        job.job.options.group_reporting
                            && entry.job.job.group_id == job.job.group_id
                    };
                    let first = std::ptr::eq(clone, &job.clones[0]);
                    match entries.last_mut().filter(joins) {
                        Some(entry) => {
                            entry.clones += 1;
                            entry.recorded.add(&clone.recorded);
                            entry.failures.add(clone.recorded.failures);
                            entry.failures.add(if first {
                                job.faults
                            } else {
                                Failures::default()
                            });
                            entry.error = entry.error.or(job.error.as_ref());
                        }
                        None => {
                            let (recorded, error) = (clone.recorded.clone(), job.error.as_ref());
                            let mut failures = recorded.failures;
                            failures.add(if first { job.faults } else { Failures::default() });
                            let name =
                                job.job.given.iter().find(|(option, _)| first && option == "name");
                            let name = name.map_or(job.job.name.as_str(), |(_, name)| name);
                            entries.push(Entry {
                                job,
                                group,
                                name,
                                clones: 1,
                                recorded,
                                error,
                                failures,
                            });
                        }
                    }
                }
            }
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::options::kinds::SPREAD_NS;

    #[test]
    fn samples_of_rates_average_several_windows() {
        let mut stats =
            CloneStats { spread_ns: SPREAD_NS, runtime_ns: 5 * SPREAD_NS, ..CloneStats::default() };
        for requests in [10, 20, 30, 40, 50] {
            let sum = Sum { requests, bytes: requests * 512, ..Sum::default() };
            stats.spread.push([sum, Sum::default(), Sum::default()]);
        }
        assert_eq!(stats.window_iops(0, 1), [20.0, 40.0, 60.0, 80.0, 100.0]);
        // The rest of the run is shorter than a sample.
        assert_eq!(stats.window_iops(0, 2), [30.0, 70.0]);
        assert_eq!(stats.window_bytes(0, 4), [25_600.0]);
        assert_eq!(stats.window_iops(0, 10), [60.0], "a shorter run is one sample");
        assert!(CloneStats::default().window_iops(0, 1).is_empty());
    }

    #[test]
    fn processor_time_is_that_of_the_measured_time() {
        let cpu = CpuTimes { user_ns: 300, system_ns: 100, ..CpuTimes::default() };
        // Most of a short run is the start and the end of its threads.
        assert_eq!(part_of(cpu, Some(40)), [30.0, 10.0]);
        assert_eq!((part_of(cpu, None), part_of(cpu, Some(500))), ([300.0, 100.0], [300.0, 100.0]));
    }
}
