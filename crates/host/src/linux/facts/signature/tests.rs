//! Compares results with those of Debian's wipefs (libblkid).

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

/// Negative offsets count from the end.
fn signature_of(at: &[(i64, &[u8])]) -> Option<String> {
    const LEN: u64 = (4 << 20) + 512 * 3;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("medium");
    let file = File::create(&path).unwrap();
    file.set_len(LEN).unwrap();
    for (offset, bytes) in at {
        let offset = if *offset < 0 { LEN - offset.unsigned_abs() } else { *offset as u64 };
        file.write_all_at(bytes, offset).unwrap();
    }
    signature(&path).unwrap()
}

#[test]
fn nothing_on_zeros_or_too_little() {
    assert_eq!(signature_of(&[]), None);
    let dir = tempfile::tempdir().unwrap();
    for len in [0, 1, 511, 4096, 65536] {
        let path = dir.path().join("short");
        std::fs::write(&path, vec![0; len]).unwrap();
        assert_eq!(signature(&path).unwrap(), None, "{len}");
    }
}

#[test]
fn a_short_magic_string_needs_a_check() {
    // LVM1, HFS, NILFS2, Minix, JMicron, Core Storage, a FAT jump.
    let accidents: [(i64, &[u8]); 7] = [
        (0, b"HM"),
        (1024, b"BD"),
        (1030, b"\x34\x34"),
        (1040, b"\x7f\x13"),
        (-512, b"JM\0\x07"),
        (88, b"CS"),
        (0, b"\xeb"),
    ];
    for accident in accidents {
        assert_eq!(signature_of(&[accident]), None, "{accident:?}");
    }
}

#[test]
fn the_ext_family_by_its_features() {
    let ext = |compatible: u8, incompatible: u8| {
        signature_of(&[
            (1024 + 0x38, &[0x53, 0xef]),
            (1024 + 0x5c, &[compatible]),
            (1024 + 0x60, &[incompatible]),
        ])
    };
    assert_eq!(ext(0, 2).as_deref(), Some("an ext2 file system"));
    assert_eq!(ext(4, 2).as_deref(), Some("an ext3 file system"));
    assert_eq!(ext(4, 0x42).as_deref(), Some("an ext4 file system"));
    assert_eq!(ext(0, 8).as_deref(), Some("a journal of an ext file system"));
}

#[test]
fn a_zfs_uberblock_in_the_second_label() {
    let uberblock = [(256 << 10) + (128 << 10) + 5 * 1024];
    let found = signature_of(&[(uberblock[0], &0x00ba_b10c_u64.to_be_bytes())]);
    assert_eq!(found.as_deref(), Some("a member of a ZFS pool"));
}

#[test]
fn partition_tables_and_boot_sectors() {
    let entry = [0x80, 0, 0, 0, 0x83, 0, 0, 0, 63, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(
        signature_of(&[(446, &entry), (510, &[0x55, 0xaa])]).as_deref(),
        Some("an MBR partition table")
    );
    assert_eq!(signature_of(&[(510, &[0x55, 0xaa])]).as_deref(), Some("a boot sector"));
    assert_eq!(
        signature_of(&[(54, b"FAT16   "), (510, &[0x55, 0xaa])]).as_deref(),
        Some("a FAT file system")
    );
    let gpt = signature_of(&[
        (446, &entry),
        (510, &[0x55, 0xaa]),
        (512, b"EFI PART"),
        (-512, b"EFI PART"),
    ]);
    assert_eq!(
        gpt.as_deref(),
        Some("a GPT partition table and a GPT partition table (the spare at the end)")
    );
}

#[test]
fn two_signatures_are_both_reported() {
    let both = signature_of(&[(0, b"XFSB"), ((4 << 20) - (64 << 10), b"\xfc\x4e\x2b\xa9")]);
    assert_eq!(both.as_deref(), Some("an XFS file system and a member of an md RAID"));
}

/// ZFS detection needs 64 MiB; an odd number of sectors exposes rounding differences.
const IMAGE: u64 = (80 << 20) + 512 * 3;

struct Image {
    file: File,
    base: u64,
}

impl Image {
    fn put(&self, offset: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, self.base + offset).unwrap();
    }
}

struct Case {
    row: &'static Row,
    at: At,
    magic: &'static [u8],
    path: PathBuf,
}

fn offset_in(at: At) -> u64 {
    match at {
        At::Start(offset) => offset,
        At::End { unit, before } => IMAGE / unit * unit - before,
    }
}

fn crc(polynomial: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { polynomial } else { 0 }
        })
    })
}

const CRC32: u32 = 0xedb8_8320;
const CRC32C: u32 = 0x82f6_3b78;

fn gpt_header(sector: u64) -> Vec<u8> {
    let last = IMAGE / 512 - 1;
    let (other, entries) = if sector == 1 { (last, 2) } else { (1, last - 32) };
    let mut header = b"EFI PART\0\0\x01\0\x5c\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    for number in [sector, other, 34, last - 33] {
        header.extend(number.to_le_bytes());
    }
    header.extend([7; 16]);
    header.extend(entries.to_le_bytes());
    header.extend([128u32, 128, crc(CRC32, &[0; 128 * 128])].map(u32::to_le_bytes).concat());
    let own = crc(CRC32, &header);
    header[16..20].copy_from_slice(&own.to_le_bytes());
    header
}

/// Writes what else libblkid checks. wipefs accepts wrong checksums, except for partition tables
/// and Stratis.
fn complete(image: &Image, row: &Row, magic: &[u8]) {
    let put = |offset: u64, bytes: &[u8]| image.put(offset, bytes);
    let from_start = |offset: u64, bytes: &[u8]| image.file.write_all_at(bytes, offset).unwrap();
    let le16 =
        |values: &[u16]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let be16 =
        |values: &[u16]| values.iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<u8>>();
    let le32 =
        |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let be32 =
        |values: &[u32]| values.iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<u8>>();
    let sector = image.base / 512;
    match row.name {
        "linux_raid_member" if row.places.len() == 1 => {
            let words = if magic[0] == 0xfc { le32 } else { be32 };
            put(4, &words(&[0, 90]));
            put(32, &words(&[1024]));
        }
        "linux_raid_member" => {
            put(4, &le32(&[1]));
            put(144, &sector.to_le_bytes());
        }
        "via_raid_member" => put(50, &[0xff]),
        "nvidia_raid_member" => put(8, &le32(&[30])),
        "adaptec_raid_member" => put(256, b"DPTM"),
        "jmicron_raid_member" => put(0x10, &le16(&[0u16.wrapping_sub(u16::from_le_bytes(*b"JM"))])),
        "bcache" => put(8, &le32(&[8])),
        "drbd" => put(80, &be32(&[4096])),
        "drbdmanage_control_volume" => put(10, b"\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"),
        "LVM2_member" => {
            put(0, b"LABELONE");
            put(8, &sector.to_le_bytes());
            put(0x18, b"LVM2 001");
        }
        "LVM1_member" => put(2, &[1]),
        "DM_verity_hash" | "DM_integrity" => put(8, &[1]),
        "crypto_LUKS" if magic[0] == b'L' => put(6, &[0, 1]),
        "crypto_LUKS" => {
            put(6, &[0, 2]);
            put(0x100, &image.base.to_be_bytes());
        }
        "stratis" => put(0, &le32(&[crc(CRC32C, &[magic, &[0; 508 - 16]].concat())])),
        "BitLocker" => {
            put(0xb0, &65536u64.to_le_bytes());
            put(440, &65536u64.to_le_bytes());
            put(0x38, &16u64.to_le_bytes());
            put(11, &[0, 2, 8]);
            put(65536, b"-FVE-FS-\0\0\x02\0");
            put(424, b"\x3b\xd6\x67\x49\x29\x2e\xd8\x4a\x83\x99\xf6\xa3\x39\xe3\xd0\x01");
        }
        "vfat" => {
            put(0, b"\xeb\x58\x90");
            put(11, &[0, 2, 1, 32, 0, 2]);
            put(21, &[0xf8]);
            put(510, &[0x55, 0xaa]);
            if row.magic_at == 0x52 {
                put(32, &le32(&[70000, 550, 0, 2]));
            } else {
                put(17, &le16(&[512]));
                put(32, &le32(&[32000]));
                put(22, &le16(&[125]));
            }
        }
        "swap" => from_start(1024, &le32(&[1, 99])),
        "xfs" | "exfs" => {
            put(4, &be32(&[4096, 0, 4000]));
            put(80, &be32(&[1, 1000, 4]));
            put(100, &be16(&[4, 512, 512, 8]));
            put(120, &[12, 9, 9, 3, 10]);
        }
        "reiserfs" => {
            put(12, &le32(&[100]));
            put(44, &le16(&[4096]));
        }
        "reiser4" => put(19, &[16]),
        "jfs" => {
            put(16, &le32(&[4096]));
            put(20, &le16(&[12, 3]));
            put(24, &le32(&[512]));
            put(28, &le16(&[9]));
        }
        "iso9660" => put(0, &[1]),
        "udf" => {
            put(0x801, b"NSR02");
            // The anchor for 512-byte blocks, and the volume descriptor.
            from_start(256 * 512, &[&le16(&[2, 2])[..], &[0; 8], &le32(&[256, 512, 300])].concat());
            from_start(300 * 512, &[&le16(&[6, 2])[..], &[0; 8], &le32(&[300])].concat());
            from_start(300 * 512 + 212, &le32(&[512]));
            from_start(300 * 512 + 217, b"*OSTA UDF Compliant");
        }
        "hfs" => put(18, b"\0\x01\0\0\x02\0"),
        "hfsplus" => put(40, &be32(&[4096])),
        "hpfs" => {
            put(4, &[0xc5, 0xe9, 0x53, 0xfa, 2]);
            from_start(0x2200, b"\x49\x18\x91\xf9\x29\xc5\x52\xfa");
        }
        "ntfs" => {
            put(0, b"\xeb\x52\x90");
            put(11, &[0, 2, 8]);
            put(21, &[0xf8]);
            put(0x28, &[32000u64, 4, 8].map(u64::to_le_bytes).concat());
            put(0x40, &[0xf6]);
            put(510, &[0x55, 0xaa]);
            from_start(16384, b"FILE");
            from_start(16384 + 3072, b"FILE");
        }
        "cramfs" => {
            let words = if magic[0] == 0x45 { le32 } else { be32 };
            put(4, &words(&[4096, 1]));
            put(16, b"Compressed ROMFS");
        }
        "minix" if row.magic_at == 24 => {
            let (words, halves) = (
                if magic[0] == 0x5a { le32 } else { be32 },
                if magic[0] == 0x5a { le16 } else { be16 },
            );
            put(0, &words(&[64]));
            put(6, &halves(&[1, 1, 10]));
            put(20, &words(&[100]));
            put(28, &halves(&[1024]));
        }
        "minix" => {
            let big = magic[0] == 0x13 || magic[0] == 0x24;
            let (words, halves) = (if big { be32 } else { le32 }, if big { be16 } else { le16 });
            put(0, &halves(&[64, 100, 1, 1, 10]));
            put(18, &halves(&[1]));
            put(20, &words(&[100]));
        }
        "gfs" => put(24, &be32(&[1309, 1401])),
        "gfs2" => put(24, &be32(&[1801, 1900])),
        "squashfs" => put(28, &[4]),
        "squashfs3" => put(28, if magic == b"hsqs" { &[3, 0] } else { &[0, 3] }),
        "btrfs" => {
            put(0x30, &65536u64.to_le_bytes());
            put(0x90, &le32(&[4096]));
        }
        "nilfs2" => {
            put(8, &le16(&[280]));
            put(32, &IMAGE.to_le_bytes());
        }
        "f2fs" => {
            put(4, &le16(&[1, 1]));
            put(16, &le32(&[12]));
        }
        "apfs" => {
            put(24, &le16(&[1, 0x8000]));
            put(36, &le32(&[4096]));
        }
        "erofs" => put(12, &[12]),
        "cs_fvault2" => put(8, &le16(&[1, 0x10])),
        "gpt" => put(0, &gpt_header(sector)),
        "mac" => {
            let block = if image.base == 2048 { 2048 } else { 512 };
            from_start(0, &[b"ER", &be16(&[block])[..]].concat());
            from_start(u64::from(block), b"PM\0\0\0\0\0\x01");
        }
        "sgi" => put(504, &be32(&[0u32.wrapping_sub(0x0be5_a941)])),
        "sun" => put(506, &[0xda, 0xbe]),
        "bsd" => put(136, &le16(&[0x4557 ^ 0x8256])),
        "solaris" => put(16, &le32(&[1])),
        "ultrix" => put(4, &le32(&[1])),
        "atari" => {
            from_start(0x1c2, &be32(&[1000]));
            from_start(0x1ca, &be32(&[2, 500]));
        }
        "dasd" => put(4, if row.magic_at == 4 { magic } else { b"\xf0\xf0\xf0\xf1" }),
        _ => {}
    }
}

/// Not confirmed by Debian 12's libblkid (2.38), with the reason.
const UNCONFIRMED: &[(&str, &str)] = &[
    ("bcachefs", "known from 2.40 on"),
    ("cs_fvault2", "known from 2.39 on"),
    ("scoutfs", "known from 2.41 on"),
    ("exfs", "its superblock has fields that only its maker knows"),
    ("befs", "its whole tree of attributes is read"),
    ("bsd", "looked for only within an MBR partition"),
    (
        "unixware",
        "looked for only within an MBR partition, and at another offset than the kernel does",
    ),
    ("dasd", "known from 2.42 on"),
];

fn is_beyond(case: &Case) -> bool {
    match case.row.name {
        // libblkid does not round the end, and tries 4 KiB sectors only on devices that have them.
        "drbd" => case.at == At::End { unit: 4096, before: 4096 },
        "isw_raid_member" | "gpt" => {
            case.at == At::End { unit: 4096, before: 8192 }
                || case.at == At::Start(4096)
                || case.at == At::End { unit: 4096, before: 4096 }
        }
        // The block size must be valid in big-endian, which 2.38 does not byte-swap.
        "minix" => case.magic == b"\x4d\x5a",
        _ => false,
    }
}

fn cases(dir: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for row in rows() {
        for &at in row.places {
            for &magic in row.magics {
                let path = dir.join(format!("{:03}-{}", cases.len(), row.name));
                let file = File::create(&path).unwrap();
                file.set_len(IMAGE).unwrap();
                let image = Image { file, base: offset_in(at) };
                complete(&image, row, magic);
                image.put(row.magic_at, magic);
                if row.name == "udf" {
                    // The sequence starts at its first descriptor.
                    for sector in [0x8001, 0x8801, 0x9001, 0x9801] {
                        if sector < image.base {
                            image.file.write_all_at(b"BEA01", sector).unwrap();
                        }
                    }
                }
                cases.push(Case { row, at, magic, path });
            }
        }
    }
    cases
}

fn wipefs(images: impl Iterator<Item = PathBuf>) -> Option<BTreeMap<PathBuf, BTreeSet<String>>> {
    let asked = Command::new("wipefs")
        .args(["--no-act", "--noheadings", "--parsable", "--output", "TYPE,DEVICE"])
        .args(images)
        .output();
    let answer = match asked {
        Ok(answer) => String::from_utf8_lossy(&answer.stdout).into_owned(),
        Err(error) if std::env::var_os("HALFPOWER_REQUIRE").is_some() => {
            panic!("wipefs is needed: {error}")
        }
        Err(error) => {
            println!("skipped: no wipefs: {error}");
            return None;
        }
    };
    let mut found: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for line in answer.lines() {
        if let Some((kind, device)) = line.split_once(',') {
            found.entry(Path::new("/dev").join(device)).or_default().insert(kind.into());
            found.entry(device.into()).or_default().insert(kind.into());
        }
    }
    Some(found)
}

#[test]
fn every_magic_string_of_the_table_is_found_and_wipefs_agrees() {
    let dir = tempfile::tempdir().unwrap();
    let cases = cases(dir.path());
    assert!(cases.len() > 250, "{} cases", cases.len());
    for case in &cases {
        let found = signature(&case.path).unwrap().unwrap_or_default();
        let named = found.split(" and ").any(|one| one == case.row.shown);
        assert!(named, "{} {:?} {:?}: {found:?}", case.row.name, case.at, case.magic);
    }
    let Some(theirs) = wipefs(cases.iter().map(|case| case.path.clone())) else { return };
    let unconfirmed = |name: &str| UNCONFIRMED.iter().any(|(row, _)| *row == name);
    let mut missed = Vec::new();
    for case in cases.iter().filter(|case| !unconfirmed(case.row.name) && !is_beyond(case)) {
        let key = theirs.iter().find(|(path, _)| path.file_name() == case.path.file_name());
        if !key.is_some_and(|(_, kinds)| kinds.contains(case.row.name)) {
            missed.push(format!(
                "{} {:?} {:?}: {:?}",
                case.row.name,
                case.at,
                case.magic,
                key.map(|key| key.1)
            ));
        }
    }
    assert!(
        missed.is_empty(),
        "wipefs knows these by another name or not at all:\n{}",
        missed.join("\n")
    );
}

const BY_FUNCTION: [&str; 8] =
    ["ext2", "ext3", "ext4", "ext4dev", "jbd", "xfs_external_log", "zfs_member", "dos"];

#[test]
fn every_libblkid_kind_has_a_row() {
    let Ok(known) = Command::new("blkid").arg("-k").output() else { return };
    let known = String::from_utf8_lossy(&known.stdout).into_owned();
    assert!(known.lines().count() > 60 || known.is_empty(), "{known}");
    let ours: BTreeSet<&str> = rows().map(|row| row.name).chain(BY_FUNCTION).collect();
    let missing: Vec<&str> = known.lines().filter(|name| !ours.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn wipefs_confirms_kinds_found_by_functions() {
    let dir = tempfile::tempdir().unwrap();
    let made = |name: &str, parts: &[(u64, &[u8])]| {
        let path = dir.path().join(name);
        let file = File::create(&path).unwrap();
        file.set_len(IMAGE).unwrap();
        parts.iter().for_each(|(offset, bytes)| file.write_all_at(bytes, *offset).unwrap());
        path
    };
    let ext = |features: [u8; 3]| -> Vec<u8> {
        let mut block = vec![0; 1024];
        block[0x38..0x3a].copy_from_slice(&[0x53, 0xef]);
        (block[0x5c], block[0x60], block[0x64]) = (features[0], features[1], features[2]);
        block
    };
    let mut record = vec![0; 512];
    record[..4].copy_from_slice(&0xfeed_babe_u32.to_be_bytes());
    (record[11], record[14], record[303]) = (2, 2, 1);
    let uberblock = 0x00ba_b10c_u64.to_le_bytes();
    let ring: Vec<(u64, &[u8])> =
        (0..8).map(|slot| ((128 << 10) + slot * 1024, &uberblock[..])).collect();
    let entry = [0, 0, 0, 0, 0x83, 0, 0, 0, 63, 0, 0, 0, 1, 0, 0, 0, 0x55, 0xaa];
    let mut mbr = vec![0; 512];
    mbr[446..462].copy_from_slice(&entry[..16]);
    mbr[510..].copy_from_slice(&entry[16..]);
    let images = [
        ("ext2", "an ext2 file system", made("ext2", &[(1024, &ext([0, 2, 1]))])),
        ("ext3", "an ext3 file system", made("ext3", &[(1024, &ext([4, 2, 1]))])),
        ("ext4", "an ext4 file system", made("ext4", &[(1024, &ext([4, 0x42, 1]))])),
        ("jbd", "a journal of an ext file system", made("jbd", &[(1024, &ext([0, 8, 0]))])),
        ("xfs_external_log", "a log of an XFS file system", made("xlog", &[(77 * 512, &record)])),
        ("zfs_member", "a member of a ZFS pool", made("zfs", &ring)),
        ("dos", "an MBR partition table", made("dos", &[(0, &mbr)])),
    ];
    for (_, shown, path) in &images {
        assert_eq!(signature(path).unwrap().as_deref(), Some(*shown));
    }
    let Some(theirs) = wipefs(images.iter().map(|(_, _, path)| path.clone())) else { return };
    for (name, _, path) in &images {
        let found = theirs.iter().find(|(found, _)| found.file_name() == path.file_name());
        assert!(found.is_some_and(|(_, kinds)| kinds.contains(*name)), "{name}: {found:?}");
    }
}
