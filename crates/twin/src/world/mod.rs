//! A *request* becomes *transfers* of the volume, a transfer *commands* to members.

mod array;
mod buffered;
pub(crate) mod files;
mod rows;
mod state;
mod transfer;
mod writer;

pub(crate) use self::state::Controller;

use self::files::Files;
use self::state::{Rows, Writer};
use crate::bus::{Bus, Pci};
use crate::cpu::{Cpu, Work};
use crate::description::{FileSystem, Processor};
use crate::device::{Command, Device};
use crate::event::Event;
use crate::file_cache::FileCache;
use crate::kernel::Kernel;
use crate::ram_cache::{self, RamCache};
use crate::shape::Shape;
use crate::slab::Slab;
use crate::units::us;
use crate::volume::{Layout, Maker, Plan};
use machine::{Access, Allocation, CacheState, DeviceUse, Engine, Nanos, Op};
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub part: u32,
    pub source: u32,
    pub slot: u32,
    pub op: Op,
    pub offset: u64,
    pub len: u32,
    /// Buffered: the next byte to copy.
    pub at: u64,
    pub extends: bool,
    /// Of a durable write, if its source knows.
    pub journal_blocks: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Request(u32),
    Unit {
        unit: u64,
        pages: u64,
        ahead: Option<u32>,
    },
    WriteBack {
        unit: u64,
    },
    Through(u32),
    /// A write of the journal: the last block makes the others valid.
    Log {
        of: LogOwner,
        last: bool,
    },
    /// A block of what growth changes: the file's record, then the map of free space.
    Growth {
        last: bool,
    },
    Behind,
    Rebuild,
}

impl Owner {
    /// Its place does not depend on where the file is.
    fn is_metadata(self) -> bool {
        matches!(self, Owner::Log { .. } | Owner::Growth { .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogOwner {
    Request(u32),
    Sync(u32),
    /// Of files, logged by the lazy writer.
    Growth,
}

#[derive(Debug)]
pub(crate) struct Transfer {
    pub owner: Owner,
    pub op: Op,
    pub offset: u64,
    pub bytes: u64,
    /// The data must be stable when it is done.
    pub durable: bool,
    pub pending: u32,
    pub combined: bool,
    pub second: bool,
    /// A RAM cache serves it.
    pub copied: bool,
    /// When its data left over the host bus, and when the array had them.
    pub crossed: Option<(Nanos, Nanos)>,
    pub rows: Option<Range<u64>>,
    /// The writes of which this one consists, if an array joined several.
    pub joined: Vec<(Owner, u64, u64)>,
}

pub(crate) struct Member {
    pub device: Box<dyn Device>,
    waiting: VecDeque<u32>,
    inside: u32,
    queue: u32,
    flying: u32,
    busy_since: Nanos,
    usage: DeviceUse,
}

impl Member {
    pub fn new(device: Box<dyn Device>) -> Self {
        let (queue, usage) = (device.queue(), DeviceUse::default());
        Member {
            device,
            waiting: VecDeque::new(),
            inside: 0,
            queue,
            flying: 0,
            busy_since: 0,
            usage,
        }
    }

    fn rest(&mut self, idle: Nanos, ran: Nanos) {
        self.device.rest(ran + idle);
        self.waiting.clear();
        (self.inside, self.flying, self.busy_since) = (0, 0, 0);
        self.usage = DeviceUse::default();
    }

    pub fn commands_done(&self) -> u64 {
        self.usage.reads + self.usage.writes
    }

    pub fn usage(&self, now: Nanos) -> DeviceUse {
        let under_way = if self.flying > 0 { now - self.busy_since } else { 0 };
        DeviceUse { busy_ns: self.usage.busy_ns + under_way, ..self.usage }
    }
}

const FS: u64 = 1_000_000;

/// In ns; per byte in fs.
pub(crate) struct Costs {
    request: Nanos,
    request_fs: u64,
    call: Nanos,
    paging: Nanos,
    before_percent: u64,
    read: Nanos,
    read_fs: u64,
    first_read_fs: u64,
    large_read_fs: u64,
    write: Nanos,
    write_fs: u64,
    large_write_fs: u64,
    writeback_fs: u64,
    parity_fs: u64,
    parity_charged_fs: u64,
    uncharged: Nanos,
}

impl From<&Processor> for Costs {
    fn from(p: &Processor) -> Self {
        let fs = |ns: f64| (ns * 1e6).round() as u64;
        Costs {
            request: us(p.request_us),
            request_fs: fs(p.request_ns_per_byte),
            call: us(p.call_us),
            paging: us(p.paging_us),
            before_percent: p.before_percent.round() as u64,
            read: us(p.buffered_read_us),
            read_fs: fs(p.buffered_read_ns_per_byte),
            first_read_fs: fs(p.first_read_ns_per_byte),
            large_read_fs: fs(p.large_read_ns_per_byte),
            write: us(p.buffered_write_us),
            write_fs: fs(p.buffered_write_ns_per_byte),
            large_write_fs: fs(p.large_write_ns_per_byte),
            writeback_fs: fs(p.writeback_ns_per_byte),
            parity_fs: fs(p.parity_ns_per_byte),
            parity_charged_fs: fs(p.parity_charged_ns_per_byte),
            uncharged: us(p.buffered_uncharged_us),
        }
    }
}

impl Costs {
    /// Uncached: before the adapter, and after the interrupt.
    fn transfer(&self, bytes: u64) -> (Nanos, Nanos) {
        self.divided(self.request, bytes)
    }

    fn request(&self, more_calls: u32, bytes: u64) -> (Nanos, Nanos) {
        self.divided(self.request + self.calls(more_calls), bytes)
    }

    fn calls(&self, more_calls: u32) -> Nanos {
        self.call * Nanos::from(more_calls)
    }

    fn paging(&self, bytes: u64) -> (Nanos, Nanos) {
        self.divided(self.paging, bytes)
    }

    fn divided(&self, fixed: Nanos, bytes: u64) -> (Nanos, Nanos) {
        let all = fixed + bytes * self.request_fs / FS;
        let before = all * self.before_percent / 100;
        (before, all - before)
    }
}

pub(crate) struct World {
    pub kernel: Kernel<Event>,
    pub cpu: Cpu,
    pub costs: Costs,
    pub pci: Pci,
    pub buses: Vec<Bus>,
    pub members: Vec<Member>,
    pub files: Files,
    pub fs: FileSystem,
    pub cache: FileCache,
    pub ram_cache: Option<RamCache>,
    pub requests: Slab<Request>,
    pub transfers: Slab<Transfer>,
    pub commands: Slab<Command>,
    plan: Plan,
    pub array: Option<Controller>,
    pub maker: Maker,
    rows: Rows,
    pub rebuilds: bool,
    pub accesses: Vec<Access>,
    pub temporary: bool,
    pub shape: Shape,
    pub writer: Writer,
    pub clients: Vec<u32>,
}

impl World {
    pub fn new(
        fs: FileSystem,
        processor: &Processor,
        pci: Pci,
        buses: Vec<Bus>,
        members: Vec<Member>,
        layout: Layout,
    ) -> Self {
        World {
            kernel: Kernel::new(0),
            cpu: Cpu::new(processor.cores),
            costs: Costs::from(processor),
            pci,
            buses,
            members,
            files: Files::new(layout, fs.unit_bytes * ram_cache::BLOCK),
            cache: FileCache::new(fs.unit_bytes, u64::from(fs.block_bytes), fs.cache_bytes),
            ram_cache: None,
            fs,
            requests: Slab::default(),
            transfers: Slab::default(),
            commands: Slab::default(),
            plan: Plan::default(),
            array: None,
            maker: Maker::Host,
            rows: Rows::default(),
            rebuilds: false,
            accesses: Vec::new(),
            temporary: false,
            shape: Shape::default(),
            writer: Writer::default(),
            clients: Vec::new(),
        }
    }

    /// For the next run; each client has the processors and the queue of one computer.
    pub fn with_clients(&mut self, clients: u32, cores: u32) {
        self.cpu = Cpu::new(cores.saturating_mul(clients));
        for member in &mut self.members {
            member.queue = member.device.queue().saturating_mul(clients);
        }
    }

    pub fn discard(&mut self) {
        self.members.iter_mut().for_each(|member| member.device.discard());
    }

    pub fn celsius(&self) -> Option<f64> {
        self.members.iter().filter_map(|member| member.device.celsius()).reduce(f64::max)
    }

    /// Starts a run `idle` after the previous one of `ran`. Drive caches are as after a pause.
    pub fn rest(&mut self, idle: Nanos, ran: Nanos) {
        self.kernel = Kernel::new(0);
        self.cpu.rest();
        self.pci.rest();
        if let Some(array) = &mut self.array {
            array.rest();
        }
        self.rows = Rows::default();
        self.buses.iter_mut().for_each(Bus::rest);
        self.members.iter_mut().for_each(|member| member.rest(idle, ran));
        self.cache.settle();
        if let Some(cache) = &mut self.ram_cache {
            cache.settle();
        }
        self.requests.clear();
        self.transfers.clear();
        self.commands.clear();
        self.files.rest();
        self.accesses.clear();
        self.clients.clear();
        self.writer = Writer::default();
    }

    pub fn close(&mut self, file: u32) {
        if let Some(addresses) = self.files.close(file) {
            self.forget(addresses);
        }
    }

    /// Returns the new number; fails if another target uses the file.
    pub fn restripe(&mut self, file: u32, members: &[u32], chunk: u64) -> machine::Result<u32> {
        let file = self.files.restripe(file, members, chunk)?;
        self.forget(self.files[file].addresses());
        Ok(file)
    }

    pub fn forget(&mut self, addresses: Range<u64>) {
        self.cache.forget(addresses.clone());
        if let Some(cache) = &mut self.ram_cache {
            cache.forget(addresses);
        }
    }

    /// Reserved space counts as written: real programs preallocate to avoid extending writes.
    pub fn prepare(&mut self, access: &Access, files: &[u32]) {
        let fresh = matches!(access.allocation, Allocation::Extend | Allocation::Truncate);
        for &number in files {
            let file = &mut self.files[number];
            let begin = file.start + access.region.0;
            if fresh || access.cache == CacheState::Cold {
                self.cache.forget(file.addresses());
            }
            if access.cache == CacheState::Warm {
                self.cache.warm(begin, access.region.1.min(file.end().saturating_sub(begin)));
            }
            if fresh {
                file.valid = file.valid.min(begin);
                file.recorded = file.valid;
            }
        }
        self.accesses.push(access.clone());
    }

    pub(crate) fn now(&self) -> Nanos {
        self.kernel.now()
    }

    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Wake(_) | Event::Deliver(_) | Event::Synced(_) => {
                debug_assert!(false, "sources' events are the run's")
            }
            Event::Step(request) => self.step(request),
            Event::Launch(transfer) => self.launch(transfer),
            Event::Send(command) => self.send(self.commands[command].device, command),
            Event::Device(number, wake) => self.device_event(number, wake),
            Event::BusFree(bus) => self.bus_free(bus),
            Event::WriterBack(file) => self.writer_back(file),
            Event::LazyScan => self.lazy_scan(),
            Event::RamCacheBurst => self.ram_cache_burst(),
        }
    }

    /// The request's offset is an address.
    pub fn issue(
        &mut self,
        part: u32,
        source: u32,
        request: machine::Request,
        journal_blocks: Option<u32>,
    ) {
        let end = request.offset + u64::from(request.len);
        let file = self.files.of(request.offset);
        let extends = request.op == Op::Write && end > file.valid && self.fs.extend_one_at_a_time;
        let waits = extends && file.extending;
        let record = Request {
            part,
            source,
            slot: request.slot,
            op: request.op,
            offset: request.offset,
            len: request.len,
            at: request.offset,
            extends,
            journal_blocks,
        };
        let number = self.requests.insert(record);
        if !self.accesses[part as usize].buffering.is_direct() {
            self.issue_buffered(number);
        } else if waits {
            self.files.of_mut(request.offset).extenders.push_back(number);
        } else {
            self.issue_direct(number);
        }
    }

    fn issue_direct(&mut self, number: u32) {
        let request = self.requests[number];
        if request.extends {
            self.files.of_mut(request.offset).extending = true;
        }
        let durable = self.writes_through(&request);
        let bytes = u64::from(request.len);
        let (before, _) = self.costs.request(self.more_calls(&request), bytes);
        let at = self.cpu.work_of(request.source, Work::Program, self.now(), before);
        self.transfer(at, Owner::Request(number), request.op, request.offset, bytes, durable);
    }

    fn transfer_done(&mut self, owner: Owner, offset: u64, bytes: u64) {
        match owner {
            Owner::Request(number) => {
                let request = self.requests[number];
                if request.extends {
                    let file = self.files.of_mut(offset);
                    file.valid = file.valid.max(offset + u64::from(request.len));
                    file.extending = false;
                    if let Some(next) = file.extenders.pop_front() {
                        self.issue_direct(next);
                    }
                }
                let (_, after) = self.costs.request(self.more_calls(&request), bytes);
                // A parity update ends in a system thread.
                let updates = request.op == Op::Write && self.host_parity(offset);
                let at = if updates {
                    self.cpu.work(Work::Uncharged, self.now(), after)
                } else {
                    self.cpu.work_of(request.source, Work::System, self.now(), after)
                };
                if request.op == Op::Write && self.writes_through(&request) {
                    self.end_durable(at, number, false);
                } else {
                    self.kernel.at(at, Event::Deliver(number));
                }
            }
            Owner::Unit { unit, pages, ahead } => self.unit_read(unit, pages, ahead, bytes),
            Owner::WriteBack { unit } => self.written_back(unit, offset, bytes),
            Owner::Through(number) => self.written_through(number),
            Owner::Log { of, last: false } => self.log(self.now(), of, offset, 1),
            Owner::Log { of: LogOwner::Request(number), .. } => {
                let source = self.requests[number].source;
                let at = self.cpu.work_of(
                    source,
                    Work::System,
                    self.now(),
                    self.costs.transfer(bytes).1,
                );
                self.kernel.at(at, Event::Deliver(number));
            }
            Owner::Log { of: LogOwner::Sync(source), .. } => {
                let at = self.cpu.work(Work::System, self.now(), self.costs.transfer(bytes).1);
                let file = files::Files::number_of(offset);
                let done = self.flush_devices(&[file], false).max(at);
                self.kernel.at(done, Event::Synced(source));
            }
            Owner::Log { of: LogOwner::Growth, .. } => self.growth_logged(offset),
            Owner::Growth { last } => self.growth_written(offset, bytes, last),
            Owner::Behind => self.ram_cache_cleaned(bytes),
            Owner::Rebuild => self.rebuilt(bytes),
        }
    }

    fn more_calls(&self, request: &Request) -> u32 {
        let engine = self.accesses[request.part as usize].engine;
        if engine.is_async() { self.shape_of(engine).more_calls() } else { 0 }
    }

    pub fn shape_of(&self, engine: Engine) -> Shape {
        Shape::of_engine(engine).unwrap_or(self.shape)
    }

    fn writes_through(&self, request: &Request) -> bool {
        self.accesses[request.part as usize].buffering.is_dsync()
    }

    fn syncs_metadata(&self, request: &Request) -> bool {
        self.writes_through(request) && self.accesses[request.part as usize].metadata_sync
    }

    /// The last block follows when the others are written.
    pub fn log(&mut self, at: Nanos, of: LogOwner, address: u64, blocks: u32) {
        let last = blocks <= 1;
        let bytes = u64::from(if last { 1 } else { blocks - 1 }) * u64::from(self.fs.block_bytes);
        let who = if of == LogOwner::Growth { Work::System } else { Work::Program };
        let at = self.cpu.work(who, at, self.costs.transfer(bytes).0);
        let log = self.files.of(address).log();
        self.transfer(at, Owner::Log { of, last }, Op::Write, log, bytes, last);
    }

    fn end_durable(&mut self, at: Nanos, number: u32, logs: bool) {
        let request = self.requests[number];
        let own = logs || self.syncs_metadata(&request);
        let blocks = request.journal_blocks.unwrap_or(u32::from(own));
        if blocks > 0 {
            return self.log(at, LogOwner::Request(number), request.offset, blocks);
        }
        let mut done = at;
        if self.fs.sync_flushes_drives {
            for member in self.files.members(&[files::Files::number_of(request.offset)]) {
                done = done.max(self.members[member as usize].device.admit_flush(at));
            }
        }
        self.kernel.at(done, Event::Deliver(number));
    }

    pub fn finish(&mut self, number: u32) -> Request {
        let request = self.requests[number];
        self.requests.release(number);
        request
    }
}
