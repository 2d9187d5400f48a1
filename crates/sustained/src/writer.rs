//! Steps of one kind of requests, with a count of all bytes written.

use crate::log::{Kept, Log, ReadTimes, other_step};
use crate::series::SeriesPoint;
use machine::{Error, Machine, Nanos, Part, Result, RunOptions, TargetFacts, TargetKind, Warning};
use measure::{Sample, gather, streams};
use workload::{Stop, Workload};

/// Never writes more than allowed.
pub(crate) struct Writer<'m, M: Machine> {
    pub(crate) machine: &'m M,
    pub(crate) target: &'m M::Target,
    pub(crate) facts: TargetFacts,
    log: Log<'m>,
    began: Nanos,
    position: u64,
    /// The end of the space that steps write.
    space: u64,
    measured: u64,
    /// What steps of killed processes may have written at most.
    lost: u64,
    /// Bytes of a step.
    largest: u64,
    max_written: u64,
    steps: u64,
    /// Times between two processes.
    gaps: u32,
    pub(crate) warnings: Vec<Warning>,
}

impl<'m, M: Machine> Writer<'m, M> {
    pub(crate) fn new(machine: &'m M, target: &'m M::Target, max_written: u64) -> Self {
        let facts = machine.target_facts(target);
        Writer {
            machine,
            target,
            space: facts.size_bytes,
            facts,
            log: Log::new(machine.run_log()),
            began: machine.now(),
            position: 0,
            measured: 0,
            lost: 0,
            largest: 0,
            max_written,
            steps: 0,
            gaps: 0,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn written(&self) -> u64 {
        self.measured + self.lost
    }

    pub(crate) fn measured(&self) -> u64 {
        self.measured
    }

    pub(crate) fn gaps(&self) -> u32 {
        self.gaps
    }

    pub(crate) fn within(&mut self, bytes: u64) {
        (self.space, self.position) = (bytes, 0);
    }

    pub(crate) fn left(&self) -> u64 {
        self.max_written.saturating_sub(self.written())
    }

    pub(crate) fn passed_s(&self) -> f64 {
        (self.machine.now() - self.began) as f64 * 1e-9
    }

    /// `None` after the last step: the gap is kept, and the cut-off step may have written `most`.
    fn recall(&mut self, most: u64) -> Result<Option<Kept>> {
        let was_cut_off = self.log.is_cut_off();
        loop {
            match self.log.recall()? {
                Some(Kept::CutOff { bytes }) => self.cut_off(bytes),
                None if self.log.is_cut_off() && !was_cut_off => {
                    let bytes = most.min(self.left());
                    self.log.keep(&Kept::CutOff { bytes });
                    self.cut_off(bytes);
                    return Ok(None);
                }
                step => return Ok(step),
            }
        }
    }

    fn cut_off(&mut self, bytes: u64) {
        self.machine.wrote_before(bytes);
        self.lost += bytes;
        self.gaps += 1;
    }

    pub(crate) fn kept_rest(&mut self) -> Result<Option<f64>> {
        match self.recall(0)? {
            None => Ok(None),
            Some(Kept::Rested { seconds }) => Ok(Some(seconds)),
            Some(_) => Err(other_step()),
        }
    }

    pub(crate) fn keep_rest(&mut self, seconds: f64) {
        self.log.keep(&Kept::Rested { seconds });
    }

    pub(crate) fn step(
        &mut self,
        workload: &Workload,
        ns: Nanos,
        max_bytes: u64,
    ) -> Result<Option<SeriesPoint>> {
        if self.next(workload, ns, max_bytes).is_none() {
            return Ok(None);
        }
        match self.recall(self.largest)? {
            None => {}
            Some(Kept::Wrote { point, warnings }) => {
                self.machine.wrote_before(point.bytes);
                self.count(workload, point.bytes, point.bytes);
                self.warnings.extend(warnings);
                return Ok(Some(point));
            }
            Some(_) => return Err(other_step()),
        }
        let Some(step) = self.next(workload, ns, max_bytes) else { return Ok(None) };
        let from_s = self.passed_s();
        let from_bytes = self.measured;
        let mut all = self.run(&[&step])?;
        let sample = all.swap_remove(0);
        let point = SeriesPoint {
            from_s,
            served_s: sample.measured_ns.max(1) as f64 * 1e-9,
            from_bytes,
            bytes: sample.bytes_with_ramp,
            requests: sample.requests_with_ramp,
            p99_ns: sample.latency[0].percentile(99.0).max(sample.latency[1].percentile(99.0)),
            temperature_c: self.machine.celsius(self.target),
        };
        self.count(workload, point.bytes, written_of(&sample));
        let warnings = self.new_warnings(&sample);
        if !sample.usage.interrupted {
            self.log.keep(&Kept::Wrote { point, warnings: warnings.clone() });
        }
        self.warnings.extend(warnings);
        Ok(Some(point))
    }

    pub(crate) fn step_with(
        &mut self,
        workload: &Workload,
        reads: &Workload,
        ns: Nanos,
    ) -> Result<Option<ReadTimes>> {
        if self.next(workload, ns, u64::MAX).is_none() {
            return Ok(None);
        }
        match self.recall(self.largest)? {
            None => {}
            Some(Kept::ReadDuring { reads, bytes, written_bytes }) => {
                self.machine.wrote_before(written_bytes);
                self.count(workload, bytes, written_bytes);
                return Ok(Some(reads));
            }
            Some(_) => return Err(other_step()),
        }
        let Some(step) = self.next(workload, ns, u64::MAX) else { return Ok(None) };
        let all = self.run(&[&step, reads])?;
        let (bytes, written_bytes) = (all[0].bytes_with_ramp, written_of(&all[0]));
        self.count(workload, bytes, written_bytes);
        let times = ReadTimes::of(&all[1]);
        if !all[0].usage.interrupted {
            self.log.keep(&Kept::ReadDuring { reads: times, bytes, written_bytes });
        }
        Ok(Some(times))
    }

    pub(crate) fn read(&mut self, reads: &Workload) -> Result<ReadTimes> {
        match self.recall(0)? {
            None => {}
            Some(Kept::Read(times)) => return Ok(times),
            Some(_) => return Err(other_step()),
        }
        let sample = self.run(&[reads])?.swap_remove(0);
        let times = ReadTimes::of(&sample);
        if !sample.usage.interrupted {
            self.log.keep(&Kept::Read(times));
        }
        Ok(times)
    }

    fn next(&mut self, workload: &Workload, ns: Nanos, max_bytes: u64) -> Option<Workload> {
        let request = u64::from(workload.request_bytes);
        let size = self.space / request * request;
        let mut step = Workload { stop: Stop::AfterNs(ns), ..workload.clone() };
        let mut most = max_bytes;
        if workload.pattern.is_sequential() {
            if self.position + request > size {
                self.position = 0;
            }
            step.region_start_bytes = self.position;
            step.region_bytes = Some(size - self.position);
            most = most.min(size - self.position);
        } else {
            step.region_bytes = Some(size);
            step.seed = workload.seed.wrapping_add(self.steps);
        }
        if workload.writes() {
            most = most.min(self.left());
        }
        step.limit_bytes = Some(most / request * request);
        (most >= request).then_some(step)
    }

    fn count(&mut self, workload: &Workload, bytes: u64, written: u64) {
        if workload.pattern.is_sequential() {
            self.position += bytes;
        }
        self.steps += 1;
        self.measured += written;
        self.largest = self.largest.max(written);
    }

    fn new_warnings(&self, sample: &Sample) -> Vec<Warning> {
        let known = |warning: &&Warning| !self.warnings.contains(warning);
        let mut all: Vec<Warning> = sample.usage.warnings.iter().filter(known).cloned().collect();
        if let Some(pause) = &sample.usage.paused {
            all.push(Warning::from(*pause).then("; the rate of that step is too low"));
        }
        all
    }

    /// Unlike `measure::sample`, never repeats a run, which would write again.
    fn run(&self, workloads: &[&Workload]) -> Result<Vec<Sample>> {
        let facts = &self.facts;
        let mut sources = workloads
            .iter()
            .map(|workload| streams(workload, facts, 0))
            .collect::<Result<Vec<_>>>()?;
        let accesses: Vec<_> =
            workloads.iter().map(|workload| workload.access(facts.size_bytes)).collect();
        let mut parts: Vec<Part<'_, M::Target, _>> = (accesses.iter().zip(&mut sources))
            .map(|(access, sources)| Part::new(self.target, access, sources))
            .collect();
        let usage = self.machine.run(&mut parts, RunOptions::default())?;
        drop(parts);
        workloads
            .iter()
            .zip(&sources)
            .zip(usage.by_part())
            .map(|((workload, sources), usage)| gather(sources, usage?, workload))
            .collect()
    }
}

impl ReadTimes {
    fn of(sample: &Sample) -> ReadTimes {
        let p99_ns = sample.latency[0].percentile(99.0);
        ReadTimes { mean_ns: sample.mean_service_ns, p99_ns }
    }
}

fn written_of(sample: &Sample) -> u64 {
    sample.bytes_by_op()[1].ceil() as u64
}

pub(crate) fn rotating(facts: &TargetFacts) -> bool {
    facts.is_rotating()
}

/// Refuses a simulated disk, too: its write cache is empty at each run and would never fill.
pub(crate) fn check_writable(facts: &TargetFacts) -> Result<()> {
    if facts.kind == TargetKind::Simulated && facts.is_rotating() {
        return Err(Error::refused(
            facts.name.clone(),
            "a simulated disk forgets its write cache between runs",
            "use run with a long --runtime, or a simulated flash drive or cloud volume",
        ));
    }
    measure::check_writable(facts, true, "name it again after --destroy-data to write it")
}
