//! A disk that a hypervisor serves: a ring of requests, and so many workers behind it.

use crate::disk::us;
use machine::{Nanos, Op};
use serde::{Deserialize, Serialize};

/// A disk that a hypervisor serves, as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtioDisk {
    /// What it is.
    pub about: String,
    /// Its size.
    pub capacity_bytes: u64,
    /// Notification and interrupt of a request.
    pub notify_us: f64,
    /// The hypervisor takes all that is in the ring when it wakes, and interrupts once when all of it is done (Virtual I/O Device (VIRTIO)
    /// 1.1, 2.6.7 "Used Buffer Notification Suppression" and 2.6.10 "Available Buffer Notification Suppression"): a deeper queue shares
    /// the notification. Else each request comes and goes by itself.
    #[serde(default)]
    pub batched: bool,
    /// Requests that the hypervisor serves side by side.
    pub workers: u32,
    /// A worker's time for a read.
    pub read_us: f64,
    /// A worker's time for a write.
    pub write_us: f64,
    /// Rate of one worker's copy in a read.
    pub read_bytes_per_s: f64,
    /// Rate of one worker's copy in a write.
    pub write_bytes_per_s: f64,
    /// What all together move.
    pub total_bytes_per_s: f64,
    /// What all together move in reads, where that differs: then the number before is that of writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_read_bytes_per_s: Option<f64>,
    /// Time of a flush.
    pub flush_us: f64,
    /// Requests in its ring.
    pub queue: u32,
}

/// A disk that a hypervisor serves.
pub struct Virtio {
    disk: VirtioDisk,
    workers: Vec<Nanos>,
    total: Nanos,
    /// The hypervisor is awake and will look at the ring by itself.
    awake: bool,
    /// Time of the workers, mean over them.
    pub worker_busy: Nanos,
    /// Time of the path that all share.
    pub total_busy: Nanos,
}

impl Virtio {
    /// An idle disk.
    pub fn new(disk: VirtioDisk) -> Self {
        let workers = vec![0; disk.workers.max(1) as usize];
        Virtio { disk, workers, total: 0, awake: false, worker_busy: 0, total_busy: 0 }
    }

    /// Idle at the start of a new clock.
    pub fn rest(&mut self) {
        self.workers.fill(0);
        (self.total, self.awake, self.worker_busy, self.total_busy) = (0, false, 0, 0);
    }

    /// The way there, or the way back: half of the notification each.
    fn way(&self) -> Nanos {
        us(self.disk.notify_us / 2.0)
    }

    /// A request that comes and goes by itself, sent at `now`: when the guest learns that it is done.
    pub fn submit(&mut self, now: Nanos, op: Op, len: u64, durable: bool) -> Nanos {
        self.serve(now, op, len, durable) + us(self.disk.notify_us)
    }

    /// There is something in the ring at `now`: when the hypervisor looks at it, if it must be woken for that.
    pub fn wake(&mut self, now: Nanos) -> Option<Nanos> {
        (!std::mem::replace(&mut self.awake, true)).then(|| now + self.way())
    }

    /// The ring is empty: the hypervisor goes to sleep.
    pub fn sleep(&mut self) {
        self.awake = false;
    }

    /// When the guest learns of what is done at `now`.
    pub fn interrupt(&self, now: Nanos) -> Nanos {
        now + self.way()
    }

    /// The hypervisor serves a request that it sees at `now`: when it is done.
    pub fn serve(&mut self, now: Nanos, op: Op, len: u64, durable: bool) -> Nanos {
        let (own, rate) = match op {
            Op::Read => (self.disk.read_us, self.disk.read_bytes_per_s),
            Op::Write => (self.disk.write_us, self.disk.write_bytes_per_s),
        };
        let flush = if durable && op == Op::Write { us(self.disk.flush_us) } else { 0 };
        let service = us(own) + (len as f64 / rate * 1e9) as Nanos + flush;
        let total = self.disk.total_read_bytes_per_s.filter(|_| op == Op::Read).unwrap_or(self.disk.total_bytes_per_s);
        let shared = (len as f64 / total * 1e9) as Nanos;
        let count = self.workers.len() as u64;
        let Some(worker) = self.workers.iter_mut().min() else { return now };
        *worker = (*worker).max(now) + service;
        let done = *worker;
        self.worker_busy += service / count;
        self.total_busy += shared;
        self.total = self.total.max(now) + shared;
        done.max(self.total)
    }

    /// When everything written is safe.
    pub fn flush(&mut self, now: Nanos) -> Nanos {
        now + us(self.disk.flush_us + self.disk.notify_us)
    }

    /// The disk as data.
    pub fn disk(&self) -> &VirtioDisk {
        &self.disk
    }
}
