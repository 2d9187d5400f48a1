//! What a run gave.

use super::failures::Failures;
use super::histlog::Interval;
use super::iolog::Entry as TraceEntry;
use super::minimum::GaveUp;
use super::outcome::merged;
use super::plan::{Job, Plan};
use super::record::{Batches, BySide, Line, SIDES, SPREAD_NS, Sum};
use super::steady::Steady;
use super::surroundings::{Counts, DiskUse};
use machine::{MachineFacts, Nanos, TargetFacts, Usage};
use measure::histogram::Histogram;
use results::Point;
use std::path::PathBuf;

/// What was recorded of one clone of a job, or of several together.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// Latencies from issue to completion.
    pub latency: BySide,
    /// Their first part, until the call returned that submitted a request, where that is measured.
    pub submission: BySide,
    /// Their second part, or all where the first is not measured.
    pub completion: BySide,
    /// Requests by direction.
    pub requests: [u64; SIDES],
    /// Bytes by direction.
    pub bytes: [u64; SIDES],
    /// Length of the measured part.
    pub runtime_ns: Nanos,
    /// Width of the windows in [`Recorded::spread`].
    pub spread_ns: Nanos,
    /// Rates in windows, for their spread.
    pub spread: Vec<[Sum; SIDES]>,
    /// Times of syncs between requests.
    pub syncs: Histogram,
    /// Those of them that sync all of the file, and not its data alone.
    pub full_syncs: u64,
    /// Requests by those outstanding with them.
    pub depths: Batches,
    /// Submissions by their requests.
    pub submitted: Batches,
    /// Takings of completions by their requests.
    pub completed: Batches,
    /// What was read back after the writing, to be verified.
    pub read_back: Option<Box<Recorded>>,
    /// Requests that failed, after which the job went on; blocks of the job that are not what was written are not among them.
    pub failures: Failures,
    /// Latencies of each priority as the kernel has it, where requests have their own.
    pub priorities: Vec<(u16, BySide)>,
    /// The queue depth to which `latency_target` led; 0: none was asked for.
    pub depth_found: u32,
    /// Why the job ended itself.
    pub gave_up: Option<GaveUp>,
}

impl Recorded {
    /// Adds another clone, which ran at the same time.
    pub fn add(&mut self, other: &Recorded) {
        for (sums, parts) in [
            (&mut self.latency, &other.latency),
            (&mut self.submission, &other.submission),
            (&mut self.completion, &other.completion),
        ] {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| sum.merge(part));
        }
        for (bits, latency) in &other.priorities {
            match self.priorities.iter_mut().find(|(known, _)| known == bits) {
                Some((_, sum)) => sum.iter_mut().zip(latency).for_each(|(sum, part)| sum.merge(part)),
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

    /// Reads and nothing else.
    pub(crate) fn of_reads(latency: Histogram, bytes: u64, runtime_ns: Nanos) -> Recorded {
        let reads = |histogram: Histogram| [histogram, Histogram::new(), Histogram::new()];
        Recorded {
            requests: [latency.count(), 0, 0],
            bytes: [bytes, 0, 0],
            completion: reads(latency.clone()),
            latency: reads(latency),
            runtime_ns,
            ..Recorded::default()
        }
    }

    /// All directions as one, in the place of the reads.
    pub fn unified(&self) -> Recorded {
        let one = |sides: &BySide| [merged(sides), Histogram::new(), Histogram::new()];
        let sum = |sides: &[u64; SIDES]| [sides.iter().sum(), 0, 0];
        let together = |sums: &[Sum; SIDES]| {
            let mut all = Sum::default();
            sums.iter().for_each(|sum| all.add(*sum));
            [all, Sum::default(), Sum::default()]
        };
        Recorded {
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

    /// Bytes per second of a direction.
    pub fn bytes_per_s(&self, side: usize) -> f64 {
        self.bytes[side] as f64 * 1e9 / self.runtime_ns.max(1) as f64
    }

    /// Requests per second of a direction.
    pub fn iops(&self, side: usize) -> f64 {
        self.requests[side] as f64 * 1e9 / self.runtime_ns.max(1) as f64
    }

    /// Requests per second of a direction in each window.
    pub fn window_iops(&self, side: usize) -> Vec<f64> {
        self.windows(side, |sum| sum.requests)
    }

    /// Bytes per second of a direction in each window.
    pub fn window_bytes(&self, side: usize) -> Vec<f64> {
        self.windows(side, |sum| sum.bytes)
    }

    fn windows(&self, side: usize, of: fn(&Sum) -> u64) -> Vec<f64> {
        let width = if self.runtime_ns < SPREAD_NS { self.runtime_ns } else { self.spread_ns };
        self.spread.iter().map(|sums| of(&sums[side]) as f64 * 1e9 / width.max(1) as f64).collect()
    }
}

/// One clone of a job: what its logs and its entry are made from.
#[derive(Debug, Clone)]
pub struct CloneResult {
    /// fio's number, from 1.
    pub number: u32,
    /// What was recorded.
    pub recorded: Recorded,
    /// The averaged log, if wanted: its window's width and the windows that are over.
    pub log: Option<(Nanos, Vec<[Sum; SIDES]>)>,
    /// The log without averages, if wanted.
    pub lines: Option<Vec<Line>>,
    /// The log of histograms, if wanted.
    pub histograms: Vec<Interval>,
    /// Every request with the paths of its files, if wanted.
    pub trace: Option<(Vec<PathBuf>, Vec<TraceEntry>)>,
    /// The first so many requests of its sequence are done, where somebody wants to know.
    pub progress: Option<u64>,
}

/// Why a job failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError {
    /// The system's number, as fio reports it.
    pub errno: i32,
    /// The same in a sentence.
    pub text: String,
}

/// One job.
#[derive(Debug, Clone)]
pub struct JobResult {
    /// What was asked.
    pub job: Job,
    /// Its clones.
    pub clones: Vec<CloneResult>,
    /// The same as halfpower's own result: intervals, processor time, what was achieved, doubts.
    pub point: Point,
    /// What it ended with, where it failed: its figures are then those of what was done before.
    pub error: Option<JobError>,
    /// When what is measured began, milliseconds since 1970.
    pub began_unix_ms: u64,
    /// How steady its rate was, where that was watched.
    pub steady: Option<Steady>,
    /// Bytes that were read and found to be what was written, where that was asked.
    pub verified_bytes: Option<u64>,
    /// Blocks that are not what was written, where the job went on after them.
    pub faults: Failures,
}

/// Jobs that ran together.
#[derive(Debug, Clone)]
pub struct GroupResult {
    /// The jobs.
    pub jobs: Vec<JobResult>,
    /// What all of them used, ramp included.
    pub usage: Usage,
    /// What the kernel counted of this process meanwhile.
    pub counts: Counts,
    /// What the devices under the files did meanwhile.
    pub disks: Vec<DiskUse>,
    /// What lies under the files.
    pub facts: TargetFacts,
}

impl GroupResult {
    /// Requests of all jobs.
    pub fn requests(&self) -> u64 {
        self.jobs.iter().flat_map(|job| &job.clones).flat_map(|clone| clone.recorded.requests).sum()
    }
}

/// Everything that a run gave.
#[derive(Debug, Clone)]
pub struct FioResult {
    /// What was asked.
    pub plan: Plan,
    /// Sets of jobs in the order in which they ran.
    pub groups: Vec<GroupResult>,
    /// Doubts and differences from fio.
    pub warnings: Vec<String>,
    /// On which machine.
    pub machine: MachineFacts,
    /// When the report was ready, milliseconds since 1970.
    pub ended_unix_ms: u64,
    /// How long all of it took, laying out included.
    pub elapsed_ns: Nanos,
}

/// One entry of a report: a clone, or all of a reporting group.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The job, of a group the first.
    pub job: &'a JobResult,
    /// The set that it ran with.
    pub group: &'a GroupResult,
    /// Its name: a setting `name` of the job's own is that of the first clone, as in fio.
    pub name: &'a str,
    /// How many clones are in it.
    pub clones: u32,
    /// What was recorded of all of them.
    pub recorded: Recorded,
    /// The first error of any.
    pub error: Option<&'a JobError>,
    /// The failures after which its jobs went on.
    pub failures: Failures,
}

impl FioResult {
    /// Every job that failed, with the reason.
    pub fn failures(&self) -> Vec<String> {
        let jobs = self.groups.iter().flat_map(|group| &group.jobs);
        jobs.filter_map(|job| job.error.as_ref().map(|error| format!("{}: {}", job.job.shown(), error.text))).collect()
    }

    /// The entries of a report: each clone one, and all of a group one where `group_reporting` is on.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for group in &self.groups {
            for job in group.jobs.iter().filter(|job| job.job.options.stats) {
                for clone in &job.clones {
                    let joins = |entry: &&mut Entry<'_>| {
                        job.job.options.group_reporting && entry.job.job.group_id == job.job.group_id
                    };
                    let first = std::ptr::eq(clone, &job.clones[0]);
                    match entries.last_mut().filter(joins) {
                        Some(entry) => {
                            entry.clones += 1;
                            entry.recorded.add(&clone.recorded);
                            entry.failures.add(clone.recorded.failures);
                            entry.failures.add(if first { job.faults } else { Failures::default() });
                            entry.error = entry.error.or(job.error.as_ref());
                        }
                        None => {
                            let (recorded, error) = (clone.recorded.clone(), job.error.as_ref());
                            let mut failures = recorded.failures;
                            failures.add(if first { job.faults } else { Failures::default() });
                            let name = job.job.given.iter().find(|(option, _)| first && option == "name");
                            let name = name.map_or(job.job.name.as_str(), |(_, name)| name);
                            entries.push(Entry { job, group, name, clones: 1, recorded, error, failures });
                        }
                    }
                }
            }
        }
        entries
    }
}
