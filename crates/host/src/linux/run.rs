//! One run, from preparing the target to reading the counters.

use super::block_trace::BlockTrace;
use super::clock::Clock;
use super::counters::process_times;
use super::facts::{DirtyWatch, Roots, memory_left, own_limit_left};
use super::mapping::Mapping;
use super::member::descriptors;
use super::part_files::{PartFiles, open_part, prepare_cache};
use super::snapshot::{MachineMeters, Meters, Snapshot, waited_ns};
use super::target::HostTarget;
use super::{engines, sys};
use crate::arena::{Arena, Extra, LONG_WALK_BYTES, MALLOC_START, WALK_BYTES};
use crate::reaping::PartCounters;
use crate::run_streams::{PartStreams, Ready, RunOutcome, STACK_BYTES, run_streams};
use crate::session::{Halt, Time};
use crate::stripe::StripeSet;
use machine::{
    Access, Allocation, Buffering, Buffers, DirtyUse, Error, Nanos, NullBackend, OnInterrupt,
    ParityUse, Part, PartUsage, RequestSource, Result, RunOptions, RunUsage, Scheduling, Waits,
    Warning, units,
};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

const UNREGISTERED: &str = "no more memory may be locked (ulimit -l), so io_uring works with buffers that are not registered: each request costs \
     more processor time";

pub(crate) struct Context<'a> {
    pub(crate) clock: Clock,
    pub(crate) interrupt: &'a AtomicBool,
    pub(crate) meters: &'a MachineMeters,
    pub(crate) memory_is_reclaimed: bool,
}

pub(crate) fn run<S: RequestSource>(
    context: &Context<'_>,
    parts: &mut [Part<'_, HostTarget, S>],
    options: RunOptions,
) -> Result<RunUsage> {
    check_memory(&parts.iter().flat_map(buffers).collect::<Vec<_>>())?;
    let mut opened = Vec::with_capacity(parts.len());
    for part in parts.iter() {
        check(part)?;
        opened.push(open_part(part, context.interrupt)?);
    }
    let mut warnings = Vec::new();
    let _locked = lock_memory(options.locked_bytes, &mut warnings)?;
    // No more than there is, and nothing if a throttle applies: the reads would use up its
    // allowance.
    let throttled =
        || parts.iter().flat_map(|part| &part.targets).any(|target| target.facts().is_throttled());
    let wanted = if context.memory_is_reclaimed && options.cache_bytes > 0 && !throttled() {
        options.cache_bytes.min(memory_left(&Roots::default()).unwrap_or(0) / 2)
    } else {
        0
    };
    for (part, files) in parts.iter().zip(&opened) {
        warnings.extend(prepare_cache(context, files, &part.access, wanted)?.map(Warning::from));
    }
    let mut meters = Meters::new(context.clock, context.meters, parts, options.count_instructions);
    // If the kernel refuses tracing, measure without it.
    let trace = if options.trace {
        BlockTrace::start(&Roots::default(), &devices(parts)).ok()
    } else {
        None
    };
    let outcome = streams(context, &opened, parts, options, &mut meters);
    let mut usage = RunUsage { warnings, ..RunUsage::default() };
    let mut failure = None;
    match outcome {
        Ok(Outcome {
            before,
            after,
            ran: RunOutcome { began, waited_ns, ends, gaps },
            unregistered,
        }) => {
            usage.interrupted = options.on_interrupt == OnInterrupt::EndRun
                && context.interrupt.load(Ordering::Relaxed);
            usage.warnings.extend(unregistered.then(|| UNREGISTERED.into()));
            let members =
                parts.iter().flat_map(|part| &part.targets).flat_map(|target| target.members());
            let gone = members.filter(|member| member.check_path().is_err()).map(|member| {
                Warning::from(format!(
                    "{} was removed or replaced during the run: the rate is that of the old file",
                    member.path.display()
                ))
            });
            usage.warnings.extend(gone);
            let device = meters.between(&before, &after, &mut usage);
            usage.block_times = trace
                .and_then(|trace| trace.end(|at| before.clock_at(&after, at)).ok())
                .unwrap_or_default();
            usage.paused = before.pause_until(&after, gaps, &usage);
            (usage.began, usage.since_start_ns) =
                (began, began.saturating_sub(context.clock.start()));
            usage.waited_ns = waited_ns;
            usage.parts = (ends.into_iter().zip(device))
                .map(|(end, device)| {
                    let (
                        last,
                        (
                            End { sync_ns, sync_unserved_ns, process_ns, dirty },
                            StreamCounters { waits, parity, unserved_ns },
                        ),
                    ) = end?;
                    let process_ns =
                        before.process_ns().map(|before| process_ns.saturating_sub(before));
                    let elapsed_ns = last.saturating_sub(began);
                    Ok(PartUsage {
                        elapsed_ns,
                        sync_ns,
                        process_ns,
                        unserved_ns,
                        sync_unserved_ns,
                        dirty,
                        device,
                        waits,
                        parity,
                    })
                })
                .collect();
        }
        Err(error) => failure = Some(error),
    }
    for (part, files) in parts.iter().zip(opened) {
        let settled = settle(part, files, context.interrupt);
        failure = failure.or(settled.err());
    }
    failure.map_or(Ok(usage), Err)
}

const UNLOCKED_BYTES: u64 = 128 << 20;

fn lock_memory(bytes: u64, warnings: &mut Vec<Warning>) -> Result<Option<Mapping>> {
    if bytes == 0 {
        return Ok(None);
    }
    let spare = memory_left(&Roots::default())
        .map_or(u64::MAX, |left| left.saturating_sub(UNLOCKED_BYTES).max(1 << 20));
    let locked = bytes.min(spare);
    if locked < bytes {
        warnings.push(Warning::from(format!(
            "{} of the {} of memory to lock were locked: the system has no more to spare",
            rounded(locked),
            rounded(bytes)
        )));
    }
    let len = usize::try_from(locked).unwrap_or(usize::MAX);
    Mapping::locked(len).map(Some).map_err(|error| {
        Error::refused(
            format!("locking {} of memory", rounded(locked)),
            error.to_string(),
            "lock less, or raise the limit (ulimit -l)",
        )
    })
}

fn buffers<S: RequestSource>(part: &Part<'_, HostTarget, S>) -> Vec<Buffers> {
    let set = part.targets.first().and_then(|target| target.stripe());
    let of = |source: &S| {
        let (depth, request_bytes, writes) =
            (source.depth(), source.max_request(), source.writes());
        let own = Buffers { streams: 1, depth, request_bytes, writes };
        let scratch = set.as_ref().map_or(0, |set| set.scratch_bytes(request_bytes));
        let beside = Buffers {
            request_bytes: u32::try_from(scratch).unwrap_or(u32::MAX),
            writes: false,
            ..own
        };
        [Some(own), (scratch > 0).then_some(beside)]
    };
    part.sources.iter().flat_map(of).flatten().collect()
}

fn devices<S>(parts: &[Part<'_, HostTarget, S>]) -> Vec<String> {
    parts
        .iter()
        .flat_map(|part| &part.targets)
        .flat_map(|target| target.facts().devices.clone())
        .collect()
}

fn settle<S: RequestSource>(
    part: &Part<'_, HostTarget, S>,
    files: PartFiles,
    interrupt: &AtomicBool,
) -> Result<()> {
    let dirty = part.sources.iter().any(RequestSource::writes) && !part.access.buffering.is_dsync();
    if dirty && !interrupt.load(Ordering::Relaxed) {
        for file in &files.files {
            sys::sync_data(file)
                .map_err(Error::io("cannot sync", &part.targets[0].members()[0].path))?;
        }
    }
    if !files.scratch.is_empty() {
        part.targets[0].keep_scratch(files.scratch);
    }
    Ok(())
}

fn check<S: RequestSource>(part: &Part<'_, HostTarget, S>) -> Result<()> {
    let Some(first) = part.targets.first() else {
        return Err(Error::Unsupported("a part of the run has no target".into()));
    };
    let writes = part.sources.iter().any(RequestSource::writes);
    if let Some(target) = part.targets.iter().find(|target| writes && !target.facts().writable) {
        return Err(Error::refused(
            target.facts().name.clone(),
            "it existed before, so it is only read",
            "name it again after --destroy-data to write it, or name a directory",
        ));
    }
    if let Some(striped) =
        part.targets.iter().find(|target| part.targets.len() > 1 && target.striped())
    {
        return Err(Error::refused(
            striped.facts().name.clone(),
            "a stripe cannot be one of several targets of a part",
            "name its members, or give it a part of its own",
        ));
    }
    let keeps_parity = part.targets.iter().any(|target| target.facts().raid5.is_some());
    if keeps_parity && writes && part.access.allocation != Allocation::Written {
        return Err(Error::Unsupported(
            "a RAID 5 set is written in place: use --allocate written".into(),
        ));
    }
    if part.access.engine.is_mapped() && (part.access.buffering.is_direct() || first.striped()) {
        return Err(Error::Unsupported(
            "mmap goes through the page cache of one file: use --buffered and a single target"
                .into(),
        ));
    }
    Ok(())
}

const OTHER_BYTES: u64 = 2 << 20;

/// Refuses buffers beyond memory: the kernel would kill a program.
pub(crate) fn check_memory(streams: &[Buffers]) -> Result<()> {
    let bytes = |one: &Buffers| {
        let walk = if one.writes { LONG_WALK_BYTES } else { 0 };
        Arena::bytes_for(one.depth, one.request_bytes, walk)?.checked_mul(u64::from(one.streams))
    };
    let needed =
        streams.iter().try_fold(0u64, |sum, one| sum.checked_add(bytes(one)?)).unwrap_or(u64::MAX);
    let threads: u64 = streams.iter().map(|one| u64::from(one.streams)).sum();
    // Limits of the process count the stacks whole, touched or not.
    let with_stacks =
        needed.saturating_add((threads + 1) * STACK_BYTES as u64).saturating_add(OTHER_BYTES);
    let left = memory_left(&Roots::default()).filter(|&left| needed > left);
    let Some(left) = left.or_else(|| own_limit_left().filter(|&left| with_stacks > left)) else {
        return Ok(());
    };
    let outstanding: u64 =
        streams.iter().map(|one| u64::from(one.streams) * u64::from(one.depth)).sum();
    let largest = streams.iter().map(|one| one.request_bytes).max().unwrap_or(0);
    Err(Error::refused(
        format!(
            "{outstanding} requests of up to {} outstanding",
            units::show_size(u64::from(largest))
        ),
        format!(
            "buffers and threads take {}, and {} of memory are available",
            rounded(with_stacks),
            rounded(left)
        ),
        "lower the depth, the number of threads or the request size, or raise the limit (ulimit -v, ulimit -d)",
    ))
}

fn rounded(bytes: u64) -> String {
    units::show_size_rounded(bytes as f64)
}

struct End {
    /// From the last completion to stable storage; `None` if no sync was requested.
    sync_ns: Option<Nanos>,
    /// The part of `sync_ns` when the thread was runnable but not scheduled.
    sync_unserved_ns: Option<Nanos>,
    process_ns: Nanos,
    dirty: Option<DirtyUse>,
}

struct StreamCounters {
    waits: Option<Waits>,
    parity: Option<ParityUse>,
    unserved_ns: Option<Nanos>,
}

struct Outcome {
    before: Snapshot,
    after: Snapshot,
    ran: RunOutcome<(End, StreamCounters)>,
    unregistered: bool,
}

fn streams<S: RequestSource>(
    context: &Context<'_>,
    opened: &[PartFiles],
    parts: &mut [Part<'_, HostTarget, S>],
    options: RunOptions,
    meters: &mut Meters,
) -> Result<Outcome> {
    let clock = context.clock;
    let paths: Vec<Paths> = opened.iter().map(Paths::of).collect();
    let all: usize = parts.iter().map(|part| part.sources.len()).sum();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let tallies: Vec<PartCounters> =
        opened.iter().map(|_| PartCounters::new(all, processors)).collect();
    let dirties = |part: &Part<'_, HostTarget, S>| {
        part.access.buffering == Buffering::Buffered
            && part.sources.iter().any(RequestSource::writes)
    };
    let watch = parts.iter().any(dirties).then(|| DirtyWatch::new(Roots::default()));
    let work = parts
        .iter_mut()
        .zip(opened.iter().zip(&paths).zip(&tallies))
        .map(|(part, ((files, paths), tally))| {
            let dirty = watch.as_ref().filter(|_| dirties(part));
            let access = &part.access;
            let scheduling = part.scheduling;
            PartStreams {
                sources: &mut *part.sources,
                serve: move |source: &mut S, halt: Halt<'_>, ready: Ready<'_>| {
                    schedule(scheduling)?;
                    stream(paths, access, None, source, clock, (halt, ready, tally))
                },
                finish: move |last: Nanos| {
                    let (user_ns, system_ns) = process_times();
                    let process_ns = user_ns + system_ns;
                    let dirty = dirty.and_then(DirtyWatch::so_far);
                    if !access.sync_at_end {
                        let (sync_ns, sync_unserved_ns) = (None, None);
                        return Ok(End { sync_ns, sync_unserved_ns, process_ns, dirty });
                    }
                    if context.interrupt.load(Ordering::Relaxed) {
                        return Err(Error::Interrupted);
                    }
                    let asked = clock.now();
                    let waited = waited_ns();
                    // To read the counter is not part of a short flush.
                    let last = last + clock.now().saturating_sub(asked);
                    for file in &files.files {
                        sys::sync_data(file).map_err(Error::io("cannot sync", "the test file"))?;
                    }
                    let sync_ns = Some(clock.now().saturating_sub(last));
                    let sync_unserved_ns =
                        waited_ns().zip(waited).map(|(after, before)| after.saturating_sub(before));
                    Ok(End { sync_ns, sync_unserved_ns, process_ns, dirty })
                },
            }
        })
        .collect();
    let mut before = None;
    let start = |start| {
        before = Some(meters.take());
        let truncated = opened.iter().filter(|files| files.truncate).flat_map(|files| &files.files);
        let mut began = start;
        for (number, file) in truncated.enumerate() {
            if number == 0 {
                // Truncation is part of the run.
                began = clock.now();
            }
            file.set_len(0).map_err(Error::io("cannot truncate", "the test file"))?;
        }
        Ok(began)
    };
    let look = || watch.iter().for_each(DirtyWatch::look);
    let ran = run_streams(clock, context.interrupt, work, options, start, look)?;
    let after = meters.take();
    let unregistered = tallies.iter().any(PartCounters::is_unregistered);
    // A kernel without this count has none for the streams either.
    let counts = waited_ns().is_some();
    let reported = tallies.iter().map(|tally| StreamCounters {
        waits: tally.waits(),
        parity: tally.parity(),
        unserved_ns: counts.then(|| tally.unserved_ns()),
    });
    let RunOutcome { began, waited_ns, ends, gaps } = ran;
    let ends = ends
        .into_iter()
        .zip(reported)
        .map(|(end, reported)| end.map(|(last, end)| (last, (end, reported))));
    let ran = RunOutcome { began, waited_ns, ends: ends.collect(), gaps };
    Ok(Outcome { before: before.unwrap_or_else(|| meters.take()), after, ran, unregistered })
}

pub(crate) fn measure_ceiling<S: RequestSource>(
    context: &Context<'_>,
    target: &HostTarget,
    access: &Access,
    backend: NullBackend,
    sources: &mut [S],
) -> Result<bool> {
    if !engines::has_backend(access.engine, backend) {
        return Ok(false);
    }
    let paths = Paths { fds: Vec::new(), end: 0, stripe: target.stripe(), walk: WALK_BYTES };
    let clock = context.clock;
    let tally = PartCounters::default();
    let work = PartStreams {
        sources,
        serve: |source: &mut S, halt: Halt<'_>, ready: Ready<'_>| {
            stream(&paths, access, Some(backend), source, clock, (halt, ready, &tally))
        },
        finish: |_| Ok(()),
    };
    run_streams(clock, context.interrupt, vec![work], RunOptions::default(), Ok, || {})
        .map(|_| true)
}

struct Paths {
    fds: Vec<RawFd>,
    end: u64,
    stripe: Option<StripeSet>,
    /// Writes repeat after these bytes.
    walk: u64,
}

impl Paths {
    fn of(files: &PartFiles) -> Paths {
        let walk =
            if files.files.iter().any(sys::is_on_zfs) { LONG_WALK_BYTES } else { WALK_BYTES };
        let (fds, end) = (descriptors(&files.files), files.region.0 + files.region.1);
        Paths { fds, end, stripe: files.stripe.clone(), walk }
    }
}

fn schedule(scheduling: Scheduling<'_>) -> Result<()> {
    let Scheduling { processors, io_priority, nice } = scheduling;
    if !processors.is_empty() {
        sys::bind(processors).map_err(|error| {
            let named: Vec<String> = processors.iter().map(u32::to_string).collect();
            Error::refused(
                format!("processors {}", named.join(", ")),
                error.to_string(),
                "name processors that are online, numbered from 0",
            )
        })?;
    }
    let refused = |what: String| {
        move |error: io::Error| {
            Error::refused(what, error.to_string(), "run as root, or give a lower priority")
        }
    };
    if let Some(priority) = io_priority {
        let what =
            format!("requests of class {} and level {}", priority.class as u8, priority.level);
        sys::set_io_priority(priority).map_err(refused(what))?;
    }
    if let Some(nice) = nice {
        rustix::process::setpriority_process(None, nice)
            .map_err(|error| refused(format!("nice {nice}"))(error.into()))?;
    }
    Ok(())
}

fn stream<S: RequestSource>(
    paths: &Paths,
    access: &Access,
    backend: Option<NullBackend>,
    source: &mut S,
    clock: Clock,
    (halt, ready, tally): (Halt<'_>, Ready<'_>, &PartCounters),
) -> Result<Nanos> {
    let Paths { ref fds, end, ref stripe, walk } = *paths;
    let stripe = stripe.as_ref();
    let scratch = stripe.map_or(0, |set| set.scratch_bytes(source.max_request()));
    let walk = if source.writes() { walk } else { 0 };
    // Parity is computed in whole words.
    let start = if access.buffering.is_direct() || scratch > 0 { 0 } else { MALLOC_START };
    let extra = Extra { scratch, start };
    let mut arena = Arena::with(source.depth(), source.max_request(), walk, access.memory, extra)
        .map_err(Error::io("no memory for the buffers of", "a stream"))?;
    if source.writes() {
        source.fill_buffers(arena.bytes());
    }
    let (hint, reap, arena) = (access.hint, (access.reap, tally), &mut arena);
    let (memory, kernel_polls) = (access.memory, access.kernel_polls);
    let stream = engines::Stream {
        fds,
        stripe,
        end,
        hint,
        memory,
        kernel_polls,
        source,
        arena,
        clock,
        halt,
        ready,
        reap,
    };
    engines::run(access.engine, backend, stream)
}
