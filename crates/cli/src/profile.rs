//! `halfpower profile`.

mod study;

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use crate::target::results_in;
use application::profile::Profile;
use apptrace::foreign::Trace;
use clap::Args;
use machine::text::printable;
use machine::units::parse_time;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Options of `profile`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// A trace: of `halfpower record`, strace -f -ttt -T, blktrace, fio, or a table of requests
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Compare with a study of the volume: results.json or its directory; a target whose newest
    /// study is in the history, else it is measured now [default: the directory of the file that is
    /// waited for longest]
    #[arg(long, value_name = "STUDY|TARGET", num_args = 0..=1)]
    study: Option<Option<PathBuf>>,
    /// Measure the target of --study now, with requests like the application's
    #[arg(long, requires = "study")]
    now: bool,
    /// Time of this measurement
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "30s", requires = "study")]
    budget: u64,
    /// Also write the profile as a page to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print the profile as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Write the profile as JSON to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn read(arguments: &Arguments) -> Result<Profile, Failure> {
    let path = &arguments.trace;
    let bad = |error: &dyn Display| Failure::Usage(format!("{}: {error}", path.display()));
    match apptrace::foreign::open(path).map_err(|error| bad(&error))? {
        Trace::Halfpower(trace) => {
            application::profile::profile(*trace).map_err(|error| bad(&error))
        }
        Trace::Foreign(_, events) => {
            application::profile::profile_of(events).map_err(|error| bad(&error))
        }
    }
}

pub(crate) fn profile(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.trace;
    let study = arguments.study.iter().flatten().map(|named| results_in(named));
    let inputs: Vec<PathBuf> = study.chain([path.clone()]).collect();
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
    let output = output::optional(context, "--output", arguments.output.as_deref(), &inputs)?;
    let page = output::optional(context, "--html", arguments.html.as_deref(), &inputs)?;
    let mut profile = read(arguments)?;
    if let Some(named) = &arguments.study {
        let study = study::of(context, arguments, named.as_deref(), &profile)?;
        profile.verdict = Some(application::verdict::verdict(&profile, &study));
    }
    let json = || output::json(serde_json::to_string_pretty(&profile)).map(|text| text + "\n");
    if let Some(file) = &output {
        output::save(file, &json()?)?;
    }
    if let Some(file) = &page {
        let name = printable(&path.to_string_lossy());
        let text = report::profile::html(&profile, &name, &crate::context::program())
            .map_err(|error| Failure::Run(format!("cannot draw the profile: {error}")))?;
        output::save(file, &text)?;
    }
    if arguments.json {
        return context.console.print(&json()?);
    }
    let verdict = profile
        .verdict
        .as_ref()
        .map(|verdict| report::profile::terminal(verdict, output::width(), output::colour()));
    context.console.print(&(profile.text() + &verdict.unwrap_or_default()))
}
