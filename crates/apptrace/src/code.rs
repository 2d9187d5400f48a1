//! Format version 1: docs/hptrace.md.

use crate::event::{Access, Interface, Kind, OpenFile};

pub(crate) const MAGIC: &[u8; 7] = b"HPTRACE";
pub(crate) const VERSION: u8 = 1;

pub(crate) const MAX_JSON_BYTES: usize = 1 << 20;
pub(crate) const MAX_BLOCK_BYTES: usize = 1 << 20;
/// Linux's PATH_MAX; longer names are cut.
pub(crate) const MAX_NAME_BYTES: usize = 4096;
pub(crate) const MAX_INDICES: u32 = 1 << 24;

pub(crate) const BLOCK_HEAD_BYTES: usize = 1 + 4 + 8;
pub(crate) const EVENTS: u8 = 1;
pub(crate) const SUMMARY: u8 = 2;

pub(crate) const THREAD: u8 = 0;
pub(crate) const FILE: u8 = 1;
pub(crate) const LOST: u8 = 2;
pub(crate) const RENAMED: u8 = 3;
/// A request's tag; its low four bits are the access.
pub(crate) const REQUEST: u8 = 0x80;
pub(crate) const HAS_DURATION: u8 = 0x40;
pub(crate) const HAS_OFFSET: u8 = 0x20;

/// A bit of a request's second byte, whose low three bits are the interface.
pub(crate) const HAS_THREAD: u8 = 0x80;
pub(crate) const DIRECT: u8 = 0x40;
pub(crate) const DSYNC: u8 = 0x20;
/// At a device, this marks the file system's metadata.
pub(crate) const APPEND: u8 = 0x10;
/// The result equals the bytes asked for and is left out.
pub(crate) const DONE: u8 = 0x08;

/// Numbered in the format: the order never changes.
pub(crate) const ACCESSES: [Access; 15] = [
    Access::Read,
    Access::Write,
    Access::SyncFile,
    Access::SyncData,
    Access::SyncRange,
    Access::SyncSystem,
    Access::Allocate,
    Access::Truncate,
    Access::Open,
    Access::Close,
    Access::Unlink,
    Access::Discard,
    Access::Flush,
    Access::Prefetch,
    Access::WriteOut,
];
pub(crate) const INTERFACES: [Interface; 5] = [
    Interface::SystemCall,
    Interface::IoUring,
    Interface::Libaio,
    Interface::Mapping,
    Interface::Block,
];
pub(crate) const KINDS: [Kind; 5] =
    [Kind::Regular, Kind::BlockDevice, Kind::Directory, Kind::Stream, Kind::Unknown];

pub(crate) fn number<T: PartialEq>(table: &[T], value: &T) -> u8 {
    table.iter().position(|other| other == value).unwrap_or(0) as u8
}

pub(crate) fn open_bits(open: OpenFile) -> u8 {
    [(open.direct, DIRECT), (open.dsync, DSYNC), (open.append || open.metadata, APPEND)]
        .into_iter()
        .filter(|&(is_set, _)| is_set)
        .fold(0, |bits, (_, bit)| bits | bit)
}

pub(crate) fn open_file(bits: u8, interface: Interface) -> OpenFile {
    let (last, at_device) = (bits & APPEND != 0, interface == Interface::Block);
    OpenFile {
        direct: bits & DIRECT != 0,
        dsync: bits & DSYNC != 0,
        append: last && !at_device,
        metadata: last && at_device,
    }
}

pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Requests are coded against it. Each block starts again, to be readable by itself.
#[derive(Clone)]
pub(crate) struct Last {
    pub(crate) at_ns: u64,
    /// End of the last request, by file; files share the slots.
    ends: [u64; 64],
}

impl Default for Last {
    fn default() -> Self {
        Last { at_ns: 0, ends: [0; 64] }
    }
}

impl Last {
    pub(crate) fn end(&mut self, file: u32) -> &mut u64 {
        let slots = self.ends.len();
        &mut self.ends[file as usize % slots]
    }
}
