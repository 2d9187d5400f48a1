use crate::rng::{below, hash};
use crate::{Error, Pattern, SizeMix, Workload};
use machine::Op;
use machine::units::show_size;

#[derive(Debug, Clone)]
pub struct SizeDraw(Draw);

#[derive(Debug, Clone)]
enum Draw {
    /// `min` times 1 to `count`.
    Range {
        min: u32,
        count: u64,
    },
    Unaligned {
        min: u32,
        max: u32,
    },
    /// Sizes, each with the upper end of its share of 64 random bits.
    Shares(Vec<(u64, u32)>),
}

impl SizeDraw {
    pub fn new(mix: &SizeMix) -> SizeDraw {
        SizeDraw(match mix {
            SizeMix::Range { min_bytes, max_bytes, unaligned: true } => {
                Draw::Unaligned { min: *min_bytes, max: *max_bytes }
            }
            SizeMix::Range { min_bytes, max_bytes, unaligned: false } => Draw::Range {
                min: *min_bytes,
                count: u64::from(max_bytes / (*min_bytes).max(1)).max(1),
            },
            SizeMix::Shares(shares) => {
                let mut sum = 0u128;
                let mut ends = Vec::new();
                for share in shares.iter().filter(|share| share.percent > 0) {
                    sum += u128::from(share.percent);
                    ends.push((
                        (((sum << 64) / 100) - 1).min(u128::from(u64::MAX)) as u64,
                        share.bytes,
                    ));
                }
                Draw::Shares(ends)
            }
        })
    }

    fn unaligned_max(&self) -> Option<u64> {
        if let Draw::Unaligned { max, .. } = self.0 { Some(u64::from(max)) } else { None }
    }

    /// `random`: all 64 bits.
    #[inline]
    pub fn at(&self, random: u64) -> u32 {
        match &self.0 {
            Draw::Range { min, count } => *min * (below(random, *count) as u32 + 1),
            Draw::Unaligned { min, max } => {
                let above = below(random, u64::from(*max)) as u32;
                min.saturating_add(above).min(*max)
            }
            Draw::Shares(ends) => ends
                .iter()
                .find(|(end, _)| random <= *end)
                .or(ends.last())
                .map_or(1, |(_, bytes)| *bytes),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Varied {
    read: SizeDraw,
    write: SizeDraw,
    seed: u64,
    /// Random requests start at multiples of this; sequential ones are cut to them.
    pub(crate) unit: u64,
    len: u64,
    position: u64,
}

impl Varied {
    /// `None` if all are the same.
    pub(crate) fn new(workload: &Workload, len: u64, seed: u64) -> Option<Varied> {
        let alike = SizeMix::one(workload.request_bytes);
        let (read, write) = match &workload.sizes {
            Some(sizes) => (&sizes.read, &sizes.write),
            None if workload.align_bytes.is_some() && workload.pattern != Pattern::Seq => {
                (&alike, &alike)
            }
            None => return None,
        };
        let unit = u64::from(workload.unit_bytes());
        Some(Varied {
            read: SizeDraw::new(read),
            write: SizeDraw::new(write),
            seed,
            unit,
            len: len / unit * unit,
            position: 0,
        })
    }

    #[inline]
    pub(crate) fn size(&self, index: u64, op: Op) -> u32 {
        self.draw(op).at(hash(self.seed, index))
    }

    #[inline]
    fn draw(&self, op: Op) -> &SizeDraw {
        if op == Op::Read { &self.read } else { &self.write }
    }

    #[inline]
    pub(crate) fn follow(&mut self, index: u64, op: Op) -> (u64, u32) {
        if self.len - self.position < self.unit {
            self.position = 0;
        }
        let left = self.len - self.position;
        let mut size = u64::from(self.size(index, op)).min(left);
        if let Some(max) = self.draw(op).unaligned_max() {
            size = self.without_rest(size, left, max);
        }
        let place = self.position;
        self.position += size;
        (place, size as u32)
    }

    /// Leaves nothing or a whole request after a size.
    fn without_rest(&self, size: u64, left: u64, max: u64) -> u64 {
        let short = self.unit.saturating_sub(left - size);
        match size.checked_sub(short) {
            _ if short == 0 || left == size => size,
            Some(less) if less >= self.unit => less,
            _ => left.min(max),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn rewind(&mut self) {
        self.position = 0;
    }
}

impl Workload {
    /// The distance between starting positions: the (smallest) request size or the alignment.
    pub(crate) fn unit_bytes(&self) -> u32 {
        let min = |mix: &SizeMix| mix.bounds().map(|(min, _)| min);
        let mixes = self.sizes.iter().flat_map(|sizes| {
            [(&sizes.read, self.read_percent > 0), (&sizes.write, self.read_percent < 100)]
        });
        let of_sizes = mixes.filter(|(_, used)| *used).filter_map(|(mix, _)| min(mix)).min();
        let align = self.align_bytes.filter(|_| self.pattern != Pattern::Seq);
        align.or(of_sizes).unwrap_or(self.request_bytes).max(1)
    }

    pub fn min_request_bytes(&self) -> u32 {
        if self.sizes.is_some() {
            Workload { align_bytes: None, ..self.clone() }.unit_bytes()
        } else {
            self.request_bytes.max(1)
        }
    }

    /// Requests start elsewhere than at multiples of their size.
    pub(crate) fn varies(&self) -> bool {
        self.sizes.is_some() || (self.align_bytes.is_some() && self.pattern != Pattern::Seq)
    }

    pub(crate) fn check_sizes(&self) -> Result<(), Error> {
        if self.align_bytes == Some(0) {
            return Err(Error::refused(
                "an alignment of 0 B",
                "every place is a multiple of something",
                "use 512 or more",
            ));
        }
        let Some(sizes) = &self.sizes else { return self.check_grid() };
        let mut greatest = 0;
        for (mix, used) in
            [(&sizes.read, self.read_percent > 0), (&sizes.write, self.read_percent < 100)]
        {
            let what = || "the request sizes".to_string();
            let Some((min, max)) = mix.bounds() else {
                return Err(Error::refused(
                    what(),
                    "there are none",
                    "give each size a share, 100 % in all",
                ));
            };
            if min == 0 || max < min {
                let why = format!(
                    "they go from {} to {}",
                    show_size(u64::from(min)),
                    show_size(u64::from(max))
                );
                return Err(Error::refused(what(), why, "begin with 1 B or more and end above"));
            }
            if let SizeMix::Shares(shares) = mix {
                let sum: u32 = shares.iter().map(|share| u32::from(share.percent)).sum();
                if sum != 100 {
                    return Err(Error::refused(
                        what(),
                        format!("their shares are {sum} % in all"),
                        "let them be 100 %",
                    ));
                }
            }
            greatest = if used { max.max(greatest) } else { greatest };
        }
        if greatest != self.request_bytes {
            let what = format!("request size {}", show_size(u64::from(self.request_bytes)));
            let why = format!("the largest of the sizes is {}", show_size(u64::from(greatest)));
            return Err(Error::refused(what, why, "set the request size to the largest"));
        }
        if self.data.verify {
            let why = "blocks that describe themselves have one size";
            return Err(Error::refused(
                "sizes that differ with verification",
                why,
                "leave out one of the two",
            ));
        }
        self.check_grid()
    }

    /// Refuses several sizes in grid patterns, and with a shared cursor, whose threads do not know
    /// the previous request's end.
    fn check_grid(&self) -> Result<(), Error> {
        if !self.varies() {
            return Ok(());
        }
        if matches!(
            self.pattern,
            Pattern::Together | Pattern::Backward | Pattern::Stride(_) | Pattern::Columns(_)
        ) {
            let what = format!("sizes or places that differ with the pattern {}", self.pattern);
            return Err(Error::refused(
                what,
                "it visits blocks of one size",
                "use seq or a random pattern",
            ));
        }
        if self.pattern == Pattern::Seq && self.engine.workers(self.depth) > 1 {
            let what = "sizes that differ in sequential order with the engine threads".to_string();
            return Err(Error::refused(
                what,
                "its threads share one sequence of places",
                "use depth 1, io_uring or libaio",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chi_square_is_plausible;
    use crate::{Cursor, Sequence, SizeShare, Sizes};
    use proptest::prelude::*;

    const KIB: u32 = 1024;

    fn shares(sizes: &[(u32, u8)]) -> SizeMix {
        SizeMix::Shares(
            sizes.iter().map(|&(bytes, percent)| SizeShare { bytes, percent }).collect(),
        )
    }

    fn workload(pattern: Pattern, read: SizeMix, write: SizeMix, read_percent: u8) -> Workload {
        let max = |mix: &SizeMix| mix.bounds().unwrap().1;
        let request_bytes = if read_percent == 100 {
            max(&read)
        } else if read_percent == 0 {
            max(&write)
        } else {
            max(&read).max(max(&write))
        };
        Workload {
            pattern,
            request_bytes,
            read_percent,
            sizes: Some(Sizes { read, write }),
            ..Workload::default()
        }
    }

    fn sequence(workload: &Workload, bytes: u64) -> Sequence {
        workload.check_pattern().unwrap();
        Sequence::new(workload, (0, bytes), 0, Cursor::Own).unwrap()
    }

    #[test]
    fn sizes_come_in_their_shares() {
        let mix = shares(&[(4 * KIB, 70), (64 * KIB, 20), (16 * KIB, 0), (8 * KIB, 10)]);
        for pattern in [Pattern::Seq, Pattern::Random, Pattern::Zipf(1.0)] {
            let mut sequence = sequence(&workload(pattern, mix.clone(), mix.clone(), 100), 1 << 40);
            let draws = 100_000;
            let mut counts = [0u64; 4];
            for _ in 0..draws {
                let size = sequence.next().2;
                counts[[4 * KIB, 64 * KIB, 16 * KIB, 8 * KIB]
                    .iter()
                    .position(|&known| known == size)
                    .unwrap()] += 1;
            }
            assert_eq!(counts[2], 0);
            let expected = [0.7, 0.2, 0.1].map(|share| share * f64::from(draws));
            chi_square_is_plausible(&[counts[0], counts[1], counts[3]], &expected);
        }
    }

    #[test]
    fn a_range_is_uniform_over_its_multiples() {
        let range = SizeMix::Range { min_bytes: 4 * KIB, max_bytes: 43 * KIB, unaligned: false };
        assert_eq!(range.mean(), 5.5 * 4096.0);
        let mut workload = workload(Pattern::Random, range.clone(), range, 0);
        workload.request_bytes = 43 * KIB;
        let mut sequence = sequence(&workload, 1 << 30);
        let mut counts = [0u64; 10];
        for _ in 0..50_000 {
            let (_, offset, size) = sequence.next();
            assert!(size.is_multiple_of(4 * KIB) && offset.is_multiple_of(4096));
            counts[(size / (4 * KIB)) as usize - 1] += 1;
        }
        chi_square_is_plausible(&counts, &[5000.0; 10]);
    }

    #[test]
    fn unaligned_sizes_are_any_number_of_bytes() {
        let range = SizeMix::range(1000, 4000, true);
        assert_eq!(range.mean(), 0.75 * 2500.0 + 1000.0);
        let draw = SizeDraw::new(&range);
        let sizes: Vec<u32> = (0..40_000).map(|index| draw.at(hash(7, index))).collect();
        assert!(sizes.iter().all(|size| (1000..=4000).contains(size)));
        let counts = [1000..2000, 2000..3000, 3000..4000, 4000..4001]
            .map(|part| sizes.iter().filter(|size| part.contains(*size)).count() as u64);
        chi_square_is_plausible(&counts, &[10_000.0; 4]);
        assert_eq!(SizeMix::range(1000, 4500, false).bounds(), Some((1000, 4000)));
        assert_eq!(SizeMix::range(1000, 1999, false), SizeMix::one(1000));
    }

    #[test]
    fn reads_and_writes_have_sizes_of_their_own() {
        let mut sequence = sequence(
            &workload(Pattern::Seq, SizeMix::one(4 * KIB), SizeMix::one(32 * KIB), 60),
            1 << 20,
        );
        for _ in 0..1000 {
            let (op, _, size) = sequence.next();
            assert!(size == if op == Op::Read { 4 * KIB } else { 32 * KIB } || op == Op::Write);
        }
    }

    #[test]
    fn starting_positions_are_aligned() {
        for (align, request) in [(512u32, 4 * KIB), (64 * KIB, 4 * KIB)] {
            let workload = Workload {
                pattern: Pattern::Random,
                request_bytes: request,
                align_bytes: Some(align),
                ..Workload::default()
            };
            let mut sequence = sequence(&workload, 1 << 20);
            let places = sequence.len_blocks();
            assert_eq!(places, (u64::from((1 << 20) - request) / u64::from(align)) + 1);
            let mut seen: Vec<u64> = (0..places)
                .map(|_| sequence.next())
                .inspect(|next| assert_eq!(next.2, request))
                .map(|next| next.1)
                .collect();
            seen.sort_unstable();
            assert!(
                seen.iter()
                    .enumerate()
                    .all(|(index, &offset)| offset == index as u64 * u64::from(align))
            );
        }
    }

    proptest! {
        #[test]
        fn sequential_requests_leave_no_gap_and_end_with_the_region(units in 40u64..400, min in 1u32..5, times in 2u32..9, seed: u64) {
            let unit = min * 512;
            let range =
                SizeMix::Range { min_bytes: unit, max_bytes: unit * times, unaligned: false };
            let workload = Workload { seed, ..workload(Pattern::Seq, range.clone(), range, 100) };
            let bytes = units * u64::from(unit);
            let mut sequence = sequence(&workload, bytes + 100);
            for _ in 0..3 {
                let mut at = 0;
                while at < bytes {
                    let (_, offset, size) = sequence.next();
                    prop_assert_eq!(offset, at);
                    prop_assert!(size.is_multiple_of(unit) && size > 0 && size <= unit * times);
                    at += u64::from(size);
                }
                prop_assert_eq!(at, bytes);
            }
        }

        #[test]
        fn unaligned_sequential_requests_leave_no_gap(units in 40u64..400, unit in 500u32..5000, times in 3u32..9, seed: u64) {
            let range = SizeMix::range(unit, unit * times, true);
            let workload = Workload { seed, ..workload(Pattern::Seq, range.clone(), range, 100) };
            let bytes = units * u64::from(unit);
            let mut sequence = sequence(&workload, bytes + 100);
            for _ in 0..3 {
                let mut at = 0;
                while at < bytes {
                    let (_, offset, size) = sequence.next();
                    prop_assert_eq!(offset, at);
                    prop_assert!((unit..=unit * times).contains(&size));
                    at += u64::from(size);
                }
                prop_assert_eq!(at, bytes);
            }
        }

        #[test]
        fn no_request_of_any_size_leaves_the_region(
            start in 0u64..1 << 40, len in 1u64..1 << 24, shift in 0u64..10_000, small in 1u32..5000, large in 5000u32..100_000, kind in 0usize..6,
        ) {
            let pattern = [
                Pattern::Seq, Pattern::Random, Pattern::Uniform, Pattern::Zipf(1.0), Pattern::HotCold { hot_percent: 20, access_percent: 80 }, Pattern::Pareto(0.2),
                Pattern::Normal { deviation_percent: 20.0, center_percent: 90.0, scattered: true },
            ][kind];
            let mix = shares(&[(small, 50), (large, 50)]);
            let workload = Workload { offset_bytes: shift, threads: 2, ..workload(pattern, mix.clone(), mix, 50) };
            if let Ok(mut sequence) = Sequence::new(&workload, (start, len), 1, Cursor::Own) {
                for _ in 0..200 {
                    let (_, offset, bytes) = sequence.next();
                    prop_assert!(bytes > 0 && offset >= start + shift && offset + u64::from(bytes) <= start + len);
                }
            }
        }
    }

    #[test]
    fn invalid_sizes_are_refused_with_a_reason() {
        let refused = |change: &dyn Fn(&mut Workload)| {
            let mix = shares(&[(4096, 50), (8192, 50)]);
            let mut workload = workload(Pattern::Seq, mix.clone(), mix, 100);
            change(&mut workload);
            workload.check(1 << 30, 512).err().map_or(String::new(), |error| error.to_string())
        };
        assert_eq!(refused(&|_| ()), "");
        assert!(
            refused(&|w| w.sizes.as_mut().unwrap().read = shares(&[(4096, 50)]))
                .contains("50 % in all")
        );
        assert!(refused(&|w| w.sizes.as_mut().unwrap().read = shares(&[])).contains("none"));
        assert!(refused(&|w| w.request_bytes = 4096).contains("largest of the sizes is 8 KiB"));
        assert!(refused(&|w| w.pattern = Pattern::Backward).contains("blocks of one size"));
        assert!(
            refused(&|w| (w.engine, w.depth) = (machine::Engine::Threads, 2))
                .contains("share one sequence")
        );
        assert!(refused(&|w| w.data.verify = true).contains("verification"));
        assert!(
            refused(&|w| w.sizes.as_mut().unwrap().read = shares(&[(1000, 50), (8192, 50)]))
                .contains("1000 B with direct I/O")
        );
        assert!(
            refused(&|w| (w.pattern, w.align_bytes) = (Pattern::Random, Some(100)))
                .contains("100 B with direct I/O")
        );
        assert!(refused(&|w| w.align_bytes = Some(0)).contains("alignment of 0 B"));
    }
}
