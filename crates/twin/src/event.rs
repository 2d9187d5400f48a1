//! Events of a simulated computer.

/// A device event: a device-specific code and the command it concerns, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wake {
    pub what: u8,
    pub command: u32,
}

impl Wake {
    /// An event about the device itself.
    pub fn device(what: u8) -> Self {
        Wake { what, command: u32::MAX }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A source's scheduled wake-up.
    Wake(u32),
    /// A completion is delivered to its source.
    Deliver(u32),
    /// A source's sync is complete.
    Synced(u32),
    /// A buffered request continues.
    Step(u32),
    /// A transfer goes to the devices.
    Launch(u32),
    Send(u32),
    Device(u32, Wake),
    BusFree(u32),
    /// The write-back worker returns from one write of a file.
    WriterBack(u32),
    /// A pass of the lazy writer.
    LazyScan,
    /// Check whether the RAM cache is idle.
    RamCacheIdle,
}
