//! Small files, like NTFS (H. Custer, Inside the Windows NT File System, 1994): a table of 1 KB
//! records on an eighth of the volume, directories as trees of 4 KB buffers, logged changes, all
//! through the cache.

use crate::event::Event;
use crate::settings::Setup;
use crate::twin::world;
use crate::world::World;
use machine::files::{
    AreaSpec, FileAct, FileArea, FileEngine, FileError, FileId, FileSync, FileSystem, FileUsage,
    FileWork, directories_below, parent_directory,
};
use machine::{
    Access, Allocation, Buffering, CacheState, Engine, Hint, Memory, Nanos, Op, Reap, Request,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const RECORD: u64 = 1024;
const INDEX: u64 = 4096;
/// Per buffer: a short name takes about 100 bytes, and a tree's buffers are two thirds full.
const ENTRIES: u32 = 27;
const DIRECTORY: u64 = 8 << 20;
/// One part in this many of the volume, starting at one sixteenth, holds directory buffers.
/// Assumed.
const DIRECTORIES: u64 = 32;
const LOG_RECORD: u64 = 512;
/// One part in this many of the volume, as NTFS reserves for its master file table.
const TABLE_ZONE: u64 = 8;
/// Bytes before it wraps around.
const LOG: u64 = 64 << 20;

/// The file system of a simulated machine.
///
/// ```
/// use machine::files::{
///     AreaSpec, FileArea, FileEngine, FileId, FileSync, FileSystem, FileWork,
/// };
///
/// let files = twin::TwinFiles::new(&twin::Setup::parse("server-2003")?);
/// let area = files.open(&AreaSpec {
///     locations: Vec::new(),
///     joins: false,
///     subdirectories: 0,
///     branch: 0,
///     engine: FileEngine::Stdio,
///     sync: FileSync::None,
///     read_block_bytes: 512,
///     write_block_bytes: 512,
/// })?;
/// let mut work = area.work()?;
/// let (id, before) = (FileId { location: 0, subdirectory: 0, number: 1 }, files.now());
/// work.create(id, b"a message")?;
/// work.read(id, 9)?;
/// assert!(files.now() > before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TwinFiles {
    name: PathBuf,
    state: Arc<Mutex<State>>,
}

impl TwinFiles {
    pub fn new(setup: &Setup) -> TwinFiles {
        TwinFiles {
            name: PathBuf::from(format!("twin:{}", setup.name)),
            state: Arc::new(Mutex::new(State::new(setup))),
        }
    }

    fn unsupported(&self, why: &str) -> FileError {
        FileError::Refused { path: self.name.clone(), why: why.to_owned() }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Placed {
    record: u64,
    extents: Vec<(u64, u64)>,
    bytes: u64,
}

struct State {
    world: World,
    began: Nanos,
    /// Each read rewrites the file's record: the most that it can cost, as NTFS does so at most
    /// once an hour per file.
    last_access: bool,
    /// In earlier runs: processor time, bytes read and written.
    used: (Nanos, u64, u64),
    files: HashMap<FileId, Placed>,
    free: BTreeMap<u64, u64>,
    free_records: BTreeSet<u64>,
    records: u64,
    /// Pages that hold data: new ones need no read before a write.
    written: HashSet<u64>,
    log_at: u64,
}

impl State {
    fn new(setup: &Setup) -> State {
        let mut state = State {
            world: world(setup),
            began: 0,
            last_access: setup.last_access,
            used: (0, 0, 0),
            files: HashMap::new(),
            free: BTreeMap::new(),
            free_records: BTreeSet::new(),
            records: 0,
            written: HashSet::new(),
            log_at: 0,
        };
        state.format();
        state
    }

    fn format(&mut self) {
        self.used = self.used();
        self.began = self.now();
        self.world.rest(0, 0);
        let all = self.world.files[0].addresses();
        self.world.forget(all);
        let access = Access {
            engine: Engine::Sync,
            buffering: Buffering::Buffered,
            metadata_sync: false,
            reap: Reap::default(),
            kernel_polls: false,
            hint: Hint::None,
            memory: Memory::Pages,
            allocation: Allocation::Written,
            cache: CacheState::AsIs,
            sync_at_end: false,
            region: (0, self.bytes()),
        };
        self.world.prepare(&access, &[0]);
        let (first, last) =
            (self.bytes() / TABLE_ZONE / self.cluster(), self.bytes() / self.cluster());
        // The log is in the middle.
        let log = self.log_start() / self.cluster();
        self.free = BTreeMap::from([
            (first, log - first),
            (log + LOG / self.cluster(), last - log - LOG / self.cluster()),
        ]);
        self.files.clear();
        self.free_records.clear();
        self.written.clear();
        (self.records, self.log_at) = (0, 0);
    }

    fn bytes(&self) -> u64 {
        self.world.files[0].size
    }

    /// The end of this part, in whole clusters.
    fn part(&self, of: u64, all: u64) -> u64 {
        self.bytes() / all * of / self.cluster() * self.cluster()
    }

    fn cluster(&self) -> u64 {
        u64::from(self.world.fs.block_bytes)
    }

    fn log_start(&self) -> u64 {
        self.part(1, 2)
    }

    fn now(&self) -> Nanos {
        self.began + self.world.kernel.now()
    }

    fn used(&self) -> (Nanos, u64, u64) {
        let now = self.world.kernel.now();
        let moved = self.world.members.iter().map(|member| member.usage(now));
        let (read, written) =
            moved.fold((0, 0), |sum, one| (sum.0 + one.read_bytes, sum.1 + one.write_bytes));
        let charged = self.world.cpu.busy - self.world.cpu.uncharged;
        (self.used.0 + charged, self.used.1 + read, self.used.2 + written)
    }

    fn call(&mut self, op: Op, offset: u64, bytes: u64) {
        if op == Op::Write {
            self.spare_new_pages(offset, bytes);
        }
        let request = Request { op, target: 0, offset, len: bytes as u32, slot: 0 };
        self.world.issue(0, 0, request, None);
        while let Some(event) = self.world.kernel.take() {
            match event {
                Event::Deliver(number) => {
                    self.world.finish(number);
                    return;
                }
                event => self.world.handle(event),
            }
        }
    }

    fn spare_new_pages(&mut self, offset: u64, bytes: u64) {
        let page = self.world.cache.page_bytes();
        for number in offset / page..(offset + bytes).div_ceil(page) {
            if self.written.insert(number) {
                let (at, unit) = (number * page, number * page / self.world.fs.unit_bytes);
                let pages = self.world.cache.pages(unit, at, at + page);
                self.world.cache.entry(unit).valid |= pages;
            }
        }
    }

    fn index(&self, file: FileId, spec: &AreaSpec) -> u64 {
        let directory = u64::from(file.location) * u64::from(spec.subdirectories.max(1))
            + u64::from(file.subdirectory);
        let room = (self.bytes() / DIRECTORIES).max(DIRECTORY);
        let buffer = u64::from(file.number / ENTRIES) * INDEX % DIRECTORY;
        self.part(1, 16) + (directory * DIRECTORY + buffer) % room / INDEX * INDEX
    }

    fn walk(&mut self, file: FileId, spec: &AreaSpec) {
        let (mut path, mut below) = (Vec::new(), file.subdirectory);
        while let Some(around) = parent_directory(below, spec.branch) {
            path.push(FileId { subdirectory: around, number: below, ..file });
            below = around;
        }
        for entry in path.into_iter().rev() {
            let index = self.index(entry, spec);
            self.call(Op::Read, index, INDEX);
        }
    }

    fn search(&mut self, file: FileId, spec: &AreaSpec) {
        self.walk(file, spec);
        let index = self.index(file, spec);
        self.call(Op::Read, index, INDEX);
    }

    fn look_up(&mut self, file: FileId, spec: &AreaSpec, act: FileAct) -> Result<u64, FileError> {
        self.search(file, spec);
        let Some(placed) = self.files.get(&file) else {
            return Err(FileError::of(
                act,
                PathBuf::from(file.number.to_string()),
                io::ErrorKind::NotFound.into(),
            ));
        };
        let record = placed.record;
        self.call(Op::Read, record * RECORD, RECORD);
        Ok(record)
    }

    fn log(&mut self, records: u64) {
        let at = self.log_start() + self.log_at;
        self.log_at = (self.log_at + records * LOG_RECORD) % LOG;
        self.call(Op::Write, at, records * LOG_RECORD);
    }

    fn mark(&mut self, cluster: u64) {
        let bit = cluster / 8 / LOG_RECORD * LOG_RECORD;
        self.call(Op::Write, self.part(3, 32) + bit, LOG_RECORD);
    }

    /// Contiguous: right after `after` if free, else the first fit.
    fn allocate(&mut self, clusters: u64, after: Option<u64>) -> io::Result<u64> {
        let fits = |at: &u64| self.free.get(at).is_some_and(|&free| free >= clusters);
        let at = after
            .filter(fits)
            .or_else(|| self.free.iter().find(|(_, free)| **free >= clusters).map(|(at, _)| *at))
            .ok_or(io::ErrorKind::StorageFull)?;
        if let Some(free) = self.free.remove(&at).filter(|&free| free > clusters) {
            self.free.insert(at + clusters, free - clusters);
        }
        Ok(at)
    }

    fn release(&mut self, at: u64, clusters: u64) {
        let (mut at, mut clusters) = (at, clusters);
        if let Some((&before, &free)) =
            self.free.range(..at).next_back().filter(|(before, free)| **before + **free == at)
        {
            self.free.remove(&before);
            (at, clusters) = (before, clusters + free);
        }
        if let Some(free) = self.free.remove(&(at + clusters)) {
            clusters += free;
        }
        self.free.insert(at, clusters);
    }

    fn extend(
        &mut self,
        file: FileId,
        bytes: u64,
        block: u64,
        act: FileAct,
    ) -> Result<(), FileError> {
        let cluster = self.cluster();
        let Some(placed) = self.files.get(&file) else { return Ok(()) };
        let (start, end) = (placed.bytes, placed.bytes + bytes);
        let held: u64 = placed.extents.iter().map(|(_, clusters)| clusters).sum();
        let more = end.div_ceil(cluster).saturating_sub(held);
        if more > 0 {
            let after = placed.extents.last().map(|(at, clusters)| at + clusters);
            let at = self.allocate(more, after).map_err(|error| {
                FileError::of(act, PathBuf::from(file.number.to_string()), error)
            })?;
            self.mark(at);
            if let Some(placed) = self.files.get_mut(&file) {
                match placed.extents.last_mut() {
                    Some(last) if last.0 + last.1 == at => last.1 += more,
                    _ => placed.extents.push((at, more)),
                }
            }
        }
        self.move_data(Op::Write, file, start, end, block);
        if let Some(placed) = self.files.get_mut(&file) {
            placed.bytes = end;
        }
        Ok(())
    }

    fn move_data(&mut self, op: Op, file: FileId, start: u64, end: u64, block: u64) {
        let cluster = self.cluster();
        let extents =
            self.files.get(&file).map(|placed| placed.extents.clone()).unwrap_or_default();
        let mut before = 0;
        for (at, clusters) in extents {
            let bytes = clusters * cluster;
            let (mut from, to) = (start.max(before), end.min(before + bytes));
            while from < to {
                let next = (from / block + 1) * block;
                let next = next.min(to);
                self.call(op, at * cluster + from - before, next - from);
                from = next;
            }
            before += bytes;
        }
    }

    fn write_record(&mut self, record: u64) {
        self.log(1);
        self.call(Op::Write, record * RECORD, RECORD);
    }

    fn write_index(&mut self, file: FileId, spec: &AreaSpec) {
        let index = self.index(file, spec);
        self.log(1);
        self.call(Op::Write, index, INDEX);
    }

    fn remove(&mut self, file: FileId) {
        let Some(placed) = self.files.remove(&file) else { return };
        let (cluster, unit_bytes) = (self.cluster(), self.world.fs.unit_bytes);
        for (at, clusters) in placed.extents {
            self.mark(at);
            let (start, end) = (at * cluster, (at + clusters) * cluster);
            for unit in start / unit_bytes..end.div_ceil(unit_bytes) {
                let pages = self.world.cache.pages(unit, start, end);
                let bytes = self.world.cache.purge(unit, pages);
                let volume = &mut self.world.files[0];
                volume.dirty = volume.dirty.saturating_sub(bytes);
            }
            // The old content is dead, so the next file in this page need not read it.
            let page = self.world.cache.page_bytes();
            (start / page..end.div_ceil(page)).for_each(|number| {
                self.written.remove(&number);
            });
            self.release(at, clusters);
        }
        self.free_records.insert(placed.record);
    }
}

impl FileSystem for TwinFiles {
    type Area = TwinArea;

    fn now(&self) -> Nanos {
        lock(&self.state).now()
    }

    fn usage(&self) -> FileUsage {
        let (system_ns, read, written) = lock(&self.state).used();
        FileUsage { user_ns: 0, system_ns, block_bytes: Some((read, written)) }
    }

    fn warnings(&self) -> Vec<String> {
        vec!["simulated: these are predictions, not measurements".to_owned()]
    }

    fn open(&self, spec: &AreaSpec) -> Result<TwinArea, FileError> {
        if spec.engine == FileEngine::IoUring {
            return Err(FileError::Engine {
                engine: spec.engine.name(),
                why: "a simulated machine works on files with calls".into(),
            });
        }
        if spec.sync != FileSync::None {
            return Err(self.unsupported(
                "a simulated machine does not synchronise single files; use none (set sync none, --sync none)",
            ));
        }
        if spec.joins {
            return Err(self.unsupported("a simulated machine has one client for files; use one"));
        }
        let mut state = lock(&self.state);
        if state.bytes() < 16 * LOG {
            return Err(self.unsupported(
                "its volume is too small for a file system with a log; take a larger drive",
            ));
        }
        state.format();
        Ok(TwinArea {
            name: self.name.clone(),
            state: self.state.clone(),
            spec: spec.clone(),
            workers: Mutex::new(0),
        })
    }
}

pub struct TwinArea {
    name: PathBuf,
    state: Arc<Mutex<State>>,
    spec: AreaSpec,
    workers: Mutex<u32>,
}

impl TwinArea {
    fn each_subdirectory(&self, interrupt: &AtomicBool) -> bool {
        let mut state = lock(&self.state);
        for location in 0..self.spec.locations.len().max(1) as u32 {
            for subdirectory in 0..self.spec.subdirectories {
                if interrupt.load(Ordering::Relaxed) {
                    return false;
                }
                state.write_index(FileId { location, subdirectory, number: 0 }, &self.spec);
            }
        }
        true
    }
}

impl FileArea for TwinArea {
    type Work = TwinWork;

    fn make_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError> {
        Ok(self.each_subdirectory(interrupt))
    }

    fn remove_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError> {
        Ok(self.each_subdirectory(interrupt))
    }

    fn directory(&self) -> Option<&Path> {
        None
    }

    fn work(&self) -> Result<TwinWork, FileError> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        *workers += 1;
        if *workers > 1 {
            let why =
                "a simulated machine has one thread for files; use 1 (set threads 1, --threads 1)"
                    .to_owned();
            return Err(FileError::Refused { path: self.name.clone(), why });
        }
        Ok(TwinWork { state: self.state.clone(), spec: self.spec.clone() })
    }
}

pub struct TwinWork {
    state: Arc<Mutex<State>>,
    spec: AreaSpec,
}

impl TwinWork {
    /// C's standard I/O moves whole blocks, whatever the call size.
    fn block(&self, asked: u32, state: &State) -> u64 {
        match self.spec.engine {
            FileEngine::Stdio => u64::from(asked).max(state.cluster()),
            FileEngine::Syscalls | FileEngine::IoUring => u64::from(asked),
        }
    }
}

impl FileWork for TwinWork {
    fn create(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        let mut state = lock(&self.state);
        state.search(file, &self.spec);
        let record = state.free_records.pop_first().unwrap_or(state.records);
        state.records = state.records.max(record + 1);
        state.files.insert(file, Placed { record, extents: Vec::new(), bytes: 0 });
        state.write_index(file, &self.spec);
        state.write_record(record);
        let block = self.block(self.spec.write_block_bytes, &state);
        state.extend(file, content.len() as u64, block, FileAct::Create)?;
        // The close writes the size.
        state.write_record(record);
        Ok(())
    }

    fn read(&mut self, file: FileId, bytes: u64) -> Result<(), FileError> {
        let mut state = lock(&self.state);
        let record = state.look_up(file, &self.spec, FileAct::Read)?;
        let got = state.files.get(&file).map_or(0, |placed| placed.bytes);
        if got != bytes {
            return Err(FileError::Size {
                path: PathBuf::from(file.number.to_string()),
                expected: bytes,
                got,
            });
        }
        let block = self.block(self.spec.read_block_bytes, &state);
        state.move_data(Op::Read, file, 0, bytes, block);
        if state.last_access {
            state.write_record(record);
        }
        Ok(())
    }

    fn append(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        let mut state = lock(&self.state);
        let record = state.look_up(file, &self.spec, FileAct::Append)?;
        let block = self.block(self.spec.write_block_bytes, &state);
        state.extend(file, content.len() as u64, block, FileAct::Append)?;
        state.write_record(record);
        Ok(())
    }

    fn delete(&mut self, file: FileId) -> Result<(), FileError> {
        let mut state = lock(&self.state);
        let record = state.look_up(file, &self.spec, FileAct::Delete)?;
        state.write_index(file, &self.spec);
        state.write_record(record);
        state.remove(file);
        Ok(())
    }

    fn stat(&mut self, file: FileId) -> Result<u64, FileError> {
        let mut state = lock(&self.state);
        state.look_up(file, &self.spec, FileAct::Stat)?;
        Ok(state.files.get(&file).map_or(0, |placed| placed.bytes))
    }

    fn open(&mut self, file: FileId) -> Result<(), FileError> {
        lock(&self.state).look_up(file, &self.spec, FileAct::Open).map(|_| ())
    }

    fn rename(&mut self, from: FileId, to: FileId) -> Result<(), FileError> {
        let mut state = lock(&self.state);
        let record = state.look_up(from, &self.spec, FileAct::Rename)?;
        if let Some(placed) = state.files.remove(&from) {
            state.files.insert(to, placed);
        }
        state.write_index(from, &self.spec);
        state.write_index(to, &self.spec);
        state.write_record(record);
        Ok(())
    }

    fn list(&mut self, location: u32, subdirectory: u32) -> Result<u64, FileError> {
        let mut state = lock(&self.state);
        let first = FileId { location, subdirectory, number: 0 };
        state.walk(first, &self.spec);
        let here = |file: &&FileId| file.location == location && file.subdirectory == subdirectory;
        let mut buffers: Vec<u32> =
            state.files.keys().filter(here).map(|file| file.number / ENTRIES).collect();
        let below = directories_below(subdirectory, self.spec.branch, self.spec.subdirectories);
        buffers.extend(below.map(|number| number / ENTRIES));
        let entries = buffers.len() as u64;
        buffers.sort_unstable();
        buffers.dedup();
        for buffer in buffers {
            let index = state.index(FileId { number: buffer * ENTRIES, ..first }, &self.spec);
            state.call(Op::Read, index, INDEX);
        }
        Ok(entries)
    }
}
