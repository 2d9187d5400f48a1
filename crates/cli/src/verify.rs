//! `run --verify` and `halfpower verify`.

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::target::{TargetArguments, Where, resolve};
use clap::Args;
use files::Input;
use files::{Directory, parent};
use machine::text::printable_lines;
use machine::{
    Access, Allocation, Buffering, CacheState, Engine, Hint, Machine, Memory, Reap, TargetKind,
    TargetSpec,
};
use measure::{Repeats, Runner, Verification, VerifyStats, measure_verified, read_back};
use results::Point;
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use workload::Workload;
use workload::verify::Verifier;

const DEPTH: u32 = 8;

const SHOWN: usize = 10;

/// Options of `verify`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// The log that `run --verify --verify-log LOG` wrote
    log: PathBuf,
    #[command(flatten, next_help_heading = "Target")]
    target: TargetArguments,
    /// Print what was found as JSON on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    log: String,
    log_records: u64,
    target: &'a str,
    #[serde(flatten)]
    found: &'a Verification,
}

pub(crate) fn measured<M: Machine>(
    runner: &mut Runner<'_, M>,
    workload: &Workload,
    repeats: Repeats,
    log: Option<File>,
    on_progress: impl FnMut(usize, usize),
) -> Result<Point, Failure> {
    let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let facts = runner.facts()[0].clone();
    // Each member of a stripe has its own seed.
    let fill_seed =
        (facts.kind != TargetKind::Simulated && facts.members == 1).then_some(workload.seed);
    let how = (run, fill_seed);
    let (measured, found) = measure_verified(runner, workload, repeats, how, log, on_progress)?;
    Ok(Point::of(workload, &facts, &measured).verified(found))
}

/// A log is read one record at a time.
const LOG: Input = Input::new("a log of writes", 1 << 40);

/// Never overwrites a log, the only record of what its run wrote.
pub(crate) fn new_log(path: &Path) -> machine::Result<File> {
    let make = || match path.file_name() {
        Some(name) => Directory::held(parent(path))?.create(name, 0o666),
        None => Err(io::ErrorKind::IsADirectory.into()),
    };
    make().map_err(|error| {
        let hint = "name a new file in a directory that is there";
        machine::Error::refused(
            format!("--verify-log {}", path.display()),
            format!("cannot make this file: {error}"),
            hint,
        )
    })
}

pub(crate) fn judge(found: &Verification) -> Result<(), Failure> {
    match found.fault_count() {
        0 => Ok(()),
        count => {
            let kinds: Vec<String> =
                found.faults.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            let ends = if count == 1 { "" } else { "s" };
            Err(Failure::Run(format!(
                "the data read back is not the data written: {count} fault{ends} ({})",
                kinds.join(", ")
            )))
        }
    }
}

pub(crate) fn verify(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let bad_log = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("{}: {error}", arguments.log.display()))
    };
    let file = LOG.open(&arguments.log).map_err(|error| bad_log(&error))?;
    let (verifier, resumed) =
        Verifier::resume(BufReader::new(file)).map_err(|error| bad_log(&error))?;
    // For a directory, a new file would be created, which cannot hold the run's data.
    let named = match arguments.target.targets.as_slice() {
        [] => Some("no target".into()),
        targets => targets.iter().find(|target| target.is_dir()).map(|directory| {
            format!("{}: a run in a directory removes its file", directory.display())
        }),
    };
    if let Some(named) = named {
        return Err(Failure::Usage(format!(
            "{named}; name the file or device that a run wrote after the log"
        )));
    }
    let (place, spec) = resolve(context, &arguments.target)?;
    let Where::Host(machine) = place else {
        return Err(Failure::Usage(
            "a simulated machine stores no data; name the file or device that the run wrote".into(),
        ));
    };
    let (first, len, block) = verifier.area();
    let mut target = machine.open(&TargetSpec { as_is: true, ..spec })?;
    let facts = machine.target_facts(&target);
    if first + len > facts.size_bytes {
        return Err(Failure::Usage(format!(
            "{}: it is {} bytes long, and the run of {} wrote up to byte {}: name the target that it wrote",
            facts.name,
            facts.size_bytes,
            arguments.log.display(),
            first + len
        )));
    }
    let aligned = |bytes: u64| bytes.is_multiple_of(u64::from(facts.direct_align_bytes.max(1)));
    let direct = facts.direct && aligned(first) && aligned(u64::from(block));
    let engines = machine.capabilities().engines;
    let access = Access {
        engine: Engine::asynchronous(&engines),
        buffering: if direct { Buffering::Direct } else { Buffering::Buffered },
        metadata_sync: false,
        reap: Reap::default(),
        kernel_polls: false,
        hint: Hint::None,
        memory: Memory::Huge,
        allocation: Allocation::Written,
        cache: CacheState::Cold,
        sync_at_end: false,
        region: (first, len),
    };
    let stats = VerifyStats::new(verifier, None).map_err(|error| bad_log(&error))?;
    read_back(&machine, &mut target, &access, DEPTH, &stats)?;
    let found = stats.found();
    if arguments.json {
        let document = Document {
            schema: "halfpower.verification/1",
            log: arguments.log.display().to_string(),
            log_records: resumed.records,
            target: &facts.name,
            found: &found,
        };
        context.console.print(&(output::json(serde_json::to_string_pretty(&document))? + "\n"))?;
    } else {
        let mut text = format!(
            "{}: {} checked against {} records of {}\n",
            facts.name,
            machine::units::show_size(found.checked_bytes),
            resumed.records,
            arguments.log.display()
        );
        found.first_faults.iter().take(SHOWN).for_each(|fault| text += &format!("{fault}\n"));
        if found.fault_count() == 0 {
            text += "the data read back is the data written\n";
        }
        text.extend(found.unjudged().map(|unjudged| unjudged + "\n"));
        context.console.print(&printable_lines(&text))?;
    }
    judge(&found)
}
