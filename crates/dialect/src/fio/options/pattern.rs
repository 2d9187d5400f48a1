//! `verify_pattern` and `buffer_pattern`.

use super::value::Reason;
use files::Input;
use std::io::Read;
use std::path::Path;

/// `%o` is an offset, little-endian.
const OFFSET_BYTES: usize = 8;

/// Repeating bytes, some replaced by the block's offset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fill {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl Fill {
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn put(&self, offset: u64, interval: usize, buffer: &mut [u8]) {
        let step = if interval == 0 { buffer.len().max(1) } else { interval };
        for (index, chunk) in buffer.chunks_mut(step).enumerate() {
            let base = offset.wrapping_add((index * step) as u64).to_le_bytes();
            for part in chunk.chunks_mut(self.bytes.len()) {
                part.copy_from_slice(&self.bytes[..part.len()]);
                let len = part.len();
                for &at in self.offsets.iter().filter(|at| **at < len) {
                    let end = len.min(at + OFFSET_BYTES);
                    part[at..end].copy_from_slice(&base[..end - at]);
                }
            }
        }
    }

    /// As [`Fill::put`] writes it.
    pub(crate) fn byte(&self, offset: u64, interval: usize, at: usize) -> u8 {
        // Without an interval the pattern continues over the whole buffer.
        let from = at.checked_div(interval).map_or(0, |chunk| chunk * interval);
        let place = (at - from) % self.bytes.len();
        match self.offsets.iter().find(|first| (**first..**first + OFFSET_BYTES).contains(&place)) {
            Some(first) => offset.wrapping_add(from as u64).to_le_bytes()[place - first],
            None => self.bytes[place],
        }
    }
}

/// fio 3.33 uses 512 bytes of a file, later versions all.
const MAX_PATTERN: usize = 1 << 20;

pub(crate) fn pattern(text: &str) -> Result<Fill, Reason> {
    let mut fill = Fill::default();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("%o") {
            fill.offsets.push(fill.bytes.len());
            fill.bytes.extend([0; OFFSET_BYTES]);
            rest = after;
            continue;
        }
        let (mut part, after) = pattern_part(rest).ok_or(PATTERN_HINT)?;
        fill.bytes.append(&mut part);
        rest = after;
    }
    match fill.bytes.len() {
        0 => Err(PATTERN_HINT.into()),
        len if len > MAX_PATTERN => {
            Err(format!("it has more than {MAX_PATTERN} bytes; write a shorter pattern"))
        }
        _ => Ok(fill),
    }
}

pub(crate) fn plain_pattern(text: &str) -> Result<Vec<u8>, Reason> {
    let fill = pattern(text)?;
    if fill.offsets.is_empty() {
        Ok(fill.bytes)
    } else {
        Err("only verify_pattern takes %o; leave it out here".into())
    }
}

const PATTERN_HINT: &str =
    "write it as 0xdeadbeef, \"text\", a number, 'file' or %o, or several of them";

/// Reading stops after [`MAX_PATTERN`].
const PATTERN_FILE: Input = Input::new("a file of a pattern", u64::MAX);

fn pattern_file(path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    PATTERN_FILE
        .open(Path::new(path))
        .ok()?
        .take(MAX_PATTERN as u64 + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes).filter(|bytes| !bytes.is_empty())
}

fn pattern_part(text: &str) -> Option<(Vec<u8>, &str)> {
    if let Some(named) = text.strip_prefix('\'') {
        let (path, after) = named.split_once('\'')?;
        return Some((pattern_file(path)?, after));
    }
    if let Some(quoted) = text.strip_prefix('"') {
        let (inside, after) = quoted.split_once('"')?;
        return (!inside.is_empty()).then(|| (inside.as_bytes().to_vec(), after));
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = digits.bytes().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(digits.len());
        let (digits, after) = digits.split_at(end);
        // An odd digit is the whole first byte.
        let even =
            if digits.len().is_multiple_of(2) { digits.to_string() } else { format!("0{digits}") };
        let bytes = (0..even.len())
            .step_by(2)
            .filter_map(|at| u8::from_str_radix(&even[at..at + 2], 16).ok());
        return (end > 0).then(|| (bytes.collect(), after));
    }
    // A decimal number ends where the next part begins; the 0 of 0x belongs to that part.
    let sign = usize::from(text.starts_with('-'));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = sign + digits;
    if digits > 1 && text[..end].ends_with('0') && text[end..].starts_with(['x', 'X']) {
        end -= 1;
    }
    let value: i32 = text[..end].parse().ok()?;
    // As in fio: the bytes it needs, little-endian; all four of a negative number.
    let needed = (4 - value.to_be_bytes().iter().take_while(|byte| **byte == 0).count()).max(1);
    Some((value.to_le_bytes()[..needed].to_vec(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_parse_to_bytes() {
        assert_eq!(plain_pattern("0xdeadbeef"), Ok(vec![0xde, 0xad, 0xbe, 0xef]));
        assert_eq!(
            (plain_pattern("0xabc"), plain_pattern("\"ab\""), plain_pattern("90")),
            (Ok(vec![0x0a, 0xbc]), Ok(vec![b'a', b'b']), Ok(vec![90]))
        );
        // As Debian's fio 3.33 writes them.
        assert_eq!(
            plain_pattern("\"abcd\"-120xdeadface"),
            Ok(b"abcd\xf4\xff\xff\xff\xde\xad\xfa\xce".to_vec())
        );
        assert_eq!(plain_pattern("\"a\"12\"b\""), Ok(vec![b'a', 12, b'b']));
        assert_eq!(
            (plain_pattern("70000"), plain_pattern("0")),
            (Ok(vec![0x70, 0x11, 1]), Ok(vec![0]))
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        let named = format!("'{}'1", file.path().display());
        assert!(plain_pattern(&named).unwrap_err().contains("write it as"), "an empty file");
        std::fs::write(&file, b"xyz").unwrap();
        assert_eq!(plain_pattern(&named), Ok(b"xyz\x01".to_vec()));
        for text in [
            "'/'",
            "'x",
            "0x",
            "\"\"",
            "",
            "\"a",
            "xyz",
            "0xg",
            "0x\u{e9}\u{e9}",
            "9999999999",
            "-",
        ] {
            assert!(plain_pattern(text).unwrap_err().contains("write it as"), "{text}");
        }
        for (bytes, taken) in [(513, true), (MAX_PATTERN, true), (MAX_PATTERN + 1, false)] {
            std::fs::write(&file, vec![7; bytes]).unwrap();
            let in_file = format!("'{}'", file.path().display());
            for long in [format!("0x{}", "ab".repeat(bytes)), in_file] {
                let read = plain_pattern(&long).map(|pattern| pattern.len());
                match taken {
                    true => assert_eq!(read, Ok(bytes)),
                    false => assert!(read.unwrap_err().contains("more than 1048576 bytes")),
                }
            }
        }
    }

    #[test]
    fn offsets_restart_with_each_request_or_interval() {
        // As fio 3.42 writes them: verify_pattern=1%o with and without verify_pattern_interval.
        let fill = pattern("1%o").unwrap();
        let mut block = [0u8; 1024];
        fill.put(4096, 512, &mut block);
        assert_eq!(block[..12], [1, 0, 0x10, 0, 0, 0, 0, 0, 0, 1, 0, 0x10]);
        assert_eq!(
            (block[504..512].to_vec(), block[512..516].to_vec()),
            (vec![1, 0, 0x10, 0, 0, 0, 0, 0], vec![1, 0, 0x12, 0])
        );
        fill.put(4096, 0, &mut block);
        assert_eq!(block[1017..1020], [1, 0, 0x10], "the pattern continues over the whole request");
        assert!(plain_pattern("%o").unwrap_err().contains("only verify_pattern"));
    }

    proptest! {
        #[test]
        fn byte_returns_what_put_wrote(text in "(%o|1|\"abc\"|\"x\"){1,5}", offset in 0u64..1 << 50, interval in 0usize..700) {
            let fill = pattern(&text).unwrap();
            let mut block = [0u8; 1500];
            fill.put(offset, interval, &mut block);
            for (at, byte) in block.iter().enumerate() {
                prop_assert_eq!(*byte, fill.byte(offset, interval, at), "byte {} of {}", at, text);
            }
        }
    }
}
