//! Images of file systems and partition tables, mounts and nodes, as raw bytes.

use super::{DISK, PARTITION};
use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Returns an EROFS image with an empty root directory, as written by mkfs.erofs 1.5, without a
/// checksum.
pub(super) fn erofs_image() -> Vec<u8> {
    let mut image = vec![0; 4096];
    let mut put =
        |offset: usize, bytes: &[u8]| image[offset..offset + bytes.len()].copy_from_slice(bytes);
    // The superblock, after 1 KiB: magic number, compatible features, blocks of 2^12 bytes, the
    // root's number, one inode; then one block.
    put(0x400, &[0xe2, 0xe1, 0xf5, 0xe0, 0, 0, 0, 0, 2, 0, 0, 0, 12, 0, 0x24, 0, 1]);
    put(0x424, &[1]);
    // The root inode with inline data: a directory with two links and 27 bytes.
    put(0x480, &[4, 0, 0, 0, 0xed, 0x41, 2, 0, 27]);
    put(0x490, &[0xff, 0xff, 0xff, 0xff]);
    // Its entries `.` and `..`, both the root: inode number, name offset, type.
    put(
        0x4a0,
        &[0x24, 0, 0, 0, 0, 0, 0, 0, 0x18, 0, 2, 0, 0x24, 0, 0, 0, 0, 0, 0, 0, 0x19, 0, 2, 0],
    );
    put(0x4b8, b"...");
    image
}

pub(super) fn mount_file(image: &Path, at: &Path) -> Result<(), String> {
    let text = |bytes: &[u8]| CString::new(bytes).expect("no NUL in it");
    let (source, place) = (text(image.as_os_str().as_bytes()), text(at.as_os_str().as_bytes()));
    let kind = text(b"erofs");
    // SAFETY: all arguments are strings that live until the call returns.
    let mounted = unsafe {
        libc::mount(
            source.as_ptr(),
            place.as_ptr(),
            kind.as_ptr(),
            libc::MS_RDONLY,
            std::ptr::null(),
        )
    };
    match mounted {
        0 => Ok(()),
        _ => Err(format!("an EROFS mount of a file: {}", std::io::Error::last_os_error())),
    }
}

pub(super) fn write_table(disk: &File) -> std::io::Result<()> {
    let mut sector = [0u8; 66];
    let (first, sectors) = ((PARTITION / 512) as u32, ((DISK - PARTITION) / 512) as u32);
    sector[4] = 0x83;
    sector[8..12].copy_from_slice(&first.to_le_bytes());
    sector[12..16].copy_from_slice(&sectors.to_le_bytes());
    sector[64..].copy_from_slice(&[0x55, 0xaa]);
    disk.write_all_at(&sector, 446).and_then(|()| disk.sync_all())
}

pub(super) fn node(at: &Path, kind: libc::mode_t, device: u64) -> Result<(), String> {
    let path = CString::new(at.as_os_str().as_bytes()).expect("no NUL in it");
    // SAFETY: a string that lives until the call returns.
    match unsafe { libc::mknod(path.as_ptr(), kind | 0o666, device) } {
        0 => Ok(()),
        _ => Err(format!("{}: {}", at.display(), std::io::Error::last_os_error())),
    }
}
