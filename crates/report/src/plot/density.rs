//! Requests by time and offset.

use super::course::{Frame, TOP, WIDE, column_tick, row_line};
use super::text::{ending, escape};
use super::ticks::from_zero;
use application::profile::HeatMap;
use machine::Nanos;
use results::Axis;
use std::fmt::Write;

const HEIGHT: f64 = 220.0;
const BOTTOM: f64 = 180.0;
const SHADES: usize = 8;

fn shade(count: u64, most: u64) -> usize {
    if count == 0 {
        return 0;
    }
    let share = (count as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    ((share * SHADES as f64).ceil() as usize).clamp(1, SHADES)
}

/// Writing to a String cannot fail.
pub(crate) fn svg(title: &str, map: &HeatMap, elapsed_ns: Nanos) -> String {
    let Frame { width, left, right, .. } = WIDE;
    let rows = map.columns.iter().map(Vec::len).max().unwrap_or(0).max(1);
    let most = map.columns.iter().flatten().copied().max().unwrap_or(0);
    let end_ns = (map.slot_ns as f64 * map.columns.len().max(1) as f64).max(elapsed_ns as f64);
    let end_bytes = map.row_bytes as f64 * rows as f64;
    let wide = (right - left) * map.slot_ns as f64 / end_ns;
    let high = (BOTTOM - TOP) / rows as f64;
    let name = escape(title);
    let label = name.replace('"', "&quot;");
    let mut out = format!(
        "<svg class=\"course\" viewBox=\"0 0 {width} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">\n<text class=\"name\" x=\"{left}\" y=\"14\">{name}</text>\n"
    );
    let y_of = |bytes: f64| BOTTOM - (BOTTOM - TOP) * bytes / end_bytes;
    let x_of = |ns: f64| left + (right - left) * ns / end_ns;
    for tick in from_zero(Axis::CacheBytes, end_bytes, 4) {
        let at = y_of(tick.value);
        if at >= TOP - 1.0 {
            row_line(&mut out, &WIDE, at, &tick.label);
        }
    }
    for tick in from_zero(Axis::TimeNs, end_ns, 8) {
        let at = x_of(tick.value);
        if at <= right + 1.0 {
            column_tick(&mut out, (at, BOTTOM), &tick.label);
        }
    }
    for level in 1..=SHADES {
        let mut path = String::new();
        for (column, counts) in map.columns.iter().enumerate() {
            for (row, count) in counts.iter().enumerate() {
                if shade(*count, most) == level {
                    let _ = write!(
                        path,
                        "M{:.1} {:.1}h{wide:.1}v{high:.1}h-{wide:.1}z",
                        left + wide * column as f64,
                        BOTTOM - high * (row + 1) as f64
                    );
                }
            }
        }
        if !path.is_empty() {
            let opacity = 0.15 + 0.85 * level as f64 / SHADES as f64;
            let _ =
                writeln!(out, "<path class=\"cells\" fill-opacity=\"{opacity:.2}\" d=\"{path}\"/>");
        }
    }
    let each = format!("offset by time; the darkest cell has {most} requests");
    let _ = writeln!(
        out,
        "<text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        BOTTOM + 35.0,
        escape(&each)
    );
    out + "</svg>\n"
}

pub(crate) fn shares(title: &str, rows: &[(String, f64)]) -> String {
    const ROW: f64 = 24.0;
    const NAME: f64 = 330.0;
    let height = TOP + ROW * rows.len() as f64 + 4.0;
    let name = escape(title);
    let mut out = format!(
        "<svg class=\"course\" viewBox=\"0 0 {} {height}\" role=\"img\" aria-label=\"{}\">\n<text class=\"name\" x=\"0\" y=\"14\">{name}</text>\n",
        WIDE.width,
        name.replace('"', "&quot;")
    );
    for (index, (name, share)) in rows.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><path class=\"cells\" d=\"M{NAME} {:.1}h{:.1}v{:.1}h-{:.1}z\"/><text x=\"{:.1}\" y=\"{:.1}\">{:.0} %</text>",
            NAME - 10.0,
            y + 16.0,
            escape(&ending(name, NAME - 14.0)),
            y + 4.0,
            share * (WIDE.right - NAME - 60.0),
            ROW - 8.0,
            share * (WIDE.right - NAME - 60.0),
            NAME + share * (WIDE.right - NAME - 60.0) + 8.0,
            y + 16.0,
            share * 100.0
        );
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_requests_are_darker_and_names_are_escaped() {
        assert_eq!([0, 1, 1000].map(|count| shade(count, 1000)), [0, 1, SHADES]);
        assert!(shade(30, 1000) > shade(1, 1000));
        let map = HeatMap {
            slot_ns: 1_000_000,
            row_bytes: 4096,
            columns: vec![vec![1], vec![], vec![0, 1000]],
        };
        let svg = svg("<a>", &map, 6_000_000);
        assert!(svg.contains("&lt;a&gt;") && !svg.contains("<a>"));
        assert_eq!(svg.matches("class=\"cells\"").count(), 2, "{svg}");
        // A column of 1 ms is a sixth of the recording.
        assert!(svg.contains("h128.3v"), "{svg}");
        let bars = shares("x", &[("a/long/".repeat(30), 0.5), ("b".into(), 0.25)]);
        assert!(bars.contains(">50 %<") && bars.contains("…"), "{bars}");
    }
}
