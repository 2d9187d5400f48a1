//! CPU quotas and pressure on this process.

use super::{Gauge, READ_BYTES};
use crate::linux::facts::{Roots, pressure_files, processor_counts};
use machine::{Nanos, PressureUse, QuotaUse};

pub(crate) struct DisturbanceMeter {
    quotas: Vec<Gauge>,
    pressure: Vec<Gauge>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct DisturbanceSnapshot {
    /// Periods, throttled periods, throttled nanoseconds; by group.
    quotas: Vec<Option<[u64; 3]>>,
    /// "Some" and "full" of CPU, memory and storage.
    pressure: Option<[[Nanos; 2]; 3]>,
}

impl DisturbanceMeter {
    pub(crate) fn open(roots: &Roots) -> DisturbanceMeter {
        let quotas =
            processor_counts(roots).into_iter().filter_map(|file| Gauge::open(file).ok()).collect();
        let pressure: Option<Vec<Gauge>> =
            pressure_files(roots).into_iter().map(|file| Gauge::open(file).ok()).collect();
        DisturbanceMeter { quotas, pressure: pressure.unwrap_or_default() }
    }

    pub(crate) fn read(&self) -> DisturbanceSnapshot {
        let mut buffer = [0; READ_BYTES];
        let mut text = |gauge: &Gauge| {
            Some(String::from_utf8_lossy(gauge.read(&mut buffer).ok()?).into_owned())
        };
        DisturbanceSnapshot {
            quotas: self.quotas.iter().map(|gauge| quota(&text(gauge)?)).collect(),
            pressure: match &self.pressure[..] {
                [cpu, memory, io] => [cpu, memory, io]
                    .into_iter()
                    .map(|gauge| Some(pressure(&text(gauge)?)))
                    .collect::<Option<Vec<_>>>()
                    .and_then(|all| all.try_into().ok()),
                _ => None,
            },
        }
    }
}

/// See Documentation/admin-guide/cgroup-v2.rst and, for version 1,
/// Documentation/scheduler/sched-bwc.rst.
fn quota(text: &str) -> Option<[u64; 3]> {
    let of = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    };
    let held = of("throttled_usec").map(|us: u64| us * 1000).or_else(|| of("throttled_time"))?;
    Some([of("nr_periods")?, of("nr_throttled")?, held])
}

/// Parses `some avg10=0.00 avg60=0.00 avg300=0.00 total=123` and the `full` line, in microseconds
/// (Documentation/accounting/psi.rst).
fn pressure(text: &str) -> [Nanos; 2] {
    let total = |kind: &str| {
        let line = text.lines().find(|line| line.starts_with(kind))?;
        line.split_once("total=")?.1.trim().parse::<u64>().ok()
    };
    [total("some"), total("full")].map(|us| us.unwrap_or(0) * 1000)
}

impl DisturbanceSnapshot {
    pub(crate) fn quota_since(&self, before: &DisturbanceSnapshot) -> Option<QuotaUse> {
        let of = |(now, then): (&Option<[u64; 3]>, &Option<[u64; 3]>)| {
            let (now, then) = ((*now)?, (*then)?);
            let [periods, throttled, throttled_ns] =
                [0, 1, 2].map(|field: usize| now[field].saturating_sub(then[field]));
            (periods > 0).then_some(QuotaUse { periods, throttled, throttled_ns })
        };
        self.quotas
            .iter()
            .zip(&before.quotas)
            .filter_map(of)
            .max_by_key(|quota| (quota.throttled_ns, quota.throttled))
    }

    pub(crate) fn pressure_since(&self, before: &DisturbanceSnapshot) -> Option<PressureUse> {
        let (now, then) = (self.pressure?, before.pressure?);
        let since =
            |resource: usize, kind: usize| now[resource][kind].saturating_sub(then[resource][kind]);
        Some(PressureUse {
            cpu_some_ns: since(0, 0),
            memory_some_ns: since(1, 0),
            memory_full_ns: since(1, 1),
            io_some_ns: since(2, 0),
            io_full_ns: since(2, 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshots(first: [&str; 3], then: [&str; 3]) -> (DisturbanceSnapshot, DisturbanceSnapshot) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        };
        write("proc/self/cgroup", "1:cpu,cpuacct:/jobs/one\n0::/jobs\n");
        write(
            "proc/self/mountinfo",
            "30 1 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n31 1 0:31 / /sys/fs/cgroup/unified rw - cgroup2 none rw\n",
        );
        let roots = Roots { proc: at("proc"), sys: at("sys"), ..Roots::default() };
        let all = |[v1, v2, memory]: [&str; 3]| {
            write("sys/fs/cgroup/cpu/jobs/one/cpu.stat", v1);
            write("sys/fs/cgroup/unified/jobs/cpu.stat", v2);
            for resource in ["cpu", "memory", "io"] {
                write(&format!("proc/pressure/{resource}"), memory);
            }
        };
        all(first);
        let meter = DisturbanceMeter::open(&roots);
        let before = meter.read();
        all(then);
        (before, meter.read())
    }

    #[test]
    fn the_longest_throttled_group_and_pressure_are_reported() {
        let some = |us: u64| {
            format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\nfull avg10=0.00 total=5\n")
        };
        let (before, after) = snapshots(
            ["nr_periods 10\nnr_throttled 1\nthrottled_time 1000\n", "usage_usec 9\n", &some(100)],
            [
                "nr_periods 120\nnr_throttled 106\nthrottled_time 8500001000\n",
                "usage_usec 99\n",
                &some(1100),
            ],
        );
        let quota = after.quota_since(&before).expect("version 1 counts");
        assert_eq!((quota.periods, quota.throttled, quota.throttled_ns), (110, 105, 8_500_000_000));
        let pressure = after.pressure_since(&before).expect("the system counts");
        assert_eq!((pressure.memory_some_ns, pressure.memory_full_ns), (1_000_000, 0));
        let (before, after) = snapshots(
            [
                "nr_periods 10\nnr_throttled 1\nthrottled_time 1000\n",
                "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
                "",
            ],
            [
                "nr_periods 10\nnr_throttled 1\nthrottled_time 1000\n",
                "nr_periods 4\nnr_throttled 2\nthrottled_usec 7\n",
                "",
            ],
        );
        assert_eq!(
            after.quota_since(&before).map(|quota| quota.throttled_ns),
            Some(7000),
            "version 2"
        );
    }
}
