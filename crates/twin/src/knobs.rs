//! Settings as knobs: what could be bought or configured.

use crate::Shape;
use crate::description::Drive;
use crate::settings::Setup;
use crate::volume::Kind;
use machine::units::show_size;
use machine::{Alternative, Keep, Knob, Matters};

struct Row {
    name: &'static str,
    about: &'static str,
    matters: Matters,
    present: fn(&Setup) -> String,
    values: fn(&Setup) -> Vec<String>,
}

fn size(bytes: u64) -> String {
    show_size(bytes)
        .replace(" KiB", "k")
        .replace(" MiB", "m")
        .replace(" GiB", "g")
        .replace(" B", "")
}

const ROWS: [Row; 10] = [
    Row {
        name: "wce",
        about: "the drives' write caches: a power failure loses their contents, unless a battery protects them",
        matters: Matters::Writes,
        present: |setup| if setup.wce { "on".into() } else { "off".into() },
        values: |setup| {
            let disk = matches!(setup.drive(), Drive::Disk(_));
            if disk { vec!["on".into(), "off".into()] } else { Vec::new() }
        },
    },
    Row {
        name: "disks",
        about: "drives, as one volume",
        matters: Matters::Always,
        present: |setup| setup.disks.to_string(),
        values: |setup| [2, 4].map(|times| (setup.disks * times).min(64).to_string()).into(),
    },
    Row {
        name: "buses",
        about: "number of disk buses",
        matters: Matters::Always,
        present: |setup| setup.buses.to_string(),
        values: |setup| {
            let possible =
                setup.drive().model().bus().is_some() && setup.buses * 2 <= setup.disks.min(16);
            possible.then(|| (setup.buses * 2).to_string()).into_iter().collect()
        },
    },
    Row {
        name: "stripe",
        about: "chunk size in bytes",
        matters: Matters::Always,
        present: |setup| size(setup.stripe),
        values: |setup| {
            let striped = setup.disks > 1 && setup.volume != Kind::Mirror;
            if striped { ["16k", "64k", "256k"].map(str::to_owned).into() } else { Vec::new() }
        },
    },
    Row {
        name: "start",
        about: "offset of files from the start of a row of chunks",
        matters: Matters::Always,
        present: |setup| size(setup.start),
        values: |setup| {
            if setup.start.is_multiple_of(setup.stripe) { Vec::new() } else { vec!["0".into()] }
        },
    },
    Row {
        name: "ramcache",
        about: "RAM cache in front of the volume",
        matters: Matters::Always,
        present: |setup| setup.ram_cache.map_or_else(|| "0".into(), |(bytes, _)| size(bytes)),
        values: |_| ["16m", "64m"].map(str::to_owned).into(),
    },
    Row {
        name: "memory",
        about: "memory for file data, as with LargeSystemCache",
        matters: Matters::Buffered,
        present: |setup| size(setup.description.file_system.cache_bytes),
        values: |setup| {
            let present = setup.description.file_system.cache_bytes;
            let room = setup.description.memory.bytes;
            [present * 2, present * 4]
                .into_iter()
                .filter(|&bytes| bytes <= room)
                .map(size)
                .collect()
        },
    },
    Row {
        name: "lastaccess",
        about: "reading a file rewrites its record (NtfsDisableLastAccessUpdate=0)",
        matters: Matters::SmallFiles,
        present: |setup| if setup.last_access { "on".into() } else { "off".into() },
        values: |_| vec!["on".into(), "off".into()],
    },
    Row {
        name: "shape",
        about: "how a thread with several requests outstanding learns of completions",
        matters: Matters::Always,
        present: |setup| setup.shape.name().into(),
        values: |setup| {
            let costs = setup.description.processor.call_us > 0.0;
            Shape::all().filter(|_| costs).map(|shape| shape.name().into()).collect()
        },
    },
    Row {
        name: "readahead",
        about: "units that the file system reads ahead",
        matters: Matters::BufferedReads,
        present: |setup| setup.description.file_system.read_ahead_units.to_string(),
        values: |_| ["0", "1", "4", "16"].map(str::to_owned).into(),
    },
];

pub fn knobs(setup: &Setup) -> Vec<Knob> {
    let knob = |row: &Row| {
        let present = (row.present)(setup);
        let values = (row.values)(setup).into_iter().filter(|value| *value != present);
        Knob {
            name: row.name.into(),
            of: setup.name.clone(),
            about: row.about.into(),
            alternatives: values.map(|value| alternative(row.name, &value)).collect(),
            present,
            matters: row.matters,
            resets: Vec::new(),
        }
    };
    ROWS.iter().map(knob).collect()
}

pub fn alternative(setting: &str, value: &str) -> Alternative {
    let keep =
        Keep { place: "the simulated machine's name".into(), line: format!("{setting}={value}") };
    Alternative { value: value.into(), keep: vec![keep], ..Alternative::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::with_settings;

    #[test]
    fn every_value_is_a_setting_that_the_machine_takes() {
        for name in ["gateway-1997", "gateway-1997,disks=4,buses=2,start=31.5k", "nvme"] {
            let setup = Setup::parse(name).unwrap();
            let knobs = knobs(&setup);
            assert!(knobs.iter().any(|knob| !knob.alternatives.is_empty()), "{name}");
            for knob in knobs {
                for to in &knob.alternatives {
                    let changed = Setup::parse(&with_settings(name, &to.keep[0].line)).unwrap();
                    let row = ROWS.iter().find(|row| row.name == knob.name).unwrap();
                    assert_eq!((row.present)(&changed), to.value, "{name}: {}", knob.name);
                }
            }
        }
    }
}
