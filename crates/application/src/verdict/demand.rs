//! Each role as one flow of reads and one of writes.

use super::Shape;
use crate::profile::{FileProfile, FlowProfile, Profile, Role, SEQUENTIAL};
use workload::OpKind;

pub(super) struct Demand {
    pub role: Role,
    pub op: OpKind,
    pub files: u64,
    /// The file waited for longest.
    pub name: String,
    pub shape: Shape,
    /// While a request is under way.
    pub iops: f64,
    pub busy_share: f64,
    pub waited_share: f64,
    /// Share of the durable writes' waiting in flushes.
    pub flush_share: f64,
    pub writes_per_flush: f64,
    /// Share of direct requests not in whole 4 KiB blocks.
    pub unaligned: f64,
    /// Bytes of devices during the calls, over the calls' bytes.
    pub device_share: Option<f64>,
    pub device_request_bytes: Option<f64>,
    pub bytes: f64,
    pub working_set_bytes: u64,
    /// Serves most of the repeated reads.
    pub cache_bytes: u64,
}

impl Demand {
    pub(super) fn bytes_per_s(&self) -> f64 {
        self.iops * self.shape.request_bytes
    }

    pub(super) fn read_again(&self) -> Option<f64> {
        let from_device = self.device_share? * self.bytes;
        let known = self.working_set_bytes > 0 && from_device > 0.0;
        known.then(|| (1.0 - self.working_set_bytes as f64 / from_device).max(0.0))
    }
}

#[derive(Default)]
struct Sums {
    files: u64,
    waited_ns: f64,
    requests: f64,
    bytes: f64,
    located: f64,
    sequential: f64,
    direct: f64,
    unaligned: f64,
    dsync: f64,
    syncs: f64,
    sync_ns: f64,
    /// With a request under way, summed over the files.
    busy_ns: f64,
    /// Requests under way times time.
    spent_ns: f64,
    grown: f64,
    device: Option<(f64, f64)>,
    has_unseen: bool,
    working_set: u64,
    cache: u64,
}

impl Sums {
    fn add(&mut self, file: &FileProfile, flow: &FlowProfile, op: OpKind) {
        let requests = flow.requests as f64;
        self.files += 1;
        self.waited_ns += flow.waited_ns as f64;
        self.requests += requests;
        self.bytes += flow.bytes as f64;
        let ordered = flow.sequential.map(|share| share + flow.rewrites.unwrap_or(0.0));
        self.sequential += ordered.unwrap_or(0.0) * requests;
        self.located += if flow.sequential.is_some() { requests } else { 0.0 };
        self.direct += flow.direct * requests;
        self.unaligned += flow.direct * (1.0 - flow.aligned.unwrap_or(1.0)) * requests;
        self.dsync += flow.durable * requests;
        if let Some(busy) = &file.concurrency {
            self.busy_ns += busy.busy_ns as f64;
            self.spent_ns += busy.mean * busy.busy_ns as f64;
        }
        match (file.device, op) {
            (None, _) => self.has_unseen = true,
            (Some(device), op) => {
                let (count, bytes) = match op {
                    OpKind::Read => (device.reads, device.read_bytes),
                    _ => (device.writes, device.written_bytes),
                };
                let (requests, moved) = self.device.get_or_insert((0.0, 0.0));
                *requests += count as f64;
                *moved += bytes as f64;
            }
        }
        if op == OpKind::Read {
            if let Some(locality) = &file.locality {
                self.working_set += locality.working_set_bytes;
                self.cache += locality.cache_bytes;
            }
            return;
        }
        self.grown += f64::from(u8::from(file.grown_to_bytes.is_some())) * requests;
        if let Some(syncs) = &file.syncs {
            self.syncs += syncs.calls as f64;
            self.sync_ns += syncs.waited_ns as f64;
            if let Some(busy) = &syncs.concurrency {
                self.busy_ns += busy.busy_ns as f64;
                self.spent_ns += busy.mean * busy.busy_ns as f64;
            }
        }
    }

    fn demand(self, (role, op, name): (Role, OpKind, String), profile: &Profile) -> Option<Demand> {
        let elapsed = profile.elapsed_ns as f64;
        let waited = self.waited_ns + self.sync_ns;
        if self.requests == 0.0 || waited <= 0.0 || elapsed <= 0.0 {
            return None;
        }
        let is_dsync = self.dsync * 2.0 > self.requests;
        // A checkpoint is durable as a whole; its writes are not.
        let is_synced = role == Role::Log && self.syncs > 0.0;
        let durable = op == OpKind::Write && (is_dsync || is_synced);
        let flushes = if is_synced && !is_dsync { self.syncs } else { self.requests };
        let units = if durable { flushes } else { self.requests };
        let own = if durable { waited } else { self.waited_ns };
        // Files of a role are taken as used in turn, as far as the time allows. Reads and writes of
        // a file share its concurrency.
        let outstanding = (self.spent_ns / self.busy_ns.min(elapsed).max(1.0)).max(1.0);
        let busy = (own / outstanding).max(1.0);
        Some(Demand {
            role,
            op,
            files: self.files,
            name,
            shape: Shape {
                request_bytes: self.bytes / units,
                sequential: self.sequential >= SEQUENTIAL * self.located.max(1.0),
                outstanding,
                durable,
                direct: self.direct * 2.0 > self.requests,
                extends: self.grown * 2.0 > self.requests,
            },
            iops: units / (busy * 1e-9),
            busy_share: (busy / elapsed).min(1.0),
            waited_share: own / (profile.waited_ns as f64).max(1.0),
            flush_share: if is_dsync { 1.0 } else { self.sync_ns / waited },
            writes_per_flush: if is_dsync { 1.0 } else { self.requests / self.syncs.max(1.0) },
            unaligned: self.unaligned / self.direct.max(1.0),
            device_share: self
                .device
                .filter(|_| !self.has_unseen)
                .map(|(_, moved)| moved / self.bytes.max(1.0)),
            device_request_bytes: self
                .device
                .filter(|(requests, _)| *requests > 0.0)
                .map(|(requests, moved)| moved / requests),
            bytes: self.bytes,
            working_set_bytes: self.working_set,
            cache_bytes: self.cache,
        })
    }
}

pub(super) fn demands(profile: &Profile) -> Vec<Demand> {
    let mut all = Vec::new();
    for role in Role::ALL {
        for op in [OpKind::Read, OpKind::Write] {
            let mut sums = Sums::default();
            let mut name = None;
            // The longest waited for come first.
            for file in profile.files.iter().filter(|file| file.role == role) {
                let flow = if op == OpKind::Read { &file.reads } else { &file.writes };
                if let Some(flow) = flow {
                    sums.add(file, flow, op);
                    name.get_or_insert_with(|| file.name.clone());
                }
            }
            all.extend(name.and_then(|name| sums.demand((role, op, name), profile)));
        }
    }
    all
}
