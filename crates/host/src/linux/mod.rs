//! Linux.

mod arena;
mod clock;
pub mod counters;
pub mod facts;
pub mod files;
mod memory;
mod place;
mod processors;
mod run;
mod session;
mod snapshot;
mod sys;
mod target;
mod together;

use machine::{
    Access, Asker, Capabilities, Engine, MachineFacts, MemoryUse, Nanos, ProcessorTimes, Result, StandIn, TargetFacts, TargetSpec, Usage,
};
use std::sync::atomic::AtomicBool;

pub use target::HostTarget;

/// Removes the test files that killed runs left in a directory; files of living runs stay. Returns their number and bytes.
pub fn remove_leftovers(directory: &std::path::Path) -> (u32, u64) {
    place::remove_leftovers(directory)
}

/// Bytes that a directory's file system has left for this user; `None`: it does not say.
///
/// # Errors
/// There is no such directory.
pub fn free_bytes(directory: &std::path::Path) -> std::io::Result<Option<u64>> {
    sys::free_bytes(directory)
}

/// Reserves space for a file without writing it, and makes it so long.
///
/// # Errors
/// The file system cannot, or has no such space.
pub fn reserve(file: &std::fs::File, bytes: u64) -> std::io::Result<()> {
    sys::reserve(file, bytes)
}

/// This computer.
pub struct Host {
    interrupt: &'static AtomicBool,
    meters: snapshot::MachineMeters,
}

impl Host {
    /// This computer. When `interrupt` becomes true, what runs ends with [`machine::Error::Interrupted`].
    pub fn new(interrupt: &'static AtomicBool) -> Host {
        clock::Clock::begin();
        Host { interrupt, meters: snapshot::MachineMeters::open() }
    }

    fn clock(&self) -> clock::Clock {
        clock::Clock::get()
    }
}

impl machine::Machine for Host {
    type Target = HostTarget;

    fn facts(&self) -> MachineFacts {
        let mut facts = facts::machine_facts(&facts::Roots::default());
        facts.settings.insert("halfpower.clock".into(), self.clock().source().into());
        facts
    }

    fn capabilities(&self) -> Capabilities {
        let mut engines = vec![Engine::Sync, Engine::Threads];
        if session::uring::available() {
            engines.push(Engine::IoUring);
        }
        if session::aio::available() {
            engines.push(Engine::Libaio);
        }
        engines.push(Engine::Mmap);
        Capabilities { engines, noisy: true, counts_instructions: counters::PerfCounter::try_open().is_ok() }
    }

    fn now(&self) -> Nanos {
        self.clock().now()
    }

    fn pause(&self, for_ns: Nanos) {
        session::pass(for_ns);
    }

    fn open(&self, spec: &TargetSpec) -> Result<HostTarget> {
        HostTarget::open(spec, self.interrupt)
    }

    fn target_facts(&self, target: &HostTarget) -> TargetFacts {
        target.facts().clone()
    }

    fn run<A: Asker>(&self, target: &mut HostTarget, access: &Access, askers: &mut [A]) -> Result<Usage> {
        run::run(self, target, access, askers)
    }

    fn rehearse<A: Asker>(&self, target: &HostTarget, access: &Access, stand_in: StandIn, askers: &mut [A]) -> Result<bool> {
        run::rehearse(self, target, access, stand_in, askers)
    }

    fn restripe(&self, target: &mut HostTarget, members: &[u32], chunk: u64) -> Result<()> {
        target.restripe(members, chunk)
    }

    fn keep(&self, target: &mut HostTarget) {
        target.keep();
    }

    fn processors(&self) -> Vec<ProcessorTimes> {
        processors::processors(&facts::Roots::default())
    }

    fn bind(&self, processors: &[u32]) -> Result<()> {
        sys::bind(processors).map_err(|error| {
            let named: Vec<String> = processors.iter().map(u32::to_string).collect();
            machine::Error::refused(
                format!("processors {}", named.join(", ")),
                error.to_string(),
                "name processors that are online, numbered from 0",
            )
        })
    }

    fn memory(&self, for_ns: Nanos) -> Vec<MemoryUse> {
        memory::measure(self.clock(), for_ns, self.interrupt)
    }
}
