//! System calls: what they ask, and what they change.

use super::{Pending, Tracker};
use crate::linux::record::calls::{Call, Transfer};
use crate::linux::record::identity;
use crate::linux::record::seen::Seen;
use apptrace::{Access, Index, Interface, Kind, OpenFile, Request, Result};
use std::io::Write;

const MAX_MAPPINGS: usize = 1 << 16;

impl<W: Write> Tracker<W> {
    pub(super) fn enter(&mut self, seen: &Seen, call: Call, arguments: [u64; 6]) -> Result<()> {
        let descriptor = arguments[0] as i32;
        let file = match call {
            Call::Transfer(_)
            | Call::Sync(_)
            | Call::SyncRange
            | Call::Allocate
            | Call::Truncate => {
                let id = self.descriptor(seen.thread, descriptor)?;
                let open = self.descriptors.open_file(id);
                Some((open.file, open.kind, open.flags))
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
        self.pending.insert(seen.thread, Pending { at: seen.at, call, arguments, file });
        Ok(())
    }

    pub(super) fn leave(&mut self, seen: &Seen, pending: Pending, result: i64) -> Result<()> {
        let [first, second, third, fourth, ..] = pending.arguments;
        match pending.call {
            Call::Transfer(how) => self.transfer(seen, &pending, how, result),
            Call::Sync(access) => self.request(seen, &pending, access, None, 0, result),
            Call::SyncSystem => {
                let file = self.named_file("every file system", Kind::Unknown)?;
                let file = Some((file, Kind::Unknown, OpenFile::default()));
                let pending = Pending { file, ..pending };
                self.request(seen, &pending, Access::SyncSystem, None, 0, result)
            }
            Call::SyncRange => {
                self.request(seen, &pending, Access::SyncRange, Some(second), third, result)
            }
            Call::SyncMapping => {
                self.request(seen, &pending, Access::SyncData, None, second, result)
            }
            Call::Allocate => {
                if result == 0 {
                    self.grow(&pending, third + fourth);
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
            Call::Open(flags) => self.opened(seen, &pending, flags, result as i32),
            Call::CloseRange => {
                let table = self.state(seen.thread).table;
                let last = i32::try_from(second).unwrap_or(i32::MAX);
                self.descriptors.close(table, first as i32..=last);
                Ok(())
            }
            Call::Duplicate => self.duplicate(seen, first as i32, result as i32),
            Call::Control => match second as i32 {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
                    self.duplicate(seen, first as i32, result as i32)
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
            Call::Close => Ok(()),
        }
    }

    fn duplicate(&mut self, seen: &Seen, from: i32, to: i32) -> Result<()> {
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
        self.descriptors.duplicate(table, from, to);
        Ok(())
    }

    fn opened(
        &mut self,
        seen: &Seen,
        pending: &Pending,
        flags: Option<usize>,
        descriptor: i32,
    ) -> Result<()> {
        let table = self.state(seen.thread).table;
        let id = match self.early.take(seen) {
            Some(found) => self.open(table, descriptor, found)?,
            None => self.unknown(table, descriptor)?,
        };
        let open = self.descriptors.open_file(id);
        open.position = Some(0);
        let flags = flags.map(|index| pending.arguments[index] as i32);
        if let Some(flags) = flags {
            open.flags = identity::open_file(flags);
        }
        let (file, kind, how) = (open.file, open.kind, open.flags);
        if flags.is_some_and(|flags| flags & libc::O_TRUNC != 0) && kind == Kind::Regular {
            self.sizes[file as usize] = Some(0);
        }
        let is_storage = matches!(kind, Kind::Regular | Kind::BlockDevice | Kind::Unknown);
        if !is_storage {
            return Ok(());
        }
        let pending = Pending { file: Some((file, kind, how)), ..*pending };
        self.request(seen, &pending, Access::Open, None, 0, 0)
    }

    /// A file has at least these bytes now.
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
        let done = u64::try_from(result).unwrap_or(0);
        let asked = how.bytes.map_or(done, |index| pending.arguments[index]);
        // preadv2(2): -1 means the file's position.
        let given = how.offset.map(|index| pending.arguments[index]).filter(|&at| at != u64::MAX);
        let offset = if kind == Kind::Stream {
            None
        } else if given.is_some() {
            given
        } else {
            let id = self.descriptor(seen.thread, pending.arguments[0] as i32)?;
            let size = self.sizes[file as usize];
            let state = self.descriptors.open_file(id);
            if open.append && how.access == Access::Write {
                state.position = size;
            }
            let at = state.position;
            state.position = at.map(|at| at + done);
            at
        };
        if let (Access::Write, Some(offset)) = (how.access, offset) {
            self.grow(pending, offset.saturating_add(done));
        }
        let flags = how.flags.map_or(0, |index| pending.arguments[index] as i32);
        open.dsync |= flags & (libc::RWF_DSYNC | libc::RWF_SYNC) != 0;
        let pending = Pending { file: Some((file, kind, open)), ..*pending };
        self.request(seen, &pending, how.access, offset, asked, result)
    }

    /// Adds a request that ends now.
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
        let thread = self.thread_index(seen.thread)?;
        self.order.add(Request {
            at_ns: self.since_start(pending.at),
            duration_ns: Some(seen.at.saturating_sub(pending.at)),
            thread: Some(thread),
            file,
            access,
            interface: Interface::SystemCall,
            offset,
            bytes,
            result: Some(result),
            open,
        });
        Ok(())
    }

    fn map(&mut self, thread: i32, pending: &Pending, address: u64) -> Result<()> {
        let [_, bytes, _, flags, descriptor, offset] = pending.arguments;
        let is_shared = flags as i32 & libc::MAP_SHARED != 0;
        if descriptor as i32 >= 0 && is_shared && self.mappings.len() < MAX_MAPPINGS {
            let id = self.descriptor(thread, descriptor as i32)?;
            let file = self.descriptors.open_file(id).file;
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
