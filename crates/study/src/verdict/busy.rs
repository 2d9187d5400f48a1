//! If components count their busy time, the busiest is the limit, unless all of them wait.

use super::evidence::{Ask, BUSY_PERCENT, Evidence, Named};
use super::refute::Found;
use crate::case::Variant;
use machine::ResourceKind;
use results::{Bottleneck, BusyPart, Cause, LimitOf};

/// A component this busy is a limit if depth gains nothing: it also waits for others.
const RATHER_BUSY_PERCENT: f64 = 70.0;

fn named(kind: ResourceKind) -> Bottleneck {
    match kind {
        ResourceKind::Processor => Bottleneck::Processor,
        ResourceKind::Pci => Bottleneck::Pci,
        ResourceKind::Adapter => Bottleneck::Adapter,
        ResourceKind::Bus => Bottleneck::Bus,
        ResourceKind::Link => Bottleneck::Link,
        ResourceKind::Network => Bottleneck::Network,
        ResourceKind::Media => Bottleneck::Media,
        ResourceKind::Device => Bottleneck::Device,
        ResourceKind::Throttle => Bottleneck::Throttle,
    }
}

pub(super) fn found<'b>(evidence: &Evidence<'b>) -> Found {
    let plain: [Ask<'b>; 5] = [
        Evidence::device_iops_by_busy,
        Evidence::busiest,
        Evidence::flush_alone,
        Evidence::own_work,
        Evidence::ahead,
    ];
    let others: [Ask<'b>; 5] = [
        Evidence::device_iops_by_busy,
        Evidence::busiest,
        Evidence::own_work,
        Evidence::thread,
        Evidence::rather_busy,
    ];
    let mut asks =
        if evidence.case.of == LimitOf::Plain { plain.to_vec() } else { others.to_vec() };
    asks.push(Evidence::waits);
    evidence.first(&[], &asks)
}

impl Evidence<'_> {
    fn busiest(&self) -> Option<Named> {
        self.busy_from(BUSY_PERCENT)
    }

    fn rather_busy(&self) -> Option<Named> {
        self.busy_from(RATHER_BUSY_PERCENT).filter(|_| self.gains(Variant::Deeper) == Some(false))
    }

    fn busy_from(&self, min: f64) -> Option<Named> {
        let kind =
            self.numbers.achieved.resources.first().filter(|first| first.busy_percent >= min)?.kind;
        let mut parts = self.parts();
        let cause = Cause::Busiest { part: parts.remove(0), others: parts };
        Some((named(kind), cause))
    }

    fn device_iops_by_busy(&self) -> Option<Named> {
        let (what, Cause::Busiest { part, others }) = self.busy_from(RATHER_BUSY_PERCENT)? else {
            return None;
        };
        let (what, Cause::DeviceRequests { iops, .. }) =
            self.device_iops().filter(|_| what == Bottleneck::Device)?
        else {
            return None;
        };
        Some((what, Cause::DeviceRequests { iops, part: Some(part), others }))
    }

    fn flush_alone(&self) -> Option<Named> {
        self.flush().filter(|(what, _)| *what == Bottleneck::Flush)
    }

    fn ahead(&self) -> Option<Named> {
        let (what, _) = self.read_ahead_by_trial()?;
        Some((
            what,
            Cause::ReadAheadNotBusy { read_ahead: self.read_ahead_sizes(), others: self.parts() },
        ))
    }

    fn waits(&self) -> Option<Named> {
        Some((Bottleneck::Latency, Cause::NothingBusy { others: self.parts() }))
    }

    fn parts(&self) -> Vec<BusyPart> {
        let parts = self.numbers.achieved.resources.iter();
        parts
            .map(|one| BusyPart { name: one.name.clone(), busy_percent: one.busy_percent })
            .collect()
    }
}
