//! One task of IOR.

use super::data::Data;
use crate::tasks::Span;
use machine::{Error, Nanos, Op, OpenAs, Result, TaskFile, TaskFiles, Wanted};
use measure::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use workload::Permutation;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    pub tasks: u64,
    pub block_bytes: u64,
    pub transfer_bytes: u64,
    pub segments: u64,
    pub per_task: bool,
    pub random: bool,
    /// Seed of the order and the data.
    pub signature: u64,
}

impl Layout {
    /// Of one task.
    pub fn transfers(&self) -> u64 {
        self.block_bytes / self.transfer_bytes * self.segments
    }

    pub fn task_bytes(&self) -> u64 {
        self.block_bytes.saturating_mul(self.segments)
    }

    /// In file order.
    pub fn offset(&self, task: u64, transfer: u64) -> u64 {
        let per_block = self.block_bytes / self.transfer_bytes;
        let (segment, within) = (transfer / per_block, transfer % per_block);
        let (tasks, task) = if self.per_task { (1, 0) } else { (self.tasks, task) };
        (segment * tasks + task) * self.block_bytes + within * self.transfer_bytes
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Step {
    Begin(Layout),
    /// Check files before any task writes one.
    Check {
        wanted: Vec<Wanted>,
        directory: PathBuf,
    },
    MakeDirectory(PathBuf),
    /// Make or take the file that all write.
    Hold {
        wanted: Wanted,
        empty: bool,
    },
    /// Take a file: one that exists, or any.
    Take {
        wanted: Wanted,
        only_existing: bool,
    },
    Access(Access),
    /// Remove what [`Step::MakeDirectory`] made, unless files are in it.
    RemoveDirectories,
    /// Give files back: those that another task holds, or all.
    Release {
        all: bool,
        end: FileEnd,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileEnd {
    Keep,
    Remove,
    /// Remove it, unless an earlier run kept it.
    AsItWas,
}

/// A phase on a file, or a part of one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Access {
    pub wanted: Wanted,
    /// The task whose transfers are made.
    pub of_task: u64,
    pub open_as: OpenAs,
    pub opens: bool,
    /// Transfers until the end; `None`: without transfers.
    pub upto: Option<u64>,
    /// No transfer begins after this time.
    pub deadline_ns: Option<Nanos>,
    pub sync_each: bool,
    /// Flush once, after the transfers.
    pub sync: bool,
    pub verify: bool,
    pub closes: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    Ready,
    Checked {
        free_bytes: Option<u64>,
        /// Of files that will be overwritten.
        there_bytes: u64,
    },
    Held {
        number: u64,
        span: Span,
    },
    Accessed(Accessed),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Accessed {
    pub open: Span,
    /// The transfers, and the flush at their end.
    pub transfer: Span,
    pub close: Span,
    /// With those of earlier parts of the phase.
    pub transfers: u64,
    pub latency: Histogram,
    /// Transfers with wrong data.
    pub wrong: u64,
    pub file_bytes: u64,
    pub number: u64,
}

struct Taken<F> {
    file: F,
    /// Another task holds the file.
    joined: bool,
}

pub struct Task<'f, F: TaskFiles> {
    files: &'f F,
    layout: Option<(Layout, Data, Option<Permutation>)>,
    taken: HashMap<PathBuf, Taken<F::File>>,
    directories: Vec<PathBuf>,
    done: u64,
}

impl<'f, F: TaskFiles> Task<'f, F> {
    pub fn new(files: &'f F) -> Task<'f, F> {
        Task { files, layout: None, taken: HashMap::new(), directories: Vec::new(), done: 0 }
    }

    pub fn perform(&mut self, step: &Step, start: Option<Nanos>) -> Result<Reply> {
        match step {
            Step::Begin(layout) => {
                let data = Data::new(layout.signature, layout.transfer_bytes as usize)?;
                let order =
                    layout.random.then(|| Permutation::new(layout.transfers(), layout.signature));
                self.layout = Some((layout.clone(), data, order));
                Ok(Reply::Ready)
            }
            Step::Check { wanted, directory } => {
                let mut there_bytes = 0u64;
                for one in wanted {
                    self.files.check(one)?;
                    there_bytes += self.files.stat(&one.path).unwrap_or(0);
                }
                let free_bytes = self.files.free_bytes(directory)?;
                Ok(Reply::Checked { free_bytes, there_bytes })
            }
            Step::MakeDirectory(path) => {
                if self.files.make_directory(path)? {
                    self.directories.push(path.clone());
                }
                Ok(Reply::Ready)
            }
            Step::Hold { wanted, empty } => {
                let (number, span) = Span::of(self.files, || {
                    let taken = take(self.files, &mut self.taken, wanted)?;
                    if *empty {
                        taken.open(OpenAs { writes: true, direct: false, empty: true })?;
                        taken.close()?;
                    }
                    taken.number()
                })?;
                Ok(Reply::Held { number, span })
            }
            Step::Take { wanted, only_existing } => {
                // A new file is made when it is opened, in the time of the phase.
                if !*only_existing || self.files.stat(&wanted.path).is_ok() {
                    take(self.files, &mut self.taken, wanted)?;
                }
                Ok(Reply::Ready)
            }
            Step::Access(access) => self.access(access, start).map(Reply::Accessed),
            Step::Release { all, end } => {
                let keys: Vec<PathBuf> = (self.taken.iter())
                    .filter(|(_, taken)| *all || taken.joined)
                    .map(|(path, _)| path.clone())
                    .collect();
                for path in keys {
                    let Some(Taken { mut file, .. }) = self.taken.remove(&path) else { continue };
                    match end {
                        FileEnd::Keep => file.keep(),
                        FileEnd::Remove => file.discard(),
                        FileEnd::AsItWas => {}
                    }
                }
                Ok(Reply::Ready)
            }
            Step::RemoveDirectories => {
                for path in self.directories.drain(..).rev() {
                    // A file that is kept keeps its directory.
                    let _ = self.files.remove_directory(&path);
                }
                Ok(Reply::Ready)
            }
        }
    }

    fn access(&mut self, access: &Access, start: Option<Nanos>) -> Result<Accessed> {
        let Some((layout, data, order)) = &mut self.layout else {
            return Err(Error::Unsupported("no test has begun".into()));
        };
        if let Some(start) = start {
            self.files.wait_until(start);
        }
        let files = self.files;
        let now = files.now();
        let nothing = Span { from: now, to: now };
        let mut accessed = Accessed {
            open: nothing,
            transfer: nothing,
            close: nothing,
            transfers: 0,
            latency: Histogram::new(),
            wrong: 0,
            file_bytes: 0,
            number: 0,
        };
        if access.opens {
            self.done = 0;
            let taken = &mut self.taken;
            accessed.open =
                Span::of(files, || take(files, taken, &access.wanted)?.open(access.open_as))?.1;
        }
        let Some(Taken { file, .. }) = self.taken.get_mut(&access.wanted.path) else {
            return Err(Error::Unsupported(format!(
                "{} is not open",
                access.wanted.path.display()
            )));
        };
        if let Some(upto) = access.upto {
            let from = files.now();
            let until = access.deadline_ns.map(|ns| from.saturating_add(ns));
            let mut began = from;
            while self.done < upto.min(layout.transfers()) {
                if files.is_interrupted() {
                    return Err(Error::Interrupted);
                }
                if until.is_some_and(|until| began >= until) {
                    break;
                }
                let place = order.as_ref().map_or(self.done, |order| order.at(self.done));
                let offset = layout.offset(access.of_task, place);
                // A file of its own shows no other task's data by its offsets.
                let owner = if layout.per_task { access.of_task } else { 0 };
                if access.open_as.writes {
                    let bytes = data.at(offset, owner);
                    began = files.now();
                    write_all(file, bytes, offset)?;
                    if access.sync_each {
                        file.sync()?;
                    }
                } else {
                    began = files.now();
                    read_all(file, data.got.bytes(), offset)?;
                }
                let ended = files.now();
                accessed.latency.record(ended.saturating_sub(began));
                if access.verify && !data.is_right(offset, owner) {
                    accessed.wrong += 1;
                }
                began = ended;
                self.done += 1;
            }
            if access.sync {
                file.sync()?;
            }
            accessed.transfer = Span { from, to: files.now() };
        }
        accessed.transfers = self.done;
        if access.closes {
            accessed.close = Span::of(files, || file.close())?.1;
        }
        (accessed.file_bytes, accessed.number) = (file.size_bytes()?, file.number()?);
        Ok(accessed)
    }
}

fn take<'t, F: TaskFiles>(
    files: &F,
    all: &'t mut HashMap<PathBuf, Taken<F::File>>,
    wanted: &Wanted,
) -> Result<&'t mut F::File> {
    use machine::Sharing;
    use std::collections::hash_map::Entry;
    match all.entry(wanted.path.clone()) {
        Entry::Occupied(taken) => Ok(&mut taken.into_mut().file),
        Entry::Vacant(place) => {
            let joined = matches!(wanted.sharing, Some(Sharing::Joins { .. }));
            Ok(&mut place.insert(Taken { file: files.take(wanted)?, joined }).file)
        }
    }
}

fn failed(op: Op, offset: u64, len: usize, source: io::Error) -> Error {
    Error::Request { op, offset, len: u32::try_from(len).unwrap_or(u32::MAX), source }
}

fn write_all(file: &impl TaskFile, data: &[u8], offset: u64) -> Result<()> {
    let mut done = 0;
    while done < data.len() {
        match file.write_at(&data[done..], offset + done as u64) {
            Ok(0) => {
                let source = io::ErrorKind::WriteZero.into();
                return Err(failed(Op::Write, offset, data.len(), source));
            }
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(Op::Write, offset, data.len(), error)),
        }
    }
    Ok(())
}

fn read_all(file: &impl TaskFile, data: &mut [u8], offset: u64) -> Result<()> {
    let (mut done, len) = (0, data.len());
    while done < len {
        match file.read_at(&mut data[done..], offset + done as u64) {
            Ok(0) => {
                let source = io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the file ends here; write it with the same sizes and number of tasks",
                );
                return Err(failed(Op::Read, offset, len, source));
            }
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(Op::Read, offset, len, error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tasks_share_the_file(tasks in 1u64..6, per_block in 1u64..5, segments in 1u64..5, transfer in 1u64..100) {
            let layout = Layout {
                tasks, block_bytes: per_block * transfer, transfer_bytes: transfer, segments,
                per_task: false, random: false, signature: 1,
            };
            let mut places: Vec<u64> = (0..tasks)
                .flat_map(|task| (0..layout.transfers()).map(move |one| (task, one)))
                .map(|(task, one)| layout.offset(task, one))
                .collect();
            places.sort_unstable();
            let all: Vec<u64> = (0..tasks * per_block * segments).map(|one| one * transfer).collect();
            prop_assert_eq!(places, all);
            let own = Layout { per_task: true, ..layout };
            let places: Vec<u64> = (0..own.transfers()).map(|one| own.offset(tasks - 1, one)).collect();
            prop_assert!(places.iter().enumerate().all(|(index, place)| *place == index as u64 * transfer));
        }
    }

    #[test]
    fn a_strided_file_has_a_block_of_each_task_in_each_segment() {
        let layout = Layout {
            tasks: 3,
            block_bytes: 200,
            transfer_bytes: 100,
            segments: 2,
            per_task: false,
            random: false,
            signature: 1,
        };
        let of = |task| (0..4).map(|one| layout.offset(task, one)).collect::<Vec<_>>();
        assert_eq!(of(0), [0, 100, 600, 700]);
        assert_eq!(of(2), [400, 500, 1000, 1100]);
    }
}
