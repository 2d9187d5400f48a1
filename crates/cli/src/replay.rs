//! `halfpower replay`: a recorded application's requests, asked again.

use crate::arguments::choices;
use crate::failure::Failure;
use crate::output;
use crate::target::{is_twin, machine_of, on_machine};
use application::replay::{
    ClassResult, Layout, Pace, Quantity, ReplayDocument, ReplayError, Script, Settings,
    replay as run,
};
use clap::Args;
use machine::text::printable;
use machine::units::{show_rate, show_size_rounded, show_time, significant};
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

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Machine(error) => error.into(),
            error => Failure::Usage(error.to_string()),
        }
    }
}

/// Reads a trace of any format; the name of the format with it.
pub(crate) fn load(trace: &Path) -> Result<(Script, &'static str), Failure> {
    let named = |why: String| Failure::Usage(printable(&format!("{}: {why}", trace.display())));
    let (format, events) =
        apptrace::foreign::open(trace).map_err(|error| named(error.to_string()))?.events();
    let script = Script::new(events).map_err(|error| named(error.to_string()))?;
    Ok((script, format.name()))
}

fn layout(arguments: &Arguments) -> Layout {
    match arguments.targets.as_slice() {
        [] => Layout::Files(PathBuf::from(".")),
        [place] if is_twin(place) || place.is_dir() => Layout::Files(place.clone()),
        places => Layout::Regions(TargetSpec {
            places: places.to_vec(),
            destroy: arguments.destroy_data.clone(),
            destroy_signed: arguments.destroy_signature,
            ..TargetSpec::default()
        }),
    }
}

pub(crate) fn replay(arguments: &Arguments) -> Result<(), Failure> {
    let (mut script, format) = load(&arguments.trace)?;
    if arguments.direct {
        script.make_direct();
    }
    if arguments.dry_run {
        return output::print(&plan(&script, format));
    }
    let mut names: Vec<&Path> = arguments.targets.iter().map(PathBuf::as_path).collect();
    if names.is_empty() {
        names.push(Path::new("."));
    }
    let settings = Settings {
        pace: if arguments.as_fast_as_possible {
            Pace::AsFastAsPossible
        } else {
            Pace::Recorded(arguments.scale)
        },
        depth: arguments.depth,
        runs: arguments.repeats,
        cache: arguments.cache,
    };
    let layout = layout(arguments);
    let trace = printable(&arguments.trace.to_string_lossy());
    let bar = crate::progress::bar(u64::from(settings.runs));
    let document = on_machine!(machine_of(&names)?, |machine| {
        run(&machine, &script, (&trace, format), &layout, &settings, &mut |number| {
            bar.set_message(format!("run {number} of {}", settings.runs));
            bar.set_position(u64::from(number - 1));
        })
    });
    bar.finish_and_clear();
    let document = document?;
    if arguments.json {
        return output::print(&output::json(
            serde_json::to_string_pretty(&document).map(|text| text + "\n"),
        )?);
    }
    output::print(&text(&document))
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
        "{format}: {} requests of {} threads on {} files in {}, {} in all\n{}{more}{skipped}",
        script.requests,
        script.thread_count(),
        script.files.len(),
        show_time(script.recorded_ns as f64),
        show_size_rounded(script.bytes as f64),
        table(&["file", "role", "size"], &files, 2),
    )
}

fn table(head: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    report::terminal::table(&head, rows, left, output::width(), output::colour())
}

fn seconds(quantity: &Quantity) -> String {
    let interval = quantity.interval_95.map(|[low, high]| {
        format!(" (95 %: {} to {})", show_time(low * 1e9), show_time(high * 1e9))
    });
    show_time(quantity.mean * 1e9) + &interval.unwrap_or_default()
}

fn text(document: &ReplayDocument) -> String {
    let row = |one: &ClassResult| {
        let time = |ns: Option<u64>| ns.map_or_else(String::new, |ns| show_time(ns as f64));
        let (here, then) = (one.latency, one.recorded_latency);
        vec![
            one.class.to_string(),
            one.requests.to_string(),
            show_size_rounded(one.bytes as f64),
            time(here.map(|one| one.p50_ns)),
            time(here.map(|one| one.p99_ns)),
            time(then.map(|one| one.p50_ns)),
            time(then.map(|one| one.p99_ns)),
        ]
    };
    let head = ["requests", "number", "bytes", "p50", "p99", "recorded p50", "recorded p99"];
    let rows: Vec<Vec<String>> = document.classes.iter().map(row).collect();
    let ratio = document.elapsed_s.mean / document.recorded_s;
    let against = if document.recorded_s > 0.0 {
        let recorded = show_time(document.recorded_s * 1e9);
        format!(", {} times the recorded {recorded}", significant(ratio, 3))
    } else {
        String::new()
    };
    let rates = match (&document.requests_per_s, &document.throughput_bytes_per_s) {
        (Some(requests), Some(bytes)) => {
            format!("{} requests/s, {}\n", significant(requests.mean, 3), show_rate(bytes.mean))
        }
        _ => String::new(),
    };
    let pace = match document.speed {
        None => ", without pauses".to_owned(),
        Some(1.0) => String::new(),
        Some(speed) => format!(", pauses divided by {speed}"),
    };
    let simulated = if document.simulated { " (simulated: a prediction)" } else { "" };
    let mut text = format!(
        "{} on {}{simulated}: {}{against}{pace}\n{rates}{}",
        document.trace,
        printable(&document.target),
        seconds(&document.elapsed_s),
        table(&head, &rows, 1)
    );
    for line in document.skipped.sentence().iter().chain(&document.warnings) {
        text += &format!("{}\n", printable(line));
    }
    text
}
