//! The layers under a simulated target, with what each advertises.

use crate::description::Drive;
use crate::settings::Setup;
use crate::volume::Parity;
use crate::world::{Device, World};
use machine::{Layer, LayerKind};
use std::collections::BTreeMap;

fn layer(kind: LayerKind, name: impl Into<String>, rate: Option<f64>) -> Layer {
    Layer { kind, name: name.into(), advertised_bytes_per_s: rate, advertised_iops: None, settings: BTreeMap::new() }
}

fn set(layer: &mut Layer, key: &str, value: impl ToString) {
    layer.settings.insert(key.to_owned(), value.to_string());
}

/// So many of a kind.
fn several(count: u32, name: &str) -> String {
    if count == 1 { name.to_owned() } else { format!("{count} x {name}") }
}

/// From the file system down to the drives.
pub(crate) fn layers(setup: &Setup, world: &World) -> Vec<Layer> {
    let (d, layout) = (&setup.description, world.layout());
    let mut file_system = layer(LayerKind::FileSystem, &d.file_system.name, None);
    set(&mut file_system, "block_bytes", d.file_system.block_bytes);
    set(&mut file_system, "cache_bytes", d.file_system.cache_bytes);
    set(&mut file_system, "read_ahead_bytes", u64::from(d.file_system.read_ahead_units) * d.file_system.unit_bytes);
    let mut layers = vec![file_system];
    if let Some((bytes, _)) = setup.ram_cache {
        let mut cache = layer(LayerKind::Volume, "RAM cache", None);
        set(&mut cache, "bytes", bytes);
        layers.push(cache);
    }
    if layout.members > 1 {
        let name = match layout.parity {
            None => "stripe",
            Some(Parity::Host) => "RAID 5 by the host",
            Some(Parity::Array) => "RAID 5 by an array",
        };
        let mut volume = layer(LayerKind::Volume, name, None);
        set(&mut volume, "members", layout.members);
        set(&mut volume, "chunk_bytes", layout.chunk);
        layers.push(volume);
    }
    if let Some(rate) = d.pci_advertised_bytes_per_s {
        layers.push(layer(LayerKind::Link, "PCI", Some(rate)));
    }
    let members = f64::from(layout.members);
    match setup.drive() {
        Drive::Disk(disk) => {
            let rate = d.buses[&disk.bus].advertised_bytes_per_s * f64::from(setup.buses.min(layout.members));
            layers.push(layer(LayerKind::Link, several(setup.buses.min(layout.members), &disk.bus), Some(rate)));
            let media = world.members.first().and_then(|member| match &member.device {
                Device::Disk(disk) => Some(disk.outer_bytes_per_s()),
                _ => None,
            });
            let mut drive = layer(LayerKind::Disk, several(layout.members, &setup.drive), media.map(|rate| rate * members));
            set(&mut drive, "write_cache", if setup.wce { "on" } else { "off" });
            set(&mut drive, "rotational", 1);
            layers.push(drive);
        }
        Drive::Flash(flash) => {
            let rate = flash.advertised_bytes_per_s * members;
            let mut drive = layer(LayerKind::Disk, several(layout.members, &setup.drive), Some(rate));
            set(&mut drive, "rotational", 0);
            layers.push(drive);
        }
        Drive::Cloud(volume) => {
            let mut disk = layer(LayerKind::Disk, setup.drive.clone(), Some(volume.bytes_per_s * members));
            disk.advertised_iops = Some(volume.iops * members);
            layers.push(disk);
        }
        Drive::Virtio(_) => layers.push(layer(LayerKind::Disk, setup.drive.clone(), None)),
    }
    layers
}
