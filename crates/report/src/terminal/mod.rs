//! Widths are columns; `colour` adds ANSI sequences, which change no width.

mod details;
mod interference;
mod ladder;
mod metadata;
mod one_point;
mod over_time;
mod points;
mod screen;
mod tables;

pub use details::details;
pub use ladder::ladder;
pub use points::points;
pub use screen::answer;
pub use tables::tables;
pub(crate) use tables::{at, xs};

use anstyle::{AnsiColor, Style};
use machine::text::printable;
pub use metadata::{metadata, metadata_by_clients};
use unicode_width::UnicodeWidthStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Quiet,
    Doubt,
    Failed,
    Good,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().bold(),
            Tone::Quiet => Style::new().dimmed(),
            Tone::Doubt => AnsiColor::Yellow.on_default(),
            Tone::Failed => AnsiColor::Red.on_default(),
            Tone::Good => AnsiColor::Green.on_default().bold(),
        }
    }
}

pub(crate) fn paint(tone: Tone, text: &str, colour: bool) -> String {
    if !colour || tone == Tone::Plain || text.is_empty() {
        return text.into();
    }
    let style = tone.style();
    format!("{style}{text}{style:#}")
}

pub(crate) type Line = Vec<(Tone, String)>;

pub(crate) fn render(lines: &[Line], width: usize, colour: bool) -> String {
    let mut out = String::new();
    for line in lines {
        let mut left = width;
        let last = line.iter().rposition(|(_, text)| !text.trim_end().is_empty()).unwrap_or(0);
        for (place, (tone, text)) in line.iter().take(last + 1).enumerate() {
            let text = fit(text, left);
            left -= text.width();
            let text = if place == last { text.trim_end() } else { &text };
            out.push_str(&paint(*tone, text, colour));
        }
        out.push('\n');
    }
    out
}

pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        // Measure the whole: some characters widen the one before them.
        if out.width() + 1 > width {
            out.pop();
            break;
        }
    }
    if width > 0 {
        out.push('…');
    }
    out
}

const UNITS: [&str; 17] = [
    "%", "B", "KiB", "MiB", "GiB", "TiB", "MiB/s", "MB/s", "GB/s", "GiB/s", "IOPS", "ns", "us",
    "ms", "s", "min", "h",
];

/// A number and its unit are one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_end_matches([',', '.', ';', ':', ')']);
        match words.last_mut() {
            Some(number)
                if UNITS.contains(&bare) && number.ends_with(|c: char| c.is_ascii_digit()) =>
            {
                *number = format!("{number} {word}");
            }
            _ => words.push(word.into()),
        }
    }
    words
}

pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = vec![String::new()];
    for word in words(&printable(text)) {
        let used = lines.last().map_or(0, |line| line.width());
        if used > 0 && used + 1 + word.width() > width {
            lines.push(String::new());
        } else if used > 0 {
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
        }
        for c in word.chars() {
            let Some(line) = lines.last_mut() else { continue };
            line.push(c);
            if line.width() > width {
                line.pop();
                lines.push(c.into());
            }
        }
    }
    lines
}

pub(crate) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// The first `left` columns align left, the others right.
pub fn table(
    header: &[String],
    rows: &[Vec<String>],
    left: usize,
    width: usize,
    colour: bool,
) -> String {
    use comfy_table::{
        CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle,
    };
    const LINES: ContentLineStyle = ContentLineStyle::none().junction(' ');
    const RULE: LineStyle = LineStyle::none().fill('─').junction('─');
    const STYLE: TableStyle =
        TableStyle::new().header_lines(LINES).header_separator(RULE).content_lines(LINES);
    let mut table = Table::new();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width as u16);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    let last = header.len().saturating_sub(1);
    for (place, column) in table.column_iter_mut().enumerate() {
        // The line between columns is drawn as a space.
        column.set_padding((0, if place == last { 0 } else { 1 }));
        column.set_cell_alignment(if place < left {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        });
    }
    let mut out = String::new();
    let mut in_header = true;
    for line in table.lines() {
        let line = line.trim_end();
        let rule = line.starts_with('─');
        let tone = match (in_header, rule) {
            (_, true) => Tone::Quiet,
            (true, false) => Tone::Strong,
            (false, false) => Tone::Plain,
        };
        in_header &= !rule;
        out.push_str(&paint(tone, line, colour));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wraps_at_spaces_and_breaks_long_words() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("abcdefghijklmnop q", 8), ["abcdefgh", "ijklmnop", "q"]);
        assert_eq!(wrap("reach 90 % of 12 MiB/s.", 10), ["reach 90 %", "of", "12 MiB/s."]);
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        // A keycap's mark makes the digit before it two columns wide.
        assert_eq!(fit("0\u{fe0f}0\u{fe0f}0\u{fe0f}", 4), "0\u{fe0f}0…");
    }

    #[test]
    fn colour_changes_no_text() {
        let lines =
            vec![vec![(Tone::Strong, "Peak ".to_string()), (Tone::Doubt, "doubtful".to_string())]];
        let coloured = render(&lines, 80, true);
        assert!(coloured.contains("\u{1b}["));
        assert_eq!(without_colour(&coloured), render(&lines, 80, false));
    }

    fn without_colour(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('\u{1b}') {
            out.push_str(&rest[..start]);
            rest = &rest[start..];
            rest = &rest[rest.find('m').map_or(rest.len(), |end| end + 1)..];
        }
        out + rest
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_asked(text in "\\PC{0,200}", width in 8usize..120) {
            for line in wrap(&text, width) {
                prop_assert!(line.width() <= width);
            }
            prop_assert!(fit(&text, width).width() <= width);
        }
    }
}
