//! Local directories or a simulated machine.

use crate::target::is_twin;
use host::files::HostFiles;
use machine::files::{AreaSpec, FileArea, FileError, FileId, FileSystem, FileUsage, FileWork};
use machine::{Machine, Nanos, Pause, TargetFacts};
use results::Began;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use twin::settings::split_file;
use twin::{Setup, Twin, TwinFiles};

/// All runs share one machine, chosen by the first.
pub(super) struct Places {
    host: HostFiles,
    chosen: OnceLock<Option<Simulated>>,
}

pub(crate) struct Simulated {
    name: PathBuf,
    pub(crate) files: TwinFiles,
    pub(crate) twin: Twin,
    pub(crate) began: Began,
}

pub(crate) fn setup_of(name: &Path) -> Result<Setup, FileError> {
    let text = name.to_string_lossy();
    let refused = |why: String| FileError::Refused { path: name.to_owned(), why };
    if split_file(&text).1.is_some() {
        return Err(refused(
            "this command makes files of its own; leave out what follows '#'".into(),
        ));
    }
    Setup::parse(&text).map_err(|error| refused(error.to_string()))
}

impl Simulated {
    pub(crate) fn new(name: &Path) -> Result<Simulated, FileError> {
        let setup = setup_of(name)?;
        let (files, twin) = (TwinFiles::new(&setup), Twin::new(setup));
        let began = Began::now(&twin);
        Ok(Simulated { name: name.to_owned(), files, twin, began })
    }

    pub(crate) fn facts(&self) -> TargetFacts {
        self.twin.pause(self.files.now().saturating_sub(self.twin.now()));
        self.twin.target_facts(&self.twin.volume())
    }
}

impl Places {
    pub fn new() -> Places {
        Places { host: HostFiles::new(), chosen: OnceLock::new() }
    }

    pub fn simulated(&self) -> Option<&Simulated> {
        self.chosen.get().and_then(Option::as_ref)
    }

    fn choose(&self, locations: &[PathBuf]) -> Result<Option<&Simulated>, FileError> {
        let refused = |path: &Path, why: &str| {
            Err(FileError::Refused { path: path.to_owned(), why: why.into() })
        };
        let twin = locations.iter().find(|location| is_twin(location));
        if let Some(other) = twin.and_then(|twin| locations.iter().find(|other| *other != twin)) {
            return refused(
                other,
                "a simulated machine is the only location of a run; set no other",
            );
        }
        let earlier =
            self.chosen.get().map(|chosen| chosen.as_ref().map(|simulated| &simulated.name));
        if earlier.is_some_and(|earlier| earlier != twin) {
            let place = locations.first().map_or(Path::new("."), PathBuf::as_path);
            return refused(
                place,
                "this session has run on another machine; begin a session for this one",
            );
        }
        let simulated = match (twin, earlier) {
            (Some(name), None) => Some(Simulated::new(name)?),
            _ => None,
        };
        Ok(self.chosen.get_or_init(|| simulated).as_ref())
    }
}

impl FileSystem for Places {
    type Area = Area;

    fn now(&self) -> Nanos {
        self.simulated().map_or_else(|| self.host.now(), |simulated| simulated.files.now())
    }

    fn usage(&self) -> FileUsage {
        self.simulated().map_or_else(|| self.host.usage(), |simulated| simulated.files.usage())
    }

    fn watched<T>(&self, work: impl FnOnce() -> T) -> (T, Option<Pause>) {
        let (done, paused) = self.host.watched(work);
        // Virtual time does not pass while the program is stopped.
        (done, paused.filter(|_| self.simulated().is_none()))
    }

    fn warnings(&self) -> Vec<String> {
        self.simulated().map_or_else(Vec::new, |simulated| simulated.files.warnings())
    }

    fn open(&self, spec: &AreaSpec) -> Result<Area, FileError> {
        match self.choose(&spec.locations)? {
            Some(simulated) => simulated.files.open(spec).map(Area::Twin),
            None => self.host.open(spec).map(Area::Host),
        }
    }
}

pub(super) enum Area {
    Host(<HostFiles as FileSystem>::Area),
    Twin(<TwinFiles as FileSystem>::Area),
}

macro_rules! either {
    ($of:ident, $any:expr, |$one:ident| $body:expr) => {
        match $any {
            $of::Host($one) => $body,
            $of::Twin($one) => $body,
        }
    };
}

impl FileArea for Area {
    type Work = Work;

    fn make_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError> {
        either!(Area, self, |area| area.make_subdirectories(interrupt))
    }

    fn remove_subdirectories(&self, interrupt: &AtomicBool) -> Result<bool, FileError> {
        either!(Area, self, |area| area.remove_subdirectories(interrupt))
    }

    fn directory(&self) -> Option<&Path> {
        either!(Area, self, |area| area.directory())
    }

    fn work(&self) -> Result<Work, FileError> {
        Ok(match self {
            Area::Host(area) => Work::Host(Box::new(area.work()?)),
            Area::Twin(area) => Work::Twin(area.work()?),
        })
    }
}

pub(super) enum Work {
    Host(Box<<<HostFiles as FileSystem>::Area as FileArea>::Work>),
    Twin(<<TwinFiles as FileSystem>::Area as FileArea>::Work),
}

impl FileWork for Work {
    fn create(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        either!(Work, self, |work| work.create(file, content))
    }

    fn read(&mut self, file: FileId, bytes: u64) -> Result<(), FileError> {
        either!(Work, self, |work| work.read(file, bytes))
    }

    fn append(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        either!(Work, self, |work| work.append(file, content))
    }

    fn delete(&mut self, file: FileId) -> Result<(), FileError> {
        either!(Work, self, |work| work.delete(file))
    }

    fn stat(&mut self, file: FileId) -> Result<u64, FileError> {
        either!(Work, self, |work| work.stat(file))
    }

    fn open(&mut self, file: FileId) -> Result<(), FileError> {
        either!(Work, self, |work| work.open(file))
    }

    fn rename(&mut self, from: FileId, to: FileId) -> Result<(), FileError> {
        either!(Work, self, |work| work.rename(from, to))
    }

    fn list(&mut self, location: u32, subdirectory: u32) -> Result<u64, FileError> {
        either!(Work, self, |work| work.list(location, subdirectory))
    }
}
