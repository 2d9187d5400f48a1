//! Common programs as a few workloads each: `run --workload`, `tune --profile`, `check --workload`.

use machine::{Buffering, CacheState, Engine, Nanos};
use workload::{Pattern, Workload};

#[derive(Debug, Clone, Copy)]
pub struct Profile {
    pub name: &'static str,
    pub about: &'static str,
    /// Of its sizes and mix.
    pub source: &'static str,
    /// Chosen by halfpower because no source gives them.
    pub own: &'static str,
    /// The published limit of the 99th percentile; only for a single workload.
    pub p99_ns: Option<Nanos>,
    workloads: fn(deep: Engine) -> Vec<Workload>,
}

impl Profile {
    /// `deep` is the engine that keeps several requests outstanding.
    pub fn workloads(&self, deep: Engine) -> Vec<Workload> {
        (self.workloads)(deep)
    }

    pub fn named(name: &str) -> Option<&'static Profile> {
        PROFILES.iter().find(|profile| profile.name == name)
    }
}

fn kib(k: u32) -> u32 {
    k << 10
}

pub const PROFILES: [Profile; 10] = [
    Profile {
        name: "postgres-oltp",
        about: "random 8 KiB pages, 70 % reads, 16 outstanding; synced log writes of 8 KiB",
        source: "PostgreSQL manual, block_size, wal_block_size and wal_sync_method; 70 % random reads: Dell, VxRail Performance Analysis, OLTP 8 KB",
        own: "16 outstanding",
        p99_ns: None,
        workloads: |deep| vec![pages(deep, 8, 70, 16), log(kib(8))],
    },
    Profile {
        name: "mysql",
        about: "random 16 KiB pages past the cache, 70 % reads, 16 outstanding; synced log writes of 8 KiB",
        source: "MySQL 8.4 manual, innodb_page_size, innodb_flush_method, innodb_log_write_ahead_size and innodb_flush_log_at_trx_commit; 70 % random reads: Dell, VxRail Performance Analysis, OLTP 16 KB",
        own: "16 outstanding",
        p99_ns: None,
        workloads: |deep| vec![pages(deep, 16, 70, 16), log(kib(8))],
    },
    Profile {
        name: "etcd",
        about: "synced writes of 2300 bytes, one after the other; their p99 should be below 10 ms",
        source: "Olivi and Spreitzer, Using Fio to Tell Whether Your Storage is Fast Enough for Etcd (IBM, 2019)",
        own: "",
        p99_ns: Some(10_000_000),
        workloads: |_| vec![log(2300)],
    },
    Profile {
        name: "kafka",
        about: "8 partitions appended in batches of 16 KiB through the page cache; a late consumer reads 1 MiB at a time",
        source: "Apache Kafka documentation, batch.size, max.partition.fetch.bytes, log.flush.interval.messages (it leaves flushes to the system), and num.partitions of its production server configuration",
        own: "a consumer that is late",
        p99_ns: None,
        workloads: |_| {
            let append =
                Workload { threads: 8, request_bytes: kib(16), sync_at_end: false, ..streamed(0) };
            vec![append, Workload { request_bytes: kib(1024), ..streamed(100) }]
        },
    },
    Profile {
        name: "rocksdb",
        about: "random 4 KiB blocks read by 16 at once; compactions read 2 MiB and write 1 MiB at a time",
        source: "RocksDB options block_size, compaction_readahead_size and writable_file_max_buffer_size, and its benchmark readrandom",
        own: "16 at once",
        p99_ns: None,
        workloads: |deep| {
            let write = Workload { request_bytes: kib(1024), ..streamed(0) };
            vec![
                pages(deep, 4, 100, 16),
                Workload { request_bytes: kib(2048), ..streamed(100) },
                write,
            ]
        },
    },
    Profile {
        name: "log",
        about: "synced writes of 4 KiB, one after the other",
        source: "SQLite, Write-Ahead Logging: a frame holds a page, 4096 bytes by default",
        own: "",
        p99_ns: None,
        workloads: |_| vec![log(kib(4))],
    },
    Profile {
        name: "backup",
        about: "whole files read and written sequentially through the page cache, 128 KiB at a time",
        source: "GNU coreutils 9.4, src/ioblksize.h: cp copies 128 KiB at a time",
        own: "",
        p99_ns: None,
        workloads: |_| vec![streamed(100), streamed(0)],
    },
    Profile {
        name: "mail",
        about: "small files: random reads and synced writes of 16 KiB through the page cache",
        source: "",
        own: "sizes, order and mix",
        p99_ns: None,
        workloads: |_| vec![message(100), message(0)],
    },
    Profile {
        name: "vm-boot",
        about: "virtual machines boot: random 8 KiB, 95 % reads, 32 outstanding",
        source: "ThinScale, ThinIO facts and figures, part 2: a boot moves 560 MB in 70,000 requests, and writes 20 to 30 MB of it",
        own: "random, 32 outstanding",
        p99_ns: None,
        workloads: |deep| vec![pages(deep, 8, 95, 32)],
    },
    Profile {
        name: "video",
        about: "frames of 4 MiB read and written sequentially past the cache, two outstanding",
        source: "Apple ProRes White Paper: 422 HQ at 3840 x 2160 and 29.97 frames/s takes 884 Mbit/s, 3.7 MB a frame",
        own: "two outstanding",
        p99_ns: None,
        workloads: |deep| vec![frames(deep, 100), frames(deep, 0)],
    },
];

fn frames(deep: Engine, read_percent: u8) -> Workload {
    Workload {
        read_percent,
        request_bytes: kib(4096),
        depth: 2,
        engine: deep,
        ..Workload::default()
    }
}

fn pages(deep: Engine, k: u32, read_percent: u8, depth: u32) -> Workload {
    Workload {
        read_percent,
        pattern: Pattern::Random,
        request_bytes: kib(k),
        depth,
        engine: deep,
        ..Workload::default()
    }
}

fn log(request_bytes: u32) -> Workload {
    Workload {
        read_percent: 0,
        request_bytes,
        buffering: Buffering::BufferedDsync,
        ..Workload::default()
    }
}

fn streamed(read_percent: u8) -> Workload {
    Workload {
        read_percent,
        request_bytes: kib(128),
        buffering: Buffering::Buffered,
        cache: if read_percent > 0 { CacheState::Cold } else { CacheState::AsIs },
        sync_at_end: read_percent == 0,
        ..Workload::default()
    }
}

fn message(read_percent: u8) -> Workload {
    Workload {
        pattern: Pattern::Random,
        request_bytes: kib(16),
        buffering: if read_percent == 0 { Buffering::BufferedDsync } else { Buffering::Buffered },
        ..streamed(read_percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_makes_workloads_that_can_run() {
        for profile in PROFILES {
            let workloads = profile.workloads(Engine::IoUring);
            assert!(!workloads.is_empty());
            assert!(profile.p99_ns.is_none() || workloads.len() == 1, "{}", profile.name);
            for workload in workloads {
                workload
                    .check(1 << 30, 512)
                    .unwrap_or_else(|error| panic!("{}: {error}", profile.name));
            }
        }
    }
}
