//! A virtual disk: a ring with workers.

use crate::device::{Command, Device, Drives, Host, Model, Outcome, Slot, Tunable};
use crate::event::Wake;
use crate::units::us;
use machine::{Layer, Nanos, Op};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtioDisk {
    pub about: String,
    pub capacity_bytes: u64,
    /// Includes the interrupt.
    pub notify_us: f64,
    /// The hypervisor takes the whole ring when it wakes, and interrupts once when all is done
    /// (Virtual I/O Device (VIRTIO) 1.1, 2.6.7 and 2.6.10). Otherwise each request has its own
    /// notification.
    #[serde(default)]
    pub batched: bool,
    /// Requests served in parallel.
    pub workers: u32,
    pub read_us: f64,
    pub write_us: f64,
    /// Of one worker.
    pub read_bytes_per_s: f64,
    /// Of one worker.
    pub write_bytes_per_s: f64,
    pub total_bytes_per_s: f64,
    /// If it differs; `total_bytes_per_s` is then for writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_read_bytes_per_s: Option<f64>,
    pub flush_us: f64,
    pub queue: u32,
}

impl Model for VirtioDisk {
    fn build(&self, _slot: Slot) -> Box<dyn Device> {
        Box::new(Virtio::new(self.clone()))
    }

    fn layers(&self, drives: &Drives<'_>) -> Vec<Layer> {
        vec![drives.disks(None)]
    }

    fn scale_latency(&mut self, by: f64) {
        for time in [&mut self.notify_us, &mut self.read_us, &mut self.write_us, &mut self.flush_us]
        {
            *time *= by;
        }
    }

    fn tunable(&mut self) -> Vec<Tunable<'_>> {
        let mut numbers = vec![
            Tunable::new("total_bytes_per_s", &mut self.total_bytes_per_s),
            Tunable::new("read_us", &mut self.read_us),
            Tunable::new("write_us", &mut self.write_us),
            Tunable::new("notify_us", &mut self.notify_us),
            Tunable::new("read_bytes_per_s", &mut self.read_bytes_per_s),
            Tunable::new("write_bytes_per_s", &mut self.write_bytes_per_s),
        ];
        numbers.extend(
            self.total_read_bytes_per_s
                .as_mut()
                .map(|rate| Tunable::new("total_read_bytes_per_s", rate)),
        );
        numbers
    }
}

const DONE: u8 = 0;
const LOOK: u8 = 1;

struct Virtio {
    disk: VirtioDisk,
    workers: Vec<Nanos>,
    total: Nanos,
    /// Not yet seen by the hypervisor.
    ring: VecDeque<u32>,
    awake: bool,
    worker_busy: Nanos,
    total_busy: Nanos,
}

impl Virtio {
    fn new(disk: VirtioDisk) -> Self {
        let workers = vec![0; disk.workers.max(1) as usize];
        Virtio {
            disk,
            workers,
            total: 0,
            ring: VecDeque::new(),
            awake: false,
            worker_busy: 0,
            total_busy: 0,
        }
    }

    fn way(&self) -> Nanos {
        us(self.disk.notify_us / 2.0)
    }

    fn look(&mut self, host: &mut Host<'_>) {
        let now = host.now();
        let batch = self.ring.len().min(self.disk.queue as usize);
        self.awake = batch > 0;
        if !self.awake {
            return;
        }
        let mut done = now;
        for place in 0..batch {
            done = done.max(self.serve(now, &host.commands[self.ring[place]]));
        }
        let seen_by_guest = done + self.way();
        for command in self.ring.drain(..batch) {
            host.wake(seen_by_guest, Wake { what: DONE, command });
        }
        host.wake(done, Wake::device(LOOK));
    }
}

impl Device for Virtio {
    fn capacity_bytes(&self) -> u64 {
        self.disk.capacity_bytes
    }

    /// A batch takes at most one ring; later commands wait in the ring.
    fn queue(&self) -> u32 {
        if self.disk.batched { u32::MAX } else { self.disk.queue }
    }

    fn rest(&mut self, _now: Nanos) {
        self.workers.fill(0);
        self.ring.clear();
        (self.total, self.awake, self.worker_busy, self.total_busy) = (0, false, 0, 0);
    }

    fn serve(&mut self, now: Nanos, command: &Command) -> Nanos {
        let Command { op, bytes, durable, .. } = *command;
        let (own, rate) = match op {
            Op::Read => (self.disk.read_us, self.disk.read_bytes_per_s),
            Op::Write => (self.disk.write_us, self.disk.write_bytes_per_s),
        };
        let flush = if durable && op == Op::Write { us(self.disk.flush_us) } else { 0 };
        let service = us(own) + (bytes as f64 / rate * 1e9) as Nanos + flush;
        let total = self
            .disk
            .total_read_bytes_per_s
            .filter(|_| op == Op::Read)
            .unwrap_or(self.disk.total_bytes_per_s);
        let shared = (bytes as f64 / total * 1e9) as Nanos;
        let count = self.workers.len() as u64;
        let Some(worker) = self.workers.iter_mut().min() else { return now };
        *worker = (*worker).max(now) + service;
        let done = *worker;
        self.worker_busy += service / count;
        self.total_busy += shared;
        self.total = self.total.max(now) + shared;
        done.max(self.total)
    }

    fn accept(&mut self, number: u32, host: &mut Host<'_>) -> bool {
        if !self.disk.batched {
            let done = self.serve(host.now(), &host.commands[number]) + us(self.disk.notify_us);
            host.wake(done, Wake { what: DONE, command: number });
            return true;
        }
        self.ring.push_back(number);
        if !std::mem::replace(&mut self.awake, true) {
            host.wake(host.now() + self.way(), Wake::device(LOOK));
        }
        true
    }

    fn event(&mut self, wake: Wake, host: &mut Host<'_>) -> Outcome {
        if wake.what == LOOK {
            self.look(host);
            return Outcome::Nothing;
        }
        Outcome::Done(wake.command)
    }

    fn flush(&mut self, now: Nanos) -> Nanos {
        now + us(self.disk.flush_us + self.disk.notify_us)
    }

    fn busy(&self, _ran: Nanos) -> Vec<(&'static str, Nanos)> {
        vec![("hypervisor workers", self.worker_busy), ("hypervisor path", self.total_busy)]
    }
}
