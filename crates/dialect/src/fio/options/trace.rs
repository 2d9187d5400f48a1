//! fio's `write_iolog` and `read_iolog`.

use super::jobfile::cut;
use super::value::Reason;
use apptrace::foreign::fio_log::{self, Log};
use files::Input;
use machine::units::show_size;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use apptrace::foreign::fio_log::{Action, Entry};

/// Traces are held in memory.
const MAX_ENTRIES: usize = 50_000_000;

const TRACE: Input = Input::new("a trace", 16 << 30);

const MAX_FILES: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    pub files: Vec<String>,
    pub entries: Vec<Entry>,
    /// Has times: version 3, or `wait` lines.
    pub timed: bool,
}

impl Trace {
    pub(crate) fn load(path: &str) -> Result<Trace, Reason> {
        let cannot = |error: std::io::Error| format!("cannot read {}: {error}", cut(path));
        Trace::read(BufReader::new(TRACE.open(Path::new(path)).map_err(cannot)?))
    }

    pub fn read(text: impl BufRead) -> Result<Trace, Reason> {
        let mut log = Log::new(text).map_err(|error| error.to_string())?;
        let mut entries = Vec::new();
        while let Some(entry) = log.next_entry().map_err(|error| error.to_string())? {
            let wrong = |why: &str| format!("line {}: {why}", log.line());
            let max = workload::MAX_REQUEST_BYTES;
            // A trim transfers no data.
            if matches!(entry.action, Action::Request(_)) && entry.len > max {
                let (len, max) = (entry.len, show_size(max.into()));
                return Err(wrong(&format!("a request of {len} B is not from 1 B to {max}")));
            }
            if log.files().len() > MAX_FILES {
                return Err(wrong(&format!("it has more than {MAX_FILES} files")));
            }
            if entries.len() == MAX_ENTRIES {
                return Err(format!(
                    "it has more than {MAX_ENTRIES} requests; replay a part of it"
                ));
            }
            entries.push(entry);
        }
        if entries.is_empty() {
            return Err("it holds no request".into());
        }
        Ok(Trace { timed: log.timed(), files: log.files().to_vec(), entries })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    pub trace: Option<Arc<Trace>>,
    /// Ignores recorded times.
    pub no_stall: bool,
    /// Of the recorded rate.
    pub time_percent: u64,
    pub redirect: Option<String>,
    /// Rounds offsets down; 0: does not.
    pub align: u64,
    /// Divides offsets; 0: does not.
    pub scale: u64,
    /// Reads, writes, trims, syncs.
    pub skip: [bool; 4],
}

impl Default for Replay {
    fn default() -> Self {
        Replay {
            trace: None,
            no_stall: false,
            time_percent: 100,
            redirect: None,
            align: 0,
            scale: 0,
            skip: [false; 4],
        }
    }
}

impl Replay {
    pub(crate) fn trims(&self) -> bool {
        let trims =
            |trace: &Arc<Trace>| trace.entries.iter().any(|entry| entry.action == Action::Trim);
        !self.skip[2] && self.trace.as_ref().is_some_and(trims)
    }

    pub(crate) fn settled(&self) -> Option<Arc<Trace>> {
        let trace = self.trace.as_ref()?;
        let wanted = |entry: &&Entry| match entry.action {
            Action::Request(op) => !self.skip[op as usize],
            Action::Trim => !self.skip[2],
            Action::Sync(_) => !self.skip[3],
        };
        let one = |entry: &Entry| {
            let at_ns = u128::from(entry.at_ns) * 100 / u128::from(self.time_percent.max(1));
            let offset = entry.offset / self.scale.max(1);
            Entry {
                at_ns: if self.no_stall { 0 } else { u64::try_from(at_ns).unwrap_or(u64::MAX) },
                offset: offset - if self.align > 0 { offset % self.align } else { 0 },
                file: if self.redirect.is_some() { 0 } else { entry.file },
                ..*entry
            }
        };
        Some(Arc::new(Trace {
            files: self
                .redirect
                .as_ref()
                .map_or_else(|| trace.files.clone(), |path| vec![path.clone()]),
            entries: trace.entries.iter().filter(wanted).map(one).collect(),
            timed: trace.timed && !self.no_stall,
        }))
    }
}

pub(crate) fn text(entries: &mut [(PathBuf, Entry)]) -> String {
    entries.sort_by_key(|(_, entry)| entry.at_ns);
    let mut files: Vec<&Path> = Vec::new();
    let mut numbered = Vec::with_capacity(entries.len());
    for (path, entry) in entries.iter() {
        let file = files.iter().position(|known| known == path).unwrap_or_else(|| {
            files.push(path);
            files.len() - 1
        });
        numbered.push(Entry { file: file as u32, ..*entry });
    }
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    fio_log::text(&names.iter().map(String::as_str).collect::<Vec<_>>(), &numbered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Op, Stability};
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Trace, Reason> {
        Trace::read(text.as_bytes())
    }

    #[test]
    fn both_versions_parse() {
        // As Debian's fio 3.33 writes it.
        let three = "fio version 3 iolog\n2 /tmp/d add\n190 /tmp/d open\n198 /tmp/d read 0 4096\n657 /tmp/d write 28672 8192\n660 /tmp/d sync 0 0\n1594 /tmp/d close\n";
        let trace = read(three).unwrap();
        assert_eq!(
            (trace.files.as_slice(), trace.entries.len(), trace.timed),
            (&["/tmp/d".to_string()][..], 3, true)
        );
        let write = Entry {
            at_ns: 657_000,
            action: Action::Request(Op::Write),
            file: 0,
            offset: 28672,
            len: 8192,
        };
        assert_eq!(
            (trace.entries[1], trace.entries[2].action),
            (write, Action::Sync(Stability::File))
        );
        let two = "fio version 2 iolog\n/a add\n/a open\n/a read 0 512\n/a wait 250 0\n/a datasync\n/a trim 0 4096\n";
        let trace = read(two).unwrap();
        assert_eq!((trace.entries[0].at_ns, trace.entries[1].at_ns), (0, 250_000));
        assert_eq!(trace.entries[2].action, Action::Trim);
        let large = "fio version 2 iolog\n/a add\n/a trim 0 2147483648\n/a write 0 2147483648\n";
        assert!(read(large).unwrap_err().contains("line 4"), "only a write needs a buffer");
    }

    #[test]
    fn invalid_traces_are_refused_with_the_line() {
        for (text, why) in [
            ("", "first line"),
            ("fio version 1 iolog\n", "first line"),
            ("fio version 3 iolog\n", "no request"),
            ("fio version 3 iolog\n0 /a read 0 512\n", "line 2: the file '/a' was not added"),
            ("fio version 3 iolog\n0 /a add\n0 /a read 0\n", "line 3: 'read' with 1 numbers"),
            ("fio version 3 iolog\n0 /a add\nx /a read 0 512\n", "line 3: 'x' is not a number"),
            ("fio version 3 iolog\n0 /a add\n0 /a read 0 0\n", "a request of 0 B"),
            ("fio version 3 iolog\n0 /a add\n0 /a wait 5 0\n", "not an action"),
            (
                "fio version 3 iolog\n0 /a add\n0 /a read 18446744073709551615 512\n",
                "beyond 64 bits",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }

    #[test]
    fn replay_options_scale_redirect_and_skip() {
        let text = "fio version 3 iolog\n0 /a add\n0 /b add\n0 /a read 5000 512\n100 /b write 8192 512\n200 /b trim 0 512\n300 /a sync 0 0\n";
        let replay = Replay { trace: Some(Arc::new(read(text).unwrap())), ..Replay::default() };
        assert!(
            replay.trims()
                && !Replay { skip: [false, false, true, false], ..replay.clone() }.trims()
        );
        let changed = Replay {
            time_percent: 200,
            redirect: Some("/c".into()),
            align: 4096,
            skip: [false, false, true, true],
            ..replay.clone()
        };
        let trace = changed.settled().unwrap();
        let shown: Vec<(u64, u64, u32)> =
            trace.entries.iter().map(|entry| (entry.at_ns, entry.offset, entry.file)).collect();
        assert_eq!(
            (trace.files.as_slice(), shown),
            (&["/c".to_string()][..], vec![(0, 4096, 0), (50_000, 8192, 0)])
        );
        let halved =
            Replay { scale: 2, no_stall: true, skip: [true, false, true, false], ..replay }
                .settled()
                .unwrap();
        assert_eq!(
            (halved.entries[0].offset, halved.entries.len(), halved.timed),
            (4096, 2, false)
        );
    }

    proptest! {
        #[test]
        fn traces_round_trip(
            entries in prop::collection::vec((0u64..1 << 40, 0u8..4, 0u64..1 << 50, 1u32..1 << 30), 1..50)
        ) {
            let entry = |&(at_us, action, offset, len): &(u64, u8, u64, u32)| {
                let action = [
                    Action::Request(Op::Read),
                    Action::Request(Op::Write),
                    Action::Sync(Stability::File),
                    Action::Sync(Stability::Data),
                ][usize::from(action)];
                let (offset, len) = if matches!(action, Action::Sync(_)) { (0, 0) } else { (offset, len) };
                (PathBuf::from("/some/file"), Entry { at_ns: at_us * 1000, action, file: 0, offset, len })
            };
            let mut written: Vec<(PathBuf, Entry)> = entries.iter().map(entry).collect();
            let read = Trace::read(text(&mut written).as_bytes()).unwrap();
            let sorted: Vec<Entry> = written.into_iter().map(|(_, entry)| entry).collect();
            prop_assert_eq!(read.entries, sorted);
        }

        #[test]
        fn no_text_panics(text in "(fio version [23] iolog\n)?([0-9]{0,3} ?/a (add|read|write|wait|trim|sync)? ?[0-9]{0,20} ?[0-9]{0,20}\n){0,5}") {
            let _ = Trace::read(text.as_bytes());
        }
    }
}
