//! `halfpower replay`.

mod job;
pub(crate) mod shown;

pub(crate) use job::ReplayJob;
pub(crate) use shown::{measurements, text};

use crate::arguments::choices;
use crate::context::Context;
use crate::failure::Failure;
use crate::history::{Measured, REPLAY};
use crate::output;
use crate::target::is_twin;
use crate::terminal::table;
use application::replay::{Layout, Pace, ReplayDocument, Script, Settings};
use clap::Args;
use machine::text::printable;
use machine::units::{plural, show_size_rounded, show_time};
use machine::{CacheState, TargetSpec};
use std::path::{Path, PathBuf};

/// Options of `replay`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// A trace: of `halfpower record`, strace -f -ttt -T, blktrace, fio, or a table of requests
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// A directory (halfpower makes files in it), a block device, several of these (a stripe), or
    /// twin:NAME [default: .]
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    /// Leave out the recorded pauses of each thread
    #[arg(long, conflicts_with = "scale")]
    as_fast_as_possible: bool,
    /// Divide the recorded pauses by this
    #[arg(long, value_name = "FACTOR", value_parser = factor, default_value = "1x")]
    scale: f64,
    /// Requests that each thread may have outstanding [default: as recorded]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: Option<u32>,
    /// Bypass the page cache, in whole blocks of 4 KiB [default: as recorded]
    #[arg(long)]
    direct: bool,
    /// State of the page cache before each run
    #[arg(long, value_parser = choices(CacheState::ALL, CacheState::name), default_value = "cold")]
    cache: CacheState,
    /// Number of runs; from two on there is an interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value_t = 3)]
    repeats: u32,
    /// Allow overwriting this existing file or device; it must also be the target
    #[arg(long, value_name = "NAME")]
    destroy_data: Vec<PathBuf>,
    /// Allow overwriting it even if it holds a file system or a partition table, or if the kernel
    /// does not report whether it is in use
    #[arg(long, hide_short_help = true)]
    destroy_signature: bool,
    /// Show what would be replayed, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON on standard output
    #[arg(long)]
    json: bool,
}

fn factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
    number.filter(|factor| (1e-3..=1e6).contains(factor)).ok_or_else(|| {
        format!("'{text}' is not a factor from 0.001 to 1000000; write 2x for half of the pauses")
    })
}

pub(crate) fn load(trace: &Path) -> Result<(Script, &'static str), Failure> {
    let named = |why: String| Failure::Usage(printable(&format!("{}: {why}", trace.display())));
    let (format, events) =
        apptrace::foreign::open(trace).map_err(|error| named(error.to_string()))?.events();
    let script = Script::new(events).map_err(|error| named(error.to_string()))?;
    Ok((script, format.name()))
}

impl Arguments {
    fn targets(&self) -> Vec<PathBuf> {
        if self.targets.is_empty() { vec![PathBuf::from(".")] } else { self.targets.clone() }
    }

    fn settings(&self) -> Settings {
        Settings {
            pace: if self.as_fast_as_possible {
                Pace::AsFastAsPossible
            } else {
                Pace::Recorded(self.scale)
            },
            depth: self.depth,
            runs: self.repeats,
            cache: self.cache,
        }
    }
}

pub(crate) fn replay(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let job = ReplayJob::new(arguments)?;
    if arguments.dry_run {
        return context.console.print(&plan(&job.script, job.format));
    }
    let document = replayed(context, &job)?;
    if arguments.json {
        return context.console.print(&output::json(
            serde_json::to_string_pretty(&document).map(|text| text + "\n"),
        )?);
    }
    context.console.print(&text(&document))
}

pub(crate) fn replayed(context: &Context, job: &ReplayJob) -> Result<ReplayDocument, Failure> {
    let began_unix_s = crate::history::now_unix_s();
    let runs = job.settings.runs;
    let bar = context.console.bar(u64::from(runs));
    let document = job.run(context, &mut |number| {
        bar.set_message(format!("run {number} of {runs}"));
        bar.set_position(u64::from(number - 1));
    });
    bar.finish_and_clear();
    let document = document?;
    if let Some((machine, target)) = &document.facts {
        let of = Measured {
            kind: REPLAY,
            machine,
            target,
            name: &document.target,
            program: &crate::context::program(),
            began_unix_s,
        };
        let json = output::json(serde_json::to_string(&document))?;
        crate::history::keep_measured(context, &json, &of, measurements(&document));
    }
    Ok(document)
}

pub(crate) fn layout(targets: &[&Path], destroy: &[PathBuf], destroy_signed: bool) -> Layout {
    match targets {
        [place] if is_twin(place) || place.is_dir() => Layout::Files(place.to_path_buf()),
        places => Layout::Regions(TargetSpec {
            places: places.iter().map(|place| place.to_path_buf()).collect(),
            destroy: destroy.to_vec(),
            destroy_signed,
            ..TargetSpec::default()
        }),
    }
}

fn plan(script: &Script, format: &str) -> String {
    let files: Vec<Vec<String>> = script
        .files
        .iter()
        .take(50)
        .map(|file| {
            let bytes = show_size_rounded(file.bytes as f64);
            vec![printable(&file.name), file.role.name().into(), bytes]
        })
        .collect();
    let more = script.files.len().saturating_sub(files.len());
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    let skipped = script.skipped.sentence().map(|text| text + "\n").unwrap_or_default();
    format!(
        "{format}: {} of {} on {} in {}, {} in all\n{}{more}{skipped}",
        plural(script.requests as usize, "request"),
        plural(script.thread_count(), "thread"),
        plural(script.files.len(), "file"),
        show_time(script.recorded_ns as f64),
        show_size_rounded(script.bytes as f64),
        table(&["file", "role", "size"], &files, 2),
    )
}
