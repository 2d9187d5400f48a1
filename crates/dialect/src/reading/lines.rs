//! Lines with their numbers, for errors.

pub(super) fn number(text: &str, line: usize) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| at(line, format_args!("'{}' is not a number", text.trim())))
}

/// `line` counts from 0.
pub(super) fn at(line: usize, why: impl std::fmt::Display) -> String {
    format!("line {}: {why}", line + 1)
}

pub(super) fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = text.split_once(before)?.1;
    Some(rest.split_once(after).map_or(rest, |(inside, _)| inside).trim())
}
