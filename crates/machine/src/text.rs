//! Makes names safe to display: they may contain terminal escapes, line breaks or bidirectional
//! controls.

use std::io::{self, Write};
use std::path::Path;

/// Matches terminal controls, lookalikes, and what HTML forbids.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
        || matches!(c, '\u{fdd0}'..='\u{fdef}')
}

/// Escapes hidden characters (`\u{1b}`); line breaks and tabs become spaces.
///
/// ```
/// assert_eq!(machine::text::printable("a\u{1b}[2J\nb"), "a\\u{1b}[2J b");
/// ```
pub fn printable(text: &str) -> String {
    escaped(text, |c| if matches!(c, '\n' | '\r' | '\t') { Some(' ') } else { None })
}

/// Escapes as [`printable`], but keeps line feeds and tabs.
pub fn printable_lines(text: &str) -> String {
    escaped(text, |c| if matches!(c, '\n' | '\t') { Some(c) } else { None })
}

/// Replaces bytes that are not UTF-8, which serde refuses.
pub fn serialize_path<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

fn escaped(text: &str, space: impl Fn(char) -> Option<char>) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match space(c) {
            Some(space) => out.push(space),
            None if is_hidden(c) => out.extend(c.escape_unicode()),
            None => out.push(c),
        }
    }
    out
}

/// As [`printable_lines`]; each call must contain whole characters.
#[derive(Debug)]
pub struct PrintableWriter<W>(pub W);

impl<W: Write> Write for PrintableWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .write_all(printable_lines(&String::from_utf8_lossy(bytes)).as_bytes())
            .map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_visible() {
        assert_eq!(
            printable("a\u{1b}[31mb\nc\u{202e}d\u{0}é漢"),
            "a\\u{1b}[31mb c\\u{202e}d\\u{0}é漢"
        );
        let mut out = PrintableWriter(Vec::new());
        write!(out, "a\u{1b}[2J\n\tb\u{7}").unwrap();
        assert_eq!(out.0, b"a\\u{1b}[2J\n\tb\\u{7}");
    }
}
