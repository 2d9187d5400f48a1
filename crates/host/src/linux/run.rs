//! One run: bring the target into the state asked for, start the streams together, take the counters around them.

use super::arena::Arena;
use super::place::{MadeFile, Place, descriptors, open_with};
use super::session::aio::NativeAio;
use super::session::mapped::Mapped;
use super::session::null::{Instant, Null};
use super::session::striped::{Striped, most_parts};
use super::session::sync::Blocking;
use super::session::uring::{NoOps, Ring};
use super::session::{BlockingSession, Halt, Session, serve, serve_blocking};
use super::snapshot::{Meters, Snapshot};
use super::target::HostTarget;
use super::together::{Gate, all_at_once};
use super::{Host, clock, sys};
use machine::{Access, Allocation, Asker, Buffering, CacheState, Engine, Error, Hint, Nanos, Result, StandIn, Usage, fill_random};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

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

/// Runs the streams over the open files, the counters taken around them.
fn streams<A: Asker>(
    host: &Host,
    files: &Files,
    stripe: Option<(u32, u64)>,
    access: &Access,
    askers: &mut [A],
    meters: &mut Meters<'_>,
) -> Result<Outcome> {
    let paths = Paths { fds: descriptors(&files.files), end: files.region.0 + files.region.1, stripe };
    let mut before = None;
    let (began, last) = all_at_once(
        host,
        askers,
        |asker, halt, gate| stream(&paths, access, None, asker, host.clock(), halt, gate),
        || {
            before = Some(meters.take());
            let began = host.clock().now();
            if !files.truncate {
                return Ok(began);
            }
            for file in &files.files {
                file.set_len(0).map_err(Error::io("cannot truncate", "the test file"))?;
            }
            Ok(began)
        },
    )?;
    let mut sync_ns = None;
    if access.sync_at_end {
        for file in &files.files {
            file.sync_data().map_err(Error::io("cannot bring to stable storage", "the test file"))?;
        }
        sync_ns = Some(host.clock().now().saturating_sub(last));
    }
    let after = meters.take();
    Ok(Outcome { before: before.unwrap_or_else(|| meters.take()), after, began, last, sync_ns })
}

/// Runs the streams with a stand-in for the target; `false` where the engine has none such.
pub(crate) fn rehearse<A: Asker>(host: &Host, target: &HostTarget, access: &Access, stand_in: StandIn, askers: &mut [A]) -> Result<bool> {
    if stand_in == StandIn::NoOp && access.engine != Engine::IoUring {
        return Ok(false);
    }
    let stripe = target.striped().then_some((target.places().len() as u32, target.chunk));
    let paths = Paths { fds: Vec::new(), end: 0, stripe };
    let work = |asker: &mut A, halt: Halt<'_>, gate: &Gate| stream(&paths, access, Some(stand_in), asker, host.clock(), halt, gate);
    all_at_once(host, askers, work, || Ok(host.clock().now())).map(|_| true)
}

/// Where the streams of a run go: the open files, the end of what they use, and, where they are the members of a stripe, their number
/// and its chunk.
struct Paths {
    fds: Vec<RawFd>,
    end: u64,
    stripe: Option<(u32, u64)>,
}

/// One stream: makes its session, passes the gate, runs.
fn stream<A: Asker>(
    paths: &Paths,
    access: &Access,
    stand_in: Option<StandIn>,
    asker: &mut A,
    clock: clock::Clock,
    halt: Halt<'_>,
    gate: &Gate,
) -> Result<Nanos> {
    let (mut fds, mut stripe) = (paths.fds.as_slice(), paths.stripe);
    if let Some(member) = asker.member() {
        fds = fds.get(member as usize..=member as usize).unwrap_or_default();
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
    let unsupported = |error: io::Error| Error::Unsupported(format!("{engine} is not to be had here: {error}"));
    let mut ways = Ways { stripe, fds, asker, arena: &mut arena, clock, halt, gate };
    match (engine, stand_in) {
        (Engine::Sync | Engine::Threads | Engine::Mmap, Some(_)) => ways.blocking(Ok(Instant)),
        (Engine::IoUring, Some(StandIn::NoOp)) => ways.queued(NoOps::new(entries).map_err(unsupported)),
        (Engine::Null, _) | (_, Some(_)) => ways.queued(Ok(Null::new(entries))),
        (Engine::Sync | Engine::Threads, None) => ways.blocking(Ok(Blocking::new(fds[0]))),
        (Engine::IoUring, None) => {
            let session = Ring::new(fds, entries, ways.arena).map_err(unsupported);
            ways.queued(session)
        }
        (Engine::Libaio, None) => ways.queued(NativeAio::new(fds.to_vec(), entries.min(65_536)).map_err(unsupported)),
        (Engine::Mmap, None) => {
            let session = Mapped::new(fds[0], paths.end, ways.asker.writes(), access.hint).map_err(unsupported);
            ways.blocking(session)
        }
    }
}

/// What it takes to serve an asker through a session of either kind. Both ways pass the gate whether or not there is a session,
/// because the other streams wait there.
struct Ways<'a, A: Asker> {
    stripe: Option<(u32, u64)>,
    fds: &'a [RawFd],
    asker: &'a mut A,
    arena: &'a mut Arena,
    clock: clock::Clock,
    halt: Halt<'a>,
    gate: &'a Gate,
}

impl<A: Asker> Ways<'_, A> {
    fn queued<S: Session>(&mut self, session: Result<S>) -> Result<Nanos> {
        self.gate.pass();
        let mut session = session?;
        match self.stripe {
            None => serve(&mut session, self.fds, self.asker, self.arena, self.clock, self.halt),
            Some((members, chunk)) => {
                let mut session = Striped::new(session, members, chunk, self.asker.depth());
                serve(&mut session, self.fds, self.asker, self.arena, self.clock, self.halt)
            }
        }
    }

    fn blocking<S: BlockingSession>(&mut self, session: Result<S>) -> Result<Nanos> {
        self.gate.pass();
        serve_blocking(&mut session?, self.fds, self.asker, self.arena, self.clock, self.halt)
    }
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
