//! `run --each` and `run --beside`: workloads one at a time, then concurrently.

use crate::arguments::PointArguments;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Metrics;
use crate::points::{check_grid, grid, lists_in, repeats};
use crate::target::{Where, machine_of, on_machine, resolve};
use machine::{Machine, TargetFacts, TargetSpec};
use measure::{Arrangement, Repeats, RequestPart, RunRequest, Runner};
use results::{Began, Kind, Results, measure_interference};
use std::path::{Path, PathBuf};
use workload::Workload;

const FILL_NS: u64 = 5_000_000_000;

pub(crate) fn run(context: &Context, arguments: &PointArguments) -> Result<(), Failure> {
    if arguments.resume {
        return Err(Failure::Usage(
            "--resume: workloads at once are not kept run by run; leave --resume out".into(),
        ));
    }
    crate::live::refuse(arguments.live, "--workload with several workloads")?;
    if arguments.bytes.is_some() {
        return Err(Failure::Usage(
            "--bytes: workloads at once run for a time; give --runtime instead".into(),
        ));
    }
    let others =
        arguments.beside.iter().map(|words| others(words)).collect::<Result<Vec<_>, _>>()?;
    if arguments.each {
        let (place, specs) = each(context, arguments)?;
        return on_machine!(place, |machine| measured(context, &machine, &specs, arguments, &[]));
    }
    let (place, spec) = resolve(context, &arguments.target)?;
    on_machine!(place, |machine| measured(context, &machine, &[spec], arguments, &others))
}

fn paths(specs: &[TargetSpec]) -> Vec<&Path> {
    specs.iter().flat_map(|spec| &spec.places).map(PathBuf::as_path).collect()
}

pub(crate) fn refuse(arguments: &PointArguments) -> Result<(), Failure> {
    if arguments.each || !arguments.beside.is_empty() {
        return Err(Failure::Usage(
            "--each and --beside: only halfpower run measures workloads at once; use that".into(),
        ));
    }
    Ok(())
}

fn others(words: &str) -> Result<PointArguments, Failure> {
    let wrong = |why: String| Failure::Usage(format!("--beside '{words}': {why}"));
    let split = shlex::split(words).ok_or_else(|| wrong("a quote is not closed".into()))?;
    let other =
        PointArguments::parse("run", split).map_err(|error| wrong(error.render().to_string()))?;
    let own = !other.target.targets.is_empty() || !other.target.destroy_data.is_empty();
    for (given, option) in [
        (own, "a target"),
        (other.bytes.is_some() || other.runtime.is_some(), "--runtime or --bytes"),
        (other.each || !other.beside.is_empty(), "--each or --beside"),
        (other.verify || other.p99.is_some(), "--verify or --p99"),
        (other.openmetrics.is_some(), "--openmetrics"),
        (other.clients.is_some() || other.shared_file, "--clients or --shared-file"),
        (other.save.is_some(), "--save"),
        (other.resume || other.live, "--resume or --live"),
    ] {
        if given {
            return Err(wrong(format!(
                "{option} belongs to the whole run; give only the workload's options"
            )));
        }
    }
    lists_in(&other).map_err(|_| wrong("it takes one value of each option".into()))?;
    Ok(other)
}

fn each(
    context: &Context,
    arguments: &PointArguments,
) -> Result<(Where, Vec<TargetSpec>), Failure> {
    let names = &arguments.target.targets;
    if names.len() < 2 {
        return Err(Failure::Usage("--each: there is one target; name several".into()));
    }
    if arguments.target.raid.is_some() || arguments.target.chunk.is_some() {
        return Err(Failure::Usage(
            "--each: measures each target separately; leave --raid and --chunk out".into(),
        ));
    }
    let place = machine_of(context, &names.iter().map(Path::new).collect::<Vec<_>>())?;
    if let Some(name) = arguments.target.destroy_data.iter().find(|name| !names.contains(name)) {
        let why = "it is named for destruction but is not a target";
        return Err(Failure::Usage(format!("--destroy-data {}: {why}", name.display())));
    }
    let spec = |name: &PathBuf| TargetSpec {
        places: vec![name.clone()],
        size: arguments.target.size.0,
        fill_ns: Some(FILL_NS / names.len() as u64),
        destroy: arguments.target.destroy_data.iter().filter(|one| *one == name).cloned().collect(),
        destroy_signed: arguments.target.destroy_signature,
        seed: arguments.target.seed,
        ..TargetSpec::default()
    };
    Ok((place, names.iter().map(spec).collect()))
}

fn measured<M: Machine>(
    context: &Context,
    machine: &M,
    specs: &[TargetSpec],
    arguments: &PointArguments,
    others: &[PointArguments],
) -> Result<(), Failure> {
    let engines = machine.capabilities().engines;
    let mut workloads: Vec<Workload> = Vec::new();
    for arguments in std::iter::once(arguments).chain(others) {
        check_grid(arguments)?;
        workloads.extend(grid(arguments, &engines));
    }
    let (seed, stop) = (workloads[0].seed, workloads[0].stop);
    for (number, workload) in workloads.iter_mut().enumerate() {
        // Give random workloads different sequences.
        workload.seed = seed.wrapping_add(number as u64);
        workload.stop = stop;
    }
    let part = |target| {
        workloads.iter().map(move |workload| RequestPart { target, workload: workload.clone() })
    };
    let request = RunRequest {
        targets: specs.to_vec(),
        parts: (0..specs.len()).flat_map(part).collect(),
        arrangement: Arrangement::Concurrent,
        repeats: repeats(arguments),
    };
    let metrics = Metrics::open(context, arguments.openmetrics.as_deref(), &paths(specs))?;
    let began = Began::now(machine);
    let workloads = request.parts.iter().map(|part| &part.workload);
    // Each by itself, and all at once.
    let twice =
        Repeats { min: 2 * request.repeats.min, max: 2 * request.repeats.max, ..request.repeats };
    context.writes.plan_runs(workloads, twice);
    let mut runner = Runner::open(machine, &request)?;
    let facts = runner.facts().to_vec();
    let bar =
        context.console.bar((request.parts.len() as u64 + 1) * u64::from(request.repeats.min));
    let (points, found) = measure_interference(&mut runner, &request, |part, _| {
        bar.set_message(
            request
                .parts
                .get(part)
                .map_or_else(|| "all at once".into(), |one| one.workload.short()),
        );
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    let names: Vec<&str> = facts.iter().map(|facts| facts.name.as_str()).collect();
    let mut warnings: Vec<String> = facts.iter().flat_map(|facts| facts.warnings.clone()).collect();
    warnings.sort_unstable();
    warnings.dedup();
    let all = TargetFacts { name: names.join(", "), warnings, ..facts[0].clone() };
    let mut results = Results {
        points,
        ..Results::new(
            machine,
            Kind::Run,
            crate::context::program(),
            began,
            all,
            arguments.target.seed,
        )
    };
    let failed = match found {
        Ok(found) => {
            results.interference = Some(found);
            None
        }
        Err(why) => Some(why),
    };
    drop(runner);
    // The history distinguishes several workloads on one target, but not one workload on several
    // targets.
    if !arguments.each {
        crate::history::keep(context, &results);
    }
    crate::output::show_points(context, &results, arguments.json)?;
    if let Some(mut metrics) = metrics {
        metrics.gauges.add(&results);
        metrics.save()?;
    }
    failed.map_or(Ok(()), |why| {
        Err(Failure::Run(format!("not all could be measured at once: {why}")))
    })
}
