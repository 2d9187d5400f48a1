//! Formulas of advertised rates.

use machine::units::show_rate;

const SOURCE: &str = "the machine's description";

pub(crate) fn formula(count: u32, rate: Option<f64>) -> Option<String> {
    let rate = rate.filter(|_| count > 0)?;
    Some(match count {
        1 => SOURCE.to_owned(),
        _ => format!("{count} x {}, {SOURCE}", show_rate(rate / f64::from(count))),
    })
}
