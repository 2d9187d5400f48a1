//! Of io_uring the kernel shows operation, result, and file unless registered; never the offset.

use apptrace::{Access, Index};
use machine::Nanos;
use std::collections::HashMap;

const MAX_PENDING: usize = 1 << 16;

#[derive(Debug, Clone, Copy)]
pub(super) struct RingRequest {
    pub(super) at: Nanos,
    pub(super) thread: i32,
    pub(super) access: Access,
    pub(super) descriptor: Option<i32>,
    pub(super) file: Option<Index>,
}

/// The key is the kernel's address of the request.
#[derive(Default)]
pub(super) struct Rings(HashMap<u64, RingRequest>);

impl Rings {
    pub(super) fn submit(&mut self, at: Nanos, thread: i32, request: u64, opcode: u8) {
        let Some(access) = access(opcode) else { return };
        if self.0.len() < MAX_PENDING {
            let pending = RingRequest { at, thread, access, descriptor: None, file: None };
            self.0.insert(request, pending);
        }
    }

    pub(super) fn get(&mut self, request: u64) -> Option<&mut RingRequest> {
        self.0.get_mut(&request)
    }

    pub(super) fn done(&mut self, request: u64) -> Option<RingRequest> {
        self.0.remove(&request)
    }

    pub(super) fn first(&self) -> Option<Nanos> {
        self.0.values().map(|request| request.at).min()
    }
}

/// Numbers of data transfers and syncs (include/uapi/linux/io_uring.h).
fn access(opcode: u8) -> Option<Access> {
    Some(match opcode {
        1 | 4 | 22 => Access::Read,
        2 | 5 | 23 => Access::Write,
        3 => Access::SyncFile,
        8 => Access::SyncRange,
        17 => Access::Allocate,
        _ => return None,
    })
}
