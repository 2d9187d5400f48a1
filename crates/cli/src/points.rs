//! `halfpower run` and `halfpower sweep`.

use crate::arguments::PointArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::live::Live;
use crate::output::Metrics;
use crate::target::{Where, resolve};
use crate::unfinished::{Unfinished, refuse_twin};
use machine::{Buffering, Engine, Machine, Memory, TargetSpec};
use measure::{Repeats, RunRequest, Runner};
use results::{
    Began, Kind, LatencyGoal, Point, Results, SearchBy, measure_points, measure_rate_within_p99,
    measure_within_p99, meets_published_p99, points_of,
};
use std::path::{Path, PathBuf};
use workload::{ClientFiles, Data, Stop, Workload};

const MIXED_READS: u8 = 70;

pub(crate) const RUN_NS: u64 = 1_000_000_000;

/// Short, for many blocks.
pub(crate) const TURN_RUN_NS: u64 = 400_000_000;

/// Threads emulate depth without an engine; more would measure the scheduler.
const MAX_THREADS: u32 = 256;

const MAX_IN_FLIGHT: u32 = 256;

const MAX_IN_FLIGHT_BYTES: u64 = 64 << 20;

pub(crate) fn run(context: &Context, arguments: &PointArguments) -> Result<(), Failure> {
    let _units = arguments.units.choose(context);
    lists_in(arguments)?;
    if arguments.p99.is_some() {
        return Err(Failure::Usage(
            "--p99: run measures one depth; use halfpower sweep, which finds the depth".into(),
        ));
    }
    let several = arguments.profile().is_some_and(|one| one.workloads(Engine::Sync).len() > 1);
    if arguments.each || !arguments.beside.is_empty() || several {
        one_client(arguments)?;
        return crate::concurrent::run(context, arguments);
    }
    points(context, arguments, Kind::Run)
}

pub(crate) fn lists_in(arguments: &PointArguments) -> Result<(), Failure> {
    match lists(arguments).iter().find(|(_, count)| *count > 1) {
        Some((name, count)) => Err(Failure::Usage(format!(
            "{name}: run takes one value and got {count}; use halfpower sweep for a grid"
        ))),
        None => Ok(()),
    }
}

fn lists(arguments: &PointArguments) -> [(&'static str, usize); 13] {
    [
        ("--op", arguments.op.len()),
        ("--pattern", arguments.pattern.len()),
        ("--request", arguments.request.len()),
        ("--depth", arguments.depth.len()),
        ("--threads", arguments.threads.len()),
        ("--engine", arguments.engine.len()),
        ("--allocate", arguments.allocate.len()),
        ("--offset", arguments.offset.len()),
        ("--hint", arguments.hint.len()),
        ("--memory", arguments.memory.len()),
        ("--cache", arguments.cache.len()),
        ("--reap", arguments.reap.len()),
        ("--direct --buffered", usize::from(arguments.direct) + usize::from(arguments.buffered)),
    ]
}

/// More would take weeks.
const MAX_WORKLOADS: usize = 100_000;

pub(crate) fn check_grid(arguments: &PointArguments) -> Result<(), Failure> {
    check_op(arguments)?;
    let count = lists(arguments)
        .iter()
        .try_fold(1usize, |product, (_, count)| product.checked_mul((*count).max(1)));
    if count.is_some_and(|count| count <= MAX_WORKLOADS) {
        return Ok(());
    }
    let longest =
        lists(arguments).into_iter().max_by_key(|(_, count)| *count).map_or("", |(name, _)| name);
    Err(Failure::Usage(format!(
        "the lists have more than {MAX_WORKLOADS} combinations; give {longest} and others fewer values"
    )))
}

fn check_op(arguments: &PointArguments) -> Result<(), Failure> {
    let has = |op: &str| arguments.op.iter().any(|one| one == op);
    let shown = arguments.op.join(",");
    if let Some(percent) = arguments.read_percent.filter(|_| !has("mix")) {
        return Err(Failure::Usage(format!(
            "--read-percent {percent}: only a mix reads and writes; give --op mix"
        )));
    }
    // The presets have writes.
    if has("write") || has("mix") || arguments.workload.is_some() {
        return Ok(());
    }
    let of_writes = [
        ("--dsync", arguments.dsync),
        ("--end-fdatasync", arguments.end_fdatasync),
        ("--compressible", arguments.compressible > 0),
        ("--duplicate", arguments.duplicate > 0),
    ];
    match of_writes.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Usage(format!(
            "{option}: it is about writes, and --op {shown} writes nothing; give --op write or mix, or leave it out"
        ))),
        None => Ok(()),
    }
}

pub(crate) fn sweep(context: &Context, arguments: &PointArguments) -> Result<(), Failure> {
    let _units = arguments.units.choose(context);
    if arguments.verify {
        let why = "the workloads of a sweep overwrite one another's data";
        return Err(Failure::Usage(format!("--verify: {why}; use halfpower run for one")));
    }
    crate::concurrent::refuse(arguments)?;
    crate::live::refuse(arguments.live, "sweep")?;
    if arguments.p99.is_some() && arguments.by == SearchBy::Depth && arguments.depth != [1] {
        let why = "the search for --p99 finds the depth; leave --depth out, or search --by rate";
        return Err(Failure::Usage(format!("--depth: {why}")));
    }
    points(context, arguments, Kind::Sweep)
}

fn points(context: &Context, arguments: &PointArguments, kind: Kind) -> Result<(), Failure> {
    if arguments.p99.is_none() && arguments.by == SearchBy::Rate {
        return Err(Failure::Usage(
            "--by rate: it says how sweep --p99 searches; give --p99 TIME, too".into(),
        ));
    }
    check_grid(arguments)?;
    let (place, spec) = target_of(context, arguments)?;
    match &place {
        Where::Twin(machine) if machine.clients() > 1 => one_process(arguments)?,
        _ => one_client(arguments)?,
    }
    match place {
        Where::Twin(machine) => {
            refuse_twin(arguments.resume)?;
            points_on(context, &*machine, &spec, arguments, (kind, &|_| Ok(())), None)
        }
        // A verifying run reads back what it wrote itself.
        Where::Host(machine) if arguments.verify => {
            points_on(context, &machine, &spec, arguments, (kind, &|_| Ok(())), None)
        }
        Where::Host(machine) => {
            let command = if kind == Kind::Run { "run" } else { "sweep" };
            let unfinished = Unfinished::begin(context, command, &spec.places, arguments.resume)?;
            let machine = unfinished.machine(machine);
            let about: (Kind, Finish<'_>) = (kind, &|_| Ok(()));
            let result = points_on(context, &machine, &spec, arguments, about, Some(&unfinished));
            unfinished.end(&result);
            result
        }
    }
}

/// A simulated file is as large as the data moved: the 1997 study's 100 MB at the outer edge.
pub(crate) fn target_of(
    context: &Context,
    arguments: &PointArguments,
) -> Result<(Where, TargetSpec), Failure> {
    let (place, mut spec) = resolve(context, &arguments.target)?;
    if let (Where::Twin(_), None, Some(bytes)) = (&place, spec.size, arguments.bytes) {
        spec.size = Some(bytes.saturating_add(arguments.offset.iter().max().copied().unwrap_or(0)));
    }
    spec.fill_from = arguments.region_start;
    if let (false, None, Some(bytes)) = (spec.destroy.is_empty(), spec.size, arguments.region) {
        // Fill the whole region, regardless of the time, and nothing behind it.
        spec.size = Some(bytes_with_parity(&spec, arguments.region_start.saturating_add(bytes)));
    }
    Ok((place, spec))
}

fn bytes_with_parity(spec: &TargetSpec, bytes: u64) -> u64 {
    let members = spec.places.len() as u64;
    if members < 2 {
        return bytes;
    }
    let chunk = if spec.chunk == 0 { host::DEFAULT_CHUNK } else { spec.chunk };
    let with_data = (members - u64::from(spec.raid5.is_some())).max(1);
    bytes.div_ceil(chunk).div_ceil(with_data).saturating_mul(chunk).saturating_mul(members)
}

pub(crate) type Finish<'f> = &'f dyn Fn(&mut Results) -> Result<(), Failure>;

pub(crate) fn points_on<M: Machine>(
    context: &Context,
    machine: &M,
    spec: &TargetSpec,
    arguments: &PointArguments,
    (kind, finish): (Kind, Finish<'_>),
    unfinished: Option<&Unfinished>,
) -> Result<(), Failure> {
    let targets: Vec<&Path> = spec.places.iter().map(PathBuf::as_path).collect();
    let metrics = Metrics::open(context, arguments.openmetrics.as_deref(), &targets)?;
    let workloads = of_clients(arguments, machine)?;
    let repeats = repeats(arguments);
    let request = RunRequest::in_turn(spec, &workloads, repeats);
    context.writes.plan_runs(&workloads, repeats);
    let began = Began::now(machine);
    let mut log = None;
    let mut runner = Runner::open_then(machine, &request, |_| {
        log = arguments.verify_log.as_deref().map(crate::verify::new_log).transpose()?;
        Ok(())
    })?;
    let facts = runner.facts()[0].clone();
    let live = arguments.live.then(|| Live::start(&context.console));
    live.iter().for_each(|live| runner.watch(live.log()));
    let mut latency_goals = Vec::new();
    let mut interrupted = false;
    let mut points = match workloads.as_slice() {
        workloads if arguments.p99.is_some() => {
            let (points, goals) = within_p99(context, &mut runner, workloads, arguments, repeats)?;
            latency_goals = goals;
            points
        }
        [workload] if arguments.verify => with_bar(context, &workloads, repeats, |on_progress| {
            let point = crate::verify::measured(&mut runner, workload, repeats, log, on_progress)?;
            Ok(vec![point])
        })?,
        workloads => with_bar(context, workloads, repeats, |on_progress| {
            let measured = match runner.run(&request, on_progress) {
                Err(machine::Error::Interrupted) => runner.take_interrupted(),
                measured => return Ok(points_of(workloads, &measured?)),
            };
            interrupted = true;
            let mut points = measured.map_or_else(Vec::new, |runs| points_of(workloads, &runs));
            points.retain(|point| point.numbers.is_some());
            if points.is_empty() { Err(Failure::Interrupted) } else { Ok(points) }
        })?,
    };
    let seconds = live.map_or_else(Vec::new, Live::end);
    let traced = !arguments.verify && !interrupted;
    if let ([workload], [point], true) = (&workloads[..], &mut points[..], traced) {
        match point.trace(machine, runner.target_mut(0), workload) {
            // Show the points measured so far.
            Ok(()) | Err(machine::Error::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if let (Some(profile), [point]) = (arguments.profile(), points.as_slice()) {
        latency_goals.extend(published_bar(profile, point, machine.capabilities().noisy));
    }
    let found = points.iter().find_map(|point| point.verification.clone());
    let failed = points.iter().all(|point| point.numbers.is_none());
    let results =
        Results::new(machine, kind, crate::context::program(), began, facts, arguments.target.seed);
    let mut results = Results { points, latency_goals, seconds, ..results };
    results.warnings.extend(context.writes.note());
    if let Some(unfinished) = unfinished {
        results.warnings.extend(unfinished.warnings());
        results.began_unix_s = unfinished.began_unix_s().unwrap_or(results.began_unix_s);
    }
    if interrupted {
        results = results.interrupted(Some(workloads.len()));
    }
    results.scaling = hosts::scalings(&results.points);
    let capabilities = machine.capabilities();
    if capabilities.noisy {
        results.warnings.extend(fallback(arguments, &workloads, &capabilities.engines));
    }
    drop(runner);
    let finished = finish(&mut results);
    crate::history::keep(context, &results);
    crate::output::show_points(context, &results, arguments.json)?;
    finished?;
    // Keep the last complete metrics: an interrupted run has too few points.
    if interrupted {
        return Err(Failure::Interrupted);
    }
    if let Some(mut metrics) = metrics {
        metrics.gauges.add(&results);
        metrics.save()?;
    }
    if failed {
        return Err(Failure::Run("no point could be measured".into()));
    }
    found.map_or(Ok(()), |found| crate::verify::judge(&found))
}

pub(crate) fn published_bar(
    preset: &tune::Profile,
    point: &Point,
    noisy: bool,
) -> Option<LatencyGoal> {
    meets_published_p99(point, (preset.p99_ns?, 0), preset.name, noisy)
}

pub(crate) fn of_clients<M: Machine>(
    arguments: &PointArguments,
    machine: &M,
) -> Result<Vec<Workload>, Failure> {
    let workloads = grid(arguments, &machine.capabilities().engines);
    let all = machine.clients() as usize;
    let numbers = match &arguments.clients {
        Some(clients) => clients.of(all).map_err(Failure::Usage)?,
        None if all > 1 => vec![all],
        None => return Ok(workloads),
    };
    let each = |workload: Workload| {
        let with = move |&clients: &usize| Workload {
            clients: u32::try_from(clients).ok(),
            ..workload.clone()
        };
        numbers.iter().map(with).collect::<Vec<Workload>>()
    };
    Ok(workloads.into_iter().flat_map(each).collect())
}

fn one_process(arguments: &PointArguments) -> Result<(), Failure> {
    let given = [(arguments.shared_file, "--shared-file"), (arguments.save.is_some(), "--save")];
    match given.iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(Failure::Usage(format!(
            "{option}: a simulated machine's clients are not processes; leave it out"
        ))),
        None => Ok(()),
    }
}

pub(crate) fn one_client(arguments: &PointArguments) -> Result<(), Failure> {
    let given = [
        (arguments.clients.is_some(), "--clients"),
        (arguments.shared_file, "--shared-file"),
        (arguments.save.is_some(), "--save"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, option)) => Err(Failure::Usage(format!(
            "{option}: this process is the only client; start several: mpirun -np 4 halfpower run or sweep"
        ))),
        None => Ok(()),
    }
}

pub(crate) fn no_metrics(arguments: &PointArguments) -> Result<(), Failure> {
    one_client(arguments)?;
    match &arguments.openmetrics {
        Some(path) => Err(Failure::Usage(format!(
            "--openmetrics {}: only run, sweep, study and check write metrics; leave it out",
            path.display()
        ))),
        None => Ok(()),
    }
}

pub(crate) fn measured_document<M: Machine>(
    context: &Context,
    runner: &mut Runner<'_, M>,
    workloads: &[Workload],
    repeats: Repeats,
    runs: u32,
    began: Began,
    seed: u64,
) -> Result<Results, Failure> {
    let bar = context.console.bar(u64::from(runs) * workloads.len() as u64);
    let points = measure_points(runner, workloads, repeats, |index, done| {
        bar.set_message(workloads[index].short());
        if done <= runs as usize {
            bar.inc(1);
        }
    });
    bar.finish_and_clear();
    let (machine, facts) = (runner.machine(), runner.facts()[0].clone());
    let results = Results::new(machine, Kind::Sweep, crate::context::program(), began, facts, seed);
    Ok(Results { points: points?, ..results })
}

pub(crate) fn repeats(arguments: &PointArguments) -> Repeats {
    Repeats {
        min: arguments.repeats.max(1),
        max: arguments.max_repeats.max(arguments.repeats).max(1),
        precision: arguments.precision / 100.0,
        ..Repeats::default()
    }
}

fn within_p99<M: Machine>(
    context: &Context,
    runner: &mut Runner<'_, M>,
    workloads: &[Workload],
    arguments: &PointArguments,
    repeats: Repeats,
) -> Result<(Vec<Point>, Vec<LatencyGoal>), Failure> {
    let engines = runner.machine().capabilities().engines;
    let goal = arguments.p99.unwrap_or(u64::MAX);
    let bar = context.console.bar(workloads.len() as u64);
    let (mut points, mut goals) = (Vec::new(), Vec::new());
    for workload in workloads {
        let at = |depth: u32| {
            let own = !arguments.engine.is_empty();
            Workload {
                depth,
                engine: if own { workload.engine } else { Engine::for_depth(depth, &engines) },
                ..workload.clone()
            }
        };
        let deepest = at(2).engine;
        let max = if deepest.has_workers() { MAX_THREADS } else { deepest.max_depth() };
        let (tried, found) = match arguments.by {
            SearchBy::Depth => {
                let how = (goal, max, points.len());
                measure_within_p99(runner, at, how, repeats, |workload| {
                    bar.set_message(workload.short())
                })?
            }
            SearchBy::Rate => {
                let workload = if arguments.depth == [1] {
                    at(in_flight(workload, max))
                } else {
                    workload.clone()
                };
                measure::check_memory(runner.machine(), &[vec![workload.buffers()]])?;
                let how = (goal, points.len());
                measure_rate_within_p99(runner, &workload, how, repeats, |doing| {
                    bar.set_message(doing.to_owned());
                })?
            }
        };
        bar.inc(1);
        points.extend(tried);
        goals.push(found);
    }
    bar.finish_and_clear();
    Ok((points, goals))
}

/// Requests at an offered rate must queue at the target, not in the program.
fn in_flight(workload: &Workload, max: u32) -> u32 {
    let fitting = MAX_IN_FLIGHT_BYTES
        / u64::from(workload.request_bytes.max(1))
        / u64::from(workload.threads.max(1));
    max.min(MAX_IN_FLIGHT).min(u32::try_from(fitting).unwrap_or(u32::MAX)).max(1)
}

fn with_bar(
    context: &Context,
    workloads: &[Workload],
    repeats: Repeats,
    measured: impl FnOnce(&mut dyn FnMut(usize, usize)) -> Result<Vec<Point>, Failure>,
) -> Result<Vec<Point>, Failure> {
    let bar = context.console.bar(workloads.len() as u64 * u64::from(repeats.min));
    // A long first run is named from its beginning.
    bar.set_message(workloads.first().map(Workload::short).unwrap_or_default());
    let points = measured(&mut |index, runs| {
        bar.set_message(workloads[index].short());
        if runs <= repeats.min as usize {
            bar.inc(1);
        }
    })?;
    bar.finish_and_clear();
    Ok(points)
}

/// Varies the last option fastest.
pub(crate) fn grid(arguments: &PointArguments, engines: &[Engine]) -> Vec<Workload> {
    let mut grid = vec![base(arguments)];
    if let Some(profile) = arguments.profile() {
        let own = profile.workloads(Engine::asynchronous(engines));
        return own.into_iter().flat_map(|one| of_preset(arguments, &one)).collect();
    }
    let mut widen =
        |set: &dyn Fn(&Workload) -> Vec<Workload>| grid = grid.iter().flat_map(set).collect();
    fn each<T: Copy>(
        values: &[T],
        set: impl Fn(&mut Workload, T),
    ) -> impl Fn(&Workload) -> Vec<Workload> {
        move |base| {
            let with = |&value: &T| {
                let mut workload = base.clone();
                set(&mut workload, value);
                workload
            };
            values.iter().map(with).collect()
        }
    }
    let read_percents: Vec<u8> = arguments
        .op
        .iter()
        .map(|op| {
            if op == "read" {
                100
            } else if op == "write" {
                0
            } else {
                arguments.read_percent.unwrap_or(MIXED_READS)
            }
        })
        .collect();
    widen(&each(&read_percents, |workload, value| workload.read_percent = value));
    widen(&each(&bufferings(arguments), |workload, value| workload.buffering = value));
    widen(&each(&arguments.pattern, |workload, value| workload.pattern = value));
    widen(&each(&arguments.allocate, |workload, value| workload.allocation = value));
    widen(&each(&arguments.hint, |workload, value| workload.hint = value));
    widen(&each(&arguments.memory, |workload, value| workload.memory = value));
    widen(&each(&arguments.cache, |workload, value| workload.cache = value));
    widen(&each(&arguments.reap, |workload, value| workload.reap = value));
    widen(&each(&arguments.offset, |workload, value| workload.offset_bytes = value));
    widen(&each(&arguments.threads, |workload, value| workload.threads = value));
    widen(&each(&arguments.depth, |workload, value| {
        workload.depth = value;
        workload.engine = Engine::for_depth(value, engines);
    }));
    if !arguments.engine.is_empty() {
        widen(&each(&arguments.engine, |workload, value| workload.engine = value));
    }
    widen(&each(&arguments.request, |workload, value| workload.request_bytes = value));
    grid
}

fn client_files(arguments: &PointArguments) -> ClientFiles {
    match (arguments.shared_file, arguments.interleaved) {
        (false, _) => ClientFiles::Own,
        (true, false) => ClientFiles::Segments,
        (true, true) => ClientFiles::Interleaved,
    }
}

fn of_preset(arguments: &PointArguments, preset: &Workload) -> Vec<Workload> {
    let base = base(arguments);
    let with = |&memory: &Memory| Workload {
        memory,
        stop: base.stop,
        region_start_bytes: base.region_start_bytes,
        region_bytes: base.region_bytes,
        data: base.data,
        seed: base.seed,
        client_files: base.client_files,
        ..preset.clone()
    };
    arguments.memory.iter().map(with).collect()
}

fn base(arguments: &PointArguments) -> Workload {
    let load = arguments.load.as_ref().map_or_else(Vec::new, |load| load.0.clone());
    let of_load = load.iter().map(|step| step.duration_ns).reduce(u64::saturating_add);
    Workload {
        stop: match (arguments.bytes, arguments.runtime) {
            (Some(bytes), _) => Stop::AfterBytes(bytes),
            (None, ns) => Stop::AfterNs(of_load.unwrap_or(ns.unwrap_or(RUN_NS))),
        },
        load,
        client_files: client_files(arguments),
        latency_window_ns: arguments.latency_every,
        region_start_bytes: arguments.region_start,
        region_bytes: arguments.region,
        limit_bytes: arguments.limit,
        rate_iops: arguments.rate,
        think_ns: arguments.think,
        sync_at_end: arguments.end_fdatasync,
        data: Data {
            compressible_percent: arguments.compressible,
            duplicate_percent: arguments.duplicate,
            verify: arguments.verify,
            ..Data::default()
        },
        seed: arguments.target.seed,
        ..Workload::default()
    }
}

fn bufferings(arguments: &PointArguments) -> Vec<Buffering> {
    let mut chosen = Vec::new();
    if arguments.direct || !arguments.buffered {
        chosen.push(if arguments.dsync { Buffering::DirectDsync } else { Buffering::Direct });
    }
    if arguments.buffered {
        chosen.push(if arguments.dsync { Buffering::BufferedDsync } else { Buffering::Buffered });
    }
    chosen
}

fn fallback(
    arguments: &PointArguments,
    workloads: &[Workload],
    engines: &[Engine],
) -> Option<String> {
    let deep = workloads.iter().find(|workload| workload.engine != Engine::Sync)?;
    deep.engine.fallback(engines).filter(|_| arguments.engine.is_empty())
}
