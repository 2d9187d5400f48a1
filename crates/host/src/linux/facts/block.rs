use super::{Roots, chosen, link_name, names, number, text};
use machine::units::{KIB, show_size};
use machine::{ArrayFacts, Layer, LayerFacts, LayerKind, PartitionFacts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The unit in sysfs, on every device.
const SECTOR_BYTES: u64 = 512;

pub(super) enum Class {
    Partition { disk: String },
    Volume { members: Vec<String> },
    Loop { backing: Option<PathBuf> },
    Disk,
}

pub(super) struct Described {
    pub class: Class,
    pub layer: Layer,
}

/// Resolves the path, so that its parents are its buses.
pub(crate) fn directory(roots: &Roots, name: &str) -> PathBuf {
    let link = roots.sys.join("class/block").join(name);
    link.canonicalize().unwrap_or(link)
}

pub(crate) fn disk_of_partition(roots: &Roots, name: &str) -> Option<String> {
    let dir = directory(roots, name);
    dir.join("partition")
        .exists()
        .then(|| dir.parent()?.file_name().map(|name| name.to_string_lossy().into_owned()))
        .flatten()
}

pub(super) fn describe(roots: &Roots, name: &str) -> Described {
    let dir = directory(roots, name);
    if let Some(disk) = disk_of_partition(roots, name) {
        return partition(name, disk, &dir);
    }
    if dir.join("loop").is_dir() {
        return loop_device(name, &dir);
    }
    if dir.join("md").is_dir() {
        return md(name, &dir);
    }
    if dir.join("dm").is_dir() {
        return mapped(name, &dir);
    }
    let members = names(dir.join("slaves"));
    if !members.is_empty() {
        let kind = if dir.join("bcache").is_dir() { "bcache" } else { "volume" };
        let mut layer = with_queue(LayerKind::Volume, format!("{name} ({kind})"), &dir);
        let mode = text(dir.join("bcache/cache_mode")).map(|list| chosen(&list).to_owned());
        layer.facts.writeback_device = mode.as_deref() == Some("writeback");
        put(&mut layer, "cache_mode", mode);
        put(&mut layer, "state", text(dir.join("bcache/state")));
        put(&mut layer, "sequential_cutoff", text(dir.join("bcache/sequential_cutoff")));
        put(&mut layer, "cache_device", cache_device(&dir));
        put(&mut layer, "members", Some(members.join(" ")));
        return Described { class: Class::Volume { members }, layer };
    }
    disk(name, &dir)
}

fn cache_device(dir: &Path) -> Option<String> {
    let cache = dir.join("bcache/cache/cache0").canonicalize().ok()?;
    cache.parent()?.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn with_queue(kind: LayerKind, name: String, dir: &Path) -> Layer {
    let queue = dir.join("queue");
    let limit = |file: &str| number(queue.join(file)).filter(|&value| value > 0);
    let facts = LayerFacts {
        rotational: number(queue.join("rotational")).map(|flag| flag == 1),
        write_cache: text(queue.join("write_cache")).map(|kind| kind == "write back"),
        read_ahead_bytes: number(queue.join("read_ahead_kb")).map(|kib| kib * KIB),
        queue_limit: number(queue.join("nr_requests")).and_then(|limit| u32::try_from(limit).ok()),
        optimal_io_bytes: limit("optimal_io_size"),
        ..LayerFacts::default()
    };
    Layer { facts, settings: settings(dir), ..Layer::new(kind, name) }
}

fn put(layer: &mut Layer, name: &str, value: Option<String>) {
    if let Some(value) = value {
        layer.settings.insert(name.to_owned(), value);
    }
}

fn size_bytes(dir: &Path) -> Option<u64> {
    Some(number(dir.join("size"))? * SECTOR_BYTES)
}

fn settings(dir: &Path) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for name in [
        "scheduler",
        "nr_requests",
        "read_ahead_kb",
        "rotational",
        "logical_block_size",
        "physical_block_size",
        "minimum_io_size",
        "optimal_io_size",
        "max_sectors_kb",
        "max_hw_sectors_kb",
        "max_segments",
        "write_cache",
        "fua",
        "wbt_lat_usec",
        "nomerges",
        "rq_affinity",
        "io_poll",
        "dax",
        "zoned",
        "chunk_sectors",
        "discard_max_bytes",
        "discard_granularity",
    ] {
        if let Some(value) = text(dir.join("queue").join(name)) {
            let value = if name == "scheduler" { chosen(&value).to_owned() } else { value };
            settings.insert(name.to_owned(), value);
        }
    }
    // mq/ has one directory per hardware queue.
    let queues = names(dir.join("mq")).len();
    if queues > 0 {
        settings.insert("hardware_queues".into(), queues.to_string());
    }
    settings.extend(size_bytes(dir).map(|bytes| ("size_bytes".to_owned(), bytes.to_string())));
    settings
}

fn partition(name: &str, disk: String, dir: &Path) -> Described {
    let mut layer = Layer::new(LayerKind::Partition, name);
    let start = number(dir.join("start")).unwrap_or(0) * SECTOR_BYTES;
    put(&mut layer, "start_bytes", Some(start.to_string()));
    put(&mut layer, "size_bytes", size_bytes(dir).map(|bytes| bytes.to_string()));
    put(
        &mut layer,
        "alignment_offset",
        text(dir.join("alignment_offset")).filter(|offset| offset != "0"),
    );
    let queue = dir.parent().unwrap_or(dir).join("queue");
    let limit = |file: &str| number(queue.join(file)).filter(|&bytes| bytes > 0);
    let physical = limit("physical_block_size");
    // A bridge may report its maximum transfer here (65535 sectors); a real stripe is a multiple of
    // a page.
    let stripe = limit("optimal_io_size")
        .filter(|&stripe| stripe.is_multiple_of(4096) && Some(stripe) > physical);
    let yes_no = |multiple: u64| if start.is_multiple_of(multiple) { "yes" } else { "no" };
    for (key, multiple) in [
        ("aligned_to_physical_block", physical),
        ("aligned_to_4_kib", Some(4096)),
        ("aligned_to_1_mib", Some(1 << 20)),
        ("aligned_to_optimal_io", stripe),
    ] {
        put(&mut layer, key, multiple.map(|multiple| yes_no(multiple).to_owned()));
    }
    put(&mut layer, "optimal_io_size", stripe.map(|stripe| stripe.to_string()));
    layer.facts.partition = Some(PartitionFacts {
        start_bytes: start,
        physical_block_bytes: physical,
        stripe_bytes: stripe,
    });
    if let Some(physical) = physical.filter(|&physical| !start.is_multiple_of(physical)) {
        layer.facts.warnings.push(format!(
            "{name} starts at {}, not a multiple of the disk's {} physical block: every aligned request straddles two blocks; start it at 1 MiB",
            show_size(start),
            show_size(physical)
        ));
    } else if !start.is_multiple_of(4096) {
        layer.facts.warnings.push(format!(
            "{name} starts at {}, not a multiple of 4 KiB: if the storage uses larger blocks than it reports, every aligned request straddles two; start it at 1 MiB",
            show_size(start)
        ));
    }
    if let Some(stripe) = stripe.filter(|&stripe| !start.is_multiple_of(stripe)) {
        let (start, stripe, first) =
            (show_size(start), show_size(stripe), show_size(start.next_multiple_of(stripe)));
        layer.facts.warnings.push(format!(
            "{name} starts at {start}, not a multiple of {disk}'s {stripe} stripe (optimal_io_size): a full-stripe request straddles two, and with parity each is read before it is written; start it at {first}"
        ));
    }
    Described { class: Class::Partition { disk }, layer }
}

fn loop_device(name: &str, dir: &Path) -> Described {
    let file = text(dir.join("loop/backing_file"));
    let backing =
        file.as_deref().map(|file| PathBuf::from(file.strip_suffix(" (deleted)").unwrap_or(file)));
    let direct = number(dir.join("loop/dio")) == Some(1);
    let shown = backing.as_deref().map_or("no file".into(), |file| file.display().to_string());
    let mut layer = with_queue(LayerKind::Loop, format!("{name} on {shown}"), dir);
    layer.facts.backing_file = file.as_deref().map(PathBuf::from);
    put(&mut layer, "backing_file", file);
    put(&mut layer, "direct_io", Some(if direct { "yes" } else { "no" }.into()));
    put(&mut layer, "offset_bytes", text(dir.join("loop/offset")));
    if backing.is_some() && !direct {
        layer.facts.warnings.push(format!(
            "{name} reaches its file through the file-system cache, so even direct I/O may be served from memory; switch it with: losetup --direct-io=on /dev/{name}"
        ));
    }
    Described { class: Class::Loop { backing }, layer }
}

fn md(name: &str, dir: &Path) -> Described {
    let md = dir.join("md");
    let level = text(md.join("level")).unwrap_or_else(|| "md".into());
    // Each md/dev-NAME/block links to a member; slaves/ lists them by name.
    let members = names(dir.join("slaves"));
    let disks = text(md.join("raid_disks")).unwrap_or_else(|| members.len().to_string());
    let mut layer = with_queue(LayerKind::Volume, format!("{name} ({level} of {disks})"), dir);
    // Levels with data chunks in rows, and the parity chunks per row.
    let parity = match level.as_str() {
        "raid0" => Some(0),
        "raid4" | "raid5" => Some(1),
        "raid6" => Some(2),
        _ => None,
    };
    layer.facts.array = Some(ArrayFacts {
        data_members: disks
            .parse::<u64>()
            .ok()
            .zip(parity)
            .and_then(|(disks, parity)| disks.checked_sub(parity)),
        chunk_bytes: number(md.join("chunk_size")).filter(|&bytes| bytes > 0),
        missing: number(md.join("degraded")).unwrap_or(0),
    });
    for (key, file) in [
        ("level", "level"),
        ("raid_disks", "raid_disks"),
        ("chunk_bytes", "chunk_size"),
        ("layout", "layout"),
        ("degraded", "degraded"),
        ("array_state", "array_state"),
        ("sync_action", "sync_action"),
        ("stripe_cache_size", "stripe_cache_size"),
        ("group_thread_cnt", "group_thread_cnt"),
        ("consistency_policy", "consistency_policy"),
        ("metadata_version", "metadata_version"),
    ] {
        put(&mut layer, key, text(md.join(file)));
    }
    put(&mut layer, "members", Some(members.join(" ")));
    if let Some(missing) = number(md.join("degraded")).filter(|&missing| missing > 0) {
        layer.facts.warnings.push(format!(
            "{name} runs degraded, with {missing} of its {disks} disks missing; see: mdadm --detail /dev/{name}"
        ));
    }
    if let Some(action) =
        text(md.join("sync_action")).filter(|action| action != "idle" && action != "frozen")
    {
        layer.facts.warnings.push(format!(
            "{name} is running a {action}, which takes disk bandwidth; wait until it ends, see: cat /proc/mdstat"
        ));
    }
    Described { class: Class::Volume { members }, layer }
}

fn mapped(name: &str, dir: &Path) -> Described {
    let own = text(dir.join("dm/name")).unwrap_or_else(|| name.to_owned());
    let uuid = text(dir.join("dm/uuid")).unwrap_or_default();
    let kind = match uuid.split('-').next().unwrap_or("") {
        "CRYPT" => match uuid.split('-').nth(1) {
            Some("VERITY") => "dm-verity",
            Some("INTEGRITY") => "dm-integrity",
            _ => "dm-crypt",
        },
        // For a thin volume the kernel shows the pool between the volume and its two hidden parts.
        "LVM" if uuid.ends_with("-tpool") => "LVM thin pool",
        "LVM" if uuid.ends_with("-tdata") => "LVM thin pool's data",
        "LVM" if uuid.ends_with("-tmeta") => "LVM thin pool's metadata",
        "LVM" => "LVM",
        "mpath" => "multipath",
        "DMRAID" => "dmraid",
        "VDO" => "VDO",
        part if part.starts_with("part") => "mapped partition",
        _ => "device mapper",
    };
    let members = names(dir.join("slaves"));
    let mut layer = with_queue(LayerKind::Volume, format!("{own} ({kind})"), dir);
    put(&mut layer, "device", Some(name.to_owned()));
    put(&mut layer, "kind", Some(kind.to_owned()));
    put(
        &mut layer,
        "encryption",
        uuid.strip_prefix("CRYPT-").and_then(|rest| rest.split('-').next()).map(str::to_owned),
    );
    put(&mut layer, "members", Some(members.join(" ")));
    if kind == "VDO" {
        layer.facts.warnings.push(format!(
            "{own} compresses and deduplicates: measure it with incompressible data"
        ));
    }
    Described { class: Class::Volume { members }, layer }
}

fn cloud_service(model: &str) -> Option<&'static str> {
    [
        (
            "Amazon Elastic Block Store",
            "Amazon EBS: rate and requests are limited by the volume's and the instance's quota",
        ),
        ("Amazon EC2 NVMe Instance Storage", "Amazon instance store: it is lost when the instance stops"),
        ("nvme_card-pd", "Google persistent disk: rate and requests are limited by its size and the machine type"),
        ("PersistentDisk", "Google persistent disk: rate and requests are limited by its size and the machine type"),
        ("MSFT NVMe Accelerator", "Azure managed disk: rate and requests are limited by its size and the machine type"),
    ]
    .into_iter()
    .find_map(|(name, service)| model.contains(name).then_some(service))
}

fn disk(name: &str, dir: &Path) -> Described {
    let mut layer = with_queue(LayerKind::Disk, String::new(), dir);
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            layer.settings.insert(key.to_owned(), value);
        }
    };
    let mut shown = name.to_owned();
    if let Some(algorithm) = text(dir.join("comp_algorithm")) {
        put("compression", Some(chosen(&algorithm).to_owned()));
        put("max_comp_streams", text(dir.join("max_comp_streams")));
        put("backing_device", text(dir.join("backing_dev")).filter(|device| device != "none"));
        shown = format!("{name} (compressed RAM disk)");
        layer.facts.warnings.push(format!(
            "{name} is compressed main memory, not a disk: its rates are not those of a disk"
        ));
    }
    let device = dir.join("device");
    // SCSI pads its strings; virtio's vendor is a meaningless number.
    let vendor = text(device.join("vendor")).filter(|vendor| !vendor.starts_with("0x"));
    let model = text(device.join("model")).or_else(|| text(device.join("name")));
    if let Some(model) = &model {
        // "ATA" is the translation layer's name, not a vendor.
        let maker =
            vendor.as_deref().filter(|vendor| *vendor != "ATA" && !model.starts_with(vendor));
        let model = maker.map_or(model.clone(), |maker| format!("{maker} {model}"));
        shown = format!("{name} ({model})");
        put("model", Some(model));
    }
    // A cloud volume: the provider sets its quota, which is not visible here.
    let service = cloud_service(shown.as_str());
    put("service", service.map(str::to_owned));
    put("vendor", vendor);
    put("firmware", text(device.join("firmware_rev")).or_else(|| text(device.join("rev"))));
    put("queue_depth", text(device.join("queue_depth")));
    put("queue_type", text(device.join("queue_type")));
    put("transport", text(device.join("transport")));
    put("namespace", text(dir.join("nsid")));
    put("driver", link_name(device.join("driver")));
    for scsi_disk in names(device.join("scsi_disk")) {
        let scsi_disk = device.join("scsi_disk").join(scsi_disk);
        put("cache_type", text(scsi_disk.join("cache_type")));
        put("provisioning_mode", text(scsi_disk.join("provisioning_mode")));
    }
    put("read_only", text(dir.join("ro")).filter(|flag| flag == "1"));
    put("removable", text(dir.join("removable")).filter(|flag| flag == "1"));
    layer.name = shown;
    Described { class: Class::Disk, layer }
}
