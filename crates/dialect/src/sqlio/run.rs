use super::plan::raw_device;
use super::report::Figures;
use super::{Access, FileJob, Kind, Multi, Options, files, parse_parameters, report};
use crate::concurrent::{self, RequestShape, RunPlan, ToolJob};
use crate::display::print;
use crate::parse::{is_twin, no_drive};
use files::Input;
use machine::live::{self, Goal};
use machine::{Error, Machine, ProcessorTimes, Result, TargetFacts, TargetKind, TargetSpec};
use measure::histogram::Histogram;
use measure::{Runner, Sample};
use results::Point;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use workload::Workload;

/// Results of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SqlioResult {
    /// The command line in its shortest form.
    pub command: String,
    /// The report's figures.
    pub figures: Figures,
    /// One point per file, with exact latencies and processor cost.
    pub points: Vec<Point>,
    /// Whether the user ended the run early: the figures are those until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Reasons to doubt the figures.
    pub warnings: Vec<String>,
    /// The first file.
    #[serde(skip)]
    pub target: Option<TargetFacts>,
}

const PARAMETERS: Input = Input::new("a parameter file", 1 << 20);

/// From the parameter file if there is one.
pub fn jobs(options: &Options) -> Result<Vec<FileJob>> {
    let Some(path) = &options.parameters else { return files(options, &[]) };
    let failed =
        |why: String| Error::refused(format!("-F{}", path.display()), why, "name a parameter file");
    let text = PARAMETERS.read(path).map_err(|error| failed(error.to_string()))?;
    files(options, &parse_parameters(&String::from_utf8_lossy(&text))?)
}

/// A missing file, or one in a named directory, is created and needs a size.
pub(super) fn spec(options: &Options, job: &FileJob) -> Result<TargetSpec> {
    no_drive(&job.path)?;
    let stripes = options
        .stripes_bytes()
        .filter(|_| !options.matrix)
        .map(|bytes| options.start_bytes() + bytes);
    let size = job.size_bytes.or(stripes);
    let there = is_twin(&job.path) || (job.path.exists() && !job.path.is_dir());
    if job.raw && !there {
        let shown = job.path.display().to_string();
        return Err(Error::refused(
            shown,
            "no such device",
            "name one after -R, or a file without it",
        ));
    }
    if size.is_none() && !there {
        let hint = "give it with --size, or in MB in a parameter file";
        return Err(Error::refused(
            job.path.display().to_string(),
            "the file does not exist and has no size",
            hint,
        ));
    }
    Ok(TargetSpec {
        places: vec![job.path.clone()],
        size,
        destroy: options
            .destroy
            .iter()
            .filter(|named| is_named(job, named))
            .map(|_| job.path.clone())
            .collect(),
        destroy_signed: options.destroy_signed,
        seed: options.seed.unwrap_or(1),
        create: !job.raw,
        ..TargetSpec::default()
    })
}

fn is_named(job: &FileJob, named: &Path) -> bool {
    named == job.path || job.raw && raw_device(named) == job.path
}

pub(crate) fn check_writable(facts: &TargetFacts, writes: bool) -> Result<()> {
    let hint = "name it again with --destroy-data to write it, or name another file or a directory";
    measure::check_writable(facts, writes, hint)
}

pub(super) fn check_destroy(options: &Options, jobs: &[FileJob]) -> Result<()> {
    match options.destroy.iter().find(|named| !jobs.iter().any(|job| is_named(job, named))) {
        Some(stray) => Err(Error::refused(
            stray.display().to_string(),
            "it is named for destruction but is not a test file",
            "name the same file before it",
        )),
        None => Ok(()),
    }
}

/// Prints the original's report to `out`, also after the user's interrupt; no completed request is
/// an error. As in the original, created files stay after success.
pub fn run<M: Machine>(machine: &M, options: &Options, out: &mut dyn Write) -> Result<SqlioResult> {
    let jobs = jobs(options)?;
    check_destroy(options, &jobs)?;
    let kind = options.kind.unwrap_or_default();
    let engines = machine.capabilities().engines;
    let workloads: Vec<Workload> = jobs
        .iter()
        .map(|job| options.workload(kind, options.access(), job.threads, &engines))
        .collect();
    let specs = jobs.iter().map(|job| spec(options, job)).collect::<Result<Vec<_>>>()?;
    let buffers: Vec<_> = workloads.iter().map(Workload::buffers).collect();
    let mut runner = Runner::open_checked(machine, &specs, |facts| {
        facts.iter().zip(&workloads).try_for_each(|(facts, workload)| {
            check_writable(facts, kind == Kind::Write)?;
            concurrent::check(workload, &RequestShape::default(), facts)
        })?;
        Ok(vec![buffers.clone()])
    })?;
    let facts = runner.facts().to_vec();
    let sizes: Vec<(u64, bool)> = facts
        .iter()
        .zip(&jobs)
        .map(|(facts, job)| (facts.size_bytes, job.size_bytes.is_some()))
        .collect();
    print(out, &report::before(options, &jobs, &sizes))?;
    let shape = RequestShape {
        copy_block: match options.multi {
            Some(Multi::Copy(_)) => Some(options.block_bytes() as usize),
            _ => None,
        },
        ..RequestShape::default()
    };
    let tool_job = |((target, workload), job): ((_, &Workload), &FileJob)| ToolJob {
        target,
        workload: workload.clone(),
        shape: shape.clone(),
        processors: job.processors(),
    };
    let tool_jobs: Vec<_> =
        runner.targets().iter().zip(&workloads).zip(&jobs).map(tool_job).collect();
    let processors = machine.processors();
    let of_run = workloads.first().map_or_else(String::new, Workload::short);
    let length = Duration::from_nanos(options.run_ns());
    let work = live::WORK.begin(of_run, Goal::Time(length));
    let ran = concurrent::run(machine, &tool_jobs, RunPlan::default())?;
    drop(work);
    let shares = shares(&processors, &machine.processors());
    let interrupted = ran.iter().any(concurrent::ToolResult::is_interrupted);
    let samples: Vec<Sample> = ran.into_iter().map(|ran| ran.sample).collect();
    let figures = totals(&samples, options.request_bytes(), &shares);
    print(out, &report::report(options, &figures))?;
    drop(tool_jobs);
    runner.keep(|facts| facts.kind == TargetKind::TestFile && !interrupted);
    let points: Vec<Point> = workloads
        .iter()
        .zip(&facts)
        .zip(&samples)
        .map(|((workload, facts), sample)| {
            Point::from_samples(workload, facts, std::slice::from_ref(sample))
        })
        .collect();
    let mut warnings = results::folded_warnings(points.iter());
    warnings.extend(facts.iter().flat_map(|facts| facts.warnings.clone()));
    warnings.extend(crate::display::fallback(machine, &points));
    if points.len() > 1 {
        warnings.push(
            "several files at once: the processor's and the devices' counters of each point are those of all".into(),
        );
    }
    Ok(SqlioResult {
        command: options.to_string(),
        figures,
        points,
        interrupted,
        warnings,
        target: facts.into_iter().next(),
    })
}

/// User, system and idle, in percent.
pub(crate) fn shares(before: &[ProcessorTimes], after: &[ProcessorTimes]) -> Vec<[f64; 3]> {
    let share = |(before, after): (&ProcessorTimes, &ProcessorTimes)| {
        let used = [
            after.user_ns.saturating_sub(before.user_ns) as f64,
            after.system_ns.saturating_sub(before.system_ns) as f64,
            after.idle_ns.saturating_sub(before.idle_ns) as f64,
        ];
        let all = used.iter().sum::<f64>().max(1.0);
        used.map(|part| part / all * 100.0)
    };
    before.iter().zip(after).map(share).collect()
}

fn totals(samples: &[Sample], request_bytes: u32, shares: &[[f64; 3]]) -> Figures {
    let mut latency = Histogram::new();
    for sample in samples {
        sample.latency.iter().for_each(|part| latency.merge(part));
    }
    let requests: u64 = samples.iter().map(|sample| sample.requests).sum();
    let elapsed = samples.iter().map(|sample| sample.measured_ns).max().unwrap_or(0);
    let mean = |part: usize| {
        shares.iter().map(|share| share[part]).sum::<f64>() / shares.len().max(1) as f64
    };
    Figures {
        cpu_percent: [mean(0), mean(1), mean(2)],
        processors_percent: shares.to_vec(),
        ..report::figures(requests, requests * u64::from(request_bytes), elapsed, &latency)
    }
}

impl Access {
    /// In the study's table.
    pub fn short(self) -> &'static str {
        match self {
            Access::Random => "ran",
            Access::Sequential => "seq",
            Access::Stripes(_) => "str",
        }
    }
}
