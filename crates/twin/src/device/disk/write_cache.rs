//! The write cache between runs.

use super::{Disk, Media, MediaWork};
use machine::Nanos;

impl Disk {
    /// Writes cached data until `end`, at which the clock starts again at zero. What is left stays
    /// in the cache.
    pub(super) fn write_back(&mut self, end: Nanos) {
        let mut now = self.media_end;
        if let Media::Busy(_, until) = self.media {
            now = until;
        }
        self.media = Media::Free;
        // A run that failed leaves commands that nothing waits for.
        self.pending.retain(|work| work.write && work.command.is_none());
        self.write_used = self.pending.iter().map(MediaWork::bytes).sum();
        while now < end
            && let Some(first) = self.pending.iter().map(|work| work.since).min()
        {
            now = now.max(first);
            let Some(work) = self.pick(now) else { break };
            now = self.begin_write(&work, now);
            self.give_room(work.bytes());
        }
        self.writes_until = now.saturating_sub(end);
        self.pending.iter_mut().for_each(|work| work.since = 0);
        self.media_end = self.writes_until;
        self.goes_on = !self.pending.is_empty();
        if self.pending.is_empty() {
            (self.head_lba, self.media_end) = (0, 0);
            self.geometry.turn_to(self.phase);
        } else {
            // The platter turns on, so that the next write follows the last one.
            self.geometry.turn_to(self.geometry.phase() + end);
        }
    }
}
