use crate::arguments::PointArguments;
use crate::commands::{Cli, Command};
use crate::console::{print, tell};
use crate::failure::Failure;
use crate::output;
use crate::points::{check_grid, grid, lists_in, repeats, target_of};
use crate::progress::{self, Display};
use crate::target::Where;
use host::Host;
use hosts::{
    Error, Group, GroupMeasurement, HOSTS_SCHEMA, Hello, HostsResult, Launch, Leader, MpiRank,
    OpenGroup, follow, measure_group, scalings,
};
use machine::{Machine, TargetSpec};
use measure::RunRequest;
use results::Began;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use workload::Workload;

/// The version that all ranks must have. In the program it follows a label, so that one can find it
/// there.
static VERSION: &str = concat!("halfpower-hosts-version ", env!("CARGO_PKG_VERSION"));

/// The smallest test file of a client whose size halfpower chooses.
const MIN_BYTES: u64 = machine::units::MIB;

fn is_interrupted() -> bool {
    crate::interrupt::flag().load(Ordering::Relaxed)
}

pub(super) fn measure(cli: Cli, launch: &Launch) -> Result<(), Failure> {
    let mode = progress::mode(cli.progress, std::env::args_os());
    let (arguments, is_run) = match cli.command {
        Command::Run(arguments) => (arguments, true),
        Command::Sweep(arguments) => (arguments, false),
        _ => return Err(Failure::Usage("only run and sweep measure with many clients".into())),
    };
    // Before the first message: a signal must not end a rank for which others wait.
    let machine = Host::new(crate::interrupt::flag());
    let rank = MpiRank::new().map_err(Failure::Usage)?;
    if rank.size() != launch.processes {
        return Err(Failure::Usage(format!(
            "{} started {} copies, but the MPI library sees {}: they were built for another launcher; with srun, try srun --mpi=pmix",
            launch.launcher,
            launch.processes,
            rank.size()
        )));
    }
    let facts = machine.facts();
    let version = std::hint::black_box(VERSION);
    let hello = Hello {
        version: version.rsplit(' ').next().unwrap_or(version).into(),
        host: facts.name,
        processors: facts.processors,
    };
    if rank.rank() > 0 {
        let followed = follow(&rank, &machine, &hello, &is_interrupted);
        if followed.is_err() || is_interrupted() {
            rank.leave();
        }
        return followed.map_err(|_| Failure::Run("rank 0 is gone".into()));
    }
    let _display = Display::start(mode);
    let mut lost = false;
    let result = match Leader::meet(&rank, &machine, &hello, &is_interrupted) {
        Ok(mut leader) => {
            let result = lead(&mut leader, &arguments, is_run);
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
    leader: &mut Leader<'_, MpiRank, Host>,
    arguments: &PointArguments,
    is_run: bool,
) -> Result<(), Failure> {
    arguments.units.choose();
    check(arguments, is_run)?;
    let all = leader.clients().len();
    let numbers = match &arguments.clients {
        Some(clients) => clients.of(all).map_err(Failure::Usage)?,
        None => vec![all],
    };
    let (place, mut spec) = target_of(arguments)?;
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
    let bar = progress::bar(steps);
    let measured =
        measure_group(leader, &mut open, &workloads, &numbers, repeats, |clients, part, runs| {
            bar.set_message(format!("{clients} clients: {}", workloads[part].short()));
            if runs <= repeats.min as usize {
                bar.inc(1);
            }
        });
    bar.finish_and_clear();
    let (result, ended) = document(leader, &open, measured, arguments, began);
    drop(open);
    let failed = result.points.iter().all(|one| one.point.numbers.is_none());
    let Some(error) = ended else {
        show(&result, arguments)?;
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
    tell(&error.to_string());
    if !result.points.is_empty() {
        show(&result, arguments)?;
    }
    Err(Failure::Printed(code))
}

fn show(result: &HostsResult, arguments: &PointArguments) -> Result<(), Failure> {
    match arguments.json {
        true => print(&output::json(result.to_json())?),
        false => print(&report::hosts::terminal(result, output::width(), output::colour())),
    }
}

/// The work of each rank: its random sequence and its data differ from those of the others.
fn requests(
    spec: &TargetSpec,
    workloads: &[Workload],
    arguments: &PointArguments,
    ranks: usize,
) -> Result<Vec<RunRequest>, Failure> {
    let segments = match arguments.shared_file {
        true => Some(segments(spec, workloads, arguments, ranks)?),
        false => None,
    };
    let request = |rank: usize| {
        let spec = TargetSpec { seed: spec.seed.wrapping_add(rank as u64), ..spec.clone() };
        let own = |workload: &Workload| {
            let mut own = workload.clone();
            own.seed = own.seed.wrapping_add(rank as u64);
            if let Some(segments) = &segments {
                (own.region_start_bytes, own.region_bytes) = segments.of(rank);
            }
            own
        };
        let workloads: Vec<Workload> = workloads.iter().map(own).collect();
        RunRequest::in_turn(&spec, &workloads, repeats(arguments))
    };
    Ok((0..ranks).map(request).collect())
}

/// Equal parts of one file, one for each rank.
struct Segments {
    start: u64,
    each: u64,
}

impl Segments {
    /// First byte and length of a rank's part.
    fn of(&self, rank: usize) -> (u64, Option<u64>) {
        (self.start + rank as u64 * self.each, Some(self.each))
    }
}

/// Divides the file that all ranks use.
fn segments(
    spec: &TargetSpec,
    workloads: &[Workload],
    arguments: &PointArguments,
    ranks: usize,
) -> Result<Segments, Failure> {
    let [place] = spec.places.as_slice() else {
        return Err(Failure::Usage(
            "--shared-file: all clients use one file; name one target".into(),
        ));
    };
    let shown = place.display();
    if workloads.iter().any(Workload::writes) {
        return Err(Failure::Usage(format!(
            "--shared-file: halfpower writes a file only while no other process does, so clients cannot write {shown} together; give --op read, or a directory, in which each writes its own file"
        )));
    }
    if place.is_dir() {
        return Err(Failure::Usage(format!(
            "--shared-file: {shown} is a directory, in which each client makes its own file; name an existing file in it"
        )));
    }
    let length = std::fs::metadata(place).map_or(0, |file| file.len());
    let whole = spec.size.unwrap_or(length).saturating_sub(arguments.region_start);
    let whole = arguments.region.map_or(whole, |region| region.min(whole));
    let request = workloads.iter().map(|one| u64::from(one.request_bytes)).max().unwrap_or(1);
    let each = whole / ranks as u64 / request * request;
    if each == 0 {
        return Err(Failure::Usage(format!(
            "--shared-file: the {} of {shown} are less than one request for each of {ranks} clients; use a larger file, or give the --size of a device",
            machine::units::show_size(whole)
        )));
    }
    Ok(Segments { start: arguments.region_start, each })
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

fn document(
    leader: &Leader<'_, MpiRank, Host>,
    open: &OpenGroup<'_, Host>,
    measured: GroupMeasurement,
    arguments: &PointArguments,
    began: Began,
) -> (HostsResult, Option<Error>) {
    let machine = leader.machine();
    let GroupMeasurement { points, ended } = measured;
    let target = open.all_facts();
    let usual = results::Results::new(
        machine,
        results::Kind::Run,
        crate::context::program(),
        began,
        target,
        arguments.target.seed,
    );
    let mut warnings = Vec::new();
    if !open.elsewhere.is_empty() {
        warnings.push(format!(
            "{} do not see the file that rank 0 made in the target: these are several file systems, and the sum of their rates is not the rate of one server",
            open.elsewhere.join(", ")
        ));
    }
    let mut hosts: Vec<&str> = leader.clients().iter().map(|one| one.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() < leader.clients().len() {
        warnings.push(format!(
            "{} clients share {} {}: its processors and its cache are theirs together; to measure a server, start one rank per host",
            leader.clients().len(),
            hosts.len(),
            if hosts.len() == 1 { "host" } else { "hosts" },
        ));
    }
    if let Some(error) = &ended {
        warnings.push(format!("it ended early: {error}"));
    }
    warnings.extend(usual.warnings);
    let result = HostsResult {
        schema: HOSTS_SCHEMA.into(),
        program: usual.program,
        machine: usual.machine,
        target: usual.target,
        clients: leader.clients().to_vec(),
        same_directory: open.same_directory,
        began_unix_s: usual.began_unix_s,
        elapsed_ns: usual.elapsed_ns,
        seed: usual.seed,
        scaling: scalings(&points),
        incomplete: ended.is_some(),
        points,
        warnings,
    };
    (result, ended)
}
