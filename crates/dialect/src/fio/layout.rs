//! Files laid out before the run, and removed after it.

use super::arrange::{Arrangement, FilePlan, Found, Origin};
use super::error::FioError;
use super::run::Surroundings;
use crate::words::is_twin;
use machine::fill_random;
use machine::units::{show_size, show_size_rounded};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes filled at a time.
const STEP: usize = 1 << 20;

/// What stands at a path.
///
/// # Errors
/// It cannot be looked at.
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
    // A block device says its size at its end; what has no end holds no data.
    match File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0))) {
        Ok(bytes) if bytes > 0 => Ok(Found::Device(bytes)),
        Ok(_) => Ok(Found::Other("neither a file nor a block device with a medium")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Err(_) => Ok(Found::Other("neither a file nor a block device")),
    }
}

/// Files that were made for a run. Dropped, they are removed, unless they are to be kept.
#[derive(Debug, Default)]
pub struct Laid {
    made: Vec<PathBuf>,
    keep: bool,
}

impl Drop for Laid {
    fn drop(&mut self) {
        if !self.keep {
            for path in &self.made {
                // Nothing is left to do about a failure: the name is in the job file.
                let _ = fs::remove_file(path);
            }
        }
    }
}

impl Laid {
    /// Makes the files of an arrangement that are not there. Returns what is to be told about it, too.
    ///
    /// # Errors
    /// A file cannot be made or filled, or the user stopped it: those made so far are removed.
    pub fn out(
        arrangement: &Arrangement,
        surroundings: &dyn Surroundings,
        keep: bool,
        interrupt: &AtomicBool,
    ) -> Result<(Laid, Vec<String>), FioError> {
        check_room(arrangement, surroundings)?;
        let mut laid = Laid { made: Vec::new(), keep: false };
        let mut warnings = Vec::new();
        for (index, plan) in arrangement.files.iter().enumerate().filter(|(_, plan)| plan.origin != Origin::Found && !is_twin(&plan.path)) {
            let cannot = |error: io::Error| match error.kind() {
                io::ErrorKind::NotFound => FioError::Usage(format!("{}: its directory is not there; make it first", plan.path.display())),
                io::ErrorKind::PermissionDenied => {
                    FioError::Usage(format!("{}: no permission to make it; name a directory that you may write", plan.path.display()))
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    let size = show_size(plan.bytes);
                    FioError::File(format!("{}: the file system has no room for its {size}; lower size, or free some", plan.path.display()))
                }
                _ => FioError::File(format!("cannot lay out {}: {error}", plan.path.display())),
            };
            let file = OpenOptions::new().write(true).create_new(true).open(&plan.path).map_err(cannot)?;
            laid.made.push(plan.path.clone());
            if let Some(warning) = fill(&file, plan, index as u64, surroundings, interrupt).map_err(cannot)? {
                warnings.push(warning);
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(FioError::Machine { job: "laying out files".into(), source: machine::Error::Interrupted });
            }
        }
        laid.keep = keep;
        Ok((laid, warnings))
    }
}

/// Refuses what the file systems have no room for, before they are filled to the brim.
fn check_room(arrangement: &Arrangement, surroundings: &dyn Surroundings) -> Result<(), FioError> {
    let mut rooms: Vec<(&Path, u64)> = Vec::new();
    for plan in arrangement.files.iter().filter(|plan| plan.origin != Origin::Found && !is_twin(&plan.path)) {
        let directory = plan.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match rooms.iter_mut().find(|(known, _)| *known == directory) {
            Some((_, needed)) => *needed = needed.saturating_add(plan.bytes),
            None => rooms.push((directory, plan.bytes)),
        }
    }
    for (directory, needed) in rooms {
        // A directory that is not there is told when its file cannot be made.
        if let Some(free) = surroundings.free_bytes(directory).ok().flatten().filter(|&free| needed > free) {
            let (needed, free) = (show_size(needed), show_size_rounded(free as f64));
            let shown = directory.display();
            return Err(FioError::Usage(format!(
                "size: the files to be laid out in {shown} take {needed}, and {free} are free; lower size or numjobs, or free some"
            )));
        }
    }
    Ok(())
}

/// Gives a new file its bytes or its space.
fn fill(file: &File, plan: &FilePlan, seed: u64, surroundings: &dyn Surroundings, interrupt: &AtomicBool) -> io::Result<Option<String>> {
    let mut warning = None;
    match plan.origin {
        Origin::Found => {}
        Origin::Sparse => file.set_len(plan.bytes)?,
        Origin::Reserved => match surroundings.reserve(file, plan.bytes) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                file.set_len(plan.bytes)?;
                warning = Some(format!(
                    "{}: its file system reserves no space, so writes allocate it as they go (fio says nothing)",
                    plan.path.display()
                ));
            }
            result => result?,
        },
        Origin::Filled => {
            let mut buffer = vec![0u8; STEP];
            let mut left = plan.bytes;
            while left > 0 && !interrupt.load(Ordering::Relaxed) {
                let step = left.min(STEP as u64) as usize;
                fill_random(left ^ seed.rotate_left(40), &mut buffer[..step]);
                (&*file).write_all(&buffer[..step])?;
                left -= step as u64;
            }
        }
    }
    file.sync_all()?;
    Ok(warning)
}
