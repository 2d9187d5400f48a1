//! What may happen next in a simulated computer.

/// An event of a device: what it is about (the device's own numbering) and the command that it concerns, where it concerns one.
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

/// What may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// A source's time has come.
    Wake(u32),
    /// A request is done and its source learns of it.
    Deliver(u32),
    /// What a source wrote is on stable storage.
    Synced(u32),
    /// A buffered request goes on.
    Step(u32),
    /// A transfer goes to the devices.
    Launch(u32),
    /// An array has what a command is to write.
    Send(u32),
    /// An event of a device's own.
    Device(u32, Wake),
    /// A connection on a bus ends.
    BusFree(u32),
    /// The write-back worker comes back from one write of a file.
    WriterBack(u32),
    /// A pass of the lazy writer.
    LazyScan,
    /// Whether the RAM cache has been left alone.
    RamCacheIdle,
}
