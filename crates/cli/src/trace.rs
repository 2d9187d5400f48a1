use crate::arguments::choices;
use crate::context::Context;
use crate::failure::Failure;
use crate::output;
use application::replay::{Script, fio_job, fio_log};
use apptrace::{Event, Header, Summary, TraceWriter};
use clap::{Args, Subcommand};
use machine::text::printable;
use std::path::{Path, PathBuf};

/// Options of `trace`.
#[derive(Args, Clone)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone)]
enum Command {
    /// Read a trace of any known format and write it in another
    Convert(Convert),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Hptrace,
    FioLog,
    FioJob,
}

impl To {
    const ALL: [To; 3] = [To::Hptrace, To::FioLog, To::FioJob];

    fn name(self) -> &'static str {
        match self {
            To::Hptrace => "hptrace",
            To::FioLog => "fio-log",
            To::FioJob => "fio-job",
        }
    }
}

#[derive(Args, Clone)]
struct Convert {
    /// The trace to read; its content shows the format
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// What to write: halfpower's format, a log for fio's read_iolog, or a fio job that resembles
    /// the application
    #[arg(long, value_parser = choices(To::ALL, To::name), default_value = "hptrace")]
    to: To,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub(crate) fn trace(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let Command::Convert(convert) = &arguments.command;
    let named =
        |why: String| Failure::Usage(printable(&format!("{}: {why}", convert.trace.display())));
    let (format, events) =
        apptrace::foreign::open(&convert.trace).map_err(|error| named(error.to_string()))?.events();
    let to = output::output(context, "-o", &convert.output, &[&convert.trace as &Path])?;
    let (bytes, requests) = match convert.to {
        To::Hptrace => {
            let header = Header { source: format.name().into(), ..Header::default() };
            let cannot = |error: apptrace::Error| Failure::Run(error.to_string());
            let mut writer = TraceWriter::new(Vec::new(), &header).map_err(cannot)?;
            let (mut last, mut lost) = (0, 0);
            for event in events {
                let event = event.map_err(|error| named(error.to_string()))?;
                match &event {
                    Event::Request(one) => {
                        last = last.max(one.at_ns.saturating_add(one.duration_ns.unwrap_or(0)));
                    }
                    Event::Lost(events) => lost += events,
                    Event::File(_) | Event::Renamed(_) | Event::Thread(_) => {}
                }
                writer.event(&event).map_err(cannot)?;
            }
            let requests = writer.requests();
            if requests == 0 {
                return Err(named("it has no request".into()));
            }
            let summary = Summary { elapsed_ns: last, lost, requests, ..Summary::default() };
            (writer.finish(summary).map_err(cannot)?, requests)
        }
        To::FioLog | To::FioJob => {
            let script = Script::new(events).map_err(|error| named(error.to_string()))?;
            let text = if convert.to == To::FioLog { fio_log(&script) } else { fio_job(&script) };
            (text.into_bytes(), script.requests)
        }
    };
    to.write(&bytes)?;
    context.console.tell(&format!(
        "{} ({}): {requests} requests written to {} as {}",
        convert.trace.display(),
        format.name(),
        convert.output.display(),
        convert.to.name()
    ));
    Ok(())
}
