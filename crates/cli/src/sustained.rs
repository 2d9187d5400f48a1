//! `halfpower study --sustained`.

use crate::context::Context;
use crate::failure::Failure;
use crate::history::Measured;
use crate::output::{self, Directory};
use crate::target::{TargetArguments, Where, is_twin, resolve};
use crate::written::Planned;
use clap::Args;
use machine::units::{parse_size, parse_time, show_size, show_time};
use machine::{Machine, MachineFacts, NewFile, TargetFacts, TargetSpec, text::printable};
use measure::Runner;
use std::path::{Path, PathBuf};
use sustained::{StopReason, SustainPlan, SustainedResult, sustain};
use workload::Pattern;

/// The life of a drive.
#[derive(Args, Clone)]
pub(crate) struct EnduranceArguments {
    /// Bytes that may be written over the drive's life (TBW), as 600TB: the share that the run takes
    /// is shown [default: what the drive reports to smartctl]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    pub(crate) endurance: Option<u64>,
}

/// Options of `study --sustained`.
#[derive(Args, Clone)]
#[command(next_help_heading = "Sustained writes")]
pub(crate) struct SustainedArguments {
    /// Write at full speed past every cache and burst credit, instead of the experiments: how much
    /// is fast, what lasts, and what comes back at rest
    #[arg(long, conflicts_with_all = ["budget", "quick", "full", "only", "details", "openmetrics"])]
    pub(crate) sustained: bool,
    /// With --sustained: longest time [default: 10m]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time, requires = "sustained")]
    for_time: Option<u64>,
    /// With --sustained: also measure with this much of the target filled, in percent: a drive's
    /// cache shrinks as it fills. Each fill writes that share
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=100), requires = "sustained")]
    fill: Vec<u8>,
    #[command(flatten)]
    pub(crate) endurance: EnduranceArguments,
    /// With --sustained: size of a write; up to 64 KiB, rates are shown as writes per second
    /// [default: 1m]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "sustained", hide_short_help = true)]
    request: Option<u64>,
    /// With --sustained: write in sequence or at random places [default: seq]
    #[arg(long, value_parser = ["seq", "random"], requires = "sustained", hide_short_help = true)]
    pattern: Option<String>,
}

const FILES: [&str; 3] = ["sustained.json", "sustained.html", "sustained.csv"];
const MIN_FOR_NS: u64 = 2_000_000_000;
/// Divides the free space to limit a directory's test file.
const FREE_SHARE: u64 = 2;

impl SustainedArguments {
    fn plan(&self, max_written: Option<u64>, seed: u64) -> Result<SustainPlan, Failure> {
        let usual = SustainPlan::default();
        let for_ns = self.for_time.unwrap_or(usual.for_ns);
        if for_ns < MIN_FOR_NS {
            let given = show_time(for_ns as f64);
            return Err(Failure::Usage(format!("--for {given}: too short; give at least 2s")));
        }
        let request_bytes = match self.request {
            None => usual.request_bytes,
            Some(bytes) => u32::try_from(bytes).map_err(|_| {
                Failure::Usage(format!("--request {}: at most 1 GiB", show_size(bytes)))
            })?,
        };
        // A short run has short steps, so that it has enough of them to find a change.
        let step_ns = usual.step_ns.min(for_ns / 100);
        Ok(SustainPlan {
            for_ns,
            max_written: max_written.unwrap_or(usual.max_written),
            request_bytes,
            pattern: match self.pattern.as_deref() {
                Some("random") => Pattern::Random,
                _ => Pattern::Seq,
            },
            step_ns,
            fills: fills(&self.fill)?,
            endurance_bytes: self.endurance.endurance,
            seed,
            ..usual
        })
    }
}

fn fills(percents: &[u8]) -> Result<Vec<u8>, Failure> {
    if percents.is_sorted_by(|one, next| one < next) {
        return Ok(percents.to_vec());
    }
    let shown: Vec<String> = percents.iter().map(ToString::to_string).collect();
    let why = "data cannot be taken away again; give the shares in ascending order";
    Err(Failure::Usage(format!("--fill {}: {why}", shown.join(","))))
}

pub(crate) struct Asked<'a> {
    pub target: &'a TargetArguments,
    pub output: &'a Path,
    pub json: bool,
    pub resume: bool,
}

pub(crate) fn study(
    context: &Context,
    arguments: &SustainedArguments,
    asked: &Asked<'_>,
) -> Result<(), Failure> {
    let plan = arguments.plan(asked.target.max_written, asked.target.seed)?;
    let (place, spec) = resolve(context, asked.target)?;
    let targets: Vec<&Path> = spec.places.iter().map(PathBuf::as_path).collect();
    let directory = Directory::new(context, asked.output, &targets, &FILES)?;
    context.writes.endurance(arguments.endurance.endurance);
    context.writes.plan(Planned::UpTo {
        bytes: plan.max_written,
        seconds: [0.0, plan.for_ns as f64 * 1e-9],
        note: "--max-written and --for change this".into(),
    });
    let began_unix_s = crate::history::now_unix_s();
    let measured = match place {
        // Its steps are the same ones again.
        Where::Twin(machine) => {
            let spec = unwritten(spec.clone(), plan.max_written)?;
            measure(context, &*machine, &spec, &plan, &directory)
        }
        Where::Host(machine) => {
            // A cache and a credit recover while no process runs.
            if asked.resume {
                let why = "a sustained run on a real target starts over; leave it out";
                return Err(Failure::Usage(format!("--resume: {why}")));
            }
            let spec = unwritten(spec.clone(), plan.max_written)?;
            measure(context, &machine, &spec, &plan, &directory)
        }
    };
    let (result, facts) = measured?;
    show(context, asked.json, &directory, &result, &facts, began_unix_s)
}

fn measure<M: Machine>(
    context: &Context,
    machine: &M,
    spec: &TargetSpec,
    plan: &SustainPlan,
    directory: &Directory<'_>,
) -> Result<(SustainedResult, MachineFacts), Failure> {
    Ok((run(context, machine, spec, plan, directory)?, machine.facts()))
}

fn show(
    context: &Context,
    as_json: bool,
    directory: &Directory<'_>,
    result: &SustainedResult,
    facts: &MachineFacts,
    began_unix_s: u64,
) -> Result<(), Failure> {
    let text = json(result)?;
    let ended = !matches!(result.stopped, StopReason::Interrupted | StopReason::Failed);
    if ended && !result.levels.is_empty() {
        let of = Measured {
            kind: "sustained",
            machine: facts,
            target: &result.target,
            name: &result.target.name,
            program: &result.program,
            began_unix_s,
        };
        crate::history::keep_measured(context, &text, &of, result.side("").asked);
    }
    let saved = directory.save(FILES[0], &text);
    let page = page(result).and_then(|page| directory.save(FILES[1], &page));
    let table = directory.save(FILES[2], &report::sustained::csv(result));
    if as_json {
        context.console.print(&text)?;
    } else {
        let mut shown = report::sustained::terminal(result, output::width(), output::colour());
        if let Ok(page) = &page {
            shown += &format!("Report: {}\n", printable(&page.to_string_lossy()));
        }
        context.console.print(&shown)?;
    }
    saved.and(page).and(table)?;
    match (result.stopped, &result.failure) {
        (StopReason::Interrupted, _) => Err(Failure::Interrupted),
        (_, Some(why)) => Err(Failure::Run(why.clone())),
        _ => Ok(()),
    }
}

fn json(result: &SustainedResult) -> Result<String, Failure> {
    output::json(serde_json::to_string_pretty(result)).map(|text| text + "\n")
}

fn page(result: &SustainedResult) -> Result<String, Failure> {
    report::sustained::html(result)
        .map_err(|error| Failure::Run(format!("cannot draw the report: {error}")))
}

/// An initial fill would use up the cache before the measurement.
fn unwritten(spec: TargetSpec, max_written: u64) -> Result<TargetSpec, Failure> {
    let mut spec = TargetSpec { as_is: true, new_file: NewFile::Reserved, ..spec };
    let in_directory = spec.places.iter().any(|place| place.is_dir());
    if in_directory && spec.size.is_none() && !spec.places.iter().any(|place| is_twin(place)) {
        let free = host::files::directory_facts(&spec.places)?.size_bytes;
        let size = (max_written.min(free / FREE_SHARE) >> 20 << 20).max(1 << 20);
        spec.size = Some(size);
    }
    Ok(spec)
}

fn run<M: Machine>(
    context: &Context,
    machine: &M,
    spec: &TargetSpec,
    plan: &SustainPlan,
    directory: &Directory<'_>,
) -> Result<SustainedResult, Failure> {
    let engines = machine.capabilities().engines;
    let workload = plan.workload(&engines);
    let check = |facts: &[TargetFacts]| {
        facts.iter().try_for_each(|facts| measure::check(&workload, facts))?;
        Ok(vec![vec![workload.buffers()]])
    };
    let mut runner = Runner::open_checked(machine, std::slice::from_ref(spec), check)?;
    let bar = context.console.time_bar(plan.for_ns);
    let on_step = &mut |progress: sustained::Progress<'_>| {
        let rate = machine::units::show_rate(progress.bytes_per_s);
        let written = machine::units::show_size_rounded(progress.written_bytes as f64);
        let doing = format!("{}: {rate}, {written} written", progress.doing);
        bar.at((progress.passed_s * 1e9) as u64, &doing);
        !crate::interrupt::flag().load(std::sync::atomic::Ordering::Relaxed)
    };
    // A killed run leaves what it has measured.
    let keep = &mut |result: &SustainedResult| {
        if let Ok(text) = json(result) {
            let _ = directory.save(FILES[0], &text);
        }
    };
    let target = runner.target_mut(0);
    let result = sustain(machine, target, plan, crate::context::program(), on_step, keep);
    bar.finish_and_clear();
    Ok(result?)
}
