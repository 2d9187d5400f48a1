//! fio's `write_hist_log`.

use crate::fio::run::histogram_log::Interval;
use std::fmt::Write;

pub(crate) fn lines(intervals: &[Interval], from_ms: u64) -> String {
    let mut text = String::new();
    for Interval { end_ns, side, bytes, counts } in intervals {
        // Writing to a String cannot fail.
        let _ = write!(text, "{}, {side}, {bytes}", from_ms + end_ns / 1_000_000);
        for count in counts {
            let _ = write!(text, ", {count}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::run::histogram_log::HistogramLog;

    #[test]
    fn closed_intervals_have_a_line_for_each_direction() {
        let mut log = HistogramLog::new(5_000_000, 6);
        log.begin(1_000_000);
        log.add(2_000_000, 0, 4096, 70);
        log.add(3_000_000, 0, 4096, 60);
        log.add(4_000_000, 2, 8192, 60);
        log.add(11_000_000, 1, 4096, 60);
        log.add(16_000_000, 1, 512, 200);
        let text = lines(&log.closed(), 100);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.iter().map(|line| line.split(", ").count()).collect::<Vec<_>>(), [32; 3]);
        assert!(lines[0].starts_with("105, 0, 4096, 1, 1, 0, "), "{text}");
        assert!(lines[1].starts_with("105, 2, 8192, 1, 0, 0, "), "{text}");
        assert!(lines[2].starts_with("115, 1, 4096, 1, 0, 0, "), "{text}");
    }
}
