//! Syncs between writes.

use super::jobfile::cut;
use super::value::{Reason, number};
use machine::{Stability, Writeback};

/// Writes between syncs; 0: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncEvery {
    /// `fsync`.
    pub file: u64,
    /// `fdatasync`.
    pub data: u64,
    /// `sync_file_range`.
    pub range: u64,
    pub how: Writeback,
}

impl SyncEvery {
    pub(crate) fn any(self) -> bool {
        self != SyncEvery::default()
    }

    /// The sync after this number of writes. As in fio, a full sync replaces a data sync.
    pub(crate) fn after(self, writes: u64) -> Option<Stability> {
        let asks = |every: u64| every > 0 && writes.is_multiple_of(every);
        match () {
            () if asks(self.file) => Some(Stability::File),
            () if asks(self.data) => Some(Stability::Data),
            // Of nothing yet.
            () => {
                asks(self.range).then_some(Stability::Moved { how: self.how, offset: 0, bytes: 0 })
            }
        }
    }

    /// `wait_before,write:8`; as in fio, without a number after each write.
    pub(crate) fn set_range(&mut self, text: &str) -> Result<(), Reason> {
        if text == "0" {
            self.range = 0;
            return Ok(());
        }
        let (words, every) = text.split_once(':').unwrap_or((text, "1"));
        let mut how = Writeback::default();
        for word in words.split(',').map(str::trim) {
            match word {
                "wait_before" => how.wait_before = true,
                "write" => how.write = true,
                "wait_after" => how.wait_after = true,
                _ => {
                    return Err(format!(
                        "'{}' is not wait_before, write or wait_after; write write:8",
                        cut(word)
                    ));
                }
            }
        }
        (self.range, self.how) = (number(every, 0, u64::from(u32::MAX))?, how);
        Ok(())
    }
}
