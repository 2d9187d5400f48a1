//! Makes requests of trace events: follows threads, descriptors, positions and sizes.

use super::calls::{Call, Transfer};
use super::descriptors::{Descriptors, Open, OpenId};
use super::devices::{DeviceRequest, Devices};
use super::early::EarlyNames;
use super::identity::{self, Found, Identity, Names};
use super::order::Order;
use super::rings::{RingRequest, Rings};
use super::seen::{Seen, What};
use apptrace::{
    Access, Event, Index, Interface, Kind, OpenFile, Request, Result, Thread, TraceWriter,
    TracedFile,
};
use machine::Nanos;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;

const CLONE_FILES: u64 = 0x400;
const CLONE_THREAD: u64 = 0x1_0000;

/// Mappings that are remembered.
const MAX_MAPPINGS: usize = 1 << 16;

#[derive(Debug, Clone, Copy)]
struct ThreadState {
    process: u32,
    /// Its table of descriptors.
    table: u32,
    index: Option<Index>,
}

/// A system call that has not returned.
#[derive(Debug, Clone, Copy)]
struct Pending {
    at: Nanos,
    call: Call,
    arguments: [u64; 6],
    file: Option<(Index, Kind, OpenFile)>,
}

pub(super) struct Tracker<W: Write> {
    writer: TraceWriter<W>,
    start: Nanos,
    names: Names,
    identities: HashMap<Identity, Index>,
    /// The last file of each device and inode.
    inodes: HashMap<(u64, u64), Index>,
    /// Devices with files of the recording.
    file_systems: HashSet<u64>,
    /// Sizes as far as the requests show them, by file.
    sizes: Vec<Option<u64>>,
    pub(super) descriptors: Descriptors,
    threads: HashMap<i32, ThreadState>,
    pending: HashMap<i32, Pending>,
    /// Shared mappings by process and address: bytes, file, offset.
    mappings: BTreeMap<(u32, u64), (u64, Index, u64)>,
    rings: Rings,
    devices: Devices,
    /// Every request of a device is taken, not only those of followed threads and of write-back to
    /// the devices of their files.
    only_devices: bool,
    pub(super) order: Order,
    pub(super) early: EarlyNames,
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
            lost: 0,
        }
    }

    pub(super) fn into_writer(self) -> TraceWriter<W> {
        self.writer
    }

    /// Takes every request of the block events, whoever makes it.
    pub(super) fn take_all_devices(&mut self) {
        self.only_devices = true;
    }

    /// Takes up a process that runs already, with its threads and descriptors.
    pub(super) fn adopt(&mut self, process: u32, threads: &[i32]) -> Result<()> {
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

    /// Time since the start of the recording.
    pub(super) fn since_start(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.start)
    }

    /// Takes up the next event in time.
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
            What::Fault { device, inode, page } => self.fault(seen, device, inode, page),
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

    /// Writes the requests that started before all that are still under way.
    pub(super) fn write(&mut self, until: Nanos) -> Result<()> {
        let waits = |pending: &&Pending| match (pending.call, pending.file) {
            (Call::Transfer(_), Some((_, kind, _))) => kind != Kind::Stream,
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

    /// Writes the requests whose end was not seen, and everything held back.
    pub(super) fn end(&mut self) -> Result<()> {
        (self.rings, self.devices) = Default::default();
        let pending: Vec<(i32, Pending)> = self.pending.drain().collect();
        for (thread, pending) in pending {
            let Some((file, kind, open)) = pending.file else { continue };
            let Call::Transfer(how) = pending.call else { continue };
            if kind == Kind::Stream {
                continue;
            }
            let thread = self.thread_index(thread)?;
            self.order.add(Request {
                at_ns: self.since_start(pending.at),
                duration_ns: None,
                thread: Some(thread),
                file,
                access: how.access,
                interface: Interface::SystemCall,
                offset: how.offset.map(|index| pending.arguments[index]),
                bytes: how.bytes.map_or(0, |index| pending.arguments[index]),
                result: None,
                open,
            });
        }
        self.write(Nanos::MAX)
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

    /// The thread's number in the trace, which its first request gives it.
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
        self.threads.insert(child, ThreadState { process, table, index: None });
    }

    fn ended(&mut self, thread: i32) {
        self.pending.remove(&thread);
        let Some(state) = self.threads.remove(&thread) else { return };
        if !self.threads.values().any(|other| other.table == state.table) {
            self.descriptors.exit(state.table);
        }
    }

    /// The number of a file in the trace, which its first sight gives it.
    fn file(&mut self, identity: Identity, file: TracedFile) -> Result<Index> {
        if let Some(&index) = self.identities.get(&identity) {
            return Ok(index);
        }
        let index = self.sizes.len() as Index;
        self.sizes.push(file.size_bytes);
        self.inodes.insert((identity.0, identity.1), index);
        if file.kind == Kind::Regular {
            self.file_systems.insert(identity.0);
        }
        self.identities.insert(identity, index);
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
        Ok(self.descriptors.open(table, descriptor, open))
    }

    /// The open file of a descriptor; one that was not seen yet is looked at.
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
        Ok(self.descriptors.open(table, descriptor, open))
    }

    fn enter(&mut self, seen: &Seen, call: Call, arguments: [u64; 6]) -> Result<()> {
        let descriptor = arguments[0] as i32;
        let file = match call {
            Call::Transfer(_)
            | Call::Sync(_)
            | Call::SyncRange
            | Call::Allocate
            | Call::Truncate => {
                let id = self.descriptor(seen.thread, descriptor)?;
                let open = self.descriptors.open_file(id);
                Some((open.file, open.kind, open.flags))
            }
            Call::SyncMapping => self.mapped(seen.thread, arguments[0]),
            // The kernel may give its number to another thread before this call returns.
            Call::Close => {
                let table = self.state(seen.thread).table;
                self.descriptors.close(table, descriptor..=descriptor);
                return Ok(());
            }
            _ => None,
        };
        self.pending.insert(seen.thread, Pending { at: seen.at, call, arguments, file });
        Ok(())
    }

    fn leave(&mut self, seen: &Seen, pending: Pending, result: i64) -> Result<()> {
        let [first, second, third, fourth, ..] = pending.arguments;
        match pending.call {
            Call::Transfer(how) => self.transfer(seen, &pending, how, result),
            Call::Sync(access) => self.request(seen, &pending, access, None, 0, result),
            Call::SyncSystem => {
                let file = self.named_file("every file system", Kind::Unknown)?;
                let file = Some((file, Kind::Unknown, OpenFile::default()));
                let pending = Pending { file, ..pending };
                self.request(seen, &pending, Access::SyncSystem, None, 0, result)
            }
            Call::SyncRange => {
                self.request(seen, &pending, Access::SyncRange, Some(second), third, result)
            }
            Call::SyncMapping => {
                self.request(seen, &pending, Access::SyncData, None, second, result)
            }
            Call::Allocate => {
                if result == 0 {
                    self.grow(&pending, third + fourth);
                }
                self.request(seen, &pending, Access::Allocate, Some(third), fourth, result)
            }
            Call::Truncate => {
                if let (0, Some((file, ..))) = (result, pending.file) {
                    self.sizes[file as usize] = Some(second);
                }
                self.request(seen, &pending, Access::Truncate, None, second, result)
            }
            _ if result < 0 => Ok(()),
            Call::Open(flags) => self.opened(seen, &pending, flags, result as i32),
            Call::CloseRange => {
                let table = self.state(seen.thread).table;
                let last = i32::try_from(second).unwrap_or(i32::MAX);
                self.descriptors.close(table, first as i32..=last);
                Ok(())
            }
            Call::Duplicate => self.duplicate(seen, first as i32, result as i32),
            Call::Control => match second as i32 {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
                    self.duplicate(seen, first as i32, result as i32)
                }
                libc::F_SETFL => {
                    let id = self.descriptor(seen.thread, first as i32)?;
                    let open = self.descriptors.open_file(id);
                    let set = identity::open_file(third as i32);
                    open.flags = OpenFile { dsync: open.flags.dsync, ..set };
                    Ok(())
                }
                _ => Ok(()),
            },
            Call::Seek => {
                let id = self.descriptor(seen.thread, first as i32)?;
                self.descriptors.open_file(id).position = Some(result as u64);
                Ok(())
            }
            Call::Map => self.map(seen.thread, &pending, result as u64),
            Call::Close => Ok(()),
        }
    }

    fn duplicate(&mut self, seen: &Seen, from: i32, to: i32) -> Result<()> {
        let found = self.early.take(seen);
        let id = self.descriptor(seen.thread, from)?;
        if self.descriptors.open_file(id).kind == Kind::Unknown
            && let Some(found) = found
        {
            // The first descriptor was gone before its name was seen.
            let kind = found.file.kind;
            let file = self.file(found.identity, found.file)?;
            let open = self.descriptors.open_file(id);
            (open.file, open.kind) = (file, kind);
        }
        let table = self.state(seen.thread).table;
        self.descriptors.duplicate(table, from, to);
        Ok(())
    }

    fn opened(
        &mut self,
        seen: &Seen,
        pending: &Pending,
        flags: Option<usize>,
        descriptor: i32,
    ) -> Result<()> {
        let table = self.state(seen.thread).table;
        let id = match self.early.take(seen) {
            Some(found) => self.open(table, descriptor, found)?,
            None => self.unknown(table, descriptor)?,
        };
        let open = self.descriptors.open_file(id);
        open.position = Some(0);
        let flags = flags.map(|index| pending.arguments[index] as i32);
        if let Some(flags) = flags {
            open.flags = identity::open_file(flags);
        }
        let (file, kind, how) = (open.file, open.kind, open.flags);
        if flags.is_some_and(|flags| flags & libc::O_TRUNC != 0) && kind == Kind::Regular {
            self.sizes[file as usize] = Some(0);
        }
        let is_storage = matches!(kind, Kind::Regular | Kind::BlockDevice | Kind::Unknown);
        if !is_storage {
            return Ok(());
        }
        let pending = Pending { file: Some((file, kind, how)), ..*pending };
        self.request(seen, &pending, Access::Open, None, 0, 0)
    }

    /// A file has at least these bytes now.
    fn grow(&mut self, pending: &Pending, end: u64) {
        let Some((file, ..)) = pending.file else { return };
        if let Some(size) = &mut self.sizes[file as usize] {
            *size = (*size).max(end);
        }
    }

    fn transfer(
        &mut self,
        seen: &Seen,
        pending: &Pending,
        how: Transfer,
        result: i64,
    ) -> Result<()> {
        let Some((file, kind, mut open)) = pending.file else { return Ok(()) };
        let done = u64::try_from(result).unwrap_or(0);
        let asked = how.bytes.map_or(done, |index| pending.arguments[index]);
        // preadv2(2): -1 means the file's position.
        let given = how.offset.map(|index| pending.arguments[index]).filter(|&at| at != u64::MAX);
        let offset = if kind == Kind::Stream {
            None
        } else if given.is_some() {
            given
        } else {
            let id = self.descriptor(seen.thread, pending.arguments[0] as i32)?;
            let size = self.sizes[file as usize];
            let state = self.descriptors.open_file(id);
            if open.append && how.access == Access::Write {
                state.position = size;
            }
            let at = state.position;
            state.position = at.map(|at| at + done);
            at
        };
        if let (Access::Write, Some(offset)) = (how.access, offset) {
            self.grow(pending, offset.saturating_add(done));
        }
        let flags = how.flags.map_or(0, |index| pending.arguments[index] as i32);
        open.dsync |= flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
        let pending = Pending { file: Some((file, kind, open)), ..*pending };
        self.request(seen, &pending, how.access, offset, asked, result)
    }

    /// Adds a request that ends now.
    fn request(
        &mut self,
        seen: &Seen,
        pending: &Pending,
        access: Access,
        offset: Option<u64>,
        bytes: u64,
        result: i64,
    ) -> Result<()> {
        let Some((file, _, open)) = pending.file else { return Ok(()) };
        let thread = self.thread_index(seen.thread)?;
        self.order.add(Request {
            at_ns: self.since_start(pending.at),
            duration_ns: Some(seen.at.saturating_sub(pending.at)),
            thread: Some(thread),
            file,
            access,
            interface: Interface::SystemCall,
            offset,
            bytes,
            result: Some(result),
            open,
        });
        Ok(())
    }

    fn map(&mut self, thread: i32, pending: &Pending, address: u64) -> Result<()> {
        let [_, bytes, _, flags, descriptor, offset] = pending.arguments;
        let is_shared = flags as i32 & libc::MAP_SHARED != 0;
        if descriptor as i32 >= 0 && is_shared && self.mappings.len() < MAX_MAPPINGS {
            let id = self.descriptor(thread, descriptor as i32)?;
            let file = self.descriptors.open_file(id).file;
            let process = self.state(thread).process;
            self.mappings.insert((process, address), (bytes, file, offset));
        }
        Ok(())
    }

    fn ring_file(&mut self, request: u64, descriptor: i32) -> Result<()> {
        let Some(pending) = self.rings.get(request) else { return Ok(()) };
        let thread = pending.thread;
        let id = self.descriptor(thread, descriptor)?;
        let file = self.descriptors.open_file(id).file;
        if let Some(pending) = self.rings.get(request) {
            (pending.descriptor, pending.file) = (Some(descriptor), Some(file));
        }
        Ok(())
    }

    fn ring_done(&mut self, at: Nanos, pending: RingRequest, result: i64) -> Result<()> {
        let file = match pending.file {
            Some(file) => file,
            None => self.named_file("registered files of io_uring", Kind::Unknown)?,
        };
        let open = match pending.descriptor {
            Some(descriptor) => {
                let id = self.descriptor(pending.thread, descriptor)?;
                self.descriptors.open_file(id).flags
            }
            None => OpenFile::default(),
        };
        let thread = self.thread_index(pending.thread)?;
        let is_transfer = matches!(pending.access, Access::Read | Access::Write);
        self.order.add(Request {
            at_ns: self.since_start(pending.at),
            duration_ns: Some(at.saturating_sub(pending.at)),
            thread: Some(thread),
            file,
            access: pending.access,
            interface: Interface::IoUring,
            offset: None,
            // Only the result shows it.
            bytes: if is_transfer { u64::try_from(result).unwrap_or(0) } else { 0 },
            result: Some(result),
            open,
        });
        Ok(())
    }

    /// Requests of followed threads, and write-back of kernel threads; those of other programs
    /// are left out.
    fn device_request(&mut self, done: DeviceRequest) -> Result<()> {
        let is_own = self.is_followed(done.thread);
        let number = rustix::fs::makedev(done.device.0, done.device.1);
        let is_wanted = is_own
            || self.only_devices
            || (done.access == Access::Write
                && self.holds_files(number)
                && is_kernel_thread(done.thread));
        if !is_wanted {
            return Ok(());
        }
        let thread = if is_own { Some(self.thread_index(done.thread)?) } else { None };
        let name = identity::device_name(done.device);
        let file = TracedFile { name: name.clone(), kind: Kind::BlockDevice, size_bytes: None };
        let file = self.file((0, number, name), file)?;
        self.order.add(Request {
            at_ns: self.since_start(done.at),
            duration_ns: Some(done.duration),
            thread,
            file,
            access: done.access,
            interface: Interface::Block,
            offset: Some(done.offset),
            bytes: done.bytes,
            result: i64::try_from(done.bytes).ok(),
            open: OpenFile::default(),
        });
        Ok(())
    }

    /// Whether files of the recording are on this device.
    fn holds_files(&self, device: u64) -> bool {
        self.file_systems.contains(&device)
    }

    fn mapped(&mut self, thread: i32, address: u64) -> Option<(Index, Kind, OpenFile)> {
        let process = self.state(thread).process;
        let (&(_, start), &(bytes, file, _)) =
            self.mappings.range((process, 0)..=(process, address)).next_back()?;
        (address - start < bytes).then_some((file, Kind::Regular, OpenFile::default()))
    }

    /// Faults of files that the program opened; its own code and libraries are left out with those
    /// that it did not.
    fn fault(&mut self, seen: &Seen, device: u32, inode: u64, page: u64) -> Result<()> {
        let device = rustix::fs::makedev(device >> 20, device & 0xf_ffff);
        let Some(&file) = self.inodes.get(&(device, inode)) else { return Ok(()) };
        let thread = self.thread_index(seen.thread)?;
        self.order.add(Request {
            at_ns: self.since_start(seen.at),
            duration_ns: None,
            thread: Some(thread),
            file,
            access: Access::Read,
            interface: Interface::Mapping,
            offset: Some(page << 12),
            bytes: 4096,
            result: None,
            open: OpenFile::default(),
        });
        Ok(())
    }
}

/// A kernel thread has no command line.
fn is_kernel_thread(thread: i32) -> bool {
    thread == 0
        || std::fs::read(format!("/proc/{thread}/cmdline")).is_ok_and(|words| words.is_empty())
}
