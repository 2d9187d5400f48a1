//! Runs a plan on a machine: sets of jobs one after the other, on files that are made first.

use super::arrange::{Arrangement, ClonePlan, FilePlan};
use super::error::FioError;
use super::group::Group;
use super::options::{ExitWhat, FioEngine};
use super::plan::{Job, Plan};
use super::result::FioResult;
use super::surroundings::Surroundings;
use super::translate;
use crate::parse::is_twin;
use machine::{Buffers, Machine, TargetFacts, TargetSpec};
use std::fs;
use std::path::{Path, PathBuf};

/// Refuses what this machine cannot do, before anything is written.
///
/// # Errors
/// An engine that is not available here.
pub fn check_machine<M: Machine>(machine: &M, plan: &Plan) -> Result<(), FioError> {
    let engines = machine.capabilities().engines;
    for job in plan.jobs() {
        // What moves nothing needs no mechanism; in virtual time it would take none either.
        let nothing = translate::engine(job) == machine::Engine::Null && !machine.facts().simulated;
        if !nothing && !engines.contains(&translate::engine(job)) {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            let engine = &job.options.engine_name;
            return Err(
                job.wrong(format!("ioengine={engine} is not available on this machine; it has {}", names.join(", ")))
            );
        }
    }
    Ok(())
}

/// Puts libaio, or threads, in the place of io_uring where the system refuses that: jobs for other computers often name it. What was done is
/// among the plan's warnings.
pub fn replace_missing_engines<M: Machine>(machine: &M, plan: &mut Plan) {
    let engines = machine.capabilities().engines;
    let instead = machine::Engine::asynchronous(&engines);
    let mut said = None;
    for job in plan.groups.iter_mut().flatten().filter(|job| job.options.engine == FioEngine::IoUring) {
        said = said.or_else(|| instead.fallback(&engines));
        (job.options.engine, job.options.engine_name) = match instead {
            machine::Engine::Libaio => (FioEngine::Libaio, "libaio".into()),
            machine::Engine::Threads => (FioEngine::PosixAio, "posixaio".into()),
            _ => continue,
        };
    }
    plan.warnings.extend(said);
}

/// Refuses sets of jobs whose buffers memory cannot hold.
fn check_memory<M: Machine>(machine: &M, plan: &Plan, arrangement: &Arrangement) -> Result<(), FioError> {
    for (number, jobs) in plan.groups.iter().enumerate() {
        let clones = arrangement.clones.iter().filter(|clone| clone.job.0 == number);
        let buffers: Vec<Buffers> =
            clones.map(|clone| translate::clone_workload(&jobs[clone.job.1], clone, 0).buffers()).collect();
        let names: Vec<String> = jobs.iter().map(Job::shown).collect();
        machine.check_memory(&buffers).map_err(|source| FioError::Machine { job: names.join(", "), source })?;
    }
    Ok(())
}

/// Runs sets of jobs one after the other, on files that are made first and stay only where `keep` says so; `on_group` is called before
/// each set.
///
/// A job that fails has its error in its result, and the others go on.
///
/// # Errors
/// A file that cannot be made or opened, a workload that makes no sense on its file, the user's interrupt.
pub fn run<M: Machine>(
    machine: &M,
    surroundings: &dyn Surroundings,
    plan: &Plan,
    arrangement: &Arrangement,
    destroy_signed: bool,
    keep: bool,
    on_group: &mut dyn FnMut(&[Job]),
) -> Result<FioResult, FioError> {
    let began = machine.now();
    let mut warnings = plan.warnings.clone();
    let mut groups = Vec::with_capacity(plan.groups.len());
    let specs: Vec<TargetSpec> = arrangement.files.iter().map(|file| target_spec(file, destroy_signed)).collect();
    check_memory(machine, plan, arrangement)?;
    let _made = MadeDirectories::make(arrangement)?;
    let opened = machine.open_all(&specs, &mut |_| Ok(()));
    let mut targets = opened.map_err(|source| FioError::Machine { job: "laying out files".into(), source })?;
    let facts: Vec<TargetFacts> = targets.iter().map(|target| machine.target_facts(target)).collect();
    // What makes no sense in the last set is refused before the first one writes.
    for (number, jobs) in plan.groups.iter().enumerate() {
        let clones: Vec<&ClonePlan> = arrangement.clones.iter().filter(|clone| clone.job.0 == number).collect();
        Group { machine, jobs, clones, arrangement, targets: &targets, facts: &facts, surroundings, chance: 0 }
            .check()?;
    }
    for (number, jobs) in plan.groups.iter().enumerate() {
        on_group(jobs);
        let clones: Vec<&ClonePlan> = arrangement.clones.iter().filter(|clone| clone.job.0 == number).collect();
        let chance = surroundings.unix_ms();
        let group =
            Group { machine, jobs, clones, arrangement, targets: &targets, facts: &facts, surroundings, chance };
        groups.push(group.run(&mut warnings)?);
        if jobs.iter().any(|job| job.options.exitall && job.options.exit_what == ExitWhat::All) {
            break;
        }
    }
    if keep {
        targets.iter_mut().for_each(|target| machine.keep(target));
    }
    Ok(FioResult {
        plan: plan.clone(),
        groups,
        warnings,
        machine: machine.facts(),
        ended_unix_ms: surroundings.unix_ms(),
        elapsed_ns: machine.now().saturating_sub(began),
    })
}

/// Directories that were made for files to be laid out. Dropped, those that are empty go.
struct MadeDirectories(Vec<PathBuf>);

impl MadeDirectories {
    fn make(arrangement: &Arrangement) -> Result<MadeDirectories, FioError> {
        let mut made = MadeDirectories(Vec::new());
        for file in arrangement.files.iter().filter(|file| file.made.is_some() && !is_twin(&file.path)) {
            let missing = file.path.ancestors().skip(1).take_while(|up| !up.as_os_str().is_empty() && !up.exists());
            let missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
            for directory in missing.into_iter().rev() {
                fs::create_dir(&directory).map_err(|error| {
                    FioError::Usage(format!("cannot make the directory {}: {error}", directory.display()))
                })?;
                made.0.push(directory);
            }
        }
        Ok(made)
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        for directory in self.0.iter().rev() {
            // One with something in it stays, and that is what failing means here.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// How a file is opened, and made where it is not there.
fn target_spec(file: &FilePlan, destroy_signed: bool) -> TargetSpec {
    let simulated = is_twin(&file.path);
    TargetSpec {
        places: vec![file.path.clone()],
        destroy: if file.written && !simulated && file.made.is_none() { vec![file.path.clone()] } else { Vec::new() },
        destroy_signed,
        as_is: true,
        create: file.made.is_some(),
        new_file: file.made.unwrap_or_default(),
        // A simulated volume is as large as it must be.
        // Of a file of which nothing is moved only its name is needed.
        size: Some(if file.idle { file.bytes.min(IDLE_BYTES) } else { file.bytes }),
        ..TargetSpec::default()
    }
}

/// Length of a file that no job moves data in: such jobs name sizes that no file system has room for.
const IDLE_BYTES: u64 = 1 << 20;
