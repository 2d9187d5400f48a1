//! Operations on whole files or directories, which need names, not open files.

use super::arrange::{A_DIRECTORY, Arrangement, ClonePlan, FilePlan, Found, Lengthens, paths_of};
use super::jobs::Job;
use crate::fio::options::error::FioError;
use crate::fio::options::kinds::{FileOperation, Named};
use crate::fio::options::value::Amount;
use crate::parse::is_twin;
use machine::NewFile;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    pub path: PathBuf,
    /// Bytes to lay out first; `None`: nothing.
    pub laid_out: Option<u64>,
    pub is_new: bool,
}

/// The directory's test file only shows the file system and devices.
const MIN_BYTES: u64 = 4096;

impl Arrangement {
    /// As in fio, each file counts as one block.
    pub(super) fn add_named(
        &mut self,
        (job, operation): (&Job, FileOperation),
        place: (usize, usize),
        clone: u32,
        look: &dyn Fn(&Path) -> io::Result<Found>,
        destroy: &[PathBuf],
    ) -> Result<(), FioError> {
        let paths = paths_of(job, clone);
        let count = paths.len() as u64;
        let bytes = file_bytes(job, count)?;
        let directory = files::parent(&paths[0]).to_path_buf();
        if paths.iter().any(|path| is_twin(path)) {
            return Err(job.wrong(format!(
                "ioengine={}: a simulated machine has no files; name a directory",
                job.options.engine_name
            )));
        }
        let mut named = Vec::with_capacity(paths.len());
        for path in paths {
            named.push(self.named_file((job, operation), path, bytes, look, destroy)?);
        }
        match look(&directory) {
            Ok(Found::Other(A_DIRECTORY)) => {}
            _ => {
                return Err(job.wrong(format!(
                    "the directory {} does not exist; make it first, or name another",
                    directory.display()
                )));
            }
        }
        let block = job.request_bytes();
        let index = self.directory(directory, block);
        let pass = block.saturating_mul(count);
        let asked = match job.options.number_ios {
            Some(max) => pass.min(max.saturating_mul(block)),
            None => pass,
        };
        let loops = job.options.loops;
        let number = self.clones.len() as u32 + 1;
        self.clones.push(ClonePlan {
            number,
            job: place,
            files: vec![index; named.len()],
            part: (0, block),
            lengths: Vec::new(),
            file_bytes: 0,
            limit_bytes: (!job.options.time_based).then_some(asked.saturating_mul(loops)),
            passes: loops,
            has_rest: false,
            named,
        });
        Ok(())
    }

    fn named_file(
        &self,
        (job, operation): (&Job, FileOperation),
        path: PathBuf,
        bytes: u64,
        look: &dyn Fn(&Path) -> io::Result<Found>,
        destroy: &[PathBuf],
    ) -> Result<NamedFile, FioError> {
        let shown = path.display();
        let found =
            look(&path).map_err(|error| job.wrong(format!("cannot examine {shown}: {error}")))?;
        let is_new = found == Found::Nothing;
        match found {
            Found::Nothing
                if !job.options.allow_create && !self.paths().any(|earlier| earlier == path) =>
            {
                return Err(job.wrong(format!(
                    "allow_file_create=0: {shown} does not exist; make it first, or leave the option out"
                )));
            }
            Found::File(_) | Found::Other(A_DIRECTORY)
                if matches!(operation, FileOperation::Delete(_)) && !destroy.contains(&path) =>
            {
                return Err(job.wrong(format!(
                    "{shown} is there already, and the job would delete it (fio does so without a word); if it may be lost, name it again: --destroy-data={shown}"
                )));
            }
            Found::Other(A_DIRECTORY) if operation == FileOperation::Create(Named::Directory) => {
                return Err(job.wrong(format!(
                    "{shown} is there already, so it cannot be made; remove it first, or name another"
                )));
            }
            Found::Nothing => {}
            Found::File(_) | Found::Made(_) if operation.named() == Named::File => {}
            Found::Other(A_DIRECTORY) if operation.named() == Named::Directory => {}
            _ => {
                let needed = match operation.named() {
                    Named::File => "a regular file",
                    Named::Directory => "a directory",
                };
                return Err(job.wrong(format!(
                    "{shown} is not {needed}, which ioengine={} needs; name others",
                    job.options.engine_name
                )));
            }
        }
        let known = self.paths().any(|other| other == path);
        let lays_out = !matches!(operation, FileOperation::Create(_)) && is_new && !known;
        Ok(NamedFile { laid_out: lays_out.then_some(bytes), is_new, path })
    }

    /// No job uses the test file.
    fn directory(&mut self, path: PathBuf, block: u64) -> usize {
        let bytes = block.max(MIN_BYTES);
        if let Some(index) = self.files.iter().position(|file| file.path == path) {
            self.files[index].bytes = self.files[index].bytes.max(bytes);
            return index;
        }
        self.files.push(FilePlan {
            path,
            bytes,
            made: Some(NewFile::Sparse),
            lengthens: Lengthens::Nothing,
            written: false,
            idle: true,
            grows: false,
        });
        self.files.len() - 1
    }
}

/// Of a range, the first value counts.
fn file_bytes(job: &Job, count: u64) -> Result<u64, FioError> {
    match (job.options.file_bytes, job.options.size) {
        (Some([bytes, _]), _) => Ok(bytes),
        (None, Some(Amount::Bytes(bytes))) => Ok(bytes / count.max(1)),
        (None, _) => Err(job.wrong("filesize: the size of each file is needed; write filesize=4k")),
    }
}
