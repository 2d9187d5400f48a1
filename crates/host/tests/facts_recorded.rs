//! Facts about other machines, from their recorded `/sys` and `/proc`.

mod sysfs;

use host::facts::{
    Under, block_devices_of, device_in_use, holders, layers_under, machine_facts, mount_of, under,
    under_device,
};
use machine::{Layer, LayerKind, Share};
use std::path::Path;
use sysfs::Tree;

fn shape(layers: &[Layer]) -> Vec<(LayerKind, &str)> {
    layers.iter().map(|layer| (layer.kind, layer.name.as_str())).collect()
}

fn setting<'a>(layer: &'a Layer, name: &str) -> &'a str {
    layer
        .settings
        .get(name)
        .unwrap_or_else(|| panic!("{} has no {name}: {:?}", layer.name, layer.settings))
}

fn named<'a>(layers: &'a [Layer], start: &str) -> &'a Layer {
    layers
        .iter()
        .find(|layer| layer.name.starts_with(start))
        .unwrap_or_else(|| panic!("no {start} in {:?}", shape(layers)))
}

fn near(layer: &Layer, bytes_per_s: f64) {
    let advertised =
        layer.advertised_bytes_per_s.unwrap_or_else(|| panic!("{} advertises nothing", layer.name));
    assert!(
        (advertised / bytes_per_s - 1.0).abs() < 1e-3,
        "{} advertises {advertised}, not {bytes_per_s}",
        layer.name
    );
}

fn formula(layer: &Layer) -> &str {
    layer
        .advertised_formula
        .as_deref()
        .unwrap_or_else(|| panic!("{} does not show how its rate was computed", layer.name))
}

fn names(devices: &[host::facts::BlockDevice]) -> Vec<&str> {
    devices.iter().map(|device| device.name.as_str()).collect()
}

fn warned(under: &Under, what: &str) -> bool {
    under.warnings.iter().any(|warning| warning.contains(what))
}

#[test]
fn an_nvme_ssd_on_pcie_4() {
    let tree = Tree::new("nvme");
    let reported = under(&tree.roots(), Path::new("/var/lib/file")).unwrap();
    assert_eq!(
        shape(&reported.layers),
        [
            (LayerKind::FileSystem, "xfs on /"),
            (LayerKind::Partition, "nvme0n1p3"),
            (LayerKind::Throttle, "control group /system.slice/database.service on 259:0"),
            (LayerKind::Throttle, "control group /system.slice on 259:0"),
            (LayerKind::Disk, "nvme0n1 (EXAMPLE NVME 1TB)"),
            (LayerKind::Link, "PCIe 4.0 x4"),
        ]
    );
    // 16 GT/s, 128 of 130 bits, 4 lanes, 8 bits per byte.
    near(&reported.layers[5], 16e9 * 4.0 * 128.0 / 130.0 / 8.0);
    assert_eq!(formula(&reported.layers[5]), "PCIe 4.0 x4: 16 GT/s x 4 lanes x 128/130");
    assert_eq!(formula(&reported.layers[2]), "io.max of /system.slice/database.service");
    assert_eq!(setting(&reported.layers[5], "address"), "0000:84:00.0");
    let file_system = &reported.layers[0];
    assert_eq!(
        (
            setting(file_system, "atime"),
            setting(file_system, "sunit"),
            setting(file_system, "discard")
        ),
        ("noatime", "256", "no")
    );
    let partition = &reported.layers[1];
    assert_eq!(
        (setting(partition, "start_bytes"), setting(partition, "aligned_to_1_mib")),
        ("1074790400", "yes")
    );
    let (own, parent) = (&reported.layers[2], &reported.layers[3]);
    assert_eq!((own.advertised_bytes_per_s, own.advertised_iops), (Some(2e9), Some(50_000.0)));
    assert_eq!(
        (parent.advertised_bytes_per_s, setting(parent, "write_bytes_per_s")),
        (None, "500000000")
    );
    let disk = &reported.layers[4];
    assert_eq!(
        (setting(disk, "scheduler"), setting(disk, "hardware_queues"), setting(disk, "transport")),
        ("none", "4", "pcie")
    );
    assert_eq!(
        (setting(disk, "firmware"), setting(disk, "namespace"), setting(disk, "size_bytes")),
        ("5B2QGXA7", "1", "1000204886016")
    );
    assert!(reported.warnings.is_empty(), "{:?}", reported.warnings);
    assert_eq!(reported.physical_block_bytes, 512);
    let devices = block_devices_of(&tree.roots(), Path::new("/etc")).unwrap();
    assert_eq!(
        (names(&devices.sits_on), names(&devices.counted), names(&devices.deepest)),
        (vec!["nvme0n1p3"], vec!["nvme0n1"], vec!["nvme0n1"])
    );
}

#[test]
fn recorded_system_calls_are_used() {
    for (name, path, extents, free) in
        [("nvme", "/var/lib/file", "7", "25"), ("sata_hdd", "/home/data", "312", "10")]
    {
        let tree = Tree::new(name);
        let reported = under(&tree.roots(), Path::new(path)).unwrap();
        let system = &reported.layers[0];
        assert_eq!(
            ["block_bytes", "extents", "free_percent"].map(|name| setting(system, name)),
            ["4096", extents, free]
        );
        let above = under(&tree.roots(), Path::new("/etc")).unwrap();
        assert!(!above.layers[0].settings.contains_key("extents"), "of another file");
    }
    let none = under(&Tree::new("virtio").roots(), Path::new("/")).unwrap();
    assert!(
        !none.layers[0].settings.contains_key("free_percent"),
        "this machine must not describe another"
    );
}

#[test]
fn a_bind_mount_is_on_what_it_was_bound_from() {
    let tree = Tree::new("nvme");
    let mount = mount_of(&tree.roots(), Path::new("/srv/bind mount/deep/file")).unwrap();
    assert_eq!(
        (mount.root.as_path(), mount.mount_point.as_path()),
        (Path::new("/var/data"), Path::new("/srv/bind mount"))
    );
    let layers = layers_under(&tree.roots(), Path::new("/srv/bind mount/file")).unwrap();
    assert_eq!(setting(&layers[0], "atime"), "relatime", "its own option, not the other mount's");
    assert_eq!(layers[1].name, "nvme0n1p3");
}

#[test]
fn an_nvme_namespace_with_two_paths() {
    let tree = Tree::new("nvme");
    let namespace = "sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1";
    tree.write(&format!("{namespace}/dev"), "259:9\n");
    for (controller, address) in
        [("nvme1", "traddr=10.0.0.1,trsvcid=4420"), ("nvme2", "traddr=10.0.0.2,trsvcid=4420")]
    {
        let dir = format!("sys/devices/virtual/nvme-fabrics/ctl/{controller}");
        tree.write(&format!("{dir}/transport"), "tcp\n");
        tree.write(&format!("{dir}/address"), address);
        tree.write(&format!("{dir}/cntlid"), "1\n");
        let root = tree.roots().sys.parent().unwrap().to_path_buf();
        std::os::unix::fs::symlink(
            root.join(dir),
            root.join(namespace).parent().unwrap().join(controller),
        )
        .unwrap();
    }
    let root = tree.roots().sys.parent().unwrap().to_path_buf();
    std::os::unix::fs::symlink(root.join(namespace), root.join("sys/class/block/nvme1n1")).unwrap();
    let reported = under_device(&tree.roots(), "nvme1n1");
    assert_eq!(
        shape(&reported.layers)[1..],
        [(LayerKind::Link, "NVMe over tcp"), (LayerKind::Link, "NVMe over tcp")]
    );
    assert_eq!(setting(&reported.layers[2], "address"), "traddr=10.0.0.2,trsvcid=4420");
}

#[test]
fn a_sata_disk_with_a_partition_at_sector_63() {
    let tree = Tree::new("sata_hdd");
    let reported = under(&tree.roots(), Path::new("/home")).unwrap();
    assert_eq!(
        shape(&reported.layers),
        [
            (LayerKind::FileSystem, "ext4 on /"),
            (LayerKind::Partition, "sda1"),
            (LayerKind::Disk, "sda (EXAMPLE HD4000DM)"),
            (LayerKind::Link, "SATA 6 Gbit/s"),
        ]
    );
    near(&reported.layers[3], 600e6);
    assert_eq!(formula(&reported.layers[3]), "SATA: 6 Gbit/s x 8/10");
    let partition = &reported.layers[1];
    assert_eq!(setting(partition, "start_bytes"), "32256");
    assert_eq!(
        (setting(partition, "aligned_to_physical_block"), setting(partition, "aligned_to_4_kib")),
        ("no", "no")
    );
    assert!(
        !partition.settings.contains_key("aligned_to_optimal_io"),
        "the disk names no optimal size"
    );
    assert!(warned(&reported, "sda1 starts at 31.5 KiB"), "{:?}", reported.warnings);
    let disk = &reported.layers[2];
    assert_eq!(
        (setting(disk, "queue_depth"), setting(disk, "rotational"), setting(disk, "write_cache")),
        ("32", "1", "write back")
    );
    let file_system = &reported.layers[0];
    assert_eq!(
        (
            setting(file_system, "data"),
            setting(file_system, "journal"),
            setting(file_system, "stripe")
        ),
        ("ordered", "yes", "32")
    );
    assert_eq!(
        reported.physical_block_bytes, 4096,
        "the disk's, though the file system is on a partition"
    );
}

#[test]
fn a_cable_that_slows_the_link() {
    let tree = Tree::new("sata_hdd");
    let reported = under_device(&tree.roots(), "sdb");
    near(named(&reported.layers, "SATA"), 150e6);
    assert!(
        warned(&reported, "the SATA link of ata4 runs at 1.5 Gbit/s though the port has 6"),
        "{:?}",
        reported.warnings
    );
}

#[test]
fn encryption_over_a_logical_volume() {
    let tree = Tree::new("crypt_lvm");
    let reported = under(&tree.roots(), Path::new("/")).unwrap();
    assert_eq!(
        shape(&reported.layers),
        [
            (LayerKind::FileSystem, "ext4 on /"),
            (LayerKind::Volume, "root_crypt (dm-crypt)"),
            (LayerKind::Volume, "vg-root (LVM)"),
            (LayerKind::Partition, "sda3"),
            (LayerKind::Disk, "sda (EXAMPLE SSD 500)"),
            (LayerKind::Link, "SATA 6 Gbit/s"),
        ]
    );
    assert_eq!(
        (setting(&reported.layers[0], "discard"), setting(&reported.layers[1], "encryption")),
        ("yes", "LUKS2")
    );
    assert_eq!(
        (names(&reported.devices.sits_on), names(&reported.devices.counted)),
        (vec!["dm-1"], vec!["sda"])
    );
    let by_name = under(&tree.roots(), Path::new("/dev/mapper/vg-root")).unwrap();
    assert_eq!(by_name.layers[0].name, "vg-root (LVM)", "a device by its symbolic link");
}

#[test]
fn raid_5_of_four_sas_disks_with_one_missing() {
    let tree = Tree::new("sas");
    let reported = under(&tree.roots(), Path::new("/array/file")).unwrap();
    let array = named(&reported.layers, "md0 (raid5 of 4)");
    assert_eq!(
        (setting(array, "chunk_bytes"), setting(array, "members"), setting(array, "degraded")),
        ("524288", "sda sdb sdc", "1")
    );
    let partition = named(&reported.layers, "md0p1");
    assert_eq!(
        (setting(partition, "aligned_to_1_mib"), setting(partition, "aligned_to_optimal_io")),
        ("yes", "no")
    );
    assert_eq!(setting(partition, "optimal_io_size"), "1572864");
    assert!(
        warned(&reported, "md0p1 starts at 1 MiB, not a multiple of md0's 1.5 MiB stripe")
            && warned(&reported, "start it at 1.5 MiB"),
        "{:?}",
        reported.warnings
    );
    assert!(
        warned(&reported, "1 of its 4 disks missing") && warned(&reported, "is running a recover"),
        "{:?}",
        reported.warnings
    );
    let links: Vec<&Layer> =
        reported.layers.iter().filter(|layer| layer.name == "SAS 12.0 Gbit/s").collect();
    assert_eq!(links.len(), 3, "each disk has a link of its own");
    near(links[0], 1.2e9);
    let bus: Vec<&Layer> =
        reported.layers.iter().filter(|layer| layer.name.starts_with("PCIe")).collect();
    assert_eq!(bus.len(), 1, "the adapter's link is shared");
    near(bus[0], 4.0 * 8e9 * 128.0 / 130.0 / 8.0);
    let share = |layer: &Layer| {
        [layer.share.reads, layer.share.writes].map(|share| (share * 1000.0).round() / 1000.0)
    };
    assert_eq!(share(links[0]), [0.333, 0.5], "of three disks, with parity in one of each row");
    assert_eq!(share(bus[0]), [1.0, 1.5], "all of them pass here");
    assert!(
        warned(&reported, "runs as PCIe 3.0 x4 though it could be PCIe 3.0 x8"),
        "{:?}",
        reported.warnings
    );
    assert_eq!(
        reported.warnings.iter().filter(|warning| warning.contains("PCIe 3.0 x8")).count(),
        1,
        "told once"
    );
    assert_eq!(names(&reported.devices.counted), ["sda", "sdb", "sdc"]);
    assert_eq!(named(&reported.layers, "sda").name, "sda (EXAMPLE ST900MP0006)");
}

#[test]
fn a_sas_disk_behind_an_expander_on_a_wide_port() {
    let tree = Tree::new("sas");
    let reported = under_device(&tree.roots(), "sdg");
    near(named(&reported.layers, "SAS 6.0 Gbit/s"), 600e6);
    near(named(&reported.layers, "SAS 12.0 Gbit/s x4"), 4.8e9);
    assert_eq!(
        formula(named(&reported.layers, "SAS 12.0 Gbit/s x4")),
        "SAS: 12 Gbit/s x 4 phys x 8/10"
    );
    assert_eq!(setting(&reported.layers[0], "queue_depth"), "254");
    assert_eq!(setting(&reported.layers[0], "cache_type"), "write through");
}

#[test]
fn btrfs_spreads_over_its_own_devices() {
    let tree = Tree::new("sas");
    let reported = under(&tree.roots(), Path::new("/home/me")).unwrap();
    let volume = named(&reported.layers, "btrfs raid1 of 2");
    assert_eq!((setting(volume, "members"), setting(volume, "metadata")), ("sde sdf", "raid1"));
    assert_eq!(names(&reported.devices.sits_on), ["sde", "sdf"]);
    assert_eq!(setting(&reported.layers[0], "compress"), "zstd:3");
    assert!(warned(&reported, "btrfs on /home compresses"), "{:?}", reported.warnings);
}

#[test]
fn an_overlay_is_on_its_upper_directory() {
    let tree = Tree::new("sas");
    let layers = layers_under(&tree.roots(), Path::new("/merged/file")).unwrap();
    assert_eq!(
        (layers[0].name.as_str(), layers[1].name.as_str()),
        ("overlay on /merged", "btrfs on /home")
    );
}

#[test]
fn a_virtio_disk_and_its_machine() {
    let tree = Tree::new("virtio");
    let reported = under(&tree.roots(), Path::new("/root/file")).unwrap();
    assert_eq!(
        shape(&reported.layers),
        [
            (LayerKind::FileSystem, "ext4 on /"),
            (LayerKind::Disk, "vda"),
            (LayerKind::Link, "virtio")
        ]
    );
    assert_eq!(
        (setting(&reported.layers[0], "journal"), setting(&reported.layers[0], "discard")),
        ("no", "yes")
    );
    assert_eq!(
        (setting(&reported.layers[1], "scheduler"), setting(&reported.layers[1], "read_ahead_kb")),
        ("mq-deadline", "8192")
    );
    assert_eq!(
        (setting(&reported.layers[2], "driver"), reported.layers[2].advertised_bytes_per_s),
        ("virtio_blk", None)
    );
    assert!(under(&tree.roots(), Path::new("/dev/shm/file")).unwrap().in_memory);
    let facts = machine_facts(&tree.roots());
    assert_eq!(
        (facts.name.as_str(), facts.system.as_str(), facts.processors),
        ("vm", "Linux 6.18.44 x86_64", 2)
    );
    assert_eq!(
        (facts.processor.as_str(), facts.memory_bytes),
        ("Intel(R) Xeon(R) Processor", 24_684_096 * 1024)
    );
    assert_eq!(
        facts.virtualization.as_deref(),
        Some("KVM"),
        "by its clock source, since it has no DMI"
    );
    assert_eq!(facts.settings["transparent_hugepage"], "madvise");
    assert_eq!(
        facts.settings["mitigations"],
        "active: retbleed spec_store_bypass spectre_v1 spectre_v2 tsx_async_abort"
    );
}

#[test]
fn a_version_1_limit_applies_only_to_its_own_group() {
    let tree = Tree::new("virtio");
    let limits = |layers: &[Layer]| {
        layers.iter().filter(|layer| layer.kind == LayerKind::Throttle).cloned().collect::<Vec<_>>()
    };
    let read = || limits(&layers_under(&tree.roots(), Path::new("/file")).unwrap());
    assert!(read().is_empty());
    tree.write("sys/fs/cgroup/blkio/blkio.throttle.read_bps_device", "7:0 1\n254:0 20000000\n");
    tree.write("sys/fs/cgroup/blkio/blkio.throttle.write_iops_device", "254:0 500\n");
    let reported = read();
    assert_eq!(reported.len(), 1);
    assert_eq!(
        (reported[0].advertised_bytes_per_s, reported[0].advertised_iops),
        (Some(20e6), None)
    );
    assert_eq!(setting(&reported[0], "write_iops"), "500");
    tree.write("sys/fs/cgroup/blkio/jobs/blkio.throttle.read_iops_device", "254:0 100\n");
    tree.write("proc/self/cgroup", "7:blkio:/jobs\n0::/\n");
    let reported = read();
    assert_eq!(reported.len(), 1, "the root's limit is not a child's in version 1");
    assert_eq!(
        (reported[0].advertised_bytes_per_s, reported[0].advertised_iops),
        (None, Some(100.0))
    );
}

#[test]
fn bare_metal_is_not_called_virtual() {
    let tree = Tree::new("nvme");
    let facts = machine_facts(&tree.roots());
    assert_eq!((facts.virtualization, facts.processors), (None, 16));
    assert_eq!(facts.settings["cpufreq.governor"], "performance on 2, powersave on 1");
    assert_eq!(
        (facts.settings["cpufreq.boost"].as_str(), facts.settings["mitigations"].as_str()),
        ("on", "off")
    );
}

#[test]
fn a_container_is_reported() {
    let tree = Tree::new("nvme");
    tree.write("proc/self/cgroup", "0::/kubepods/burstable/pod1\n");
    assert_eq!(
        machine_facts(&tree.roots()).virtualization.as_deref(),
        Some("container (kubepods)")
    );
    tree.write(".dockerenv", "");
    assert_eq!(machine_facts(&tree.roots()).virtualization.as_deref(), Some("container (docker)"));
}

#[test]
fn users_of_a_device_are_listed() {
    let tree = Tree::new("sata_hdd");
    let roots = tree.roots();
    assert_eq!(holders(&roots, "sda"), ["sda1 is mounted on /"]);
    assert_eq!(
        device_in_use(&roots, Path::new("/dev/sda1")).as_deref(),
        Some("/dev/sda1 is in use: sda1 is mounted on /")
    );
    assert_eq!(
        device_in_use(&roots, Path::new("/dev/sdb")).as_deref(),
        Some("/dev/sdb is in use: sdb2 is swap space in use")
    );
    tree.write("proc/swaps", "Filename Type Size Used Priority\n");
    assert_eq!(device_in_use(&roots, Path::new("/dev/sdb")), None);

    let tree = Tree::new("crypt_lvm");
    assert_eq!(holders(&tree.roots(), "sda"), ["sda3 is a part of dm-0 (vg-root)"]);
    let tree = Tree::new("sas");
    assert_eq!(holders(&tree.roots(), "sdb"), ["sdb is a part of md0"]);
    assert_eq!(
        holders(&tree.roots(), "sdf"),
        ["sdf is mounted on /home"],
        "the second device of a btrfs"
    );
    assert!(holders(&tree.roots(), "sdd").is_empty());
}

#[test]
fn a_cyclic_tree_ends() {
    let tree = Tree::new("crypt_lvm");
    let root = tree.roots().sys.parent().unwrap().to_path_buf();
    std::os::unix::fs::symlink(
        root.join("sys/devices/virtual/block/dm-1"),
        root.join("sys/devices/virtual/block/dm-0/slaves/dm-1"),
    )
    .unwrap();
    assert_eq!(under_device(&tree.roots(), "dm-1").layers.len(), 5);
}

#[test]
fn a_thin_volume_on_raid_10() {
    let tree = Tree::new("volumes");
    let reported = under(&tree.roots(), Path::new("/thin/file")).unwrap();
    let volumes: Vec<&str> = reported
        .layers
        .iter()
        .filter(|one| one.kind == LayerKind::Volume)
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(
        volumes,
        [
            "vg-thin (LVM)",
            "vg-pool-tpool (LVM thin pool)",
            "vg-pool_tmeta (LVM thin pool's metadata)",
            "md10 (raid10 of 4)",
            "vg-pool_tdata (LVM thin pool's data)",
        ]
    );
    assert_eq!(
        (setting(&reported.layers[0], "sunit"), setting(&reported.layers[0], "swidth")),
        ("1024", "2048")
    );
    let array = named(&reported.layers, "md10");
    assert_eq!((setting(array, "chunk_bytes"), setting(array, "layout")), ("524288", "0x102"));
    assert_eq!(array.share, Share::ALL, "the pool's metadata does not count as data");
    assert_eq!(named(&reported.layers, "sdc").share, Share { reads: 0.25, writes: 0.5 });
    assert_eq!(names(&reported.devices.counted), ["sdc", "sdd", "sde", "sdf"]);
    assert_eq!(names(&reported.devices.sits_on), ["dm-3"]);
}

#[test]
fn a_disk_with_a_cache_device_before_it() {
    let tree = Tree::new("volumes");
    let reported = under(&tree.roots(), Path::new("/cached/file")).unwrap();
    let cache = named(&reported.layers, "bcache0 (bcache)");
    assert_eq!(
        (setting(cache, "cache_mode"), setting(cache, "cache_device")),
        ("writeback", "nvme0n1p4")
    );
    assert_eq!(setting(cache, "state"), "dirty");
    near(named(&reported.layers, "SATA 3 Gbit/s"), 300e6);
    assert!(warned(&reported, "runs at 3 Gbit/s though the port has 6"), "{:?}", reported.warnings);
}

#[test]
fn an_nvme_ssd_on_half_of_its_lanes() {
    let tree = Tree::new("volumes");
    let reported = under_device(&tree.roots(), "nvme0n1");
    near(named(&reported.layers, "PCIe 3.0 x2"), 2.0 * 8e9 * 128.0 / 130.0 / 8.0);
    assert!(
        warned(&reported, "runs as PCIe 3.0 x2 though it could be PCIe 3.0 x4"),
        "{:?}",
        reported.warnings
    );
}

#[test]
fn an_nvme_ssd_of_generation_4_in_a_slot_of_two_lanes() {
    let tree = Tree::new("nvme_slots");
    let reported = under_device(&tree.roots(), "nvme0n1");
    assert_eq!(
        shape(&reported.layers),
        [(LayerKind::Disk, "nvme0n1 (EXAMPLE GEN4 2TB)"), (LayerKind::Link, "PCIe 4.0 x2")],
        "the port's end of the link is the same link"
    );
    near(&reported.layers[1], 2.0 * 16e9 * 128.0 / 130.0 / 8.0);
    assert_eq!(formula(&reported.layers[1]), "PCIe 4.0 x2: 16 GT/s x 2 lanes x 128/130");
    assert!(
        warned(
            &reported,
            "the link of 0000:01:00.0 runs as PCIe 4.0 x2 though it could be PCIe 4.0 x4"
        ),
        "{:?}",
        reported.warnings
    );
}

#[test]
fn an_nvme_ssd_of_generation_3_with_all_of_its_lanes() {
    let tree = Tree::new("nvme_slots");
    let reported = under_device(&tree.roots(), "nvme1n1");
    assert_eq!(
        shape(&reported.layers),
        [(LayerKind::Disk, "nvme1n1 (EXAMPLE GEN3 1TB)"), (LayerKind::Link, "PCIe 3.0 x4")]
    );
    near(&reported.layers[1], 4.0 * 8e9 * 128.0 / 130.0 / 8.0);
    assert!(
        reported.warnings.is_empty(),
        "a faster slot is not a fault of the link: {:?}",
        reported.warnings
    );
}

#[test]
fn multipath_over_two_sas_paths() {
    let tree = Tree::new("multipath");
    let reported = under(&tree.roots(), Path::new("/file")).unwrap();
    assert_eq!(
        shape(&reported.layers),
        [
            (LayerKind::FileSystem, "ext4 on /"),
            (LayerKind::Volume, "mpatha (multipath)"),
            (LayerKind::Disk, "sda (EXAMPLE DUALPORT1920)"),
            (LayerKind::Link, "SAS 12.0 Gbit/s"),
            (LayerKind::Link, "PCIe 3.0 x8"),
            (LayerKind::Disk, "sdb (EXAMPLE DUALPORT1920)"),
            (LayerKind::Link, "SAS 12.0 Gbit/s"),
        ]
    );
    assert_eq!(setting(&reported.layers[1], "members"), "sda sdb");
    assert_ne!(
        setting(&reported.layers[3], "port"),
        setting(&reported.layers[6], "port"),
        "two paths"
    );
    assert_eq!(
        reported.layers[4].share,
        Share::ALL,
        "the paths take turns: no byte passes the adapter twice"
    );
    assert_eq!(
        (names(&reported.devices.sits_on), names(&reported.devices.counted)),
        (vec!["dm-0"], vec!["sda", "sdb"])
    );
    assert!(reported.warnings.is_empty(), "{:?}", reported.warnings);
}

#[test]
fn a_sata_disk_behind_a_sas_expander_below_its_maximum_rate() {
    let tree = Tree::new("multipath");
    let reported = under_device(&tree.roots(), "sdc");
    assert_eq!(
        shape(&reported.layers),
        [
            (LayerKind::Disk, "sdc (EXAMPLE HD8000)"),
            (LayerKind::Link, "SATA 3.0 Gbit/s"),
            (LayerKind::Link, "SAS 12.0 Gbit/s x4"),
            (LayerKind::Link, "PCIe 3.0 x8"),
        ]
    );
    near(&reported.layers[1], 300e6);
    assert_eq!(formula(&reported.layers[1]), "SATA: 3 Gbit/s x 8/10");
    assert_eq!(setting(&reported.layers[1], "maximum_linkrate"), "6.0 Gbit");
    assert!(
        warned(&reported, "the SATA link of port-0:0:3 runs at 3 Gbit/s though its phy has 6"),
        "{:?}",
        reported.warnings
    );
    assert_eq!(reported.warnings.len(), 1, "the wide port is at its best: {:?}", reported.warnings);
}

#[test]
fn opaque_layers_are_reported() {
    let tree = Tree::new("volumes");
    let reported = |path: &str| under(&tree.roots(), Path::new(path)).unwrap();
    let zfs = reported("/tank/data/file");
    assert_eq!(
        shape(&zfs.layers),
        [(LayerKind::FileSystem, "zfs on /tank/data"), (LayerKind::Volume, "tank (ZFS pool)")]
    );
    assert_eq!(setting(&zfs.layers[1], "state"), "degraded");
    assert!(setting(&zfs.layers[0], "direct_io_means").contains("ARC") && warned(&zfs, "is ZFS"));
    let nfs = reported("/net/file");
    assert_eq!(
        (nfs.layers[1].kind, nfs.layers[1].name.as_str()),
        (LayerKind::Network, "nfs4 to filer:/export/vol1")
    );
    assert_eq!(
        (setting(&nfs.layers[1], "vers"), setting(&nfs.layers[1], "nconnect")),
        ("4.2", "4")
    );
    assert!(setting(&nfs.layers[0], "direct_io_means").contains("the server's cache"));
    let cifs = reported("/share/file");
    assert_eq!(
        (cifs.layers[1].kind, setting(&cifs.layers[1], "cache")),
        (LayerKind::Network, "strict")
    );
    assert_eq!(reported("/home/me/remote/file").layers[1].kind, LayerKind::Network);
    let odd = reported("/mnt/odd/file");
    assert_eq!(odd.layers.len(), 1, "the behaviour of its program is unknown: {:?}", odd.layers);
    assert!(setting(&odd.layers[0], "direct_io_means").contains("its program"));
}

#[test]
fn a_clouds_volume_under_the_cost_controller() {
    let tree = Tree::new("ebs");
    let reported = under(&tree.roots(), Path::new("/var/file")).unwrap();
    assert_eq!(
        shape(&reported.layers),
        [
            (LayerKind::FileSystem, "ext4 on /"),
            (LayerKind::Partition, "nvme0n1p1"),
            (LayerKind::Throttle, "io.cost on 259:0"),
            (LayerKind::Disk, "nvme0n1 (Amazon Elastic Block Store)"),
        ]
    );
    // 150 % of the model's rate.
    near(&reported.layers[2], 187.5e6);
    assert_eq!(reported.layers[2].advertised_rate(true), Some(180e6));
    assert!(formula(&reported.layers[2]).contains("rbps and wbps x io.cost.qos's max of 150 %"));
    let requests = |name| 1.5 * setting(&reported.layers[2], name).parse::<f64>().unwrap();
    assert_eq!(reported.layers[2].admitted_iops(false), Some(requests("model_rrandiops")));
    assert_eq!(reported.layers[2].admitted_iops(true), Some(requests("model_wrandiops")));
    assert!(setting(&reported.layers[3], "service").starts_with("Amazon EBS"));
    assert_eq!(
        machine_facts(&tree.roots()).settings.get("cpu_quota").map(String::as_str),
        Some("0.50")
    );
    tree.write("sys/fs/cgroup/io.cost.qos", "259:0 enable=0 ctrl=auto\n");
    let reported = under(&tree.roots(), Path::new("/var/file")).unwrap();
    assert!(reported.layers.iter().all(|layer| layer.kind != LayerKind::Throttle), "it is off");
}
