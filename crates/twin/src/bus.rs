//! A drive bus, phase by phase.

use crate::event::Wake;
use crate::units::us;
use machine::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Phase times are per connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusKind {
    pub advertised_bytes_per_s: f64,
    pub in_bytes_per_s: f64,
    pub out_bytes_per_s: f64,
    pub arbitrate_us: f64,
    pub arbitrate_win_us: f64,
    pub select_us: f64,
    pub reselect_us: f64,
    pub select_end_us: f64,
    /// Identify and queue tag.
    pub message_out_us: f64,
    pub command_us: f64,
    /// The drive's messages around a disconnect.
    pub disconnect_us: f64,
    pub identify_us: f64,
    pub data_end_us: f64,
    pub status_us: f64,
    pub complete_us: f64,
}

/// The phases that a bus analyser distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Arbitrate,
    ArbitrateWin,
    Reselect,
    Select,
    SelectEnd,
    MessageIn,
    MessageOut,
    Command,
    DataIn,
    DataOut,
    DataEnd,
    Status,
}

impl Phase {
    pub const ALL: [Phase; 12] = [
        Phase::Arbitrate,
        Phase::ArbitrateWin,
        Phase::Reselect,
        Phase::Select,
        Phase::SelectEnd,
        Phase::MessageIn,
        Phase::MessageOut,
        Phase::Command,
        Phase::DataIn,
        Phase::DataOut,
        Phase::DataEnd,
        Phase::Status,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Arbitrate => "Arbitrate",
            Phase::ArbitrateWin => "Arbitrate Win",
            Phase::Reselect => "Reselect",
            Phase::Select => "Select",
            Phase::SelectEnd => "(Re)Select End",
            Phase::MessageIn => "Message In",
            Phase::MessageOut => "Message Out",
            Phase::Command => "Command",
            Phase::DataIn => "Data In",
            Phase::DataOut => "Data Out",
            Phase::DataEnd => "Data In End",
            Phase::Status => "Status",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PhaseTimes([Nanos; Phase::ALL.len()]);

impl PhaseTimes {
    pub fn get(&self, phase: Phase) -> Nanos {
        self.0[phase as usize]
    }

    pub fn busy(&self) -> Nanos {
        self.0.iter().sum()
    }

    pub fn add(&mut self, phase: Phase, time: Nanos) -> Nanos {
        self.0[phase as usize] += time;
        time
    }
}

#[derive(Debug, Clone, Copy)]
pub struct BusTimes {
    pub arbitrate: Nanos,
    pub arbitrate_win: Nanos,
    pub select: Nanos,
    pub reselect: Nanos,
    pub select_end: Nanos,
    pub message_out: Nanos,
    pub command: Nanos,
    pub disconnect: Nanos,
    pub identify: Nanos,
    pub data_end: Nanos,
    pub status: Nanos,
    pub complete: Nanos,
    in_ps: u64,
    out_ps: u64,
}

impl From<&BusKind> for BusTimes {
    fn from(kind: &BusKind) -> Self {
        BusTimes {
            arbitrate: us(kind.arbitrate_us),
            arbitrate_win: us(kind.arbitrate_win_us),
            select: us(kind.select_us),
            reselect: us(kind.reselect_us),
            select_end: us(kind.select_end_us),
            message_out: us(kind.message_out_us),
            command: us(kind.command_us),
            disconnect: us(kind.disconnect_us),
            identify: us(kind.identify_us),
            data_end: us(kind.data_end_us),
            status: us(kind.status_us),
            complete: us(kind.complete_us),
            in_ps: (1e12 / kind.in_bytes_per_s).round() as u64,
            out_ps: (1e12 / kind.out_bytes_per_s).round() as u64,
        }
    }
}

impl BusTimes {
    /// Time on the wire.
    pub fn data(&self, bytes: u64, write: bool) -> Nanos {
        bytes * if write { self.out_ps } else { self.in_ps } / 1000
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Connect {
    Select,
    Reselect(u32),
}

pub(crate) struct Bus {
    pub times: BusTimes,
    /// The device, and the event that ends its connection.
    pub holder: Option<(u32, Wake)>,
    pub waiting: VecDeque<(u32, Connect)>,
    pub phases: PhaseTimes,
    /// Data-phase wait for the adapter or the I/O bus.
    pub stalled: Nanos,
}

impl Bus {
    pub fn new(kind: &BusKind) -> Self {
        Bus {
            times: BusTimes::from(kind),
            holder: None,
            waiting: VecDeque::new(),
            phases: PhaseTimes::default(),
            stalled: 0,
        }
    }

    /// Runs a command in one connection, as the device has the data or buffer space.
    pub fn command(&mut self, at: Nanos, bytes: u64, write: bool, pci: &mut Pci) -> Nanos {
        let (times, phases) = (self.times, &mut self.phases);
        let mut t = at + phases.add(Phase::Arbitrate, times.arbitrate);
        t += phases.add(Phase::ArbitrateWin, times.arbitrate_win)
            + phases.add(Phase::Select, times.select);
        t += phases.add(Phase::SelectEnd, times.select_end)
            + phases.add(Phase::MessageOut, times.message_out);
        t += phases.add(Phase::Command, times.command);
        let done = pci.data_phase((0, &times, &mut self.stalled), bytes, write, t);
        t += phases.add(if write { Phase::DataOut } else { Phase::DataIn }, done - t);
        t += phases.add(Phase::DataEnd, times.data_end) + phases.add(Phase::Status, times.status);
        t + phases.add(Phase::MessageIn, times.complete)
    }

    pub fn worked(&self) -> Nanos {
        self.phases.busy().saturating_sub(self.stalled)
    }

    pub fn rest(&mut self) {
        self.holder = None;
        self.waiting.clear();
        self.phases = PhaseTimes::default();
        self.stalled = 0;
    }
}

#[derive(Debug, Clone, Copy)]
struct Channel {
    ps_per_byte: u64,
    free_at: Nanos,
    busy: Nanos,
}

impl Channel {
    fn new(bytes_per_s: Option<f64>) -> Channel {
        Channel {
            ps_per_byte: bytes_per_s.map_or(0, |rate| (1e12 / rate).round() as u64),
            free_at: 0,
            busy: 0,
        }
    }

    fn rest(&mut self) {
        (self.free_at, self.busy) = (0, 0);
    }

    fn transfer(&mut self, bytes: u64, start: Nanos) -> Nanos {
        let time = bytes * self.ps_per_byte / 1000;
        self.busy += time;
        self.free_at = self.free_at.max(start) + time;
        self.free_at
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    pub name: String,
    /// Of one adapter, over all its buses.
    pub bytes_per_s: f64,
    #[serde(default)]
    pub advertised_bytes_per_s: Option<f64>,
    /// Per adapter, assigned in order.
    pub buses: u32,
}

/// The path to memory: adapters limit their buses, the I/O bus limits the total.
pub struct Pci {
    bus: Channel,
    adapters: Vec<Channel>,
    buses_each: u32,
}

impl Pci {
    /// Without a rate, the path is never the limit.
    pub fn new(bytes_per_s: Option<f64>) -> Self {
        Pci { bus: Channel::new(bytes_per_s), adapters: Vec::new(), buses_each: 1 }
    }

    pub fn behind(self, kind: &Adapter, buses: u32) -> Self {
        let adapters =
            vec![Channel::new(Some(kind.bytes_per_s)); buses.div_ceil(kind.buses) as usize];
        Pci { adapters, buses_each: kind.buses, ..self }
    }

    pub fn busy(&self) -> Nanos {
        self.bus.busy
    }

    /// Of the busiest adapter; `None` if adapters never limit.
    pub fn adapter_busy(&self) -> Option<Nanos> {
        self.adapters.iter().map(|adapter| adapter.busy).max()
    }

    pub fn rest(&mut self) {
        self.bus.rest();
        self.adapters.iter_mut().for_each(Channel::rest);
    }

    /// The earliest end.
    pub fn transfer(&mut self, bus: u32, bytes: u64, start: Nanos) -> Nanos {
        let adapter = self.adapters.get_mut((bus / self.buses_each) as usize);
        let through = adapter.map_or(start, |adapter| adapter.transfer(bytes, start));
        self.bus.transfer(bytes, start).max(through)
    }

    /// Returns the end. `stalled` counts the wait for the adapter or the I/O bus.
    pub fn data_phase(
        &mut self,
        (bus, times, stalled): (u32, &BusTimes, &mut Nanos),
        bytes: u64,
        write: bool,
        start: Nanos,
    ) -> Nanos {
        let wire = start + times.data(bytes, write);
        let done = self.transfer(bus, bytes, start).max(wire);
        *stalled += done - wire;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buses_share_their_adapter_and_adapters_the_io_bus() {
        let adapter = Adapter {
            name: "dual".into(),
            bytes_per_s: 1e6,
            advertised_bytes_per_s: None,
            buses: 2,
        };
        let mut path = Pci::new(Some(1e9)).behind(&adapter, 3);
        assert_eq!(path.transfer(0, 1000, 0), 1_000_000);
        assert_eq!(path.transfer(1, 1000, 0), 2_000_000, "after the other bus of its adapter");
        assert_eq!(path.transfer(2, 1000, 0), 1_000_000, "an adapter of its own");
        assert_eq!((path.busy(), path.adapter_busy()), (3000, Some(2_000_000)));
        path.rest();
        assert_eq!((path.busy(), path.transfer(0, 1000, 0)), (0, 1_000_000));
        assert_eq!(Pci::new(None).transfer(5, 1000, 7), 7, "nothing in the way");
    }
}
