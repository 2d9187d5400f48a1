//! Requests that reached block devices.

use super::seen::{Sectors, Step};
use apptrace::Access;
use machine::Nanos;
use std::collections::BTreeMap;

/// The kernel drops some requests without a completion.
const MAX_PENDING: usize = 1 << 14;

const SECTOR_BYTES: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeviceRequest {
    pub(super) at: Nanos,
    /// `None` of a flush without data, as its completion names no request.
    pub(super) duration: Option<Nanos>,
    /// The thread that queued it; a kernel thread for written-back pages.
    pub(super) thread: i32,
    pub(super) device: (u32, u32),
    pub(super) access: Access,
    pub(super) metadata: bool,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

struct Queued {
    at: Nanos,
    end: u64,
    left: u64,
    thread: i32,
    access: Access,
    metadata: bool,
}

#[derive(Default)]
pub(super) struct Devices(BTreeMap<((u32, u32), u64), Queued>);

impl Devices {
    pub(super) fn see(
        &mut self,
        at: Nanos,
        thread: i32,
        step: Step,
        sectors: &Sectors,
    ) -> Vec<DeviceRequest> {
        let Sectors { device, first, count, letters } = *sectors;
        if count == 0 {
            let is_new = step == Step::Queued && letters[0] == b'F';
            let flush = DeviceRequest {
                at,
                duration: None,
                thread,
                device,
                access: Access::Flush,
                metadata: false,
                offset: 0,
                bytes: 0,
            };
            return if is_new { vec![flush] } else { Vec::new() };
        }
        let Some(access) = access(letters) else { return Vec::new() };
        let end = first.saturating_add(count);
        match step {
            Step::Queued => {
                if self.0.len() >= MAX_PENDING {
                    self.0.clear();
                }
                let metadata = letters.contains(&b'M');
                let queued = Queued { at, end, left: count, thread, access, metadata };
                self.0.insert((device, first), queued);
                Vec::new()
            }
            Step::Completed => self.complete(at, device, first..end),
        }
    }

    fn complete(
        &mut self,
        at: Nanos,
        device: (u32, u32),
        range: std::ops::Range<u64>,
    ) -> Vec<DeviceRequest> {
        let from = self.0.range((device, 0)..=(device, range.start)).next_back();
        let from = from.map_or(range.start, |(key, _)| key.1);
        let mut done = Vec::new();
        for (&key, queued) in self.0.range_mut((device, from)..(device, range.end)) {
            let shared = queued.end.min(range.end).saturating_sub(key.1.max(range.start));
            queued.left = queued.left.saturating_sub(shared);
            if shared > 0 && queued.left == 0 {
                done.push(key);
            }
        }
        let request = |key: ((u32, u32), u64)| {
            let queued = self.0.remove(&key)?;
            Some(DeviceRequest {
                at: queued.at,
                duration: Some(at.saturating_sub(queued.at)),
                thread: queued.thread,
                device: key.0,
                access: queued.access,
                metadata: queued.metadata,
                offset: key.1 * SECTOR_BYTES,
                bytes: (queued.end - key.1) * SECTOR_BYTES,
            })
        };
        done.into_iter().filter_map(request).collect()
    }

    pub(super) fn first(&self) -> Option<Nanos> {
        self.0.values().map(|queued| queued.at).min()
    }
}

/// The kernel's letters (kernel/trace/blktrace.c, `blk_fill_rwbs`): a write of the cache with data
/// begins with `F`.
fn access(letters: [u8; 8]) -> Option<Access> {
    match letters.iter().find(|&&letter| letter != b'F')? {
        b'R' => Some(Access::Read),
        b'W' => Some(Access::Write),
        b'D' => Some(Access::Discard),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_and_merged_requests_are_followed() {
        let mut devices = Devices::default();
        let mut see = |at, step, first, count| {
            let sectors = Sectors { device: (7, 0), first, count, letters: *b"WSM\0\0\0\0\0" };
            devices.see(at, 5, step, &sectors)
        };
        assert_eq!(see(10, Step::Queued, 0, 2048), []);
        assert_eq!(see(11, Step::Queued, 2048, 8), []);
        assert_eq!(see(20, Step::Completed, 0, 1096), []);
        // The rest of the first, and the second, merged.
        let done = see(30, Step::Completed, 1096, 960);
        let of = |at, offset, bytes| DeviceRequest {
            at,
            duration: Some(30 - at),
            thread: 5,
            device: (7, 0),
            access: Access::Write,
            metadata: true,
            offset,
            bytes,
        };
        assert_eq!(done, [of(10, 0, 1 << 20), of(11, 1 << 20, 4096)]);
        assert_eq!(devices.first(), None);
    }

    #[test]
    fn flushes_without_data_are_seen_once() {
        let mut devices = Devices::default();
        let flush = Sectors { device: (7, 0), first: 0, count: 0, letters: *b"FWS\0\0\0\0\0" };
        let done = devices.see(10, 5, Step::Queued, &flush);
        assert_eq!((done.len(), done[0].access, done[0].duration), (1, Access::Flush, None));
        assert_eq!(devices.see(12, 5, Step::Completed, &flush), []);
        assert_eq!(access(*b"FF\0\0\0\0\0\0"), None);
        assert_eq!(access(*b"FWFSM\0\0\0"), Some(Access::Write));
        assert_eq!(access(*b"RA\0\0\0\0\0\0"), Some(Access::Read));
    }
}
