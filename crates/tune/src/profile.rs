//! Common programs as a few workloads each.

use machine::{Buffering, CacheState, Engine};
use workload::{Pattern, Workload};

#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Name on the command line.
    pub name: &'static str,
    pub about: &'static str,
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

pub const PROFILES: [Profile; 5] = [
    Profile {
        name: "database",
        about: "random 8 KiB pages, 70 % reads, 16 outstanding; synced log writes",
        workloads: |deep| vec![pages(deep, 8, 70, 16), log(8)],
    },
    Profile {
        name: "log",
        about: "synced writes of 4 KiB, one after the other",
        workloads: |_| vec![log(4)],
    },
    Profile {
        name: "backup",
        about: "whole files read and written sequentially through the page cache",
        workloads: |_| vec![streamed(100), streamed(0)],
    },
    Profile {
        name: "mail",
        about: "small files: random reads and synced writes of 16 KiB through the page cache",
        workloads: |_| vec![message(100), message(0)],
    },
    Profile {
        name: "vm",
        about: "virtual machine disks: random 4 KiB, 70 % reads, 32 outstanding; sequential 256 KiB",
        workloads: |deep| {
            let image =
                Workload { request_bytes: kib(256), depth: 4, engine: deep, ..Workload::default() };
            vec![pages(deep, 4, 70, 32), image]
        },
    },
];

/// Random, bypassing the page cache.
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

/// Sequential writes, each durable before the next.
fn log(k: u32) -> Workload {
    Workload {
        read_percent: 0,
        request_bytes: kib(k),
        buffering: Buffering::BufferedDsync,
        ..Workload::default()
    }
}

/// A whole file through the page cache.
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

/// Messages of a mailbox.
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
            for workload in workloads {
                workload
                    .check(1 << 30, 512)
                    .unwrap_or_else(|error| panic!("{}: {error}", profile.name));
            }
        }
    }
}
