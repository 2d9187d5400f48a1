//! An in-memory file system with injected faults, for one directory. Tests set faults at any time;
//! a fault counts its hits, so a test whose fault never occurred fails. Protocol: linux/fuse.h,
//! version 7.31.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Read,
    Write,
    Sync,
    Create,
    Remove,
    Rename,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    Error(i32),
    /// Transfers half of the bytes, if there is more than one block.
    Half,
    /// Flips a bit of each block.
    Flip,
    /// Reports success and does nothing.
    Lose,
    /// Reports success and does half, but at least one block.
    Tear,
    /// Writes the data 4 KiB too far.
    Misplace,
    /// Answers only when the process is killed, like a network file system.
    Hang,
    /// Executes the request, but holds the reply until the test releases it.
    Hold,
}

#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub asked: Asked,
    pub from: u64,
    pub instead: Instead,
}

#[derive(Default)]
struct Node {
    /// `None` for a directory.
    data: Option<Vec<u8>>,
    names: BTreeMap<Vec<u8>, u64>,
    links: u32,
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<u64, Node>,
    last: u64,
    faults: Vec<Fault>,
    hits: u64,
    hanging: BTreeSet<u64>,
    held: Vec<Vec<u8>>,
    hold: bool,
}

const ROOT: u64 = 1;
const BLOCK: u64 = 4096;
/// The largest write that the kernel may send at once, in bytes.
const LARGEST: u32 = 1 << 20;
/// The free space in bytes that statfs reports.
const FREE: u64 = 256 << 20;

/// The mounted file system; unmounted when dropped, even if requests hang.
pub struct FaultyFs {
    at: PathBuf,
    state: Arc<Mutex<State>>,
    device: File,
    server: Option<JoinHandle<()>>,
}

impl FaultyFs {
    pub fn mount(at: &Path) -> Result<FaultyFs, String> {
        let device = File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| format!("/dev/fuse: {error}"))?;
        let text = |text: String| CString::new(text).expect("no NUL in it");
        let options = text(format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        ));
        let (name, kind, place) =
            (text("halfpower-faults".into()), text("fuse".into()), text(at.display().to_string()));
        // SAFETY: all arguments are strings that live until the call returns.
        let mounted = unsafe {
            libc::mount(
                name.as_ptr(),
                place.as_ptr(),
                kind.as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV,
                options.as_ptr().cast(),
            )
        };
        if mounted != 0 {
            return Err(format!("a FUSE mount: {}", io::Error::last_os_error()));
        }
        let state = Arc::new(Mutex::new(State::default()));
        lock(&state).nodes.insert(ROOT, Node { links: 2, ..Node::default() });
        lock(&state).last = ROOT;
        let shared = state.clone();
        let answers = device.try_clone().map_err(|error| error.to_string())?;
        let server = std::thread::spawn(move || serve(device, &shared));
        Ok(FaultyFs { at: at.into(), state, device: answers, server: Some(server) })
    }

    pub fn set(&self, faults: &[Fault]) {
        let mut state = lock(&self.state);
        state.faults = faults.to_vec();
    }

    pub fn hits(&self) -> u64 {
        lock(&self.state).hits
    }

    pub fn hanging(&self) -> usize {
        let state = lock(&self.state);
        state.hanging.len() + state.held.len()
    }

    pub fn release(&self) {
        for reply in std::mem::take(&mut lock(&self.state).held) {
            // The request may have been interrupted meanwhile.
            let _ = (&self.device).write(&reply);
        }
    }

    /// Returns the names in the root directory, without system calls, which may hang.
    pub fn names(&self) -> Vec<String> {
        lock(&self.state).nodes[&ROOT]
            .names
            .keys()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    pub fn put(&self, name: &str, data: Vec<u8>) {
        let node = Node { data: Some(data), links: 1, ..Node::default() };
        lock(&self.state).add(ROOT, name.as_bytes(), node);
    }

    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = lock(&self.state);
        let node = state.nodes[&ROOT].names.get(name.as_bytes())?;
        state.nodes[node].data.clone()
    }
}

impl Drop for FaultyFs {
    fn drop(&mut self) {
        let place = CString::new(self.at.display().to_string()).expect("no NUL in it");
        // Forced unmount: hanging requests fail.
        // SAFETY: a string that lives until the call returns.
        if unsafe { libc::umount2(place.as_ptr(), libc::MNT_FORCE | libc::MNT_DETACH) } == 0 {
            let _ = self.server.take().map(JoinHandle::join);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut device: File, state: &Mutex<State>) {
    let mut buffer = vec![0; LARGEST as usize + (64 << 10)];
    loop {
        let len = match device.read(&mut buffer) {
            Ok(len) => len,
            // The request was interrupted before it was read, or a signal arrived.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                continue;
            }
            Err(_) => return,
        };
        let request = Request { bytes: &buffer[..len] };
        let mut state = lock(state);
        state.hold = false;
        let (to, code, body) = match state.answer(&request) {
            Answer::Done(body) => (request.number(), 0, body),
            Answer::Error(code) => (request.number(), -code, Vec::new()),
            // Cancels a hanging request.
            Answer::None
                if request.operation() == INTERRUPT
                    && state.hanging.remove(&request.u64(HEADER)) =>
            {
                (request.u64(HEADER), -libc::EINTR, Vec::new())
            }
            Answer::None => continue,
            Answer::Never => {
                state.hanging.insert(request.number());
                continue;
            }
        };
        let mut reply = Out::default();
        reply.u32(16 + body.len() as u32).u32(code as u32).u64(to);
        reply.0.extend(body);
        if state.hold {
            state.held.push(reply.0);
            continue;
        }
        drop(state);
        // The request may have been interrupted meanwhile.
        let _ = device.write(&reply.0);
    }
}

/// A request: a header of 40 bytes, then the operation's arguments.
struct Request<'a> {
    bytes: &'a [u8],
}

impl Request<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    fn operation(&self) -> u32 {
        self.u32(4)
    }

    fn number(&self) -> u64 {
        self.u64(8)
    }

    fn node(&self) -> u64 {
        self.u64(16)
    }

    fn names(&self, skip: usize) -> Vec<&[u8]> {
        self.bytes[HEADER + skip..].split(|&byte| byte == 0).collect()
    }
}

const HEADER: usize = 40;
const INTERRUPT: u32 = 36;

enum Answer {
    Done(Vec<u8>),
    Error(i32),
    /// The request expects no answer.
    None,
    /// The answer is expected but never sent.
    Never,
}

#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn u16(&mut self, value: u16) -> &mut Out {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Out {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Out {
        self.0.extend(value.to_le_bytes());
        self
    }
}

impl State {
    fn add(&mut self, directory: u64, name: &[u8], node: Node) -> u64 {
        self.last += 1;
        self.nodes.insert(self.last, node);
        let number = self.last;
        self.nodes
            .get_mut(&directory)
            .expect("the directory is there")
            .names
            .insert(name.into(), number);
        number
    }

    fn find(&self, directory: u64, name: &[u8]) -> Option<u64> {
        self.nodes.get(&directory)?.names.get(name).copied()
    }

    fn fault(&mut self, asked: Asked, offset: u64, len: u64) -> Option<Instead> {
        let met =
            self.faults.iter().find(|fault| fault.asked == asked && offset + len > fault.from);
        let instead = met.map(|fault| fault.instead);
        self.hits += u64::from(instead.is_some());
        self.hold |= instead == Some(Instead::Hold);
        instead.filter(|instead| *instead != Instead::Hold)
    }

    fn fault_answer(&mut self, asked: Asked) -> Option<Answer> {
        match self.fault(asked, 0, 1)? {
            Instead::Error(code) => Some(Answer::Error(code)),
            Instead::Hang => Some(Answer::Never),
            _ => Some(Answer::Done(Vec::new())),
        }
    }

    fn answer(&mut self, request: &Request<'_>) -> Answer {
        let node = request.node();
        match request.operation() {
            // LOOKUP
            1 => match self.find(node, request.names(0)[0]) {
                Some(found) => Answer::Done(self.entry(found)),
                None => Answer::Error(libc::ENOENT),
            },
            // FORGET, INTERRUPT, BATCH_FORGET take no answer.
            2 | INTERRUPT | 42 => Answer::None,
            // GETATTR
            3 => self.attributes_answer(node),
            4 => self.set_attributes(request),
            // MKDIR
            9 => {
                let directory = Node { links: 2, ..Node::default() };
                let made = self.add(node, request.names(8)[0], directory);
                Answer::Done(self.entry(made))
            }
            // UNLINK, RMDIR
            10 | 11 => self.remove(node, request.names(0)[0]),
            // RENAME, RENAME2: the names follow 8 and 16 bytes.
            12 => self.rename(request, 8, 0),
            45 => self.rename(request, 16, request.u32(HEADER + 8)),
            // LINK
            13 => self.link(request),
            // OPEN, OPENDIR: no handle, nothing kept in the page cache between opens.
            14 | 27 => Answer::Done(vec![0; 16]),
            15 => self.read(request),
            16 => self.write(request),
            // STATFS
            17 => Answer::Done(space()),
            // FSYNC, FSYNCDIR
            20 | 30 => self.fault_answer(Asked::Sync).unwrap_or(Answer::Done(Vec::new())),
            // RELEASE, FLUSH, RELEASEDIR, DESTROY
            18 | 25 | 29 | 38 => Answer::Done(Vec::new()),
            26 => Answer::Done(greeting()),
            28 => self.list(request),
            // CREATE
            35 => {
                if let Some(answer) = self.fault_answer(Asked::Create) {
                    return answer;
                }
                let file = Node { data: Some(Vec::new()), links: 1, ..Node::default() };
                let made = self.add(node, request.names(16)[0], file);
                let mut body = self.entry(made);
                body.extend([0; 16]);
                Answer::Done(body)
            }
            _ => Answer::Error(libc::ENOSYS),
        }
    }

    fn attributes(&self, number: u64) -> Vec<u8> {
        let node = &self.nodes[&number];
        let size = node.data.as_ref().map_or(0, Vec::len) as u64;
        let mode = if node.data.is_some() { libc::S_IFREG | 0o600 } else { libc::S_IFDIR | 0o755 };
        let mut out = Out::default();
        out.u64(number).u64(size).u64(size.div_ceil(512));
        // Three timestamps and their nanoseconds.
        out.u64(0).u64(0).u64(0).u32(0).u32(0).u32(0);
        out.u32(mode).u32(node.links).u32(0).u32(0).u32(0).u32(BLOCK as u32).u32(0);
        out.0
    }

    fn attributes_answer(&self, number: u64) -> Answer {
        if !self.nodes.contains_key(&number) {
            return Answer::Error(libc::ENOENT);
        }
        // Valid for zero seconds.
        let mut body = vec![0; 16];
        body.extend(self.attributes(number));
        Answer::Done(body)
    }

    fn entry(&self, number: u64) -> Vec<u8> {
        let mut out = Out::default();
        // Generation, then validity of name and attributes.
        out.u64(number).u64(0).u64(0).u64(0).u64(0);
        out.0.extend(self.attributes(number));
        out.0
    }

    fn set_attributes(&mut self, request: &Request<'_>) -> Answer {
        const SIZE: u32 = 1 << 3;
        let number = request.node();
        if request.u32(HEADER) & SIZE != 0 {
            let size = request.u64(HEADER + 16) as usize;
            if let Some(data) = self.nodes.get_mut(&number).and_then(|node| node.data.as_mut()) {
                data.resize(size, 0);
            }
        }
        self.attributes_answer(number)
    }

    fn remove(&mut self, directory: u64, name: &[u8]) -> Answer {
        if let Some(answer) = self.fault_answer(Asked::Remove) {
            return answer;
        }
        let Some(number) = self.find(directory, name) else { return Answer::Error(libc::ENOENT) };
        if !self.nodes[&number].names.is_empty() {
            return Answer::Error(libc::ENOTEMPTY);
        }
        self.nodes.get_mut(&directory).expect("just found in it").names.remove(name);
        // Keep the node for those who have it open.
        let node = self.nodes.get_mut(&number).expect("just found");
        node.links = node.links.saturating_sub(1);
        Answer::Done(Vec::new())
    }

    fn rename(&mut self, request: &Request<'_>, skip: usize, flags: u32) -> Answer {
        if let Some(answer) = self.fault_answer(Asked::Rename) {
            return answer;
        }
        let (from, to) = (request.node(), request.u64(HEADER));
        let names = request.names(skip);
        let Some(number) = self.find(from, names[0]) else { return Answer::Error(libc::ENOENT) };
        if flags & libc::RENAME_NOREPLACE != 0 && self.find(to, names[1]).is_some() {
            return Answer::Error(libc::EEXIST);
        }
        self.nodes.get_mut(&from).expect("just found in it").names.remove(names[0]);
        self.nodes.get_mut(&to).expect("the kernel knows it").names.insert(names[1].into(), number);
        Answer::Done(Vec::new())
    }

    fn link(&mut self, request: &Request<'_>) -> Answer {
        let (directory, number, name) = (request.node(), request.u64(HEADER), request.names(8)[0]);
        if self.find(directory, name).is_some() {
            return Answer::Error(libc::EEXIST);
        }
        self.nodes
            .get_mut(&directory)
            .expect("the kernel knows it")
            .names
            .insert(name.into(), number);
        self.nodes.get_mut(&number).expect("the kernel knows it").links += 1;
        Answer::Done(self.entry(number))
    }

    fn read(&mut self, request: &Request<'_>) -> Answer {
        let (offset, len) = (request.u64(HEADER + 8), u64::from(request.u32(HEADER + 16)));
        let Some(data) = self.nodes.get(&request.node()).and_then(|node| node.data.as_ref()) else {
            return Answer::Error(libc::EISDIR);
        };
        let size = data.len() as u64;
        let mut body = data[offset.min(size) as usize..(offset + len).min(size) as usize].to_vec();
        match self.fault(Asked::Read, offset, len) {
            Some(Instead::Error(code)) => return Answer::Error(code),
            Some(Instead::Hang) => return Answer::Never,
            Some(Instead::Half) => body.truncate(half(body.len())),
            Some(_) => {
                body.chunks_mut(BLOCK as usize).for_each(|block| block[block.len() / 2] ^= 0x10)
            }
            None => {}
        }
        Answer::Done(body)
    }

    fn write(&mut self, request: &Request<'_>) -> Answer {
        let (number, mut offset) = (request.node(), request.u64(HEADER + 8));
        let len = request.u32(HEADER + 16) as usize;
        let mut bytes = request.bytes[HEADER + 40..][..len].to_vec();
        let (mut done, mut lost) = (len, false);
        match self.fault(Asked::Write, offset, len as u64) {
            Some(Instead::Error(code)) => return Answer::Error(code),
            Some(Instead::Hang) => return Answer::Never,
            Some(Instead::Half) => {
                done = half(len);
                bytes.truncate(done);
            }
            Some(Instead::Tear) => bytes.truncate(half(len)),
            Some(Instead::Flip) => {
                bytes.chunks_mut(BLOCK as usize).for_each(|block| block[block.len() / 2] ^= 0x10)
            }
            Some(Instead::Misplace) => offset += BLOCK,
            Some(Instead::Lose) => lost = true,
            Some(Instead::Hold) | None => {}
        }
        let Some(data) = self.nodes.get_mut(&number).and_then(|node| node.data.as_mut()) else {
            return Answer::Error(libc::EISDIR);
        };
        let end = offset as usize + bytes.len();
        if data.len() < end {
            data.resize(end, 0);
        }
        if !lost {
            data[offset as usize..end].copy_from_slice(&bytes);
        }
        let mut out = Out::default();
        out.u32(done as u32).u32(0);
        Answer::Done(out.0)
    }

    fn list(&self, request: &Request<'_>) -> Answer {
        let (from, room) = (request.u64(HEADER + 8) as usize, request.u32(HEADER + 16) as usize);
        let mut out = Out::default();
        for (index, (name, number)) in
            self.nodes[&request.node()].names.iter().enumerate().skip(from)
        {
            let padded = name.len().next_multiple_of(8);
            if out.0.len() + 24 + padded > room {
                break;
            }
            // Unknown type, so the kernel asks for the attributes.
            out.u64(*number).u64(index as u64 + 1).u32(name.len() as u32).u32(0);
            out.0.extend(name);
            out.0.resize(out.0.len() + padded - name.len(), 0);
        }
        Answer::Done(out.0)
    }
}

/// Returns half of the bytes, but at least a block, so that there is progress.
fn half(bytes: usize) -> usize {
    (bytes / 2).max(bytes.min(BLOCK as usize))
}

fn greeting() -> Vec<u8> {
    const ASYNC_READ: u32 = 1;
    const BIG_WRITES: u32 = 1 << 5;
    const MAX_PAGES: u32 = 1 << 22;
    let mut out = Out::default();
    out.u32(7).u32(31).u32(LARGEST).u32(ASYNC_READ | BIG_WRITES | MAX_PAGES);
    out.u16(16).u16(12).u32(LARGEST).u32(1).u16((LARGEST / 4096) as u16).u16(0);
    out.0.resize(64, 0);
    out.0
}

fn space() -> Vec<u8> {
    let mut out = Out::default();
    let blocks = FREE / BLOCK;
    out.u64(blocks)
        .u64(blocks)
        .u64(blocks)
        .u64(1 << 20)
        .u64(1 << 20)
        .u32(BLOCK as u32)
        .u32(255)
        .u32(BLOCK as u32);
    out.0.resize(80, 0);
    out.0
}
