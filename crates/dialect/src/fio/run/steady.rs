//! fio's `steadystate`.

use crate::fio::options::criterion::Criterion;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Clone, PartialEq)]
pub struct Steady {
    pub criterion: Criterion,
    /// The steady rate ended the job.
    pub attained: bool,
    /// Last compared with the limit, in its unit.
    pub found: f64,
    /// From the mean, in requests or bytes per second.
    pub max_deviation: f64,
    /// In requests or bytes per second, per second.
    pub slope: f64,
    /// For each second of the last window.
    pub iops: Vec<u64>,
    /// For each second of the last window.
    pub bytes: Vec<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Second {
    sums: [u64; 2],
    reported: u32,
}

#[derive(Debug)]
struct Board {
    /// Not reported by all streams; numbered from `first`.
    open: VecDeque<Second>,
    first: u64,
    streams: u32,
    window: VecDeque<[u64; 2]>,
    verdict: Steady,
}

/// Streams report once a second.
#[derive(Debug)]
pub(crate) struct Watch {
    criterion: Criterion,
    board: Mutex<Board>,
    steady: AtomicBool,
}

impl Watch {
    pub(crate) fn new(criterion: Criterion, streams: u32) -> Watch {
        let verdict = Steady {
            criterion,
            attained: false,
            found: 0.0,
            max_deviation: 0.0,
            slope: 0.0,
            iops: Vec::new(),
            bytes: Vec::new(),
        };
        let board =
            Board { open: VecDeque::new(), first: 0, streams, window: VecDeque::new(), verdict };
        Watch { criterion, board: Mutex::new(board), steady: AtomicBool::new(false) }
    }

    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        self.steady.load(Ordering::Relaxed)
    }

    pub(crate) fn add_second(&self, second: u64, sums: [u64; 2]) {
        let mut board = self.board.lock().unwrap_or_else(|broken| broken.into_inner());
        let Some(index) = second.checked_sub(board.first) else { return };
        while board.open.len() as u64 <= index {
            board.open.push_back(Second::default());
        }
        let entry = &mut board.open[index as usize];
        entry.reported += 1;
        entry.sums.iter_mut().zip(sums).for_each(|(sum, part)| *sum += part);
        self.judge(&mut board);
    }

    pub(crate) fn leave(&self) {
        let mut board = self.board.lock().unwrap_or_else(|broken| broken.into_inner());
        board.streams = board.streams.saturating_sub(1);
        self.judge(&mut board);
    }

    fn judge(&self, board: &mut Board) {
        while board.streams > 0
            && !board.verdict.attained
            && board.open.front().is_some_and(|second| second.reported >= board.streams)
        {
            let sums = board.open.pop_front().map_or([0; 2], |second| second.sums);
            board.first += 1;
            board.window.push_back(sums);
            if board.window.len() > self.criterion.window() {
                board.window.pop_front();
            }
            let window: Vec<[u64; 2]> = board.window.iter().copied().collect();
            let full = window.len() == self.criterion.window();
            board.verdict = verdict(self.criterion, &window, full);
            if board.verdict.attained {
                self.steady.store(true, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn verdict(&self) -> Steady {
        self.board.lock().unwrap_or_else(|broken| broken.into_inner()).verdict.clone()
    }
}

fn verdict(criterion: Criterion, window: &[[u64; 2]], full: bool) -> Steady {
    let values: Vec<f64> =
        window.iter().map(|sums| sums[usize::from(criterion.bandwidth)] as f64).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let max_deviation = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    // Linear regression over seconds 0, 1, 2, ...
    let middle = (count - 1.0) / 2.0;
    let across: f64 =
        values.iter().enumerate().map(|(x, value)| (x as f64 - middle) * (value - mean)).sum();
    let along: f64 = (0..values.len()).map(|x| (x as f64 - middle).powi(2)).sum();
    let slope = if along > 0.0 { across / along } else { 0.0 };
    let found = if criterion.slope { slope.abs() } else { max_deviation };
    let found = if criterion.percent { found / mean.max(f64::MIN_POSITIVE) * 100.0 } else { found };
    Steady {
        criterion,
        attained: full && mean > 0.0 && found <= criterion.limit,
        found,
        max_deviation,
        slope,
        iops: window.iter().map(|sums| sums[0]).collect(),
        bytes: window.iter().map(|sums| sums[1]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::options::criterion::STEP_NS;

    fn criterion(text: &str, seconds: u64) -> Criterion {
        let mut criterion = Criterion::default();
        criterion.set(text).unwrap();
        Criterion { duration_ns: seconds * STEP_NS, ..criterion }
    }

    fn ends(criterion: Criterion, rates: &[u64]) -> Option<usize> {
        let watch = Watch::new(criterion, 1);
        rates
            .iter()
            .enumerate()
            .find(|(second, rate)| {
                watch.add_second(*second as u64, [**rate, **rate * 4096]);
                watch.is_steady()
            })
            .map(|(second, _)| second + 1)
    }

    #[test]
    fn a_full_window_of_rates_near_the_mean_is_steady() {
        let rates = [900, 800, 700, 650, 640, 655, 645, 650];
        assert_eq!(ends(criterion("iops:2%", 3), &rates), Some(6));
        assert_eq!(ends(criterion("iops:8.5", 3), &rates), Some(6));
        assert_eq!(ends(criterion("iops:5", 3), &rates), Some(8));
        assert_eq!(ends(criterion("iops:0.1%", 3), &rates), None);
        assert_eq!(ends(criterion("bw:2%", 3), &rates), Some(6));
        assert_eq!(ends(criterion("bw:100", 3), &rates), None);
        assert_eq!(ends(criterion("iops:100%", 9), &rates), None, "the window never fills");
    }

    #[test]
    fn the_slope_is_from_the_regression_line() {
        // 10 more each second: 10 of a mean of 110 is 9.09 %.
        assert_eq!(ends(criterion("iops_slope:10", 3), &[100, 110, 120]), Some(3));
        assert_eq!(ends(criterion("iops_slope:9.99", 3), &[100, 110, 120]), None);
        assert_eq!(ends(criterion("iops_slope:9.1%", 3), &[100, 110, 120]), Some(3));
        assert_eq!(ends(criterion("iops_slope:9.0%", 3), &[100, 110, 120]), None);
        // Rates that go up and back down have no slope; zero rates are not steady.
        assert_eq!(ends(criterion("bw_slope:1%", 3), &[100, 500, 100]), Some(3));
        assert_eq!(ends(criterion("iops:1%", 3), &[0, 0, 0, 0]), None);
    }

    #[test]
    fn a_second_counts_once_all_streams_reported_it() {
        let watch = Watch::new(criterion("iops:1%", 2), 2);
        watch.add_second(0, [50, 0]);
        watch.add_second(1, [60, 0]);
        watch.add_second(2, [60, 0]);
        assert!(!watch.is_steady());
        watch.add_second(0, [50, 0]);
        watch.add_second(1, [40, 0]);
        assert!(watch.is_steady(), "100 and 100");
        assert_eq!(watch.verdict().iops, [100, 100]);
        let watch = Watch::new(criterion("iops:1%", 2), 2);
        watch.add_second(0, [50, 0]);
        watch.add_second(1, [50, 0]);
        watch.leave();
        assert!(watch.is_steady(), "the watch does not wait for the other stream");
    }
}
