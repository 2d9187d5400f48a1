use super::*;
use crate::fio::plan::jobs::job;
use std::collections::HashSet;

fn placed(turns: &FileTurns, requests: &[(Op, u64)]) -> Vec<(u32, u64)> {
    let place = |(op, block): &(Op, u64)| {
        let mut request = Request { op: *op, target: 0, offset: block * 4096, len: 4096, slot: 0 };
        turns.place(&mut request);
        (request.target, request.offset / 4096)
    };
    requests.iter().map(place).collect()
}

fn one_pass(job: &Job, files: u64, part: (u64, u64), seed: u64) -> FileTurns {
    FileTurns::new(job, files, (part, &[], part.0 + part.1), seed, Some(1))
}

#[test]
fn file_service_types_pick_files() {
    let part = (0, 2 * 4096);
    let writes: Vec<(Op, u64)> = (0..6).map(|block| (Op::Write, block)).collect();
    let turns = one_pass(&job("rw=write nrfiles=3"), 3, part, 1);
    assert_eq!(turns.region(), (0, 6 * 4096));
    assert_eq!(placed(&turns, &writes), [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
    let turns = one_pass(&job("rw=write nrfiles=3 file_service_type=sequential"), 3, part, 1);
    assert_eq!(turns.region(), part);
    let one_file: Vec<(Op, u64)> = (0..7).map(|block| (Op::Write, block % 2)).collect();
    assert_eq!(placed(&turns, &one_file), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 0)]);
    let turns = one_pass(&job("rw=write nrfiles=3 file_service_type=random"), 3, part, 1);
    let mut drawn = placed(&turns, &writes);
    let of_file =
        |file: u32| drawn.iter().filter(move |(drawn, _)| *drawn == file).map(|(_, block)| *block);
    assert!((0..3).all(|file| of_file(file).eq([0, 1])), "each file is read in order: {drawn:?}");
    drawn.dedup_by_key(|(file, _)| *file);
    assert_ne!(drawn.len(), 3, "in a drawn order");
}

#[test]
fn strides_skip_the_gaps_between_zones() {
    let turns = one_pass(
        &job("rw=read zonemode=strided zonesize=8k zonerange=12k zoneskip=4k"),
        1,
        (0, 36864),
        1,
    );
    assert_eq!(
        (turns.region(), turns.pass_bytes()),
        ((0, 20480), 20480),
        "two zones and half of a third"
    );
    let reads: Vec<(Op, u64)> = (0..5).map(|block| (Op::Read, block)).collect();
    assert_eq!(placed(&turns, &reads), [(0, 0), (0, 1), (0, 4), (0, 5), (0, 8)]);
}

#[test]
fn gaps_apply_to_alternating_files_and_mixes() {
    let turns = one_pass(&job("rw=write:4k nrfiles=2"), 2, (8192, 4 * 4096), 1);
    assert_eq!(
        (turns.region(), turns.pass_bytes()),
        ((16384, 16384), 16384),
        "two of four blocks of each file"
    );
    let writes: Vec<(Op, u64)> = (4..8).map(|block| (Op::Write, block)).collect();
    assert_eq!(placed(&turns, &writes), [(0, 2), (1, 2), (0, 4), (1, 4)]);
    let turns = one_pass(&job("rw=rw:4k"), 1, (0, 8 * 4096), 1);
    let mix = [(Op::Read, 0), (Op::Write, 1), (Op::Read, 2), (Op::Write, 3)];
    assert_eq!(placed(&turns, &mix), [(0, 0), (0, 0), (0, 2), (0, 2)]);
}

#[test]
fn a_mix_with_gaps_ends_with_its_first_direction() {
    let mix = job("rw=rw:8k loops=2");
    let turns = FileTurns::new(&mix, 1, ((0, 16 * 4096), &[], 16 * 4096), 1, Some(2));
    assert_eq!(turns.region(), (0, 16 * 4096), "each direction has the whole file");
    let mut places = Vec::new();
    // Two reads before each write: in each pass six reads and two or three writes.
    for number in 0..30 {
        let op = if number % 3 == 2 { Op::Write } else { Op::Read };
        let mut request = Request { op, target: 0, offset: 0, len: 4096, slot: 0 };
        if !turns.place(&mut request) {
            break;
        }
        places.push((op as usize, request.offset / 4096));
    }
    let of = |op| {
        places
            .iter()
            .filter(move |(side, _)| *side == op)
            .map(|(_, block)| *block)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(0), [0, 3, 6, 9, 12, 15, 0, 3, 6, 9, 12, 15]);
    assert_eq!(&of(1)[..3], [0, 3, 6]);
    let again = FileTurns::new(&job("rw=rw:4k"), 1, ((0, 16 * 4096), &[], 16 * 4096), 1, Some(1));
    let reads: Vec<(Op, u64)> = (0..10).map(|block| (Op::Read, block)).collect();
    let blocks: Vec<u64> = placed(&again, &reads).into_iter().map(|(_, block)| block).collect();
    assert_eq!(
        blocks,
        [0, 2, 4, 6, 8, 10, 12, 14, 0, 2],
        "as in fio, a request that would begin at the end restarts"
    );
}

#[test]
fn normal_offsets_are_as_popular_as_with_fios_hash() {
    let turns = one_pass(
        &job("rw=randread norandommap=1 random_distribution=normal:20"),
        1,
        (0, 2048 * 4096),
        1,
    );
    let mut counts = vec![0u32; 2048];
    for number in 0..100_000 {
        let mut request =
            Request { op: Op::Read, target: 0, offset: number % 2048 * 4096, len: 4096, slot: 0 };
        assert!(turns.place(&mut request));
        counts[(request.offset / 4096) as usize] += 1;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let share = |blocks: usize| f64::from(counts[..blocks].iter().sum::<u32>()) / 100_000.0;
    // Debian's fio 3.33 gets 37 % there with as many requests.
    assert!((0.35..0.40).contains(&share(205)), "{}", share(205));
    let of = |places: u64| {
        (0..places).map(|rank| scattered(rank, places)).collect::<HashSet<_>>().len() as u64
    };
    assert_eq!(of(2048), 2048);
    assert!((1100..1400).contains(&of(2000)), "1/e of the places have no rank: {}", of(2000));
}

#[test]
fn requests_go_backward_from_the_end() {
    let blocks = |settings: &str| -> Vec<u64> {
        let turns = one_pass(&job(settings), 1, (0, 16 * 4096), 1);
        let reads: Vec<(Op, u64)> = (0..20).map(|block| (Op::Read, block % 16)).collect();
        placed(&turns, &reads).into_iter().map(|(_, block)| block).collect()
    };
    let down = (0..15).rev();
    let wanted: Vec<u64> = std::iter::once(0).chain(down).chain([14, 13, 12, 11]).collect();
    assert_eq!(blocks("rw=read:-8k"), wanted);
    assert_eq!(blocks("rw=read:-4k"), [0; 20]);
    assert_eq!(blocks("rw=read:-12k")[..10], [0, 13, 11, 9, 7, 5, 3, 1, 13, 11]);
}

#[test]
fn consecutive_requests_go_to_one_file() {
    let part = (0, 3 * 4096);
    let writes: Vec<(Op, u64)> = (0..9).map(|block| (Op::Write, block)).collect();
    let turns = one_pass(&job("rw=write nrfiles=3 file_service_type=roundrobin:2"), 3, part, 1);
    let wanted = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 2), (1, 2), (2, 2)];
    assert_eq!(placed(&turns, &writes), wanted);
    let turns = one_pass(&job("rw=write nrfiles=3 file_service_type=random:3"), 3, part, 1);
    let drawn = placed(&turns, &writes);
    assert!(drawn.chunks(3).all(|row| row.iter().all(|(file, _)| *file == row[0].0)), "{drawn:?}");
}

#[test]
fn random_offsets_come_from_one_zone_after_the_other() {
    let settings = "rw=randread zonemode=strided zonesize=16k zonerange=8k zoneskip=4k";
    let turns = one_pass(&job(settings), 1, (4096, 36864), 1);
    let places = placed(&turns, &[(Op::Read, 1); 16]);
    let sorted = |range: std::ops::Range<usize>| {
        let mut blocks: Vec<u64> = places[range].iter().map(|(_, block)| *block).collect();
        blocks.sort_unstable();
        blocks
    };
    // Zones of two blocks start three blocks apart; each is covered twice, then the first one
    // again.
    assert_eq!((sorted(0..2), sorted(2..4)), (vec![1, 2], vec![1, 2]), "{places:?}");
    assert_eq!((sorted(4..8), sorted(8..12)), (vec![4, 4, 5, 5], vec![7, 7, 8, 8]));
    assert_eq!(sorted(12..16), [1, 1, 2, 2]);
}

#[test]
fn zones_get_their_share_of_the_requests_on_all_offsets() {
    let turns = one_pass(
        &job("rw=randread random_distribution=zoned:50/10:30/20:20/"),
        1,
        (4096, 100 * 4096),
        1,
    );
    let places = placed(&turns, &vec![(Op::Read, 1); 20_000]);
    let mut counts = [0u32; 100];
    places.iter().for_each(|(_, block)| counts[*block as usize - 1] += 1);
    for (blocks, share) in [(0..10, 0.5), (10..30, 0.3), (30..100, 0.2)] {
        let zone = &counts[blocks.clone()];
        let is = f64::from(zone.iter().sum::<u32>()) / 20_000.0;
        assert!((is - share).abs() < 0.02, "{blocks:?}: {is} of the requests");
        assert!(zone.iter().all(|&count| count > 0), "{blocks:?}: every place is used");
    }
}

#[test]
fn mixed_sizes_alternate_until_each_file_ends() {
    let settings = "rw=write nrfiles=3 bsrange=4k-8k";
    let turns = one_pass(&job(settings), 3, (0, 20480), 1);
    let (mut ends, mut order) = ([0; 3], Vec::new());
    for number in 0u32.. {
        // The second file gets the larger requests.
        let len = 4096 * (1 + u32::from(number % 3 == 1));
        let mut request = Request { op: Op::Write, target: 0, offset: 0, len, slot: 0 };
        if !turns.place(&mut request) {
            break;
        }
        let end = &mut ends[request.target as usize];
        assert_eq!(request.offset, *end, "{request:?}");
        *end += u64::from(request.len);
        order.push(request.target);
    }
    assert_eq!(ends, [20480; 3]);
    assert_eq!(
        order,
        [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 2, 0],
        "the second file ends before the others"
    );
}

#[test]
fn sequential_mixes_have_a_cursor_for_each_direction() {
    let turns = one_pass(&job("rw=rw"), 1, (8 * 4096, 4 * 4096), 1);
    let (r, w) = (Op::Read, Op::Write);
    // The mix as Debian's fio 3.33 logs it: each direction has a cursor, and a pass ends after the
    // region's bytes.
    let mix = [(r, 8), (r, 9), (w, 10), (r, 11), (w, 8), (w, 9)];
    assert_eq!(placed(&turns, &mix), [(0, 8), (0, 9), (0, 8), (0, 10), (0, 8), (0, 9)]);
}

fn spread(settings: &str, files: u64, len: u64, max: usize) -> Vec<(u32, u64, u32)> {
    let job = job(settings);
    let turns = one_pass(&job, files, (4096, len), 1);
    let one = || {
        let len = job.request_bytes() as u32;
        let mut request = Request { op: Op::Write, target: 0, offset: 0, len, slot: 0 };
        turns.place(&mut request).then_some((request.target, request.offset, request.len))
    };
    std::iter::from_fn(one).take(max).collect()
}

#[test]
fn mixed_random_sizes_cover_each_file_once_or_repeat() {
    let mut covered = spread("rw=randwrite nrfiles=2 bsrange=4k-16k", 2, 40 << 10, usize::MAX);
    assert!(
        covered.iter().any(|&(_, _, len)| len < 16384),
        "only a short gap stays free: {covered:?}"
    );
    covered.sort_unstable();
    for file in 0..2 {
        let own = covered.iter().filter(|(of, ..)| *of == file);
        let end = own.fold(4096, |end, &(_, offset, len)| {
            assert_eq!(offset, end, "{covered:?}");
            offset + u64::from(len)
        });
        assert_eq!(end, 4096 + (40 << 10));
    }
    let drawn = spread("rw=randwrite norandommap=1 bssplit=4k/50:16k/50", 1, 64 << 10, 500);
    assert!(
        drawn.len() == 500
            && drawn.iter().all(|(_, offset, len)| offset + u64::from(*len) <= 68 << 10)
    );
    assert!(
        drawn.iter().any(|&(_, offset, _)| offset == 64 << 10),
        "only small requests fit at the end"
    );
    let aligned = spread("rw=randwrite bs=16k blockalign=4k", 1, 64 << 10, 500);
    let places: std::collections::BTreeSet<u64> =
        aligned.iter().map(|(_, offset, _)| offset >> 12).collect();
    assert_eq!(places, (1..=13).collect());
}

fn hits(options: &str, files: u64, places: u64, count: u64) -> Vec<Vec<u64>> {
    let turns =
        FileTurns::new(&job(options), files, ((0, places * 4096), &[], places * 4096), 7, None);
    let mut hits = vec![vec![0; places as usize]; files as usize];
    for _ in 0..count {
        let mut request = Request { op: Op::Read, target: 0, offset: 0, len: 4096, slot: 0 };
        assert!(turns.place(&mut request));
        hits[request.target as usize][(request.offset / 4096) as usize] += 1;
    }
    hits
}

#[test]
fn skewed_places_are_drawn_in_each_file() {
    for distribution in ["zipf:1.2", "pareto:0.1", "normal:10"] {
        let options =
            format!("rw=randread nrfiles=4 bs=4k size=1m random_distribution={distribution}");
        let all = hits(&options, 4, 64, 4000);
        let popular: Vec<usize> = all
            .iter()
            .map(|file| {
                assert_eq!(file.iter().sum::<u64>(), 1000, "files take turns");
                let max = *file.iter().max().unwrap();
                assert!(max > 60, "{distribution}: an even draw gives 16 each, not {max}");
                file.iter().position(|hits| *hits == max).unwrap()
            })
            .collect();
        let same = popular.iter().all(|place| *place == popular[0]);
        assert!(!same || distribution == "normal:10", "{distribution}: {popular:?}");
    }
    let even = hits("rw=randread nrfiles=4 bs=4k size=1m", 4, 64, 256);
    assert!(even.iter().flatten().all(|hits| *hits == 1), "each block once in a pass");
}

fn in_order(settings: &str, files: u64, blocks: u64, count: usize) -> String {
    let turns =
        FileTurns::new(&job(settings), files, ((0, blocks * 4096), &[], blocks * 4096), 1, None);
    let op = if settings.contains("rw=write") { Op::Write } else { Op::Read };
    let requests: Vec<(Op, u64)> = (0..count as u64).map(|block| (op, block)).collect();
    let all = placed(&turns, &requests);
    all.iter().map(|(file, block)| format!("{file}:{block}")).collect::<Vec<_>>().join(" ")
}

/// From fio 3.33 (`write_iolog`).
#[test]
fn zones_of_several_files_go_on_as_in_fio() {
    for (settings, files, blocks, expected) in [
        (
            "zonesize=16k zonerange=16k",
            2,
            32,
            "0:0 1:0 0:1 1:1 0:8 1:2 0:9 1:3 0:16 1:0 0:17 1:1 0:24 1:2 0:25 1:3 0:0 1:0",
        ),
        (
            "zonesize=16k zonerange=16k",
            3,
            28,
            "0:0 1:0 2:0 0:1 1:8 2:1 0:2 1:9 2:8 0:3 1:10 2:9 0:8 1:11 2:10 0:9 1:16 2:11 0:10 1:17 \
             2:16 0:11 1:18 2:17 0:16 1:19 2:18 0:17 1:24 2:19 0:18 1:25",
        ),
        (
            "zonesize=32k zonerange=16k",
            2,
            32,
            "0:0 1:0 0:1 1:1 0:0 1:2 0:1 1:3 0:8 1:0 0:9 1:1 0:8 1:2 0:9 1:3 0:16 1:0",
        ),
        ("zonesize=8k zonerange=16k", 2, 32, "0:0 1:0 0:8 1:1 0:16 1:2 0:24 1:3 0:0 1:0"),
        (
            "zonesize=16k zonerange=16k file_service_type=sequential",
            2,
            32,
            "0:0 0:1 0:2 0:3 0:8 0:9 0:10 0:11 0:16",
        ),
        (
            "zonesize=16k zonerange=16k rw=write fsync=3",
            2,
            32,
            "0:0 1:0 0:1 0:2 1:8 0:3 0:0 1:9 0:8 0:9 1:10 0:10 0:16 1:11 0:17 0:18 1:16 0:19 0:16",
        ),
    ] {
        let rw = if settings.contains("rw=") { "" } else { "rw=read" };
        let settings = format!("{rw} nrfiles={files} zonemode=strided zoneskip=16k {settings}");
        let count = expected.split_whitespace().count();
        assert_eq!(in_order(&settings, files, blocks, count), expected, "{settings}");
    }
}

#[test]
fn random_zones_of_several_files_end_as_in_fio() {
    // The second file never moves to another zone: it has no block left after four requests.
    let order = in_order(
        "rw=randread nrfiles=2 zonemode=strided zonesize=16k zonerange=16k zoneskip=16k",
        2,
        32,
        24,
    );
    let zone = |one: &str| {
        one.split_once(':')
            .map(|(file, block)| (file.to_owned(), block.parse::<u64>().unwrap() / 4))
            .unwrap()
    };
    let zones: Vec<(String, u64)> = order.split(' ').map(zone).collect();
    let expected = "0:0 1:0 0:0 1:0 0:2 1:0 0:2 1:0 0:4 0:4 0:4 0:4 0:6 0:6 0:6 0:6 0:0 0:0 0:0 0:0 0:2 0:2 0:2 0:2";
    let expected: Vec<(String, u64)> = expected
        .split(' ')
        .map(|one| {
            one.split_once(':')
                .map(|(file, zone)| (file.to_owned(), zone.parse().unwrap()))
                .unwrap()
        })
        .collect();
    assert_eq!(zones, expected, "{order}");
}

#[test]
fn random_requests_of_several_files_follow_in_each() {
    let order = in_order("rw=randread nrfiles=2 percentage_random=30", 2, 512, 400);
    let mut next = [None; 2];
    let (mut follows, mut turns) = (0, 0);
    for (number, one) in order.split(' ').enumerate() {
        let (file, block) = one.split_once(':').unwrap();
        let (file, block): (usize, u64) = (file.parse().unwrap(), block.parse().unwrap());
        turns += usize::from(file == number % 2);
        follows += usize::from(next[file] == Some(block));
        next[file] = Some(block + 1);
    }
    assert_eq!(turns, 400, "the files take turns");
    assert!((240..=320).contains(&follows), "{follows} of 400 follow the one before in their file");
}

#[test]
fn files_are_opened_when_those_before_are_done() {
    let order = |settings: &str| in_order(&format!("nrfiles=4 {settings}"), 4, 2, 8);
    assert_eq!(order("rw=read openfiles=2"), "0:0 1:0 0:1 1:1 2:0 3:0 2:1 3:1");
    assert_eq!(order("rw=read openfiles=3"), "0:0 1:0 2:0 0:1 1:1 2:1 3:0 3:1");
    assert_eq!(order("rw=read openfiles=4"), "0:0 1:0 2:0 3:0 0:1 1:1 2:1 3:1");
    let files = |settings: &str| -> Vec<String> {
        order(settings).split(' ').map(|one| one[..1].to_owned()).collect()
    };
    assert_eq!(files("rw=randread openfiles=2").concat(), "01012323");
}

#[test]
fn a_file_that_ends_before_the_others_has_no_more_turns_in_the_pass() {
    let part = ((4096, 3 * 4096), &[4096, 3 * 4096, 0, 2 * 4096][..], 4 * 4096);
    let writes: Vec<(Op, u64)> = (0..12).map(|block| (Op::Write, block)).collect();
    let turns = FileTurns::new(&job("rw=write nrfiles=4"), 4, part, 1, Some(2));
    assert_eq!((turns.region(), turns.pass_bytes()), ((4 * 4096, 6 * 4096), 6 * 4096));
    let pass = [(0, 1), (1, 1), (3, 1), (1, 2), (3, 2), (1, 3)];
    assert_eq!(placed(&turns, &writes), [pass, pass].concat());
    let mut request = Request { op: Op::Write, target: 0, offset: 0, len: 4096, slot: 0 };
    assert!(!turns.place(&mut request), "two passes are over");

    for service in ["roundrobin", "random", "sequential"] {
        let options = format!("rw=randread nrfiles=4 filesize=4k-12k file_service_type={service}");
        let turns = FileTurns::new(&job(&options), 4, part, 1, Some(1));
        let mut drawn = placed(&turns, &writes[..6]);
        drawn.sort_unstable();
        assert_eq!(drawn, [(0, 1), (1, 1), (1, 2), (1, 3), (3, 1), (3, 2)], "{service}");
    }
}

#[test]
fn each_direction_and_file_goes_on_after_a_random_place() {
    let mix: Vec<(Op, u64)> = [Op::Read, Op::Write, Op::Read, Op::Read, Op::Write, Op::Write]
        .into_iter()
        .zip([5, 20, 30, 9, 12, 17])
        .collect();
    let turns = one_pass(&job("rw=randrw:3"), 1, (0, 64 * 4096), 1);
    // The stream draws the first of three; a write has no place to go on from yet.
    assert_eq!(placed(&turns, &mix), [(0, 5), (0, 0), (0, 6), (0, 9), (0, 1), (0, 2)]);

    let reads: Vec<(Op, u64)> = (0..8).map(|block| (Op::Read, block)).collect();
    let turns = one_pass(&job("rw=randread:4 nrfiles=2"), 2, (0, 64 * 4096), 1);
    let places = placed(&turns, &reads);
    assert!(places.iter().enumerate().all(|(at, (file, _))| *file as usize == at % 2));
    let first = places[0].1;
    // Of four requests the first is random: the others go on in their file.
    assert_eq!(
        [places[1].1, places[2].1, places[3].1, places[5].1],
        [0, first + 1, 1, 2],
        "{places:?}"
    );
}

#[test]
fn runs_begin_at_popular_places() {
    let mut popular = Vec::new();
    for (settings, files) in [
        ("rw=randread:2 bssplit=4k/50:8k/50 random_distribution=zipf:1.2", 1),
        ("rw=randread nrfiles=2 percentage_random=50 random_distribution=zipf:1.2", 2),
    ] {
        let turns = FileTurns::new(&job(settings), files, ((0, 1 << 20), &[], 1 << 20), 1, None);
        let mut counts = std::collections::HashMap::new();
        let mut ends = [0; 2];
        let mut follow = 0;
        for number in 0..4000 {
            let len = if files == 1 && number % 3 == 0 { 8192 } else { 4096 };
            let mut request = Request { op: Op::Read, target: 0, offset: 0, len, slot: 0 };
            assert!(turns.place(&mut request));
            let end = &mut ends[request.target as usize];
            if request.offset == *end {
                follow += 1;
            } else {
                *counts.entry((request.target, request.offset)).or_insert(0) += 1;
            }
            *end = request.offset + u64::from(request.len);
            assert!(request.offset.is_multiple_of(4096) && *end <= 1 << 20, "{request:?}");
        }
        assert!((1900..=2300).contains(&follow), "{follow} of 4000 follow the one before");
        // By the law, the most popular of 256 places has a quarter of the draws.
        let all: u32 = counts.values().sum();
        for file in 0..files as u32 {
            let of_file = counts.iter().filter(|((of, _), _)| *of == file);
            let (&(_, place), &most) = of_file.max_by_key(|(_, count)| **count).unwrap();
            assert!(u64::from(most) * files * 6 > u64::from(all), "{most} of {all}");
            popular.push(place);
        }
    }
    assert_ne!(popular[1], popular[2], "each file has its own popular place");
}
