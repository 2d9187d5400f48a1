use crate::Result;
use crate::bus::{Bus, Pci, PhaseTimes};
use crate::description::MemoryRate;
use crate::device::disk::geometry::SECTOR;
use crate::device::{ClientLink, Slot};
use crate::ram_cache::RamCache;
use crate::run::{Ended, Run};
use crate::settings::{Setup, split_file};
use crate::shape::Shape;
use crate::utilisation;
use crate::volume::{Layout, Maker};
use crate::world::Controller;
use crate::world::files::VOLUME;
use crate::world::{Member, World};
use machine::{
    Allowance, Capabilities, CpuTimes, DeviceUse, Disturbance, Engine, Error, MachineFacts,
    MemoryKind, MemoryUse, Nanos, NetworkLink, OnFailure, Part, PartUsage, Reap, RequestSource,
    RunOptions, RunUsage, Start, TargetFacts, TargetKind, TargetSpec, client_name, run_allowed,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A simulated computer.
///
/// ```
/// use machine::{Machine, TargetSpec};
///
/// let twin = twin::Twin::from_name("gateway-1997,disks=2,stripe=64k")?;
/// let target = twin.open(&TargetSpec::default()).unwrap();
/// let layers = twin.target_facts(&target).layers;
/// assert!(layers.iter().any(|layer| layer.advertised_bytes_per_s.is_some()));
/// # Ok::<(), twin::Error>(())
/// ```
pub struct Twin {
    setup: Setup,
    clock: AtomicU64,
    computer: Arc<Mutex<Computer>>,
    allowance: Option<Arc<Allowance>>,
}

/// Of a resource in the last run.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Utilisation {
    pub resource: String,
    /// From 0 to 1; the maximum over several of a kind.
    pub share: f64,
}

struct Computer {
    world: World,
    ended: Nanos,
    ran: Nanos,
}

fn lock(computer: &Mutex<Computer>) -> MutexGuard<'_, Computer> {
    computer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open file: the volume, or an extent of it.
pub struct Target {
    computer: Arc<Mutex<Computer>>,
    file: u32,
}

impl Drop for Target {
    fn drop(&mut self) {
        self.lock().world.close(self.file);
    }
}

impl Target {
    /// Of the last run, per bus.
    pub fn bus_phases(&self) -> Vec<PhaseTimes> {
        self.lock().world.buses.iter().map(|bus| bus.phases).collect()
    }

    /// In the last run.
    pub fn events(&self) -> u64 {
        self.lock().world.kernel.handled()
    }

    /// Virtual time of the last run, including syncs.
    pub fn ran_ns(&self) -> Nanos {
        self.lock().ran
    }

    /// Busiest first. The first is the bottleneck, unless serial waiting left all idle.
    pub fn utilisation(&self) -> Vec<Utilisation> {
        let computer = self.lock();
        let resources = utilisation::resources(&computer.world, computer.ran).into_iter();
        resources
            .map(|one| Utilisation { resource: one.name, share: one.busy_percent / 100.0 })
            .collect()
    }

    /// Share of the bytes requested in the last run.
    pub fn ram_cache_hits(&self) -> Option<f64> {
        self.lock()
            .world
            .ram_cache
            .as_ref()
            .map(|cache| cache.found as f64 / cache.asked.max(1) as f64)
    }

    fn lock(&self) -> MutexGuard<'_, Computer> {
        lock(&self.computer)
    }
}

impl Twin {
    /// Builds the machine of `NAME[,SETTING=VALUE]...` (prefix `twin:` optional); NAME is a preset
    /// or a `.toml` file.
    pub fn from_name(name: &str) -> Result<Twin> {
        Ok(Twin::new(Setup::parse(name)?))
    }

    pub fn new(setup: Setup) -> Twin {
        let computer = Computer { world: world(&setup), ended: 0, ran: 0 };
        let computer = Arc::new(Mutex::new(computer));
        Twin { setup, clock: AtomicU64::new(0), computer, allowance: None }
    }

    #[must_use]
    pub fn allowing(self, allowance: Arc<Allowance>) -> Twin {
        Twin { allowance: Some(allowance), ..self }
    }

    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    pub fn volume(&self) -> Target {
        Target { computer: self.computer.clone(), file: VOLUME }
    }

    /// Opens or creates a file, by default with a quarter of the free space.
    ///
    /// # Errors
    /// The existing file has another size.
    pub fn file(&self, name: Option<&str>, size: Option<u64>) -> machine::Result<Target> {
        let file = lock(&self.computer).world.files.open(name, size)?;
        Ok(Target { computer: self.computer.clone(), file })
    }

    fn refused(&self, what: &str, why: &str, hint: &str) -> Error {
        Error::refused(format!("{what} on {}", self.setup.name), why, hint)
    }

    fn has_calls(&self) -> bool {
        self.setup.description.processor.call_us > 0.0
    }

    fn check<S: RequestSource>(&self, part: &Part<'_, Target, S>) -> machine::Result<()> {
        let engine = part.access.engine;
        if Shape::of_engine(engine).is_some() && !self.has_calls() {
            return Err(self.refused(
                &format!("engine {engine}"),
                "this machine does not state the cost of a Windows system call",
                "take threads, io_uring or libaio, or a machine such as gateway-1997",
            ));
        }
        let (what, why, hint) = if part.access.engine.is_mapped() {
            (
                "engine mmap",
                "mapped files are not simulated",
                "take sync, threads, io_uring or libaio",
            )
        } else if !part.access.engine.does_io() {
            (
                "engine null",
                "nothing of a simulated machine is this computer's own ceiling",
                "take it on this computer",
            )
        } else if !matches!(part.access.reap, Reap::AtLeast(1) | Reap::Poll) {
            (
                "reap",
                "the simulated processor handles each completion at once, as polling does",
                "leave it out",
            )
        } else if part.access.kernel_polls {
            (
                "completions that the kernel polls for",
                "the simulated processor handles each completion at once, as polling does",
                "leave it out",
            )
        } else if part.scheduling.io_priority.is_some() || part.scheduling.nice.is_some() {
            ("priorities", "a simulated machine ignores priorities", "leave out the priorities")
        } else if !part.scheduling.processors.is_empty() {
            (
                "processors",
                "streams cannot be bound to processors of a simulated machine",
                "leave out the processors",
            )
        } else if part.sources.iter().any(RequestSource::checks) {
            (
                "checking what is read",
                "a simulated machine keeps no data",
                "leave the verification out",
            )
        } else if part.targets.iter().any(|target| !Arc::ptr_eq(&target.computer, &self.computer)) {
            ("a target of another machine", "it is not on this one", "open it on this one")
        } else {
            return Ok(());
        };
        Err(self.refused(what, why, hint))
    }
}

pub(crate) fn world(setup: &Setup) -> World {
    let (description, model) = (&setup.description, setup.drive().model());
    let on_bus = setup.disks.div_ceil(setup.buses).max(description.volume.bus_disks);
    let slot =
        |number| Slot { number, bus: number / on_bus, wce: setup.wce, clients: setup.clients };
    let members: Vec<Member> =
        (0..setup.disks).map(|number| Member::new(model.build(slot(number)))).collect();
    let kind = model.bus().map(|name| &description.buses[name]);
    let buses =
        kind.map_or_else(Vec::new, |kind| (0..setup.buses).map(|_| Bus::new(kind)).collect());
    let member_bytes =
        members.iter().map(|member| member.device.capacity_bytes()).min().unwrap_or(0);
    let layout = Layout {
        kind: setup.volume,
        members: setup.disks,
        chunk: setup.stripe,
        start: setup.start,
        failed: setup.failed.map(|disk| (disk, 0)),
        member_bytes,
    };
    let pci = Pci::new(description.pci_bytes_per_s);
    let pci = match &description.adapter {
        Some(adapter) => pci.behind(adapter, setup.buses),
        None => pci,
    };
    let mut world = World::new(
        description.file_system.clone(),
        &description.processor,
        pci,
        buses,
        members,
        layout,
    );
    let copy = || description.memory.rates().into_iter().find(|rate| rate.kind == MemoryKind::Copy);
    world.ram_cache = setup.ram_cache.map(|(bytes, policy)| {
        RamCache::new(bytes, policy, copy().map_or(1e9, |rate| rate.bytes_per_s))
    });
    world.temporary = setup.temporary;
    world.shape = setup.shape;
    world.rebuilds = setup.rebuild;
    world.array = kind.filter(|_| setup.maker == Maker::Array).map(Controller::new);
    world.maker = setup.maker;
    world
}

impl Twin {
    fn open_one(&self, spec: &TargetSpec) -> machine::Result<Target> {
        if let Some(place) = spec.destroy.first() {
            let why = "a simulated machine has nothing to destroy";
            return Err(Error::refused(
                place.display().to_string(),
                why,
                "leave --destroy-data out",
            ));
        }
        if let [first, second, ..] = spec.places.as_slice() {
            let what = format!("{} and {} as one target", first.display(), second.display());
            return Err(Error::refused(
                what,
                "a simulated machine stripes its own disks",
                "give one name, with disks=N",
            ));
        }
        let place = spec.places.first().map(|place| place.to_string_lossy()).unwrap_or_default();
        if spec.raid5.is_some() {
            let why = "a simulated machine's disks form what its name says";
            return Err(Error::refused(
                place,
                why,
                "give the name with disks=N,raid=5 and, if you like, failed=DISK",
            ));
        }
        let mut target = match (split_file(&place).1, spec.size) {
            (None, None) => self.volume(),
            (name, size) => self.file(name, size)?,
        };
        if spec.chunk != 0 && self.setup.disks > 1 {
            let all: Vec<u32> = (0..self.setup.disks).collect();
            machine::Machine::restripe(self, &mut target, &all, spec.chunk)?;
        }
        Ok(target)
    }

    fn run_parts<S: RequestSource>(
        &self,
        parts: &mut [Part<'_, Target, S>],
        options: RunOptions,
    ) -> machine::Result<RunUsage> {
        if options.count_instructions {
            let why = "a simulated processor has no counter";
            return Err(self.refused(
                "counting instructions",
                why,
                "ask for processor time instead",
            ));
        }
        if options.locked_bytes > 0 {
            let why = "a simulated machine's memory is set by its model";
            return Err(self.refused("locking memory", why, "use a machine with less of it"));
        }
        let mut checked = Vec::with_capacity(parts.len());
        for part in &*parts {
            let one = self.check(part);
            checked.push(if options.on_failure == OnFailure::EndRun { Ok(one?) } else { one });
        }
        if let Start::At(then) = options.start {
            self.clock.fetch_max(then, Ordering::Relaxed);
        }
        let began = machine::Machine::now(self);
        let mut computer = lock(&self.computer);
        let Computer { world, ended, ran } = &mut *computer;
        world.rest(began.saturating_sub(*ended), *ran);
        let files: Vec<Vec<u32>> = parts
            .iter()
            .map(|part| part.targets.iter().map(|target| target.file).collect())
            .collect();
        if self.setup.clients > 1 {
            let cores = self.setup.description.processor.cores;
            world.with_clients(options.clients.max(1), cores);
        }
        world.rebuild_next();
        let mut run = Run::new(world, began, options.on_failure);
        for ((part, files), _) in
            parts.iter_mut().zip(&files).zip(&checked).filter(|(_, checked)| checked.is_ok())
        {
            let sources = (&mut *part.sources, options.clients);
            run.add(&part.access, &part.buffering, files.clone(), sources);
        }
        let mut outcomes = run.go()?.into_iter();
        let outcomes: Vec<machine::Result<Ended>> = checked
            .into_iter()
            .map(|checked| checked.and_then(|()| outcomes.next().unwrap_or(Ok(Ended::default()))))
            .collect();
        let took = |outcome: &Ended| outcome.elapsed_ns + outcome.sync_ns.unwrap_or(0);
        *ran = outcomes.iter().flatten().map(took).max().unwrap_or(0);
        *ended = began + *ran;
        self.clock.store(*ended, Ordering::Relaxed);
        Ok(usage(world, began, *ran, &files, outcomes))
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
        if self.has_calls() {
            settings.insert("shape".to_owned(), self.setup.shape.name().to_owned());
        }
        settings.insert("wce".to_owned(), if self.setup.wce { "on" } else { "off" }.to_owned());
        MachineFacts {
            name: format!("twin:{}", self.setup.name),
            simulated: true,
            system: d.system.clone(),
            processor: d.processor.name.clone(),
            processors: d.processor.cores.saturating_mul(self.setup.clients),
            memory_bytes: d.memory.bytes,
            virtualization: None,
            processor_quota: None,
            settings,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let engines = Engine::ALL
            .into_iter()
            .filter(|engine| engine.does_io() && !engine.is_mapped())
            .filter(|engine| self.has_calls() || Shape::of_engine(*engine).is_none())
            .collect();
        Capabilities { engines, noisy: false, counts_instructions: false, traces_requests: false }
    }

    fn now(&self) -> Nanos {
        self.clock.load(Ordering::Relaxed)
    }

    fn pause(&self, for_ns: Nanos) {
        self.clock.fetch_add(for_ns, Ordering::Relaxed);
    }

    fn open(&self, spec: &TargetSpec) -> machine::Result<Target> {
        self.open_checked(spec, |_| Ok(()))
    }

    fn open_all(
        &self,
        specs: &[TargetSpec],
        check: &mut dyn FnMut(&[TargetFacts]) -> machine::Result<()>,
    ) -> machine::Result<Vec<Target>> {
        let opened: machine::Result<Vec<_>> =
            specs.iter().map(|spec| self.open_one(spec)).collect();
        let targets = opened?;
        let facts: Vec<TargetFacts> =
            targets.iter().map(|target| self.target_facts(target)).collect();
        check(&facts)?;
        if let Some(allowance) = &self.allowance {
            allowance.opening(&facts, 0)?;
        }
        Ok(targets)
    }

    fn target_facts(&self, target: &Target) -> TargetFacts {
        let computer = target.lock();
        let file = &computer.world.files[target.file];
        let layout = file.layout;
        let name = file.name.as_ref().map(|name| format!("#{name}")).unwrap_or_default();
        let layers = crate::layers::layers(&self.setup, &layout);
        let bursts = layers
            .iter()
            .flat_map(|layer| layer.facts.bursts.iter().map(|burst| burst.sentence(&layer.name)));
        let mut warnings = vec!["simulated: these are predictions, not measurements".to_owned()];
        warnings.extend(bursts);
        let name = format!("twin:{}{name}", self.setup.name);
        TargetFacts {
            direct_align_bytes: SECTOR as u32,
            block_bytes: self.setup.description.file_system.block_bytes,
            members: layout.members,
            chunk_bytes: (layout.members > 1).then_some(layout.chunk),
            devices: file
                .members
                .iter()
                .map(|member| format!("{}-{member}", self.setup.drive))
                .collect(),
            layers,
            warnings,
            ..TargetFacts::new(name, TargetKind::Simulated, file.size)
        }
    }

    fn run<S: RequestSource>(
        &self,
        parts: &mut [Part<'_, Target, S>],
        options: RunOptions,
    ) -> machine::Result<RunUsage> {
        match self.allowance.as_deref().filter(|allowance| allowance.is_limited()) {
            Some(allowance) => {
                run_allowed(allowance, parts, |parts| self.run_parts(parts, options))
            }
            None => self.run_parts(parts, options),
        }
    }

    fn clients(&self) -> u32 {
        self.setup.clients
    }

    fn network(&self) -> Vec<NetworkLink> {
        let computer = lock(&self.computer);
        let links = computer.world.members.iter().map(|member| member.device.client_links());
        let both = |mut sums: Vec<ClientLink>, one: Vec<ClientLink>| {
            for (sum, link) in sums.iter_mut().zip(one) {
                sum.sent_bytes += link.sent_bytes;
                sum.received_bytes += link.received_bytes;
                sum.bytes_per_s += link.bytes_per_s;
            }
            sums
        };
        let links = links.reduce(both).unwrap_or_default().into_iter().enumerate();
        links
            .map(|(client, link)| NetworkLink {
                name: client_name(client),
                received_bytes: link.received_bytes,
                sent_bytes: link.sent_bytes,
                speed_bytes_per_s: link.bytes_per_s as u64,
            })
            .collect()
    }

    fn may_write(&self) -> u64 {
        self.allowance.as_ref().map_or(u64::MAX, |allowance| allowance.left())
    }

    fn discard(&self, target: &Target) -> machine::Result<()> {
        target.lock().world.discard();
        Ok(())
    }

    fn celsius(&self, target: &Target) -> Option<f64> {
        target.lock().world.celsius()
    }

    fn restripe(&self, target: &mut Target, members: &[u32], chunk: u64) -> machine::Result<()> {
        let disks = self.setup.disks;
        let again = |(at, member): &(usize, &u32)| members[..*at].contains(member);
        let (what, why, hint) =
            if let Some(member) = members.iter().find(|&&member| member >= disks) {
                (format!("member {member}"), format!("there are {disks} disks"), "name them from 0")
            } else if let Some((at, member)) = members.iter().enumerate().find(again) {
                (
                    format!("member {member}"),
                    format!("it is named again at place {}", at + 1),
                    "name each once",
                )
            } else if members.is_empty() {
                (
                    "a stripe without members".to_owned(),
                    "a stripe needs members".to_owned(),
                    "name at least one",
                )
            } else if members.len() > 1 && (chunk < SECTOR || !chunk.is_multiple_of(SECTOR)) {
                let why = "a disk takes whole blocks".to_owned();
                (format!("a chunk of {chunk} bytes"), why, "give a multiple of 512 bytes")
            } else {
                let chunk = if members.len() > 1 { chunk } else { self.setup.stripe };
                target.file = lock(&self.computer).world.restripe(target.file, members, chunk)?;
                return Ok(());
            };
        Err(Error::refused(what, why, hint))
    }

    fn memory(&self, _for_ns: Nanos) -> machine::Result<Vec<MemoryUse>> {
        let one = |rate: MemoryRate| MemoryUse {
            kind: rate.kind,
            threads: 1,
            rates_bytes_per_s: vec![rate.bytes_per_s],
        };
        Ok(self.setup.description.memory.rates().into_iter().map(one).collect())
    }
}

fn both(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    one.zip(other).map(|(one, other)| one + other).or(one).or(other)
}

fn sum(members: impl Iterator<Item = DeviceUse>) -> DeviceUse {
    members.fold(DeviceUse::default(), |sum, one| DeviceUse {
        reads: sum.reads + one.reads,
        read_bytes: sum.read_bytes + one.read_bytes,
        writes: sum.writes + one.writes,
        write_bytes: sum.write_bytes + one.write_bytes,
        merges: 0,
        busy_ns: sum.busy_ns + one.busy_ns,
        weighted_ns: sum.weighted_ns + one.weighted_ns,
        flushes: sum.flushes + one.flushes,
        queue_ns: both(sum.queue_ns, one.queue_ns),
        link_ns: both(sum.link_ns, one.link_ns),
        media_ns: both(sum.media_ns, one.media_ns),
    })
}

fn usage(
    world: &World,
    began: Nanos,
    ran: Nanos,
    files: &[Vec<u32>],
    outcomes: Vec<machine::Result<Ended>>,
) -> RunUsage {
    let used = |number: u32| {
        let member = &world.members[number as usize];
        let used = member.usage(world.kernel.now());
        let (link_ns, media_ns) = utilisation::link_and_media(world, number, ran);
        DeviceUse { link_ns, media_ns, ..used }
    };
    let part = |files: &[u32], Ended { elapsed_ns, sync_ns }: Ended| {
        let members = world.files.members(files);
        let device = sum(members.iter().map(|&member| used(member)));
        let device = DeviceUse { busy_ns: device.busy_ns / members.len().max(1) as u64, ..device };
        PartUsage { elapsed_ns, sync_ns, device: Some(device), ..PartUsage::default() }
    };
    let all = sum((0..world.members.len() as u32).map(used));
    let (busy, charged) = (world.cpu.busy, world.cpu.busy - world.cpu.uncharged);
    RunUsage {
        began,
        since_start_ns: began,
        waited_ns: 0,
        cpu: CpuTimes {
            user_ns: 0,
            system_ns: charged,
            machine_ns: busy,
            steal_ns: 0,
            instructions_user: None,
        },
        block_bytes: Some((all.read_bytes, all.write_bytes)),
        resources: utilisation::resources(world, ran),
        warnings: Vec::new(),
        paused: None,
        interrupted: false,
        disturbance: Disturbance::default(),
        block_times: Vec::new(),
        parts: files
            .iter()
            .zip(outcomes)
            .map(|(files, outcome)| Ok(part(files, outcome?)))
            .collect(),
    }
}
