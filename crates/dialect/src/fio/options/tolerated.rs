//! `continue_on_error` and `ignore_error`.

use super::jobfile::cut;
use super::value::Reason;

/// EILSEQ, which fio reports for wrong data.
pub(crate) const ILLEGAL_SEQUENCE: i32 = 84;

/// Failures that do not end a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tolerated {
    pub reads: bool,
    pub writes: bool,
    pub verify: bool,
    /// `ignore_error` of reads, writes, verification.
    pub ignored: [Errors; 3],
}

/// Error numbers below 192.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Errors([u64; 3]);

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
    fn named(text: &str) -> Result<Errors, Reason> {
        let mut errors = Errors::default();
        for word in text.split(':').map(str::trim).filter(|word| !word.is_empty()) {
            let known = NAMES.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
            let number =
                known.or_else(|| word.parse().ok().filter(|number| (1..192).contains(number)));
            let number = number.ok_or_else(|| {
                format!(
                    "'{}' is not a system error; write EIO, ENOSPC or a number below 192",
                    cut(word)
                )
            })?;
            errors.0[number as usize / 64] |= 1 << (number % 64);
        }
        Ok(errors)
    }

    pub(crate) fn has(self, number: i32) -> bool {
        (1..192).contains(&number) && self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Errors::default()
    }
}

impl Tolerated {
    pub(crate) const CHOICES: [(&'static str, Tolerated); 8] = [
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

    pub(crate) fn ignore(&mut self, text: &str) -> Result<(), Reason> {
        let lists: Vec<&str> = text.split(',').collect();
        if lists.len() > 3 {
            return Err(
                "it has more than three lists; write those of reads, writes and verifying".into()
            );
        }
        self.ignored = [Errors::default(); 3];
        for (errors, list) in self.ignored.iter_mut().zip(lists) {
            *errors = Errors::named(list)?;
        }
        Ok(())
    }

    pub(crate) fn settled(self) -> Tolerated {
        let [reads, writes, verify] = self.ignored.map(|errors| !errors.is_empty());
        let verify = (self.verify || verify)
            && (self.ignored[2].is_empty() || self.ignored[2].has(ILLEGAL_SEQUENCE));
        Tolerated {
            reads: self.reads || reads,
            writes: self.writes || writes,
            verify,
            ignored: self.ignored,
        }
    }

    pub(crate) fn any(self) -> bool {
        self != Tolerated::default()
    }
}
