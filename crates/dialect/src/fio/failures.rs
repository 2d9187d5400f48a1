//! Requests that failed while their job went on.

use machine::Completion;

/// Linux's EIO.
pub(super) const IO_ERROR: i32 = 5;
/// Linux's EILSEQ, with which fio reports data that is not what was written.
pub(super) const ILLEGAL_SEQUENCE: i32 = 84;

/// `continue_on_error`: the failures after which a job goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tolerated {
    /// Reads that failed.
    pub reads: bool,
    /// Writes that failed.
    pub writes: bool,
    /// Blocks that are not what was written.
    pub verify: bool,
}

impl Tolerated {
    /// fio's words for them.
    pub(super) const CHOICES: [(&'static str, Tolerated); 8] = [
        ("none", Tolerated::these(false, false, false)),
        ("0", Tolerated::these(false, false, false)),
        ("read", Tolerated::these(true, false, false)),
        ("write", Tolerated::these(false, true, false)),
        ("io", Tolerated::these(true, true, false)),
        ("verify", Tolerated::these(false, false, true)),
        ("all", Tolerated::these(true, true, true)),
        ("1", Tolerated::these(true, true, true)),
    ];

    const fn these(reads: bool, writes: bool, verify: bool) -> Tolerated {
        Tolerated { reads, writes, verify }
    }

    /// Whether any is.
    pub(super) fn any(self) -> bool {
        self != Tolerated::default()
    }
}

/// The failures after which a job went on: their requests are in no other figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Failures {
    /// How many.
    pub count: u64,
    /// The system's number of the first; 0: there is none.
    pub first: i32,
}

impl Failures {
    /// `count` more, the first of them with this number.
    pub(super) fn add(&mut self, other: Failures) {
        self.count += other.count;
        if self.first == 0 {
            self.first = other.first;
        }
    }

    /// A request that ended so, where fio goes on after it: after an error of the device, not of the program or of the space.
    pub(super) fn passing(completion: Completion) -> Option<Failures> {
        let first = -completion.result;
        matches!(first, IO_ERROR | ILLEGAL_SEQUENCE).then_some(Failures { count: 1, first })
    }
}
