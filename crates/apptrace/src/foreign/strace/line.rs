//! The process, the time, and a call or part of it.

use super::super::text::{quoted, seconds};
use machine::Nanos;

pub(super) struct Line<'a> {
    /// 0 if the recording followed no children and shows none.
    pub pid: u32,
    pub at_ns: Nanos,
    pub rest: Rest<'a>,
}

pub(super) enum Rest<'a> {
    Call(&'a str),
    Unfinished(&'a str),
    /// A call's name and end.
    Resumed(&'a str, &'a str),
    Exited,
}

/// In front or as `[pid N]`.
fn pid(text: &str) -> (u32, &str) {
    if let Some((number, rest)) = text.strip_prefix("[pid").and_then(|text| text.split_once(']'))
        && let Ok(pid) = number.trim().parse()
    {
        return (pid, rest.trim_start());
    }
    match text.split_once(' ') {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            number.parse().map_or((0, text), |pid| (pid, rest.trim_start()))
        }
        _ => (0, text),
    }
}

pub(in super::super) fn is_line(text: &str) -> bool {
    let (_, rest) = pid(text);
    let Some((time, rest)) = rest.split_once(' ') else { return false };
    let rest = rest.trim_start();
    time.contains('.')
        && seconds("time", time).is_ok()
        && (rest.starts_with("+++ ")
            || rest.starts_with("--- ")
            || rest.starts_with("<... ")
            || rest.split_once('(').is_some_and(|(name, _)| is_name(name)))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(super) fn parse(text: &str) -> Result<Option<Line<'_>>, String> {
    let text = text.trim_end();
    // Messages of strace itself.
    if text.is_empty() || text.starts_with("strace: ") {
        return Ok(None);
    }
    let (pid, rest) = pid(text);
    let Some((time, rest)) = rest.split_once(' ') else {
        return Err(format!("{} is not a line of strace -f -ttt -T", quoted(text)));
    };
    let at_ns = seconds("time", time)
        .map_err(|why| format!("{why} since 1970; record with strace -f -ttt -T"))?;
    let rest = rest.trim_start();
    let rest = if rest.starts_with("+++ ") {
        Rest::Exited
    } else if rest.starts_with("--- ") {
        return Ok(None);
    } else if let Some(resumed) = rest.strip_prefix("<... ") {
        let (name, end) = resumed
            .split_once(" resumed>")
            .ok_or_else(|| format!("{} resumes no call", quoted(rest)))?;
        Rest::Resumed(name, end)
    } else if let Some(start) = rest.strip_suffix("<unfinished ...>") {
        Rest::Unfinished(start.trim_end())
    } else if rest.split_once('(').is_some_and(|(name, _)| is_name(name)) {
        Rest::Call(rest)
    } else {
        return Err(format!("{} is not a call", quoted(rest)));
    };
    Ok(Some(Line { pid, at_ns, rest }))
}
