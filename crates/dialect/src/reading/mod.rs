//! Repeated reports in one file are several runs.

mod case;
mod direction;
mod diskspd;
mod diskspd_text;
mod elbencho;
mod fio;
mod fio_log;
mod fio_terse;
mod fio_text;
mod ior;
mod iozone;
mod iozone_sheet;
mod iozone_throughput;
mod lines;
mod mdtest;
mod postmark;
mod postmark_terse;
mod sqlio;
mod sysbench;
mod sysbench_old;
mod sysbench_settings;

use results::compare::{Measurement, Side};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadingError {
    #[error(
        "{0}: not a report that can be compared; name a results.json of halfpower; a report of fio (JSON, terse or normal) or one of its logs under its own name (NAME_bw.log); a report of diskspd (XML or text), IOzone, PostMark, SQLIO, sysbench fileio \
         or mdtest; IOR's JSON or elbencho's CSV; or a CSV with named columns"
    )]
    Unknown(String),
    /// A known report without figures, or a damaged one.
    #[error("{name}: {tool}'s report cannot be read: {why}")]
    Damaged { name: String, tool: &'static str, why: String },
}

type Read = fn(&str) -> Result<Vec<Measurement>, String>;

type Reader = (&'static str, fn(&str) -> bool, Read);

/// A file may hold several forms of a run, so those with more figures come first.
const READERS: [Reader; 17] = [
    ("fio", |text| text.contains("\"fio version\""), fio::read),
    ("IOR", ior::is_report, ior::read),
    (
        "diskspd",
        |text| text.trim_start().starts_with('<') && text.contains("<Results>"),
        diskspd::read,
    ),
    ("elbencho", elbencho::is_report, elbencho::read),
    ("diskspd", |text| text.contains("Results for timespan "), diskspd_text::read),
    ("IOzone", |text| text.contains(iozone_throughput::MARK), iozone_throughput::read),
    ("IOzone", |text| text.contains(" reclen "), iozone::read),
    ("IOzone", iozone_sheet::is_report, iozone_sheet::read),
    (
        "IOzone",
        |text| text.contains("Iozone:") || text.contains("iozone test complete"),
        iozone::read,
    ),
    ("PostMark", |text| text.contains("seconds of transactions"), postmark::read),
    ("PostMark", |text| text.lines().any(postmark_terse::is_terse), postmark_terse::read),
    ("SQLIO", |text| text.contains("IOs/sec:"), sqlio::read),
    ("sysbench", sysbench::is_report, sysbench::read),
    ("sysbench", sysbench_old::is_report, sysbench_old::read),
    ("mdtest", |text| text.contains(mdtest::MARK), mdtest::read),
    ("fio", |text| text.lines().any(|line| fio_terse::is_terse(line.trim())), fio_terse::read),
    ("fio", |text| text.lines().any(fio_text::is_job), fio_text::read),
];

pub fn is_report(name: &str, text: &str) -> bool {
    fio_log::is_log(name, text) || reader(text).is_some()
}

fn reader(text: &str) -> Option<&'static Reader> {
    READERS.iter().find(|(_, is_report, _)| is_report(text))
}

pub fn read_report(name: &str, text: &str) -> Result<Side, ReadingError> {
    // Only the name of a log says what it holds.
    let (tool, read) = if fio_log::is_log(name, text) {
        ("fio", fio_log::read(name, text))
    } else {
        let Some(&(tool, _, read)) = reader(text) else {
            return Err(ReadingError::Unknown(name.into()));
        };
        (tool, read(text))
    };
    let damaged = |why: String| ReadingError::Damaged { name: name.into(), tool, why };
    let asked = read.map_err(damaged)?;
    if asked.iter().all(|one| one.readings.is_empty()) {
        return Err(damaged("it holds no figures; was the run completed?".into()));
    }
    Ok(Side { name: name.into(), asked, warnings: Vec::new() }.join_repeats())
}
