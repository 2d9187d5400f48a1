//! A false positive is safe, a false negative is not: checksums are ignored if the magic string
//! cannot occur by chance.

mod table;
#[cfg(test)]
mod tests;

use crate::linux::sys;
use machine::{Error, Hint, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use table::{At, HEAD, Row, le32, rows};

/// Each kind of contents once; `None` if none is known.
pub fn signature(path: &Path) -> Result<Option<String>> {
    let file = File::open(path).map_err(Error::io("cannot open", path))?;
    let end = std::io::Seek::seek(&mut &file, std::io::SeekFrom::End(0))
        .map_err(Error::io("cannot determine the size of", path))?;
    // Readahead would read a hundred times as much.
    sys::advise(&file, Hint::Random);
    let mut medium = Medium { file, end, failed: None };
    let found = medium.all();
    match medium.failed {
        Some(source) => Err(Error::io("cannot read", path)(source)),
        None if found.is_empty() => Ok(None),
        None => Ok(Some(found.join(" and "))),
    }
}

struct Medium {
    file: File,
    end: u64,
    /// The first error; with one, finding nothing proves nothing.
    failed: Option<std::io::Error>,
}

impl Medium {
    fn read<const N: usize>(&mut self, offset: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        if offset.checked_add(N as u64)? > self.end {
            return None;
        }
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Some(bytes),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    fn head(&mut self, offset: u64) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        let len = self.end.saturating_sub(offset).min(HEAD as u64) as usize;
        if let Err(error) = self.file.read_exact_at(&mut bytes[..len], offset) {
            self.failed.get_or_insert(error);
            return [0; HEAD];
        }
        bytes
    }

    fn matches_at(&mut self, row: &Row, offset: u64) -> bool {
        let magic = self.head(offset + row.magic_at);
        let found = row.magics.iter().any(|wanted| magic.starts_with(wanted));
        found && row.check.is_none_or(|check| check(&self.head(offset)))
    }

    fn bears(&mut self, row: &Row) -> bool {
        let end = self.end;
        let offset = |at: &At| match *at {
            At::Start(offset) => Some(offset),
            At::End { unit, before } => (end / unit * unit).checked_sub(before),
        };
        row.places.iter().filter_map(offset).any(|offset| self.matches_at(row, offset))
    }

    fn all(&mut self) -> Vec<&'static str> {
        let mut found: Vec<&'static str> = Vec::new();
        for row in rows() {
            if !found.contains(&row.shown) && self.bears(row) {
                found.push(row.shown);
            }
        }
        found.extend(self.ext());
        found.extend(self.xfs_log());
        found.extend(self.zfs());
        // A FAT or NTFS boot sector ends like an MBR, and a GPT has a protective MBR.
        let explained = found.iter().any(|name| {
            ["FAT", "NTFS", "GPT partition table", "BitLocker", "ReFS"]
                .iter()
                .any(|kind| name.contains(kind))
        });
        if !explained {
            found.extend(self.mbr());
        }
        found
    }

    /// A journal makes ext2 into ext3, extents and later features ext4.
    fn ext(&mut self) -> Option<&'static str> {
        let superblock: [u8; 0x70] = self.read(1024)?;
        if superblock[0x38..0x3a] != [0x53, 0xef] {
            return None;
        }
        let word =
            |at: usize| u32::from_le_bytes(superblock[at..at + 4].try_into().expect("four bytes"));
        let (compatible, incompatible, read_only_compatible) = (word(0x5c), word(0x60), word(0x64));
        const HAS_JOURNAL: u32 = 0x4;
        const JOURNAL_DEVICE: u32 = 0x8;
        // Known to ext3: file type, needs recovery, meta block groups; sparse superblocks, large
        // files.
        const EXT3_INCOMPATIBLE: u32 = 0x2 | 0x4 | 0x10;
        const EXT3_READ_ONLY_COMPATIBLE: u32 = 0x1 | 0x2 | 0x4;
        let later = incompatible & !EXT3_INCOMPATIBLE != 0
            || read_only_compatible & !EXT3_READ_ONLY_COMPATIBLE != 0;
        if incompatible & JOURNAL_DEVICE != 0 {
            return Some("a journal of an ext file system");
        }
        Some(match (later, compatible & HAS_JOURNAL != 0) {
            (true, _) => "an ext4 file system",
            (false, true) => "an ext3 file system",
            (false, false) => "an ext2 file system",
        })
    }

    /// A record starts in one of the first 512 sectors.
    fn xfs_log(&mut self) -> Option<&'static str> {
        const RECORD: u32 = 0xfeed_babe;
        let mut beginning = vec![0; self.end.min(512 * HEAD as u64) as usize];
        if let Err(error) = self.file.read_exact_at(&mut beginning, 0) {
            self.failed.get_or_insert(error);
            return None;
        }
        let (sectors, _) = beginning.as_chunks::<HEAD>();
        let is_record = |head: &[u8; HEAD]| {
            let word = |at| le32(head, at).swap_bytes();
            word(0) == RECORD && matches!(word(8), 1..=3) && matches!(word(300), 1..=3)
        };
        sectors.iter().any(is_record).then_some("a log of an XFS file system")
    }

    /// Four 256 KiB labels, two at each end, each with uberblocks from 128 KiB in either byte
    /// order.
    fn zfs(&mut self) -> Option<&'static str> {
        const LABEL: u64 = 256 << 10;
        const UBERBLOCK_MAGIC: u64 = 0x00ba_b10c;
        let end = self.end / LABEL * LABEL;
        let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
        labels.into_iter().flatten().find_map(|label| {
            (0..128).find_map(|slot| {
                let reported = u64::from_le_bytes(self.read(label + (128 << 10) + slot * 1024)?);
                (reported == UBERBLOCK_MAGIC || reported.swap_bytes() == UBERBLOCK_MAGIC)
                    .then_some("a member of a ZFS pool")
            })
        })
    }

    /// Requires a boot sector signature, a plausible partition entry, and no impossible one.
    fn mbr(&mut self) -> Option<&'static str> {
        let sector: [u8; 512] = self.read(0)?;
        if sector[510..] != [0x55, 0xaa] {
            return None;
        }
        let entries = sector[446..510].chunks_exact(16);
        let possible = entries.clone().all(|entry| entry[0] == 0 || entry[0] == 0x80);
        let used = entries.into_iter().any(|entry| entry[4] != 0 && entry[12..16] != [0; 4]);
        Some(if possible && used { "an MBR partition table" } else { "a boot sector" })
    }
}
