//! A rate over two sizes: columns along the floor's front edge, rows along its sides.

use super::Room;
use super::colour::{self, Pair};
use super::frame::LINE;
use super::scene::{Stroke, Text, tenth};
use super::{text, ticks};
use crate::surfaces::Surface;
use machine::units::show_size;
use results::Axis;
use serde::Serialize;

/// Colour steps from zero to the maximum rate.
pub(crate) const BANDS: usize = 16;

struct Measures {
    left: f64,
    along: f64,
    skew: f64,
    rise: f64,
    height: f64,
}

impl Measures {
    fn of(room: Room) -> Measures {
        match room {
            Room::Wide => {
                Measures { left: 66.0, along: 410.0, skew: 150.0, rise: 140.0, height: 190.0 }
            }
            Room::Narrow => {
                Measures { left: 58.0, along: 180.0, skew: 70.0, rise: 90.0, height: 150.0 }
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Facet {
    pub path: String,
    pub band: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Peak {
    pub x: f64,
    pub y: f64,
    pub row: usize,
    /// The index in its row.
    pub value: usize,
    pub band: usize,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Layer {
    pub facets: Vec<Facet>,
    pub line: String,
    pub peaks: Vec<Peak>,
    pub cliff: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct SurfaceScene {
    pub room: &'static str,
    pub width: f64,
    pub height: f64,
    pub grid: Vec<String>,
    pub base: String,
    pub labels: Vec<Text>,
    pub titles: Vec<Text>,
    /// From the back to the front.
    pub layers: Vec<Layer>,
    pub cliff_label: Option<Text>,
    pub cliff_leader: Option<Stroke>,
}

pub(crate) fn bands() -> Vec<Pair> {
    (0..BANDS).map(|band| colour::ramp(band as f64 / (BANDS - 1) as f64)).collect()
}

struct Places<'a> {
    surface: &'a Surface,
    m: Measures,
    base: f64,
    top: f64,
    max: f64,
}

impl Places<'_> {
    /// Column and row may be fractional.
    fn at(&self, column: f64, row: f64, rate: f64) -> (f64, f64) {
        let u = share(column, self.surface.columns.len());
        // The last row is in front: rates after the cliff are low and hide nothing.
        let v = 1.0 - share(row, self.surface.rows.len());
        let up = (rate / self.max).clamp(0.0, 1.0) * self.m.height;
        (self.m.left + u * self.m.along + v * self.m.skew, self.base - v * self.m.rise - up)
    }

    fn rate(&self, row: usize, column: usize) -> Option<f64> {
        self.surface
            .bytes_per_s
            .get(row)?
            .get(column)
            .copied()
            .flatten()
            .filter(|rate| rate.is_finite() && *rate >= 0.0)
    }

    fn band(&self, rate: f64) -> usize {
        ((rate / self.max * BANDS as f64) as usize).min(BANDS - 1)
    }

    fn vertex(&self, row: usize, column: usize) -> Option<(f64, f64)> {
        self.rate(row, column).map(|rate| self.at(column as f64, row as f64, rate))
    }
}

fn share(place: f64, count: usize) -> f64 {
    if count < 2 { 0.5 } else { place / (count - 1) as f64 }
}

fn path(points: &[(f64, f64)], closed: bool) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        path += &format!("{}{} {}", if index == 0 { "M" } else { "L" }, tenth(*x), tenth(*y));
    }
    if closed { path + "Z" } else { path }
}

pub(crate) fn lay_out_surface(surface: &Surface, room: Room) -> SurfaceScene {
    let m = Measures::of(room);
    let max = surface
        .bytes_per_s
        .iter()
        .flatten()
        .flatten()
        .copied()
        .filter(|rate| rate.is_finite())
        .fold(0.0, f64::max);
    let heights = ticks::from_zero(Axis::BytesPerS, max, 4);
    let max = heights.last().map_or(1.0, |tick| tick.value).max(f64::MIN_POSITIVE);
    let top = 26.0;
    let base = top + m.height + m.rise;
    let places = Places { surface, m, base, top, max };
    let mut scene = SurfaceScene {
        room: room.name(),
        width: room.width(),
        height: tenth(base + 12.0 + 2.0 * LINE + 6.0),
        base: path(
            &[
                places.at(0.0, 0.0, 0.0),
                places.at(0.0, (surface.rows.len().max(1) - 1) as f64, 0.0),
            ],
            false,
        ),
        ..SurfaceScene::default()
    };
    axes(&mut scene, &places, &heights, room);
    scene.layers = (0..surface.rows.len()).map(|row| layer(&places, row)).collect();
    cliff(&mut scene, &places, room);
    scene
}

fn axes(scene: &mut SurfaceScene, places: &Places<'_>, heights: &[ticks::Tick], room: Room) {
    let m = &places.m;
    let corner = |u: f64, v: f64, up: f64| {
        (m.left + u * m.along + v * m.skew, places.base - v * m.rise - up)
    };
    for tick in heights {
        let up = tick.value / places.max * m.height;
        scene
            .grid
            .push(path(&[corner(0.0, 0.0, up), corner(0.0, 1.0, up), corner(1.0, 1.0, up)], false));
        let (x, y) = corner(0.0, 0.0, up);
        scene.labels.push(Text::new(x - 8.0, y + 4.2, "end", &tick.label));
    }
    for place in [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
        scene.grid.push(path(
            &[corner(place.0, place.1, 0.0), corner(place.0, place.1, m.height)],
            false,
        ));
    }
    scene.base =
        path(&[corner(0.0, 0.0, 0.0), corner(1.0, 0.0, 0.0), corner(1.0, 1.0, 0.0)], false);
    let mut free_from = f64::NEG_INFINITY;
    for (column, bytes) in places.surface.columns.iter().enumerate() {
        let u = share(column as f64, places.surface.columns.len());
        let (label, (x, y)) = (show_size(*bytes), corner(u, 0.0, 0.0));
        let half = text::width(&label) / 2.0;
        if x - half >= free_from {
            scene.labels.push(Text::new(x, y + 8.0 + text::ASCENT, "middle", label));
            free_from = x + half + 8.0;
        }
    }
    let mut free_below = f64::INFINITY;
    for (row, bytes) in places.surface.rows.iter().enumerate().rev() {
        let v = 1.0 - share(row as f64, places.surface.rows.len());
        let (x, y) = corner(1.0, v, 0.0);
        if y <= free_below {
            scene.labels.push(Text::new(x + 9.0, y + 4.2 - 2.0, "start", show_size(*bytes)));
            free_below = y - text::HEIGHT - 1.0;
        }
    }
    let below = places.base + 8.0 + LINE + text::ASCENT;
    let (end, _) = corner(1.0, 0.0, 0.0);
    scene.titles.push(Text::new(
        0.0,
        places.top - 13.0,
        "start",
        format!("↑ {}", crate::format::rate_unit()),
    ));
    scene.titles.push(Text::new(end, below, "end", "record size →"));
    let room_left = room.width() - end - 14.0;
    if text::width("↙ file size") <= room_left {
        scene.titles.push(Text::new(end + 14.0, below, "start", "↙ file size"));
    }
}

fn layer(places: &Places<'_>, row: usize) -> Layer {
    let columns = places.surface.columns.len();
    let mut layer = Layer::default();
    if row > 0 {
        for column in 1..columns {
            let corners =
                [(row - 1, column - 1), (row - 1, column), (row, column), (row, column - 1)];
            let there: Vec<(f64, (f64, f64))> = corners
                .iter()
                .filter_map(|&(row, column)| {
                    Some((places.rate(row, column)?, places.vertex(row, column)?))
                })
                .collect();
            if there.len() >= 3 {
                let mean = there.iter().map(|(rate, _)| rate).sum::<f64>() / there.len() as f64;
                let points: Vec<(f64, f64)> = there.iter().map(|(_, point)| *point).collect();
                layer.facets.push(Facet { path: path(&points, true), band: places.band(mean) });
            }
        }
    }
    let mut stretch: Vec<(f64, f64)> = Vec::new();
    let mut value = 0;
    for column in 0..=columns {
        match places.vertex(row, column).filter(|_| column < columns) {
            Some((x, y)) => {
                stretch.push((x, y));
                let band = places.band(places.rate(row, column).unwrap_or(0.0));
                layer.peaks.push(Peak { x: tenth(x), y: tenth(y), row, value, band });
                value += 1;
            }
            None => {
                if stretch.len() > 1 {
                    layer.line += &path(&stretch, false);
                }
                stretch.clear();
            }
        }
    }
    layer
}

fn cliff(scene: &mut SurfaceScene, places: &Places<'_>, room: Room) {
    let Some(after) = places.surface.cliff.as_ref().map(|cliff| cliff.first_slow_row) else {
        return;
    };
    let Some(layer) = scene.layers.get_mut(after).filter(|_| after > 0) else { return };
    let mut points = Vec::new();
    for column in 0..places.surface.columns.len() {
        if let (Some(fast), Some(slow)) =
            (places.rate(after - 1, column), places.rate(after, column))
        {
            points.push(places.at(column as f64, after as f64 - 0.5, (fast + slow) / 2.0));
        }
    }
    // A line along one value is a dash across it.
    if let [(x, y)] = points[..] {
        points = vec![(x - 8.0, y), (x + 8.0, y)];
    }
    layer.cliff = path(&points, false);
    if room == Room::Wide {
        let edge =
            places.at((places.surface.columns.len().max(1) - 1) as f64, after as f64 - 0.5, 0.0);
        let x = edge.0.max(places.m.left + places.m.along * 0.75) + 9.0 + 74.0;
        scene.cliff_label = Some(Text::new(x, edge.1 + 4.2, "start", "cliff"));
        scene.cliff_leader = Some(Stroke::new(edge.0, edge.1, x - 4.0, edge.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::Cliff;
    use proptest::prelude::*;

    fn surface(rows: usize, columns: usize, rate: impl Fn(usize, usize) -> Option<f64>) -> Surface {
        Surface {
            title: "Reader".into(),
            rows: (0..rows).map(|row| 65_536u64 << row).collect(),
            columns: (0..columns).map(|column| 4096u64 << column).collect(),
            bytes_per_s: (0..rows)
                .map(|row| (0..columns).map(|column| rate(row, column)).collect())
                .collect(),
            spread_percent: Vec::new(),
            cliff: None,
        }
    }

    proptest! {
        #[test]
        fn no_text_covers_another_and_all_is_inside(rows in 1usize..15, columns in 1usize..14, max in 1e3f64..1e11, cliff in 0usize..15) {
            let mut surface = surface(rows, columns, |row, column| (column <= row + 4).then_some(max / (1.0 + row as f64)));
            surface.cliff = (1..rows).contains(&cliff).then(|| Cliff { first_slow_row: cliff, sentence: String::new() });
            for room in [Room::Wide, Room::Narrow] {
                let scene = lay_out_surface(&surface, room);
                let texts: Vec<&Text> = scene.labels.iter().chain(&scene.titles).chain(&scene.cliff_label).collect();
                for (place, text) in texts.iter().enumerate() {
                    let a = text.rect();
                    prop_assert!(a.x >= -1.0 && a.x + a.width <= scene.width + 1.0 && a.y >= -1.0 && a.y + a.height <= scene.height + 1.0, "{text:?} lies outside");
                    for other in &texts[..place] {
                        prop_assert!(!a.overlaps(&other.rect()), "{text:?} covers {other:?}");
                    }
                }
                for peak in scene.layers.iter().flat_map(|layer| &layer.peaks) {
                    prop_assert!(peak.x >= 0.0 && peak.x <= scene.width && peak.y >= 0.0 && peak.y <= scene.height);
                }
            }
        }
    }

    #[test]
    fn every_value_is_drawn_front_last() {
        let scene = lay_out_surface(
            &surface(3, 4, |row, column| {
                (row + 1 >= column).then_some((row * 10 + column + 1) as f64 * 1e6)
            }),
            Room::Wide,
        );
        let peaks: Vec<(usize, usize)> =
            scene.layers.iter().map(|layer| (layer.peaks.len(), layer.facets.len())).collect();
        // Rows of two, three and four columns; a facet needs three of its corners.
        assert_eq!(peaks, [(2, 0), (3, 2), (4, 3)]);
        let front = &scene.layers[2].peaks[0];
        let back = &scene.layers[0].peaks[0];
        assert!(front.x < back.x, "the back is offset to the right");
        assert!(front.band > back.band, "a higher rate has a later colour");
        let lone = lay_out_surface(&surface(1, 1, |_, _| Some(5e6)), Room::Wide);
        assert_eq!((lone.layers[0].peaks.len(), lone.layers[0].line.as_str()), (1, ""));
    }

    #[test]
    fn the_cliff_runs_between_its_rows() {
        let mut surface = surface(4, 3, |row, _| Some(if row < 2 { 8e9 } else { 1e9 }));
        surface.cliff = Some(Cliff { first_slow_row: 2, sentence: String::new() });
        let scene = lay_out_surface(&surface, Room::Wide);
        assert_eq!(
            scene.layers.iter().map(|layer| !layer.cliff.is_empty()).collect::<Vec<_>>(),
            [false, false, true, false]
        );
        assert_eq!(scene.cliff_label.map(|label| label.text), Some("cliff".into()));
    }
}
