//! Decides which file, and which part of it, each clone of a job uses, before anything is written.

use super::jobs::{Job, Plan};
use super::whole_files::NamedFile;
use crate::fio::options::error::FioError;
use crate::fio::options::kinds::Fallocate;
use crate::fio::options::value::Amount;
use crate::parse::is_twin;
use machine::NewFile;
use machine::units::show_size;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use workload::rng;

/// A file system entry found at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// A regular file of this many bytes.
    File(u64),
    /// A file from an earlier run, which may be laid out again.
    Made(u64),
    Device(u64),
    /// `/dev/null` or `/dev/zero`: any size, no data to lose.
    Endless,
    /// Something that cannot hold data: a directory, a terminal.
    Other(&'static str),
}

/// One file of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    pub path: PathBuf,
    pub bytes: u64,
    /// How to create it or make it longer; `None`: it exists already.
    pub made: Option<NewFile>,
    /// It is a user's file that may be overwritten, and becomes longer.
    pub lengthened: bool,
    pub written: bool,
    /// Whether no job transfers data to or from it.
    pub idle: bool,
    /// Whether it grows as it is written, so it may run out of space.
    pub grows: bool,
}

/// One clone of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClonePlan {
    /// fio's job number, counting all clones from 1.
    pub number: u32,
    /// Group index and index in it.
    pub job: (usize, usize),
    /// Indexes in [`Arrangement::files`]; several files alternate request by request.
    pub files: Vec<usize>,
    /// First byte and length of its part of each file.
    pub part: (u64, u64),
    /// Bytes to transfer; `None`: until the time is over.
    pub limit_bytes: Option<u64>,
    /// Passes that make up these bytes.
    pub passes: u64,
    /// The files of a job that operates on whole files. [`ClonePlan::files`] then has their
    /// directory, once for each of them.
    pub named: Vec<NamedFile>,
}

/// Files and clones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrangement {
    pub files: Vec<FilePlan>,
    /// Every clone in fio's order.
    pub clones: Vec<ClonePlan>,
}

const PURPOSE_SIZE: u64 = 0xf15;

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

/// The size that `filesize` gives a file.
fn drawn_size(job: &Job, clone: u32, file: u64) -> Option<u64> {
    let [low, high] = job.options.file_bytes?;
    let request = job.request_bytes().max(1);
    let seed = rng::derive(job.options.seed.unwrap_or(0x89), PURPOSE_SIZE, u64::from(clone));
    Some(low + rng::below(rng::hash(seed, file), (high - low) / request + 1) * request)
}

/// Bytes transferred within `len` bytes by requests of `request` bytes that skip `hole` after each
/// `run`.
pub(crate) fn without_holes(len: u64, request: u64, (run, hole): (u64, u64)) -> u64 {
    let stride = run.saturating_add(hole);
    let moved = len / stride * run + (len % stride).min(run);
    if len < request { len } else { moved / request * request }
}

/// Bytes of each pass of a job, and the number of passes: io_size asks for `asked` bytes, a region
/// pass has `pass`.
///
/// As in fio, if each pass is followed by another or by reading back, the job makes whole passes
/// until less than a request is left of io_size, but never fewer than `loops`. Bytes read back
/// count too.
fn passes(job: &Job, asked: u64, pass: u64) -> (u64, u64) {
    let (options, request) = (&job.options, job.min_request_bytes());
    let reads_back = options.verify.is_some() && options.do_verify && !options.reads;
    let known = (job.sizes().is_none() && !job.overlaps()) || job.covers();
    let whole = (options.loops > 1 || reads_back) && known && !options.strides.are_on();
    if !whole || pass == 0 || asked <= pass {
        return (asked, options.loops);
    }
    let counted = if reads_back { pass.saturating_mul(2) } else { pass };
    (pass, (asked - (request - 1)).div_ceil(counted).max(options.loops))
}

#[derive(Debug, Clone, Copy)]
struct Region {
    /// First byte and length.
    part: (u64, u64),
    /// End of the file: beyond the last request if the size is not a multiple of the request size.
    end: u64,
    pass_bytes: u64,
    passes: u64,
}

/// Computes a clone's part of file number `file` of `count`, and the size and number of its
/// passes; `found` is the existing file, and whether it may be overwritten.
fn region(
    job: &Job,
    clone: u32,
    (file, count): (u64, u64),
    path: &Path,
    (found, may_destroy): (Found, bool),
) -> Result<Region, FioError> {
    let lengthens = may_destroy && matches!(found, Found::File(_));
    let options = &job.options;
    let shown = path.display();
    let there = match found {
        Found::File(bytes) | Found::Device(bytes) => Some(bytes),
        Found::Made(bytes) if bytes > 0 => Some(bytes),
        _ => None,
    };
    // Files that alternate hold whole requests, of the smallest size if there are several.
    let unit = if job.sizes().is_none() { job.request_bytes() } else { job.min_request_bytes() };
    let share = |bytes: u64| bytes / count;
    let drawn = drawn_size(job, clone, file);
    // Percentages refer to the existing file or, if it is missing, to its planned size.
    let whole = match (there, drawn, options.size) {
        (Some(bytes), _, _) | (None, Some(bytes), _) => bytes,
        (None, None, Some(Amount::Bytes(bytes))) => share(bytes),
        (None, None, _) => {
            let why = if found == Found::Endless {
                "has no size of its own, so one"
            } else {
                "does not exist yet, so its size"
            };
            return Err(job.wrong(format!("size: {shown} {why} is needed; write size=1g")));
        }
    };
    let overflow =
        || job.wrong("offset, offset_increment and numjobs go beyond all sizes; lower them");
    let step =
        options.offset_increment.of(whole).checked_mul(u64::from(clone)).ok_or_else(overflow)?;
    let start = options.offset.of(whole).checked_add(step).ok_or_else(overflow)?;
    // As in fio, a percentage begins at the next block and ends with the last whole one.
    let block = job.min_request_bytes().max(1);
    let aligned = [options.offset_align_bytes, block].into_iter().find(|&bytes| bytes > 0);
    let start = match options.offset {
        Amount::Percent(1..) => {
            start.checked_next_multiple_of(aligned.unwrap_or(1)).ok_or_else(overflow)?
        }
        _ => start,
    };
    let rest = |whole: u64| {
        whole.checked_sub(start).filter(|&rest| rest > 0).ok_or_else(|| {
            job.wrong(format!(
                "offset: clone {clone} begins at {}, and {shown} ends at {}; lower offset or offset_increment",
                show_size(start),
                show_size(whole)
            ))
        })
    };
    let len = match (drawn, options.size) {
        (Some(bytes), _) => rest(bytes)?,
        // As in fio, a device may be smaller.
        (None, Some(Amount::Bytes(bytes))) => match found {
            Found::Device(there) => share(bytes).min(rest(there)?),
            _ => share(bytes),
        },
        (None, Some(Amount::Percent(100))) => rest(whole)?,
        (None, Some(part)) => part.of(whole).min(rest(whole)?) / block * block,
        (None, None) => rest(whole)?,
    };
    let file_len = len;
    let len = if count == 1 { len } else { len / unit * unit };
    // As in fio, with several sizes the last requests shrink to fit.
    let request = job.min_request_bytes();
    if len == 0 {
        return Err(job.wrong(format!(
            "size: nothing is left for {shown}; give each of the {count} files at least one request"
        )));
    }
    let end = start.checked_add(len).ok_or_else(overflow)?;
    match found {
        Found::File(bytes) | Found::Device(bytes) if end > bytes && !lengthens => {
            return Err(job.wrong(format!(
                "size: {shown} has {}, but {} of it are needed; lower size or offset, or, if its data may be lost, write --destroy-data={shown} (fio overwrites it without asking)",
                show_size(bytes),
                show_size(end)
            )));
        }
        _ => {}
    }
    let pass = len.saturating_mul(count);
    // As in fio, zones go on to the end of the file, beyond the size.
    let zoned_len =
        there.filter(|_| options.strides.are_on()).and_then(|there| there.checked_sub(start));
    let holes = options.hole_bytes;
    let moved = match (options.io_size, options.size) {
        (Some(Amount::Bytes(bytes)), _) => Some(bytes),
        // As in fio, zones begin again at the end of a file, until the size is reached.
        (None, Some(Amount::Bytes(bytes))) if job.has_own_places() && options.strides.are_on() => {
            Some(bytes)
        }
        (None, Some(Amount::Bytes(bytes))) => Some(bytes.min(pass)),
        (Some(part), _) => part.of(whole).checked_mul(count),
        (None, _) => len.checked_mul(count),
    };
    // Gaps between requests are not transferred. As in fio, a pass ends with a request that ends
    // with the file, or when the remainder is too short for the next one. If the next request would
    // begin beyond the end, the cursor restarts until the size is reached.
    let ends = |stride: u64| {
        let fit = (len - request) / stride + 1;
        (len - request).is_multiple_of(stride) || fit * stride < len
    };
    // `None`: the pass has no end of its own. In a mix each direction covers the whole part:
    // `FileTurns` knows the end.
    let mix = options.reads && options.writes && count == 1;
    let of_pass = match holes {
        _ if mix && holes > 0 => None,
        0 => Some(pass / request * request),
        _ if len >= request && ends(request + holes) => {
            Some(without_holes(len, request, (request, holes)))
        }
        _ => None,
    };
    // As in fio, a pass ends when no whole request is left, and io_size is rounded up to whole
    // requests.
    let asked = moved.ok_or_else(overflow)?;
    let (each, passes) = if options.io_size.is_some() {
        let asked = asked.checked_next_multiple_of(request).ok_or_else(overflow)?;
        of_pass.map_or((asked, options.loops), |of_pass| passes(job, asked, of_pass))
    } else {
        let asked = of_pass.filter(|_| holes > 0).map_or(asked, |of_pass| asked.min(of_pass));
        (Some(asked / request * request).filter(|&whole| whole > 0).unwrap_or(asked), options.loops)
    };
    let each = options.number_ios.map_or(each, |max| each.min(max.saturating_mul(request)));
    each.checked_mul(passes).ok_or_else(overflow)?;
    // An existing file may end before its share would.
    let end = match found {
        Found::File(bytes) | Found::Device(bytes) => end.max(bytes.min(start + file_len)),
        _ => end.max(start.saturating_add(file_len)),
    };
    Ok(Region { part: (start, zoned_len.unwrap_or(0).max(len)), end, pass_bytes: each, passes })
}

impl Arrangement {
    pub(crate) fn file_bytes(&self, clone: &ClonePlan) -> u64 {
        clone.files.iter().map(|&file| self.files[file].bytes).min().unwrap_or(0)
    }

    /// Paths of all files that jobs use.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let named = self.clones.iter().flat_map(|clone| &clone.named);
        let files = self.files.iter().map(|file| file.path.as_path());
        files.chain(named.map(|file| file.path.as_path()))
    }

    pub(crate) fn bytes(&self, clone: &ClonePlan) -> u64 {
        self.file_bytes(clone) * clone.files.len() as u64
    }

    /// Decides for every clone of a plan. `look` inspects a path; `destroy` lists paths that may be
    /// overwritten.
    ///
    /// # Errors
    /// A missing or oversized size, an unusable path, a user's file that would be
    /// overwritten.
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
        let paths = paths_of(job, clone);
        let count = paths.len() as u64;
        let mut files = Vec::new();
        let mut parts: Vec<Region> = Vec::new();
        for (number, path) in paths.into_iter().enumerate() {
            let found = look(&path).map_err(|error| {
                job.wrong(format!("cannot examine {}: {error}", path.display()))
            })?;
            check_found(job, &path, found, destroy)?;
            // Files laid out for an earlier job exist when this one begins.
            let laid_out = self
                .files
                .iter()
                .find(|file| file.path == path)
                .map(|file| Found::Made(file.bytes));
            let seen = laid_out
                .filter(|_| found == Found::Nothing && job.options.size.is_none())
                .unwrap_or(found);
            let found_there = (seen, destroy.contains(&path));
            let region = region(job, clone, (number as u64, count), &path, found_there)?;
            files.push(self.file(job, path, found, region.end));
            parts.push(region);
        }
        let Region { part: (start, len), pass_bytes, passes, .. } = parts[0];
        if parts.iter().any(|other| other.part != (start, len)) {
            return Err(job.wrong(
                "filename: the files that take turns differ in size; give size, so that each has an equal part",
            ));
        }
        if count > 1 && job.sizes().is_none() && !start.is_multiple_of(job.request_bytes()) {
            return Err(job.wrong(
                "offset: files that take turns begin at a whole request; give a multiple of bs",
            ));
        }
        let limit_bytes = (!job.options.time_based).then_some(pass_bytes * passes);
        let number = self.clones.len() as u32 + 1;
        self.clones.push(ClonePlan {
            number,
            job: place,
            files,
            part: (start, len),
            limit_bytes,
            passes,
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
            (_, true, _) => Some(NewFile::Filled),
            // It grows as it is written, but has its full length from the beginning.
            _ if options.create_on_open || options.fills => Some(NewFile::Sparse),
            (_, false, Fallocate::Reserve) => Some(NewFile::Reserved),
            (_, false, Fallocate::None) => Some(NewFile::Sparse),
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
                    lengthened: false,
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
            entry.lengthened = true;
            entry.made = entry.made.or(made);
        }
        entry.grows |= options.fills && made == Some(NewFile::Sparse);
        entry.idle &= !options.engine.does_io();
        if made == Some(NewFile::Filled) {
            entry.made = made;
        }
        file
    }
}

/// Inspects a path.
///
/// # Errors
/// It cannot be examined.
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
        return Ok(Found::Other("a directory"));
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

/// Refuses unusable paths, and files of the user's that would be overwritten.
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
