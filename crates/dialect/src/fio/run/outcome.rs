use super::failures::{Failures, JobError};
use super::finished::Finished;
use super::group::{Group, seed, streams_of};
use super::histogram_log::HistogramLog;
use super::result::{CloneResult, CloneStats, JobResult};
use super::steady::Watch;
use super::stream_stats::{SIDES, StreamStats, by_side};
use crate::fio::options::error::FioError;
use crate::fio::options::kinds::SPREAD_NS;
use crate::fio::plan::arrange::ClonePlan;
use crate::fio::plan::jobs::Job;
use crate::fio::plan::translate;
use machine::{Figure, Machine, Nanos, Usage, Warning};
use measure::histogram::Histogram;
use measure::{Stream, gather};
use results::{NO_IO, Point};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

impl<M: Machine> Group<'_, M> {
    /// Recorders are in clone order.
    pub(crate) fn results(
        &self,
        recorders: Vec<Finished>,
        watches: &[Option<Arc<Watch>>],
        usage: &Usage,
        unix_ms: u64,
        errors: Vec<Option<JobError>>,
    ) -> Result<Vec<JobResult>, FioError> {
        let mut recorders = recorders.into_iter();
        let mut all: Vec<JobRecords> = self.jobs.iter().map(|_| JobRecords::default()).collect();
        for clone in &self.clones {
            let job = self.job_of(clone);
            let together = streams_of(job);
            let JobRecords { streams, clones: results, times, bytes } = &mut all[clone.job.1];
            let mut result: Option<CloneResult> = None;
            for Finished { stream, record, .. } in recorders.by_ref().take(together as usize) {
                times.add(&record);
                add_bytes(bytes, &stream, &record);
                let paths = clone
                    .files
                    .iter()
                    .map(|&file| self.arrangement.files[file].path.clone())
                    .collect();
                let one = clone_result(clone.number, &stream, record, paths);
                match &mut result {
                    None => result = Some(one),
                    Some(sum) => join(sum, one),
                }
                streams.push(stream);
            }
            results.extend(result);
        }
        let total: u64 =
            all.iter().flat_map(|job| &job.streams).map(Stream::completed_with_ramp).sum();
        let traffic: Vec<Traffic> = self
            .jobs
            .iter()
            .zip(&all)
            .map(|(job, records)| (records.bytes, job.is_direct()))
            .collect();
        let mut jobs = Vec::with_capacity(self.jobs.len());
        let each = self.jobs.iter().zip(all).zip(errors).enumerate();
        for (index, ((job, JobRecords { streams, clones, times, bytes }), mut error)) in each {
            let own_clones: Vec<&ClonePlan> =
                self.clones.iter().copied().filter(|clone| clone.job.1 == index).collect();
            if own_clones.is_empty() {
                jobs.push(self.without_a_run(index, unix_ms));
                continue;
            }
            let workload = translate::job_workload(
                job,
                own_clones[0],
                self.arrangement,
                seed(job, self.chance),
            );
            let own: u64 = streams.iter().map(Stream::completed_with_ramp).sum();
            let mut usage = if self.jobs.len() == 1 {
                usage.clone()
            } else {
                share(usage, own as f64 / total.max(1) as f64)
            };
            share_devices(&mut usage, &traffic, (bytes, workload.buffering.is_direct()));
            let began_unix_ms = unix_ms + times.began.saturating_sub(usage.began) / 1_000_000;
            times.set_flush(job.options.ramp_ns, &mut usage);
            let mut failures = Failures::default();
            clones.iter().for_each(|clone| failures.add(clone.recorded.failures));
            error = error.or_else(|| {
                clones.iter().find_map(|clone| clone.recorded.gave_up).map(|why| why.error(job))
            });
            if error.is_none() && clones.iter().all(|clone| clone.recorded.requests == [0; SIDES]) {
                error = Some(match failures.count {
                    0 => JobError { errno: NO_DATA, text: nothing_measured(job).into() },
                    count => JobError {
                        errno: failures.first,
                        text: format!("all {count} requests failed"),
                    },
                });
            }
            let mut point = match &error {
                Some(error) => Point::failed(workload, &error.text),
                None => {
                    let failed =
                        |source: machine::Error| FioError::Machine { job: job.shown(), source };
                    let sample = gather(&streams, usage, &workload).map_err(failed)?;
                    Point::from_samples(&workload, &self.facts_of(&own_clones), &[sample])
                }
            };
            if let (Some(numbers), Some(_)) = (&mut point.numbers, job.options.file_operation) {
                // Its requests are operations on whole files.
                numbers.retract(&NO_IO.into());
            }
            if let (Some(numbers), Failures { count: count @ 1.., first }) =
                (&mut point.numbers, failures)
            {
                let first = io::Error::from_raw_os_error(first);
                numbers
                    .warn([Warning::of("{} requests failed", [Figure::count(count)]).then(format!(
                    ", the first with: {first}; their bytes and latencies are not in the figures"
                ))]);
            }
            let steady = watches[index].as_ref().map(|watch| watch.verdict());
            let job = job.clone();
            jobs.push(JobResult {
                job,
                clones,
                point,
                error,
                began_unix_ms,
                steady,
                verified_bytes: None,
                faults: Failures::default(),
            });
        }
        Ok(jobs)
    }
}

#[derive(Default)]
struct JobRecords {
    streams: Vec<Stream>,
    clones: Vec<CloneResult>,
    times: JobTimes,
    /// Includes the ramp.
    bytes: [u64; 2],
}

struct JobTimes {
    began: Nanos,
    /// Latest start and end of final syncs.
    end_sync: Option<(Nanos, Nanos)>,
}

impl Default for JobTimes {
    fn default() -> JobTimes {
        JobTimes { began: Nanos::MAX, end_sync: None }
    }
}

impl JobTimes {
    fn add(&mut self, record: &StreamStats) {
        self.began = self.began.min(record.span.0);
        if let Some((began, ended)) = record.end_sync {
            let (written, stable) = self.end_sync.unwrap_or((began, ended));
            self.end_sync = Some((written.max(began), stable.max(ended)));
        }
    }

    /// A job lasts until its final syncs end.
    fn set_flush(&self, ramp_ns: Nanos, usage: &mut Usage) {
        if let Some((written, stable)) = self.end_sync {
            usage.elapsed_ns = written.saturating_sub(self.began.saturating_sub(ramp_ns));
            usage.sync_ns = Some(stable.saturating_sub(written));
        }
    }
}

impl<M: Machine> Group<'_, M> {
    pub(crate) fn still_running(&self, index: usize, unix_ms: u64) -> JobResult {
        let mut job = self.without_a_run(index, unix_ms);
        if job.error.is_none() {
            job.point = Point::failed(job.point.workload.workload.clone(), "it has not ended");
        }
        job
    }

    /// For jobs that failed to lay out files, or only had to.
    pub(crate) fn without_a_run(&self, index: usize, unix_ms: u64) -> JobResult {
        let job = &self.jobs[index];
        let asked: Vec<&ClonePlan> =
            self.asked.clones.iter().filter(|clone| clone.job == (self.number, index)).collect();
        let error = self
            .not_run
            .iter()
            .find(|(place, _)| *place == (self.number, index))
            .and_then(|(_, error)| error.clone());
        let why = error.as_ref().map_or("create_only=1: nothing was measured", |error| &error.text);
        let workload = translate::job_workload(job, asked[0], self.asked, seed(job, self.chance));
        let nothing = |clone: &&ClonePlan| CloneResult {
            number: clone.number,
            recorded: CloneStats { spread_ns: SPREAD_NS, ..CloneStats::default() },
            log: None,
            lines: None,
            histograms: Vec::new(),
            trace: None,
            progress: None,
        };
        JobResult {
            job: job.clone(),
            clones: asked.iter().map(nothing).collect(),
            point: Point::failed(workload, why),
            error,
            began_unix_ms: unix_ms,
            steady: None,
            verified_bytes: None,
            faults: Failures::default(),
        }
    }
}

const NO_DATA: i32 = 61;

/// Leaves out what cannot be divided.
fn share(usage: &Usage, part: f64) -> Usage {
    let of = |ns: Nanos| (ns as f64 * part) as Nanos;
    let mut cpu = usage.cpu;
    (cpu.user_ns, cpu.system_ns, cpu.machine_ns) =
        (of(cpu.user_ns), of(cpu.system_ns), of(cpu.machine_ns));
    Usage { cpu, device: None, shared_device: usage.device, block_bytes: None, ..usage.clone() }
}

type Traffic = ([u64; 2], bool);

/// Scales the measured ratio to the total with the ramp.
fn add_bytes(sums: &mut [u64; 2], stream: &Stream, record: &StreamStats) {
    let [reads, writes, _] = record.bytes.map(|bytes| bytes as f64);
    let whole = stream.completed_bytes_with_ramp() as f64 / (reads + writes).max(1.0);
    sums[0] += (reads * whole) as u64;
    sums[1] += (writes * whole) as u64;
}

/// Sets bytes that other jobs requested.
fn share_devices(usage: &mut Usage, all: &[Traffic], own: Traffic) {
    let others = |direct: bool, op: usize| {
        let sum: u64 = all.iter().filter(|job| job.1 == direct).map(|job| job.0[op]).sum();
        sum.saturating_sub(if own.1 == direct { own.0[op] } else { 0 })
    };
    usage.others_cached_bytes = [0, 1].map(|op| others(false, op));
    usage.others_direct_bytes = [0, 1].map(|op| others(true, op));
}

fn nothing_measured(job: &Job) -> &'static str {
    if job.options.ramp_ns > 0 {
        "the job ended within its ramp_time, so nothing was measured; give it time_based with a runtime, or a shorter ramp_time"
    } else {
        "no request completed during the run; give it more runtime, or a smaller bs"
    }
}

fn clone_result(
    number: u32,
    stream: &Stream,
    record: StreamStats,
    paths: Vec<PathBuf>,
) -> CloneResult {
    let recorded = recorded(stream, &record);
    CloneResult {
        number,
        recorded,
        log: record.log.map(|log| (log.width_ns, log.whole())),
        lines: record.lines,
        histograms: record.histograms.map(HistogramLog::closed).unwrap_or_default(),
        trace: record.trace.map(|trace| (paths, trace)),
        progress: record.progress,
    }
}

pub(crate) fn recorded(stream: &Stream, record: &StreamStats) -> CloneStats {
    let latency = record.from_issue.clone().unwrap_or_else(|| {
        let [read, write] = stream.latency().clone();
        [read, write, Histogram::new()]
    });
    let [submission, completion] =
        record.phases.clone().unwrap_or_else(|| [by_side(), latency.clone()]);
    CloneStats {
        latency,
        submission,
        completion,
        requests: record.requests,
        bytes: record.bytes,
        runtime_ns: record.span.1.saturating_sub(record.span.0).saturating_sub(record.apart_ns),
        spread_ns: SPREAD_NS,
        spread: record.spread.whole(),
        syncs: record.syncs.clone(),
        full_syncs: record.full_syncs,
        depths: record.depths,
        submitted: record.submitted,
        completed: record.completed,
        read_back: record.read_back.clone().map(Box::new),
        failures: record.failures,
        priorities: record.priorities.as_ref().map(|by| by.all.clone()).unwrap_or_default(),
        depth_found: record.depth_found,
        gave_up: record.gave_up,
    }
}

fn join(sum: &mut CloneResult, other: CloneResult) {
    sum.recorded.add(&other.recorded);
    if let (Some((_, sums)), Some((_, parts))) = (&mut sum.log, other.log) {
        sums.resize(sums.len().max(parts.len()), Default::default());
        for (sums, parts) in sums.iter_mut().zip(parts) {
            for (sum, part) in sums.iter_mut().zip(parts) {
                sum.add(part);
            }
        }
    }
    if let (Some((_, trace)), Some((_, others))) = (&mut sum.trace, other.trace) {
        trace.extend(others);
    }
    sum.histograms.extend(other.histograms);
    if let (Some(lines), Some(others)) = (&mut sum.lines, other.lines) {
        lines.extend(others);
        lines.sort_by_key(|line| line.at_ns);
    }
}
