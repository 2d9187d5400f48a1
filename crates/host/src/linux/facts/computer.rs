use super::{Roots, chosen, link_name, names, number, text, throttle};
use machine::MachineFacts;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::path::Path;

pub fn machine_facts(roots: &Roots) -> MachineFacts {
    let cpuinfo = text(roots.proc.join("cpuinfo")).unwrap_or_default();
    MachineFacts {
        name: text(roots.proc.join("sys/kernel/hostname")).unwrap_or_default(),
        simulated: false,
        system: system(roots),
        processor: processor(&cpuinfo, roots),
        processors: processors(roots, &cpuinfo),
        memory_bytes: memory_bytes(roots).unwrap_or(0),
        virtualization: virtualization(roots, &cpuinfo),
        processor_quota: throttle::processor_quota(roots),
        settings: settings(roots),
    }
}

fn system(roots: &Roots) -> String {
    let word = |name: &str| text(roots.proc.join("sys/kernel").join(name));
    let mut words = vec![word("ostype").unwrap_or_else(|| "Linux".into())];
    words.extend(word("osrelease"));
    // Linux 6.1 and later report the architecture.
    words.extend(
        word("arch").or_else(|| roots.is_this_machine().then(|| std::env::consts::ARCH.to_owned())),
    );
    words.join(" ")
}

fn cpu_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        (field.trim() == name && !value.trim().is_empty()).then(|| value.trim())
    })
}

fn processor(cpuinfo: &str, roots: &Roots) -> String {
    let board = || {
        text(roots.sys.join("firmware/devicetree/base/model"))
            .map(|model| model.trim_end_matches('\0').to_owned())
    };
    ["model name", "cpu model", "cpu", "Model", "Hardware"]
        .iter()
        .find_map(|name| cpu_field(cpuinfo, name).map(str::to_owned))
        .or_else(board)
        .unwrap_or_default()
}

fn processors(roots: &Roots, cpuinfo: &str) -> u32 {
    let listed =
        text(roots.sys.join("devices/system/cpu/online")).and_then(|list| count_of_list(&list));
    listed.unwrap_or_else(|| {
        cpuinfo.lines().filter(|line| line.starts_with("processor")).count() as u32
    })
}

fn count_of_list(list: &str) -> Option<u32> {
    list.split(',').try_fold(0u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

pub fn memory_bytes(roots: &Roots) -> Option<u64> {
    meminfo(roots, "MemTotal:")
}

pub fn page_bytes() -> usize {
    crate::linux::sys::page_size()
}

fn meminfo(roots: &Roots, name: &str) -> Option<u64> {
    let kilobytes =
        |line: &str| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok();
    Some(text(roots.proc.join("meminfo"))?.lines().find_map(kilobytes)? * 1024)
}

pub(crate) fn memory_left(roots: &Roots) -> Option<u64> {
    let own = if roots.is_this_machine() { own_limit_left() } else { None };
    throttle::memory_left(roots).into_iter().chain(meminfo(roots, "MemAvailable:")).chain(own).min()
}

/// The tighter of `ulimit -v` and `ulimit -d`.
pub(crate) fn own_limit_left() -> Option<u64> {
    let limits = [(Resource::As, 0), (Resource::Data, 5)];
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    // The first number is mapped pages, the sixth data and stack (proc(5)).
    let left = |(resource, field): (Resource, usize)| {
        let limit = getrlimit(resource).current?;
        let used: u64 = statm.split_whitespace().nth(field)?.parse().ok()?;
        Some(limit.saturating_sub(used * crate::linux::sys::page_size() as u64))
    };
    limits.into_iter().filter_map(left).min()
}

fn virtualization(roots: &Roots, cpuinfo: &str) -> Option<String> {
    let seen: Vec<String> =
        [hypervisor(roots, cpuinfo), container(roots)].into_iter().flatten().collect();
    (!seen.is_empty()).then(|| seen.join(", "))
}

fn hypervisor(roots: &Roots, cpuinfo: &str) -> Option<String> {
    let dmi = |name: &str| text(roots.sys.join("class/dmi/id").join(name));
    let product = [dmi("sys_vendor"), dmi("product_name")]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ");
    let known = [
        ("QEMU", "KVM or QEMU"),
        ("KVM", "KVM"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("innotek", "VirtualBox"),
        ("Microsoft Corporation Virtual", "Hyper-V"),
        ("Xen", "Xen"),
        ("Parallels", "Parallels"),
        ("Amazon EC2", "Amazon EC2"),
        ("Google", "Google Compute Engine"),
        ("OpenStack", "OpenStack"),
        ("Bochs", "Bochs"),
    ];
    // The cpuid flag proves a hypervisor. DMI strings name it, but bare-metal cloud machines have
    // them too.
    let flagged = cpu_field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let xen = text(roots.sys.join("hypervisor/type"));
    if !flagged
        && xen.is_none()
        && !(cpu_field(cpuinfo, "flags").is_none()
            && known.iter().any(|(mark, _)| product.contains(mark)))
    {
        return None;
    }
    let named = xen.or_else(|| {
        known.iter().find(|(mark, _)| product.contains(mark)).map(|(_, name)| (*name).to_owned())
    });
    // Without DMI (microVMs), the clock source and the virtio bus indicate a hypervisor.
    let clock =
        text(roots.sys.join("devices/system/clocksource/clocksource0/available_clocksource"))
            .unwrap_or_default();
    let guessed = || match () {
        () if clock.contains("kvm-clock") => Some("KVM".to_owned()),
        () if clock.contains("hyperv") => Some("Hyper-V".to_owned()),
        () if clock.contains("xen") => Some("Xen".to_owned()),
        () => None,
    };
    let name = named.or_else(guessed).unwrap_or_else(|| "unknown hypervisor".into());
    Some(if product.is_empty() || product == name { name } else { format!("{name} ({product})") })
}

fn container(roots: &Roots) -> Option<String> {
    let root_of_tree = roots.proc.parent().unwrap_or(Path::new("/"));
    if root_of_tree.join(".dockerenv").exists() {
        return Some("container (docker)".into());
    }
    if root_of_tree.join("run/.containerenv").exists() {
        return Some("container (podman)".into());
    }
    let environment = std::fs::read(roots.proc.join("1/environ")).unwrap_or_default();
    let reported =
        environment.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(b"container="));
    if let Some(kind) = reported.filter(|kind| !kind.is_empty()) {
        return Some(format!("container ({})", String::from_utf8_lossy(kind)));
    }
    let groups = text(roots.proc.join("self/cgroup")).unwrap_or_default();
    ["docker", "kubepods", "libpod", "lxc", "containerd"]
        .into_iter()
        .find(|kind| groups.split(['/', '\n']).any(|part| part.starts_with(kind)))
        .map(|kind| format!("container ({kind})"))
}

fn settings(roots: &Roots) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            settings.insert(name.to_owned(), value);
        }
    };
    for name in [
        "vm.dirty_ratio",
        "vm.dirty_bytes",
        "vm.dirty_background_ratio",
        "vm.dirty_background_bytes",
        "vm.dirty_expire_centisecs",
        "vm.dirty_writeback_centisecs",
        "vm.vfs_cache_pressure",
        "vm.swappiness",
        "fs.aio-max-nr",
        "fs.aio-nr",
        "kernel.io_uring_disabled",
        "kernel.perf_event_paranoid",
    ] {
        put(name, text(roots.proc.join("sys").join(name.replace('.', "/"))));
    }
    put(
        "free_page_reporting",
        super::super::free_page_reporting::reclaims_free_memory(roots).then(|| "on".to_owned()),
    );
    put("cpu_quota", throttle::processor_quota(roots).map(|quota| format!("{quota:.2}")));
    let cpu = roots.sys.join("devices/system/cpu");
    put("cpufreq.governor", of_all_processors(&cpu, "cpufreq/scaling_governor"));
    put("cpufreq.driver", of_all_processors(&cpu, "cpufreq/scaling_driver"));
    put(
        "cpufreq.energy_performance_preference",
        of_all_processors(&cpu, "cpufreq/energy_performance_preference"),
    );
    let boost = match (number(cpu.join("cpufreq/boost")), number(cpu.join("intel_pstate/no_turbo")))
    {
        (Some(0), _) | (_, Some(1)) => Some("off"),
        (Some(_), _) | (_, Some(0)) => Some("on"),
        _ => None,
    };
    put("cpufreq.boost", boost.map(str::to_owned));
    put("smt", text(cpu.join("smt/control")));
    put(
        "cpuidle.driver",
        text(cpu.join("cpuidle/current_driver")).filter(|driver| driver != "none"),
    );
    let memory = roots.sys.join("kernel/mm");
    put(
        "transparent_hugepage",
        text(memory.join("transparent_hugepage/enabled")).map(|list| chosen(&list).to_owned()),
    );
    put(
        "transparent_hugepage.shmem",
        text(memory.join("transparent_hugepage/shmem_enabled"))
            .map(|list| chosen(&list).to_owned()),
    );
    put(
        "numa_nodes",
        Some(numa_nodes(roots)).filter(|&nodes| nodes > 0).map(|nodes| nodes.to_string()),
    );
    put(
        "clocksource",
        text(roots.sys.join("devices/system/clocksource/clocksource0/current_clocksource")),
    );
    put(
        "iommu",
        link_name(roots.sys.join("class/iommu/dmar0/device/subsystem"))
            .or_else(|| names(roots.sys.join("class/iommu")).pop()),
    );
    put("mitigations", Some(mitigations(&cpu, roots)).filter(|reported| !reported.is_empty()));
    settings
}

fn of_all_processors(cpu: &Path, file: &str) -> Option<String> {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for name in names(cpu) {
        if name.strip_prefix("cpu").is_some_and(|rest| rest.parse::<u32>().is_ok())
            && let Some(value) = text(cpu.join(&name).join(file))
        {
            *counts.entry(value).or_default() += 1;
        }
    }
    match counts.len() {
        0 => None,
        1 => counts.into_keys().next(),
        _ => Some(
            counts
                .iter()
                .map(|(value, count)| format!("{value} on {count}"))
                .collect::<Vec<_>>()
                .join(", "),
        ),
    }
}

fn numa_nodes(roots: &Roots) -> usize {
    let is_node =
        |name: &&String| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    names(roots.sys.join("devices/system/node")).iter().filter(is_node).count()
}

fn mitigations(cpu: &Path, roots: &Roots) -> String {
    let command_line = text(roots.proc.join("cmdline")).unwrap_or_default();
    let reported = command_line
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("mitigations="))
        .next_back();
    let active: Vec<String> = names(cpu.join("vulnerabilities"))
        .into_iter()
        .filter(|name| {
            text(cpu.join("vulnerabilities").join(name))
                .is_some_and(|state| state.starts_with("Mitigation"))
        })
        .collect();
    match (reported, active.is_empty()) {
        (Some(reported), true) => reported.to_owned(),
        (Some(reported), false) => format!("{reported}; active: {}", active.join(" ")),
        (None, true) => String::new(),
        (None, false) => format!("active: {}", active.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(count_of_list("0-3,8"), Some(5));
        assert_eq!(count_of_list("0"), Some(1));
        assert_eq!(count_of_list("3-0"), None);
        assert_eq!(count_of_list("0-4294967295"), None);
    }

    #[test]
    fn this_machines_facts_are_found() {
        let facts = machine_facts(&Roots::default());
        assert!(facts.system.starts_with("Linux "), "{}", facts.system);
        // SAFETY: sysconf has no preconditions.
        assert_eq!(i64::from(facts.processors), unsafe {
            libc::sysconf(libc::_SC_NPROCESSORS_ONLN)
        });
        let pages =
            unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) * libc::sysconf(libc::_SC_PAGESIZE) };
        assert_eq!(facts.memory_bytes, pages as u64);
        assert!(facts.settings.contains_key("vm.dirty_ratio"), "{:?}", facts.settings);
    }
}
