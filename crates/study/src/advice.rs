//! The fewest changes that bring a plain program near the peak.

use crate::conclusion::{Change, Comparison};
use crate::found::{Found, PeakRate, Reading};
use crate::roles::{PLAIN_BYTES, is_plain, stands_for};
use crate::sampler::Entry;
use machine::Buffering;
use machine::units::show_size;
use results::{CACHED_PERCENT, Goal, PlainRate};
use workload::{OpKind, Pattern, Workload};

/// The second advice must gain this much over the first.
const WORTH_MORE: f64 = 1.25;

pub(crate) fn plain_rates(found: &Found<'_>) -> Vec<PlainRate> {
    let mut all = Vec::new();
    for op in found.setting.ops() {
        for index in plain_entries(found, op) {
            let entry = &found.entries[index];
            let Some(numbers) = &entry.point().numbers else { continue };
            let rate = numbers.throughput_bytes_per_s;
            let cached = op == OpKind::Read
                && !found.setting.facts.in_memory
                && numbers
                    .achieved
                    .cached_read_percent
                    .is_some_and(|percent| percent > CACHED_PERCENT);
            // A rate above the peak is that of another quantity: a cache, or a throttle's credit.
            let share = found
                .measured
                .of(op)
                .map(|peak| rate / peak.bytes_per_s)
                .filter(|&share| !cached && share <= 1.0);
            let reached = |goal: &Goal| share.is_some_and(|share| share >= goal.share());
            all.push(PlainRate {
                op,
                request_bytes: entry.workload.request_bytes,
                throughput_bytes_per_s: rate,
                interval_95: numbers.interval_95,
                share_of_peak: share,
                reaches: [Goal::NinetyPercent, Goal::Half].into_iter().find(reached),
                point: index,
            });
        }
    }
    all
}

fn plain_entries(found: &Found<'_>, op: OpKind) -> Vec<usize> {
    let of =
        |bytes| found.entries.iter().position(|entry| is_plain(entry, op, bytes, found.setting));
    PLAIN_BYTES.into_iter().filter_map(of).collect()
}

/// Nothing if a plain program reaches the goal unchanged. A second comparison with no more changes
/// replaces the first.
pub(crate) fn advice(found: &Found<'_>) -> Vec<Comparison> {
    let mut all: Vec<Comparison> = Vec::new();
    for op in found.setting.ops() {
        let Some(PeakRate { bytes_per_s: peak, .. }) = found.measured.of(op) else { continue };
        let mut said: Option<Goal> = None;
        for before in plain_entries(found, op) {
            let Some(rate) = found.entries[before].point().rate() else { continue };
            let reaches = |goal: Goal| {
                let wanted = goal.share() * peak;
                let after =
                    (rate < wanted).then(|| cheapest(found, op, before, wanted)).flatten()?;
                Some((goal, after))
            };
            // Advice for larger requests usually also holds for smaller ones: report it once.
            let known = said;
            let new = |goal: Goal| known.is_none_or(|known| known.share() < goal.share());
            let worth =
                worth_saying(found, before, reaches(Goal::Half), reaches(Goal::NinetyPercent));
            for (goal, after) in worth.into_iter().filter(|(goal, _)| new(*goal)) {
                let (change, setting) =
                    words(op, &found.entries[before].workload, &found.entries[after].workload);
                let reading =
                    |point| Reading { x: 0.0, y: 0.0, interval_95: None, exact: false, point };
                let title = format!("{change}: {}", goal.words());
                let comparison =
                    Comparison::new(Change::Plain, reading(before), reading(after), title, setting);
                all.push(comparison.reaching(goal));
                said = Some(goal);
            }
        }
    }
    all
}

fn worth_saying(
    found: &Found<'_>,
    before: usize,
    half: Option<(Goal, usize)>,
    max: Option<(Goal, usize)>,
) -> Vec<(Goal, usize)> {
    let (Some(half), Some(max)) = (half, max) else { return half.or(max).into_iter().collect() };
    let rate = |index: usize| found.entries[index].point().rate().unwrap_or(0.0);
    let effort =
        |index: usize| changes(&found.entries[before].workload, &found.entries[index].workload);
    if half.1 == max.1 || effort(max.1) <= effort(half.1) {
        vec![max]
    } else if rate(max.1) < rate(half.1) * WORTH_MORE {
        vec![half]
    } else {
        vec![half, max]
    }
}

/// Among equals, fewer bytes outstanding win.
fn cheapest(found: &Found<'_>, op: OpKind, before: usize, goal: f64) -> Option<usize> {
    let base = &found.entries[before].workload;
    let alike = |entry: &Entry| {
        let workload = &entry.workload;
        // In memory a flush is the only difference between durable and other writes.
        let direct = stands_for(entry, op, found.setting, false)
            && !workload.buffering.is_dsync()
            && (workload.buffering.is_direct() || workload.sync_at_end == base.sync_at_end);
        let buffered =
            Workload { request_bytes: base.request_bytes, hint: base.hint, ..workload.clone() }
                == Workload { limit_bytes: workload.limit_bytes, ..base.clone() };
        workload.pattern == Pattern::Seq && workload.sizes.is_none() && (direct || buffered)
    };
    let good = found.entries.iter().enumerate().filter(|(index, entry)| {
        *index != before
            && changes(base, &entry.workload) > 0
            && alike(entry)
            && entry.point().rate().is_some_and(|rate| rate >= goal)
    });
    let cost = |workload: &Workload| {
        let outstanding = u64::from(workload.outstanding()) * u64::from(workload.request_bytes);
        (changes(base, workload), outstanding, workload.depth)
    };
    good.min_by_key(|(_, entry)| cost(&entry.workload)).map(|(index, _)| index)
}

pub(crate) fn changes(before: &Workload, after: &Workload) -> u32 {
    [
        before.request_bytes != after.request_bytes,
        before.depth != after.depth,
        before.threads != after.threads,
        before.buffering != after.buffering,
        before.hint != after.hint,
        before.allocation != after.allocation,
        before.engine != after.engine && before.depth == after.depth,
    ]
    .into_iter()
    .map(u32::from)
    .sum()
}

/// Entries around each single change, in the first order with every step measured; none if only one
/// thing changes.
pub(crate) fn steps(entries: &[Entry], before: usize, after: usize) -> Vec<(usize, usize, String)> {
    let (from, to) = (&entries[before].workload, &entries[after].workload);
    let all = [Aspect::Cache, Aspect::Size, Aspect::Outstanding];
    let changed: Vec<Aspect> =
        all.into_iter().filter(|aspect| aspect.of(from) != aspect.of(to)).collect();
    let alike = |entry: &Entry, wanted: &Workload| {
        let one = &entry.workload;
        let kind = one.op() == wanted.op()
            && one.pattern == wanted.pattern
            && one.allocation == wanted.allocation;
        let cold = one.buffering.is_direct() || one.sync_at_end || one.cache == from.cache;
        let usual = one.offset_bytes == 0
            && one.region_start_bytes == 0
            && one.think_ns == 0
            && one.hint == wanted.hint;
        kind && cold
            && usual
            && entry.shape == entries[after].shape
            && all.iter().all(|one_of| one_of.of(one) == one_of.of(wanted))
    };
    let path = |order: Vec<Aspect>| -> Option<Vec<(usize, usize, String)>> {
        let (mut at, mut workload, mut path) = (before, from.clone(), Vec::new());
        for (number, aspect) in order.iter().enumerate() {
            aspect.take(&mut workload, to);
            let measured =
                |entry: &Entry| alike(entry, &workload) && entry.point().rate().is_some();
            let next = if number + 1 == order.len() {
                after
            } else {
                entries.iter().position(measured)?
            };
            path.push((at, next, aspect.words(to)));
            at = next;
        }
        Some(path)
    };
    if changed.len() < 2 {
        Vec::new()
    } else {
        orders(&changed).into_iter().find_map(path).unwrap_or_default()
    }
}

fn orders(all: &[Aspect]) -> Vec<Vec<Aspect>> {
    if all.is_empty() {
        return vec![Vec::new()];
    }
    let first = |index: usize| {
        let rest: Vec<Aspect> = all
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
            .map(|(_, one)| *one)
            .collect();
        orders(&rest).into_iter().map(move |order| [vec![all[index]], order].concat())
    };
    (0..all.len()).flat_map(first).collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Aspect {
    Cache,
    Size,
    Outstanding,
}

impl Aspect {
    /// Equal for workloads that agree. Waiting requires another engine, so the engine does not
    /// count.
    fn of(self, workload: &Workload) -> (u32, u32) {
        match self {
            Aspect::Cache => (
                u32::from(workload.buffering.is_direct()),
                u32::from(workload.buffering.is_dsync()),
            ),
            Aspect::Size => (workload.request_bytes, 0),
            Aspect::Outstanding => (workload.depth, workload.threads),
        }
    }

    fn take(self, workload: &mut Workload, from: &Workload) {
        match self {
            Aspect::Cache => (workload.buffering, workload.hint) = (from.buffering, from.hint),
            Aspect::Size => workload.request_bytes = from.request_bytes,
            Aspect::Outstanding => (workload.depth, workload.threads) = (from.depth, from.threads),
        }
    }

    fn words(self, to: &Workload) -> String {
        match self {
            Aspect::Cache if to.buffering.is_direct() => "past the page cache".into(),
            Aspect::Cache => "through the page cache".into(),
            Aspect::Size => show_size(u64::from(to.request_bytes)),
            Aspect::Outstanding => format!("{} outstanding", to.outstanding()),
        }
    }
}

fn words(op: OpKind, before: &Workload, after: &Workload) -> (String, String) {
    let verb = if op == OpKind::Write { "Write" } else { "Read" };
    let mut how = Vec::new();
    if before.buffering != after.buffering {
        how.push(
            if after.buffering == Buffering::Direct {
                "past the page cache"
            } else {
                "through the page cache"
            }
            .to_owned(),
        );
    }
    let size = show_size(u64::from(after.request_bytes));
    if before.request_bytes != after.request_bytes {
        let small = before.request_bytes < PLAIN_BYTES[0];
        let instead = if small {
            format!(", not {}", show_size(u64::from(before.request_bytes)))
        } else {
            String::new()
        };
        how.push(format!("in requests of {size}{instead}"));
    }
    if after.outstanding() > 1 {
        how.push(format!("with {} outstanding", after.outstanding()));
    }
    if before.hint != after.hint {
        how.push(format!("with the hint {}", after.hint.name()));
    }
    (format!("{verb} {}", how.join(" ")), after.short())
}
