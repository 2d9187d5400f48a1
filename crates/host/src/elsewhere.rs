//! For unsupported systems: opening a target fails with the reason.

use machine::{
    Capabilities, Error, Machine, MachineFacts, MemoryUse, Nanos, Part, RequestSource, Result,
    RunOptions, RunUsage, TargetFacts, TargetSpec,
};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Only its clock works.
pub struct Host {
    began: Instant,
}

pub enum HostTarget {}

impl Host {
    pub fn new(_interrupt: &'static AtomicBool) -> Host {
        Host { began: Instant::now() }
    }
}

pub(crate) const INTERRUPTED_CALL: i32 = -4;

pub(crate) fn request_error(result: i32) -> io::Error {
    io::Error::other(format!("error {}", result.unsigned_abs()))
}

pub(crate) struct Mapping {
    start: NonNull<u8>,
    layout: Layout,
}

impl Mapping {
    pub(crate) fn new(len: usize) -> io::Result<Mapping> {
        let layout = Layout::from_size_align(len, 4096).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if len == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the layout has bytes.
        let start =
            NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, layout })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }

    pub(crate) fn prefer_huge_pages(&self, _skipped: usize) {}
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
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
        Capabilities {
            engines: Vec::new(),
            noisy: true,
            counts_instructions: false,
            traces_requests: false,
        }
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

    fn run<S: RequestSource>(
        &self,
        _parts: &mut [Part<'_, HostTarget, S>],
        _options: RunOptions,
    ) -> Result<RunUsage> {
        Err(refused())
    }

    fn restripe(&self, target: &mut HostTarget, _members: &[u32], _chunk: u64) -> Result<()> {
        match *target {}
    }

    fn memory(&self, _for_ns: Nanos) -> Result<Vec<MemoryUse>> {
        Err(refused())
    }
}
