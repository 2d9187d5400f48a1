//! Requests of io_uring, mappings and devices.

use super::{Traced, Tracker};
use crate::linux::record::devices::DeviceRequest;
use crate::linux::record::identity;
use crate::linux::record::rings::RingRequest;
use crate::linux::record::seen::Seen;
use apptrace::{Access, Index, Interface, Kind, OpenFile, Result, TracedFile};
use machine::Nanos;
use std::io::Write;

impl<W: Write> Tracker<W> {
    pub(super) fn ring_file(&mut self, request: u64, descriptor: i32) -> Result<()> {
        let Some(pending) = self.rings.get(request) else { return Ok(()) };
        let thread = pending.thread;
        let id = self.descriptor(thread, descriptor)?;
        let file = self.descriptors.open_file(id).file;
        if let Some(pending) = self.rings.get(request) {
            (pending.descriptor, pending.file) = (Some(descriptor), Some(file));
        }
        Ok(())
    }

    pub(super) fn ring_done(&mut self, at: Nanos, pending: RingRequest, result: i64) -> Result<()> {
        let file = match pending.file {
            Some(file) => file,
            None => self.named_file("registered files of io_uring", Kind::Unknown)?,
        };
        let open = match pending.descriptor {
            Some(descriptor) => {
                let id = self.descriptor(pending.thread, descriptor)?;
                self.descriptors.open_file(id).flags
            }
            None => OpenFile::default(),
        };
        let is_transfer = matches!(pending.access, Access::Read | Access::Write);
        self.add(Traced {
            duration: Some(at.saturating_sub(pending.at)),
            thread: Some(pending.thread),
            // Only the result shows it.
            bytes: if is_transfer { u64::try_from(result).unwrap_or(0) } else { 0 },
            result: Some(result),
            open,
            ..Traced::new(pending.at, file, pending.access, Interface::IoUring)
        })
    }

    pub(super) fn device_request(&mut self, done: DeviceRequest) -> Result<()> {
        let is_own = self.is_followed(done.thread);
        let number = rustix::fs::makedev(done.device.0, done.device.1);
        let is_wanted = is_own
            || self.only_devices
            || (self.holds_files(number) && is_kernel_thread(done.thread));
        if !is_wanted {
            return Ok(());
        }
        let name = identity::device_name(done.device);
        let file = TracedFile { name: name.clone(), kind: Kind::BlockDevice, size_bytes: None };
        let file = self.file((0, number, name), file)?;
        self.add(Traced {
            duration: done.duration,
            thread: is_own.then_some(done.thread),
            offset: Some(done.offset),
            bytes: done.bytes,
            result: i64::try_from(done.bytes).ok(),
            open: OpenFile { metadata: done.metadata, ..OpenFile::default() },
            ..Traced::new(done.at, file, done.access, Interface::Block)
        })
    }

    fn holds_files(&self, device: u64) -> bool {
        self.file_systems.contains(&device)
    }

    pub(super) fn unlinked(
        &mut self,
        seen: &Seen,
        (device, inode): (u32, u64),
        result: i32,
    ) -> Result<()> {
        let Some(file) = self.file_of(device, inode) else { return Ok(()) };
        self.add(Traced {
            thread: Some(seen.thread),
            result: Some(result.into()),
            ..Traced::new(seen.at, file, Access::Unlink, Interface::SystemCall)
        })
    }

    /// `device` is in the kernel's own form.
    fn file_of(&self, device: u32, inode: u64) -> Option<Index> {
        let device = rustix::fs::makedev(device >> 20, device & 0xf_ffff);
        self.inodes.get(&(device, inode)).copied()
    }

    pub(super) fn fault(&mut self, seen: &Seen, device: u32, inode: u64, page: u64) -> Result<()> {
        let Some(file) = self.file_of(device, inode) else { return Ok(()) };
        self.add(Traced {
            thread: Some(seen.thread),
            offset: Some(page << 12),
            bytes: 4096,
            ..Traced::new(seen.at, file, Access::Read, Interface::Mapping)
        })
    }
}

fn is_kernel_thread(thread: i32) -> bool {
    thread == 0
        || std::fs::read(format!("/proc/{thread}/cmdline")).is_ok_and(|words| words.is_empty())
}
