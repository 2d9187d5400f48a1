//! Line charts over time, bytes or rounds.

use super::text::escape;
use super::ticks::{Tick, from_zero};
use results::Axis;
use std::fmt::Write;

pub(super) struct Frame {
    class: &'static str,
    pub(super) width: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    ticks: usize,
}

pub(super) const WIDE: Frame =
    Frame { class: "wide", width: 880.0, left: 72.0, right: 842.0, ticks: 8 };
const NARROW: Frame = Frame { class: "narrow", width: 400.0, left: 66.0, right: 372.0, ticks: 4 };
const HEIGHT: f64 = 280.0;
pub(super) const TOP: f64 = 26.0;
const BOTTOM: f64 = 240.0;
const MAX_DRAWN: usize = 1600;
/// With enough contrast on light and dark pages; the first is the page's accent.
const COLOURS: [&str; 8] =
    ["var(--accent)", "#d4572a", "#2f9e6e", "#a34fc4", "#b8860b", "#2596be", "#c2407e", "#7a7f87"];

pub(crate) struct Line {
    /// Empty if the key does not show it.
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) dashed: bool,
    pub(crate) dots: bool,
}

impl Line {
    pub(crate) fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { name: name.into(), points, dashed: false, dots: false }
    }
}

pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: Axis,
    pub(crate) x_title: &'a str,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
    pub(crate) shaded: Option<(f64, f64)>,
}

/// Keeps low and high points; no line is longer than can be seen.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let group = points.len().div_ceil(MAX_DRAWN / 2).max(1);
    if group == 1 {
        return points.to_vec();
    }
    let ends = |part: &[(f64, f64)]| {
        let by = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (low, high) = (part.iter().min_by(by), part.iter().max_by(by));
        let mut both: Vec<(f64, f64)> = low.into_iter().chain(high).copied().collect();
        both.sort_by(|a, b| a.0.total_cmp(&b.0));
        both
    };
    points.chunks(group).flat_map(ends).collect()
}

fn end(ticks: &[Tick]) -> f64 {
    ticks.last().map_or(1.0, |tick| tick.value).max(f64::MIN_POSITIVE)
}

pub(super) fn row_line(out: &mut String, frame: &Frame, y: f64, label: &str) {
    let Frame { left, right, .. } = frame;
    let _ = writeln!(
        out,
        "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        left - 8.0,
        y + 4.0,
        escape(label)
    );
}

pub(super) fn column_tick(out: &mut String, (x, bottom): (f64, f64), label: &str) {
    let _ = writeln!(
        out,
        "<path class=\"grid\" d=\"M{x:.1} {bottom}v4\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        bottom + 18.0,
        escape(label)
    );
}

/// Draws two widths, of which the page shows one.
pub(crate) fn svg(chart: &Chart<'_>) -> String {
    drawn(chart, &WIDE) + &drawn(chart, &NARROW)
}

fn drawn(chart: &Chart<'_>, frame: &Frame) -> String {
    let Frame { class, width, left, right, ticks } = *frame;
    let all = || chart.lines.iter().flat_map(|line| &line.points);
    let max = |of: fn(&(f64, f64)) -> f64| all().map(of).fold(0.0, f64::max);
    let xs = from_zero(chart.x, max(|point| point.0), ticks);
    let ys = from_zero(chart.y, max(|point| point.1), 5);
    let (x_end, y_end) = (end(&xs), end(&ys));
    let x = |value: f64| left + (right - left) * value / x_end;
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * value / y_end;
    let title = escape(chart.title);
    let mut out = format!(
        "<svg class=\"course {class}\" viewBox=\"0 0 {width} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        title.replace('"', "&quot;")
    );
    if let Some((from, to)) = chart.shaded {
        let _ = writeln!(
            out,
            "<rect class=\"window\" x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            x(from),
            x(to) - x(from),
            BOTTOM - TOP
        );
    }
    ys.iter().for_each(|tick| row_line(&mut out, frame, y(tick.value), &tick.label));
    xs.iter().for_each(|tick| column_tick(&mut out, (x(tick.value), BOTTOM), &tick.label));
    let _ = writeln!(
        out,
        "<text class=\"name\" x=\"{left}\" y=\"14\">{title}</text><text class=\"name\" x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        BOTTOM + 35.0,
        escape(chart.x_title)
    );
    let named: Vec<&Line> = chart.lines.iter().filter(|line| !line.name.is_empty()).collect();
    let mut key = right;
    for (index, line) in named.iter().enumerate().rev() {
        let colour = COLOURS[index % COLOURS.len()];
        let width = super::text::width(&line.name) + 24.0;
        key -= width;
        let _ = writeln!(
            out,
            "<path d=\"M{key:.1} 10h14\" stroke=\"{colour}\"{}/><text x=\"{:.1}\" y=\"14\">{}</text>",
            if line.dashed { " stroke-dasharray=\"4 3\"" } else { "" },
            key + 18.0,
            escape(&line.name)
        );
    }
    for (index, line) in chart.lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let mut path = String::new();
        let points = thinned(&line.points);
        for (place, point) in points.iter().enumerate() {
            let letter = if place == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", x(point.0), y(point.1));
        }
        let dashed = if line.dashed { " stroke-dasharray=\"4 3\"" } else { "" };
        let _ = writeln!(out, "<path d=\"{path}\" stroke=\"{colour}\"{dashed}/>");
        // One point makes no line.
        if line.dots || points.len() == 1 {
            for point in &points {
                let _ = write!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                    x(point.0),
                    y(point.1)
                );
            }
        }
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_keeps_its_lowest_and_highest_point() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at), 5.0)).collect();
        (points[777].1, points[60_000].1) = (1.0, 9.0);
        let kept = thinned(&points);
        assert!(kept.len() <= MAX_DRAWN, "{}", kept.len());
        assert!(kept.contains(&(777.0, 1.0)) && kept.contains(&(60_000.0, 9.0)));
        assert!(kept.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }

    #[test]
    fn names_are_escaped_and_points_are_inside() {
        let line = Line::new("<b>", vec![(0.0, 0.0), (10.0, 3e9)]);
        let chart = Chart {
            title: "a & b",
            x: Axis::Depth,
            x_title: "round",
            y: Axis::BytesPerS,
            lines: vec![line],
            shaded: Some((5.0, 10.0)),
        };
        let svg = svg(&chart);
        assert!(svg.contains("a &amp; b") && svg.contains("&lt;b&gt;") && !svg.contains("<b>"));
        assert!(svg.contains("M72.0 240.0L842.0"), "{svg}");
        assert!(!svg.contains("<circle"));
    }

    #[test]
    fn a_single_point_is_seen() {
        let chart = Chart {
            title: "",
            x: Axis::TimeNs,
            x_title: "time",
            y: Axis::TimeNs,
            lines: vec![Line::new("syncs", vec![(5e6, 8e6)])],
            shaded: None,
        };
        assert_eq!(svg(&chart).matches("<circle").count(), 2, "wide and narrow");
    }
}
