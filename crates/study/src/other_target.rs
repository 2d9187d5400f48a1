//! The same requests to the device below a file system, or to two files.

use crate::context::StudyContext;
use crate::sampler::{Entry, Sampler};
use machine::{Machine, Nanos, Result, TargetKind, TargetSpec};
use measure::stats::{Ratio, ratio_interval};
use measure::{Options, Sample, sample};
use workload::{OpKind, Workload};

const PAIRS: u32 = 4;

const FILL_SHARE: f64 = 0.04;

const MIN_FILE_BYTES: u64 = 8 << 20;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OtherTarget {
    /// Faster if the file system is a limit.
    Device(String),
    /// Faster if the writers of one file share a limit.
    TwoFiles,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OtherTargetTrial {
    pub(crate) other: OtherTarget,
    /// Requests per second there over those here.
    pub(crate) ratio: Ratio,
}

pub(crate) fn try_other_target<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    setting: &StudyContext,
    spec: &TargetSpec,
    (op, base): (OpKind, usize),
    until: Nanos,
) -> Result<Option<OtherTargetTrial>> {
    let workload = sampler.entries[base].workload.clone();
    // A throttle is reported by the system, and both targets would share it.
    if sampler.bursty
        || !sampler.noisy
        || sampler.machine.now() >= until
        || !workload.buffering.is_direct()
    {
        return Ok(None);
    }
    let opened = match op {
        OpKind::Read => device(sampler, &workload),
        _ => two_files(sampler, setting, spec, &workload),
    };
    let Some((other, mut target, workload)) = opened else { return Ok(None) };
    let ratio = pairs(sampler, &mut target, base, &workload, until)?;
    Ok(ratio.map(|ratio| OtherTargetTrial { other, ratio }))
}

type Opened<T> = Option<(OtherTarget, T, Workload)>;

fn device<M: Machine>(sampler: &Sampler<'_, M>, workload: &Workload) -> Opened<M::Target> {
    let below = sampler.machine.below(sampler.target)?;
    let (start, bytes) = below.region;
    let target = sampler.machine.open(&below.spec).ok()?;
    let moved =
        Workload { region_start_bytes: start, region_bytes: Some(bytes), ..workload.clone() };
    let facts = sampler.machine.target_facts(&target);
    moved.check(facts.size_bytes, facts.direct_align_bytes).ok()?;
    Some((OtherTarget::Device(below.name), target, moved))
}

fn two_files<M: Machine>(
    sampler: &Sampler<'_, M>,
    setting: &StudyContext,
    spec: &TargetSpec,
    workload: &Workload,
) -> Opened<M::Target> {
    let [place] = &spec.places[..] else { return None };
    let outstanding =
        workload.outstanding() > 1 && setting.facts.kind == TargetKind::TestFile && !spec.create;
    let quick = setting.speed.write.bytes_per_s * sampler.budget() as f64 / 1e9 * FILL_SHARE;
    let size = (quick as u64).min(setting.facts.size_bytes / 2) & !((1 << 20) - 1);
    if !outstanding || size < MIN_FILE_BYTES {
        return None;
    }
    // The chunk is at least a request, so each request goes to one of the two.
    let chunk = u64::from(workload.request_bytes).next_power_of_two();
    let two = TargetSpec {
        places: vec![place.clone(), place.clone()],
        size: Some(2 * size),
        chunk,
        ..TargetSpec::default()
    };
    let target = sampler.machine.open(&two).ok()?;
    let facts = sampler.machine.target_facts(&target);
    workload.check(facts.size_bytes, facts.direct_align_bytes).ok()?;
    Some((OtherTarget::TwoFiles, target, workload.clone()))
}

fn pairs<M: Machine>(
    sampler: &mut Sampler<'_, M>,
    target: &mut M::Target,
    base: usize,
    workload: &Workload,
    until: Nanos,
) -> Result<Option<Ratio>> {
    let (mut own, mut others) = (Vec::new(), Vec::new());
    let facts = sampler.machine.target_facts(target);
    let mut there = Entry::new(workload.clone(), None, facts);
    for _ in 0..PAIRS {
        if others.len() > 1 && sampler.machine.now() >= until {
            break;
        }
        sampler.rounds(&[base], sampler.entries[base].samples().len() as u32 + 1, Nanos::MAX)?;
        let ramp_ns = sampler.entries[base].ramp_ns;
        there.measured.push(sample(
            sampler.machine,
            target,
            workload,
            Options { ramp_ns, ..Options::default() },
        ))?;
        let last = |entry: &Entry| entry.samples().last().map(Sample::iops);
        let (Some(a), Some(b)) = (last(&sampler.entries[base]), last(&there)) else {
            return Ok(None);
        };
        own.push(a);
        others.push(b);
    }
    Ok(ratio_interval(&own, &others))
}
