/// Counters of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub context_switches: u64,
    pub major_faults: u64,
    pub minor_faults: u64,
    /// User, system.
    pub cpu_ns: [u64; 2],
}

/// A device's reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskUse {
    pub name: String,
    pub requests: [u64; 2],
    /// Of 512 bytes.
    pub sectors: [u64; 2],
    pub merges: [u64; 2],
    /// Summed over requests.
    pub ticks_ms: [u64; 2],
    /// Summed over all requests.
    pub queue_ms: u64,
    /// With a request in flight.
    pub busy_ms: u64,
}

/// Statistics beyond [`machine::Usage`].
pub trait SystemStats: Sync {
    fn counts(&self) -> Counts;
    /// Omits devices without counters.
    fn disks(&self, names: &[String]) -> Vec<DiskUse>;
    fn unix_ms(&self) -> u64;
}

impl Counts {
    pub(crate) fn since(self, before: Counts) -> Counts {
        Counts {
            context_switches: self.context_switches.saturating_sub(before.context_switches),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            cpu_ns: [0, 1].map(|part| self.cpu_ns[part].saturating_sub(before.cpu_ns[part])),
        }
    }
}

impl DiskUse {
    pub(crate) fn all_since(now: &[DiskUse], before: &[DiskUse]) -> Vec<DiskUse> {
        let since = |disk: &DiskUse| {
            before.iter().find(|was| was.name == disk.name).map(|was| disk.since(was))
        };
        now.iter().filter_map(since).collect()
    }

    pub(crate) fn since(&self, before: &DiskUse) -> DiskUse {
        let less = |now: [u64; 2], then: [u64; 2]| {
            [now[0].saturating_sub(then[0]), now[1].saturating_sub(then[1])]
        };
        DiskUse {
            name: self.name.clone(),
            requests: less(self.requests, before.requests),
            sectors: less(self.sectors, before.sectors),
            merges: less(self.merges, before.merges),
            ticks_ms: less(self.ticks_ms, before.ticks_ms),
            queue_ms: self.queue_ms.saturating_sub(before.queue_ms),
            busy_ms: self.busy_ms.saturating_sub(before.busy_ms),
        }
    }
}
