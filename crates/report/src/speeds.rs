//! Each operation's speed.

use crate::format::{grouped, latency, plus_minus, rate, small_requests};
use machine::units::{show_size, show_span, show_time};
use results::{Overview, SmallRequests, Speed};

/// A cell for each operation; empty if not measured.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) cells: Vec<String>,
}

pub(crate) fn heads(overview: &Overview) -> Vec<String> {
    overview.speeds.iter().map(|speed| format!("{}s", speed.op)).collect()
}

pub(crate) fn rows(overview: &Overview) -> Vec<Row> {
    let speeds = &overview.speeds;
    let row = |name: String, cell: &dyn Fn(&Speed) -> Option<String>| Row {
        name,
        cells: speeds.iter().map(|speed| cell(speed).unwrap_or_default()).collect(),
    };
    let size = |of: fn(&Speed) -> Option<&SmallRequests>| {
        let bytes = speeds.iter().find_map(of).map_or(0, |one| one.request_bytes);
        show_size(u64::from(bytes))
    };
    let plain_bytes = speeds.iter().find_map(|speed| Some(speed.plain.as_ref()?.request_bytes));
    let rows = [
        row("sequential, best".into(), &|speed| {
            let peak = speed.peak.as_ref()?;
            let shown = rate(peak.throughput_bytes_per_s);
            let spread = plus_minus(peak.throughput_bytes_per_s, peak.interval_95);
            Some(spread.map_or(shown.clone(), |spread| format!("{shown} {spread}")))
        }),
        row("sequential, burst".into(), &|speed| {
            let burst = speed.peak.as_ref()?.burst?;
            let length = show_time(burst.length_s * 1e9);
            Some(format!("{} for {length}", rate(burst.throughput_bytes_per_s)))
        }),
        row("sequential, lasting".into(), &|speed| {
            let credit = speed.peak_credit?;
            let lasting = rate(credit.sustained_bytes_per_s(1));
            Some(format!("{lasting} after {}", show_span(credit.lasts_s)))
        }),
        row(format!("plain program, {}", show_size(plain_bytes.unwrap_or(0).into())), &|speed| {
            let plain = speed.plain.as_ref()?;
            let share = plain.share_of_peak.map(|share| format!(", {:.0} % of it", share * 100.0));
            Some(rate(plain.throughput_bytes_per_s) + &share.unwrap_or_default())
        }),
        row(format!("random {}, best", size(|speed| speed.random.as_ref())), &|speed| {
            speed.random.as_ref().map(small_requests)
        }),
        row(format!("random {}, burst", size(|speed| speed.random.as_ref())), &|speed| {
            let (small, one) = (speed.random.as_ref()?, speed.random_burst?);
            let iops = one.burst.throughput_bytes_per_s / f64::from(small.request_bytes);
            let length = show_time(one.burst.length_s * 1e9);
            Some(format!("{} IOPS for {length}", grouped(iops)))
        }),
        row(format!("random {}, lasting", size(|speed| speed.random.as_ref())), &|speed| {
            let (small, credit) = (speed.random.as_ref()?, speed.random_credit?);
            let bytes = f64::from(small.request_bytes);
            let iops = credit.sustained_bytes_per_s(small.request_bytes) / bytes;
            Some(format!("{} IOPS after {}", grouped(iops), show_span(credit.lasts_s)))
        }),
        row(format!("random {}, depth 1", size(|speed| speed.random_single.as_ref())), &|speed| {
            speed.random_single.as_ref().map(small_requests)
        }),
        row(format!("{} write + flush", size(|speed| speed.durable.as_ref())), &|speed| {
            speed.durable.as_ref().map(latency)
        }),
    ];
    rows.into_iter().filter(|row| row.cells.iter().any(|cell| !cell.is_empty())).collect()
}
