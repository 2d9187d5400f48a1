//! The 1997 study's rules for fast sequential I/O, each confirmed or refuted.

use crate::experiments::{alignment, location};
use crate::found::Found;
use crate::ratios::ratio;
use crate::sampler::Entry;
use machine::units::{show_rate, show_size, significant};
use machine::{Allocation, Buffering, CacheState, Hint, Layer, LayerKind, PartitionFacts};
use results::{Bottleneck, Limit, LimitOf, Rule, RuleState};
use workload::{OpKind, Pattern, Workload};

const WORTH: f64 = 1.1;

const LARGE: u32 = 1 << 20;

/// Half the bytes per request explain a factor of two; more gain is from reading the rest of a
/// block.
const REST_OF_BLOCK: f64 = 2.0 * WORTH;

pub(crate) fn checklist(found: &Found<'_>, limits: &[Limit]) -> Vec<Rule> {
    let layers = &found.setting.facts.layers;
    let not_written = if found.setting.facts.writable {
        "writes of less than a block were not measured"
    } else {
        "the target is only read"
    };
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
        (
            "keep one request more outstanding than a stripe has members",
            one_more(found),
            "the target is not several devices",
        ),
        ("preallocate files", preallocate(found), "no file was made to grow here"),
        ("rewrite in multiples of 4 KiB, or truncate first", whole_blocks(found), not_written),
        ("announce sequential access", hint(found), "not measured with the hint here"),
        (
            "flush once, not after every write",
            flush_once(found),
            "writes were not measured both ways here",
        ),
        ("align partitions", align(layers), "the target is not on a partition"),
        (
            "align requests to the stripe's chunk",
            align_requests(found),
            "there is no stripe, or its offsets were not measured",
        ),
        ("put large files at the start of the disk", outer(found), "positions were not measured"),
        ("let the drive cache writes", write_cache(found), "no drive reports its write cache"),
        ("enough buses and links", buses(layers, limits), "no bus or link reports its rate"),
    ];
    let rule = |(rule, found, missing): (&str, Judged, &str)| {
        let (state, evidence) =
            found.unwrap_or_else(|| (RuleState::NotApplicable, format!("not measured: {missing}")));
        Rule { rule: rule.into(), state, evidence }
    };
    rules.into_iter().map(rule).collect()
}

type Judged = Option<(RuleState, String)>;

fn judged(holds: bool, evidence: String) -> Judged {
    Some((if holds { RuleState::Held } else { RuleState::Broken }, evidence))
}

struct Pair<'a> {
    what: String,
    before: &'a Entry,
    after: &'a Entry,
}

struct Gain {
    what: String,
    rates: [f64; 2],
    ratio: f64,
    interval: Option<[f64; 2]>,
}

impl Pair<'_> {
    fn gain(&self) -> Option<Gain> {
        let rates = [self.before.point().rate()?, self.after.point().rate()?];
        // The interval is that of requests per second.
        let bytes = f64::from(self.after.workload.request_bytes)
            / f64::from(self.before.workload.request_bytes);
        let interval =
            ratio(self.before, self.after).map(|ratio| [ratio.low * bytes, ratio.high * bytes]);
        let ratio = rates[1] / rates[0];
        ratio.is_finite().then(|| Gain { what: self.what.clone(), rates, ratio, interval })
    }
}

impl Gain {
    fn state(&self, worth: f64) -> RuleState {
        match self.interval {
            Some([low, _]) if self.ratio >= worth && low > worth / WORTH => RuleState::Held,
            Some([_, high]) if high < worth => RuleState::Broken,
            _ => RuleState::Undecided,
        }
    }

    fn rank(&self, worth: f64) -> (bool, f64) {
        (self.state(worth) == RuleState::Held, self.ratio)
    }
}

fn strongest<'a>(pairs: impl IntoIterator<Item = Option<Pair<'a>>>, worth: f64) -> Option<Gain> {
    let known = pairs.into_iter().flatten().filter_map(|pair| pair.gain());
    known.max_by(|a, b| {
        let (a, b) = (a.rank(worth), b.rank(worth));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

fn by_gain<'a>(
    pairs: impl IntoIterator<Item = Option<Pair<'a>>>,
    worth: f64,
    [after, before]: [&str; 2],
) -> Judged {
    let gain = strongest(pairs, worth)?;
    let [slow, fast] = gain.rates.map(show_rate);
    Some((gain.state(worth), format!("{}: {fast} {after}, {slow} {before}", gain.what)))
}

fn entry<'a>(found: &'a Found<'_>, pick: impl Fn(&Workload) -> bool) -> Option<&'a Entry> {
    let usual = |one: &&Entry| {
        let workload = &one.workload;
        workload.pattern == Pattern::Seq
            && workload.threads == 1
            && workload.offset_bytes == 0
            && one.shape.is_none()
            && one.point().rate().is_some()
    };
    found.entries.iter().filter(usual).find(|entry| pick(&entry.workload))
}

fn cold<'a>(found: &'a Found<'_>, bytes: u32, hint: Hint) -> Option<&'a Entry> {
    entry(found, |one| {
        one.op() == OpKind::Read
            && one.buffering == Buffering::Buffered
            && one.cache == CacheState::Cold
            && one.hint == hint
            && one.outstanding() == 1
            && one.request_bytes == bytes
    })
}

fn flushed<'a>(found: &'a Found<'_>, bytes: u32) -> Option<&'a Entry> {
    entry(found, |one| {
        one.op() == OpKind::Write
            && one.buffering == Buffering::Buffered
            && one.sync_at_end
            && one.allocation == Allocation::Written
            && one.outstanding() == 1
            && one.request_bytes == bytes
    })
}

fn is_direct(one: &Workload, op: OpKind, bytes: u32) -> bool {
    one.op() == op
        && one.buffering == Buffering::Direct
        && one.allocation == Allocation::Written
        && one.region_bytes.is_none()
        && one.request_bytes == bytes
}

fn direct<'a>(found: &'a Found<'_>, op: OpKind, bytes: u32, depth: u32) -> Option<&'a Entry> {
    entry(found, |one| is_direct(one, op, bytes) && one.depth == depth)
}

fn deepest<'a>(found: &'a Found<'_>, op: OpKind, bytes: u32) -> Option<&'a Entry> {
    let all = found.entries.iter().filter(|one| {
        one.workload.pattern == Pattern::Seq
            && one.workload.offset_bytes == 0
            && one.shape.is_none()
            && is_direct(&one.workload, op, bytes)
    });
    let rate = |one: &Entry| one.point().rate();
    all.filter_map(|one| Some((rate(one)?, one)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, one)| one)
}

fn written_through<'a>(found: &'a Found<'_>, bytes: u32) -> Option<&'a Entry> {
    entry(found, |one| {
        one.op() == OpKind::Write
            && one.buffering.is_direct()
            && one.buffering.is_dsync()
            && one.allocation == Allocation::Written
            && one.request_bytes == bytes
            && one.outstanding() == 1
    })
}

fn pair<'a>(
    what: impl Into<String>,
    before: Option<&'a Entry>,
    after: Option<&'a Entry>,
) -> Option<Pair<'a>> {
    Some(Pair { what: what.into(), before: before?, after: after? })
}

fn sizes(found: &Found<'_>) -> Judged {
    let cold = |bytes| cold(found, bytes, Hint::None);
    let of = |op, bytes| direct(found, op, bytes, 1);
    let pairs = [
        pair("reads through the page cache", cold(4096), cold(65_536)),
        pair("direct reads", of(OpKind::Read, 4096), of(OpKind::Read, 65_536)),
        pair("direct writes", of(OpKind::Write, 4096), of(OpKind::Write, 65_536)),
    ];
    by_gain(pairs, WORTH, ["with 64 KiB", "with 4 KiB"])
}

fn bypass(found: &Found<'_>) -> Judged {
    let buffered = |op: OpKind, bytes: u32| match op {
        OpKind::Write => flushed(found, bytes),
        _ => cold(found, bytes, Hint::None),
    };
    let at = |op: OpKind, bytes: u32| {
        pair(format!("{op}s"), direct(found, op, bytes, 1), buffered(op, bytes))
    };
    let small = strongest([at(OpKind::Read, 4096), at(OpKind::Write, 4096)], WORTH)?;
    // The loss of those who buffer large requests all the same.
    let large = [OpKind::Read, OpKind::Write]
        .map(|op| pair(format!("{op}s"), direct(found, op, LARGE, 1), buffered(op, LARGE)));
    let large = strongest(large, WORTH)?;
    let evidence = format!(
        "buffered over direct: {} times at 4 KiB ({}), {} times at {} ({})",
        significant(small.ratio, 2),
        small.what,
        significant(large.ratio, 2),
        show_size(u64::from(LARGE)),
        large.what
    );
    let state = match (small.state(WORTH), large.state(WORTH)) {
        (RuleState::Held, RuleState::Held) => RuleState::Broken,
        (state, _) => state,
    };
    Some((state, evidence))
}

fn depth(found: &Found<'_>) -> Judged {
    let of = |op: OpKind| {
        pair(format!("64 KiB {op}s"), direct(found, op, 65_536, 1), deepest(found, op, 65_536))
    };
    by_gain([of(OpKind::Read), of(OpKind::Write)], WORTH, ["at best", "one at a time"])
}

fn one_more(found: &Found<'_>) -> Judged {
    let members = found.setting.members;
    if members < 2 || found.setting.facts.shared_by_members().is_some() {
        return None;
    }
    let whole = |one: &&Entry| {
        one.shape.as_ref().is_some_and(|shape| shape.members.len() == members as usize)
            && one.workload.pattern == Pattern::Seq
    };
    let at = |op: OpKind, depth: u32| {
        let same =
            |one: &&Entry| is_direct(&one.workload, op, 65_536) && one.workload.depth == depth;
        found.entries.iter().filter(whole).find(same)
    };
    let of = |op: OpKind| pair(format!("64 KiB {op}s"), at(op, 1), at(op, members + 1));
    let more = format!("with {} outstanding", members + 1);
    by_gain([of(OpKind::Read), of(OpKind::Write)], WORTH, [&more, "with one"])
}

fn preallocate(found: &Found<'_>) -> Judged {
    let grown = found.entries.iter().filter(|one| one.workload.allocation == Allocation::Extend);
    let pairs = grown.map(|one| {
        let same = Workload { allocation: Allocation::Written, ..one.workload.clone() };
        let like =
            found.entries.iter().find(|other| other.workload == same && other.shape == one.shape);
        let size = show_size(u64::from(one.workload.request_bytes));
        pair(format!("writes of {size}, {} outstanding", one.workload.depth), Some(one), like)
    });
    by_gain(pairs, WORTH, ["in place", "as the file grows"])
}

/// A partial write first reads the rest of the block.
fn whole_blocks(found: &Found<'_>) -> Judged {
    let block = found.setting.facts.block_bytes.max(4096);
    let whole = flushed(found, block)?;
    let part = flushed(found, block / 2)?;
    let sizes = [block, block / 2].map(|bytes| format!("with {}", show_size(u64::from(bytes))));
    let pairs = [pair("buffered rewrites", Some(part), Some(whole))];
    by_gain(pairs, REST_OF_BLOCK, sizes.each_ref().map(String::as_str))
}

fn hint(found: &Found<'_>) -> Judged {
    let [without, with] = [Hint::None, Hint::Sequential].map(|hint| cold(found, 65_536, hint));
    by_gain([pair("64 KiB reads", without, with)], WORTH, ["with the hint", "without it"])
}

fn flush_once(found: &Found<'_>) -> Judged {
    let of = |bytes: u32| {
        let size = show_size(u64::from(bytes));
        let before = written_through(found, bytes);
        pair(format!("writes of {size}"), before, direct(found, OpKind::Write, bytes, 1))
    };
    by_gain([of(4096), of(65_536)], WORTH, ["without a flush each", "with one each"])
}

fn align_requests(found: &Found<'_>) -> Judged {
    let of = |op: OpKind, bytes: u32| {
        let [best, worst] = alignment::extremes(found, op, bytes)?;
        let size = show_size(u64::from(bytes));
        let entry = |point: usize| found.entries.get(point);
        pair(format!("sequential {op}s of {size}"), entry(worst), entry(best))
    };
    let sizes = [64 << 10, 128 << 10];
    let pairs =
        [OpKind::Read, OpKind::Write].into_iter().flat_map(|op| sizes.map(|bytes| of(op, bytes)));
    by_gain(pairs, WORTH, ["on the chunk", "off it"])
}

fn outer(found: &Found<'_>) -> Judged {
    let of = |op: OpKind| {
        let [start, end] = location::ends(found, op)?;
        let entry = |point: usize| found.entries.get(point);
        pair(format!("{op}s"), entry(end), entry(start))
    };
    by_gain([of(OpKind::Read), of(OpKind::Write)], WORTH, ["at the start", "at the end"])
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
    let rate = |entry: Option<&Entry>| entry.and_then(|entry| entry.point().rate());
    if let Some(alone) = rate(direct(found, OpKind::Write, 65_536, 1)) {
        let with = if on { " with it" } else { " without it" };
        evidence += &format!("; 64 KiB writes one at a time: {}{with}", show_rate(alone));
    }
    // A write-through to stable storage equals the drive without its cache.
    if let Some(through) = rate(written_through(found, 65_536)).filter(|_| on) {
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
