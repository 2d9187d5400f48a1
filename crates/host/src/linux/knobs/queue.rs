//! Knobs of block devices (Documentation/ABI/stable/sysfs-block).

use super::knob::{HostKnob, Keeper, safe};
use super::place::Place;
use super::values::Values;
use crate::linux::facts::{Roots, Under, device_directory, disk_of_partition, names, text};
use machine::Matters;
use std::path::Path;

#[derive(Clone, Copy, PartialEq)]
enum On {
    Top,
    Disks,
}

struct Queue<'a> {
    present: &'a str,
    choices: Vec<String>,
    attribute: &'a dyn Fn(&str) -> Option<String>,
}

impl Queue<'_> {
    fn number(&self, attribute: &str) -> Option<u64> {
        (self.attribute)(attribute)?.parse().ok()
    }
}

struct Row {
    name: &'static str,
    about: &'static str,
    on: On,
    matters: Matters,
    try_: fn(&Queue<'_>) -> Vec<u64>,
    values: Values,
    resets: &'static [&'static str],
    risk: fn(&str, &str) -> Option<String>,
}

const ROW: Row = Row {
    name: "",
    about: "",
    on: On::Disks,
    matters: Matters::Always,
    try_: |_| Vec::new(),
    values: Values::Number,
    resets: &[],
    risk: safe,
};

/// A scheduler resets these when it starts.
const RESET: [&str; 2] = ["nr_requests", "wbt_lat_usec"];

const ROWS: [Row; 9] = [
    Row {
        name: "read_ahead_kb",
        about: "how far the kernel reads ahead of sequential reads",
        on: On::Top,
        matters: Matters::BufferedReads,
        try_: |_| vec![128, 1024, 4096],
        ..ROW
    },
    Row { name: "scheduler", about: "I/O scheduler", values: Values::Name, resets: &RESET, ..ROW },
    Row {
        name: "nr_requests",
        about: "maximum queued requests",
        try_: |queue| {
            let now: u64 = queue.present.parse().unwrap_or(0);
            // Fewer requests than the device itself accepts would leave a scheduler no choice.
            if now >= 8 { vec![now / 2, now * 2] } else { Vec::new() }
        },
        ..ROW
    },
    Row {
        name: "max_sectors_kb",
        about: "largest request to the device",
        try_: |queue| {
            let max = queue.number("max_hw_sectors_kb").unwrap_or(0).min(4096);
            [128, 512, max].into_iter().filter(|&kb| kb > 0 && kb <= max).collect()
        },
        ..ROW
    },
    Row {
        name: "wbt_lat_usec",
        about: "target read latency for throttling background writes; 0: no throttling",
        matters: Matters::BufferedWrites,
        try_: |queue| {
            let usual = if queue.number("rotational") == Some(1) { 75_000 } else { 2000 };
            // Without the throttle the kernel shows nothing, or -1.
            if queue.present.parse::<u64>().is_ok() { vec![0, usual] } else { Vec::new() }
        },
        ..ROW
    },
    Row {
        name: "rq_affinity",
        about: "CPU that completes a request: 0 any, 1 one near the issuer's, 2 the issuer's own",
        try_: |_| vec![0, 1, 2],
        ..ROW
    },
    Row {
        name: "nomerges",
        about: "whether the kernel merges adjacent requests: 0 always, 1 simple cases, 2 never",
        try_: |_| vec![0, 1, 2],
        ..ROW
    },
    Row {
        name: "io_poll",
        about: "poll for completions instead of waiting for interrupts",
        matters: Matters::Direct,
        // The kernel refuses if the driver has no poll queues.
        try_: |queue| if queue.present == "1" { vec![0] } else { Vec::new() },
        ..ROW
    },
    Row {
        name: "write_cache",
        about: "whether the kernel treats the device's write cache as volatile and flushes it",
        matters: Matters::Writes,
        values: Values::Words(&["write back", "write through"]),
        risk: |_, value| {
            (value == "write through")
                .then(|| "the kernel no longer flushes the device's cache: a power failure loses its contents".into())
        },
        ..ROW
    },
];

struct Parameter {
    scheduler: &'static str,
    name: &'static str,
    about: &'static str,
    values: &'static [&'static str],
}

const PARAMETERS: [Parameter; 6] = [
    Parameter {
        scheduler: "mq-deadline",
        name: "fifo_batch",
        about: "requests of one kind in a row",
        values: &["1", "16", "64"],
    },
    Parameter {
        scheduler: "mq-deadline",
        name: "read_expire",
        about: "ms after which a read goes first",
        values: &["100", "500", "2000"],
    },
    Parameter {
        scheduler: "mq-deadline",
        name: "writes_starved",
        about: "batches of reads before a write",
        values: &["1", "2", "8"],
    },
    Parameter {
        scheduler: "kyber",
        name: "read_lat_nsec",
        about: "target latency of reads",
        values: &["500000", "2000000", "8000000"],
    },
    Parameter {
        scheduler: "bfq",
        name: "slice_idle",
        about: "ms to wait for the next request of the same program",
        values: &["0", "8"],
    },
    Parameter {
        scheduler: "bfq",
        name: "low_latency",
        about: "interactive programs go first",
        values: &["0", "1"],
    },
];

fn whole(roots: &Roots, name: &str) -> String {
    disk_of_partition(roots, name).unwrap_or_else(|| name.to_owned())
}

fn devices(roots: &Roots, under: &[Under], on: On) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for one in under {
        let some = if on == On::Top { &one.devices.sits_on } else { &one.devices.counted };
        for device in some {
            let name = whole(roots, &device.name);
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all
}

const DEVICES: &str = "/sys/class/block";

fn file_of(device: &str, file: &str) -> Place {
    Place::File(Path::new(DEVICES).join(device).join(file))
}

pub(super) fn known(file: &Path) -> Option<(&'static str, Values)> {
    let rest = file.strip_prefix(DEVICES).ok()?.to_str()?;
    match rest.split('/').collect::<Vec<_>>()[..] {
        [_, "queue", name] => {
            ROWS.iter().find(|row| row.name == name).map(|row| (row.name, row.values))
        }
        [_, "queue", "iosched", name] => {
            PARAMETERS.iter().find(|one| one.name == name).map(|one| (one.name, Values::Number))
        }
        [_, "device", "scsi_disk", _, CACHE_TYPE] => {
            Some((CACHE_TYPE, Values::Words(&CACHE_TYPES)))
        }
        _ => None,
    }
}

pub(super) fn is_identity(file: &Path) -> bool {
    let rest = file.strip_prefix(DEVICES).ok().and_then(Path::to_str).unwrap_or_default();
    matches!(rest.split('/').collect::<Vec<_>>()[..], [_, "device", "wwid"])
}

const CACHE_TYPE: &str = "cache_type";

/// As the kernel shows them (drivers/scsi/sd.c).
const CACHE_TYPES: [&str; 4] =
    ["write through", "none", "write back", "write back, no read (daft)"];

fn choices(roots: &Roots, place: &Place) -> Vec<String> {
    let list = text(roots.resolve(place.path())).unwrap_or_default();
    list.split_whitespace().map(|word| word.trim_matches(['[', ']']).to_owned()).collect()
}

pub(super) fn knobs(roots: &Roots, under: &[Under]) -> Vec<HostKnob> {
    let mut knobs: Vec<HostKnob> =
        ROWS.iter().filter_map(|row| of_row(roots, under, row)).collect();
    let disks = devices(roots, under, On::Disks);
    let parameters: Vec<HostKnob> =
        PARAMETERS.iter().filter_map(|parameter| of_parameter(roots, &disks, parameter)).collect();
    if let Some(scheduler) = knobs.iter_mut().find(|one| one.knob.name == "scheduler") {
        scheduler.knob.resets.extend(parameters.iter().map(|one| one.knob.name.clone()));
    }
    knobs.extend(parameters);
    knobs.extend(cache_type(roots, &disks));
    knobs
}

fn of_row(roots: &Roots, under: &[Under], row: &Row) -> Option<HostKnob> {
    let devices = devices(roots, under, row.on);
    let attribute = format!("queue/{}", row.name);
    let places: Vec<Place> = devices.iter().map(|device| file_of(device, &attribute)).collect();
    let list = places.first().map(|place| choices(roots, place)).unwrap_or_default();
    let first = devices.first().map(|device| device_directory(roots, device)).unwrap_or_default();
    let keeper = Keeper::Udev { devices: devices.clone(), attribute };
    let mut knob = HostKnob::at(roots, row.name, devices.join(", "), row.about, places, keeper)?;
    knob.knob.matters = row.matters;
    knob.knob.resets = row.resets.iter().map(|&name| name.to_owned()).collect();
    knob.risk = row.risk;
    let present = knob.knob.present.clone();
    let queue = Queue {
        present: &present,
        choices: list,
        attribute: &|name| text(first.join("queue").join(name)),
    };
    let values: Vec<String> = match row.values {
        Values::Words(words) => words.iter().map(|&word| word.to_owned()).collect(),
        Values::Name => queue.choices.clone(),
        _ => (row.try_)(&queue).into_iter().map(|value| value.to_string()).collect(),
    };
    Some(knob.with_values(values))
}

fn of_parameter(roots: &Roots, disks: &[String], parameter: &Parameter) -> Option<HostKnob> {
    let scheduler = |disk: &&String| {
        file_of(disk, "queue/scheduler").read(roots).is_ok_and(|value| value == parameter.scheduler)
    };
    let disks: Vec<String> = disks.iter().filter(scheduler).cloned().collect();
    let attribute = format!("queue/iosched/{}", parameter.name);
    let places = disks.iter().map(|disk| file_of(disk, &attribute)).collect();
    let keeper = Keeper::Udev { devices: disks.clone(), attribute };
    let knob =
        HostKnob::at(roots, parameter.name, disks.join(", "), parameter.about, places, keeper)?;
    Some(knob.with_values(parameter.values.iter().map(|&value| value.to_owned())))
}

/// The drive stores it (sd(4)). Single drives only, because the name identifies it.
fn cache_type(roots: &Roots, disks: &[String]) -> Option<HostKnob> {
    let [disk] = disks else { return None };
    let directory = Path::new(DEVICES).join(disk).join("device/scsi_disk");
    let scsi = names(roots.resolve(&directory)).into_iter().next()?;
    let place = Place::File(directory.join(&scsi).join(CACHE_TYPE));
    let keeper = Keeper::Udev {
        devices: vec![disk.clone()],
        attribute: format!("device/scsi_disk/{scsi}/{CACHE_TYPE}"),
    };
    let about = "the drive's own write cache";
    let mut knob = HostKnob::at(roots, CACHE_TYPE, disk.clone(), about, vec![place], keeper)?;
    knob.knob.matters = Matters::Writes;
    knob.persistent = true;
    let wwid = Path::new(DEVICES).join(disk).join("device/wwid");
    knob.identity = text(roots.resolve(&wwid)).map(|name| (wwid, name));
    knob.risk = |_, value| {
        (value == "write back").then(|| {
            "a power failure loses the drive's cached writes, unless it has a battery or everything above flushes it".into()
        })
    };
    Some(knob.with_values(["write back".into(), "write through".into()]))
}
