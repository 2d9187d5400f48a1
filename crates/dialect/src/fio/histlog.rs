//! fio's `write_hist_log`: latency histograms of time intervals.

use machine::Nanos;
use std::fmt::Write;

/// Bins of each power of two, as a binary logarithm.
const BITS: u32 = 6;
/// Number of fio's bins: 29 powers of two.
const BINS: usize = 29 << BITS;
pub(crate) const MAX_COARSENESS: u64 = BITS as u64;

/// The bin of a latency in nanoseconds: exact up to 128, then within 1/64.
fn bin(ns: u64) -> usize {
    let above = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS + 1);
    let index = (u64::from(above) << BITS) + (ns >> above);
    (index as usize).min(BINS - 1)
}

/// The requests of one direction that ended in one interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// End of the interval, since the start of the measured part.
    end_ns: Nanos,
    side: u8,
    bytes: u32,
    counts: Vec<u32>,
}

/// Histograms of equal time intervals, by direction.
#[derive(Debug, Clone)]
pub struct HistogramLog {
    width_ns: Nanos,
    coarseness: u32,
    began: Nanos,
    end: Nanos,
    open: [(u32, Vec<u32>); 3],
    closed: Vec<Interval>,
}

impl HistogramLog {
    /// Combines 2^coarseness of fio's bins into one.
    pub(crate) fn new(width_ns: Nanos, coarseness: u32) -> HistogramLog {
        let bins = || vec![0; BINS >> coarseness];
        HistogramLog {
            width_ns,
            coarseness,
            began: 0,
            end: Nanos::MAX,
            open: [(0, bins()), (0, bins()), (0, bins())],
            closed: Vec::new(),
        }
    }

    pub(crate) fn begin(&mut self, now: Nanos) {
        (self.began, self.end) = (now, now.saturating_add(self.width_ns));
    }

    pub(crate) fn add(&mut self, now: Nanos, side: usize, bytes: u32, latency_ns: Nanos) {
        while now >= self.end {
            self.close();
        }
        let (last, counts) = &mut self.open[side];
        *last = bytes;
        counts[bin(latency_ns) >> self.coarseness] += 1;
    }

    /// Closes an interval. As in fio, an interval still open at the end of the run is dropped.
    #[cold]
    fn close(&mut self) {
        for (side, (bytes, counts)) in self.open.iter_mut().enumerate() {
            if counts.iter().all(|&count| count == 0) {
                continue;
            }
            let empty = vec![0; counts.len()];
            self.closed.push(Interval {
                end_ns: self.end - self.began,
                side: side as u8,
                bytes: *bytes,
                counts: std::mem::replace(counts, empty),
            });
        }
        self.end += self.width_ns;
    }

    pub(crate) fn closed(self) -> Vec<Interval> {
        self.closed
    }
}

/// A line for each interval and direction: its end, the direction, a request size and the counts.
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

    #[test]
    fn bins_match_fio() {
        // From the table of fio's tools/hist: 64 bins of 1 ns, 64 of 1, 64 of 2, 64 of 4.
        assert_eq!([0, 63, 64, 127, 128, 129, 130, 255, 256].map(bin), [0, 63, 64, 127, 128, 128, 129, 191, 192]);
        assert_eq!((bin(259), bin(260), bin(u64::MAX)), (192, 193, BINS - 1));
    }

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
