//! Important settings of a layer, and risks of data loss.

use machine::{Layer, LayerKind};

/// In reading order; others follow by name.
const FIRST: [&str; 60] = [
    "start_bytes",
    "aligned_to_physical_block",
    "aligned_to_optimal_io",
    "service",
    "source",
    "direct_io_means",
    "vers",
    "proto",
    "addr",
    "nconnect",
    "rsize",
    "wsize",
    "block_bytes",
    "journal",
    "data",
    "commit",
    "barrier",
    "compress",
    "compression",
    "atime",
    "stripe",
    "sunit",
    "swidth",
    "free_percent",
    "extents",
    "state",
    "level",
    "members",
    "chunk_bytes",
    "layout",
    "degraded",
    "encryption",
    "cache_mode",
    "cache_device",
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "read_ahead_bytes",
    "max_sectors_kb",
    "physical_block_size",
    "optimal_io_size",
    "write_cache",
    "fua",
    "cache_type",
    "rotational",
    "discard_max_bytes",
    "zoned",
    "hardware_queues",
    "queue_depth",
    "namespace",
    "backing_file",
    "direct_io",
    "model",
    "transport",
    "address",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "sata_spd",
];

/// These repeat the stage's name or another setting, or are never tuned.
const LEFT_OUT: [&str; 22] = [
    "mount",
    "size_bytes",
    "kind",
    "vendor",
    "raid_disks",
    "logical_block_size",
    "minimum_io_size",
    "max_hw_sectors_kb",
    "max_segments",
    "nomerges",
    "rq_affinity",
    "io_poll",
    "wbt_lat_usec",
    "discard_granularity",
    "queue_type",
    "array_state",
    "metadata_version",
    "provisioning_mode",
    "removable",
    "aligned_to_4_kib",
    "aligned_to_1_mib",
    "sata_spd_limit",
];

const IF_ANY: [&str; 7] = [
    "optimal_io_size",
    "chunk_sectors",
    "dax",
    "offset_bytes",
    "sequential_cutoff",
    "degraded",
    "group_thread_cnt",
];

pub(super) fn settings(layer: &Layer) -> Vec<(String, String)> {
    let none = |value: &str| matches!(value, "" | "0" | "0.0k");
    let reported = |name: &str, value: &str| {
        let own = FIRST.contains(&name) || !LEFT_OUT.contains(&name);
        own && !(IF_ANY.contains(&name) && none(value))
    };
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    let mut all: Vec<(String, String)> = layer.settings.clone().into_iter().collect();
    all.retain(|(name, value)| reported(name, value));
    // The sort is stable: the rest stays sorted by name.
    all.sort_by_key(|(name, _)| place(name));
    all
}

pub(super) fn risks(layers: &[Layer]) -> Vec<String> {
    let mut risks = Vec::new();
    for layer in layers {
        let facts = &layer.facts;
        if matches!(layer.kind, LayerKind::Disk | LayerKind::Loop)
            && facts.write_cache == Some(true)
        {
            risks.push(format!(
                "{} has a volatile write cache: after a power failure only flushed data (fsync, O_DSYNC) are certain to be there",
                layer.name
            ));
        }
        if facts.file_system.as_ref().is_some_and(|system| system.no_barriers) {
            risks.push(format!(
                "{} flushes no write cache (barriers are off): even fsync may lose data",
                layer.name
            ));
        }
        if facts.array.as_ref().is_some_and(|array| array.missing > 0) {
            risks.push(format!(
                "{} has a member missing: the next one to fail may lose data",
                layer.name
            ));
        }
        if facts.writeback_device {
            risks.push(format!(
                "{} keeps written data only in its cache device until it copies them",
                layer.name
            ));
        }
    }
    risks
}
