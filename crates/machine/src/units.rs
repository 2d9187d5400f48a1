//! Sizes and times: `4k`, `64KiB`, `1M` are binary, `1MB` decimal.

use std::cell::Cell;
use std::marker::PhantomData;

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

/// Units of rates and capacities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Units {
    /// Powers of 1024.
    #[default]
    Binary,
    /// Powers of 1000.
    Si,
}

thread_local! {
    static SHOWN: Cell<Units> = const { Cell::new(Units::Binary) };
}

/// Dropping it restores the thread's earlier units.
#[derive(Debug)]
#[must_use]
pub struct ShownUnits {
    before: Units,
    /// Not `Send`: units are per thread.
    _thread: PhantomData<*const ()>,
}

impl Drop for ShownUnits {
    fn drop(&mut self) {
        SHOWN.set(self.before);
    }
}

/// Applies to this thread while the returned value lives.
///
/// ```
/// use machine::units::{Units, show_in, show_rate};
///
/// let si = show_in(Units::Si);
/// assert_eq!(show_rate(2e6), "2 MB/s");
/// drop(si);
/// assert_eq!(show_rate(2e6), "1.91 MiB/s");
/// ```
pub fn show_in(units: Units) -> ShownUnits {
    ShownUnits { before: SHOWN.replace(units), _thread: PhantomData }
}

pub fn shown_in() -> Units {
    SHOWN.get()
}

impl Units {
    pub fn rate_unit(self) -> &'static str {
        match self {
            Units::Binary => "MiB/s",
            Units::Si => "MB/s",
        }
    }

    pub fn rate_bytes(self) -> f64 {
        match self {
            Units::Binary => MIB as f64,
            Units::Si => 1e6,
        }
    }
}

/// Parses bytes; a fraction is allowed if the result is whole.
///
/// `k`, `K`, `KiB`, `m`, `M`, `MiB`, `g`, `t` ... are binary; `kB`, `KB`, `MB`, `GB`, `TB` decimal;
/// no unit is bytes.
///
/// ```
/// use machine::units::{parse_size, show_size};
///
/// assert_eq!(parse_size("64k"), Ok(65_536));
/// assert_eq!(parse_size("1MB"), Ok(1_000_000));
/// assert_eq!(show_size(31 << 9), "15.5 KiB");
/// assert!(parse_size("64 parsecs").is_err());
/// ```
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = |why: &str| {
        format!(
            "'{text}' is not a size: {why}; write it as 4096, 4k, 64KiB, 1M (binary) or 1MB (decimal)"
        )
    };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
    if number.is_empty() {
        return Err(wrong("it has no number"));
    }
    let multiple: u64 = match unit {
        "" | "b" | "B" => 1,
        "k" | "K" | "kib" | "KiB" | "Ki" | "ki" => KIB,
        "m" | "M" | "mib" | "MiB" | "Mi" | "mi" => MIB,
        "g" | "G" | "gib" | "GiB" | "Gi" | "gi" => GIB,
        "t" | "T" | "tib" | "TiB" | "Ti" | "ti" => GIB << 10,
        "kb" | "kB" | "KB" => 1_000,
        "mb" | "MB" => 1_000_000,
        "gb" | "GB" => 1_000_000_000,
        "tb" | "TB" => 1_000_000_000_000,
        _ => return Err(wrong("its unit is unknown")),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || fraction.contains('.') {
        return Err(wrong("its fraction is too long"));
    }
    let too_large = || wrong("it is too large");
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
    let whole_bytes = whole.checked_mul(multiple).ok_or_else(too_large)?;
    let scale = 10u128.pow(fraction.len() as u32);
    let fraction: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().map_err(|_| wrong("its fraction is odd"))?
    };
    let fraction_bytes = fraction * u128::from(multiple);
    if !fraction_bytes.is_multiple_of(scale) {
        return Err(wrong("it is not a whole number of bytes"));
    }
    whole_bytes.checked_add((fraction_bytes / scale) as u64).ok_or_else(too_large)
}

/// Parses nanoseconds: `90s`, `3m`, `1.5s`, `250ms`, `10us`, `5ns`, `2h`; no unit is seconds.
///
/// ```
/// use machine::units::{parse_time, show_time};
///
/// assert_eq!(parse_time("250ms"), Ok(250_000_000));
/// assert_eq!(show_time(1.5e6), "1.50 ms");
/// ```
pub fn parse_time(text: &str) -> Result<u64, String> {
    let wrong =
        |why: &str| format!("'{text}' is not a time: {why}; write it as 90s, 3m, 250ms or 10us");
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
    let number: f64 = number.parse().map_err(|_| wrong("it has no number"))?;
    let multiple = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "" | "s" | "sec" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(wrong("its unit is unknown")),
    };
    let ns = number * multiple;
    // A century: a longer time is surely a typo, and the sum of two still fits.
    if ns > 3.2e18 { Err(wrong("it is too long")) } else { Ok(ns.round() as u64) }
}

/// Returns the largest unit with at most one decimal, and the tenths.
fn exact_unit(bytes: u64) -> Option<(&'static str, u64)> {
    let units = [("TiB", GIB << 10), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)];
    units.into_iter().filter(|(_, multiple)| bytes >= *multiple).find_map(|(unit, multiple)| {
        let tenths = bytes as f64 / multiple as f64 * 10.0;
        (tenths.fract() == 0.0).then_some((unit, tenths as u64))
    })
}

/// Returns whether [`show_size`] avoids bytes.
pub fn has_exact_unit(bytes: u64) -> bool {
    exact_unit(bytes).is_some()
}

/// Formats exactly: `512 B`, `31.5 KiB`, `1 MiB`; in bytes if no unit fits.
pub fn show_size(bytes: u64) -> String {
    match exact_unit(bytes) {
        Some((unit, tenths)) if tenths.is_multiple_of(10) => format!("{} {unit}", tenths / 10),
        Some((unit, tenths)) => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        None => format!("{bytes} B"),
    }
}

/// Formats three digits: `1.86 GiB`.
pub fn show_size_rounded(bytes: f64) -> String {
    rounded(bytes, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// Formats three digits: `1.86 GiB`, or `2.00 GB`.
pub fn show_capacity(bytes: f64) -> String {
    match shown_in() {
        Units::Binary => show_size_rounded(bytes),
        Units::Si => rounded(bytes, 1000.0, ["B", "kB", "MB", "GB", "TB", "PB"]),
    }
}

fn rounded(bytes: f64, step: f64, units: [&str; 6]) -> String {
    let mut value = bytes;
    let mut unit = 0;
    while value.abs() >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    format!("{} {}", significant(value, 3), units[unit])
}

/// Formats three significant digits: `1672 MiB/s`.
pub fn show_rate(bytes_per_s: f64) -> String {
    format!("{} {}", rate_number(bytes_per_s), shown_in().rate_unit())
}

/// Formats as [`show_rate`], without the unit.
pub fn rate_number(bytes_per_s: f64) -> String {
    grouped(bytes_per_s / shown_in().rate_bytes())
}

/// Formats `1 point`, `2 points`.
pub fn plural(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as f64), if count == 1 { "" } else { "s" })
}

/// Formats a whole number, or three significant digits; separators from five digits on: `12,600`.
pub fn grouped(value: f64) -> String {
    let text = if value.fract() == 0.0 { format!("{value:.0}") } else { significant(value, 3) };
    let (sign, rest) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = rest
        .split_once('.')
        .map_or((rest, String::new()), |(whole, fraction)| (whole, format!(".{fraction}")));
    if whole.len() <= 4 || !whole.bytes().all(|b| b.is_ascii_digit()) {
        return text;
    }
    let mut out = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + &fraction
}

/// Formats three significant digits.
pub fn show_time(ns: f64) -> String {
    // 999.7 us are shown as 1.00 ms.
    const ROUNDS_UP: f64 = 0.9995;
    let magnitude = ns.abs();
    let (value, unit) = if magnitude >= 1e9 * ROUNDS_UP {
        (ns / 1e9, "s")
    } else if magnitude >= 1e6 * ROUNDS_UP {
        (ns / 1e6, "ms")
    } else if magnitude >= 1e3 * ROUNDS_UP {
        (ns / 1e3, "us")
    } else {
        (ns, "ns")
    };
    format!("{} {unit}", significant(value, 3))
}

/// Formats `1.5 h`, `12 min`, `38 s`.
pub fn show_span(seconds: f64) -> String {
    match seconds {
        s if s >= 5400.0 => format!("{} h", significant(s / 3600.0, 2)),
        s if s >= 120.0 => format!("{:.0} min", s / 60.0),
        s if s >= 10.0 => format!("{s:.0} s"),
        s => show_time(s * 1e9),
    }
}

const AS_FACTOR_PERCENT: f64 = 100.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ShownChange {
    Percent(f64),
    Factor(f64),
}

impl ShownChange {
    pub fn of(percent: f64) -> ShownChange {
        if percent >= AS_FACTOR_PERCENT {
            return ShownChange::Factor(1.0 + percent / 100.0);
        }
        // Avoids "-0.0".
        ShownChange::Percent((percent * 10.0).round() / 10.0 + 0.0)
    }

    pub fn number(self) -> String {
        match self {
            ShownChange::Percent(percent) => format!("{percent:+.1}"),
            ShownChange::Factor(factor) => significant(factor, 3),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            ShownChange::Percent(_) => "%",
            ShownChange::Factor(_) => "times",
        }
    }
}

/// Formats `+13.2 %`; from twice on, `554 times`.
pub fn show_change(percent: f64) -> String {
    let shown = ShownChange::of(percent);
    format!("{} {}", shown.number(), shown.unit())
}

/// Formats `+1.2 to +3.4 %`, `+90.0 % to 2.10 times`.
pub fn show_change_range([low, high]: [f64; 2]) -> String {
    let from = ShownChange::of(low);
    // The unit of both is given once.
    let unit = Some(from.unit()).filter(|unit| *unit != ShownChange::of(high).unit());
    let from = from.number() + &unit.map_or(String::new(), |unit| format!(" {unit}"));
    format!("{from} to {}", show_change(high))
}

/// Formats without an exponent: `1234.6` with 3 digits is `1235`.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let decimals = |value: f64| {
        let magnitude = value.abs().log10().floor() as i32;
        (digits as i32 - 1 - magnitude).clamp(0, 9) as usize
    };
    // 9.996 rounds to 10.0, which has a digit less after the point.
    let scale = 10f64.powi(decimals(value) as i32);
    let rounded = (value * scale).round() / scale;
    let decimals = if rounded == 0.0 { decimals(value) } else { decimals(rounded) };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("512", 512),
            ("4k", 4096),
            ("64KiB", 65536),
            ("1M", MIB),
            ("1MB", 1_000_000),
            ("31.5k", 32256),
            (" 2 g ", 2 * GIB),
            (".5K", 512),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "k", "-1", "4x", "1.00001k", "99999999999999999999", "99999999T", "1..5k", "4k4"]
        {
            let error = parse_size(text).unwrap_err();
            assert!(error.contains(text), "the error names the value: {error}");
        }
    }

    #[test]
    fn changes_from_twice_on_are_factors() {
        for (percent, shown) in [
            (13.24, "+13.2 %"),
            (-0.01, "+0.0 %"),
            (-99.4, "-99.4 %"),
            (99.9, "+99.9 %"),
            (100.0, "2.00 times"),
            (55_342.2, "554 times"),
        ] {
            assert_eq!(show_change(percent), shown);
        }
        assert_eq!(show_change_range([-1.0, 2.0]), "-1.0 to +2.0 %");
        assert_eq!(show_change_range([90.0, 110.0]), "+90.0 % to 2.10 times");
        assert_eq!(show_change_range([110.0, 240.0]), "2.10 to 3.40 times");
    }

    #[test]
    fn times_as_people_write_them() {
        for (text, ns) in [
            ("3m", 180_000_000_000),
            ("90", 90_000_000_000),
            ("1.5s", 1_500_000_000),
            ("250ms", 250_000_000),
            ("10us", 10_000),
        ] {
            assert_eq!(parse_time(text), Ok(ns), "{text}");
        }
        assert!(
            parse_time("-3").is_err()
                && parse_time("3 fortnights").is_err()
                && parse_time("99999999999999h").is_err()
        );
    }

    #[test]
    fn shown_with_three_digits() {
        assert_eq!(show_rate(20.0 * 1e6), "19.1 MiB/s");
        assert_eq!(show_rate(12_733.4 * MIB as f64), "12,733 MiB/s");
        assert_eq!(rounded(2e9, 1000.0, ["B", "kB", "MB", "GB", "TB", "PB"]), "2.00 GB");
        assert_eq!(show_time(8_333_333.0), "8.33 ms");
        assert_eq!(show_size(32256), "31.5 KiB");
        assert_eq!(show_size(MIB), "1 MiB");
        assert_eq!(show_size(1000), "1000 B");
        assert_eq!(significant(1234.6, 3), "1235");
        // Values that round up to the next power of ten or unit have three digits, too.
        assert_eq!(significant(9.996, 3), "10.0");
        assert_eq!(significant(-99.97, 3), "-100");
        assert_eq!(significant(0.099_96, 2), "0.10");
        assert_eq!(show_time(9_996_000.0), "10.0 ms");
        assert_eq!(show_time(999_700.0), "1.00 ms");
        assert_eq!(show_time(999_400.0), "999 us");
    }

    proptest! {
        #[test]
        fn any_size_shown_parses_back(bytes in 0u64..1 << 50) {
            prop_assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC*") {
            let _ = (parse_size(&text), parse_time(&text));
        }
    }
}
