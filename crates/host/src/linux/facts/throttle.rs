//! Control group limits on this process's I/O.

use super::{Roots, mounts, number, text};
use machine::{Layer, LayerFacts, LayerKind, ThrottleFacts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Limits {
    read_bytes_per_s: Option<u64>,
    write_bytes_per_s: Option<u64>,
    read_iops: Option<u64>,
    write_iops: Option<u64>,
}

/// `None` if the mount does not show the root group.
pub fn cgroup_v1_root(roots: &Roots, controller: &str) -> Option<PathBuf> {
    let mounts = mounts::all_mounts(roots).ok()?;
    let mount = mounts.into_iter().find(|mount| {
        mount.fs_type == "cgroup" && mount.has_option(controller) && mount.root == Path::new("/")
    })?;
    Some(roots.resolve(&mount.mount_point))
}

pub(super) fn throttles(roots: &Roots, dev_t: (u32, u32)) -> Vec<Layer> {
    let device = format!("{}:{}", dev_t.0, dev_t.1);
    let mut layers = Vec::new();
    for (group, dir) in groups_v2(roots) {
        let limits =
            text(dir.join("io.max")).map(|limits| limits_v2(&limits, &device)).unwrap_or_default();
        layers.extend(layer(limits, &group, &device, "io.max"));
    }
    layers.extend(cost(roots, &device));
    // Without `cgroup.sane_behavior`, which only test kernels set, the block layer treats all
    // version-1 groups as siblings, and a parent's limit does not apply to its children.
    for (group, dir) in groups_v1(roots, "blkio").into_iter().take(1) {
        layers.extend(layer(limits_v1(&dir, &device), &group, &device, "blkio.throttle"));
    }
    layers
}

/// Parses `8:16 enable=1 ctrl=user rpct=95.00 ... min=25.00 max=150.00` and a model of the device,
/// `8:16 ctrl=user model=linear rbps=...` (Documentation/admin-guide/cgroup-v2.rst). The limit is
/// `rbps` times `max`.
fn cost(roots: &Roots, device: &str) -> Option<Layer> {
    let (_, root) = groups_v2(roots).pop()?;
    let line = |file: &str| {
        let lines = text(root.join(file))?;
        let own =
            lines.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '))?.to_owned();
        let pairs = own.split_whitespace().filter_map(|word| word.split_once('='));
        Some(
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect::<BTreeMap<_, _>>(),
        )
    };
    let quality =
        line("io.cost.qos").filter(|one| one.get("enable").is_some_and(|on| on == "1"))?;
    let model = line("io.cost.model").unwrap_or_default();
    let max = quality.get("max").and_then(|max| max.parse::<f64>().ok()).unwrap_or(100.0) / 100.0;
    let rate = |name: &str| {
        model.get(name)?.parse::<f64>().ok().map(|rate| rate * max).filter(|&rate| rate > 0.0)
    };
    let mut settings = BTreeMap::from([("device".to_owned(), device.to_owned())]);
    settings
        .extend(rate("wbps").map(|rate| ("write_bytes_per_s".to_owned(), format!("{rate:.0}"))));
    settings.extend(rate("wrandiops").map(|rate| ("write_iops".to_owned(), format!("{rate:.0}"))));
    for name in ["rseqiops", "rrandiops", "wseqiops", "wrandiops"] {
        settings.extend(model.get(name).map(|value| (format!("model_{name}"), value.clone())));
    }
    settings.extend(quality.into_iter().map(|(name, value)| (format!("qos_{name}"), value)));
    let facts = ThrottleFacts {
        write_bytes_per_s: rate("wbps"),
        write_iops: rate("wrandiops"),
        random_only: true,
    };
    Some(Layer {
        facts: LayerFacts { throttle: Some(facts), ..LayerFacts::default() },
        advertised_bytes_per_s: rate("rbps"),
        advertised_formula: Some(format!(
            "io.cost.model's rbps and wbps x io.cost.qos's max of {:.0} %",
            max * 100.0
        )),
        // For random requests. Sequential ones cost less, so they may exceed this before they reach
        // the byte limit.
        advertised_iops: rate("rrandiops"),
        settings,
        ..Layer::new(LayerKind::Throttle, format!("io.cost on {device}"))
    })
}

fn layer(limits: Limits, group: &str, device: &str, file: &str) -> Option<Layer> {
    if limits == Limits::default() {
        return None;
    }
    let mut settings = BTreeMap::from([
        ("cgroup".to_owned(), group.to_owned()),
        ("device".to_owned(), device.to_owned()),
    ]);
    for (name, limit) in [
        ("read_bytes_per_s", limits.read_bytes_per_s),
        ("write_bytes_per_s", limits.write_bytes_per_s),
        ("read_iops", limits.read_iops),
        ("write_iops", limits.write_iops),
    ] {
        settings.extend(limit.map(|limit| (name.to_owned(), limit.to_string())));
    }
    let rate = |limit: Option<u64>| limit.map(|limit| limit as f64);
    let facts = ThrottleFacts {
        write_bytes_per_s: rate(limits.write_bytes_per_s),
        write_iops: rate(limits.write_iops),
        random_only: false,
    };
    Some(Layer {
        facts: LayerFacts { throttle: Some(facts), ..LayerFacts::default() },
        advertised_bytes_per_s: rate(limits.read_bytes_per_s),
        advertised_formula: Some(format!("{file} of {group}")),
        advertised_iops: rate(limits.read_iops),
        settings,
        ..Layer::new(LayerKind::Throttle, format!("control group {group} on {device}"))
    })
}

fn own_group(roots: &Roots, wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
    text(roots.proc.join("self/cgroup"))?.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let controllers = fields.nth(1)?;
        let path = fields.next()?;
        wanted(controllers).then(|| PathBuf::from(path))
    })
}

/// Each group limits its descendants.
fn groups_v2(roots: &Roots) -> Vec<(String, PathBuf)> {
    let Ok(mounts) = mounts::all_mounts(roots) else { return Vec::new() };
    let Some(mount) = mounts.into_iter().find(|mount| mount.fs_type == "cgroup2") else {
        return Vec::new();
    };
    let Some(own) = own_group(roots, str::is_empty) else { return Vec::new() };
    visible(roots, &mount, &own)
}

fn groups_v1(roots: &Roots, controller: &str) -> Vec<(String, PathBuf)> {
    let Ok(mounts) = mounts::all_mounts(roots) else { return Vec::new() };
    let Some(mount) =
        mounts.into_iter().find(|mount| mount.fs_type == "cgroup" && mount.has_option(controller))
    else {
        return Vec::new();
    };
    let Some(own) =
        own_group(roots, |controllers| controllers.split(',').any(|name| name == controller))
    else {
        return Vec::new();
    };
    visible(roots, &mount, &own)
}

/// Inactive page cache counts as free.
pub(super) fn memory_left(roots: &Roots) -> Vec<u64> {
    let left = |dir: &Path, limit: &str, used: &str, cached: &str| {
        let stat = text(dir.join("memory.stat")).unwrap_or_default();
        let cached = stat
            .lines()
            .find_map(|line| line.strip_prefix(cached)?.trim().parse::<u64>().ok())
            .unwrap_or(0);
        Some(
            number(dir.join(limit))?.saturating_sub(number(dir.join(used))?.saturating_sub(cached)),
        )
    };
    let v2 = groups_v2(roots)
        .into_iter()
        .filter_map(|(_, dir)| left(&dir, "memory.max", "memory.current", "inactive_file "));
    let v1 = groups_v1(roots, "memory").into_iter().filter_map(|(_, dir)| {
        left(&dir, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
    });
    v2.chain(v1).collect()
}

pub(crate) fn processor_counts(roots: &Roots) -> Vec<PathBuf> {
    let groups = groups_v2(roots).into_iter().chain(groups_v1(roots, "cpu"));
    groups.map(|(_, dir)| dir.join("cpu.stat")).collect()
}

/// The system's, if this process's group is the root.
pub(crate) fn pressure_files(roots: &Roots) -> [PathBuf; 3] {
    let own = groups_v2(roots).into_iter().next().filter(|(group, _)| group != "/");
    ["cpu", "memory", "io"].map(|resource| {
        let of_group = own
            .as_ref()
            .map(|(_, dir)| dir.join(format!("{resource}.pressure")))
            .filter(|file| file.exists());
        of_group.unwrap_or_else(|| roots.proc.join("pressure").join(resource))
    })
}

/// 0.5 is half the time of one CPU.
pub(super) fn processor_quota(roots: &Roots) -> Option<f64> {
    let v2 = groups_v2(roots).into_iter().filter_map(|(_, dir)| {
        let reported = text(dir.join("cpu.max"))?;
        let (quota, period) = reported.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    let v1 = groups_v1(roots, "cpu").into_iter().filter_map(|(_, dir)| {
        let quota = number(dir.join("cpu.cfs_quota_us"))?;
        Some(quota as f64 / number(dir.join("cpu.cfs_period_us"))? as f64)
    });
    v2.chain(v1)
        .filter(|processors| processors.is_finite() && *processors > 0.0)
        .min_by(f64::total_cmp)
}

fn visible(roots: &Roots, mount: &super::Mount, own: &Path) -> Vec<(String, PathBuf)> {
    // A container may see only a subtree at the mount point, or itself as the root.
    let below = own.strip_prefix(&mount.root).or_else(|_| own.strip_prefix("/")).unwrap_or(own);
    let top = roots.resolve(&mount.mount_point);
    let own_dir = if top.join(below).is_dir() { top.join(below) } else { top.clone() };
    own_dir
        .ancestors()
        .take_while(|dir| dir.starts_with(&top))
        .map(|dir| {
            (
                format!("/{}", dir.strip_prefix(&top).unwrap_or(Path::new("")).display()),
                dir.to_path_buf(),
            )
        })
        .collect()
}

/// Parses `8:16 rbps=2097152 wbps=max riops=max wiops=120` (cgroup-v2.rst).
fn limits_v2(file: &str, device: &str) -> Limits {
    let mut limits = Limits::default();
    let Some(line) = file.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '))
    else {
        return limits;
    };
    for (key, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
        let place = match key {
            "rbps" => &mut limits.read_bytes_per_s,
            "wbps" => &mut limits.write_bytes_per_s,
            "riops" => &mut limits.read_iops,
            "wiops" => &mut limits.write_iops,
            _ => continue,
        };
        *place = value.parse().ok();
    }
    limits
}

/// Parses lines `8:16 1048576` (Documentation/admin-guide/cgroup-v1/blkio-controller.rst).
fn limits_v1(dir: &Path, device: &str) -> Limits {
    let limit = |file: &str| {
        let lines = text(dir.join(file))?;
        lines
            .lines()
            .find_map(|line| line.strip_prefix(device)?.strip_prefix(' ')?.trim().parse().ok())
    };
    Limits {
        read_bytes_per_s: limit("blkio.throttle.read_bps_device"),
        write_bytes_per_s: limit("blkio.throttle.write_bps_device"),
        read_iops: limit("blkio.throttle.read_iops_device"),
        write_iops: limit("blkio.throttle.write_iops_device"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_version_2() {
        let file =
            "8:160 rbps=1 wbps=1 riops=1 wiops=1\n8:16 rbps=2097152 wbps=max riops=max wiops=120\n";
        let limits = limits_v2(file, "8:16");
        assert_eq!((limits.read_bytes_per_s, limits.write_iops), (Some(2_097_152), Some(120)));
        assert_eq!((limits.write_bytes_per_s, limits.read_iops), (None, None));
        assert_eq!(limits_v2(file, "8:1"), Limits::default());
    }
}
