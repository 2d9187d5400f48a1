//! Errors for other tools' options name halfpower's own.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// halfpower's option, empty for the target, and the words for it.
type Instead = (&'static str, &'static str);

/// Options of fio, diskspd, CrystalDiskMark, elbencho, mdtest and dd. The command's first
/// replacement counts.
const NAMES: [(&[&str], &[Instead]); 21] = [
    (
        &["--rw", "--readwrite"],
        &[("op", "--op read, write or mix, with --pattern seq or random"), ("only", ONLY)],
    ),
    (
        &["--randread", "--randwrite", "--random"],
        &[("pattern", "--pattern random, with --op read or write"), ("only", ONLY)],
    ),
    (
        &["--bs", "--blocksize", "--block-size", "--block", "--request-size", "-b"],
        &[("request", "--request SIZE")],
    ),
    (
        &["--qd", "--iodepth", "--queue-depth", "--queuedepth", "-q", "-o"],
        &[("depth", "--depth N")],
    ),
    (&["--numjobs", "--jobs", "--workers", "--nthreads", "-t"], &[("threads", "--threads N")]),
    (&["--ioengine"], &[("engine", "--engine NAME")]),
    (&["--rwmixread", "--mix", "-w"], &[("read-percent", "--op mix --read-percent PERCENT")]),
    (
        &["--rwmixwrite"],
        &[("read-percent", "--op mix --read-percent PERCENT: 100 less the percentage of writes")],
    ),
    (
        &["--filename", "--file", "--path", "--directory", "--dir", "--name", "-f"],
        &[("", "the target without an option")],
    ),
    (
        &[
            "--runtime",
            "--time",
            "--duration",
            "--timelimit",
            "--time_based",
            "--time-based",
            "--seconds",
            "-d",
        ],
        &[
            ("runtime", "--runtime TIME, such as 10s"),
            ("budget", "--budget TIME, such as 10s"),
            ("rounds", "--rounds N, and --files N for longer ones"),
        ],
    ),
    (&["--io_size", "--io-size", "--number_ios"], &[("bytes", "--bytes SIZE")]),
    (
        &["--filesize", "--file-size", "--test-size", "--size", "-c", "-w"],
        &[("size", "--size SIZE"), ("file-bytes", "--file-bytes SIZE")],
    ),
    (&["--nrfiles", "--num-files", "--items", "-n", "-I"], &[("files", "--files N")]),
    (
        &["--loops", "--iterations", "--runs", "--repeats", "-n", "-i"],
        &[("repeats", "--repeats N"), ("rounds", "--rounds N")],
    ),
    (
        &["--fsync", "--fdatasync", "--end_fsync", "--end-fsync", "--flush"],
        &[
            ("end-fdatasync", "--end-fdatasync (one at the end) or --dsync (each write)"),
            ("sync", "--sync file (its data) or --sync all (its name too)"),
        ],
    ),
    (&["--sync", "--osync", "--odsync"], &[("dsync", "--dsync")]),
    (&["--rate_iops", "--rate-iops", "--iops"], &[("rate", "--rate IOPS")]),
    (&["--thinktime", "--think-time"], &[("think", "--think TIME")]),
    (&["--randseed", "--rand-seed"], &[("seed", "--seed N")]),
    (&["--odirect", "--o-direct", "--nocache"], &[("direct", "--direct, which is the default")]),
    (&["--output-format", "--format"], &[("json", "--json")]),
];

const ONLY: &str = "--only EXPERIMENT";

const VALUES: [(&str, &[&str], &str); 12] = [
    ("--op", &["randread", "rand-read"], "--op read --pattern random"),
    ("--op", &["randwrite", "rand-write"], "--op write --pattern random"),
    ("--op", &["randrw", "rwrand"], "--op mix --pattern random"),
    ("--op", &["rw", "readwrite", "mixed", "read-write"], "--op mix, with --read-percent PERCENT"),
    ("--op", &["r", "reads", "seqread", "seq-read"], "--op read"),
    ("--op", &["w", "writes", "seqwrite", "seq-write"], "--op write"),
    (
        "--pattern",
        &["rand", "r", "randread", "randwrite"],
        "--pattern random, with --op read or write",
    ),
    (
        "--pattern",
        &["sequential", "s", "linear", "read", "write"],
        "--pattern seq, with --op read or write",
    ),
    ("--pattern", &["reverse", "backwards"], "--pattern backward"),
    ("--engine", &["iouring", "uring", "io-uring"], "--engine io_uring"),
    ("--engine", &["aio", "linuxaio"], "--engine libaio"),
    ("--engine", &["psync", "posix", "pread", "rw"], "--engine sync"),
];

pub(crate) fn hint(
    error: &clap::Error,
    cli: &mut clap::Command,
    words: impl Iterator<Item = OsString>,
) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    cli.build();
    let (path, command) = innermost(cli, words);
    let given = match error.kind() {
        ErrorKind::UnknownArgument => context(ContextKind::InvalidArg)?,
        ErrorKind::TooManyValues => {
            let value = context(ContextKind::InvalidValue)?;
            let option = context(ContextKind::InvalidArg)?;
            let instead = match option {
                "--json" => format!("it prints on standard output: write --json > {value}"),
                _ => format!("leave {value} out"),
            };
            return Some(format!("error: {option} takes no value; {instead}\n"));
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let value = context(ContextKind::InvalidValue)?;
            let option = context(ContextKind::InvalidArg)?.split(' ').next()?;
            let (.., ours) = VALUES
                .iter()
                .find(|(name, values, _)| *name == option && values.contains(&value))?;
            return Some(format!("error: {option} {value}: write {ours}\n"));
        }
        ErrorKind::InvalidSubcommand
            if path == "history"
                && ["list", "ls"].map(Some).contains(&context(ContextKind::InvalidSubcommand)) =>
        {
            return Some("error: halfpower history lists the entries; leave the word out\n".into());
        }
        _ => return None,
    };
    let name = given.split('=').next().unwrap_or(given);
    if name.starts_with('-') && name[1..].starts_with(|one: char| one.is_ascii_digit()) {
        return Some(format!("error: {name}: it is below 0, and no option takes such a value\n"));
    }
    if path.is_empty() {
        return None;
    }
    let choices = NAMES.iter().filter(|(names, _)| names.contains(&name)).flat_map(|(_, all)| *all);
    let ours = choices.clone().find(|(option, _)| has(command, option));
    let message = match (ours, choices.clone().next(), others(cli, &path, name).as_slice()) {
        (Some((_, text)), ..) => format!("unknown option {name}: write {text}"),
        (None, Some((option, text)), _) => format!(
            "unknown option {name}: halfpower {path} has none for it; {} takes {text}",
            others(cli, &path, &format!("--{option}")).first()?
        ),
        // The parser's own error has a similar option of this command.
        (None, None, []) => return None,
        (None, None, _) if error.get(ContextKind::SuggestedArg).is_some() => return None,
        (None, None, others) => format!(
            "unknown option {name}: halfpower {path} does not have it; {} does{}",
            others[0],
            if others.len() > 1 { ", as do others" } else { "" }
        ),
    };
    Some(format!(
        "error: {message}\n\nhalfpower {path} -h shows its options. halfpower fio and halfpower diskspd take the options of fio and diskspd.\n"
    ))
}

pub(crate) fn plain(message: &str) -> String {
    [
        ("invalid digit found in string", "it is not a whole number"),
        ("cannot parse integer from empty string", "a number is missing"),
        ("invalid float literal", "it is not a number"),
        ("cannot parse float from empty string", "a number is missing"),
        ("number too large to fit in target type", "it is too large"),
    ]
    .iter()
    .fold(message.to_owned(), |text, (its, ours)| text.replace(its, ours))
}

fn innermost(
    cli: &clap::Command,
    words: impl Iterator<Item = OsString>,
) -> (String, &clap::Command) {
    let (mut names, mut command) = (Vec::new(), cli);
    for word in words {
        if let Some(next) = word.to_str().and_then(|word| command.find_subcommand(word)) {
            names.push(next.get_name());
            command = next;
        }
    }
    (names.join(" "), command)
}

fn has(command: &clap::Command, option: &str) -> bool {
    match option {
        "" => command.get_positionals().next().is_some(),
        option => command.get_arguments().any(|one| one.get_long() == Some(option)),
    }
}

fn others(cli: &clap::Command, path: &str, name: &str) -> Vec<String> {
    let Some(option) = name.strip_prefix("--") else { return Vec::new() };
    let mut names: Vec<&str> = cli
        .get_subcommands()
        .filter(|one| !one.is_hide_set() && one.get_name() != path && has(one, option))
        .map(clap::Command::get_name)
        .collect();
    names.sort_by_key(|name| *name != "run");
    names.into_iter().map(|name| format!("halfpower {name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Cli;
    use clap::{CommandFactory, Parser};

    fn said(line: &str) -> Option<String> {
        let error = Cli::try_parse_from(line.split(' ')).err().expect(line);
        let words = line.split(' ').skip(1).map(OsString::from);
        hint(&error, &mut Cli::command(), words)
    }

    #[test]
    fn an_option_of_another_tool_gets_the_one_to_write() {
        for (line, ours) in [
            ("halfpower run . --rw randread", "write --op"),
            ("halfpower run . --bs=4k", "write --request"),
            ("halfpower sweep . --iodepth 4", "write --depth"),
            ("halfpower run . -t4", "write --threads"),
            ("halfpower study --filename=x", "without an option"),
            ("halfpower study --rw=read", "write --only"),
            ("halfpower study . --runtime 10s", "write --budget"),
            ("halfpower check . --runtime=10s", "write --budget"),
            (
                "halfpower check . --bs 4k",
                "halfpower check has none for it; halfpower run takes --request",
            ),
            ("halfpower metadata . --nrfiles=10", "write --files"),
            ("halfpower metadata . --size 4k", "write --file-bytes"),
            ("halfpower metadata . -n 10", "write --files"),
            ("halfpower metadata . --loops 3", "write --rounds"),
            ("halfpower metadata . --fsync=1", "write --sync file"),
            ("halfpower stack . --iodepth=4", "halfpower run takes --depth"),
            ("halfpower history show 1 --slower 3", "halfpower check does"),
            ("halfpower pts iops . --pattern random", "halfpower run does"),
        ] {
            let said = said(line).unwrap_or_else(|| panic!("{line}: no hint"));
            assert!(said.contains(ours), "{line}: {said}");
        }
        for (line, words) in [
            ("halfpower run . --depth -1", "-1: it is below 0"),
            ("halfpower history show -3", "-3: it is below 0"),
            ("halfpower run . --json=out.json", "write --json > out.json"),
            ("halfpower check . --each=2", "--each takes no value; leave 2 out"),
            ("halfpower history list", "halfpower history lists"),
            ("halfpower run . --op randread", "write --op read --pattern random"),
            ("halfpower sweep . --op read,rw", "write --op mix"),
            ("halfpower run . --pattern rand", "write --pattern random"),
            ("halfpower run . --pattern sequential", "write --pattern seq"),
            ("halfpower run . --engine uring", "write --engine io_uring"),
        ] {
            let said = said(line).unwrap_or_else(|| panic!("{line}: no hint"));
            assert!(said.contains(words), "{line}: {said}");
        }
        for line in ["halfpower run --nonsense", "halfpower --bs=4k"] {
            assert_eq!(said(line), None, "{line}");
        }
    }

    #[test]
    fn numbers_get_plain_words() {
        for line in
            ["run . --depth x", "run . --depth 99999999999", "history show x", "run . --rate x"]
        {
            let words = format!("halfpower {line}");
            let error = Cli::try_parse_from(words.split(' ')).err().expect(line);
            let plain = plain(&error.render().to_string());
            assert!(plain.contains("number") || plain.contains("is too large"), "{line}: {plain}");
            assert!(!plain.contains("digit") && !plain.contains("literal"), "{line}: {plain}");
        }
    }

    #[test]
    fn every_value_to_write_is_accepted() {
        for (_, _, ours) in VALUES {
            let line = format!("halfpower run . {}", ours.split(',').next().unwrap());
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
    }

    #[test]
    fn every_hint_names_an_option_that_there_is() {
        let mut cli = Cli::command();
        cli.build();
        for (names, ours) in NAMES {
            for (option, text) in ours {
                let there = cli.get_subcommands().any(|one| has(one, option));
                assert!(there, "{names:?}: {text}");
                assert!(option.is_empty() || text.contains(&format!("--{option}")), "{text}");
            }
        }
    }
}
