//! Requests of system calls, and changes to descriptors and sizes.

use super::{Pending, Target, Traced, Tracker};
use crate::linux::record::calls::{Call, CopyCall, OpenCall, Transfer};
use crate::linux::record::given_names::Which;
use crate::linux::record::identity;
use crate::linux::record::seen::Seen;
use apptrace::{Access, Index, Interface, Kind, OpenFile, Result};
use std::io::Write;
use std::path::PathBuf;

const MAX_MAPPINGS: usize = 1 << 16;

/// Smaller writable mappings are not counted: they are often indexes, as SQLite's.
const LARGE_MAPPING: u64 = 1 << 20;

impl<W: Write> Tracker<W> {
    pub(super) fn enter(&mut self, seen: &Seen, call: Call, arguments: [u64; 6]) -> Result<()> {
        let descriptor = arguments[0] as i32;
        let file = match call {
            Call::Transfer(_)
            | Call::Sync(_)
            | Call::SyncRange
            | Call::ReadAhead
            | Call::Advise
            | Call::Allocate
            | Call::Truncate => Some(self.target(seen.thread, descriptor)?),
            Call::Copy(CopyCall { from: (from, _), to: (to, _) }) => {
                let to = self.target(seen.thread, arguments[to] as i32)?;
                let file = Some(self.target(seen.thread, arguments[from] as i32)?);
                let pending = Pending { at: seen.at, call, arguments, file, to: Some(to) };
                self.pending.insert(seen.thread, pending);
                return Ok(());
            }
            Call::Open(OpenCall { path: Some(_), .. }) => {
                self.take_name(seen, Which::First);
                None
            }
            Call::Rename(_) => {
                self.take_name(seen, Which::First);
                self.take_name(seen, Which::Second);
                None
            }
            Call::OnlyAtDevices(name) => {
                *self.unseen.entry(name).or_default() += 1;
                return Ok(());
            }
            Call::SyncMapping => self.mapped(seen.thread, arguments[0]),
            // The kernel may give its number to another thread before this call returns.
            Call::Close => {
                let table = self.state(seen.thread).table;
                self.descriptors.close(table, descriptor..=descriptor);
                return Ok(());
            }
            _ => None,
        };
        self.pending.insert(seen.thread, Pending { at: seen.at, call, arguments, file, to: None });
        Ok(())
    }

    fn take_name(&mut self, seen: &Seen, which: Which) {
        let of = (seen.thread, which);
        match self.given.take(of, seen.at) {
            Some(name) => self.called.insert(of, name),
            None => self.called.remove(&of),
        };
    }

    fn target(&mut self, thread: i32, descriptor: i32) -> Result<Target> {
        let id = self.descriptor(thread, descriptor)?;
        let open = self.descriptors.open_file(id);
        Ok((open.file, open.kind, open.flags))
    }

    pub(super) fn leave(&mut self, seen: &Seen, pending: Pending, result: i64) -> Result<()> {
        let [first, second, third, fourth, ..] = pending.arguments;
        match pending.call {
            Call::Transfer(how) => self.transfer(seen, &pending, how, result),
            Call::Copy(how) => self.copy(seen, &pending, how, result),
            Call::Sync(access) => self.request(seen, &pending, access, None, 0, result),
            Call::SyncSystem => {
                let file = self.named_file("every file system", Kind::Unknown)?;
                let file = Some((file, Kind::Unknown, OpenFile::default()));
                let pending = Pending { file, ..pending };
                self.request(seen, &pending, Access::SyncSystem, None, 0, result)
            }
            Call::SyncRange => {
                // Without it the call only starts the writing.
                let waits = fourth as u32 & libc::SYNC_FILE_RANGE_WAIT_AFTER != 0;
                let access = if waits { Access::SyncRange } else { Access::WriteOut };
                self.request(seen, &pending, access, Some(second), third, result)
            }
            Call::Advise if fourth as i32 != libc::POSIX_FADV_WILLNEED => Ok(()),
            Call::ReadAhead | Call::Advise => {
                self.request(seen, &pending, Access::Prefetch, Some(second), third, result)
            }
            // Without it the kernel does nothing.
            Call::SyncMapping if third as i32 & libc::MS_SYNC == 0 => Ok(()),
            Call::SyncMapping => {
                self.request(seen, &pending, Access::SyncData, None, second, result)
            }
            Call::Allocate => {
                if result == 0 && second as i32 & libc::FALLOC_FL_KEEP_SIZE == 0 {
                    self.grow(&pending, third.saturating_add(fourth));
                }
                self.request(seen, &pending, Access::Allocate, Some(third), fourth, result)
            }
            Call::Truncate => {
                if let (0, Some((file, ..))) = (result, pending.file) {
                    self.sizes[file as usize] = Some(second);
                }
                self.request(seen, &pending, Access::Truncate, None, second, result)
            }
            _ if result < 0 => Ok(()),
            Call::Open(how) => self.opened(seen, &pending, how, result as i32),
            Call::Rename(how) => self.renamed(seen, &pending, how),
            Call::ChangeDirectory => {
                let process = self.state(seen.thread).process;
                self.working.remove(&process);
                self.look_where(process, seen.thread);
                Ok(())
            }
            Call::CloseRange => {
                let table = self.state(seen.thread).table;
                let last = i32::try_from(second).unwrap_or(i32::MAX);
                self.descriptors.close(table, first as i32..=last);
                Ok(())
            }
            // Only dup3 has flags.
            Call::Duplicate => {
                let ends_at_exec = third as i32 & libc::O_CLOEXEC != 0;
                self.duplicate(seen, first as i32, result as i32, ends_at_exec)
            }
            Call::Control => match second as i32 {
                command @ (libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
                    let ends_at_exec = command == libc::F_DUPFD_CLOEXEC;
                    self.duplicate(seen, first as i32, result as i32, ends_at_exec)
                }
                libc::F_SETFD => {
                    let table = self.state(seen.thread).table;
                    let ends = third as i32 & libc::FD_CLOEXEC != 0;
                    self.descriptors.end_at_exec(table, first as i32, ends);
                    Ok(())
                }
                libc::F_SETFL => {
                    let id = self.descriptor(seen.thread, first as i32)?;
                    let open = self.descriptors.open_file(id);
                    let set = identity::open_file(third as i32);
                    open.flags = OpenFile { dsync: open.flags.dsync, ..set };
                    Ok(())
                }
                _ => Ok(()),
            },
            Call::Seek => {
                let id = self.descriptor(seen.thread, first as i32)?;
                self.descriptors.open_file(id).position = Some(result as u64);
                Ok(())
            }
            Call::Map => self.map(seen.thread, &pending, result as u64),
            Call::Close | Call::OnlyAtDevices(_) => Ok(()),
        }
    }

    fn duplicate(&mut self, seen: &Seen, from: i32, to: i32, ends_at_exec: bool) -> Result<()> {
        let found = self.early.take(seen);
        let id = self.descriptor(seen.thread, from)?;
        if self.descriptors.open_file(id).kind == Kind::Unknown
            && let Some(found) = found
        {
            // The first descriptor was gone before its name was seen.
            let kind = found.file.kind;
            let file = self.file(found.identity, found.file)?;
            let open = self.descriptors.open_file(id);
            (open.file, open.kind) = (file, kind);
        }
        let table = self.state(seen.thread).table;
        self.descriptors.duplicate(table, from, to, ends_at_exec);
        Ok(())
    }

    fn opened(
        &mut self,
        seen: &Seen,
        pending: &Pending,
        how: OpenCall,
        descriptor: i32,
    ) -> Result<()> {
        let table = self.state(seen.thread).table;
        let flags = how.flags.map(|index| pending.arguments[index] as i32);
        let found = self.early.take(seen);
        let directory = how.path.filter(|&path| path > 0).map(|path| path - 1);
        let given = how.path.and_then(|_| self.full_name(seen, pending, Which::First, directory));
        let again = given.as_deref().and_then(identity::descriptor_of);
        let again = again.and_then(|descriptor| self.descriptors.get(table, descriptor));
        let found = match given {
            Some(given) => {
                let flags = flags.unwrap_or(libc::O_RDWR);
                identity::by_name(seen.thread, found, &given, flags, self.began)
            }
            None => found,
        };
        let id = match (again, found) {
            (Some(id), _) => {
                let open = self.descriptors.open_file(id).clone();
                let ends_at_exec = flags.unwrap_or(0) & libc::O_CLOEXEC != 0;
                self.descriptors.open(table, descriptor, open, ends_at_exec)
            }
            (None, Some(found)) => self.open(table, descriptor, found)?,
            (None, None) => self.unknown(table, descriptor)?,
        };
        let open = self.descriptors.open_file(id);
        open.position = Some(0);
        if let Some(flags) = flags {
            open.flags = identity::open_file(flags);
        }
        let (file, kind, how) = (open.file, open.kind, open.flags);
        if flags.is_some_and(|flags| flags & libc::O_TRUNC != 0) && kind == Kind::Regular {
            self.sizes[file as usize] = Some(0);
            let pending = Pending { file: Some((file, kind, how)), ..*pending };
            self.request(seen, &pending, Access::Truncate, None, 0, 0)?;
        }
        let is_storage = matches!(kind, Kind::Regular | Kind::BlockDevice | Kind::Unknown);
        if !is_storage {
            return Ok(());
        }
        let pending = Pending { file: Some((file, kind, how)), ..*pending };
        self.request(seen, &pending, Access::Open, None, 0, 0)
    }

    pub(super) fn full_name(
        &mut self,
        seen: &Seen,
        pending: &Pending,
        which: Which,
        directory: Option<usize>,
    ) -> Option<PathBuf> {
        let name = PathBuf::from(self.called.remove(&(seen.thread, which))?);
        if name.is_absolute() {
            return Some(name);
        }
        let directory = directory.map(|index| pending.arguments[index] as i32);
        let state = self.state(seen.thread);
        if let Some(directory) = directory.filter(|&directory| directory != libc::AT_FDCWD) {
            let id = self.descriptors.get(state.table, directory)?;
            let file = self.descriptors.open_file(id).file;
            return Some(self.directories.get(&file)?.join(name));
        }
        if !self.working.contains_key(&state.process) {
            self.look_where(state.process, seen.thread);
        }
        Some(self.working.get(&state.process)?.join(name))
    }

    fn grow(&mut self, pending: &Pending, end: u64) {
        let Some((file, ..)) = pending.file else { return };
        if let Some(size) = &mut self.sizes[file as usize] {
            *size = (*size).max(end);
        }
    }

    fn transfer(
        &mut self,
        seen: &Seen,
        pending: &Pending,
        how: Transfer,
        result: i64,
    ) -> Result<()> {
        let Some((file, kind, mut open)) = pending.file else { return Ok(()) };
        let flags = how.flags.map_or(0, |index| pending.arguments[index] as i32);
        open.append |= flags & libc::RWF_APPEND != 0;
        let done = u64::try_from(result).unwrap_or(0);
        let asked = how.bytes.map_or(done, |index| pending.arguments[index]);
        // preadv2(2): -1 means the file's position.
        let given = how.offset.map(|index| pending.arguments[index]).filter(|&at| at != u64::MAX);
        let offset = if kind == Kind::Stream {
            None
        } else if given.is_some() {
            given
        } else {
            let appends = open.append && how.access == Access::Write;
            self.moved(seen.thread, pending.arguments[0] as i32, (file, appends), done)?
        };
        if let (Access::Write, Some(offset)) = (how.access, offset) {
            self.grow(pending, offset.saturating_add(done));
        }
        open.dsync |= flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
        let pending = Pending { file: Some((file, kind, open)), ..*pending };
        self.request(seen, &pending, how.access, offset, asked, result)
    }

    fn moved(
        &mut self,
        thread: i32,
        descriptor: i32,
        (file, appends): (Index, bool),
        done: u64,
    ) -> Result<Option<u64>> {
        let id = self.descriptor(thread, descriptor)?;
        let size = self.sizes[file as usize];
        let state = self.descriptors.open_file(id);
        if appends {
            state.position = size;
        }
        let at = state.position;
        state.position = at.map(|at| at + done);
        Ok(at)
    }

    /// Adds a read and a write: each has half the time, or all if the other is not storage.
    fn copy(&mut self, seen: &Seen, pending: &Pending, how: CopyCall, result: i64) -> Result<()> {
        // The program copies in another way.
        const REFUSED: [i32; 5] =
            [libc::EXDEV, libc::EINVAL, libc::EOPNOTSUPP, libc::ENOSYS, libc::EBADF];
        let (Some(from), Some(to)) = (pending.file, pending.to) else { return Ok(()) };
        if REFUSED.iter().any(|&error| result == -i64::from(error)) {
            return Ok(());
        }
        let done = u64::try_from(result).unwrap_or(0);
        let duration = seen.at.saturating_sub(pending.at);
        let both = from.1 != Kind::Stream && to.1 != Kind::Stream && result > 0;
        let half = if both { duration / 2 } else { 0 };
        let sides = [
            (Access::Read, from, how.from.0, Some(how.from.1), pending.at),
            (Access::Write, to, how.to.0, how.to.1, pending.at + half),
        ];
        for (access, (file, kind, open), descriptor, pointer, at) in sides {
            let writes = access == Access::Write;
            if kind == Kind::Stream || (writes && !both && from.1 != Kind::Stream) {
                continue;
            }
            let is_given = pointer.is_some_and(|pointer| pending.arguments[pointer] != 0);
            let offset = match is_given {
                // Only its address is known.
                true => None,
                false => {
                    let descriptor = pending.arguments[descriptor] as i32;
                    self.moved(seen.thread, descriptor, (file, open.append && writes), done)?
                }
            };
            let pending = Pending { at, file: Some((file, kind, open)), ..*pending };
            if let (true, Some(offset)) = (writes, offset) {
                self.grow(&pending, offset.saturating_add(done));
            }
            let until = if writes || !both { seen.at } else { pending.at + half };
            let seen = Seen { at: until, ..*seen };
            self.request(&seen, &pending, access, offset, done, result)?;
        }
        Ok(())
    }

    fn request(
        &mut self,
        seen: &Seen,
        pending: &Pending,
        access: Access,
        offset: Option<u64>,
        bytes: u64,
        result: i64,
    ) -> Result<()> {
        let Some((file, _, open)) = pending.file else { return Ok(()) };
        self.add(Traced {
            duration: Some(seen.at.saturating_sub(pending.at)),
            thread: Some(seen.thread),
            offset,
            bytes,
            result: Some(result),
            open,
            ..Traced::new(pending.at, file, access, Interface::SystemCall)
        })
    }

    fn map(&mut self, thread: i32, pending: &Pending, address: u64) -> Result<()> {
        let [_, bytes, protection, flags, descriptor, offset] = pending.arguments;
        let is_shared = flags as i32 & libc::MAP_SHARED != 0;
        if descriptor as i32 >= 0 && is_shared && self.mappings.len() < MAX_MAPPINGS {
            let (file, kind, _) = self.target(thread, descriptor as i32)?;
            let writes = protection as i32 & libc::PROT_WRITE != 0;
            if writes && kind == Kind::Regular && bytes >= LARGE_MAPPING {
                *self.unseen.entry("writes through a memory mapping").or_default() += 1;
            }
            let process = self.state(thread).process;
            self.mappings.insert((process, address), (bytes, file, offset));
        }
        Ok(())
    }

    fn mapped(&mut self, thread: i32, address: u64) -> Option<(Index, Kind, OpenFile)> {
        let process = self.state(thread).process;
        let (&(_, start), &(bytes, file, _)) =
            self.mappings.range((process, 0)..=(process, address)).next_back()?;
        (address - start < bytes).then_some((file, Kind::Regular, OpenFile::default()))
    }
}
