use crate::Result;
use machine::{CacheState, Engine, Machine, Nanos, Op, Usage};
use twin::{Target, Twin};
use workload::{Stop, Workload};

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub bytes: u64,
    pub requests: u64,
    pub latency_ns: Nanos,
    pub median_latency_ns: Nanos,
    pub usage: Usage,
}

impl Outcome {
    fn seconds(&self) -> f64 {
        (self.usage.elapsed_ns + self.usage.sync_ns.unwrap_or(0)).max(1) as f64 * 1e-9
    }

    /// Includes syncs.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.seconds()
    }

    /// Includes syncs.
    pub fn iops(&self) -> f64 {
        self.requests as f64 / self.seconds()
    }

    /// Returns ms per 2^20 bytes.
    pub fn cpu_ms_per_mib(&self) -> f64 {
        self.usage.cpu.system_ns as f64 * 1e-6 / (self.bytes as f64 / f64::from(1 << 20))
    }
}

/// The 1997 study's test program: a sequential, unbuffered pass over 100 MB.
pub fn workload(op: Op, request_bytes: u32, depth: u32) -> Workload {
    let file = 100 << 20;
    Workload {
        read_percent: if op == Op::Read { 100 } else { 0 },
        request_bytes,
        depth,
        engine: Engine::IoUring,
        cache: CacheState::Cold,
        region_bytes: Some(file),
        stop: Stop::AfterBytes(file / u64::from(request_bytes) * u64::from(request_bytes)),
        ..Workload::default()
    }
}

/// Once: a simulated machine repeats it exactly.
pub fn run(twin: &Twin, target: &Target, workload: &Workload) -> Result<Outcome> {
    let facts = twin.target_facts(target);
    let align = if workload.buffering.is_direct() { facts.direct_align_bytes } else { 1 };
    workload.check(facts.size_bytes, align).map_err(machine::Error::from)?;
    let mut streams = measure::streams(workload, &facts, 0)?;
    let usage = twin.run_one(target, &workload.access(facts.size_bytes), &mut streams)?;
    let requests: u64 = streams.iter().map(measure::Stream::completed).sum();
    let waited: f64 =
        streams.iter().map(|stream| stream.mean_service_ns() * stream.completed() as f64).sum();
    let mut latencies = measure::histogram::Histogram::new();
    streams.iter().flat_map(|stream| stream.latency()).for_each(|of| latencies.merge(of));
    Ok(Outcome {
        bytes: streams.iter().map(measure::Stream::completed_bytes).sum(),
        requests,
        latency_ns: (waited / requests.max(1) as f64) as Nanos,
        median_latency_ns: latencies.percentile(50.0),
        usage,
    })
}
