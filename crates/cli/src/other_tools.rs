//! Errors for options that other tools have: they name halfpower's own.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Names of fio, diskspd, CrystalDiskMark, elbencho and dd, and what to write instead.
const NAMES: [(&[&str], &str); 20] = [
    (&["--rw", "--readwrite"], "--op read, write or mix, with --pattern seq or random"),
    (&["--randread", "--randwrite", "--random"], "--pattern random, with --op read or write"),
    (&["--bs", "--blocksize", "--block-size", "--block", "--request-size", "-b"], "--request SIZE"),
    (&["--qd", "--iodepth", "--queue-depth", "--queuedepth", "-q", "-o"], "--depth N"),
    (&["--numjobs", "--jobs", "--workers", "--nthreads", "-t"], "--threads N"),
    (&["--ioengine"], "--engine NAME"),
    (&["--rwmixread", "--mix", "-w"], "--op mix --read-percent PERCENT"),
    (&["--rwmixwrite"], "--op mix --read-percent PERCENT: 100 less the percentage of writes"),
    (
        &["--filename", "--file", "--path", "--directory", "--name", "-f"],
        "the target without an option",
    ),
    (
        &["--time", "--duration", "--timelimit", "--time_based", "--time-based", "--seconds", "-d"],
        "--runtime TIME, such as 10s",
    ),
    (&["--io_size", "--io-size", "--number_ios"], "--bytes SIZE"),
    (&["--filesize", "--file-size", "--test-size", "-c"], "--size SIZE"),
    (&["--loops", "--iterations", "--runs", "-n"], "--repeats N"),
    (
        &["--fsync", "--fdatasync", "--end_fsync", "--end-fsync", "--flush"],
        "--end-fdatasync (one at the end) or --dsync (each write)",
    ),
    (&["--sync", "--osync", "--odsync"], "--dsync"),
    (&["--rate_iops", "--rate-iops", "--iops"], "--rate IOPS"),
    (&["--thinktime", "--think-time"], "--think TIME"),
    (&["--randseed", "--rand-seed"], "--seed N"),
    (&["--odirect", "--o-direct", "--nocache"], "--direct, which is the default"),
    (&["--output-format", "--format"], "--json"),
];

const COMMANDS: [&str; 5] = ["run", "sweep", "study", "compare", "tune"];

/// A message that names the option to write, if another tool has the one that this command lacks.
pub(crate) fn hint(error: &clap::Error, words: impl Iterator<Item = OsString>) -> Option<String> {
    let command = words.into_iter().find(|word| !word.to_string_lossy().starts_with('-'))?;
    if error.kind() != ErrorKind::UnknownArgument || !COMMANDS.iter().any(|one| command == *one) {
        return None;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = given.split('=').next().unwrap_or(given);
    let (_, ours) = NAMES.iter().find(|(names, _)| names.contains(&name))?;
    Some(format!(
        "error: unknown option {name}: write {ours}\n\nhalfpower fio and halfpower diskspd take the options of fio and diskspd.\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Cli;
    use clap::{CommandFactory, Parser};

    #[test]
    fn no_name_of_another_tool_hides_an_option() {
        let cli = Cli::command();
        for command in COMMANDS {
            let own = cli.find_subcommand(command).expect(command);
            for argument in own.get_arguments() {
                let long = argument.get_long().map(|long| format!("--{long}"));
                let short = argument.get_short().map(|short| format!("-{short}"));
                for name in long.iter().chain(&short) {
                    // A name may be an option of another command: then this one's error names ours.
                    let hidden = NAMES.iter().any(|(names, ours)| {
                        names.contains(&name.as_str()) && !ours.contains(name)
                    });
                    assert!(!hidden, "{command} {name}");
                }
            }
        }
    }

    #[test]
    fn an_option_of_another_tool_gets_the_one_to_write() {
        for (line, ours) in [
            ("halfpower run . --rw randread", "--op"),
            ("halfpower run . --bs=4k", "--request"),
            ("halfpower sweep . --iodepth 4", "--depth"),
            ("halfpower run . -t4", "--threads"),
            ("halfpower study --filename=x", "without an option"),
        ] {
            let error = Cli::try_parse_from(line.split(' ')).err().expect(line);
            let words = line.split(' ').skip(1).map(OsString::from);
            let said = hint(&error, words).unwrap_or_else(|| panic!("{line}: {error}"));
            assert!(said.contains(ours), "{said}");
        }
        let error = Cli::try_parse_from(["halfpower", "run", "--nonsense"]).err().expect("unknown");
        assert_eq!(hint(&error, std::iter::once("run".into())), None);
    }
}
