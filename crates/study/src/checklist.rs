//! The published rules for fast sequential I/O (the 1997 study's conclusion), each held or broken on this machine, with its number.

use crate::found::Found;
use crate::sampler::Entry;
use machine::units::{show_rate, show_size, significant};
use machine::{Allocation, Buffering, CacheState, Layer, LayerKind};
use results::{Bottleneck, Limit, LimitOf, Rule, RuleState};
use workload::{OpKind, Pattern, Workload};

/// A difference worth following a rule for.
const WORTH: f64 = 1.1;

const LARGE: u32 = 1 << 20;

/// Every rule.
pub(crate) fn checklist(found: &Found<'_>, limits: &[Limit]) -> Vec<Rule> {
    let layers = &found.setting.facts.layers;
    let rules = [
        ("requests of 8 KiB at least, 64 KiB if possible", sizes(found)),
        ("buffer small requests, bypass the cache for large ones", bypass(found)),
        ("keep several requests outstanding", depth(found)),
        ("preallocate files", preallocate(found)),
        ("align partitions", align(layers)),
        ("let the drive cache writes", write_cache(layers)),
        ("enough buses and links", buses(layers, limits)),
    ];
    let not_applicable = || (RuleState::NotApplicable, "not measured here".to_owned());
    let rule = |(rule, found): (&str, Option<(RuleState, String)>)| {
        let (state, evidence) = found.unwrap_or_else(not_applicable);
        Rule { rule: rule.into(), state, evidence }
    };
    rules.into_iter().map(rule).collect()
}

type Judged = Option<(RuleState, String)>;

fn judged(holds: bool, evidence: String) -> Judged {
    Some((if holds { RuleState::Held } else { RuleState::Broken }, evidence))
}

/// The rate of the entry that a test picks.
fn rate<'a>(found: &'a Found<'_>, pick: impl Fn(&Workload) -> bool) -> Option<(f64, &'a Entry)> {
    let usual = |one: &&Entry| {
        let workload = &one.workload;
        workload.pattern == Pattern::Seq && workload.threads == 1 && workload.offset_bytes == 0 && one.shape.is_none()
    };
    let entry =
        found.entries.iter().filter(usual).find(|entry| pick(&entry.workload) && entry.point().rate().is_some())?;
    Some((entry.point().rate()?, entry))
}

/// Cold reads through the page cache, one at a time.
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

/// Direct reads with so many outstanding.
fn direct(found: &Found<'_>, bytes: u32, depth: Option<u32>) -> Option<f64> {
    let pick = |one: &Workload| {
        one.op() == OpKind::Read
            && one.buffering == Buffering::Direct
            && one.request_bytes == bytes
            && depth.is_none_or(|depth| one.depth == depth)
    };
    if depth.is_some() {
        return rate(found, pick).map(|one| one.0);
    }
    let all = found.entries.iter().filter(|one| one.workload.pattern == Pattern::Seq && pick(&one.workload));
    all.filter(|one| one.shape.is_none()).filter_map(|one| one.point().rate()).max_by(f64::total_cmp)
}

fn sizes(found: &Found<'_>) -> Judged {
    let (small, large) = match (cold(found, 4096), cold(found, 65_536)) {
        (Some(small), Some(large)) => (small, large),
        _ => (direct(found, 4096, Some(1))?, direct(found, 65_536, Some(1))?),
    };
    let evidence = format!("64 KiB reads at {}, 4 KiB at {}", show_rate(large), show_rate(small));
    judged(large >= small * WORTH, evidence)
}

fn bypass(found: &Found<'_>) -> Judged {
    let (small, large) =
        ((cold(found, 4096)?, direct(found, 4096, Some(1))?), (cold(found, LARGE)?, direct(found, LARGE, Some(1))?));
    let evidence = format!(
        "buffered over direct: {} times at 4 KiB, {} times at {}",
        significant(small.0 / small.1, 2),
        significant(large.0 / large.1, 2),
        show_size(u64::from(LARGE))
    );
    judged(small.0 > small.1 && large.1 * WORTH > large.0, evidence)
}

fn depth(found: &Found<'_>) -> Judged {
    let (one, best) = (direct(found, 65_536, Some(1))?, direct(found, 65_536, None)?);
    let evidence = format!("64 KiB reads: {} one at a time, {} at best", show_rate(one), show_rate(best));
    judged(best >= one * WORTH, evidence)
}

fn preallocate(found: &Found<'_>) -> Judged {
    let grown = found.entries.iter().filter(|one| one.workload.allocation == Allocation::Extend);
    let pairs = grown.filter_map(|one| {
        let same = Workload { allocation: Allocation::Written, ..one.workload.clone() };
        let like = found.entries.iter().find(|other| other.workload == same && other.shape == one.shape)?;
        Some((one.point().rate()?, like.point().rate()?, one.workload.request_bytes))
    });
    let (grown, written, bytes) = pairs.max_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)))?;
    let size = show_size(u64::from(bytes));
    let evidence = format!("writes of {size}: {} as the file grows, {} in place", show_rate(grown), show_rate(written));
    judged(written >= grown * WORTH, evidence)
}

fn align(layers: &[Layer]) -> Judged {
    let partitions: Vec<&Layer> = layers.iter().filter(|layer| layer.kind == LayerKind::Partition).collect();
    let first = partitions.first()?;
    let start = |layer: &Layer| {
        let bytes = layer.settings.get("start_bytes").and_then(|text| text.parse().ok()).unwrap_or(0);
        format!("{} starts at {}", layer.name, show_size(bytes))
    };
    let off = |layer: &&&Layer| {
        ["aligned_to_physical_block", "aligned_to_4_kib"]
            .iter()
            .any(|name| layer.settings.get(*name).is_some_and(|value| value == "no"))
    };
    match partitions.iter().find(off) {
        Some(layer) => judged(false, start(layer)),
        None => judged(true, start(first)),
    }
}

fn write_cache(layers: &[Layer]) -> Judged {
    let told = layers.iter().filter(|layer| matches!(layer.kind, LayerKind::Disk | LayerKind::Loop));
    let (layer, cache) = told.filter_map(|layer| Some((layer, layer.settings.get("write_cache")?))).next()?;
    judged(matches!(cache.as_str(), "write back" | "on"), format!("{}: write cache {cache}", layer.name))
}

fn buses(layers: &[Layer], limits: &[Limit]) -> Judged {
    let paths = [LayerKind::Adapter, LayerKind::Bus, LayerKind::Pci, LayerKind::Link];
    let narrow = layers.iter().filter(|layer| paths.contains(&layer.kind));
    let (layer, rate) =
        narrow.filter_map(|layer| Some((layer, layer.advertised_bytes_per_s?))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let of_peak = |limit: &&Limit| {
        limit.of == LimitOf::Peak
            && matches!(limit.what, Bottleneck::Bus | Bottleneck::Pci | Bottleneck::Link | Bottleneck::Adapter)
    };
    let limited = limits.iter().find(of_peak);
    let evidence = match limited {
        Some(limit) => format!("the {} limits {}s", limit.what, limit.op),
        None => format!("{} admits {}, and does not limit the peaks", layer.name, show_rate(rate)),
    };
    judged(limited.is_none(), evidence)
}
