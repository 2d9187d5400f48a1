//! A table as a heat map.

use super::text::escape;
use std::fmt::Write;

const LEFT: f64 = 90.0;
const ROW: f64 = 26.0;
const TOP: f64 = 44.0;
const WIDTH: f64 = 860.0;
/// The accent's opacity at the highest value; text stays readable on both pages.
const STRONGEST: f64 = 0.55;

pub(crate) fn heat_map(
    title: &str,
    rows: &[String],
    columns: &[String],
    values: &[Vec<Option<f64>>],
    show: impl Fn(f64) -> String,
) -> String {
    let all = || values.iter().flatten().flatten().copied().filter(|value| *value > 0.0);
    let (low, high) = (all().fold(f64::MAX, f64::min).ln(), all().fold(f64::MIN, f64::max).ln());
    let height = TOP + ROW * rows.len() as f64 + 4.0;
    let width = (WIDTH - LEFT) / columns.len().max(1) as f64;
    // Writing to a String cannot fail.
    let mut out = format!(
        "<svg class=\"course\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{0}\">\n<text class=\"name\" x=\"{LEFT}\" y=\"14\">{0}</text>\n",
        escape(title).replace('"', "&quot;")
    );
    for (index, column) in columns.iter().enumerate() {
        let x = LEFT + width * (index as f64 + 0.5);
        let _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            TOP - 8.0,
            escape(column)
        );
    }
    for (index, (row, values)) in rows.iter().zip(values).enumerate() {
        let y = TOP + ROW * index as f64;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 10.0,
            y + 17.0,
            escape(row)
        );
        for (column, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            let x = LEFT + width * column as f64;
            let share = if *value <= 0.0 {
                0.0
            } else if high > low {
                (value.ln() - low) / (high - low)
            } else {
                1.0
            };
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"var(--accent)\" fill-opacity=\"{:.3}\"/><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                x + 1.0,
                y + 1.0,
                width - 2.0,
                ROW - 2.0,
                0.04 + share * STRONGEST,
                x + width / 2.0,
                y + 17.0,
                escape(&show(*value))
            );
        }
    }
    out + "</svg>\n"
}
