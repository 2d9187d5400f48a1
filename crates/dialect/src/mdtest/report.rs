//! mdtest's report.

use super::options::Options;
use super::result::{Kind, MdtestResult, Operation, Phase};
use crate::ior::mean_and_deviation;
use crate::tasks::{Member, SpaceWords, seconds};
use machine::FileSystemSpace;
use std::fmt::Write;

/// Of the language and report.
const VERSION: &str = "4.0.0";

pub(super) fn head(
    options: &Options,
    members: &[Member],
    started: &str,
    space: Option<FileSystemSpace>,
) -> String {
    let (hosts, tasks) = (crate::tasks::hosts(members), members.len());
    let first = &options.directories[0];
    let (items, _) = options.shares();
    let what = match (options.files, options.folders) {
        (true, true) => "files/directories",
        (true, false) => "files",
        _ => "directories",
    };
    // 1 for the tasks on the first task's host.
    let map: String =
        members.iter().map(|one| if one.host == members[0].host { '1' } else { '0' }).collect();
    format!(
        "-- started at {started} --\n\n\
         mdtest-{VERSION} was launched with {tasks} total task(s) on {hosts} node(s) (halfpower {})\n\
         Command line used: {}\nPath                : {}\n{}Nodemap: {map}\n{tasks} tasks, {} {what}\n\n",
        env!("CARGO_PKG_VERSION"),
        options.command,
        first.display(),
        space.map_or(String::new(), |space| SpaceWords::of(space).line()),
        items.saturating_mul(tasks as u64)
    )
}

pub(super) fn iteration(result: &MdtestResult, iteration: u32) -> String {
    let mut text = format!("   iteration {iteration}\n");
    for phase in result.phases.iter().filter(|phase| phase.iteration == iteration) {
        let _ = writeln!(
            text,
            "   {:<22}: {:>14.3} sec, {:>14.3} ops/sec",
            Phase::name(phase.kind, phase.operation),
            seconds(phase.elapsed_ns),
            phase.per_s()
        );
    }
    text
}

fn table(result: &MdtestResult, options: &Options, of: fn(&Phase) -> f64) -> String {
    let mut text = String::from(
        "   Operation                     Max            Min           Mean        Std Dev\n   \
         ---------                     ---            ---           ----        -------\n",
    );
    let mut rows = Vec::new();
    for (kind, shown) in [(Kind::Directory, options.folders), (Kind::File, options.files)] {
        // A directory is not read.
        let operations = Operation::ALL
            .into_iter()
            .filter(|&operation| kind == Kind::File || operation != Operation::Read);
        rows.extend(operations.filter(|_| shown).map(|operation| (Some(kind), operation)));
    }
    rows.extend([(None, Operation::Create), (None, Operation::Remove)]);
    for (kind, operation) in rows {
        let values: Vec<f64> = result.of(kind, operation).into_iter().map(of).collect();
        let (mean, deviation) = mean_and_deviation(&values);
        let most = values.iter().copied().fold(0.0, f64::max);
        let least = values.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let _ = writeln!(
            text,
            "   {:<19} {most:>17.3} {least:>14.3} {mean:>14.3} {deviation:>14.3}",
            Phase::name(kind, operation)
        );
    }
    text
}

pub(super) fn end(result: &MdtestResult, options: &Options, finished: &str) -> String {
    let iterations = options.iterations;
    let mut text = String::new();
    if options.both || !options.times {
        let _ = writeln!(text, "SUMMARY rate: (of {iterations} iterations)");
        text += &table(result, options, Phase::per_s);
    }
    if options.both || options.times {
        if options.both {
            text += "\n";
        }
        let _ = writeln!(text, "SUMMARY time: (of {iterations} iterations)");
        text += &table(result, options, |phase| seconds(phase.elapsed_ns));
    }
    for phase in &result.phases {
        if let Some([fewest, most]) = phase.stonewall {
            let _ = writeln!(
                text,
                "\nstonewall: {} of iteration {}: items min: {fewest} max: {most}",
                Phase::name(phase.kind, phase.operation),
                phase.iteration
            );
        }
    }
    let _ = writeln!(text, "-- finished at {finished} --");
    for warning in &result.warnings {
        let _ = writeln!(text, "WARNING: {warning}");
    }
    text
}
