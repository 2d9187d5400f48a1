//! Text in SVG, whose width is estimated without the font.

use machine::text::printable;

pub(crate) const SIZE: f64 = 12.0;
pub(crate) const HEIGHT: f64 = 15.0;
pub(crate) const ASCENT: f64 = 11.5;

/// Not safe in attributes.
pub(crate) fn escape(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An upper bound at [`SIZE`], from DejaVu Sans, wider than the system fonts of today's desktops.
pub(crate) fn width(text: &str) -> f64 {
    text.chars().map(advance).sum::<f64>() * SIZE
}

fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' => 0.28,
        ' ' | ',' | '.' | ':' | ';' | '|' | '!' => 0.34,
        '/' | '\\' => 0.34,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '-' | 'I' | 'J' => 0.42,
        'm' | 'M' | 'W' | '%' | '@' | '…' | '—' => 1.0,
        'w' | '≤' | '≥' | '×' | '±' | '+' | '<' | '>' | '=' | '~' => 0.84,
        'A'..='Z' | '&' => 0.79,
        c if c.is_ascii() => 0.64,
        // Other scripts: a full square is an upper bound.
        c if u32::from(c) < 0x0370 => 0.8,
        _ => 1.05,
    }
}

pub(crate) fn fit(text: &str, room: f64) -> String {
    if width(text) <= room {
        return text.into();
    }
    let mut out = String::new();
    let mut used = width("…");
    for c in text.chars() {
        used += advance(c) * SIZE;
        if used > room {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out + "…"
}

/// Cuts the beginning, such as a path's directories.
pub(crate) fn ending(text: &str, room: f64) -> String {
    let backwards = |text: &str| text.chars().rev().collect::<String>();
    if width(text) <= room { text.into() } else { backwards(&fit(&backwards(text), room)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_fitted_text_fits(text in "\\PC{0,80}", room in 15.0f64..400.0) {
            prop_assert!(width(&fit(&text, room)) <= room);
        }
    }

    #[test]
    fn a_text_that_fits_is_unchanged() {
        assert_eq!(fit("depth 8", 100.0), "depth 8");
        assert_eq!(fit("write, to stable storage", 75.0), "write, to…");
        assert_eq!(ending("/data/base/16384/2619", 75.0), "…384/2619");
    }
}
