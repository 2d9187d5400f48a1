use crate::arguments::{PointArguments, StudyArguments};
use crate::commands::{Cli, Command};
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::points::{check_grid, grid, lists_in, points_on, target_of};
use crate::progress;
use crate::studies::{study_by, study_on};
use crate::target::Where;
use crate::tasks::{self, Here, OverGroup};
use crate::unfinished::Unfinished;
use dialect::tasks::Worker;
use host::Host;
use hosts::{
    Error, Group, GroupMachine, Launch, Leader, MpiRank, SharedFile, follow, say_finished,
};
use machine::{Machine, TargetSpec};
use measure::Resumable;
use results::{Clients, Kind, Results};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use study::Plan;
use workload::{Pattern, Workload};

/// All ranks must have this version; the label makes it easy to find.
static VERSION: &str = concat!("halfpower-hosts-version ", env!("CARGO_PKG_VERSION"));

type Ranks<'a> = GroupMachine<'a, MpiRank, Host>;

fn is_interrupted() -> bool {
    crate::interrupt::flag().load(Ordering::Relaxed)
}

pub(super) fn measure(context: &Context, cli: Cli, launch: &Launch) -> Result<(), Failure> {
    let mode = progress::mode(cli.progress, std::env::args_os());
    // Before the first message: a signal must not end a rank for which others wait.
    let machine = Host::new(crate::interrupt::flag());
    let rank = MpiRank::new(is_interrupted).map_err(Failure::Usage)?;
    if rank.size() != launch.processes {
        return Err(Failure::Usage(format!(
            "{} started {} copies, but the MPI library sees {}: they were built for another launcher; with srun, try srun --mpi=pmix",
            launch.launcher,
            launch.processes,
            rank.size()
        )));
    }
    let version = std::hint::black_box(VERSION);
    let hello = tasks::hello(&machine.facts(), version.rsplit(' ').next().unwrap_or(version));
    let here = Here::new();
    if rank.rank() > 0 {
        let mut worker = Worker::new(here.access());
        let perform = &mut |job: &str, start| tasks::perform(&mut worker, job, start);
        let followed = follow(&rank, &machine, &hello, &is_interrupted, perform);
        drop(worker);
        // Otherwise rank 0 does not wait, and MPI's own end wants no message that nobody receives.
        let followed = match followed {
            Ok(()) if is_interrupted() => say_finished(&rank),
            followed => followed,
        };
        if followed.is_err() || is_interrupted() {
            rank.leave();
        }
        return followed.map_err(|_| Failure::Run("rank 0 is gone".into()));
    }
    let _display = context.console.display(mode);
    let (result, lost) = match Leader::meet(&rank, &machine, &hello, &is_interrupted) {
        Ok(leader) => command(leader, cli.command, context, &here),
        Err(error) => (Err(failure(&error)), matches!(error, Error::Lost(_))),
    };
    // MPI ends when all ranks end it together: after an interrupt some may be dead already.
    if lost || is_interrupted() {
        rank.leave();
    }
    result
}

/// Also returns whether a rank is lost.
fn command(
    mut leader: Leader<'_, MpiRank, Host>,
    command: Command,
    context: &Context,
    here: &Here,
) -> (Result<(), Failure>, bool) {
    let result = match command {
        Command::Run(arguments) => return points(leader, context, &arguments, Kind::Run),
        Command::Sweep(arguments) => return points(leader, context, &arguments, Kind::Sweep),
        Command::Study(arguments) => return study(leader, context, &arguments, here),
        Command::Ior(arguments) => {
            let group = &mut OverGroup::new(&mut leader, here);
            tasks::ior(context.clone(), &arguments.words, Some(group))
        }
        Command::Mdtest(arguments) => {
            let group = &mut OverGroup::new(&mut leader, here);
            tasks::mdtest(context.clone(), &arguments.words, Some(group))
        }
        Command::Metadata(arguments) => {
            let clients = Clients { ranks: leader.clients().to_vec(), same_directory: Some(true) };
            let group = &mut OverGroup::new(&mut leader, here);
            crate::metadata::by_clients(context, &arguments, group, &clients)
        }
        _ => Err(Failure::Usage("this command works with one client only".into())),
    };
    // A launcher that ends its job leaves little time, and the end of all ranks takes some of it.
    let result = match result {
        Err(Failure::Run(reason)) if leader.has_lost() => {
            context.console.tell(&reason);
            Err(Failure::Printed(1))
        }
        result => result,
    };
    leader.finish();
    (result, leader.has_lost())
}

fn failure(error: &Error) -> Failure {
    match error {
        Error::Interrupted => Failure::Interrupted,
        error if error.is_usage() => Failure::Usage(format!("{error}; nothing was written")),
        error => Failure::Run(error.to_string()),
    }
}

fn refused(mut leader: Leader<'_, MpiRank, Host>, failure: Failure) -> (Result<(), Failure>, bool) {
    leader.finish();
    (Err(failure), leader.has_lost())
}

struct Measuring<'a> {
    context: &'a Context,
    machine: Resumable<Ranks<'a>>,
    unfinished: Option<Unfinished>,
    told: Cell<bool>,
}

impl<'a> Measuring<'a> {
    fn begin(
        context: &'a Context,
        ranks: Ranks<'a>,
        command: &'static str,
        spec: &TargetSpec,
        resume: bool,
    ) -> (Measuring<'a>, Result<(), Failure>) {
        let (begun, result) = match Unfinished::begin(context, command, &spec.places, resume) {
            Ok(begun) => (begun, Ok(())),
            Err(failure) => (Unfinished::nowhere(context, command), Err(failure)),
        };
        let machine = begun.machine(ranks);
        (Measuring { context, machine, unfinished: Some(begun), told: Cell::new(false) }, result)
    }

    fn describe(&self, results: &mut Results) {
        let ranks = self.machine.inner();
        results.clients = Some(ranks.clients());
        results.warnings.extend(ranks.warnings());
        // A launcher that ends its job does not read any more: the reason first, it is short.
        if let Some(reason) = ranks.ended() {
            self.context.console.tell(&reason);
            self.told.set(true);
        }
    }

    fn end(self, result: Result<(), Failure>) -> (Result<(), Failure>, bool) {
        let (ended, lost) = self.machine.into_inner().finish();
        let code = if matches!(ended, Some(Error::Interrupted)) { 130 } else { 1 };
        let result = match ended {
            Some(_) if self.told.get() => Err(Failure::Printed(code)),
            Some(error) => Err(failure(&error)),
            None => result,
        };
        (result, lost)
    }
}

fn unique() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos()) as u64
}

fn no_twin(place: &Where) -> Result<(), Failure> {
    match place {
        Where::Twin(_) => Err(Failure::Usage(
            "a simulated machine has its own clients (twin:nas,clients=8); start halfpower without mpirun"
                .into(),
        )),
        Where::Host(_) => Ok(()),
    }
}

fn check(arguments: &PointArguments, kind: Kind) -> Result<(), Failure> {
    if kind == Kind::Run {
        lists_in(arguments)?;
    }
    check_grid(arguments)?;
    for (given, option) in [
        (arguments.verify, "--verify"),
        (arguments.p99.is_some(), "--p99"),
        (arguments.each, "--each"),
        (!arguments.beside.is_empty(), "--beside"),
        (arguments.live, "--live"),
        (arguments.load.is_some(), "--load"),
        (arguments.latency_every.is_some(), "--latency-every"),
        (arguments.target.max_written.is_some(), "--max-written"),
    ] {
        one_only(given, option)?;
    }
    Ok(())
}

fn one_only(given: bool, option: &str) -> Result<(), Failure> {
    if given {
        return Err(Failure::Usage(format!(
            "{option}: it works with one client only; leave it out, or start halfpower without mpirun"
        )));
    }
    Ok(())
}

fn points(
    leader: Leader<'_, MpiRank, Host>,
    context: &Context,
    arguments: &PointArguments,
    kind: Kind,
) -> (Result<(), Failure>, bool) {
    let _units = arguments.units.choose(context);
    let all = leader.clients().len();
    let workloads = grid(arguments, &leader.machine().capabilities().engines);
    let planned = (|| {
        check(arguments, kind)?;
        if let Some(clients) = &arguments.clients {
            clients.of(all).map_err(Failure::Usage)?;
        }
        let (place, spec) = target_of(context, arguments)?;
        no_twin(&place)?;
        let shared = match arguments.shared_file {
            true => Some(shared_file(&spec, &workloads, arguments, all)?),
            false => None,
        };
        let places: Vec<&Path> = spec.places.iter().map(PathBuf::as_path).collect();
        let save = output::optional(context, "--save", arguments.save.as_deref(), &places)?;
        Ok((spec, shared, save))
    })();
    let (spec, shared, save) = match planned {
        Ok(planned) => planned,
        Err(failure) => return refused(leader, failure),
    };
    let ranks = GroupMachine::new(leader, unique()).checking(&workloads);
    let ranks = match shared {
        Some(shared) => ranks.sharing(shared),
        None => ranks,
    };
    let command = if kind == Kind::Run { "run" } else { "sweep" };
    let (mut measuring, begun) = Measuring::begin(context, ranks, command, &spec, arguments.resume);
    let result = begun.and_then(|()| {
        let finish = |results: &mut Results| {
            measuring.describe(results);
            match &save {
                Some(save) => output::save(save, &output::json(results::to_json(results))?),
                None => Ok(()),
            }
        };
        let unfinished = measuring.unfinished.as_ref();
        let how = (kind, &finish as crate::points::Finish<'_>);
        points_on(context, &measuring.machine, &spec, arguments, how, unfinished)
    });
    if let Some(unfinished) = measuring.unfinished.take() {
        unfinished.end(&result);
    }
    measuring.end(result)
}

fn study(
    leader: Leader<'_, MpiRank, Host>,
    context: &Context,
    arguments: &StudyArguments,
    here: &Here,
) -> (Result<(), Failure>, bool) {
    let given = [
        (arguments.sustained.sustained, "--sustained"),
        (arguments.target.max_written.is_some(), "--max-written"),
    ];
    if let Err(failure) = given.iter().try_for_each(|&(given, option)| one_only(given, option)) {
        return refused(leader, failure);
    }
    let mut leader = Some(leader);
    let mut measuring = None;
    let result = study_by(context, arguments, |place, spec, plan| {
        no_twin(&place)?;
        let Some(leader) = leader.take() else { return Err(Failure::Interrupted) };
        let ranks = GroupMachine::new(leader, unique()).with_one_file();
        let (mut own, begun) = Measuring::begin(context, ranks, "study", spec, arguments.resume);
        let begun = begun.map(|()| {
            let directory = directory_of(spec).filter(|_| plan.only.is_empty());
            let files_ns = plan.budget_ns / FILES_PART;
            let whole_ns = plan.budget_ns;
            let budget_ns = whole_ns - directory.map_or(0, |_| files_ns);
            let plan = &Plan { budget_ns, ..plan.clone() };
            let results = study_on(context, &own.machine, spec, plan).map(|mut results| {
                let studied = own.machine.now();
                if let Some(directory) = directory.filter(|_| !results.incomplete) {
                    own.machine.inner().with_leader(|leader| {
                        let ranks = leader.clients().to_vec();
                        let mut group = OverGroup::new(leader, here);
                        crate::metadata::add_to_study(
                            context,
                            (directory, Some(files_ns)),
                            &mut group,
                            &ranks,
                            &mut results,
                        );
                        group.into_ended()
                    });
                    results.incomplete = own.machine.inner().ended().is_some();
                }
                results.budget_ns = results.budget_ns.map(|_| whole_ns);
                results.elapsed_ns += own.machine.now().saturating_sub(studied);
                own.describe(&mut results);
                results
            });
            (results, own.unfinished.take())
        });
        measuring = Some(own);
        begun
    });
    match (measuring, leader) {
        (Some(measuring), _) => measuring.end(result),
        (None, Some(mut leader)) => {
            leader.finish();
            (result, leader.has_lost())
        }
        (None, None) => (result, false),
    }
}

/// Operations on files get a study's time divided by this.
const FILES_PART: u64 = 10;

fn directory_of(spec: &TargetSpec) -> Option<&Path> {
    let [place] = spec.places.as_slice() else { return None };
    place.is_dir().then_some(place)
}

fn shared_file(
    spec: &TargetSpec,
    workloads: &[Workload],
    arguments: &PointArguments,
    ranks: usize,
) -> Result<SharedFile, Failure> {
    let refused = |why: String| Err(Failure::Usage(format!("--shared-file: {why}")));
    let [place] = spec.places.as_slice() else {
        return refused("all clients use one file; name one target".into());
    };
    let shown = place.display();
    if place.is_dir() && spec.size.is_none() {
        return refused(format!("give the --size of the file to be made in {shown}"));
    }
    // In a directory the clients use a file that rank 0 makes.
    let writes = place.is_dir() || workloads.iter().any(Workload::writes);
    if !place.exists() && !writes {
        return refused(format!(
            "{shown} does not exist; name a file that does, or make it with --op write,read --size SIZE (sweep)"
        ));
    }
    if !place.exists() && spec.size.is_none() {
        return refused(format!("{shown} does not exist; give the --size of the file to be made"));
    }
    if arguments.interleaved && workloads.iter().any(|one| one.pattern != Pattern::Seq) {
        return refused(
            "--interleaved is the order of the requests; leave it out, or leave out --pattern"
                .into(),
        );
    }
    let length = std::fs::metadata(place).map_or(0, |file| file.len());
    let whole = spec.size.unwrap_or(length).saturating_sub(arguments.region_start);
    let whole = arguments.region.map_or(whole, |region| region.min(whole));
    let shared = SharedFile {
        start: arguments.region_start,
        whole,
        request: workloads.iter().map(|one| u64::from(one.request_bytes)).max().unwrap_or(1),
        shift: arguments.shift.unwrap_or(0) as u64,
        writes,
    };
    if shared.each(ranks as u64) == 0 {
        return refused(format!(
            "the {} of {shown} are less than one request for each of {ranks} clients; use a larger file, or give the --size of a device",
            machine::units::show_size(whole)
        ));
    }
    Ok(shared)
}
