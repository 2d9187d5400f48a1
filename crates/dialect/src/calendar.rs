//! Points in time as the tools print them, in UTC.

/// Year, month, day, hour, minute, second and the day of the week (0 is Sunday).
struct Civil {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    weekday: usize,
}

/// The Gregorian calendar from seconds since 1970-01-01, after H. Hinnant's `civil_from_days` ("chrono-Compatible Low-Level Date Algorithms").
fn civil(unix_s: u64) -> Civil {
    let days = unix_s / 86_400;
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let rest = unix_s % 86_400;
    Civil {
        year: year_of_era + era * 400 + u64::from(month <= 2),
        month,
        day: of_year - (153 * from_march + 2) / 5 + 1,
        hour: rest / 3600,
        minute: rest % 3600 / 60,
        second: rest % 60,
        weekday: ((days + 4) % 7) as usize,
    }
}

/// As C's `ctime` has it: `Wed Jan 14 21:32:08 2004`.
pub(crate) fn ctime(unix_s: u64) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let c = civil(unix_s);
    let (weekday, month) = (DAYS[c.weekday], MONTHS[c.month as usize - 1]);
    format!("{weekday} {month} {:>2} {:02}:{:02}:{:02} {}", c.day, c.hour, c.minute, c.second, c.year)
}

/// Year first: `2004/01/14 21:32:08 UTC`.
pub(crate) fn year_first(unix_s: u64) -> String {
    let c = civil(unix_s);
    format!("{}/{:02}/{:02} {:02}:{:02}:{:02} UTC", c.year, c.month, c.day, c.hour, c.minute, c.second)
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
