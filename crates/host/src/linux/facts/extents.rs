//! A file's extents.

use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `struct fiemap` of `linux/fiemap.h`.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `_IOWR('f', 11, struct fiemap)` of `linux/fs.h`.
const FS_IOC_FIEMAP: u64 = 0xC020_660B;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `FIEMAP_EXTENT_UNKNOWN`, `_DELALLOC`, `_ENCODED`, `_DATA_INLINE`, `_DATA_TAIL`, `_UNWRITTEN`:
/// the data are elsewhere.
const ELSEWHERE: u32 = 0x2 | 0x4 | 0x8 | 0x200 | 0x400 | 0x800;

const LOOKED_AT: usize = 256;

#[repr(C)]
struct Map {
    head: Fiemap,
    extents: [Extent; LOOKED_AT],
}

/// `FIEMAP_EXTENT_UNKNOWN`, `_DELALLOC`, `_DATA_INLINE`, `_DATA_TAIL`: no location yet, or in a
/// block shared with metadata.
const NOWHERE: u32 = 0x2 | 0x4 | 0x200 | 0x400;

/// `FIEMAP_EXTENT_SHARED`: shared with another file until one of them is written.
const SHARED: u32 = 0x2000;

/// `FIEMAP_FLAG_SYNC`: write back first, which allocates blocks.
const SYNC: u32 = 0x1;

fn map(path: &Path, room: usize, flags: u32) -> Option<Box<Map>> {
    // Must not block if a named pipe replaced the file.
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOATIME)
        .open(path);
    let file = file
        .or_else(|_| {
            std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
        })
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let head = Fiemap {
        length: u64::MAX,
        flags,
        extent_count: room.min(LOOKED_AT) as u32,
        ..Fiemap::default()
    };
    let mut map = Box::new(Map { head, extents: [Extent::default(); LOOKED_AT] });
    // SAFETY: the kernel writes the header and at most `extent_count` extents after it. Both fit,
    // and live until the call returns.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *map) };
    (done == 0).then_some(map)
}

pub(super) fn count(path: &Path) -> Option<u32> {
    map(path, 0, 0).map(|map| map.head.mapped_extents)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Common {
    Nothing,
    /// All extents in common are reflink copies.
    Shared,
    Own,
}

pub(super) fn common(one: &Path, other: &Path) -> Option<Common> {
    let placed = |path: &Path| {
        let map = map(path, LOOKED_AT, SYNC)?;
        let all = &map.extents[..(map.head.mapped_extents as usize).min(LOOKED_AT)];
        let placed: Vec<Extent> =
            all.iter().filter(|one| one.flags & NOWHERE == 0).copied().collect();
        (!placed.is_empty()).then_some(placed)
    };
    Some(overlap(&placed(one)?, &placed(other)?))
}

fn overlap(one: &[Extent], other: &[Extent]) -> Common {
    let overlaps = |a: &Extent, b: &Extent| {
        a.physical.wrapping_sub(a.logical) == b.physical.wrapping_sub(b.logical)
            && a.physical < b.physical.saturating_add(b.length)
            && b.physical < a.physical.saturating_add(a.length)
    };
    let pairs =
        one.iter().flat_map(|a| other.iter().map(move |b| (a, b))).filter(|(a, b)| overlaps(a, b));
    pairs.fold(Common::Nothing, |so_far, (a, b)| match so_far {
        Common::Own => Common::Own,
        _ if a.flags & b.flags & SHARED != 0 => Common::Shared,
        _ => Common::Own,
    })
}

/// First byte and length on the device.
pub(crate) fn largest(path: &Path) -> Option<(u64, u64)> {
    let map = map(path, LOOKED_AT, 0)?;
    pieces(&map.extents[..(map.head.mapped_extents as usize).min(LOOKED_AT)])
        .into_iter()
        .max_by_key(|piece| piece.1)
}

fn pieces(extents: &[Extent]) -> Vec<(u64, u64)> {
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    for one in extents.iter().filter(|one| one.flags & ELSEWHERE == 0) {
        match pieces.last_mut().filter(|(start, length)| start + length == one.physical) {
            Some((_, length)) => *length += one.length,
            None => pieces.push((one.physical, one.length)),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_extents_are_one_piece() {
        let extent =
            |physical, length, flags| Extent { physical, length, flags, ..Extent::default() };
        let all = [
            extent(4096, 8192, 0),
            extent(12_288, 4096, 1),
            extent(1 << 20, 4096, 0),
            extent(0, 1 << 30, 0x800),
        ];
        assert_eq!(
            pieces(&all),
            [(4096, 12_288), (1 << 20, 4096)],
            "unwritten space holds nothing"
        );
    }

    #[test]
    fn only_reflink_copies_share_extents() {
        let extent = |logical, physical, flags| Extent {
            logical,
            physical,
            length: 8192,
            flags,
            ..Extent::default()
        };
        let file = [extent(0, 1 << 20, 0), extent(8192, 1 << 22, 0x800)];
        assert_eq!(overlap(&file, &file), Common::Own);
        assert_eq!(overlap(&file, &[extent(0, 1 << 21, 0)]), Common::Nothing);
        assert_eq!(
            overlap(&file, &[extent(4096, 1 << 20, 0)]),
            Common::Nothing,
            "other bytes of it"
        );
        let copy = [extent(0, 1 << 20, SHARED)];
        assert_eq!(overlap(&copy, &copy), Common::Shared);
        assert_eq!(overlap(&[copy[0], file[1]], &[copy[0], file[1]]), Common::Own);
    }
}
