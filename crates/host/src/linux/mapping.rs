use rustix::mm::{self, Advice, MapFlags, ProtFlags};
use std::io;
use std::ptr::NonNull;

pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

impl Mapping {
    pub(crate) fn new(len: usize) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever the kernel has room.
        let start =
            unsafe { mm::mmap_anonymous(std::ptr::null_mut(), len, access, MapFlags::PRIVATE)? };
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }

    pub(crate) fn locked(len: usize) -> io::Result<Mapping> {
        let mapping = Mapping::new(len)?;
        // SAFETY: locks the mapping, whose content nothing uses.
        unsafe { mm::mlock(mapping.start.as_ptr().cast(), len)? };
        Ok(mapping)
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A kernel without huge pages refuses; then buffers are as good as any program's.
    pub(crate) fn prefer_huge_pages(&self, skipped: usize) {
        let Some(len) = self.len.checked_sub(skipped) else { return };
        // SAFETY: the range is within the mapping, and the advice changes no byte of it.
        let _ = unsafe {
            mm::madvise(self.start.add(skipped).as_ptr().cast(), len, Advice::LinuxHugepage)
        };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once. It cannot fail: the range is the mapping's.
        let _ = unsafe { mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
