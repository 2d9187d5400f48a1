use crate::{Layer, LayerKind, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    pub engines: Vec<crate::Engine>,
    /// Runs of one workload differ, so repeats are useful.
    pub noisy: bool,
    pub counts_instructions: bool,
    pub traces_requests: bool,
}

/// Facts about a machine; a field is absent if it could not be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MachineFacts {
    /// Name of the host or of the simulated machine.
    pub name: String,
    pub simulated: bool,
    /// Operating system and kernel release.
    pub system: String,
    pub processor: String,
    /// Number of processors that are online.
    pub processors: u32,
    pub memory_bytes: u64,
    /// The kind of virtualization, if one was detected.
    pub virtualization: Option<String>,
    /// The quota of processor time in processors, if this process has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_quota: Option<f64>,
    /// Settings that affect storage results, by name (`vm.dirty_ratio`, `cpufreq.governor`, ...),
    /// for display.
    pub settings: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A file that halfpower created.
    TestFile,
    File,
    /// One or more directories in which files are created and deleted.
    Directory,
    Device,
    /// Several files or devices as RAID 0 or, with parity, as RAID 5.
    Stripe,
    Simulated,
}

/// Linux admits throttled requests in bursts at this interval; make runs a multiple of it.
pub const THROTTLE_SLICE_NS: Nanos = 100_000_000;

/// Idle time that surely closes a throttle's last slice, with a 10 ms clock tick
/// (block/blk-throttle.c). Of 75 runs of 0.2 s each, 34 were off by 1 to 53 % after 140 to 160 ms,
/// none after 210 to 270 ms.
pub const THROTTLE_REST_NS: Nanos = 2 * THROTTLE_SLICE_NS + 10_000_000;

/// A RAID 5 layout: chunks round robin, with a parity chunk per row, left-symmetric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Raid5 {
    /// Index of the failed member, counted from 0: neither read nor written; its data are computed
    /// from the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// The target replaces the failed member: each write computes the missing data from the others.
    #[serde(default)]
    pub rebuild: bool,
}

/// Properties of an open target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFacts {
    /// Name of the target, as given by the user.
    pub name: String,
    pub kind: TargetKind,
    /// The number of the open file in its file system, if it is one file.
    #[serde(skip)]
    pub file_number: Option<u64>,
    /// Number of bytes that a workload can use.
    pub size_bytes: u64,
    pub writable: bool,
    /// Direct I/O works.
    pub direct: bool,
    pub direct_refused: Option<String>,
    /// Alignment of offset and length for direct I/O.
    pub direct_align_bytes: u32,
    pub physical_block_bytes: u32,
    /// The file system's block; without a file system, the device's physical sector.
    pub block_bytes: u32,
    /// Number of members of a stripe.
    pub members: u32,
    /// Chunk size of a halfpower stripe.
    pub chunk_bytes: Option<u64>,
    /// The layout of a halfpower RAID 5 set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid5: Option<Raid5>,
    /// Buffered I/O reaches nothing below (tmpfs, ramfs).
    pub in_memory: bool,
    /// The lowest block devices.
    pub devices: Vec<String>,
    /// The layers, from the top down.
    pub layers: Vec<Layer>,
    /// Reasons not to trust the target's numbers (compression, a sparse file, ...).
    pub warnings: Vec<String>,
}

impl TargetFacts {
    /// Creates a writable target: direct I/O in 512-byte blocks, one member, no layers.
    pub fn new(name: impl Into<String>, kind: TargetKind, size_bytes: u64) -> TargetFacts {
        TargetFacts {
            name: name.into(),
            kind,
            file_number: None,
            size_bytes,
            writable: true,
            direct: true,
            direct_refused: None,
            direct_align_bytes: 512,
            physical_block_bytes: 512,
            block_bytes: 512,
            members: 1,
            chunk_bytes: None,
            raid5: None,
            in_memory: false,
            devices: Vec::new(),
            layers: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A disk below has heads that move. A virtual disk's claim to rotate means nothing.
    pub fn is_rotating(&self) -> bool {
        let virtual_disk = self.layers.iter().any(|layer| layer.facts.paravirtual);
        let turns = |layer: &Layer| layer.kind == LayerKind::Disk && layer.is_rotational();
        !virtual_disk && self.layers.iter().any(turns)
    }

    pub fn is_throttled(&self) -> bool {
        self.layers.iter().any(|layer| layer.kind == LayerKind::Throttle)
    }

    /// Returns the layer that saturates first, and the target's bytes per second then.
    pub fn narrowest_rate(&self, writes: bool) -> Option<(&Layer, f64)> {
        self.narrowest(|layer| layer.target_rate(writes))
    }

    /// As [`TargetFacts::narrowest_rate`], in requests per second. A device model's random limit
    /// does not limit sequential requests.
    pub fn narrowest_iops(&self, writes: bool, random: bool) -> Option<(&Layer, f64)> {
        let applies = |layer: &Layer| {
            random || !layer.facts.throttle.is_some_and(|throttle| throttle.random_only)
        };
        self.narrowest(|layer| layer.target_iops(writes).filter(|_| applies(layer)))
    }

    fn narrowest(&self, limit: impl Fn(&Layer) -> Option<f64>) -> Option<(&Layer, f64)> {
        let limits = self.layers.iter().filter_map(|layer| Some((layer, limit(layer)?)));
        limits.filter(|one| one.1 > 0.0).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the lowest layer that holds several members, which then form no stripe. Links and
    /// loop devices' file systems do not count.
    pub fn shared_by_members(&self) -> Option<&Layer> {
        // The layers of a simulated volume stand for all of its disks.
        if self.members < 2 || self.kind != TargetKind::Stripe {
            return None;
        }
        let own = 1.0 / f64::from(self.members);
        let mut below_loop = false;
        let shared = self.layers.iter().filter(|layer| {
            let holds = match layer.kind {
                LayerKind::Disk | LayerKind::Network | LayerKind::Partition => true,
                LayerKind::FileSystem | LayerKind::Volume => !below_loop,
                LayerKind::Loop => {
                    below_loop = true;
                    true
                }
                _ => false,
            };
            holds && layer.share.reads > own * 1.5
        });
        shared.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Share;

    #[test]
    fn a_virtual_disk_that_says_it_rotates_does_not() {
        let mut disk = Layer::new(LayerKind::Disk, "vda");
        disk.facts.rotational = Some(true);
        let mut link = Layer::new(LayerKind::Link, "virtio");
        let over = |link: &Layer| TargetFacts {
            layers: vec![disk.clone(), link.clone()],
            ..TargetFacts::new("t", TargetKind::Device, 1 << 30)
        };
        assert!(over(&link).is_rotating());
        link.facts.paravirtual = true;
        assert!(!over(&link).is_rotating());
    }

    fn striped(members: u32, layers: &[(LayerKind, &str, f64)]) -> TargetFacts {
        let layer = |&(kind, name, reads): &(LayerKind, &str, f64)| Layer {
            share: Share { reads, writes: reads },
            ..Layer::new(kind, name)
        };
        TargetFacts {
            block_bytes: 4096,
            members,
            chunk_bytes: Some(65_536),
            layers: layers.iter().map(layer).collect(),
            ..TargetFacts::new("a b", TargetKind::Stripe, 1 << 30)
        }
    }

    #[test]
    fn members_on_one_device_share_it() {
        use LayerKind::{Bus, Disk, FileSystem, Loop};
        let shared = |members, layers: &[(LayerKind, &str, f64)]| {
            striped(members, layers).shared_by_members().map(|layer| layer.name.clone())
        };
        let one_disk = [(FileSystem, "ext4 on /", 1.0), (Disk, "vda", 1.0)];
        assert_eq!(shared(2, &one_disk).as_deref(), Some("vda"));
        assert_eq!(shared(1, &one_disk), None);
        // Two partitions of one disk, and a third member on another disk.
        let two_of_three = [(Disk, "sda", 2.0 / 3.0), (Disk, "sdb", 1.0 / 3.0)];
        assert_eq!(shared(3, &two_of_three).as_deref(), Some("sda"));
        let own = [(Disk, "sda", 0.5), (Bus, "scsi0", 1.0), (Disk, "sdb", 0.5)];
        assert_eq!(shared(2, &own), None, "a bus is not a device");
        let loops =
            [(Loop, "loop0", 0.5), (FileSystem, "tmpfs on /dev/shm", 1.0), (Loop, "loop1", 0.5)];
        assert_eq!(shared(2, &loops), None);
        assert_eq!(
            shared(2, &[(FileSystem, "tmpfs on /tmp", 1.0)]).as_deref(),
            Some("tmpfs on /tmp")
        );
    }
}
