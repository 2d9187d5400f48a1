//! How the advertised rate of several parts comes about.

use machine::units::show_rate;

/// The description gives the origin of each rate.
const SOURCE: &str = "the machine's description";

/// For the combined advertised rate of `count` parts.
pub(crate) fn formula(count: u32, rate: Option<f64>) -> Option<String> {
    let rate = rate.filter(|_| count > 0)?;
    Some(match count {
        1 => SOURCE.to_owned(),
        _ => format!("{count} x {}, {SOURCE}", show_rate(rate / f64::from(count))),
    })
}
