//! The grid of a target, and its reduction when time is short.

use super::{facts, setting};
use crate::context::StudyContext;
use crate::experiments::ALL;
use crate::experiments::wanted;
use crate::grid::Rank;
use crate::plan::{Effort, Plan};
use crate::schedule::thin;
use machine::{CacheState, Layer, LayerKind, Share, TargetFacts, units::KIB};
use results::Question;
use std::collections::BTreeSet;
use workload::OpKind;

fn plan(effort: Effort) -> Plan {
    Plan { budget_ns: 60_000_000_000, effort, only: Vec::new(), seed: 7 }
}

#[test]
fn sizes_fit_the_target() {
    let of = |direct_align_bytes, size_bytes| {
        let facts = TargetFacts { direct_align_bytes, size_bytes, ..facts() };
        let sizes = StudyContext { facts, ..setting() }.sizes();
        assert!(sizes.is_sorted_by(|a, b| a.0 < b.0), "{sizes:?}");
        sizes
    };
    let all = of(512, 8 << 30);
    assert_eq!((all[0], all.last()), ((512, Rank::Core), Some(&(16 << 20, Rank::Usual))));
    assert_eq!(of(4096, 8 << 30)[0], (4096, Rank::Core));
    assert!(of(4096, 8 << 30).iter().all(|(size, _)| size % 4096 == 0));
    let small = of(512, 1 << 20);
    assert_eq!(small.last(), Some(&(256 << 10, Rank::Core)), "four requests fit");
}

#[test]
fn a_resident_request_fits_its_region_twice() {
    let setting = setting();
    let resident = setting.resident_bytes();
    let fits = setting.resident(OpKind::Read, (resident / 2) as u32).expect("it fits");
    assert_eq!((fits.cache, fits.region_bytes), (CacheState::Warm, Some(resident)));
    assert_eq!(setting.resident(OpKind::Read, resident as u32), None);
}

#[test]
fn a_flush_takes_about_three_runs() {
    let setting = setting();
    // 1 GB/s for three runs of 100 ms.
    let bytes = setting.flushable(65_536);
    assert!(bytes.is_multiple_of(65_536) && (300_000_000..301_000_000).contains(&bytes), "{bytes}");
}

#[test]
fn efforts_ask_more_and_more() {
    let cells = |effort| {
        wanted(&setting(), &plan(effort)).iter().map(|trial| trial.grid.cells.len()).sum::<usize>()
    };
    let [quick, normal, full] = [Effort::Quick, Effort::Normal, Effort::Full].map(cells);
    assert!(quick * 2 < normal && normal < full, "{quick}, {normal}, {full}");
    let only = Plan { only: vec!["depth".into()], ..plan(Effort::Normal) };
    for trial in wanted(&setting(), &only) {
        assert_eq!(
            trial.grid.skipped.is_none(),
            trial.experiment.id == "depth",
            "{}",
            trial.experiment.id
        );
    }
}

#[test]
fn read_only_targets_are_only_read() {
    let facts = TargetFacts { writable: false, ..setting().facts };
    for experiment in ALL {
        let grid = (experiment.grid)(&StudyContext { facts: facts.clone(), ..setting() });
        assert!(grid.cells.iter().all(|cell| !cell.workload.writes()), "{}", experiment.id);
    }
}

#[test]
fn targets_on_one_disk_are_not_measured_as_a_stripe() {
    let stripe = |reads: f64| {
        let share = Share { reads, writes: reads };
        let disk = Layer { share, ..Layer::new(LayerKind::Disk, "vda") };
        let facts = TargetFacts { members: 2, layers: vec![disk], ..setting().facts };
        let setting = StudyContext { facts, members: 2, ..setting() };
        let experiment = ALL.iter().find(|one| one.id == "stripe").expect("an experiment");
        (experiment.grid)(&setting).skipped
    };
    assert_eq!(stripe(0.5), None);
    let why = stripe(1.0).expect("both are on one disk");
    assert!(why.contains("share vda"), "{why}");
}

#[test]
fn large_sectors_ask_for_no_request_twice() {
    let facts = TargetFacts { direct_align_bytes: 16 << 10, ..setting().facts };
    let setting = StudyContext { facts, ..setting() };
    for experiment in ALL {
        let grid = (experiment.grid)(&setting);
        let align = |request: u32| !setting.direct() || request.is_multiple_of(16 << 10);
        let direct = grid.cells.iter().filter(|cell| cell.workload.buffering.is_direct());
        assert!(direct.clone().all(|cell| align(cell.workload.request_bytes)), "{}", experiment.id);
        let places: BTreeSet<_> = direct
            .map(|cell| {
                (cell.curve.set.figures[0].id, cell.curve.name.to_string(), cell.x.to_bits())
            })
            .collect();
        let direct = grid.cells.iter().filter(|cell| cell.workload.buffering.is_direct()).count();
        assert_eq!(places.len(), direct, "{}", experiment.id);
    }
}

#[test]
fn the_least_informative_cells_are_dropped_first() {
    let mut trials = wanted(&setting(), &plan(Effort::Full));
    let questions = |trials: &[crate::experiments::Trial]| {
        let cells = trials.iter().flat_map(|trial| &trial.grid.cells);
        cells
            .map(|cell| {
                (
                    Question::of(&cell.workload),
                    cell.shape.as_ref().map(|shape| format!("{shape:?}")),
                )
            })
            .collect::<BTreeSet<_>>()
    };
    let all = questions(&trials).len();
    assert_eq!(thin(&mut trials, all), None, "all fit");
    let said = thin(&mut trials, 150).expect("some are dropped");
    assert!(said.starts_with(&format!("{} of {all} points", all - 150)), "{said}");
    assert_eq!(questions(&trials).len(), 150);
    let cells: Vec<_> = trials.iter().flat_map(|trial| &trial.grid.cells).collect();
    assert!(cells.iter().all(|cell| cell.rank < Rank::Rich), "rich cells go first");
    let striped = (setting().members as usize * 2 + 12) * 2;
    assert!(
        cells.iter().filter(|cell| cell.shape.is_some()).count() >= striped - 2,
        "a stripe stays"
    );
    for size in [4 * KIB, 64 * KIB, 1024 * KIB] {
        let direct = cells.iter().any(|cell| {
            u64::from(cell.workload.request_bytes) == size
                && cell.curve.set.figures[0].id == "unbuffered"
        });
        assert!(direct, "single requests of {size} stay");
    }
}
