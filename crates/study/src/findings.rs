//! What is worth changing: pairs of points that differ in one setting, ranked by gain.

use crate::bench::Entry;
use crate::draw::Laid;
use crate::result::Finding;
use machine::units::{show_rate, show_size, significant};
use measure::{Point, Sample, stats};

/// Gains below this are not worth a reader's time.
const LEAST_GAIN: f64 = 1.1;

/// A setting is good enough when it reaches this share of the best: the smallest such is recommended, not the extreme.
const ENOUGH: f64 = 0.9;

/// Two settings to be compared.
struct Pair {
    kind: Kind,
    before: usize,
    after: usize,
    title: String,
    setting: String,
}

/// What is changed. The best finding of each kind comes before the second of any: three sizes are one advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Size,
    Depth,
    Cache,
    Durability,
    Mechanism,
    Allocation,
    Alignment,
    Chunk,
}

/// Findings from the experiments' cells, the greatest gain first.
pub(crate) fn findings(laid: &[Laid], entries: &[Entry], points: &[Point], target: &str) -> Vec<Finding> {
    let mut pairs = Vec::new();
    let look = Look { laid, points };
    request_sizes(&look, &mut pairs);
    depths(&look, &mut pairs);
    caches(&look, &mut pairs);
    mechanisms(&look, &mut pairs);
    space(&look, &mut pairs);
    stripes(&look, &mut pairs);
    let mut found: Vec<(Kind, Finding)> =
        pairs.iter().filter_map(|pair| Some((pair.kind, finding(pair, entries, points, target)?))).collect();
    found.sort_by(|a, b| b.1.gain.total_cmp(&a.1.gain));
    let mut seen = Vec::new();
    let (first, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(|(kind, _)| {
        let new = !seen.contains(kind);
        seen.push(*kind);
        new
    });
    first.into_iter().chain(rest).map(|(_, finding)| finding).collect()
}

/// The cells of all experiments, to be looked up by where they are drawn.
struct Look<'a> {
    laid: &'a [Laid],
    points: &'a [Point],
}

impl Look<'_> {
    /// Places, x and rates of a series, by rising x; failed points left out.
    fn series(&self, group: &str, series: &str) -> Vec<(f64, usize, f64)> {
        let mut found: Vec<(f64, usize, f64)> = self
            .laid
            .iter()
            .flat_map(|laid| laid.design.cells.iter().zip(&laid.places))
            .filter(|(cell, _)| cell.group == group && cell.series == series)
            .filter_map(|(cell, place)| Some((cell.x, (*place)?, self.points[(*place)?].rate()?)))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found
    }

    /// One cell.
    fn at(&self, group: &str, series: &str, x: f64) -> Option<(usize, f64)> {
        self.series(group, series).into_iter().find(|one| one.0 == x).map(|(_, place, rate)| (place, rate))
    }

    /// The names of a group's series.
    fn names(&self, group: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for cell in self.laid.iter().flat_map(|laid| &laid.design.cells).filter(|cell| cell.group == group) {
            if !names.contains(&cell.series) {
                names.push(cell.series.clone());
            }
        }
        names
    }
}

/// The smallest setting of a curve that is good enough.
fn enough(curve: &[(f64, usize, f64)]) -> Option<(f64, usize, f64)> {
    let best = curve.iter().map(|one| one.2).fold(0.0, f64::max);
    curve.iter().copied().find(|one| one.2 >= ENOUGH * best)
}

/// From 4 KiB to the smallest size that is good enough.
fn request_sizes(look: &Look<'_>, pairs: &mut Vec<Pair>) {
    for (group, series, verb) in [
        ("unbuffered", "read", "Read sequentially, past the cache,"),
        ("unbuffered", "write", "Write sequentially, past the cache,"),
        ("unbuffered", "write, write-through", "Write through"),
        ("memory", "resident file, read", "Read from the page cache"),
        ("buffered", "read, cold", "Read through the page cache"),
    ] {
        let curve = look.series(group, series);
        let (Some(small), Some(good)) = (curve.iter().find(|one| one.0 == 4096.0), enough(&curve)) else { continue };
        if good.0 > small.0 {
            let size = show_size(good.0 as u64);
            pairs.push(Pair {
                kind: Kind::Size,
                before: small.1,
                after: good.1,
                title: format!("{verb} in requests of {size}, not 4 KiB"),
                setting: format!("request size {size}"),
            });
        }
    }
}

/// From one request outstanding to the smallest depth that is good enough.
fn depths(look: &Look<'_>, pairs: &mut Vec<Pair>) {
    for op in ["read", "write"] {
        for series in look.names("random").iter().filter(|name| name.starts_with(op)) {
            let curve = look.series("random", series);
            let (Some(one), Some(good)) = (curve.first(), enough(&curve)) else { continue };
            if good.0 > one.0 {
                let title = format!("Keep {} random requests outstanding, not {} ({series})", good.0, one.0);
                pairs.push(Pair {
                    kind: Kind::Depth,
                    before: one.1,
                    after: good.1,
                    title,
                    setting: format!("{} requests outstanding", good.0),
                });
            }
        }
        let group = if op == "read" { "depth_read" } else { "depth_write" };
        let at_64k: Vec<_> = look
            .names(group)
            .iter()
            .filter_map(|series| {
                let depth: f64 = series.strip_prefix("depth ")?.parse().ok()?;
                look.at(group, series, 65_536.0).map(|(place, rate)| (depth, place, rate))
            })
            .collect();
        let (Some(one), Some(good)) = (at_64k.first(), enough(&at_64k)) else { continue };
        if good.0 > one.0 {
            let title = format!("Keep {} sequential {op}s of 64 KiB outstanding, not one", good.0);
            pairs.push(Pair { kind: Kind::Depth, before: one.1, after: good.1, title, setting: format!("queue depth {}", good.0) });
        }
    }
}

/// The page cache, its hint, and write-through.
fn caches(look: &Look<'_>, pairs: &mut Vec<Pair>) {
    let size = 65_536.0;
    let mut compare = |kind: Kind, a: Option<(usize, f64)>, b: Option<(usize, f64)>, titles: [&str; 2], settings: [&str; 2]| {
        let (Some(a), Some(b)) = (a, b) else { return };
        let (before, after, which) = if b.1 > a.1 { (a.0, b.0, 1) } else { (b.0, a.0, 0) };
        if !titles[which].is_empty() {
            pairs.push(Pair { kind, before, after, title: titles[which].into(), setting: settings[which].into() });
        }
    };
    compare(
        Kind::Cache,
        look.at("buffered", "read, cold", size),
        look.at("unbuffered", "read", size),
        [
            "Let the page cache read ahead: single sequential reads are faster buffered than direct",
            "Read past the page cache: single sequential reads of 64 KiB are faster direct",
        ],
        ["buffered reads", "direct reads (O_DIRECT)"],
    );
    compare(
        Kind::Cache,
        look.at("buffered", "read, cold", size),
        look.at("buffered", "read, cold, sequential hint", size),
        ["", "Tell the page cache that you read sequentially"],
        ["", "posix_fadvise(POSIX_FADV_SEQUENTIAL)"],
    );
    compare(
        Kind::Durability,
        look.at("unbuffered", "write, write-through", 4096.0),
        look.at("unbuffered", "write", 4096.0),
        ["", "Do not write every 4 KiB through: gather them and flush once, where the last ones may be lost"],
        ["", "group commits; fdatasync once for many writes"],
    );
}

/// The best mechanism against the worst at the same depth.
fn mechanisms(look: &Look<'_>, pairs: &mut Vec<Pair>) {
    for depth in [32.0, 8.0] {
        let mut at: Vec<(String, usize, f64)> = look
            .names("mechanism")
            .into_iter()
            .filter_map(|name| look.at("mechanism", &name, depth).map(|(place, rate)| (name, place, rate)))
            .collect();
        at.sort_by(|a, b| a.2.total_cmp(&b.2));
        if let (Some(worst), Some(best), true) = (at.first(), at.last(), at.len() > 1) {
            let title = format!("Keep {depth} random reads outstanding by {}, not by {}", best.0, worst.0);
            pairs.push(Pair { kind: Kind::Mechanism, before: worst.1, after: best.1, title, setting: format!("engine {}", best.0) });
            return;
        }
    }
}

/// Allocation and alignment.
fn space(look: &Look<'_>, pairs: &mut Vec<Pair>) {
    for depth in ["depth 8", "depth 1"] {
        let extend = look.at("allocation", &format!("extend, {depth}"), 65_536.0);
        for (state, words) in
            [("written", "Write into space that was written before"), ("reserved", "Reserve a file's space before writing it")]
        {
            if let (Some(before), Some(after)) = (extend, look.at("allocation", &format!("{state}, {depth}"), 65_536.0)) {
                let title = format!("{words}, do not extend it as you write (64 KiB, {depth})");
                let setting = if state == "reserved" { "fallocate to the final size first" } else { "write the file once, then reuse it" };
                pairs.push(Pair { kind: Kind::Allocation, before: before.0, after: after.0, title, setting: setting.into() });
            }
        }
    }
    for series in look.names("alignment") {
        let curve = look.series("alignment", &series);
        let Some(aligned) = curve.iter().find(|one| one.0 == 0.0) else { continue };
        let worst = curve.iter().filter(|one| one.0 > 0.0).min_by(|a, b| a.2.total_cmp(&b.2));
        if let Some(worst) = worst {
            let title = format!("Align requests: {} off, they are slower ({series})", show_size(worst.0 as u64));
            pairs.push(Pair {
                kind: Kind::Alignment,
                before: worst.1,
                after: aligned.1,
                title,
                setting: "offsets that are multiples of the request size".into(),
            });
        }
    }
}

/// Chunk and depth of a stripe.
fn stripes(look: &Look<'_>, pairs: &mut Vec<Pair>) {
    for op in ["read", "write"] {
        let chunks = look.series("stripe_chunk", op);
        let worst = chunks.iter().min_by(|a, b| a.2.total_cmp(&b.2));
        let best = chunks.iter().max_by(|a, b| a.2.total_cmp(&b.2));
        if let (Some(worst), Some(best)) = (worst, best) {
            let title = format!("Stripe {op}s in chunks of {}, not {}", show_size(best.0 as u64), show_size(worst.0 as u64));
            pairs.push(Pair {
                kind: Kind::Chunk,
                before: worst.1,
                after: best.1,
                title,
                setting: format!("stripe chunk {}", show_size(best.0 as u64)),
            });
        }
        let depths = look.series("stripe_depth", op);
        if let (Some(one), Some(good)) = (depths.first(), enough(&depths))
            && good.0 > one.0
        {
            let title = format!("Keep {} {op}s of 64 KiB outstanding on the stripe, not one", good.0);
            pairs.push(Pair { kind: Kind::Depth, before: one.1, after: good.1, title, setting: format!("queue depth {}", good.0) });
        }
    }
}

/// A pair as a finding, if the difference is real and large enough.
fn finding(pair: &Pair, entries: &[Entry], points: &[Point], target: &str) -> Option<Finding> {
    if pair.before == pair.after {
        return None;
    }
    let (before, after) = (&points[pair.before], &points[pair.after]);
    let (rate_before, rate_after) = (before.rate()?, after.rate()?);
    let gain = rate_after / rate_before;
    let rates = |entry: &Entry| -> Vec<f64> {
        entry.samples.iter().map(|sample: &Sample| sample.iops() * f64::from(entry.workload.request_bytes)).collect()
    };
    let (a, b) = (rates(&entries[pair.before]), rates(&entries[pair.after]));
    let shared = a.len().min(b.len());
    let ratio = stats::ratio_interval(&a[..shared], &b[..shared]);
    let sure = ratio.as_ref().is_none_or(|ratio| ratio.low > 1.0);
    if gain < LEAST_GAIN || !sure {
        return None;
    }
    Some(Finding {
        title: pair.title.clone(),
        gain,
        gain_interval_95: ratio.map(|ratio| [ratio.low.min(gain), ratio.high.max(gain)]),
        evidence: format!(
            "{} with {}, against {} with {}: {} times as fast",
            show_rate(rate_after),
            after.workload.short(),
            show_rate(rate_before),
            before.workload.short(),
            significant(gain, 3)
        ),
        setting: pair.setting.clone(),
        check: check(target, &before.workload.options(), &after.workload.options()),
        points: [pair.before, pair.after],
    })
}

/// A command that measures both: one sweep where a single option differs, two runs otherwise.
fn check(target: &str, before: &str, after: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (before.split(' ').collect(), after.split(' ').collect());
    let differing: Vec<usize> = (0..a.len().min(b.len())).filter(|&index| a[index] != b[index]).collect();
    if a.len() == b.len()
        && let [one] = differing[..]
        && !a[one].starts_with("--")
        && one > 0
        && !matches!(a[one - 1], "--bytes" | "--rate" | "--think")
    {
        let merged: Vec<String> = a.iter().zip(&b).map(|(a, b)| if a == b { a.to_string() } else { format!("{a},{b}") }).collect();
        return format!("halfpower sweep {target} {}", merged.join(" "));
    }
    format!("halfpower run {target} {before}; halfpower run {target} {after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_difference_is_a_sweep_and_more_are_two_runs() {
        assert_eq!(
            check("/x", "--op read --request 4k --direct", "--op read --request 1m --direct"),
            "halfpower sweep /x --op read --request 4k,1m --direct"
        );
        assert_eq!(
            check("/x", "--op read --depth 1 --engine sync", "--op read --depth 8 --engine io_uring").matches("halfpower run").count(),
            2
        );
    }

    #[test]
    fn the_smallest_good_setting_is_recommended() {
        let curve = [(1.0, 0, 10.0), (2.0, 1, 91.0), (4.0, 2, 100.0), (8.0, 3, 99.0)];
        assert_eq!(enough(&curve).map(|one| one.0), Some(2.0));
        assert_eq!(enough(&[]), None);
    }
}
