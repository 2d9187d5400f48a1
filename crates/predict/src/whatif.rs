use crate::{Error, Result};
use machine::units::{MIB, parse_size};
use machine::{Engine, Machine};
use measure::first_run;
use results::{Cause, Limit, Point};
use serde::Serialize;
use twin::{Setup, Twin};
use workload::{Stop, Workload};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    pub throughput_bytes_per_s: f64,
    pub iops: f64,
    pub latency_ns: u64,
    /// A MiB is 2^20 bytes.
    pub cpu_ms_per_mib: f64,
    /// By a study's verdict: the busiest part, the program's thread, or `latency` if nothing is
    /// busy.
    pub bottleneck: String,
    /// `None` for `latency`.
    pub busy_share: Option<f64>,
}

fn named(limit: &Limit) -> (String, Option<f64>) {
    let percent = match &limit.cause {
        Some(Cause::Busiest { part, .. } | Cause::DeviceRequests { part: Some(part), .. }) => {
            return (part.name.clone(), Some(part.busy_percent / 100.0));
        }
        Some(Cause::Thread { busy_percent, .. }) => Some(*busy_percent),
        Some(Cause::OwnWork { percent, .. }) => Some(*percent),
        _ => None,
    };
    (limit.what.name().replace('_', " "), percent.map(|percent| percent / 100.0))
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub workload: String,
    pub before: Prediction,
    pub after: Prediction,
    /// Throughput after over before.
    pub gain: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatIf {
    pub machine: String,
    pub changes: String,
    pub comparisons: Vec<Comparison>,
}

/// On an unused machine, as `halfpower run` measures.
pub fn predict(setup: &Setup, workload: &Workload) -> Result<Prediction> {
    let twin = Twin::new(setup.clone());
    let mut volume = twin.volume();
    let sample = first_run(&twin, &mut volume, workload)?;
    let facts = twin.target_facts(&volume);
    let point = Point::from_samples(workload, &facts, std::slice::from_ref(&sample));
    let (bottleneck, busy_share) = named(&study::limit_of(&point, &facts, &twin.facts()));
    let mib = sample.bytes_with_ramp as f64 / MIB as f64;
    Ok(Prediction {
        throughput_bytes_per_s: point.rate().unwrap_or_default(),
        iops: sample.iops(),
        latency_ns: sample.mean_service_ns as u64,
        cpu_ms_per_mib: sample.usage.cpu.system_ns as f64 * 1e-6 / mib,
        bottleneck,
        busy_share,
    })
}

/// Applies `changes`: settings (see [`twin::settings::SETTINGS`]), and the workloads'
/// `request=SIZE` and `depth=N`.
pub fn what_if(base: &Setup, changes: &str, workloads: &[(String, Workload)]) -> Result<WhatIf> {
    let (mut setup, mut rest, mut of_workload) = (base.clone(), Vec::new(), Vec::new());
    for change in changes.split(',').map(str::trim).filter(|change| !change.is_empty()) {
        match change.split_once('=') {
            Some((key @ ("request" | "depth"), value)) => {
                of_workload.push((key.to_owned(), value.to_owned()))
            }
            _ => rest.push(change),
        }
    }
    setup.apply(&rest.join(","))?;
    let mut comparisons = Vec::with_capacity(workloads.len());
    for (name, workload) in workloads {
        let mut changed = workload.clone();
        for (key, value) in &of_workload {
            change(&mut changed, key, value)?;
        }
        let (before, after) = (predict(base, workload)?, predict(&setup, &changed)?);
        let gain =
            after.throughput_bytes_per_s / before.throughput_bytes_per_s.max(f64::MIN_POSITIVE);
        comparisons.push(Comparison { workload: name.clone(), before, after, gain });
    }
    Ok(WhatIf { machine: base.name.clone(), changes: changes.to_owned(), comparisons })
}

fn change(workload: &mut Workload, key: &str, value: &str) -> Result<()> {
    let wrong = |reason: String| Error::Setting { setting: format!("{key}={value}"), reason };
    if key == "depth" {
        let depth = value.parse().ok().filter(|depth| (1..=4096).contains(depth));
        workload.depth =
            depth.ok_or_else(|| wrong("give a whole number from 1 to 4096".to_owned()))?;
        // A program with several outstanding does not block in each call.
        if workload.depth > 1 && workload.engine == Engine::Sync {
            workload.engine = Engine::IoUring;
        }
        return Ok(());
    }
    let bytes = parse_size(value).map_err(wrong)?;
    let fits = bytes >= 512
        && bytes.is_multiple_of(512)
        && workload.region_bytes.is_none_or(|region| bytes <= region);
    let request = u32::try_from(bytes).ok().filter(|_| fits);
    workload.request_bytes = request
        .ok_or_else(|| wrong("give a multiple of 512 bytes within the region".to_owned()))?;
    if let Stop::AfterBytes(all) = &mut workload.stop {
        *all = (*all / bytes).max(1) * bytes;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Op;
    use workload::Pattern;

    fn one(base: &str, changes: &str, workload: Workload) -> Comparison {
        let base = Setup::parse(base).unwrap();
        what_if(&base, changes, &[("it".to_owned(), workload)]).unwrap().comparisons.remove(0)
    }

    #[test]
    fn a_second_disk_doubles_what_one_limits() {
        let it = one("gateway-1997", "disks=2", crate::workload(Op::Read, 64 << 10, 3));
        assert_eq!(it.before.bottleneck, "disk mechanics");
        assert!((1.9..2.1).contains(&it.gain), "{it:?}");
    }

    #[test]
    fn on_a_full_bus_a_disk_gains_nothing_but_a_second_bus_does() {
        let full = "gateway-1997,disks=4";
        let it = one(full, "disks=5", crate::workload(Op::Read, 64 << 10, 8));
        assert_eq!(it.before.bottleneck, "bus");
        assert!((0.95..1.05).contains(&it.gain), "{it:?}");
        let it = one(full, "buses=2", crate::workload(Op::Read, 64 << 10, 8));
        assert!(it.gain > 1.5, "{it:?}");
    }

    #[test]
    fn the_write_cache_hides_the_revolution_and_depth_does_so_too() {
        let write = crate::workload(Op::Write, 16 << 10, 1);
        let it = one("gateway-1997", "wce=on", write.clone());
        assert!(it.gain > 3.0, "{it:?}");
        let it = one("gateway-1997", "depth=8,request=64k", write);
        assert!(it.gain > 3.0, "{it:?}");
    }

    #[test]
    fn half_the_latency_is_half_the_time_of_one_at_a_time() {
        let mut read = crate::workload(Op::Read, 4096, 1);
        (read.pattern, read.region_bytes, read.stop) =
            (Pattern::Random, Some(1 << 30), Stop::AfterBytes(8 << 20));
        let it = one("nvme", "latency=50", read);
        assert!((1.7..2.0).contains(&it.gain), "{it:?}");
    }

    #[test]
    fn one_busy_thread_is_the_limit_and_not_latency() {
        let read = Workload {
            pattern: Pattern::Random,
            request_bytes: 4096,
            depth: 32,
            engine: Engine::IoUring,
            stop: Stop::AfterNs(50_000_000),
            ..Workload::default()
        };
        let it = one("nvme", "processor=50", read);
        assert_eq!(it.before.bottleneck, "thread", "{it:?}");
        assert!(it.before.busy_share.is_some_and(|share| share > 0.9), "{it:?}");
    }

    #[test]
    fn invalid_changes_are_refused() {
        let base = Setup::parse("nvme").unwrap();
        for changes in ["depth=0", "request=1000", "disks=0", "colour=red"] {
            let error =
                what_if(&base, changes, &[("it".to_owned(), crate::workload(Op::Read, 4096, 1))])
                    .unwrap_err()
                    .to_string();
            assert!(error.contains(changes), "{error}");
        }
    }
}
