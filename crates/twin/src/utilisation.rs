//! How busy each part of a simulated machine was in a run.

use crate::bus::Bus;
use crate::world::World;
use machine::{Nanos, ResourceKind, ResourceUse};
use std::collections::BTreeMap;

/// The parts of a machine in a run of `ran`, the busiest first; of several of a kind, the busiest one.
pub(crate) fn resources(world: &World, ran: Nanos) -> Vec<ResourceUse> {
    let of_run = |busy: Nanos| busy as f64 / ran.max(1) as f64;
    let mut all = vec![("processor", of_run(world.cpu.busy) / f64::from(world.cpu.cores()))];
    if world.pci.busy() > 0 {
        all.push(("PCI", of_run(world.pci.busy())));
    }
    all.extend(world.pci.adapter_busy().map(|busy| ("adapter", of_run(busy))));
    all.extend(world.buses.iter().map(Bus::worked).max().map(|busy| ("bus", of_run(busy))));
    all.extend(world.array.iter().map(|array| ("bus to the array", of_run(array.bus.worked()))));
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
        })
        .collect();
    all.sort_by(|a, b| b.busy_percent.total_cmp(&a.busy_percent));
    all
}

/// What a part is, by the name that its device model gives it.
fn kind(name: &str) -> ResourceKind {
    match name {
        "processor" => ResourceKind::Processor,
        "PCI" => ResourceKind::Pci,
        "adapter" => ResourceKind::Adapter,
        "bus" | "bus to the array" => ResourceKind::Bus,
        "disk mechanics" | "flash dies" => ResourceKind::Media,
        "drive link" | "network" => ResourceKind::Link,
        "volume quota" => ResourceKind::Throttle,
        _ => ResourceKind::Device,
    }
}
