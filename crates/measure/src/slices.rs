use machine::Nanos;

/// Longer runs have wider slices.
const MAX_SLICES: usize = 2048;

/// Requests completed in slices of equal time.
#[derive(Debug, Clone, PartialEq)]
pub struct Slices {
    start: Nanos,
    width: Nanos,
    totals: Vec<u64>,
}

impl Slices {
    pub fn new(start: Nanos, width: Nanos) -> Slices {
        Slices { start, width: width.max(1), totals: Vec::with_capacity(MAX_SLICES) }
    }

    pub fn end(&self) -> Nanos {
        self.start + (self.totals.len() as u64 + 1) * self.width
    }

    /// `total`: requests completed so far.
    #[cold]
    pub fn close(&mut self, now: Nanos, total: u64) {
        while self.end() <= now {
            if self.totals.len() == MAX_SLICES {
                // Every second total is the total at the end of a slice of twice the width.
                self.totals = self.totals.iter().skip(1).step_by(2).copied().collect();
                self.totals.reserve(MAX_SLICES - self.totals.len());
                self.width *= 2;
                continue;
            }
            self.totals.push(total);
        }
    }

    pub fn width_ns(&self) -> Nanos {
        self.width
    }

    pub fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let mut last = 0;
        self.totals.iter().map(move |&total| total - std::mem::replace(&mut last, total))
    }
}

/// Returns the slice width and requests per second.
pub fn summed_rates<'a>(streams: impl Iterator<Item = &'a Slices> + Clone) -> (Nanos, Vec<f64>) {
    let width = streams.clone().map(Slices::width_ns).max().unwrap_or(1);
    let mut sums: Vec<f64> = Vec::new();
    let mut shortest = usize::MAX;
    for slices in streams {
        // All widths are a common width times a power of two.
        let group = (width / slices.width) as usize;
        let counts: Vec<u64> = slices.counts().collect();
        let coarse: Vec<u64> =
            counts.chunks_exact(group.max(1)).map(|chunk| chunk.iter().sum()).collect();
        shortest = shortest.min(coarse.len());
        sums.resize(sums.len().max(coarse.len()), 0.0);
        for (sum, count) in sums.iter_mut().zip(coarse) {
            *sum += count as f64 * 1e9 / width as f64;
        }
    }
    sums.truncate(shortest);
    (width, sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_count_their_requests() {
        let mut slices = Slices::new(100, 10);
        slices.close(109, 5);
        assert_eq!(slices.counts().count(), 0);
        slices.close(110, 5);
        slices.close(135, 9);
        assert_eq!(slices.counts().collect::<Vec<_>>(), [5, 4, 0]);
    }

    #[test]
    fn long_runs_have_wider_slices_with_the_same_total() {
        let mut slices = Slices::new(0, 10);
        for step in 1..=10_000u64 {
            slices.close(step * 10, step * 3);
        }
        assert!(slices.width_ns() > 10);
        let expected = slices.width_ns() / 10 * 3;
        assert!(slices.counts().all(|count| count == expected));
        assert!(slices.counts().count() <= MAX_SLICES);
    }

    #[test]
    fn streams_of_different_widths_add_up() {
        let (mut fine, mut coarse) = (Slices::new(0, 10), Slices::new(0, 20));
        for step in 1..=8u64 {
            fine.close(step * 10, step);
            coarse.close(step * 10, step);
        }
        let (width, rates) = summed_rates([&fine, &coarse].into_iter());
        assert_eq!(width, 20);
        assert_eq!(rates, vec![4.0 * 1e9 / 20.0; 4]);
    }
}
