//! Lays out a figure of the study.

use super::labels::{Ink, Placer, Rect, spread};
use super::scale::{Scale, Spread};
use super::scene::{Curve, DASHES, HalfLine, HalfMark, Mark, SHAPES, Scene, Stroke, Text, tenth};
use super::ticks::{self, Tick};
use super::{Room, colour, text};
use crate::words::{axis_title, clean, family, half_power_value, rate};
use measure::Point;
use std::fmt::Write;
use study::{Axis, Figure, HalfPower, Series, Value};

/// Distance of two lines of text.
const LINE: f64 = 17.0;
/// Most peaks whose half is drawn: more would be a grid.
const MOST_HALF_LINES: usize = 3;

/// With more values than this a curve has no markers, and a band in place of whiskers.
const DENSE: usize = 60;

/// A figure in `room`; `points` are the document's, whose warnings make hollow markers.
pub(crate) fn lay_out(figure: &Figure, points: &[Point], room: Room) -> Scene {
    let names: Vec<String> = figure.series.iter().map(|series| clean(&series.name)).collect();
    let frame = Frame::new(figure, &names, room);
    let mut scene = frame.axes(figure, room);
    scene.curves = curves(figure, points, &names, &frame);
    halves(figure, &frame, &mut scene);
    if frame.direct {
        label_ends(&names, &frame, &mut scene);
    } else {
        label_key(&frame, &mut scene);
    }
    if scene.curves.iter().all(|curve| curve.marks.is_empty() && curve.below.is_empty()) {
        let [left, top, right, bottom] = scene.plot;
        let said = if figure.series.is_empty() { "nothing was measured" } else { "no point of this figure could be measured" };
        scene.empty = Some(Text::new((left + right) / 2.0, (top + bottom) / 2.0, "middle", said));
    }
    scene
}

/// Whether an axis is logarithmic, as [`study::Axis`] says.
fn logarithmic(axis: Axis) -> bool {
    !matches!(axis, Axis::Position | Axis::Members | Axis::TimeNs | Axis::BytesPerS | Axis::Iops | Axis::OffsetBytes)
}

/// Whether a value has a place on an axis.
fn drawable(axis: Axis, value: f64) -> bool {
    value.is_finite() && value.abs() < 1e300 && (!logarithmic(axis) || value > 1e-300)
}

/// Both axes, and where names of curves go.
struct Frame {
    x: Scale,
    y: Scale,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    /// Rows of the labels below, each value of [`Spread::Each`] in the next row.
    rows: usize,
    /// Names stand beside the ends of the curves; otherwise in a key above.
    direct: bool,
    /// For each name in the key: column and row, and the room of its text.
    key: Vec<(f64, usize, String)>,
    width: f64,
    height: f64,
    category: bool,
}

impl Frame {
    fn new(figure: &Figure, names: &[String], room: Room) -> Frame {
        let width = room.width();
        let widest = names.iter().map(|name| text::width(name)).fold(0.0, f64::max);
        let direct = match room {
            Room::Wide => widest <= width * 0.26 || names.len() > 4,
            Room::Narrow => widest <= width * 0.22,
        };
        let label_room = if direct { widest.min(width * 0.26) + 26.0 } else { 14.0 };
        let key = if direct { Vec::new() } else { key_places(names, width) };
        let key_rows = key.iter().map(|(_, row, _)| row + 1).max().unwrap_or(0);
        let inner = room.height().max(if direct { names.len() as f64 * LINE } else { 0.0 });
        let top = key_rows as f64 * LINE + if key_rows > 0 { 6.0 } else { 0.0 } + 24.0;
        let bottom = top + inner;
        let (y_spread, y_ticks) = y_axis(figure, inner);
        let left = y_ticks.iter().map(|tick| text::width(&tick.label)).fold(0.0, f64::max).max(16.0) + 10.0;
        let right = width - label_room;
        let y = Scale { spread: y_spread, begin: bottom, end: top };
        let (x, x_ticks, rows) = x_axis(figure, left, right, width);
        let height = bottom + 21.0 + rows as f64 * LINE + 4.0;
        let category = matches!(x.spread, Spread::Each(_));
        Frame { x, y, x_ticks, y_ticks, rows, direct, key, width, height, category }
    }

    /// Left, top, right, bottom of the room between the axes.
    fn plot(&self) -> [f64; 4] {
        let pad = if self.category { 0.0 } else { X_PAD };
        [self.x.begin - pad, self.y.end, self.x.end + pad, self.y.begin]
    }

    /// The scene with axes and no curves.
    fn axes(&self, figure: &Figure, room: Room) -> Scene {
        let [left, top, right, bottom] = self.plot();
        let mut x_labels: Vec<Text> = Vec::new();
        for (place, tick) in self.x_ticks.iter().enumerate() {
            let row = if self.category { place % self.rows } else { 0 };
            let half = text::width(&tick.label) / 2.0;
            let x = self.x.at_or_end(tick.value).clamp(half, (self.width - half).max(half));
            x_labels.push(Text::new(x, bottom + 8.0 + text::ASCENT + row as f64 * LINE, "middle", &tick.label));
        }
        let y_labels =
            self.y_ticks.iter().map(|tick| Text::new(left - 8.0, self.y.at_or_end(tick.value) + 4.2, "end", &tick.label)).collect();
        let below = bottom + 8.0 + text::ASCENT + self.rows as f64 * LINE;
        Scene {
            room: room.name(),
            width: self.width,
            height: tenth(self.height),
            plot: [left, top, right, bottom].map(tenth),
            grid: self.y_ticks.iter().map(|tick| tenth(self.y.at_or_end(tick.value))).collect(),
            ticks: self.x_ticks.iter().filter_map(|tick| self.x.at(tick.value)).map(tenth).collect(),
            x_labels,
            y_labels,
            x_title: Some(Text::new(right, below, "end", format!("{} →", axis_title(figure.x)))),
            y_title: Some(Text::new(0.0, top - 13.0, "start", format!("↑ {}", axis_title(figure.y)))),
            ..Scene::default()
        }
    }
}

/// Space between the frame and the first and last value.
const X_PAD: f64 = 12.0;

fn y_axis(figure: &Figure, height: f64) -> (Spread, Vec<Tick>) {
    let all = figure.series.iter().flat_map(|series| &series.values);
    let mut values: Vec<f64> = all.clone().filter_map(|value| value.y).filter(|y| drawable(figure.y, *y)).collect();
    let highest = values.iter().copied().fold(0.0, f64::max);
    // An interval may be so wide that it would press all else flat.
    let ends = all.filter_map(|value| value.interval_95).flatten().filter(|end| drawable(figure.y, *end));
    let ends: Vec<f64> = ends.map(|end| end.clamp(-highest * 2.0, highest * 2.0)).filter(|end| drawable(figure.y, *end)).collect();
    values.extend(ends);
    if logarithmic(figure.y) {
        let low = values.iter().copied().reduce(f64::min).unwrap_or(1.0);
        let high = values.iter().copied().reduce(f64::max).unwrap_or(10.0);
        let (low, high, ticks) = ticks::decades(figure.y, low, high, height);
        return (Spread::Log(low, high), ticks);
    }
    let mut high = values.iter().copied().fold(0.0, f64::max);
    for half in half_peaks(figure) {
        if half.is_finite() && half < high * 2.5 {
            high = high.max(half * 1.05);
        }
    }
    let ticks = ticks::from_zero(figure.y, high, 5);
    let top = ticks.last().map_or(1.0, |tick| tick.value);
    (Spread::Linear(0.0, top), ticks)
}

fn x_axis(figure: &Figure, left: f64, right: f64, width: f64) -> (Scale, Vec<Tick>, usize) {
    let mut values: Vec<f64> =
        figure.series.iter().flat_map(|series| &series.values).map(|value| value.x).filter(|x| drawable(figure.x, *x)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let padded = |spread| Scale { spread, begin: left + X_PAD, end: right - X_PAD };
    let ends = values.first().copied().zip(values.last().copied());
    if figure.x == Axis::OffsetBytes {
        let scale = Scale { spread: Spread::Each(values.clone()), begin: left, end: right };
        let labels: Vec<Tick> = values.iter().map(|x| Tick { value: *x, label: crate::words::axis_value(figure.x, *x) }).collect();
        return staggered(scale, labels);
    }
    if logarithmic(figure.x) {
        let (low, high) = ends.unwrap_or((1.0, 1024.0));
        let (low, high) = if high / low < 1.5 { (low / 1.5, high * 1.5) } else { (low, high) };
        let scale = padded(Spread::Log(low, high));
        let mut ticks = ticks::powers_of_two(figure.x, low * 0.999, high * 1.001, scale.end - scale.begin);
        if ticks.is_empty() {
            ticks = ticks::of_values(figure.x, &values, |x| scale.at(x));
        }
        return (scale, ticks, 1);
    }
    let parts = ((right - left) / 90.0).clamp(2.0, 8.0) as usize;
    let high = if figure.x == Axis::Position { 1.0 } else { ends.map_or(1.0, |(_, high)| high) };
    let mut ticks = ticks::from_zero(figure.x, high.max(f64::MIN_POSITIVE), parts);
    let end = if figure.x == Axis::Position { high } else { ticks.last().map_or(1.0, |tick| tick.value) };
    let scale = padded(Spread::Linear(0.0, end));
    let mut free_from = f64::NEG_INFINITY;
    ticks.retain(|tick| {
        let half = text::width(&tick.label) / 2.0;
        let x = scale.at_or_end(tick.value).clamp(half, (width - half).max(half));
        let free = tick.value <= end * 1.000_001 && x - half >= free_from;
        if free {
            free_from = x + half + 8.0;
        }
        free
    });
    (scale, ticks, 1)
}

/// Labels of values that each have a place, in as many rows as they need; beyond three rows some are left to the table.
fn staggered(scale: Scale, mut labels: Vec<Tick>) -> (Scale, Vec<Tick>, usize) {
    let slot = scale.slot().unwrap_or(1.0);
    let widest = labels.iter().map(|tick| text::width(&tick.label)).fold(0.0, f64::max) + 8.0;
    let rows = (widest / slot).ceil().max(1.0);
    if rows > 3.0 {
        let every = (rows / 3.0).ceil() as usize;
        labels = labels.into_iter().step_by(every).collect();
    }
    (scale, labels, rows.min(3.0) as usize)
}

/// Names in rows above the figure, each with room for its sign; a name longer than a row is cut.
fn key_places(names: &[String], width: f64) -> Vec<(f64, usize, String)> {
    let (sign, gap) = (20.0, 16.0);
    let (mut x, mut row) = (0.0, 0);
    names
        .iter()
        .map(|name| {
            let name = text::fit(name, width - sign - 4.0);
            let needed = sign + text::width(&name);
            if x > 0.0 && x + needed > width {
                (x, row) = (0.0, row + 1);
            }
            let place = (x, row, name);
            x += needed + gap;
            place
        })
        .collect()
}

/// Halves of the peaks that the figure's half-power points are about, each once.
fn half_peaks(figure: &Figure) -> Vec<f64> {
    let mut halves: Vec<f64> = Vec::new();
    for half in figure.series.iter().filter_map(|series| series.half_power.as_ref()).filter(|_| figure.y == Axis::BytesPerS) {
        let value = half.peak_bytes_per_s / 2.0;
        if value > 0.0 && !halves.iter().any(|known| (known / value - 1.0).abs() < 1e-6) {
            halves.push(value);
        }
    }
    halves.truncate(MOST_HALF_LINES);
    halves
}

fn curves(figure: &Figure, points: &[Point], names: &[String], frame: &Frame) -> Vec<Curve> {
    let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
    let ordered = family(&borrowed).is_some();
    let count = figure.series.len();
    let mut failures: Vec<f64> = Vec::new();
    figure
        .series
        .iter()
        .enumerate()
        .map(|(place, series)| {
            let pair = colour::of_curve(place, count, ordered);
            let repeat = if ordered && count > 2 { 0 } else { place / 6 };
            // Values that stand for themselves are drawn beside one another, or intervals would hide intervals.
            let aside = match frame.x.slot() {
                Some(slot) => (place as f64 - (count - 1) as f64 / 2.0) * (slot * 0.6 / count as f64).min(12.0),
                None => 0.0,
            };
            let mut curve = Curve {
                name: names[place].clone(),
                light: pair.light,
                dark: pair.dark,
                dashes: DASHES[repeat % DASHES.len()],
                shape: SHAPES[(place + repeat) % SHAPES.len()],
                ..Curve::default()
            };
            draw(&mut curve, figure, series, points, frame, aside, &mut failures);
            if count > 4 || frame.category {
                curve.band.clear();
            }
            if frame.category {
                curve.line.clear();
            } else if curve.marks.len() > DENSE {
                curve.dense = true;
                curve.whiskers.clear();
            }
            curve
        })
        .collect()
}

/// The place of a value: x, y, and the low and high end of its interval.
type Placed = (f64, f64, Option<(f64, f64)>);

/// Puts a curve's values where they belong.
fn draw(curve: &mut Curve, figure: &Figure, series: &Series, points: &[Point], frame: &Frame, aside: f64, failures: &mut Vec<f64>) {
    let mut run: Vec<Placed> = Vec::new();
    let bottom = frame.y.begin;
    for (place, value) in series.values.iter().enumerate() {
        let Some(x) = frame.x.at(value.x).filter(|_| drawable(figure.x, value.x)).map(|x| x + aside) else { continue };
        let doubtful = warned(value, points);
        let mark = |y: f64| Mark { x: tenth(x), y: tenth(y), value: place, doubtful };
        match value.y {
            None => {
                finish(curve, &mut run);
                // Failures at the same place stand above one another.
                let same = failures.iter().filter(|known| (**known - x).abs() < 8.0).count();
                failures.push(x);
                curve.failed.push(mark(bottom - 8.0 - same as f64 * 9.0));
            }
            Some(y) if !drawable(figure.y, y) || y < 0.0 => {
                finish(curve, &mut run);
                curve.below.push(mark(bottom - 4.0));
            }
            Some(y) => {
                let y = frame.y.at_or_end(y);
                let interval = value.interval_95.map(|[low, high]| (frame.y.at_or_end(low), frame.y.at_or_end(high)));
                if let Some((low, high)) = interval {
                    // Writing to a String cannot fail.
                    let _ = write!(curve.whiskers, "M{} {}V{}", tenth(x), tenth(low), tenth(high));
                }
                run.push((x, y, interval));
                curve.marks.push(mark(y));
            }
        }
    }
    finish(curve, &mut run);
}

/// Ends a stretch of values without a gap: its line, and its band where every value has an interval.
fn finish(curve: &mut Curve, run: &mut Vec<Placed>) {
    for (place, (x, y, _)) in run.iter().enumerate() {
        let _ = write!(curve.line, "{}{} {}", if place == 0 { 'M' } else { 'L' }, tenth(*x), tenth(*y));
    }
    if run.len() > 1 && run.iter().all(|(_, _, interval)| interval.is_some()) {
        let upper = run.iter().map(|(x, y, interval)| (*x, interval.map_or(*y, |(_, high)| high)));
        let lower = run.iter().rev().map(|(x, y, interval)| (*x, interval.map_or(*y, |(low, _)| low)));
        for (place, (x, y)) in upper.chain(lower).enumerate() {
            let _ = write!(curve.band, "{}{} {}", if place == 0 { 'M' } else { 'L' }, tenth(x), tenth(y));
        }
        curve.band.push('Z');
    }
    run.clear();
}

fn warned(value: &Value, points: &[Point]) -> bool {
    let numbers = value.point.and_then(|index| points.get(index)).and_then(|point| point.numbers.as_ref());
    numbers.is_some_and(|numbers| !numbers.warnings.is_empty())
}

/// Lines at half of the peaks, and the half-power points with their labels.
fn halves(figure: &Figure, frame: &Frame, scene: &mut Scene) {
    let [left, top, right, bottom] = frame.plot();
    let bounds = Rect { x: left + 2.0, y: top - 4.0, width: right - left - 4.0, height: bottom - top };
    let mut marks: Vec<(usize, f64, f64, &HalfPower)> = Vec::new();
    for (place, series) in figure.series.iter().enumerate() {
        if let Some(half) = &series.half_power
            && let Some((x, y)) = crossing(figure, series, half, frame)
        {
            marks.push((place, x, y, half));
        }
    }
    marks.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let rings = marks.iter().map(|(_, x, y, _)| Rect { x: x - 6.0, y: y - 6.0, width: 12.0, height: 12.0 }).collect();
    let lines: Vec<f64> =
        half_peaks(figure).into_iter().filter_map(|value| frame.y.at(value)).filter(|y| *y >= top && *y <= bottom).collect();
    let mut placer = Placer::new(bounds, rings, ink(scene, &lines));
    for &(place, x, y, half) in &marks {
        let label = half_power_value(half);
        let width = text::width(&label) + 4.0;
        let rect = placer.place((x, y), width, text::HEIGHT + 1.0);
        let text = rect.map(|rect| Text::new(rect.x + width / 2.0, rect.y + text::ASCENT + 0.5, "middle", label));
        let leader = rect.and_then(|rect| leader((x, y), rect));
        let ends = half.interval_95.filter(|_| !half.at_or_below);
        let interval = ends.map(|[low, high]| Stroke::new(frame.x.at_or_end(low), y, frame.x.at_or_end(high), y));
        scene.curves[place].half_power = Some(HalfMark { x: tenth(x), y: tenth(y), label: text, leader, interval });
    }
    for value in half_peaks(figure) {
        let Some(y) = frame.y.at(value).filter(|y| *y >= top && *y <= bottom) else { continue };
        let label = format!("half of {}", rate(value * 2.0));
        let width = text::width(&label);
        let rect = placer.place_along(y, width, text::HEIGHT);
        let text = rect.map(|rect| Text::new(rect.x, rect.y + text::ASCENT, "start", label));
        scene.half_lines.push(HalfLine { stroke: Stroke::new(left, y, right, y), label: text });
    }
}

/// From a mark to its label, where they are not side by side.
fn leader((x, y): (f64, f64), rect: Rect) -> Option<Stroke> {
    let (to_x, to_y) = (x.clamp(rect.x, rect.x + rect.width), y.clamp(rect.y + 2.0, rect.y + rect.height - 2.0));
    let length = (to_x - x).hypot(to_y - y);
    (length > 18.0).then(|| Stroke::new(x + (to_x - x) * 7.0 / length, y + (to_y - y) * 7.0 / length, to_x, to_y))
}

/// Where a curve's half-power point lies in the figure, if the figure's x is what was varied.
fn crossing(figure: &Figure, series: &Series, half: &HalfPower, frame: &Frame) -> Option<(f64, f64)> {
    let fits = match half.of.as_str() {
        "request_bytes" => figure.x == Axis::RequestBytes,
        "depth" => matches!(figure.x, Axis::Depth | Axis::Threads),
        _ => false,
    };
    let value = if half.at_or_below { half.smallest.or(half.crossing) } else { half.crossing.or(half.smallest) };
    let value = value.filter(|value| fits && drawable(figure.x, *value))?;
    let x = frame.x.at(value).filter(|x| *x >= frame.x.begin - X_PAD && *x <= frame.x.end + X_PAD)?;
    let on_line = figure.y == Axis::BytesPerS && !half.at_or_below && half.crossing.is_some();
    let y = if on_line { Some(half.peak_bytes_per_s / 2.0) } else { height_at(figure, series, value) };
    let y = frame.y.at(y.filter(|y| drawable(figure.y, *y))?)?;
    let [_, top, _, bottom] = frame.plot();
    (y >= top && y <= bottom).then_some((x, y))
}

/// The value of a curve at an x between its values, along the drawn line.
fn height_at(figure: &Figure, series: &Series, x: f64) -> Option<f64> {
    let log = |value: f64, axis: Axis| if logarithmic(axis) { value.ln() } else { value };
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
    let share = (log(x, figure.x) - log(a.0, figure.x)) / (log(b.0, figure.x) - log(a.0, figure.x));
    let y = log(a.1, figure.y) + share * (log(b.1, figure.y) - log(a.1, figure.y));
    Some(if logarithmic(figure.y) { y.exp() } else { y })
}

/// Points along all that is drawn, for labels to keep off.
fn ink(scene: &Scene, lines: &[f64]) -> Vec<Ink> {
    let mut ink: Vec<Ink> = Vec::new();
    let [left, _, right, _] = scene.plot;
    for y in lines {
        ink.extend((0..((right - left) / 5.0) as usize).map(|step| Ink { x: left + step as f64 * 5.0, y: *y, weight: 0.3 }));
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

/// Names beside the ends of the curves.
fn label_ends(names: &[String], frame: &Frame, scene: &mut Scene) {
    let [_, top, right, bottom] = frame.plot();
    let ends: Vec<(f64, f64)> = scene
        .curves
        .iter()
        .map(|curve| curve.marks.last().or(curve.failed.last()).or(curve.below.last()).map_or((right, bottom), |mark| (mark.x, mark.y)))
        .collect();
    let wanted = settled(scene, &ends);
    let placed = spread(&wanted, LINE, top, bottom - 5.0);
    let x = right + 14.0;
    for (place, curve) in scene.curves.iter_mut().enumerate() {
        let (end_x, end_y) = ends[place];
        let y = placed[place];
        curve.label = Some(Text::new(x, y + 4.2, "start", text::fit(&names[place], frame.width - x)));
        if (end_x - right).abs() > X_PAD + 2.0 || (end_y - y).abs() > 3.0 {
            curve.leader = Some(Stroke::new(end_x + 6.0, end_y, x - 4.0, y));
        }
    }
}

/// The places that labels want: the ends of the curves. Where ends lie so close that their order is chance, the labels take the order of
/// the curves as a whole.
fn settled(scene: &Scene, ends: &[(f64, f64)]) -> Vec<f64> {
    let mean = |curve: usize| {
        let marks = &scene.curves[curve].marks;
        marks.iter().map(|mark| mark.y).sum::<f64>() / marks.len().max(1) as f64
    };
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|&a, &b| ends[a].1.total_cmp(&ends[b].1));
    let mut wanted = vec![0.0; ends.len()];
    for group in order.chunk_by(|&a, &b| ends[b].1 - ends[a].1 < LINE * 0.6) {
        let mut by_mean = group.to_vec();
        by_mean.sort_by(|&a, &b| mean(a).total_cmp(&mean(b)));
        for (&place, &curve) in group.iter().zip(&by_mean) {
            wanted[curve] = ends[place].1;
        }
    }
    wanted
}

/// Names in rows above the figure.
fn label_key(frame: &Frame, scene: &mut Scene) {
    for (curve, (x, row, name)) in scene.curves.iter_mut().zip(&frame.key) {
        let y = 9.0 + *row as f64 * LINE;
        curve.key = Some(Mark { x: tenth(x + 8.0), y: tenth(y), value: 0, doubtful: false });
        curve.label = Some(Text::new(x + 20.0, y + 4.2, "start", name));
    }
}
