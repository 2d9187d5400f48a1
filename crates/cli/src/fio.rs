//! `halfpower fio`.

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::target::{machine_of, on_machine};
use dialect::fio::{
    Arrangement, Command, Counts, DiskUse, FIO_VERSION, FioError, FioResult, Format, Found, Plan,
    RunSettings, Section, Status, SystemStats, World, aggregate_log_paths, aggregate_logs,
    asked_states, check_machine, command_line, engine_names, help as job_options, json,
    load_states, log_paths, logs, look, option_help, parse_engine, parsed_globals, parsed_lines,
    replace_missing_engines, run, saved_states, seed_lines, terse, text,
};
use files::Input;
use host::counters::{DeviceMeter, ProcessCounts};
use host::facts::Roots;
use machine::text::{printable, printable_lines};
use machine::{Machine, TargetFacts};
use results::{Began, Kind, Output, Results};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

mod around;
mod schedulers;
use around::Sets;
use schedulers::Schedulers;

const HELP: &str = "\
Run fio's job files and options: halfpower fio [OPTIONS] JOBFILE... | --name=JOB --OPTION=VALUE...

Program options
  --output-format=FORMAT  normal, terse, json (fio's fields, and an object `halfpower` with additional ones) or json+ (all latency
                          buckets); several with commas
  --minimal               The same as --output-format=terse; --terse-version=2 to 5 [default: 3]
  --output=FILE           Write the report there
  --json=FILE             Write halfpower's own result there, too
  --force                 Replace output files that halfpower did not create
  --section=JOB           Run only this job of a job file (may be repeated)
  --bandwidth-log[=NAME]  Log the total throughput of every half second to NAME-read_bw.log and NAME-write_bw.log
  --aux-path=DIRECTORY    Directory of the state files of verify_state_save and verify_state_load [default: the current one]
  --status-interval=TIME  Also report every TIME while jobs run: what they did so far, in the same format
  --idle-prof=system      Report the idle time of the processors
  --enghelp, --cmdhelp    List engines, or options of jobs (--cmdhelp=OPTION: that option)
  --showcmd               Print the jobs as one command line
  --debug=WORDS           parse: the limits of a steady rate as parsed; random: the seed of each job; others show nothing
  --parse-only            Check everything, run nothing
  --readonly              Refuse jobs that write
  --warnings-fatal        Refuse jobs for which fio would silently do something else
  --destroy-data=NAME     Overwrite this existing file or device, which a job must also name
  --destroy-signature     Even if it bears a file system or a partition table, or the kernel does not report whether it is in use
  --cleanup               Remove the files that were laid out, instead of leaving them as fio does (or unlink=1 in a job)

Job options, as in fio
";

const HELP_END: &str = "\
Job files can include others and use ${VARIABLE} from the environment. filename=twin:NAME runs jobs on a simulated machine. Any other option is an error that names it, before anything is written. Files that are laid out stay for the next command, which may write them again if nothing has changed them meanwhile; those of a failed run are removed, unless their data was wrong.";

impl From<FioError> for Failure {
    fn from(error: FioError) -> Self {
        if error.is_interrupt() {
            Failure::Interrupted
        } else if error.is_usage() {
            Failure::Usage(error.to_string())
        } else {
            Failure::Run(error.to_string())
        }
    }
}

struct LinuxStats;

impl SystemStats for LinuxStats {
    fn counts(&self) -> Counts {
        let now = ProcessCounts::now();
        Counts {
            context_switches: now.context_switches,
            major_faults: now.major_faults,
            minor_faults: now.minor_faults,
            cpu_ns: now.cpu_ns,
        }
    }

    fn disks(&self, names: &[String]) -> Vec<DiskUse> {
        let roots = Roots::default();
        let read = |name: &String| {
            let now = DeviceMeter::open(&roots, &[name]).ok()?.read().ok()?;
            let pair = |index: usize| [now.reads[index], now.writes[index]];
            Some(DiskUse {
                name: name.clone(),
                requests: pair(0),
                merges: pair(1),
                sectors: pair(2),
                ticks_ms: pair(3),
                queue_ms: now.weighted_ms,
                busy_ms: now.busy_ms,
            })
        };
        names.iter().filter_map(read).collect()
    }

    fn unix_ms(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
    }
}

pub(crate) fn fio(mut context: Context, arguments: &[String]) -> Result<(), Failure> {
    let command = Command::parse(&context.take_ours(arguments)?)?;
    if command.version {
        return context.console.print(&format!("{FIO_VERSION}\n"));
    }
    let asks = command.engine_help.is_some() || command.option_help.is_some();
    if command.help || (!asks && command.files.is_empty() && command.sections.is_empty()) {
        context.console.print(&format!("{HELP}{}\n{HELP_END}\n", job_options(132)))?;
        return if command.help {
            Ok(())
        } else {
            Err(Failure::Usage(
                "no job is defined; name a job file, or write --name=JOB --size=1g".into(),
            ))
        };
    }
    if let Some(text) = described(&command)? {
        return context.console.print(&text);
    }
    let world = World { read: &job_file, variable: &variable };
    let sections = command.all_sections(&world)?;
    if command.parse_only && sections.iter().all(Section::is_global) {
        let parsed = parsed_globals(&sections)?;
        return if shows(&command, "parse") { context.console.print(&parsed) } else { Ok(()) };
    }
    if command.show {
        return context.console.print(&printable_lines(&command_line(&sections)));
    }
    let plan = Plan::new(&sections, &command.only)?;
    check_command(&command, &plan)?;
    context.writes.destroys(&command.destroy);
    let mut arrangement = Arrangement::new(&plan, &look_here, &command.destroy)?;
    if !command.parse_only {
        load_states(&mut arrangement, &plan, state_directory(&command), &|path| STATE.read(path))?;
    }
    let outputs = Outputs::new(&context, &command, &plan, &arrangement)?;
    let names: Vec<&Path> = arrangement.files.iter().map(|file| file.path.as_path()).collect();
    on_machine!(machine_of(&context, &names)?, |machine| fio_on(
        &context,
        &machine,
        &command,
        &plan,
        &arrangement,
        &outputs
    ))
}

fn described(command: &Command) -> Result<Option<String>, Failure> {
    match (command.engine_help.as_deref(), command.option_help.as_deref()) {
        (Some(""), _) => Ok(Some(format!("Available IO engines:\n{}", engine_names()))),
        (Some(name), _) => {
            let wrong = |why| Failure::Usage(format!("--enghelp={}: {why}", shown(name)));
            parse_engine(name).map_err(wrong)?;
            Ok(Some(format!("{}: it has no options that other engines do not have\n", shown(name))))
        }
        (None, Some("")) => Ok(Some(job_options(132))),
        (None, Some(name)) => option_help(name).map(Some).ok_or_else(|| {
            Failure::Usage(format!("--cmdhelp={}: no such option; see --cmdhelp", shown(name)))
        }),
        (None, None) => Ok(None),
    }
}

fn shown(name: &str) -> String {
    printable(&name.chars().take(60).collect::<String>())
}

fn job_file(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        JOB_FILE.bounded(io::stdin().lock()).all()
    } else {
        JOB_FILE.read(path)
    }
}

/// A job file with all the sections allowed has a few MiB.
const JOB_FILE: Input = Input::new("a job file", 16 << 20);

const STATE: Input = Input::new("a verification state", 16 << 20).rewritten();

fn variable(name: &str) -> Option<String> {
    match name {
        "$ncpus" => std::thread::available_parallelism().ok().map(|count| count.to_string()),
        "$pagesize" => Some(host::facts::page_bytes().to_string()),
        "$mb_memory" => {
            host::facts::memory_bytes(&Roots::default()).map(|bytes| (bytes >> 20).to_string())
        }
        name => std::env::var(name).ok(),
    }
}

fn shows(command: &Command, what: &str) -> bool {
    command.debug.iter().any(|word| word == what || word == "all")
}

fn shown_parsed(command: &Command, plan: &Plan) -> String {
    if shows(command, "parse") { printable_lines(&parsed_lines(plan)) } else { String::new() }
}

fn state_directory(command: &Command) -> &Path {
    command.aux_path.as_deref().unwrap_or(Path::new(""))
}

fn look_here(path: &Path) -> io::Result<Found> {
    match look(path)? {
        Found::File(bytes) => Ok(host::kept_bytes(path).map_or(Found::File(bytes), Found::Made)),
        Found::Other(_) if host::is_endless(path) => Ok(Found::Endless),
        found => Ok(found),
    }
}

fn fio_on<M: Machine>(
    context: &Context,
    machine: &M,
    command: &Command,
    plan: &Plan,
    arrangement: &Arrangement,
    outputs: &Outputs<'_>,
) -> Result<(), Failure> {
    let mut plan = plan.clone();
    replace_missing_engines(machine, &mut plan);
    let plan = &plan;
    check_machine(machine, plan)?;
    if command.status_ns.is_some() && machine.facts().simulated {
        return Err(Failure::Usage(
            "--status-interval: a simulated machine runs in virtual time, so its result is there at once; leave it out".into(),
        ));
    }
    if command.parse_only {
        warn(context, command, &plan.warnings);
        return context.console.print(&shown_parsed(command, plan));
    }
    let system_stats: &dyn SystemStats =
        if machine.facts().simulated { &Nowhere } else { &LinuxStats };
    let began = Began::now(machine);
    let early = Mutex::new(String::new());
    let mut schedulers = Schedulers::new(machine, plan, arrangement)?;
    let mut result = measured(
        context,
        command,
        machine,
        system_stats,
        (plan, arrangement),
        (outputs, &mut schedulers, &early),
    )?;
    result.warnings.extend(schedulers.end());
    result.idle = command.idle;
    let document = results(machine, began, &result);
    let is_cut = result.interrupted || context.writes.is_reached();
    let document = if is_cut { document.interrupted(None) } else { document };
    crate::history::keep(outputs.context, &document);
    let early = early.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(context, command, outputs, &early, &result, &document)?;
    if result.interrupted {
        return Err(Failure::Interrupted);
    }
    if let Some(limited) = context.writes.limited() {
        return Err(limited);
    }
    let failures = result.failures();
    if failures.is_empty() { Ok(()) } else { Err(Failure::Run(failures.join("; "))) }
}

/// The local counters do not apply to simulated machines.
struct Nowhere;

impl SystemStats for Nowhere {
    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn disks(&self, _names: &[String]) -> Vec<DiskUse> {
        Vec::new()
    }

    fn unix_ms(&self) -> u64 {
        LinuxStats.unix_ms()
    }
}

fn check_command(command: &Command, plan: &Plan) -> Result<(), Failure> {
    if command.readonly && plan.writes() {
        let names: Vec<&str> =
            plan.jobs().filter(|job| job.options.writes).map(|job| job.name.as_str()).collect();
        return Err(Failure::Usage(format!(
            "--readonly: these jobs write: {}; leave out one or the other",
            names.join(", ")
        )));
    }
    match plan.warnings.first().filter(|_| command.warnings_fatal) {
        Some(warning) => Err(Failure::Usage(format!("--warnings-fatal: {warning}"))),
        None => Ok(()),
    }
}

struct Outputs<'a> {
    context: &'a Context,
    report: Option<Output>,
    json: Option<Output>,
    /// Files of the jobs, and job files, which outputs must not overwrite.
    data: Vec<&'a Path>,
}

impl<'a> Outputs<'a> {
    fn new(
        context: &'a Context,
        command: &'a Command,
        plan: &Plan,
        arrangement: &'a Arrangement,
    ) -> Result<Outputs<'a>, Failure> {
        let files = arrangement.files.iter().map(|file| &file.path).chain(&command.files);
        let data: Vec<&Path> = files.map(PathBuf::as_path).collect();
        for clone in &arrangement.clones {
            let (group, job) = clone.job;
            for path in log_paths(&plan.groups[group][job], clone.number) {
                output::output(context, "write_*_log", &path, &data)?;
            }
        }
        for path in command.bandwidth_log.iter().flat_map(|prefix| aggregate_log_paths(prefix)) {
            output::output(context, "--bandwidth-log", &path, &data)?;
        }
        for (option, path) in plan.jobs().flat_map(around::command_outputs) {
            output::output(context, option, &path, &data)?;
        }
        for path in asked_states(plan, state_directory(command)) {
            output::output(context, "verify_state_save", &path, &data)?;
        }
        Ok(Outputs {
            context,
            report: output::optional(context, "--output", command.output.as_deref(), &data)?,
            json: output::optional(context, "--json", command.json.as_deref(), &data)?,
            data,
        })
    }
}

fn measured<M: Machine>(
    context: &Context,
    command: &Command,
    machine: &M,
    system_stats: &dyn SystemStats,
    (plan, arrangement): (&Plan, &Arrangement),
    (outputs, schedulers, early): (&Outputs<'_>, &mut Schedulers, &Mutex<String>),
) -> Result<FioResult, FioError> {
    let bar = context.console.bar(1);
    bar.set_message("laying out files");
    let report = |result: &FioResult| {
        let text = formatted(command, result);
        if command.output.is_some() {
            early.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        } else {
            // A reader that has gone away shows at the last report.
            let _ = context.console.print(&text);
        }
    };
    let status = command.status_ns.map(|interval_ns| Status { interval_ns, report: &report });
    let mut sets = Sets {
        context,
        data: &outputs.data,
        bar: &bar,
        rest: &plan.groups,
        schedulers,
        warnings: Vec::new(),
    };
    let result = run(
        machine,
        system_stats,
        plan,
        arrangement,
        RunSettings {
            destroy_signed: command.destroy_signed,
            cleanup: command.cleanup,
            status: status.as_ref(),
        },
        &mut sets,
    );
    bar.finish_and_clear();
    let result = result?;
    Ok(FioResult { warnings: [result.warnings, sets.warnings].concat(), ..result })
}

/// Normal and JSON reports include warnings; programs that parse JSON treat output on standard
/// error as a failure.
fn warn(context: &Context, command: &Command, warnings: &[String]) {
    let json_to_a_person =
        !command.formats.contains(&Format::Normal) && std::io::stderr().is_terminal();
    if command.parse_only || json_to_a_person {
        context.console.warn(warnings);
    }
}

fn formatted(command: &Command, result: &FioResult) -> String {
    let one = |format: &Format| match format {
        Format::Normal => printable_lines(&text(result)),
        Format::Terse => printable_lines(&terse(result, command.terse_version)),
        Format::Json => json(result, false),
        Format::JsonPlus => json(result, true),
    };
    command.formats.iter().map(one).collect()
}

/// Writes each output even if another fails.
fn report(
    context: &Context,
    command: &Command,
    outputs: &Outputs<'_>,
    early: &str,
    result: &FioResult,
    document: &Results,
) -> Result<(), Failure> {
    let mut report = early.to_string() + &shown_parsed(command, &result.plan);
    if shows(command, "random") {
        report += &printable_lines(&seed_lines(result));
    }
    report += &formatted(command, result);
    warn(context, command, &result.warnings);
    let reported = match &outputs.report {
        Some(file) => output::save(file, &report),
        None => context.console.print(&report),
    };
    let aggregate = command.bandwidth_log.iter().flat_map(|prefix| aggregate_logs(result, prefix));
    // An unrequested state that cannot be written, or belongs to another user, is not an error.
    let asked = asked_states(&result.plan, state_directory(command));
    let (states, unasked): (Vec<_>, Vec<_>) = saved_states(result, state_directory(command))
        .into_iter()
        .partition(|(path, _)| asked.contains(path));
    for (path, text) in unasked {
        let saved = output::output(outputs.context, "verify_state_save", &path, &outputs.data)
            .and_then(|file| output::save(&file, &text));
        if saved.is_err() {
            warn(
                context,
                command,
                &[format!("{}: how far the job wrote was not saved there", path.display())],
            );
        }
    }
    let logged: Vec<_> = logs(result)
        .iter()
        .map(|(path, text)| {
            output::save_late(outputs.context, "write_*_log", path, &outputs.data, text)
        })
        .chain(aggregate.map(|(path, text)| {
            output::save_late(outputs.context, "--bandwidth-log", &path, &outputs.data, &text)
        }))
        .chain(states.iter().map(|(path, text)| {
            output::save_late(outputs.context, "verify_state_save", path, &outputs.data, text)
        }))
        .collect();
    let kept = match &outputs.json {
        Some(file) => output::save(file, &output::json(results::to_json(document))?),
        None => Ok(()),
    };
    logged.into_iter().fold(reported, Result::and).and(kept)
}

fn results<M: Machine>(machine: &M, began: Began, result: &FioResult) -> Results {
    let first = &result.groups[0];
    let names: Vec<&str> = result.groups.iter().map(|group| group.facts.name.as_str()).collect();
    let target = TargetFacts { name: names.join(", "), ..first.facts.clone() };
    let seed = first.jobs[0].point.workload.seed;
    let points =
        result.groups.iter().flat_map(|group| &group.jobs).map(|job| job.point.clone()).collect();
    let document = Results::new(machine, Kind::Run, crate::context::program(), began, target, seed);
    Results { points, warnings: result.warnings.clone(), ..document }
}
