//! Devices serve commands that [`Device::accept`] takes, by events ([`Host::wake`],
//! [`Device::event`]), and hold a bus from [`Device::granted`] on. A model is one file, and a line
//! in [`crate::description::Drive`].

pub mod cached_flash;
pub mod cloud;
mod collection;
pub mod disk;
pub mod flash;
pub mod network;
pub mod virtio;

use crate::bus::{Bus, BusKind, Connect, Pci};
use crate::event::{Event, Wake};
use crate::kernel::Kernel;
use crate::slab::Slab;
use machine::{Layer, LayerKind, Nanos, Op};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub transfer: u32,
    pub device: u32,
    pub op: Op,
    pub offset: u64,
    pub bytes: u64,
    /// The file system's requests before they were merged.
    pub queued: u64,
    /// The data must be stable when it is done.
    pub durable: bool,
    pub since: Nanos,
    /// `None` for a page cache, which simulated clients share.
    pub client: Option<u32>,
}

pub(crate) struct Host<'a> {
    pub kernel: &'a mut Kernel<Event>,
    pub commands: &'a Slab<Command>,
    pub buses: &'a mut [Bus],
    pub pci: &'a mut Pci,
    pub number: u32,
}

impl Host<'_> {
    pub fn now(&self) -> Nanos {
        self.kernel.now()
    }

    pub fn wake(&mut self, at: Nanos, wake: Wake) {
        self.kernel.at(at, Event::Device(self.number, wake));
    }

    pub fn want_bus(&mut self, bus: u32, connect: Connect, device: &mut dyn Device) {
        if self.buses[bus as usize].holder.is_some() {
            self.buses[bus as usize].waiting.push_back((self.number, connect));
        } else {
            self.connect(bus, connect, device);
        }
    }

    pub fn connect(&mut self, bus: u32, connect: Connect, device: &mut dyn Device) {
        let (until, wake) = device.granted(connect, self);
        self.buses[bus as usize].holder = Some((self.number, wake));
        self.kernel.at(until, Event::BusFree(bus));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The command is done, and the device can take another.
    Done(u32),
    Ready,
    Nothing,
}

/// Its clock starts at zero in every run.
pub(crate) trait Device: Send {
    fn capacity_bytes(&self) -> u64;

    fn queue(&self) -> u32;

    /// `now` is on the clock that ends, after the last run and the rest.
    fn rest(&mut self, now: Nanos);

    /// Completion time; a simple device needs no other method.
    fn serve(&mut self, now: Nanos, _command: &Command) -> Nanos {
        now
    }

    /// If `false`, the command is offered again after [`Outcome::Done`] or [`Outcome::Ready`].
    fn accept(&mut self, command: u32, host: &mut Host<'_>) -> bool {
        let done = self.serve(host.now(), &host.commands[command]);
        host.wake(done, Wake { what: 0, command });
        true
    }

    fn event(&mut self, wake: Wake, _host: &mut Host<'_>) -> Outcome {
        Outcome::Done(wake.command)
    }

    /// Until when the device holds the bus, and the next event.
    fn granted(&mut self, _connect: Connect, host: &mut Host<'_>) -> (Nanos, Wake) {
        (host.now(), Wake::device(u8::MAX))
    }

    /// A volatile cache still holds writes completed at `before` or earlier.
    fn dirty(&self, _before: Nanos) -> bool {
        false
    }

    /// Called when [`Device::dirty`] is false.
    fn flush(&mut self, now: Nanos) -> Nanos {
        now
    }

    /// When a flush that is not part of a write has passed the volume's limits.
    fn admit_flush(&mut self, now: Nanos) -> Nanos {
        now
    }

    fn discard(&mut self) {}

    fn celsius(&self) -> Option<f64> {
        None
    }

    fn client_links(&self) -> Vec<ClientLink> {
        Vec::new()
    }

    fn busy(&self, ran: Nanos) -> Vec<(&'static str, Nanos)>;
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ClientLink {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub bytes_per_s: f64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub number: u32,
    pub bus: u32,
    pub wce: bool,
    pub clients: u32,
}

pub struct Drives<'a> {
    pub name: &'a str,
    pub count: u32,
    pub buses: u32,
    pub wce: bool,
    pub clients: u32,
    pub bus_kinds: &'a BTreeMap<String, BusKind>,
}

impl Drives<'_> {
    /// `rate` is that of all `count` parts.
    pub fn layer(&self, kind: LayerKind, count: u32, name: &str, rate: Option<f64>) -> Layer {
        let name = if count == 1 { name.to_owned() } else { format!("{count} x {name}") };
        Layer {
            advertised_bytes_per_s: rate,
            advertised_formula: crate::advertised::formula(count, rate),
            ..Layer::new(kind, name)
        }
    }

    /// `rate` is that of each drive.
    pub fn disks(&self, rate: Option<f64>) -> Layer {
        self.layer(
            LayerKind::Disk,
            self.count,
            self.name,
            rate.map(|rate| rate * f64::from(self.count)),
        )
    }
}

/// A number that calibration may change.
pub struct Tunable<'a> {
    pub name: &'static str,
    pub value: &'a mut f64,
    /// Numbers with the same meaning move with it.
    pub along: Vec<&'a mut f64>,
}

impl<'a> Tunable<'a> {
    pub fn new(name: &'static str, value: &'a mut f64) -> Self {
        Tunable { name, value, along: Vec::new() }
    }
}

pub(crate) trait Model {
    fn build(&self, slot: Slot) -> Box<dyn Device>;

    fn bus(&self) -> Option<&str> {
        None
    }

    fn serves_clients(&self) -> bool {
        false
    }

    /// From the top down.
    fn layers(&self, drives: &Drives<'_>) -> Vec<Layer>;

    /// Except mechanics and transfer.
    fn scale_latency(&mut self, by: f64);

    fn tunable(&mut self) -> Vec<Tunable<'_>>;

    /// The key, and why.
    fn contradiction(&self, _buses: &BTreeMap<String, BusKind>) -> Option<(&'static str, String)> {
        None
    }
}
