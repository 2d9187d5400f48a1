//! Devices: the one way in which a disk, a solid-state drive or a volume serves commands.
//!
//! The computer keeps what waits for a device and gives it the next command ([`Device::accept`]) as long as it takes them. The device
//! schedules events of its own ([`Host::wake`]); one of them ends the command ([`Device::event`]). A device on a bus asks for the bus
//! ([`Host::want_bus`]) and holds it from [`Device::granted`] until the time that it says there.
//!
//! A model is one file here, which holds its description and its behaviour, and one line in [`crate::description::Drive`].

pub mod cloud;
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

/// Nanoseconds from microseconds of a description.
pub(crate) fn us(value: f64) -> Nanos {
    (value * 1e3).round() as Nanos
}

/// Nanoseconds from milliseconds of a description.
pub(crate) fn ms(value: f64) -> Nanos {
    (value * 1e6).round() as Nanos
}

/// What a device is asked to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub transfer: u32,
    pub device: u32,
    pub op: Op,
    pub offset: u64,
    pub bytes: u64,
    /// To be on stable storage when done.
    pub durable: bool,
    pub since: Nanos,
}

/// The computer as one of its devices sees it.
pub(crate) struct Host<'a> {
    pub kernel: &'a mut Kernel<Event>,
    pub commands: &'a Slab<Command>,
    pub buses: &'a mut [Bus],
    pub pci: &'a mut Pci,
    /// The device's number.
    pub number: u32,
}

impl Host<'_> {
    pub fn now(&self) -> Nanos {
        self.kernel.now()
    }

    /// Schedules an event of the device.
    pub fn wake(&mut self, at: Nanos, wake: Wake) {
        self.kernel.at(at, Event::Device(self.number, wake));
    }

    /// Asks for the bus, and waits where another device holds it.
    pub fn want_bus(&mut self, bus: u32, connect: Connect, device: &mut dyn Device) {
        if self.buses[bus as usize].holder.is_some() {
            self.buses[bus as usize].waiting.push_back((self.number, connect));
        } else {
            self.connect(bus, connect, device);
        }
    }

    /// Gives the device the bus until its connection ends.
    pub fn connect(&mut self, bus: u32, connect: Connect, device: &mut dyn Device) {
        let (until, wake) = device.granted(connect, self);
        self.buses[bus as usize].holder = Some((self.number, wake));
        self.kernel.at(until, Event::BusFree(bus));
    }
}

/// What an event of a device came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// This command is done, and the next may come.
    Done(u32),
    /// The next command may come.
    Ready,
    /// Nothing that the computer need know.
    Nothing,
}

/// A device of a simulated computer. Its clock begins at zero with every run.
pub(crate) trait Device: Send {
    /// Its size.
    fn capacity_bytes(&self) -> u64;

    /// Commands that it takes at a time.
    fn queue(&self) -> u32;

    /// At rest at the start of a new clock, `idle` after its last work.
    fn rest(&mut self, idle: Nanos);

    /// When a command that arrives at `now` is done, for a device that knows it at once and does no more than this.
    fn serve(&mut self, now: Nanos, _command: &Command) -> Nanos {
        now
    }

    /// Takes a command. `false`: not now; it is offered again when an event came to [`Outcome::Done`] or [`Outcome::Ready`].
    fn accept(&mut self, command: u32, host: &mut Host<'_>) -> bool {
        let done = self.serve(host.now(), &host.commands[command]);
        host.wake(done, Wake { what: 0, command });
        true
    }

    /// An event that the device scheduled, or the end of its connection.
    fn event(&mut self, wake: Wake, _host: &mut Host<'_>) -> Outcome {
        Outcome::Done(wake.command)
    }

    /// The bus that it asked for is its own: until when, and the event that comes then.
    fn granted(&mut self, _connect: Connect, host: &mut Host<'_>) -> (Nanos, Wake) {
        (host.now(), Wake::device(u8::MAX))
    }

    /// Whether writes that the computer was told are done, at `before` or earlier, are in a cache that a loss of power empties.
    fn dirty(&self, _before: Nanos) -> bool {
        false
    }

    /// A flush command of `now`, when [`Device::dirty`] is false: when it is done.
    fn flush(&mut self, now: Nanos) -> Nanos {
        now
    }

    /// Its parts, and how long each worked in a run of `ran`.
    fn busy(&self, ran: Nanos) -> Vec<(&'static str, Nanos)>;
}

/// Where a drive stands in its computer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    /// Its number among the drives.
    pub number: u32,
    /// The bus that it is on.
    pub bus: u32,
    /// Its write cache is on.
    pub wce: bool,
}

/// Several drives of a kind, for their layers.
pub struct Drives<'a> {
    /// Name of the drive.
    pub name: &'a str,
    /// How many.
    pub count: u32,
    /// On how many buses.
    pub buses: u32,
    /// Their write caches are on.
    pub wce: bool,
    /// The machine's kinds of bus.
    pub bus_kinds: &'a BTreeMap<String, BusKind>,
}

impl Drives<'_> {
    /// A layer of so many of a kind that advertise so much together.
    pub fn layer(&self, kind: LayerKind, count: u32, name: &str, rate: Option<f64>) -> Layer {
        let name = if count == 1 { name.to_owned() } else { format!("{count} x {name}") };
        Layer {
            advertised_bytes_per_s: rate,
            advertised_formula: crate::layers::formula(count, rate),
            ..Layer::new(kind, name)
        }
    }

    /// The layer of the drives, each of which advertises `rate`.
    pub fn disks(&self, rate: Option<f64>) -> Layer {
        self.layer(LayerKind::Disk, self.count, self.name, rate.map(|rate| rate * f64::from(self.count)))
    }
}

/// A number of a description that calibration may move.
pub struct Tunable<'a> {
    /// Its path within the drive.
    pub name: &'static str,
    /// The number.
    pub value: &'a mut f64,
    /// Numbers that mean the same here and move with it.
    pub along: Vec<&'a mut f64>,
}

impl<'a> Tunable<'a> {
    /// A number that moves alone.
    pub fn new(name: &'static str, value: &'a mut f64) -> Self {
        Tunable { name, value, along: Vec::new() }
    }
}

/// A kind of drive as data: what a machine file says of it.
pub(crate) trait Model {
    /// The drive, at rest.
    fn build(&self, slot: Slot) -> Box<dyn Device>;

    /// The kind of bus that it is made for, where it shares one.
    fn bus(&self) -> Option<&str> {
        None
    }

    /// Layers of so many of it, from the top down, with what each advertises.
    fn layers(&self, drives: &Drives<'_>) -> Vec<Layer>;

    /// Scales what a command costs beyond mechanics and transfer.
    fn scale_latency(&mut self, by: f64);

    /// The numbers that calibration may move.
    fn tunable(&mut self) -> Vec<Tunable<'_>>;

    /// What in it contradicts itself or the machine's buses: the key, and why.
    fn contradiction(&self, _buses: &BTreeMap<String, BusKind>) -> Option<(&'static str, String)> {
        None
    }
}
