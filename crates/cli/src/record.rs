//! `halfpower record`.

use crate::context::Context;
use crate::failure::Failure;
use crate::{interrupt, output};
use apptrace::Summary;
use clap::Args;
use host::record::{RecordError, RecordOptions, Recorder, Subject};
use machine::Nanos;
use machine::units::{parse_time, show_time};
use std::ffi::OsString;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `record`.
#[derive(Args, Clone)]
#[command(group = clap::ArgGroup::new("subject").required(true))]
pub(crate) struct Arguments {
    /// The program to run and record, with its arguments; its exit status becomes halfpower's
    #[arg(last = true, value_name = "COMMAND", group = "subject")]
    command: Vec<OsString>,
    /// Record a running process, with all its threads and children
    #[arg(long, value_name = "N", group = "subject")]
    pid: Option<u32>,
    /// Record all processes of a control group
    #[arg(long, value_name = "PATH", group = "subject")]
    cgroup: Option<PathBuf>,
    /// Record what reaches a block device, whoever asks it; ends with --for or Ctrl-C
    #[arg(long, value_name = "DEV", group = "subject")]
    device: Option<PathBuf>,
    /// End the recording after this time; a command runs on
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    at_most: Option<Nanos>,
    /// Write the trace to this file
    #[arg(short, long, value_name = "FILE", default_value = "app.hptrace")]
    output: PathBuf,
    /// Replace the names of files and threads by hashes with a key that is thrown away
    #[arg(long)]
    anonymous: bool,
}

impl Arguments {
    fn subject(&self) -> Subject {
        match (self.pid, &self.cgroup) {
            (Some(process), _) => Subject::Process(process),
            (_, Some(group)) => Subject::ControlGroup(group.clone()),
            _ => match &self.device {
                Some(device) => Subject::Device(device.clone()),
                None => Subject::Command(self.command.clone()),
            },
        }
    }

    /// The program, and files among its arguments.
    fn files(&self) -> Vec<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = self.command.first().filter(|name| !name.as_encoded_bytes().contains(&b'/'));
        let found = program.into_iter().flat_map(|name| {
            std::env::split_paths(&path).map(|directory| directory.join(name)).collect::<Vec<_>>()
        });
        let named = self.command.iter().skip(program.iter().len()).map(PathBuf::from);
        found.chain(named).filter(|file| file.is_file()).collect()
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        let message = error.to_string();
        if error.is_usage() { Failure::Usage(message) } else { Failure::Run(message) }
    }
}

pub(crate) fn record(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let files = arguments.files();
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let output = output::output(context, "--output", &arguments.output, &files)?;
    let stop = interrupt::flag();
    let recorder = Recorder::new(&arguments.subject())?;
    let mut file = output.grow()?;
    let options = RecordOptions {
        at_most: arguments.at_most.map(Duration::from_nanos),
        anonymous: arguments.anonymous,
        source: format!("halfpower {}", env!("CARGO_PKG_VERSION")),
    };
    let summary = match recorder.record(BufWriter::new(&mut file), &options, stop) {
        Ok(summary) => summary,
        Err(error) => {
            // A refusal leaves nothing; a trace that ends early can be read.
            if error.is_usage() {
                file.discard();
            }
            return Err(error.into());
        }
    };
    file.finish()?;
    context.console.tell(&sentence(&summary, output.path()));
    if summary.lost > 0 {
        context.console.tell(&format!(
            "{} events were lost: rates and counts of this trace are too low; record fewer processes at once",
            summary.lost
        ));
    }
    match summary.exit_status {
        None | Some(0) => Ok(()),
        Some(status) => {
            context.console.tell(&format!("the command ended with exit status {status}"));
            Err(Failure::Printed(u8::try_from(status).unwrap_or(1)))
        }
    }
}

fn sentence(summary: &Summary, path: &Path) -> String {
    let Summary { requests, elapsed_ns, recorder_cpu_ns, .. } = *summary;
    let cost = recorder_cpu_ns.map_or(String::new(), |cpu| {
        let share = cpu as f64 / (elapsed_ns.max(1)) as f64 * 100.0;
        let each = show_time(cpu as f64 / requests.max(1) as f64);
        format!("; the recorder used {share:.1} % of a processor, {each} per request")
    });
    format!(
        "{}: {requests} requests of the program and of its devices in {}{cost}",
        path.display(),
        show_time(elapsed_ns as f64)
    )
}
