//! A figure's axes.

use super::halves::half_peaks;
use super::scale::{Scale, Spread};
use super::scene::{Scene, Text, tenth};
use super::ticks::{self, Tick};
use super::{Room, text};
use crate::format::axis_title;
use results::{Axis, Figure};

pub(super) const LINE: f64 = 17.0;

pub(super) fn logarithmic(axis: Axis) -> bool {
    use Axis::{BytesPerS, Gain, Iops, Members, MissShare, OffsetBytes, Position, TimeNs};
    !matches!(axis, Position | Members | TimeNs | BytesPerS | Iops | OffsetBytes | MissShare | Gain)
}

/// Curves this many times apart share no linear axis.
const FAR_APART: f64 = 100.0;

pub(super) fn logarithmic_y(figure: &Figure) -> bool {
    if !matches!(figure.y, Axis::BytesPerS | Axis::Iops) {
        return logarithmic(figure.y);
    }
    let heights = figure.series.iter().filter_map(|series| {
        let values = series.values.iter().filter_map(|value| value.y);
        values.filter(|y| drawable(figure.y, *y) && *y > 0.0).reduce(f64::max)
    });
    let (low, high) =
        heights.fold((f64::MAX, 0.0), |(low, high): (f64, f64), y| (low.min(y), high.max(y)));
    high >= low * FAR_APART
}

pub(super) fn drawable(axis: Axis, value: f64) -> bool {
    value.is_finite() && value.abs() < 1e300 && (!logarithmic(axis) || value > 1e-300)
}

pub(super) struct Frame {
    pub x: Scale,
    pub y: Scale,
    pub x_ticks: Vec<Tick>,
    pub y_ticks: Vec<Tick>,
    /// Values of [`Spread::Each`] alternate between these rows of labels.
    pub rows: usize,
    /// Names are at the curves' ends, not in a key.
    pub direct: bool,
    /// Column, row and shortened text of each name.
    pub key: Vec<(f64, usize, String)>,
    pub width: f64,
    pub height: f64,
    pub category: bool,
}

impl Frame {
    pub(super) fn new(
        figure: &Figure,
        names: &[String],
        peaks: &[Option<f64>],
        room: Room,
    ) -> Frame {
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
        let (y_spread, y_ticks) = y_axis(figure, peaks, inner);
        let left =
            y_ticks.iter().map(|tick| text::width(&tick.label)).fold(0.0, f64::max).max(16.0)
                + 10.0;
        let right = width - label_room;
        let y = Scale { spread: y_spread, begin: bottom, end: top };
        let (x, x_ticks, rows) = x_axis(figure, left, right, width);
        let height = bottom + 21.0 + rows as f64 * LINE + 4.0;
        let category = matches!(x.spread, Spread::Each(_));
        Frame { x, y, x_ticks, y_ticks, rows, direct, key, width, height, category }
    }

    /// Left, top, right, bottom.
    pub(super) fn plot(&self) -> [f64; 4] {
        let pad = if self.category { 0.0 } else { X_PAD };
        [self.x.begin - pad, self.y.end, self.x.end + pad, self.y.begin]
    }

    pub(super) fn axes(&self, figure: &Figure, room: Room) -> Scene {
        let [left, top, right, bottom] = self.plot();
        let mut x_labels: Vec<Text> = Vec::new();
        for (place, tick) in self.x_ticks.iter().enumerate() {
            let row = if self.category { place % self.rows } else { 0 };
            let half = text::width(&tick.label) / 2.0;
            let x = self.x.at_or_end(tick.value).clamp(half, (self.width - half).max(half));
            x_labels.push(Text::new(
                x,
                bottom + 8.0 + text::ASCENT + row as f64 * LINE,
                "middle",
                &tick.label,
            ));
        }
        let y_labels = self
            .y_ticks
            .iter()
            .map(|tick| {
                Text::new(left - 8.0, self.y.at_or_end(tick.value) + 4.2, "end", &tick.label)
            })
            .collect();
        let below = bottom + 8.0 + text::ASCENT + self.rows as f64 * LINE;
        Scene {
            room: room.name(),
            width: self.width,
            height: tenth(self.height),
            plot: [left, top, right, bottom].map(tenth),
            grid: self.y_ticks.iter().map(|tick| tenth(self.y.at_or_end(tick.value))).collect(),
            ticks: self
                .x_ticks
                .iter()
                .filter_map(|tick| self.x.at(tick.value))
                .map(tenth)
                .collect(),
            x_labels,
            y_labels,
            x_title: Some(Text::new(right, below, "end", format!("{} →", axis_title(figure.x)))),
            y_title: Some(Text::new(
                0.0,
                top - 13.0,
                "start",
                format!("↑ {}", axis_title(figure.y)),
            )),
            ..Scene::default()
        }
    }
}

pub(super) const X_PAD: f64 = 12.0;

fn y_axis(figure: &Figure, peaks: &[Option<f64>], height: f64) -> (Spread, Vec<Tick>) {
    let all = figure.series.iter().flat_map(|series| &series.values);
    let mut values: Vec<f64> =
        all.clone().filter_map(|value| value.y).filter(|y| drawable(figure.y, *y)).collect();
    let highest = values.iter().copied().fold(0.0, f64::max);
    // A very wide interval would flatten everything else.
    let ends =
        all.filter_map(|value| value.interval_95).flatten().filter(|end| drawable(figure.y, *end));
    let ends: Vec<f64> = ends
        .map(|end| end.clamp(-highest * 2.0, highest * 2.0))
        .filter(|end| drawable(figure.y, *end))
        .collect();
    // On a logarithmic axis an end near zero would flatten everything else, too.
    let lowest = values.iter().copied().filter(|value| *value > 0.0).reduce(f64::min);
    let floor = lowest.filter(|_| logarithmic_y(figure)).map_or(f64::MIN, |low| low / 2.0);
    values.extend(ends.into_iter().map(|end| end.max(floor)));
    if logarithmic_y(figure) {
        values.retain(|value| *value > 0.0);
        let low = values.iter().copied().reduce(f64::min).unwrap_or(1.0);
        let high = values.iter().copied().reduce(f64::max).unwrap_or(10.0);
        let (low, high, ticks) = ticks::decades(figure.y, low, high, height);
        return (Spread::Log(low, high), ticks);
    }
    let mut high = values.iter().copied().fold(0.0, f64::max);
    for half in half_peaks(peaks) {
        if half.is_finite() && half < high * 2.5 {
            high = high.max(half * 1.05);
        }
    }
    let ticks = ticks::from_zero(figure.y, high, 5);
    let top = ticks.last().map_or(1.0, |tick| tick.value);
    (Spread::Linear(0.0, top), ticks)
}

fn x_axis(figure: &Figure, left: f64, right: f64, width: f64) -> (Scale, Vec<Tick>, usize) {
    let mut values: Vec<f64> = figure
        .series
        .iter()
        .flat_map(|series| &series.values)
        .map(|value| value.x)
        .filter(|x| drawable(figure.x, *x))
        .collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let padded = |spread| Scale { spread, begin: left + X_PAD, end: right - X_PAD };
    let ends = values.first().copied().zip(values.last().copied());
    if figure.x == Axis::OffsetBytes {
        let scale = Scale { spread: Spread::Each(values.clone()), begin: left, end: right };
        let labels: Vec<Tick> = values
            .iter()
            .map(|x| Tick { value: *x, label: crate::format::axis_value(figure.x, *x) })
            .collect();
        return staggered(scale, labels);
    }
    if logarithmic(figure.x) {
        let (low, high) = ends.unwrap_or((1.0, 1024.0));
        let (low, high) = if high / low < 1.5 { (low / 1.5, high * 1.5) } else { (low, high) };
        let scale = padded(Spread::Log(low, high));
        let mut ticks =
            ticks::powers_of_two(figure.x, low * 0.999, high * 1.001, scale.end - scale.begin);
        if ticks.is_empty() {
            ticks = ticks::of_values(figure.x, &values, |x| scale.at(x));
        }
        return (scale, ticks, 1);
    }
    let parts = ((right - left) / 90.0).clamp(2.0, 8.0) as usize;
    let high = if figure.x == Axis::Position { 1.0 } else { ends.map_or(1.0, |(_, high)| high) };
    let mut ticks = ticks::from_zero(figure.x, high.max(f64::MIN_POSITIVE), parts);
    let end =
        if figure.x == Axis::Position { high } else { ticks.last().map_or(1.0, |tick| tick.value) };
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

/// Uses at most three rows; the table has the rest.
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
