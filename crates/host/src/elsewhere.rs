//! Placeholder for operating systems that halfpower does not support yet: opening a target fails
//! with the reason.

use machine::{
    Capabilities, Error, Machine, MachineFacts, MemoryUse, Nanos, Part, RequestSource, Result, RunOptions, RunUsage,
    TargetFacts, TargetSpec,
};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// This computer; only its clock works.
pub struct Host {
    began: Instant,
}

/// An opened target; cannot be constructed.
pub enum HostTarget {}

impl Host {
    pub fn new(_interrupt: &'static AtomicBool) -> Host {
        Host { began: Instant::now() }
    }
}

fn refused() -> Error {
    Error::Unsupported(format!(
        "halfpower measures Linux only, and this is {}: name a simulated machine instead (twin:NAME)",
        std::env::consts::OS
    ))
}

impl Machine for Host {
    type Target = HostTarget;

    fn facts(&self) -> MachineFacts {
        MachineFacts { system: std::env::consts::OS.into(), ..MachineFacts::default() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { engines: Vec::new(), noisy: true, counts_instructions: false, traces_requests: false }
    }

    fn now(&self) -> Nanos {
        self.began.elapsed().as_nanos() as Nanos
    }

    fn pause(&self, for_ns: Nanos) {
        std::thread::sleep(Duration::from_nanos(for_ns));
    }

    fn open(&self, _spec: &TargetSpec) -> Result<HostTarget> {
        Err(refused())
    }

    fn target_facts(&self, target: &HostTarget) -> TargetFacts {
        match *target {}
    }

    fn run<S: RequestSource>(&self, _parts: &mut [Part<'_, HostTarget, S>], _options: RunOptions) -> Result<RunUsage> {
        Err(refused())
    }

    fn restripe(&self, target: &mut HostTarget, _members: &[u32], _chunk: u64) -> Result<()> {
        match *target {}
    }

    fn memory(&self, _for_ns: Nanos) -> Result<Vec<MemoryUse>> {
        Err(refused())
    }
}
