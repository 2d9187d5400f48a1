//! Loop devices in use, and what backs them.

use super::same_data::{Namespaces, Numbers, Sameness, Seen};
use super::{Roots, layers, names, number, text};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(super) struct Loop {
    pub(super) name: String,
    /// May be removed by now, or in another mount namespace.
    path: PathBuf,
    /// The file's numbers, and its own if it is a device node; `None` if not permitted.
    numbers: Option<(Numbers, (u32, u32))>,
    pub(super) bytes: Range<u64>,
    size: u64,
    pub(super) is_read_only: bool,
}

impl Loop {
    pub(super) fn all(roots: &Roots) -> Vec<Loop> {
        let devices = names(roots.sys.join("class/block"));
        let of = |name: String| {
            let dir = roots.sys.join("class/block").join(&name);
            // A partition of a loop device has no such file.
            let path = text(dir.join("loop/backing_file"))?;
            let numbers =
                if roots.is_this_machine() { numbers_of(&roots.dev.join(&name)) } else { None };
            let value = |file: &str| number(dir.join(file)).unwrap_or(0);
            let (start, limit) = (value("loop/offset"), value("loop/sizelimit"));
            let end = if limit == 0 { u64::MAX } else { start.saturating_add(limit) };
            Some(Loop {
                name,
                path: path.into(),
                numbers,
                bytes: start..end,
                // 512-byte sectors on every device (sysfs).
                size: value("size").saturating_mul(512),
                is_read_only: value("ro") != 0,
            })
        };
        devices.into_iter().filter(|name| name.starts_with("loop")).filter_map(of).collect()
    }

    pub(super) fn device(&self, roots: &Roots) -> Option<String> {
        match self.numbers {
            None => layers::device_of_node(roots, &self.path),
            Some((_, (0, 0))) => None,
            Some((_, number)) => layers::name_of_number(roots, number),
        }
    }

    pub(super) fn file(&self, spaces: &Namespaces) -> Option<Seen> {
        let numbers = self.numbers.map(|(numbers, _)| numbers);
        // The kernel appends this to the name of a removed or replaced file.
        let shown = self.path.to_str()?;
        let path = Path::new(
            shown.strip_suffix(" (deleted)").filter(|_| numbers.is_some()).unwrap_or(shown),
        );
        spaces.find(path, numbers)
    }

    pub(super) fn is_on(&self, spaces: &Namespaces, file: &Seen) -> Sameness {
        if let Some((numbers, _)) = self.numbers
            && spaces.compare_numbers(file, numbers) != Sameness::Unknown
        {
            return spaces.compare_numbers(file, numbers);
        }
        match self.file(spaces) {
            Some(own) => spaces.compare(file, &own),
            None if self.fits(file.size) => Sameness::Unknown,
            None => Sameness::Different,
        }
    }

    /// Without a limit, the device ends at the last whole sector.
    fn fits(&self, size: u64) -> bool {
        match self.bytes.end {
            u64::MAX => self.bytes.start.saturating_add(self.size) == size / 512 * 512,
            end => end <= size,
        }
    }

    pub(super) fn overlaps(&self, spaces: &Namespaces, other: &Loop) -> bool {
        let common = self.bytes.start.max(other.bytes.start)..self.bytes.end.min(other.bytes.end);
        let same = match (self.numbers, other.numbers) {
            (Some(own), Some(others)) if own == others => true,
            _ => match (self.file(spaces), other.file(spaces)) {
                (Some(own), Some(others)) => spaces.compare(&own, &others) == Sameness::Same,
                _ => self.path == other.path,
            },
        };
        same && !common.is_empty()
    }
}

fn numbers_of(device: &Path) -> Option<(Numbers, (u32, u32))> {
    /// The start of `struct loop_info64` (linux/loop.h).
    #[repr(C)]
    struct LoopInfo {
        dev: u64,
        inode: u64,
        rdev: u64,
        rest: [u8; 208],
    }
    const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
    let device = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(device).ok()?;
    let mut info = LoopInfo { dev: 0, inode: 0, rdev: 0, rest: [0; 208] };
    // SAFETY: the structure is as long as the kernel's, 232 bytes.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &mut info) };
    // The kernel uses the C library's dev_t encoding for all but very large minors.
    let number = |device: u64| (libc::major(device), libc::minor(device));
    (result == 0)
        .then_some((Numbers { dev: number(info.dev), inode: info.inode }, number(info.rdev)))
}
