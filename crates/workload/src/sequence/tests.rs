use super::*;
use crate::testing::chi_square_is_plausible;
use proptest::prelude::*;

const REQUEST: u32 = 4096;

fn workload(pattern: Pattern) -> Workload {
    Workload { pattern, request_bytes: REQUEST, ..Workload::default() }
}

fn sequence(workload: &Workload, blocks: u64) -> Sequence {
    Sequence::new(workload, (0, blocks * u64::from(REQUEST)), 0, Cursor::Own).unwrap()
}

fn blocks(sequence: &mut Sequence, n: u64) -> Vec<u64> {
    (0..n).map(|_| sequence.next().1 / u64::from(REQUEST)).collect()
}

fn sorted(mut blocks: Vec<u64>) -> Vec<u64> {
    blocks.sort_unstable();
    blocks
}

#[test]
fn seq_and_backward_wrap_around() {
    assert_eq!(blocks(&mut sequence(&workload(Pattern::Seq), 3), 7), [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(blocks(&mut sequence(&workload(Pattern::Backward), 3), 7), [2, 1, 0, 2, 1, 0, 2]);
}

#[test]
fn stride_goes_on_with_the_blocks_left_out() {
    let stride = workload(Pattern::Stride(3 * u64::from(REQUEST)));
    assert_eq!(blocks(&mut sequence(&stride, 8), 9), [0, 3, 6, 1, 4, 7, 2, 5, 0]);
}

#[test]
fn columns_are_divided_among_the_streams() {
    let table = Workload { threads: 2, ..workload(Pattern::Columns(3)) };
    let visited = |stream| {
        let mut part =
            Sequence::new(&table, (0, 11 * u64::from(REQUEST)), stream, Cursor::Own).unwrap();
        let pass = part.len_blocks();
        blocks(&mut part, pass + 1)
    };
    // Three rows of three blocks; the remainder is too small for a row.
    assert_eq!(visited(0), [0, 3, 6, 0]);
    assert_eq!(visited(1), [1, 4, 7, 2, 5, 8, 1]);
}

#[test]
fn random_takes_another_order_in_each_pass() {
    let mut random = sequence(&workload(Pattern::Random), 100);
    let passes: Vec<Vec<u64>> = (0..20).map(|_| blocks(&mut random, 100)).collect();
    for pass in &passes {
        assert_eq!(sorted(pass.clone()), (0..100).collect::<Vec<_>>());
    }
    let different: std::collections::HashSet<_> = passes.iter().collect();
    assert_eq!(different.len(), 20);
}

proptest! {
    #[test]
    fn every_block_once_in_each_pass(n in 1u64..3000, step in 1u64..3000, seed: u64) {
        for pattern in [Pattern::Seq, Pattern::Backward, Pattern::Random, Pattern::Stride((1 + step % n.max(2)).min(n.max(2) - 1) * 4096)] {
            let mut sequence = sequence(&Workload { seed, ..workload(pattern) }, n);
            prop_assert_eq!(sequence.len_blocks(), n);
            for _ in 0..2 {
                prop_assert_eq!(sorted(blocks(&mut sequence, n)), (0..n).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn no_request_leaves_the_region(
        start in 0u64..1 << 40, len in 1u64..1 << 24, shift in 0u64..10_000, request in 1u32..100_000, stream in 0u32..3, kind in 0usize..11, reads in 0u8..=100,
    ) {
        let pattern = [
            Pattern::Seq, Pattern::Random, Pattern::Backward, Pattern::Stride(2 * u64::from(request)), Pattern::Zipf(1.0),
            Pattern::HotCold { hot_percent: 20, access_percent: 80 }, Pattern::Columns(5), Pattern::Pareto(0.2),
            Pattern::Normal { deviation_percent: 30.0, center_percent: 10.0, scattered: false },
            Pattern::Normal { deviation_percent: 30.0, center_percent: 10.0, scattered: true }, Pattern::Uniform,
        ][kind];
        let workload = Workload { pattern, request_bytes: request, offset_bytes: shift, threads: 3, read_percent: reads, ..Workload::default() };
        if let Ok(mut sequence) = Sequence::new(&workload, (start, len), stream, Cursor::Own) {
            for _ in 0..200 {
                let (_, offset, bytes) = sequence.next();
                prop_assert_eq!(bytes, request);
                prop_assert!(offset >= start + shift);
                prop_assert!(offset + u64::from(bytes) <= start + len);
                prop_assert!((offset - start - shift).is_multiple_of(u64::from(request)));
            }
        }
    }

    #[test]
    fn streams_share_out_the_region(n in 1u64..2000, threads in 1u32..40) {
        prop_assume!(n >= u64::from(threads));
        for pattern in [Pattern::Seq, Pattern::Backward] {
            let workload = Workload { threads, ..workload(pattern) };
            let mut all = Vec::new();
            for stream in 0..threads {
                let mut part = Sequence::new(&workload, (0, n * 4096), stream, Cursor::Own).unwrap();
                prop_assert!(part.len_blocks().abs_diff(n / u64::from(threads)) <= 1);
                let len = part.len_blocks();
                let visited = sorted(blocks(&mut part, len));
                prop_assert!(visited.windows(2).all(|w| w[1] == w[0] + 1), "the part is contiguous");
                prop_assert_eq!(part.span(), (visited[0] * 4096, len * 4096));
                all.extend(visited);
            }
            prop_assert_eq!(sorted(all), (0..n).collect::<Vec<_>>());
        }
    }
}

#[test]
fn random_streams_cover_the_whole_region_in_orders_of_their_own() {
    let workload = Workload { threads: 4, ..workload(Pattern::Random) };
    let orders: Vec<Vec<u64>> = (0..4)
        .map(|stream| {
            blocks(
                &mut Sequence::new(&workload, (0, 1000 * 4096), stream, Cursor::Own).unwrap(),
                1000,
            )
        })
        .collect();
    for (i, order) in orders.iter().enumerate() {
        assert_eq!(sorted(order.clone()), (0..1000).collect::<Vec<_>>());
        assert!(orders[..i].iter().all(|other| other != order));
    }
}

#[test]
fn threads_with_a_shared_cursor_issue_one_threads_requests() {
    const N: u64 = 10_007;
    const TAKES: u64 = 4 * N;
    for pattern in [
        Pattern::Seq,
        Pattern::Random,
        Pattern::Backward,
        Pattern::Stride(8 * 4096),
        Pattern::Zipf(0.9),
    ] {
        let workload = Workload { read_percent: 60, ..workload(pattern) };
        let cursor = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut shared =
                    Sequence::new(&workload, (0, N * 4096), 0, Cursor::Shared(cursor.clone()))
                        .unwrap();
                std::thread::spawn(move || {
                    (0..TAKES / 4)
                        .map(|_| shared.next())
                        .map(|(op, at, _)| (at, op == Op::Read))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let mut together: Vec<_> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let mut alone = sequence(&workload, N);
        let mut expected: Vec<_> =
            (0..TAKES).map(|_| alone.next()).map(|(op, at, _)| (at, op == Op::Read)).collect();
        together.sort_unstable();
        expected.sort_unstable();
        assert_eq!(together, expected, "{pattern:?}");
    }
}

#[test]
fn a_delayed_thread_skips_whole_passes() {
    let cursor = Arc::new(AtomicU64::new(0));
    let workload = workload(Pattern::Random);
    let mut sleeper =
        Sequence::new(&workload, (0, 50 * 4096), 0, Cursor::Shared(cursor.clone())).unwrap();
    let mut alone = sequence(&workload, 50);
    let expected = blocks(&mut alone, 1000);
    for index in [0usize, 1, 49, 50, 230, 231, 999] {
        cursor.store(index as u64, Ordering::Relaxed);
        assert_eq!(blocks(&mut sleeper, 1)[0], expected[index], "request {index}");
    }
}

#[test]
fn zipf_follows_the_law_and_scatters_the_popular_blocks() {
    const N: u64 = 500;
    let draws = 100_000;
    for theta in [0.5, 1.0, 1.3] {
        let workload = Workload { threads: 2, ..workload(Pattern::Zipf(theta)) };
        let mut counts = vec![0u64; N as usize];
        for stream in 0..2 {
            let mut sequence =
                Sequence::new(&workload, (0, N * 4096), stream, Cursor::Own).unwrap();
            blocks(&mut sequence, draws / 2).into_iter().for_each(|b| counts[b as usize] += 1);
        }
        let scatter = Permutation::new(N, derive(workload.seed, purpose::SCATTER, 0));
        let by_rank: Vec<u64> = (0..N).map(|rank| counts[scatter.at(rank) as usize]).collect();
        let weights: Vec<f64> = (1..=N).map(|k| (k as f64).powf(-theta)).collect();
        let total: f64 = weights.iter().sum();
        let expected: Vec<f64> = weights.iter().map(|w| w / total * draws as f64).collect();
        chi_square_is_plausible(&by_rank, &expected);
        let ascending = (1..10).all(|rank| scatter.at(rank) > scatter.at(rank - 1));
        assert!(!ascending, "the ten most popular blocks are scattered");
    }
}

#[test]
fn hot_and_cold_get_their_shares_evenly() {
    for (hot_percent, access_percent, n) in [
        (10u8, 90u8, 1000u64),
        (20, 80, 50),
        (1, 50, 200),
        (50, 0, 100),
        (50, 100, 100),
        (99, 1, 100),
    ] {
        let pattern = Pattern::HotCold { hot_percent, access_percent };
        let hot = (n * u64::from(hot_percent) / 100) as usize;
        let draws = 100_000u64;
        let mut counts = vec![0u64; n as usize];
        blocks(&mut sequence(&workload(pattern), n), draws)
            .into_iter()
            .for_each(|b| counts[b as usize] += 1);
        let access = f64::from(access_percent) / 100.0;
        let expected: Vec<f64> = (0..n as usize)
            .map(|b| {
                draws as f64
                    * if b < hot {
                        access / hot as f64
                    } else {
                        (1.0 - access) / (n as usize - hot) as f64
                    }
            })
            .collect();
        chi_square_is_plausible(&counts, &expected);
    }
}

#[test]
fn hot_and_cold_in_regions_of_one_and_two_blocks() {
    let pattern = Pattern::HotCold { hot_percent: 10, access_percent: 50 };
    assert_eq!(blocks(&mut sequence(&workload(pattern), 1), 100), vec![0; 100]);
    let two = blocks(&mut sequence(&workload(pattern), 2), 1000);
    let hot = two.iter().filter(|&&b| b == 0).count();
    assert!((400..600).contains(&hot), "{hot} of 1000 in the hot block");
}

#[test]
fn the_mix_reads_its_share_independently_of_the_place() {
    for percent in [0u8, 1, 30, 50, 99, 100] {
        let mut sequence =
            sequence(&Workload { read_percent: percent, ..workload(Pattern::Random) }, 64);
        let (mut reads, mut low_reads, mut low) = (0u64, 0u64, 0u64);
        for _ in 0..64_000 {
            let (op, offset, _) = sequence.next();
            let in_low = u64::from(offset < 32 * 4096);
            low += in_low;
            reads += u64::from(op == Op::Read);
            low_reads += u64::from(op == Op::Read) * in_low;
        }
        let share = f64::from(percent) / 100.0;
        let bound = 5.0 * (share * (1.0 - share) * 64_000.0).sqrt();
        assert!((reads as f64 - share * 64_000.0).abs() <= bound, "{reads} reads for {percent} %");
        assert!((low_reads as f64 - share * low as f64).abs() <= bound);
    }
}

#[test]
fn one_seed_is_one_sequence() {
    for pattern in [
        Pattern::Random,
        Pattern::Zipf(1.0),
        Pattern::HotCold { hot_percent: 10, access_percent: 90 },
    ] {
        let of = |seed, stream| {
            let workload = Workload { seed, threads: 2, read_percent: 50, ..workload(pattern) };
            Sequence::new(&workload, (0, 4096 * 4096), stream, Cursor::Own).unwrap()
        };
        let first = of(1, 0).fingerprint(10_000);
        let mut moved = of(1, 0);
        for _ in 0..9999 {
            moved.next();
        }
        assert_eq!(
            moved.fingerprint(10_000),
            first,
            "the fingerprint does not depend on the position"
        );
        assert_ne!(of(2, 0).fingerprint(10_000), first);
        assert_ne!(of(1, 1).fingerprint(10_000), first);
    }
    // Fixed values: a change in any of these breaks the promise that a seed identifies a sequence.
    let fixed = |pattern| {
        sequence(&Workload { read_percent: 70, seed: 42, ..workload(pattern) }, 5000)
            .fingerprint(6000)
    };
    let found = [Pattern::Seq, Pattern::Random, Pattern::Stride(16 * 4096)].map(fixed);
    assert_eq!(
        found,
        [5_957_755_701_194_224_265, 2_793_974_259_583_931_308, 10_001_898_741_678_822_074]
    );
}

#[test]
fn a_region_too_small_is_refused_with_its_size() {
    let error = Sequence::new(&workload(Pattern::Random), (0, 4095), 0, Cursor::Own)
        .unwrap_err()
        .to_string();
    assert!(error.contains("4095 B") && error.contains("4 KiB"), "{error}");
    let four = Workload { threads: 4, ..workload(Pattern::Seq) };
    for stream in 0..4 {
        let error =
            Sequence::new(&four, (0, 3 * 4096), stream, Cursor::Own).unwrap_err().to_string();
        assert!(error.contains("4 streams"), "{error}");
    }
    assert!(
        Sequence::new(&four, (0, 1 << 20), 4, Cursor::Own).is_err(),
        "stream 4 of 4 does not exist"
    );
}

#[test]
fn uniform_draws_repeat_and_go_everywhere() {
    const N: u64 = 100;
    let mut sequence = sequence(&workload(Pattern::Uniform), N);
    let drawn = blocks(&mut sequence, 100 * N);
    let count = |block: u64| drawn.iter().filter(|&&drawn| drawn == block).count() as f64;
    // 100 draws per block are expected; five standard deviations are 50.
    assert!((0..N).all(|block| (count(block) - 100.0).abs() < 50.0));
    let first = sorted(drawn[..N as usize].to_vec());
    assert!(
        first.windows(2).any(|pair| pair[0] == pair[1]),
        "the first 100 of 100 are not each block once"
    );
}

#[test]
fn scattered_normals_are_as_popular_and_anywhere() {
    const N: u64 = 1000;
    let counts = |scattered: bool| {
        let pattern = Pattern::Normal { deviation_percent: 5.0, center_percent: 50.0, scattered };
        let mut counts = vec![0u32; N as usize];
        blocks(&mut sequence(&workload(pattern), N), 50_000)
            .iter()
            .for_each(|&block| counts[block as usize] += 1);
        counts
    };
    let (mut dense, mut scattered) = (counts(false), counts(true));
    let outer = |counts: &[u32]| counts[..300].iter().chain(&counts[700..]).sum::<u32>();
    assert!(
        outer(&dense) < 50 && outer(&scattered) > 20_000,
        "{} {}",
        outer(&dense),
        outer(&scattered)
    );
    dense.sort_unstable();
    scattered.sort_unstable();
    assert_eq!(dense, scattered, "each popularity belongs to one block");
}
