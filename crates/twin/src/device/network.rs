//! A server with a fixed number of threads, behind a network with variable latency.

use crate::device::{ClientLink, Command, Device, Drives, Model, Slot, Tunable};
use crate::units::us;
use machine::rng::SplitMix64;
use machine::{Layer, LayerKind, Nanos, Op};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkVolume {
    pub about: String,
    pub capacity_bytes: u64,
    /// Of each client.
    pub link_bytes_per_s: f64,
    /// For all clients; absent: as a client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_bytes_per_s: Option<f64>,
    /// Median, without data.
    pub round_trip_us: f64,
    /// Standard deviation of the logarithm.
    pub round_trip_spread: f64,
    pub workers: u32,
    pub read_us: f64,
    /// For a write that the server's cache absorbs.
    pub write_us: f64,
    /// Extra for stable storage.
    pub stable_us: f64,
    /// Requests in flight per client.
    pub queue: u32,
}

impl Model for NetworkVolume {
    fn build(&self, slot: Slot) -> Box<dyn Device> {
        Box::new(Network::new(self.clone(), slot))
    }

    fn serves_clients(&self) -> bool {
        true
    }

    fn layers(&self, drives: &Drives<'_>) -> Vec<Layer> {
        let server = self.server_bytes_per_s.unwrap_or(self.link_bytes_per_s);
        let links = if drives.clients > 1 {
            let each = self.link_bytes_per_s * f64::from(drives.clients);
            vec![
                drives.layer(LayerKind::Network, drives.clients, "client's link", Some(each)),
                drives.layer(LayerKind::Network, drives.count, "server's link", Some(server)),
            ]
        } else {
            let rate = self.link_bytes_per_s.min(server);
            vec![drives.layer(LayerKind::Network, drives.count, "network", Some(rate))]
        };
        links.into_iter().chain([drives.disks(None)]).collect()
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

/// To the server, and back.
#[derive(Debug, Clone, Copy, Default)]
struct Link {
    free: [Nanos; 2],
    busy: [Nanos; 2],
}

impl Link {
    /// When the first and the last byte pass.
    fn carry(&mut self, way: usize, at: Nanos, time: Nanos) -> (Nanos, Nanos) {
        self.busy[way] += time;
        let begin = self.free[way].max(at);
        self.free[way] = begin + time;
        (begin, self.free[way])
    }

    fn busiest(&self) -> Nanos {
        self.busy[0].max(self.busy[1])
    }
}

struct Network {
    volume: NetworkVolume,
    number: u32,
    random: SplitMix64,
    workers: Vec<Nanos>,
    clients: Vec<Link>,
    server: Link,
    /// Per client, to the server and back.
    carried: Vec<[u64; 2]>,
    worker_busy: Nanos,
    last_write: Nanos,
    cached: bool,
}

impl Network {
    fn new(volume: NetworkVolume, slot: Slot) -> Self {
        let workers = vec![0; volume.workers.max(1) as usize];
        let random = SplitMix64::new(u64::from(slot.number));
        let clients = slot.clients.max(1) as usize;
        Network {
            volume,
            number: slot.number,
            random,
            workers,
            clients: vec![Link::default(); clients],
            server: Link::default(),
            carried: vec![[0; 2]; clients],
            worker_busy: 0,
            last_write: 0,
            cached: false,
        }
    }

    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Log-normal, by Box and Muller.
    fn round_trip(&mut self) -> Nanos {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.uniform()).cos();
        us(self.volume.round_trip_us * (normal * self.volume.round_trip_spread).exp())
    }

    /// The links pass data on without a pause, so the slower one sets the time.
    fn transfer(&mut self, way: usize, at: Nanos, command: &Command) -> Nanos {
        let link = self.volume.link_bytes_per_s;
        let server = self.volume.server_bytes_per_s.unwrap_or(link);
        let time = |rate: f64| (command.bytes as f64 / rate * 1e9) as Nanos;
        // The page caches of all clients are one; what it sends takes the first free link.
        let first_free = || (0..self.clients.len()).min_by_key(|&at| self.clients[at].free[way]);
        let client = command.client.map(|client| client as usize).or_else(first_free);
        let client = client.unwrap_or(0).min(self.clients.len() - 1);
        self.carried[client][way] += command.bytes;
        let (begin, own) = self.clients[client].carry(way, at, time(link));
        self.server.carry(way, begin, time(server)).1.max(own)
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
        self.random = SplitMix64::new(u64::from(self.number));
        self.clients.fill(Link::default());
        self.server = Link::default();
        (self.worker_busy, self.last_write, self.cached) = (0, 0, false);
    }

    fn serve(&mut self, now: Nanos, command: &Command) -> Nanos {
        let Command { op, durable, .. } = *command;
        let path = self.round_trip();
        if op == Op::Read {
            let read = self.work(now + path / 2, us(self.volume.read_us));
            return self.transfer(1, read, command) + path / 2;
        }
        let there = self.transfer(0, now, command) + path / 2;
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

    fn client_links(&self) -> Vec<ClientLink> {
        let link = |&[sent_bytes, received_bytes]: &[u64; 2]| ClientLink {
            sent_bytes,
            received_bytes,
            bytes_per_s: self.volume.link_bytes_per_s,
        };
        self.carried.iter().map(link).collect()
    }

    fn busy(&self, _ran: Nanos) -> Vec<(&'static str, Nanos)> {
        let own = self.clients.iter().map(Link::busiest).max().unwrap_or(0);
        let mut busy = vec![("server", self.worker_busy)];
        if self.clients.len() == 1 {
            busy.push(("network", own.max(self.server.busiest())));
        } else {
            busy.push(("network", self.server.busiest()));
            busy.push(("client's link", own));
        }
        busy
    }
}
