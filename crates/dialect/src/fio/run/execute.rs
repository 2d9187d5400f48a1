//! Runs a plan.

use super::failures::JobError;
use super::group::{Ended, Group, NotRun};
use super::result::{FioResult, GroupResult, JobResult};
use super::status::Status;
use super::system_stats::SystemStats;
use super::whole_files::LaidOutNames;
use crate::fio::options::command::IdleProfile;
use crate::fio::options::error::FioError;
use crate::fio::options::kinds::{ExitWhat, engine_name};
use crate::fio::options::tolerated::ILLEGAL_SEQUENCE;
use crate::fio::plan::arrange::{Arrangement, ClonePlan, FilePlan, Lengthens};
use crate::fio::plan::jobs::{Job, Plan};
use crate::fio::plan::translate;
use crate::parse::is_twin;
use crate::sqlio::shares;
use machine::{Buffers, Machine, Nanos, TargetFacts, TargetKind, TargetSpec};
use std::fs;
use std::path::{Path, PathBuf};

/// Refuses unavailable engines before anything is written.
pub fn check_machine<M: Machine>(machine: &M, plan: &Plan) -> Result<(), FioError> {
    let engines = machine.capabilities().engines;
    for job in plan.jobs() {
        // An engine without I/O needs no support; in virtual time it would take no time.
        let nothing = !translate::engine(job).does_io() && !machine.facts().simulated;
        if !nothing && !engines.contains(&translate::engine(job)) {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            let engine = &job.options.engine_name;
            return Err(job.wrong(format!(
                "ioengine={engine} is not available on this machine; it has {}",
                names.join(", ")
            )));
        }
    }
    Ok(())
}

/// Replaces a refused io_uring, which job files often name, with libaio or threads, and warns.
pub fn replace_missing_engines<M: Machine>(machine: &M, plan: &mut Plan) {
    let engines = machine.capabilities().engines;
    let mut said = None;
    for job in plan.groups.iter_mut().flatten() {
        let Some(instead) = job.options.engine.replacement(&engines) else { continue };
        said = said.or_else(|| instead.fallback(&engines));
        (job.options.engine, job.options.engine_name) = (instead, engine_name(instead).into());
    }
    plan.warnings.extend(said);
}

fn check_memory<M: Machine>(
    machine: &M,
    plan: &Plan,
    arrangement: &Arrangement,
) -> Result<(), FioError> {
    for (number, jobs) in plan.groups.iter().enumerate() {
        let clones = arrangement.clones.iter().filter(|clone| clone.job.0 == number);
        let buffers: Vec<Buffers> = clones
            .map(|clone| translate::clone_workload(&jobs[clone.job.1], clone, 0).buffers())
            .collect();
        let names: Vec<String> = jobs.iter().map(Job::shown).collect();
        machine
            .check_memory(&buffers)
            .map_err(|source| FioError::Machine { job: names.join(", "), source })?;
    }
    Ok(())
}

#[derive(Clone, Copy, Default)]
pub struct RunSettings<'a> {
    /// File systems may be overwritten.
    pub destroy_signed: bool,
    pub cleanup: bool,
    pub status: Option<&'a Status<'a>>,
}

pub trait AroundSets {
    /// [`machine::Error::Interrupted`] ends the run; other errors only fail the set's jobs.
    fn begins(&mut self, _jobs: &[Job]) -> machine::Result<()> {
        Ok(())
    }

    /// Called unless interrupted; returns whether the next set may run.
    fn has_ended(&mut self, _jobs: &[Job]) -> bool {
        true
    }
}

impl AroundSets for () {}

/// Files of a successful run stay, unless `cleanup` is set. A failed job has its error in its
/// result; the others continue.
///
/// # Errors
/// A file that cannot be opened or does not fit, a user's interrupt.
pub fn run<M: Machine>(
    machine: &M,
    system_stats: &dyn SystemStats,
    plan: &Plan,
    arrangement: &Arrangement,
    settings: RunSettings<'_>,
    around: &mut dyn AroundSets,
) -> Result<FioResult, FioError> {
    let RunSettings { destroy_signed, cleanup, status } = settings;
    let began = machine.now();
    let mut warnings = plan.warnings.clone();
    let mut groups = Vec::with_capacity(plan.groups.len());
    let mut interrupted = false;
    let specs: Vec<TargetSpec> =
        arrangement.files.iter().map(|file| target_spec(file, destroy_signed)).collect();
    check_memory(machine, plan, arrangement)?;
    let _made = MadeDirectories::make(arrangement)?;
    let asked = arrangement;
    let (mut targets, not_laid_out, places) = lay_out(machine, &specs, plan, asked)?;
    let only_created =
        |clone: &&ClonePlan| plan.groups[clone.job.0][clone.job.1].options.create_only;
    let mut not_run: Vec<NotRun> =
        asked.clones.iter().filter(only_created).map(|clone| (clone.job, None)).collect();
    not_run.extend(not_laid_out.into_iter().map(|(job, error)| (job, Some(error))));
    let facts: Vec<TargetFacts> =
        targets.iter().map(|target| machine.target_facts(target)).collect();
    let named = LaidOutNames::make(asked, plan)?;
    let all = All { machine, plan, asked, targets: &targets, facts: &facts, system_stats };
    let arrangement = &runnable(asked, &not_run, &places);
    let processors = machine.processors();
    for (number, jobs) in plan.groups.iter().enumerate() {
        let refused = around.begins(jobs).err();
        if let Some(source @ machine::Error::Interrupted) = refused {
            if groups.is_empty() {
                return Err(FioError::Machine { job: jobs[0].shown(), source });
            }
            interrupted = true;
            break;
        }
        let refused = refused.map(JobError::from);
        let of_set = (0..jobs.len()).map(|job| ((number, job), refused.clone()));
        not_run.extend(of_set.filter(|(_, refused)| refused.is_some()));
        let so_far = status.map(|status| {
            let elapsed_ns = machine.now().saturating_sub(began);
            (status, so_far(machine, plan, &groups, elapsed_ns))
        });
        let mut group = Group {
            status: so_far,
            ..all.group(number, (arrangement, &not_run), system_stats.unix_ms())
        };
        if refused.is_some() {
            group.clones.clear();
        }
        match group.run(&mut warnings)? {
            Ended::Whole(group) => {
                groups.push(group);
                interrupted = !around.has_ended(jobs);
            }
            Ended::Interrupted(group) => {
                groups.push(group);
                interrupted = true;
            }
        }
        if interrupted {
            break;
        }
        if jobs.iter().any(|job| job.options.exitall && job.options.exit_what == ExitWhat::All) {
            break;
        }
    }
    let idle = shares(&processors, &machine.processors()).into_iter().map(|[_, _, idle]| idle);
    let processors_idle = processors.iter().map(|one| one.processor).zip(idle).collect();
    // As in fio, files stay unless a job has `unlink`, and engines without I/O have none. Those of
    // a failed or interrupted run do not stay, but those with wrong data do.
    let fails =
        |job: &JobResult| job.error.as_ref().is_some_and(|error| error.errno != ILLEGAL_SEQUENCE);
    let failed = interrupted || groups.iter().flat_map(|group| &group.jobs).any(fails);
    let files_of = |chosen: &dyn Fn(&ClonePlan) -> bool| -> Vec<usize> {
        let clones = asked.clones.iter().filter(|clone| chosen(clone));
        clones.flat_map(|clone| &clone.files).filter_map(|&file| places[file]).collect()
    };
    named.settle(|job| {
        let options = &plan.groups[job.0][job.1].options;
        !cleanup && !failed && !options.unlink && !options.unlink_each_loop
    });
    let created = files_of(&|clone| only_created(&clone));
    let unlinked = files_of(&|clone| {
        let options = &plan.groups[clone.job.0][clone.job.1].options;
        options.unlink || options.unlink_each_loop
    });
    for (place, target) in targets.iter_mut().enumerate() {
        let idle = arrangement.files[place].idle;
        let stays = !cleanup && !failed && !idle && !unlinked.contains(&place);
        if stays || created.contains(&place) {
            machine.keep(target);
        }
    }
    Ok(FioResult {
        plan: plan.clone(),
        groups,
        warnings,
        interrupted,
        machine: machine.facts(),
        ended_unix_ms: system_stats.unix_ms(),
        elapsed_ns: machine.now().saturating_sub(began),
        idle: IdleProfile::None,
        processors_idle,
    })
}

fn so_far<M: Machine>(
    machine: &M,
    plan: &Plan,
    groups: &[GroupResult],
    elapsed_ns: Nanos,
) -> FioResult {
    FioResult {
        plan: plan.clone(),
        groups: groups.to_vec(),
        warnings: Vec::new(),
        interrupted: false,
        machine: machine.facts(),
        ended_unix_ms: 0,
        elapsed_ns,
        idle: IdleProfile::None,
        processors_idle: Vec::new(),
    }
}

struct All<'a, M: Machine> {
    machine: &'a M,
    plan: &'a Plan,
    asked: &'a Arrangement,
    targets: &'a [M::Target],
    facts: &'a [TargetFacts],
    system_stats: &'a dyn SystemStats,
}

impl<M: Machine> All<'_, M> {
    fn group<'g>(
        &'g self,
        number: usize,
        (arrangement, not_run): (&'g Arrangement, &'g [NotRun]),
        chance: u64,
    ) -> Group<'g, M> {
        Group {
            machine: self.machine,
            jobs: &self.plan.groups[number],
            number,
            asked: self.asked,
            not_run,
            clones: arrangement.clones.iter().filter(|clone| clone.job.0 == number).collect(),
            arrangement,
            targets: self.targets,
            facts: self.facts,
            system_stats: self.system_stats,
            chance,
            status: None,
        }
    }
}

/// Opened files, failed jobs, and each file's index among the opened.
type LaidOut<T> = (Vec<T>, Vec<((usize, usize), JobError)>, Vec<Option<usize>>);

/// As in fio, only jobs whose files do not fit fail.
fn lay_out<M: Machine>(
    machine: &M,
    specs: &[TargetSpec],
    plan: &Plan,
    arrangement: &Arrangement,
) -> Result<LaidOut<M::Target>, FioError> {
    // All jobs are checked before the first file is laid out.
    let open = |files: &[usize]| {
        let mut refused = None;
        let specs: Vec<TargetSpec> = files.iter().map(|&file| specs[file].clone()).collect();
        let mut check = |facts: &[TargetFacts]| {
            check_jobs(plan, arrangement, files, facts).map_err(|error| {
                let why = machine::Error::Unsupported(error.to_string());
                refused = Some(error);
                why
            })
        };
        let opened = machine.open_all(&specs, &mut check);
        refused.map_or(Ok(opened), Err)
    };
    let failed =
        |source: machine::Error| FioError::Machine { job: "laying out files".into(), source };
    let every: Vec<usize> = (0..specs.len()).collect();
    match open(&every)? {
        Ok(targets) => return Ok((targets, Vec::new(), every.into_iter().map(Some).collect())),
        Err(machine::Error::Full { .. } | machine::Error::Unsupported(_)) => {}
        // Other errors mean that nothing must be written.
        Err(source) => return Err(failed(source)),
    }
    let (mut targets, mut places, mut errors) = (Vec::new(), vec![None; specs.len()], Vec::new());
    for (group, jobs) in plan.groups.iter().enumerate() {
        for job in 0..jobs.len() {
            let own = arrangement.clones.iter().filter(|clone| clone.job == (group, job));
            let mut files: Vec<usize> = own
                .flat_map(|clone| clone.files.iter().copied())
                .filter(|&file| places[file].is_none())
                .collect();
            files.sort_unstable();
            files.dedup();
            match open(&files)? {
                Ok(opened) => {
                    files
                        .iter()
                        .zip(targets.len()..)
                        .for_each(|(&file, place)| places[file] = Some(place));
                    targets.extend(opened);
                }
                Err(error @ (machine::Error::Interrupted | machine::Error::Refused { .. })) => {
                    return Err(failed(error));
                }
                Err(error) => errors.push(((group, job), error.into())),
            }
        }
    }
    Ok((targets, errors, places))
}

fn check_jobs(
    plan: &Plan,
    arrangement: &Arrangement,
    files: &[usize],
    facts: &[TargetFacts],
) -> Result<(), FioError> {
    let of = |file: &usize| files.iter().position(|known| known == file).map(|index| &facts[index]);
    for clone in &arrangement.clones {
        let job = &plan.groups[clone.job.0][clone.job.1];
        let Some(facts) = clone.files.iter().map(of).collect::<Option<Vec<_>>>() else { continue };
        if job.options.create_only {
            continue;
        }
        if facts.iter().any(|facts| facts.kind == TargetKind::Simulated) {
            check_simulated(job)?;
        }
        let workload = translate::clone_workload(job, clone, 0);
        let align = facts
            .iter()
            .map(|facts| facts.direct_align_bytes)
            .filter(|_| workload.buffering.is_direct())
            .max();
        let align = align.unwrap_or(1);
        let step = job.options.hole_bytes + job.options.back_bytes;
        let skip = job.options.strides.skip;
        workload
            .check(arrangement.bytes(clone), align)
            .and_then(|()| workload::check_direct("step of rw", step, align))
            .and_then(|()| workload::check_direct("zoneskip", skip, align))
            .map_err(|error| FioError::Machine { job: job.shown(), source: error.into() })?;
    }
    Ok(())
}

fn check_simulated(job: &Job) -> Result<(), FioError> {
    if job.trims() {
        let mode = if job.options.trims { job.options.mode } else { "trim (read_iolog)" };
        return Err(job.wrong(format!(
            "rw={mode}: a simulated machine does not trim; use rw=write or a real device"
        )));
    }
    if job.options.verify.is_some() {
        return Err(job.wrong(
            "verify: a simulated machine holds no data that could be verified; leave it out",
        ));
    }
    Ok(())
}

fn runnable(asked: &Arrangement, not_run: &[NotRun], places: &[Option<usize>]) -> Arrangement {
    let mut files: Vec<(usize, FilePlan)> = places
        .iter()
        .zip(&asked.files)
        .filter_map(|(place, file)| Some(((*place)?, file.clone())))
        .collect();
    files.sort_by_key(|(place, _)| *place);
    let runs = |clone: &&ClonePlan| not_run.iter().all(|(job, _)| *job != clone.job);
    let placed = |clone: &ClonePlan| ClonePlan {
        files: clone.files.iter().filter_map(|&file| places[file]).collect(),
        ..clone.clone()
    };
    Arrangement {
        files: files.into_iter().map(|(_, file)| file).collect(),
        clones: asked.clones.iter().filter(runs).map(placed).collect(),
    }
}

/// Dropping it removes the empty ones.
struct MadeDirectories(Vec<PathBuf>);

impl MadeDirectories {
    fn make(arrangement: &Arrangement) -> Result<MadeDirectories, FioError> {
        let mut made = MadeDirectories(Vec::new());
        for file in
            arrangement.files.iter().filter(|file| file.made.is_some() && !is_twin(&file.path))
        {
            let missing = file
                .path
                .ancestors()
                .skip(1)
                .take_while(|up| !up.as_os_str().is_empty() && !up.exists());
            let missing: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
            for directory in missing.into_iter().rev() {
                fs::create_dir(&directory).map_err(|error| {
                    FioError::Usage(format!(
                        "cannot create the directory {}: {error}",
                        directory.display()
                    ))
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
            // It fails if the directory is not empty, which then stays.
            let _ = fs::remove_dir(directory);
        }
    }
}

fn target_spec(file: &FilePlan, destroy_signed: bool) -> TargetSpec {
    let simulated = is_twin(&file.path);
    let users = file.lengthens == Lengthens::Users;
    TargetSpec {
        places: vec![file.path.clone()],
        destroy: if users || (file.written && !simulated && file.made.is_none()) {
            vec![file.path.clone()]
        } else {
            Vec::new()
        },
        destroy_signed,
        as_is: true,
        create: file.made.is_some(),
        lengthen: file.lengthens != Lengthens::Nothing,
        new_file: file.made.unwrap_or_default(),
        // A simulated volume gets the size it needs. A file without I/O only needs its name.
        size: Some(match file {
            FilePlan { grows: true, .. } => GROWING_BYTES,
            FilePlan { idle: true, bytes, .. } => (*bytes).min(IDLE_BYTES),
            _ => file.bytes,
        }),
        ..TargetSpec::default()
    }
}

const GROWING_BYTES: u64 = 4096;
/// Jobs without I/O may name sizes that fit nowhere.
const IDLE_BYTES: u64 = 1 << 20;
