//! Every experiment's grid, figures and sentences.

use super::{Measured, device, setting};
use crate::context::StudyContext;
use crate::experiments::Trial;
use crate::experiments::{ALL, experiment_ids};
use crate::figures;
use crate::grid::Cell;
use machine::{Allocation, CacheState, Hint, TargetFacts};
use std::collections::BTreeSet;
use workload::{ClientFiles, Pattern};

fn distinct<T: Ord + std::fmt::Debug>(values: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut seen = BTreeSet::new();
    for value in values {
        assert!(!seen.contains(&value), "{value:?} is there twice");
        seen.insert(value);
    }
    seen
}

fn truth(cell: &Cell) -> Option<f64> {
    let workload = &cell.workload;
    let plain = device(workload);
    let members = cell.shape.as_ref().map_or(4.0, |shape| shape.members.len() as f64) / 4.0;
    Some(if workload.cache == CacheState::Warm {
        1.0 / (1e-6 + f64::from(workload.request_bytes) / 8e9)
    } else if workload.think_ns > 0
        || workload.region_bytes == Some(u64::from(workload.request_bytes))
    {
        plain * 10.0
    } else if workload.allocation == Allocation::Extend {
        plain * 0.5
    } else if workload.hint == Hint::Sequential {
        plain * 1.3
    } else if workload.threads > 1 && workload.pattern == Pattern::Seq {
        plain / f64::from(workload.threads)
    } else if workload.region_start_bytes > 0 {
        plain * (1.0 - 0.3 * cell.x)
    } else if !workload.offset_bytes.is_multiple_of(4096) && workload.writes() {
        plain * 0.6
    } else {
        plain * members
    })
}

#[test]
fn ids_and_figures_are_unique() {
    // Names are part of `--only` and of documents, so they never change.
    let known = "memory buffered unbuffered cost depth random completions allocation alignment streams clients location stripe device_cache long_writes";
    assert_eq!(experiment_ids().collect::<Vec<_>>().join(" "), known);
    distinct(ALL.iter().map(|experiment| experiment.title));
    distinct(
        ALL.iter()
            .flat_map(|experiment| experiment.curves)
            .flat_map(|set| set.figures)
            .map(|figure| figure.id),
    );
}

fn of_clients() -> StudyContext {
    StudyContext { clients: 4, one_file: Ok(()), ..setting() }
}

#[test]
fn every_curve_is_drawn_and_every_figure_has_curves() {
    for experiment in ALL {
        let setting = if experiment.id == "clients" { of_clients() } else { setting() };
        let grid = (experiment.grid)(&setting);
        assert_eq!(grid.skipped, None, "{}: nothing is skipped on such a target", experiment.id);
        for cell in &grid.cells {
            let drawn = experiment.curves.iter().any(|set| std::ptr::eq(*set, cell.curve.set));
            assert!(drawn, "{}: {} is in no figure", experiment.id, cell.curve.name);
            cell.workload
                .check(setting.facts.size_bytes, 512)
                .expect("a workload that makes sense");
        }
        distinct(grid.cells.iter().map(|cell| {
            (cell.curve.set.figures[0].id, cell.curve.name.to_string(), cell.x.to_bits())
        }));
        for set in experiment.curves {
            let cells = grid.cells.iter().filter(|cell| std::ptr::eq(cell.curve.set, *set)).count();
            assert!(cells > 1, "{}: {} shows nothing", experiment.id, set.figures[0].id);
        }
    }
}

#[test]
fn every_experiment_concludes_from_points_and_compares_its_own() {
    let measured = Measured::new(setting(), truth);
    let found = measured.found();
    let mut compared = 0;
    // One computer has no clients: `tests/clients.rs` has some.
    for trial in measured.trials.iter().filter(|trial| trial.experiment.id != "clients") {
        let conclusion = (trial.experiment.conclude)(&found);
        assert!(!conclusion.sentences.is_empty(), "{} says nothing", trial.experiment.id);
        let figures = figures::draw(trial, &measured.points);
        let expected: usize = trial.experiment.curves.iter().map(|set| set.figures.len()).sum();
        assert_eq!(figures.len(), expected, "{}", trial.experiment.id);
        assert!(
            figures
                .iter()
                .flat_map(|one| &one.series)
                .flat_map(|one| &one.values)
                .all(|value| value.y.is_some())
        );
        for comparison in &conclusion.comparisons {
            let own = |index| trial.grid.cells.iter().any(|cell| cell.point == Some(index));
            assert!(
                own(comparison.after) || own(comparison.before),
                "{}: {}",
                trial.experiment.id,
                comparison.title
            );
            assert_ne!(comparison.before, comparison.after, "{}", comparison.title);
        }
        compared += conclusion.comparisons.len();
    }
    assert!(compared >= 20, "{compared} comparisons");
}

#[test]
fn nothing_is_concluded_from_nothing() {
    let measured = Measured {
        memory: Err("no memory".into()),
        long_writes: Err(String::new()),
        ..Measured::new(setting(), |_| None)
    };
    let found = measured.found();
    for Trial { experiment, .. } in &measured.trials {
        let conclusion = (experiment.conclude)(&found);
        assert!(
            conclusion.comparisons.is_empty() && conclusion.memory.is_empty(),
            "{}",
            experiment.id
        );
        let said = if experiment.needs_memory {
            vec!["Memory could not be measured: no memory."]
        } else {
            vec![]
        };
        assert_eq!(conclusion.sentences, said, "{}", experiment.id);
    }
}

#[test]
fn one_file_for_all_clients_is_compared_with_a_file_each() {
    // A file system that locks the file for each write, as some do for a client's whole part.
    let locks = |cell: &Cell| {
        let workload = &cell.workload;
        let rate = f64::from(workload.clients.unwrap_or(1)) * 1e9;
        let share = match workload.client_files {
            ClientFiles::Interleaved if workload.writes() => 0.25,
            ClientFiles::Segments if !workload.writes() => 1.5,
            _ => 1.0,
        };
        Some(rate * share / f64::from(workload.request_bytes))
    };
    let concluded = |setting: StudyContext, truth: &dyn Fn(&Cell) -> Option<f64>| {
        let measured = Measured::new(setting, truth);
        let found = measured.found();
        let trial = measured.trials.iter().find(|one| one.experiment.id == "clients").unwrap();
        (trial.grid.notes.clone(), (trial.experiment.conclude)(&found))
    };
    let (notes, conclusion) = concluded(of_clients(), &locks);
    assert!(notes.is_empty(), "{notes:?}");
    let said = conclusion.sentences.join(" ");
    for expected in [
        "Reads are 50 % faster with one file for all 4 clients (a part each) than with a file each",
        "rites are as fast with one file for all 4 clients (a part each) as with a file each",
        "Reads are as fast with one file for all 4 clients (requests in turn) as with a file each",
        "rites are 75 % slower with one file for all 4 clients (requests in turn) than with a file each",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert_eq!(conclusion.comparisons.len(), 4);

    let refused = StudyContext { one_file: Err("node2 has no /shared".into()), ..of_clients() };
    let (notes, conclusion) = concluded(refused, &locks);
    assert_eq!(notes, ["one file for all clients was not measured: node2 has no /shared"]);
    assert!(!conclusion.sentences.join(" ").contains("one file"));
}

fn sentences(setting: StudyContext, truth: impl Fn(&Cell) -> Option<f64>) -> String {
    let measured = Measured::new(setting, truth);
    let found = measured.found();
    let say = |trial: &Trial| {
        let said = match &trial.grid.skipped {
            Some(why) => format!("skipped: {why}"),
            None => (trial.experiment.conclude)(&found).sentences.join(" "),
        };
        format!("{}: {said}", trial.experiment.id)
    };
    measured.trials.iter().map(say).collect::<Vec<_>>().join("\n")
}

#[test]
fn sentences_of_a_device_whose_settings_matter() {
    insta::assert_snapshot!(sentences(setting(), truth));
}

#[test]
fn sentences_of_a_device_on_which_nothing_matters() {
    let same_rate = |cell: &Cell| Some(1e9 / f64::from(cell.workload.request_bytes));
    insta::assert_snapshot!(sentences(setting(), same_rate));
}

#[test]
fn sentences_of_a_read_only_file_through_the_page_cache() {
    let setting = setting();
    let refused = Some("the file system refuses O_DIRECT".into());
    let facts =
        TargetFacts { writable: false, direct: false, direct_refused: refused, ..setting.facts };
    insta::assert_snapshot!(sentences(StudyContext { facts, members: 1, ..setting }, truth));
}

#[test]
fn memory_is_as_fast_in_its_sentence_as_in_the_ladder() {
    let mut measured = Measured::new(setting(), truth);
    let rates = &mut measured.memory.as_mut().unwrap()[0].rates_bytes_per_s;
    *rates = vec![1e9, 1e9, 4e9];
    let copy = measured.found().memory_rate(machine::MemoryKind::Copy).unwrap();
    let trial = measured.trials.iter().find(|trial| trial.experiment.id == "memory").unwrap();
    let said = (trial.experiment.conclude)(&measured.found()).sentences;
    let wanted = format!("One thread copies memory at {},", machine::units::show_rate(copy));
    assert!(said[0].starts_with(&wanted), "{wanted} {said:?}");
}
