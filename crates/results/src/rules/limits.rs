//! Rules about limits.

use super::{Checks, Rule};
use crate::limit::{GAIN, SAME};
use crate::{Bottleneck, Cause, DEEPER_GAIN, Limit, LimitChange, LimitOf, LimitTrial, Meaning};

impl Checks<'_> {
    pub(super) fn limits(&mut self) {
        for limit in &self.answer.limits {
            let name = format!("a limit of {} {}s", limit.of, limit.op);
            if let Some((point, rate)) = limit.point.zip(limit.throughput_bytes_per_s) {
                self.is_rate(&format!("the rate of {name}"), point, rate, None);
            }
            self.is_lasting(limit, &name);
            self.cap_is_limit(limit, &name);
            for trial in &limit.trials {
                if let Some(outcome) = trial.meaning.filter(|&meaning| !allows(trial, meaning)) {
                    let (change, interval) = (&trial.change, trial.iops_ratio_interval_95);
                    self.add(
                        Rule::TrialDecided,
                        format!("{name}, {change}: {outcome} from {interval:?}"),
                    );
                }
            }
            self.agrees(limit, &name);
        }
    }

    fn is_lasting(&mut self, limit: &Limit, name: &str) {
        let bursts = &self.answer.random_bursts;
        let burst = bursts.iter().find(|one| limit.of == LimitOf::Random && one.op == limit.op);
        let lasting = burst.map(|one| one.point).filter(|&point| limit.point != Some(point));
        if let Some(lasting) = lasting {
            let text = format!("{name} is that of point {:?}, not of {lasting}", limit.point);
            self.add(Rule::OneValue, text);
        }
    }

    fn cap_is_limit(&mut self, limit: &Limit, name: &str) {
        use Bottleneck as B;
        let measures = limit
            .point
            .and_then(|point| self.points.get(point))
            .is_some_and(|point| point.measures_target(self.facts));
        let Some((rate, admits)) = limit.throughput_bytes_per_s.zip(self.admitted(limit.op)) else {
            return;
        };
        let point = limit.point.and_then(|point| self.points.get(point));
        // Parts that count their busy time may be busy at the rate of another.
        let counted = point
            .and_then(|point| point.numbers.as_ref())
            .is_some_and(|numbers| !numbers.achieved.resources.is_empty());
        // The rate that a device advertises does not bind a cache or a burst, which the peak names.
        let burst = rate > admits * (1.0 + SAME) && self.is_beyond(limit.op);
        let at_cap = measures && rate >= admits && !counted && !burst;
        let below = matches!(
            limit.what,
            B::Throttle
                | B::Device
                | B::DeviceIops
                | B::Media
                | B::Link
                | B::Adapter
                | B::Bus
                | B::Pci
                | B::Network
                | B::Memory
        );
        if at_cap && !below {
            let what = limit.what;
            self.add(
                Rule::CapIsLimit,
                format!("{name} is the {what} at {rate} bytes/s, and a layer admits {admits}"),
            );
        }
    }

    fn agrees(&mut self, limit: &Limit, name: &str) {
        let of = |wanted: fn(&LimitChange) -> bool| {
            limit.trials.iter().find(|trial| trial.changed.as_ref().is_some_and(wanted))
        };
        let deeper = of(|change| matches!(change, LimitChange::Deeper { .. }));
        let contradicts = match limit.cause {
            Some(Cause::DeeperGainsNothing { .. }) => {
                deeper.and_then(|trial| trial.iops_ratio_interval_95).is_some_and(|ends| {
                    let [low, high] = ends;
                    low >= GAIN || (low <= 1.0 && high >= DEEPER_GAIN)
                })
            }
            Some(Cause::NothingSaturated) => deeper
                .and_then(|trial| trial.iops_ratio_interval_95)
                .is_some_and(|[_, high]| high < 1.0 - SAME),
            _ => false,
        };
        if contradicts {
            let (what, ends) = (limit.what, deeper.and_then(|one| one.iops_ratio_interval_95));
            self.add(
                Rule::LimitAgrees,
                format!("{name} is the {what}, and more requests outstanding give {ends:?}"),
            );
        }
    }
}

/// The interval excludes what the meaning excludes.
fn allows(trial: &LimitTrial, meaning: Meaning) -> bool {
    use Meaning as M;
    let Some([low, high]) = trial.iops_ratio_interval_95 else { return true };
    match meaning {
        M::NotLatency | M::NotThread | M::NotReadAhead => high <= GAIN,
        M::NotFileSystem | M::NotOneFile => high <= GAIN,
        M::NotNumber => high < 1.0 - SAME || low > 1.0 + SAME,
        M::NumberIsLimit | M::SizeIsFree | M::SameProcessorTime | M::SizeMattersLittle => {
            low >= 1.0 - SAME && high <= 1.0 + SAME
        }
        M::Undecided | M::HeadsMove => true,
        _ => low > 1.0,
    }
}
