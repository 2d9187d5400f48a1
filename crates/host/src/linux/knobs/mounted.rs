//! Knobs of mounts, set by remount (mount(8), ext4(5), btrfs(5)).

use super::knob::{HostKnob, Keeper, safe};
use super::place::Place;
use super::values::Values;
use crate::linux::facts::{Mount, Roots, mount_of};
use machine::Matters;
use std::path::{Path, PathBuf};

struct Row {
    name: &'static str,
    about: &'static str,
    file_systems: &'static [&'static str],
    place: fn(PathBuf) -> Place,
    prefix: &'static str,
    matters: Matters,
    values: &'static [&'static str],
    risk: fn(&str, &str) -> Option<String>,
}

const ON_BLOCKS: [&str; 6] = ["ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat"];

const ROWS: [Row; 3] = [
    Row {
        name: "atime",
        about: "when a read updates the file's access time",
        file_systems: &ON_BLOCKS,
        place: Place::Atime,
        prefix: "",
        matters: Matters::BufferedReads,
        values: &["noatime", "relatime"],
        risk: safe,
    },
    Row {
        name: "commit",
        about: "seconds between commits of the file system",
        file_systems: &["ext3", "ext4", "btrfs"],
        place: Place::Commit,
        prefix: "commit=",
        matters: Matters::BufferedWrites,
        values: &["5", "30", "60"],
        risk: |present, value| {
            let longer = value.parse::<u32>().ok()? > present.parse::<u32>().ok()?;
            longer
                .then(|| format!("a crash loses up to {value} s of writes that no program has synced, not {present} s"))
        },
    },
    Row {
        name: "discard",
        about: "whether freed space is discarded immediately",
        file_systems: &["ext4"],
        place: Place::Discard,
        prefix: "",
        matters: Matters::Writes,
        values: &["discard", "nodiscard"],
        risk: safe,
    },
];

pub(super) fn known(place: &Place) -> (String, Values) {
    let (name, values) = match place {
        Place::Atime(_) => ("atime", Values::Words(&["noatime", "relatime", "strictatime"])),
        Place::Discard(_) => ("discard", Values::Words(&["discard", "nodiscard"])),
        Place::Commit(_) | Place::File(_) => ("commit", Values::Number),
    };
    (name.into(), values)
}

pub(super) fn knobs(roots: &Roots, paths: &[&Path]) -> Vec<HostKnob> {
    let mut mounts: Vec<Mount> = Vec::new();
    for path in paths {
        // A device node's mount is unrelated to the device.
        let on_files =
            mount_of(roots, path).ok().filter(|mount| ON_BLOCKS.contains(&mount.fs_type.as_str()));
        if let Some(mount) = on_files
            .filter(|one| !one.has_option("ro") && !mounts.iter().any(|known| known.id == one.id))
        {
            mounts.push(mount);
        }
    }
    mounts
        .iter()
        .flat_map(|mount| ROWS.iter().filter_map(|row| of_row(roots, mount, row)))
        .collect()
}

fn of_row(roots: &Roots, mount: &Mount, row: &Row) -> Option<HostKnob> {
    if !row.file_systems.contains(&mount.fs_type.as_str()) {
        return None;
    }
    let at = &mount.mount_point;
    let keeper = Keeper::Fstab { at: at.clone(), prefix: row.prefix };
    let of = at.display().to_string();
    let mut knob =
        HostKnob::at(roots, row.name, of, row.about, vec![(row.place)(at.clone())], keeper)?;
    knob.knob.matters = row.matters;
    knob.risk = row.risk;
    Some(knob.with_values(row.values.iter().map(|&value| value.to_owned())))
}
