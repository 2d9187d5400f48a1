use crate::bus::{Bus, Phase};
use crate::world::World;
use machine::{Nanos, PhaseUse, ResourceKind, ResourceUse};
use std::collections::BTreeMap;

/// Busiest first; of several of a kind, only the busiest.
pub(crate) fn resources(world: &World, ran: Nanos) -> Vec<ResourceUse> {
    let of_run = |busy: Nanos| busy as f64 / ran.max(1) as f64;
    let mut all = vec![("processor", of_run(world.cpu.busy) / f64::from(world.cpu.cores()))];
    if world.pci.busy() > 0 {
        all.push(("PCI", of_run(world.pci.busy())));
    }
    all.extend(world.pci.adapter_busy().map(|busy| ("adapter", of_run(busy))));
    let busiest = world.buses.iter().max_by_key(|bus| bus.worked()).map(|bus| ("bus", bus));
    let buses: Vec<(&str, &Bus)> = busiest
        .into_iter()
        .chain(world.array.iter().map(|array| ("bus to the array", &array.bus)))
        .collect();
    all.extend(buses.iter().map(|(name, bus)| (*name, of_run(bus.worked()))));
    let mut parts: BTreeMap<&'static str, f64> = BTreeMap::new();
    for member in &world.members {
        for (name, busy) in member.device.busy(ran) {
            let share = parts.entry(name).or_default();
            *share = share.max(of_run(busy));
        }
    }
    all.extend(parts);
    let mut all: Vec<ResourceUse> = all
        .into_iter()
        .map(|(name, share)| ResourceUse {
            name: name.to_owned(),
            kind: kind(name),
            busy_percent: share.min(1.0) * 100.0,
            phases: buses
                .iter()
                .filter(|(bus, _)| *bus == name)
                .flat_map(|(_, bus)| phases(bus))
                .collect(),
        })
        .collect();
    all.sort_by(|a, b| b.busy_percent.total_cmp(&a.busy_percent));
    all
}

/// A shared bus counts for each device by its commands.
pub(crate) fn link_and_media(
    world: &World,
    number: u32,
    ran: Nanos,
) -> (Option<Nanos>, Option<Nanos>) {
    let commands = |number: usize| world.members[number].commands_done();
    let parts = world.members[number as usize].device.busy(ran);
    let of = |kind: ResourceKind, name: &str| {
        parts
            .iter()
            .find(|(part, _)| self::kind(part) == kind && *part == name)
            .map(|(_, busy)| *busy)
    };
    let all: u64 = (0..world.members.len()).map(commands).sum();
    let bus: Nanos = world.buses.iter().map(Bus::worked).sum();
    let shared = (bus > 0 && all > 0).then(|| {
        (u128::from(bus) * u128::from(commands(number as usize)) / u128::from(all)) as Nanos
    });
    let link = of(ResourceKind::Link, "drive link")
        .or_else(|| of(ResourceKind::Network, "network"))
        .or(shared);
    // Many dies of an SSD work in parallel, so their busy time is not the time of a request.
    (link, of(ResourceKind::Media, "disk mechanics"))
}

fn phases(bus: &Bus) -> Vec<PhaseUse> {
    let (times, busy) = (bus.phases, bus.phases.busy());
    let passed = Phase::ALL.into_iter().filter(|&phase| times.get(phase) > 0);
    passed
        .map(|phase| PhaseUse {
            name: phase.name().to_owned(),
            percent: times.get(phase) as f64 / busy as f64 * 100.0,
        })
        .collect()
}

fn kind(name: &str) -> ResourceKind {
    match name {
        "processor" => ResourceKind::Processor,
        "PCI" => ResourceKind::Pci,
        "adapter" => ResourceKind::Adapter,
        "bus" | "bus to the array" => ResourceKind::Bus,
        "disk mechanics" | "flash dies" => ResourceKind::Media,
        "drive link" => ResourceKind::Link,
        "network" | "client's link" => ResourceKind::Network,
        "volume quota" => ResourceKind::Throttle,
        _ => ResourceKind::Device,
    }
}
