//! Names as given to open(2) and rename(2): a file may be closed before anyone looks at its
//! descriptor. The kernel's trace has only the name's address, so a short program copies it
//! (bpf(2), Documentation/bpf/).

use machine::Nanos;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// About 2,000 names; those that do not fit are lost.
const RING_BYTES: usize = 1 << 20;

/// Longer names are not used.
const NAME_BYTES: usize = 512;

/// Before the name: time, thread, length, and which name of the call it is.
const HEAD_BYTES: usize = 32;
const RECORD_BYTES: i32 = (HEAD_BYTES + NAME_BYTES) as i32;

const MAX_WAITING: usize = 1 << 16;

const SAME_CALL_NS: Nanos = 10_000_000;

const MAP_CREATE: libc::c_long = 0;
const PROGRAM_LOAD: libc::c_long = 5;
const RING_BUFFER: u32 = 27;
const OF_TRACE_POINT: u32 = 5;
const IOCTL_SET_BPF: libc::c_ulong = 0x4004_2408;
const IOCTL_ENABLE: libc::c_ulong = 0x2400;
const TYPE_TRACE_POINT: u32 = 2;
const OPEN_CLOEXEC: libc::c_ulong = 8;

/// The kernel still writes the record.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamePlace {
    pub(super) event: u16,
    pub(super) offset: u16,
    pub(super) which: Which,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Which {
    First,
    Second,
}

/// A page with our position, one with the kernel's, and the data twice in a row.
struct Ring {
    page: usize,
    own: NonNull<u8>,
    theirs: NonNull<u8>,
}

impl Ring {
    fn map(map: &File) -> io::Result<Ring> {
        let page = crate::linux::sys::page_size();
        let at = |bytes: usize, protection, offset: usize| {
            // SAFETY: new mappings of a descriptor that is ours, at an address of the kernel's choice.
            let memory = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    protection,
                    libc::MAP_SHARED,
                    map.as_raw_fd(),
                    offset as libc::off_t,
                )
            };
            if memory == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            NonNull::new(memory.cast::<u8>()).ok_or_else(|| io::ErrorKind::Other.into())
        };
        let own = at(page, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        match at(page + 2 * RING_BYTES, libc::PROT_READ, page) {
            Ok(theirs) => Ok(Ring { page, own, theirs }),
            Err(error) => {
                // SAFETY: mapped above with this length.
                unsafe { libc::munmap(own.as_ptr().cast(), page) };
                Err(error)
            }
        }
    }

    fn read(&mut self, mut each: impl FnMut(&[u8])) {
        // SAFETY: both mappings begin with a position of 64 bits (Linux, kernel/bpf/ringbuf.c), and
        // live as long as this.
        let (own, theirs) = unsafe {
            (&*self.own.as_ptr().cast::<AtomicU64>(), &*self.theirs.as_ptr().cast::<AtomicU64>())
        };
        let mut at = own.load(Ordering::Relaxed);
        while at < theirs.load(Ordering::Acquire) {
            // SAFETY: the data follow the page, twice, so that a record never wraps; the kernel wrote
            // it before its position.
            let record = unsafe { self.theirs.as_ptr().add(self.page + at as usize % RING_BYTES) };
            // SAFETY: a record begins with its length, aligned to eight bytes.
            let head = unsafe { (*record.cast::<AtomicU32>()).load(Ordering::Acquire) };
            if head & BUSY != 0 {
                break;
            }
            let bytes = (head & !(BUSY | DISCARDED)) as usize;
            if head & DISCARDED == 0 && bytes <= RING_BYTES {
                // SAFETY: the record's bytes follow its head of eight, within the mapping.
                each(unsafe { std::slice::from_raw_parts(record.add(8), bytes) });
            }
            at += (bytes as u64 + 8).next_multiple_of(8);
            own.store(at, Ordering::Release);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with these lengths, and not used after this.
        unsafe {
            libc::munmap(self.own.as_ptr().cast(), self.page);
            libc::munmap(self.theirs.as_ptr().cast(), self.page + 2 * RING_BYTES);
        }
    }
}

pub(super) struct NameReader {
    ring: Ring,
    /// Closing these files removes the programs from the kernel.
    _open: Vec<File>,
}

impl NameReader {
    pub(super) fn open(places: &[NamePlace]) -> io::Result<NameReader> {
        let map = ring_buffer()?;
        let ring = Ring::map(&map)?;
        let mut open = Vec::new();
        for place in places {
            let program = load(&program(&map, *place))?;
            open.push(attach(&program, place.event)?);
            open.push(program);
        }
        open.push(map);
        Ok(NameReader { ring, _open: open })
    }

    pub(super) fn read(&mut self, into: &mut GivenNames) {
        self.ring.read(|record| {
            let number = |at: usize| {
                record
                    .get(at..at + 8)
                    .and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)))
            };
            let (Some(at), Some(thread), Some(length), Some(which)) =
                (number(0), number(8), number(16), number(24))
            else {
                return;
            };
            let which = if which == 0 { Which::First } else { Which::Second };
            // The length has the final zero; a negative one is an error.
            let length = usize::try_from(length as i64).unwrap_or(0);
            let is_whole = (2..NAME_BYTES).contains(&length);
            let name = record.get(HEAD_BYTES..HEAD_BYTES + length.saturating_sub(1));
            let name = name.filter(|_| is_whole).and_then(|name| str::from_utf8(name).ok());
            into.add(at, (thread as u32 as i32, which), name.map(str::to_owned));
        });
    }
}

/// In the order of calls; `None` if a name could not be copied.
type Names = VecDeque<(Nanos, Option<String>)>;

#[derive(Default)]
pub(super) struct GivenNames {
    waiting: HashMap<(i32, Which), Names>,
    count: usize,
}

impl GivenNames {
    fn add(&mut self, at: Nanos, of: (i32, Which), name: Option<String>) {
        if self.count == MAX_WAITING {
            self.waiting.clear();
            self.count = 0;
        }
        self.count += 1;
        self.waiting.entry(of).or_default().push_back((at, name));
    }

    pub(super) fn forget(&mut self, before: Nanos) {
        let keeps = |at: Nanos| at + SAME_CALL_NS >= before;
        self.waiting.retain(|_, names| {
            let waited = names.len();
            names.retain(|(at, _)| keeps(*at));
            self.count -= waited - names.len();
            !names.is_empty()
        });
    }

    /// Returns the name nearest to `at`; earlier ones are of calls that were not seen.
    pub(super) fn take(&mut self, of: (i32, Which), at: Nanos) -> Option<String> {
        let names = self.waiting.get_mut(&of)?;
        let is_nearer =
            |names: &VecDeque<(Nanos, Option<String>)>| match (names.front(), names.get(1)) {
                (Some(first), Some(second)) => second.0.abs_diff(at) <= first.0.abs_diff(at),
                _ => false,
            };
        while is_nearer(names) {
            names.pop_front();
            self.count -= 1;
        }
        let (named_at, _) = names.front()?;
        if named_at.abs_diff(at) > SAME_CALL_NS {
            return None;
        }
        let (_, name) = names.pop_front()?;
        self.count -= 1;
        if names.is_empty() {
            self.waiting.remove(&of);
        }
        name
    }
}

fn bpf(command: libc::c_long, attributes: &[u8]) -> io::Result<File> {
    // SAFETY: the attributes have the length that is given, and outlive the call.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), attributes.len() as libc::c_long)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel returned this descriptor; we own it.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

fn ring_buffer() -> io::Result<File> {
    let words = [RING_BUFFER, 0, 0, RING_BYTES as u32, 0, 0, 0, 0];
    bpf(MAP_CREATE, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
}

fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> [u8; 8] {
    let mut bytes = [code, from << 4 | to, 0, 0, 0, 0, 0, 0];
    bytes[2..4].copy_from_slice(&offset.to_le_bytes());
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn program(map: &File, place: NamePlace) -> Vec<u8> {
    const MOVE: u8 = 0xbf;
    const SET: u8 = 0xb7;
    const ADD: u8 = 0x07;
    const CALL: u8 = 0x85;
    const LOAD: u8 = 0x79;
    const STORE: u8 = 0x7b;
    const STORE_NUMBER: u8 = 0x7a;
    // Helpers (Linux, include/uapi/linux/bpf.h).
    let call = |helper: i32| instruction(CALL, 0, 0, 0, helper);
    let (time, thread, copy_text, reserve, submit) = (5, 14, 114, 131, 132);
    [
        instruction(MOVE, 6, 1, 0, 0),
        // The ring, as an address of 64 bits in two instructions.
        instruction(0x18, 1, 1, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        instruction(SET, 2, 0, 0, RECORD_BYTES),
        instruction(SET, 3, 0, 0, 0),
        call(reserve),
        // Full: nothing is copied.
        instruction(0x15, 0, 0, 15, 0),
        instruction(MOVE, 7, 0, 0, 0),
        call(time),
        instruction(STORE, 7, 0, 0, 0),
        call(thread),
        instruction(STORE, 7, 0, 8, 0),
        instruction(STORE_NUMBER, 7, 0, 24, place.which as i32),
        instruction(MOVE, 1, 7, 0, 0),
        instruction(ADD, 1, 0, 0, HEAD_BYTES as i32),
        instruction(SET, 2, 0, 0, NAME_BYTES as i32),
        instruction(LOAD, 3, 6, place.offset as i16, 0),
        call(copy_text),
        instruction(STORE, 7, 0, 16, 0),
        instruction(MOVE, 1, 7, 0, 0),
        // Nobody waits for it.
        instruction(SET, 2, 0, 0, 1),
        call(submit),
        instruction(SET, 0, 0, 0, 0),
        instruction(0x95, 0, 0, 0, 0),
    ]
    .concat()
}

fn load(program: &[u8]) -> io::Result<File> {
    // Copying from user memory is only for programs under this license.
    let license = b"Dual MIT/GPL\0";
    let mut attributes = Vec::new();
    attributes.extend(OF_TRACE_POINT.to_le_bytes());
    attributes.extend((program.len() as u32 / 8).to_le_bytes());
    attributes.extend((program.as_ptr() as u64).to_le_bytes());
    attributes.extend((license.as_ptr() as u64).to_le_bytes());
    // No log, and no flags.
    attributes.extend([0; 24]);
    bpf(PROGRAM_LOAD, &attributes)
}

fn attach(program: &File, event: u16) -> io::Result<File> {
    // `struct perf_event_attr` in its first published size: kind, size, and the event's number.
    let mut attributes = Vec::new();
    attributes.extend(TYPE_TRACE_POINT.to_le_bytes());
    attributes.extend(64_u32.to_le_bytes());
    attributes.extend(u64::from(event).to_le_bytes());
    attributes.resize(64, 0);
    let (any_process, processor, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (-1, 0, -1);
    // SAFETY: the attributes have the size that they state and outlive the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            any_process,
            processor,
            no_group,
            OPEN_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel returned this descriptor; we own it.
    let event = unsafe { File::from_raw_fd(fd as i32) };
    for (request, argument) in [(IOCTL_SET_BPF, program.as_raw_fd()), (IOCTL_ENABLE, 0)] {
        // SAFETY: requests of an event that is open, with a number as the argument.
        if unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_the_call_that_began_then() {
        let mut names = GivenNames::default();
        let ms = 1_000_000;
        for (at, name) in [(5 * ms, "early"), (100 * ms, "a"), (101 * ms, "b")] {
            names.add(at, (7, Which::First), Some(name.to_owned()));
        }
        names.add(200 * ms, (7, Which::First), None);
        let mut take = |at| names.take((7, Which::First), at);
        // Its name was not copied.
        assert_eq!(take(50 * ms), None);
        assert_eq!(take(100 * ms + 3000).as_deref(), Some("a"));
        assert_eq!(take(101 * ms - 3000).as_deref(), Some("b"));
        assert_eq!((take(150 * ms), take(200 * ms), take(201 * ms)), (None, None, None));
        names.add(300 * ms, (8, Which::First), None);
        names.add(320 * ms, (8, Which::First), None);
        names.forget(325 * ms);
        assert_eq!((names.count, names.waiting[&(8, Which::First)].len()), (1, 1));
        names.forget(400 * ms);
        assert_eq!((names.count, names.waiting.len()), (0, 0));
    }
}
