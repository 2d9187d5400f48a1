//! An in-memory file system whose clock advances by one step per operation.
#![allow(dead_code)]

use machine::files::{
    AreaSpec, FileAct, FileArea, FileError, FileId, FileSystem, FileUsage, FileWork,
};
use machine::{Nanos, Pause, PauseCause};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct State {
    files: Mutex<HashMap<FileId, u64>>,
    now: AtomicU64,
    operations: AtomicU64,
    step: u64,
    fail_at: Option<u64>,
    pauses: AtomicU64,
    watched: AtomicU64,
}

pub struct MemoryFiles(Arc<State>);

impl MemoryFiles {
    pub fn new(step: Nanos) -> Self {
        MemoryFiles(Arc::new(State { step, ..State::default() }))
    }

    /// The system is full from this operation on, counted from 1.
    pub fn failing_at(self, operation: u64) -> Self {
        let state = Arc::into_inner(self.0).expect("not shared yet");
        MemoryFiles(Arc::new(State { fail_at: Some(operation), ..state }))
    }

    /// The program stops for a second in each of the first `runs` runs.
    pub fn pausing(self, runs: u64) -> Self {
        self.0.pauses.store(runs, Ordering::SeqCst);
        self
    }

    pub fn watched_runs(&self) -> u64 {
        self.0.watched.load(Ordering::SeqCst)
    }

    pub fn left(&self) -> usize {
        self.0.files.lock().unwrap().len()
    }
}

impl FileSystem for MemoryFiles {
    type Area = MemoryArea;

    fn now(&self) -> Nanos {
        self.0.now.load(Ordering::SeqCst)
    }

    fn usage(&self) -> FileUsage {
        FileUsage { user_ns: self.now() / 10, system_ns: self.now() / 5, block_bytes: Some((0, 0)) }
    }

    fn watched<T>(&self, work: impl FnOnce() -> T) -> (T, Option<Pause>) {
        let paused =
            self.0.watched.fetch_add(1, Ordering::SeqCst) < self.0.pauses.load(Ordering::SeqCst);
        (
            work(),
            paused.then_some(Pause {
                ns: 1_000_000_000,
                times: 1,
                percent: 50.0,
                cause: PauseCause::Stopped,
            }),
        )
    }

    fn open(&self, _: &AreaSpec) -> Result<MemoryArea, FileError> {
        Ok(MemoryArea(self.0.clone()))
    }
}

pub struct MemoryArea(Arc<State>);

impl FileArea for MemoryArea {
    type Work = MemoryWork;

    fn make_subdirectories(&self, _: &AtomicBool) -> Result<bool, FileError> {
        Ok(true)
    }

    fn remove_subdirectories(&self, _: &AtomicBool) -> Result<bool, FileError> {
        assert!(
            self.0.files.lock().unwrap().is_empty(),
            "a directory with files in it cannot be removed"
        );
        Ok(true)
    }

    fn directory(&self) -> Option<&Path> {
        None
    }

    fn work(&self) -> Result<MemoryWork, FileError> {
        Ok(MemoryWork(self.0.clone()))
    }
}

impl Drop for MemoryArea {
    fn drop(&mut self) {
        self.0.files.lock().unwrap().clear();
    }
}

pub struct MemoryWork(Arc<State>);

impl MemoryWork {
    fn step(&self) -> Result<(), FileError> {
        self.0.now.fetch_add(self.0.step, Ordering::SeqCst);
        let operation = self.0.operations.fetch_add(1, Ordering::SeqCst) + 1;
        if self.0.fail_at == Some(operation) {
            let full = io::Error::from(io::ErrorKind::StorageFull);
            return Err(FileError::of(FileAct::Create, PathBuf::from("memory"), full));
        }
        Ok(())
    }

    fn with<T>(
        &self,
        file: FileId,
        what: impl FnOnce(&mut HashMap<FileId, u64>) -> Option<T>,
    ) -> Result<T, FileError> {
        self.step()?;
        what(&mut self.0.files.lock().unwrap()).ok_or_else(|| {
            let path = PathBuf::from(format!("s{}/{}", file.subdirectory, file.number));
            FileError::of(FileAct::Open, path, io::Error::from(io::ErrorKind::NotFound))
        })
    }
}

impl FileWork for MemoryWork {
    fn create(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        self.with(file, |files| files.insert(file, content.len() as u64).is_none().then_some(()))
    }

    fn read(&mut self, file: FileId, bytes: u64) -> Result<(), FileError> {
        self.with(file, |files| (files.get(&file) == Some(&bytes)).then_some(()))
    }

    fn append(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        self.with(file, |files| files.get_mut(&file).map(|size| *size += content.len() as u64))
    }

    fn delete(&mut self, file: FileId) -> Result<(), FileError> {
        self.with(file, |files| files.remove(&file).map(drop))
    }

    fn stat(&mut self, file: FileId) -> Result<u64, FileError> {
        self.with(file, |files| files.get(&file).copied())
    }

    fn open(&mut self, file: FileId) -> Result<(), FileError> {
        self.with(file, |files| files.get(&file).map(|_| ()))
    }

    fn rename(&mut self, from: FileId, to: FileId) -> Result<(), FileError> {
        self.with(from, |files| {
            files.remove(&from).and_then(|size| files.insert(to, size).is_none().then_some(()))
        })
    }

    fn list(&mut self, location: u32, subdirectory: u32) -> Result<u64, FileError> {
        let here = FileId { location, subdirectory, number: 0 };
        self.with(here, |files| {
            Some(
                files
                    .keys()
                    .filter(|file| file.location == location && file.subdirectory == subdirectory)
                    .count() as u64,
            )
        })
    }
}
