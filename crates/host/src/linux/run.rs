//! One run: bring the target into the state asked for, start the streams together, take the counters around them.

use super::arena::Arena;
use super::place::{MadeFile, Place, descriptors, open_with};
use super::session::aio::NativeAio;
use super::session::mapped::Mapped;
use super::session::striped::{Striped, most_parts};
use super::session::sync::Blocking;
use super::session::uring::Ring;
use super::session::{BlockingSession, Halt, Session, serve, serve_blocking};
use super::snapshot::{Meters, Snapshot};
use super::target::HostTarget;
use super::{Host, clock, sys};
use machine::{Access, Allocation, Asker, Buffering, CacheState, Engine, Error, Hint, Nanos, Result, Usage, fill_random};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// A stream's thread keeps everything large in its arena.
const STACK_BYTES: usize = 256 << 10;

/// Where the streams wait for one another, so that they start together and the counters are taken just before.
#[derive(Default)]
struct Gate {
    /// How many wait, and whether the gate is open.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Gate {
    /// A stream is ready and waits until the gate opens.
    fn pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        self.changed.notify_all();
        while !state.1 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until so many streams are ready.
    fn wait_for(&self, streams: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.0 < streams {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets the streams go.
    fn open(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }
}

/// The open files of a run.
struct Files {
    files: Vec<File>,
    /// Bytes of each file that the region covers.
    region: (u64, u64),
    /// Cut these to nothing as the first act of the timed run.
    truncate: bool,
}

pub(crate) fn run<A: Asker>(host: &Host, target: &mut HostTarget, access: &Access, askers: &mut [A]) -> Result<Usage> {
    let writes = askers.iter().any(Asker::writes);
    let may_write = |asker: &A| {
        asker.member().map_or(target.facts().writable, |member| target.places().get(member as usize).is_some_and(|place| place.writable))
    };
    if askers.iter().any(|asker| asker.writes() && !may_write(asker)) {
        return Err(Error::refused(
            target.facts().name.clone(),
            "it was there before and is only read",
            "name it again after --destroy-data to write it, or name a directory",
        ));
    }
    check_members(target, access, askers)?;
    let files = open_files(target, access, writes)?;
    prepare_cache(&files, access)?;
    let stripe = target.striped().then_some((target.places().len() as u32, target.chunk));
    let mut meters = Meters::new(host, target, access.count_instructions);
    let Outcome { before, after, began, last, sync_ns } = streams(host, &files, stripe, access, askers, &mut meters)?;
    if writes && !access.buffering.is_dsync() {
        // What this run left dirty must not be the next one's burden.
        for (file, place) in files.files.iter().zip(target.places()) {
            file.sync_data().map_err(Error::io("cannot bring to stable storage", &place.path))?;
        }
    }
    let mut usage = meters.between(&before, &after);
    usage.began = began;
    usage.elapsed_ns = last.saturating_sub(began);
    usage.sync_ns = sync_ns;
    Ok(usage)
}

/// Every asker has a place, and a mapping is of one file.
fn check_members<A: Asker>(target: &HostTarget, access: &Access, askers: &[A]) -> Result<()> {
    let count = target.places().len() as u32;
    if let Some(member) = askers.iter().filter_map(Asker::member).find(|&member| member >= count) {
        return Err(Error::refused(format!("member {member}"), format!("the target has {count}"), "name one of these, from 0"));
    }
    let whole = askers.iter().any(|asker| asker.member().is_none());
    if access.engine == Engine::Mmap && (access.buffering != Buffering::Buffered || (target.striped() && whole)) {
        return Err(Error::Unsupported("mmap goes through the page cache of one file: use --buffered and a single target".into()));
    }
    Ok(())
}

struct Outcome {
    before: Snapshot,
    after: Snapshot,
    began: Nanos,
    last: Nanos,
    sync_ns: Option<Nanos>,
}

/// Starts every stream on a thread of its own, all at once, and waits for the last.
fn streams<A: Asker>(
    host: &Host,
    files: &Files,
    stripe: Option<(u32, u64)>,
    access: &Access,
    askers: &mut [A],
    meters: &mut Meters<'_>,
) -> Result<Outcome> {
    let failed = AtomicBool::new(false);
    let halt = Halt { interrupt: host.interrupt, failed: &failed };
    let gate = Gate::default();
    std::thread::scope(|scope| {
        let mut workers = Vec::with_capacity(askers.len());
        let mut errors = Vec::new();
        for asker in askers.iter_mut() {
            let (gate, failed) = (&gate, &failed);
            let work = move || {
                let result = stream(files, stripe, access, asker, host.clock, halt, gate);
                if result.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                result
            };
            match std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    failed.store(true, Ordering::Relaxed);
                    errors.push(Error::Unsupported(format!("the system refuses more than {} threads: {error}", workers.len())));
                    break;
                }
            }
        }
        gate.wait_for(workers.len());
        let before = meters.take();
        let mut began = host.clock.now();
        if files.truncate {
            for file in &files.files {
                if let Err(error) = file.set_len(0) {
                    failed.store(true, Ordering::Relaxed);
                    errors.push(Error::io("cannot truncate", "the test file")(error));
                }
            }
        } else {
            began = host.clock.now();
        }
        gate.open();
        let mut last = began;
        for worker in workers {
            match worker.join() {
                Ok(Ok(end)) => last = last.max(end),
                Ok(Err(error)) => errors.push(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        // A stream that ended because another failed says only that it was interrupted.
        errors.sort_by_key(|error| matches!(error, Error::Interrupted));
        if let Some(error) = errors.into_iter().next() {
            return Err(error);
        }
        let mut sync_ns = None;
        if access.sync_at_end {
            for file in &files.files {
                file.sync_data().map_err(Error::io("cannot bring to stable storage", "the test file"))?;
            }
            sync_ns = Some(host.clock.now().saturating_sub(last));
        }
        Ok(Outcome { before, after: meters.take(), began, last, sync_ns })
    })
}

/// One stream: makes its session, passes the gate, runs.
fn stream<A: Asker>(
    files: &Files,
    stripe: Option<(u32, u64)>,
    access: &Access,
    asker: &mut A,
    clock: clock::Clock,
    halt: Halt<'_>,
    gate: &Gate,
) -> Result<Nanos> {
    let mut fds = descriptors(&files.files);
    let mut stripe = stripe;
    if let Some(member) = asker.member() {
        fds = vec![fds[member as usize]];
        stripe = None;
    }
    let depth = asker.depth();
    let made = Arena::new(depth, asker.max_request(), asker.writes()).map_err(Error::io("no memory for the buffers of", "a stream"));
    let mut arena = match made {
        Ok(arena) => arena,
        Err(error) => {
            gate.pass();
            return Err(error);
        }
    };
    if asker.writes() {
        asker.fill_buffers(arena.bytes());
    }
    let parts = stripe.map_or(1, |(_, chunk)| most_parts(asker.max_request(), chunk));
    let entries = u32::try_from(u64::from(depth) * parts).unwrap_or(u32::MAX);
    // A stripe's members work side by side only under an asynchronous engine, even at depth 1.
    let engine = match (access.engine, stripe) {
        (Engine::Sync | Engine::Threads, Some(_)) => Engine::IoUring,
        (engine, _) => engine,
    };
    let unsupported = |engine: Engine| move |error: io::Error| Error::Unsupported(format!("{engine} is not to be had here: {error}"));
    match engine {
        Engine::Sync | Engine::Threads => go_blocking(Ok(Blocking::new(fds[0])), &fds, asker, &mut arena, clock, halt, gate),
        Engine::IoUring => {
            let session = Ring::new(&fds, entries, &mut arena).map_err(unsupported(engine));
            go(session, Route { stripe, fds: &fds }, asker, &mut arena, clock, halt, gate)
        }
        Engine::Libaio => {
            let session = NativeAio::new(fds.clone(), entries.min(65_536)).map_err(unsupported(engine));
            go(session, Route { stripe, fds: &fds }, asker, &mut arena, clock, halt, gate)
        }
        Engine::Mmap => {
            let end = files.region.0 + files.region.1;
            let session = Mapped::new(fds[0], end, asker.writes(), access.hint).map_err(unsupported(engine));
            go_blocking(session, &fds, asker, &mut arena, clock, halt, gate)
        }
    }
}

/// The files of one stream: one, or the members of a stripe (their number and its chunk).
#[derive(Clone, Copy)]
struct Route<'a> {
    stripe: Option<(u32, u64)>,
    fds: &'a [RawFd],
}

/// Passes the gate, whether or not there is a session (the others wait there), and serves the asker.
fn go<S: Session, A: Asker>(
    session: Result<S>,
    route: Route<'_>,
    asker: &mut A,
    arena: &mut Arena,
    clock: clock::Clock,
    halt: Halt<'_>,
    gate: &Gate,
) -> Result<Nanos> {
    gate.pass();
    let mut session = session?;
    match route.stripe {
        None => serve(&mut session, route.fds, asker, arena, clock, halt),
        Some((members, chunk)) => {
            let mut session = Striped::new(session, members, chunk, asker.depth());
            serve(&mut session, route.fds, asker, arena, clock, halt)
        }
    }
}

/// The same with blocking calls.
fn go_blocking<S: BlockingSession, A: Asker>(
    session: Result<S>,
    fds: &[RawFd],
    asker: &mut A,
    arena: &mut Arena,
    clock: clock::Clock,
    halt: Halt<'_>,
    gate: &Gate,
) -> Result<Nanos> {
    gate.pass();
    serve_blocking(&mut session?, fds, asker, arena, clock, halt)
}

/// Opens the target's files, or scratch files in the state of allocation that the run asks for.
fn open_files(target: &mut HostTarget, access: &Access, writes: bool) -> Result<Files> {
    let mut flags = 0;
    if access.buffering.is_direct() {
        if let Some(reason) = &target.facts().direct_refused {
            return Err(Error::Unsupported(reason.clone()));
        }
        flags |= libc::O_DIRECT;
    }
    if access.buffering.is_dsync() {
        flags |= if access.metadata_sync { libc::O_SYNC } else { libc::O_DSYNC };
    }
    let members = target.places().len() as u64;
    let region = if members > 1 { member_region(access.region, members, target.chunk) } else { access.region };
    let in_place = access.allocation == Allocation::Extend && target.grown && target.places().iter().all(Place::is_made);
    if access.allocation == Allocation::Written || !writes || in_place {
        let opened: io::Result<Vec<File>> = target.places().iter().map(|place| place.open_with(writes && place.writable, flags)).collect();
        let files = opened.map_err(|error| cannot_open(target, error))?;
        if in_place {
            for (file, place) in files.iter().zip(target.places()) {
                file.set_len(0).map_err(Error::io("cannot empty", &place.path))?;
            }
        }
        return Ok(Files { files, region, truncate: false });
    }
    if access.engine == Engine::Mmap && access.allocation != Allocation::Reserved {
        return Err(Error::Unsupported("a mapped file cannot grow as it is written: use --allocate written or reserved".into()));
    }
    let len = (access.region.0 + access.region.1).div_ceil(members);
    make_scratch(target, access.allocation, len)?;
    let opened: io::Result<Vec<File>> = target.scratch.iter().map(|made| open_with(&made.path, true, flags)).collect();
    let files = opened.map_err(|error| cannot_open(target, error))?;
    Ok(Files { files, region, truncate: access.allocation == Allocation::Truncate })
}

/// The part of each member that holds a region of the stripe, a chunk more than exact at either end.
fn member_region((start, len): (u64, u64), members: u64, chunk: u64) -> (u64, u64) {
    let first = (start / members).saturating_sub(chunk);
    (first, (start + len).div_ceil(members) + chunk - first)
}

fn cannot_open(target: &HostTarget, error: io::Error) -> Error {
    Error::io("cannot open", &target.places()[0].path)(error)
}

/// Leaves one scratch file beside each test file, its space in the state asked for.
fn make_scratch(target: &mut HostTarget, allocation: Allocation, len: u64) -> Result<()> {
    // Those of the last run go first: their space may be needed.
    let kept = if allocation == Allocation::Truncate { std::mem::take(&mut target.scratch) } else { Vec::new() };
    target.scratch.clear();
    if kept.len() == target.places().len() && kept.iter().all(|made| std::fs::metadata(&made.path).is_ok_and(|file| file.len() >= len)) {
        target.scratch = kept;
        return Ok(());
    }
    drop(kept);
    let mut scratch = Vec::new();
    for place in target.places() {
        let Some(directory) = place.directory() else {
            return Err(Error::Unsupported(format!(
                "{} was there before: only in a directory can files be made whose space is {}",
                place.path.display(),
                allocation.name()
            )));
        };
        let made = MadeFile::create(directory)?;
        let file = open_with(&made.path, true, 0).map_err(Error::io("cannot open", &made.path))?;
        match allocation {
            Allocation::Reserved => {
                sys::reserve(&file, len)
                    .map_err(|error| Error::Unsupported(format!("the file system cannot reserve space (fallocate): {error}")))?;
            }
            Allocation::Truncate => {
                let mut buffer = vec![0u8; 1 << 20];
                fill_random(len, &mut buffer);
                for offset in (0..len).step_by(buffer.len()) {
                    let step = (len - offset).min(buffer.len() as u64) as usize;
                    file.write_all_at(&buffer[..step], offset).map_err(Error::io("cannot fill", &made.path))?;
                }
            }
            Allocation::Extend | Allocation::Written => {}
        }
        file.sync_all().map_err(Error::io("cannot bring to stable storage", &made.path))?;
        scratch.push(made);
    }
    target.scratch = scratch;
    Ok(())
}

/// Drops or fills the page cache of the region, and tells it the hint.
fn prepare_cache(files: &Files, access: &Access) -> Result<()> {
    for file in &files.files {
        let fd: RawFd = file.as_raw_fd();
        let (start, len) = files.region;
        if access.hint != Hint::None {
            sys::advise(fd, access.hint);
        }
        match access.cache {
            CacheState::AsIs => {}
            CacheState::Cold => {
                file.sync_data().map_err(Error::io("cannot bring to stable storage", "the target"))?;
                sys::drop_cache(fd, start, len);
            }
            CacheState::Warm => {
                let mut buffer = vec![0u8; 1 << 20];
                let mut offset = start;
                while offset < start + len {
                    let step = (start + len - offset).min(buffer.len() as u64) as usize;
                    match file.read_at(&mut buffer[..step], offset) {
                        Ok(0) => break,
                        Ok(got) => offset += got as u64,
                        Err(error) => return Err(Error::io("cannot read", "the target")(error)),
                    }
                }
            }
        }
    }
    Ok(())
}
