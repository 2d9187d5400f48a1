//! Runs the tests: each repetition writes, checks, reads and removes.

use super::options::{Format, Tests, hint};
use super::result::{Direction, IorResult, TestResult, sample};
use super::test::Test;
use super::{Options, report};
use crate::display::print;
use crate::tasks::{Crew, Error, Member, SpaceOf};
use files::Input;
use machine::{Buffering, TargetFacts};
use measure::histogram::Histogram;
use results::{Output, Point};
use std::io::Write;
use std::path::{Path, PathBuf};
use workload::{Pattern, Stop, Workload};

const STATUS: Input = Input::new("a status file of IOR", 4 << 10).rewritten();

pub struct Surroundings<'a> {
    /// System and name of the first task's computer.
    pub machine: String,
    /// The first file's directory.
    pub target: TargetFacts,
    pub space: SpaceOf<'a>,
    /// Why reads of a file may be too fast.
    pub doubt: &'a dyn Fn(&Path) -> Option<String>,
    /// Seconds since 1970.
    pub now: &'a dyn Fn() -> u64,
}

/// Each file once, without the tasks' suffixes.
pub fn files(tests: &Tests) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for file in tests.tests.iter().flat_map(|test| &test.test_files) {
        if !all.contains(file) {
            all.push(file.clone());
        }
    }
    all
}

/// Also the tasks' files that have the name of `output`, which must not replace them.
pub fn files_or_namesakes(tests: &Tests, tasks: usize, output: &Path) -> Vec<PathBuf> {
    let mut all = files(tests);
    let last = output.extension().and_then(|last| last.to_str()?.parse().ok()).unwrap_or(0);
    for options in &tests.tests {
        let own = (0..tasks as u64).map(|task| options.file(task, last));
        all.extend(own.filter(|file| file.file_name() == output.file_name()));
    }
    all
}

/// Prints IOR's report to `out`, also after the user's interrupt. Removes files as IOR does, and
/// always after a failure or the interrupt.
pub fn run(
    crew: &mut dyn Crew,
    tests: &Tests,
    around: &Surroundings<'_>,
    out: &mut dyn Write,
) -> Result<IorResult, Error> {
    let mut result = IorResult { command: tests.command.clone(), ..IorResult::default() };
    let format = tests.tests[0].format;
    let members = crew.members().to_vec();
    let mut plans = Vec::new();
    for options in &tests.tests {
        let used = used(options, &members)?;
        // An unwritable output is found before the run, not after it.
        status_output(options, tests, used)?;
        plans.push((options, used));
    }
    for (number, (options, count)) in plans.into_iter().enumerate() {
        let mut test = Test::new(crew, tests, options, &members[..count], number, around);
        // A refusal comes before the report.
        let mut ended = if options.dry_run { Ok(()) } else { test.check() };
        if ended.is_ok() && number == 0 && format == Format::Text {
            print(out, &report::head(tests, around))?;
        }
        if ended.is_ok() {
            ended = test.run(out);
        }
        let Test { result: mut own, warnings, latencies, .. } = test;
        own.points = points(&own, &latencies, &around.target);
        for warning in warnings {
            if !result.warnings.contains(&warning) {
                result.warnings.push(warning);
            }
        }
        result.tests.push(own);
        match ended {
            Ok(()) => {}
            Err(error) if error.is_interrupt() => {
                result.interrupted = true;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    match format {
        Format::Text => print(out, &report::end(&result, (around.now)()))?,
        Format::Json => print(out, &report::json(tests, &result, around))?,
        Format::Csv => print(out, &report::csv(&result))?,
    }
    Ok(result)
}

fn used(options: &Options, members: &[Member]) -> Result<usize, Error> {
    let count = options.tasks.map_or(members.len(), |count| count as usize);
    if count <= members.len() {
        options.check_size(count as u64)?;
        return Ok(count);
    }
    let error = machine::Error::refused(
        format!("-N {count}"),
        format!("only {} were started", members.len()),
        "start as many with mpirun -np, or as threads of this process with --tasks",
    );
    Err(error.into())
}

pub(super) fn status_output(
    options: &Options,
    tests: &Tests,
    tasks: usize,
) -> Result<Option<Output>, Error> {
    let Some(path) = options.status_file.as_deref().filter(|_| options.write) else {
        return Ok(None);
    };
    let files = files_or_namesakes(tests, tasks, path);
    Ok(Some(Output::new("stoneWallingStatusFile", path, tests.force, &files)?))
}

pub(super) fn status(path: &Path) -> Result<u64, machine::Error> {
    let what = || format!("stoneWallingStatusFile {}", path.display());
    let text = STATUS
        .text(path)
        .map_err(|error| machine::Error::refused(what(), error.to_string(), hint()))?;
    text.trim().parse().map_err(|_| {
        machine::Error::refused(what(), "it is not a number of transfers", "write it with -w -D")
    })
}

pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn points(test: &TestResult, latencies: &[Histogram], facts: &TargetFacts) -> Vec<Point> {
    let options = &test.options;
    let of = |direction: Direction| {
        let samples: Vec<measure::Sample> = (test.phases.iter().zip(latencies))
            .filter(|(phase, _)| phase.direction == direction)
            .map(|(phase, latency)| sample(phase, test.tasks, latency))
            .collect();
        let bytes = samples.iter().map(|sample| sample.bytes).max()?;
        let writes = direction == Direction::Write;
        let workload = Workload {
            read_percent: if writes { 0 } else { 100 },
            pattern: if options.random { Pattern::Random } else { Pattern::Seq },
            request_bytes: test.transfer_bytes as u32,
            threads: test.tasks,
            buffering: match (options.direct, options.fsync_each) {
                (true, true) => Buffering::DirectDsync,
                (true, false) => Buffering::Direct,
                (false, true) => Buffering::BufferedDsync,
                (false, false) => Buffering::Buffered,
            },
            stop: Stop::AfterBytes(bytes),
            seed: options.signature.unwrap_or(1),
            ..Workload::default()
        };
        Some(Point::from_samples(&workload, facts, &samples))
    };
    [Direction::Write, Direction::Read].into_iter().filter_map(of).collect()
}
