//! Makes requests of trace events.

mod calls;
mod others;
mod renames;

use super::calls::Call;
use super::descriptors::{Descriptors, Open, OpenId};
use super::devices::Devices;
use super::early::EarlyNames;
use super::given_names::{GivenNames, Which};
use super::identity::{self, Found, Identity, Names};
use super::order::Order;
use super::rings::Rings;
use super::seen::{Seen, What};
use apptrace::{
    Access, Event, Index, Interface, Kind, OpenFile, Request, Result, Thread, TraceWriter,
    TracedFile,
};
use machine::Nanos;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

const CLONE_FILES: u64 = 0x400;
const CLONE_THREAD: u64 = 0x1_0000;

#[derive(Debug, Clone, Copy)]
struct ThreadState {
    process: u32,
    table: u32,
    index: Option<Index>,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    at: Nanos,
    call: Call,
    arguments: [u64; 6],
    file: Option<Target>,
    to: Option<Target>,
}

type Target = (Index, Kind, OpenFile);

struct Traced {
    at: Nanos,
    duration: Option<Nanos>,
    thread: Option<i32>,
    file: Index,
    access: Access,
    interface: Interface,
    offset: Option<u64>,
    bytes: u64,
    result: Option<i64>,
    open: OpenFile,
}

impl Traced {
    fn new(at: Nanos, file: Index, access: Access, interface: Interface) -> Traced {
        let open = OpenFile::default();
        let (duration, thread, offset, result) = (None, None, None, None);
        Traced { at, duration, thread, file, access, interface, offset, bytes: 0, result, open }
    }
}

pub(super) struct Tracker<W: Write> {
    writer: TraceWriter<W>,
    start: Nanos,
    names: Names,
    identities: HashMap<Identity, Index>,
    inodes: HashMap<(u64, u64), Index>,
    file_systems: HashSet<u64>,
    /// By file, as far as the requests show them.
    sizes: Vec<Option<u64>>,
    pub(super) descriptors: Descriptors,
    threads: HashMap<i32, ThreadState>,
    pending: HashMap<i32, Pending>,
    /// Shared mappings by process and address: bytes, file, offset.
    mappings: BTreeMap<(u32, u64), (u64, Index, u64)>,
    rings: Rings,
    devices: Devices,
    /// Every request of a device, not only those of followed threads and of write-back to the
    /// devices of their files.
    only_devices: bool,
    pub(super) order: Order,
    pub(super) early: EarlyNames,
    pub(super) given: GivenNames,
    called: HashMap<(i32, Which), String>,
    paths: BTreeMap<PathBuf, Index>,
    /// The device and inode of each file.
    places: Vec<(u64, u64)>,
    began: SystemTime,
    directories: HashMap<Index, PathBuf>,
    working: HashMap<u32, PathBuf>,
    unseen: BTreeMap<&'static str, u64>,
    pub(super) lost: u64,
}

impl<W: Write> Tracker<W> {
    pub(super) fn new(writer: TraceWriter<W>, start: Nanos, names: Names) -> Tracker<W> {
        Tracker {
            writer,
            start,
            names,
            identities: HashMap::new(),
            inodes: HashMap::new(),
            file_systems: HashSet::new(),
            sizes: Vec::new(),
            descriptors: Descriptors::default(),
            threads: HashMap::new(),
            pending: HashMap::new(),
            mappings: BTreeMap::new(),
            rings: Rings::default(),
            devices: Devices::default(),
            only_devices: false,
            order: Order::default(),
            early: EarlyNames::default(),
            given: GivenNames::default(),
            called: HashMap::new(),
            paths: BTreeMap::new(),
            places: Vec::new(),
            began: SystemTime::now(),
            directories: HashMap::new(),
            working: HashMap::new(),
            unseen: BTreeMap::new(),
            lost: 0,
        }
    }

    pub(super) fn into_writer(self) -> TraceWriter<W> {
        self.writer
    }

    pub(super) fn take_all_devices(&mut self) {
        self.only_devices = true;
    }

    pub(super) fn only_at_devices(&self) -> BTreeMap<String, u64> {
        self.unseen.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    pub(super) fn adopt(&mut self, process: u32, threads: &[i32]) -> Result<()> {
        self.look_where(process, process as i32);
        for &thread in threads {
            let state = ThreadState { process, table: process, index: None };
            self.threads.insert(thread, state);
        }
        for (descriptor, found) in Descriptors::present(process) {
            self.open(process, descriptor, found)?;
        }
        Ok(())
    }

    pub(super) fn lose(&mut self, count: u64) -> Result<()> {
        self.lost += count;
        self.writer.event(&Event::Lost(count))
    }

    pub(super) fn is_followed(&self, thread: i32) -> bool {
        self.threads.contains_key(&thread)
    }

    pub(super) fn since_start(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.start)
    }

    pub(super) fn see(&mut self, seen: &Seen) -> Result<()> {
        match seen.what {
            What::Enter(call, arguments) => self.enter(seen, call, arguments),
            What::Leave(call, result) => match self.pending.remove(&seen.thread) {
                Some(pending) if pending.call == call => self.leave(seen, pending, result),
                _ => Ok(()),
            },
            What::Started { child, flags } => {
                self.started(seen.thread, child, flags);
                Ok(())
            }
            What::Ended => {
                self.ended(seen.thread);
                Ok(())
            }
            What::Executed => {
                self.executed(seen.thread);
                Ok(())
            }
            What::Fault { device, inode, page } => self.fault(seen, device, inode, page),
            What::Unlinked { device, inode, result } => {
                self.unlinked(seen, (device, inode), result)
            }
            What::Block(step, sectors) => {
                for done in self.devices.see(seen.at, seen.thread, step, &sectors) {
                    self.device_request(done)?;
                }
                Ok(())
            }
            What::RingSubmit { request, opcode } => {
                if self.is_followed(seen.thread) {
                    self.rings.submit(seen.at, seen.thread, request, opcode);
                }
                Ok(())
            }
            What::RingFile { request, descriptor } => self.ring_file(request, descriptor),
            What::RingDone { request, result } => match self.rings.done(request) {
                Some(pending) => self.ring_done(seen.at, pending, result.into()),
                None => Ok(()),
            },
        }
    }

    pub(super) fn write(&mut self, until: Nanos) -> Result<()> {
        let waits = |pending: &&Pending| match (pending.call, pending.file) {
            (Call::Transfer(_), Some((_, kind, _))) => kind != Kind::Stream,
            (Call::Copy(_), _) => true,
            (Call::Sync(_) | Call::SyncRange | Call::Allocate | Call::SyncMapping, _) => true,
            _ => false,
        };
        let first = self.pending.values().filter(waits).map(|pending| pending.at).min();
        let under_way = [first, self.rings.first(), self.devices.first()];
        let first = under_way.into_iter().flatten().min();
        let horizon = self.since_start(first.map_or(until, |first| first.min(until)));
        while let Some(request) = self.order.next(horizon) {
            self.writer.event(&Event::Request(request))?;
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<()> {
        (self.rings, self.devices) = Default::default();
        let pending: Vec<(i32, Pending)> = self.pending.drain().collect();
        for (thread, pending) in pending {
            let Some((file, kind, open)) = pending.file else { continue };
            let Call::Transfer(how) = pending.call else { continue };
            if kind == Kind::Stream {
                continue;
            }
            self.add(Traced {
                thread: Some(thread),
                offset: how.offset.map(|index| pending.arguments[index]),
                bytes: how.bytes.map_or(0, |index| pending.arguments[index]),
                open,
                ..Traced::new(pending.at, file, how.access, Interface::SystemCall)
            })?;
        }
        self.write(Nanos::MAX)
    }

    fn add(&mut self, traced: Traced) -> Result<()> {
        let thread = match traced.thread {
            Some(thread) => Some(self.thread_index(thread)?),
            None => None,
        };
        self.order.add(Request {
            at_ns: self.since_start(traced.at),
            duration_ns: traced.duration,
            thread,
            file: traced.file,
            access: traced.access,
            interface: traced.interface,
            offset: traced.offset,
            bytes: traced.bytes,
            result: traced.result,
            open: traced.open,
        });
        Ok(())
    }

    fn state(&mut self, thread: i32) -> ThreadState {
        *self.threads.entry(thread).or_insert_with(|| {
            let status = std::fs::read_to_string(format!("/proc/{thread}/status"));
            let process = status.ok().and_then(|text| {
                text.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
            });
            let process = process.unwrap_or(thread as u32);
            ThreadState { process, table: process, index: None }
        })
    }

    pub(super) fn thread_index(&mut self, thread: i32) -> Result<Index> {
        let state = self.state(thread);
        if let Some(index) = state.index {
            return Ok(index);
        }
        let name = std::fs::read_to_string(format!("/proc/{thread}/comm")).ok();
        let name = name.map(|name| name.trim_end().to_owned());
        let name = if self.names.are_hidden() { None } else { name };
        let index = self.writer.threads();
        self.writer.event(&Event::Thread(Thread {
            process: state.process,
            thread: thread as u32,
            name,
        }))?;
        if let Some(state) = self.threads.get_mut(&thread) {
            state.index = Some(index);
        }
        Ok(index)
    }

    fn started(&mut self, parent: i32, child: i32, flags: u64) {
        let parent = self.state(parent);
        let process = if flags & CLONE_THREAD != 0 { parent.process } else { child as u32 };
        let table = if flags & CLONE_FILES != 0 { parent.table } else { child as u32 };
        if table != parent.table {
            self.descriptors.fork(parent.table, table);
        }
        if process != parent.process
            && let Some(working) = self.working.get(&parent.process).cloned()
        {
            self.working.insert(process, working);
        }
        self.threads.insert(child, ThreadState { process, table, index: None });
    }

    fn executed(&mut self, thread: i32) {
        let state = self.state(thread);
        self.descriptors.exec(state.table, state.process);
        if let Some(state) = self.threads.get_mut(&thread) {
            state.table = state.process;
        }
    }

    fn look_where(&mut self, process: u32, thread: i32) {
        match std::fs::read_link(format!("/proc/{thread}/cwd")) {
            Ok(path) => self.working.insert(process, path),
            Err(_) => None,
        };
    }

    fn ended(&mut self, thread: i32) {
        self.pending.remove(&thread);
        for which in [Which::First, Which::Second] {
            self.called.remove(&(thread, which));
        }
        let Some(state) = self.threads.remove(&thread) else { return };
        if !self.threads.values().any(|other| other.table == state.table) {
            self.descriptors.exit(state.table);
        }
        if thread as u32 == state.process {
            self.working.remove(&state.process);
        }
    }

    fn file(&mut self, identity: Identity, file: TracedFile) -> Result<Index> {
        if let Some(&index) = self.identities.get(&identity) {
            return Ok(index);
        }
        let index = self.sizes.len() as Index;
        self.sizes.push(file.size_bytes);
        self.inodes.insert((identity.0, identity.1), index);
        self.places.push((identity.0, identity.1));
        if matches!(file.kind, Kind::Regular | Kind::Directory) {
            self.paths.insert(file.name.clone().into(), index);
        }
        if file.kind == Kind::Regular {
            self.file_systems.insert(identity.0);
        }
        self.identities.insert(identity, index);
        if file.kind == Kind::Directory {
            self.directories.insert(index, file.name.clone().into());
        }
        let name = self.names.show(file.name);
        self.writer.event(&Event::File(TracedFile { name, ..file }))?;
        Ok(index)
    }

    pub(super) fn named_file(&mut self, name: &str, kind: Kind) -> Result<Index> {
        let file = TracedFile { name: name.to_owned(), kind, size_bytes: None };
        self.file((u64::MAX, 0, name.to_owned()), file)
    }

    fn open(&mut self, table: u32, descriptor: i32, found: Found) -> Result<OpenId> {
        let kind = found.file.kind;
        let file = self.file(found.identity, found.file)?;
        let open = Open { file, kind, flags: found.open, position: found.position };
        Ok(self.descriptors.open(table, descriptor, open, found.ends_at_exec))
    }

    pub(super) fn descriptor(&mut self, thread: i32, descriptor: i32) -> Result<OpenId> {
        let table = self.state(thread).table;
        if let Some(id) = self.descriptors.get(table, descriptor) {
            return Ok(id);
        }
        if let Some(found) = identity::look(thread, descriptor) {
            return self.open(table, descriptor, found);
        }
        self.unknown(table, descriptor)
    }

    fn unknown(&mut self, table: u32, descriptor: i32) -> Result<OpenId> {
        let file = self.named_file("closed before its name was seen", Kind::Unknown)?;
        let flags = OpenFile::default();
        let open = Open { file, kind: Kind::Unknown, flags, position: None };
        Ok(self.descriptors.open(table, descriptor, open, false))
    }
}
