//! `halfpower run` and `halfpower sweep`: builds workloads from options, measures and shows them.

use crate::Failure;
use crate::arguments::PointArguments;
use crate::target::{Where, on_machine, resolve};
use machine::{Allocation, Buffering, Engine, Machine, TargetFacts, TargetKind, TargetSpec};
use measure::Repeats;
use results::{
    Began, Kind, LatencyGoal, Point, Results, SearchBy, measure_points, measure_rate_within_p99, measure_within_p99,
};
use workload::{Data, Stop, Workload};

const MIXED_READS: u8 = 70;

/// Maximum number of threads that emulate depth without an engine; more would measure the
/// scheduler.
const MAX_THREADS: u32 = 256;

const MAX_IN_FLIGHT: u32 = 256;

const MAX_IN_FLIGHT_BYTES: u64 = 64 << 20;

pub(crate) fn run(arguments: &PointArguments) -> Result<(), Failure> {
    lists_in(arguments)?;
    if arguments.each || !arguments.beside.is_empty() {
        return crate::beside::run(arguments);
    }
    if arguments.p99.is_some() {
        return Err(Failure::Usage("--p99: run measures one depth; use halfpower sweep, which finds the depth".into()));
    }
    points(arguments, Kind::Run)
}

/// Refuses lists.
pub(crate) fn lists_in(arguments: &PointArguments) -> Result<(), Failure> {
    match lists(arguments).iter().find(|(_, count)| *count > 1) {
        Some((name, count)) => {
            Err(Failure::Usage(format!("{name}: run takes one value and got {count}; use halfpower sweep for a grid")))
        }
        None => Ok(()),
    }
}

/// The options that take lists, with their number of values.
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

/// Maximum number of workloads in a sweep; more would take weeks.
const MAX_WORKLOADS: usize = 100_000;

/// Refuses more combinations than can be measured, or held in memory.
pub(crate) fn check_grid(arguments: &PointArguments) -> Result<(), Failure> {
    check_op(arguments)?;
    let count = lists(arguments).iter().try_fold(1usize, |product, (_, count)| product.checked_mul((*count).max(1)));
    if count.is_some_and(|count| count <= MAX_WORKLOADS) {
        return Ok(());
    }
    let longest = lists(arguments).into_iter().max_by_key(|(_, count)| *count).map_or("", |(name, _)| name);
    Err(Failure::Usage(format!(
        "the lists have more than {MAX_WORKLOADS} combinations; give {longest} and others fewer values"
    )))
}

/// Refuses options that no requested operation uses, because they would have no effect.
fn check_op(arguments: &PointArguments) -> Result<(), Failure> {
    let has = |op: &str| arguments.op.iter().any(|one| one == op);
    let shown = arguments.op.join(",");
    if let Some(percent) = arguments.read_percent.filter(|_| !has("mix")) {
        return Err(Failure::Usage(format!("--read-percent {percent}: only a mix reads and writes; give --op mix")));
    }
    if has("write") || has("mix") {
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

pub(crate) fn sweep(arguments: &PointArguments) -> Result<(), Failure> {
    if arguments.verify {
        let why = "the workloads of a sweep overwrite one another's data";
        return Err(Failure::Usage(format!("--verify: {why}; use halfpower run for one")));
    }
    crate::beside::refuse(arguments)?;
    if arguments.p99.is_some() && arguments.by == SearchBy::Depth && arguments.depth != [1] {
        let why = "the search for --p99 finds the depth; leave --depth out, or search --by rate";
        return Err(Failure::Usage(format!("--depth: {why}")));
    }
    points(arguments, Kind::Sweep)
}

fn points(arguments: &PointArguments, kind: Kind) -> Result<(), Failure> {
    if arguments.p99.is_none() && arguments.by == SearchBy::Rate {
        return Err(Failure::Usage("--by rate: it says how sweep --p99 searches; give --p99 TIME, too".into()));
    }
    check_grid(arguments)?;
    let (place, mut spec) = resolve(&arguments.target)?;
    if let (Where::Twin(_), None, Some(bytes)) = (&place, spec.size, arguments.bytes) {
        // A simulated file is free to create, so it is as large as the data moved: the 1997 study's
        // 100 MB at the outer edge.
        spec.size = Some(bytes.saturating_add(arguments.offset.iter().max().copied().unwrap_or(0)));
    }
    if let (false, None, Some(bytes)) = (spec.destroy.is_empty(), spec.size, arguments.region) {
        // Fill the whole region, regardless of the time.
        spec.size = Some(bytes_with_parity(&spec, arguments.region_start.saturating_add(bytes)));
    }
    on_machine!(place, |machine| points_on(&machine, &spec, arguments, kind))
}

/// Bytes of all members together, parity included, of a target that has at least this many bytes.
fn bytes_with_parity(spec: &TargetSpec, bytes: u64) -> u64 {
    let members = spec.places.len() as u64;
    if members < 2 {
        return bytes;
    }
    let chunk = if spec.chunk == 0 { host::DEFAULT_CHUNK } else { spec.chunk };
    let with_data = (members - u64::from(spec.raid5.is_some())).max(1);
    bytes.div_ceil(chunk).div_ceil(with_data).saturating_mul(chunk).saturating_mul(members)
}

fn points_on<M: Machine>(
    machine: &M,
    spec: &TargetSpec,
    arguments: &PointArguments,
    kind: Kind,
) -> Result<(), Failure> {
    let workloads = grid(arguments, &machine.capabilities().engines);
    for workload in &workloads {
        workload.check(u64::MAX >> 1, 1)?;
        machine.check_memory(&[workload.buffers()])?;
    }
    let began = Began::now(machine);
    let mut log = None;
    let mut target = machine.open_checked(spec, |facts| {
        check(&workloads, facts)?;
        check_without_size(&workloads, spec, facts)?;
        if !spec.destroy.is_empty() {
            check_any_runs(&workloads, facts)?;
        }
        log = arguments.verify_log.as_deref().map(crate::verify::new_log).transpose()?;
        Ok(())
    })?;
    let facts = machine.target_facts(&target);
    check(&workloads, &facts)?;
    let repeats = Repeats {
        least: arguments.repeats.max(1),
        most: arguments.max_repeats.max(arguments.repeats).max(1),
        precision: arguments.precision / 100.0,
        ..Repeats::default()
    };
    let mut latency_goals = Vec::new();
    let mut points = match workloads.as_slice() {
        workloads if arguments.p99.is_some() => {
            let (points, goals) = within_p99(machine, &mut target, workloads, arguments, repeats)?;
            latency_goals = goals;
            points
        }
        [workload] if arguments.verify => with_bar(&workloads, repeats, |on_progress| {
            let point = crate::verify::measured(machine, &mut target, workload, repeats, log, on_progress)?;
            Ok(vec![point])
        })?,
        workloads => with_bar(workloads, repeats, |on_progress| {
            Ok(measure_points(machine, &mut target, workloads, repeats, on_progress)?)
        })?,
    };
    if let ([workload], [point], false) = (&workloads[..], &mut points[..], arguments.verify) {
        match point.trace(machine, &mut target, workload) {
            // Show the points measured so far.
            Ok(()) | Err(machine::Error::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let found = points.iter().find_map(|point| point.verification.clone());
    let failed = points.iter().all(|point| point.numbers.is_none());
    let results = Results::new(machine, kind, crate::program(), began, facts, arguments.target.seed);
    let mut results = Results { points, latency_goals, ..results };
    let capabilities = machine.capabilities();
    if capabilities.noisy {
        results.warnings.extend(fallback(arguments, &workloads, &capabilities.engines));
    }
    drop(target);
    crate::history::keep(&results);
    crate::output::show_points(&results, arguments.json)?;
    if failed {
        return Err(Failure::Run("no point could be measured".into()));
    }
    found.map_or(Ok(()), |found| crate::verify::judge(&found))
}

/// Finds the best rate of each workload within the p99 goal, with one point per depth tried.
fn within_p99<M: Machine>(
    machine: &M,
    target: &mut M::Target,
    workloads: &[Workload],
    arguments: &PointArguments,
    repeats: Repeats,
) -> Result<(Vec<Point>, Vec<LatencyGoal>), Failure> {
    let engines = machine.capabilities().engines;
    let goal = arguments.p99.unwrap_or(u64::MAX);
    let bar = crate::progress::bar(workloads.len() as u64);
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
        let most = if deepest.has_workers() { MAX_THREADS } else { deepest.max_depth() };
        let (tried, found) = match arguments.by {
            SearchBy::Depth => {
                let how = (goal, most, points.len());
                measure_within_p99(machine, target, at, how, repeats, |workload| bar.set_message(workload.short()))?
            }
            SearchBy::Rate => {
                let workload = if arguments.depth == [1] { at(in_flight(workload, most)) } else { workload.clone() };
                machine.check_memory(&[workload.buffers()])?;
                let how = (goal, points.len());
                measure_rate_within_p99(machine, target, &workload, how, repeats, |doing| {
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

/// The maximum of requests in flight at an offered rate: enough that they queue at the target, not
/// in the program.
fn in_flight(workload: &Workload, most: u32) -> u32 {
    let fitting = MAX_IN_FLIGHT_BYTES / u64::from(workload.request_bytes.max(1)) / u64::from(workload.threads.max(1));
    most.min(MAX_IN_FLIGHT).min(u32::try_from(fitting).unwrap_or(u32::MAX)).max(1)
}

pub(crate) fn check(workloads: &[Workload], facts: &TargetFacts) -> Result<(), machine::Error> {
    for workload in workloads {
        let align = if workload.buffering.is_direct() && facts.direct { facts.direct_align_bytes } else { 1 };
        workload.check(facts.size_bytes, align)?;
        if workload.writes() && !facts.writable {
            let hint = "name it again after --destroy-data to write it";
            return Err(machine::Error::refused(&facts.name, "it was there before and is only read", hint));
        }
    }
    Ok(())
}

/// Refuses workloads that need more of a new file than can be filled in the given time.
fn check_without_size(workloads: &[Workload], spec: &TargetSpec, facts: &TargetFacts) -> Result<(), machine::Error> {
    let new_file = facts.kind == TargetKind::TestFile || facts.kind == TargetKind::Stripe && facts.writable;
    if spec.size.is_some() || !spec.destroy.is_empty() || !new_file {
        return Ok(());
    }
    let least = facts.size_bytes.min(machine::LEAST_FILLED_BYTES * u64::from(facts.members));
    let facts = TargetFacts { size_bytes: least, ..facts.clone() };
    check(workloads, &facts).map_err(|error| match error {
        machine::Error::Refused { what, why, .. } => {
            let shown = machine::units::show_size(least);
            let why = format!("{why}; without --size only the first {shown} of a new file are certain to be filled");
            machine::Error::refused(what, why, "give --size")
        }
        error => error,
    })
}

/// Refuses to overwrite a target if none of the workloads can run on it.
fn check_any_runs(workloads: &[Workload], facts: &TargetFacts) -> Result<(), machine::Error> {
    let refused = |workload: &Workload| match &facts.direct_refused {
        Some(why) if workload.buffering.is_direct() => Some(why.clone()),
        _ if workload.engine.is_mapped() && facts.members > 1 => Some("a stripe cannot be mapped".into()),
        _ if workload.writes() && workload.allocation != Allocation::Written && facts.kind != TargetKind::TestFile => {
            Some(format!("only in a directory can files be made whose space is {}", workload.allocation.name()))
        }
        _ => None,
    };
    let reasons: Option<Vec<String>> = workloads.iter().map(refused).collect();
    match reasons.and_then(|reasons| reasons.into_iter().next()) {
        Some(why) => Err(machine::Error::Unsupported(format!("{}: {why}; nothing was written", facts.name))),
        None => Ok(()),
    }
}

fn with_bar(
    workloads: &[Workload],
    repeats: Repeats,
    measured: impl FnOnce(&mut dyn FnMut(usize, usize)) -> Result<Vec<Point>, Failure>,
) -> Result<Vec<Point>, Failure> {
    let bar = crate::progress::bar(workloads.len() as u64 * u64::from(repeats.least));
    let points = measured(&mut |index, runs| {
        bar.set_message(workloads[index].short());
        if runs <= repeats.least as usize {
            bar.inc(1);
        }
    })?;
    bar.finish_and_clear();
    Ok(points)
}

/// Every combination of the options' lists; the last option varies fastest.
pub(crate) fn grid(arguments: &PointArguments, engines: &[Engine]) -> Vec<Workload> {
    let mut grid = vec![base(arguments)];
    let mut widen = |set: &dyn Fn(&Workload) -> Vec<Workload>| grid = grid.iter().flat_map(set).collect();
    fn each<T: Copy>(values: &[T], set: impl Fn(&mut Workload, T)) -> impl Fn(&Workload) -> Vec<Workload> {
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

fn base(arguments: &PointArguments) -> Workload {
    Workload {
        stop: match (arguments.bytes, arguments.runtime) {
            (Some(bytes), _) => Stop::AfterBytes(bytes),
            (None, ns) => Stop::AfterNs(ns.unwrap_or(1_000_000_000)),
        },
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

/// Reports that the default engine was replaced by another.
fn fallback(arguments: &PointArguments, workloads: &[Workload], engines: &[Engine]) -> Option<String> {
    let deep = workloads.iter().find(|workload| workload.engine != Engine::Sync)?;
    deep.engine.fallback(engines).filter(|_| arguments.engine.is_empty())
}
