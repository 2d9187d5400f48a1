//! Which seeds a test tries.

use std::ops::Range;

/// `usual`, or those that the environment names, to try ones on which nothing was chosen:
/// `SEEDS=5000..5256`.
pub fn chosen(usual: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("SEEDS") else { return usual };
    let ends =
        text.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let (from, to) =
        ends.unwrap_or_else(|| panic!("SEEDS={text}: write a range such as 5000..5256"));
    from..to
}
