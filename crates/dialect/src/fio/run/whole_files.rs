//! Operations on whole files: the kernel is called when a request is issued, so the request lasts
//! as long as the operation.

use super::core::{Core, Issue};
use super::failures::{IO_ERROR, JobError};
use super::filter::{Filter, ignores};
use super::finished::Finished;
use super::stream_stats::Done;
use crate::fio::options::error::FioError;
use crate::fio::options::kinds::{FileOperation, Named};
use crate::fio::plan::arrange::{Arrangement, ClonePlan};
use crate::fio::plan::jobs::{Job, Plan};
use crate::fio::plan::whole_files::NamedFile;
use files::Directory;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// fio's modes.
const MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

const STEP: usize = 1 << 20;

pub(crate) struct WholeFiles {
    operation: FileOperation,
    files: Vec<(Arc<Directory>, OsString)>,
    /// As in fio, closed after its time was taken.
    open: Option<File>,
    failed: Option<JobError>,
}

impl WholeFiles {
    pub(crate) fn of(job: &Job, clone: &ClonePlan) -> Result<Option<WholeFiles>, FioError> {
        let Some(operation) = job.options.file_operation else { return Ok(None) };
        let held = |file: &NamedFile| {
            let (directory, name) = place_of(&file.path).map_err(|error| {
                job.wrong(format!("cannot use {}: {error}", file.path.display()))
            })?;
            Ok((directory, name.to_owned()))
        };
        let files = clone.named.iter().map(held).collect::<Result<_, FioError>>()?;
        Ok(Some(WholeFiles { operation, files, open: None, failed: None }))
    }

    fn operate(&mut self, file: usize) -> io::Result<()> {
        let (directory, name) = &self.files[file];
        match self.operation {
            FileOperation::Create(Named::File) => {
                self.open = Some(directory.open_or_create(name, MODE)?);
            }
            FileOperation::Create(Named::Directory) => {
                directory.make_directory(name, DIRECTORY_MODE)?;
            }
            FileOperation::Stat(_) => directory.stat(name)?,
            FileOperation::Delete(named) => remove(directory, name, named)?,
        }
        Ok(())
    }

    fn error(&self, file: usize, error: &io::Error) -> JobError {
        let (directory, name) = &self.files[file];
        let act = match self.operation {
            FileOperation::Create(_) => "create",
            FileOperation::Stat(_) => "read the attributes of",
            FileOperation::Delete(_) => "delete",
        };
        JobError {
            errno: error.raw_os_error().unwrap_or(IO_ERROR),
            text: format!("cannot {act} '{}': {error}", directory.path().join(name).display()),
        }
    }
}

impl Filter for WholeFiles {
    fn issued(&mut self, core: &mut Core, issue: &Issue) {
        let file = issue.request.target as usize;
        if let Err(error) = self.operate(file) {
            core.ended = true;
            self.failed = self.failed.take().or_else(|| Some(self.error(file, &error)));
        }
    }

    fn completed(&mut self, _: &mut Core, _: u32, _: bool, _: Option<&Done>) {
        self.open = None;
    }

    fn finish(self: Box<Self>, finished: &mut Finished) {
        finished.failed = self.failed;
    }

    ignores!(begin before idle synced owes left fails read_back fill check);
}

fn place_of(path: &Path) -> io::Result<(Arc<Directory>, &OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((Directory::held(files::parent(path))?, name))
}

fn remove(directory: &Directory, name: &OsStr, named: Named) -> io::Result<()> {
    match named {
        Named::File => directory.remove(name),
        Named::Directory => directory.remove_directory(name),
    }
}

/// Dropping it removes the files: the run has failed.
pub(crate) struct LaidOutNames {
    new: Vec<((usize, usize), PathBuf, Named)>,
}

impl LaidOutNames {
    pub(crate) fn make(arrangement: &Arrangement, plan: &Plan) -> Result<LaidOutNames, FioError> {
        let mut made = LaidOutNames { new: Vec::new() };
        for clone in &arrangement.clones {
            let job = &plan.groups[clone.job.0][clone.job.1];
            let Some(operation) = job.options.file_operation else { continue };
            let named = operation.named();
            for file in clone.named.iter().filter(|file| file.is_new) {
                if let Some(bytes) = file.laid_out {
                    lay_out(&file.path, bytes, named).map_err(|error| FioError::Machine {
                        job: job.shown(),
                        source: machine::Error::io("cannot lay out", &file.path)(error),
                    })?;
                }
                made.new.push((clone.job, file.path.clone(), named));
            }
        }
        Ok(made)
    }

    /// Keeps only files of jobs for which `stays` is true.
    pub(crate) fn settle(mut self, stays: impl Fn((usize, usize)) -> bool) {
        self.new.retain(|(job, ..)| !stays(*job));
    }
}

impl Drop for LaidOutNames {
    fn drop(&mut self) {
        for (_, path, named) in &self.new {
            if let Ok((directory, name)) = place_of(path) {
                // A job may have deleted it, or not reached it.
                let _ = remove(&directory, name, *named);
            }
        }
    }
}

fn lay_out(path: &Path, bytes: u64, named: Named) -> io::Result<()> {
    let (directory, name) = place_of(path)?;
    if named == Named::Directory {
        return directory.make_directory(name, DIRECTORY_MODE);
    }
    let file = directory.create(name, MODE)?;
    fill(file, bytes).inspect_err(|_| {
        // Nobody else can have put another file in its place that fast.
        let _ = directory.remove(name);
    })
}

fn fill(mut file: File, bytes: u64) -> io::Result<()> {
    let content = vec![0x5a; STEP.min(usize::try_from(bytes).unwrap_or(STEP))];
    let mut left = bytes;
    while left > 0 {
        let step = left.min(content.len() as u64);
        file.write_all(&content[..step as usize])?;
        left -= step;
    }
    Ok(())
}
