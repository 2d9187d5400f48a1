//! Syncs between writes.

use machine::Stability;

/// Writes between syncs; 0: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncEvery {
    /// `fsync`.
    pub file: u64,
    /// `fdatasync`.
    pub data: u64,
}

impl SyncEvery {
    pub(crate) fn any(self) -> bool {
        self != SyncEvery::default()
    }

    /// What follows this number of writes. As in fio, a full sync replaces a data sync.
    pub(crate) fn after(self, writes: u64) -> Option<Stability> {
        let asks = |every: u64| every > 0 && writes.is_multiple_of(every);
        if asks(self.file) {
            Some(Stability::File)
        } else {
            asks(self.data).then_some(Stability::Data)
        }
    }
}
