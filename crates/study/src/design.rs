//! Experiments as data: cells to be measured, and figures to draw from them.

use crate::result::Axis;
use machine::{Buffering, CacheState, Engine, Nanos, TargetFacts, units};
use workload::{Stop, Workload};

/// How much a cell matters: [`Rank::Core`] cells are in every study, [`Rank::Rich`] ones only in a full one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Core,
    Usual,
    Rich,
}

/// Which figure of a point a cell shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// What the axis says.
    Plain,
    /// The rate to stable storage: the time of the flush counted too.
    Synced,
}

/// A stripe's shape: which members, and its chunk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) members: Vec<u32>,
    pub(crate) chunk: u64,
}

/// One point of a grid, and where it is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// Figures of the same group draw the same cells.
    pub(crate) group: &'static str,
    pub(crate) series: String,
    pub(crate) x: f64,
    pub(crate) workload: Workload,
    pub(crate) shape: Option<Shape>,
    pub(crate) shows: Shows,
    pub(crate) rank: Rank,
}

impl Cell {
    pub(crate) fn new(group: &'static str, series: impl Into<String>, x: f64, workload: Workload, rank: Rank) -> Cell {
        Cell { group, series: series.into(), x, workload, shape: None, shows: Shows::Plain, rank }
    }

    pub(crate) fn shaped(self, shape: Shape) -> Cell {
        Cell { shape: Some(shape), ..self }
    }

    pub(crate) fn synced(self) -> Cell {
        Cell { shows: Shows::Synced, ..self }
    }
}

/// How a group is drawn.
#[derive(Debug, Clone)]
pub(crate) struct FigureDesign {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) group: &'static str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Its curves are asked for their half-power points.
    pub(crate) half_power: bool,
}

/// An experiment before it is made.
#[derive(Debug, Clone)]
pub(crate) struct Design {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) question: &'static str,
    pub(crate) skipped: Option<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) figures: Vec<FigureDesign>,
    pub(crate) cells: Vec<Cell>,
}

/// What is known before the grids are made: the target, the engines, and how fast it goes about.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) facts: TargetFacts,
    pub(crate) engines: Vec<Engine>,
    pub(crate) speed: Speed,
    /// Length of one run.
    pub(crate) run_ns: Nanos,
    pub(crate) seed: u64,
    /// Members of the target, striped or not.
    pub(crate) members: u32,
}

/// About how fast a target goes, from a few scouting runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Speed {
    pub(crate) read: OpSpeed,
    pub(crate) write: OpSpeed,
    /// Bytes per second from a dirty page cache to stable storage.
    pub(crate) flush_bytes_per_s: f64,
}

/// About how fast one operation goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OpSpeed {
    pub(crate) bytes_per_s: f64,
    pub(crate) iops: f64,
}

impl OpSpeed {
    /// Time of one round of all outstanding requests.
    pub(crate) fn round_ns(&self, outstanding: u32, request: u32) -> f64 {
        let outstanding = f64::from(outstanding);
        (outstanding * f64::from(request) / self.bytes_per_s).max(outstanding / self.iops) * 1e9
    }
}

/// An operation by name, as the series are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Read => "read",
            Way::Write => "write",
        }
    }

    pub(crate) fn read_percent(self) -> u8 {
        match self {
            Way::Read => 100,
            Way::Write => 0,
        }
    }
}

impl Setting {
    /// Whether requests can go past the cache to something that is not memory.
    pub(crate) fn direct(&self) -> bool {
        self.facts.direct && !self.facts.in_memory
    }

    /// Why not.
    pub(crate) fn not_direct(&self) -> String {
        if self.facts.in_memory {
            return "the file system keeps its files in memory, so there is nothing below the page cache to reach".into();
        }
        self.facts.direct_refused.clone().unwrap_or_default()
    }

    /// Writes through the page cache, flushed at the end; no more than is flushed in little time.
    pub(crate) fn flushed_write(&self, request: u32) -> Workload {
        Workload {
            request_bytes: request,
            buffering: Buffering::Buffered,
            limit_bytes: Some(self.flushable(request)),
            sync_at_end: true,
            ..self.base(Way::Write)
        }
    }

    /// A note for experiments that would go direct and cannot.
    pub(crate) fn note(&self) -> Vec<String> {
        if self.direct() { Vec::new() } else { vec![format!("made through the page cache, because {}", self.not_direct())] }
    }

    /// Reading, and writing where that is allowed.
    pub(crate) fn ways(&self) -> Vec<Way> {
        if self.facts.writable { vec![Way::Read, Way::Write] } else { vec![Way::Read] }
    }

    /// The engine that keeps several requests outstanding from one thread.
    pub(crate) fn deep_engine(&self) -> Engine {
        [Engine::IoUring, Engine::Libaio].into_iter().find(|engine| self.engines.contains(engine)).unwrap_or(Engine::Threads)
    }

    /// The workload that the grids vary: sequential, direct where that is to be had, one request outstanding.
    pub(crate) fn base(&self, way: Way) -> Workload {
        let direct = self.direct();
        Workload {
            read_percent: way.read_percent(),
            buffering: if direct { Buffering::Direct } else { Buffering::Buffered },
            // Without direct I/O only a dropped cache shows what lies below it; in memory there is nothing below.
            cache: if direct || self.facts.in_memory || way == Way::Write { CacheState::AsIs } else { CacheState::Cold },
            stop: Stop::AfterNs(self.run_ns),
            seed: self.seed,
            ..Workload::default()
        }
    }

    /// The base with so many requests outstanding.
    pub(crate) fn deep(&self, way: Way, request: u32, depth: u32) -> Workload {
        let engine = if depth == 1 { Engine::Sync } else { self.deep_engine() };
        Workload { request_bytes: request, depth, engine, ..self.base(way) }
    }

    /// How fast an operation goes about.
    pub(crate) fn speed_of(&self, workload: &Workload) -> OpSpeed {
        if workload.writes() { self.speed.write } else { self.speed.read }
    }

    /// Request sizes that the target takes, with their ranks: the 1997 grid (2 KiB to 1 MiB), from the smallest direct size to 16 MiB.
    pub(crate) fn sizes(&self) -> Vec<(u32, Rank)> {
        let least = if self.direct() { self.facts.direct_align_bytes } else { 512 };
        let kib = |k: u64| (k * units::KIB) as u32;
        let mut sizes = vec![(least, Rank::Core)];
        let core = [4, 16, 64, 256, 1024, 4096].map(|k| (kib(k), Rank::Core));
        let usual = [2, 8, 32, 128, 512, 2048, 16384].map(|k| (kib(k), Rank::Usual));
        let rich = [1, 192, 8192].map(|k| (kib(k), Rank::Rich));
        sizes.extend(core.into_iter().chain(usual).chain(rich));
        sizes.retain(|(size, _)| *size >= least && size.is_multiple_of(least) && u64::from(*size) * 4 <= self.facts.size_bytes);
        sizes.sort();
        sizes.dedup_by_key(|(size, _)| *size);
        sizes
    }

    /// Bytes of a region that stays in the page cache, and that the device fills and takes back in little time.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let slower =
            if self.facts.writable { self.speed.read.bytes_per_s.min(self.speed.flush_bytes_per_s) } else { self.speed.read.bytes_per_s };
        let quick = (slower * 0.15) as u64 / units::MIB * units::MIB;
        quick.clamp(2 * units::MIB, 64 * units::MIB).min(self.facts.size_bytes)
    }

    /// Bytes that a write to be flushed may leave in the cache: as many as reach the device in about three runs.
    pub(crate) fn flushable(&self, request: u32) -> u64 {
        let bytes = self.speed.flush_bytes_per_s * self.run_ns as f64 / 1e9 * 3.0;
        let most = (self.facts.size_bytes / 2).max(u64::from(request));
        (bytes as u64).clamp(units::MIB.min(most), most).next_multiple_of(u64::from(request)).max(u64::from(request))
    }
}
