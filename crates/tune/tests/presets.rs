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
        writeln!(page, "| `{}` | {} | {bar} | {} |", one.name, one.about, one.source).unwrap();
    }
    page
}

#[test]
fn the_page_lists_every_preset() {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PAGE, page()).unwrap();
    }
    let is = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(is, page(), "run UPDATE=1 cargo test -p halfpower-tune");
}
