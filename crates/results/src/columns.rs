//! Columns for CSV, terminal and page.

use crate::achieved::Achieved;
use crate::operation::OperationRate;
use crate::point::{LatencySummary, Numbers, Point};
use workload::{SizeMix, Stop};

#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    Count(u64),
    Number(f64),
}

/// Files hold plain numbers in the unit that ends the column's name; people get them formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Plain,
    Bytes,
    BytesPerS,
    PerS,
    Ns,
    /// Processor time, displayed in us.
    CpuNs,
    Percent,
}

pub struct Column<T> {
    /// In files, with the unit; empty if only for people.
    pub name: &'static str,
    /// In tables; empty if only for files.
    pub heading: &'static str,
    pub unit: Unit,
    /// Part of the request, not of the results.
    pub asked: bool,
    /// A narrow terminal drops higher ranks first, and never 0. `None`: not shown in terminals.
    pub readily: Option<u8>,
    pub get: fn(&T) -> Option<Cell>,
}

impl<T> Column<T> {
    const fn new(name: &'static str, unit: Unit, get: fn(&T) -> Option<Cell>) -> Column<T> {
        Column { name, heading: "", unit, asked: false, readily: None, get }
    }

    const fn headed(self, heading: &'static str, readily: u8) -> Column<T> {
        Column { heading, readily: Some(readily), ..self }
    }

    const fn on_page(self, heading: &'static str) -> Column<T> {
        Column { heading, ..self }
    }

    const fn asked(self) -> Column<T> {
        Column { asked: true, ..self }
    }
}

fn text(text: impl Into<String>) -> Option<Cell> {
    Some(Cell::Text(text.into()))
}

fn count(count: impl Into<u64>) -> Option<Cell> {
    Some(Cell::Count(count.into()))
}

fn number(number: impl Into<Option<f64>>) -> Option<Cell> {
    number.into().map(Cell::Number)
}

const fn ask(name: &'static str, unit: Unit, get: fn(&Point) -> Option<Cell>) -> Column<Point> {
    Column::new(name, unit, get).asked()
}

macro_rules! of {
    ($name:literal, $unit:ident, |$numbers:ident| $value:expr) => {
        Column::new($name, Unit::$unit, |point: &Point| {
            let $numbers: &Numbers = point.numbers.as_ref()?;
            $value
        })
    };
}

macro_rules! latency {
    ($name:literal, |$latency:ident| $value:expr) => {
        of!($name, Ns, |numbers| {
            let $latency: &LatencySummary = &numbers.latency_ns;
            $value
        })
    };
}

macro_rules! achieved {
    ($name:literal, $unit:ident, |$achieved:ident| $value:expr) => {
        of!($name, $unit, |numbers| {
            let $achieved: &Achieved = &numbers.achieved;
            $value
        })
    };
}

/// `1000:30s,5000:60s` if the load changes over time.
fn load(point: &Point) -> Option<Cell> {
    let steps = &point.workload.load;
    let shown: Vec<String> = steps.iter().map(ToString::to_string).collect();
    (!steps.is_empty()).then(|| Cell::Text(shown.join(",")))
}

/// `read 512-4096, write 65536:60%+4096:40%`.
fn sizes(point: &Point) -> Option<Cell> {
    let mix = |mix: &SizeMix| match mix {
        SizeMix::Range { min_bytes, max_bytes, unaligned } => {
            let any = if *unaligned { " unaligned" } else { "" };
            format!("{min_bytes}-{max_bytes}{any}")
        }
        SizeMix::Shares(shares) => {
            let each = shares.iter().map(|share| format!("{}:{}%", share.bytes, share.percent));
            each.collect::<Vec<_>>().join("+")
        }
    };
    let sizes = point.workload.sizes.as_ref()?;
    text(format!("read {}, write {}", mix(&sizes.read), mix(&sizes.write)))
}

pub const POINT: &[Column<Point>] = &[
    ask("", Unit::Plain, |p| text(p.operation())).headed("op", 0),
    ask("op", Unit::Plain, |p| text(p.workload.op.name())),
    ask("read_percent", Unit::Plain, |p| count(p.workload.read_percent)),
    ask("pattern", Unit::Plain, |p| text(p.workload.pattern.to_string())).headed("pattern", 0),
    ask("request_bytes", Unit::Bytes, |p| count(p.workload.request_bytes)).headed("request", 0),
    ask("sizes", Unit::Plain, sizes),
    ask("align_bytes", Unit::Bytes, |p| count(p.workload.align_bytes?)),
    ask("depth", Unit::Plain, |p| count(p.workload.depth)).headed("depth", 0),
    ask("threads", Unit::Plain, |p| count(p.workload.threads)).headed("threads", 0),
    ask("engine", Unit::Plain, |p| text(p.workload.engine.name())).headed("engine", 0),
    ask("", Unit::Plain, |p| text(p.mode())).headed("mode", 0),
    ask("buffering", Unit::Plain, |p| text(p.workload.buffering.name())),
    ask("hint", Unit::Plain, |p| text(p.workload.hint.name())),
    ask("memory", Unit::Plain, |p| text(p.workload.memory.name())),
    ask("allocation", Unit::Plain, |p| text(p.workload.allocation.name())),
    ask("cache", Unit::Plain, |p| text(p.workload.cache.name())),
    ask("offset_bytes", Unit::Bytes, |p| count(p.workload.offset_bytes)).headed("shift", 0),
    ask("region_start_bytes", Unit::Bytes, |p| count(p.workload.region_start_bytes)),
    ask("region_bytes", Unit::Bytes, |p| count(p.workload.region_bytes?)),
    ask("stop_after_ns", Unit::Ns, |p| match p.workload.stop {
        Stop::AfterNs(ns) => count(ns),
        Stop::AfterBytes(_) => None,
    }),
    ask("stop_after_bytes", Unit::Bytes, |p| match p.workload.stop {
        Stop::AfterBytes(bytes) => count(bytes),
        Stop::AfterNs(_) => None,
    }),
    ask("limit_bytes", Unit::Bytes, |p| count(p.workload.limit_bytes?)),
    ask("rate_iops", Unit::PerS, |p| number(p.workload.rate_iops)),
    ask("load", Unit::Plain, load),
    ask("reap", Unit::Plain, |p| text(p.workload.reap.to_string())),
    ask("think_ns", Unit::Ns, |p| count(p.workload.think_ns)),
    ask("sync_at_end", Unit::Plain, |p| text(p.workload.sync_at_end.to_string())),
    ask("compressible_percent", Unit::Percent, |p| count(p.workload.data.compressible_percent)),
    ask("duplicate_percent", Unit::Percent, |p| count(p.workload.data.duplicate_percent)),
    ask("verify", Unit::Plain, |p| text(p.workload.data.verify.to_string())),
    ask("seed", Unit::Plain, |p| count(p.workload.seed)),
    of!("throughput_bytes_per_s", BytesPerS, |n| number(n.throughput_bytes_per_s))
        .headed("MiB/s", 0),
    of!("throughput_bytes_per_s_low_95", BytesPerS, |n| number(n.interval_95?[0])),
    of!("throughput_bytes_per_s_high_95", BytesPerS, |n| number(n.interval_95?[1])),
    of!("", Percent, |n| match n.relative_half_width {
        Some(width) => number(width * 100.0),
        None => text("?"),
    })
    .headed("± %", 1),
    of!("iops", PerS, |n| number(n.iops)).headed("IOPS", 2),
    of!("repeats", Plain, |n| count(n.repeats)).on_page("runs"),
    latency!("latency_mean_ns", |l| number(l.mean)),
    latency!("latency_min_ns", |l| count(l.min)),
    latency!("latency_p50_ns", |l| count(l.p50)).headed("p50", 3),
    latency!("latency_p90_ns", |l| count(l.p90)),
    latency!("latency_p99_ns", |l| count(l.p99)).headed("p99", 1),
    latency!("latency_p999_ns", |l| count(l.p999)),
    latency!("latency_p9999_ns", |l| count(l.p9999)),
    latency!("latency_p99999_ns", |l| count(l.p99999)),
    latency!("latency_p999999_ns", |l| count(l.p999999)),
    latency!("latency_max_ns", |l| count(l.max)),
    of!("", CpuNs, |n| number(n.cpu_ns_per_request.process())).headed("CPU us", 1),
    of!("cpu_user_ns_per_request", CpuNs, |n| number(n.cpu_ns_per_request.user)),
    of!("cpu_system_ns_per_request", CpuNs, |n| number(n.cpu_ns_per_request.system)),
    of!("cpu_machine_ns_per_request", CpuNs, |n| number(n.cpu_ns_per_request.machine))
        .on_page("machine us"),
    achieved!("measured_ns", Ns, |a| count(a.measured_ns)),
    achieved!("requests", Plain, |a| count(a.requests)),
    achieved!("bytes", Bytes, |a| count(a.bytes)),
    achieved!("mean_depth", Plain, |a| number(a.mean_depth)).on_page("in flight"),
    achieved!("mean_service_ns", Ns, |a| number(a.mean_service_ns)),
    achieved!("little_error_percent", Percent, |a| number(a.little_error_percent)),
    achieved!("device_request_bytes", Bytes, |a| number(a.device_request_bytes))
        .on_page("at device"),
    achieved!("device_mean_depth", Plain, |a| number(a.device_mean_depth)),
    achieved!("device_busy_percent", Percent, |a| number(a.device_busy_percent)),
    achieved!("device_bytes_foreign_share", Plain, |a| number(a.device_bytes_foreign_share)),
    achieved!("from_cache_percent", Percent, |a| number(a.from_cache_percent)),
    achieved!("busy_processors", Plain, |a| number(a.busy_processors)),
    achieved!("waits_per_request", Plain, |a| number(a.waits_per_request)),
    achieved!("wait_completions", Plain, |a| count(a.wait_completions?)),
    achieved!("parity_ns_per_mib", Plain, |a| number(a.parity_ns_per_mib)),
    achieved!("parity_percent", Percent, |a| number(a.parity_percent)),
    achieved!("polled", Plain, |a| text(a.polled?.to_string())),
    achieved!("steal_percent", Percent, |a| number(a.steal_percent)),
    achieved!("sync_ns", Ns, |a| number(a.sync_ns)),
    achieved!("synced_bytes_per_s", BytesPerS, |a| number(a.synced_bytes_per_s)),
    achieved!("returned_bytes_per_s", BytesPerS, |a| number(a.returned_bytes_per_s))
        .headed("returned", 4),
    achieved!("cached_read_percent", Percent, |a| number(a.cached_read_percent)),
    achieved!("cached_write_percent", Percent, |a| number(a.cached_write_percent)),
    achieved!("warm_up_ns", Ns, |a| number(a.warm_up_ns)),
    achieved!("instructions_per_request", Plain, |a| number(a.instructions_per_request)),
    achieved!("driver_ceiling_iops", PerS, |a| number(a.driver_ceiling_iops)),
    achieved!("no_op_ceiling_iops", PerS, |a| number(a.no_op_ceiling_iops)),
    achieved!("of_ceiling_percent", Percent, |a| number(a.of_ceiling_percent)),
    Column::new("warnings", Unit::Plain, |p| text(p.numbers.as_ref()?.warnings.join("; "))),
    Column::new("error", Unit::Plain, |p| text(p.error.as_ref()?)),
];

pub const OPERATION: &[Column<OperationRate>] = &[
    Column::new("operation", Unit::Plain, |r: &OperationRate| text(&r.operation))
        .headed("operation", 0)
        .asked(),
    Column::new("settings", Unit::Plain, |r: &OperationRate| text(&r.settings))
        .headed("settings", 0)
        .asked(),
    Column::new("count", Unit::Plain, |r: &OperationRate| count(r.count)).headed("count", 0),
    Column::new("operations_per_s", Unit::Plain, |r: &OperationRate| number(r.per_s))
        .headed("per s", 0),
    Column::new("operations_per_s_low_95", Unit::Plain, |r: &OperationRate| {
        number(r.interval_95?[0])
    }),
    Column::new("operations_per_s_high_95", Unit::Plain, |r: &OperationRate| {
        number(r.interval_95?[1])
    }),
    Column::new("", Unit::Percent, |r: &OperationRate| {
        let [low, high] = r.interval_95?;
        number((r.per_s > 0.0).then(|| (high - low) / 2.0 / r.per_s * 100.0))
    })
    .headed("± %", 0),
    Column::new("latency_mean_ns", Unit::Ns, |r: &OperationRate| {
        number(r.latency_ns.as_ref()?.mean)
    })
    .headed("mean", 0),
    Column::new("latency_p50_ns", Unit::Ns, |r: &OperationRate| count(r.latency_ns.as_ref()?.p50))
        .headed("p50", 0),
    Column::new("latency_p99_ns", Unit::Ns, |r: &OperationRate| count(r.latency_ns.as_ref()?.p99))
        .headed("p99", 0),
    Column::new("latency_max_ns", Unit::Ns, |r: &OperationRate| count(r.latency_ns.as_ref()?.max)),
    Column::new("cpu_ns_per_operation", Unit::CpuNs, |r: &OperationRate| number(r.cpu_ns))
        .headed("CPU us", 0),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn names<T>(columns: &[Column<T>]) -> Vec<&'static str> {
        columns.iter().map(|column| column.name).filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn column_names_are_unique_and_end_in_units() {
        let points = names(POINT);
        for all in [&points, &names(OPERATION)] {
            assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?}");
        }
        for wanted in ["sizes", "align_bytes", "limit_bytes", "throughput_bytes_per_s_low_95"] {
            assert!(points.contains(&wanted), "{wanted}");
        }
        for column in POINT.iter().filter(|column| !column.name.is_empty()) {
            let ending = match column.unit {
                Unit::Bytes => "bytes",
                Unit::Ns => "_ns",
                Unit::Percent => "_percent",
                _ => "",
            };
            assert!(column.name.ends_with(ending), "{}", column.name);
        }
    }
}
