//! The published rules for fast sequential I/O (conclusion of the 1997 study), each confirmed or
//! refuted on this machine with its number.

use crate::found::Found;
use crate::sampler::Entry;
use machine::units::{show_rate, show_size, significant};
use machine::{Allocation, Buffering, CacheState, Layer, LayerKind, PartitionFacts};
use results::{Bottleneck, Limit, LimitOf, Rule, RuleState};
use workload::{OpKind, Pattern, Workload};

/// Minimum ratio that makes a rule worth following.
const WORTH: f64 = 1.1;

const LARGE: u32 = 1 << 20;

pub(crate) fn checklist(found: &Found<'_>, limits: &[Limit]) -> Vec<Rule> {
    let layers = &found.setting.facts.layers;
    let rules = [
        (
            "use requests of 8 KiB or more, ideally 64 KiB",
            sizes(found),
            "too few sizes were measured",
        ),
        (
            "buffer small requests, bypass the cache for large ones",
            bypass(found),
            "not measured both ways here",
        ),
        ("keep several requests outstanding", depth(found), "not measured at several depths here"),
        ("preallocate files", preallocate(found), "no file was made to grow here"),
        ("align partitions", align(layers), "the target is not on a partition"),
        ("let the drive cache writes", write_cache(found), "no drive reports its write cache"),
        ("enough buses and links", buses(layers, limits), "no bus or link reports its rate"),
    ];
    let rule = |(rule, found, missing): (&str, Judged, &str)| {
        let (state, evidence) =
            found.unwrap_or_else(|| (RuleState::NotApplicable, missing.to_owned()));
        Rule { rule: rule.into(), state, evidence }
    };
    rules.into_iter().map(rule).collect()
}

type Judged = Option<(RuleState, String)>;

fn judged(holds: bool, evidence: String) -> Judged {
    Some((if holds { RuleState::Held } else { RuleState::Broken }, evidence))
}

fn rate<'a>(found: &'a Found<'_>, pick: impl Fn(&Workload) -> bool) -> Option<(f64, &'a Entry)> {
    let usual = |one: &&Entry| {
        let workload = &one.workload;
        workload.pattern == Pattern::Seq
            && workload.threads == 1
            && workload.offset_bytes == 0
            && one.shape.is_none()
    };
    let entry = found
        .entries
        .iter()
        .filter(usual)
        .find(|entry| pick(&entry.workload) && entry.point().rate().is_some())?;
    Some((entry.point().rate()?, entry))
}

fn cold(found: &Found<'_>, bytes: u32) -> Option<f64> {
    let pick = |one: &Workload| {
        one.op() == OpKind::Read
            && one.buffering == Buffering::Buffered
            && one.cache == CacheState::Cold
            && one.hint == machine::Hint::None
            && one.outstanding() == 1
            && one.request_bytes == bytes
    };
    rate(found, pick).map(|one| one.0)
}

/// Direct requests at this depth; the best of any depth for `None`.
fn direct(found: &Found<'_>, op: OpKind, bytes: u32, depth: Option<u32>) -> Option<f64> {
    let pick = |one: &Workload| {
        one.op() == op
            && one.buffering == Buffering::Direct
            && one.allocation == Allocation::Written
            && one.request_bytes == bytes
            && depth.is_none_or(|depth| one.depth == depth)
    };
    if depth.is_some() {
        return rate(found, pick).map(|one| one.0);
    }
    let all = found
        .entries
        .iter()
        .filter(|one| one.workload.pattern == Pattern::Seq && pick(&one.workload));
    all.filter(|one| one.shape.is_none())
        .filter_map(|one| one.point().rate())
        .max_by(f64::total_cmp)
}

/// Direct writes at depth 1, each durable before the next.
fn written_through(found: &Found<'_>, bytes: u32) -> Option<f64> {
    let pick = |one: &Workload| {
        one.op() == OpKind::Write
            && one.buffering.is_direct()
            && one.buffering.is_dsync()
            && one.allocation == Allocation::Written
            && one.request_bytes == bytes
            && one.outstanding() == 1
    };
    rate(found, pick).map(|one| one.0)
}

/// The pair of rates with the largest ratio: a rule is judged in its strongest case.
fn strongest(
    pairs: impl IntoIterator<Item = (String, Option<(f64, f64)>)>,
) -> Option<(String, f64, f64)> {
    let known = pairs
        .into_iter()
        .filter_map(|(what, rates)| rates.map(|(small, large)| (what, small, large)));
    known.max_by(|a, b| (a.2 / a.1).total_cmp(&(b.2 / b.1)))
}

fn sizes(found: &Found<'_>) -> Judged {
    let of = |op| Some((direct(found, op, 4096, Some(1))?, direct(found, op, 65_536, Some(1))?));
    let (what, small, large) = strongest([
        ("reads through the page cache".to_owned(), cold(found, 4096).zip(cold(found, 65_536))),
        ("direct reads".to_owned(), of(OpKind::Read)),
        ("direct writes".to_owned(), of(OpKind::Write)),
    ])?;
    let evidence =
        format!("{what}: {} with 64 KiB, {} with 4 KiB", show_rate(large), show_rate(small));
    judged(large >= small * WORTH, evidence)
}

fn bypass(found: &Found<'_>) -> Judged {
    let (small, large) = (
        (cold(found, 4096)?, direct(found, OpKind::Read, 4096, Some(1))?),
        (cold(found, LARGE)?, direct(found, OpKind::Read, LARGE, Some(1))?),
    );
    let evidence = format!(
        "buffered over direct: {} times at 4 KiB, {} times at {}",
        significant(small.0 / small.1, 2),
        significant(large.0 / large.1, 2),
        show_size(u64::from(LARGE))
    );
    judged(small.0 > small.1 && large.1 * WORTH > large.0, evidence)
}

fn depth(found: &Found<'_>) -> Judged {
    let of = |op: OpKind| {
        let rates = direct(found, op, 65_536, Some(1)).zip(direct(found, op, 65_536, None));
        (format!("64 KiB {op}s"), rates)
    };
    let (what, one, best) = strongest([of(OpKind::Read), of(OpKind::Write)])?;
    let evidence = format!("{what}: {} one at a time, {} at best", show_rate(one), show_rate(best));
    judged(best >= one * WORTH, evidence)
}

fn preallocate(found: &Found<'_>) -> Judged {
    let grown = found.entries.iter().filter(|one| one.workload.allocation == Allocation::Extend);
    let pairs = grown.filter_map(|one| {
        let same = Workload { allocation: Allocation::Written, ..one.workload.clone() };
        let like = found
            .entries
            .iter()
            .find(|other| other.workload == same && other.shape == one.shape)?;
        Some((one.point().rate()?, like.point().rate()?, one.workload.request_bytes))
    });
    let (grown, written, bytes) = pairs.max_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)))?;
    let size = show_size(u64::from(bytes));
    let evidence = format!(
        "writes of {size}: {} as the file grows, {} in place",
        show_rate(grown),
        show_rate(written)
    );
    judged(written >= grown * WORTH, evidence)
}

fn align(layers: &[Layer]) -> Judged {
    let partitions: Vec<(&str, PartitionFacts)> = layers
        .iter()
        .filter_map(|layer| Some((layer.name.as_str(), layer.facts.partition?)))
        .collect();
    let start = |(name, partition): &(&str, PartitionFacts)| {
        format!("{name} starts at {}", show_size(partition.start_bytes))
    };
    if let Some(off) = partitions.iter().find(|(_, partition)| !partition.is_block_aligned()) {
        return judged(false, start(off));
    }
    let Some(off) = partitions.iter().find(|(_, partition)| !partition.is_stripe_aligned()) else {
        return judged(true, start(partitions.first()?));
    };
    let stripe = show_size(off.1.stripe_bytes?);
    judged(false, format!("{}, which is not a multiple of the {stripe} stripe", start(off)))
}

fn write_cache(found: &Found<'_>) -> Judged {
    let layers = &found.setting.facts.layers;
    let devices =
        layers.iter().filter(|layer| matches!(layer.kind, LayerKind::Disk | LayerKind::Loop));
    let (layer, on) = devices.filter_map(|layer| Some((layer, layer.facts.write_cache?))).next()?;
    let mut evidence = format!("{}: write cache {}", layer.name, if on { "on" } else { "off" });
    if let Some(alone) = direct(found, OpKind::Write, 65_536, Some(1)) {
        let with = if on { " with it" } else { " without it" };
        evidence += &format!("; 64 KiB writes one at a time: {}{with}", show_rate(alone));
    }
    // A write-through to stable storage equals the drive without its cache.
    if let Some(through) = written_through(found, 65_536).filter(|_| on) {
        evidence += &format!(", {} if each is synced", show_rate(through));
    }
    judged(on, evidence)
}

fn buses(layers: &[Layer], limits: &[Limit]) -> Judged {
    let of_peak = |limit: &&Limit| {
        limit.of == LimitOf::Peak
            && matches!(
                limit.what,
                Bottleneck::Bus | Bottleneck::Pci | Bottleneck::Link | Bottleneck::Adapter
            )
    };
    let paths = [LayerKind::Adapter, LayerKind::Bus, LayerKind::Pci, LayerKind::Link];
    let layers_of_kind = layers.iter().filter(|layer| paths.contains(&layer.kind));
    let narrowest = layers_of_kind
        .filter_map(|layer| Some((layer, layer.advertised_bytes_per_s?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let rate = narrowest.map(|(layer, rate)| format!("{} admits {}", layer.name, show_rate(rate)));
    if let Some(limit) = limits.iter().find(of_peak) {
        let limits = format!("the {} limits {}s", limit.what, limit.op);
        return judged(false, rate.map_or(limits.clone(), |rate| format!("{limits}; {rate}")));
    }
    judged(true, format!("{}, and does not limit the peaks", rate?))
}
