use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Text {
    pub x: f64,
    pub y: f64,
    /// `start`, `middle` or `end`.
    pub anchor: &'static str,
    pub text: String,
}

impl Text {
    pub(crate) fn new(x: f64, y: f64, anchor: &'static str, text: impl Into<String>) -> Text {
        Text { x: tenth(x), y: tenth(y), anchor, text: text.into() }
    }

    /// A tenth smaller on every side, as positions are rounded to a tenth.
    pub(super) fn rect(&self) -> super::labels::Rect {
        use super::text::{ASCENT, HEIGHT, width};
        let width = width(&self.text);
        let x = match self.anchor {
            "start" => self.x,
            "middle" => self.x - width / 2.0,
            _ => self.x - width,
        };
        super::labels::Rect {
            x: x + 0.1,
            y: self.y - ASCENT + 0.6,
            width: width - 0.2,
            height: HEIGHT - 1.2,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Stroke {
    pub x1: f64,
    pub y1: f64,
    pub x2: f64,
    pub y2: f64,
}

impl Stroke {
    pub(crate) fn new(x1: f64, y1: f64, x2: f64, y2: f64) -> Stroke {
        Stroke { x1: tenth(x1), y1: tenth(y1), x2: tenth(x2), y2: tenth(y2) }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Mark {
    pub x: f64,
    pub y: f64,
    /// The index in its curve.
    pub value: usize,
    pub doubtful: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct HalfMark {
    pub x: f64,
    pub y: f64,
    pub label: Option<Text>,
    pub leader: Option<Stroke>,
    pub interval: Option<Stroke>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Curve {
    pub name: String,
    pub light: String,
    pub dark: String,
    /// Empty for a solid line.
    pub dashes: &'static str,
    /// Around 0, 0.
    pub shape: &'static str,
    pub band: String,
    pub line: String,
    pub whiskers: String,
    pub marks: Vec<Mark>,
    /// Markers would hide the line, so they only react to the pointer.
    pub dense: bool,
    pub failed: Vec<Mark>,
    /// Outside the axis, drawn at its low end.
    pub below: Vec<Mark>,
    pub half_power: Option<HalfMark>,
    /// From the axis to the half-power point, unless half-peak lines cross the figure.
    pub half_line: Option<Stroke>,
    pub label: Option<Text>,
    pub leader: Option<Stroke>,
    pub key: Option<Mark>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct HalfLine {
    pub stroke: Stroke,
    pub label: Option<Text>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Scene {
    pub room: &'static str,
    pub width: f64,
    pub height: f64,
    /// Left, top, right, bottom.
    pub plot: [f64; 4],
    pub grid: Vec<f64>,
    pub ticks: Vec<f64>,
    pub x_labels: Vec<Text>,
    pub y_labels: Vec<Text>,
    pub x_title: Option<Text>,
    pub y_title: Option<Text>,
    pub half_lines: Vec<HalfLine>,
    pub curves: Vec<Curve>,
    pub empty: Option<Text>,
}

/// More digits are invisible and make the page longer.
pub(crate) fn tenth(value: f64) -> f64 {
    let rounded = (value * 10.0).round() / 10.0;
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// Outlines of about the same area around 0, 0: disc, square, triangle, diamond, inverted triangle,
/// hexagon.
pub(crate) const SHAPES: [&str; 6] = [
    "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0Z",
    "M-3-3H3V3H-3Z",
    "M0-4L3.9 2.8H-3.9Z",
    "M0-4.2L4.2 0L0 4.2L-4.2 0Z",
    "M0 4L3.9-2.8H-3.9Z",
    "M-1.9-3.3H1.9L3.8 0L1.9 3.3H-1.9L-3.8 0Z",
];

pub(crate) const DASHES: [&str; 3] = ["", "6 3", "2 3"];
