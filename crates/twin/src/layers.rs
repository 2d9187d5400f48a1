use crate::advertised::formula;
use crate::device::Drives;
use crate::settings::Setup;
use crate::volume::{Kind, Layout, Maker};

use machine::{Layer, LayerKind};

fn layer(kind: LayerKind, name: impl Into<String>, rate: Option<f64>) -> Layer {
    Layer {
        advertised_bytes_per_s: rate,
        advertised_formula: formula(1, rate),
        ..Layer::new(kind, name)
    }
}

fn set(layer: &mut Layer, key: &str, value: impl ToString) {
    layer.settings.insert(key.to_owned(), value.to_string());
}

pub(crate) fn layers(setup: &Setup, layout: &Layout) -> Vec<Layer> {
    let d = &setup.description;
    let mut file_system = layer(LayerKind::FileSystem, &d.file_system.name, None);
    set(&mut file_system, "block_bytes", d.file_system.block_bytes);
    set(&mut file_system, "cache_bytes", d.file_system.cache_bytes);
    let read_ahead = u64::from(d.file_system.read_ahead_units) * d.file_system.unit_bytes;
    set(&mut file_system, "read_ahead_bytes", read_ahead);
    file_system.facts.read_ahead_bytes = Some(read_ahead);
    file_system.facts.follows_hints = d.file_system.sequential_hint_factor > 1;
    if d.file_system.sequential_hint_factor > 1 {
        set(&mut file_system, "sequential_hint_factor", d.file_system.sequential_hint_factor);
    }
    let mut layers = vec![file_system];
    if let Some((bytes, _)) = setup.ram_cache {
        let mut cache = layer(LayerKind::Volume, "RAM cache", None);
        set(&mut cache, "bytes", bytes);
        layers.push(cache);
    }
    if layout.members > 1 {
        let name = match layout.kind {
            Kind::Stripe => "stripe",
            Kind::Mirror => "mirror",
            Kind::Raid10 => "RAID 10",
            Kind::Raid5 => "RAID 5",
        };
        let name = match setup.maker {
            Maker::Host if layout.kind == Kind::Raid5 => format!("{name} by the host"),
            Maker::Host => name.to_owned(),
            Maker::Adapter => format!("{name} by the adapter"),
            Maker::Array => format!("{name} by an array"),
        };
        let mut volume = layer(LayerKind::Volume, name, None);
        set(&mut volume, "members", layout.members);
        set(&mut volume, "chunk_bytes", layout.chunk);
        if let Some((failed, _)) = layout.failed {
            set(&mut volume, "failed_member", failed);
        }
        layers.push(volume);
    }
    if let Some(rate) = d.memory.bus_advertised_bytes_per_s {
        layers.push(layer(LayerKind::MemoryBus, "memory bus", Some(rate)));
    }
    if let Some(rate) = d.pci_advertised_bytes_per_s {
        layers.push(layer(LayerKind::Pci, "PCI", Some(rate)));
    }
    if let Some(adapter) = d.adapter.as_ref().filter(|_| setup.drive().model().bus().is_some()) {
        let count = setup.buses.div_ceil(adapter.buses);
        let rate = adapter.advertised_bytes_per_s.map(|rate| rate * f64::from(count));
        let name =
            if count == 1 { adapter.name.clone() } else { format!("{count} x {}", adapter.name) };
        let all = layer(LayerKind::Adapter, name, rate);
        layers.push(Layer { advertised_formula: formula(count, rate), ..all });
    }
    let drives = Drives {
        name: &setup.drive,
        count: layout.members,
        buses: setup.buses,
        wce: setup.wce,
        clients: setup.clients,
        bus_kinds: &d.buses,
    };
    layers.extend(setup.drive().model().layers(&drives));
    layers
}
