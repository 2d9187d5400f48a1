//! The model must match the published figures of the 1997 study.

use machine::Op;
use predict::validate::predictions::Predicted;
use predict::validate::{Point, Validation, published, validate};

#[test]
fn every_bar_holds_and_the_figures_are_the_same_on_every_run() {
    let validation = validate().unwrap();
    assert_eq!(validate().unwrap(), validation);
    for bar in &validation.bars {
        assert!(bar.holds, "{}: {:.4}, at most {}", bar.name, bar.value, bar.limit);
    }
    let points: usize = validation.figures.iter().map(|figure| figure.points.len()).sum();
    assert_eq!(points, 403 + 76 + 3 + 7 + 48 + 48 + 42 + 2 + 3, "every published point is there");
    let given: Vec<u32> = validation.groups.iter().map(|group| group.points).collect();
    assert_eq!(given, [315, 88, 79], "throughput, processor time, and what was not given");
    // The study: selecting the drive costs small requests most, after their data.
    let table4 = validation.figure("table4").unwrap();
    let phase = |name: &str, bytes: u32| {
        let of = |point: &&Point| {
            (point.series.as_str(), point.request_bytes, point.disks) == (name, bytes, 1)
        };
        table4.points.iter().find(of).unwrap().simulated
    };
    let (small, large) = (phase("Select", 8 << 10), phase("Select", 64 << 10));
    assert!(small > 18.0 && large < small / 3.0, "Select: {small} % of 8 KB, {large} % of 64 KB");
    let postmark = validation.figure("postmark").unwrap();
    let gain = |of: fn(&Point) -> f64| of(&postmark.points[0]) / of(&postmark.points[1]);
    let (published, here) = (gain(|point| point.measured), gain(|point| point.simulated));
    assert!((here / published - 1.0).abs() < 0.25, "a RAM cache gains {published}: {here}");
    predictions_have_the_conclusions_of_the_study(&validation);
    // The preset's value must solve figure 2, as its source says.
    let writes = validation
        .figure("fig2_cpu")
        .unwrap()
        .points
        .iter()
        .filter(|point| point.series.contains("write"));
    for sizes in [[2048, 4096], [32_768, 65_536]] {
        let at = || writes.clone().filter(|point| sizes.contains(&point.request_bytes));
        let (measured, simulated) = at()
            .fold((0.0, 0.0), |sums, point| (sums.0 + point.measured, sums.1 + point.simulated));
        assert!((simulated / measured - 1.0f64).abs() < 0.01, "{sizes:?}: {measured} {simulated}");
    }
}

/// Figures 9, 13 (misaligned), 15, 16 and 17: their values are not given, their conclusions are.
fn predictions_have_the_conclusions_of_the_study(validation: &Validation) {
    let names: Vec<&str> = validation.predictions.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["fig9", "fig13_misaligned", "fig15_fig16", "fig17_raid5"]);
    let at = |figure: &str, series: &str, disks: u32, kib: u32| -> &Predicted {
        let figure = validation.predictions.iter().find(|one| one.name == figure).unwrap();
        let of = |point: &&Predicted| {
            (point.series.as_str(), point.disks, point.request_bytes) == (series, disks, kib << 10)
        };
        figure.points.iter().find(of).unwrap()
    };
    // Three disks saturate a bus, at about 30 MB/s of reads and 20 MB/s of writes.
    let read = |disks: u32| at("fig9", "unbuf read", disks, 64).mb_per_s;
    assert!(read(3) > 25.0 && read(4) < 1.1 * read(3), "{} {}", read(3), read(4));
    let write = at("fig9", "unbuf write wce", 4, 64).mb_per_s;
    assert!((17.0..23.0).contains(&write), "{write}");
    // Misaligned requests lose up to 20 % (reads) and 15 % (writes).
    for (series, aligned, most) in
        [("read misaligned", 30.98, 0.2), ("write misaligned", 21.22, 0.16)]
    {
        let loss = 1.0 - at("fig13_misaligned", series, 4, 64).mb_per_s / aligned;
        assert!((0.05..most).contains(&loss), "{series}: {loss}");
    }
    // The layer that makes the stripe needs processor time for its pieces.
    let cost = |maker: &str| {
        at("fig15_fig16", &format!("read, striped by the {maker}"), 4, 192).cpu_ms_per_mb
    };
    assert!(cost("host") > 1.3 * cost("array"), "{} {}", cost("host"), cost("array"));
    assert!((cost("adapter") / cost("array") - 1.0).abs() < 0.05);
    // An array beats the host on large writes; reads are equal.
    let raid5 = |op: &str, maker: &str| {
        at("fig17_raid5", &format!("{op}, RAID 5 by the {maker}"), 4, 64).mb_per_s
    };
    assert!(raid5("write", "array") > 1.4 * raid5("write", "host"));
    assert!((raid5("read", "array") / raid5("read", "host") - 1.0).abs() < 0.15);
}

/// The published array writes 64 KB three deep as an array without parity does one at a time, so it
/// read nothing before it wrote.
#[test]
fn the_published_array_writes_like_one_that_reads_no_old_data() {
    use predict::{run, workload};
    let rate = |settings: &str, depth: u32| {
        let name = format!("gateway-1997,drive=st34371w,disks=4,start=12k,wce=off,{settings}");
        let twin = twin::Twin::from_name(&name).unwrap();
        let asked = workload(Op::Write, 64 << 10, depth);
        run(&twin, &twin.volume(), &asked).unwrap().bytes_per_s() / f64::from(1 << 20)
    };
    let published = published::raid5();
    let value = |series: &str| published.iter().find(|one| one.series == series).unwrap().value;
    let (without, with) = (rate("striping=array", 1), rate("parity=array", 3));
    assert!((without / value("array write") - 1.0).abs() < 0.15, "{without}");
    assert!(
        with < 0.7 * value("array write"),
        "{with}: it is no longer off; say so in docs/twin.md"
    );
    // The array joins waiting writes, and so gains about as much over the host as published.
    let gain = with / rate("parity=host", 3);
    let gained = value("array write") / value("host write");
    assert!((gain / gained - 1.0).abs() < 0.15, "{gain} {gained}");
}

/// Refutes that any drive with a full prefetch segment answers like table 3's cache hit: the 8 KB
/// prefetch hits exceed the platter rate, so they came from a full segment, and the Ultra drive's
/// cache hit would answer every small read.
#[test]
fn a_full_segment_answers_like_a_prefetch_hit() {
    let service_ms = |drive: &str, bytes: u32, again: bool| {
        let found = published::table3()
            .into_iter()
            .find(|(b, d, a, _)| (*b, d.as_str(), *a) == (bytes, drive, again));
        found.expect("a row of table 3").3
    };
    let figure3 = |drive: &str, kib: u32| {
        let measured = published::measurements();
        let found = measured.iter().find(|point| {
            let sync = point.figure == "fig3_throughput" && point.depth == 1 && !point.buffered;
            sync && point.drive == drive && point.op == Op::Read && point.request_kb == kib
        });
        found.expect("a read of figure 3").value
    };
    let mib_per_s = |bytes: u32, ms: f64| f64::from(bytes) / f64::from(1 << 20) / ms * 1e3;
    for drive in ["st15150w", "st34371w"] {
        let (full, media) = (mib_per_s(8192, service_ms(drive, 8192, false)), figure3(drive, 64));
        assert!(
            full > 1.3 * media,
            "{drive}: {full} MB/s from the segment, {media} from the platter"
        );
    }
    // Synchronous 2 KB reads are slower than the platter, so they find the segment full.
    let (media, small) = (figure3("st34371w", 64), figure3("st34371w", 2));
    let as_cache_hit = mib_per_s(2048, service_ms("st34371w", 2048, true));
    assert!(
        small < 0.7 * media && as_cache_hit < 0.1 * small,
        "{small} MB/s measured, {as_cache_hit} if answered so"
    );
}
