//! Probes an open target with a few reads.

use super::member::{Member, open_for};
use super::owned_file::kept;
use super::sys;
use crate::arena::Arena;
use machine::TargetKind;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAX_ALIGNMENT: u32 = 64 << 10;

/// Some file systems accept a smaller alignment but use the page cache.
pub(crate) fn direct_alignment(member: &Member) -> Result<u32, String> {
    let refused = |error: io::Error| match error.raw_os_error() {
        Some(libc::EINVAL) => {
            "the file system supports no direct I/O (O_DIRECT is refused)".to_string()
        }
        _ => format!("direct I/O fails: {error}"),
    };
    let file = member.open_with(false, libc::O_DIRECT).map_err(refused)?;
    let mut arena = buffer(MAX_ALIGNMENT).map_err(|error| error.to_string())?;
    let mut last = None;
    for alignment in [512, 1024, 2048, 4096, 8192, 16384, MAX_ALIGNMENT] {
        // Offset, length and address are multiples of exactly this.
        let (skip, len) = if alignment < 4096 {
            (alignment as usize, alignment as usize)
        } else {
            (0, alignment as usize)
        };
        let buffer = &mut arena.bytes()[skip..skip + len];
        match file.read_at(buffer, u64::from(alignment)) {
            Ok(_) => return Ok(alignment.max(sys::direct_block(&file))),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| "direct I/O fails".into(), refused))
}

/// Zeros may be holes or trimmed space, which the device does not read. Does not change the page
/// cache.
pub(crate) fn zero_warning(member: &Member, direct: Option<u32>) -> Option<String> {
    if member.kind == TargetKind::TestFile || member.writable {
        return None;
    }
    let file = member.open_with(false, direct.map_or(0, |_| libc::O_DIRECT)).ok()?;
    zeros(&file, member.size, direct).and_then(|share| zeros_said(share, &member.path))
}

/// Of an existing file. Like [`zero_warning`], ignores those that halfpower made.
pub fn zeros_in_file(path: &Path) -> Option<String> {
    if kept(path).is_some() {
        return None;
    }
    let file = open_for(path, false).ok()?;
    let metadata = file.metadata().ok()?;
    let size = if metadata.is_file() { metadata.len() } else { sys::device_size(&file).ok()? };
    zeros(&file, size, None).and_then(|share| zeros_said(share, path))
}

fn zeros_said(percent: u64, path: &Path) -> Option<String> {
    (percent > 10).then(|| {
        format!(
            "{percent} % of {} reads as zeros: holes or trimmed blocks may never reach the medium, so reads there can be faster than any real data",
            path.display()
        )
    })
}

/// In percent of a few samples.
fn zeros(file: &File, size: u64, direct: Option<u32>) -> Option<u64> {
    const SAMPLES: u64 = 32;
    // Whole pages: only these can leave the page cache again.
    let len = direct.unwrap_or(1).max(u32::try_from(sys::page_size()).ok()?);
    let mut arena = buffer(len).ok()?;
    let len = len as usize;
    let sample = arena.bytes().get_mut(..len)?;
    if direct.is_none() {
        sys::advise(file, machine::Hint::Random);
    }
    let mut zeros = 0;
    for number in 0..SAMPLES {
        let offset = size / SAMPLES * number / len as u64 * len as u64;
        match direct {
            Some(_) => file.read_at(sample, offset).map(|_| ()),
            None => read_beside_cache(file, sample, offset),
        }
        .ok()?;
        zeros += u64::from(sample.iter().all(|&byte| byte == 0));
    }
    Some(zeros * 100 / SAMPLES)
}

/// Readahead must be off.
fn read_beside_cache(file: &File, into: &mut [u8], offset: u64) -> io::Result<()> {
    let len = into.len() as u64;
    let was_cached = match sys::cached_bytes(file, offset, len) {
        Ok(cached) => cached == len,
        Err(_) => sys::read_cached(file, into, offset)?,
    };
    file.read_at(into, offset)?;
    if !was_cached {
        sys::drop_cache(file, offset, len);
    }
    Ok(())
}

fn buffer(bytes: u32) -> io::Result<Arena> {
    Arena::new(1, bytes, 0, machine::Memory::Huge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_file::Fill;
    use machine::TargetSpec;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::AtomicBool;

    const SIZE: usize = 8 << 20;

    fn cached(file: &File) -> Vec<u8> {
        let mut pages = vec![0; SIZE / sys::page_size()];
        // SAFETY: a new private mapping of the whole file, unmapped here.
        unsafe {
            let at = libc::mmap(
                std::ptr::null_mut(),
                SIZE,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            );
            assert_ne!(at, libc::MAP_FAILED);
            assert_eq!(libc::mincore(at, SIZE, pages.as_mut_ptr()), 0);
            libc::munmap(at, SIZE);
        }
        pages.iter().map(|page| page & 1).collect()
    }

    #[test]
    fn looking_for_zeros_leaves_the_page_cache_unchanged() {
        static CALM: AtomicBool = AtomicBool::new(false);
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("users");
        let mut bytes = vec![0; SIZE];
        bytes[..SIZE / 2].fill(1);
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        file.sync_all().unwrap();
        sys::drop_cache(&file, SIZE as u64 / 2, SIZE as u64 / 2);
        let before = cached(&file);
        assert_eq!(before[0], 1);
        let fill = Fill { from: 0, size: None, within_ns: 50_000_000, seed: 1, interrupt: &CALM };
        let member = Member::open(&path, &TargetSpec::default(), fill).unwrap();
        for direct in [None, direct_alignment(&member).ok()] {
            let said = zero_warning(&member, direct).unwrap();
            assert!(said.starts_with("50 % of"), "{said}");
            assert!(cached(&file) == before, "direct {direct:?}");
        }
    }
}
