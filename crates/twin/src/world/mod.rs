//! The simulated computer in motion: records of what is under way, events, and the hand from one layer to the next.
//!
//! A *request* is what an asker issues. It becomes *transfers* of the volume (one, for direct I/O; demand reads, pre-reads, write-backs for
//! buffered I/O), and a transfer becomes *commands* to members.

mod buffered;
mod scsi;
mod transfer;
mod writer;

use crate::bus::{Bus, Outcome, Pci};
use crate::cloud::Cloud;
use crate::cpu::Cpu;
use crate::description::{FileSystem, Processor};
use crate::disk::{Disk, us};
use crate::file_cache::FileCache;
use crate::flash::Flash;
use crate::kernel::Kernel;
use crate::ram_cache::RamCache;
use crate::slab::Slab;
use crate::virtio::Virtio;
use crate::volume::{Layout, Plan};
use machine::{Access, Nanos, Op};
use std::collections::VecDeque;

/// What may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// An asker's time has come.
    Wake(u32),
    /// A request is done and its asker learns of it.
    Deliver(u32),
    /// What an asker wrote is on stable storage.
    Synced(u32),
    /// A buffered request goes on.
    Step(u32),
    /// A transfer goes to the members.
    Launch(u32),
    /// A command that a member served by itself is done.
    CommandDone(u32),
    /// A hypervisor looks at a disk's ring of requests.
    Ring(u32),
    /// The adapter tries again to send to a disk.
    TrySend(u32),
    /// A connection on a bus ends.
    BusFree(u32, Outcome),
    /// A drive wants the bus back for a command.
    Reselect(u32),
    /// There is work for a disk's head.
    Media(u32),
    /// A disk's head ends its work.
    MediaDone(u32),
    /// A disk's head may leave its prefetch.
    MediaRelease(u32),
    /// A disk's processor ends a chore.
    Firmware(u32),
    /// The write-back worker comes back from one write.
    WriterBack,
    /// The lazy writer's period.
    LazyScan,
    /// Whether the RAM cache has been left alone.
    RamCacheIdle,
}

/// A request of an asker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub asker: u32,
    pub slot: u32,
    pub op: Op,
    pub offset: u64,
    pub len: u32,
    /// Buffered: the next byte to be copied.
    pub at: u64,
    /// It writes beyond the end of the data.
    pub extends: bool,
}

/// Whose a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A direct request's.
    Request(u32),
    /// Pages of a unit, read for whoever waits for them.
    Unit { unit: u64, pages: u64, ahead: bool },
    /// The write-back worker's.
    WriteBack { unit: u64 },
    /// A written-through request's.
    Through(u32),
    /// The log of a written-through request.
    Log(u32),
    /// The log of a file that an asker brings to stable storage.
    SyncLog(u32),
    /// The RAM cache's own, for nobody.
    Behind,
}

/// Bytes on their way between the volume and memory.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub owner: Owner,
    pub op: Op,
    pub offset: u64,
    pub bytes: u64,
    /// To be on stable storage when done.
    pub durable: bool,
    /// Commands under way.
    pub pending: u32,
    /// Parity is computed.
    pub combined: bool,
    /// It is at its second pieces.
    pub second: bool,
    /// A RAM cache serves it: done when it is copied.
    pub copied: bool,
}

/// What a member is asked to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub transfer: u32,
    pub member: u32,
    pub op: Op,
    pub offset: u64,
    pub bytes: u64,
    pub durable: bool,
    pub since: Nanos,
}

/// What a volume consists of.
pub(crate) enum Device {
    Disk(Box<Disk>),
    Flash(Box<Flash>),
    Cloud(Box<Cloud>),
    Virtio(Virtio),
}

/// A device and the host's side of it.
pub(crate) struct Member {
    pub device: Device,
    /// Commands waiting to be sent to a device that is not a [`Disk`].
    pub waiting: VecDeque<u32>,
    /// Commands in a device that is not a [`Disk`].
    pub inside: u32,
    pub queue: u32,
    /// Commands at the adapter and in the device.
    pub flying: u32,
    pub busy_since: Nanos,
    pub busy: Nanos,
}

/// Femtoseconds of a nanosecond.
const FS: u64 = 1_000_000;

/// Processor costs in nanoseconds, and per byte in femtoseconds.
pub(crate) struct Costs {
    request: Nanos,
    request_fs: u64,
    paging: Nanos,
    before_percent: u64,
    read: Nanos,
    read_fs: u64,
    large_read_fs: u64,
    write: Nanos,
    write_fs: u64,
    large_write_fs: u64,
    writeback_fs: u64,
    parity_fs: u64,
}

impl From<&Processor> for Costs {
    fn from(p: &Processor) -> Self {
        let fs = |ns: f64| (ns * 1e6).round() as u64;
        Costs {
            request: us(p.request_us),
            request_fs: fs(p.request_ns_per_byte),
            paging: us(p.paging_us),
            before_percent: p.before_percent.round() as u64,
            read: us(p.buffered_read_us),
            read_fs: fs(p.buffered_read_ns_per_byte),
            large_read_fs: fs(p.large_read_ns_per_byte),
            write: us(p.buffered_write_us),
            write_fs: fs(p.buffered_write_ns_per_byte),
            large_write_fs: fs(p.large_write_ns_per_byte),
            writeback_fs: fs(p.writeback_ns_per_byte),
            parity_fs: fs(p.parity_ns_per_byte),
        }
    }
}

impl Costs {
    /// Before the adapter and after the interrupt, for one transfer past the cache.
    fn transfer(&self, bytes: u64) -> (Nanos, Nanos) {
        self.divided(self.request, bytes)
    }

    /// The same for a transfer that the cache makes for itself.
    fn paging(&self, bytes: u64) -> (Nanos, Nanos) {
        self.divided(self.paging, bytes)
    }

    fn divided(&self, fixed: Nanos, bytes: u64) -> (Nanos, Nanos) {
        let all = fixed + bytes * self.request_fs / FS;
        let before = all * self.before_percent / 100;
        (before, all - before)
    }
}

/// The computer.
pub(crate) struct World {
    pub kernel: Kernel<Event>,
    pub cpu: Cpu,
    pub costs: Costs,
    pub pci: Pci,
    pub buses: Vec<Bus>,
    pub members: Vec<Member>,
    pub layout: Layout,
    pub fs: FileSystem,
    pub cache: FileCache,
    pub ram_cache: Option<RamCache>,
    pub requests: Slab<Request>,
    pub transfers: Slab<Transfer>,
    pub commands: Slab<Command>,
    plan: Plan,
    pub access: Option<Access>,
    /// Buffered writes stay in memory while there is room.
    pub temporary: bool,
    /// Block of the volume where the file system keeps its log.
    pub log_offset: u64,
    /// End of the data: a write beyond it extends.
    pub valid: u64,
    extending: bool,
    extenders: VecDeque<u32>,
    pub writer: writer::Writer,
    pub device: machine::DeviceUse,
}

impl World {
    /// A computer at rest.
    pub fn new(fs: FileSystem, processor: &Processor, pci: Pci, buses: Vec<Bus>, members: Vec<Member>, layout: Layout) -> Self {
        World {
            kernel: Kernel::new(0),
            cpu: Cpu::new(processor.cores),
            costs: Costs::from(processor),
            pci,
            buses,
            members,
            log_offset: layout.bytes() / 2 / 4096 * 4096,
            layout,
            cache: FileCache::new(fs.unit_bytes, u64::from(fs.block_bytes), fs.cache_bytes),
            ram_cache: None,
            fs,
            requests: Slab::default(),
            transfers: Slab::default(),
            commands: Slab::default(),
            plan: Plan::default(),
            access: None,
            temporary: false,
            valid: u64::MAX,
            extending: false,
            extenders: VecDeque::new(),
            writer: writer::Writer::default(),
            device: machine::DeviceUse::default(),
        }
    }

    /// Ready for a run whose clock begins at zero, after `idle`: what was under way has ended, caches of the drives are as after a pause.
    pub fn rest(&mut self, idle: Nanos) {
        self.kernel = Kernel::new(0);
        self.cpu.rest();
        self.pci.rest();
        self.buses.iter_mut().for_each(Bus::rest);
        for member in &mut self.members {
            member.device.rest(idle);
            member.waiting.clear();
            (member.inside, member.flying, member.busy_since, member.busy) = (0, 0, 0, 0);
        }
        self.cache.settle();
        if let Some(cache) = &mut self.ram_cache {
            cache.settle();
        }
        self.requests.clear();
        self.transfers.clear();
        self.commands.clear();
        (self.extending, self.valid) = (false, u64::MAX);
        self.extenders.clear();
        self.writer = writer::Writer::default();
        self.device = machine::DeviceUse::default();
    }

    pub(crate) fn now(&self) -> Nanos {
        self.kernel.now()
    }

    /// Handles an event that is not an asker's.
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Wake(_) | Event::Deliver(_) | Event::Synced(_) => debug_assert!(false, "askers' events are the run's"),
            Event::Step(request) => self.step(request),
            Event::Launch(transfer) => self.launch(transfer),
            Event::CommandDone(command) => self.served(command),
            Event::Ring(member) => self.look_at_ring(member),
            Event::TrySend(member) => self.try_again(member),
            Event::BusFree(bus, outcome) => self.bus_free(bus, outcome),
            Event::Reselect(command) => self.reselect(command),
            Event::Media(member) => self.media_start(member),
            Event::MediaDone(member) => self.media_done(member),
            Event::MediaRelease(member) => self.media_release(member),
            Event::Firmware(member) => self.chore_done(member),
            Event::WriterBack => self.writer_back(),
            Event::LazyScan => self.lazy_scan(),
            Event::RamCacheIdle => self.ram_cache_idle(),
        }
    }

    /// An asker issues a request.
    pub fn issue(&mut self, asker: u32, request: machine::Request) {
        let end = request.offset + u64::from(request.len);
        let write = request.op == Op::Write;
        let extends = write && end > self.valid && self.fs.extend_one_at_a_time;
        let record =
            Request { asker, slot: request.slot, op: request.op, offset: request.offset, len: request.len, at: request.offset, extends };
        let number = self.requests.insert(record);
        if self.access.as_ref().is_some_and(|access| !access.buffering.is_direct()) {
            self.issue_buffered(number);
        } else if extends && self.extending {
            self.extenders.push_back(number);
        } else {
            self.issue_direct(number);
        }
    }

    fn issue_direct(&mut self, number: u32) {
        let request = self.requests[number];
        if request.extends {
            self.extending = true;
        }
        let durable = self.access.as_ref().is_some_and(|access| access.buffering.is_dsync());
        let bytes = u64::from(request.len);
        let (before, _) = self.costs.transfer(bytes);
        let at = self.cpu.work(self.now(), before);
        self.transfer(at, Owner::Request(number), request.op, request.offset, bytes, durable);
    }

    /// The end of a transfer, for its owner.
    fn transfer_done(&mut self, owner: Owner, bytes: u64) {
        match owner {
            Owner::Request(number) => {
                let request = self.requests[number];
                if request.extends {
                    self.valid = self.valid.max(request.offset + u64::from(request.len));
                    self.extending = false;
                    if let Some(next) = self.extenders.pop_front() {
                        self.issue_direct(next);
                    }
                }
                let (_, after) = self.costs.transfer(bytes);
                let at = self.cpu.work(self.now(), after);
                if request.op == Op::Write && self.syncs_metadata() {
                    self.log(at, Owner::Log(number));
                } else {
                    self.kernel.at(at, Event::Deliver(number));
                }
            }
            Owner::Unit { unit, pages, ahead } => self.unit_read(unit, pages, ahead, bytes),
            Owner::WriteBack { unit } => self.written_back(unit, bytes),
            Owner::Through(number) => self.written_through(number),
            Owner::Log(number) => {
                let at = self.cpu.work(self.now(), self.costs.transfer(bytes).1);
                self.kernel.at(at, Event::Deliver(number));
            }
            Owner::SyncLog(asker) => {
                let at = self.cpu.work(self.now(), self.costs.transfer(bytes).1);
                let done = self.flush_devices().max(at);
                self.kernel.at(done, Event::Synced(asker));
            }
            Owner::Behind => self.ram_cache_cleaned(bytes),
        }
    }

    /// Each write brings the file's metadata to stable storage too.
    fn syncs_metadata(&self) -> bool {
        self.access.as_ref().is_some_and(|access| access.buffering.is_dsync() && access.metadata_sync)
    }

    /// Writes a block of the file system's log.
    pub fn log(&mut self, at: Nanos, owner: Owner) {
        let bytes = u64::from(self.fs.block_bytes);
        let at = self.cpu.work(at, self.costs.transfer(bytes).0);
        self.transfer(at, owner, Op::Write, self.log_offset, bytes, true);
    }

    /// The record of a request that is done, given back.
    pub fn finish(&mut self, number: u32) -> Request {
        let request = self.requests[number];
        self.requests.release(number);
        request
    }
}
