//! Every parser of halfpower as a function of bytes: none may panic, hang, or answer with an
//! endless message. Each says whether it understood them.
//!
//! Each is a fuzz target (`cargo fuzz run NAME`), and `crates/cli/tests/parsers.rs` tries all of
//! them on mutations of their corpora in every test run. If a language can be written as well as
//! read, what is written must read back.

use dialect::{diskspd, fio, iozone, postmark, sqlio};
use host::knobs::Place;
use machine::{Machine, TargetSpec};
use results::compare::Side;
use std::fmt::Display;
use std::io::Write;
use std::path::{Component, Path};
use tune::knobs::Scene;
use tune::{Plan, Scope, Wanted};
use twin::Twin;

/// Whether it understood the bytes.
pub type Parser = fn(&[u8]) -> bool;

/// A parser and its corpus, by the name of the fuzz target.
pub const PARSERS: &[(&str, Parser)] = &[
    ("size_and_time", size_and_time),
    ("pattern", pattern),
    ("load", load),
    ("workload_options", workload_options),
    ("target", target),
    ("machine_file", machine_file),
    ("fio_job_file", fio_job_file),
    ("fio_command", fio_command),
    ("fio_trace", fio_trace),
    ("fio_state", fio_state),
    ("diskspd_command", diskspd_command),
    ("diskspd_profile", diskspd_profile),
    ("iozone_command", iozone_command),
    ("sqlio_command", sqlio_command),
    ("sqlio_parameters", sqlio_parameters),
    ("postmark_line", postmark_line),
    ("results", results_document),
    ("trace", trace),
    ("application_trace", application_trace),
    ("verification_log", verification_log),
    ("signature", signature),
    ("tune_journal", tune_journal),
    ("tune_knob", tune_knob),
    ("tool_report", tool_report),
    ("fio_log", fio_log),
    ("table", table),
    ("fail_if", fail_if),
];

/// No message is longer: it names what is wrong and does not repeat all of it.
const LONGEST_MESSAGE: usize = 16 << 10;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn words(bytes: &[u8]) -> Vec<String> {
    text(bytes).split_whitespace().map(str::to_owned).collect()
}

/// The value, or nothing where the parser refuses in a message of bearable length.
fn read<T, E: Display>(parsed: Result<T, E>) -> Option<T> {
    parsed
        .map_err(|error| {
            let message = error.to_string();
            assert!(message.len() <= LONGEST_MESSAGE, "a message of {} bytes", message.len());
        })
        .ok()
}

/// A file of these bytes for those who read files.
fn with_file<T>(bytes: &[u8], what: impl FnOnce(&Path) -> T) -> T {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("a temporary file takes bytes");
    what(file.path())
}

pub fn size_and_time(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let size = read(machine::units::parse_size(&text)).map(machine::units::show_size);
    let time =
        read(machine::units::parse_time(&text)).map(|ns| machine::units::show_time(ns as f64));
    size.is_some() || time.is_some()
}

pub fn pattern(bytes: &[u8]) -> bool {
    read(text(bytes).parse::<workload::Pattern>()).is_some()
}

/// A load that changes over time, as an option and as a file.
pub fn load(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let option = read(workload::parse_load(&text));
    option.is_some() | read(workload::parse_load_file(&text)).is_some()
}

/// Workloads of a line that are looked at.
const WORKLOADS: usize = 16;

pub fn workload_options(bytes: &[u8]) -> bool {
    let line =
        |options: &[String]| [&["halfpower".to_owned(), "sweep".to_owned()], options].concat();
    let Some(workloads) = read(cli::workloads(&line(&words(bytes)))) else { return false };
    for workload in workloads.into_iter().take(WORKLOADS) {
        if read(workload.check(1 << 40, 512)).is_none() {
            continue;
        }
        // The length of a timed run is not among the options.
        let stop = if let workload::Stop::AfterNs(_) = workload.stop {
            workload::Workload::default().stop
        } else {
            workload.stop
        };
        let again = cli::workloads(&line(&words(workload.options().as_bytes())));
        assert_eq!(
            again,
            Ok(vec![workload::Workload { stop, ..workload }]),
            "written options read back"
        );
    }
    true
}

pub fn target(bytes: &[u8]) -> bool {
    let text = text(bytes);
    // Another file could hold anything, at any length.
    !text.contains(".toml") && read(twin::Setup::parse(&text)).is_some()
}

pub fn machine_file(bytes: &[u8]) -> bool {
    let text = text(bytes);
    read(twin::preset::numbers("fuzz.toml", &text));
    read(twin::preset::parse("fuzz.toml", &text)).is_some()
}

/// Nothing but the file itself is there, and one variable.
const NOWHERE: fio::World<'_> = fio::World {
    read: &|_| Err(std::io::ErrorKind::NotFound.into()),
    variable: &|name| (name == "SIZE").then(|| "1m".to_owned()),
};

pub fn fio_job_file(bytes: &[u8]) -> bool {
    let file = read(fio::JobFile::parse(bytes, Path::new("fuzz.fio"), &NOWHERE));
    file.and_then(|file| read(fio::Plan::new(&file.sections, &[]))).is_some()
}

pub fn fio_command(bytes: &[u8]) -> bool {
    let Some(command) = read(fio::Command::parse(&words(bytes))) else { return false };
    let sections = read(command.all_sections(&NOWHERE));
    sections.and_then(|sections| read(fio::Plan::new(&sections, &command.only))).is_some()
}

pub fn fio_trace(bytes: &[u8]) -> bool {
    read(fio::Trace::read(bytes)).is_some()
}

pub fn fio_state(bytes: &[u8]) -> bool {
    let Some(state) = fio::VerifyState::parse(&text(bytes)) else { return false };
    assert_eq!(
        fio::VerifyState::parse(&state.to_string()),
        Some(state),
        "what is written reads back"
    );
    true
}

pub fn diskspd_command(bytes: &[u8]) -> bool {
    let Some(options) = read(diskspd::parse(&words(bytes))) else { return false };
    let again = diskspd::parse(&options.words()).expect("written options read back");
    assert_eq!(again, options);
    true
}

pub fn diskspd_profile(bytes: &[u8]) -> bool {
    let Some(profile) = read(diskspd::read_profile(&text(bytes))) else { return false };
    let written = diskspd::profile_xml(&profile, 0);
    let again =
        diskspd::read_profile(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(again, profile, "{written}");
    true
}

pub fn iozone_command(bytes: &[u8]) -> bool {
    let Some(options) = read(iozone::parse(&words(bytes))) else { return false };
    let again = iozone::parse(&options.words()).expect("written options read back");
    assert_eq!(again, options);
    true
}

pub fn sqlio_command(bytes: &[u8]) -> bool {
    let Some(options) = read(sqlio::parse(&words(bytes))) else { return false };
    let again = sqlio::parse(&options.words()).expect("written options read back");
    assert_eq!(again, options);
    true
}

pub fn sqlio_parameters(bytes: &[u8]) -> bool {
    read(sqlio::parse_parameters(&text(bytes))).is_some()
}

pub fn postmark_line(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let parsed = text
        .lines()
        .map(|line| [false, true].map(|at_prompt| postmark::parse(line, at_prompt).is_ok()));
    parsed.filter(|understood| understood.contains(&true)).count() > 0
}

/// Every report of the document is drawn, too.
pub fn results_document(bytes: &[u8]) -> bool {
    let Some(results) = with_file(bytes, |path| read(results::read(path))) else { return false };
    report::terminal::points(&results, 100, false);
    report::terminal::tables(&results, 100, true);
    report::terminal::answer(&results, 60, false);
    results::csv(&results);
    read(report::html(&results));
    read(results::to_json(&results)).is_some()
}

pub fn trace(bytes: &[u8]) -> bool {
    read(predict::trace::parse(&text(bytes))).is_some()
}

/// Its profile is made and shown, too.
pub fn application_trace(bytes: &[u8]) -> bool {
    let Some(trace) = read(apptrace::TraceReader::new(bytes)) else { return false };
    let Some(profile) = read(application::profile::profile(trace)) else { return false };
    profile.text();
    true
}

pub fn verification_log(bytes: &[u8]) -> bool {
    read(workload::verify::Verifier::resume(bytes)).is_some()
}

pub fn signature(bytes: &[u8]) -> bool {
    with_file(bytes, |path| read(host::facts::signature(path))).flatten().is_some()
}

/// Whatever it holds, nothing but settings is ever written.
pub fn tune_journal(bytes: &[u8]) -> bool {
    let Some(entries) = read(host::knobs::journal::parse(bytes)) else { return false };
    for entry in &entries {
        for place in std::iter::once(&entry.place).chain(entry.undo.iter().map(|(place, _)| place))
        {
            let path = place.path();
            assert!(
                path.is_absolute() && !path.components().any(|part| part == Component::ParentDir),
                "{path:?}"
            );
            let is_setting = path.starts_with("/sys") || path.starts_with("/proc");
            assert!(is_setting || !matches!(place, Place::File(_)), "{path:?}");
        }
    }
    true
}

/// A knob and its values, and the plan that they make.
pub fn tune_knob(bytes: &[u8]) -> bool {
    let Some(wanted) = read(text(bytes).parse::<Wanted>()) else { return false };
    let written = match wanted.values.is_empty() {
        true => wanted.knob.clone(),
        false => format!("{}={}", wanted.knob, wanted.values.join(",")),
    };
    assert_eq!(written.parse(), Ok(wanted.clone()), "what is written reads back");
    let machine = Twin::from_name("twin:gateway-1997").expect("a machine of ours");
    let volume = TargetSpec { places: vec!["twin:gateway-1997".into()], ..TargetSpec::default() };
    let facts = machine.target_facts(&machine.open(&volume).expect("its volume"));
    let knobs = twin::knobs::knobs(machine.setup());
    let value = |number: usize, value: &str| twin::knobs::alternative(&knobs[number].name, value);
    let scene = Scene { facts: &facts, engines: &machine::Engine::ALL };
    let scope = Scope { knobs: &knobs, value: &value, scene };
    read(Plan::new(vec![workload::Workload::default()], &scope, &[wanted])).is_some()
}

/// Compared with itself and shown, too.
fn compared(a: &Side, b: &Side) {
    let program =
        results::Program { name: "fuzz".into(), version: String::new(), arguments: Vec::new() };
    let comparison = results::compare::compare(a, b, program, results::compare::WORTH_PERCENT);
    report::compare::terminal(&comparison, 100, false);
    report::compare::markdown(&comparison);
    results::compare::comparison_csv(&comparison);
}

/// A report of another tool.
pub fn tool_report(bytes: &[u8]) -> bool {
    let side = read(dialect::reading::read_report("report", &text(bytes)));
    side.map(|side| compared(&side, &side)).is_some()
}

/// A log of fio, whose name says what it holds.
pub fn fio_log(bytes: &[u8]) -> bool {
    let text = text(bytes);
    let sides =
        ["x_bw.log", "x_lat.1.log"].map(|name| read(dialect::reading::read_report(name, &text)));
    sides.iter().flatten().for_each(|side| compared(side, side));
    sides.iter().any(Option::is_some)
}

/// A table of one or two sides.
pub fn table(bytes: &[u8]) -> bool {
    let sides = read(results::compare::read_table("table.csv", &text(bytes), None, &[]));
    let Some([a, .., b]) = sides.as_deref() else { return sides.is_some() };
    compared(a, b);
    true
}

pub fn fail_if(bytes: &[u8]) -> bool {
    read(text(bytes).parse::<results::compare::FailIf>()).is_some()
}
