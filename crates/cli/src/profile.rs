//! `halfpower profile`: what a recorded program asks of storage, by file and role.

use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use apptrace::foreign::Trace;
use clap::Args;
use std::fmt::Display;
use std::path::PathBuf;

/// Options of `profile`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// A trace: of `halfpower record`, strace -f -ttt -T, blktrace, fio, or a table of requests
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Print the profile as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Write the profile as JSON to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn profile(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.trace;
    let bad = |error: &dyn Display| Failure::Usage(format!("{}: {error}", path.display()));
    let output = output::optional(context, "--output", arguments.output.as_deref(), &[path])?;
    let profile = match apptrace::foreign::open(path).map_err(|error| bad(&error))? {
        Trace::Halfpower(trace) => {
            application::profile::profile(*trace).map_err(|error| bad(&error))?
        }
        Trace::Foreign(_, events) => {
            application::profile::profile_of(events).map_err(|error| bad(&error))?
        }
    };
    let json = || output::json(serde_json::to_string_pretty(&profile)).map(|text| text + "\n");
    if let Some(file) = &output {
        output::save(file, &json()?)?;
    }
    output::print(&if arguments.json { json()? } else { profile.text() })
}
