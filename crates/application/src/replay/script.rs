//! The requests of a trace by thread.

use super::growth::Growth;
use super::{ReplayError, Skipped, at_devices};
use crate::profile::{BLOCK_BYTES, Role, Roles};
use apptrace::{Access, Event, Interface, Request};
use machine::{Buffering, Engine, Nanos, Op, Stability};
use measure::histogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use workload::{Pattern, Workload};

/// Requests of one thread in flight.
pub(super) const MAX_DEPTH: u32 = 1024;

/// Steps are held in memory.
const MAX_STEPS: usize = 1 << 25;
const MAX_REQUEST_BYTES: u64 = 1 << 30;

/// The operation of a step, which groups latencies.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OpKind {
    Read,
    Write,
    Sync,
    Discard,
}

impl OpKind {
    pub const ALL: [OpKind; 4] = [OpKind::Read, OpKind::Write, OpKind::Sync, OpKind::Discard];

    pub fn name(self) -> &'static str {
        match self {
            OpKind::Read => "read",
            OpKind::Write => "write",
            OpKind::Sync => "sync",
            OpKind::Discard => "discard",
        }
    }
}

/// Requests with a latency of their own: `log-sync`, `data-read`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Class {
    pub role: Role,
    pub op: OpKind,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{}", self.role.name(), self.op.name()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Move(Op),
    Sync(Stability),
    Discard,
}

/// What a step waits for after its pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Begin,
    /// The end of this earlier step.
    End(u32),
    /// Without a known end, the start of this step.
    Start(u32),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// From the first request.
    pub at_ns: Nanos,
    pub act: Act,
    pub file: u32,
    pub offset: u64,
    pub bytes: u32,
    pub direct: bool,
    pub dsync: bool,
    pub after: After,
    pub pause_ns: Nanos,
    /// Steps of the thread that must have ended first.
    pub ended: u32,
    /// Blocks that the file system wrote to its journal for the step; `None`: not in the trace.
    pub journal_blocks: Option<u32>,
    pub class: u16,
}

impl Step {
    pub(super) fn buffering(&self) -> Buffering {
        match (self.direct, self.dsync) {
            (true, true) => Buffering::DirectDsync,
            (true, false) => Buffering::Direct,
            (false, true) => Buffering::BufferedDsync,
            (false, false) => Buffering::Buffered,
        }
    }
}

#[derive(Debug, Clone)]
pub struct FileScript {
    pub name: String,
    pub role: Role,
    /// The furthest end of a request.
    pub bytes: u64,
    /// It has data before the first request.
    pub filled: bool,
    /// Size before the first request, if appends make the file longer.
    pub grows_from: Option<u64>,
    pub allocated: bool,
}

impl FileScript {
    /// Runs leave the file as they found it.
    pub(super) fn stays(&self) -> bool {
        self.filled && self.grows_from.is_none()
    }
}

#[derive(Debug)]
pub(super) struct ThreadScript {
    pub steps: Vec<Step>,
    pub depth: u32,
    pub engine: Engine,
}

#[derive(Debug)]
pub struct Script {
    pub(super) threads: Vec<ThreadScript>,
    pub files: Vec<FileScript>,
    /// Recorded latencies; empty histograms if there are none.
    pub classes: Vec<(Class, Histogram)>,
    /// From the first request to the last end.
    pub recorded_ns: Nanos,
    pub requests: u64,
    pub bytes: u64,
    pub has_durations: bool,
    /// Share of the bytes read without a device; `None`: not in the trace.
    pub read_hits: Option<f64>,
    pub skipped: Skipped,
}

pub(super) struct Kept {
    pub at_ns: Nanos,
    pub end_ns: Option<Nanos>,
    pub thread: Option<u32>,
    pub file: u32,
    pub act: Act,
    offset: Option<u64>,
    pub bytes: u64,
    direct: bool,
    dsync: bool,
    pub interface: Interface,
    pub metadata: bool,
    pub journal_blocks: Option<u32>,
}

impl Kept {
    pub fn is_durable(&self) -> bool {
        matches!(self.act, Act::Sync(_)) || (self.act == Act::Move(Op::Write) && self.dsync)
    }
}

#[derive(Default)]
struct Seen {
    end: u64,
    next: u64,
    reads: u64,
    /// In bytes, before the first request.
    size: Option<u64>,
    growth: Growth,
    allocated: bool,
    index: Option<u32>,
}

impl Script {
    pub fn new(
        events: impl Iterator<Item = Result<Event, apptrace::foreign::ForeignError>>,
    ) -> Result<Script, ReplayError> {
        let mut kept: Vec<Kept> = Vec::new();
        let (mut names, mut seen) = (Vec::new(), Vec::<Seen>::new());
        let (mut skipped, mut roles) = (Skipped::default(), Roles::default());
        for event in events {
            match event? {
                Event::File(file) => {
                    let size = file.size_bytes;
                    names.push(file.name.clone());
                    roles.file(file);
                    seen.push(Seen { size, ..Seen::default() });
                }
                Event::Request(request) => {
                    if kept.len() == MAX_STEPS {
                        return Err(ReplayError::Unsuitable(format!(
                            "more than {MAX_STEPS} requests; replay a part of the trace"
                        )));
                    }
                    roles.request(&request);
                    if request.access == Access::Allocate {
                        seen[request.file as usize].allocated = true;
                    }
                    kept.extend(keep(&request, &mut skipped)?);
                }
                Event::Renamed(renamed) => names[renamed.file as usize] = renamed.name,
                Event::Lost(events) => skipped.lost += events,
                Event::Thread(_) => {}
            }
        }
        kept.sort_by_key(|one| one.at_ns);
        // The block layer shows the program's own requests again.
        let program = kept.iter().any(|one| one.interface != Interface::Block);
        let mut read_hits = None;
        if program {
            read_hits = at_devices::look(&mut kept);
            let before = kept.len();
            kept.retain(|one| one.interface != Interface::Block);
            skipped.block_layer += (before - kept.len()) as u64;
        }
        if kept.is_empty() {
            let why = "the trace has no request that reads, writes or syncs";
            return Err(ReplayError::Unsuitable(why.into()));
        }
        for one in &mut kept {
            let file = &mut seen[one.file as usize];
            match one.act {
                Act::Move(op) => {
                    // An append without a known place continues the file.
                    let offset = *one.offset.get_or_insert(file.next);
                    let so_far = file.end.max(file.size.unwrap_or(0));
                    if op == Op::Read && file.size.is_some() && !one.direct {
                        // A read at the end of a file is short.
                        one.bytes = one.bytes.min(so_far.saturating_sub(offset));
                    }
                    file.growth.see(one.thread, op, offset..offset + one.bytes, so_far);
                    if op == Op::Read {
                        file.reads += 1;
                    } else {
                        file.next = offset + one.bytes;
                    }
                    file.end = file.end.max(offset + one.bytes);
                }
                Act::Sync(_) => {}
                Act::Discard => {
                    file.end = file.end.max(one.offset.unwrap_or(0) + one.bytes);
                }
            }
        }
        let before = kept.len();
        kept.retain(|one| one.bytes > 0 || !matches!(one.act, Act::Move(_)));
        skipped.empty += (before - kept.len()) as u64;
        roles.end();
        Ok(Script { read_hits, ..build(kept, names, &roles, seen, skipped) })
    }
}

impl Script {
    /// In whole blocks.
    pub fn make_direct(&mut self) {
        for step in self.threads.iter_mut().flat_map(|thread| &mut thread.steps) {
            step.direct = true;
            if matches!(step.act, Act::Move(_)) {
                let end = (step.offset + u64::from(step.bytes)).next_multiple_of(BLOCK_BYTES);
                step.offset = step.offset / BLOCK_BYTES * BLOCK_BYTES;
                step.bytes = (end - step.offset) as u32;
            }
        }
    }

    pub(super) fn is_direct(&self) -> bool {
        let steps = || self.threads.iter().flat_map(|thread| &thread.steps);
        steps().filter(|step| matches!(step.act, Act::Move(_))).all(|step| step.direct)
    }

    pub(super) fn writes(&self) -> bool {
        let mut steps = self.threads.iter().flat_map(|thread| &thread.steps);
        steps.any(|step| matches!(step.act, Act::Move(Op::Write) | Act::Discard))
    }

    /// One for each operation and mode.
    pub fn like(&self) -> Vec<Workload> {
        let mut found: Vec<(Op, Buffering)> = Vec::new();
        for step in self.threads.iter().flat_map(|thread| &thread.steps) {
            let Act::Move(op) = step.act else { continue };
            let kind = (op, step.buffering());
            if !found.contains(&kind) {
                found.push(kind);
            }
        }
        let like = |(op, buffering)| Workload {
            read_percent: if op == Op::Read { 100 } else { 0 },
            pattern: Pattern::Random,
            buffering,
            ..Workload::default()
        };
        found.into_iter().map(like).collect()
    }

    /// Those with the longest waiting or, without recorded ends, the most frequent.
    pub fn slowest(&self) -> Class {
        let steps = || self.threads.iter().flat_map(|thread| &thread.steps);
        let number = |at: usize| steps().filter(|step| usize::from(step.class) == at).count();
        let longest = self.classes.iter().enumerate().max_by_key(|(at, (_, recorded))| {
            (recorded.sum(), if self.has_durations { 0 } else { number(*at) })
        });
        longest.map_or(Class { role: Role::Other, op: OpKind::Read }, |(_, (class, _))| *class)
    }

    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }
}

fn keep(request: &Request, skipped: &mut Skipped) -> Result<Option<Kept>, ReplayError> {
    let act = match request.access {
        Access::Read => Act::Move(Op::Read),
        Access::Write => Act::Move(Op::Write),
        Access::SyncFile => Act::Sync(Stability::File),
        // A data sync includes the pages of a range.
        Access::SyncData | Access::SyncRange | Access::Flush => Act::Sync(Stability::Data),
        Access::Discard => Act::Discard,
        Access::SyncSystem
        | Access::Allocate
        | Access::Truncate
        | Access::Prefetch
        | Access::WriteOut => {
            skipped.other += 1;
            return Ok(None);
        }
        Access::Open | Access::Close | Access::Unlink => return Ok(None),
    };
    if request.result.is_some_and(|result| result < 0) {
        skipped.failed += 1;
        return Ok(None);
    }
    // At the end of a file, fewer bytes than asked for were read.
    let bytes = request.result.map_or(request.bytes, |done| request.bytes.min(done as u64));
    let is_sync = matches!(act, Act::Sync(_));
    let bytes = match act {
        Act::Sync(_) => 0,
        Act::Discard => request.bytes,
        Act::Move(_) => bytes,
    };
    if bytes == 0 && !is_sync {
        skipped.empty += 1;
        return Ok(None);
    }
    if bytes > MAX_REQUEST_BYTES {
        return Err(ReplayError::Unsuitable(format!(
            "a request of {} at {:?}; at most {} are replayed as one",
            machine::units::show_size(bytes),
            request.offset.unwrap_or(0),
            machine::units::show_size(MAX_REQUEST_BYTES)
        )));
    }
    let end = request.offset.unwrap_or(0).checked_add(bytes);
    if end.is_none_or(|end| end > i64::MAX as u64) {
        return Err(ReplayError::Unsuitable(format!(
            "a request at {} ends beyond the largest file; correct the trace",
            request.offset.unwrap_or(0)
        )));
    }
    let end_ns = request.duration_ns.map(|ns| request.at_ns.saturating_add(ns));
    Ok(Some(Kept {
        at_ns: request.at_ns,
        end_ns,
        thread: request.thread,
        file: request.file,
        act,
        offset: request.offset,
        bytes,
        direct: request.open.direct || request.interface == Interface::Block,
        dsync: request.open.dsync,
        interface: request.interface,
        metadata: request.open.metadata,
        journal_blocks: None,
    }))
}

fn build(
    kept: Vec<Kept>,
    names: Vec<String>,
    roles: &Roles,
    mut seen: Vec<Seen>,
    skipped: Skipped,
) -> Script {
    let mut files = Vec::new();
    for one in &kept {
        let file = &mut seen[one.file as usize];
        if file.index.is_some() {
            continue;
        }
        file.index = Some(files.len() as u32);
        files.push(FileScript {
            name: names[one.file as usize].clone(),
            role: roles.of(one.file),
            bytes: file.end.max(1).next_multiple_of(BLOCK_BYTES),
            filled: file.reads > 0 || file.size.is_some_and(|bytes| bytes > 0),
            grows_from: file.size.filter(|&size| size < file.end && file.growth.can_repeat()),
            allocated: file.allocated,
        });
    }
    let mut classes: BTreeMap<Class, Histogram> = BTreeMap::new();
    let class = |one: &Kept| {
        let op = match one.act {
            Act::Move(Op::Read) => OpKind::Read,
            Act::Move(Op::Write) => OpKind::Write,
            Act::Sync(_) => OpKind::Sync,
            Act::Discard => OpKind::Discard,
        };
        Class { role: roles.of(one.file), op }
    };
    let (mut last, mut bytes, mut has_durations) = (0, 0, false);
    for one in &kept {
        let latencies = classes.entry(class(one)).or_default();
        if let Some(end) = one.end_ns {
            has_durations = true;
            latencies.record(end - one.at_ns);
        }
        last = last.max(one.end_ns.unwrap_or(one.at_ns));
        bytes += if matches!(one.act, Act::Move(_)) { one.bytes } else { 0 };
    }
    let classes: Vec<(Class, Histogram)> = classes.into_iter().collect();
    let began = kept.first().map_or(0, |one| one.at_ns);
    let mut by_thread: BTreeMap<Option<u32>, Vec<Kept>> = BTreeMap::new();
    let requests = kept.len() as u64;
    for one in kept {
        by_thread.entry(one.thread).or_default().push(one);
    }
    let number = |one: &Kept| {
        let wanted = class(one);
        classes.iter().position(|(class, _)| *class == wanted).unwrap_or(0) as u16
    };
    let file_of = |one: &Kept| seen[one.file as usize].index.unwrap_or(0);
    let threads =
        by_thread.into_values().map(|own| thread(&own, began, &number, &file_of)).collect();
    Script {
        threads,
        files,
        recorded_ns: last - began,
        requests,
        bytes,
        has_durations,
        read_hits: None,
        skipped,
        classes,
    }
}

fn thread(
    own: &[Kept],
    began: Nanos,
    class: &dyn Fn(&Kept) -> u16,
    file: &dyn Fn(&Kept) -> u32,
) -> ThreadScript {
    // Ends in their order: how many there were before each start, and the last of them.
    let mut ends: Vec<(Nanos, u32)> =
        own.iter().enumerate().filter_map(|(at, one)| Some((one.end_ns?, at as u32))).collect();
    ends.sort_unstable();
    let (mut ended, mut depth) = (0, 1_u32);
    let mut steps = Vec::with_capacity(own.len());
    for (at, one) in own.iter().enumerate() {
        // Only earlier requests: one with a duration of 0 ends when it starts.
        while ends.get(ended).is_some_and(|(end, by)| *end <= one.at_ns && (*by as usize) < at) {
            ended += 1;
        }
        let after = match (ended.checked_sub(1), at.checked_sub(1)) {
            (Some(last), Some(before)) if own[before].end_ns.is_some() || ended == at => {
                After::End(ends[last].1)
            }
            (_, Some(before)) => After::Start(before as u32),
            (_, None) => After::Begin,
        };
        let since = match after {
            After::Begin => began,
            After::End(step) => own[step as usize].end_ns.unwrap_or(began),
            After::Start(step) => own[step as usize].at_ns,
        };
        // One without an end counts as outstanding, so that no later one waits for it.
        depth = depth.max((at - ended) as u32 + 1);
        let (mut offset, mut bytes) = (one.offset.unwrap_or(0), one.bytes);
        if one.direct && matches!(one.act, Act::Move(_)) {
            let end = (offset + bytes).next_multiple_of(512);
            offset = offset / 512 * 512;
            bytes = end - offset;
        }
        steps.push(Step {
            at_ns: one.at_ns - began,
            act: one.act,
            file: file(one),
            offset,
            bytes: bytes as u32,
            direct: one.direct,
            dsync: one.dsync,
            after,
            pause_ns: one.at_ns.saturating_sub(since),
            ended: ended as u32,
            journal_blocks: one.journal_blocks,
            class: class(one),
        });
    }
    let queued = |one: &Kept| !matches!(one.interface, Interface::SystemCall | Interface::Mapping);
    let open_loop = own.iter().any(|one| one.end_ns.is_none());
    let is_async = depth > 1 || open_loop && own.iter().any(queued);
    ThreadScript {
        steps,
        depth: depth.min(MAX_DEPTH),
        engine: if is_async { Engine::IoUring } else { Engine::Sync },
    }
}
