//! Steps of one kind of requests, one after the other, with a count of all bytes written.

use crate::series::SeriesPoint;
use machine::{
    Error, Layer, LayerKind, Machine, Nanos, Part, Result, RunOptions, TargetFacts, TargetKind,
    Warning,
};
use measure::{Sample, gather, streams};
use workload::{Stop, Workload};

/// Runs steps on a target, and never writes more than allowed.
pub(crate) struct Writer<'m, M: Machine> {
    pub(crate) machine: &'m M,
    pub(crate) target: &'m M::Target,
    pub(crate) facts: TargetFacts,
    began: Nanos,
    /// Offset of the next sequential step.
    position: u64,
    /// End of the space that steps write.
    space: u64,
    written: u64,
    max_written: u64,
    steps: u64,
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
            began: machine.now(),
            position: 0,
            written: 0,
            max_written,
            steps: 0,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Steps write this much of the target from now on, from its beginning.
    pub(crate) fn within(&mut self, bytes: u64) {
        (self.space, self.position) = (bytes, 0);
    }

    pub(crate) fn left(&self) -> u64 {
        self.max_written.saturating_sub(self.written)
    }

    pub(crate) fn passed_s(&self) -> f64 {
        (self.machine.now() - self.began) as f64 * 1e-9
    }

    /// One step of at most `ns` and `max_bytes`; `None` if not even one request may be written.
    pub(crate) fn step(
        &mut self,
        workload: &Workload,
        ns: Nanos,
        max_bytes: u64,
    ) -> Result<Option<SeriesPoint>> {
        let Some(workload) = self.next(workload, ns, max_bytes) else { return Ok(None) };
        let from_s = self.passed_s();
        let from_bytes = self.written;
        let mut all = self.run(&[&workload])?;
        let sample = all.swap_remove(0);
        self.count(&workload, &sample);
        Ok(Some(SeriesPoint {
            from_s,
            served_s: sample.measured_ns.max(1) as f64 * 1e-9,
            from_bytes,
            bytes: sample.bytes_with_ramp,
            requests: sample.requests_with_ramp,
            p99_ns: sample.latency[0].percentile(99.0).max(sample.latency[1].percentile(99.0)),
            temperature_c: self.machine.celsius(self.target),
        }))
    }

    /// Writes during which another workload reads; the sample of the reads.
    pub(crate) fn step_with(
        &mut self,
        workload: &Workload,
        reads: &Workload,
        ns: Nanos,
    ) -> Result<Option<Sample>> {
        let Some(workload) = self.next(workload, ns, u64::MAX) else { return Ok(None) };
        let mut all = self.run(&[&workload, reads])?;
        self.count(&workload, &all[0]);
        Ok(Some(all.swap_remove(1)))
    }

    pub(crate) fn read(&self, reads: &Workload) -> Result<Sample> {
        Ok(self.run(&[reads])?.swap_remove(0))
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
        self.steps += 1;
        step.limit_bytes = Some(most / request * request);
        (most >= request).then_some(step)
    }

    fn count(&mut self, workload: &Workload, sample: &Sample) {
        if workload.pattern.is_sequential() {
            self.position += sample.bytes_with_ramp;
        }
        self.written += sample.bytes_by_op()[1].ceil() as u64;
        for warning in &sample.usage.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        if let Some(pause) = &sample.usage.paused {
            let warning = Warning::from(*pause).then("; the rate of that step is too low");
            self.warnings.push(warning);
        }
    }

    /// Runs workloads at once. Unlike `measure::sample` it never repeats a run, because each
    /// repeat would write again.
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

/// Refuses a target that a run may not write, and a simulated disk: it starts each run with an empty
/// write cache, so that runs one after another would never fill it.
pub(crate) fn check_writable(facts: &TargetFacts) -> Result<()> {
    let disk = |layer: &Layer| layer.kind == LayerKind::Disk && layer.is_rotational();
    if facts.kind == TargetKind::Simulated && facts.layers.iter().any(disk) {
        return Err(Error::refused(
            facts.name.clone(),
            "a simulated disk forgets its write cache between runs",
            "use run with a long --runtime, or a simulated flash drive or cloud volume",
        ));
    }
    measure::check_writable(facts, true, "name it again after --destroy-data to write it")
}
