//! Which file each clone of a job uses, and which part of it: decided before anything is written.

use super::error::FioError;
use super::options::Fallocate;
use super::plan::{Job, Plan};
use super::value::Amount;
use crate::parse::is_twin;
use machine::NewFile;
use machine::units::show_size;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use workload::rng;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A regular file of so many bytes.
    File(u64),
    /// One that an earlier run made and that may be laid out again.
    Made(u64),
    /// A block device of so many bytes.
    Device(u64),
    /// `/dev/null` or `/dev/zero`: as large as it is asked to be, and nothing of it is lost.
    Endless,
    /// Something that is no place for data: a directory, a terminal.
    Other(&'static str),
}

/// One file of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlan {
    /// Its path.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// What it holds when it is made; `None`: it is there already.
    pub made: Option<NewFile>,
    /// Whether any job writes it.
    pub written: bool,
    /// Whether no job moves data to or from it.
    pub idle: bool,
    /// Whether it is as long as what was written to it, and may find no space.
    pub grows: bool,
}

/// One clone of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClonePlan {
    /// fio's number of it, from 1, over all jobs.
    pub number: u32,
    /// The job: set and place in it.
    pub job: (usize, usize),
    /// Its files, by place in [`Arrangement::files`]: one, or several that take turns request by request.
    pub files: Vec<usize>,
    /// First byte and length of its part of each file.
    pub part: (u64, u64),
    /// Bytes that it moves; `None`: as many as the time allows.
    pub limit_bytes: Option<u64>,
    /// Passes that these bytes are.
    pub passes: u64,
}

/// Files and clones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrangement {
    /// Every file once.
    pub files: Vec<FilePlan>,
    /// Every clone in fio's order.
    pub clones: Vec<ClonePlan>,
}

/// What the size of a file is drawn for.
const PURPOSE_SIZE: u64 = 0xf15;

/// The paths of a clone's files.
fn paths_of(job: &Job, clone: u32) -> Vec<PathBuf> {
    let options = &job.options;
    // Clones take turns in several directories where their files' names are made; files with names go to the first.
    let turn = if options.filenames.is_empty() { clone as usize } else { 0 };
    let directory =
        (!options.directories.is_empty()).then(|| Path::new(&options.directories[turn % options.directories.len()]));
    let path = |name: &str| match directory {
        // As fio does, the directory goes before an absolute name too.
        Some(directory) => directory.join(name.trim_start_matches('/')),
        None => PathBuf::from(name),
    };
    if !options.filenames.is_empty() {
        return options.filenames.iter().map(|name| path(name)).collect();
    }
    let made = |file: u32| {
        let format = options.filename_format.replace("$jobname", &job.name).replace("$jobnum", &clone.to_string());
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

/// Bytes that requests of `request` move in `len` bytes where they leave `hole` out after each `run` of bytes.
pub(crate) fn without_holes(len: u64, request: u64, (run, hole): (u64, u64)) -> u64 {
    let stride = run.saturating_add(hole);
    let moved = len / stride * run + (len % stride).min(run);
    if len < request { len } else { moved / request * request }
}

/// Bytes of each pass of a job and the number of passes, where io_size asks for `asked` bytes and the region has `pass`.
///
/// As in fio: where something follows on each pass, another of several loops or reading back, the job makes whole ones until less than a request is
/// left of io_size, and as many as loops at least; what is read back counts, too.
fn passes(job: &Job, asked: u64, pass: u64) -> (u64, u64) {
    let (options, request) = (&job.options, job.least_request_bytes());
    let reads_back = options.verify.is_some() && options.do_verify && !options.reads;
    let known = (job.sizes().is_none() && !job.overlaps()) || job.covers();
    let whole = (options.loops > 1 || reads_back) && known && !options.strides.are_on();
    if !whole || pass == 0 || asked <= pass {
        return (asked, options.loops);
    }
    let counted = if reads_back { pass.saturating_mul(2) } else { pass };
    (pass, (asked - (request - 1)).div_ceil(counted).max(options.loops))
}

/// What a clone does in each of its files.
#[derive(Debug, Clone, Copy)]
struct Region {
    /// First byte and length of its part.
    part: (u64, u64),
    /// Where the file ends: behind what the requests reach, where its size is no multiple of theirs.
    end: u64,
    /// Bytes that each pass moves, over all of its files.
    pass_bytes: u64,
    passes: u64,
}

/// First byte and length of a clone's part of one of its `count` files, number `file`, of which `found` is there; and the bytes of each pass that the
/// clone makes, and how many it makes.
fn region(job: &Job, clone: u32, (file, count): (u64, u64), path: &Path, found: Found) -> Result<Region, FioError> {
    let options = &job.options;
    let shown = path.display();
    let there = match found {
        Found::File(bytes) | Found::Device(bytes) => Some(bytes),
        Found::Made(bytes) if bytes > 0 => Some(bytes),
        _ => None,
    };
    // Files that take turns have whole requests each; of several sizes the smallest.
    let unit = if job.sizes().is_none() { job.request_bytes() } else { job.least_request_bytes() };
    let share = |bytes: u64| bytes / count;
    let drawn = drawn_size(job, clone, file);
    // What shares are of: what is there or, of a file to be made, what it is to be.
    let whole = match (there, drawn, options.size) {
        (Some(bytes), _, _) | (None, Some(bytes), _) => bytes,
        (None, None, Some(Amount::Bytes(bytes))) => share(bytes),
        (None, None, _) => {
            let why = if found == Found::Endless {
                "has no size of its own, so one"
            } else {
                "is not there yet, so its size"
            };
            return Err(job.wrong(format!("size: {shown} {why} is needed; write size=1g")));
        }
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
    let len = match (drawn, options.size) {
        (Some(bytes), _) => rest(bytes)?,
        (None, Some(Amount::Bytes(bytes))) => share(bytes),
        (None, Some(part)) => part.of(whole).min(rest(whole)?),
        (None, None) => rest(whole)?,
    };
    let file_len = len;
    let len = if count == 1 { len } else { len / unit * unit };
    // As in fio: of several sizes the last requests are as small as they must be.
    let request = job.least_request_bytes();
    if len == 0 {
        return Err(
            job.wrong(format!("size: nothing is left for {shown}; give each of the {count} files a request at least"))
        );
    }
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
    let pass = len.saturating_mul(count);
    let holes = options.hole_bytes;
    let moved = match (options.io_size, options.size) {
        (Some(Amount::Bytes(bytes)), _) => Some(bytes),
        (None, Some(Amount::Bytes(bytes))) => Some(bytes.min(pass)),
        (Some(part), _) | (None, Some(part)) => part.of(whole).checked_mul(count),
        (None, None) => len.checked_mul(count),
    };
    // What is left out between requests is not moved.
    // As in fio: a pass ends with a request that ends with the file, or where what is left is too short for the next; where the next would begin
    // beyond the end it begins anew, until the size is reached.
    let ends = |stride: u64| {
        let fit = (len - request) / stride + 1;
        (len - request).is_multiple_of(stride) || fit * stride < len
    };
    // None: it has no end of its own.
    // Each direction of a mix goes over all of it: their turns know the end.
    let mix = options.reads && options.writes && count == 1;
    let of_pass = match holes {
        _ if mix && holes > 0 => None,
        0 => Some(pass / request * request),
        _ if len >= request && ends(request + holes) => Some(without_holes(len, request, (request, holes))),
        _ => None,
    };
    // As in fio: a pass ends where no whole request is left, and what was asked with io_size is reached by a whole one.
    let asked = moved.ok_or_else(overflow)?;
    let (each, passes) = if options.io_size.is_some() {
        let asked = asked.checked_next_multiple_of(request).ok_or_else(overflow)?;
        of_pass.map_or((asked, options.loops), |of_pass| passes(job, asked, of_pass))
    } else {
        let asked = of_pass.filter(|_| holes > 0).map_or(asked, |of_pass| asked.min(of_pass));
        (Some(asked / request * request).filter(|&whole| whole > 0).unwrap_or(asked), options.loops)
    };
    let each = options.number_ios.map_or(each, |most| each.min(most.saturating_mul(request)));
    each.checked_mul(passes).ok_or_else(overflow)?;
    // A file that is there may end before what its share would be.
    let end = match found {
        Found::File(bytes) | Found::Device(bytes) => end.max(bytes.min(start + file_len)),
        _ => end.max(start.saturating_add(file_len)),
    };
    Ok(Region { part: (start, len), end, pass_bytes: each, passes })
}

impl Arrangement {
    /// Decides for every clone of a plan; `look` tells what stands at a path, and `destroy` names what may be overwritten.
    ///
    /// # Errors
    /// A size that is missing or too large, a place that cannot be used, a file of the user's that would be overwritten.
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
        look: &dyn Fn(&Path) -> io::Result<Found>,
        destroy: &[PathBuf],
    ) -> Result<(), FioError> {
        let paths = paths_of(job, clone);
        let count = paths.len() as u64;
        let mut files = Vec::new();
        let mut parts: Vec<Region> = Vec::new();
        for (number, path) in paths.into_iter().enumerate() {
            let found =
                look(&path).map_err(|error| job.wrong(format!("cannot examine {}: {error}", path.display())))?;
            check_found(job, &path, found, destroy)?;
            // What a job before this one has laid out is there when this one begins.
            let laid_out = self.files.iter().find(|file| file.path == path).map(|file| Found::Made(file.bytes));
            let seen = laid_out.filter(|_| found == Found::Nothing && job.options.size.is_none()).unwrap_or(found);
            let region = region(job, clone, (number as u64, count), &path, seen)?;
            files.push(self.file(job, path, found, region.end));
            parts.push(region);
        }
        let Region { part: (start, len), pass_bytes, passes, .. } = parts[0];
        if parts.iter().any(|other| other.part != (start, len)) {
            return Err(job.wrong(
                "filename: the files that take turns differ in size; give size, so that each has the same part in it",
            ));
        }
        if count > 1 && job.sizes().is_none() && !start.is_multiple_of(job.request_bytes()) {
            return Err(job.wrong("offset: files that take turns begin at a whole request; give a multiple of bs"));
        }
        let limit_bytes = (!job.options.time_based).then_some(pass_bytes * passes);
        let number = self.clones.len() as u32 + 1;
        self.clones.push(ClonePlan { number, job: place, files, part: (start, len), limit_bytes, passes });
        Ok(())
    }

    /// The place of a file of a job in the list, new or known.
    fn file(&mut self, job: &Job, path: PathBuf, found: Found, end: u64) -> usize {
        let options = &job.options;
        let fills = options.reads || options.overwrite || options.engine.is_mapped();
        let made = match (found, fills, options.fallocate) {
            (Found::File(_) | Found::Device(_) | Found::Endless, _, _) => None,
            // Nothing is read or written.
            _ if !options.engine.does_io() => Some(NewFile::Sparse),
            (_, true, _) => Some(NewFile::Filled),
            // It grows as it is written, and has its length from the beginning.
            _ if options.create_on_open || options.fills => Some(NewFile::Sparse),
            (_, false, Fallocate::Reserve) => Some(NewFile::Reserved),
            (_, false, Fallocate::None) => Some(NewFile::Sparse),
        };
        let bytes = match found {
            Found::File(bytes) | Found::Device(bytes) => bytes,
            // Of what is there only its beginning may be used; it stays as long as it is.
            Found::Made(bytes) => bytes.max(end),
            Found::Nothing | Found::Endless | Found::Other(_) => end,
        };
        let file = match self.files.iter().position(|file| file.path == path) {
            Some(index) => index,
            None => {
                self.files.push(FilePlan { path, bytes, made, written: false, idle: true, grows: false });
                self.files.len() - 1
            }
        };
        let entry = &mut self.files[file];
        entry.bytes = entry.bytes.max(bytes);
        entry.written |= options.writes;
        entry.grows |= options.fills && made == Some(NewFile::Sparse);
        entry.idle &= !options.engine.does_io();
        if made == Some(NewFile::Filled) {
            entry.made = made;
        }
        file
    }
}

#[cfg(unix)]
fn is_pipe(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type())
}

#[cfg(unix)]
fn is_block_device(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_block_device(&metadata.file_type())
}

#[cfg(not(unix))]
fn is_block_device(_: &fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn is_pipe(_: &fs::Metadata) -> bool {
    false
}

/// What stands at a path.
///
/// # Errors
/// It cannot be examined.
pub fn look(path: &Path) -> io::Result<Found> {
    if is_twin(path) {
        // A simulated volume is made as large as it must be.
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
    if is_pipe(&metadata) {
        // Opening one would wait for its other end.
        return Ok(Found::Other("a pipe"));
    }
    // A block device says its size at its end; what has no end holds no data.
    match File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0))) {
        Ok(bytes) if bytes > 0 => Ok(Found::Device(bytes)),
        Ok(_) => Ok(Found::Other("neither a file nor a block device with a medium")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Err(_) if is_block_device(&metadata) => {
            Ok(Found::Other("a block device that cannot be opened: no driver serves it, or it has no medium"))
        }
        Err(_) => Ok(Found::Other("neither a file nor a block device")),
    }
}

/// Refuses a place that is none, and the overwriting of what is the user's.
fn check_found(job: &Job, path: &Path, found: Found, destroy: &[PathBuf]) -> Result<(), FioError> {
    let shown = path.display();
    match found {
        Found::Nothing if !job.options.allow_create => {
            Err(job.wrong(format!("allow_file_create=0: {shown} is not there; make it first, or leave the option out")))
        }
        Found::Other(what) => Err(job.wrong(format!("{shown} is {what}; name a file or a block device, or use directory"))),
        Found::File(_) | Found::Device(_) if job.options.writes && !destroy.iter().any(|named| named == path) => Err(job.wrong(format!(
            "{shown} is there already, and the job would overwrite it (fio does so without a word); if it may be lost, name it again: --destroy-data={shown}"
        ))),
        Found::File(_) | Found::Device(_) if job.options.unlink || job.options.unlink_each_loop => {
            Err(job.wrong(format!("unlink=1: {shown} was there before, and halfpower removes only what it made; remove it yourself")))
        }
        _ => Ok(()),
    }
}
