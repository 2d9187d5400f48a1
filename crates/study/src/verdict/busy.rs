//! The verdict for a machine whose components count their busy time: the busiest is the limit,
//! unless all of them wait.

use super::advertised::words;
use super::refute::Found;
use super::{Ask, BUSY_PERCENT, Cause, Evidence};
use crate::trial::Variant;
use machine::{ResourceKind, ResourceUse};
use results::{Bottleneck, LimitOf};

/// A component this busy, in percent, is the limit if a greater depth gains nothing: it also waits
/// for others in turn.
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

/// The busiest component that no trial refutes; if none is busy, the wait that explains it.
pub(super) fn found<'b>(evidence: &Evidence<'b>) -> Found {
    let plain: [Ask<'b>; 5] =
        [Evidence::device_iops_by_busy, Evidence::busiest, Evidence::flush_alone, Evidence::own_work, Evidence::ahead];
    let others: [Ask<'b>; 5] =
        [Evidence::device_iops_by_busy, Evidence::busiest, Evidence::own_work, Evidence::thread, Evidence::rather_busy];
    let mut asks = if evidence.case.of == LimitOf::Plain { plain.to_vec() } else { others.to_vec() };
    asks.push(Evidence::waits);
    evidence.first(&[], &asks)
}

impl Evidence<'_> {
    fn busiest(&self) -> Option<Cause> {
        self.busy_from(BUSY_PERCENT)
    }

    /// A component that is fairly busy, when a greater depth gains nothing.
    fn rather_busy(&self) -> Option<Cause> {
        self.busy_from(RATHER_BUSY_PERCENT).filter(|_| self.gains(Variant::Deeper) == Some(false))
    }

    fn busy_from(&self, least: f64) -> Option<Cause> {
        let first = self.numbers.achieved.resources.first().filter(|first| first.busy_percent >= least)?;
        let what = named(first.kind);
        let part = if words(what) == first.name { String::new() } else { format!(" ({})", first.name) };
        let (word, busy, shown) = (words(what), first.busy_percent, self.shown());
        let why = format!("the {word}{part}: busy {busy:.0} % of the time at {shown}{}", self.also_busy(1));
        Some((what, why))
    }

    /// A device whose requests keep it busy whatever their size: other sizes come at the same rate.
    fn device_iops_by_busy(&self) -> Option<Cause> {
        let (_, why) = self.busy_from(RATHER_BUSY_PERCENT).filter(|(what, _)| *what == Bottleneck::Device)?;
        let (_, number) = self.device_iops()?;
        let why = why.strip_prefix("the device").unwrap_or(&why);
        Some((Bottleneck::DeviceIops, format!("{number}{why}")))
    }

    fn flush_alone(&self) -> Option<Cause> {
        self.flush().filter(|(what, _)| *what == Bottleneck::Flush)
    }

    /// Read-ahead is too small for a sequential program: twice as much gains.
    fn ahead(&self) -> Option<Cause> {
        let (what, why) = self.read_ahead_by_trial()?;
        Some((what, format!("{why}: nothing is busy all the time at {}{}", self.shown(), self.also_busy(0))))
    }

    /// Nothing is busy, and each request takes its time.
    fn waits(&self) -> Option<Cause> {
        let others = self.also_busy(0);
        let why = format!("the time of each request: nothing is busy all the time at {}{others}", self.shown());
        Some((Bottleneck::Latency, why))
    }

    fn also_busy(&self, skip: usize) -> String {
        let shown: Vec<String> = self.numbers.achieved.resources.iter().skip(skip).map(show).collect();
        if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
    }
}

fn show(one: &ResourceUse) -> String {
    format!("{} {:.0} %", one.name, one.busy_percent)
}
