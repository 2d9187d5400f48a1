//! Every parser of halfpower as a function of bytes: none may panic, hang, or answer with an endless message.
//!
//! Each is a fuzz target (`cargo fuzz run NAME`), and `crates/cli/tests/parsers.rs` tries all of them on mutations of their
//! corpora in every test run. Where a language can be written as well as read, what is written must read back.

use dialect::{diskspd, fio, iozone, postmark, sqlio};
use std::fmt::Display;
use std::io::Write;
use std::path::Path;

/// A parser and its corpus, by the name of the fuzz target.
pub const PARSERS: &[(&str, fn(&[u8]))] = &[
    ("size_and_time", size_and_time),
    ("pattern", pattern),
    ("target", target),
    ("machine_file", machine_file),
    ("fio_job_file", fio_job_file),
    ("fio_command", fio_command),
    ("diskspd_command", diskspd_command),
    ("diskspd_profile", diskspd_profile),
    ("iozone_command", iozone_command),
    ("sqlio_command", sqlio_command),
    ("sqlio_parameters", sqlio_parameters),
    ("postmark_line", postmark_line),
    ("results", results_document),
    ("trace", trace),
    ("verification_log", verification_log),
    ("signature", signature),
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

pub fn size_and_time(bytes: &[u8]) {
    let text = text(bytes);
    if let Some(size) = read(machine::units::parse_size(&text)) {
        machine::units::show_size(size);
    }
    read(machine::units::parse_time(&text));
}

pub fn pattern(bytes: &[u8]) {
    read(text(bytes).parse::<workload::Pattern>());
}

pub fn target(bytes: &[u8]) {
    let text = text(bytes);
    // Another file could hold anything, at any length.
    if !text.contains(".toml") {
        read(twin::Setup::parse(&text));
    }
}

pub fn machine_file(bytes: &[u8]) {
    let text = text(bytes);
    read(twin::preset::parse("fuzz.toml", &text));
    read(twin::preset::numbers("fuzz.toml", &text));
}

/// Nothing but the file itself is there, and one variable.
const NOWHERE: fio::World<'_> = fio::World {
    read: &|_| Err(std::io::ErrorKind::NotFound.into()),
    variable: &|name| (name == "SIZE").then(|| "1m".to_owned()),
};

pub fn fio_job_file(bytes: &[u8]) {
    if let Some(file) = read(fio::JobFile::parse(bytes, Path::new("fuzz.fio"), &NOWHERE)) {
        read(fio::Plan::new(&file.sections, &[]));
    }
}

pub fn fio_command(bytes: &[u8]) {
    let Some(command) = read(fio::Command::parse(&words(bytes))) else { return };
    if let Some(sections) = read(command.all_sections(&NOWHERE)) {
        read(fio::Plan::new(&sections, &command.only));
    }
}

pub fn diskspd_command(bytes: &[u8]) {
    if let Some(options) = read(diskspd::parse(&words(bytes))) {
        let again = diskspd::parse(&options.words()).expect("written options read back");
        assert_eq!(again, options);
    }
}

pub fn diskspd_profile(bytes: &[u8]) {
    if let Some(profile) = read(diskspd::read_profile(&text(bytes))) {
        let written = diskspd::profile_xml(&profile, 0);
        let again = diskspd::read_profile(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
        assert_eq!(again, profile, "{written}");
    }
}

pub fn iozone_command(bytes: &[u8]) {
    if let Some(options) = read(iozone::parse(&words(bytes))) {
        let again = iozone::parse(&options.words()).expect("written options read back");
        assert_eq!(again, options);
    }
}

pub fn sqlio_command(bytes: &[u8]) {
    if let Some(options) = read(sqlio::parse(&words(bytes))) {
        let again = sqlio::parse(&options.words()).expect("written options read back");
        assert_eq!(again, options);
    }
}

pub fn sqlio_parameters(bytes: &[u8]) {
    read(sqlio::parse_parameters(&text(bytes)));
}

pub fn postmark_line(bytes: &[u8]) {
    for line in text(bytes).lines() {
        for at_prompt in [false, true] {
            let _ = postmark::parse(line, at_prompt);
        }
    }
}

/// Every report of the document is drawn, too.
pub fn results_document(bytes: &[u8]) {
    let Some(results) = with_file(bytes, |path| read(results::read(path))) else { return };
    report::terminal::points(&results, 100, false);
    report::terminal::tables(&results, 100, true);
    report::terminal::answer(&results, 60, false);
    results::csv(&results);
    read(report::html(&results));
    read(results::to_json(&results));
}

pub fn trace(bytes: &[u8]) {
    read(predict::trace::parse(&text(bytes)));
}

pub fn verification_log(bytes: &[u8]) {
    read(workload::verify::Verifier::resume(bytes));
}

pub fn signature(bytes: &[u8]) {
    with_file(bytes, |path| read(host::facts::signature(path)));
}
