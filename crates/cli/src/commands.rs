use crate::arguments::{PointArguments, ReportArguments, StudyArguments, ToolArguments};
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::{self, Mode};
use crate::{
    check, compare, fio, history, metadata, plan, points, postmark, profile, pts, record, replay,
    shell, stack, studies, tasks, tools, trace, tune, twin, verify,
};
use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;
use workload::Workload;

/// Measures how fast storage really is, why it is not faster, and what to change
#[derive(Parser)]
#[command(name = "halfpower", version, max_term_width = 120)]
pub(crate) struct Cli {
    /// Replace output files that halfpower did not make
    #[arg(long, global = true, help_heading = "Files", hide_short_help = true)]
    pub(crate) force: bool,
    /// Do not keep the result in the history
    #[arg(
        long,
        global = true,
        conflicts_with = "history",
        help_heading = "Files",
        hide_short_help = true
    )]
    pub(crate) no_history: bool,
    /// File of the history
    /// [default: $HALFPOWER_HISTORY, else halfpower/history.sqlite in $XDG_DATA_HOME or
    /// ~/.local/share; without a home, history.sqlite in $HALFPOWER_STATE or /var/lib/halfpower]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Files",
        hide_short_help = true
    )]
    pub(crate) history: Option<PathBuf>,
    /// Show what is going on, on standard error: a bar, or a plain line every 10 s
    /// [default: a bar on a terminal, else lines]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "auto|bar|lines|none",
        hide_possible_values = true,
        hide_default_value = true,
        default_value = "auto",
        help_heading = "Files",
        hide_short_help = true
    )]
    pub(crate) progress: Mode,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Command {
    fn measures(&self) -> bool {
        !matches!(
            self,
            Command::History(_) | Command::Report(_) | Command::Completions(_) | Command::Man(_)
        )
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run every experiment that suits the target and the time, and give one answer
    #[command(
        after_help = "Examples:\n  halfpower study\n  halfpower study /mnt/data --quick --output data"
    )]
    Study(StudyArguments),
    /// Show every layer under the target, advertised over achieved, and which of them is the limit
    Stack(stack::Arguments),
    /// Measure one workload
    #[command(
        after_help = "Examples:\n  halfpower run . --op write --request 64k --depth 8\n  halfpower run /dev/sdX --pattern random --request 4k --depth 32 --runtime 10s"
    )]
    Run(PointArguments),
    /// Measure every combination of lists of options, in one table
    #[command(
        after_help = "Examples:\n  halfpower sweep . --request 4k,64k,1m --depth 1,8,32\n  halfpower sweep . --pattern random --request 4k --p99 2ms"
    )]
    Sweep(PointArguments),
    /// Compare two results, or measure two arms in turn: did it help?
    #[command(mut_arg("targets", |arg| arg.value_name("RESULT").help("Two results: halfpower's JSON or points.csv, fio's JSON, diskspd's XML, reports of IOzone, PostMark and SQLIO, CSV with named columns (one file may hold both sides)")))]
    Compare(Box<compare::Arguments>),
    /// Try the settings that could matter, interleaved with the current ones, then restore
    /// everything: which is worth changing?
    Tune(Box<tune::Arguments>),
    /// Run a test of SNIA's Solid State Storage Performance Test Specification: purge,
    /// preconditioning, rounds to steady state, report
    #[command(
        after_help = "Examples:\n  halfpower pts iops --dry-run --capacity 4TB\n  halfpower pts iops /dev/sdX --destroy-data /dev/sdX\n  halfpower pts wsat twin:nvme-qlc --scale 100"
    )]
    Pts(Box<pts::Arguments>),
    /// Repeat a few points of the target's last result in the history: is it still as fast?
    Check(check::Arguments),
    /// Show everything measured so far: a list, an entry, trends
    History(history::Arguments),
    /// Record what a program asks of storage: every read, write and sync, by thread and file
    #[command(
        after_help = "Examples:\n  halfpower record -- sqlite3 app.db 'vacuum'\n  halfpower record --pid 1234 --for 60s -o database.hptrace"
    )]
    Record(record::Arguments),
    /// Describe a recording: the requests, syncs and waiting of each file, and what it is for
    #[command(
        after_help = "Examples:\n  halfpower profile app.hptrace\n  halfpower profile app.hptrace --json"
    )]
    Profile(profile::Arguments),
    /// Read back what `run --verify --verify-log LOG` wrote, even if that run was killed, and check
    /// it
    #[command(mut_args(|arg| match arg.get_id().as_str() {
        "targets" => arg.help("The file, or the devices, that the run wrote; the file of a run in a directory is gone"),
        // Nothing is written.
        "max_written" | "destroy_data" | "destroy_signature" => arg.hide(true),
        _ => arg,
    }))]
    Verify(verify::Arguments),
    /// Make a report from results.json, or from the report of another tool
    Report(ReportArguments),
    /// Run an IOzone command line: file sizes against record sizes
    #[command(disable_help_flag = true)]
    Iozone(ToolArguments),
    /// Run a SQLIO command line: requests as a database makes them, and the published alignment
    /// study
    #[command(disable_help_flag = true)]
    Sqlio(ToolArguments),
    /// Run a diskspd command line: many kinds of load on files and devices
    #[command(disable_help_flag = true)]
    Diskspd(ToolArguments),
    /// Run fio jobs and job files
    #[command(disable_help_flag = true)]
    Fio(ToolArguments),
    /// Run an IOR command line: many tasks write and read files together
    #[command(disable_help_flag = true)]
    Ior(ToolArguments),
    /// Run an mdtest command line: many tasks create, stat, read and remove files
    #[command(disable_help_flag = true)]
    Mdtest(ToolArguments),
    /// Run PostMark commands from a file, a prompt or a pipe: small files as mail and web servers
    /// use them
    Postmark(postmark::Arguments),
    /// Measure creating, opening, renaming, listing and deleting many files
    Metadata(metadata::Arguments),
    /// Ask a recorded application's requests again, on files made for it: how long do they take
    /// here?
    #[command(
        after_help = "Examples:\n  halfpower replay app.hptrace /mnt/data\n  halfpower replay app.strace twin:cloud --as-fast-as-possible\n  halfpower replay app.hptrace --dry-run"
    )]
    Replay(replay::Arguments),
    /// Predict a recorded application's time and latencies on other volumes
    #[command(
        after_help = "Examples:\n  halfpower plan app.hptrace --on gp3,io2,iops=10000,twin:nvme\n  halfpower plan app.hptrace --on gp3,gp2,size=500g --p99 log-sync=2ms --prices mine.toml"
    )]
    Plan(plan::Arguments),
    /// Convert a trace of an application or a device: to halfpower's format, a fio log, a fio job
    #[command(
        after_help = "Examples:\n  halfpower trace convert app.strace -o app.hptrace\n  halfpower trace convert app.hptrace --to fio-job -o app.fio"
    )]
    Trace(trace::Arguments),
    /// List, check, change and fit simulated machines
    Twin(twin::Arguments),
    /// Print the completion script of a shell
    #[command(hide = true)]
    Completions(shell::CompletionsArguments),
    /// Write the manual pages
    #[command(hide = true)]
    Man(shell::ManArguments),
}

impl Cli {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let mode = match &self.command {
            // Its lines are the progress.
            Command::Run(arguments) if arguments.live => Mode::None,
            // The terminal is the command's.
            Command::Record(_) => Mode::None,
            // Scripts take anything on fio's standard error for a failure.
            Command::Fio(_) => match progress::mode(self.progress, std::env::args_os()) {
                Mode::Auto => Mode::Bar,
                asked => asked,
            },
            _ => progress::mode(self.progress, std::env::args_os()),
        };
        let _display = self.command.measures().then(|| context.console.display(mode));
        match self.command {
            Command::Study(arguments) => studies::study(context, &arguments),
            Command::Stack(arguments) => stack::stack(context, &arguments),
            Command::Report(arguments) => studies::report(context, &arguments),
            Command::Run(arguments) => points::run(context, &arguments),
            Command::Sweep(arguments) => points::sweep(context, &arguments),
            Command::Pts(arguments) => pts::pts(context, &arguments),
            Command::Compare(arguments) => compare::compare(context, &arguments),
            Command::Tune(arguments) => tune::tune(context, &arguments),
            Command::Check(arguments) => check::check(context, &arguments),
            Command::History(arguments) => history::history(context, &arguments),
            Command::Record(arguments) => record::record(context, &arguments),
            Command::Profile(arguments) => profile::profile(context, &arguments),
            Command::Verify(arguments) => verify::verify(context, &arguments),
            Command::Iozone(arguments) => tools::iozone(context.clone(), &arguments.words),
            Command::Sqlio(arguments) => tools::sqlio(context.clone(), &arguments.words),
            Command::Diskspd(arguments) => tools::diskspd(context.clone(), &arguments.words),
            Command::Fio(arguments) => fio::fio(context.clone(), &arguments.words),
            Command::Ior(arguments) => tasks::ior(context.clone(), &arguments.words, None),
            Command::Mdtest(arguments) => tasks::mdtest(context.clone(), &arguments.words, None),
            Command::Postmark(arguments) => postmark::postmark(context, &arguments),
            Command::Metadata(arguments) => metadata::metadata(context, &arguments),
            Command::Replay(arguments) => replay::replay(context, &arguments),
            Command::Plan(arguments) => plan::plan(context, &arguments),
            Command::Trace(arguments) => trace::trace(context, &arguments),
            Command::Twin(arguments) => twin::twin(context, &arguments),
            Command::Completions(arguments) => shell::completions(context, &arguments),
            Command::Man(arguments) => shell::man(context, &arguments, Cli::command()),
        }
    }
}

pub fn workloads(words: &[String]) -> Result<Vec<Workload>, String> {
    let cli = Cli::try_parse_from(words).map_err(|error| error.render().to_string())?;
    let (Command::Run(arguments) | Command::Sweep(arguments)) = cli.command else {
        return Err("this command has no workloads".into());
    };
    points::check_grid(&arguments).map_err(|failure| format!("{failure:?}"))?;
    Ok(points::grid(&arguments, &machine::Engine::ALL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Allocation, Buffering, CacheState, Engine, Hint, Memory, Reap};
    use proptest::prelude::*;
    use proptest::{option, sample::select};
    use workload::{ClientFiles, Data, Pattern, Stop};

    fn patterns() -> impl Strategy<Value = Pattern> {
        prop_oneof![
            select(vec![
                Pattern::Seq,
                Pattern::Random,
                Pattern::Uniform,
                Pattern::Backward,
                Pattern::Zipf(1.1),
                Pattern::Pareto(0.2)
            ]),
            (1u64..1 << 40).prop_map(Pattern::Stride),
            (1u32..1000).prop_map(Pattern::Columns),
            (1u8..100, 1u8..100).prop_map(|(hot_percent, access_percent)| Pattern::HotCold {
                hot_percent,
                access_percent
            }),
            (1.0..50.0, 0.0..100.0, any::<bool>()).prop_map(
                |(deviation_percent, center_percent, scattered)| {
                    Pattern::Normal { deviation_percent, center_percent, scattered }
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn options_of_a_workload_parse_back(
            (read_percent, pattern, request_bytes, depth, threads) in (0u8..=100, patterns(), 1u32..=1 << 30, 1u32..1000, 1u32..100),
            (engine, buffering, hint, memory, allocation, cache) in (
                select(&Engine::ALL),
                select(vec![Buffering::Direct, Buffering::Buffered, Buffering::DirectDsync, Buffering::BufferedDsync]),
                select(&Hint::ALL), select(&Memory::ALL), select(&Allocation::ALL), select(&CacheState::ALL)),
            (offset_bytes, region_start_bytes, region_bytes, bytes, limit_bytes) in
                (0u64..1 << 40, 0u64..1 << 40, option::of(1u64..1 << 50), option::of(1u64..1 << 50), option::of(1u64..1 << 50)),
            (rate_iops, think_ns, sync_at_end, seed, reap) in (
                option::of(1.0..1e6), 0u64..1_000_000_000, any::<bool>(), any::<u64>(),
                prop_oneof![Just(Reap::Auto), Just(Reap::Poll), (1u32..100).prop_map(Reap::AtLeast)]),
            (compressible_percent, duplicate_percent, verify) in (0u8..=100, 0u8..=100, any::<bool>()),
        ) {
            let stop = bytes.map_or(Workload::default().stop, Stop::AfterBytes);
            let data = Data { compressible_percent, duplicate_percent, verify, ..Data::default() };
            let workload = Workload {
                read_percent, pattern, request_bytes, depth, threads, clients: None, client_files: ClientFiles::Own, engine, buffering, hint, memory, allocation, cache, offset_bytes,
                region_start_bytes, region_bytes, stop, limit_bytes, rate_iops, think_ns, reap, sync_at_end, data, seed,
                sizes: None, align_bytes: None, load: Vec::new(), latency_window_ns: None,
            };
            let line = format!("halfpower run {}", workload.options());
            let Command::Run(arguments) = Cli::try_parse_from(line.split(' '))?.command else { unreachable!() };
            prop_assert_eq!(points::grid(&arguments, &Engine::ALL), [workload]);
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
