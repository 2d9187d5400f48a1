//! Files of a simulated volume. Each has its own address space, so an address identifies its file.

use crate::volume::{Kind, Layout, Plan};
use machine::units::{show_size, show_size_rounded};
use machine::{Error, Nanos, Op, Result};
use std::collections::VecDeque;
use std::ops::Range;

/// The bits of an address within a file: larger than any volume.
const FILE_BITS: u32 = 52;
const MAX_FILES: usize = 1 << (64 - FILE_BITS);
pub(crate) const VOLUME: u32 = 0;

#[derive(Debug, Clone)]
pub(crate) struct File {
    pub name: Option<String>,
    handles: u32,
    pub members: Vec<u32>,
    pub layout: Layout,
    whole: Layout,
    /// The first byte and the bytes on each member; `None`: the volume itself.
    extent: Option<(u64, u64)>,
    asked: Option<u64>,
    pub size: u64,
    pub start: u64,
    /// The end of the data; a write past it extends the file.
    pub valid: u64,
    /// The end of the data that have been written back, and the end in the file's record.
    pub stored: u64,
    pub recorded: u64,
    pub extending: bool,
    pub extenders: VecDeque<u32>,
    pub dirty: u64,
    /// Bytes since the run began.
    pub written: u64,
    /// Write-backs in flight, and workers between two of them.
    pub outstanding: u32,
    pub flushing: bool,
}

impl File {
    pub fn end(&self) -> u64 {
        self.start + self.size
    }

    pub fn addresses(&self) -> Range<u64> {
        self.start..self.start + (1 << (FILE_BITS - 1))
    }

    /// In the middle of the members.
    pub fn log(&self) -> u64 {
        self.start + self.whole.bytes() / 2 / 4096 * 4096
    }

    pub fn plan(&self, op: Op, address: u64, bytes: u64, metadata: bool, plan: &mut Plan) {
        let base = self.base(metadata);
        self.layout_now(metadata).plan(op, address - self.start, bytes, plan);
        for piece in plan.first.iter_mut().chain(&mut plan.second) {
            piece.member = self.members[piece.member as usize];
            piece.offset += base;
        }
    }

    fn base(&self, metadata: bool) -> u64 {
        self.extent.filter(|_| !metadata).map_or(0, |(base, _)| base)
    }

    fn layout_now(&self, metadata: bool) -> Layout {
        let layout = if metadata { self.whole } else { self.layout };
        let base = self.base(metadata);
        Layout {
            failed: layout.failed.map(|(member, restored)| (member, restored.saturating_sub(base))),
            ..layout
        }
    }

    pub fn exclusive_rows(
        &self,
        op: Op,
        address: u64,
        bytes: u64,
        metadata: bool,
    ) -> Option<Range<u64>> {
        let layout = if metadata { &self.whole } else { &self.layout };
        let rows = layout.exclusive_rows(op, address - self.start, bytes)?;
        let first = self.base(metadata) / layout.chunk;
        Some(rows.start + first..rows.end + first)
    }

    fn rest(&mut self) {
        (self.valid, self.stored, self.recorded) = (u64::MAX, 0, u64::MAX);
        self.extending = false;
        self.extenders.clear();
        (self.dirty, self.written, self.outstanding, self.flushing) = (0, 0, 0, false);
    }

    fn lay(&mut self, members: &[u32], chunk: u64, all: &Layout) {
        self.members = members.to_vec();
        let count = members.len() as u32;
        let kind = if all.kind.takes(count) { all.kind } else { Kind::Stripe };
        // The failed member, by its index among these.
        let place = |(failed, restored): (u32, u64)| {
            members
                .iter()
                .position(|&member| member == failed)
                .map(|place| (place as u32, restored))
        };
        let failed = all.failed.and_then(place).filter(|_| kind != Kind::Stripe);
        self.whole = Layout { kind, members: count, chunk, failed, start: 0, ..*all };
        let reserved = self.extent.map_or(all.member_bytes, |(_, reserved)| reserved);
        self.layout = Layout { member_bytes: reserved, start: all.start, ..self.whole };
        let share =
            self.asked.map_or(u64::MAX, |asked| asked / u64::from(all.members) * u64::from(count));
        self.size = share.min(self.layout.bytes());
        if count == all.members {
            self.size = self.asked.unwrap_or(u64::MAX).min(self.layout.bytes());
        }
    }
}

pub(crate) struct Files {
    slots: Vec<Option<File>>,
    all: Layout,
    /// A cache unit never spans two files.
    align: u64,
}

impl std::ops::Index<u32> for Files {
    type Output = File;

    fn index(&self, file: u32) -> &File {
        self.slots[file as usize].as_ref().expect("a file that is used is open")
    }
}

impl std::ops::IndexMut<u32> for Files {
    fn index_mut(&mut self, file: u32) -> &mut File {
        self.slots[file as usize].as_mut().expect("a file that is used is open")
    }
}

impl Files {
    pub fn new(all: Layout, align: u64) -> Files {
        let mut volume = File {
            name: None,
            handles: 1,
            members: Vec::new(),
            layout: all,
            whole: all,
            extent: None,
            asked: None,
            size: 0,
            start: 0,
            valid: u64::MAX,
            stored: 0,
            recorded: u64::MAX,
            extending: false,
            extenders: VecDeque::new(),
            dirty: 0,
            written: 0,
            outstanding: 0,
            flushing: false,
        };
        volume.lay(&(0..all.members).collect::<Vec<u32>>(), all.chunk, &all);
        Files { slots: vec![Some(volume)], all, align }
    }

    pub fn number_of(address: u64) -> u32 {
        (address >> FILE_BITS) as u32
    }

    pub fn of(&self, address: u64) -> &File {
        &self[Self::number_of(address)]
    }

    pub fn of_mut(&mut self, address: u64) -> &mut File {
        &mut self[Self::number_of(address)]
    }

    pub fn restored(&mut self, bytes: u64) {
        let all =
            self.slots.iter_mut().flatten().flat_map(|file| [&mut file.layout, &mut file.whole]);
        for layout in all.chain([&mut self.all]) {
            layout.failed = layout.failed.map(|(member, _)| (member, bytes));
        }
    }

    pub fn all(&mut self) -> impl Iterator<Item = &mut File> {
        self.slots.iter_mut().flatten()
    }

    pub fn rest(&mut self) {
        self.all().for_each(File::rest);
    }

    pub fn open(&mut self, name: Option<&str>, size: Option<u64>) -> Result<u32> {
        let what = || name.map_or_else(|| "a file".to_owned(), |name| format!("the file '{name}'"));
        let open = self.slots.iter().position(|file| {
            name.is_some() && file.as_ref().is_some_and(|f| f.name.as_deref() == name)
        });
        if let Some(number) = open {
            let file = &mut self[number as u32];
            if let Some(size) = size.filter(|&size| Some(size) != file.asked) {
                let why = format!("it is open and has {}", show_size(file.size));
                let hint = "give the same size, or another name behind '#'";
                return Err(Error::refused(
                    format!("{} of {}", what(), show_size(size)),
                    why,
                    hint,
                ));
            }
            file.handles += 1;
            return Ok(number as u32);
        }
        let free = self.free();
        let max = free.iter().map(|gap| gap.1).max().unwrap_or(0);
        let data = self.all.data_members();
        let size = size.unwrap_or_else(|| (max * data / 4 / 4096 * 4096).max(4096));
        let reserved = if self.all.members == 1 {
            (size + self.all.start).next_multiple_of(4096)
        } else {
            (size + self.all.start).div_ceil(self.all.chunk * data) * self.all.chunk
        };
        let Some(&(base, _)) = free.iter().find(|gap| gap.1 >= reserved) else {
            let why = format!(
                "the simulated volume has {} left in one piece",
                show_size_rounded((max * data) as f64)
            );
            return Err(Error::refused(
                format!("{} of {}", what(), show_size(size)),
                why,
                "give a smaller size, or more disks",
            ));
        };
        let mut file = File {
            name: name.map(str::to_owned),
            extent: Some((base, reserved)),
            asked: Some(size),
            ..self[VOLUME].clone()
        };
        let members = std::mem::take(&mut file.members);
        file.lay(&members, self.all.chunk, &self.all);
        self.insert(file)
    }

    fn free(&self) -> Vec<(u64, u64)> {
        let mut taken: Vec<(u64, u64)> =
            self.slots.iter().flatten().filter_map(|file| file.extent).collect();
        taken.push((self.all.member_bytes, 0));
        taken.sort_unstable();
        let (mut at, mut gaps) = (0, Vec::new());
        for (base, bytes) in taken {
            if base > at {
                gaps.push((at, base - at));
            }
            at = at.max(base + bytes);
        }
        gaps
    }

    fn insert(&mut self, mut file: File) -> Result<u32> {
        let number = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if number >= MAX_FILES {
            let why = format!("a simulated volume has at most {MAX_FILES} open files");
            return Err(Error::refused("one more file", why, "use fewer files"));
        }
        file.handles = 1;
        file.start = ((number as u64) << FILE_BITS).next_multiple_of(self.align);
        if number == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[number] = Some(file);
        Ok(number as u32)
    }

    pub fn close(&mut self, number: u32) -> Option<Range<u64>> {
        let file = &mut self[number];
        file.handles -= 1;
        if number == VOLUME || file.handles > 0 {
            file.handles = file.handles.max(1);
            return None;
        }
        self.slots[number as usize].take().map(|file| file.addresses())
    }

    /// A target on the volume gets its own file, because the volume keeps its layout.
    pub fn restripe(&mut self, number: u32, members: &[u32], chunk: u64) -> Result<u32> {
        let all = self.all;
        let file = &mut self[number];
        if number == VOLUME {
            let mut file = file.clone();
            file.lay(members, chunk, &all);
            return self.insert(file);
        }
        if file.handles > 1 {
            let what =
                format!("the members of the file '{}'", file.name.as_deref().unwrap_or_default());
            return Err(Error::refused(what, "another target is the same file", "open it once"));
        }
        file.lay(members, chunk, &all);
        Ok(number)
    }

    pub fn wrote(&mut self, address: u64, bytes: u64) {
        let file = self.of_mut(address);
        file.dirty = file.dirty.saturating_sub(bytes);
        file.written += bytes;
    }

    pub fn members(&self, files: &[u32]) -> Vec<u32> {
        let mut members: Vec<u32> =
            files.iter().flat_map(|&file| self[file].members.iter().copied()).collect();
        members.sort_unstable();
        members.dedup();
        members
    }
}

#[derive(Debug)]
pub(crate) struct Barrier {
    /// The files, and the bytes of each that must have been written.
    pub files: Vec<(u32, u64)>,
    /// When the data left the file-system cache, and the RAM cache's target for bytes written.
    pub sent: Option<(Nanos, u64)>,
}
