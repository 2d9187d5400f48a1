//! Runs time spans one after another.

use super::profile::{Profile, Target, TimeSpan};
use super::result::{DiskspdResult, Half, SpanResult, System, ThreadResult};
use super::{Options, read_profile};
use crate::concurrent::{
    self, RequestShape, RunPlan, TargetResult, ThreadOrder, ToolJob, ToolResult,
};
use crate::parse::{is_twin, no_drive};
use crate::sqlio;
use files::Input;
use machine::live::{self, Goal};
use machine::{
    Buffers, Engine, Error, Machine, Nanos, Result, TargetFacts, TargetKind, TargetSpec,
};
use measure::Runner;
use measure::histogram::Histogram;
use results::Point;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use workload::{Stop, Workload};

const PROFILE: Input = Input::new("a profile", 4 << 20);

/// Only the requested part is read.
const SOURCE: Input = Input::new("a file of data", u64::MAX);

pub fn profile(options: &Options) -> Result<Profile> {
    let Some(path) = &options.file else { return Ok(options.profile.clone()) };
    let failed =
        |why: String| Error::refused(format!("-X{}", path.display()), why, "name an XML profile");
    let text = PROFILE.text(path).map_err(|error| failed(error.to_string()))?;
    let mut profile = read_profile(&text)?;
    if options.profile.format != super::Format::Text {
        profile.format = options.profile.format;
    }
    profile.spans.iter_mut().for_each(|span| options.overrides.change(span));
    if !(options.profile_only && options.targets.is_empty()) {
        name_targets(&mut profile, &options.targets)?;
    }
    Ok(profile)
}

fn name_targets(profile: &mut Profile, named: &[PathBuf]) -> Result<()> {
    let mut used = vec![false; named.len()];
    for target in profile.spans.iter_mut().flat_map(|span| &mut span.targets) {
        let Some(number) = target.path.to_str().and_then(|path| path.strip_prefix('*')) else {
            continue;
        };
        let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let Some((index, path)) = index.and_then(|index| Some((index, named.get(index)?))) else {
            let why = format!(
                "the profile leaves this target to the command line, which names {}",
                named.len()
            );
            return Err(Error::refused(
                target.path.display().to_string(),
                why,
                "add the targets to the command line",
            ));
        };
        used[index] = true;
        target.path = path.clone();
    }
    match used.iter().position(|used| !used) {
        Some(index) => Err(Error::refused(
            named[index].display().to_string(),
            format!("no target of the profile is *{}", index + 1),
            "leave it out, or write it so in <Path>",
        )),
        None => Ok(()),
    }
}

/// The user's interrupt ends the results; an early one is an error. Named files that `-c` created
/// only stay after a complete run.
pub fn run<M: Machine>(
    machine: &M,
    options: &Options,
    profile: &Profile,
    began_unix_s: u64,
) -> Result<DiskspdResult> {
    let specs = specs(options, profile)?;
    let mut runner =
        Runner::open_checked(machine, &specs, |facts| check(machine, profile, &specs, facts))?;
    let files: Vec<File<'_, M::Target>> = (specs.iter().zip(runner.targets()).zip(runner.facts()))
        .map(|((spec, target), facts)| File { path: &spec.places[0], target, facts })
        .collect();
    let facts = machine.facts();
    let mut result = DiskspdResult {
        command: options.command(),
        system: System {
            computer: facts.name,
            processors: facts.processors,
            topology: None,
            began_unix_s,
        },
        spans: Vec::new(),
        interrupted: false,
        warnings: Vec::new(),
        target: files.first().map(|file| file.facts.clone()),
    };
    for (number, span) in profile.spans.iter().enumerate() {
        let rest = profile.spans[number..].iter().map(TimeSpan::length).sum();
        let _work = live::WORK.begin(span.names(), Goal::Time(rest));
        match run_span(machine, span, &files) {
            Ok((span, interrupted)) => {
                result.spans.push(span);
                result.interrupted = interrupted;
            }
            Err(Error::Interrupted) if !result.spans.is_empty() => result.interrupted = true,
            Err(error) => return Err(error),
        }
        if result.interrupted {
            break;
        }
    }
    drop(files);
    if !result.interrupted {
        runner.keep(|facts| facts.kind == TargetKind::TestFile);
    }
    result.warnings = results::folded_warnings(result.spans.iter().flat_map(|span| &span.points));
    result.warnings.extend(runner.facts().iter().flat_map(|facts| facts.warnings.clone()));
    result.warnings.extend(crate::display::fallback(
        machine,
        result.spans.iter().flat_map(|span| &span.points),
    ));
    if profile.spans.iter().any(|span| span.targets.len() > 1) {
        result.warnings.push(
            "several targets at once: the processor's and the devices' counters of each point are those of all".into(),
        );
    }
    Ok(result)
}

impl TimeSpan {
    fn length(&self) -> Duration {
        let all = [self.warm_up_s, self.duration_s, self.cool_down_s];
        all.into_iter().map(|seconds| Duration::from_secs(seconds.into())).sum()
    }

    fn names(&self) -> String {
        let names: Vec<String> =
            self.targets.iter().map(|target| target.path.display().to_string()).collect();
        names.join(", ")
    }
}

struct File<'a, T> {
    path: &'a Path,
    target: &'a T,
    facts: &'a TargetFacts,
}

/// Each file once, at its largest size in all time spans.
fn specs(options: &Options, profile: &Profile) -> Result<Vec<TargetSpec>> {
    let all = || profile.spans.iter().flat_map(|span| &span.targets);
    if let Some(stray) =
        options.destroy.iter().find(|named| !all().any(|target| target.path == **named))
    {
        return Err(Error::refused(
            stray.display().to_string(),
            "it is named for destruction but is not a target",
            "name the same file as target",
        ));
    }
    let mut specs: Vec<TargetSpec> = Vec::new();
    for target in all() {
        if specs.iter().any(|spec| spec.places[0] == target.path) {
            continue;
        }
        no_drive(&target.path)?;
        let create = all()
            .filter(|other| other.path == target.path)
            .filter_map(|other| other.create_bytes)
            .max();
        let there = is_twin(&target.path) || (target.path.exists() && !target.path.is_dir());
        if create.is_none() && !there {
            return Err(Error::refused(
                target.path.display().to_string(),
                "no such file",
                "make it with -c<size>, or name one that exists",
            ));
        }
        specs.push(TargetSpec {
            places: vec![target.path.clone()],
            size: create,
            destroy: options
                .destroy
                .iter()
                .filter(|named| **named == target.path)
                .cloned()
                .collect(),
            destroy_signed: options.destroy_signed,
            seed: 1,
            create: create.is_some(),
            ..TargetSpec::default()
        });
    }
    Ok(specs)
}

/// Each span's buffers.
fn check<M: Machine>(
    machine: &M,
    profile: &Profile,
    specs: &[TargetSpec],
    facts: &[TargetFacts],
) -> Result<Vec<Vec<Buffers>>> {
    let engines = machine.capabilities().engines;
    let mut spans = Vec::with_capacity(profile.spans.len());
    for span in &profile.spans {
        let mut buffers = Vec::new();
        for target in &span.targets {
            let opened = specs.iter().zip(facts).find(|(spec, _)| spec.places[0] == target.path);
            let Some((_, facts)) = opened else { continue };
            sqlio::check_writable(facts, target.write_percent > 0)?;
            let workload = workload_of(span, target, facts.size_bytes, &engines)?;
            concurrent::check(&workload, &shape(span, target, facts.size_bytes)?, facts)?;
            buffers.push(workload.buffers());
        }
        spans.push(match &span.pool {
            Some(pool) => pool.buffers(&buffers),
            None => buffers,
        });
    }
    Ok(spans)
}

fn workload_of(
    span: &TimeSpan,
    target: &Target,
    size_bytes: u64,
    engines: &[Engine],
) -> Result<Workload> {
    let workload = target.workload(span, target.threads, size_bytes, engines)?;
    Ok(match &span.pool {
        Some(pool) => pool.workload(workload, &span.targets, engines),
        None => workload,
    })
}

const LARGEST_SOURCE: u64 = 1 << 30;

/// Repeats a shorter file.
fn source(target: &Target) -> Result<Option<Arc<[u8]>>> {
    let bytes = target.source_bytes.unwrap_or(0);
    if bytes > LARGEST_SOURCE || target.source_bytes == Some(0) {
        return Err(Error::refused(
            format!("-Z{bytes}"),
            "the data of writes has from 1 B to 1 GiB",
            "give a size between them",
        ));
    }
    let Some(path) = &target.source_file else { return Ok(None) };
    let failed = |why: String| {
        Error::refused(format!("-Z{bytes},{}", path.display()), why, "name a file with data")
    };
    let mut data = Vec::new();
    let file = SOURCE.open(path).map_err(|error| failed(error.to_string()))?;
    file.take(bytes).read_to_end(&mut data).map_err(|error| failed(error.to_string()))?;
    if data.is_empty() {
        return Err(failed("it is empty".into()));
    }
    Ok(Some(data.into_iter().cycle().take(bytes as usize).collect()))
}

fn shape(span: &TimeSpan, target: &Target, size_bytes: u64) -> Result<RequestShape> {
    Ok(RequestShape {
        threads: match (target.random_bytes, target.interlocked) {
            (_, true) => ThreadOrder::Interlocked,
            (Some(_), false) => ThreadOrder::Pattern,
            (None, false) => ThreadOrder::Apart {
                bytes: target.thread_stride_bytes,
                room_bytes: target.room_bytes(size_bytes),
            },
        },
        step_bytes: Some(target.step_bytes()).filter(|&step| step != u64::from(target.block_bytes)),
        follows_percent: target.random_percent.map(|percent| 100 - percent),
        ranges: target.whole_ranges(target.used_bytes(size_bytes))?,
        burst: target
            .burst
            .zip(target.pause_ms)
            .map(|(count, ms)| (count, u64::from(ms) * 1_000_000)),
        interval_ns: span.interval_ms.map(|ms| u64::from(ms) * 1_000_000),
        source: source(target)?,
        ..RequestShape::default()
    })
}

/// `true`: the user interrupted it.
fn run_span<M: Machine>(
    machine: &M,
    span: &TimeSpan,
    files: &[File<'_, M::Target>],
) -> Result<(SpanResult, bool)> {
    let engines = machine.capabilities().engines;
    let processors = machine.processors();
    let ran = run_targets(machine, span, files, &engines, None)?;
    let shares = sqlio::shares(&processors, &machine.processors());
    let mut interrupted = ran.iter().any(|target| target.interrupted);
    if span.cool_down_s > 0 && !interrupted {
        // The load continues during the cool-down, without being measured.
        let only_ns = Some(u64::from(span.cool_down_s) * 1_000_000_000);
        interrupted = match run_targets(machine, span, files, &engines, only_ns) {
            Ok(cooled) => cooled.iter().any(|target| target.interrupted),
            Err(Error::Interrupted) => true,
            Err(error) => return Err(error),
        };
    }
    let elapsed_ns = ran.iter().map(TargetResult::measured_ns).max().unwrap_or(0);
    let mut threads = Vec::new();
    let mut points = Vec::new();
    for (target, ran) in span.targets.iter().zip(ran) {
        let Some(file) = files.iter().find(|file| file.path == target.path) else { continue };
        threads.extend(thread_results(target, file.facts, &ran, span));
        let mut whole = workload_of(span, target, file.facts.size_bytes, &engines)?;
        // The point records the file's region.
        let end = target.max_bytes.unwrap_or(u64::MAX).min(file.facts.size_bytes);
        whole.region_bytes = Some(end - target.base_bytes);
        points.push(match ran.sample {
            Ok(sample) => Point::from_samples(&whole, file.facts, &[sample]),
            Err(error) => Point::failed(whole, error),
        });
    }
    // Group the results by thread of the pool.
    threads.sort_by_key(|thread| thread.id);
    let span = SpanResult { elapsed_ns, threads, processors_percent: shares, points };
    Ok((span, interrupted))
}

/// `only_ns` limits the time and omits the warm-up.
fn run_targets<M: Machine>(
    machine: &M,
    span: &TimeSpan,
    files: &[File<'_, M::Target>],
    engines: &[Engine],
    only_ns: Option<Nanos>,
) -> Result<Vec<TargetResult>> {
    let mut jobs = Vec::new();
    for target in &span.targets {
        let Some(file) = files.iter().find(|file| file.path == target.path) else { continue };
        let mut workload = workload_of(span, target, file.facts.size_bytes, engines)?;
        workload.stop = only_ns.map_or(workload.stop, Stop::AfterNs);
        let (target, shape) = (file.target, shape(span, target, file.facts.size_bytes)?);
        jobs.push(ToolJob { target, workload, shape, processors: span.processors.clone() });
    }
    let ramp_ns = if only_ns.is_some() { 0 } else { u64::from(span.warm_up_s) * 1_000_000_000 };
    let plan = RunPlan { ramp_ns, ..RunPlan::default() };
    if let Some(pool) = span.pool.and_then(|pool| pool.plan(span, engines)) {
        return concurrent::run_pool(machine, &jobs, &pool, plan);
    }
    let mut first = 0;
    let of_target = |ran: ToolResult| {
        let interrupted = ran.is_interrupted();
        let threads: Vec<_> = (first..).zip(ran.streams).collect();
        first += threads.len() as u32;
        TargetResult { sample: Ok(ran.sample), threads, interrupted }
    };
    Ok(concurrent::run(machine, &jobs, plan)?.into_iter().map(of_target).collect())
}

/// Without depth (neither io_uring nor libaio) each single-request thread counts.
fn thread_results(
    target: &Target,
    facts: &TargetFacts,
    ran: &TargetResult,
    span: &TimeSpan,
) -> Vec<ThreadResult> {
    let whole =
        span.interval_ms.map_or(0, |ms| (ran.measured_ns() / (u64::from(ms) * 1_000_000)) as usize);
    let block = u64::from(target.block_bytes);
    let each = ran.threads.iter();
    each.map(|(id, result)| {
        let half = |op: usize| {
            let latency: Histogram = result.stream.latency()[op].clone();
            let interval_latencies: Vec<_> =
                result.trace.intervals.iter().take(whole).map(|both| both[op]).collect();
            let intervals = interval_latencies.iter().map(|interval| interval.requests).collect();
            Half {
                requests: latency.count(),
                bytes: latency.count() * block,
                latency,
                intervals,
                interval_latencies,
            }
        };
        ThreadResult {
            id: *id,
            path: target.path.display().to_string(),
            file_bytes: facts.size_bytes,
            reads: half(0),
            writes: half(1),
        }
    })
    .collect()
}
