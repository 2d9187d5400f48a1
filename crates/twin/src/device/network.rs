//! A path with variable latency, a link, and a server with a fixed number of threads.

use crate::device::{Command, Device, Drives, Model, Slot, Tunable};
use crate::units::us;
use machine::{Layer, LayerKind, Nanos, Op};
use serde::{Deserialize, Serialize};

/// A volume over a network, as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkVolume {
    pub about: String,
    pub capacity_bytes: u64,
    pub link_bytes_per_s: f64,
    /// Median, without data.
    pub round_trip_us: f64,
    /// Standard deviation of the logarithm.
    pub round_trip_spread: f64,
    /// Requests the server works on at a time.
    pub workers: u32,
    pub read_us: f64,
    /// Server time for a write that its cache absorbs.
    pub write_us: f64,
    /// Extra server time to bring a write to stable storage.
    pub stable_us: f64,
    /// Requests the client keeps in flight.
    pub queue: u32,
}

impl Model for NetworkVolume {
    fn build(&self, slot: Slot) -> Box<dyn Device> {
        Box::new(Network::new(self.clone(), slot.number))
    }

    fn layers(&self, drives: &Drives<'_>) -> Vec<Layer> {
        let link =
            drives.layer(LayerKind::Network, drives.count, "network", Some(self.link_bytes_per_s));
        vec![link, drives.disks(None)]
    }

    fn scale_latency(&mut self, by: f64) {
        for time in
            [&mut self.round_trip_us, &mut self.read_us, &mut self.write_us, &mut self.stable_us]
        {
            *time *= by;
        }
    }

    fn tunable(&mut self) -> Vec<Tunable<'_>> {
        vec![
            Tunable::new("link_bytes_per_s", &mut self.link_bytes_per_s),
            Tunable::new("round_trip_us", &mut self.round_trip_us),
            Tunable::new("read_us", &mut self.read_us),
            Tunable::new("write_us", &mut self.write_us),
        ]
    }
}

struct Network {
    volume: NetworkVolume,
    number: u32,
    random: u64,
    workers: Vec<Nanos>,
    /// When the link is free, to the server and back.
    link: [Nanos; 2],
    link_busy: [Nanos; 2],
    worker_busy: Nanos,
    last_write: Nanos,
    cached: bool,
}

impl Network {
    fn new(volume: NetworkVolume, number: u32) -> Self {
        let workers = vec![0; volume.workers.max(1) as usize];
        let random = u64::from(number);
        Network {
            volume,
            number,
            random,
            workers,
            link: [0; 2],
            link_busy: [0; 2],
            worker_busy: 0,
            last_write: 0,
            cached: false,
        }
    }

    /// A number from 0 to 1, the same on every run (SplitMix64: Steele, Lea, Flood, 2014).
    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Log-normal, by Box and Muller.
    fn round_trip(&mut self) -> Nanos {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.uniform()).cos();
        us(self.volume.round_trip_us * (normal * self.volume.round_trip_spread).exp())
    }

    fn transfer(&mut self, way: usize, at: Nanos, bytes: u64) -> Nanos {
        let time = (bytes as f64 / self.volume.link_bytes_per_s * 1e9) as Nanos;
        self.link_busy[way] += time;
        self.link[way] = self.link[way].max(at) + time;
        self.link[way]
    }

    fn work(&mut self, at: Nanos, time: Nanos) -> Nanos {
        self.worker_busy += time / self.workers.len() as u64;
        let Some(worker) = self.workers.iter_mut().min() else { return at };
        *worker = (*worker).max(at) + time;
        *worker
    }
}

impl Device for Network {
    fn capacity_bytes(&self) -> u64 {
        self.volume.capacity_bytes
    }

    fn queue(&self) -> u32 {
        self.volume.queue
    }

    fn rest(&mut self, _now: Nanos) {
        self.workers.fill(0);
        self.random = u64::from(self.number);
        (self.link, self.link_busy) = ([0; 2], [0; 2]);
        (self.worker_busy, self.last_write, self.cached) = (0, 0, false);
    }

    fn serve(&mut self, now: Nanos, command: &Command) -> Nanos {
        let Command { op, bytes, durable, .. } = *command;
        let path = self.round_trip();
        if op == Op::Read {
            let read = self.work(now + path / 2, us(self.volume.read_us));
            return self.transfer(1, read, bytes) + path / 2;
        }
        let there = self.transfer(0, now, bytes) + path / 2;
        let stable = if durable { us(self.volume.stable_us) } else { 0 };
        self.cached |= !durable;
        self.last_write = self.work(there, us(self.volume.write_us) + stable);
        self.last_write + path / 2
    }

    fn flush(&mut self, now: Nanos) -> Nanos {
        let path = self.round_trip();
        if !std::mem::take(&mut self.cached) {
            return now + path;
        }
        self.last_write.max(now + path / 2) + us(self.volume.stable_us) + path / 2
    }

    fn busy(&self, _ran: Nanos) -> Vec<(&'static str, Nanos)> {
        vec![("network", self.link_busy[0].max(self.link_busy[1])), ("server", self.worker_busy)]
    }
}
