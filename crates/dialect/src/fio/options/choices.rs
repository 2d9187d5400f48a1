use super::jobfile::cut;
use super::kinds::{Distribution, FileService, Zone};
use super::trace::Trace;
use super::value::{Reason, ends, number, size};
use machine::units::show_size;
use std::sync::Arc;
use workload::{MAX_REQUEST_BYTES, SizeMix, SizeShare};

pub(crate) const MAX_FILES: u64 = 1024;
const MAX_CPU: u64 = 8191;
/// fio's limit.
const MAX_PERCENTILES: usize = 20;
/// fio's limit.
const MAX_SIZES: usize = 64;

pub(crate) fn request(bytes: u64) -> Result<u32, Reason> {
    match u32::try_from(bytes) {
        Ok(bytes) if (1..=MAX_REQUEST_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(format!(
            "a request of {} is not from 1 B to 1 GiB; choose a size between them",
            show_size(bytes)
        )),
    }
}

pub(crate) fn dedupe_mode(text: &str) -> Result<bool, Reason> {
    match text {
        "repeat" => Ok(false),
        "working_set" => Ok(true),
        other => Err(format!("'{}' is none of repeat and working_set", cut(other))),
    }
}

pub(crate) fn range(text: &str, kb_base: u64) -> Result<SizeMix, Reason> {
    // As in fio, a colon works like a dash.
    let [min, max] = ends(&text.replace(':', "-"), |text| size(text, kb_base))?;
    Ok(SizeMix::range(request(min)?, request(max)?, true))
}

/// `4k/70:64k/20:8k/`. Sizes without a share divide the rest.
pub(crate) fn split(text: &str, kb_base: u64) -> Result<SizeMix, Reason> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > MAX_SIZES {
        return Err(format!("it has {} sizes; the most is {MAX_SIZES}", parts.len()));
    }
    let mut sizes: Vec<(u32, Option<u64>)> = Vec::new();
    for part in parts {
        let (bytes, percent) = part.split_once('/').unwrap_or((part, ""));
        let percent = if percent.is_empty() { None } else { Some(number(percent, 0, 100)?) };
        sizes.push((request(size(bytes, kb_base)?)?, percent));
    }
    let given: u64 = sizes.iter().filter_map(|(_, percent)| *percent).sum();
    let open = sizes.iter().filter(|(_, percent)| percent.is_none()).count() as u64;
    if given > 100 {
        return Err(format!(
            "its shares are {given} % in all; make that 100 %, or leave one out for the rest"
        ));
    }
    let rest = 100 - given;
    if open == 0
        && let Some((_, Some(largest))) = sizes.iter_mut().max_by_key(|(_, percent)| *percent)
    {
        // As in fio, what is missing belongs to the most frequent size.
        *largest += rest;
    }
    let mut left = open;
    let shares = sizes.into_iter().map(|(bytes, percent)| {
        let percent = percent.unwrap_or_else(|| {
            left -= 1;
            // The first ones get the remainder.
            rest / open + u64::from(open - 1 - left < rest % open)
        });
        SizeShare { bytes, percent: percent as u8 }
    });
    Ok(SizeMix::Shares(shares.collect()))
}

pub(crate) fn distribution(text: &str) -> Result<Distribution, Reason> {
    let (name, values) = text.split_once(':').unwrap_or((text, ""));
    let values: Vec<&str> = values.split(':').collect();
    let real = |text: &str, example: &str| match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(format!("'{}' is not one number; write {example}", cut(text))),
    };
    match (name, values.as_slice()) {
        ("random", [""]) => Ok(Distribution::Uniform),
        ("zipf" | "pareto", [_, _, ..]) => {
            Err(format!("{name} with another center is not supported; leave out the second number"))
        }
        ("zipf", [theta]) => match if theta.is_empty() { 1.1 } else { real(theta, "zipf:1.2")? } {
            theta if theta > 0.0 => Ok(Distribution::Zipf(theta)),
            _ => Err("its exponent is not above 0; write zipf:1.2".into()),
        },
        ("pareto", [h]) => match if h.is_empty() { 0.2 } else { real(h, "pareto:0.2")? } {
            h if h > 0.0 && h < 1.0 => Ok(Distribution::Pareto(h)),
            _ => Err("its share is not between 0 and 1; write pareto:0.2".into()),
        },
        ("normal" | "gauss", [deviation, center @ ..]) => normal(
            if deviation.is_empty() { 20.0 } else { real(deviation, "normal:20")? },
            match center {
                [] => 0.5,
                [center] => real(center, "normal:20:0.5")?,
                _ => return Err("it has more than two numbers; write normal:20:0.5".into()),
            },
        ),
        ("zoned", zones) => zoned(zones),
        ("zoned_abs", _) => Err("it is not served; use zoned:90/10:10/90".into()),
        _ => Err("unknown distribution; write random, zipf:1.2, pareto:0.2, normal:20 or zoned:90/10:10/90".into()),
    }
}

/// Also returns the consecutive requests to a file.
pub(crate) fn file_service(text: &str) -> Result<(FileService, u64), Reason> {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let known = match name {
        "roundrobin" => Some(FileService::RoundRobin),
        "sequential" => Some(FileService::Sequential),
        "random" => Some(FileService::Random),
        _ => None,
    };
    if let Some(service) = known {
        let requests = if value.is_empty() { 1 } else { number(value, 1, u32::MAX.into())? };
        return Ok((service, requests));
    }
    let skewed = match (name, distribution(text)) {
        ("normal" | "gauss", _) if value.is_empty() => FileService::Normal(real_deviation(0.01)),
        ("zipf" | "pareto" | "normal" | "gauss", Err(why)) => return Err(why),
        (_, Ok(Distribution::Zipf(theta))) => FileService::Zipf(theta),
        (_, Ok(Distribution::Pareto(h))) => FileService::Pareto(h),
        (_, Ok(Distribution::Normal { deviation, .. })) => FileService::Normal(deviation),
        _ => {
            return Err(
                "invalid value; write roundrobin, sequential, random, zipf:1.2, pareto:0.2 or normal:20".into()
            );
        }
    };
    Ok((skewed, 1))
}

fn normal(deviation: f64, center: f64) -> Result<Distribution, Reason> {
    if !(deviation > 0.0 && deviation <= 100.0) {
        return Err("its deviation must be above 0 and at most 100 percent; write normal:20".into());
    }
    if !(0.0..=1.0).contains(&center) {
        return Err("its center is not from 0 to 1; write normal:20:0.5".into());
    }
    Ok(Distribution::Normal { deviation: real_deviation(deviation), center: center * 100.0 })
}

/// The deviation in percent of fio's draws: the mean of twelve even draws over the file, moved by
/// an even draw of `deviation` percent, 50 at most.
fn real_deviation(deviation: f64) -> f64 {
    let even = |width: f64| width * width / 12.0;
    (even(100.0) / 12.0 + even(deviation.min(50.0))).sqrt()
}

/// As in fio, omitted numbers divide the rest, and the file after the zones is not used.
fn zoned(zones: &[&str]) -> Result<Distribution, Reason> {
    let hint = "write zoned:90/10:10/90 (90 % of the requests to the first 10 %)";
    let mut given: Vec<[Option<u64>; 2]> = Vec::new();
    for zone in zones {
        let (access, share) = zone.split_once('/').unwrap_or((zone, ""));
        let one = |text: &str, min| match text {
            "" => Ok(None),
            text => number(text, min, 100).map(Some).map_err(|why| format!("{why}; {hint}")),
        };
        given.push([one(access, 0)?, one(share, 1)?]);
    }
    let mut sides = [Vec::new(), Vec::new()];
    for (side, percents) in sides.iter_mut().enumerate() {
        let known: u64 = given.iter().filter_map(|zone| zone[side]).sum();
        let unknown = given.iter().filter(|zone| zone[side].is_none()).count() as u64;
        if known > 100 {
            return Err(format!("the percents add up to {known}; {hint}"));
        }
        let each = (100 - known) / unknown.max(1);
        percents.extend(given.iter().map(|zone| zone[side].unwrap_or(each)));
    }
    let mut zones: Vec<Zone> = std::iter::zip(&sides[0], &sides[1])
        .map(|(&access, &share)| Zone { access: access as u8, share: share as u8 })
        .collect();
    let left = |side: &[u64]| 100 - side.iter().sum::<u64>() as u8;
    if left(&sides[0]) > 0 {
        return Err(format!("{} % of the requests have no zone; {hint}", left(&sides[0])));
    }
    if left(&sides[1]) > 0 {
        zones.push(Zone { access: 0, share: left(&sides[1]) });
    }
    if zones.iter().any(|zone| zone.share == 0) {
        return Err(format!("a zone is empty; {hint}"));
    }
    Ok(match zones.as_slice() {
        [Zone { access, share }, _] => Distribution::Zones { access: *access, share: *share },
        _ => Distribution::ManyZones(zones),
    })
}

pub(crate) fn paths(text: &str) -> Result<Vec<String>, Reason> {
    if text.starts_with("twin:") {
        // The colon belongs to the name of a simulated machine, which must be the only path.
        return Ok(vec![text.into()]);
    }
    let mut paths = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let last = paths.last_mut().expect("there is always one");
        match c {
            '\\' if characters.peek() == Some(&':') => last.extend(characters.next()),
            ':' => paths.push(String::new()),
            c => last.push(c),
        }
    }
    if paths.iter().any(String::is_empty) {
        return Err(
            "a name between colons is empty; leave out the colon (one in a name is written \\:)"
                .into(),
        );
    }
    if paths.len() as u64 > MAX_FILES {
        return Err(format!("it names {} places; the most is {MAX_FILES}", paths.len()));
    }
    Ok(paths)
}

pub(crate) fn processors(text: &str) -> Result<Vec<u32>, Reason> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let [first, last] = ends(part.trim(), |text| number(text, 0, MAX_CPU))?;
        list.extend(first as u32..=last as u32);
    }
    list.sort_unstable();
    list.dedup();
    Ok(list)
}

pub(crate) fn nice(text: &str) -> Result<i32, Reason> {
    let level = text.parse().ok().filter(|level| (-20..=19).contains(level));
    level.ok_or_else(|| "invalid nice value; write a whole number from -20 to 19".into())
}

/// 0 means a whole request.
pub(crate) fn interval(text: &str, kb_base: u64) -> Result<Option<u32>, Reason> {
    match size(text, kb_base)? {
        0 => Ok(None),
        bytes => request(bytes).map(Some),
    }
}

pub(crate) fn small(text: &str, kb_base: u64) -> Result<u32, Reason> {
    let bytes = size(text, kb_base)?;
    u32::try_from(bytes)
        .map_err(|_| format!("{} exceeds the maximum block; give less", show_size(bytes)))
}

pub(crate) fn power_of_two(text: &str, kb_base: u64) -> Result<u64, Reason> {
    match size(text, kb_base)? {
        0 => Ok(0),
        bytes if bytes.is_power_of_two() => Ok(bytes),
        bytes => Err(format!("{bytes} is not a power of two; give 4096 or the like")),
    }
}

pub(crate) fn skipped(text: &str) -> Result<[bool; 4], Reason> {
    const KINDS: [&str; 4] = ["read", "write", "trim", "sync"];
    let mut skip = [false; 4];
    for part in text.split(',').map(str::trim) {
        match KINDS.iter().position(|kind| *kind == part) {
            Some(kind) => skip[kind] = true,
            None => {
                return Err(format!(
                    "'{}' is not one of read, write, trim, sync; write some of these",
                    cut(part)
                ));
            }
        }
    }
    Ok(skip)
}

pub(crate) fn trace(text: &str) -> Result<Option<Arc<Trace>>, Reason> {
    match paths(text)?.as_slice() {
        [path] => Trace::load(path).map(|trace| Some(Arc::new(trace))),
        several => Err(format!("{} traces are named; give each a job of its own", several.len())),
    }
}

pub(crate) fn percentiles(text: &str) -> Result<Vec<f64>, Reason> {
    let mut list = Vec::new();
    for part in text.split(':') {
        let value: f64 = part
            .trim()
            .parse()
            .map_err(|_| format!("'{}' is not a number; write 50:99:99.9", cut(part)))?;
        if !(0.0..=100.0).contains(&value) {
            return Err(format!("{value} is not a percentile; write numbers from 0 to 100"));
        }
        list.push(value);
    }
    if list.len() > MAX_PERCENTILES {
        return Err(format!(
            "it has {} percentiles; leave some out: the most is {MAX_PERCENTILES}",
            list.len()
        ));
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_shares_divide_the_rest() {
        let shares = |text: &str| match split(text, 1024) {
            Ok(SizeMix::Shares(shares)) => {
                shares.iter().map(|share| (share.bytes >> 10, share.percent)).collect::<Vec<_>>()
            }
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(shares("4k/70:64k/20:8k/10"), [(4, 70), (64, 20), (8, 10)]);
        assert_eq!(shares("4k/50:64k/:8k"), [(4, 50), (64, 25), (8, 25)]);
        assert_eq!(shares("4k:8k:16k"), [(4, 34), (8, 33), (16, 33)]);
        assert_eq!(shares("16k"), [(16, 100)]);
        assert_eq!(shares("4k/70:8k/20"), [(4, 80), (8, 20)]);
        assert_eq!(shares("4k/40:8k/10:16k/30"), [(4, 60), (8, 10), (16, 30)]);
        for (text, why) in [
            ("4k/70:8k/40", "110 % in all"),
            ("4k/x", "number"),
            ("0/100", "0 B"),
            ("4k/101", "0 to 100"),
        ] {
            let error = split(text, 1024).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn ranges_go_from_the_first_size_to_the_second() {
        assert_eq!(range("4k-64k", 1024), Ok(SizeMix::range(4096, 65_536, true)));
        assert_eq!(range("4k-4k", 1024), Ok(SizeMix::one(4096)));
        assert_eq!(range("512:1M", 1024), range("512-1m", 1024));
        assert!(range("8k-4k", 1024).unwrap_err().contains("above"));
    }

    #[test]
    fn distributions_parse_their_parameters() {
        assert_eq!(distribution("pareto:0.2"), Ok(Distribution::Pareto(0.2)));
        assert_eq!(
            distribution("normal:20"),
            Ok(Distribution::Normal { deviation: real_deviation(20.0), center: 50.0 })
        );
        assert_eq!(
            distribution("normal:10:0.25"),
            Ok(Distribution::Normal { deviation: real_deviation(10.0), center: 25.0 })
        );
        let zone = |access, share| Zone { access, share };
        assert_eq!(
            distribution("zoned:90/10:10/90"),
            Ok(Distribution::Zones { access: 90, share: 10 })
        );
        let zones = |text| match distribution(text) {
            Ok(Distribution::ManyZones(zones)) => zones,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(zones("zoned:50/5:30/15:20/"), [zone(50, 5), zone(30, 15), zone(20, 80)]);
        assert_eq!(zones("zoned:60/10:40/20"), [zone(60, 10), zone(40, 20), zone(0, 70)]);
        for text in [
            "zoned:60/10:30/20",
            "zoned:60/50:50/50",
            "zoned:100/100:0/",
            "pareto:1",
            "pareto:-1",
            "normal:0",
            "normal:101",
            "normal:20:2",
            "normal:1:1:1",
            "zipf:nan",
            "zipf:1:0.5",
            "random:1",
            "x",
        ] {
            assert!(distribution(text).unwrap_err().contains("; "), "{text}");
        }
    }
}
