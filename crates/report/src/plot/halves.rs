use super::frame::{Frame, X_PAD, drawable, logarithmic, logarithmic_y};
use super::labels::{Ink, Placer, Rect};
use super::scene::{HalfLine, HalfMark, Scene, Stroke, Text, tenth};
use super::text;
use crate::format::{axis_value, half_power_value};
use results::Point;
use results::{Axis, Figure, HalfPower, Series, Varied};

/// More lines would be a grid, so then each curve gets its own.
const MAX_HALF_LINES: usize = 2;
const HALF_LINES_APART: f64 = 24.0;

pub(super) fn peaks(figure: &Figure, points: &[Point]) -> Vec<Option<f64>> {
    let shown = |series: &Series| {
        peak_on_axis(figure.y, series, points)
            .filter(|peak| drawable(figure.y, *peak) && *peak > 0.0)
    };
    figure.series.iter().map(shown).collect()
}

/// A peak in requests per second needs requests of one size.
pub(crate) fn peak_on_axis(axis: Axis, series: &Series, points: &[Point]) -> Option<f64> {
    let peak = series.half_power.as_ref()?.peak_bytes_per_s;
    match axis {
        Axis::BytesPerS => Some(peak),
        Axis::Iops => {
            let mut sizes = series
                .values
                .iter()
                .filter_map(|value| points.get(value.point?))
                .map(|point| point.workload.request_bytes);
            let size = sizes.next().filter(|size| *size > 0)?;
            sizes.all(|other| other == size).then_some(peak / f64::from(size))
        }
        _ => None,
    }
}

pub(super) fn half_peaks(peaks: &[Option<f64>]) -> Vec<f64> {
    let mut halves: Vec<f64> = Vec::new();
    for half in peaks.iter().flatten().map(|peak| peak / 2.0) {
        if !halves.iter().any(|known| (known / half - 1.0).abs() < 1e-6) {
            halves.push(half);
        }
    }
    halves
}

pub(super) fn halves(figure: &Figure, peaks: &[Option<f64>], frame: &Frame, scene: &mut Scene) {
    let [left, top, right, bottom] = frame.plot();
    let mut marks: Vec<(usize, f64, f64, &HalfPower)> = Vec::new();
    for (place, series) in figure.series.iter().enumerate() {
        if let Some(half) = &series.half_power
            && let Some((x, y)) = crossing(figure, series, half, peaks[place], frame)
        {
            marks.push((place, x, y, half));
        }
    }
    marks.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let rings = marks
        .iter()
        .map(|(_, x, y, _)| Rect { x: x - 6.0, y: y - 6.0, width: 12.0, height: 12.0 })
        .collect();
    let mut lines: Vec<(f64, f64)> = half_peaks(peaks)
        .into_iter()
        .filter_map(|value| Some((value, frame.y.at(value)?)))
        .collect();
    lines.retain(|(_, y)| *y >= top && *y <= bottom);
    lines.sort_by(|a, b| a.1.total_cmp(&b.1));
    let apart = lines.windows(2).all(|pair| pair[1].1 - pair[0].1 >= HALF_LINES_APART);
    if lines.len() > MAX_HALF_LINES || !apart {
        // Each curve has its own, from the axis to the mark.
        lines.clear();
        for &(place, x, y, _) in
            marks.iter().filter(|(_, _, _, half)| !half.at_or_below && half.crossing.is_some())
        {
            scene.curves[place].half_line = peaks[place].map(|_| Stroke::new(left, y, x - 6.0, y));
        }
    }
    let bounds =
        Rect { x: left + 2.0, y: top - 4.0, width: right - left - 4.0, height: bottom - top };
    let heights: Vec<f64> = lines.iter().map(|(_, y)| *y).collect();
    let mut placer = Placer::new(bounds, rings, ink(scene, &heights));
    for &(place, x, y, half) in &marks {
        let label = half_power_value(half);
        let width = text::width(&label) + 4.0;
        let rect = placer.place((x, y), width, text::HEIGHT + 1.0);
        let text = rect.map(|rect| {
            Text::new(rect.x + width / 2.0, rect.y + text::ASCENT + 0.5, "middle", label)
        });
        let leader = rect.and_then(|rect| leader((x, y), rect));
        let ends = half.interval_95.filter(|_| !half.at_or_below);
        let interval = ends
            .map(|[low, high]| Stroke::new(frame.x.at_or_end(low), y, frame.x.at_or_end(high), y));
        scene.curves[place].half_power =
            Some(HalfMark { x: tenth(x), y: tenth(y), label: text, leader, interval });
    }
    for (value, y) in lines {
        let label = format!("half of {}", axis_value(figure.y, value * 2.0));
        let width = text::width(&label);
        let rect = placer.place_along(y, width, text::HEIGHT);
        let text = rect.map(|rect| Text::new(rect.x, rect.y + text::ASCENT, "start", label));
        scene.half_lines.push(HalfLine { stroke: Stroke::new(left, y, right, y), label: text });
    }
}

fn leader((x, y): (f64, f64), rect: Rect) -> Option<Stroke> {
    let (to_x, to_y) =
        (x.clamp(rect.x, rect.x + rect.width), y.clamp(rect.y + 2.0, rect.y + rect.height - 2.0));
    let length = (to_x - x).hypot(to_y - y);
    (length > 18.0).then(|| {
        Stroke::new(x + (to_x - x) * 7.0 / length, y + (to_y - y) * 7.0 / length, to_x, to_y)
    })
}

fn crossing(
    figure: &Figure,
    series: &Series,
    half: &HalfPower,
    peak: Option<f64>,
    frame: &Frame,
) -> Option<(f64, f64)> {
    let fits = match half.of {
        Varied::RequestBytes => figure.x == Axis::RequestBytes,
        Varied::Depth => matches!(figure.x, Axis::Depth | Axis::Threads),
        Varied::ChunkBytes => false,
    };
    let value = if half.at_or_below {
        half.smallest.or(half.crossing)
    } else {
        half.crossing.or(half.smallest)
    };
    let value = value.filter(|value| fits && drawable(figure.x, *value))?;
    let x =
        frame.x.at(value).filter(|x| *x >= frame.x.begin - X_PAD && *x <= frame.x.end + X_PAD)?;
    let on_line = peak.filter(|_| !half.at_or_below && half.crossing.is_some());
    let y = on_line.map(|peak| peak / 2.0).or_else(|| height_at(figure, series, value));
    let y = frame.y.at(y.filter(|y| drawable(figure.y, *y))?)?;
    let [_, top, _, bottom] = frame.plot();
    (y >= top && y <= bottom).then_some((x, y))
}

fn height_at(figure: &Figure, series: &Series, x: f64) -> Option<f64> {
    let log = |value: f64, yes: bool| if yes { value.ln() } else { value };
    let (log_x, log_y) = (logarithmic(figure.x), logarithmic_y(figure));
    let known: Vec<(f64, f64)> = series
        .values
        .iter()
        .filter_map(|value| Some((value.x, value.y?)))
        .filter(|(x, y)| drawable(figure.x, *x) && drawable(figure.y, *y))
        .collect();
    if let Some((_, y)) = known.iter().find(|(known, _)| *known == x) {
        return Some(*y);
    }
    let pair = known.windows(2).find(|pair| pair[0].0 < x && x < pair[1].0)?;
    let (a, b) = (pair[0], pair[1]);
    let share = (log(x, log_x) - log(a.0, log_x)) / (log(b.0, log_x) - log(a.0, log_x));
    let y = log(a.1, log_y) + share * (log(b.1, log_y) - log(a.1, log_y));
    Some(if log_y { y.exp() } else { y })
}

fn ink(scene: &Scene, lines: &[f64]) -> Vec<Ink> {
    let mut ink: Vec<Ink> = Vec::new();
    let [left, _, right, _] = scene.plot;
    for y in lines {
        ink.extend((0..((right - left) / 5.0) as usize).map(|step| Ink {
            x: left + step as f64 * 5.0,
            y: *y,
            weight: 0.3,
        }));
    }
    let full = |x, y| Ink { x, y, weight: 1.0 };
    for curve in &scene.curves {
        ink.extend(curve.failed.iter().map(|mark| full(mark.x, mark.y)));
        for pair in curve.marks.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            let steps = ((b.x - a.x).hypot(b.y - a.y) / 5.0).clamp(1.0, 200.0) as usize;
            ink.extend((0..steps).map(|step| {
                let share = step as f64 / steps as f64;
                full(a.x + share * (b.x - a.x), a.y + share * (b.y - a.y))
            }));
        }
        ink.extend(curve.marks.last().map(|mark| full(mark.x, mark.y)));
    }
    ink
}
