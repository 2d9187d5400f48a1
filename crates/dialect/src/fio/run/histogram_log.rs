//! fio's `write_hist_log`.

use crate::fio::options::kinds::{Logs, MAX_COARSENESS};
use machine::Nanos;

/// log2 of the bins per power of two.
const BITS: u32 = MAX_COARSENESS;
/// fio's bins cover 29 powers of two.
const BINS: usize = 29 << BITS;

/// Exact up to 128 ns, then within 1/64.
fn bin(ns: u64) -> usize {
    let above = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS + 1);
    let index = (u64::from(above) << BITS) + (ns >> above);
    (index as usize).min(BINS - 1)
}

/// Requests of one direction that ended in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    pub(crate) end_ns: Nanos,
    pub(crate) side: u8,
    pub(crate) bytes: u32,
    pub(crate) counts: Vec<u32>,
}

/// By interval and direction.
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
    pub(crate) fn of(logs: &Logs) -> Option<HistogramLog> {
        let wanted = logs.histogram.is_some() && logs.histogram_ms > 0;
        wanted.then(|| HistogramLog::new(logs.histogram_ms * 1_000_000, logs.coarseness))
    }

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

    /// As in fio, an interval open at the end is dropped.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_match_fio() {
        // From the table of fio's tools/hist: 64 bins of 1 ns, 64 of 1, 64 of 2, 64 of 4.
        assert_eq!(
            [0, 63, 64, 127, 128, 129, 130, 255, 256].map(bin),
            [0, 63, 64, 127, 128, 128, 129, 191, 192]
        );
        assert_eq!((bin(259), bin(260), bin(u64::MAX)), (192, 193, BINS - 1));
    }
}
