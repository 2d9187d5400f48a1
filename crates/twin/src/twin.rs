//! The simulated computer as a machine: the same askers, in virtual time.

use crate::bus::{Bus, Pci, PhaseTimes};
use crate::cloud::{Cloud, Virtio};
use crate::description::Drive;
use crate::disk::Disk;
use crate::flash::Flash;
use crate::ram_cache::RamCache;
use crate::settings::Setup;
use crate::volume::Layout;
use crate::world::{Device, Event, Member, World};
use crate::{Result, settings};
use machine::{
    Access, Allocation, Asker, CacheState, Capabilities, Completion, CpuTimes, Engine, MachineFacts, MemoryUse, Nanos, Next, TargetFacts,
    TargetKind, TargetSpec, Usage,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

/// A simulated computer.
pub struct Twin {
    setup: Setup,
    clock: AtomicU64,
}

/// How busy each resource was in the last run: shares of its time, from 0 to 1.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Utilisation {
    /// Name of the resource.
    pub resource: String,
    /// Share of the run in which it worked; the busiest, where there are several of its kind.
    pub share: f64,
}

/// An opened volume of a simulated computer.
pub struct Target {
    world: World,
    size: u64,
    members: Vec<u32>,
    ended: Nanos,
    ran: Nanos,
}

impl Target {
    /// Bus time by phase in the last run, bus by bus.
    pub fn bus_phases(&self) -> Vec<PhaseTimes> {
        self.world.buses.iter().map(|bus| bus.phases).collect()
    }

    /// Events of the last run.
    pub fn events(&self) -> u64 {
        self.world.kernel.handled()
    }

    /// Virtual time of the last run, synchronisation included.
    pub fn ran_ns(&self) -> Nanos {
        self.ran
    }

    /// How busy each resource was in the last run, the busiest first. The first is the bottleneck, unless waiting for one
    /// thing after the other kept them all idle.
    pub fn utilisation(&self) -> Vec<Utilisation> {
        let ran = self.ran.max(1) as f64;
        let mut all = vec![("processor".to_owned(), self.world.cpu.busy as f64 / f64::from(self.world.cpu.cores()) / ran)];
        let most = |times: &mut dyn Iterator<Item = Nanos>| times.max().map(|time| time as f64 / ran);
        if self.world.pci.busy > 0 {
            all.push(("PCI".to_owned(), self.world.pci.busy as f64 / ran));
        }
        if let Some(share) = most(&mut self.world.buses.iter().map(|bus| bus.phases.busy())) {
            all.push(("bus".to_owned(), share));
        }
        let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
        for member in &self.world.members {
            for (name, busy) in member.device.parts(self.ran) {
                let share = parts.entry(name).or_default();
                *share = share.max(busy as f64 / ran);
            }
        }
        all.extend(parts.into_iter().map(|(name, share)| (name.to_owned(), share)));
        let mut all: Vec<_> = all.into_iter().map(|(resource, share)| Utilisation { resource, share: share.min(1.0) }).collect();
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all
    }

    /// Share of the bytes asked of the RAM cache that it served in the last run.
    pub fn ram_cache_hits(&self) -> Option<f64> {
        self.world.ram_cache.as_ref().map(|cache| cache.found as f64 / cache.asked.max(1) as f64)
    }
}

impl Twin {
    /// The machine of `NAME[,SETTING=VALUE]...`, with or without `twin:` before it; NAME is a preset's or a `.toml` file's.
    ///
    /// # Errors
    /// An unknown machine or setting, a bad value, or the line of a machine file that is wrong and why.
    pub fn from_name(name: &str) -> Result<Twin> {
        Ok(Twin::new(Setup::parse(name)?))
    }

    /// A machine set up so.
    pub fn new(setup: settings::Setup) -> Twin {
        Twin { setup, clock: AtomicU64::new(0) }
    }

    /// How it is set up.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The volume of all members, of `size` bytes or all that there are.
    pub fn volume(&self, size: Option<u64>) -> Target {
        let members: Vec<u32> = (0..self.setup.disks).collect();
        self.target(members, self.setup.stripe, size)
    }

    fn target(&self, members: Vec<u32>, stripe: u64, size: Option<u64>) -> Target {
        let world = self.world(&members, stripe);
        let size = size.unwrap_or(u64::MAX).min(world.layout.bytes());
        Target { world, size, members, ended: self.clock.load(Ordering::Relaxed), ran: 0 }
    }

    fn world(&self, members: &[u32], stripe: u64) -> World {
        let (setup, description) = (&self.setup, &self.setup.description);
        let built: Vec<Member> = members.iter().map(|number| Member::new(device(setup, *number))).collect();
        let buses = match setup.drive() {
            Drive::Disk(disk) => (0..setup.buses).map(|_| Bus::new(&description.buses[&disk.bus])).collect(),
            _ => Vec::new(),
        };
        let member_bytes = built.iter().map(|member| member.device.bytes()).min().unwrap_or(0);
        let parity = setup.parity.filter(|_| members.len() >= 3);
        let layout = Layout { members: members.len() as u32, chunk: stripe, parity, member_bytes };
        let pci = Pci::new(description.pci_bytes_per_s);
        let mut world = World::new(description.file_system.clone(), &description.processor, pci, buses, built, layout);
        let copy = description.memory.rates.iter().find(|rate| rate.kind == "copy").map_or(1e9, |rate| rate.bytes_per_s);
        world.ram_cache = setup.ram_cache.map(|(bytes, policy)| RamCache::new(bytes, policy, copy));
        world.temporary = setup.temporary;
        world
    }

    fn refuse(&self, access: &Access) -> machine::Result<()> {
        if access.engine == Engine::Mmap {
            return Err(machine::Error::Unsupported(format!("{}: mapped files are not simulated", self.setup.name)));
        }
        if access.engine == Engine::Null {
            let why = "the engine null measures a driver, and a simulated machine has none";
            return Err(machine::Error::Unsupported(format!("{}: {why}", self.setup.name)));
        }
        if access.count_instructions {
            return Err(machine::Error::Unsupported(format!("{}: a simulated processor has no instruction counter", self.setup.name)));
        }
        Ok(())
    }
}

fn device(setup: &Setup, number: u32) -> Device {
    match setup.drive() {
        Drive::Disk(disk) => Device::Disk(Box::new(Disk::new(disk, number, number % setup.buses, setup.wce))),
        Drive::Flash(flash) => Device::Flash(Box::new(Flash::new(flash.clone()))),
        Drive::Cloud(volume) => Device::Cloud(Box::new(Cloud::new(volume.clone()))),
        Drive::Virtio(disk) => Device::Virtio(Virtio::new(disk.clone())),
    }
}

/// Brings a target into the state that a run asks for.
fn prepare(target: &mut Target, access: &Access, idle: Nanos) {
    let world = &mut target.world;
    world.rest(idle);
    let fresh = matches!(access.allocation, Allocation::Extend | Allocation::Truncate);
    if fresh || access.cache == CacheState::Cold {
        world.cache.clear();
    }
    if access.cache == CacheState::Warm {
        world.cache.warm(access.region.0, access.region.1);
    }
    world.valid = if fresh { access.region.0 } else { u64::MAX };
    world.access = Some(access.clone());
}

/// One run: the askers and what they wait for.
struct Run<'a, A> {
    world: &'a mut World,
    askers: &'a mut [A],
    /// The machine's clock when the world's showed zero.
    began: Nanos,
    size: u64,
    /// Askers that are not done.
    left: usize,
    done: Vec<bool>,
    /// When each asker's next wake is scheduled.
    wakes: Vec<Nanos>,
    /// Askers that wait for stable storage, and since when.
    syncing: Vec<(u32, Nanos)>,
    /// Those of them whose data the devices are about to have.
    synced: Vec<(u32, Nanos)>,
    /// Bytes of one member, for askers that have one to themselves.
    member_size: u64,
    last: Nanos,
}

impl<A: Asker> Run<'_, A> {
    fn go(&mut self) {
        for asker in self.askers.iter_mut() {
            asker.begin(self.began);
        }
        for asker in 0..self.askers.len() as u32 {
            self.ask(asker);
        }
        while self.left > 0 {
            let Some(event) = self.world.kernel.take() else { return };
            match event {
                Event::Deliver(number) => self.deliver(number),
                Event::Wake(asker) => {
                    self.wakes[asker as usize] = Nanos::MAX;
                    self.ask(asker);
                }
                Event::Synced(asker) => self.synced(asker),
                event => self.world.handle(event),
            }
            if !self.syncing.is_empty() && self.world.clean() {
                self.stable();
            }
        }
    }

    fn deliver(&mut self, number: u32) {
        let request = self.world.finish(number);
        self.last = self.world.kernel.now();
        let completion = Completion { slot: request.slot, result: request.len as i32 };
        self.askers[request.asker as usize].complete(completion, self.began + self.last);
        self.ask(request.asker);
    }

    /// Everything written is on its way out of the caches: who waited for that learns of it when the devices have it too.
    fn stable(&mut self) {
        let done = self.world.flush_devices();
        for &(asker, _) in &self.syncing {
            self.world.kernel.at(done, Event::Synced(asker));
        }
        self.synced.append(&mut self.syncing);
        self.world.flushed();
    }

    fn synced(&mut self, asker: u32) {
        let Some(index) = self.synced.iter().position(|&(other, _)| other == asker) else { return };
        let (_, since) = self.synced.swap_remove(index);
        self.last = self.world.kernel.now();
        self.askers[asker as usize].synced(self.began + since, self.began + self.last);
        self.ask(asker);
    }

    fn waits_for_sync(&self, asker: u32) -> bool {
        self.syncing.iter().chain(&self.synced).any(|&(other, _)| other == asker)
    }

    /// Takes all that an asker wants now.
    fn ask(&mut self, number: u32) {
        let index = number as usize;
        if (!self.syncing.is_empty() || !self.synced.is_empty()) && self.waits_for_sync(number) {
            return;
        }
        if self.askers[index].sync_due().is_some() {
            self.syncing.push((number, self.world.kernel.now()));
            self.world.flush();
            if self.world.clean() {
                self.stable();
            }
            return;
        }
        loop {
            let now = self.world.kernel.now();
            match self.askers[index].next(self.began + now) {
                Next::Issue(request) => self.issue(number, request),
                Next::WaitUntil(until) => {
                    let until = until.saturating_sub(self.began).max(now + 1);
                    if until < self.wakes[index] {
                        self.wakes[index] = until;
                        self.world.kernel.at(until, Event::Wake(number));
                    }
                    return;
                }
                Next::WaitForCompletion => return,
                Next::Done => {
                    if !std::mem::replace(&mut self.done[index], true) {
                        self.left -= 1;
                    }
                    return;
                }
            }
        }
    }

    /// A target ends where it ends: a request across the end is cut there, one beyond it does nothing.
    fn issue(&mut self, asker: u32, mut request: machine::Request) {
        let member = self.askers[asker as usize].member();
        let size = if member.is_some() { self.member_size } else { self.size };
        let room = size.saturating_sub(request.offset);
        if room == 0 || request.len == 0 {
            let now = self.began + self.world.kernel.now();
            self.askers[asker as usize].complete(Completion { slot: request.slot, result: 0 }, now);
            return;
        }
        request.len = request.len.min(room.min(u64::from(u32::MAX)) as u32);
        if let Some(member) = member {
            request.offset = Layout::on_member(member, request.offset);
        }
        self.world.issue(asker, request);
    }
}

impl machine::Machine for Twin {
    type Target = Target;

    fn facts(&self) -> MachineFacts {
        let d = &self.setup.description;
        let mut settings = BTreeMap::new();
        settings.insert("drive".to_owned(), self.setup.drive.clone());
        settings.insert("disks".to_owned(), self.setup.disks.to_string());
        settings.insert("buses".to_owned(), self.setup.buses.to_string());
        settings.insert("wce".to_owned(), if self.setup.wce { "on" } else { "off" }.to_owned());
        MachineFacts {
            name: format!("twin:{}", self.setup.name),
            simulated: true,
            system: d.system.clone(),
            processor: d.processor.name.clone(),
            processors: d.processor.cores,
            memory_bytes: d.memory.bytes,
            virtualization: None,
            settings,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let engines = vec![Engine::Sync, Engine::Threads, Engine::IoUring, Engine::Libaio];
        Capabilities { engines, noisy: false, counts_instructions: false }
    }

    fn now(&self) -> Nanos {
        self.clock.load(Ordering::Relaxed)
    }

    fn pause(&self, for_ns: Nanos) {
        self.clock.fetch_add(for_ns, Ordering::Relaxed);
    }

    fn open(&self, spec: &TargetSpec) -> machine::Result<Target> {
        if let Some(place) = spec.destroy.first() {
            let place = place.display().to_string();
            return Err(machine::Error::refused(place, "a simulated machine has nothing to destroy", "leave --destroy-data out"));
        }
        Ok(self.volume(spec.size))
    }

    fn target_facts(&self, target: &Target) -> TargetFacts {
        let layout = target.world.layout();
        TargetFacts {
            name: format!("twin:{}", self.setup.name),
            kind: TargetKind::Simulated,
            size_bytes: target.size,
            writable: true,
            direct: true,
            direct_refused: None,
            direct_align_bytes: 512,
            physical_block_bytes: 512,
            block_bytes: self.setup.description.file_system.block_bytes,
            members: layout.members,
            chunk_bytes: (layout.members > 1).then_some(layout.chunk),
            in_memory: false,
            devices: target.members.iter().map(|member| format!("{}-{member}", self.setup.drive)).collect(),
            layers: crate::layers::layers(&self.setup, &target.world),
            warnings: vec!["simulated: these are predictions, not measurements".to_owned()],
        }
    }

    fn run<A: Asker>(&self, target: &mut Target, access: &Access, askers: &mut [A]) -> machine::Result<Usage> {
        self.refuse(access)?;
        let began = self.clock.load(Ordering::Relaxed);
        prepare(target, access, began.saturating_sub(target.ended));
        let count = askers.len();
        let members = u64::from(target.world.layout().members);
        if let Some(member) = askers.iter().filter_map(Asker::member).find(|&member| u64::from(member) >= members) {
            let why = format!("the target has {members} members");
            return Err(machine::Error::refused(format!("member {member}"), why, "count them from 0"));
        }
        let member_size = target.size / members;
        let mut run = Run {
            world: &mut target.world,
            askers,
            began,
            size: target.size,
            left: count,
            done: vec![false; count],
            wakes: vec![Nanos::MAX; count],
            syncing: Vec::new(),
            synced: Vec::new(),
            member_size,
            last: 0,
        };
        run.go();
        let (left, elapsed_ns) = (run.left, run.last);
        if left > 0 {
            let why = format!("{}: {left} streams wait for something that will never happen", self.setup.name);
            return Err(machine::Error::Unsupported(why));
        }
        let world = &mut target.world;
        let sync_ns = access.sync_at_end.then(|| synchronise(world) - elapsed_ns);
        target.ran = elapsed_ns + sync_ns.unwrap_or(0);
        target.ended = began + target.ran;
        self.clock.store(target.ended, Ordering::Relaxed);
        Ok(usage(world, began, elapsed_ns, sync_ns))
    }

    fn restripe(&self, target: &mut Target, members: &[u32], chunk: u64) -> machine::Result<()> {
        if let Some(member) = members.iter().find(|&&member| member >= self.setup.disks) {
            let what = format!("member {member}");
            return Err(machine::Error::refused(what, format!("there are {} disks", self.setup.disks), "name them from 0"));
        }
        if members.is_empty() || chunk < 512 || !chunk.is_multiple_of(512) {
            return Err(machine::Error::refused(
                format!("a chunk of {chunk} bytes"),
                "no stripe",
                "give members and a multiple of 512 bytes",
            ));
        }
        *target = self.target(members.to_vec(), chunk, None);
        Ok(())
    }

    fn memory(&self, _for_ns: Nanos) -> Vec<MemoryUse> {
        let rates = &self.setup.description.memory.rates;
        rates.iter().map(|rate| MemoryUse { kind: rate.kind.clone(), threads: 1, rates_bytes_per_s: vec![rate.bytes_per_s] }).collect()
    }
}

/// Brings everything to stable storage: the world's time when it is there.
fn synchronise(world: &mut World) -> Nanos {
    world.flush();
    while !world.clean() {
        let Some(event) = world.kernel.take() else { break };
        world.handle(event);
    }
    world.flush_devices()
}

fn usage(world: &mut World, began: Nanos, elapsed_ns: Nanos, sync_ns: Option<Nanos>) -> Usage {
    let end = world.kernel.now();
    for member in &mut world.members {
        if member.flying > 0 {
            member.busy += end - member.busy_since;
            member.busy_since = end;
        }
    }
    let mut device = world.device;
    device.busy_ns = world.members.iter().map(|member| member.busy).sum::<Nanos>() / world.members.len().max(1) as u64;
    let busy = world.cpu.busy;
    Usage {
        began,
        elapsed_ns,
        sync_ns,
        cpu: CpuTimes { user_ns: 0, system_ns: busy, machine_ns: busy, steal_ns: 0, instructions_user: None },
        device: Some(device),
        block_bytes: Some((device.read_bytes, device.write_bytes)),
        warnings: Vec::new(),
    }
}

impl Member {
    fn new(device: Device) -> Self {
        let queue = device.queue();
        Member { device, waiting: VecDeque::new(), inside: 0, queue, flying: 0, busy_since: 0, busy: 0 }
    }
}

impl Device {
    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Device::Disk(disk) => disk.geometry.sectors() * 512,
            Device::Flash(flash) => flash.drive().capacity_bytes,
            Device::Cloud(cloud) => cloud.volume().capacity_bytes,
            Device::Virtio(virtio) => virtio.disk().capacity_bytes,
        }
    }

    fn queue(&self) -> u32 {
        match self {
            Device::Disk(disk) => disk.queue_limit,
            Device::Flash(flash) => flash.drive().queue,
            Device::Cloud(cloud) => cloud.volume().queue,
            Device::Virtio(virtio) => virtio.disk().queue,
        }
    }

    /// Its parts and how long each worked in a run of `ran`.
    fn parts(&self, ran: Nanos) -> Vec<(&'static str, Nanos)> {
        match self {
            Device::Disk(disk) => vec![("disk mechanics", disk.media_busy.min(ran))],
            Device::Flash(flash) => {
                vec![("flash dies", flash.die_busy), ("drive controller", flash.controller_busy), ("drive link", flash.link_busy)]
            }
            Device::Cloud(cloud) => vec![("volume quota", cloud.limited.min(ran))],
            Device::Virtio(virtio) => vec![("hypervisor workers", virtio.worker_busy), ("hypervisor path", virtio.total_busy)],
        }
    }
}
