//! The simulated computer as a machine: the same askers, in virtual time.

use crate::bus::{Bus, Pci, PhaseTimes};
use crate::cloud::Cloud;
use crate::description::Drive;
use crate::disk::Disk;
use crate::disk::geometry::SECTOR;
use crate::flash::Flash;
use crate::ram_cache::RamCache;
use crate::run::Run;
use crate::settings::Setup;
use crate::virtio::Virtio;
use crate::volume::Layout;
use crate::world::{Device, Member, World};
use crate::{Result, settings};
use machine::{
    Access, Allocation, Asker, CacheState, Capabilities, CpuTimes, Engine, MachineFacts, MemoryUse, Nanos, TargetFacts, TargetKind,
    TargetSpec, Usage,
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
    /// Bytes of each member, where the user gave a size.
    member_size: Option<u64>,
    members: Vec<u32>,
    /// Drives that are no members at present, and since when.
    parked: BTreeMap<u32, (Device, Nanos)>,
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
        let devices = members.iter().map(|number| device(&self.setup, *number)).collect();
        let world = self.world(devices, self.setup.stripe);
        Target {
            size: size.unwrap_or(u64::MAX).min(world.layout.bytes()),
            member_size: size.map(|size| size / u64::from(self.setup.disks)),
            world,
            members,
            parked: BTreeMap::new(),
            ended: self.clock.load(Ordering::Relaxed),
            ran: 0,
        }
    }

    fn world(&self, devices: Vec<Device>, stripe: u64) -> World {
        let (setup, description) = (&self.setup, &self.setup.description);
        let built: Vec<Member> = devices.into_iter().map(Member::new).collect();
        let members = built.len() as u32;
        let buses = match setup.drive() {
            Drive::Disk(disk) => (0..setup.buses).map(|_| Bus::new(&description.buses[&disk.bus])).collect(),
            _ => Vec::new(),
        };
        let member_bytes = built.iter().map(|member| member.device.bytes()).min().unwrap_or(0);
        let parity = setup.parity.filter(|_| members >= 3);
        let layout = Layout { members, chunk: stripe, parity, member_bytes };
        let pci = Pci::new(description.pci_bytes_per_s);
        let mut world = World::new(description.file_system.clone(), &description.processor, pci, buses, built, layout);
        let copy = description.memory.rates.iter().find(|rate| rate.kind == "copy").map_or(1e9, |rate| rate.bytes_per_s);
        world.ram_cache = setup.ram_cache.map(|(bytes, policy)| RamCache::new(bytes, policy, copy));
        world.temporary = setup.temporary;
        world
    }

    /// What this machine does not do, it refuses before the run.
    fn refuse<A: Asker>(&self, target: &Target, access: &Access, askers: &[A]) -> machine::Result<()> {
        let refused = |what: &str, why: &str, mend: &str| {
            let what = format!("{what} on {}", self.setup.name);
            Err(machine::Error::refused(what, why.to_owned(), mend.to_owned()))
        };
        if access.engine == Engine::Mmap {
            return refused("engine mmap", "mapped files are not simulated", "take sync, threads, io_uring or libaio");
        }
        if access.engine == Engine::Null {
            return refused("engine null", "nothing of a simulated machine is this computer's own ceiling", "take it on this computer");
        }
        if access.count_instructions {
            return refused("counting instructions", "a simulated processor has no counter", "ask for processor time instead");
        }
        if askers.iter().any(Asker::checks) {
            return refused("checking what is read", "a simulated machine keeps no data", "leave the verification out");
        }
        let members = target.world.layout().members;
        if let Some(member) = askers.iter().filter_map(Asker::member).find(|&member| member >= members) {
            return refused(&format!("member {member}"), &format!("the target has {members} members"), "count them from 0");
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

/// Brings a target into the state that a run asks for. Space that is reserved is as good as written: to give a file its final size first
/// is what spares a write the extension.
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
        let mut target = self.volume(spec.size);
        if spec.chunk != 0 && spec.places.len() <= 1 && self.setup.disks > 1 {
            let all = target.members.clone();
            self.restripe(&mut target, &all, spec.chunk)?;
        }
        Ok(target)
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
            direct_align_bytes: SECTOR as u32,
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
        self.refuse(target, access, askers)?;
        let began = self.clock.load(Ordering::Relaxed);
        prepare(target, access, began.saturating_sub(target.ended));
        let elapsed_ns = Run::new(&mut target.world, askers, access, began, target.size).go()?;
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
        if let Some((at, member)) = members.iter().enumerate().find(|(at, member)| members[..*at].contains(member)) {
            let why = format!("it is named again at place {}", at + 1);
            return Err(machine::Error::refused(format!("member {member}"), why, "name each once"));
        }
        if members.is_empty() {
            return Err(machine::Error::refused("a stripe of no members", "there is nothing to stripe", "name at least one"));
        }
        if members.len() > 1 && (chunk < SECTOR || !chunk.is_multiple_of(SECTOR)) {
            let what = format!("a chunk of {chunk} bytes");
            return Err(machine::Error::refused(what, "a disk takes whole blocks", "give a multiple of 512 bytes"));
        }
        let now = self.now();
        target.world.rest(now.saturating_sub(target.ended));
        let before = std::mem::take(&mut target.world.members);
        target.parked.extend(target.members.iter().zip(before).map(|(number, member)| (*number, (member.device, now))));
        let taken = members.iter().map(|number| match target.parked.remove(number) {
            Some((mut device, since)) => {
                device.rest(now - since);
                device
            }
            None => device(&self.setup, *number),
        });
        let devices = taken.collect();
        target.world = self.world(devices, if members.len() > 1 { chunk } else { self.setup.stripe });
        let size = target.member_size.map_or(u64::MAX, |size| size * members.len() as u64);
        target.size = size.min(target.world.layout.bytes());
        target.members = members.to_vec();
        target.ended = now;
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
            Device::Disk(disk) => disk.geometry.sectors() * SECTOR,
            Device::Flash(flash) => flash.drive().capacity_bytes,
            Device::Cloud(cloud) => cloud.volume().capacity_bytes,
            Device::Virtio(virtio) => virtio.disk().capacity_bytes,
        }
    }

    /// At rest at the start of a new clock, `idle` after its last work.
    pub(crate) fn rest(&mut self, idle: Nanos) {
        match self {
            Device::Disk(disk) => disk.rest(),
            Device::Flash(flash) => flash.rest(idle),
            Device::Cloud(cloud) => cloud.rest(idle),
            Device::Virtio(virtio) => virtio.rest(),
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
