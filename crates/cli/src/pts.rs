//! `halfpower pts`.

use crate::arguments::choices;
use crate::context::Context;
use crate::failure::Failure;
use crate::history::Measured;
use crate::output::{self, Directory};
use crate::sustained::EnduranceArguments;
use crate::target::{TargetArguments, is_twin, on_machine, resolve};
use crate::written::Planned;
use clap::Args;
use files::Input;
use machine::units::{parse_size, show_size, show_size_rounded};
use machine::{
    Buffers, Engine, Error, Machine, NewFile, TargetFacts, TargetKind, TargetSpec, text::printable,
};
use measure::Runner;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use sustained::WearChange;
use sustained::pts::{
    Conditions, Estimate, PTS_SCHEMA, PhaseKind, PtsOptions, PtsPlan, PtsProgress, PtsResult,
    PtsTest, Purge, estimate, plan, run,
};

/// Options of `pts`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// The test: random mixes and sizes, sequential throughput, latency, write saturation, host
    /// idle recovery, cross stimulus recovery, demand intensity
    #[arg(value_name = "TEST", value_parser = choices(PtsTest::ALL, PtsTest::name))]
    test: PtsTest,
    #[command(flatten, next_help_heading = "Target")]
    target: TargetArguments,
    /// Print the plan with its hours and the bytes it writes, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: plan for a drive of this size instead of a target
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "dry_run")]
    capacity: Option<u64>,
    /// Rate per second from which hours and bytes are estimated [default: as advertised, else 500MB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, hide_short_help = true)]
    assume_rate: Option<u64>,
    /// Divide times and space by this, for a look; the result is not to the specification
    #[arg(long, value_name = "FACTOR", value_parser = scale, default_value = "1")]
    scale: f64,
    /// Share of the target to use in percent: 100 for enterprise drives, 75 for client drives
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100), default_value_t = 100)]
    active: u8,
    /// Threads (latency, xsr and dirth have their own) [default: as recommended: 4 with --active 100,
    /// else 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Requests that each thread keeps outstanding [default: as recommended: 32 with --active 100,
    /// else 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: Option<u32>,
    #[command(flatten)]
    endurance: EnduranceArguments,
    /// You have purged the drive with its own command (the plan prints it), so do not discard
    #[arg(long)]
    purged: bool,
    /// Go on with the test that --output holds
    #[arg(long)]
    resume: bool,
    /// Directory for the report, and for the state from which --resume goes on
    #[arg(long, value_name = "DIR", default_value = "halfpower-out")]
    output: PathBuf,
    /// Print the results as JSON on standard output
    #[arg(long)]
    json: bool,
}

fn scale(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| (1.0..=1e6).contains(factor));
    factor.ok_or_else(|| format!("'{text}' is not a factor from 1 to 1000000"))
}

const ASSUMED_BYTES_PER_S: f64 = 500e6;
const SAVE_EVERY: Duration = Duration::from_millis(500);
const STATE: Input = Input::new("the state of a test", 256 << 20).rewritten();

impl Arguments {
    fn options(&self) -> PtsOptions {
        let (threads, depth) = PtsOptions::recommended(self.active);
        PtsOptions {
            scale: self.scale,
            active_percent: self.active,
            threads: self.threads.unwrap_or(threads),
            depth: self.depth.unwrap_or(depth),
            purge: if self.purged { Purge::ByUser } else { Purge::Discard },
            seed: self.target.seed,
        }
    }

    fn estimate(&self, plan: &PtsPlan, facts: Option<&TargetFacts>) -> Estimate {
        let layers = facts.map_or(&[][..], |facts| &facts.layers);
        let advertised = layers.iter().filter_map(|layer| layer.advertised_bytes_per_s);
        let lowest = advertised.reduce(f64::min);
        let assumed = self.assume_rate.map(|bytes| bytes.max(1) as f64);
        estimate(plan, assumed.or(lowest).unwrap_or(ASSUMED_BYTES_PER_S))
    }
}

pub(crate) fn pts(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    if let Some(size) = arguments.capacity {
        if !arguments.target.targets.is_empty() {
            let why =
                "--capacity plans for a drive that is not here; leave out the target or --capacity";
            return Err(Failure::Usage(why.into()));
        }
        return show_plan(
            context,
            arguments,
            &plan(arguments.test, size, 512, &arguments.options()),
            None,
        );
    }
    let (place, spec) = resolve(context, &arguments.target)?;
    let spec = TargetSpec { as_is: true, new_file: NewFile::Reserved, ..spec };
    let directory = spec.places.iter().find(|place| place.is_dir() && !is_twin(place));
    if let Some(name) = directory.filter(|_| spec.size.is_none()) {
        let why = "the test file needs a size; give --size, or name a device";
        return Err(Failure::Usage(format!("{}: {why}", name.display())));
    }
    on_machine!(place, |machine| pts_on(&machine, context, arguments, &spec))
}

fn pts_on<M: Machine>(
    machine: &M,
    context: &Context,
    arguments: &Arguments,
    spec: &TargetSpec,
) -> Result<(), Failure> {
    if arguments.dry_run {
        // Nothing is created or claimed for a plan.
        let spec = TargetSpec { destroy: Vec::new(), ..spec.clone() };
        let facts = machine.target_facts(&machine.open(&spec)?);
        let plan = plan_for(arguments, &facts);
        return show_plan(context, arguments, &plan, Some(&facts));
    }
    context.writes.endurance(arguments.endurance.endurance);
    let targets: Vec<&Path> = spec.places.iter().map(PathBuf::as_path).collect();
    let names = ["json", "html"].map(|end| format!("pts-{}.{end}", arguments.test.name()));
    let known = stored(&arguments.output.join(&names[0]))?;
    let names = names.each_ref().map(String::as_str);
    let directory = Directory::new(context, &arguments.output, &targets, &names)?;
    let check = |facts: &[TargetFacts]| {
        let facts = &facts[0];
        let plan = plan_for(arguments, facts);
        measure::check_writable(facts, true, "name it again after --destroy-data to write it")?;
        fits(&plan, facts)?;
        let estimate = arguments.estimate(&plan, Some(facts));
        context.writes.plan(planned(&estimate));
        Ok(vec![buffers(&plan)])
    };
    let runner = Runner::open_checked(machine, std::slice::from_ref(spec), check)?;
    let facts = runner.facts()[0].clone();
    let plan = plan_for(arguments, &facts);
    let mut result = match (known, arguments.resume) {
        (Some(state), true) => continued(state, &plan, &facts)?,
        (None, true) => {
            return Err(Failure::Usage(format!(
                "--resume: {} holds no {} test; leave out --resume, or name its directory with --output",
                arguments.output.display(),
                arguments.test.name()
            )));
        }
        (Some(state), false) if !state.complete => {
            return Err(Failure::Usage(format!(
                "{}: a {} test of {} is not complete there; continue it with --resume, or name another --output",
                arguments.output.display(),
                arguments.test.name(),
                printable(&state.conditions.target.name)
            )));
        }
        _ => start(machine, plan, &facts),
    };
    let max_written = arguments.target.max_written.unwrap_or(u64::MAX);
    // Of a test in several parts, the last one.
    let began_unix_s = crate::history::now_unix_s();
    let before = machine.wear(&runner.targets()[0]);
    let ended = test(
        context,
        machine,
        &runner.targets()[0],
        &mut result,
        max_written,
        &directory,
        names[0],
    );
    result.wear = WearChange::of(
        before,
        machine.wear(&runner.targets()[0]),
        arguments.endurance.endurance,
        result.wear,
    );
    let result = result.finished();
    save(&directory, names[0], &result)?;
    let page = report::pts::html(&result)
        .map_err(|error| Failure::Run(format!("cannot draw the report: {error}")))?;
    let page = directory.save(names[1], &page);
    match ended {
        Err(Error::Interrupted) => {
            context.console.tell("the test is not complete; --resume continues it");
            return Err(Failure::Interrupted);
        }
        Err(error @ Error::NoDiscard(_)) => {
            return Err(Failure::Run(format!(
                "{error}; purge it with the drive's own command, then give --purged:\n{}",
                sanitize_commands(Some(&facts))
            )));
        }
        other => other?,
    }
    if arguments.json {
        context.console.print(&json(&result)?)?;
    } else {
        let mut shown = report::pts::terminal(&result, output::width(), output::colour());
        if let Ok(page) = &page {
            shown += &format!("Report: {}\n", printable(&page.to_string_lossy()));
        }
        context.console.print(&shown)?;
    }
    page.map(drop)?;
    if !result.complete {
        return Ok(());
    }
    let conditions = &result.conditions;
    let of = Measured {
        kind: "pts",
        machine: &conditions.machine,
        target: &conditions.target,
        name: &conditions.target.name,
        program: &result.program,
        began_unix_s,
    };
    crate::history::keep_measured(context, &json(&result)?, &of, result.side("").asked);
    Ok(())
}

fn plan_for(arguments: &Arguments, facts: &TargetFacts) -> PtsPlan {
    plan(arguments.test, facts.size_bytes, facts.direct_align_bytes, &arguments.options())
}

fn fits(plan: &PtsPlan, facts: &TargetFacts) -> machine::Result<()> {
    const SMALLEST: u64 = 8 << 20;
    if plan.active_bytes >= SMALLEST {
        return Ok(());
    }
    let why = format!("{} are too little for this test", show_size(plan.active_bytes));
    Err(Error::refused(&facts.name, why, "name a target of 8 MiB or more"))
}

fn buffers(plan: &PtsPlan) -> Vec<Buffers> {
    let cells = plan.phases.iter().filter_map(|phase| match &phase.kind {
        PhaseKind::Rounds { cells, .. } => Some(cells),
        _ => None,
    });
    let bytes = |one: &Buffers| {
        u64::from(one.streams) * u64::from(one.depth) * u64::from(one.request_bytes)
    };
    let each = cells.flatten().map(|cell| Buffers {
        streams: cell.threads,
        depth: cell.depth,
        request_bytes: cell.block_bytes,
        writes: true,
    });
    each.max_by_key(bytes).into_iter().collect()
}

fn show_plan(
    context: &Context,
    arguments: &Arguments,
    plan: &PtsPlan,
    facts: Option<&TargetFacts>,
) -> Result<(), Failure> {
    let estimate = arguments.estimate(plan, facts);
    if arguments.json {
        let value = serde_json::json!({ "plan": plan, "estimate": estimate });
        return context
            .console
            .print(&(output::json(serde_json::to_string_pretty(&value))? + "\n"));
    }
    let mut text = report::pts::plan(plan, &estimate, output::width(), output::colour());
    text += &format!(
        "\nThe specification purges the drive with its own command. pts discards the whole target \
         instead, unless --purged says that you have run one of:\n{}",
        sanitize_commands(facts)
    );
    context.console.print(&text)
}

fn sanitize_commands(facts: Option<&TargetFacts>) -> String {
    let device = facts.filter(|facts| facts.kind == TargetKind::Device);
    let name =
        device.map_or_else(|| "/dev/DEVICE".into(), |facts| printable(&facts.name).to_string());
    format!(
        "  nvme format {name} --ses=1\n  nvme sanitize {name} --sanact=2\n  hdparm --user-master u --security-erase-enhanced PASSWORD {name}\n  sg_sanitize --block {name}\n"
    )
}

fn start<M: Machine>(machine: &M, plan: PtsPlan, facts: &TargetFacts) -> PtsResult {
    PtsResult {
        schema: PTS_SCHEMA.into(),
        program: crate::context::program(),
        conditions: Conditions {
            machine: machine.facts(),
            target: facts.clone(),
            engine: Engine::asynchronous(&machine.capabilities().engines),
            data: "random".into(),
        },
        plan,
        complete: false,
        interruptions: 0,
        written_bytes: 0,
        took_s: 0.0,
        wear: None,
        sentences: Vec::new(),
        warnings: facts.warnings.clone(),
        phases: Vec::new(),
        steps: Vec::new(),
    }
}

fn stored(path: &Path) -> Result<Option<PtsResult>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let wrong =
        |why: String| Failure::Usage(format!("{}: {why}; name another --output", path.display()));
    let text = STATE.text(path).map_err(|error| wrong(format!("cannot read it: {error}")))?;
    let state: PtsResult = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("it is not a test of halfpower: {error}")))?;
    if state.schema != PTS_SCHEMA {
        return Err(wrong(format!("its schema is {}, not {PTS_SCHEMA}", state.schema)));
    }
    Ok(Some(state))
}

fn continued(state: PtsResult, plan: &PtsPlan, facts: &TargetFacts) -> Result<PtsResult, Failure> {
    let other = |what: &str| {
        Err(Failure::Usage(format!(
            "--resume: the stored test has {what}; give the same options and target as at its start"
        )))
    };
    if state.conditions.target.name != facts.name && facts.kind != TargetKind::TestFile {
        return other(&format!("the target {}", printable(&state.conditions.target.name)));
    }
    if state.plan != *plan {
        return other("another plan");
    }
    // The bytes of the step that was cut off are unknown; assume those of the largest.
    let lost = state.steps.iter().map(|step| step.written_bytes).max().unwrap_or(0);
    let cut_off = if state.complete { 0 } else { lost };
    Ok(PtsResult {
        interruptions: state.interruptions + u32::from(!state.complete),
        written_bytes: state.written_bytes + cut_off,
        program: crate::context::program(),
        ..state
    })
}

fn planned(estimate: &Estimate) -> Planned {
    let rate = machine::units::show_rate(estimate.bytes_per_s);
    Planned::UpTo {
        bytes: estimate.max_written_bytes as u64,
        seconds: estimate.seconds,
        note: format!("at {rate}; --dry-run shows the plan"),
    }
}

fn json(result: &PtsResult) -> Result<String, Failure> {
    output::json(serde_json::to_string(result)).map(|text| text + "\n")
}

fn save(directory: &Directory<'_>, name: &str, result: &PtsResult) -> Result<(), Failure> {
    directory.save(name, &json(result)?).map(drop)
}

fn test<M: Machine>(
    context: &Context,
    machine: &M,
    target: &M::Target,
    result: &mut PtsResult,
    max_written: u64,
    directory: &Directory<'_>,
    name: &str,
) -> machine::Result<()> {
    let bar = context.console.bar(100);
    let on_step = &mut |progress: &PtsProgress<'_>| {
        bar.set_message(format!(
            "{}: round {} of at most {}, {} written",
            progress.phase,
            progress.round + 1,
            progress.max_rounds,
            show_size_rounded(progress.written_bytes as f64)
        ));
        bar.set_position(u64::from(progress.round) * 100 / u64::from(progress.max_rounds.max(1)));
        !crate::interrupt::flag().load(Ordering::Relaxed)
    };
    let mut saved = None::<Instant>;
    let keep = &mut |result: &mut PtsResult| {
        if result.complete || saved.is_none_or(|at| at.elapsed() >= SAVE_EVERY) {
            save(directory, name, result).map_err(|failure| match failure {
                Failure::Usage(why) | Failure::Run(why) => Error::Unsupported(why),
                _ => Error::Interrupted,
            })?;
            saved = Some(Instant::now());
        }
        Ok(())
    };
    let ended = run(machine, target, result, max_written, on_step, keep);
    bar.finish_and_clear();
    ended
}
