//! Errors are only reasons; callers add the option's name and location.

pub(crate) type Reason = String;

const TOO_LARGE: &str = "it is too large; write less than 2^64";

fn digits(text: &str) -> Result<(u64, &str), Reason> {
    if text.starts_with('-') {
        return Err("it is negative; write 0 or more".into());
    }
    let (radix, text) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(rest) => (16, rest),
        None => (10, text),
    };
    let end = text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len());
    if end == 0 {
        return Err("it does not begin with a number; write digits first".into());
    }
    let number = u64::from_str_radix(&text[..end], radix).map_err(|_| TOO_LARGE.to_string())?;
    Ok((number, &text[end..]))
}

/// As in fio, `kib` has the other base: 1000 if `kb_base` is 1024.
fn multiplier(unit: &str, kb_base: u64) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let base = if unit.ends_with("ib") { 2024 - kb_base } else { kb_base };
    let power = match unit.strip_suffix("ib").or(unit.strip_suffix(['b', 'i'])).unwrap_or(&unit) {
        "" if matches!(unit.as_str(), "" | "b") => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    Some(base.pow(power))
}

pub(crate) fn number(text: &str, min: u64, max: u64) -> Result<u64, Reason> {
    let (number, rest) = digits(text)?;
    // A percentage may have its sign.
    if !(rest.is_empty() || (rest == "%" && max == 100)) {
        return Err("it is not a whole number; write only digits".into());
    }
    within(number, min, max)
}

/// As in fio, a number may have a size's suffix.
pub(crate) fn count(text: &str, kb_base: u64, min: u64, max: u64) -> Result<u64, Reason> {
    let (digits, unit) = digits(text)?;
    match multiplier(unit, kb_base) {
        Some(times) => within(digits.checked_mul(times).ok_or(TOO_LARGE)?, min, max),
        None => number(text, min, max),
    }
}

fn within(number: u64, min: u64, max: u64) -> Result<u64, Reason> {
    if number < min || number > max {
        return Err(format!("it is too small or too large; write a number from {min} to {max}"));
    }
    Ok(number)
}

pub(crate) fn size(text: &str, kb_base: u64) -> Result<u64, Reason> {
    let (number, unit) = digits(text)?;
    let Some(times) = multiplier(unit, kb_base) else {
        return Err(if unit.starts_with('.') {
            "it has a fraction; write a whole number of a smaller unit".into()
        } else {
            "its unit is unknown; write 4096, 4k, 16m or 2g".into()
        });
    };
    number.checked_mul(times).ok_or_else(|| TOO_LARGE.into())
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Bytes(u64),
    Percent(u8),
}

impl Amount {
    pub(crate) fn is_nothing(self) -> bool {
        matches!(self, Amount::Bytes(0) | Amount::Percent(0))
    }

    /// `whole` is the file's length.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }
}

pub(crate) fn amount(text: &str, kb_base: u64) -> Result<Amount, Reason> {
    // Programs that write job files with an INI library double the percent sign.
    match text.strip_suffix("%%").or_else(|| text.strip_suffix('%')) {
        Some(percent) => Ok(Amount::Percent(number(percent, 0, 100)? as u8)),
        None => size(text, kb_base).map(Amount::Bytes),
    }
}

/// `1m30s`; `unit_ns` is the default unit.
pub(crate) fn time_ns(text: &str, unit_ns: u64) -> Result<u64, Reason> {
    const CENTURY_NS: u64 = 3_155_760_000_000_000_000;
    let mut rest = text;
    let mut sum = 0u64;
    loop {
        let (number, after) = digits(rest)?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let unit = match after[..end].to_ascii_lowercase().as_str() {
            "" => unit_ns,
            "us" | "usec" => 1_000,
            "ms" | "msec" => 1_000_000,
            "s" | "sec" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            _ => return Err("its unit is unknown; write 90s, 3m, 250ms or 10us".into()),
        };
        sum = number
            .checked_mul(unit)
            .and_then(|part| sum.checked_add(part))
            .filter(|&ns| ns <= CENTURY_NS)
            .ok_or("it is longer than a century; write less")?;
        rest = &after[end..];
        if rest.is_empty() {
            return Ok(sum);
        }
    }
}

/// As in fio, only the leading number counts: `direct=1G` is on.
pub(crate) fn switch(text: Option<&str>) -> Result<bool, Reason> {
    let Some(text) = text else { return Ok(true) };
    match digits(text).map(|(number, _)| number) {
        Ok(0) => Ok(false),
        Ok(1) => Ok(true),
        _ => Err("it is neither 0 nor 1; write one of these".into()),
    }
}

/// read,write,trim; a missing value repeats the one before.
pub(crate) fn by_direction<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, Reason>,
) -> Result<[T; 2], Reason> {
    let parts = parts(text)?;
    let read = parse(parts[0])?;
    let write = match parts.get(1) {
        Some(part) if !part.is_empty() => parse(part)?,
        _ => read.clone(),
    };
    if let Some(trim) = parts.get(2).filter(|part| !part.is_empty()) {
        parse(trim)?;
    }
    Ok([read, write])
}

/// As in fio, a missing value is the one before it, and an empty one stays as it was: `None`.
pub(crate) fn by_direction_with_trims<T: Clone>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, Reason>,
) -> Result<[Option<T>; 3], Reason> {
    let parts = parts(text)?;
    let mut values = [None, None, None];
    for place in 0..3 {
        values[place] = match parts.get(place) {
            Some(&"") => None,
            Some(part) => Some(parse(part)?),
            None => values[place - 1].clone(),
        };
    }
    Ok(values)
}

fn parts(text: &str) -> Result<Vec<&str>, Reason> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err("it has more than three values; write read,write,trim".into());
    }
    Ok(parts)
}

pub(crate) fn ends<T: PartialOrd + Copy>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, Reason>,
) -> Result<[T; 2], Reason> {
    match text.split_once('-').filter(|(low, _)| !low.is_empty()) {
        None => parse(text).map(|value| [value, value]),
        Some((low, high)) => {
            let (low, high) = (parse(low)?, parse(high)?);
            if low <= high {
                Ok([low, high])
            } else {
                Err("its first end is above its second; write the smaller one first".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_use_fios_units() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4kb", 4096),
            ("16m", 16 << 20),
            ("2G", 2 << 30),
            ("0x1000", 4096),
            ("4096b", 4096),
        ] {
            assert_eq!(size(text, 1024), Ok(bytes), "{text}");
        }
        for (text, reason) in [
            ("-4k", "negative"),
            ("1.5m", "fraction"),
            ("4x", "unknown"),
            ("4ib", "unknown"),
            ("4i", "unknown"),
            ("", "number"),
            ("99999999999g", "large"),
        ] {
            let error = size(text, 1024).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn switches_are_numbers() {
        for (text, on) in [("1", true), ("0", false), ("1G", true), ("0x1", true), ("1.5", true)] {
            assert_eq!(switch(Some(text)), Ok(on), "{text}");
        }
        for text in ["2", "true", "yes", "on", "", "k", "10"] {
            assert!(switch(Some(text)).is_err(), "{text}");
        }
    }

    fn of_fio(kb_base: u64, option: &str, values: &[String]) -> Option<Vec<u64>> {
        let mut command = std::process::Command::new("fio");
        command.args(["--debug=parse", "--parse-only", "--name=j"]);
        command.arg(format!("--kb_base={kb_base}"));
        command.args(values.iter().map(|value| format!("--{option}={value}")));
        let Ok(output) = command.output() else {
            assert!(std::env::var_os("HALFPOWER_REQUIRE").is_none(), "fio is required");
            eprintln!("skipped: fio is not installed");
            return None;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let lines = text.lines().skip_while(|line| !line.contains(&format!("={option},")));
        let numbers = lines.filter_map(|line| line.split_once("ret=0, out="));
        Some(numbers.map(|(_, number)| number.parse().expect("a number")).collect())
    }

    #[test]
    fn suffixes_multiply_as_in_fio() {
        let letters = ["k", "m", "g", "t", "p"];
        let of_letter = |letter: &str| {
            ["", "b", "i", "ib"]
                .iter()
                .flat_map(|end| {
                    let suffix = format!("{letter}{end}");
                    [
                        suffix.clone(),
                        suffix.to_uppercase(),
                        format!("{}{end}", letter.to_uppercase()),
                    ]
                })
                .collect::<Vec<_>>()
        };
        let suffixes = ["", "b", "B"].map(str::to_string).into_iter();
        let values: Vec<String> = suffixes
            .chain(letters.iter().flat_map(|letter| of_letter(letter)))
            .map(|suffix| format!("3{suffix}"))
            .collect();
        for kb_base in [1024, 1000] {
            let Some(expected) = of_fio(kb_base, "size", &values) else { return };
            assert_eq!(expected.len(), values.len());
            for (value, expected) in values.iter().zip(expected) {
                assert_eq!(size(value, kb_base), Ok(expected), "size={value}, kb_base={kb_base}");
                let found = count(value, kb_base, 0, u64::MAX);
                assert_eq!(found, Ok(expected), "{value}, kb_base={kb_base}");
            }
            let counts = ["3k", "3Ki", "2kib", "0x10"].map(str::to_string);
            let expected = of_fio(kb_base, "iodepth", &counts).unwrap();
            let found = counts.map(|text| count(&text, kb_base, 0, u64::MAX).unwrap());
            assert_eq!(found.to_vec(), expected);
        }
    }

    #[test]
    fn switches_take_what_fio_takes() {
        for text in ["0", "1", "1G", "1k", "0x1", "1.5", "1abc", "2", "true", "on", "yes", "G1"] {
            let Some(found) = of_fio(1024, "direct", &[text.into()]) else { return };
            // fio shows a number out of range before it refuses it.
            let expected = match found.as_slice() {
                [0] => Some(false),
                [1] => Some(true),
                _ => None,
            };
            assert_eq!(switch(Some(text)).ok(), expected, "direct={text}");
        }
    }

    #[test]
    fn times_add_up() {
        let second = 1_000_000_000;
        for (text, ns) in [
            ("30", 30 * second),
            ("500ms", second / 2),
            ("1m5s", 65 * second),
            ("2h", 7200 * second),
            ("1d", 86_400 * second),
        ] {
            assert_eq!(time_ns(text, second), Ok(ns), "{text}");
        }
        assert_eq!(time_ns("40", 1000), Ok(40_000));
        assert!(
            time_ns("3w", second).is_err()
                && time_ns("-1", second).is_err()
                && time_ns("9999999d", second).is_err()
        );
    }

    #[test]
    fn directions_inherit() {
        let parse = |text: &str| size(text, 1024);
        assert_eq!(by_direction("4k,8k", parse), Ok([4096, 8192]));
        assert_eq!(
            (by_direction("4k,,", parse), by_direction("4k", parse)),
            (Ok([4096, 4096]), Ok([4096, 4096]))
        );
        assert!(by_direction(",8k", parse).is_err() && by_direction("1,2,3,4", parse).is_err());
        assert_eq!((ends("4k-8k", parse), ends("4k", parse)), (Ok([4096, 8192]), Ok([4096, 4096])));
        assert!(ends("8k-4k", parse).unwrap_err().contains("above"));
        assert!(ends("-4k", parse).unwrap_err().contains("negative"));
    }
}
