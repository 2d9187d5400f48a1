//! One file that all ranks use, each its own part.

use workload::{ClientFiles, Pattern, Workload};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedFile {
    /// First byte of the part.
    pub start: u64,
    /// Bytes of the part.
    pub whole: u64,
    /// Bytes of the largest request.
    pub request: u64,
    /// Distance, in ranks, to the part that each rank reads.
    pub shift: u64,
    /// Written, and made if it does not exist.
    pub writes: bool,
}

impl SharedFile {
    pub fn each(&self, ranks: u64) -> u64 {
        self.whole / ranks / self.request * self.request
    }

    pub(crate) fn give(&self, workload: &mut Workload, rank: u64, ranks: u64) {
        // A client reads data that another has written.
        let shift = if workload.writes() { 0 } else { self.shift };
        let place = (rank + shift) % ranks;
        if workload.client_files == ClientFiles::Interleaved {
            let request = u64::from(workload.request_bytes);
            workload.region_start_bytes = self.start + place * request;
            workload.region_bytes = Some(self.whole - (ranks - 1) * request);
            workload.pattern = Pattern::Stride(ranks * request);
        } else {
            workload.region_start_bytes = self.start + place * self.each(ranks);
            workload.region_bytes = Some(self.each(ranks));
        }
    }
}
