//! Files that a program makes longer.

use machine::Op;

/// Whether only appends make a file longer and each thread reads only its own, so that a replay can
/// read them.
#[derive(Default)]
pub(super) struct Growth {
    is_broken: bool,
    appender: Option<Option<u32>>,
}

impl Growth {
    pub(super) fn can_repeat(&self) -> bool {
        self.appender.is_some() && !self.is_broken
    }

    pub(super) fn see(
        &mut self,
        thread: Option<u32>,
        op: Op,
        place: std::ops::Range<u64>,
        end: u64,
    ) {
        if op == Op::Write && place.end > end {
            self.is_broken |=
                place.start > end || self.appender.is_some_and(|other| other != thread);
            self.appender = Some(thread);
        } else if op == Op::Read && self.appender.is_some_and(|other| other != thread) {
            self.is_broken = true;
        }
    }
}
