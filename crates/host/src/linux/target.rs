//! An opened target: one member or a stripe of several, and what is known of it.

use super::counters::DeviceMeter;
use super::made::MadeFile;
use super::member::Member;
use super::{facts, sys};
use crate::arena::Arena;
use crate::test_file::Fill;
use machine::{Error, NewFile, Result, TargetFacts, TargetKind, TargetSpec, units};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Chunk of a stripe where none is given; the 1997 study's.
pub const DEFAULT_CHUNK: u64 = 64 * units::KIB;

/// Time to fill a test file where none is given.
const DEFAULT_FILL_NS: u64 = 5_000_000_000;

/// An opened target. Dropping it removes the files that were made for it.
pub struct HostTarget {
    /// The members in use: one, or those of the stripe.
    members: Vec<Member>,
    /// Members of the target that are not in use now.
    idle: Vec<Member>,
    /// Which place of the target each of `members`, then each of `idle` has.
    order: Vec<u32>,
    chunk: u64,
    /// The test files begin empty and are written by runs that extend them.
    pub(crate) grown: bool,
    /// Files for runs that need their space in another state than written, one a member; kept for the next such run.
    scratch: Mutex<Vec<MadeFile>>,
    facts: TargetFacts,
    meter: Option<Arc<DeviceMeter>>,
    /// How each member is filled, in the order of the places.
    fills: Vec<Fill<'static>>,
}

impl HostTarget {
    /// Opens, makes and checks everything; overwrites nothing that was there.
    pub(crate) fn open(spec: &TargetSpec, interrupt: &'static AtomicBool) -> Result<HostTarget> {
        let count = spec.places.len() as u64;
        if count == 0 {
            return Err(Error::refused("no target", "nothing was named", "name a directory, a file or a device"));
        }
        let chunk = if spec.chunk == 0 { DEFAULT_CHUNK } else { spec.chunk };
        check_chunk(chunk)?;
        for named in &spec.destroy {
            if !spec.places.iter().any(|place| place == named) {
                return Err(Error::refused(
                    named.display().to_string(),
                    "it is named for destruction but is not the target",
                    "name the same file or device as target and after --destroy-data",
                ));
            }
        }
        let (mut members, mut fills) = (Vec::new(), Vec::new());
        for path in &spec.places {
            let fill = Fill {
                size: spec.size.map(|size| size / count),
                within_ns: spec.fill_ns.unwrap_or(DEFAULT_FILL_NS) / count,
                seed: spec.seed.wrapping_add(members.len() as u64),
                interrupt,
            };
            members.push(Member::open(path, spec, fill)?);
            fills.push(fill);
        }
        // `.` says nothing to whom the report is sent.
        let named: Vec<_> = spec
            .places
            .iter()
            .map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()).display().to_string())
            .collect();
        let facts = describe(named.join(", "), &members, chunk)?;
        let meter = DeviceMeter::open(&facts::Roots::default(), &facts.devices).ok().map(Arc::new);
        Ok(HostTarget {
            order: (0..members.len() as u32).collect(),
            members,
            idle: Vec::new(),
            chunk,
            grown: spec.new_file == NewFile::Empty,
            scratch: Mutex::default(),
            facts,
            meter,
            fills,
        })
    }

    /// Fills what is to be filled, once.
    pub(crate) fn fill(&mut self) -> Result<()> {
        for (member, fill) in self.members.iter_mut().zip(std::mem::take(&mut self.fills)) {
            member.fill(fill)?;
        }
        self.facts.size_bytes = size_of(&self.members, self.chunk)?;
        Ok(())
    }

    pub(crate) fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    /// The counters of the devices under the target, where they count.
    pub(crate) fn meter(&self) -> Option<Arc<DeviceMeter>> {
        self.meter.clone()
    }

    /// The members in use: one, or those of the stripe.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// Files that were made under names of the user's stay.
    pub(crate) fn keep(&mut self) {
        self.members.iter_mut().chain(&mut self.idle).for_each(Member::keep);
    }

    /// More than one member, striped.
    pub(crate) fn striped(&self) -> bool {
        self.members.len() > 1
    }

    /// Members and chunk, where it is striped.
    pub(crate) fn stripe(&self) -> Option<(u32, u64)> {
        self.striped().then_some((self.members.len() as u32, self.chunk))
    }

    /// The scratch files that the last run left.
    pub(crate) fn take_scratch(&self) -> Vec<MadeFile> {
        std::mem::take(&mut self.scratch.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Leaves scratch files for the next run, in place of those that are there.
    pub(crate) fn keep_scratch(&self, scratch: Vec<MadeFile>) {
        *self.scratch.lock().unwrap_or_else(PoisonError::into_inner) = scratch;
    }

    /// Uses these members in chunks of `chunk` bytes.
    pub(crate) fn restripe(&mut self, members: &[u32], chunk: u64) -> Result<()> {
        check_chunk(chunk)?;
        let count = self.order.len();
        let unique: std::collections::BTreeSet<u32> = members.iter().copied().collect();
        if members.is_empty() || unique.len() != members.len() || members.iter().any(|&member| member as usize >= count)
        {
            return Err(Error::refused(
                format!("members {members:?}"),
                format!("the target has {count}, each used once"),
                "name some of these",
            ));
        }
        let mut by_number: Vec<(u32, Member)> = std::mem::take(&mut self.order)
            .into_iter()
            .zip(self.members.drain(..).chain(self.idle.drain(..)))
            .collect();
        let rank = |number: u32| members.iter().position(|&member| member == number).unwrap_or(usize::MAX);
        by_number.sort_by_key(|(number, _)| (rank(*number), *number));
        self.order = by_number.iter().map(|(number, _)| *number).collect();
        self.members = by_number.into_iter().map(|(_, place)| place).collect();
        self.idle = self.members.split_off(members.len());
        self.facts = describe(self.facts.name.clone(), &self.members, chunk)?;
        self.meter = DeviceMeter::open(&facts::Roots::default(), &self.facts.devices).ok().map(Arc::new);
        self.chunk = chunk;
        self.take_scratch();
        Ok(())
    }
}

/// Refuses files that fit one by one and not all together.
pub(crate) fn check_room(targets: &[HostTarget]) -> Result<()> {
    let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
    for member in targets.iter().flat_map(|target| &target.members) {
        let Some((device, bytes, free)) = member.room() else { continue };
        let all = wanted.entry(device).or_default();
        *all = all.saturating_add(bytes);
        if *all > free {
            let shown = member.path.display().to_string();
            let (all, free) = (units::show_size(*all), units::show_size_rounded(free as f64));
            let why = format!("test files of {all} together do not fit in the {free} that are free");
            return Err(Error::refused(shown, why, "free some space or give a smaller --size"));
        }
    }
    Ok(())
}

fn check_chunk(chunk: u64) -> Result<()> {
    if chunk == 0 || !chunk.is_multiple_of(512) || chunk > units::GIB {
        let why = "a stripe chunk is a multiple of 512 bytes and at most 1 GiB";
        return Err(Error::refused(units::show_size(chunk), why, "give one from 4 KiB to 4 MiB"));
    }
    Ok(())
}

/// Bytes of one member, or of whole chunks on all of them.
fn size_of(members: &[Member], chunk: u64) -> Result<u64> {
    let smallest = members.iter().map(|member| member.size).min().unwrap_or(0);
    let count = members.len() as u64;
    let size = if count > 1 { smallest / chunk * chunk * count } else { smallest };
    if size > 0 {
        return Ok(size);
    }
    Err(Error::refused(
        format!("a chunk of {}", units::show_size(chunk)),
        format!("the smallest member has only {}", units::show_size(smallest)),
        "give a smaller chunk or a larger --size",
    ))
}

fn describe(name: String, members: &[Member], chunk: u64) -> Result<TargetFacts> {
    let first = &members[0];
    let count = members.len() as u64;
    let mut direct = Ok(512);
    let mut facts = TargetFacts {
        name,
        kind: if count > 1 { TargetKind::Stripe } else { first.kind },
        size_bytes: size_of(members, chunk)?,
        writable: members.iter().all(|member| member.writable),
        direct: true,
        direct_refused: None,
        direct_align_bytes: 512,
        physical_block_bytes: 512,
        block_bytes: 512,
        members: count as u32,
        chunk_bytes: (count > 1).then_some(chunk),
        in_memory: false,
        devices: Vec::new(),
        layers: Vec::new(),
        warnings: Vec::new(),
    };
    for member in members {
        direct = match (direct, direct_alignment(member)) {
            (Ok(a), Ok(b)) => Ok(std::cmp::max::<u32>(a, b)),
            (Err(e), _) | (_, Err(e)) => Err(e),
        };
        let under = facts::under(&facts::Roots::default(), &member.path)?;
        member.check_path()?;
        facts.physical_block_bytes = facts.physical_block_bytes.max(under.physical_block_bytes);
        facts.block_bytes = facts.block_bytes.max(under.block_bytes);
        facts.in_memory |= under.in_memory;
        for device in under.devices.counted.into_iter().map(|device| device.name) {
            if !facts.devices.contains(&device) {
                facts.devices.push(device);
            }
        }
        for layer in under.layers {
            if !facts.layers.contains(&layer) {
                facts.layers.push(layer);
            }
        }
        facts.warnings.extend(under.warnings);
        facts.warnings.extend(zero_warning(member));
    }
    facts.warnings.dedup();
    match direct {
        Ok(alignment) => facts.direct_align_bytes = alignment,
        Err(reason) => {
            facts.direct = false;
            facts.direct_refused = Some(reason);
        }
    }
    Ok(facts)
}

/// The smallest multiple that direct I/O takes here, found by trying; an error is the reason why it takes none.
fn direct_alignment(member: &Member) -> std::result::Result<u32, String> {
    let refused = |error: io::Error| match error.raw_os_error() {
        Some(libc::EINVAL) => "the file system takes no direct I/O (O_DIRECT is refused)".to_string(),
        _ => format!("direct I/O fails: {error}"),
    };
    let file = member.open_with(false, libc::O_DIRECT).map_err(refused)?;
    let mut arena = Arena::new(1, 64 << 10, false, machine::Memory::Huge).map_err(|error| error.to_string())?;
    let mut last = None;
    for alignment in [512u32, 1024, 2048, 4096, 8192, 16384, 65536] {
        // An offset, a length and an address that are multiples of this and of nothing more.
        let (skip, len) =
            if alignment < 4096 { (alignment as usize, alignment as usize) } else { (0, alignment as usize) };
        let buffer = &mut arena.bytes()[skip..skip + len];
        match file.read_at(buffer, u64::from(alignment)) {
            Ok(_) => return Ok(alignment),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| "direct I/O fails".into(), refused))
}

/// Samples what is there already: blocks of zeros may be holes or trimmed space, which no device reads.
fn zero_warning(member: &Member) -> Option<String> {
    if member.kind == TargetKind::TestFile || member.writable {
        return None;
    }
    const SAMPLES: u64 = 32;
    let file = member.open_with(false, 0).ok()?;
    let mut zeros = 0;
    let mut buffer = [0u8; 4096];
    for sample in 0..SAMPLES {
        let offset = member.size / SAMPLES * sample / 4096 * 4096;
        file.read_at(&mut buffer, offset).ok()?;
        zeros += u64::from(buffer.iter().all(|&byte| byte == 0));
    }
    sys::drop_cache(&file, 0, 0);
    (zeros * 10 > SAMPLES).then(|| {
        format!(
            "{} % of {} reads as zeros: holes or trimmed blocks may never reach the medium, so reads there can be faster than any real data",
            zeros * 100 / SAMPLES,
            member.path.display()
        )
    })
}
