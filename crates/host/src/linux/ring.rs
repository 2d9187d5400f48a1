//! The rings that io_uring shares with a program (io_uring(7)).

use rustix::io_uring::IoringEnterFlags;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of each write follows that of its read.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum Opcode {
    Nop = 0,
    Fsync = 3,
    ReadFixed = 4,
    Timeout = 11,
    OpenAt = 18,
    Close = 19,
    Read = 22,
    UnlinkAt = 36,
}

pub(super) mod setup {
    pub(in super::super) const IOPOLL: u32 = 1;
    pub(in super::super) const CQSIZE: u32 = 1 << 3;
    pub(in super::super) const COOP_TASKRUN: u32 = 1 << 8;
    pub(in super::super) const SINGLE_ISSUER: u32 = 1 << 12;
    pub(in super::super) const DEFER_TASKRUN: u32 = 1 << 13;
}

/// Both rings in one mapping (Linux 5.4); below, time limits of waits (5.11) and minimum wait times
/// (6.12).
const FEATURE_SINGLE_MMAP: u32 = 1;
const FEATURE_EXT_ARG: u32 = 1 << 8;
const FEATURE_MIN_TIMEOUT: u32 = 1 << 15;

const REGISTER_BUFFERS: u32 = 0;
const REGISTER_FILES: u32 = 2;

/// IOSQE_FIXED_FILE: an index into the registered files.
const FIXED_FILE: u64 = 1;

const PRIORITY: u64 = 0xffff << 16;

/// IOSQE_IO_LINK: the next entry starts when this one succeeds in full.
const LINKED: u64 = 1 << 2;

/// IORING_OFF_SQES.
const OFFSET_OF_ENTRIES: libc::off_t = 0x1000_0000;

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Default)]
struct SubmissionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user_address: u64,
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Default)]
struct CompletionOffsets {
    head: u32,
    tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    entries: u32,
    flags: u32,
    reserved: u32,
    user_address: u64,
}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Parameters {
    submissions: u32,
    completions: u32,
    flags: u32,
    thread_cpu: u32,
    thread_idle: u32,
    features: u32,
    workers: u32,
    reserved: [u32; 3],
    submission: SubmissionOffsets,
    completion: CompletionOffsets,
}

/// `struct io_uring_sqe`; unused fields stay 0.
#[repr(C, align(64))]
struct SubmissionEntry {
    /// Opcode, flags, and the file in the upper half.
    what: u64,
    offset: u64,
    address: u64,
    len: u32,
    flags: u32,
    data: u64,
    buffer: u32,
    /// The registered file's index, plus one.
    slot: u32,
    unused: [u64; 2],
}

/// `struct io_uring_cqe`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Completed {
    pub(super) data: u64,
    pub(super) result: i32,
    flags: u32,
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
struct WaitArguments {
    signals: u64,
    signals_len: u32,
    min_wait_us: u32,
    max: u64,
}

/// `struct __kernel_timespec`.
#[repr(C)]
pub(super) struct TimeLimit {
    seconds: i64,
    nanoseconds: i64,
}

impl TimeLimit {
    /// `ns` must be below a second.
    pub(super) const fn new(ns: u32) -> TimeLimit {
        TimeLimit { seconds: 0, nanoseconds: ns as i64 }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) what: u64,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) len: u32,
    pub(super) data: u64,
}

impl Entry {
    #[inline(always)]
    pub(super) fn of_file(read: Opcode, writes: bool, file: u32) -> Entry {
        Transfers::new(read).of_file(writes, file)
    }

    #[inline(always)]
    pub(super) fn of_none(opcode: Opcode) -> Entry {
        Entry::of_fd(opcode, -1)
    }

    #[inline(always)]
    pub(super) fn of_fd(opcode: Opcode, fd: RawFd) -> Entry {
        Entry {
            what: opcode as u64 | u64::from(fd as u32) << 32,
            offset: 0,
            address: 0,
            len: 0,
            data: 0,
        }
    }

    pub(super) fn linked(self) -> Entry {
        Entry { what: self.what | LINKED << 8, ..self }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Transfers {
    read: u64,
}

impl Transfers {
    #[inline(always)]
    pub(super) fn new(read: Opcode) -> Transfers {
        Transfers { read: read as u64 | FIXED_FILE << 8 }
    }

    pub(super) fn set_priority(&mut self, bits: u16) {
        self.read = self.read & !PRIORITY | u64::from(bits) << 16;
    }

    #[inline(always)]
    pub(super) fn of_file(self, writes: bool, file: u32) -> Entry {
        let what = (self.read + u64::from(writes)) | u64::from(file) << 32;
        Entry { what, offset: 0, address: 0, len: 0, data: 0 }
    }
}

#[derive(Clone, Copy)]
pub(super) struct FileEntry {
    pub(super) entry: Entry,
    pub(super) flags: u32,
    pub(super) slot: Option<u32>,
}

impl From<Entry> for FileEntry {
    fn from(entry: Entry) -> FileEntry {
        FileEntry { entry, flags: 0, slot: None }
    }
}

struct Mapped {
    at: NonNull<u8>,
    len: usize,
}

impl Mapped {
    fn new(fd: RawFd, len: usize, offset: libc::off_t) -> io::Result<Mapped> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping of a file that we own.
        let at = unsafe { libc::mmap(null_mut(), len, access, kind, fd, offset) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(at.cast())
            .map(|at| Mapped { at, len })
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    fn at<T>(&self, offset: u32) -> NonNull<T> {
        assert!(
            offset as usize + size_of::<T>() <= self.len,
            "the kernel's offsets are within its mapping"
        );
        // SAFETY: within the mapping.
        unsafe { self.at.add(offset as usize).cast() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing outlives the rings.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
    }
}

pub(super) struct Rings {
    entries: NonNull<SubmissionEntry>,
    mask: u32,
    tail: u32,
    /// A round after the first entry that the kernel has not taken.
    full_at: u32,
    completions: NonNull<Completed>,
    completion_mask: u32,
    head: u32,
    shared_tail: NonNull<AtomicU32>,
    shared_head: NonNull<AtomicU32>,
    completed: NonNull<AtomicU32>,
    fd: OwnedFd,
    features: u32,
    _rings: Mapped,
    _entries: Mapped,
}

// SAFETY: this value owns the mappings and the file. Rings that the kernel binds to one thread
// refuse others with an error.
unsafe impl Send for Rings {}

impl Rings {
    /// Needs Linux 5.11.
    pub(super) fn new(entries: u32, completions: u32, flags: u32) -> io::Result<Rings> {
        let mut parameters =
            Parameters { flags: flags | setup::CQSIZE, completions, ..Parameters::default() };
        // SAFETY: the kernel reads and writes the parameters, which have its layout.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &raw mut parameters) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that we own.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        let Parameters { submissions, completions, features, submission, completion, .. } =
            parameters;
        if features & (FEATURE_SINGLE_MMAP | FEATURE_EXT_ARG)
            != FEATURE_SINGLE_MMAP | FEATURE_EXT_ARG
        {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "it needs Linux 5.11 or later"));
        }
        let array_end = submission.array as usize + submissions as usize * size_of::<u32>();
        let completions_end =
            completion.entries as usize + completions as usize * size_of::<Completed>();
        let rings = Mapped::new(fd.as_raw_fd(), array_end.max(completions_end), 0)?;
        let all_entries = submissions as usize * size_of::<SubmissionEntry>();
        let mapped_entries = Mapped::new(fd.as_raw_fd(), all_entries, OFFSET_OF_ENTRIES)?;
        for index in 0..submissions {
            let place = rings.at::<u32>(submission.array + index * size_of::<u32>() as u32);
            // SAFETY: within the mapping, and the kernel reads it only during a submission.
            unsafe { place.write(index) };
        }
        Ok(Rings {
            entries: mapped_entries.at(0),
            mask: submissions - 1,
            tail: 0,
            full_at: submissions,
            completions: rings.at(completion.entries),
            completion_mask: completions - 1,
            head: 0,
            shared_tail: rings.at(submission.tail),
            shared_head: rings.at(completion.head),
            completed: rings.at(completion.tail),
            fd,
            features,
            _rings: rings,
            _entries: mapped_entries,
        })
    }

    /// Keeps files for the life of the rings; -1 leaves an index empty.
    pub(super) fn register_files(&self, fds: &[RawFd]) -> io::Result<()> {
        self.register(REGISTER_FILES, fds.as_ptr().cast(), fds.len())
    }

    /// Makes a buffer index 0; fails at the limit on locked memory.
    ///
    /// # Safety
    /// The memory outlives the rings.
    pub(super) unsafe fn register_buffer(&self, bytes: &mut [u8]) -> io::Result<()> {
        let whole = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        self.register(REGISTER_BUFFERS, (&raw const whole).cast(), 1)
    }

    fn register(&self, what: u32, argument: *const libc::c_void, number: usize) -> io::Result<()> {
        // SAFETY: the argument has the stated number of elements.
        let done = unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                self.fd.as_raw_fd(),
                what,
                argument,
                number as u32,
            )
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    pub(super) fn has_min_wait(&self) -> bool {
        self.features & FEATURE_MIN_TIMEOUT != 0
    }

    #[inline(always)]
    pub(super) fn push(&mut self, entry: Entry) -> bool {
        if self.tail == self.full_at {
            return false;
        }
        // SAFETY: the index is within the ring, and the kernel reads an entry only in `enter`.
        let place = unsafe { self.entries.add((self.tail & self.mask) as usize).as_mut() };
        place.what = entry.what;
        place.offset = entry.offset;
        place.address = entry.address;
        place.len = entry.len;
        place.data = entry.data;
        self.tail = self.tail.wrapping_add(1);
        true
    }

    /// Rings with this must use it for all entries: [`Rings::push`] clears no fields of the
    /// previous entry.
    pub(super) fn push_file(&mut self, FileEntry { entry, flags, slot }: FileEntry) -> bool {
        if self.tail == self.full_at {
            return false;
        }
        // SAFETY: as in `push`.
        let place = unsafe { self.entries.add((self.tail & self.mask) as usize).as_mut() };
        place.flags = flags;
        place.slot = slot.map_or(0, |index| index + 1);
        self.push(entry)
    }

    #[inline(always)]
    pub(super) fn queued(&self) -> u32 {
        self.tail.wrapping_add(self.mask + 1).wrapping_sub(self.full_at)
    }

    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.enter(0, IoringEnterFlags::empty())
    }

    #[inline(always)]
    pub(super) fn submit_and_wait(&mut self, completions: u32) -> io::Result<()> {
        self.enter(completions, IoringEnterFlags::GETEVENTS)
    }

    /// Fails with ETIME if the time ends with nothing submitted. After `min_wait_us` one completion
    /// is enough; 0: never.
    pub(super) fn submit_and_wait_within(
        &mut self,
        completions: u32,
        max: &TimeLimit,
        min_wait_us: u32,
    ) -> io::Result<()> {
        let arguments = WaitArguments {
            signals: 0,
            signals_len: 0,
            min_wait_us,
            max: std::ptr::from_ref(max) as usize as u64,
        };
        let flags = (IoringEnterFlags::GETEVENTS | IoringEnterFlags::EXT_ARG).bits();
        let (fd, queued, argument) = (self.fd.as_raw_fd(), self.publish(), &raw const arguments);
        let len = size_of::<WaitArguments>();
        // SAFETY: the argument matches the flags.
        let taken = unsafe {
            libc::syscall(libc::SYS_io_uring_enter, fd, queued, completions, flags, argument, len)
        };
        if taken < 0 {
            return Err(io::Error::last_os_error());
        }
        self.full_at = self.full_at.wrapping_add(taken as u32);
        Ok(())
    }

    #[inline(always)]
    fn enter(&mut self, completions: u32, flags: IoringEnterFlags) -> io::Result<()> {
        let queued = self.publish();
        // SAFETY: the entries refer to memory and files that outlive them.
        let taken = unsafe { enter(self.fd.as_raw_fd(), queued, completions, flags.bits()) };
        if taken < 0 {
            return Err(refused(taken));
        }
        self.full_at = self.full_at.wrapping_add(taken as u32);
        Ok(())
    }

    #[inline(always)]
    fn publish(&self) -> u32 {
        // SAFETY: the mapping lives as long as `self`.
        unsafe { self.shared_tail.as_ref() }.store(self.tail, Ordering::Release);
        self.queued()
    }

    #[inline(always)]
    pub(super) fn reap(&mut self, mut take: impl FnMut(Completed)) {
        // SAFETY: the mapping lives as long as `self`.
        let end = unsafe { self.completed.as_ref() }.load(Ordering::Acquire);
        let mut head = self.head;
        while head != end {
            // SAFETY: the index is within the ring, and the kernel wrote the entry before its tail.
            take(unsafe { self.completions.add((head & self.completion_mask) as usize).read() });
            head = head.wrapping_add(1);
        }
        self.head = head;
        // SAFETY: as above. The kernel may now overwrite the entries taken.
        unsafe { self.shared_head.as_ref() }.store(head, Ordering::Release);
    }
}

#[cold]
fn refused(taken: i32) -> io::Error {
    io::Error::from_raw_os_error(-taken)
}

/// A negative result is an error number. Library wrappers cost a dozen instructions more per
/// request.
///
/// # Safety
/// The queued entries refer to memory and files that outlive them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn enter(fd: RawFd, queued: u32, completions: u32, flags: u32) -> i32 {
    let mut result = libc::SYS_io_uring_enter;
    // SAFETY: the kernel's convention on x86_64: it changes only rax, rcx, r11 and memory that the
    // entries name.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") i64::from(fd),
            in("rsi") u64::from(queued),
            in("rdx") u64::from(completions),
            in("r10") u64::from(flags),
            in("r8") 0_u64,
            in("r9") 0_u64,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result as i32
}

/// # Safety
/// As on x86_64.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn enter(fd: RawFd, queued: u32, completions: u32, flags: u32) -> i32 {
    let no_signals = std::ptr::null::<libc::c_void>();
    // SAFETY: as the caller promises.
    let taken = unsafe {
        libc::syscall(libc::SYS_io_uring_enter, fd, queued, completions, flags, no_signals, 0)
    };
    if taken < 0 {
        -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
    } else {
        taken as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<Parameters>(), 120);
        assert_eq!(size_of::<SubmissionEntry>(), 64);
        assert_eq!(size_of::<Completed>(), 16);
        assert_eq!(size_of::<WaitArguments>(), 24);
        assert_eq!(std::mem::offset_of!(SubmissionEntry, data), 32);
        assert_eq!(std::mem::offset_of!(SubmissionEntry, slot), 44);
        assert_eq!(std::mem::offset_of!(Parameters, submission), 40);
        assert_eq!(std::mem::offset_of!(Parameters, completion), 80);
    }

    #[test]
    fn a_full_ring_refuses_entries_and_returns_the_rest() {
        let Ok(mut rings) = Rings::new(4, 8, 0) else {
            assert!(
                std::env::var_os("HALFPOWER_REQUIRE").is_none(),
                "io_uring is required, and not there"
            );
            return eprintln!("skipped: the kernel has no io_uring for this process");
        };
        // Three rounds wrap around the ring.
        for round in 0..3 {
            let pushed = (0..6).filter(|number| {
                rings.push(Entry { data: round * 10 + number, ..Entry::of_none(Opcode::Nop) })
            });
            assert_eq!(pushed.count(), 4);
            assert_eq!(rings.queued(), 4);
            rings.submit_and_wait(4).unwrap();
            assert_eq!(rings.queued(), 0);
            let mut found = Vec::new();
            rings.reap(|one| found.push((one.data, one.result)));
            found.sort_unstable();
            assert_eq!(found, (0..4).map(|number| (round * 10 + number, 0)).collect::<Vec<_>>());
        }
        let late = rings.submit_and_wait_within(1, &TimeLimit::new(1_000_000), 0).unwrap_err();
        assert_eq!(late.raw_os_error(), Some(libc::ETIME), "nothing is outstanding");
    }
}
