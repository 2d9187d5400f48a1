//! Models of points with a known law.

use super::{Measured, device, setting};
use machine::CacheState;
use results::{Axis, CostMode, CostScope, Figure, PeakSource, ServiceMode, Varied};
use workload::OpKind;

fn near(what: &str, found: f64, truth: f64, tolerance: f64) {
    assert!((found / truth - 1.0).abs() <= tolerance, "{what}: found {found}, in truth {truth}");
}

fn concluded(id: &str) -> crate::conclusion::Conclusion {
    let measured = Measured::new(setting(), |cell| Some(device(&cell.workload)));
    let trial =
        measured.trials.iter().find(|trial| trial.experiment.id == id).expect("an experiment");
    (trial.experiment.conclude)(&measured.found())
}

#[test]
fn service_time_is_fixed_plus_size_over_rate() {
    let models = concluded("unbuffered").service_times;
    let modes: Vec<ServiceMode> = models.iter().map(|model| model.mode).collect();
    assert_eq!(
        modes,
        [ServiceMode::DirectRead, ServiceMode::DirectWrite, ServiceMode::WriteThrough]
    );
    for model in models {
        near("fixed time", model.fixed_ns, 100e3, 0.01);
        near("rate", model.rate_bytes_per_s.expect("it rises with size"), 500e6, 0.01);
    }
}

#[test]
fn sizes_that_a_cache_had_ready_and_those_that_it_had_not_obey_laws_of_their_own() {
    let law =
        |bytes: f64| if bytes <= 8192.0 { 50e-6 + bytes / 1e9 } else { 900e-6 + bytes / 20e6 };
    let measured =
        Measured::new(setting(), |cell| Some(1.0 / law(f64::from(cell.workload.request_bytes))));
    let trial = measured
        .trials
        .iter()
        .find(|trial| trial.experiment.id == "device_cache")
        .expect("an experiment");
    let models = (trial.experiment.conclude)(&measured.found()).service_times;
    assert_eq!(models.len(), 6, "two regimes of three modes: {models:?}");
    for pair in models.chunks(2) {
        let [Some(below), Some(above)] = [pair[0].sizes_bytes, pair[1].sizes_bytes] else {
            panic!("{pair:?}")
        };
        assert!(
            below[1] == 8192.0 && above[0] > 8192.0 && below[0] < 8192.0 && above[1] > 65_536.0,
            "{pair:?}"
        );
        near("fixed below", pair[0].fixed_ns, 50e3, 0.01);
        near("rate below", pair[0].rate_bytes_per_s.expect("it rises with size"), 1e9, 0.02);
        near("fixed above", pair[1].fixed_ns, 900e3, 0.01);
        near("rate above", pair[1].rate_bytes_per_s.expect("it rises with size"), 20e6, 0.01);
    }
}

#[test]
fn cost_is_so_much_a_request_and_a_byte() {
    let models = concluded("cost").costs;
    assert_eq!(models.len(), 8, "four modes, of the process and of the machine");
    for model in models {
        let buffered = matches!(model.mode, CostMode::BufferedRead | CostMode::BufferedWrite);
        let (request, byte) = if buffered { (1000.0, 0.3) } else { (2000.0, 0.1) };
        let factor = if model.whose == CostScope::Machine { 2.0 } else { 1.0 };
        near("a request", model.ns_per_request, request * factor, 0.02);
        near("a byte", model.ns_per_byte, byte * factor, 0.02);
    }
}

#[test]
fn half_power_matches_the_law() {
    let all = concluded("depth").half_power;
    let of = |of: Varied, at: &str, op: OpKind, from: PeakSource| {
        all.iter().find(|one| one.of == of && one.at == at && one.op == op && one.peak_from == from)
    };
    // depth x size / (100 us + size / 500 MB/s) = peak / 2, for peaks of 2 GB/s and 1 GB/s.
    for (depth, op, peak) in
        [(8.0, OpKind::Read, 2e9), (3.0, OpKind::Write, 1e9), (32.0, OpKind::Read, 2e9)]
    {
        let truth = 100e-6 / (2.0 * depth / peak - 1.0 / 500e6);
        let half = of(Varied::RequestBytes, &format!("depth {depth}"), op, PeakSource::Measured)
            .expect("a point");
        near("size at half power", half.crossing.expect("it crosses"), truth, 0.02);
        assert!(half.smallest >= half.crossing && !half.at_or_below, "{half:?}");
        let [low, high] = half.interval_95.expect("an interval");
        assert!((low..=high).contains(&truth), "{truth} in {low} to {high}");
    }
    let single =
        of(Varied::RequestBytes, "depth 1", OpKind::Read, PeakSource::Measured).expect("a point");
    assert_eq!(single.smallest, None, "one at a time reaches a quarter of the peak");
    let by_depth =
        of(Varied::Depth, "64 KiB requests", OpKind::Read, PeakSource::Measured).expect("a point");
    assert_eq!(by_depth.smallest, Some(8.0));
    let advertised =
        of(Varied::Depth, "1 MiB requests", OpKind::Read, PeakSource::Advertised).expect("a point");
    assert_eq!((advertised.peak_bytes_per_s, advertised.smallest), (4e9, Some(8.0)));
    assert!(of(Varied::Depth, "1 MiB requests", OpKind::Write, PeakSource::Advertised).is_none());
}

#[test]
fn a_curve_has_the_half_power_point_of_its_own_best() {
    let measured = Measured::new(setting(), |cell| {
        Some(if cell.workload.cache == CacheState::Warm {
            1e9 / 4096.0
        } else {
            device(&cell.workload)
        })
    });
    let trial = measured
        .trials
        .iter()
        .find(|trial| trial.experiment.id == "random")
        .expect("an experiment");
    let figure = &crate::figures::draw(trial, &measured.points)[0];
    let series = figure.series.iter().find(|series| series.name == "read, 4 KiB").expect("a curve");
    let half = series.half_power.as_ref().expect("it is asked for");
    // The best is bandwidth-bound: 2 GB/s of 4 KiB, and the document reports bytes.
    near("peak", half.peak_bytes_per_s, 2e9, 0.01);
    assert_eq!((half.of, half.smallest), (Varied::Depth, Some(32.0)));
}

#[test]
fn only_a_rate_has_a_half_power_point() {
    let measured = Measured::new(setting(), |cell| Some(device(&cell.workload)));
    let figures =
        measured.trials.iter().flat_map(|trial| crate::figures::draw(trial, &measured.points));
    let (rates, others): (Vec<_>, Vec<_>) =
        figures.partition(|figure| matches!(figure.y, Axis::BytesPerS | Axis::Iops));
    let has_half = |figures: &[Figure]| -> Vec<String> {
        let halves = figures
            .iter()
            .filter(|figure| figure.series.iter().any(|series| series.half_power.is_some()));
        halves.map(|figure| figure.title.clone()).collect()
    };
    assert_eq!(has_half(&others), Vec::<String>::new(), "half of a processor time");
    assert!(!has_half(&rates).is_empty());
}
