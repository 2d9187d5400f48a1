//! Memory rates: a dot per repeat, a bar at the mean.

use super::colour;
use super::scale::{Scale, Spread};
use super::scene::{Curve, Mark, SHAPES, Scene, Text, tenth};
use super::{Room, text, ticks};
use crate::format::{rate, rate_unit};
use machine::MemoryUse;
use results::Axis;

const ROW: f64 = 26.0;

pub(crate) fn name(usage: &MemoryUse) -> String {
    let threads = crate::format::plural(usage.threads as usize, "thread");
    format!("{}, {threads}", usage.kind.name())
}

pub(crate) fn lay_out(memory: &[MemoryUse], room: Room) -> Scene {
    let width = room.width();
    let rates = memory
        .iter()
        .flat_map(|usage| &usage.rates_bytes_per_s)
        .copied()
        .filter(|rate| rate.is_finite() && *rate < 1e300);
    let max = rates.fold(0.0, f64::max);
    let named = |usage: &MemoryUse| match room {
        Room::Wide => text::fit(&name(usage), width * 0.4),
        // Read and write must not both be cut to the same words; the table has the whole names.
        Room::Narrow => {
            text::fit(&format!("{} ×{}", usage.kind.name(), usage.threads), width * 0.45)
        }
    };
    let names: Vec<String> = memory.iter().map(named).collect();
    let means: Vec<Option<f64>> = memory.iter().map(MemoryUse::mean_bytes_per_s).collect();
    let shown: Vec<String> =
        means.iter().map(|value| value.map_or("failed".into(), rate)).collect();
    let widest =
        |texts: &[String]| texts.iter().map(|label| text::width(label)).fold(0.0, f64::max);
    let left = widest(&names) + 12.0;
    let right = (width - widest(&shown).max(30.0) - 18.0).max(left + 40.0);
    let (top, bottom) = (6.0, 6.0 + memory.len().max(1) as f64 * ROW);
    let mut axis = ticks::from_zero(Axis::BytesPerS, max, if room == Room::Wide { 5 } else { 3 });
    let end = axis.last().map_or(1.0, |tick| tick.value);
    let scale = Scale { spread: Spread::Linear(0.0, end), begin: left, end: right };
    let mut free_from = f64::NEG_INFINITY;
    axis.retain(|tick| {
        let (x, half) = (scale.at_or_end(tick.value), text::width(&tick.label) / 2.0);
        let free = x - half >= free_from;
        if free {
            free_from = x + half + 8.0;
        }
        free
    });
    let mut scene = Scene {
        room: room.name(),
        width,
        height: bottom + 44.0,
        plot: [left, top, right, bottom].map(tenth),
        ticks: axis.iter().filter_map(|tick| scale.at(tick.value)).map(tenth).collect(),
        x_labels: axis
            .iter()
            .map(|tick| {
                Text::new(
                    scale.at_or_end(tick.value),
                    bottom + 8.0 + text::ASCENT,
                    "middle",
                    &tick.label,
                )
            })
            .collect(),
        x_title: Some(Text::new(
            right,
            bottom + 25.0 + text::ASCENT,
            "end",
            format!("{} →", rate_unit()),
        )),
        ..Scene::default()
    };
    let pair = colour::of_curve(0, 1, false);
    for (place, usage) in memory.iter().enumerate() {
        let y = top + (place as f64 + 0.5) * ROW;
        scene.grid.push(tenth(y));
        scene.y_labels.push(Text::new(left - 10.0, y + 4.2, "end", &names[place]));
        let mut curve = Curve {
            name: names[place].clone(),
            light: pair.light.clone(),
            dark: pair.dark.clone(),
            shape: SHAPES[0],
            ..Curve::default()
        };
        for (value, rate) in usage.rates_bytes_per_s.iter().enumerate() {
            if let Some(x) = scale.at(*rate) {
                curve.marks.push(Mark { x: tenth(x), y: tenth(y), value, doubtful: false });
            }
        }
        if let Some(x) = means[place].and_then(|value| scale.at(value)) {
            curve.line = format!("M{} {}V{}", tenth(x), tenth(y - 8.0), tenth(y + 8.0));
        }
        curve.label = Some(Text::new(right + 14.0, y + 4.2, "start", &shown[place]));
        scene.curves.push(curve);
    }
    scene
}
