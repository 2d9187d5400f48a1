//! fio's normal report (2 and 3).

use super::direction::{Direction, PERCENTILES, cases};
use super::lines::{at, between, number};
use results::compare::Measurement;
use std::collections::HashMap;

pub(super) fn is_job(line: &str) -> bool {
    line.contains(": (groupid=") && line.contains("err=")
}

/// `j: (g=0): rw=read, bs=..., ioengine=psync, iodepth=1`.
fn introduced(line: &str) -> Option<(&str, Vec<(&'static str, String)>)> {
    let (name, rest) = line.split_once(": (g=")?;
    let setting = |key: &'static str| {
        let value = between(rest, &format!("{key}="), ", ")
            .filter(|_| rest.contains(&format!("{key}=")))?;
        Some((key, value.to_string()))
    };
    let mut settings: Vec<_> =
        ["rw", "ioengine", "iodepth"].into_iter().filter_map(setting).collect();
    settings.extend(between(rest, "bs=", ", ioengine=").map(|bytes| ("bs", bytes.to_string())));
    Some((name, settings))
}

/// The letters are decimal: `30.7k`.
fn count(text: &str, line: usize) -> Result<f64, String> {
    let (digits, factor) = match text.trim() {
        text if text.ends_with('k') => (text.trim_end_matches('k'), 1e3),
        text if text.ends_with('M') => (text.trim_end_matches('M'), 1e6),
        text if text.ends_with('G') => (text.trim_end_matches('G'), 1e9),
        text => (text, 1.0),
    };
    Ok(number(digits, line)? * factor)
}

/// In fio 2, KB and MB are binary.
fn bytes(text: &str, line: usize, letters_are_binary: bool) -> Result<f64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let binary = letters_are_binary || unit.contains('i');
    let power = match unit.chars().next() {
        Some('B') | None => 0,
        Some('K' | 'k') => 1,
        Some('M') => 2,
        Some('G') => 3,
        Some('T') => 4,
        Some('P') => 5,
        _ => return Err(at(line, format_args!("'{text}' has no unit of bytes"))),
    };
    Ok(number(digits, line)? * if binary { 1024f64 } else { 1000.0 }.powi(power))
}

fn unit_ns(line: &str) -> Option<f64> {
    match between(line, "(", ")")? {
        "nsec" => Some(1.0),
        "usec" => Some(1e3),
        "msec" => Some(1e6),
        "sec" => Some(1e9),
        _ => None,
    }
}

/// `read: IOPS=..., BW=...` or, of fio 2, `read : io=..., bw=..., iops=..., runt=...`.
fn direction(line: &str, place: usize) -> Result<Option<Direction>, String> {
    let Some((name, rest)) = line.trim_start().split_once(':') else { return Ok(None) };
    let Some(does) = ["read", "write", "trim"].into_iter().find(|does| *does == name.trim()) else {
        return Ok(None);
    };
    let of = |key: &str| between(rest, key, ", ").filter(|_| rest.contains(key));
    let missing = |what: &str| {
        at(place, format_args!("{does} has no {what}; give the report as fio prints it"))
    };
    if let Some(iops) = of("IOPS=") {
        let rate = between(rest, "BW=", "/s").ok_or_else(|| missing("BW="))?;
        let (moved, time) = rest
            .rsplit_once('(')
            .and_then(|(_, inside)| inside.split_once(')')?.0.split_once('/'))
            .ok_or_else(|| missing("bytes and time"))?;
        let seconds = number(time.trim_end_matches("msec"), place)? / 1e3;
        let iops = count(iops, place)?;
        bytes(moved, place, false)?;
        return Ok(Some(Direction {
            does,
            iops,
            bytes_per_s: bytes(rate, place, false)?,
            requests: iops * seconds,
            ..Direction::default()
        }));
    }
    if let (Some(rate), Some(iops)) = (of("bw="), of("iops=")) {
        let time = between(rest, "runt=", "msec").ok_or_else(|| missing("runt="))?;
        let iops = count(iops, place)?;
        return Ok(Some(Direction {
            does,
            iops,
            bytes_per_s: bytes(rate.trim_end_matches("/s"), place, true)?,
            requests: iops * number(time, place)? / 1e3,
            ..Direction::default()
        }));
    }
    Ok(None)
}

pub(super) fn read(text: &str) -> Result<Vec<Measurement>, String> {
    let mut all = Vec::new();
    let mut settings: HashMap<&str, Vec<(&'static str, String)>> = HashMap::new();
    let mut run: Vec<Direction> = Vec::new();
    let mut job: Option<(&str, u64)> = None;
    let mut percentile_ns = None;
    for (place, line) in text.lines().enumerate() {
        if let Some((name, of)) = introduced(line) {
            settings.insert(name, of);
            continue;
        }
        // The summary of all groups ends a run.
        if line.starts_with("Run status group") {
            all.extend(cases(std::mem::take(&mut run)));
            job = None;
            continue;
        }
        if is_job(line) {
            let name = line.split(": (groupid=").next().unwrap_or_default();
            let group = between(line, "(groupid=", ",").unwrap_or_default();
            job = Some((name, number(group, place)? as u64));
            continue;
        }
        let Some((name, group)) = job else { continue };
        if let Some(mut one) = direction(line, place)? {
            one.group = group;
            one.settings = vec![("job", name.to_string())];
            one.settings.extend(settings.get(name).cloned().unwrap_or_default());
            run.push(one);
            percentile_ns = None;
            continue;
        }
        let Some(one) = run.last_mut() else { continue };
        let words = line.trim_start();
        if words.starts_with("clat percentiles (") || words.starts_with("lat percentiles (") {
            percentile_ns = unit_ns(words);
        } else if words.starts_with("lat (")
            || (words.starts_with("clat (") && one.mean_ns.is_none())
        {
            // The distribution of latencies over the whole job begins with the same words.
            if let (Some(unit), Some(mean)) =
                (unit_ns(words), between(words, "avg=", ",").filter(|_| words.contains("avg=")))
            {
                one.mean_ns = Some(number(mean, place)? * unit);
            }
        } else if let (Some(unit), Some(listed)) = (percentile_ns, words.strip_prefix('|')) {
            for entry in listed.split("],") {
                let Some((name, value)) = entry.split_once("th=[") else { continue };
                let known = PERCENTILES.iter().position(|(known, _)| *known == name.trim());
                if let Some(place_of) = known {
                    let value = number(value.trim_end().trim_end_matches(']'), place)?;
                    one.percentiles_ns[place_of] = Some(value * unit);
                }
            }
        }
    }
    all.extend(cases(run));
    Ok(all)
}
