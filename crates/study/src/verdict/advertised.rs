//! Advertised limits of the layers below, and whether a rate reaches them.

use super::{BUSY_PERCENT, Cause, Evidence, SAME};
use machine::{Layer, LayerKind, TargetFacts, TargetKind, units};
use results::{Advertised, Bottleneck, LimitOf};
use workload::OpKind;

/// Minimum share of a throttle's rate for a depth-1 program that the throttle limits.
const MIN_SHARE: f64 = 0.3;

/// Minimum share of a throttle's rate for many requests if more would gain: the remaining gain is
/// less than the rate so far.
const NEARLY_ALL: f64 = 0.8;

/// The same if more requests gain nothing.
const MIN_SHARE_OF_MANY: f64 = 0.75;

/// Maximum share: a short run through the page cache may start with leftover burst credit.
const MAX_SHARE: f64 = 1.5;

/// Write-back unit of a block device's page cache: a throttle counts each, before the device's
/// queue merges them.
const PAGE: f64 = 4096.0;

/// The narrowest layer below for an operation, with the target's rate at which this layer is
/// saturated.
fn narrowest(facts: &TargetFacts, op: OpKind) -> Option<(&Layer, f64)> {
    let rates = facts
        .layers
        .iter()
        .filter_map(|layer| Some((layer, layer.target_rate(op == OpKind::Write)?)).filter(|one| one.1 > 0.0));
    rates.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The lowest advertised rate of a layer below for an operation, with the layer's name.
pub(crate) fn advertised(facts: &TargetFacts, op: OpKind) -> Option<Advertised> {
    let (layer, rate) = narrowest(facts, op)?;
    Some(Advertised { layer: layer.name.clone(), throughput_bytes_per_s: rate })
}

/// The lowest request rate that a layer below admits for an operation.
///
/// A device model's figure for random requests does not limit sequential ones.
fn admitted(facts: &TargetFacts, op: OpKind, of: LimitOf) -> Option<(&Layer, f64)> {
    let limits = facts
        .layers
        .iter()
        .filter(|layer| of == LimitOf::Random || !layer.facts.throttle.is_some_and(|throttle| throttle.random_only))
        .filter_map(|layer| Some((layer, layer.target_iops(op == OpKind::Write)?)).filter(|one| one.1 > 0.0));
    limits.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn named(kind: LayerKind) -> Bottleneck {
    match kind {
        LayerKind::Throttle => Bottleneck::Throttle,
        LayerKind::Link => Bottleneck::Link,
        LayerKind::Adapter => Bottleneck::Adapter,
        LayerKind::Bus => Bottleneck::Bus,
        LayerKind::Pci => Bottleneck::Pci,
        LayerKind::Network => Bottleneck::Network,
        _ => Bottleneck::Device,
    }
}

impl Evidence<'_> {
    pub(super) fn advertised(&self) -> Option<Cause> {
        let (layer, rate) = narrowest(self.facts, self.case.op)?;
        if (self.rate / rate - 1.0).abs() > SAME {
            return None;
        }
        let what = named(layer.kind);
        let why = format!("{}: {} of the {} that it admits", layer.name, self.shown(), units::show_rate(rate));
        Some((what, format!("the {} {why}", words(what))))
    }

    pub(super) fn admitted(&self) -> Option<Cause> {
        let (layer, iops) = admitted(self.facts, self.case.op, self.case.of)?;
        let each = self.numbers.achieved.device_request_bytes;
        // A throttle counts requests before the device's queue merges them, and after the kernel
        // has split them.
        let counts = [each.map_or(self.numbers.iops, |bytes| self.rate / bytes), self.numbers.iops];
        let at_device = counts.into_iter().find(|count| (count / iops - 1.0).abs() <= SAME)?;
        let each = each.map_or(String::new(), |bytes| format!(" of {}", units::show_size_rounded(bytes)));
        let what = if layer.kind == LayerKind::Throttle { Bottleneck::Throttle } else { Bottleneck::DeviceIops };
        let why = format!("{}: {at_device:.0} requests/s{each} reach it, and it admits {iops:.0}", layer.name);
        Some((what, format!("the {} {why}", words(what))))
    }

    /// A throttle is reported, and requests reach a good part of its rate, even one by one or in
    /// bursts.
    pub(super) fn throttled(&self) -> Option<Cause> {
        self.throttled_bytes().or_else(|| self.throttled_pages())
    }

    fn throttled_bytes(&self) -> Option<Cause> {
        let (layer, rate) =
            narrowest(self.facts, self.case.op).filter(|(layer, _)| layer.kind == LayerKind::Throttle)?;
        let share = self.rate / rate;
        let (least, who) = match self.case.of {
            LimitOf::Plain => (MIN_SHARE, "a program with one request at a time"),
            // A rate above the throttle's used burst credit; a lower one that gains with more
            // requests has not reached it.
            _ if self.flat() == Some(false) => (NEARLY_ALL, "the program"),
            _ => (MIN_SHARE_OF_MANY, "the program"),
        };
        let why = format!("the throttle {}: {:.0} % of the {}", layer.name, share * 100.0, units::show_rate(rate));
        let part = (least..=MAX_SHARE).contains(&share);
        part.then(|| (Bottleneck::Throttle, format!("{why} that it admits, in bursts, reach {who}")))
    }

    /// Plain writes to a block device are written back page by page.
    fn throttled_pages(&self) -> Option<Cause> {
        let paged = self.facts.kind == TargetKind::Device && !self.workload.buffering.is_direct();
        let (layer, iops) =
            admitted(self.facts, self.case.op, self.case.of).filter(|(layer, _)| layer.kind == LayerKind::Throttle)?;
        let pages = self.rate / PAGE;
        let why = format!("the throttle {}: {pages:.0} pages/s reach the device", layer.name);
        (paged && self.case.op == OpKind::Write && (MIN_SHARE..=MAX_SHARE).contains(&(pages / iops)))
            .then(|| (Bottleneck::Throttle, format!("{why} one by one, and it admits {iops:.0} requests/s")))
    }

    pub(super) fn share_of_narrowest(&self) -> Option<(Bottleneck, String)> {
        let (layer, rate) = narrowest(self.facts, self.case.op)?;
        let share = Some(self.rate / rate * 100.0).filter(|&share| share < BUSY_PERCENT)?;
        Some((named(layer.kind), format!("{}: {share:.0} % of its {}", layer.name, units::show_rate(rate))))
    }
}

pub(super) fn words(what: Bottleneck) -> &'static str {
    match what {
        Bottleneck::DeviceIops => "requests per second of the device",
        Bottleneck::FileSystem => "file system",
        Bottleneck::ReadAhead => "read-ahead of the page cache",
        Bottleneck::Pci => "I/O bus",
        Bottleneck::Latency => "time of each request",
        Bottleneck::Media => "media",
        other => other.name(),
    }
}
