//! The journal is on stable storage before any change, so that a later process can restore
//! settings. If its lock is free, a killed program left it.

use super::entry::{Entry, Outcome};
use super::known;
use super::lock::{Holder, Lock, LockError};
use crate::linux::facts::Roots;
use files::Input;
use files::{Directory, PRIVATE};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub const STATE_VARIABLE: &str = "HALFPOWER_STATE";

/// For root's programs (hier(7)).
const ROOTS_STATE: &str = "/var/lib/halfpower";

const JOURNAL: &str = "tune.journal";
const LOCK: &str = "tune.lock";

const UNFINISHED: &str = "tune.journal.new";

const VERSION: u32 = 1;

const TEXT: Input = Input::new("a journal of settings", 4 << 20).rewritten();

/// Another command may be restoring the settings.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("another halfpower tune is running ({} is locked by {holder}); wait for its end", path.display())]
    Busy { path: PathBuf, holder: Holder },
    #[error("{0}; name another value with --knob NAME=VALUE")]
    Value(String),
    #[error(
        "no directory for the journal of settings: set HOME, or name a directory with {STATE_VARIABLE}"
    )]
    NoPlace,
    #[error("cannot {doing} {}: {source}; name another directory with {STATE_VARIABLE}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{}: {why}; inspect it, and remove it if no setting needs to be restored", path.display())]
    Unusable { path: PathBuf, why: String },
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_path_buf();
    move |source| JournalError::Io { doing, path, source }
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    version: u32,
    pid: u32,
    boot_id: String,
    entries: Vec<Entry>,
}

impl Document {
    fn parse(text: impl io::Read) -> Result<Document, String> {
        let document: Document = serde_json::from_reader(text)
            .map_err(|error| format!("not a journal of settings: {error}"))?;
        if document.version != VERSION {
            return Err(format!(
                "a journal of version {}, but this halfpower reads version {VERSION}",
                document.version
            ));
        }
        document.entries.iter().try_for_each(known::check).map(|()| document)
    }
}

/// Refuses another version, and paths that are not settings.
pub fn parse(text: &[u8]) -> Result<Vec<Entry>, String> {
    Document::parse(text).map(|document| document.entries)
}

/// This process holds its lock.
#[derive(Debug)]
pub struct Journal {
    directory: Arc<Directory>,
    // Held as long as the journal.
    _lock: Lock,
}

/// [`STATE_VARIABLE`]; for root `/var/lib/halfpower`; otherwise `halfpower` in `$XDG_STATE_HOME` or
/// `~/.local/state`.
pub fn state_directory() -> Option<PathBuf> {
    if let Some(directory) = named(STATE_VARIABLE) {
        return Some(directory.into());
    }
    if rustix::process::geteuid().is_root() {
        return Some(ROOTS_STATE.into());
    }
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let state = named("XDG_STATE_HOME").map(PathBuf::from).and_then(absolute);
    let home = || {
        named("HOME").map(PathBuf::from).and_then(absolute).map(|home| home.join(".local/state"))
    };
    Some(state.or_else(home)?.join("halfpower"))
}

fn named(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn boot_id(roots: &Roots) -> String {
    fs::read_to_string(roots.resolve(Path::new("/proc/sys/kernel/random/boot_id")))
        .unwrap_or_default()
        .trim()
        .into()
}

impl Journal {
    /// Restores what a killed program left, with sentences in `reported`; fails if another program
    /// holds the lock.
    pub fn begin(
        directory: &Path,
        roots: &Roots,
        reported: &mut Vec<String>,
    ) -> Result<Journal, JournalError> {
        let (opened, made) =
            Directory::make(directory, PRIVATE).map_err(failed("make the directory", directory))?;
        if !made.is_empty() || named(STATE_VARIABLE).is_none() {
            // Regardless of the umask or an earlier version.
            opened.set_mode(PRIVATE).map_err(failed("set the permissions of", directory))?;
        }
        let journal = Journal::locked(opened)?;
        if journal.is_there() {
            reported.extend(journal.recover(roots)?);
            if journal.is_there() {
                let why = "settings of an earlier run could not be put back".into();
                return Err(JournalError::Unusable { path: journal.path(), why });
            }
        }
        Ok(journal)
    }

    fn locked(directory: Arc<Directory>) -> Result<Journal, JournalError> {
        let path = directory.path().join(LOCK);
        let metadata = directory.metadata().map_err(failed("look at", directory.path()))?;
        if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
            let why = "other users may write to this directory and could change the journal; name another with";
            return Err(JournalError::Unusable {
                path: directory.path().into(),
                why: format!("{why} {STATE_VARIABLE}"),
            });
        }
        match Lock::take(&directory, OsStr::new(LOCK)) {
            Ok(lock) => Ok(Journal { directory, _lock: lock }),
            Err(LockError::Held(holder)) => Err(JournalError::Busy { path, holder }),
            Err(LockError::Io(error)) => Err(failed("lock", &path)(error)),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(JOURNAL)
    }

    fn is_there(&self) -> bool {
        is_there(&self.directory, JOURNAL)
    }

    /// Writes atomically, to stable storage.
    pub fn write(&self, roots: &Roots, entries: &[Entry]) -> Result<(), JournalError> {
        let path = self.path();
        let document = Document {
            version: VERSION,
            pid: std::process::id(),
            boot_id: boot_id(roots),
            entries: entries.to_vec(),
        };
        let text = serde_json::to_vec_pretty(&document)
            .map_err(io::Error::other)
            .map_err(failed("write", &path))?;
        let (new, named) = (self.directory.path().join(UNFINISHED), OsStr::new(UNFINISHED));
        let _ = self.directory.remove(named);
        let mut file = self.directory.create(named, 0o600).map_err(failed("make", &new))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed("write", &new))?;
        self.directory.rename(named, OsStr::new(JOURNAL)).map_err(failed("write", &path))?;
        self.sync_directory()
    }

    /// Requires that all entries were restored.
    pub fn remove(&self) -> Result<(), JournalError> {
        let path = self.path();
        match self.directory.remove(OsStr::new(JOURNAL)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path)(error))
            }
            _ => self.sync_directory(),
        }
    }

    fn sync_directory(&self) -> Result<(), JournalError> {
        self.directory.sync().map_err(failed("write", self.directory.path()))
    }

    fn recover(&self, roots: &Roots) -> Result<Vec<String>, JournalError> {
        let document = read(&self.directory)?;
        let same_boot = document.boot_id == boot_id(roots);
        let entries: Vec<Entry> =
            document.entries.into_iter().filter(|entry| same_boot || entry.persistent).collect();
        let put_back = put_back(roots, &entries);
        let mut reported = Vec::new();
        if put_back.changed > 0 {
            reported.push(format!(
                "put back {} {} that a killed tune (process {}) had left changed",
                put_back.changed,
                if put_back.changed == 1 { "setting" } else { "settings" },
                document.pid
            ));
        }
        reported.extend(put_back.reported);
        if put_back.failed.is_empty() {
            self.remove()?
        } else {
            self.write(roots, &put_back.failed)?
        }
        Ok(reported)
    }
}

fn is_there(directory: &Directory, name: &str) -> bool {
    directory.look(OsStr::new(name)).is_ok()
}

fn read(directory: &Directory) -> Result<Document, JournalError> {
    let path = directory.path().join(JOURNAL);
    let unusable = |why: String| JournalError::Unusable { path: path.clone(), why };
    let file =
        directory.open_regular(OsStr::new(JOURNAL)).map_err(|error| unusable(error.to_string()))?;
    let metadata = file.metadata().map_err(failed("read", &path))?;
    // It is applied with our privileges, so no other user may have written it.
    if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Err(unusable("another user may have written this journal of settings".into()));
    }
    Document::parse(io::BufReader::new(TEXT.bounded(file))).map_err(unusable)
}

#[derive(Debug, Default)]
pub struct PutBack {
    pub changed: usize,
    /// Sentences about settings that were not restored.
    pub reported: Vec<String>,
    pub failed: Vec<Entry>,
}

/// Keeps their order.
pub fn put_back(roots: &Roots, entries: &[Entry]) -> PutBack {
    let mut all = PutBack::default();
    for entry in entries {
        let outcome = entry.put_back(roots);
        all.changed += usize::from(outcome == Outcome::PutBack);
        all.reported.extend(entry.message(&outcome));
        if matches!(outcome, Outcome::Failed { .. }) {
            all.failed.push(entry.clone());
        }
    }
    all
}

/// Every command calls it, to restore what a killed tune left.
pub fn recover() -> Vec<String> {
    state_directory().map_or_else(Vec::new, |own| recover_in(&own, &Roots::default()))
}

pub fn recover_in(directory: &Path, roots: &Roots) -> Vec<String> {
    let directory = match Directory::open(directory) {
        Ok(opened) => Arc::new(opened),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Vec::new();
        }
        Err(error) => {
            return vec![failed("look for a journal of settings in", directory)(error).to_string()];
        }
    };
    let mut left = TRIES;
    let journal = loop {
        // Another command may have restored them in the meantime.
        if !is_there(&directory, JOURNAL) && !is_there(&directory, UNFINISHED) {
            return Vec::new();
        }
        left -= 1;
        match (Journal::locked(directory.clone()), read(&directory)) {
            (Ok(journal), _) => break journal,
            (Err(JournalError::Busy { holder, .. }), Ok(document)) if holder.is(document.pid) => {
                return Vec::new();
            }
            (Err(JournalError::Busy { .. }), _) if left > 0 => std::thread::sleep(PAUSE),
            (Err(JournalError::Busy { path, holder }), document) => {
                return vec![unlocked(&path, &holder, document)];
            }
            (Err(error), _) => return vec![error.to_string()],
        }
    };
    // Killed before the journal was complete: nothing was set yet. If the removal fails, it does no
    // harm.
    let _ = directory.remove(OsStr::new(UNFINISHED));
    if !journal.is_there() {
        return Vec::new();
    }
    journal.recover(roots).unwrap_or_else(|error| vec![error.to_string()])
}

fn unlocked(lock: &Path, holder: &Holder, document: Result<Document, JournalError>) -> String {
    let entries = document.map_or_else(|_| Vec::new(), |document| document.entries);
    let mut names: Vec<String> =
        entries.iter().map(|entry| format!("{} of {}", entry.knob, entry.of)).collect();
    names.dedup();
    format!(
        "settings that a killed tune left changed cannot be put back: {} is locked by {holder}, which is not that tune; \
         changed may be {}; end that process, and any halfpower command puts them back",
        lock.display(),
        if names.is_empty() { "those in the journal".into() } else { names.join("; ") }
    )
}
