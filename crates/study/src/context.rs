//! Facts known before the grids are built.

use crate::grid::Rank;
use machine::{Buffering, CacheState, Engine, Nanos, TargetFacts, units};
use workload::{OpKind, Stop, Workload};

pub(crate) const OPS: [OpKind; 2] = [OpKind::Read, OpKind::Write];

#[derive(Debug, Clone)]
pub(crate) struct StudyContext {
    pub(crate) facts: TargetFacts,
    pub(crate) engines: Vec<Engine>,
    pub(crate) speed: Speed,
    pub(crate) run_ns: Nanos,
    pub(crate) seed: u64,
    pub(crate) members: u32,
    pub(crate) clients: u32,
    /// Why the clients cannot share one file.
    pub(crate) one_file: Result<(), String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Speed {
    pub(crate) read: OpSpeed,
    pub(crate) write: OpSpeed,
    pub(crate) flush_bytes_per_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OpSpeed {
    pub(crate) bytes_per_s: f64,
    pub(crate) iops: f64,
}

impl OpSpeed {
    pub(crate) fn round_ns(&self, outstanding: u32, request: u32) -> f64 {
        let outstanding = f64::from(outstanding);
        (outstanding * f64::from(request) / self.bytes_per_s).max(outstanding / self.iops) * 1e9
    }
}

impl StudyContext {
    pub(crate) fn direct(&self) -> bool {
        self.facts.direct && !self.facts.in_memory
    }

    pub(crate) fn align(&self) -> u64 {
        u64::from(self.facts.direct_align_bytes)
    }

    pub(crate) fn not_direct(&self) -> String {
        if self.facts.in_memory {
            return "the file system keeps its files in memory, so direct I/O has no device to reach".into();
        }
        self.facts.direct_refused.clone().unwrap_or_default()
    }

    pub(crate) fn flushed_write(&self, request: u32) -> Workload {
        Workload {
            request_bytes: request,
            buffering: Buffering::Buffered,
            limit_bytes: Some(self.flushable(request)),
            // Overwriting cached data would spare the kernel's allocator, or its host, their work.
            cache: if self.facts.in_memory { CacheState::AsIs } else { CacheState::Cold },
            sync_at_end: true,
            ..self.base(OpKind::Write)
        }
    }

    pub(crate) fn resident(&self, op: OpKind, request: u32) -> Option<Workload> {
        (u64::from(request) * 2 <= self.resident_bytes()).then(|| Workload {
            request_bytes: request,
            buffering: Buffering::Buffered,
            cache: CacheState::Warm,
            region_bytes: Some(self.resident_bytes()),
            ..self.base(op)
        })
    }

    pub(crate) fn note(&self) -> Vec<String> {
        if self.direct() {
            Vec::new()
        } else {
            vec![format!("measured through the page cache, because {}", self.not_direct())]
        }
    }

    pub(crate) fn ops(&self) -> Vec<OpKind> {
        if self.facts.writable { vec![OpKind::Read, OpKind::Write] } else { vec![OpKind::Read] }
    }

    pub(crate) fn deep_engine(&self) -> Engine {
        Engine::asynchronous(&self.engines)
    }

    /// Sequential, at depth 1.
    pub(crate) fn base(&self, op: OpKind) -> Workload {
        let direct = self.direct();
        Workload {
            read_percent: if op == OpKind::Write { 0 } else { 100 },
            buffering: if direct { Buffering::Direct } else { Buffering::Buffered },
            // Without direct I/O, only a dropped cache exposes the layer below it; a target in
            // memory has no layer below.
            cache: if direct || self.facts.in_memory || op == OpKind::Write {
                CacheState::AsIs
            } else {
                CacheState::Cold
            },
            stop: Stop::AfterNs(self.run_ns),
            clients: (self.clients > 1).then_some(self.clients),
            seed: self.seed,
            ..Workload::default()
        }
    }

    pub(crate) fn deep(&self, op: OpKind, request: u32, depth: u32) -> Workload {
        let engine = Engine::for_depth(depth, &self.engines);
        Workload { request_bytes: request, depth, engine, ..self.base(op) }
    }

    pub(crate) fn speed_of(&self, workload: &Workload) -> OpSpeed {
        if workload.writes() { self.speed.write } else { self.speed.read }
    }

    /// Includes the 1997 grid (2 KiB to 1 MiB).
    pub(crate) fn sizes(&self) -> Vec<(u32, Rank)> {
        let min = if self.direct() { self.facts.direct_align_bytes } else { 512 };
        let kib = |k: u64| (k * units::KIB) as u32;
        let mut sizes = vec![(min, Rank::Core)];
        let core = [4, 16, 64, 256, 1024, 4096].map(|k| (kib(k), Rank::Core));
        let usual = [2, 8, 32, 128, 512, 2048, 16384].map(|k| (kib(k), Rank::Usual));
        let rich = [1, 192, 8192].map(|k| (kib(k), Rank::Rich));
        sizes.extend(core.into_iter().chain(usual).chain(rich));
        sizes.retain(|(size, _)| {
            *size >= min
                && size.is_multiple_of(min)
                && u64::from(*size) * 4 <= self.facts.size_bytes
        });
        sizes.sort();
        sizes.dedup_by_key(|(size, _)| *size);
        sizes
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        let slower = if self.facts.writable {
            self.speed.read.bytes_per_s.min(self.speed.flush_bytes_per_s)
        } else {
            self.speed.read.bytes_per_s
        };
        let quick = (slower * 0.15) as u64 / units::MIB * units::MIB;
        quick.clamp(2 * units::MIB, 64 * units::MIB).min(self.facts.size_bytes)
    }

    pub(crate) fn flushable(&self, request: u32) -> u64 {
        let bytes = self.speed.flush_bytes_per_s * self.run_ns as f64 / 1e9 * 3.0;
        let max = (self.facts.size_bytes / 2).max(u64::from(request));
        (bytes as u64)
            .clamp(units::MIB.min(max), max)
            .next_multiple_of(u64::from(request))
            .max(u64::from(request))
    }
}
