//! Requests that failed while their job went on.

use super::jobfile::cut;
use super::value::Reason;
use machine::Completion;

/// Linux's EIO.
pub(super) const IO_ERROR: i32 = 5;
/// Linux's ENOSPC and EDQUOT.
pub(super) const NO_SPACE: i32 = 28;
const OVER_QUOTA: i32 = 122;
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
    /// `ignore_error`: of reads, of writes and of verifying, in the place of those that may pass.
    pub ignored: [Errors; 3],
}

/// Numbers of the system's errors, below 192.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Errors([u64; 3]);

/// Linux's errors by name, as jobs name those of I/O.
const NAMES: [(&str, i32); 27] = [
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("EWOULDBLOCK", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("ENODEV", 19),
    ("EINVAL", 22),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("EROFS", 30),
    ("EDOM", 33),
    ("ENODATA", 61),
    ("ENOLINK", 67),
    ("EOVERFLOW", 75),
    ("EILSEQ", ILLEGAL_SEQUENCE),
    ("EOPNOTSUPP", 95),
    ("ETIMEDOUT", 110),
    ("ESTALE", 116),
    ("EREMOTEIO", 121),
    ("EDQUOT", 122),
];

impl Errors {
    /// Names or numbers with colons between them.
    fn named(text: &str) -> Result<Errors, Reason> {
        let mut errors = Errors::default();
        for word in text.split(':').map(str::trim).filter(|word| !word.is_empty()) {
            let known = NAMES.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
            let number = known.or_else(|| word.parse().ok().filter(|number| (1..192).contains(number)));
            let number = number.ok_or_else(|| {
                format!("'{}' is no error of the system's; write EIO, ENOSPC or a number below 192", cut(word))
            })?;
            errors.0[number as usize / 64] |= 1 << (number % 64);
        }
        Ok(errors)
    }

    fn has(self, number: i32) -> bool {
        (1..192).contains(&number) && self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }

    fn is_empty(self) -> bool {
        self == Errors::default()
    }
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
        Tolerated { reads, writes, verify, ignored: [Errors([0; 3]); 3] }
    }

    /// `ignore_error`: lists of reads, of writes and of verifying, with commas between them.
    pub(super) fn ignore(&mut self, text: &str) -> Result<(), Reason> {
        let lists: Vec<&str> = text.split(',').collect();
        if lists.len() > 3 {
            return Err("it has more than three lists; write those of reads, writes and verifying".into());
        }
        self.ignored = [Errors::default(); 3];
        for (errors, list) in self.ignored.iter_mut().zip(lists) {
            *errors = Errors::named(list)?;
        }
        Ok(())
    }

    /// With what is ignored among what it goes on after.
    pub(super) fn settled(self) -> Tolerated {
        let [reads, writes, verify] = self.ignored.map(|errors| !errors.is_empty());
        let verify = (self.verify || verify) && (self.ignored[2].is_empty() || self.ignored[2].has(ILLEGAL_SEQUENCE));
        Tolerated { reads: self.reads || reads, writes: self.writes || writes, verify, ignored: self.ignored }
    }

    /// Whether any is.
    pub(super) fn any(self) -> bool {
        self != Tolerated::default()
    }
}

/// The failures after which a job went on: these requests count as made, and their bytes and latencies are in no figure.
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

    /// Whether a request ended because no space is left.
    pub(super) fn is_full(completion: Completion) -> bool {
        matches!(-completion.result, NO_SPACE | OVER_QUOTA)
    }

    /// A request that ended so, where fio goes on after it: after those that are ignored, and where none is named after an error of the device,
    /// not of the program or of the space.
    pub(super) fn passing(completion: Completion, ignored: Errors) -> Option<Failures> {
        let first = -completion.result;
        let passes = if ignored.is_empty() { matches!(first, IO_ERROR | ILLEGAL_SEQUENCE) } else { ignored.has(first) };
        passes.then_some(Failures { count: 1, first })
    }
}
