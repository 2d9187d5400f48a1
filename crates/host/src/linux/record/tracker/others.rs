//! Requests that are not system calls: io_uring, mappings, and what reaches devices.

use super::Tracker;
use crate::linux::record::devices::DeviceRequest;
use crate::linux::record::identity;
use crate::linux::record::rings::RingRequest;
use crate::linux::record::seen::Seen;
use apptrace::{Access, Index, Interface, Kind, OpenFile, Request, Result, TracedFile};
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
        let thread = self.thread_index(pending.thread)?;
        let is_transfer = matches!(pending.access, Access::Read | Access::Write);
        self.order.add(Request {
            at_ns: self.since_start(pending.at),
            duration_ns: Some(at.saturating_sub(pending.at)),
            thread: Some(thread),
            file,
            access: pending.access,
            interface: Interface::IoUring,
            offset: None,
            // Only the result shows it.
            bytes: if is_transfer { u64::try_from(result).unwrap_or(0) } else { 0 },
            result: Some(result),
            open,
        });
        Ok(())
    }

    /// Requests of followed threads, and those of kernel threads: write-back, and what a throttle
    /// delays. Those of other programs are left out.
    pub(super) fn device_request(&mut self, done: DeviceRequest) -> Result<()> {
        let is_own = self.is_followed(done.thread);
        let number = rustix::fs::makedev(done.device.0, done.device.1);
        let is_wanted = is_own
            || self.only_devices
            || (self.holds_files(number) && is_kernel_thread(done.thread));
        if !is_wanted {
            return Ok(());
        }
        let thread = if is_own { Some(self.thread_index(done.thread)?) } else { None };
        let name = identity::device_name(done.device);
        let file = TracedFile { name: name.clone(), kind: Kind::BlockDevice, size_bytes: None };
        let file = self.file((0, number, name), file)?;
        self.order.add(Request {
            at_ns: self.since_start(done.at),
            duration_ns: done.duration,
            thread,
            file,
            access: done.access,
            interface: Interface::Block,
            offset: Some(done.offset),
            bytes: done.bytes,
            result: i64::try_from(done.bytes).ok(),
            open: OpenFile::default(),
        });
        Ok(())
    }

    fn holds_files(&self, device: u64) -> bool {
        self.file_systems.contains(&device)
    }

    /// A file of the recording lost a name.
    pub(super) fn unlinked(
        &mut self,
        seen: &Seen,
        (device, inode): (u32, u64),
        result: i32,
    ) -> Result<()> {
        let Some(file) = self.file_of(device, inode) else { return Ok(()) };
        let thread = self.thread_index(seen.thread)?;
        self.order.add(Request {
            at_ns: self.since_start(seen.at),
            duration_ns: None,
            thread: Some(thread),
            file,
            access: Access::Unlink,
            interface: Interface::SystemCall,
            offset: None,
            bytes: 0,
            result: Some(result.into()),
            open: OpenFile::default(),
        });
        Ok(())
    }

    /// A file by the kernel's own form of its device's number.
    fn file_of(&self, device: u32, inode: u64) -> Option<Index> {
        let device = rustix::fs::makedev(device >> 20, device & 0xf_ffff);
        self.inodes.get(&(device, inode)).copied()
    }

    /// Faults of files that the program opened; its own code and libraries are left out with those
    /// that it did not.
    pub(super) fn fault(&mut self, seen: &Seen, device: u32, inode: u64, page: u64) -> Result<()> {
        let Some(file) = self.file_of(device, inode) else { return Ok(()) };
        let thread = self.thread_index(seen.thread)?;
        self.order.add(Request {
            at_ns: self.since_start(seen.at),
            duration_ns: None,
            thread: Some(thread),
            file,
            access: Access::Read,
            interface: Interface::Mapping,
            offset: Some(page << 12),
            bytes: 4096,
            result: None,
            open: OpenFile::default(),
        });
        Ok(())
    }
}

/// A kernel thread has no command line.
fn is_kernel_thread(thread: i32) -> bool {
    thread == 0
        || std::fs::read(format!("/proc/{thread}/cmdline")).is_ok_and(|words| words.is_empty())
}
