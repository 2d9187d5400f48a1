//! Knobs of the whole computer (Documentation/admin-guide/sysctl/vm.rst).

use super::knob::{HostKnob, Keeper, safe};
use super::place::Place;
use super::values::Values;
use crate::linux::facts::{Roots, Under, device_directory, names, text};
use machine::Matters;
use std::path::{Path, PathBuf};

const ALL: &str = "this computer";

/// The exit latency from which idle states count as deep.
const DEEP_US: u64 = 10;

struct Parameter {
    name: &'static str,
    about: &'static str,
    matters: Matters,
    values: &'static [&'static str],
    risk: fn(&str, &str) -> Option<String>,
    /// Applies while this one is 0, which cannot be written.
    instead: Option<&'static str>,
}

const PARAMETERS: [Parameter; 6] = [
    Parameter {
        name: "dirty_ratio",
        about: "percent of memory that may be dirty before writers are throttled",
        matters: Matters::BufferedWrites,
        values: &["5", "20", "40"],
        risk: safe,
        instead: None,
    },
    Parameter {
        name: "dirty_background_ratio",
        about: "percent of dirty memory at which background writeback starts",
        matters: Matters::BufferedWrites,
        values: &["1", "5", "10"],
        risk: safe,
        instead: None,
    },
    Parameter {
        name: "dirty_bytes",
        about: "bytes that may be dirty before writers are throttled, instead of a percentage",
        matters: Matters::BufferedWrites,
        values: &["67108864", "1073741824"],
        risk: safe,
        instead: Some("dirty_ratio"),
    },
    Parameter {
        name: "dirty_background_bytes",
        about: "dirty bytes at which background writeback starts, instead of a percentage",
        matters: Matters::BufferedWrites,
        values: &["16777216", "268435456"],
        risk: safe,
        instead: Some("dirty_background_ratio"),
    },
    Parameter {
        name: "dirty_expire_centisecs",
        about: "age at which dirty data is written back",
        matters: Matters::BufferedWrites,
        values: &["500", "3000", "6000"],
        risk: |present, value| {
            let longer = value.parse::<u64>().ok()? > present.parse::<u64>().ok()?;
            longer.then(|| "a crash loses older writes that no program has synced".into())
        },
        instead: None,
    },
    Parameter {
        name: "vfs_cache_pressure",
        about: "how readily names and inodes leave memory for file data",
        matters: Matters::Buffered,
        values: &["50", "100", "200"],
        risk: safe,
        instead: None,
    },
];

const GOVERNORS: [&str; 3] = ["performance", "schedutil", "powersave"];

pub(super) fn knobs(roots: &Roots, under: &[Under]) -> Vec<HostKnob> {
    let parameters = PARAMETERS.iter().filter_map(|parameter| of_parameter(roots, parameter));
    parameters
        .chain(huge_pages(roots))
        .chain(governor(roots))
        .chain(idle(roots))
        .chain(interrupts(roots, under))
        .collect()
}

fn vm(name: &str) -> Place {
    Place::File(Path::new(VM).join(name))
}

const VM: &str = "/proc/sys/vm";

const PROCESSORS: &str = "/sys/devices/system/cpu";

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

const HUGE: [&str; 3] = ["always", "madvise", "never"];

pub(super) fn known(file: &Path) -> Option<(String, Values)> {
    let parts = |root: &str| -> Option<Vec<&str>> {
        Some(file.strip_prefix(root).ok()?.to_str()?.split('/').collect())
    };
    if file == Path::new(HUGE_PAGES) {
        return Some(("transparent_hugepage".into(), Values::Words(&HUGE)));
    }
    if let Some([name]) = parts(VM).as_deref() {
        return PARAMETERS
            .iter()
            .any(|one| one.name == *name)
            .then(|| (format!("vm.{name}"), Values::Number));
    }
    if let Some([number, "smp_affinity_list"]) = parts("/proc/irq").as_deref() {
        return is_numbered(number, "").then(|| ("irq_affinity".into(), Values::Processors));
    }
    match parts(PROCESSORS)?[..] {
        [cpu, "cpufreq", "scaling_governor"] if is_numbered(cpu, "cpu") => {
            Some(("governor".into(), Values::Name))
        }
        [cpu, "cpuidle", state, "disable"]
            if is_numbered(cpu, "cpu") && is_numbered(state, "state") =>
        {
            Some(("no_deep_idle".into(), Values::Number))
        }
        _ => None,
    }
}

pub(super) fn undo_of(place: &Place) -> Option<Place> {
    let name = place.path().strip_prefix(VM).ok()?.to_str()?;
    PARAMETERS.iter().find(|one| one.name == name)?.instead.map(vm)
}

fn of_parameter(roots: &Roots, parameter: &Parameter) -> Option<HostKnob> {
    let name = format!("vm.{}", parameter.name);
    let keeper = Keeper::Sysctl(name.clone());
    let mut knob =
        HostKnob::at(roots, &name, ALL.into(), parameter.about, vec![vm(parameter.name)], keeper)?;
    // This percentage has no effect because the byte limit applies.
    if knob.knob.present == "0" && parameter.instead.is_none() && parameter.name.ends_with("_ratio")
    {
        return None;
    }
    if let Some(ratio) = parameter.instead
        && knob.knob.present == "0"
    {
        knob.undo = Some((vm(ratio), vm(ratio).read(roots).ok()?));
        // Setting one resets the other to 0.
        knob.knob.resets = vec![format!("vm.{ratio}")];
    }
    knob.knob.matters = parameter.matters;
    knob.risk = parameter.risk;
    Some(knob.with_values(parameter.values.iter().map(|&value| value.to_owned())))
}

fn huge_pages(roots: &Roots) -> Option<HostKnob> {
    let place = Place::File(HUGE_PAGES.into());
    let about = "which memory uses huge pages";
    let knob = HostKnob::at(
        roots,
        "transparent_hugepage",
        ALL.into(),
        about,
        vec![place],
        Keeper::Tmpfiles,
    )?;
    Some(knob.with_values(HUGE.map(str::to_owned)))
}

fn governor(roots: &Roots) -> Option<HostKnob> {
    let root = PathBuf::from(PROCESSORS);
    let processors: Vec<PathBuf> = names(roots.resolve(&root))
        .into_iter()
        .filter(|name| is_numbered(name, "cpu"))
        .map(|name| root.join(name).join("cpufreq"))
        .collect();
    let known = processors
        .iter()
        .find_map(|one| text(roots.resolve(&one.join("scaling_available_governors"))));
    let places = processors.iter().map(|one| Place::File(one.join("scaling_governor"))).collect();
    let about = "how the processors choose their frequency";
    let knob = HostKnob::at(roots, "governor", ALL.into(), about, places, Keeper::Tmpfiles)?;
    let known = known.unwrap_or_else(|| "performance powersave".into());
    let offered = |governor: &&str| known.split_whitespace().any(|word| word == *governor);
    Some(knob.with_values(GOVERNORS.into_iter().filter(offered).map(str::to_owned)))
}

/// 1 disables an idle state.
fn idle(roots: &Roots) -> Option<HostKnob> {
    let root = PathBuf::from(PROCESSORS);
    let mut places = Vec::new();
    for processor in names(roots.resolve(&root)).into_iter().filter(|name| is_numbered(name, "cpu"))
    {
        let states = root.join(processor).join("cpuidle");
        for state in
            names(roots.resolve(&states)).into_iter().filter(|name| is_numbered(name, "state"))
        {
            let latency = text(roots.resolve(&states.join(&state).join("latency")))
                .and_then(|text| text.parse().ok());
            if latency.is_some_and(|us: u64| us >= DEEP_US) {
                places.push(Place::File(states.join(&state).join("disable")));
            }
        }
    }
    let about = "whether deep idle states, which take longer to leave, are disabled";
    let knob = HostKnob::at(roots, "no_deep_idle", ALL.into(), about, places, Keeper::Tmpfiles)?;
    Some(knob.with_values(["0", "1"].map(str::to_owned)))
}

fn is_numbered(name: &str, what: &str) -> bool {
    name.strip_prefix(what)
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()))
}

fn interrupts(roots: &Roots, under: &[Under]) -> Option<HostKnob> {
    let mut numbers: Vec<String> = Vec::new();
    let devices: Vec<&str> = under
        .iter()
        .flat_map(|one| &one.devices.counted)
        .map(|device| device.name.as_str())
        .collect();
    for device in &devices {
        // The adapter is the closest parent directory of the device with interrupts.
        let directory = device_directory(roots, device);
        let adapter = directory
            .ancestors()
            .map(|above| names(above.join("msi_irqs")))
            .find(|irqs| !irqs.is_empty());
        for number in adapter.unwrap_or_default() {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
    }
    let places = numbers
        .iter()
        .map(|number| Place::File(format!("/proc/irq/{number}/smp_affinity_list").into()));
    let about = "CPUs that handle the adapter's interrupts";
    let knob = HostKnob::at(
        roots,
        "irq_affinity",
        devices.join(", "),
        about,
        places.collect(),
        Keeper::Tmpfiles,
    )?;
    let online = text(roots.resolve(&PathBuf::from("/sys/devices/system/cpu/online")))?;
    Some(knob.with_values(["0".to_owned(), online]))
}
