//! Which file each clone of a job uses, and which part of it: decided before anything is written.

use super::error::FioError;
use super::options::Fallocate;
use super::plan::{Job, Plan};
use super::value::Amount;
use machine::units::show_size;
use std::path::{Path, PathBuf};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A regular file of so many bytes.
    File(u64),
    /// A block device of so many bytes.
    Device(u64),
    /// Something that is no place for data: a directory, a terminal.
    Other(&'static str),
}

/// How a file comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is there already.
    Found,
    /// To be made and filled with data.
    Filled,
    /// To be made, its space reserved and not written.
    Reserved,
    /// To be made without space.
    Sparse,
}

/// One file of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    /// Its path.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// How it comes to be.
    pub origin: Origin,
    /// Whether any job writes it.
    pub written: bool,
}

/// One clone of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClonePlan {
    /// fio's number of it, from 1, over all jobs.
    pub number: u32,
    /// The job: set and place in it.
    pub job: (usize, usize),
    /// Its file, by place in [`Arrangement::files`].
    pub file: usize,
    /// First byte and length of its part of the file.
    pub region: (u64, u64),
    /// Bytes that it moves; `None`: as many as the time allows.
    pub limit_bytes: Option<u64>,
}

/// Files and clones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrangement {
    /// Every file once.
    pub files: Vec<FilePlan>,
    /// Every clone in fio's order.
    pub clones: Vec<ClonePlan>,
}

/// The path of a clone's file.
fn path_of(job: &Job, clone: u32) -> PathBuf {
    let options = &job.options;
    let name = options.filename.clone().unwrap_or_else(|| {
        let format = &options.filename_format;
        format.replace("$jobname", &job.name).replace("$jobnum", &clone.to_string()).replace("$filenum", "0")
    });
    match &options.directory {
        // As fio does, the directory goes before an absolute name too.
        Some(directory) => Path::new(directory).join(name.trim_start_matches('/')),
        None => PathBuf::from(name),
    }
}

/// First byte and length of a clone's part of a file of which `found` is there, and the bytes that it moves.
fn region(job: &Job, clone: u32, path: &Path, found: Found) -> Result<((u64, u64), u64), FioError> {
    let options = &job.options;
    let shown = path.display();
    let there = match found {
        Found::File(bytes) | Found::Device(bytes) => Some(bytes),
        _ => None,
    };
    // What shares are of: what is there or, of a file to be made, what it is to be.
    let whole = match (there, options.file_bytes, options.size) {
        (Some(bytes), _, _) | (None, Some(bytes), _) | (None, None, Some(Amount::Bytes(bytes))) => bytes,
        (None, None, _) => return Err(job.wrong(format!("size: {shown} is not there yet, so its size is needed; write size=1g"))),
    };
    let overflow = || job.wrong("offset, offset_increment and numjobs go beyond all sizes; lower them");
    let step = options.offset_increment.of(whole).checked_mul(u64::from(clone)).ok_or_else(overflow)?;
    let start = options.offset.of(whole).checked_add(step).ok_or_else(overflow)?;
    let rest = |whole: u64| {
        whole.checked_sub(start).filter(|&rest| rest > 0).ok_or_else(|| {
            job.wrong(format!(
                "offset: clone {clone} begins at {}, and {shown} ends at {}; lower offset or offset_increment",
                show_size(start),
                show_size(whole)
            ))
        })
    };
    let len = match (options.file_bytes, options.size) {
        (Some(bytes), _) => rest(bytes)?,
        (None, Some(Amount::Bytes(bytes))) => bytes,
        (None, Some(share)) => share.of(whole).min(rest(whole)?),
        (None, None) => rest(whole)?,
    };
    let end = start.checked_add(len).ok_or_else(overflow)?;
    match found {
        Found::File(bytes) | Found::Device(bytes) if end > bytes => {
            return Err(job.wrong(format!(
                "size: {shown} is there with {}, and {} of it are needed; lower size or offset, or remove it so that it is laid out anew",
                show_size(bytes),
                show_size(end)
            )));
        }
        _ => {}
    }
    let moved = options.io_size.or(options.size).map_or(len, |amount| amount.of(whole));
    Ok(((start, len), moved.checked_mul(options.loops).ok_or_else(overflow)?))
}

impl Arrangement {
    /// Decides for every clone of a plan; `look` tells what stands at a path, and `destroy` names what may be overwritten.
    ///
    /// # Errors
    /// A size that is missing or too large, a place that cannot be used, a file of the user's that would be overwritten.
    pub fn new(plan: &Plan, look: &dyn Fn(&Path) -> std::io::Result<Found>, destroy: &[PathBuf]) -> Result<Arrangement, FioError> {
        let mut arrangement = Arrangement::default();
        for (group, jobs) in plan.groups.iter().enumerate() {
            for (place, job) in jobs.iter().enumerate() {
                for clone in 0..job.options.clones {
                    arrangement.add(job, (group, place), clone, look, destroy)?;
                }
            }
        }
        let unused = destroy.iter().find(|named| !arrangement.files.iter().any(|file| file.path == **named));
        match unused {
            Some(named) => Err(FioError::Usage(format!(
                "--destroy-data={}: no job writes a file or device that is there under this name; name it as the job does",
                named.display()
            ))),
            None => Ok(arrangement),
        }
    }

    fn add(
        &mut self,
        job: &Job,
        place: (usize, usize),
        clone: u32,
        look: &dyn Fn(&Path) -> std::io::Result<Found>,
        destroy: &[PathBuf],
    ) -> Result<(), FioError> {
        let path = path_of(job, clone);
        let found = look(&path).map_err(|error| job.wrong(format!("cannot look at {}: {error}", path.display())))?;
        check_found(job, &path, found, destroy)?;
        let (region, moved) = region(job, clone, &path, found)?;
        let options = &job.options;
        let fills = options.reads || options.overwrite || options.engine == super::options::FioEngine::Mmap;
        let origin = match (found, fills, options.fallocate) {
            (Found::File(_) | Found::Device(_), _, _) => Origin::Found,
            (_, true, _) => Origin::Filled,
            (_, false, Fallocate::Reserve) => Origin::Reserved,
            (_, false, Fallocate::None) => Origin::Sparse,
        };
        let bytes = match found {
            Found::File(bytes) | Found::Device(bytes) => bytes,
            _ => options.file_bytes.unwrap_or(0).max(region.0 + region.1),
        };
        let file = match self.files.iter().position(|file| file.path == path) {
            Some(index) => index,
            None => {
                self.files.push(FilePlan { path, bytes, origin, written: false });
                self.files.len() - 1
            }
        };
        let entry = &mut self.files[file];
        entry.bytes = entry.bytes.max(bytes);
        entry.written |= options.writes;
        if origin == Origin::Filled {
            entry.origin = Origin::Filled;
        }
        let limit_bytes = (!options.time_based).then_some(moved);
        self.clones.push(ClonePlan { number: self.clones.len() as u32 + 1, job: place, file, region, limit_bytes });
        Ok(())
    }
}

/// Refuses a place that is none, and the overwriting of what is the user's.
fn check_found(job: &Job, path: &Path, found: Found, destroy: &[PathBuf]) -> Result<(), FioError> {
    let shown = path.display();
    match found {
        Found::Other(what) => Err(job.wrong(format!("{shown} is {what}; name a file or a block device, or use directory"))),
        Found::File(_) | Found::Device(_) if job.options.writes && !destroy.iter().any(|named| named == path) => Err(job.wrong(format!(
            "{shown} is there already, and the job would overwrite it (fio does so without a word); if it may be lost, name it again: --destroy-data={shown}"
        ))),
        Found::File(_) | Found::Device(_) if job.options.unlink => {
            Err(job.wrong(format!("unlink=1: {shown} was there before, and halfpower removes only what it made; remove it yourself")))
        }
        _ => Ok(()),
    }
}
