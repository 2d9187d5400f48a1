//! docs/presets.md is made from the table of presets: `UPDATE=1 cargo test -p halfpower-tune`.

use machine::units::show_time;
use std::fmt::Write;
use tune::PROFILES;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/presets.md");

const START: &str = "# Presets

A preset is the storage workload of a typical program:

    halfpower run . --workload etcd              # is it fast enough for etcd?
    halfpower run . --workload postgres-oltp     # pages and log, each by itself, then both at once
    halfpower tune . --profile kafka             # which settings could help it?
    halfpower compare --a /mnt/ext4 --b /mnt/xfs --workload rocksdb
    halfpower check . --workload etcd            # as fast as in the first run of it?

`--workload` and `--profile` are the same option. If a preset has a published bar for its p99, the answer says
whether it holds. A synced write is durable when it returns (`O_DSYNC`).

| preset | workload | p99 below | source |
|---|---|---|---|
";

fn page() -> String {
    let mut page = START.to_owned();
    for one in PROFILES {
        let bar = one.p99_ns.map_or(String::new(), |ns| show_time(ns as f64));
        let own = match one.own {
            "" => String::new(),
            own => format!("halfpower's own choice: {own}"),
        };
        let parts: Vec<&str> =
            [one.source, own.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
        writeln!(page, "| `{}` | {} | {bar} | {} |", one.name, one.about, parts.join("; "))
            .unwrap();
    }
    page
}

#[test]
fn every_preset_has_a_source_or_is_marked_as_our_own() {
    for one in PROFILES {
        assert!(!one.source.is_empty() || !one.own.is_empty(), "{}", one.name);
        // No source says how many requests are outstanding.
        for number in ["16 outstanding", "32 outstanding", "two outstanding", "16 at once"] {
            assert_eq!(one.about.contains(number), one.own.contains(number), "{}", one.name);
        }
    }
}

#[test]
fn the_page_lists_every_preset() {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PAGE, page()).unwrap();
    }
    let is = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(is, page(), "run UPDATE=1 cargo test -p halfpower-tune");
}
