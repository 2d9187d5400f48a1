//! `halfpower ior` and `halfpower mdtest`, by threads of this process or mpirun's.

use crate::context::Context;
use crate::failure::Failure;
use crate::{history, output};
use dialect::tasks::{Access, Alone, Crew, Done, Error, Member, Reply, Step, Worker};
use host::files::{HostFiles, directory_facts};
use host::{Host, HostTaskFiles, file_system_space, zeros_in_file};
use hosts::{Group, Hello, Leader, ThreadRank, follow, thread_group};
use machine::{Machine, MachineFacts, Nanos, TargetFacts, TaskFiles};
use results::{Began, Kind, Output, Results};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

const STACK_BYTES: usize = 512 << 10;

fn is_interrupted() -> bool {
    crate::interrupt::flag().load(Ordering::Relaxed)
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

pub(crate) struct Here {
    files: HostTaskFiles,
    system: HostFiles,
}

impl Here {
    pub(crate) fn new() -> Here {
        Here { files: HostTaskFiles::new(crate::interrupt::flag()), system: HostFiles::new() }
    }

    pub(crate) fn access(&self) -> Access<'_, HostTaskFiles, HostFiles> {
        Access { files: &self.files, system: &self.system, interrupt: crate::interrupt::flag() }
    }
}

pub(crate) fn perform(
    worker: &mut Worker<'_, HostTaskFiles, HostFiles>,
    job: &str,
    start: Option<Nanos>,
) -> Result<String, hosts::Failure> {
    let confused = |error: serde_json::Error| {
        let why = format!("rank 0 sent a step that this halfpower does not understand: {error}");
        hosts::Failure::from(machine::Error::Unsupported(why))
    };
    let step: Step = serde_json::from_str(job).map_err(confused)?;
    let reply = worker.perform(&step, start)?;
    serde_json::to_string(&reply).map_err(confused)
}

pub(crate) struct OverGroup<'l, 'a, G: Group, M: Machine> {
    leader: &'l mut Leader<'a, G, M>,
    worker: Worker<'l, HostTaskFiles, HostFiles>,
    files: &'l HostTaskFiles,
    members: Vec<Member>,
    looks: u64,
    ended: Option<hosts::Error>,
}

impl<'l, 'a, G: Group, M: Machine> OverGroup<'l, 'a, G, M> {
    pub(crate) fn new(leader: &'l mut Leader<'a, G, M>, here: &'l Here) -> Self {
        let members = leader.clients().iter().zip(leader.processes());
        let members = members
            .map(|(client, (space, process))| Member {
                host: client.host.clone(),
                process_space: space.clone(),
                process: *process,
            })
            .collect();
        let looks = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let worker = Worker::new(here.access());
        let looks = looks as u64;
        OverGroup { leader, worker, files: &here.files, members, looks, ended: None }
    }

    #[cfg(feature = "mpi")]
    pub(crate) fn into_ended(self) -> Option<hosts::Error> {
        self.ended
    }

    fn failed(&mut self, error: hosts::Error) -> Error {
        let failed = match &error {
            hosts::Error::Interrupted => machine::Error::Interrupted.into(),
            hosts::Error::Lost(_) => Error::Lost(error.to_string()),
            error => {
                return Error::Tasks { message: error.to_string(), usage: error.is_usage() };
            }
        };
        self.ended.get_or_insert(error);
        failed
    }
}

impl<G: Group, M: Machine> Crew for OverGroup<'_, '_, G, M> {
    fn members(&self) -> &[Member] {
        &self.members
    }

    fn perform(&mut self, steps: Vec<(usize, Step)>, together: bool) -> Result<Vec<Done>, Error> {
        let confused = |error: serde_json::Error| Error::Tasks {
            message: format!("a step or its answer cannot be sent: {error}"),
            usage: false,
        };
        let jobs: Vec<(usize, String)> = (steps.iter())
            .map(|(task, step)| Ok((*task, serde_json::to_string(step)?)))
            .collect::<serde_json::Result<_>>()
            .map_err(confused)?;
        let worker = &mut self.worker;
        let own = &mut |job: &str, start: Option<Nanos>| perform(worker, job, start);
        let done = self.leader.jobs(&jobs, together, own).map_err(|error| self.failed(error))?;
        done.into_iter()
            .map(|one| {
                let reply: Reply = serde_json::from_str(&one.answer).map_err(confused)?;
                Ok(Done { reply, ahead_ns: one.ahead_ns })
            })
            .collect()
    }

    fn elsewhere(&mut self, directory: &Path) -> Result<Vec<String>, Error> {
        self.looks += 1;
        self.leader.look(directory, self.looks).map_err(|error| self.failed(error))
    }

    fn pause(&mut self, for_ns: Nanos) {
        self.files.wait_until(self.files.now().saturating_add(for_ns));
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Machine(error) => error.into(),
            error if error.is_usage() => Failure::Usage(error.to_string()),
            error => Failure::Run(error.to_string()),
        }
    }
}

pub(crate) fn hello(facts: &MachineFacts, version: &str) -> Hello {
    Hello {
        version: version.into(),
        host: facts.name.clone(),
        processors: facts.processors,
        process: std::process::id(),
        process_space: host::process_space(),
        clock_space: host::clock_space(),
    }
}

fn as_threads<T>(
    count: usize,
    machine: &Host,
    lead: impl FnOnce(&mut dyn Crew) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let hello = hello(&machine.facts(), env!("CARGO_PKG_VERSION"));
    let mut ranks = thread_group(count).into_iter();
    let Some(first) = ranks.next() else { return Err(Failure::Usage("--tasks: none".into())) };
    let body = |rank: ThreadRank| {
        let here = Here::new();
        let mut worker = Worker::new(here.access());
        let perform = &mut |job: &str, start| perform(&mut worker, job, start);
        // The first task reports what went wrong.
        let _ = follow(&rank, machine, &hello, &is_interrupted, perform);
    };
    std::thread::scope(|scope| {
        for rank in ranks {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, || body(rank)).map_err(|error| {
                Failure::Usage(format!(
                    "--tasks {count}: the system refuses more threads: {error}; give fewer, or raise the limit (ulimit -u)"
                ))
            })?;
        }
        let here = Here::new();
        let mut leader = Leader::meet(&first, machine, &hello, &is_interrupted)
            .map_err(|error| Failure::Run(error.to_string()))?;
        let result = lead(&mut OverGroup::new(&mut leader, &here));
        leader.finish();
        result
    })
}

fn with_crew<T>(
    started: Option<&mut dyn Crew>,
    tasks_here: u32,
    machine: &Host,
    lead: impl FnOnce(&mut dyn Crew) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match (started, tasks_here) {
        (Some(_), 1..) => Err(Failure::Usage(
            "--tasks: the tasks are those that mpirun started; leave it out, or start halfpower without mpirun"
                .into(),
        )),
        (Some(crew), _) => lead(crew),
        (None, 0 | 1) => {
            let here = Here::new();
            lead(&mut Alone::new(here.access(), machine.facts().name))
        }
        (None, count) => as_threads(count as usize, machine, lead),
    }
}

fn named(facts: &MachineFacts) -> String {
    let system = facts.system.split_whitespace().next().unwrap_or("Linux");
    format!("{system} {}", facts.name)
}

fn directory(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

pub(crate) fn target_of(directories: &[PathBuf]) -> Result<TargetFacts, Failure> {
    if let Some(missing) = directories.iter().find(|one| !one.is_dir()) {
        let shown = missing.display();
        let why = "no such directory; make it first, or name another";
        return Err(Failure::Usage(format!("{shown}: {why}")));
    }
    Ok(directory_facts(directories)?)
}

fn above_missing(directory: &Path) -> Result<PathBuf, Failure> {
    if directory.is_dir() {
        return Ok(directory.to_owned());
    }
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    if above.is_dir() {
        return Ok(above.to_owned());
    }
    let shown = directory.display();
    let why = "no such directory; make the directory above it first, or name another";
    Err(Failure::Usage(format!("{shown}: {why}")))
}

fn keep(
    context: &Context,
    json: Option<&Output>,
    document: &Results,
    tool: &str,
    own: &impl serde::Serialize,
) -> Result<(), Failure> {
    history::keep(context, document);
    let Some(json) = json else { return Ok(()) };
    output::save(json, &output::json(results::to_json_with(document, tool, own))?)
}

pub(crate) fn ior(
    mut context: Context,
    words: &[String],
    started: Option<&mut dyn Crew>,
) -> Result<(), Failure> {
    use dialect::ior::{self, Format, Surroundings, Tests};
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return context.console.print(ior::HELP);
    }
    let own = context.take_ours(words)?;
    let mut command = vec!["ior".to_owned()];
    command.extend(words.iter().cloned());
    let tests = ior::parse(&own)?;
    let tests = Tests { force: context.force, command: dialect::joined(&command), ..tests };
    context.writes.destroys(&tests.destroy);
    let files = ior::files(&tests);
    files.iter().try_for_each(|name| crate::target::no_twin(name))?;
    let here = tests.tasks_here.max(1) as usize;
    let tasks = started.as_ref().map_or(here, |crew| crew.members().len());
    let claimed = |option: &str, path: Option<&Path>| {
        let Some(path) = path else { return Ok(None) };
        let files = ior::files_or_namesakes(&tests, tasks, path);
        let names: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        output::output(&context, option, path, &names).map(Some)
    };
    let json = claimed("--json", tests.json.as_deref())?;
    let summary = claimed("summaryFile", tests.tests[0].summary_file.as_deref())?;
    let machine = Host::new(crate::interrupt::flag());
    let began = Began::now(&machine);
    let place = directory(&files[0]);
    let facts = machine.facts();
    let (result, target) = with_crew(started, tests.tasks_here, &machine, |crew| {
        let target = target_of(std::slice::from_ref(&place))?;
        let bytes = tests.written_bytes(crew.members().len() as u32);
        context.writes.of_tool([bytes; 2], &target.name)?;
        let around = Surroundings {
            machine: named(&facts),
            target: target.clone(),
            space: &file_system_space,
            doubt: &zeros_in_file,
            now: &unix_s,
        };
        let streams = tests.tests[0].format == Format::Text && summary.is_none();
        if streams {
            return Ok((ior::run(crew, &tests, &around, &mut context.console.report())?, target));
        }
        let mut text = Vec::new();
        let result = ior::run(crew, &tests, &around, &mut text)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        match &summary {
            Some(summary) => output::save(summary, &text)?,
            None => context.console.print(&text)?,
        }
        Ok((result, target))
    })?;
    let seed = tests.tests[0].signature.unwrap_or(0);
    let program = crate::context::program();
    let document = Results::new(&machine, Kind::Sweep, program, began, target, seed);
    let points = result.tests.iter().flat_map(|test| test.points.iter().cloned()).collect();
    let document = Results { points, warnings: result.warnings.clone(), ..document };
    let document = if result.interrupted { document.interrupted(None) } else { document };
    keep(&context, json.as_ref(), &document, "ior", &result)?;
    if result.interrupted {
        return Err(Failure::Interrupted);
    }
    match result.wrong_transfers() {
        0 => Ok(()),
        wrong => {
            Err(Failure::Run(format!("{wrong} transfers returned other data than was written")))
        }
    }
}

pub(crate) fn mdtest(
    mut context: Context,
    words: &[String],
    started: Option<&mut dyn Crew>,
) -> Result<(), Failure> {
    use dialect::mdtest::{self, Options, Surroundings};
    if words.iter().any(|word| word == "--help" || word == "-h") {
        return context.console.print(mdtest::HELP);
    }
    let own = context.take_ours(words)?;
    let mut command = vec!["mdtest".to_owned()];
    command.extend(words.iter().cloned());
    let options = mdtest::parse(&own)?;
    let options = Options { force: context.force, command: dialect::joined(&command), ..options };
    for name in mdtest::files(&options) {
        crate::target::no_twin(name)?;
    }
    let json = output::optional(&context, "--json", options.json.as_deref(), &[])?;
    let machine = Host::new(crate::interrupt::flag());
    let began = Began::now(&machine);
    let (result, target) = with_crew(started, options.tasks_here, &machine, |crew| {
        let places = mdtest::files(&options).iter().map(|one| above_missing(one));
        let target = target_of(&places.collect::<Result<Vec<PathBuf>, Failure>>()?)?;
        let bytes = options.written_bytes(crew.members().len() as u32);
        context.writes.of_tool([bytes; 2], &target.name)?;
        let around = Surroundings { space: &file_system_space, now: &unix_s };
        Ok((mdtest::run(crew, &options, &around, &mut context.console.report())?, target))
    })?;
    let program = crate::context::program();
    let seed = options.random.unwrap_or(0);
    let document = Results::new(&machine, Kind::Metadata, program, began, target, seed);
    let rates = result.operation_rates(&options.settings(result.tasks));
    let document = Results { rates, warnings: result.warnings.clone(), ..document };
    let document = if result.interrupted { document.interrupted(None) } else { document };
    keep(&context, json.as_ref(), &document, "mdtest", &result)?;
    if result.interrupted {
        return Err(Failure::Interrupted);
    }
    match result.wrong_items {
        0 => Ok(()),
        wrong => Err(Failure::Run(format!(
            "{wrong} items did not have the size or the data that was written"
        ))),
    }
}
