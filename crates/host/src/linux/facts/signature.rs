//! What a device or file bears already: partition tables, file systems, members of volumes.
//!
//! Every known kind is a magic number at a fixed place. Recognised too often is safe, too seldom is not, so no checksum
//! is asked for where the magic number is long enough to be no accident.

use machine::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where a magic number stands.
#[derive(Clone, Copy)]
enum At {
    /// Bytes from the beginning.
    Start(u64),
    /// Bytes before the end.
    End(u64),
}

/// A magic number.
struct Magic {
    name: &'static str,
    at: At,
    bytes: &'static [u8],
}

const fn magic(name: &'static str, at: u64, bytes: &'static [u8]) -> Magic {
    Magic { name, at: At::Start(at), bytes }
}

/// Places and values from each format's own description. The ext family, swap, md and MBR need a closer look and have
/// functions below.
const MAGICS: &[Magic] = &[
    magic("an XFS file system", 0, b"XFSB"),
    magic("a btrfs file system", 0x10040, b"_BHRfS_M"),
    magic("an F2FS file system", 0x400, b"\x10\x20\xf5\xf2"),
    magic("an NTFS file system", 3, b"NTFS    "),
    magic("an exFAT file system", 3, b"EXFAT   "),
    magic("a FAT file system", 82, b"FAT32   "),
    magic("a FAT file system", 54, b"FAT12   "),
    magic("a FAT file system", 54, b"FAT16   "),
    magic("a ReFS file system", 3, b"ReFS\0\0\0\0"),
    magic("an ISO 9660 file system", 0x8001, b"CD001"),
    magic("a UDF file system", 0x8001, b"NSR0"),
    magic("a UDF file system", 0x8801, b"NSR0"),
    magic("a UDF file system", 0x9001, b"NSR0"),
    magic("a UDF file system", 0x8001, b"BEA01"),
    magic("a bcachefs file system or bcache device", 0x1018, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca]),
    magic("a bcachefs file system", 0x1018, &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9]),
    magic("a zonefs file system", 0, b"SFOZ"),
    magic("a squashfs file system", 0, b"hsqs"),
    magic("an EROFS file system", 0x400, b"\xe2\xe1\xf5\xe0"),
    magic("a NILFS2 file system", 0x406, b"\x34\x34"),
    magic("a JFS file system", 0x8000, b"JFS1"),
    magic("a ReiserFS file system", 0x10034, b"ReIsEr"),
    magic("an OCFS2 file system", 0x400, b"OCFSV2"),
    magic("an OCFS2 file system", 0x800, b"OCFSV2"),
    magic("an OCFS2 file system", 0x1000, b"OCFSV2"),
    magic("an OCFS2 file system", 0x2000, b"OCFSV2"),
    magic("a GFS2 file system", 0x10000, b"\x01\x16\x19\x70"),
    magic("an HFS+ file system", 0x400, b"H+\0\x04"),
    magic("an HFSX file system", 0x400, b"HX\0\x05"),
    magic("an APFS container", 32, b"NXSB"),
    magic("a VMFS volume", 0x100000, b"\x0d\xd0\x01\xc0"),
    magic("a LUKS container", 0, b"LUKS\xba\xbe"),
    magic("a LUKS container", 0x4000, b"SKUL\xba\xbe"),
    magic("a BitLocker volume", 3, b"-FVE-FS-"),
    magic("a dm-integrity device", 0, b"integrt\0"),
    magic("a dm-verity device", 0, b"verity\0\0"),
    magic("a VDO volume", 0, b"dmvdo001"),
    magic("a Ceph OSD", 0, b"bluestore block device"),
    magic("a GPT partition table", 512, b"EFI PART"),
    magic("a GPT partition table", 4096, b"EFI PART"),
    Magic { name: "a GPT partition table (the spare at the end)", at: At::End(512), bytes: b"EFI PART" },
    Magic { name: "a GPT partition table (the spare at the end)", at: At::End(4096), bytes: b"EFI PART" },
    magic("an Apple partition map", 512, b"PM\0\0"),
    magic("a BSD disk label", 512, b"\x57\x45\x56\x82"),
    magic("a Sun disk label", 508, b"\xda\xbe"),
    Magic { name: "a member of an Intel firmware RAID", at: At::End(1024), bytes: b"Intel Raid ISM Cfg Sig. " },
    Magic { name: "a member of a DDF firmware RAID", at: At::End(512), bytes: b"\xde\x11\xde\x11" },
    // md with metadata 1.1 at the start and 1.2 at 4 KiB; 1.0 and 0.90 are found from the end below.
    magic("a member of an md RAID", 0, &MD_MAGIC),
    magic("a member of an md RAID", 4096, &MD_MAGIC),
];

/// 0xa92b4efc, in the machine's order in version 0.90 and little-endian in version 1.
const MD_MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();

/// What a block device or file bears, each thing once; `None` where nothing known was found. Looks, and changes
/// nothing.
///
/// # Errors
/// The place cannot be opened or read.
pub fn signature(path: &Path) -> Result<Option<String>> {
    let file = File::open(path).map_err(Error::io("cannot open", path))?;
    let end = std::io::Seek::seek(&mut &file, std::io::SeekFrom::End(0))
        .map_err(Error::io("cannot tell the size of", path))?;
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
    /// The first read that failed: what is there is then not known, and nothing found means nothing.
    failed: Option<std::io::Error>,
}

impl Medium {
    /// Bytes at an offset; `None` where the medium is not that long.
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

    fn bears(&mut self, at: At, magic: &[u8]) -> bool {
        let offset = match at {
            At::Start(offset) => Some(offset),
            At::End(before) => self.end.checked_sub(before),
        };
        let bytes: Option<[u8; 32]> = offset.and_then(|offset| {
            // The last bytes of a medium may be fewer than the buffer.
            if offset + 32 <= self.end { self.read::<32>(offset) } else { self.tail(offset) }
        });
        bytes.is_some_and(|bytes| bytes.starts_with(magic))
    }

    /// What is left from an offset to the end, with zeros after it.
    fn tail(&mut self, offset: u64) -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        let len = usize::try_from(self.end.checked_sub(offset)?).ok()?.min(32);
        match self.file.read_exact_at(&mut bytes[..len], offset) {
            Ok(()) => Some(bytes),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    fn all(&mut self) -> Vec<&'static str> {
        let mut found: Vec<&'static str> = Vec::new();
        for magic in MAGICS {
            if self.bears(magic.at, magic.bytes) && !found.contains(&magic.name) {
                found.push(magic.name);
            }
        }
        found.extend(self.ext());
        found.extend(self.swap());
        found.extend(self.lvm());
        found.extend(self.zfs());
        if !found.contains(&"a member of an md RAID") {
            found.extend(self.md_at_end());
        }
        // A FAT or NTFS boot sector ends like an MBR, and a GPT has one to protect it.
        let explained = found.iter().any(|name| {
            ["FAT", "NTFS", "GPT partition table", "BitLocker", "ReFS"].iter().any(|kind| name.contains(kind))
        });
        if !explained {
            found.extend(self.mbr());
        }
        found
    }

    /// The ext family by its feature words: the journal makes ext3 of ext2, extents and later features make ext4.
    fn ext(&mut self) -> Option<&'static str> {
        let superblock: [u8; 0x70] = self.read(1024)?;
        if superblock[0x38..0x3a] != [0x53, 0xef] {
            return None;
        }
        let word = |at: usize| u32::from_le_bytes(superblock[at..at + 4].try_into().expect("four bytes"));
        let (compatible, incompatible, read_only_compatible) = (word(0x5c), word(0x60), word(0x64));
        const HAS_JOURNAL: u32 = 0x4;
        // file type, needs recovery, meta block groups; sparse superblocks, large files: known to ext3.
        const EXT3_INCOMPATIBLE: u32 = 0x2 | 0x4 | 0x10;
        const EXT3_READ_ONLY_COMPATIBLE: u32 = 0x1 | 0x2 | 0x4;
        let later = incompatible & !EXT3_INCOMPATIBLE != 0 || read_only_compatible & !EXT3_READ_ONLY_COMPATIBLE != 0;
        Some(match (later, compatible & HAS_JOURNAL != 0) {
            (true, _) => "an ext4 file system",
            (false, true) => "an ext3 file system",
            (false, false) => "an ext2 file system",
        })
    }

    /// Swap space says so in the last ten bytes of its first page, and pages differ in size.
    fn swap(&mut self) -> Option<&'static str> {
        [4096, 8192, 16384, 32768, 65536].into_iter().find_map(|page| {
            let told: [u8; 10] = self.read(page - 10)?;
            match &told {
                b"SWAPSPACE2" | b"SWAP-SPACE" => Some("swap space"),
                b"S1SUSPEND\0" | b"S2SUSPEND\0" | b"LINHIB0001" => Some("a hibernated system"),
                _ => None,
            }
        })
    }

    /// The label of a physical volume stands in one of the first four sectors.
    fn lvm(&mut self) -> Option<&'static str> {
        (0..4).find_map(|sector| (self.read::<8>(sector * 512)? == *b"LABELONE").then_some("an LVM physical volume"))
    }

    /// ZFS has four labels of 256 KiB, two at each end, each with a ring of uberblocks from 128 KiB on in either byte
    /// order.
    fn zfs(&mut self) -> Option<&'static str> {
        const LABEL: u64 = 256 << 10;
        const UBERBLOCK_MAGIC: u64 = 0x00ba_b10c;
        let end = self.end / LABEL * LABEL;
        let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
        labels.into_iter().flatten().find_map(|label| {
            (0..128).find_map(|slot| {
                let told = u64::from_le_bytes(self.read(label + (128 << 10) + slot * 1024)?);
                (told == UBERBLOCK_MAGIC || told.swap_bytes() == UBERBLOCK_MAGIC).then_some("a member of a ZFS pool")
            })
        })
    }

    /// md metadata 1.0 stands 8 to 12 KiB before the end, on a multiple of 4 KiB; 0.90 in the last whole 64 KiB but
    /// one.
    fn md_at_end(&mut self) -> Option<&'static str> {
        let version_1 = self.end.checked_sub(8 << 10).map(|offset| offset / 4096 * 4096);
        let version_0 = (self.end / (64 << 10) * (64 << 10)).checked_sub(64 << 10);
        [version_1, version_0].into_iter().flatten().find_map(|offset| {
            let told: [u8; 4] = self.read(offset)?;
            let reversed: Vec<u8> = told.iter().rev().copied().collect();
            (told == MD_MAGIC || reversed == MD_MAGIC).then_some("a member of an md RAID")
        })
    }

    /// A boot sector's mark with at least one entry that looks like a partition, and no entry that cannot be one.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A sparse medium of 4 MiB and a bit, with bytes at some offsets; negative ones count from the end.
    fn bearing(at: &[(i64, &[u8])]) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("medium");
        let file = File::create(&path).unwrap();
        let len = (4 << 20) + 512 * 3;
        file.set_len(len).unwrap();
        for (offset, bytes) in at {
            let offset = if *offset < 0 { len - offset.unsigned_abs() } else { *offset as u64 };
            file.write_all_at(bytes, offset).unwrap();
        }
        signature(&path).unwrap()
    }

    #[test]
    fn nothing_on_zeros_or_too_little() {
        assert_eq!(bearing(&[]), None);
        let dir = tempfile::tempdir().unwrap();
        for len in [0, 1, 511, 4096, 65536] {
            let path = dir.path().join("short");
            std::fs::write(&path, vec![0; len]).unwrap();
            assert_eq!(signature(&path).unwrap(), None, "{len}");
        }
    }

    #[test]
    fn every_magic_number_of_the_table() {
        for magic in MAGICS {
            let offset = match magic.at {
                At::Start(offset) => offset as i64,
                At::End(before) => -(before as i64),
            };
            assert_eq!(bearing(&[(offset, magic.bytes)]).as_deref(), Some(magic.name));
        }
    }

    #[test]
    fn the_ext_family_by_its_features() {
        let ext = |compatible: u8, incompatible: u8| {
            bearing(&[(1024 + 0x38, &[0x53, 0xef]), (1024 + 0x5c, &[compatible]), (1024 + 0x60, &[incompatible])])
        };
        assert_eq!(ext(0, 2).as_deref(), Some("an ext2 file system"));
        assert_eq!(ext(4, 2).as_deref(), Some("an ext3 file system"));
        assert_eq!(ext(4, 0x42).as_deref(), Some("an ext4 file system"));
    }

    #[test]
    fn those_that_stand_elsewhere() {
        assert_eq!(bearing(&[(4086, b"SWAPSPACE2")]).as_deref(), Some("swap space"));
        assert_eq!(bearing(&[(65526, b"SWAPSPACE2")]).as_deref(), Some("swap space"));
        assert_eq!(bearing(&[(512, b"LABELONE")]).as_deref(), Some("an LVM physical volume"));
        let end = (4 << 20) + 512 * 3;
        assert_eq!(
            bearing(&[((end - 8192) / 4096 * 4096, &MD_MAGIC)]).as_deref(),
            Some("a member of an md RAID"),
            "1.0"
        );
        assert_eq!(bearing(&[((4 << 20) - (64 << 10), &MD_MAGIC)]).as_deref(), Some("a member of an md RAID"), "0.90");
        assert_eq!(
            bearing(&[((256 << 10) + (128 << 10) + 5 * 1024, &0xba_b10c_u64.to_be_bytes())]).as_deref(),
            Some("a member of a ZFS pool")
        );
    }

    #[test]
    fn partition_tables_and_boot_sectors() {
        let entry = [0x80, 0, 0, 0, 0x83, 0, 0, 0, 63, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(bearing(&[(446, &entry), (510, &[0x55, 0xaa])]).as_deref(), Some("an MBR partition table"));
        assert_eq!(bearing(&[(510, &[0x55, 0xaa])]).as_deref(), Some("a boot sector"));
        assert_eq!(bearing(&[(54, b"FAT16   "), (510, &[0x55, 0xaa])]).as_deref(), Some("a FAT file system"));
        let gpt = bearing(&[(446, &entry), (510, &[0x55, 0xaa]), (512, b"EFI PART"), (-512, b"EFI PART")]);
        assert_eq!(gpt.as_deref(), Some("a GPT partition table and a GPT partition table (the spare at the end)"));
    }

    #[test]
    fn two_things_on_one_medium_are_both_told() {
        let both = bearing(&[(0, b"XFSB"), ((4 << 20) - (64 << 10), &MD_MAGIC)]);
        assert_eq!(both.as_deref(), Some("an XFS file system and a member of an md RAID"));
    }
}
