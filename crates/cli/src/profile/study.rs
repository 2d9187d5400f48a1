//! The study to compare an application with.

use super::Arguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::points::measured_document;
use crate::target::{is_twin, machine_of, on_machine, results_in};
use application::profile::Profile;
use application::verdict::workloads;
use apptrace::Kind as FileKind;
use machine::text::printable;
use machine::units::MIB;
use machine::{Machine, TargetSpec};
use measure::{Repeats, RunRequest, Runner};
use results::history::Filter;
use results::{Began, Results};
use std::path::{Path, PathBuf};
use workload::Workload;

const FILE_BYTES: u64 = 256 * MIB;
const RUNS: u32 = 3;
const MIN_RUN_NS: u64 = 200_000_000;
const MAX_RUN_NS: u64 = 1_000_000_000;
/// In order of preference.
const KINDS: [&str; 2] = ["study", "sweep"];

pub(super) fn of(
    context: &Context,
    arguments: &Arguments,
    named: Option<&Path>,
    profile: &Profile,
) -> Result<Results, Failure> {
    let place = match named {
        Some(path) => path.to_owned(),
        None => directory(profile)?,
    };
    if !arguments.now && !is_twin(&place) {
        let file = results_in(&place);
        if file.is_file() {
            return read(&file);
        }
    }
    let stored = if arguments.now { None } else { newest(context, &place)? };
    match stored {
        Some(results) => Ok(results),
        None => measured(context, arguments, &place, profile),
    }
}

fn read(file: &Path) -> Result<Results, Failure> {
    results::read(file).map_err(|error| {
        let why = "--study takes results.json of a study, a directory, a block device or twin:NAME";
        Failure::Usage(printable(&format!("{}: {error}; {why}", file.display())))
    })
}

fn directory(profile: &Profile) -> Result<PathBuf, Failure> {
    let regular = profile.files.iter().filter(|file| file.kind == FileKind::Regular);
    let parents = regular.filter_map(|file| Path::new(&file.name).parent());
    let there = parents.filter(|parent| parent.is_absolute()).find(|parent| parent.is_dir());
    there.map(Path::to_owned).ok_or_else(|| {
        let why = "no directory of the recorded files is on this computer";
        Failure::Usage(format!("--study: {why}; name the volume's directory or device"))
    })
}

fn newest(context: &Context, place: &Path) -> Result<Option<Results>, Failure> {
    if !context.history_file().is_ok_and(|file| file.exists()) {
        return Ok(None);
    }
    let history = crate::history::open(context)?;
    let target = crate::history::absolute(&place.to_string_lossy());
    let entries = history.list(&Filter { target: Some(target), ..Filter::default() })?;
    let of = |kind: &&str| entries.iter().find(|entry| entry.kind == *kind && entry.readings > 0);
    let entry = KINDS.iter().find_map(of);
    Ok(entry.map(|entry| history.results(entry.id)).transpose()?)
}

fn measured(
    context: &Context,
    arguments: &Arguments,
    place: &Path,
    profile: &Profile,
) -> Result<Results, Failure> {
    let size = (place.is_dir()).then_some(FILE_BYTES);
    let spec = TargetSpec { places: vec![place.to_owned()], size, ..TargetSpec::default() };
    let results = on_machine!(machine_of(context, &[place])?, |machine| on(
        context, &machine, &spec, arguments, profile
    ))?;
    crate::history::keep(context, &results);
    Ok(results)
}

fn on<M: Machine>(
    context: &Context,
    machine: &M,
    spec: &TargetSpec,
    arguments: &Arguments,
    profile: &Profile,
) -> Result<Results, Failure> {
    let began = Began::now(machine);
    let target = machine.open(spec)?;
    let facts = machine.target_facts(&target);
    drop(target);
    let engines = machine.capabilities().engines;
    let count = workloads(profile, &facts, &engines, MIN_RUN_NS).len() as u64;
    let run_ns =
        (arguments.budget / (u64::from(RUNS) * count.max(1))).clamp(MIN_RUN_NS, MAX_RUN_NS);
    let workloads: Vec<Workload> = workloads(profile, &facts, &engines, run_ns);
    if workloads.is_empty() {
        return Err(Failure::Usage(format!(
            "{}: the recording has no requests that can be measured on it",
            facts.name
        )));
    }
    let repeats =
        Repeats { min: RUNS, max: RUNS, budget_ns: 2 * arguments.budget, ..Repeats::default() };
    let mut runner = Runner::open(machine, &RunRequest::in_turn(spec, &workloads, repeats))?;
    measured_document(
        context,
        &mut runner,
        &workloads,
        repeats,
        RUNS,
        began,
        Workload::default().seed,
    )
}
