//! The layers under a path, down to the bus.

use super::block::{self, Class};
use super::{Mount, Roots, file_system, link, mounts, throttle};
use machine::{Layer, LayerKind, Result, Share};
use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    pub name: String,
    pub dev_t: (u32, u32),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockDevices {
    /// The file system's devices, or the named one; may be partitions.
    pub sits_on: Vec<BlockDevice>,
    /// Devices whose counters measure a workload: whole disks, members of volumes, and loop
    /// devices, whose backing file a cache may serve.
    pub counted: Vec<BlockDevice>,
    /// The lowest, including those under loop devices' files.
    pub deepest: Vec<BlockDevice>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Under {
    /// From the top down; a volume's members one after the other.
    pub layers: Vec<Layer>,
    pub devices: BlockDevices,
    /// The maximum; 0 without devices.
    pub physical_block_bytes: u32,
    /// The file system's; 0 without one.
    pub block_bytes: u32,
    pub in_memory: bool,
    pub warnings: Vec<String>,
}

/// Fails if the path is on no visible mount.
pub fn under(roots: &Roots, path: &Path) -> Result<Under> {
    let mut walk = Walk::new(roots);
    match device_of_node(roots, path) {
        Some(name) => walk.sits_on(&name),
        // `/dev/null` has no layers.
        None if roots.is_this_machine()
            && std::fs::metadata(path)
                .is_ok_and(|metadata| metadata.file_type().is_char_device()) =>
        {
            walk.under.in_memory = true;
        }
        None => {
            let mount = mounts::mount_of(roots, path)?;
            walk.under.in_memory = mount.in_memory();
            walk.file_system(&mount, path);
        }
    }
    Ok(walk.finish())
}

/// Starts at the top.
pub fn layers_under(roots: &Roots, path: &Path) -> Result<Vec<Layer>> {
    Ok(under(roots, path)?.layers)
}

/// Starts with the device itself (`sda1`).
pub fn under_device(roots: &Roots, name: &str) -> Under {
    let mut walk = Walk::new(roots);
    walk.sits_on(name);
    walk.finish()
}

pub fn block_devices_of(roots: &Roots, path: &Path) -> Result<BlockDevices> {
    Ok(under(roots, path)?.devices)
}

pub(super) fn name_of_number(roots: &Roots, dev_t: (u32, u32)) -> Option<String> {
    super::link_name(roots.sys.join(format!("dev/block/{}:{}", dev_t.0, dev_t.1)))
}

pub(super) fn device_of_node(roots: &Roots, path: &Path) -> Option<String> {
    if roots.is_this_machine() {
        let metadata = std::fs::metadata(path)
            .ok()
            .filter(|metadata| metadata.file_type().is_block_device())?;
        return name_of_number(roots, (libc::major(metadata.rdev()), libc::minor(metadata.rdev())));
    }
    // A recorded tree has no device nodes, but has symbolic links to them (`/dev/mapper/x ->
    // ../dm-0`).
    let node = roots.resolve(path);
    let below = node.strip_prefix(&roots.dev).ok()?;
    let name = super::link_name(&node).unwrap_or_else(|| below.to_string_lossy().replace('/', "!"));
    roots.sys.join("class/block").join(&name).exists().then_some(name)
}

const NOTHING: Share = Share { reads: 0.0, writes: 0.0 };

pub(crate) fn join(layers: &mut Vec<Layer>, layer: Layer) {
    match layers.iter_mut().find(|known| known.is_same(&layer)) {
        Some(known) => known.share = known.share.plus(layer.share),
        None => layers.push(layer),
    }
}

/// raid1 of md copies to every member, that of btrfs to two; members that take turns take all
/// bytes.
fn member_share(level: Option<&str>, members: usize, is_md: bool) -> Share {
    let count = members as f64;
    // Copies of each byte; members' worth of parity.
    let (copies, parity) = match level.unwrap_or_default() {
        "raid0" => (1.0, 0.0),
        "raid1" => (if is_md { count } else { 2.0 }, 0.0),
        "raid1c3" => (3.0, 0.0),
        "raid1c4" => (4.0, 0.0),
        "raid10" => (2.0, 0.0),
        "raid4" | "raid5" => (1.0, 1.0),
        "raid6" => (1.0, 2.0),
        _ => return Share::ALL,
    };
    if count <= parity {
        return Share::ALL;
    }
    Share { reads: 1.0 / count, writes: copies / (count - parity) }
}

fn network(mount: &Mount) -> BTreeMap<String, String> {
    let reported = [
        "vers",
        "proto",
        "addr",
        "rsize",
        "wsize",
        "nconnect",
        "cache",
        "multichannel",
        "trans",
        "msize",
    ];
    let value = |name: &&str| {
        Some(((*name).to_owned(), mount.option(name).filter(|one| !one.is_empty())?.to_owned()))
    };
    reported.iter().filter_map(value).collect()
}

struct Walk<'a> {
    roots: &'a Roots,
    under: Under,
    /// Each device with the layers below and their share of its bytes.
    visited: Vec<(String, Vec<(usize, Share)>)>,
    share: Share,
    /// Members above take turns or hold metadata: a layer below two of them sees each byte once.
    in_turn: bool,
    /// Loop devices above: requests do not reach layers below one directly.
    loops: u32,
}

impl<'a> Walk<'a> {
    fn new(roots: &'a Roots) -> Self {
        Self {
            roots,
            under: Under::default(),
            visited: Vec::new(),
            share: Share::ALL,
            in_turn: false,
            loops: 0,
        }
    }

    fn finish(mut self) -> Under {
        let number = |device: &BlockDevice| {
            super::number(
                block::directory(self.roots, &device.name).join("queue/physical_block_size"),
            )
        };
        let of_disk = |device: &BlockDevice| {
            number(device).or_else(|| {
                let disk = block::disk_of_partition(self.roots, &device.name)?;
                super::number(block::directory(self.roots, &disk).join("queue/physical_block_size"))
            })
        };
        // Disks that share an adapter repeat its warning.
        let mut reported = std::collections::BTreeSet::new();
        let of_layers = self.under.layers.iter().flat_map(|layer| layer.facts.warnings.clone());
        let all = of_layers.chain(std::mem::take(&mut self.under.warnings));
        self.under.warnings = all.filter(|warning| reported.insert(warning.clone())).collect();
        self.under.physical_block_bytes =
            self.under.devices.sits_on.iter().filter_map(of_disk).max().unwrap_or(0) as u32;
        self.under
    }

    fn file_system(&mut self, mount: &Mount, path: &Path) {
        let reported = file_system::describe(self.roots, mount, path);
        if self.loops == 0 && self.under.block_bytes == 0 {
            self.under.block_bytes = reported.block_bytes;
        }
        self.add(reported.layer);
        match mount.fs_type.as_str() {
            "overlay" => self.overlay(mount),
            "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "afs"
            | "fuse.sshfs" | "fuse.glusterfs" | "fuse.s3fs" | "fuse.rclone" => self.add(Layer {
                settings: network(mount),
                ..Layer::new(LayerKind::Network, format!("{} to {}", mount.fs_type, mount.source))
            }),
            _ => {
                let members = file_system::members(self.roots, mount);
                let level = reported
                    .volume
                    .as_ref()
                    .and_then(|volume| volume.settings.get("data"))
                    .cloned();
                self.add_all(reported.volume);
                let whole = self.share;
                self.share = whole.times(member_share(level.as_deref(), members.len(), false));
                for name in members {
                    self.sits_on(&name);
                }
                self.share = whole;
            }
        }
    }

    /// The upper directory gets writes; else the lowest has most files.
    fn overlay(&mut self, mount: &Mount) {
        let below = mount
            .option("upperdir")
            .or_else(|| mount.option("lowerdir").and_then(|dirs| dirs.rsplit(':').next()));
        // In a container these are paths of the host, and may not exist here.
        let found = below
            .map(Path::new)
            .and_then(|dir| Some((dir, mounts::mount_of(self.roots, dir).ok()?)));
        match found {
            Some((dir, mount)) if mount.fs_type != "overlay" => self.file_system(&mount, dir),
            _ => self.under.warnings.push(format!(
                "the layers under the overlay on {} are not visible from inside this container",
                mount.mount_point.display()
            )),
        }
    }

    fn sits_on(&mut self, name: &str) {
        if self.loops == 0
            && let Some(device) = self.block_device(name)
            && !self.under.devices.sits_on.contains(&device)
        {
            self.under.devices.sits_on.push(device);
        }
        self.device(name);
    }

    fn device(&mut self, name: &str) {
        // Two volumes on one disk, or a recorded tree with a cycle.
        if let Some((_, below)) = self.visited.iter().find(|(visited, _)| visited == name) {
            for &(layer, share) in below {
                let (known, more) = (&mut self.under.layers[layer].share, share.times(self.share));
                *known = if self.in_turn { known.at_least(more) } else { known.plus(more) };
            }
            return;
        }
        let number = self.visited.len();
        self.visited.push((name.to_owned(), Vec::new()));
        let before = self.shares();
        self.describe(name);
        let before = before.chain(std::iter::repeat(NOTHING));
        let brought = self.under.layers.iter().zip(before).enumerate().map(|(layer, (is, was))| {
            let of = |writes| (is.share.of(writes) - was.of(writes)) / self.share.of(writes);
            (layer, Share { reads: of(false), writes: of(true) })
        });
        self.visited[number].1 = brought.filter(|(_, share)| *share != NOTHING).collect();
    }

    fn shares(&self) -> std::vec::IntoIter<Share> {
        self.under.layers.iter().map(|layer| layer.share).collect::<Vec<_>>().into_iter()
    }

    fn describe(&mut self, name: &str) {
        let Some(device) = self.block_device(name) else { return };
        let described = block::describe(self.roots, name);
        match described.class {
            Class::Partition { disk } => {
                self.add(described.layer);
                self.device(&disk);
            }
            Class::Volume { members } => {
                self.add_all(throttle::throttles(self.roots, device.dev_t));
                let level = described.layer.settings.get("level").cloned();
                self.add(described.layer);
                if members.is_empty() {
                    self.bottom(device);
                }
                let (whole, in_turn) = (self.share, self.in_turn);
                let own = member_share(level.as_deref(), members.len(), true);
                self.share = whole.times(own);
                if members.len() > 1 {
                    self.in_turn = own.is_all();
                }
                for member in members {
                    self.device(&member);
                }
                (self.share, self.in_turn) = (whole, in_turn);
            }
            Class::Loop { backing } => {
                self.add_all(throttle::throttles(self.roots, device.dev_t));
                self.add(described.layer);
                self.count(&device);
                self.loops += 1;
                match backing
                    .as_deref()
                    .and_then(|path| Some((path, mounts::mount_of_file_at(self.roots, path)?)))
                {
                    Some((path, mount)) => match device_of_node(self.roots, path) {
                        Some(name) => self.device(&name),
                        None => self.file_system(&mount, path),
                    },
                    None => self.under.devices.deepest.push(device),
                }
                self.loops -= 1;
            }
            Class::Disk => {
                self.add_all(throttle::throttles(self.roots, device.dev_t));
                self.add(described.layer);
                self.add_all(link::links(&block::directory(self.roots, name)));
                self.bottom(device);
            }
        }
    }

    fn bottom(&mut self, device: BlockDevice) {
        self.count(&device);
        if !self.under.devices.deepest.contains(&device) {
            self.under.devices.deepest.push(device);
        }
    }

    fn count(&mut self, device: &BlockDevice) {
        if self.loops == 0 && !self.under.devices.counted.contains(device) {
            self.under.devices.counted.push(device.clone());
        }
    }

    fn block_device(&self, name: &str) -> Option<BlockDevice> {
        let numbers = super::text(block::directory(self.roots, name).join("dev"))?;
        let (major, minor) = numbers.split_once(':')?;
        Some(BlockDevice {
            name: name.to_owned(),
            dev_t: (major.parse().ok()?, minor.parse().ok()?),
        })
    }

    fn add(&mut self, layer: Layer) {
        if let Some(known) =
            self.under.layers.iter_mut().find(|known| self.in_turn && known.is_same(&layer))
        {
            known.share = known.share.at_least(self.share);
            return;
        }
        join(&mut self.under.layers, Layer { share: self.share, ..layer });
    }

    fn add_all(&mut self, layers: impl IntoIterator<Item = Layer>) {
        for layer in layers {
            self.add(layer);
        }
    }
}
