//! Limits that the layers below advertise.

use super::evidence::{BUSY_PERCENT, Evidence, Named};
use crate::case::SAME;
use machine::{Layer, LayerKind, TargetFacts, TargetKind};
use results::{Advertised, Bottleneck, Cause, ExcludedBy, Exclusion, LimitOf};
use workload::OpKind;

/// Of a throttle's rate, for a plain program that it limits.
const MIN_SHARE: f64 = 0.3;

/// If more requests would gain.
const NEARLY_ALL: f64 = 0.8;

/// If more requests gain nothing.
const MIN_SHARE_OF_MANY: f64 = 0.75;

/// A short run through the page cache may start with burst credit.
const MAX_SHARE: f64 = 1.5;

/// A throttle counts each page of a block device's write-back, before requests merge.
const PAGE: f64 = 4096.0;

pub(crate) fn advertised(facts: &TargetFacts, op: OpKind) -> Option<Advertised> {
    let (layer, rate) = facts.narrowest_rate(op == OpKind::Write)?;
    Some(Advertised { layer: layer.name.clone(), throughput_bytes_per_s: rate })
}

impl Evidence<'_> {
    fn narrowest(&self) -> Option<(&Layer, f64)> {
        self.facts.narrowest_rate(self.case.op == OpKind::Write)
    }

    fn fewest(&self) -> Option<(&Layer, f64)> {
        self.facts.narrowest_iops(self.case.op == OpKind::Write, self.case.of == LimitOf::Random)
    }

    pub(super) fn advertised(&self) -> Option<Named> {
        let (layer, rate) = self.narrowest()?;
        // A burst may be faster than the layer admits in the long run.
        let above = self.rate > rate && self.points[self.case.base].measures_target(self.facts);
        let same = above || (self.rate / rate - 1.0).abs() <= SAME;
        let cause = Cause::Advertised { layer: layer.name.clone(), admits_bytes_per_s: rate };
        same.then(|| (Bottleneck::of_layer(layer.kind), cause))
    }

    pub(super) fn admitted(&self) -> Option<Named> {
        let (layer, iops) = self.fewest()?;
        let each = self.numbers.achieved.device_request_bytes;
        // A throttle counts requests before the device's queue merges them, and after the kernel
        // has split them.
        let counts = [each.map_or(self.numbers.iops, |bytes| self.rate / bytes), self.numbers.iops];
        let reach_iops = counts.into_iter().find(|count| (count / iops - 1.0).abs() <= SAME)?;
        let what = if layer.kind == LayerKind::Throttle {
            Bottleneck::Throttle
        } else {
            Bottleneck::DeviceIops
        };
        let layer = layer.name.clone();
        Some((what, Cause::Admitted { layer, reach_iops, request_bytes: each, admits_iops: iops }))
    }

    pub(super) fn throttled(&self) -> Option<Named> {
        self.throttled_bytes().or_else(|| self.throttled_pages())
    }

    fn throttled_bytes(&self) -> Option<Named> {
        let (layer, rate) =
            self.narrowest().filter(|(layer, _)| layer.kind == LayerKind::Throttle)?;
        let share = self.rate / rate;
        let min = match self.case.of {
            LimitOf::Plain => MIN_SHARE,
            // A rate above the throttle's used burst credit; a lower one that gains with more
            // requests has not reached it.
            _ if self.flat() == Some(false) => NEARLY_ALL,
            _ => MIN_SHARE_OF_MANY,
        };
        let (layer, percent) = (layer.name.clone(), share * 100.0);
        let cause = Cause::PartOfThrottle { layer, percent, admits_bytes_per_s: rate };
        (min..=MAX_SHARE).contains(&share).then_some((Bottleneck::Throttle, cause))
    }

    fn throttled_pages(&self) -> Option<Named> {
        let paged = self.facts.kind == TargetKind::Device && !self.workload.buffering.is_direct();
        let (layer, iops) = self.fewest().filter(|(layer, _)| layer.kind == LayerKind::Throttle)?;
        let pages = self.rate / PAGE;
        let cause = Cause::PagesOfThrottle {
            layer: layer.name.clone(),
            pages_per_s: pages,
            admits_iops: iops,
        };
        (paged
            && self.case.op == OpKind::Write
            && (MIN_SHARE..=MAX_SHARE).contains(&(pages / iops)))
        .then_some((Bottleneck::Throttle, cause))
    }

    pub(super) fn share_of_narrowest(&self) -> Option<Exclusion> {
        let (layer, rate) = self.narrowest()?;
        let percent = Some(self.rate / rate * 100.0).filter(|&share| share < BUSY_PERCENT)?;
        let by =
            ExcludedBy::Advertised { layer: layer.name.clone(), percent, admits_bytes_per_s: rate };
        Some(Exclusion { what: Bottleneck::of_layer(layer.kind), by })
    }
}
