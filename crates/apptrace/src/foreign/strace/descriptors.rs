//! Each process's descriptors, and what a call does to a file.

use super::super::MAX_NAMES;
use super::super::text::Names;
use super::call::{Call, descriptor};
use crate::{Access, Event, Index, Kind, OpenFile};
use std::collections::{HashMap, VecDeque};

pub(super) struct Done {
    pub file: Index,
    pub access: Access,
    pub offset: Option<u64>,
    pub bytes: u64,
    pub open: OpenFile,
}

/// Several descriptors may share one.
#[derive(Debug, Clone, Copy)]
struct Opened {
    file: Index,
    open: OpenFile,
    position: Option<u64>,
    close_on_exec: bool,
    /// A pipe or a terminal.
    stream: bool,
}

type Table = HashMap<i32, usize>;

#[derive(Default)]
pub(super) struct Processes {
    /// Tables by thread; threads of a process share one.
    of: HashMap<u32, u32>,
    tables: HashMap<u32, Table>,
    opened: Vec<Opened>,
    sizes: HashMap<Index, u64>,
}

/// More is an error in the text.
const MAX_BYTES: u64 = 1 << 40;

impl Processes {
    pub(super) fn process_of(&self, pid: u32) -> u32 {
        self.of.get(&pid).copied().unwrap_or(pid)
    }

    pub(super) fn exit(&mut self, pid: u32) {
        let process = self.process_of(pid);
        self.of.remove(&pid);
        if process == pid && !self.of.values().any(|other| *other == pid) {
            self.tables.remove(&pid);
        }
    }

    fn table(&mut self, pid: u32) -> &mut Table {
        let process = self.process_of(pid);
        self.tables.entry(process).or_default()
    }

    fn add(&mut self, pid: u32, number: i32, opened: Opened) -> Result<(), String> {
        if self.opened.len() == 16 * MAX_NAMES {
            return Err("it opens more files than can be followed; read a part of it".into());
        }
        self.opened.push(opened);
        let at = self.opened.len() - 1;
        self.table(pid).insert(number, at);
        Ok(())
    }

    /// Adds an unknown descriptor, which was open before the recording.
    fn find(
        &mut self,
        pid: u32,
        (number, path): (i32, Option<&str>),
        names: &mut Names,
        out: &mut VecDeque<Event>,
    ) -> Result<usize, String> {
        if let Some(&at) = self.table(pid).get(&number) {
            return Ok(at);
        }
        let (name, kind) = match path {
            Some(path) => (path.to_owned(), kind_of(path)),
            None if number <= 2 => (format!("descriptor {number}"), Kind::Stream),
            None => {
                let process = self.process_of(pid);
                (format!("descriptor {number} of process {process}"), Kind::Unknown)
            }
        };
        let file = names.file(&name, kind, None, out)?;
        let stream = kind == Kind::Stream;
        let open = OpenFile::default();
        self.add(pid, number, Opened { file, open, position: None, close_on_exec: false, stream })?;
        Ok(self.opened.len() - 1)
    }

    pub(super) fn call(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        names: &mut Names,
        out: &mut VecDeque<Event>,
    ) -> Result<Option<Done>, String> {
        match call.name {
            "open" | "openat" | "creat" | "openat2" => self.open(pid, call, names, out),
            "read" | "write" | "readv" | "writev" | "pread64" | "pwrite64" | "pread" | "pwrite"
            | "preadv" | "pwritev" | "preadv2" | "pwritev2" => self.transfer(pid, call, names, out),
            "fsync" | "fdatasync" | "sync_file_range" | "fallocate" | "ftruncate" | "syncfs" => {
                self.on_descriptor(pid, call, names, out)
            }
            "close" => {
                let Some((number, _)) = call.descriptor(0) else { return Ok(None) };
                let Some(at) = self.table(pid).remove(&number) else { return Ok(None) };
                let Opened { file, open, stream, .. } = self.opened[at];
                let done = Done { file, access: Access::Close, offset: None, bytes: 0, open };
                Ok((!stream).then_some(done))
            }
            "lseek" | "_llseek" => {
                if let (Some(result @ 0..), Some(argument)) = (call.result, call.descriptor(0)) {
                    let at = self.find(pid, argument, names, out)?;
                    self.opened[at].position = Some(result as u64);
                }
                Ok(None)
            }
            "fstat" | "newfstatat" => {
                self.stat(pid, call);
                Ok(None)
            }
            "unlink" | "unlinkat" => {
                let path = self.path(call, if call.name == "unlink" { 0 } else { 1 });
                if let (Some(path), Some(0)) = (path, call.result)
                    && let Some(file) = names.forget(&path)
                {
                    let open = OpenFile::default();
                    let access = Access::Unlink;
                    return Ok(Some(Done { file, access, offset: None, bytes: 0, open }));
                }
                Ok(None)
            }
            "rename" | "renameat" | "renameat2" => {
                let (from, to) = if call.name == "rename" { (0, 1) } else { (1, 3) };
                if let (Some(from), Some(to), Some(0)) =
                    (self.path(call, from), self.path(call, to), call.result)
                {
                    names.rename(&from, &to);
                }
                Ok(None)
            }
            "dup" | "dup2" | "dup3" | "fcntl" => {
                self.duplicate(pid, call, names, out)?;
                Ok(None)
            }
            "pipe" | "pipe2" | "socketpair" | "socket" | "accept" | "accept4" | "eventfd2"
            | "epoll_create1" | "memfd_create" | "timerfd_create" | "signalfd4"
            | "inotify_init1" => {
                self.streams(pid, call, names, out)?;
                Ok(None)
            }
            "clone" | "clone3" | "fork" | "vfork" => {
                self.fork(pid, call);
                Ok(None)
            }
            "execve" | "execveat" if call.result == Some(0) => {
                let process = self.process_of(pid);
                let Processes { tables, opened, .. } = self;
                if let Some(table) = tables.get_mut(&process) {
                    table.retain(|_, at| !opened[*at].close_on_exec);
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn path(&self, call: &Call<'_>, index: usize) -> Option<String> {
        let path = call.string(index)?;
        if path.starts_with('/') || index == 0 {
            return Some(path);
        }
        let directory = call.arguments.get(index - 1).and_then(|text| text.split_once('<'));
        Some(match directory.and_then(|(_, path)| path.strip_suffix('>')) {
            Some(directory) => format!("{}/{path}", directory.trim_end_matches('/')),
            None => path,
        })
    }

    fn open(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        names: &mut Names,
        out: &mut VecDeque<Event>,
    ) -> Result<Option<Done>, String> {
        let path_at = usize::from(!matches!(call.name, "open" | "creat"));
        let (Some(result @ 0..), Some(path)) = (call.result, self.path(call, path_at)) else {
            return Ok(None);
        };
        let number = i32::try_from(result).map_err(|_| format!("descriptor {result}"))?;
        // The kernel's own name of the file, if the recording has it.
        let shown = descriptor(call.result_text.trim_start()).and_then(|(_, path)| path);
        let shown = shown
            .or_else(|| call.result_text.strip_prefix('<').and_then(|path| path.strip_suffix('>')));
        let path = shown.map_or(path, str::to_owned);
        let flag = |flag: &str| {
            call.has_flag(path_at + 1, flag)
                || call.name == "openat2"
                    && call.arguments.get(2).is_some_and(|how| how.contains(flag))
        };
        let truncated = flag("O_TRUNC") || call.name == "creat";
        let kind = if flag("O_DIRECTORY") { Kind::Directory } else { kind_of(&path) };
        let fresh = truncated || flag("O_EXCL");
        let file = names.file(&path, kind, fresh.then_some(0), out)?;
        let open = OpenFile {
            direct: flag("O_DIRECT"),
            dsync: flag("O_DSYNC") || flag("O_SYNC"),
            append: flag("O_APPEND"),
            metadata: false,
        };
        if fresh {
            self.sizes.insert(file, 0);
        }
        let stream = kind == Kind::Stream;
        let close_on_exec = flag("O_CLOEXEC");
        self.add(pid, number, Opened { file, open, position: Some(0), close_on_exec, stream })?;
        let done = Done { file, access: Access::Open, offset: None, bytes: 0, open };
        Ok((!stream).then_some(done))
    }

    fn transfer(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        names: &mut Names,
        out: &mut VecDeque<Event>,
    ) -> Result<Option<Done>, String> {
        let Some(argument) = call.descriptor(0) else { return Ok(None) };
        let at = self.find(pid, argument, names, out)?;
        let Opened { file, mut open, position, stream, .. } = self.opened[at];
        if stream {
            return Ok(None);
        }
        let vector = call.name.contains('v');
        let positioned = call.name.starts_with('p');
        let reads = call.name.contains("read");
        let bytes = if vector { call.vector_bytes(1) } else { call.number(2).unwrap_or(0) };
        let moved = call.result.unwrap_or(0).max(0) as u64;
        // A vector of many parts is cut in the output: what was moved is known.
        let bytes = if vector { bytes.max(moved) } else { bytes };
        if bytes > MAX_BYTES || moved > bytes {
            return Err(format!("{} moves {moved} of {bytes} bytes", call.name));
        }
        let appended = open.append && !reads;
        let mut offset = if positioned && !appended { call.number(3) } else { position };
        if appended {
            offset = self.sizes.get(&file).copied();
        }
        if offset.is_some_and(|offset| offset.checked_add(bytes).is_none()) {
            return Err(format!("{} ends beyond 64 bits", call.name));
        }
        open.dsync |= call.has_flag(4, "RWF_DSYNC") || call.has_flag(4, "RWF_SYNC");
        let end = offset.map(|offset| offset + moved);
        if !positioned {
            self.opened[at].position = end.or(position);
        }
        if let Some(end) = end.filter(|_| !reads) {
            let size = self.sizes.entry(file).or_insert(0);
            *size = (*size).max(end);
        }
        if bytes == 0 {
            return Ok(None);
        }
        let access = if reads { Access::Read } else { Access::Write };
        Ok(Some(Done { file, access, offset, bytes, open }))
    }

    fn on_descriptor(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        names: &mut Names,
        out: &mut VecDeque<Event>,
    ) -> Result<Option<Done>, String> {
        let Some(argument) = call.descriptor(0) else { return Ok(None) };
        let at = self.find(pid, argument, names, out)?;
        let Opened { file, open, stream, .. } = self.opened[at];
        if stream {
            return Ok(None);
        }
        let number = |index| call.number(index).unwrap_or(0);
        let (access, offset, bytes) = match call.name {
            "fsync" => (Access::SyncFile, None, 0),
            "fdatasync" => (Access::SyncData, None, 0),
            "syncfs" => (Access::SyncSystem, None, 0),
            "sync_file_range" if call.has_flag(3, "SYNC_FILE_RANGE_WAIT_AFTER") => {
                (Access::SyncRange, Some(number(1)), number(2))
            }
            "sync_file_range" => (Access::WriteOut, Some(number(1)), number(2)),
            "fallocate" => (Access::Allocate, Some(number(2)), number(3)),
            _ => (Access::Truncate, None, number(1)),
        };
        if call.result == Some(0) {
            match access {
                Access::Truncate => drop(self.sizes.insert(file, bytes)),
                Access::Allocate if call.number(1) == Some(0) => {
                    let size = self.sizes.entry(file).or_insert(0);
                    *size = (*size).max(offset.unwrap_or(0).saturating_add(bytes));
                }
                _ => {}
            }
        }
        Ok(Some(Done { file, access, offset, bytes, open }))
    }

    /// Keeps the size for later appends.
    fn stat(&mut self, pid: u32, call: &Call<'_>) {
        let (Some((number, _)), Some(0)) = (call.descriptor(0), call.result) else { return };
        let Some(&at) = self.table(pid).get(&number) else { return };
        let size = call.arguments.iter().find_map(|argument| {
            let rest = &argument[argument.find("st_size=")? + "st_size=".len()..];
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().ok()
        });
        if let Some(size) = size {
            self.sizes.insert(self.opened[at].file, size);
        }
    }

    fn duplicate(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        names: &mut Names,
        out: &mut VecDeque<Event>,
    ) -> Result<(), String> {
        let copies = call.name != "fcntl"
            || call.has_flag(1, "F_DUPFD")
            || call.has_flag(1, "F_DUPFD_CLOEXEC");
        let (Some(argument), Some(result @ 0..)) = (call.descriptor(0), call.result) else {
            return Ok(());
        };
        let at = self.find(pid, argument, names, out)?;
        if copies {
            let number = i32::try_from(result).map_err(|_| format!("descriptor {result}"))?;
            self.table(pid).insert(number, at);
        } else if call.has_flag(1, "F_SETFL") {
            let open = &mut self.opened[at].open;
            open.direct = call.has_flag(2, "O_DIRECT");
            open.append = call.has_flag(2, "O_APPEND");
        } else if call.has_flag(1, "F_SETFD") {
            self.opened[at].close_on_exec = call.has_flag(2, "FD_CLOEXEC");
        }
        Ok(())
    }

    fn streams(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        names: &mut Names,
        out: &mut VecDeque<Event>,
    ) -> Result<(), String> {
        let Some(result @ 0..) = call.result else { return Ok(()) };
        let pair = matches!(call.name, "pipe" | "pipe2" | "socketpair");
        let pair = pair.then(|| {
            let numbers = call.arguments.iter().find_map(|text| text.strip_prefix('['));
            numbers.map(|text| text.trim_end_matches(']').to_owned()).unwrap_or_default()
        });
        let numbers: Vec<i32> = match pair {
            Some(text) => text.split(", ").filter_map(descriptor).map(|(one, _)| one).collect(),
            None => i32::try_from(result).into_iter().collect(),
        };
        for number in numbers {
            let file = names.file("descriptors of other kinds", Kind::Stream, None, out)?;
            let (open, position) = (OpenFile::default(), None);
            self.add(
                pid,
                number,
                Opened { file, open, position, close_on_exec: false, stream: true },
            )?;
        }
        Ok(())
    }

    fn fork(&mut self, pid: u32, call: &Call<'_>) {
        let Some(child) = call.result.and_then(|child| u32::try_from(child).ok()) else { return };
        if child == 0 {
            return;
        }
        let process = self.process_of(pid);
        let shares = call.arguments.iter().any(|argument| argument.contains("CLONE_FILES"));
        // The child's first calls may come before the end of the parent's.
        let own = self.tables.remove(&child).unwrap_or_default();
        if shares {
            self.table(pid).extend(own);
            self.of.insert(child, process);
        } else {
            let mut copy = self.table(pid).clone();
            copy.extend(own);
            self.tables.insert(child, copy);
        }
    }
}

fn kind_of(path: &str) -> Kind {
    let stream = !path.starts_with('/')
        && ["pipe:", "socket:", "anon_inode:", "TCP", "UDP", "UNIX", "NETLINK"]
            .iter()
            .any(|start| path.starts_with(start));
    let memory =
        ["/proc/", "/sys/", "/dev/pts/", "/dev/null", "/dev/tty", "/dev/zero", "/dev/urandom"]
            .iter()
            .any(|start| path.starts_with(start));
    if stream || memory {
        Kind::Stream
    } else if path.starts_with("/dev/") && !path.starts_with("/dev/shm/") {
        Kind::BlockDevice
    } else {
        Kind::Regular
    }
}
