//! `halfpower fio`: fio's jobs on this computer.

use crate::Failure;
use crate::target::{machine_of, on_machine};
use dialect::fio::{
    Arrangement, Command, Counts, DiskUse, FIO_VERSION, FioError, FioResult, Format, Found, Laid, Plan, Surroundings, World, check_machine,
    json, logs, look, run, text,
};
use host::counters::{DeviceMeter, ProcessCounts};
use host::facts::Roots;
use machine::{Machine, TargetFacts};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use study::{Kind, Results, SCHEMA};

/// What `--help` says.
const HELP: &str = "\
Run fio's job files and options: halfpower fio [OPTIONS] JOBFILE... | --name=JOB --OPTION=VALUE...

Program options
  --output-format=FORMAT  normal, json (fio's fields, and an object `halfpower` with what fio lacks) or json+ (all latency buckets)
  --output=FILE           Write the report there
  --json=FILE             Write halfpower's own result there, too
  --section=JOB           Run this job of a job file alone (may be repeated)
  --parse-only            Check everything, run nothing
  --readonly              Refuse jobs that write
  --warnings-fatal        Refuse jobs where fio would silently do something else
  --destroy-data=NAME     Overwrite this file or device, which is there already and which a job names too
  --destroy-signature     Even if it bears a file system or a partition table
  --keep                  Leave the files that were laid out

Job options, as in fio
  jobs      name description numjobs stonewall new_group group_reporting include ${VARIABLE} kb_base
  files     filename directory (several with colons) filename_format nrfiles file_service_type size filesize io_size loops offset
            offset_increment fallocate overwrite unlink
  requests  rw rwmixread rwmixwrite bs bsrange bssplit blockalign random_distribution (random, zipf:, pareto:, normal:, zoned:)
            norandommap randseed randrepeat
  access    ioengine (sync psync vsync pvsync pvsync2 libaio io_uring posixaio mmap null) iodepth iodepth_batch
            iodepth_batch_complete_min iodepth_batch_complete_max direct buffered sync fsync fdatasync end_fsync fsync_on_close
            invalidate fadvise_hint
  time      runtime time_based ramp_time startdelay rate rate_iops thinktime steadystate steadystate_duration
            steadystate_ramp_time
  data      refill_buffers buffer_compress_percentage dedupe_percentage zero_buffers verify (crc32c, xxhash, pattern)
            verify_pattern do_verify
  report    percentile_list clat_percentiles lat_percentiles write_bw_log write_iops_log write_lat_log log_avg_msec

filename=twin:NAME runs jobs on a simulated machine. Any other option is an error that names it, before anything is written. Files that are laid out are removed at the end.";

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

/// What fio reports of this computer beyond a machine's own counters.
struct ThisComputer;

impl Surroundings for ThisComputer {
    fn reserve(&self, file: &fs::File, bytes: u64) -> io::Result<()> {
        host::reserve(file, bytes)
    }

    fn free_bytes(&self, directory: &Path) -> io::Result<Option<u64>> {
        host::free_bytes(directory)
    }

    fn counts(&self) -> Counts {
        let now = ProcessCounts::now();
        Counts { context_switches: now.context_switches, major_faults: now.major_faults, minor_faults: now.minor_faults }
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

/// Runs what the arguments ask for.
pub(crate) fn fio(arguments: &[String]) -> Result<(), Failure> {
    let command = Command::parse(arguments)?;
    if command.version {
        println!("{FIO_VERSION}");
        return Ok(());
    }
    if command.help || (command.files.is_empty() && command.sections.is_empty()) {
        println!("{HELP}");
        return if command.help {
            Ok(())
        } else {
            Err(Failure::Usage("no job is defined; name a job file, or write --name=JOB --size=1g".into()))
        };
    }
    let world = World { read: &|path| fs::read(path), variable: &|name| std::env::var(name).ok() };
    let plan = Plan::new(&command.all_sections(&world)?, &command.only)?;
    check_command(&command, &plan)?;
    let arrangement = Arrangement::new(&plan, &look, &command.destroy)?;
    check_outputs(&command, &plan, &arrangement)?;
    let names: Vec<&Path> = arrangement.files.iter().map(|file| file.path.as_path()).collect();
    on_machine!(machine_of(&names)?, |machine| fio_on(&machine, &command, &plan, &arrangement))
}

fn fio_on<M: Machine>(machine: &M, command: &Command, plan: &Plan, arrangement: &Arrangement) -> Result<(), Failure> {
    check_machine(machine, plan)?;
    if command.parse_only {
        tell(command, &plan.warnings);
        return Ok(());
    }
    let surroundings: &dyn Surroundings = if machine.facts().simulated { &Nowhere } else { &ThisComputer };
    let result = measured(command, machine, surroundings, plan, arrangement)?;
    report(command, &result)
}

/// A simulated machine, around which there is nothing that this computer counts.
struct Nowhere;

impl Surroundings for Nowhere {
    fn reserve(&self, _file: &fs::File, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn free_bytes(&self, _directory: &Path) -> io::Result<Option<u64>> {
        Ok(None)
    }

    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn disks(&self, _names: &[String]) -> Vec<DiskUse> {
        Vec::new()
    }

    fn unix_ms(&self) -> u64 {
        ThisComputer.unix_ms()
    }
}

/// What the program's options forbid.
fn check_command(command: &Command, plan: &Plan) -> Result<(), Failure> {
    if command.readonly && plan.writes() {
        let names: Vec<&str> = plan.jobs().filter(|job| job.options.writes).map(|job| job.name.as_str()).collect();
        return Err(Failure::Usage(format!("--readonly: these jobs write: {}; leave out one or the other", names.join(", "))));
    }
    match plan.warnings.first().filter(|_| command.warnings_fatal) {
        Some(warning) => Err(Failure::Usage(format!("--warnings-fatal: {warning}"))),
        None => Ok(()),
    }
}

/// Everything that is to be written at the end can be, and is none of the jobs' files.
fn check_outputs(command: &Command, plan: &Plan, arrangement: &Arrangement) -> Result<(), Failure> {
    let named = command.output.iter().map(|path| ("--output", path.clone()));
    let named = named.chain(command.json.iter().map(|path| ("--json", path.clone())));
    let prefixes = plan.jobs().flat_map(|job| {
        let logs = &job.options.logs;
        [("write_bw_log", &logs.bandwidth), ("write_iops_log", &logs.iops), ("write_lat_log", &logs.latency)]
    });
    let prefixed = prefixes.filter_map(|(option, prefix)| prefix.as_ref().map(|prefix| (option, PathBuf::from(prefix.to_owned() + "_"))));
    for (option, path) in named.chain(prefixed) {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Err(Failure::Usage(format!("{option}={}: its directory is not there; make it first", path.display())));
        }
        let same = |file: &Path| file == path || matches!((fs::canonicalize(file), fs::canonicalize(&path)), (Ok(a), Ok(b)) if a == b);
        let is_data = arrangement.files.iter().any(|file| same(&file.path)) || command.files.iter().any(|file| same(file));
        if is_data || matches!(look(&path), Ok(Found::Device(_) | Found::Other("a directory"))) {
            return Err(Failure::Usage(format!("{option}={}: a report cannot go there; name another file", path.display())));
        }
    }
    Ok(())
}

/// Lays out the files, runs the jobs, removes the files.
fn measured<M: Machine>(
    command: &Command,
    machine: &M,
    surroundings: &dyn Surroundings,
    plan: &Plan,
    arrangement: &Arrangement,
) -> Result<FioResult, FioError> {
    let bar = crate::progress::bar(plan.groups.len() as u64 + 1);
    bar.set_message("laying out files");
    let (laid, warnings) = Laid::out(arrangement, surroundings, command.keep, crate::interrupt::flag())?;
    let mut plan = plan.clone();
    plan.warnings.extend(warnings);
    let result = run(machine, surroundings, &plan, arrangement, command.destroy_signed, &mut |jobs| {
        bar.inc(1);
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        bar.set_message(names.join(", "));
    });
    bar.finish_and_clear();
    drop(laid);
    result
}

/// Tells warnings on standard error, where the report does not: the text holds them, and so does the JSON, whose readers take words
/// there for a failure.
fn tell(command: &Command, warnings: &[String]) {
    let json_to_a_person = command.format != Format::Normal && std::io::stderr().is_terminal();
    if command.parse_only || json_to_a_person {
        for warning in warnings {
            eprintln!("halfpower: warning: {warning}");
        }
    }
}

/// Writes the report, the logs and halfpower's own result.
fn report(command: &Command, result: &FioResult) -> Result<(), Failure> {
    let report = match command.format {
        Format::Normal => text(result),
        format => json(result, format),
    };
    let write =
        |path: &Path, text: &str| fs::write(path, text).map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())));
    tell(command, &result.warnings);
    match &command.output {
        Some(path) => write(path, &report)?,
        None => {
            std::io::stdout().write_all(report.as_bytes()).map_err(|error| Failure::Run(format!("cannot write the report: {error}")))?
        }
    }
    for (path, text) in logs(result) {
        write(&path, &text)?;
    }
    match &command.json {
        Some(path) => store::write(&results(result), path).map_err(|error| Failure::Run(error.to_string())),
        None => Ok(()),
    }
}

/// The run as halfpower's other commands leave theirs behind.
fn results(result: &FioResult) -> Results {
    let first = &result.groups[0];
    let names: Vec<&str> = result.groups.iter().map(|group| group.facts.name.as_str()).collect();
    let target = TargetFacts { name: names.join(", "), ..first.facts.clone() };
    Results {
        schema: SCHEMA.into(),
        program: crate::points::program(),
        kind: Kind::Run,
        target,
        machine: result.machine.clone(),
        began_unix_s: (result.ended_unix_ms - (result.elapsed_ns / 1_000_000).min(result.ended_unix_ms)) / 1000,
        elapsed_ns: result.elapsed_ns,
        budget_ns: None,
        seed: first.jobs[0].point.workload.seed,
        points: result.groups.iter().flat_map(|group| &group.jobs).map(|job| job.point.clone()).collect(),
        rates: Vec::new(),
        experiments: Vec::new(),
        answer: None,
        warnings: result.warnings.clone(),
    }
}
