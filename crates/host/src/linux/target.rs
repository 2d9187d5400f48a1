use super::counters::DeviceMeter;
use super::member::Member;
use super::owned_file::OwnedFile;
use super::{facts, probe};
use crate::arena::Arena;
use crate::parity::Vectors;
use crate::raid5::BusyRows;
use crate::stripe::StripeSet;
use crate::test_file::Fill;
use machine::{
    Below, Error, Layer, LayerKind, NewFile, Raid5, Result, Share, TargetFacts, TargetKind,
    TargetSpec, units,
};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// In bytes, as in the 1997 study.
pub const DEFAULT_CHUNK: u64 = 64 * units::KIB;

const PARITY_STEP: u64 = units::MIB;

const DEFAULT_FILL_NS: u64 = 5_000_000_000;

/// One member or a stripe. Dropping it removes the files created for it.
pub struct HostTarget {
    members: Vec<Member>,
    idle: Vec<Member>,
    /// Target indices of `members`, then of `idle`.
    order: Vec<u32>,
    chunk: u64,
    parity: Option<(Raid5, Arc<BusyRows>)>,
    /// Trusts the parity that an earlier run left.
    as_is: bool,
    pub(crate) grown: bool,
    scratch: Mutex<Vec<OwnedFile>>,
    facts: TargetFacts,
    meter: Option<Arc<DeviceMeter>>,
    fills: Vec<Fill<'static>>,
}

impl HostTarget {
    pub(crate) fn open(spec: &TargetSpec, interrupt: &'static AtomicBool) -> Result<HostTarget> {
        let count = spec.places.len() as u64;
        if count == 0 {
            return Err(Error::refused(
                "no target",
                "nothing was named",
                "name a directory, a file or a device",
            ));
        }
        let chunk = if spec.chunk == 0 { DEFAULT_CHUNK } else { spec.chunk };
        check_chunk(chunk)?;
        for named in &spec.destroy {
            if !spec.places.iter().any(|place| place == named) {
                return Err(Error::refused(
                    named.display().to_string(),
                    "it is named after --destroy-data but is not the target",
                    "name the same file or device as target and after --destroy-data",
                ));
            }
        }
        if let Some(how) = spec.raid5 {
            check_raid5(how, spec)?;
        }
        let parity = spec.raid5.map(|how| (how, Arc::default()));
        let (mut members, mut fills) = (Vec::new(), Vec::new());
        for path in &spec.places {
            let fill = Fill {
                from: fill_from(spec, chunk),
                size: spec.size.map(|size| size / count),
                within_ns: spec.fill_ns.unwrap_or(DEFAULT_FILL_NS) / count,
                seed: spec.seed.wrapping_add(members.len() as u64),
                interrupt,
            };
            let member = Member::open(path, spec, fill)?;
            check_other(&members, &member)?;
            members.push(member);
            fills.push(fill);
        }
        // `.` means nothing to the recipient of the report.
        let named: Vec<_> = spec
            .places
            .iter()
            .map(|path| {
                std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()).display().to_string()
            })
            .collect();
        let facts = describe(
            named.join(", "),
            &members,
            &StripeSet { members: count as u32, chunk, parity: parity.clone() },
        )?;
        let meter = DeviceMeter::open(&facts::Roots::default(), &facts.devices).ok().map(Arc::new);
        Ok(HostTarget {
            order: (0..members.len() as u32).collect(),
            members,
            idle: Vec::new(),
            chunk,
            parity,
            as_is: spec.as_is,
            grown: spec.new_file == NewFile::Empty,
            scratch: Mutex::default(),
            facts,
            meter,
            fills,
        })
    }

    pub(crate) fn below(&self) -> Option<Below> {
        let [member] = &self.members[..] else { return None };
        let roots = facts::Roots::default();
        let known = self.facts.layers.first().is_some_and(|layer| {
            // btrfs reports locations in its own volume, not on a device; other file systems with
            // volumes were not checked.
            layer.kind == LayerKind::FileSystem
                && ["ext", "xfs", "f2fs"].iter().any(|name| layer.name.starts_with(name))
        });
        let under = facts::under(&roots, &member.path).ok().filter(|_| known)?;
        let [device] = &under.devices.sits_on[..] else { return None };
        let region =
            facts::largest_extent(&member.path).filter(|(_, bytes)| bytes * 4 >= member.size)?;
        let place = roots.dev.join(&device.name);
        Some(Below {
            name: device.name.clone(),
            spec: TargetSpec { places: vec![place], ..TargetSpec::default() },
            region,
        })
    }

    /// The maximum, apart from the parity.
    pub(crate) fn fill_bytes(&self) -> u64 {
        self.members.iter().zip(&self.fills).map(|(member, &fill)| member.fill_bytes(fill)).sum()
    }

    pub(crate) fn fill(&mut self) -> Result<()> {
        let fills = std::mem::take(&mut self.fills);
        let interrupt = fills.first().map(|fill| fill.interrupt);
        for (member, fill) in self.members.iter_mut().zip(fills) {
            member.fill(fill)?;
        }
        self.facts.size_bytes = size_of(&self.members, &self.set())?;
        let kept = self.as_is && self.members.iter().all(|member| member.made().is_none());
        let writable = self.members.iter().all(|member| member.writable);
        if let (Some(interrupt), Some(_), false, true) = (interrupt, &self.parity, kept, writable) {
            self.write_parity(interrupt)?;
        }
        Ok(())
    }

    fn write_parity(&self, interrupt: &AtomicBool) -> Result<()> {
        let layout = self.set().layout();
        let chunk = self.chunk as usize;
        let rows = self.members.iter().map(|member| member.size).min().unwrap_or(0) / self.chunk;
        let at_once = (PARITY_STEP / self.chunk).max(1);
        let open = |member: &Member| {
            let direct = if self.facts.direct { libc::O_DIRECT } else { 0 };
            member.open_with(true, direct).map_err(Error::io("cannot open", &member.path))
        };
        let files = self.members.iter().map(open).collect::<Result<Vec<_>>>()?;
        let bytes = at_once * self.chunk;
        let len = bytes as usize;
        let no_memory = Error::io("no memory for the parity of", self.facts.name.clone());
        let request = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut arena =
            Arena::new(self.members.len() as u32 + 1, request, 0, machine::Memory::Huge)
                .map_err(no_memory)?;
        for first in (0..rows).step_by(at_once as usize) {
            if interrupt.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let now = (rows - first).min(at_once) as usize;
            let (data, sum) = arena.bytes().split_at_mut(len * self.members.len());
            for ((file, member), data) in files.iter().zip(&self.members).zip(data.chunks_mut(len))
            {
                file.read_exact_at(&mut data[..now * chunk], first * self.chunk)
                    .map_err(Error::io("cannot read", &member.path))?;
            }
            for row in 0..now {
                let parity = layout.parity_member(first + row as u64) as usize;
                let others: Vec<&[u8]> = (0..self.members.len())
                    .filter(|&member| member != parity)
                    .map(|member| {
                        &data[member * len + row * chunk..member * len + (row + 1) * chunk]
                    })
                    .collect();
                Vectors::widest().xor(&mut sum[..chunk], &others);
                files[parity]
                    .write_all_at(&sum[..chunk], (first + row as u64) * self.chunk)
                    .map_err(Error::io("cannot write", &self.members[parity].path))?;
            }
        }
        for (file, member) in files.iter().zip(&self.members) {
            file.sync_data().map_err(Error::io("cannot sync", &member.path))?;
        }
        Ok(())
    }

    pub(crate) fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    pub(crate) fn meter(&self) -> Option<Arc<DeviceMeter>> {
        self.meter.clone()
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) fn keep(&mut self) {
        self.members.iter_mut().chain(&mut self.idle).for_each(Member::keep);
    }

    pub(crate) fn striped(&self) -> bool {
        self.members.len() > 1
    }

    pub(crate) fn stripe(&self) -> Option<StripeSet> {
        self.striped().then(|| self.set())
    }

    fn set(&self) -> StripeSet {
        StripeSet {
            members: self.members.len() as u32,
            chunk: self.chunk,
            parity: self.parity.clone(),
        }
    }

    pub(crate) fn take_scratch(&self) -> Vec<OwnedFile> {
        std::mem::take(&mut self.scratch.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn keep_scratch(&self, scratch: Vec<OwnedFile>) {
        *self.scratch.lock().unwrap_or_else(PoisonError::into_inner) = scratch;
    }

    pub(crate) fn restripe(&mut self, members: &[u32], chunk: u64) -> Result<()> {
        check_chunk(chunk)?;
        if self.parity.is_some() {
            let why =
                "the members of a RAID 5 set hold its parity: its members and chunk cannot change";
            return Err(Error::Unsupported(format!("{}: {why}", self.facts.name)));
        }
        let count = self.order.len();
        let unique: std::collections::BTreeSet<u32> = members.iter().copied().collect();
        if members.is_empty()
            || unique.len() != members.len()
            || members.iter().any(|&member| member as usize >= count)
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
        let rank =
            |number: u32| members.iter().position(|&member| member == number).unwrap_or(usize::MAX);
        by_number.sort_by_key(|(number, _)| (rank(*number), *number));
        self.order = by_number.iter().map(|(number, _)| *number).collect();
        self.members = by_number.into_iter().map(|(_, place)| place).collect();
        self.idle = self.members.split_off(members.len());
        let set = StripeSet { members: self.members.len() as u32, chunk, parity: None };
        self.facts = describe(self.facts.name.clone(), &self.members, &set)?;
        self.meter =
            DeviceMeter::open(&facts::Roots::default(), &self.facts.devices).ok().map(Arc::new);
        self.chunk = chunk;
        self.take_scratch();
        Ok(())
    }
}

/// The parts of a stripe would overlap.
fn check_other(members: &[Member], new: &Member) -> Result<()> {
    let Some(same) = members.iter().find(|member| member.is_same_as(new)) else { return Ok(()) };
    let why = format!("it is the same file or device as {}", same.path.display());
    let hint = "name each member of a stripe once, or add --each to measure one after the other";
    Err(Error::refused(new.path.display().to_string(), why, hint))
}

/// In each member. A RAID 5 set needs whole rows for its parity.
fn fill_from(spec: &TargetSpec, chunk: u64) -> u64 {
    match spec.places.len() as u64 {
        0 | 1 => spec.fill_from,
        _ if spec.raid5.is_some() => 0,
        members => spec.fill_from / (chunk * members) * chunk,
    }
}

pub(crate) fn check_room(targets: &[HostTarget]) -> Result<()> {
    let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
    for member in targets.iter().flat_map(|target| &target.members) {
        let Some((device, bytes, free)) = member.room() else { continue };
        let all = wanted.entry(device).or_default();
        *all = all.saturating_add(bytes);
        if *all > free {
            let shown = member.path.display().to_string();
            let (all, free) = (units::show_size(*all), units::show_size_rounded(free as f64));
            let why =
                format!("test files of {all} in total do not fit in the {free} of free space");
            return Err(Error::Full {
                what: shown,
                why,
                hint: "free some space or give a smaller --size".into(),
            });
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

fn check_raid5(how: Raid5, spec: &TargetSpec) -> Result<()> {
    let count = spec.places.len() as u32;
    let refused = |what: String, why: &str, hint: &str| Err(Error::refused(what, why, hint));
    if count < 3 {
        return refused(
            format!("RAID 5 over {count}"),
            "it needs at least 3 members",
            "name more targets",
        );
    }
    if let Some(failed) = how.failed.filter(|&failed| failed >= count) {
        let why = format!("there are {count} members, and the first is 0");
        return refused(format!("failed member {failed}"), &why, "name one of them");
    }
    if how.rebuild && how.failed.is_none() {
        return refused(
            "a rebuild".into(),
            "no member has failed",
            "name the failed one with --failed",
        );
    }
    Ok(())
}

/// A rebuild writes only the failed member's replacement.
fn is_writable(members: &[Member], set: &StripeSet) -> bool {
    let rebuilt = set.parity.as_ref().and_then(|(how, _)| how.failed.filter(|_| how.rebuild));
    let written =
        |(number, _): &(usize, &Member)| rebuilt.is_none_or(|failed| *number == failed as usize);
    members.iter().enumerate().filter(written).all(|(_, member)| member.writable)
}

fn size_of(members: &[Member], set: &StripeSet) -> Result<u64> {
    let smallest = members.iter().map(|member| member.size).min().unwrap_or(0);
    let size = if members.len() > 1 { set.bytes(smallest) } else { smallest };
    if size > 0 {
        return Ok(size);
    }
    Err(Error::refused(
        format!("a chunk of {}", units::show_size(set.chunk)),
        format!("the smallest member has only {}", units::show_size(smallest)),
        "give a smaller chunk or a larger --size",
    ))
}

/// With parity, the share for writes of whole rows.
fn member_share(members: u64, parity: bool) -> Share {
    let of = |members: u64| 1.0 / members.max(1) as f64;
    Share { reads: of(members), writes: of(members - u64::from(parity && members > 1)) }
}

fn describe(name: String, members: &[Member], set: &StripeSet) -> Result<TargetFacts> {
    let first = &members[0];
    let count = members.len() as u64;
    let mut direct = Ok(512);
    let mut facts = TargetFacts {
        file_number: (count == 1 && first.kind != TargetKind::Device)
            .then(|| first.number())
            .flatten(),
        writable: is_writable(members, set),
        members: count as u32,
        chunk_bytes: (count > 1).then_some(set.chunk),
        raid5: set.parity.as_ref().map(|(how, _)| *how),
        ..TargetFacts::new(
            name,
            if count > 1 { TargetKind::Stripe } else { first.kind },
            size_of(members, set)?,
        )
    };
    let own = member_share(count, set.parity.is_some());
    for member in members {
        let own_direct = probe::direct_alignment(member);
        facts.warnings.extend(probe::zero_warning(member, own_direct.as_ref().ok().copied()));
        direct = match (direct, own_direct) {
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
            facts::join(&mut facts.layers, Layer { share: layer.share.times(own), ..layer });
        }
        facts.warnings.extend(under.warnings);
    }
    if let Some(shared) = facts.shared_by_members() {
        let all = if count == 2 { "both".to_owned() } else { format!("several of the {count}") };
        facts.warnings.insert(
            0,
            format!(
                "{all} targets are on {}: they share it, so this is not a stripe of {count} devices; name targets on separate devices",
                shared.name
            ),
        );
    }
    facts.warnings.dedup();
    match direct {
        Ok(alignment) => facts.direct_align_bytes = alignment,
        Err(reason) => {
            facts.direct = false;
            facts.direct_refused = Some(reason);
        }
    }
    if facts.raid5.is_some()
        && facts.direct
        && !set.chunk.is_multiple_of(u64::from(facts.direct_align_bytes))
    {
        return Err(Error::refused(
            format!("a chunk of {}", units::show_size(set.chunk)),
            format!(
                "direct I/O takes multiples of {} here",
                units::show_size(u64::from(facts.direct_align_bytes))
            ),
            "give a chunk that is one",
        ));
    }
    Ok(facts)
}
