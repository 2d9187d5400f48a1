use super::{WorkDirectory, open_at, open_directory, stdio, text, uring};
use machine::files::{
    AreaSpec, FileAct, FileEngine, FileError, FileId, FileSync, FileWork, parent_directory,
};
use rustix::fs::{AtFlags, RawDir, renameat, statat, unlinkat};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Each directory has two or more below it, with 32-bit numbers.
pub(super) const MAX_LEVELS: usize = 33;

pub(super) const SUBDIRECTORY: &[u8; 1] = b"s";

pub(super) const TREE: &[u8; 1] = b"t";

/// `t4294967295/` on each level, a file's number, and the end.
const LONGEST: usize = MAX_LEVELS * 12 + 11;

#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    bytes: [u8; LONGEST],
    subdirectories: bool,
    branch: u32,
}

impl Name {
    pub(super) fn new(spec: &AreaSpec) -> Name {
        Name { bytes: [0; LONGEST], subdirectories: spec.subdirectories > 0, branch: spec.branch }
    }

    pub(super) fn directory(&mut self, index: u32) -> &CStr {
        let end = self.below(index);
        self.ended(end - 1)
    }

    pub(super) fn file(&mut self, file: FileId) -> &CStr {
        let at = if self.subdirectories { self.below(file.subdirectory) } else { 0 };
        let end = self.number(at, file.number);
        self.ended(end)
    }

    fn below(&mut self, index: u32) -> usize {
        let (mut path, mut levels) = ([0; MAX_LEVELS], 0);
        let mut next = Some(index);
        while let Some(number) = next {
            path[levels] = number;
            levels += 1;
            next = parent_directory(number, self.branch);
        }
        let [first] = if self.branch > 0 { TREE } else { SUBDIRECTORY };
        path[..levels].iter().rev().fold(0, |at, &number| {
            self.bytes[at] = *first;
            let end = self.number(at + 1, number);
            self.bytes[end] = b'/';
            end + 1
        })
    }

    fn number(&mut self, at: usize, number: u32) -> usize {
        let end = at + number.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut rest = number;
        for place in self.bytes[at..end].iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        end
    }

    fn ended(&mut self, end: usize) -> &CStr {
        self.bytes[end] = 0;
        CStr::from_bytes_until_nul(&self.bytes).expect("just ended")
    }
}

pub struct FileWorker {
    directories: Arc<Vec<WorkDirectory>>,
    subdirectories: bool,
    engine: FileEngine,
    sync: FileSync,
    read_call: usize,
    write_call: usize,
    name: Name,
    buffer: Vec<u8>,
    into: Vec<u8>,
    chain: Option<uring::Chain>,
}

impl FileWorker {
    pub(super) fn new(
        directories: Arc<Vec<WorkDirectory>>,
        spec: &AreaSpec,
    ) -> Result<Self, FileError> {
        let chain = match spec.engine {
            FileEngine::IoUring => {
                let refused = |error: io::Error| FileError::Engine {
                    engine: spec.engine.name(),
                    why: error.to_string(),
                };
                Some(uring::Chain::new().map_err(refused)?)
            }
            _ => None,
        };
        let block = directories.first().map_or(4096, |directory| directory.block);
        Ok(FileWorker {
            directories,
            subdirectories: spec.subdirectories > 0,
            engine: spec.engine,
            sync: spec.sync,
            read_call: spec.read_block_bytes.max(1) as usize,
            write_call: spec.write_block_bytes.max(1) as usize,
            name: Name::new(spec),
            buffer: vec![0; block],
            into: Vec::new(),
            chain,
        })
    }

    fn path(&self, file: FileId) -> PathBuf {
        let mut name = self.name;
        self.directories[file.location as usize].path.join(text(name.file(file)))
    }

    fn named<T>(&self, result: io::Result<T>, act: FileAct, file: FileId) -> Result<T, FileError> {
        result.map_err(|error| FileError::of(act, self.path(file), error))
    }

    fn directory(&self, file: FileId) -> &WorkDirectory {
        &self.directories[file.location as usize]
    }

    fn open_file(&mut self, file: FileId, flags: i32) -> io::Result<File> {
        let name = self.name.file(file);
        open_at(&self.directories[file.location as usize].handle, name, flags)
    }

    fn write_new(&mut self, file: FileId, content: &[u8], flags: i32) -> io::Result<()> {
        if let Some(chain) = &mut self.chain {
            let name = self.name.file(file);
            let directory = self.directories[file.location as usize].fd();
            return chain.write(
                directory,
                name,
                flags,
                content,
                self.write_call,
                self.sync != FileSync::None,
            );
        }
        let mut open = self.open_file(file, flags)?;
        match self.engine {
            FileEngine::Stdio => {
                stdio::write(&mut open, content, self.write_call, &mut self.buffer)?
            }
            _ => content.chunks(self.write_call).try_for_each(|piece| open.write_all(piece))?,
        }
        if self.sync != FileSync::None {
            open.sync_all()?;
        }
        // A network file system may report a full disk only at close. SAFETY: we own the descriptor
        // and give it up here.
        if unsafe { libc::close(open.into_raw_fd()) } < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    fn read_whole(&mut self, file: FileId, bytes: u64) -> io::Result<u64> {
        let call = (self.read_call as u64).min(bytes) as usize;
        if self.into.len() < call {
            self.into.resize(call, 0);
        }
        if let Some(chain) = &mut self.chain {
            let name = self.name.file(file);
            let directory = self.directories[file.location as usize].fd();
            return chain.read(directory, name, &mut self.into, bytes, self.read_call);
        }
        let mut open = self.open_file(file, libc::O_RDONLY)?;
        if self.engine == FileEngine::Stdio {
            return stdio::read(&mut open, bytes, call.max(1), &mut self.into, &mut self.buffer);
        }
        let mut done = 0;
        while done < bytes {
            let want = (bytes - done).min(call as u64) as usize;
            match stdio::read_some(&mut open, &mut self.into[..want])? {
                0 => break,
                n => done += n as u64,
            }
        }
        Ok(done)
    }

    fn sync_directory(&self, file: FileId) -> io::Result<()> {
        if self.sync != FileSync::All {
            return Ok(());
        }
        let handle = &self.directory(file).handle;
        if self.subdirectories {
            let mut name = self.name;
            open_directory(handle, text(name.directory(file.subdirectory)))?.sync_all()
        } else {
            handle.sync_all()
        }
    }

    fn unlink(&mut self, file: FileId) -> io::Result<()> {
        let name = self.name.file(file);
        let directory = &self.directories[file.location as usize];
        match &mut self.chain {
            Some(chain) => chain.unlink(directory.fd(), name),
            None => Ok(unlinkat(&directory.handle, name, AtFlags::empty())?),
        }
    }
}

impl FileWork for FileWorker {
    fn create(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        let result = self.write_new(file, content, flags).and_then(|()| self.sync_directory(file));
        self.named(result, FileAct::Create, file)
    }

    fn read(&mut self, file: FileId, bytes: u64) -> Result<(), FileError> {
        let result = self.read_whole(file, bytes);
        let got = self.named(result, FileAct::Read, file)?;
        if got == bytes {
            Ok(())
        } else {
            Err(FileError::Size { path: self.path(file), expected: bytes, got })
        }
    }

    fn append(&mut self, file: FileId, content: &[u8]) -> Result<(), FileError> {
        let result = self.write_new(file, content, libc::O_WRONLY | libc::O_APPEND);
        self.named(result, FileAct::Append, file)
    }

    fn delete(&mut self, file: FileId) -> Result<(), FileError> {
        let result = self.unlink(file).and_then(|()| self.sync_directory(file));
        self.named(result, FileAct::Delete, file)
    }

    fn stat(&mut self, file: FileId) -> Result<u64, FileError> {
        let name = self.name.file(file);
        let handle = &self.directories[file.location as usize].handle;
        let result = statat(handle, name, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| stat.st_size as u64)
            .map_err(io::Error::from);
        self.named(result, FileAct::Stat, file)
    }

    fn open(&mut self, file: FileId) -> Result<(), FileError> {
        let result = self.open_file(file, libc::O_RDONLY).map(drop);
        self.named(result, FileAct::Open, file)
    }

    fn rename(&mut self, from: FileId, to: FileId) -> Result<(), FileError> {
        let mut new = self.name;
        let (old, new) = (self.name.file(from), new.file(to));
        let directory = |file: FileId| &self.directories[file.location as usize].handle;
        let result = renameat(directory(from), old, directory(to), new).map_err(io::Error::from);
        let result = result.and_then(|()| self.sync_directory(to));
        let far = from.location != to.location || from.subdirectory != to.subdirectory;
        let result = if far { result.and_then(|()| self.sync_directory(from)) } else { result };
        self.named(result, FileAct::Rename, from)
    }

    fn list(&mut self, location: u32, subdirectory: u32) -> Result<u64, FileError> {
        let directory = &self.directories[location as usize];
        let mut name = self.name;
        let below =
            if self.subdirectories { text(name.directory(subdirectory)) } else { Path::new(".") };
        let listed = open_directory(&directory.handle, below)
            .and_then(|opened| count_entries(&opened, &mut self.into));
        listed.map_err(|error| FileError::of(FileAct::List, directory.path.join(below), error))
    }
}

/// Bytes per call, as in the C library.
const LISTING: usize = 32 << 10;

fn count_entries(directory: &File, buffer: &mut Vec<u8>) -> io::Result<u64> {
    buffer.reserve(LISTING);
    let mut listing = RawDir::new(directory, buffer.spare_capacity_mut());
    let mut entries = 0;
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name();
        entries += u64::from(name != c"." && name != c"..");
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(subdirectories: u32, branch: u32) -> AreaSpec {
        AreaSpec {
            locations: Vec::new(),
            joins: false,
            subdirectories,
            branch,
            engine: FileEngine::Syscalls,
            sync: FileSync::None,
            read_block_bytes: 1,
            write_block_bytes: 1,
        }
    }

    #[test]
    fn the_longest_and_the_shortest_names_fit() {
        let file = |subdirectory, number| FileId { location: 0, subdirectory, number };
        let [none, flat, tree] =
            [(0, 0), (1, 0), (1, 2)].map(|(all, branch)| Name::new(&spec(all, branch)));
        assert_eq!(flat.clone().file(file(u32::MAX, u32::MAX)), c"s4294967295/4294967295");
        assert_eq!(flat.clone().file(file(0, 0)), c"s0/0");
        assert_eq!(none.clone().file(file(3, 1000)), c"1000");
        assert_eq!(flat.clone().directory(17), c"s17");
        assert_eq!(tree.clone().directory(0), c"t0");
        assert_eq!(tree.clone().file(file(12, 7)), c"t0/t2/t5/t12/7");
        let deepest = tree.clone().file(file(u32::MAX, u32::MAX)).to_str().unwrap().to_owned();
        assert_eq!(deepest.matches('/').count(), MAX_LEVELS);
    }
}
