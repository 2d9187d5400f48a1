//! Magic strings at fixed offsets: all of libblkid's, by its names (`blkid -k`). A test compares
//! with wipefs.

/// Offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Start(u64),
    /// `before` bytes before the end, which is rounded down to a multiple of `unit`.
    End {
        unit: u64,
        before: u64,
    },
}

pub(super) struct Row {
    #[cfg_attr(not(test), allow(dead_code, reason = "the tests ask wipefs by it"))]
    pub(super) name: &'static str,
    pub(super) shown: &'static str,
    pub(super) places: &'static [At],
    pub(super) magic_at: u64,
    pub(super) magics: &'static [&'static [u8]],
    /// Checks the head, for a magic string that may occur by chance or that two kinds share.
    pub(super) check: Option<fn(&[u8; HEAD]) -> bool>,
}

pub(super) const HEAD: usize = 512;

const fn row(
    name: &'static str,
    shown: &'static str,
    places: &'static [At],
    magics: &'static [&'static [u8]],
) -> Row {
    Row { name, shown, places, magic_at: 0, magics, check: None }
}

impl Row {
    const fn at(self, magic_at: u64) -> Row {
        Row { magic_at, ..self }
    }

    const fn with_check(self, check: fn(&[u8; HEAD]) -> bool) -> Row {
        Row { check: Some(check), ..self }
    }
}

const fn start(offset: u64) -> At {
    At::Start(offset)
}

const fn sectors(before: u64) -> At {
    At::End { unit: 512, before: before * 512 }
}

const fn end(unit: u64, before: u64) -> At {
    At::End { unit, before }
}

const FIRST: &[At] = &[start(0)];
const LAST_SECTOR: &[At] = &[sectors(1)];

fn le16(head: &[u8; HEAD], at: usize) -> u16 {
    u16::from_le_bytes([head[at], head[at + 1]])
}

pub(super) fn le32(head: &[u8; HEAD], at: usize) -> u32 {
    u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

fn be32(head: &[u8; HEAD], at: usize) -> u32 {
    le32(head, at).swap_bytes()
}

fn sum16(head: &[u8; HEAD], end: usize) -> u16 {
    (0..end).step_by(2).fold(0, |sum: u16, at| sum.wrapping_add(le16(head, at)))
}

/// Swap space: the last ten bytes of a page.
const PAGE_ENDS: &[At] =
    &[start(4096 - 10), start(8192 - 10), start(16384 - 10), start(32768 - 10), start(65536 - 10)];

/// The third block, of 512 to 4096 bytes.
const DASD_LABELS: &[At] = &[start(1024), start(2048), start(4096), start(8192)];
const DASD: &str = "a label of a mainframe disk";

/// 0xa92b4efc: native byte order in version 0.90, little-endian in version 1.
const MD_MAGIC: &[u8] = b"\xfc\x4e\x2b\xa9";
const MD_MAGIC_BIG: &[u8] = b"\xa9\x2b\x4e\xfc";

const MD: &str = "a member of an md RAID";
const LUKS: &str = "a LUKS container";
const MINIX: &str = "a Minix file system";
const REISERFS: &str = "a ReiserFS file system";
const BEFS: &str = "a BeFS file system";
const VXFS: &str = "a VxFS file system";
const FAT: &str = "a FAT file system";
const SQUASHFS: &str = "a squashfs file system";

const VOLUMES: &[Row] = &[
    // Metadata 1.1, 1.2 and 1.0, in the order of their offsets, then 0.90.
    row("linux_raid_member", MD, &[start(0), start(4096), end(4096, 8192)], &[MD_MAGIC]),
    row("linux_raid_member", MD, &[end(65536, 65536)], &[MD_MAGIC, MD_MAGIC_BIG]),
    row(
        "ddf_raid_member",
        "a member of a DDF firmware RAID",
        &[sectors(1), sectors(257)],
        &[b"\xde\x11\xde\x11"],
    ),
    row(
        "isw_raid_member",
        "a member of an Intel firmware RAID",
        &[sectors(2), end(4096, 8192)],
        &[b"Intel Raid ISM Cfg Sig. "],
    ),
    row("lsi_mega_raid_member", "a member of an LSI MegaRAID", LAST_SECTOR, &[b"$XIDE$"]),
    // The version, and a sum of the 50 bytes before it.
    row("via_raid_member", "a member of a VIA firmware RAID", LAST_SECTOR, &[b"\x55\xaa"])
        .with_check(|head| {
            head[2] <= 2
                && head[..50].iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) == head[50]
        }),
    // The disk number.
    row(
        "silicon_medley_raid_member",
        "a member of a Silicon Image RAID",
        LAST_SECTOR,
        &[b"\0\0\0\x2f"],
    )
    .at(0x60)
    .with_check(|head| head[0x116] < 8),
    row("nvidia_raid_member", "a member of an NVIDIA firmware RAID", &[sectors(2)], &[b"NVIDIA  "]),
    row(
        "promise_fasttrack_raid_member",
        "a member of a Promise FastTrack RAID",
        &[
            sectors(63),
            sectors(255),
            sectors(256),
            sectors(16),
            sectors(399),
            sectors(591),
            sectors(675),
            sectors(735),
            sectors(911),
            sectors(974),
            sectors(991),
            sectors(951),
            sectors(3087),
        ],
        &[b"Promise Technology, Inc."],
    ),
    row(
        "hpt45x_raid_member",
        "a member of a HighPoint RAID",
        &[sectors(11)],
        &[b"\xf3\x16\x78\x5a", b"\xfd\x16\x78\x5a"],
    ),
    row(
        "hpt37x_raid_member",
        "a member of a HighPoint RAID",
        &[start(0x1200)],
        &[b"\xf0\x16\x78\x5a", b"\xfd\x16\x78\x5a"],
    )
    .at(32),
    row("adaptec_raid_member", "a member of an Adaptec RAID", LAST_SECTOR, &[b"\x37\xfc\x4d\x1e"]),
    // Sums to 0 or 1 over the structure, and has a valid level.
    row("jmicron_raid_member", "a member of a JMicron RAID", LAST_SECTOR, &[b"JM"])
        .with_check(|head| sum16(head, 128) <= 1 && head[0x30] <= 5),
    row(
        "bcache",
        "a bcache device",
        &[start(4096)],
        &[b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"],
    )
    .at(0x18),
    row("ceph_bluestore", "a Ceph OSD", FIRST, &[b"bluestore block device"]),
    // libblkid does not round the end; DRBD rounds it to 4 KiB.
    row(
        "drbd",
        "a DRBD replica",
        &[end(1, 4096), end(4096, 4096)],
        &[b"\x83\x74\x02\x6b", b"\x83\x74\x02\x6c", b"\x83\x74\x02\x6d"],
    )
    .at(60),
    row("drbdmanage_control_volume", "a control volume of drbdmanage", FIRST, &[b"$DRBDmgr=q"]),
    row("drbdproxy_datalog", "a data log of a DRBD proxy", FIRST, &[b"DRBDdlh*"]),
    row(
        "LVM2_member",
        "an LVM physical volume",
        &[start(0), start(512), start(1024), start(1536)],
        &[b"LVM2 001"],
    )
    .at(0x18),
    // Only the label, which pvck may still repair.
    row(
        "LVM2_member",
        "an LVM physical volume",
        &[start(0), start(512), start(1024), start(1536)],
        &[b"LABELONE"],
    ),
    row("LVM1_member", "an LVM1 physical volume", FIRST, &[b"HM"])
        .with_check(|head| matches!(le16(head, 2), 1 | 2)),
    row("DM_snapshot_cow", "a dm-snapshot", FIRST, &[b"SnAp"]),
    row("DM_verity_hash", "a dm-verity device", FIRST, &[b"verity\0\0"]),
    row("DM_integrity", "a dm-integrity device", FIRST, &[b"integrt\0"]),
    row("crypto_LUKS", LUKS, FIRST, &[b"LUKS\xba\xbe"]),
    // The second LUKS2 header follows the first, which has one of eleven sizes.
    row(
        "crypto_LUKS",
        LUKS,
        &[
            start(0x4000),
            start(0x8000),
            start(0x1_0000),
            start(0x2_0000),
            start(0x4_0000),
            start(0x8_0000),
            start(0x10_0000),
            start(0x20_0000),
            start(0x40_0000),
        ],
        &[b"SKUL\xba\xbe"],
    ),
    row(
        "VMFS_volume_member",
        "a member of a VMFS volume",
        &[start(1 << 20)],
        &[b"\x0d\xd0\x01\xc0"],
    ),
    row("ubi", "a UBI volume", FIRST, &[b"UBI#"]),
    row("vdo", "a VDO volume", FIRST, &[b"dmvdo001"]),
    row(
        "stratis",
        "a Stratis block device",
        &[start(512), start(9 * 512)],
        &[b"!Stra0tis\x86\xff\x02^\x41rh"],
    )
    .at(4),
    row(
        "BitLocker",
        "a BitLocker volume",
        FIRST,
        &[b"\xeb\x52\x90-FVE-FS-", b"\xeb\x58\x90-FVE-FS-"],
    ),
    // BitLocker To Go looks like FAT except for its identifier.
    row("BitLocker", "a BitLocker volume", FIRST, &[b"\xeb\x58\x90MSWIN4.1"]).with_check(|head| {
        head[424..440]
            == [
                0x3b, 0xd6, 0x67, 0x49, 0x29, 0x2e, 0xd8, 0x4a, 0x83, 0x99, 0xf6, 0xa3, 0x39, 0xe3,
                0xd0, 0x01,
            ]
    }),
    // Version 1 of a volume header.
    row("cs_fvault2", "an Apple Core Storage volume", FIRST, &[b"CS"])
        .at(88)
        .with_check(|head| le16(head, 8) == 1 && le16(head, 10) == 0x10),
    row("oracleasm", "a disk of Oracle ASM", FIRST, &[b"ORCLDISK"]).at(32),
];

const FILE_SYSTEMS: &[Row] = &[
    row("xfs", "an XFS file system", FIRST, &[b"XFSB"]),
    row("exfs", "an EXFS file system", FIRST, &[b"EXFS"]),
    row("btrfs", "a btrfs file system", &[start(65536)], &[b"_BHRfS_M"]).at(0x40),
    // The first copy is after the boot sector, the last one before the end.
    row(
        "bcachefs",
        "a bcachefs file system",
        &[start(4096), start(2 << 20), end(1, 1 << 20)],
        &[b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"],
    )
    .at(0x18),
    row("f2fs", "an F2FS file system", &[start(1024)], &[b"\x10\x20\xf5\xf2"]),
    row("zonefs", "a zonefs file system", FIRST, &[b"SFOZ"]),
    row("erofs", "an EROFS file system", &[start(1024)], &[b"\xe2\xe1\xf5\xe0"]),
    row("squashfs", SQUASHFS, FIRST, &[b"hsqs"]).with_check(|head| le16(head, 28) >= 4),
    row("squashfs3", SQUASHFS, FIRST, &[b"hsqs", b"sqsh"])
        .with_check(|head| le16(head, 28) < 4 || head[28] == 0),
    row("cramfs", "a cramfs file system", FIRST, &[b"\x45\x3d\xcd\x28", b"\x28\xcd\x3d\x45"]),
    row("romfs", "a romfs file system", FIRST, &[b"-rom1fs-"]),
    row("ubifs", "a UBIFS file system", FIRST, &[b"\x31\x18\x10\x06"]),
    row("jfs", "a JFS file system", &[start(32768)], &[b"JFS1"]),
    row("reiserfs", REISERFS, &[start(8192)], &[b"ReIsErFs"]).at(20),
    row("reiserfs", REISERFS, &[start(8192)], &[b"ReIsErFs"]).at(52),
    row("reiserfs", REISERFS, &[start(65536)], &[b"ReIsErFs", b"ReIsEr2Fs", b"ReIsEr3Fs"]).at(52),
    row("reiser4", "a Reiser4 file system", &[start(65536)], &[b"ReIsEr4"]),
    // Superblock size and revision.
    row("nilfs2", "a NILFS2 file system", &[start(1024), sectors(8)], &[b"\x34\x34"])
        .at(6)
        .with_check(|head| (20..=1024).contains(&le16(head, 8))),
    row("ocfs", "an OCFS file system", &[start(8192)], &[b"OracleCFS"]),
    row(
        "ocfs2",
        "an OCFS2 file system",
        &[start(1024), start(2048), start(4096), start(8192)],
        &[b"OCFSV2"],
    ),
    row("gfs2", "a GFS2 file system", &[start(65536)], &[b"\x01\x16\x19\x70"])
        .with_check(|head| be32(head, 24) != 1309),
    row("gfs", "a GFS file system", &[start(65536)], &[b"\x01\x16\x19\x70"])
        .with_check(|head| be32(head, 24) == 1309),
    row("scoutfs", "a ScoutFS file system", &[start(65536)], &[b"\x8b\x42\x3c\x10"]).at(4),
    row("mpool", "an mpool", FIRST, &[b"mpoolDev"]),
    row("apfs", "an APFS container", FIRST, &[b"NXSB"]).at(32),
    row("hfsplus", "an HFS+ file system", &[start(1024)], &[b"H+\0\x04"]),
    row("hfsplus", "an HFSX file system", &[start(1024)], &[b"HX\0\x05", b"HX\0\x04"]),
    // An allocation block is a multiple of 512 bytes.
    row("hfs", "an HFS file system", &[start(1024)], &[b"BD"])
        .with_check(|head| be32(head, 20) != 0 && be32(head, 20).is_multiple_of(512)),
    row("ntfs", "an NTFS file system", FIRST, &[b"NTFS    "]).at(3),
    row("exfat", "an exFAT file system", FIRST, &[b"EXFAT   "]).at(3),
    row("ReFS", "a ReFS file system", FIRST, &[b"\0\0\0ReFS\0"]),
    row("vfat", FAT, FIRST, &[b"FAT32   ", b"MSWIN"]).at(0x52),
    row("vfat", FAT, FIRST, &[b"FAT12   ", b"FAT16   ", b"FAT     ", b"MSDOS"]).at(0x36),
    // Old formats have only the jump followed by the parameter block: bytes per sector, sectors per
    // cluster, copies, medium.
    row("vfat", FAT, FIRST, &[b"\xeb", b"\xe9"]).with_check(|head| {
        matches!(le16(head, 11), 512 | 1024 | 2048 | 4096)
            && head[13].is_power_of_two()
            && le16(head, 14) > 0
            && matches!(head[16], 1 | 2)
            && (head[21] == 0xf0 || head[21] >= 0xf8)
    }),
    row("hpfs", "an HPFS file system", &[start(8192)], &[b"\x49\xe8\x95\xf9"]),
    row("iso9660", "an ISO 9660 file system", &[start(32768)], &[b"CD001"]).at(1),
    row("iso9660", "a High Sierra file system", &[start(32768)], &[b"CDROM"]).at(9),
    // The identifying sequence may start with other descriptors, and has 2 or 4 KiB sectors.
    row(
        "udf",
        "a UDF file system",
        &[start(0x8000), start(0x8800), start(0x9000), start(0x9800), start(0xa000)],
        &[b"BEA01", b"BOOT2", b"CDW02", b"NSR02", b"NSR03", b"TEA01"],
    )
    .at(1),
    row(
        "ufs",
        "a UFS file system",
        &[start(0), start(8192), start(65536), start(262_144)],
        &[
            b"\x54\x19\x01\x00",
            b"\x00\x01\x19\x54",
            b"\x19\x01\x54\x19",
            b"\x19\x54\x01\x19",
            b"\x12\x56\x19\x00",
            b"\x00\x19\x56\x12",
            b"\x14\x50\x09\x00",
            b"\x00\x09\x50\x14",
            b"\x95\x21\x61\x00",
            b"\x00\x61\x21\x95",
            b"\x94\x19\x23\x05",
            b"\x05\x23\x19\x94",
        ],
    )
    .at(1372),
    row("vxfs", VXFS, &[start(1024)], &[b"\xf5\xfc\x01\xa5"]),
    row("vxfs", VXFS, &[start(8192)], &[b"\xa5\x01\xfc\xf5"]),
    row(
        "sysv",
        "a System V file system",
        &[start(512), start(512 + 9 * 1024), start(512 + 15 * 1024), start(512 + 18 * 1024)],
        &[b"\x20\x7e\x18\xfd", b"\xfd\x18\x7e\x20"],
    )
    .at(504),
    row("xenix", "a Xenix file system", &[start(1024)], &[b"\x2b\x55\x44", b"\x44\x55\x2b"])
        .at(0x400),
    // Versions 1, 2 and 3 in either byte order: a data zone is one block, and the inode count is
    // not zero.
    row("minix", MINIX, &[start(1024)], &[b"\x7f\x13", b"\x8f\x13", b"\x68\x24", b"\x78\x24"])
        .at(16)
        .with_check(|head| le16(head, 0) > 0 && le16(head, 4) > 0 && le16(head, 10) == 0),
    row("minix", MINIX, &[start(1024)], &[b"\x13\x7f", b"\x13\x8f", b"\x24\x68", b"\x24\x78"])
        .at(16)
        .with_check(|head| le16(head, 0) > 0 && le16(head, 4) > 0 && le16(head, 10) == 0),
    row("minix", MINIX, &[start(1024)], &[b"\x5a\x4d", b"\x4d\x5a"])
        .at(24)
        .with_check(|head| le32(head, 0) > 0 && le16(head, 6) > 0 && le16(head, 12) == 0),
    row("nss", "a volume of Novell's storage services", &[start(4096)], &[b"SPB5"]),
    row("bfs", "a UnixWare boot file system", FIRST, &[b"\xce\xfa\xad\x1b"]),
    row("befs", BEFS, &[start(0), start(512)], &[b"BFS1", b"1SFB"]).at(32),
    row("VMFS", "a VMFS file system", &[start(2 << 20)], &[b"\x5e\xf1\xab\x2f"]),
    row("swap", "swap space", PAGE_ENDS, &[b"SWAPSPACE2", b"SWAP-SPACE"]),
    row(
        "swsuspend",
        "a hibernated system",
        PAGE_ENDS,
        &[b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"],
    ),
    row("swsuspend", "a hibernated system", FIRST, &[b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c"]),
];

/// Without the MBR, which has its own function.
const PARTITIONS: &[Row] = &[
    // Logical sectors have 512 or 4096 bytes.
    row("gpt", "a GPT partition table", &[start(512), start(4096)], &[b"EFI PART"]),
    row(
        "gpt",
        "a GPT partition table (the spare at the end)",
        &[sectors(1), end(4096, 4096)],
        &[b"EFI PART"],
    ),
    row("mac", "an Apple partition map", &[start(512), start(2048)], &[b"PM\0\0"]),
    row("mac", "an Apple driver map", FIRST, &[b"ER"]).with_check(|head| {
        head[2..4] != [0, 0] && (u16::from_be_bytes([head[2], head[3]])).is_multiple_of(512)
    }),
    // The XOR of the label's words is zero.
    row("sun", "a Sun disk label", FIRST, &[b"\xda\xbe"])
        .at(508)
        .with_check(|head| (0..HEAD).step_by(2).fold(0, |sum, at| sum ^ le16(head, at)) == 0),
    row("sgi", "an SGI disk label", FIRST, &[b"\x0b\xe5\xa9\x41"]),
    row("bsd", "a BSD disk label", &[start(512), start(64), start(128)], &[b"\x57\x45\x56\x82"]),
    row("aix", "an AIX disk label", FIRST, &[b"\xc9\xc2\xd4\xc1"]),
    row("solaris", "a Solaris disk label", &[start(512)], &[b"\xee\xde\x0d\x60"]).at(12),
    row("unixware", "a UnixWare disk label", &[start(29 * 512)], &[b"\x0d\x60\xe5\xca"]).at(4),
    row("ultrix", "an Ultrix disk label", &[start(16384 - 72)], &[b"\x57\x29\x03\0"]),
    // Four entries with a flag, a name, a first sector and a length.
    row(
        "atari",
        "an Atari partition table",
        FIRST,
        &[b"\x01GEM", b"\x01BGM", b"\x01LNX", b"\x01RAW", b"\x01XGM"],
    )
    .at(0x1c6),
    // Mainframe volume labels in the third block, in EBCDIC: LNX1 and CMS1, or VOL1 after its key.
    row("dasd", DASD, DASD_LABELS, &[b"\xd3\xd5\xe7\xf1", b"\xc3\xd4\xe2\xf1"]),
    row("dasd", DASD, DASD_LABELS, &[b"\xe5\xd6\xd3\xf1"]).at(4),
];

pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    FILE_SYSTEMS.iter().chain(VOLUMES).chain(PARTITIONS)
}
