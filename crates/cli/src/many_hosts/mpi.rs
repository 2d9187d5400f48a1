use crate::arguments::PointArguments;
use crate::commands::{Cli, Command};
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::points::{check_grid, grid, lists_in, repeats, target_of};
use crate::progress;
use crate::target::Where;
use crate::tasks::{self, OverGroup};
use dialect::tasks::Worker;
use host::{Host, HostTaskFiles};
use hosts::{
    Client, Error, Group, GroupMeasurement, HOSTS_SCHEMA, HostsPoint, HostsResult, Launch, Leader,
    MpiRank, follow, measure_group, scalings,
};
use machine::{Machine, Sharing, TargetFacts, TargetSpec};
use measure::RunRequest;
use results::Began;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use workload::{Pattern, Workload};

/// The version that all ranks must have. In the program it follows a label, so that one can find it
/// there.
static VERSION: &str = concat!("halfpower-hosts-version ", env!("CARGO_PKG_VERSION"));

/// The smallest test file of a client whose size halfpower chooses.
const MIN_BYTES: u64 = machine::units::MIB;

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
    let files = HostTaskFiles::new(crate::interrupt::flag());
    if rank.rank() > 0 {
        let mut worker = Worker::new(&files);
        let perform = &mut |job: &str, start| tasks::perform(&mut worker, job, start);
        let followed = follow(&rank, &machine, &hello, &is_interrupted, perform);
        drop(worker);
        if followed.is_err() || is_interrupted() {
            rank.leave();
        }
        return followed.map_err(|_| Failure::Run("rank 0 is gone".into()));
    }
    let _display = context.console.display(mode);
    let mut lost = false;
    let result = match Leader::meet(&rank, &machine, &hello, &is_interrupted) {
        Ok(mut leader) => {
            let result = command(&mut leader, cli.command, context, &files);
            leader.finish();
            lost = leader.has_lost();
            result
        }
        Err(error) => {
            lost = lost || matches!(error, Error::Lost(_));
            Err(failure(error))
        }
    };
    // MPI ends when all ranks end it together: after an interrupt some may be dead already.
    if lost || is_interrupted() {
        rank.leave();
    }
    result
}

fn command(
    leader: &mut Leader<'_, MpiRank, Host>,
    command: Command,
    context: &Context,
    files: &HostTaskFiles,
) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => lead(context, leader, &arguments, true),
        Command::Sweep(arguments) => lead(context, leader, &arguments, false),
        Command::Ior(arguments) => {
            tasks::ior(context.clone(), &arguments.words, Some(&mut OverGroup::new(leader, files)))
        }
        Command::Mdtest(arguments) => tasks::mdtest(
            context.clone(),
            &arguments.words,
            Some(&mut OverGroup::new(leader, files)),
        ),
        _ => Err(Failure::Usage("this command works with one client only".into())),
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Interrupted => Failure::Interrupted,
        error if error.is_usage() => Failure::Usage(format!("{error}; nothing was written")),
        error => Failure::Run(error.to_string()),
    }
}

/// Refuses options that many clients do not have.
fn check(arguments: &PointArguments, is_run: bool) -> Result<(), Failure> {
    if is_run {
        lists_in(arguments)?;
    }
    check_grid(arguments)?;
    for (given, option) in [
        (arguments.verify, "--verify"),
        (arguments.p99.is_some(), "--p99"),
        (arguments.each, "--each"),
        (!arguments.beside.is_empty(), "--beside"),
        (arguments.resume, "--resume"),
        (arguments.live, "--live"),
        (arguments.openmetrics.is_some(), "--openmetrics"),
        (arguments.load.is_some(), "--load"),
        (arguments.latency_every.is_some(), "--latency-every"),
    ] {
        if given {
            return Err(Failure::Usage(format!(
                "{option}: it works with one client only; leave it out, or start halfpower without mpirun"
            )));
        }
    }
    Ok(())
}

fn lead(
    context: &Context,
    leader: &mut Leader<'_, MpiRank, Host>,
    arguments: &PointArguments,
    is_run: bool,
) -> Result<(), Failure> {
    let _units = arguments.units.choose(context);
    check(arguments, is_run)?;
    let all = leader.clients().len();
    let numbers = match &arguments.clients {
        Some(clients) => clients.of(all).map_err(Failure::Usage)?,
        None => vec![all],
    };
    let (place, mut spec) = target_of(context, arguments)?;
    if matches!(place, Where::Twin(_)) {
        return Err(Failure::Usage(
            "a simulated machine has no clients on other hosts; start halfpower without mpirun"
                .into(),
        ));
    }
    let machine = leader.machine();
    if spec.size.is_none() {
        spec.size = size_for_each(machine, &spec, all)?;
    }
    let workloads = grid(arguments, &machine.capabilities().engines);
    let requests = requests(&spec, &workloads, arguments, all)?;
    let began = Began::now(machine);
    let unique = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let mut open = leader.open(&requests, unique as u64).map_err(failure)?;
    let repeats = repeats(arguments);
    let steps = (workloads.len() * numbers.len()) as u64 * u64::from(repeats.min);
    let bar = context.console.bar(steps);
    let about = About {
        machine,
        target: open.all_facts(),
        same_directory: open.same_directory,
        elsewhere: open.elsewhere.clone(),
        seed: arguments.target.seed,
        began,
    };
    let places: Vec<&Path> = spec.places.iter().map(PathBuf::as_path).collect();
    let save = output::optional(context, "--save", arguments.save.as_deref(), &places)?;
    let mut unsaved = None;
    let measured = measure_group(leader, &mut open, &workloads, &numbers, repeats, |progress| {
        let workload = workloads[progress.part].short();
        bar.set_message(format!("{} clients: {workload}", progress.clients));
        if progress.runs <= repeats.min as usize {
            bar.inc(1);
        }
        if let Some(save) = &save {
            let clients = progress.client_list;
            let so_far = about.document(clients, (progress.points)(clients), None, true);
            // The run goes on; the end reports it.
            unsaved = saved(save, &so_far).err();
        }
    });
    bar.finish_and_clear();
    let GroupMeasurement { points, ended } = measured;
    let result = about.document(leader.clients(), points, ended.as_ref(), ended.is_some());
    drop(open);
    if let Some(save) = &save {
        unsaved = saved(save, &result).err();
    }
    if let Some(failure) = unsaved {
        show(context, &result, arguments)?;
        return Err(failure);
    }
    let failed = result.points.iter().all(|one| one.point.numbers.is_none());
    let Some(error) = ended else {
        show(context, &result, arguments)?;
        return match failed {
            true => Err(Failure::Run("no point could be measured".into())),
            false => Ok(()),
        };
    };
    // A launcher that ends its job does not read any more: the reason first, it is short.
    let code = match error {
        Error::Interrupted => 130,
        _ => 1,
    };
    context.console.tell(&error.to_string());
    if !result.points.is_empty() {
        show(context, &result, arguments)?;
    }
    Err(Failure::Printed(code))
}

fn show(
    context: &Context,
    result: &HostsResult,
    arguments: &PointArguments,
) -> Result<(), Failure> {
    match arguments.json {
        true => context.console.print(&output::json(result.to_json())?),
        false => context.console.print(&report::hosts::terminal(
            result,
            output::width(),
            output::colour(),
        )),
    }
}

/// The work of each rank: its random sequence and its data differ from those of the others.
fn requests(
    spec: &TargetSpec,
    workloads: &[Workload],
    arguments: &PointArguments,
    ranks: usize,
) -> Result<Vec<RunRequest>, Failure> {
    let shared = match arguments.shared_file {
        true => Some(shared_file(spec, workloads, arguments, ranks)?),
        false => None,
    };
    let request = |rank: usize| {
        let mut spec = TargetSpec { seed: spec.seed.wrapping_add(rank as u64), ..spec.clone() };
        if let Some(shared) = &shared {
            spec.sharing = shared.writes.then_some(Sharing::Holds);
            spec.create = shared.writes;
        }
        let own = |workload: &Workload| {
            let mut own = workload.clone();
            own.seed = own.seed.wrapping_add(rank as u64);
            if let Some(shared) = &shared {
                shared.give(&mut own, rank);
            }
            own
        };
        let workloads: Vec<Workload> = workloads.iter().map(own).collect();
        RunRequest::in_turn(&spec, &workloads, repeats(arguments))
    };
    Ok((0..ranks).map(request).collect())
}

/// One file for all ranks.
struct SharedFile {
    start: u64,
    whole: u64,
    /// Of the largest request.
    request: u64,
    ranks: u64,
    /// Each rank reads the part of the rank this much further.
    shift: u64,
    /// The ranks take turns request by request.
    interleaved: bool,
    writes: bool,
}

impl SharedFile {
    /// Bytes of a rank's part.
    fn each(&self) -> u64 {
        self.whole / self.ranks / self.request * self.request
    }

    /// Restricts a workload to a rank's part.
    fn give(&self, workload: &mut Workload, rank: usize) {
        // A client reads data that another has written.
        let shift = if workload.writes() { 0 } else { self.shift };
        let place = (rank as u64 + shift) % self.ranks;
        if self.interleaved {
            let request = u64::from(workload.request_bytes);
            workload.region_start_bytes = self.start + place * request;
            workload.region_bytes = Some(self.whole - (self.ranks - 1) * request);
            workload.pattern = Pattern::Stride(self.ranks * request);
        } else {
            workload.region_start_bytes = self.start + place * self.each();
            workload.region_bytes = Some(self.each());
        }
    }
}

/// Divides the file that all ranks use.
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
    if place.is_dir() {
        return refused(format!(
            "{shown} is a directory, in which each client makes its own file; name a file in it"
        ));
    }
    let writes = workloads.iter().any(Workload::writes);
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
        ranks: ranks as u64,
        shift: arguments.shift.unwrap_or(0) as u64,
        interleaved: arguments.interleaved,
        writes,
    };
    if shared.each() == 0 {
        return refused(format!(
            "the {} of {shown} are less than one request for each of {ranks} clients; use a larger file, or give the --size of a device",
            machine::units::show_size(whole)
        ));
    }
    Ok(shared)
}

/// The size of each client's file if halfpower chooses it: together they take what one would.
fn size_for_each(
    machine: &Host,
    spec: &TargetSpec,
    clients: usize,
) -> Result<Option<u64>, Failure> {
    if !spec.places.iter().all(|place| place.is_dir()) {
        return Ok(None);
    }
    let mut size = None;
    // Ends before anything is written.
    let probed = machine.open_all(std::slice::from_ref(spec), &mut |facts| {
        size = Some(facts[0].size_bytes);
        Err(machine::Error::Unsupported("only the size was wanted".into()))
    });
    let Some(size) = size else {
        return Err(probed.err().map_or(Failure::Interrupted, Into::into));
    };
    let each = size / clients as u64 / MIN_BYTES * MIN_BYTES;
    if each < MIN_BYTES {
        return Err(Failure::Usage(format!(
            "{}: the free space is too small for the files of {clients} clients; free some or give --size",
            spec.places[0].display()
        )));
    }
    Ok(Some(each))
}

fn saved(save: &results::Output, result: &HostsResult) -> Result<(), Failure> {
    output::save(save, &output::json(result.to_json())?)
}

/// The parts of a document other than its points.
struct About<'m> {
    machine: &'m Host,
    target: TargetFacts,
    same_directory: Option<bool>,
    /// Clients that do not see rank 0's directory.
    elsewhere: Vec<String>,
    seed: u64,
    began: Began,
}

impl About<'_> {
    fn document(
        &self,
        clients: &[Client],
        points: Vec<HostsPoint>,
        ended: Option<&Error>,
        incomplete: bool,
    ) -> HostsResult {
        let usual = results::Results::new(
            self.machine,
            results::Kind::Run,
            crate::context::program(),
            self.began,
            self.target.clone(),
            self.seed,
        );
        let mut warnings = Vec::new();
        if !self.elsewhere.is_empty() {
            warnings.push(format!(
                "{} do not see the file that rank 0 made in the target: these are several file systems, and the sum of their rates is not the rate of one server",
                self.elsewhere.join(", ")
            ));
        }
        let mut hosts: Vec<&str> = clients.iter().map(|one| one.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.len() < clients.len() {
            warnings.push(format!(
                "{} clients share {} {}: its processors and its cache are theirs together; to measure a server, start one rank per host",
                clients.len(),
                hosts.len(),
                if hosts.len() == 1 { "host" } else { "hosts" },
            ));
        }
        if let Some(error) = ended {
            warnings.push(format!("it ended early: {error}"));
        }
        warnings.extend(usual.warnings);
        HostsResult {
            schema: HOSTS_SCHEMA.into(),
            program: usual.program,
            machine: usual.machine,
            target: usual.target,
            clients: clients.to_vec(),
            same_directory: self.same_directory,
            began_unix_s: usual.began_unix_s,
            elapsed_ns: usual.elapsed_ns,
            seed: usual.seed,
            scaling: scalings(&points),
            incomplete,
            points,
            warnings,
        }
    }
}
