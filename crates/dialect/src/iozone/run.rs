use super::{
    Cell, Child, IozoneResult, Measured, Options, Test, Throughput, cliffs, report, surfaces,
};
use crate::concurrent::{self, RequestShape, RunPlan, ToolJob, ToolResult};
use crate::display::print;
use crate::parse::is_twin;
use machine::live::{self, Goal};
use machine::units::show_size;
use machine::{
    Allocation, Buffers, Error, Machine, Nanos, NewFile, Result, TargetFacts, TargetKind,
    TargetSpec,
};
use measure::{Runner, Sample};
use results::{Output, OutputError, Point};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use workload::Workload;

const DEFAULT_FILE: &str = "iozone.tmp";

const REPEATS: u32 = 3;

/// Longer tests are not repeated by default.
const LONG_NS: Nanos = 1_000_000_000;

/// Larger than common processors' caches; `-S` overrides it.
const CACHE_BYTES: u64 = 64 << 20;

/// Prints the original's report to `out` as it progresses, also after the user's interrupt; an
/// early one is an error. Removes the files, unless `-w` keeps them after success.
pub fn run<M: Machine>(
    machine: &M,
    options: &Options,
    began_unix_s: u64,
    out: &mut dyn Write,
) -> Result<IozoneResult> {
    let options = &options.clone().with_clients()?;
    options.check_clients(&machine.facts().name)?;
    check(options)?;
    check_memory(machine, options)?;
    let mut result = IozoneResult {
        command: options.command(),
        cells: Vec::new(),
        throughput: Vec::new(),
        surfaces: Vec::new(),
        cliffs: Vec::new(),
        interrupted: false,
        warnings: Vec::new(),
        target: None,
    };
    if options.throughput() {
        print(out, &banner(machine, options, began_unix_s))?;
        throughput(machine, options, &mut result, out)?;
    } else {
        single(machine, options, began_unix_s, &mut result, out)?;
    }
    result.surfaces = surfaces(&result.cells);
    result.cliffs = cliffs(&result.surfaces, machine.facts().memory_bytes, options.direct);
    result.warnings = warnings(machine, &result);
    if let Some(mount) = &options.uncached {
        let mount = mount.display();
        result.warnings.push(format!(
            "{mount} stays mounted (-U): each test began after its file was dropped from the page cache"
        ));
    }
    if result.interrupted && result.cells.is_empty() && result.throughput.is_empty() {
        return Err(Error::Interrupted);
    }
    print(out, if result.interrupted { report::INTERRUPTED } else { report::COMPLETE })?;
    if options.excel {
        print(out, &report::excel(options, &result))?;
    }
    if let Some(path) = &options.excel_file {
        let sheet = super::spreadsheet(options, &result);
        output("-b", path, options)?.write(&sheet).map_err(unwritten)?;
    }
    print(out, &report::extra(&result))?;
    Ok(result)
}

fn banner<M: Machine>(machine: &M, options: &Options, began_unix_s: u64) -> String {
    report::banner(options, began_unix_s) + &report::machine_line(options, &machine.facts())
}

fn output(option: &str, path: &Path, options: &Options) -> Result<Output> {
    Output::new(option, path, options.force, &files(options)).map_err(unwritten)
}

fn unwritten(error: OutputError) -> Error {
    match error {
        OutputError::Refused { option, path, why, hint } => {
            Error::refused(format!("{option} {}", path.display()), why, hint)
        }
        OutputError::Io { path, source } => Error::io("cannot write", &path)(source),
        moved @ OutputError::Moved { .. } => Error::Unsupported(moved.to_string()),
    }
}

fn check(options: &Options) -> Result<()> {
    // Find an unwritable output before the run, not after it.
    options.excel_file.iter().try_for_each(|path| output("-b", path, options).map(drop))?;
    if options.latency_files {
        let mut names = options.passes().into_iter().filter_map(latency_file);
        names.try_for_each(|name| output("-Q", Path::new(name), options).map(drop))?;
    }
    let files: Vec<PathBuf> = files(options);
    if let Some(stray) = options.destroy.iter().find(|named| !files.contains(named)) {
        return Err(Error::refused(
            stray.display().to_string(),
            "it is named for destruction but is not a test file",
            "name the same file with -f or -F",
        ));
    }
    if options.verify.is_some() && !options.passes().first().is_some_and(|test| test.creates()) {
        return Err(Error::refused(
            "-V",
            "the file must be written before it can be checked",
            "add -i 0",
        ));
    }
    Ok(())
}

fn check_memory<M: Machine>(machine: &M, options: &Options) -> Result<()> {
    let children = if options.throughput() {
        options.child_counts().into_iter().max().unwrap_or(1)
    } else {
        1
    };
    let of_a_test = |cell, test| {
        let one = options.workload(cell, test, false).buffers();
        vec![Buffers { streams: one.streams.saturating_mul(children), ..one }]
    };
    let passes = options.passes();
    let cells = options.cells();
    let groups =
        cells.iter().flat_map(|cell| passes.iter().map(move |test| of_a_test(*cell, *test)));
    measure::check_memory(machine, &groups.collect::<Vec<_>>())
}

/// The test file, or one per child of the throughput mode.
pub fn files(options: &Options) -> Vec<PathBuf> {
    let max = options.child_counts().into_iter().max().unwrap_or(0) as usize;
    if !options.throughput() {
        return vec![options.file.clone().unwrap_or_else(|| DEFAULT_FILE.into())];
    }
    if !options.clients.is_empty() {
        return options.client_files();
    }
    if !options.process_files.is_empty() {
        return options.process_files.clone();
    }
    if let Some(twin) = options.file.as_ref().filter(|path| is_twin(path)) {
        let twin = twin.to_string_lossy();
        let joint = if twin.contains('#') { '.' } else { '#' };
        return (0..max).map(|child| format!("{twin}{joint}{child}").into()).collect();
    }
    // The children's files also go into a directory given with -f.
    let base = match &options.file {
        Some(path) if path.is_dir() => path.join("iozone").display().to_string(),
        Some(path) => path.display().to_string(),
        None => "iozone".into(),
    };
    (0..max).map(|child| format!("{base}.DUMMY.{child}").into()).collect()
}

fn open<'m, M: Machine>(
    machine: &'m M,
    options: &Options,
    paths: &[PathBuf],
    bytes: u64,
) -> Result<Runner<'m, M>> {
    let specs: Vec<TargetSpec> = paths.iter().map(|path| spec(options, path, bytes)).collect();
    let writes = options.passes().iter().any(|test| test.writes());
    Runner::open_checked(machine, &specs, |facts| {
        facts.iter().try_for_each(|facts| check_file(facts, bytes, writes))?;
        // Memory was checked for all files, before the first is made.
        Ok(Vec::new())
    })
}

fn spec(options: &Options, path: &Path, bytes: u64) -> TargetSpec {
    let passes = options.passes();
    let writes_first = passes.first().is_some_and(|test| test.creates());
    TargetSpec {
        places: vec![path.into()],
        size: Some(bytes),
        destroy: options.destroy.iter().filter(|named| *named == path).cloned().collect(),
        destroy_signed: options.destroy_signed,
        seed: options.seed.unwrap_or(1),
        create: true,
        new_file: if writes_first && !options.mmap { NewFile::Empty } else { NewFile::Filled },
        ..TargetSpec::default()
    }
}

fn check_file(facts: &TargetFacts, bytes: u64, writes: bool) -> Result<()> {
    let hint = "name it again with --destroy-data to write it, choose tests that read (-i 1 -i 3 -i 5), or name another file";
    measure::check_writable(facts, writes, hint)?;
    if facts.size_bytes < bytes {
        let why = format!("it has only {} of {}", show_size(facts.size_bytes), show_size(bytes));
        return Err(Error::refused(&facts.name, why, "choose a smaller -s or -g"));
    }
    Ok(())
}

fn job<'t, M: Machine>(
    options: &Options,
    (runner, file): (&'t Runner<'_, M>, usize),
    cell: Cell,
    test: Test,
    child: Option<(u32, u32)>,
) -> ToolJob<'t, M::Target> {
    let mut workload = options.workload(
        cell,
        test,
        child.is_some_and(|(child, count)| options.reads_in_mix(child, count)),
    );
    if let Some(instead) = workload.engine.replacement(&runner.machine().capabilities().engines) {
        workload.engine = instead;
    }
    if !matches!(runner.facts()[file].kind, TargetKind::TestFile | TargetKind::Simulated) {
        // Existing content is overwritten in place.
        workload.allocation = Allocation::Written;
    }
    let shape = RequestShape {
        pattern: options.verify.map(|byte| u64::from_le_bytes([byte; 8])),
        log: options.latency_files && latency_file(test).is_some(),
        ..RequestShape::default()
    };
    let processors = options
        .bind
        .map(|first| first + child.map_or(0, |(number, _)| number))
        .into_iter()
        .collect();
    ToolJob { target: &runner.targets()[file], workload, shape, processors }
}

fn plan(options: &Options, stonewall: bool) -> RunPlan {
    RunPlan {
        stonewall,
        rest_ns: u64::from(options.rest_s.unwrap_or(0)) * 1_000_000_000,
        ..RunPlan::default()
    }
}

fn purge(options: &Options) {
    if options.purge {
        let mut memory = vec![1u8; options.cache_bytes.unwrap_or(CACHE_BYTES) as usize];
        let line = options.line_bytes.unwrap_or(32) as usize;
        memory.iter_mut().step_by(line).for_each(|byte| *byte = byte.wrapping_add(1));
        std::hint::black_box(&memory);
    }
}

fn repeat(
    options: &Options,
    tests: usize,
    mut run: impl FnMut(usize) -> Result<Nanos>,
) -> Result<()> {
    measure::rounds(tests, options.repeats.unwrap_or(REPEATS), |test| {
        let took_ns = run(test)?;
        Ok(options.repeats.is_some() || took_ns <= LONG_NS)
    })
}

fn time_of(ran: &ToolResult) -> Nanos {
    ran.span.1.saturating_sub(ran.span.0) + ran.sample.usage.sync_ns.unwrap_or(0)
}

fn single<M: Machine>(
    machine: &M,
    options: &Options,
    began_unix_s: u64,
    result: &mut IozoneResult,
    out: &mut dyn Write,
) -> Result<()> {
    let cells = options.cells();
    let Some(bytes) = cells.iter().map(|cell| cell.file_bytes).max() else {
        return Err(Error::refused(
            "the sizes",
            "no record fits into a file",
            "use smaller records or larger files",
        ));
    };
    let mut runner = open(machine, options, &files(options)[..1], bytes)?;
    result.target = Some(runner.facts()[0].clone());
    print(out, &(banner(machine, options, began_unix_s) + &report::header(options)))?;
    let mut logs = Logs::new();
    let all = cells.iter().map(|cell| cell.file_bytes).sum::<u64>();
    let mut done = 0;
    let _work = live::WORK.begin(String::new(), Goal::Bytes(all));
    for cell in cells {
        show_work(options, cell, done, all);
        done += cell.file_bytes;
        let (measured, interrupted) = one_cell(options, &runner, cell, &mut logs)?;
        if !measured.is_empty() {
            print(out, &report::row(options, cell, &measured))?;
        }
        result.cells.extend(measured);
        result.interrupted = interrupted;
        if interrupted {
            break;
        }
    }
    runner.keep(|_| options.keep && !result.interrupted);
    logs.iter().try_for_each(|(name, text)| {
        output("-Q", Path::new(name), options)?.write(text.as_bytes()).map_err(unwritten)
    })
}

fn show_work(options: &Options, cell: Cell, done: u64, all: u64) {
    let (file, record) = (show_size(cell.file_bytes), show_size(cell.record_bytes));
    let bytes = cell.file_bytes.saturating_mul(options.passes().len() as u64);
    let share = |bytes: u64| bytes as f64 / all.max(1) as f64;
    live::WORK.step(
        format!("a file of {file} in records of {record}"),
        Goal::Bytes(bytes),
        share(done)..share(done + cell.file_bytes),
    );
}

/// `true`: the user interrupted the cell.
fn one_cell<M: Machine>(
    options: &Options,
    runner: &Runner<'_, M>,
    cell: Cell,
    logs: &mut Logs,
) -> Result<(Vec<Measured>, bool)> {
    let passes = options.passes();
    let mut runs: Vec<Vec<(Nanos, Sample)>> = passes.iter().map(|_| Vec::new()).collect();
    let mut jobs: Vec<Workload> = Vec::new();
    let ended = repeat(options, passes.len(), |index| {
        let test = passes[index];
        purge(options);
        let job = job(options, (runner, 0), cell, test, None);
        if runs[index].is_empty() {
            jobs.push(job.workload.clone());
        }
        let ran = concurrent::run(runner.machine(), &[job], plan(options, false))?.remove(0);
        if runs[index].is_empty() {
            log(options, test, cell, &ran, logs);
        }
        let (took_ns, interrupted) = (time_of(&ran), ran.is_interrupted());
        // Whole runs say more than a part of one.
        if !interrupted || runs[index].is_empty() {
            runs[index].push((took_ns, ran.sample));
        }
        if interrupted { Err(Error::Interrupted) } else { Ok(took_ns) }
    });
    let interrupted = is_interrupted(ended)?;
    let figures = passes.iter().zip(runs).zip(jobs).filter(|((_, runs), _)| !runs.is_empty());
    let measured = figures
        .map(|((test, runs), workload)| measured(cell, *test, &workload, &runner.facts()[0], runs));
    Ok((measured.collect(), interrupted))
}

fn is_interrupted(ended: Result<()>) -> Result<bool> {
    match ended {
        Ok(()) => Ok(false),
        Err(Error::Interrupted) => Ok(true),
        Err(error) => Err(error),
    }
}

fn measured(
    cell: Cell,
    test: Test,
    workload: &Workload,
    facts: &TargetFacts,
    runs: Vec<(Nanos, Sample)>,
) -> Measured {
    let request = u64::from(workload.request_bytes);
    let rates: Vec<f64> = runs
        .iter()
        .map(|(ns, sample)| (sample.requests * request) as f64 * 1e9 / (*ns).max(1) as f64)
        .collect();
    let cpu: u64 =
        runs.iter().map(|(_, sample)| sample.usage.cpu.user_ns + sample.usage.cpu.system_ns).sum();
    let elapsed: u64 = runs.iter().map(|(ns, _)| *ns).sum();
    let samples: Vec<Sample> = runs.into_iter().map(|(_, sample)| sample).collect();
    let mut measured = Measured {
        cell,
        test,
        runs_bytes_per_s: rates,
        operations_per_s: 0.0,
        cpu_percent: cpu as f64 / elapsed.max(1) as f64 * 100.0,
        point: Point::from_samples(workload, facts, &samples),
    };
    // Operations count the program's records, even if standard I/O combines them.
    measured.operations_per_s = measured.rate() / cell.record_bytes as f64;
    measured
}

fn latency_file(test: Test) -> Option<&'static str> {
    match test {
        Test::Write => Some("wol.dat"),
        Test::Rewrite => Some("rwol.dat"),
        Test::Read => Some("rol.dat"),
        Test::Reread => Some("rrol.dat"),
        _ => None,
    }
}

type Logs = BTreeMap<&'static str, String>;

fn log(options: &Options, test: Test, cell: Cell, ran: &ToolResult, logs: &mut Logs) {
    let Some(name) = latency_file(test).filter(|_| options.latency_files) else { return };
    let text = logs.entry(name).or_default();
    *text += "  Offset in Kbytes   Latency in microseconds  Transfer size in bytes\n";
    for (offset, latency) in ran.streams.iter().flat_map(|stream| &stream.trace.log) {
        *text += &format!(
            "{:>18} {:>25.2} {:>23}\n",
            offset / 1024,
            *latency as f64 / 1e3,
            cell.record_bytes
        );
    }
}

fn throughput<M: Machine>(
    machine: &M,
    options: &Options,
    result: &mut IozoneResult,
    out: &mut dyn Write,
) -> Result<()> {
    let paths = files(options);
    let (cells, counts) = (options.cells(), options.child_counts());
    let bytes = |cell: &Cell, count: u32| cell.file_bytes.saturating_mul(u64::from(count));
    let all = cells.iter().flat_map(|cell| counts.iter().map(move |&count| bytes(cell, count)));
    let (all, mut done) = (all.sum::<u64>(), 0);
    let _work = live::WORK.begin(String::new(), Goal::Bytes(all));
    for &cell in &cells {
        for &count in &counts {
            show_work(options, Cell { file_bytes: bytes(&cell, count), ..cell }, done, all);
            done += bytes(&cell, count);
            if result.interrupted {
                return Ok(());
            }
            print(out, &report::throughput_intro(options, cell, count))?;
            let mut runner = open(machine, options, &paths[..count as usize], cell.file_bytes)?;
            result.target.get_or_insert_with(|| runner.facts()[0].clone());
            for test in options.passes() {
                let (one, interrupted) = side_by_side(options, &runner, cell, test)?;
                if let Some(one) = one {
                    print(out, &report::throughput_block(options, &one))?;
                    result.throughput.push(one);
                }
                result.interrupted = interrupted;
                if interrupted {
                    break;
                }
            }
            // Only at the very end, because a kept file may not be writable again.
            let is_last = Some(&cell) == cells.last() && Some(&count) == counts.last();
            if options.keep && is_last && !result.interrupted {
                runner.keep(|_| true);
            }
            print(out, "\n")?;
        }
    }
    Ok(())
}

/// The median repeat; `true`: the user interrupted it.
fn side_by_side<M: Machine>(
    options: &Options,
    runner: &Runner<'_, M>,
    cell: Cell,
    test: Test,
) -> Result<(Option<Throughput>, bool)> {
    let count = runner.targets().len();
    let jobs: Vec<_> = (0..count)
        .map(|file| job(options, (runner, file), cell, test, Some((file as u32, count as u32))))
        .collect();
    let mut runs: Vec<(f64, Vec<Child>, Nanos, u64)> = Vec::new();
    let mut samples: Vec<Vec<Sample>> = (0..count).map(|_| Vec::new()).collect();
    let ended = repeat(options, 1, |_| {
        purge(options);
        let rans = concurrent::run(
            runner.machine(),
            &jobs,
            plan(options, !options.no_stonewall && count > 1),
        )?;
        let children: Vec<Child> =
            rans.iter().zip(&jobs).map(|(ran, job)| child(ran, &job.workload, cell)).collect();
        let sum = children
            .iter()
            .map(|child| child.bytes as f64 * 1e9 / child.elapsed_ns.max(1) as f64)
            .sum();
        let began = rans.iter().map(|ran| ran.span.0).min().unwrap_or(0);
        let ended = rans
            .iter()
            .zip(&children)
            .map(|(ran, child)| ran.span.0 + child.elapsed_ns)
            .max()
            .unwrap_or(0);
        // The processor meter covers the whole process, so each part has the total.
        let cpu = rans
            .iter()
            .map(|ran| ran.sample.usage.cpu.user_ns + ran.sample.usage.cpu.system_ns)
            .max()
            .unwrap_or(0);
        let took_ns = ended.saturating_sub(began);
        let interrupted = rans.iter().any(ToolResult::is_interrupted);
        if !interrupted || runs.is_empty() {
            runs.push((sum, children, took_ns, cpu));
            rans.into_iter().zip(&mut samples).for_each(|(ran, samples)| samples.push(ran.sample));
        }
        if interrupted { Err(Error::Interrupted) } else { Ok(took_ns) }
    });
    let interrupted = is_interrupted(ended)?;
    if runs.is_empty() {
        return Ok((None, interrupted));
    }
    let rates = runs.iter().map(|run| run.0).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, children, elapsed_ns, cpu_ns) = runs.swap_remove(runs.len() / 2);
    let points = (runner.facts().iter().zip(&jobs).zip(&samples))
        .map(|((facts, job), samples)| Point::from_samples(&job.workload, facts, samples));
    let one = Throughput {
        test,
        children,
        elapsed_ns,
        runs_bytes_per_s: rates,
        cpu_ns,
        points: points.collect(),
    };
    Ok((Some(one), interrupted))
}

fn child(ran: &ToolResult, workload: &Workload, cell: Cell) -> Child {
    // With a stonewall each counts until the first is done, but still finishes its file.
    let (requests, ended) = ran
        .streams
        .first()
        .and_then(|stream| stream.trace.counted)
        .unwrap_or((ran.sample.requests, ran.span.1));
    let bytes = requests * u64::from(workload.request_bytes);
    let elapsed_ns = ended.saturating_sub(ran.span.0) + ran.sample.usage.sync_ns.unwrap_or(0);
    Child { bytes, elapsed_ns, operations: bytes / cell.record_bytes }
}

fn warnings<M: Machine>(machine: &M, result: &IozoneResult) -> Vec<String> {
    let points = || {
        result
            .cells
            .iter()
            .map(|cell| &cell.point)
            .chain(result.throughput.iter().flat_map(|one| &one.points))
    };
    let mut warnings = results::folded_warnings(points());
    warnings.extend(crate::display::fallback(machine, points()));
    warnings.extend(result.target.iter().flat_map(|facts| facts.warnings.clone()));
    warnings
}
