//! Formats values and workloads, the same in every output.

use machine::units::{self, KIB, show_size, show_size_rounded, show_time, shown_in, significant};
pub(crate) use machine::units::{grouped, plural, rate_number, show_rate as rate};
use machine::{LayerKind, RequestTimes, TimesSource};
use results::columns::{Cell, Column, Unit};
use results::{
    Axis, CostModel, CostScope, Finding, FindingStep, Fixed, HalfPower, Point, SmallRequests, Tail,
    Varied,
};

/// At most five characters: `950`, `12.6k`, `1.23M`.
pub(crate) fn short_count(value: f64) -> String {
    match value.abs() {
        v if v < 999.5 => trim_zeros(&significant(value, 3)),
        v if v < 999.5e3 => format!("{}k", significant(value / 1e3, 3)),
        v if v < 999.5e6 => format!("{}M", significant(value / 1e6, 3)),
        _ => format!("{}G", significant(value / 1e9, 3)),
    }
}

pub(crate) fn trim_zeros(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text.into()
    }
}

/// Exact if a unit fits, else rounded.
pub(crate) fn size(bytes: f64) -> String {
    if bytes >= 0.0 && bytes.fract() == 0.0 && bytes < 9e15 {
        let bytes = bytes as u64;
        if bytes < KIB || units::has_exact_unit(bytes) {
            return show_size(bytes);
        }
    }
    show_size_rounded(bytes)
}

pub(crate) fn rate_unit() -> &'static str {
    shown_in().rate_unit()
}

pub(crate) fn heading<T>(column: &Column<T>) -> &'static str {
    match (column.unit, column.heading) {
        (Unit::BytesPerS, "MiB/s") => rate_unit(),
        (_, heading) => heading,
    }
}

pub(crate) fn small_requests(one: &SmallRequests) -> String {
    let first = format!("{} IOPS", grouped(one.iops));
    std::iter::once(first).chain(one.tail.as_ref().map(tail)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn latency(one: &SmallRequests) -> String {
    let mean = format!("mean {}", show_time(one.mean_ns));
    let high = one.tail.as_ref().filter(|tail| tail.percentile > 50.0).map(tail);
    std::iter::once(mean).chain(high).collect::<Vec<_>>().join(", ")
}

fn tail(tail: &Tail) -> String {
    let percentile = trim_zeros(&format!("{:.1}", tail.percentile));
    format!("p{percentile} {}", show_time(tail.ns as f64))
}

pub(crate) fn range(low: &str, high: &str) -> String {
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}–{high}"),
        _ => format!("{low}–{high}"),
    }
}

/// Half of the interval in percent of the value: `± 2.1 %`.
pub(crate) fn plus_minus(value: f64, interval: Option<[f64; 2]>) -> Option<String> {
    let [low, high] = interval?;
    (value != 0.0)
        .then(|| format!("± {} %", percent((high - low).abs() / 2.0 / value.abs() * 100.0)))
}

pub(crate) fn percent(value: f64) -> String {
    if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

pub(crate) fn axis_title(axis: Axis) -> &'static str {
    match axis {
        Axis::RequestBytes => "request size",
        Axis::Depth => "requests outstanding",
        Axis::Threads => "streams",
        Axis::Clients => "clients",
        Axis::Completions => "completions waited for",
        Axis::OffsetBytes => "shift of every request",
        Axis::Position => "position in the target",
        Axis::ChunkBytes => "stripe chunk",
        Axis::Members => "members of the stripe",
        Axis::TimeNs => "time since the run began",
        Axis::BytesPerS => rate_unit(),
        Axis::Iops => "requests per second",
        Axis::CpuNsPerMib => "processor time per MiB",
        Axis::CpuNsPerRequest => "processor time per request",
        Axis::ServiceNs => "time from issue to completion",
        Axis::CacheBytes => "cache size",
        Axis::MissShare => "accesses that miss",
        Axis::Gain => "times as fast",
    }
}

pub(crate) fn axis_value(axis: Axis, value: f64) -> String {
    match axis {
        Axis::RequestBytes | Axis::OffsetBytes | Axis::ChunkBytes | Axis::CacheBytes => size(value),
        Axis::Depth | Axis::Threads | Axis::Clients | Axis::Completions | Axis::Members => {
            trim_zeros(&significant(value, 3))
        }
        Axis::Position | Axis::MissShare => format!("{} %", trim_zeros(&percent(value * 100.0))),
        Axis::Gain => format!("×{}", significant(value, 3)),
        Axis::TimeNs | Axis::CpuNsPerMib | Axis::CpuNsPerRequest | Axis::ServiceNs => {
            show_time(value)
        }
        Axis::BytesPerS => rate(value),
        Axis::Iops => format!("{} /s", grouped(value)),
    }
}

pub(crate) fn axis_place(axis: Axis, value: f64) -> String {
    let shown = axis_value(axis, value);
    match axis {
        Axis::RequestBytes => format!("{shown} requests"),
        Axis::Depth => format!("{shown} outstanding"),
        Axis::Threads => format!("{shown} stream{}", if value == 1.0 { "" } else { "s" }),
        Axis::Clients => format!("{shown} client{}", if value == 1.0 { "" } else { "s" }),
        Axis::Completions => format!("{shown} completion{}", if value == 1.0 { "" } else { "s" }),
        Axis::OffsetBytes => format!("shifted by {shown}"),
        Axis::Position => format!("at {shown}"),
        Axis::ChunkBytes => format!("{shown} chunks"),
        Axis::Members => format!("{shown} member{}", if value == 1.0 { "" } else { "s" }),
        Axis::TimeNs => format!("after {shown}"),
        Axis::CacheBytes => format!("a cache of {shown}"),
        _ => shown,
    }
}

pub(crate) fn half_power_value(half: &HalfPower) -> String {
    let show = |value: f64| {
        if half.of == Varied::Depth { trim_zeros(&significant(value, 2)) } else { size(value) }
    };
    match (half.at_or_below, half.crossing, half.smallest) {
        (true, _, Some(smallest)) => format!("≤ {}", show(smallest)),
        (true, Some(crossing), None) => format!("≤ {}", show(crossing)),
        (false, Some(crossing), _) if half.of != Varied::Depth => show_size_rounded(crossing),
        (false, Some(value), _) | (false, None, Some(value)) => show(value),
        (_, None, None) => "not reached".into(),
    }
}

pub(crate) fn half_power_interval(half: &HalfPower) -> Option<String> {
    let [low, high] = half.interval_95.filter(|_| !half.at_or_below)?;
    let show = |value: f64| {
        if half.of == Varied::Depth {
            trim_zeros(&significant(value, 2))
        } else {
            show_size_rounded(value)
        }
    };
    // Runs that repeat exactly, or a curve without intervals.
    let (low, high) = (show(low), show(high));
    (low != high).then(|| range(&low, &high))
}

#[derive(Debug, PartialEq)]
pub(crate) struct HalfPowerLine {
    pub(crate) at: String,
    pub(crate) fixed: Option<[Fixed; 2]>,
    pub(crate) value: String,
    pub(crate) interval: String,
}

pub(crate) fn half_power_lines(halves: &[&HalfPower]) -> Vec<HalfPowerLine> {
    let answer =
        |half: &HalfPower| (half_power_value(half), half_power_interval(half).unwrap_or_default());
    let alike = halves.chunk_by(|one, next| answer(one) == answer(next));
    let line = |alike: &[&HalfPower]| {
        let (value, interval) = answer(alike[0]);
        let (first, last) = (alike[0], alike[alike.len() - 1]);
        let fixed = first.fixed.zip(last.fixed).map(|(first, last)| [first, last]);
        let at = match fixed {
            Some(fixed) => fixed_span(fixed, true, true),
            // A curve by its name.
            None if first.at == last.at => first.at.clone(),
            None => format!("{} to {}", first.at, last.at),
        };
        HalfPowerLine { at, fixed, value, interval }
    };
    alike.map(line).collect()
}

/// `before` and `after` add the words around the numbers.
pub(crate) fn fixed_span([first, last]: [Fixed; 2], before: bool, after: bool) -> String {
    let value = |fixed: Fixed| match fixed {
        Fixed::Depth(depth) => depth.to_string(),
        Fixed::RequestBytes(bytes) => show_size(bytes),
    };
    let (one, other) = (value(first), value(last));
    let values = match one.rsplit_once(' ').zip(other.rsplit_once(' ')) {
        _ if one == other => one.clone(),
        Some(((number, unit), (_, same))) if unit == same => format!("{number} to {other}"),
        _ => format!("{one} to {other}"),
    };
    match first {
        Fixed::Depth(_) if before => format!("depth {values}"),
        Fixed::RequestBytes(_) if after => format!("{values} requests"),
        _ => values,
    }
}

/// The machine's costs, or the process's if only those are known; then the others.
pub(crate) fn costs_by_mode(costs: &[CostModel]) -> (Vec<&CostModel>, Vec<&CostModel>) {
    costs.iter().partition(|cost| {
        cost.whose == CostScope::Machine
            || !costs
                .iter()
                .any(|other| other.mode == cost.mode && other.whose == CostScope::Machine)
    })
}

pub(crate) fn finding_steps(finding: &Finding) -> String {
    let mut before = finding.cpu_ns_per_mib.map(|[before, _]| before);
    let mut last = finding.p99_ns.map(|[before, _]| before);
    let step = |step: &FindingStep| {
        let mut said = vec![format!("{} ×{}", step.change, significant(step.gain, 2))];
        // Small changes are not reported.
        let changed = |a: f64, b: f64| a.max(b) > 1.25 * a.min(b);
        let cpu = before.zip(step.cpu_ns_per_mib).filter(|&(a, b)| changed(a, b));
        said.extend(cpu.map(|(_, cpu)| format!("CPU {} a MiB", show_time(cpu))));
        let p99 = last.zip(step.p99_ns).filter(|&(a, b)| changed(a as f64, b as f64));
        said.extend(p99.map(|(_, p99)| format!("p99 {}", show_time(p99 as f64))));
        (before, last) = (step.cpu_ns_per_mib, step.p99_ns);
        said.join(", ")
    };
    let steps: Vec<String> = finding.steps.iter().map(step).collect();
    if steps.is_empty() {
        String::new()
    } else {
        format!("step by step: {}", steps.join("; then "))
    }
}

pub(crate) fn cell<T>(column: &Column<T>, row: &T) -> String {
    let shown = |value: f64| match column.unit {
        Unit::Plain => grouped(value),
        Unit::Bytes => size(value.round()),
        Unit::BytesPerS => rate_number(value),
        Unit::PerS => short_count(value),
        Unit::Ns => show_time(value),
        Unit::CpuNs => significant(value / 1e3, 3),
        Unit::Percent => percent(value),
    };
    match (column.get)(row) {
        None => String::new(),
        Some(Cell::Text(text)) => text,
        Some(Cell::Count(count)) => shown(count as f64),
        Some(Cell::Number(number)) => shown(number),
    }
}

pub(crate) fn layer_kind(kind: machine::LayerKind) -> &'static str {
    match kind {
        machine::LayerKind::FileSystem => "file system",
        machine::LayerKind::Volume => "volume",
        machine::LayerKind::Partition => "partition",
        machine::LayerKind::Disk => "disk",
        machine::LayerKind::Loop => "loop device",
        machine::LayerKind::Link => "link",
        machine::LayerKind::Adapter => "adapter",
        machine::LayerKind::Bus => "bus",
        machine::LayerKind::Pci => "PCI",
        machine::LayerKind::MemoryBus => "memory bus",
        machine::LayerKind::Network => "network",
        machine::LayerKind::Throttle => "throttle",
    }
}

pub(crate) fn target_kind(kind: machine::TargetKind) -> &'static str {
    match kind {
        machine::TargetKind::TestFile => "a test file",
        machine::TargetKind::File => "a file",
        machine::TargetKind::Directory => "a directory",
        machine::TargetKind::Device => "a block device",
        machine::TargetKind::Stripe => "a stripe",
        machine::TargetKind::Simulated => "a simulated volume",
    }
}

pub(crate) fn duration(ns: u64) -> String {
    match ns / 1_000_000_000 {
        0..10 => show_time(ns as f64),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds @ 60..3600 => match seconds % 60 {
            0 => format!("{} min", seconds / 60),
            rest => format!("{} min {rest} s", seconds / 60),
        },
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

pub(crate) fn spent(results: &results::Results) -> String {
    let simulated = if results.machine.simulated { " (simulated)" } else { "" };
    let points = plural(results.points.len(), "point");
    format!("{points} in {}{simulated}", duration(results.elapsed_ns))
}

/// `2026-02-01 13:05 UTC`.
pub(crate) fn date(unix_s: u64) -> String {
    // Civil date from days, after Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"
    // (2013).
    let days = (unix_s / 86_400).min(3_000_000) as i64 + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", unix_s / 3600 % 24, unix_s / 60 % 60)
}

pub(crate) fn share(part: f64, whole: f64) -> Option<String> {
    (whole > 0.0 && part.is_finite())
        .then(|| format!("{} %", trim_zeros(&percent(part / whole * 100.0))))
}

/// Logarithmic, from a thousandth of the maximum.
pub(crate) fn bar_share(rate: f64, max: f64) -> f64 {
    const MIN: f64 = 1e-3;
    1.0 - (rate / max).clamp(MIN, 1.0).ln() / MIN.ln()
}

pub(crate) fn stage_settings(stage: &results::Stage) -> String {
    let one =
        |(name, value): &(String, String)| format!("{name} {}", machine::text::printable(value));
    stage.settings.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub(crate) fn request_times(times: &RequestTimes) -> String {
    let whole: f64 = times.stages.iter().map(|stage| stage.mean_ns).sum();
    let stages: Vec<String> = times
        .stages
        .iter()
        .map(|one| format!("{} {} %", one.stage.name(), percent(one.percent)))
        .collect();
    let by = match times.source {
        TimesSource::TracePoints => "trace points, in a run of its own",
        TimesSource::DeviceCounters => "the devices' counters",
    };
    let each = times.device_requests_per_request.map_or_else(String::new, |each| match each {
        each if each > 1.0 => format!(", each split into {}", significant(each, 2)),
        each => format!(", {} merged into one", significant(1.0 / each, 2)),
    });
    format!("of {} a request: {} (by {by}{each})", show_time(whole), stages.join(", "))
}

/// `None` if the breakdown is known, or the machine is simulated.
pub(crate) fn no_request_times(point: &Point, results: &results::Results) -> Option<String> {
    let numbers = point.numbers.as_ref().filter(|_| !results.machine.simulated)?;
    let throttled = || results.target.layers.iter().any(|layer| layer.kind == LayerKind::Throttle);
    let why = if numbers.achieved.request_times.is_some() {
        return None;
    } else if let Some(why) = &numbers.achieved.request_times_unknown {
        return Some(why.clone());
    } else if !point.workload.buffering.is_direct() {
        "the page cache makes other requests of the program's"
    } else if results.target.devices.is_empty() {
        "no block device is below that counts"
    } else if throttled() {
        "requests behind a throttle are not traced, because a traced run would use up burst credit"
    } else {
        "requests are split, merged or mixed on the way, and the kernel allows no tracing here"
    };
    Some(why.into())
}

/// Skips buses without phases, such as those of real machines.
pub(crate) fn buses_at_peaks(
    results: &results::Results,
) -> Vec<(workload::OpKind, &machine::ResourceUse)> {
    let peaks = results.answer.iter().flat_map(|answer| &answer.peaks);
    let of = |peak: &results::Peak| {
        let numbers = results.points.get(peak.point).and_then(|point| point.numbers.as_ref());
        let all = numbers.map_or(&[][..], |numbers| &numbers.achieved.resources);
        let op = peak.op;
        all.iter().filter(|one| !one.phases.is_empty()).map(move |one| (op, one))
    };
    peaks.flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::PeakSource;
    use workload::OpKind;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(grouped(1234.0), "1234");
        assert_eq!(grouped(12345.6), "12,346");
        assert_eq!(grouped(-1_234_567.0), "-1,234,567");
        assert_eq!(grouped(0.1234), "0.123");
        assert_eq!(grouped(15.0), "15");
        assert_eq!(short_count(12_600.0), "12.6k");
        assert_eq!(short_count(8.0), "8");
        assert_eq!(short_count(1_230_000.0), "1.23M");
        assert_eq!(range("410 MiB/s", "415 MiB/s"), "410–415 MiB/s");
        assert_eq!(range("900 KiB", "1.1 MiB"), "900 KiB–1.1 MiB");
        assert_eq!(plus_minus(100.0, Some([97.0, 103.0])).as_deref(), Some("± 3.0 %"));
        assert_eq!(size(13_573.0), "13.3 KiB");
        assert_eq!(size(32_256.0), "31.5 KiB");
        assert_eq!(size(1000.0), "1000 B");
    }

    #[test]
    fn dates_and_durations() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_826_800), "2000-02-29 12:20 UTC");
        assert_eq!(date(1_785_542_399), "2026-07-31 23:59 UTC");
        assert_eq!(duration(182_000_000_000), "3 min 2 s");
        assert_eq!(duration(850_000_000), "850 ms");
        assert_eq!(duration(7_260_000_000_000), "2 h 1 min");
    }

    #[test]
    fn half_power_in_words() {
        let mut half = HalfPower {
            of: Varied::RequestBytes,
            at: "depth 1".into(),
            fixed: Some(Fixed::Depth(1)),
            op: OpKind::Read,
            peak_bytes_per_s: 1e9,
            peak_from: PeakSource::Measured,
            smallest: Some(16384.0),
            crossing: Some(13_573.2),
            interval_95: Some([12_000.0, 15_000.0]),
            at_or_below: false,
        };
        assert_eq!(half_power_value(&half), "13.3 KiB");
        assert_eq!(half_power_interval(&half).as_deref(), Some("11.7–14.6 KiB"));
        half.interval_95 = Some([13_573.2, 13_573.3]);
        assert_eq!(half_power_interval(&half), None);
        half.at_or_below = true;
        half.smallest = Some(4096.0);
        assert_eq!(half_power_value(&half), "≤ 4 KiB");
        assert_eq!(half_power_interval(&half), None);
        (half.at_or_below, half.smallest, half.crossing) = (false, None, None);
        assert_eq!(half_power_value(&half), "not reached");
    }

    #[test]
    fn half_power_points_with_the_same_answer_are_one_line() {
        let at = |bytes: u64, smallest: Option<f64>| HalfPower {
            of: Varied::Depth,
            at: Fixed::RequestBytes(bytes).to_string(),
            fixed: Some(Fixed::RequestBytes(bytes)),
            op: OpKind::Read,
            peak_bytes_per_s: 1e9,
            peak_from: PeakSource::Measured,
            smallest,
            crossing: smallest,
            interval_95: None,
            at_or_below: smallest.is_some(),
        };
        let all = [at(512, None), at(2048, None), at(4096, Some(8.0)), at(1048576, Some(1.0))];
        let lines = half_power_lines(&all.iter().collect::<Vec<_>>());
        let said: Vec<_> =
            lines.iter().map(|line| (line.value.as_str(), line.at.as_str())).collect();
        assert_eq!(
            said,
            [
                ("not reached", "512 B to 2 KiB requests"),
                ("≤ 8", "4 KiB requests"),
                ("≤ 1", "1 MiB requests")
            ]
        );
        assert_eq!(fixed_span([Fixed::Depth(1), Fixed::Depth(8)], true, true), "depth 1 to 8");
        let sizes = [Fixed::RequestBytes(65_536), Fixed::RequestBytes(262_144)];
        assert_eq!(fixed_span(sizes, true, true), "64 to 256 KiB requests");
        assert_eq!(fixed_span(sizes, false, false), "64 to 256 KiB");
    }
}
