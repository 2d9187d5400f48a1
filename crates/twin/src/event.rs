#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wake {
    pub what: u8,
    pub command: u32,
}

impl Wake {
    pub fn device(what: u8) -> Self {
        Wake { what, command: u32::MAX }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Wake(u32),
    Deliver(u32),
    Synced(u32),
    Step(u32),
    Launch(u32),
    Send(u32),
    Device(u32, Wake),
    BusFree(u32),
    WriterBack(u32),
    LazyScan,
    RamCacheBurst,
}
