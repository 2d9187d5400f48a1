//! Times as the tools print them, in UTC.

use jiff::Timestamp;

fn formatted(unix_s: u64, form: &str) -> String {
    let second = i64::try_from(unix_s).unwrap_or(i64::MAX).min(Timestamp::MAX.as_second());
    Timestamp::from_second(second).unwrap_or_default().strftime(form).to_string()
}

pub(crate) fn ctime(unix_s: u64) -> String {
    formatted(unix_s, "%a %b %e %H:%M:%S %Y")
}

pub(crate) fn year_first(unix_s: u64) -> String {
    formatted(unix_s, "%Y/%m/%d %H:%M:%S UTC")
}

/// The format of mdtest.
pub(crate) fn month_first(unix_s: u64) -> String {
    formatted(unix_s, "%m/%d/%Y %H:%M:%S")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!(ctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(ctime(1_074_115_928), "Wed Jan 14 21:32:08 2004");
        assert_eq!(year_first(951_827_696), "2000/02/29 12:34:56 UTC");
        assert_eq!(year_first(1_725_847_362), "2024/09/09 02:02:42 UTC");
    }
}
