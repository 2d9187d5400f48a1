//! Decides on files before anything is written.

use super::jobs::{Job, Plan};
use super::regions::{Sizes, Work, region};
use super::whole_files::NamedFile;
use crate::fio::options::error::FioError;
use crate::fio::options::kinds::{Fallocate, Lock};
use crate::parse::is_twin;
use machine::NewFile;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// A regular file's bytes.
    File(u64),
    /// From an earlier run; laid out again if it is too short.
    Made(u64),
    Device(u64),
    /// `/dev/null` or `/dev/zero`: no data to lose.
    Endless,
    /// No data fits: a directory, a terminal.
    Other(&'static str),
}

pub(super) const A_DIRECTORY: &str = "a directory";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    pub path: PathBuf,
    pub bytes: u64,
    /// How to create or lengthen it; `None`: it exists.
    pub made: Option<NewFile>,
    pub lengthens: Lengthens,
    pub written: bool,
    /// No job transfers its data.
    pub idle: bool,
    /// Grows as it is written, so space may run out.
    pub grows: bool,
}

/// An existing file that becomes longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengthens {
    Nothing,
    /// From an earlier command, continued with `file_append`.
    Kept,
    /// A user's; may be overwritten.
    Users,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClonePlan {
    /// fio's number, counting all clones from 1.
    pub number: u32,
    /// Index of the group, and of the job in it.
    pub job: (usize, usize),
    /// Indexes in [`Arrangement::files`].
    pub files: Vec<usize>,
    /// First byte and greatest length in each file.
    pub part: (u64, u64),
    /// Empty if all are equal.
    pub lengths: Vec<u64>,
    /// The whole of the longest file.
    pub file_bytes: u64,
    /// `None`: until the time is over.
    pub limit_bytes: Option<u64>,
    /// Passes in these bytes.
    pub passes: u64,
    /// The size ends within a request, which is left out.
    pub has_rest: bool,
    /// For operations on whole files; [`ClonePlan::files`] repeats their directory.
    pub named: Vec<NamedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrangement {
    pub files: Vec<FilePlan>,
    /// In fio's order.
    pub clones: Vec<ClonePlan>,
}

pub(super) fn paths_of(job: &Job, clone: u32) -> Vec<PathBuf> {
    let options = &job.options;
    // Clones alternate between directories if their file names are generated; named files go to the
    // first one.
    let turn = if options.filenames.is_empty() { clone as usize } else { 0 };
    let directory = (!options.directories.is_empty())
        .then(|| Path::new(&options.directories[turn % options.directories.len()]));
    let path = |name: &str| match directory {
        // As in fio, the directory is prepended even to an absolute name.
        Some(directory) => directory.join(name.trim_start_matches('/')),
        None => PathBuf::from(name),
    };
    if !options.filenames.is_empty() {
        return options.filenames.iter().map(|name| path(name)).collect();
    }
    let made = |file: u32| {
        let format = options
            .filename_format
            .replace("$jobname", &job.name)
            .replace("$jobnum", &clone.to_string());
        format.replace("$filenum", &file.to_string())
    };
    let mut paths: Vec<PathBuf> = (0..options.files).map(|file| path(&made(file))).collect();
    paths.dedup();
    paths
}

impl Arrangement {
    pub(crate) fn file_bytes(&self, clone: &ClonePlan) -> u64 {
        let bytes = clone.files.iter().map(|&file| self.files[file].bytes);
        if clone.lengths.is_empty() { bytes.min() } else { bytes.max() }.unwrap_or(0)
    }

    /// Returns paths that jobs use.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let named = self.clones.iter().flat_map(|clone| &clone.named);
        let files = self.files.iter().map(|file| file.path.as_path());
        files.chain(named.map(|file| file.path.as_path()))
    }

    pub(crate) fn bytes(&self, clone: &ClonePlan) -> u64 {
        match clone.lengths.as_slice() {
            [] => self.file_bytes(clone) * clone.files.len() as u64,
            lengths => clone.part.0 * lengths.len() as u64 + lengths.iter().sum::<u64>(),
        }
    }

    /// `destroy` lists paths that may be overwritten.
    pub fn new(
        plan: &Plan,
        look: &dyn Fn(&Path) -> io::Result<Found>,
        destroy: &[PathBuf],
    ) -> Result<Arrangement, FioError> {
        let mut arrangement = Arrangement::default();
        for (group, jobs) in plan.groups.iter().enumerate() {
            for (place, job) in jobs.iter().enumerate() {
                for clone in 0..job.options.clones {
                    arrangement.add(job, (group, place), clone, look, destroy)?;
                }
            }
        }
        arrangement.check_locks(plan)?;
        let unused =
            destroy.iter().find(|named| !arrangement.paths().any(|path| path == named.as_path()));
        match unused {
            Some(named) => Err(FioError::Usage(format!(
                "--destroy-data={}: no job writes an existing file or device with this name; use the job's name for it",
                named.display()
            ))),
            None => Ok(arrangement),
        }
    }

    /// A lock that no other job can hold has no effect.
    fn check_locks(&self, plan: &Plan) -> Result<(), FioError> {
        let mut locked: HashMap<(usize, usize), (u32, bool)> = HashMap::new();
        for clone in &self.clones {
            let (group, place) = clone.job;
            let job = &plan.groups[group][place];
            let Some(lock) = job.options.locks else { continue };
            let waits = lock == Lock::All || job.options.writes;
            for &file in &clone.files {
                let others = locked.insert((group, file), (clone.number, waits));
                let waits_for = |(number, others)| number != clone.number && (others || waits);
                if others.is_some_and(waits_for) {
                    return Err(job.wrong(format!(
                        "lockfile: another job uses {} at the same time, and would wait for this one at each request, which is not supported; use lockfile=none, a file for each, or stonewall",
                        self.files[file].path.display()
                    )));
                }
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        job: &Job,
        place: (usize, usize),
        clone: u32,
        look: &dyn Fn(&Path) -> io::Result<Found>,
        destroy: &[PathBuf],
    ) -> Result<(), FioError> {
        if let Some(operation) = job.options.file_operation {
            return self.add_named((job, operation), place, clone, look, destroy);
        }
        let number = self.clones.len() as u32 + 1;
        let paths = paths_of(job, clone);
        let count = paths.len() as u64;
        // As in fio, the clones after the first one draw in reverse order.
        let draws = if clone == 0 { number } else { number + job.options.clones - 2 * clone };
        let mut sizes = Sizes::new(job, draws);
        let mut files = Vec::new();
        let mut regions = Vec::new();
        for path in paths {
            let found = look(&path).map_err(|error| {
                job.wrong(format!("cannot examine {}: {error}", path.display()))
            })?;
            // Files laid out for an earlier job exist when this one begins.
            let planned = self.files.iter().find(|file| file.path == path).map(|file| file.bytes);
            let seen = match (found, planned) {
                (Found::Nothing, Some(bytes)) => Found::Made(bytes),
                // As in fio, clones append one after the other.
                (Found::File(there), Some(bytes)) if job.options.append => {
                    Found::File(there.max(bytes))
                }
                (Found::Made(there), Some(bytes)) if job.options.append => {
                    Found::Made(there.max(bytes))
                }
                (found, _) => found,
            };
            check_found(job, &path, seen, destroy)?;
            let found_there = (seen, destroy.contains(&path));
            let region = region(job, clone, count, &path, found_there, &mut sizes)?;
            files.push(self.file(job, path, found, region.end));
            regions.push(region);
        }
        let Work { start, lengths, file_bytes, pass_bytes, passes, has_rest } =
            Work::new(job, &regions)?;
        let limit_bytes = (!job.options.time_based).then_some(pass_bytes * passes);
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let differ = lengths.iter().any(|&len| len != longest);
        self.clones.push(ClonePlan {
            number,
            job: place,
            files,
            part: (start, longest),
            lengths: if differ { lengths } else { Vec::new() },
            file_bytes,
            limit_bytes,
            passes,
            has_rest,
            named: Vec::new(),
        });
        Ok(())
    }

    fn file(&mut self, job: &Job, path: PathBuf, found: Found, end: u64) -> usize {
        let options = &job.options;
        let fills = options.reads || options.overwrite || options.engine.is_mapped();
        let made = match (found, fills, options.fallocate) {
            (Found::File(bytes), _, _) if bytes >= end => None,
            (Found::Device(_) | Found::Endless, _, _) => None,
            // The engine makes no I/O.
            _ if !options.engine.does_io() => Some(NewFile::Sparse),
            // A file of an earlier run that is long enough stays as it is, as fio leaves it.
            (Found::Made(bytes), false, _) if bytes >= end && !options.fills => {
                Some(NewFile::Filled)
            }
            (_, true, _) => Some(NewFile::Filled),
            _ if options.fills || options.trims => Some(NewFile::Sparse),
            (_, false, Fallocate::Reserve) if !options.create_on_open => Some(NewFile::Reserved),
            (_, false, Fallocate::Truncate) if !options.create_on_open => Some(NewFile::Sparse),
            (Found::Nothing, ..) if !is_twin(&path) => Some(match options.fallocate {
                Fallocate::Keep if !options.create_on_open => NewFile::ReservedBeyond,
                _ => NewFile::Grows(0),
            }),
            _ => Some(NewFile::Sparse),
        };
        let bytes = match found {
            Found::Device(bytes) => bytes,
            // Only the beginning of an existing file may be used; its length stays.
            Found::File(bytes) | Found::Made(bytes) => bytes.max(end),
            Found::Nothing | Found::Endless | Found::Other(_) => end,
        };
        let file = match self.files.iter().position(|file| file.path == path) {
            Some(index) => index,
            None => {
                self.files.push(FilePlan {
                    path,
                    bytes,
                    made,
                    lengthens: Lengthens::Nothing,
                    written: false,
                    idle: true,
                    grows: false,
                });
                self.files.len() - 1
            }
        };
        let entry = &mut self.files[file];
        entry.bytes = entry.bytes.max(bytes);
        entry.written |= options.writes;
        if matches!(found, Found::File(_)) && made.is_some() {
            entry.lengthens = Lengthens::Users;
            entry.made = entry.made.or(made);
        }
        if options.append && matches!(found, Found::Made(_)) {
            entry.lengthens = Lengthens::Kept;
        }
        entry.grows |= options.fills && made == Some(NewFile::Sparse);
        entry.idle &= !options.engine.does_io();
        if made == Some(NewFile::Filled) {
            entry.made = made;
        }
        file
    }
}

pub fn look(path: &Path) -> io::Result<Found> {
    if is_twin(path) {
        // A simulated volume gets the size it needs.
        return Ok(Found::Nothing);
    }
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    if metadata.is_file() {
        return Ok(Found::File(metadata.len()));
    }
    if metadata.is_dir() {
        return Ok(Found::Other(A_DIRECTORY));
    }
    if files::is_pipe(&metadata) {
        // Opening it would wait for the other end.
        return Ok(Found::Other("a pipe"));
    }
    // Seeking to the end gives a block device's size; a device without an end holds no data.
    match File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0))) {
        Ok(bytes) if bytes > 0 => Ok(Found::Device(bytes)),
        Ok(_) => Ok(Found::Other("neither a file nor a block device with a medium")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Err(_) if files::is_block_device(&metadata) => Ok(Found::Other(
            "a block device that cannot be opened: no driver serves it, or it has no medium",
        )),
        Err(_) => Ok(Found::Other("neither a file nor a block device")),
    }
}

fn check_found(job: &Job, path: &Path, found: Found, destroy: &[PathBuf]) -> Result<(), FioError> {
    let shown = path.display();
    match found {
        Found::Nothing if !job.options.allow_create => {
            Err(job.wrong(format!("allow_file_create=0: {shown} does not exist; make it first, or leave the option out")))
        }
        Found::Other(what) => Err(job.wrong(format!("{shown} is {what}; name a file or a block device, or use directory"))),
        Found::File(_) | Found::Device(_) if job.options.writes && !destroy.iter().any(|named| named == path) => Err(job.wrong(format!(
            "{shown} is there already, and the job would overwrite it (fio does so without a word); if it may be lost, name it again: --destroy-data={shown}"
        ))),
        Found::File(_) | Found::Device(_) if job.options.unlink || job.options.unlink_each_loop => {
            Err(job.wrong(format!("unlink=1: {shown} existed before, and halfpower removes only what it made; remove it yourself")))
        }
        _ => Ok(()),
    }
}
