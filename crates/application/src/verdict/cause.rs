//! The limit of a flow, from a study's causes.

use super::Reference;
use super::demand::Demand;
use crate::profile::{DeviceProfile, Profile};
use machine::LayerKind;
use results::{Bottleneck, Cause, Limit, LimitOf, ReadAhead, Results};
use workload::OpKind;

/// With a smaller share in requests, the program's own work decides.
const RARELY: f64 = 0.2;
const FEW_FROM_DEVICE: f64 = 0.1;
const AT_LIMIT: f64 = 0.9;
/// More than 1, because a recording may begin with burst credit.
const MAX_SHARE: f64 = 1.5;
/// Minimum share for one request at a time.
const PART_OF_THROTTLE: f64 = 0.75;
const MOST_AGAIN: f64 = 0.5;
const ABOUT_ONE: f64 = 1.5;
const GAIN: f64 = 1.25;

struct Evidence<'a> {
    demand: &'a Demand,
    profile: &'a Profile,
    study: &'a Results,
    same: Option<&'a Reference>,
    best: Option<&'a Reference>,
}

type Named = (Bottleneck, Cause);

/// The first that holds is the limit.
const CAUSES: [fn(&Evidence<'_>) -> Option<Named>; 10] = [
    |one| one.own_pauses(),
    |one| one.page_cache(),
    |one| one.admitted(),
    |one| one.advertised(),
    |one| one.near_best(),
    |one| one.flush(),
    |one| one.cache_size(),
    |one| one.read_ahead(),
    |one| one.one_at_a_time(),
    |one| one.more_would_gain(),
];

pub(super) fn limit(
    demand: &Demand,
    profile: &Profile,
    study: &Results,
    (same, best): (Option<&Reference>, Option<&Reference>),
) -> Limit {
    let evidence = Evidence { demand, profile, study, same, best };
    let unknown = || (Bottleneck::Unknown, Cause::Unidentified { refuted: Vec::new() });
    let (what, cause) = CAUSES.iter().find_map(|holds| holds(&evidence)).unwrap_or_else(unknown);
    let limit = Limit {
        request_bytes: Some(demand.shape.request_bytes.round().min(f64::from(u32::MAX)) as u32),
        throughput_bytes_per_s: Some(demand.bytes_per_s()),
        ..Limit::new(LimitOf::Recorded, demand.op, what, cause)
    };
    limit.with_sentences()
}

impl Evidence<'_> {
    fn writes(&self) -> bool {
        self.demand.op == OpKind::Write
    }

    fn own_pauses(&self) -> Option<Named> {
        let waiting_percent = self.demand.busy_share * 100.0;
        (self.demand.busy_share < RARELY)
            .then_some((Bottleneck::Program, Cause::OwnPauses { waiting_percent }))
    }

    fn page_cache(&self) -> Option<Named> {
        let share = self.demand.device_share?;
        let shape = self.demand.shape;
        // A writer that the kernel holds back writes as fast as the device below.
        let held = self.writes() && self.advertised().is_some();
        (share < FEW_FROM_DEVICE && !shape.direct && !shape.durable && !held).then_some((
            Bottleneck::Memory,
            Cause::FromPageCache { percent: (1.0 - share) * 100.0 },
        ))
    }

    /// Requests and bytes per second of the busiest device, which all roles share, while the
    /// program waits.
    fn at_devices(&self) -> Option<(f64, f64)> {
        // A throttle counts flushes as writes.
        let flow = |device: &DeviceProfile| -> Option<(f64, f64)> {
            let (flow, more) = match self.writes() {
                true => (device.writes.as_ref()?, device.flushes),
                false => (device.reads.as_ref()?, 0),
            };
            Some(((flow.requests + more) as f64, flow.bytes as f64))
        };
        let elapsed = self.profile.elapsed_ns as f64 * 1e-9;
        let active = (self.profile.waited_ns as f64 * 1e-9 / elapsed).min(1.0) * elapsed;
        let flows = self.profile.devices.iter().filter_map(flow);
        let rates = flows.map(|(requests, bytes)| (requests / active, bytes / active));
        rates.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|_| active > 0.0)
    }

    fn admitted(&self) -> Option<Named> {
        let random = !self.demand.shape.sequential;
        let (layer, admits) = self.study.target.narrowest_iops(self.writes(), random)?;
        let own = self.demand.shape.direct.then_some((self.demand.iops, self.demand.bytes_per_s()));
        let at_devices = self.at_devices();
        let reached = own
            .into_iter()
            .chain(at_devices)
            .find(|(iops, _)| (AT_LIMIT..=MAX_SHARE).contains(&(iops / admits)));
        let (reach_iops, bytes) = reached?;
        let what = match layer.kind {
            LayerKind::Throttle => Bottleneck::Throttle,
            _ => Bottleneck::DeviceIops,
        };
        let cause = Cause::Admitted {
            layer: layer.name.clone(),
            reach_iops,
            request_bytes: Some(bytes / reach_iops),
            admits_iops: admits,
        };
        Some((what, cause))
    }

    fn advertised(&self) -> Option<Named> {
        let (layer, admits) = self.study.target.narrowest_rate(self.writes())?;
        let own = self.demand.bytes_per_s();
        let rates = self.at_devices().map(|(_, bytes)| bytes).into_iter().chain([own]);
        let share =
            rates.map(|rate| rate / admits).filter(|share| *share <= MAX_SHARE).fold(0.0, f64::max);
        let layer_name = layer.name.clone();
        if share >= AT_LIMIT {
            let what = Bottleneck::of_layer(layer.kind);
            return Some((
                what,
                Cause::Advertised { layer: layer_name, admits_bytes_per_s: admits },
            ));
        }
        (layer.kind == LayerKind::Throttle && share >= PART_OF_THROTTLE).then_some((
            Bottleneck::Throttle,
            Cause::PartOfThrottle {
                layer: layer_name,
                percent: share * 100.0,
                admits_bytes_per_s: admits,
            },
        ))
    }

    fn near_best(&self) -> Option<Named> {
        let share = self.best?.share_of(self.demand.iops).ratio;
        let of = if self.demand.shape.sequential { LimitOf::Peak } else { LimitOf::Random };
        let limits = self.study.answer.iter().flat_map(|answer| &answer.limits);
        let known = limits
            .filter(|limit| limit.of == of && limit.op == self.demand.op)
            .map(|limit| limit.what)
            .find(|what| *what != Bottleneck::Unknown);
        (share >= AT_LIMIT).then_some((
            known.unwrap_or(Bottleneck::Device),
            Cause::NearPeak { percent_of_peak: share * 100.0 },
        ))
    }

    fn flush(&self) -> Option<Named> {
        (self.demand.shape.durable && self.demand.flush_share >= 0.5).then_some((
            Bottleneck::Flush,
            Cause::FlushEach {
                waiting_percent: self.demand.flush_share * 100.0,
                writes_per_flush: self.demand.writes_per_flush,
            },
        ))
    }

    fn cache_size(&self) -> Option<Named> {
        let again = self.demand.read_again()?;
        (again >= MOST_AGAIN).then_some((
            Bottleneck::CacheSize,
            Cause::CacheTooSmall {
                working_set_bytes: self.demand.working_set_bytes,
                again_percent: again * 100.0,
            },
        ))
    }

    fn read_ahead(&self) -> Option<Named> {
        let shape = self.demand.shape;
        let buffered = shape.sequential && !shape.direct && !self.writes();
        let device_request_bytes = self.demand.device_request_bytes.filter(|_| buffered)?;
        let best = self.best_stream()?;
        (best >= GAIN * self.demand.bytes_per_s()).then_some((
            Bottleneck::ReadAhead,
            Cause::ReadAheadAtDevice {
                read_ahead: ReadAhead {
                    setting_bytes: None,
                    device_request_bytes: Some(device_request_bytes),
                },
                device_mean_depth: None,
                percent_of_peak: Some(self.demand.bytes_per_s() / best * 100.0),
            },
        ))
    }

    fn best_stream(&self) -> Option<f64> {
        let references = super::References::new(self.study, self.demand);
        references.streaming().map(|one| one.iops * one.request_bytes)
    }

    fn one_at_a_time(&self) -> Option<Named> {
        (self.demand.shape.outstanding < ABOUT_ONE)
            .then_some((Bottleneck::Latency, Cause::OneAtATime { busy_percent: None }))
    }

    fn more_would_gain(&self) -> Option<Named> {
        let (same, best) = self.same.zip(self.best)?;
        (best.iops >= GAIN * same.iops).then_some((Bottleneck::Latency, Cause::NothingSaturated))
    }
}
