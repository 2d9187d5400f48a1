use super::recorded::Calls;
use super::{Mount, Roots, layers, names, text};
use machine::{FileSystemFacts, Layer, LayerKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) struct Described {
    pub layer: Layer,
    pub volume: Option<Layer>,
    pub block_bytes: u32,
}

pub(super) fn describe(roots: &Roots, mount: &Mount, path: &Path) -> Described {
    let (mut settings, mut facts) = options(mount);
    let mut warnings = Vec::new();
    let calls = Calls::of(roots, path);
    let block_bytes = calls.block_bytes.unwrap_or(0);
    if block_bytes > 0 {
        settings.insert("block_bytes".into(), block_bytes.to_string());
    }
    settings.extend(calls.extents.map(|count| ("extents".to_owned(), count.to_string())));
    settings
        .extend(calls.free_percent().map(|free| ("free_percent".to_owned(), format!("{free:.0}"))));
    if let Some(means) = direct_means(&mount.fs_type) {
        settings.insert("direct_io_means".into(), means.into());
    }
    if matches!(mount.fs_type.as_str(), "ext3" | "ext4") {
        ext(roots, mount, &mut settings, &mut facts);
    }
    if settings.get("compress").is_some_and(|kind| kind != "no") {
        warnings.push(format!(
            "{} on {} compresses: measure the devices with incompressible data",
            mount.fs_type,
            mount.mount_point.display()
        ));
    }
    if mount.fs_type == "zfs" {
        warnings.push(format!(
            "{} is ZFS: direct I/O may not bypass its cache, and the kernel does not report its devices",
            mount.mount_point.display()
        ));
    }
    let name = format!("{} on {}", mount.fs_type, mount.mount_point.display());
    let mut layer = Layer::new(LayerKind::FileSystem, name);
    layer.facts.file_system = Some(facts);
    layer.settings = settings;
    layer.facts.warnings = warnings;
    let volume = btrfs_volume(roots, mount).or_else(|| zfs_pool(roots, mount));
    Described { layer, volume, block_bytes }
}

/// Names caches that direct I/O bypasses, if not just the local page cache.
fn direct_means(fs_type: &str) -> Option<&'static str> {
    Some(match fs_type {
        "nfs" | "nfs4" => "past this computer's cache; the server's cache still serves it",
        "cifs" | "smb3" => {
            "past this computer's cache (cache=none for the file); the server's cache still serves it"
        }
        "ceph" => "past this computer's cache; the storage daemons' caches still serve it",
        "9p" | "virtiofs" => "past this computer's cache; the host's cache still serves it",
        "zfs" => "before OpenZFS 2.3 nothing: its own cache (ARC) serves it all the same",
        "overlay" => "what it means on the file system below",
        name if name.starts_with("fuse") => {
            "past this computer's cache if its program allows it; the program may cache"
        }
        _ => return None,
    })
}

fn zfs_pool(roots: &Roots, mount: &Mount) -> Option<Layer> {
    let pool = mount.source.split('/').next().filter(|_| mount.fs_type == "zfs")?;
    let state = text(roots.proc.join("spl/kstat/zfs").join(pool).join("state"));
    Some(Layer {
        settings: state
            .map(|state| ("state".to_owned(), state.to_lowercase()))
            .into_iter()
            .collect(),
        ..Layer::new(LayerKind::Volume, format!("{pool} (ZFS pool)"))
    })
}

fn options(mount: &Mount) -> (BTreeMap<String, String>, FileSystemFacts) {
    let mut settings = BTreeMap::from([
        ("mount".to_owned(), mount.options.join(",")),
        ("source".to_owned(), mount.source.clone()),
    ]);
    let mut put = |name: &str, value: String| settings.insert(name.to_owned(), value);
    let atime = ["noatime", "relatime"]
        .into_iter()
        .find(|option| mount.has_option(option))
        .unwrap_or("strictatime");
    put("atime", atime.into());
    for flag in
        ["lazytime", "sync", "dirsync", "nodatacow", "nodatasum", "autodefrag", "ssd", "dax"]
    {
        if mount.has_option(flag) {
            put(flag, "yes".into());
        }
    }
    // `discard`, `discard=async`, `compress=zstd:3`, `compress-force=lzo`, f2fs's
    // `compress_algorithm=lz4`, ...
    let value = |name: &str| {
        mount
            .option(name)
            .map(|value| if value.is_empty() { "yes".to_owned() } else { value.to_owned() })
    };
    if let Some(kind) = value("compress")
        .or_else(|| value("compress-force"))
        .or_else(|| value("compress_algorithm"))
    {
        put("compress", kind);
    }
    // Only a file system on a block device discards blocks and orders writes. btrfs is on one,
    // although its device number is virtual.
    let no_barriers = mount.has_option("nobarrier") || mount.option("barrier") == Some("0");
    if mount.dev_t.0 != 0 || mount.source.starts_with("/dev/") {
        put("discard", value("discard").unwrap_or_else(|| "no".into()));
        put("barrier", if no_barriers { "no" } else { "yes" }.into());
    }
    for name in [
        "data",
        "commit",
        "stripe",
        "sunit",
        "swidth",
        "logbsize",
        "allocsize",
        "rsize",
        "wsize",
        "size",
        "huge",
    ] {
        if let Some(value) = mount.option(name).filter(|value| !value.is_empty()) {
            put(name, value.to_owned());
        }
    }
    let facts = FileSystemFacts {
        fs_type: mount.fs_type.clone(),
        journals_data: mount.option("data") == Some("journal"),
        synchronous: mount.has_option("sync"),
        no_barriers,
    };
    (settings, facts)
}

fn ext(
    roots: &Roots,
    mount: &Mount,
    settings: &mut BTreeMap<String, String>,
    facts: &mut FileSystemFacts,
) {
    let Some(device) = members(roots, mount).into_iter().next() else { return };
    let reported =
        text(roots.proc.join("fs/ext4").join(&device).join("options")).unwrap_or_default();
    for line in reported.lines() {
        let (name, value) = line.split_once('=').unwrap_or((line, "yes"));
        match name {
            "data" => facts.journals_data = value == "journal",
            "barrier" => facts.no_barriers = value == "0",
            "nobarrier" => facts.no_barriers = true,
            _ => {}
        }
        match name {
            "data" | "commit" | "barrier" => settings.insert(name.to_owned(), value.to_owned()),
            "stripe" if value != "0" => settings.insert(name.to_owned(), value.to_owned()),
            "nobarrier" => settings.insert("barrier".into(), "no".into()),
            "delalloc" | "nodelalloc" => settings
                .insert("delalloc".into(), if name == "delalloc" { "yes" } else { "no" }.into()),
            _ => None,
        };
    }
    if let Some(task) = text(roots.sys.join("fs/ext4").join(&device).join("journal_task")) {
        settings.insert("journal".into(), if task == "<none>" { "no" } else { "yes" }.into());
    }
}

pub(super) fn members(roots: &Roots, mount: &Mount) -> Vec<String> {
    if mount.fs_type == "btrfs"
        && let Some((_, devices)) = btrfs(roots, mount)
    {
        return devices;
    }
    // The number is the most reliable; btrfs, bcachefs and ZFS have no block device's number.
    if mount.dev_t.0 != 0 {
        return layers::name_of_number(roots, mount.dev_t).into_iter().collect();
    }
    // bcachefs joins its devices with colons.
    mount
        .source
        .split(':')
        .filter(|source| source.starts_with("/dev/"))
        .filter_map(|source| layers::device_of_node(roots, Path::new(source)))
        .collect()
}

fn btrfs(roots: &Roots, mount: &Mount) -> Option<(PathBuf, Vec<String>)> {
    let source = layers::device_of_node(roots, Path::new(&mount.source))?;
    names(roots.sys.join("fs/btrfs")).into_iter().find_map(|uuid| {
        let dir = roots.sys.join("fs/btrfs").join(uuid);
        let devices = names(dir.join("devices"));
        devices.contains(&source).then_some((dir, devices))
    })
}

fn btrfs_volume(roots: &Roots, mount: &Mount) -> Option<Layer> {
    let (dir, devices) = btrfs(roots, mount)
        .filter(|_| mount.fs_type == "btrfs")
        .filter(|(_, devices)| devices.len() > 1)?;
    // The active profile has a directory below allocation/data; during a balance there are several.
    let profile = |kind: &str| {
        let profiles: Vec<String> = names(dir.join("allocation").join(kind))
            .into_iter()
            .filter(|name| dir.join("allocation").join(kind).join(name).is_dir())
            .collect();
        (!profiles.is_empty()).then(|| profiles.join("+"))
    };
    let data = profile("data").unwrap_or_else(|| "several devices".into());
    let mut layer = Layer::new(LayerKind::Volume, format!("btrfs {data} of {}", devices.len()));
    let settings = &mut layer.settings;
    settings.insert("members".to_owned(), devices.join(" "));
    settings.extend(profile("data").map(|profile| ("data".to_owned(), profile)));
    settings.extend(profile("metadata").map(|profile| ("metadata".to_owned(), profile)));
    settings.extend(text(dir.join("checksum")).map(|kind| ("checksum".to_owned(), kind)));
    // BTRFS_STRIPE_LEN, a constant of the format.
    settings.insert("chunk_bytes".into(), (64 << 10).to_string());
    Some(layer)
}
