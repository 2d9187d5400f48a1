//! Turns options into workloads.

use super::options::DEFAULT_FILE;
use super::{Access, Caching, FileLine, Kind, Multi, Options};
use crate::parse::is_twin;
use machine::{Buffering, CacheState, Engine, Error, Memory, Result};
use std::path::{Path, PathBuf};
use workload::{Pattern, Stop, Workload};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileJob {
    pub path: PathBuf,
    pub threads: u32,
    /// 0: all processors.
    pub mask: u64,
    /// Size in use, if given.
    pub size_bytes: Option<u64>,
    /// A device (`-R`), which is never created.
    pub raw: bool,
}

/// Maps `-Rsdb` to /dev/sdb, as `-RC` was drive C.
pub fn raw_device(name: &Path) -> PathBuf {
    let plain = name.components().count() == 1 && !name.is_absolute() && !is_twin(name);
    if plain { Path::new("/dev").join(name) } else { name.into() }
}

impl FileJob {
    /// Empty: all.
    pub fn processors(&self) -> Vec<u32> {
        (0..64).filter(|bit| self.mask >> bit & 1 == 1).collect()
    }
}

pub fn files(options: &Options, lines: &[FileLine]) -> Result<Vec<FileJob>> {
    let random = !matches!(options.access(), Access::Stripes(_));
    let jobs: Vec<FileJob> = if lines.is_empty() {
        let named = if options.files.is_empty() && options.raw.is_empty() {
            vec![PathBuf::from(DEFAULT_FILE)]
        } else {
            options.files.clone()
        };
        let placed = |name: &PathBuf| {
            let in_each = options.drives.iter().map(|drive| drive.join(name)).collect::<Vec<_>>();
            if in_each.is_empty() { vec![name.clone()] } else { in_each }
        };
        let files = named.iter().flat_map(placed).map(|path| (path, false));
        let devices = options.raw.iter().map(|name| (raw_device(name), true));
        let job = |(path, raw)| FileJob {
            path,
            raw,
            threads: options.threads.unwrap_or(1),
            mask: options.mask.unwrap_or(0),
            size_bytes: options.size,
        };
        files.chain(devices).map(job).collect()
    } else {
        let job = |line: &FileLine| FileJob {
            path: line.path.clone(),
            raw: false,
            threads: line.threads,
            mask: line.mask | options.mask.unwrap_or(0),
            // As in the original: a stripe pattern has its own size.
            size_bytes: line.size_mb.filter(|_| random).map(|mb| mb << 20).or(options.size),
        };
        lines.iter().map(job).collect()
    };
    let threads: u32 = jobs.iter().map(|job| job.threads).sum();
    if threads > super::MAX_THREADS {
        return Err(Error::refused(
            format!("{threads} threads over all files"),
            "there are at most 256",
            "use fewer threads or files",
        ));
    }
    let mut jobs = jobs;
    if let Some((_, processor)) = options.processor {
        if processor >= 64 {
            return Err(Error::refused(
                format!("-p{processor}"),
                "processors are numbered from 0 to 63",
                "choose one of them",
            ));
        }
        jobs.iter_mut().for_each(|job| job.mask = 1 << processor);
    }
    Ok(jobs)
}

impl Options {
    /// By default stripes.
    pub fn access(&self) -> Access {
        self.access.unwrap_or(Access::Stripes(64))
    }

    /// Two targets are compared.
    pub fn compares(&self) -> bool {
        self.matrix && self.parameters.is_none() && self.targets() == 2
    }

    pub(super) fn targets(&self) -> usize {
        let files = if self.raw.is_empty() { self.files.len().max(1) } else { self.files.len() };
        files * self.drives.len().max(1) + self.raw.len()
    }

    /// Two targets share the study's time: 300 s twice on each are ten runs of 60 s, the minimum
    /// for an interval.
    pub fn run_ns(&self) -> u64 {
        let seconds = match (self.matrix, self.compares()) {
            (false, _) => 30,
            (true, false) => 300,
            (true, true) => 60,
        };
        self.run_ns.unwrap_or(seconds * 1_000_000_000)
    }

    /// One block, or several.
    pub fn request_bytes(&self) -> u32 {
        self.block_bytes() * self.multi.map_or(1, Multi::blocks)
    }

    pub fn stripes_bytes(&self) -> Option<u64> {
        let Access::Stripes(columns) = self.access() else { return None };
        Some(
            u64::from(columns)
                * u64::from(self.rows.unwrap_or(64))
                * u64::from(self.request_bytes()),
        )
    }

    pub fn start_bytes(&self) -> u64 {
        self.start_block.unwrap_or(0) * u64::from(self.block_bytes())
    }

    /// Reads cannot bypass the disk's cache: `-BN` and `-BH` differ only in writes.
    pub fn buffering(&self, kind: Kind) -> Buffering {
        match (self.caching.unwrap_or_default(), kind) {
            (Caching::None, Kind::Write) => Buffering::DirectDsync,
            (Caching::None | Caching::Hardware, _) => Buffering::Direct,
            (Caching::Software, Kind::Write) => Buffering::BufferedDsync,
            (Caching::Software | Caching::Both, _) => Buffering::Buffered,
        }
    }

    /// Threads of a sequential run share one position, so `-t` divides one pass: in the published
    /// study 256 threads reach seven times the random rate, which parts of the file would not.
    pub fn workload(
        &self,
        kind: Kind,
        access: Access,
        threads: u32,
        engines: &[Engine],
    ) -> Workload {
        let depth = self.outstanding.unwrap_or(if self.matrix { 4 } else { 1 }).max(1);
        Workload {
            read_percent: if kind == Kind::Read { 100 } else { 0 },
            pattern: match access {
                Access::Random => Pattern::Random,
                Access::Sequential => Pattern::Together,
                Access::Stripes(columns) => Pattern::Columns(columns),
            },
            request_bytes: self.request_bytes(),
            depth,
            threads,
            engine: Engine::for_depth(depth, engines),
            buffering: self.buffering(kind),
            memory: Memory::Pages,
            cache: CacheState::AsIs,
            region_start_bytes: self.start_bytes(),
            region_bytes: self.stripes_bytes(),
            stop: Stop::AfterNs(self.run_ns()),
            seed: self.seed.unwrap_or(1),
            ..Workload::default()
        }
    }
}
