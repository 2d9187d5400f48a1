//! Reported gains, their order, and the commands that repeat them.

use super::{Measured, entry, facts, setting};
use crate::advice::{advice, plain_rates, steps};
use crate::command::Command;
use crate::conclusion::{Change, Comparison};
use crate::confirm::highest;
use crate::doubts::of_peaks;
use crate::findings::findings;
use crate::found::{Found, PeakRates, Reading, smallest};
use crate::grid::StripeShape;
use crate::sampler::Entry;
use machine::{CacheState, Engine, Figure, TargetSpec, Warning};
use results::{Finding, Goal, Point};
use workload::{OpKind, Pattern, Stop, Workload};

fn workload(request_bytes: u32, depth: u32) -> Workload {
    let engine = if depth > 1 { Engine::IoUring } else { Engine::Sync };
    Workload { request_bytes, depth, engine, ..Workload::default() }
}

fn reading(x: f64, y: f64, point: usize) -> Reading {
    Reading { x, y, interval_95: Some([y * 0.99, y * 1.01]), exact: false, point }
}

fn command() -> Command {
    Command::new(&TargetSpec { places: vec!["/data".into()], ..TargetSpec::default() }, &facts())
}

fn of(entries: &[Entry], pairs: &[(Change, usize, usize)]) -> Vec<Finding> {
    let points: Vec<Point> = entries.iter().map(|entry| entry.point().clone()).collect();
    let comparison = |(number, &(change, before, after)): (usize, &(Change, usize, usize))| {
        let at = |point| reading(0.0, 0.0, point);
        Comparison::new(change, at(before), at(after), format!("{number}"), "setting")
    };
    let comparisons: Vec<Comparison> = pairs.iter().enumerate().map(comparison).collect();
    findings(&comparisons, entries, &points, &command(), |_| false).proven
}

#[test]
fn a_gain_and_its_interval_are_of_the_same_runs() {
    // The machine drifts: both runs of a pair share the drift, so the ratio is unaffected.
    let entries = [
        entry(workload(4096, 1), &[100.0, 80.0, 120.0, 60.0, 150.0]),
        entry(workload(4096, 8), &[181.0, 143.0, 217.0, 107.0, 271.0]),
    ];
    let found = of(&entries, &[(Change::Depth, 0, 1)]);
    let [one] = &found[..] else { panic!("{found:?}") };
    let [low, high] = one.gain_interval_95.expect("a gain has an interval");
    assert!(low <= one.gain && one.gain <= high && low > 1.75 && high < 1.85, "{one:?}");
}

#[test]
fn uncertain_or_small_gains_are_not_findings() {
    let short = |iops| {
        let mut entry = entry(workload(4096, 1), &[iops]);
        entry.measured.samples[0].slice_rates.truncate(2);
        entry
    };
    let entries = [
        entry(workload(4096, 1), &[100.0, 100.0, 100.0]),
        entry(workload(4096, 2), &[300.0, 90.0, 150.0]),
        entry(workload(4096, 3), &[105.0, 105.0, 105.0]),
        short(100.0),
        short(1000.0),
        entry(workload(4096, 4), &[]),
    ];
    let pairs = [(0, 1), (0, 2), (3, 4), (0, 5), (5, 0), (0, 0), (2, 0)]
        .map(|(a, b)| (Change::Depth, a, b));
    assert_eq!(of(&entries, &pairs), []);
}

#[test]
fn one_run_each_has_the_ratio_of_the_two_rates() {
    let entries = [entry(workload(4096, 1), &[1000.0]), entry(workload(65_536, 1), &[250.0])];
    let found = of(&entries, &[(Change::Size, 0, 1)]);
    let [low, high] = found[0].gain_interval_95.expect("slices give one");
    assert!(
        (found[0].gain - 4.0).abs() < 0.01 && low < 4.0 && high > 4.0 && high - low < 0.1,
        "{found:?}"
    );
}

#[test]
fn the_best_of_each_kind_comes_first() {
    let entries: Vec<Entry> = [100.0, 200.0, 300.0, 400.0]
        .iter()
        .enumerate()
        .map(|(number, &iops)| {
            entry(workload(4096, number as u32 + 1), &[iops, iops * 1.01, iops * 0.99])
        })
        .collect();
    let pairs =
        [(Change::Size, 0, 1), (Change::Size, 0, 3), (Change::Size, 0, 2), (Change::Depth, 0, 1)];
    let order: Vec<String> =
        of(&entries, &pairs).into_iter().map(|finding| finding.title).collect();
    assert_eq!(
        order,
        ["1", "3", "2", "0"],
        "sizes gain most, but their second and third come after the depth"
    );
}

fn of_plain(entries: &[Entry], pairs: &[(usize, usize, &str)]) -> (Vec<String>, Vec<String>) {
    let points: Vec<Point> = entries.iter().map(|entry| entry.point().clone()).collect();
    let at = |point| reading(0.0, 0.0, point);
    let comparison = |&(before, after, title): &(usize, usize, &str)| {
        Comparison::new(Change::Plain, at(before), at(after), title, "setting")
    };
    let comparisons: Vec<Comparison> = pairs.iter().map(comparison).collect();
    let found = findings(&comparisons, entries, &points, &command(), |_| true);
    let unproven = found.unproven.iter().map(ToString::to_string).collect();
    (found.proven.into_iter().map(|finding| finding.title).collect(), unproven)
}

#[test]
fn a_sure_gain_comes_before_a_greater_one_that_is_hardly_sure() {
    let write = |depth| Workload { read_percent: 0, ..workload(65_536, depth) };
    let entries = [
        entry(workload(65_536, 1), &[100.0, 100.0, 100.0]),
        entry(workload(65_536, 8), &[250.0, 700.0, 160.0]),
        entry(write(1), &[100.0, 100.0, 100.0]),
        entry(write(8), &[180.0, 181.0, 179.0]),
        entry(workload(65_536, 32), &[900.0, 90.0, 90.0]),
    ];
    let (proven, unproven) =
        of_plain(&entries, &[(0, 1, "unsure"), (2, 3, "sure"), (0, 4, "anything")]);
    assert_eq!(proven.first().map(String::as_str), Some("sure"), "{proven:?}");
    assert!(unproven.iter().any(|one| one.starts_with("anything")), "{unproven:?}");
}

#[test]
fn a_gain_that_takes_one_change_comes_before_a_little_more_for_two() {
    let write = |request, depth| Workload { read_percent: 0, ..workload(request, depth) };
    let entries = [
        entry(workload(65_536, 1), &[100.0, 100.1, 99.9]),
        entry(workload(65_536, 8), &[200.0, 200.1, 199.9]),
        entry(write(65_536, 1), &[100.0, 100.1, 99.9]),
        entry(write(1 << 20, 8), &[100.0 * 2.5 / 16.0; 3]),
    ];
    let (proven, _) = of_plain(&entries, &[(2, 3, "two changes"), (0, 1, "one change")]);
    assert_eq!(proven, ["one change", "two changes"]);
}

#[test]
fn single_runs_prove_a_gain_only_if_runs_repeat_exactly() {
    let single = |workload: Workload, iops| {
        let mut entry = entry(workload, &[iops]);
        entry.measured.samples[0].slice_rates.truncate(2);
        entry
    };
    let mut entries = [single(workload(4096, 1), 100.0), single(workload(4096, 8), 300.0)];
    let (proven, unproven) = of_plain(&entries, &[(0, 1, "deeper")]);
    assert_eq!((proven.len(), unproven), (0, vec!["deeper (3.0 times in one run)".to_owned()]));
    for entry in &mut entries {
        entry.facts.kind = machine::TargetKind::Simulated;
    }
    let (proven, unproven) = of_plain(&entries, &[(0, 1, "deeper")]);
    assert_eq!((proven, unproven.len()), (vec!["deeper".to_owned()], 0));
}

#[test]
fn several_changes_are_taken_one_at_a_time() {
    let plain = Workload { buffering: machine::Buffering::Buffered, ..workload(65_536, 1) };
    let entries = [
        entry(plain, &[100.0, 100.1, 99.9]),
        entry(workload(1 << 20, 8), &[50.0, 50.1, 49.9]),
        entry(workload(65_536, 1), &[40.0, 40.1, 39.9]),
        entry(workload(1 << 20, 1), &[10.0, 10.1, 9.9]),
    ];
    let path: Vec<(usize, usize, String)> = steps(&entries, 0, 1);
    let said: Vec<&str> = path.iter().map(|(_, _, change)| change.as_str()).collect();
    assert_eq!(said, ["past the page cache", "1 MiB", "8 outstanding"]);
    assert_eq!(
        path.iter().map(|(from, to, _)| (*from, *to)).collect::<Vec<_>>(),
        [(0, 2), (2, 3), (3, 1)]
    );
    // The gains of the steps multiply to the total gain.
    let finding = &of(&entries, &[(Change::Plain, 0, 1)])[0];
    let product: f64 = finding.steps.iter().map(|step| step.gain).product();
    assert!((product / finding.gain - 1.0).abs() < 0.01, "{finding:?}");
    assert_eq!(steps(&entries[..2], 0, 1), [], "nothing was measured between them");
}

#[test]
fn the_smallest_good_setting_is_recommended() {
    let curve: Vec<Reading> = [(4096.0, 10.0), (8192.0, 91.0), (16_384.0, 100.0), (32_768.0, 99.0)]
        .iter()
        .enumerate()
        .map(|(point, &(x, y))| reading(x, y, point))
        .collect();
    assert_eq!(smallest(&curve, 0.9).map(|one| one.x), Some(8192.0));
    let comparison = Comparison::of_sizes(&curve, "Read").expect("more than 4 KiB is better");
    assert_eq!(
        (comparison.title.as_str(), comparison.before, comparison.after),
        ("Read in requests of 8 KiB, not 4 KiB", 0, 1)
    );
    assert_eq!(Comparison::of_sizes(&curve[..1], "Read"), None);
    assert_eq!(Comparison::of_depths(&[], |_| String::new()), None);
}

#[test]
fn one_difference_is_a_sweep_and_more_are_two_runs() {
    let [small, large, deep] =
        [(4096, 1), (1 << 20, 1), (4096, 8)].map(|(size, depth)| entry(workload(size, depth), &[]));
    assert_eq!(
        command().check(&small, &large),
        "halfpower sweep /data --op read --pattern seq --request 4k,1m --depth 1 --engine sync --direct --size 8GiB"
    );
    assert_eq!(command().check(&small, &deep).matches("halfpower run /data").count(), 2);
    // Runs of a non-default length are repeated at that length.
    let [short, shorter] = [30_000_000, 12_500]
        .map(|ns| entry(Workload { stop: Stop::AfterNs(ns), ..workload(4096, 1) }, &[]));
    assert!(command().check(&short, &large).starts_with("halfpower run /data --op read"));
    assert!(command().check(&short, &large).contains("--size 8GiB --runtime 30ms; halfpower run"));
    assert!(command().check(&shorter, &shorter).contains("--runtime 13us"));
    // An option that sweep takes no list of.
    let region = |bytes| entry(Workload { region_bytes: Some(bytes), ..workload(4096, 1) }, &[]);
    assert_eq!(
        command().check(&region(1 << 20), &region(2 << 20)).matches("halfpower run").count(),
        2
    );
}

#[test]
fn a_command_names_all_that_the_target_needs() {
    let spec = TargetSpec {
        places: vec!["/dev/my disk".into(), "/dev/b".into()],
        size: Some(1 << 30),
        destroy: vec!["/dev/my disk".into(), "/dev/b".into()],
        destroy_signed: true,
        chunk: 16_384,
        ..TargetSpec::default()
    };
    let command =
        Command::new(&spec, &machine::TargetFacts { kind: machine::TargetKind::Stripe, ..facts() });
    let write = Workload { read_percent: 0, ..workload(4096, 1) };
    let allowed = "--destroy-data '/dev/my disk' --destroy-data /dev/b --destroy-signature";
    let said = command
        .check(&entry(write.clone(), &[]), &entry(Workload { depth: 2, ..write.clone() }, &[]));
    assert!(
        said.starts_with(&format!("halfpower sweep '/dev/my disk' /dev/b {allowed} --op write")),
        "{said}"
    );
    assert!(said.ends_with("--size 1GiB --chunk 16KiB"), "{said}");
    // A stripe's shape: its members and its chunk.
    let shaped = |members, chunk| {
        let mut entry = entry(workload(4096, 1), &[]);
        entry.shape = Some(StripeShape { members, chunk });
        entry
    };
    let said = command.check(&shaped(vec![0, 1], 4096), &shaped(vec![1], 65_536));
    let [both, one] = said.split("; ").collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(
        both.starts_with("halfpower run '/dev/my disk' /dev/b --op read")
            && both.ends_with("--chunk 4KiB"),
        "{said}"
    );
    assert!(one.starts_with("halfpower run /dev/b --op read"), "{said}");
}

#[test]
fn no_two_advices_are_nearly_the_same() {
    for fixed_us in [5.0, 50.0, 500.0, 5000.0] {
        for max in [0.3e9, 0.6e9, 2e9] {
            let measured = Measured::new(setting(), |cell| {
                let bytes = f64::from(cell.workload.request_bytes);
                let one = fixed_us * 1e-6 + bytes / 500e6;
                // A plain program also waits for its copies.
                let own =
                    if cell.workload.buffering.is_direct() { 0.0 } else { 20e-6 + bytes / 200e6 };
                Some((f64::from(cell.workload.outstanding()) / (one + own)).min(max / bytes))
            });
            let found = Found {
                measured: PeakRates { read: Some(max.into()), write: Some(max.into()) },
                ..measured.found()
            };
            let advices = advice(&found);
            let rate = |index: usize| measured.points[index].rate().expect("a rate");
            for (number, one) in advices.iter().enumerate() {
                for other in &advices[number + 1..] {
                    let same_op = measured.points[one.after].workload.op
                        == measured.points[other.after].workload.op
                        && one.before == other.before;
                    let ratio = rate(other.after) / rate(one.after);
                    assert!(
                        !same_op || ratio >= 1.25,
                        "{} and {}: {ratio}",
                        one.title,
                        other.title
                    );
                }
            }
            assert!(!advices.is_empty(), "{fixed_us} us, {max}: a plain program is slow here");
        }
    }
}

fn plain_shares(large: f64, small: f64) -> (Measured, PeakRates) {
    let measured = Measured::new(setting(), move |cell| {
        let workload = &cell.workload;
        let bytes = f64::from(workload.request_bytes);
        let share = match workload.request_bytes {
            65_536.. if workload.buffering.is_direct() => 1.0,
            65_536.. => large,
            _ => small,
        };
        // The flush of plain writes takes as long as the writes; see `run`.
        let flush = if workload.sync_at_end { 2.0 } else { 1.0 };
        Some(500e6 / bytes * share * flush)
    });
    (measured, PeakRates { read: Some(500e6.into()), write: Some(500e6.into()) })
}

#[test]
fn plain_rates_are_shown_as_shares_of_the_peak() {
    let (measured, peaks) = plain_shares(0.97, 0.6);
    let found = Found { measured: peaks, ..measured.found() };
    for op in [OpKind::Read, OpKind::Write] {
        let of_op: Vec<_> = plain_rates(&found).into_iter().filter(|one| one.op == op).collect();
        let said: Vec<_> = of_op.iter().map(|one| (one.request_bytes, one.reaches)).collect();
        assert_eq!(said, [(65_536, Some(Goal::NinetyPercent)), (4096, Some(Goal::Half))], "{op}");
        for (one, share) in of_op.iter().zip([0.97, 0.6]) {
            assert!((one.share_of_peak.expect("a peak") - share).abs() < 0.01, "{one:?}");
            let [low, high] = one.interval_95.expect("three runs");
            assert!(
                low <= one.throughput_bytes_per_s && one.throughput_bytes_per_s <= high,
                "{one:?}"
            );
        }
    }
}

#[test]
fn advice_names_its_goal_and_starts_from_every_plain_size() {
    let said = |large, small| -> Vec<(String, Option<Goal>)> {
        let (measured, peaks) = plain_shares(large, small);
        let found = Found { measured: peaks, ..measured.found() };
        let reads = advice(&found).into_iter().filter(|one| one.title.starts_with("Read"));
        reads.map(|one| (one.title.clone(), one.reaches)).collect()
    };
    assert_eq!(said(0.97, 0.95), [], "a plain program gets the peak");
    // Only small requests are slow, so larger ones are enough.
    let larger = "Read in requests of 64 KiB, not 4 KiB: 90 % of the peak".to_owned();
    assert_eq!(said(0.97, 0.3), [(larger, Some(Goal::NinetyPercent))]);
    // The advice for 64 KiB is not repeated for 4 KiB.
    let direct = "Read past the page cache: 90 % of the peak".to_owned();
    assert_eq!(said(0.3, 0.2), [(direct, Some(Goal::NinetyPercent))]);
}

#[test]
fn uncommon_access_ranks_last() {
    let buffered = |cache, request_bytes| Workload {
        buffering: machine::Buffering::Buffered,
        cache,
        ..workload(request_bytes, 1)
    };
    let direct =
        |depth| Workload { buffering: machine::Buffering::Direct, ..workload(65_536, depth) };
    let random = |depth| Workload {
        pattern: Pattern::Random,
        buffering: machine::Buffering::Direct,
        ..workload(4096, depth)
    };
    let runs = |iops: f64| [iops, iops * 1.001, iops * 0.999];
    let entries = [
        entry(buffered(CacheState::Warm, 4096), &runs(100.0)),
        entry(buffered(CacheState::Warm, 1 << 20), &runs(100.0)),
        entry(direct(1), &runs(100.0)),
        entry(direct(8), &runs(400.0)),
        entry(random(1), &runs(100.0)),
        entry(random(4), &runs(150.0)),
        entry(random(2), &runs(120.0)),
        entry(buffered(CacheState::Cold, 65_536), &runs(100.0)),
        entry(buffered(CacheState::Cold, 1 << 20), &runs(12.0)),
    ];
    let pairs = [
        (Change::Size, 0, 1),
        (Change::Depth, 2, 3),
        (Change::Depth, 4, 6),
        (Change::Depth, 4, 5),
        (Change::Mechanism, 7, 8),
    ];
    let order: Vec<String> =
        of(&entries, &pairs).into_iter().map(|finding| finding.title).collect();
    assert_eq!(
        order,
        ["4", "3", "2", "1", "0"],
        "cold and random reads, then deep direct ones, then a warm cache"
    );
}

#[test]
fn a_folded_doubt_counts_the_points_that_have_it() {
    let point = |warning: Warning| {
        let mut point = entry(workload(4096, 1), &[100.0; 3]).point().clone();
        point.numbers.as_mut().expect("it ran").warn([warning]);
        point
    };
    let busy = |value| Warning::of("{} busy", [Figure::rounded(value, 1)]);
    let points = [busy(1.5), busy(2.0), busy(3.1), Warning::from("3.1 slow")].map(point);
    let doubts = of_peaks([(OpKind::Read, &busy(1.5)), (OpKind::Read, &busy(2.0))], &points);
    assert_eq!(doubts, ["the best read: 1.5 to 2.0 busy (at 3 of 4 points)"]);
}

#[test]
fn the_peak_moves_to_a_point_that_is_surely_faster() {
    let direct =
        |depth| Workload { buffering: machine::Buffering::Direct, ..workload(1 << 20, depth) };
    let with = |rates: &[f64]| {
        let entries = [entry(direct(8), &[1900.0, 1910.0, 1905.0]), entry(direct(16), rates)];
        let mut peaks = [(workload::OpKind::Read, 0)];
        let moved = highest(&entries, &setting(), &mut peaks, &[], &[]);
        (moved.len(), peaks[0].1)
    };
    assert_eq!(with(&[2300.0, 2310.0, 2290.0]), (1, 1));
    assert_eq!(with(&[1800.0, 2300.0, 2100.0]), (0, 0), "it may be as fast");
    assert_eq!(with(&[1890.0, 1895.0, 1893.0]), (0, 0));
    assert_eq!(with(&[2300.0, 2310.0]), (0, 0), "two runs settle nothing");
}

#[test]
fn a_plain_program_gets_at_most_the_peak() {
    let plain = Workload {
        buffering: machine::Buffering::Buffered,
        cache: machine::CacheState::Cold,
        ..workload(65_536, 1)
    };
    let best = Workload { buffering: machine::Buffering::Direct, ..workload(1 << 20, 8) };
    let entries = [entry(best, &[100.0, 101.0, 99.0]), entry(plain, &[1650.0, 1600.0, 1700.0])];
    let mut peaks = [(workload::OpKind::Read, 0)];
    highest(&entries, &setting(), &mut peaks, &[], &[]);
    assert_eq!(peaks[0].1, 1, "the intervals overlap, and the plain rate is above");
}
