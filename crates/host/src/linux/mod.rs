mod block_trace;
mod clock;
pub mod counters;
mod discard;
mod engines;
pub mod facts;
pub mod files;
mod free_page_reporting;
mod hold;
pub mod knobs;
mod mapping;
mod mark;
mod member;
mod memory;
mod network;
mod owned_file;
mod part_files;
mod probe;
mod processors;
pub mod record;
mod ring;
mod run;
mod signals;
mod snapshot;
mod sys;
mod target;
mod task_files;
mod trace_instance;

use crate::session::Time;
use machine::{
    Access, Allowance, Buffers, Capabilities, Error, MachineFacts, MemoryUse, Nanos, NullBackend,
    Part, ProcessorTimes, RequestSource, Result, RunOptions, RunUsage, THROTTLE_REST_NS,
    TargetFacts, TargetSpec, run_allowed,
};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) use mapping::Mapping;
pub use member::is_endless;
pub use owned_file::kept_bytes;
pub use probe::zeros_in_file;
pub use signals::is_ignored;
pub(crate) use sys::{INTERRUPTED_CALL, request_error};
pub use sys::{file_system_space, stack_limit};
pub use target::{DEFAULT_CHUNK, HostTarget};
pub use task_files::{HostTaskFile, HostTaskFiles};

/// After heavy load, a virtual machine's thread with one request at a time is slower for up to two
/// seconds, but not after this pause (docs/performance.md).
const REST_NS: Nanos = 200_000_000;

/// Leaves files of running processes; returns number and bytes.
pub fn remove_leftovers(directory: &Path) -> (u32, u64) {
    owned_file::remove_leftovers(directory)
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// The kernel and the time namespace (time_namespaces(7)) of the monotonic clock; empty if unknown.
pub fn clock_space() -> String {
    let boot = boot_id();
    let namespace = std::fs::read_link("/proc/self/ns/time");
    namespace.map_or(String::new(), |name| format!("{} {}", boot.trim(), name.display()))
}

/// If two are equal, a number means the same process.
pub fn process_space() -> String {
    let boot = boot_id();
    let numbers = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), numbers.display())
}

/// In an uninterruptible kernel wait (state D, proc(5)).
pub fn waiting_threads() -> usize {
    let threads = Path::new("/proc/self/task");
    let is_waiting = |thread: &OsString| {
        let stat = std::fs::read_to_string(threads.join(thread).join("stat")).unwrap_or_default();
        // The name before it may contain any character.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('D'))
    };
    ::files::entries(threads).filter(is_waiting).count()
}

/// Asks smartctl once for each drive.
pub fn wear(devices: &[String]) -> Vec<machine::Wear> {
    let roots = facts::Roots::default();
    let mut all: Vec<machine::Wear> = Vec::new();
    for one in devices.iter().filter_map(|name| facts::wear(&roots, name)) {
        // Partitions of one drive.
        if !all.iter().any(|known| known.device == one.device) {
            all.push(one);
        }
    }
    all
}

pub struct Host {
    interrupt: &'static AtomicBool,
    meters: snapshot::MachineMeters,
    memory_is_reclaimed: bool,
    allowance: Option<Arc<Allowance>>,
}

impl Host {
    /// Setting `interrupt` ends runs with [`machine::Error::Interrupted`].
    pub fn new(interrupt: &'static AtomicBool) -> Host {
        clock::Clock::begin();
        let memory_is_reclaimed =
            free_page_reporting::reclaims_free_memory(&facts::Roots::default());
        let meters = snapshot::MachineMeters::open();
        Host { interrupt, meters, memory_is_reclaimed, allowance: None }
    }

    #[must_use]
    pub fn allowing(self, allowance: Arc<Allowance>) -> Host {
        Host { allowance: Some(allowance), ..self }
    }

    fn clock(&self) -> clock::Clock {
        clock::Clock::get()
    }

    fn context(&self) -> run::Context<'_> {
        let Host { interrupt, meters, memory_is_reclaimed, .. } = self;
        run::Context {
            clock: self.clock(),
            interrupt,
            meters,
            memory_is_reclaimed: *memory_is_reclaimed,
        }
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
        Capabilities {
            engines: engines::available(),
            noisy: true,
            counts_instructions: counters::PerfCounter::try_open().is_ok(),
            traces_requests: trace_instance::permitted(),
        }
    }

    fn now(&self) -> Nanos {
        self.clock().now()
    }

    fn add_own_processes(&self, processes: &[u32]) {
        self.meters.add_own_processes(processes);
    }

    fn pause(&self, for_ns: Nanos) {
        self.clock().pass(for_ns);
    }

    fn open(&self, spec: &TargetSpec) -> Result<HostTarget> {
        self.open_checked(spec, |_| Ok(()))
    }

    fn below(&self, target: &HostTarget) -> Option<machine::Below> {
        target.below()
    }

    fn open_all(
        &self,
        specs: &[TargetSpec],
        check: &mut dyn FnMut(&[TargetFacts]) -> Result<()>,
    ) -> Result<Vec<HostTarget>> {
        let opened: Result<Vec<_>> =
            specs.iter().map(|spec| HostTarget::open(spec, self.interrupt)).collect();
        let mut targets = opened?;
        target::check_room(&targets)?;
        let facts: Vec<TargetFacts> = targets.iter().map(|target| target.facts().clone()).collect();
        check(&facts)?;
        if let Some(allowance) = &self.allowance {
            let fills = targets.iter().map(HostTarget::fill_bytes).sum();
            allowance.opening(&facts, fills)?;
            if !allowance.take(fills) {
                return Err(Error::Interrupted);
            }
        }
        let began = self.now();
        targets.iter_mut().try_for_each(HostTarget::fill)?;
        let rest = self.now().saturating_sub(began).min(REST_NS);
        // The probing reads started a slice of the throttle, which would count against the first
        // run.
        let throttled = targets.iter().any(|target| target.facts().is_throttled());
        self.pause(if throttled { rest.max(THROTTLE_REST_NS) } else { rest });
        Ok(targets)
    }

    fn check_memory(&self, streams: &[Buffers]) -> Result<()> {
        run::check_memory(streams)
    }

    fn target_facts(&self, target: &HostTarget) -> TargetFacts {
        target.facts().clone()
    }

    fn run<S: RequestSource>(
        &self,
        parts: &mut [Part<'_, HostTarget, S>],
        options: RunOptions,
    ) -> Result<RunUsage> {
        match self.allowance.as_deref().filter(|allowance| allowance.is_limited()) {
            Some(allowance) => {
                run_allowed(allowance, parts, |parts| run::run(&self.context(), parts, options))
            }
            None => run::run(&self.context(), parts, options),
        }
    }

    fn measure_ceiling<A: RequestSource>(
        &self,
        target: &HostTarget,
        access: &Access,
        backend: NullBackend,
        sources: &mut [A],
    ) -> Result<bool> {
        run::measure_ceiling(&self.context(), target, access, backend, sources)
    }

    fn restripe(&self, target: &mut HostTarget, members: &[u32], chunk: u64) -> Result<()> {
        target.restripe(members, chunk)
    }

    fn keep(&self, target: &mut HostTarget) {
        target.keep();
    }

    fn may_write(&self) -> u64 {
        self.allowance.as_ref().map_or(u64::MAX, |allowance| allowance.left())
    }

    fn wrote_before(&self, bytes: u64) {
        if let Some(allowance) = &self.allowance {
            allowance.add(bytes);
        }
    }

    fn discard(&self, target: &HostTarget) -> Result<()> {
        let interrupted = || self.interrupt.load(std::sync::atomic::Ordering::Relaxed);
        target.members().iter().try_for_each(|member| discard::discard(member, interrupted))
    }

    fn wear(&self, target: &HostTarget) -> Vec<machine::Wear> {
        wear(&target.facts().devices)
    }

    fn celsius(&self, target: &HostTarget) -> Option<f64> {
        let roots = facts::Roots::default();
        let each = target.facts().devices.iter().filter_map(|name| facts::celsius(&roots, name));
        each.reduce(f64::max)
    }

    fn processors(&self) -> Vec<ProcessorTimes> {
        processors::processors(&facts::Roots::default())
    }

    fn network(&self) -> Vec<machine::NetworkLink> {
        network::links(&facts::Roots::default())
    }

    fn memory(&self, for_ns: Nanos) -> Result<Vec<MemoryUse>> {
        memory::measure(self.clock(), for_ns, self.interrupt)
    }
}
