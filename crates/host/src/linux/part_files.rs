//! Opens a part's files with the requested allocation and cache state.

use super::owned_file::{OwnedFile, reopen};
use super::run::Context;
use super::target::HostTarget;
use super::{free_page_reporting, sys};
use crate::stripe::StripeSet;
use machine::{
    Access, Allocation, Buffering, CacheState, Error, Hint, Part, RequestSource, Result,
    fill_random,
};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct PartFiles {
    pub(super) files: Vec<File>,
    pub(super) region: (u64, u64),
    pub(super) truncate: bool,
    pub(super) stripe: Option<StripeSet>,
    pub(super) scratch: Vec<OwnedFile>,
}

pub(super) fn open_part<S: RequestSource>(
    part: &Part<'_, HostTarget, S>,
    interrupt: &AtomicBool,
) -> Result<PartFiles> {
    let writes = part.sources.iter().any(RequestSource::writes);
    let mut whole = PartFiles {
        files: Vec::new(),
        region: part.access.region,
        truncate: false,
        stripe: part.targets[0].stripe(),
        scratch: Vec::new(),
    };
    for (index, target) in part.targets.iter().enumerate() {
        let mut one = open_files(target, &part.access_of(index), writes, interrupt)?;
        whole.files.append(&mut one.files);
        whole.scratch.append(&mut one.scratch);
        (whole.region, whole.truncate) = (one.region, one.truncate);
    }
    if part.targets.len() > 1 && !whole.scratch.is_empty() {
        return Err(Error::Unsupported(
            "scratch files need a single target: use --allocate written".into(),
        ));
    }
    Ok(whole)
}

fn open_files(
    target: &HostTarget,
    access: &Access,
    writes: bool,
    interrupt: &AtomicBool,
) -> Result<PartFiles> {
    let mut flags = 0;
    if access.buffering.is_direct() {
        if let Some(reason) = &target.facts().direct_refused {
            return Err(Error::Unsupported(reason.clone()));
        }
        flags |= libc::O_DIRECT;
    }
    if access.buffering.is_dsync() {
        flags |= if access.metadata_sync { libc::O_SYNC } else { libc::O_DSYNC };
    }
    let stripe = target.stripe();
    if let Some(StripeSet { parity: Some((_, busy)), .. }) = &stripe {
        busy.clear();
    }
    let members = target.members().len() as u64;
    let region = stripe.as_ref().map_or(access.region, |set| set.member_region(access.region));
    let in_place = access.allocation == Allocation::Extend
        && target.grown
        && target.members().iter().all(|member| member.made().is_some());
    if access.allocation == Allocation::Written || !writes || in_place {
        let opened: io::Result<Vec<File>> =
            target.members().iter().map(|member| member.open_with(writes, flags)).collect();
        let files = opened.map_err(|error| cannot_open(target, error))?;
        if in_place {
            for (file, member) in files.iter().zip(target.members()) {
                file.set_len(0).map_err(Error::io("cannot empty", &member.path))?;
            }
        }
        return Ok(PartFiles { files, region, truncate: false, stripe, scratch: Vec::new() });
    }
    if access.engine.is_mapped() && access.allocation != Allocation::Reserved {
        return Err(Error::Unsupported(
            "a mapped file cannot grow as it is written: use --allocate written or reserved".into(),
        ));
    }
    let len = (access.region.0 + access.region.1).div_ceil(members);
    let scratch = make_scratch(target, access.allocation, len, interrupt)?;
    let opened: io::Result<Vec<File>> =
        scratch.iter().map(|made| reopen(made.file(), true, flags)).collect();
    let files = opened.map_err(|error| cannot_open(target, error))?;
    Ok(PartFiles {
        files,
        region,
        truncate: access.allocation == Allocation::Truncate,
        stripe,
        scratch,
    })
}

fn cannot_open(target: &HostTarget, error: io::Error) -> Error {
    Error::io("cannot open", &target.members()[0].path)(error)
}

fn make_scratch(
    target: &HostTarget,
    allocation: Allocation,
    len: u64,
    interrupt: &AtomicBool,
) -> Result<Vec<OwnedFile>> {
    // Remove those of the last run first: their space may be needed.
    let kept = target.take_scratch();
    if allocation == Allocation::Truncate
        && kept.len() == target.members().len()
        && kept.iter().all(|made| made.file().metadata().is_ok_and(|file| file.len() >= len))
    {
        return Ok(kept);
    }
    drop(kept);
    let mut scratch = Vec::new();
    for member in target.members() {
        let Some(own) = member.made() else {
            return Err(Error::Unsupported(format!(
                "{} was there before: only in a directory can files be made whose space is {}",
                member.path.display(),
                allocation.name()
            )));
        };
        let made = own.create_beside()?;
        let file = made.file();
        match allocation {
            Allocation::Reserved => {
                sys::reserve(file, len).map_err(|error| {
                    Error::Unsupported(format!(
                        "the file system cannot reserve space (fallocate): {error}"
                    ))
                })?;
            }
            Allocation::Truncate => {
                let mut buffer = vec![0u8; 1 << 20];
                fill_random(len, &mut buffer);
                for offset in (0..len).step_by(buffer.len()) {
                    go_on(interrupt)?;
                    let step = (len - offset).min(buffer.len() as u64) as usize;
                    file.write_all_at(&buffer[..step], offset)
                        .map_err(Error::io("cannot fill", &made.path))?;
                }
            }
            Allocation::Extend | Allocation::Written => {}
        }
        file.sync_all().map_err(Error::io("cannot bring to stable storage", &made.path))?;
        scratch.push(made);
    }
    Ok(scratch)
}

/// `wanted` bytes may have been reclaimed by the hypervisor.
pub(super) fn prepare_cache(
    context: &Context<'_>,
    files: &PartFiles,
    access: &Access,
    wanted: u64,
) -> Result<Option<String>> {
    let interrupt = context.interrupt;
    let mut reported = None;
    for file in &files.files {
        let (start, len) = files.region;
        if access.hint != Hint::None {
            sys::advise(file, access.hint);
        }
        match access.cache {
            CacheState::AsIs => {}
            CacheState::Cold => {
                sys::sync_data(file)
                    .map_err(Error::io("cannot bring to stable storage", "the target"))?;
                let share = if access.buffering == Buffering::Buffered {
                    wanted / files.files.len() as u64
                } else {
                    0
                };
                reported = reported.or(free_page_reporting::drop_cache(
                    file,
                    (start, len),
                    share,
                    interrupt,
                ));
            }
            CacheState::Warm => {
                let mut buffer = vec![0u8; 1 << 20];
                let mut offset = start;
                while offset < start + len {
                    go_on(interrupt)?;
                    let step = (start + len - offset).min(buffer.len() as u64) as usize;
                    match file.read_at(&mut buffer[..step], offset) {
                        Ok(0) => break,
                        Ok(got) => offset += got as u64,
                        Err(error) => return Err(Error::io("cannot read", "the target")(error)),
                    }
                }
            }
        }
    }
    Ok(reported)
}

fn go_on(interrupt: &AtomicBool) -> Result<()> {
    if interrupt.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}
