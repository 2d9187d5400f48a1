//! Parses one call.

use super::super::text::seconds;
use machine::Nanos;

pub(super) struct Call<'a> {
    pub name: &'a str,
    pub arguments: Vec<&'a str>,
    /// An error is Linux's negative number; `None` if the call did not return.
    pub result: Option<i64>,
    /// After the number: a new descriptor's path, or an error's name.
    pub result_text: &'a str,
    pub duration_ns: Option<Nanos>,
}

/// Skips strings; passes place, character and depth of brackets until `see` returns `true`.
fn outside(text: &str, mut see: impl FnMut(usize, u8, u32) -> bool) {
    let (mut depth, mut in_string, mut escaped) = (0_u32, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if see(at, byte, depth) {
            return;
        }
    }
}

impl<'a> Call<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Call<'a>> {
        let (name, rest) = text.split_once('(')?;
        // The end of the arguments: the first bracket that closes none of them. In the path of a
        // descriptor (`-y`), brackets may be unbalanced: the result is the end.
        let mut end = None;
        let mut commas = Vec::new();
        let mut in_path = false;
        let mut balance = 0_i32;
        outside(rest, |at, byte, _| {
            match byte {
                // `3</tmp/a>`; `<<` is a shift of flags.
                b'<' if at > 0 && rest.as_bytes()[at - 1].is_ascii_alphanumeric() => in_path = true,
                b'>' => in_path = false,
                _ if in_path => {}
                b'(' | b'[' | b'{' => balance += 1,
                b')' if balance == 0 => {
                    end = Some(at);
                    return true;
                }
                b')' | b']' | b'}' => balance -= 1,
                b',' if balance == 0 => commas.push(at),
                _ => {}
            }
            false
        });
        let end = end?;
        let mut arguments = Vec::with_capacity(commas.len() + 1);
        let mut from = 0;
        for comma in commas {
            arguments.push(rest[from..comma].trim());
            from = comma + 1;
        }
        arguments.push(rest[from..end].trim());
        let after = rest[end + 1..].trim_start().strip_prefix('=')?.trim();
        let (after, duration_ns) = match after.rsplit_once('<') {
            Some((before, time)) if time.ends_with('>') => {
                match seconds("time", &time[..time.len() - 1]) {
                    Ok(ns) => (before.trim_end(), Some(ns)),
                    Err(_) => (after, None),
                }
            }
            _ => (after, None),
        };
        let digits = after.find(|c: char| !(c.is_ascii_hexdigit() || c == '-' || c == 'x'));
        let (number, result_text) = after.split_at(digits.unwrap_or(after.len()));
        let value = match number.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok().map(|value| value as i64),
            None => number.parse::<i64>().ok(),
        };
        let result = value.map(|value| match value {
            -1 => -error_number(result_text.trim_start()),
            value => value,
        });
        Some(Call { name, arguments, result, result_text: result_text.trim(), duration_ns })
    }

    pub(super) fn number(&self, index: usize) -> Option<u64> {
        let text = self.arguments.get(index)?;
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// With the path, if the recording has it (`3</tmp/a>`).
    pub(super) fn descriptor(&self, index: usize) -> Option<(i32, Option<&'a str>)> {
        descriptor(self.arguments.get(index)?)
    }

    /// `None` if the string is cut or absent.
    pub(super) fn string(&self, index: usize) -> Option<String> {
        unescape(self.arguments.get(index)?)
    }

    pub(super) fn has_flag(&self, index: usize, flag: &str) -> bool {
        self.arguments.get(index).is_some_and(|flags| flags.split('|').any(|one| one == flag))
    }

    pub(super) fn vector_bytes(&self, index: usize) -> u64 {
        let Some(text) = self.arguments.get(index) else { return 0 };
        let mut sum: u64 = 0;
        const KEY: &str = "iov_len=";
        outside(text, |at, byte, _| {
            if byte == b'i' && text.as_bytes()[at..].starts_with(KEY.as_bytes()) {
                let rest = &text[at + KEY.len()..];
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                sum = sum.saturating_add(rest[..digits].parse().unwrap_or(0));
            }
            false
        });
        sum
    }
}

pub(super) fn descriptor(text: &str) -> Option<(i32, Option<&str>)> {
    let (number, path) = match text.split_once('<') {
        Some((number, path)) => (number, path.strip_suffix('>')),
        None => (text, None),
    };
    Some((number.parse().ok()?, path))
}

/// 5 (`EIO`) for others.
fn error_number(text: &str) -> i64 {
    match text.split_whitespace().next().unwrap_or("") {
        "EPERM" => 1,
        "ENOENT" => 2,
        "EINTR" | "ERESTARTSYS" => 4,
        "EBADF" => 9,
        "EAGAIN" => 11,
        "EACCES" => 13,
        "EEXIST" => 17,
        "EISDIR" => 21,
        "EINVAL" => 22,
        "ENOSPC" => 28,
        "ESPIPE" => 29,
        "EROFS" => 30,
        "EPIPE" => 32,
        "EOPNOTSUPP" => 95,
        _ => 5,
    }
}

fn unescape(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'v' => bytes.push(11),
            b'f' => bytes.push(12),
            first @ b'0'..=b'7' => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else {
                        break;
                    };
                    value = value * 8 + u32::from(digit - b'0');
                }
                bytes.push(value as u8);
            }
            other => bytes.push(other),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_arguments_a_result_and_a_duration() {
        let text = r#"openat(AT_FDCWD</root>, "/tmp/a\", (b", O_RDWR|O_CREAT|O_DIRECT, 0644) = 3</tmp/a(b> <0.000049>"#;
        let call = Call::parse(text).unwrap();
        assert_eq!((call.name, call.arguments.len(), call.result), ("openat", 4, Some(3)));
        assert_eq!(call.string(1).as_deref(), Some("/tmp/a\", (b"));
        assert!(call.has_flag(2, "O_DIRECT") && !call.has_flag(2, "O_DI"));
        assert_eq!((call.result_text, call.duration_ns), ("</tmp/a(b>", Some(49_000)));
        let text = r#"pwritev(3</tmp/a(b>, [{iov_base="x iov_len=9", iov_len=512}, {iov_base="y"..., iov_len=1024}], 2, 4096) = 1536 <0.1>"#;
        let call = Call::parse(text).unwrap();
        assert_eq!((call.vector_bytes(1), call.number(3)), (1536, Some(4096)));
        assert_eq!(call.descriptor(0), Some((3, Some("/tmp/a(b"))));
        let call = Call::parse("fsync(7) = -1 EINVAL (Invalid argument) <0.000003>").unwrap();
        assert_eq!(call.result, Some(-22));
        let call = Call::parse("exit_group(0) = ?").unwrap();
        assert_eq!(call.result, None);
        assert!(Call::parse("read(3, \"abc").is_none());
    }
}
