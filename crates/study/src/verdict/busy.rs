//! The verdict where the parts of the machine count their own busy time: the busiest is the limit, unless all of them wait.

use super::advertised::words;
use super::{BUSY_PERCENT, Cause, Evidence};
use crate::trial::Variant;
use machine::{ResourceKind, ResourceUse};
use results::Bottleneck;

/// A part that is as busy as this, in percent, is the limit if more requests outstanding gain nothing: it also waits for others in turn.
const RATHER_BUSY_PERCENT: f64 = 70.0;

/// The bottleneck that a part is.
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

/// The busiest part; none where the machine's parts do not count.
pub(super) fn busiest(evidence: &Evidence<'_>) -> Option<Cause> {
    let resources = &evidence.numbers.achieved.resources;
    let first = resources.first()?;
    let flat = evidence.gains(Variant::Deeper) == Some(false);
    let most = if flat { RATHER_BUSY_PERCENT } else { BUSY_PERCENT };
    let others = |skip: usize| -> String {
        let shown: Vec<String> = resources.iter().skip(skip).map(show).collect();
        if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
    };
    let rate = evidence.shown();
    if first.busy_percent < most {
        if let Some(flush) = evidence.flush().filter(|(what, _)| *what == Bottleneck::Flush) {
            return Some(flush);
        }
        if let Some(own) = evidence.own_work() {
            return Some(own);
        }
        let why = format!("the time of each request: nothing is busy all the time at {rate}{}", others(0));
        return Some((Bottleneck::Latency, why));
    }
    let what = named(first.kind);
    let named = if words(what) == first.name { String::new() } else { format!(" ({})", first.name) };
    let why =
        format!("the {}{named}: busy {:.0} % of the time at {rate}{}", words(what), first.busy_percent, others(1));
    Some((what, why))
}

fn show(one: &ResourceUse) -> String {
    format!("{} {:.0} %", one.name, one.busy_percent)
}
