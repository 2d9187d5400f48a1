//! XML profiles, as `-X` reads them.

use super::profile::{Caching, Format, Profile, RangeLength, Source, Target, TimeSpan};
use crate::parse::{refuse, shortened};
use machine::{Hint, Result};
use quick_xml::Reader;
use quick_xml::escape::escape;
use quick_xml::events::Event;
use std::fmt::Write;
use std::path::PathBuf;

/// The schema has seven levels.
const MAX_NESTING: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    text: String,
    unit: Option<String>,
    /// The attribute `IO`, a percentage.
    requests: Option<String>,
    pub(crate) children: Vec<Element>,
}

pub(crate) fn tree(text: &str) -> Result<Element> {
    let wrong = |why: String| {
        refuse(
            "the profile",
            format!("it is not XML: {}", shortened(&why)),
            "see the schema of diskspd's profiles",
        )
    };
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut open: Vec<Element> = vec![Element::default()];
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => return wrong(format!("at byte {}: {error}", reader.error_position())),
        };
        match event {
            Event::Start(start) if open.len() <= MAX_NESTING => {
                let attribute = |name: &str| match start.try_get_attribute(name) {
                    Ok(found) => Ok(found.map(|found| found.value.to_string())),
                    Err(error) => wrong(error.to_string()).map(|_| None),
                };
                let (unit, requests) = (attribute("unit")?, attribute("IO")?);
                let name = start.local_name().as_ref().to_string();
                open.push(Element { name, unit, requests, ..Element::default() })
            }
            Event::Start(_) => return wrong("elements are nested too deep".into()),
            Event::Empty(empty) => {
                let element =
                    Element { name: empty.local_name().as_ref().to_string(), ..Element::default() };
                open.last_mut().map(|parent| parent.children.push(element)).unwrap_or_default();
            }
            Event::End(_) => {
                // The XML reader has already checked that tags match.
                if let (Some(done), Some(parent)) = (open.pop(), open.last_mut()) {
                    parent.children.push(done);
                }
            }
            Event::Text(part) => {
                open.last_mut().map(|element| element.text += &part).unwrap_or_default()
            }
            Event::GeneralRef(entity) => {
                let code = match entity.resolve_char_ref() {
                    Ok(Some(code)) => Some(code.to_string()),
                    Ok(None) => {
                        quick_xml::escape::resolve_predefined_entity(&entity).map(String::from)
                    }
                    Err(error) => return wrong(error.to_string()),
                };
                let Some(code) = code else {
                    return wrong(format!("the entity &{}; is unknown", &*entity));
                };
                open.last_mut().map(|element| element.text += &code).unwrap_or_default();
            }
            Event::CData(part) => {
                open.last_mut().map(|element| element.text += &part).unwrap_or_default()
            }
            Event::Eof => break,
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
            Event::DocType(_) => return wrong("it has a document type".into()),
        }
    }
    match open.pop() {
        Some(root) if open.is_empty() => Ok(root),
        _ => wrong("it ends in the middle of an element".into()),
    }
}

impl Element {
    pub(crate) fn value(&self) -> &str {
        self.text.trim()
    }

    fn number(&self, max: u64) -> Result<u64> {
        let plain =
            !self.value().is_empty() && self.value().bytes().all(|byte| byte.is_ascii_digit());
        match self.value().parse::<u64>() {
            Ok(value) if plain && value <= max => Ok(value),
            _ => refuse(
                format!("<{}>{}", shortened(&self.name), shortened(self.value())),
                format!("it is not a number up to {max}"),
                "correct the profile",
            ),
        }
    }

    fn small(&self) -> Result<u32> {
        self.number(u64::from(u32::MAX)).map(|value| value as u32)
    }

    fn flag(&self) -> Result<bool> {
        match self.value() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => refuse(
                format!("<{}>{}", shortened(&self.name), shortened(other)),
                "it is neither true nor false",
                "correct the profile",
            ),
        }
    }

    fn unsupported<T>(&self) -> Result<T> {
        let value = if self.value().is_empty() {
            String::new()
        } else {
            format!(" with the value {}", shortened(self.value()))
        };
        refuse(
            format!("<{}>{value}", shortened(&self.name)),
            "this element of the profile is not supported",
            "leave it out",
        )
    }

    fn only(&self, neutral: &[&str]) -> Result<()> {
        if neutral.contains(&self.value()) { Ok(()) } else { self.unsupported() }
    }
}

pub fn read_profile(text: &str) -> Result<Profile> {
    if text.contains('\0') {
        return refuse("the profile", "it contains a NUL", "is it a text?");
    }
    let document = tree(text)?;
    let [root] = document.children.as_slice() else {
        return refuse("the profile", "it is not one element", "write <Profile> around it");
    };
    if root.name != "Profile" {
        return refuse(
            format!("<{}>", shortened(&root.name)),
            "it is not a profile",
            "write <Profile> around it",
        );
    }
    let mut profile = Profile::default();
    for element in &root.children {
        match element.name.as_str() {
            "TimeSpans" => {
                for span in &element.children {
                    profile.spans.push(if span.name == "TimeSpan" {
                        time_span(span)?
                    } else {
                        span.unsupported()?
                    });
                }
            }
            "ResultFormat" => match element.value() {
                "text" => profile.format = Format::Text,
                "xml" => profile.format = Format::Xml,
                _ => element.unsupported()?,
            },
            // The results have no progress dots and are always verbose.
            "Progress" => drop(element.small()?),
            "Verbose" => drop(element.flag()?),
            _ => element.unsupported()?,
        }
    }
    profile.check()?;
    Ok(profile)
}

fn time_span(span: &Element) -> Result<TimeSpan> {
    let mut read = TimeSpan::default();
    let mut interval = 1000;
    let mut spread = false;
    let (mut threads, mut outstanding) = (0, 0);
    for element in &span.children {
        match element.name.as_str() {
            "Duration" => read.duration_s = element.small()?,
            "Warmup" => read.warm_up_s = element.small()?,
            "Cooldown" => read.cool_down_s = element.small()?,
            "RandSeed" => read.seed = element.small()?,
            "MeasureLatency" => read.latency = element.flag()?,
            "CalculateIopsStdDev" => spread = element.flag()?,
            "IoBucketDuration" => interval = element.small()?,
            "ThreadCount" => threads = element.small()?,
            // Threads are not pinned unless processors are named.
            "DisableAffinity" => {
                element.flag()?;
            }
            "CompletionRoutines" => read.completion_routines = element.flag()?,
            "GroupAffinity" => element.only(&["false", "0"])?,
            "RequestCount" => outstanding = element.small()?,
            "Affinity" => {
                for assignment in &element.children {
                    read.processors.push(if assignment.name == "AffinityAssignment" {
                        assignment.number(1023)? as u32
                    } else {
                        assignment.unsupported()?
                    });
                }
            }
            "Targets" => {
                for one in &element.children {
                    read.targets.push(if one.name == "Target" {
                        target(one)?
                    } else {
                        one.unsupported()?
                    });
                }
            }
            _ => element.unsupported()?,
        }
    }
    read.interval_ms = spread.then_some(interval);
    if threads > 0 {
        if let Some(own) = read.targets.iter().find(|target| target.threads > 1) {
            return refuse(
                format!("<ThreadCount>{threads} and <ThreadsPerFile>{}", own.threads),
                "threads are shared by all targets, or each target has its own",
                "leave out one of the two",
            );
        }
        read.share_threads(threads, Some(outstanding).filter(|count| *count > 0));
    }
    Ok(read)
}

fn target(element: &Element) -> Result<Target> {
    let mut read = Target::new(PathBuf::new());
    let mut random_percent = None;
    let size = |element: &Element| element.number(1 << 60);
    let positive =
        |element: &Element| size(element).map(|bytes| Some(bytes).filter(|bytes| *bytes > 0));
    for child in &element.children {
        match child.name.as_str() {
            "Path" => read.path = child.value().into(),
            "BlockSize" => read.block_bytes = child.small()?,
            "StrideSize" => read.stride_bytes = positive(child)?,
            "InterlockedSequential" => read.interlocked = child.flag()?,
            "BaseFileOffset" => read.base_bytes = size(child)?,
            "SequentialScan" if child.flag()? => read.hint = Hint::Sequential,
            "RandomAccess" if child.flag()? => read.hint = Hint::Random,
            "SequentialScan" | "RandomAccess" => {}
            "RequestCount" => read.outstanding = child.small()?,
            "Random" => read.random_bytes = positive(child)?,
            "DisableAllCache" if child.flag()? => {
                (read.caching, read.write_through) = (Caching::Uncached, true)
            }
            "DisableOSCache" if child.flag()? => read.caching = Caching::Uncached,
            "WriteThrough" if child.flag()? => read.write_through = true,
            "MemoryMappedIo" if child.flag()? => read.caching = Caching::Mapped,
            "DisableAllCache" | "DisableOSCache" | "WriteThrough" | "MemoryMappedIo" => {}
            "UseLargePages" => read.large_pages = child.flag()?,
            // As `-ft`.
            "TemporaryFile" => drop(child.flag()?),
            "DisableLocalCache" | "ParallelAsyncIO" => child.only(&["false", "0"])?,
            "BurstSize" => read.burst = Some(child.small()?).filter(|count| *count > 0),
            "ThinkTime" => read.pause_ms = Some(child.small()?).filter(|ms| *ms > 0),
            "RandomRatio" => random_percent = Some(child.number(100)? as u8),
            "Distribution" => read.ranges = ranges(child)?,
            "IOPriority" => child.only(&["0", "3"])?,
            "WriteBufferContent" => source(child, &mut read)?,
            "Throughput" => {
                let rate = Some(child.small()?).filter(|rate| *rate > 0);
                match child.unit.as_deref() {
                    None | Some("BPMS") => read.throughput_bytes_per_ms = rate,
                    Some("IOPS") => read.throughput_iops = rate,
                    Some(_) => return child.unsupported(),
                }
            }
            "ThreadsPerFile" => read.threads = child.small()?,
            "Weight" => read.weight = child.small()?,
            "ThreadTargets" => read.thread_weights = thread_weights(child)?,
            "FileSize" => read.create_bytes = positive(child)?,
            "MaxFileSize" => read.max_bytes = positive(child)?,
            "WriteRatio" => read.write_percent = child.number(100)? as u8,
            "ThreadStride" => read.thread_stride_bytes = size(child)?,
            _ => child.unsupported()?,
        }
    }
    if random_percent.is_some_and(|percent| percent > 0) {
        read.random_bytes = read.random_bytes.or(Some(u64::from(read.block_bytes)));
    }
    read = read.with_random_percent(random_percent);
    if read.random_bytes.is_some() {
        // The original writes both; the random one wins.
        read.stride_bytes = None;
    }
    Ok(read)
}

fn thread_weights(element: &Element) -> Result<Vec<(u32, Option<u32>)>> {
    let one = |element: &Element| {
        if element.name != "ThreadTarget" {
            return element.unsupported();
        }
        let (mut thread, mut weight) = (None, None);
        for child in &element.children {
            match child.name.as_str() {
                "Thread" => thread = Some(child.small()?),
                "Weight" => weight = Some(child.small()?),
                _ => child.unsupported()?,
            }
        }
        match thread {
            Some(thread) => Ok((thread, weight)),
            None => {
                refuse("<ThreadTarget>", "its <Thread> is missing", "name a thread, counted from 0")
            }
        }
    };
    element.children.iter().map(one).collect()
}

fn ranges(distribution: &Element) -> Result<Vec<(u8, RangeLength)>> {
    let mut ranges = Vec::new();
    for kind in &distribution.children {
        let absolute = match kind.name.as_str() {
            "Percent" => false,
            "Absolute" => true,
            _ => return kind.unsupported(),
        };
        for range in &kind.children {
            let requests = match (range.name.as_str(), &range.requests) {
                ("Range", Some(text)) => {
                    Element { name: "Range IO".into(), text: text.clone(), ..Element::default() }
                }
                _ => return range.unsupported(),
            };
            let length = if absolute {
                RangeLength::Bytes(range.number(1 << 60)?)
            } else {
                RangeLength::Percent(range.number(100)? as u8)
            };
            ranges.push((requests.number(100)? as u8, length));
        }
    }
    Ok(ranges)
}

fn source(content: &Element, target: &mut Target) -> Result<()> {
    for child in &content.children {
        match (child.name.as_str(), child.value()) {
            ("Pattern", "sequential" | "random") => {}
            ("Pattern", "zero") => target.source = Source::Zero,
            ("RandomDataSource", _) => {
                for part in &child.children {
                    match part.name.as_str() {
                        "SizeInBytes" => target.source_bytes = Some(part.number(u64::MAX)?),
                        "FilePath" => target.source_file = Some(part.value().into()),
                        _ => part.unsupported()?,
                    }
                }
            }
            _ => child.unsupported()?,
        }
    }
    Ok(())
}

/// `indent`: in blanks.
pub fn profile_xml(profile: &Profile, indent: usize) -> String {
    let mut text = String::new();
    let mut line = |depth: usize, content: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{content}", " ".repeat(indent + 2 * depth));
    };
    line(0, "<Profile>".into());
    line(1, "<Progress>0</Progress>".into());
    line(
        1,
        format!(
            "<ResultFormat>{}</ResultFormat>",
            if profile.format == Format::Xml { "xml" } else { "text" }
        ),
    );
    line(1, "<Verbose>false</Verbose>".into());
    line(1, "<TimeSpans>".into());
    for span in &profile.spans {
        line(2, "<TimeSpan>".into());
        let flags = [
            ("CompletionRoutines", span.completion_routines),
            ("MeasureLatency", span.latency),
            ("CalculateIopsStdDev", span.interval_ms.is_some()),
        ];
        let numbers = [
            ("Duration", span.duration_s),
            ("Warmup", span.warm_up_s),
            ("Cooldown", span.cool_down_s),
            ("RandSeed", span.seed),
        ];
        numbers.iter().for_each(|(name, value)| line(3, format!("<{name}>{value}</{name}>")));
        flags.iter().for_each(|(name, value)| line(3, format!("<{name}>{value}</{name}>")));
        if let Some(pool) = &span.pool {
            line(3, format!("<ThreadCount>{}</ThreadCount>", pool.threads));
            line(3, format!("<RequestCount>{}</RequestCount>", pool.outstanding.unwrap_or(0)));
        }
        if let Some(ms) = span.interval_ms {
            line(3, format!("<IoBucketDuration>{ms}</IoBucketDuration>"));
        }
        if !span.processors.is_empty() {
            line(3, "<Affinity>".into());
            span.processors.iter().for_each(|processor| {
                line(4, format!("<AffinityAssignment>{processor}</AffinityAssignment>"))
            });
            line(3, "</Affinity>".into());
        }
        line(3, "<Targets>".into());
        for target in &span.targets {
            line(4, "<Target>".into());
            let mut elements = target_elements(target);
            elements.retain(|(name, _)| !span.pool.as_ref().is_some_and(|pool| pool.says(name)));
            elements.iter().for_each(|(name, value)| line(5, format!("<{name}>{value}</{name}>")));
            if !target.thread_weights.is_empty() {
                let one = |(thread, weight): &(u32, Option<u32>)| {
                    let weight =
                        weight.map_or(String::new(), |weight| format!("<Weight>{weight}</Weight>"));
                    format!("<ThreadTarget><Thread>{thread}</Thread>{weight}</ThreadTarget>")
                };
                let all: String = target.thread_weights.iter().map(one).collect();
                line(5, format!("<ThreadTargets>{all}</ThreadTargets>"));
            }
            if let Some(rate) = target.throughput_iops {
                line(5, format!("<Throughput unit=\"IOPS\">{rate}</Throughput>"));
            }
            if !target.ranges.is_empty() {
                let ranges = target.ranges.iter().map(|(requests, of)| {
                    format!("<Range IO=\"{requests}\">{}</Range>", of.number())
                });
                let absolute = matches!(target.ranges[0].1, RangeLength::Bytes(_));
                let kind = if absolute { "Absolute" } else { "Percent" };
                let ranges: String = ranges.collect();
                line(5, format!("<Distribution><{kind}>{ranges}</{kind}></Distribution>"));
            }
            line(4, "</Target>".into());
        }
        line(3, "</Targets>".into());
        line(2, "</TimeSpan>".into());
    }
    line(1, "</TimeSpans>".into());
    line(0, "</Profile>".into());
    text
}

fn content(target: &Target) -> String {
    let Some(bytes) = target.source_bytes else {
        return format!(
            "<Pattern>{}</Pattern>",
            if target.source == Source::Zero { "zero" } else { "random" }
        );
    };
    let file = target.source_file.as_ref().map_or(String::new(), |path| {
        format!("<FilePath>{}</FilePath>", escape(path.display().to_string()))
    });
    format!(
        "<Pattern>random</Pattern><RandomDataSource><SizeInBytes>{bytes}</SizeInBytes>{file}</RandomDataSource>"
    )
}

fn target_elements(target: &Target) -> Vec<(&'static str, String)> {
    let mut elements = vec![
        ("Path", escape(target.path.display().to_string()).into_owned()),
        ("BlockSize", target.block_bytes.to_string()),
        ("BaseFileOffset", target.base_bytes.to_string()),
        ("SequentialScan", (target.hint == Hint::Sequential).to_string()),
        ("RandomAccess", (target.hint == Hint::Random).to_string()),
        ("WriteRatio", target.write_percent.to_string()),
        ("RequestCount", target.outstanding.to_string()),
        ("ThreadsPerFile", target.threads.to_string()),
        ("Weight", target.weight.to_string()),
        ("UseLargePages", target.large_pages.to_string()),
        ("ThreadStride", target.thread_stride_bytes.to_string()),
        ("InterlockedSequential", target.interlocked.to_string()),
        ("DisableOSCache", (target.caching == Caching::Uncached).to_string()),
        ("MemoryMappedIo", (target.caching == Caching::Mapped).to_string()),
        ("WriteThrough", target.write_through.to_string()),
        ("WriteBufferContent", content(target)),
    ];
    let sizes = [
        ("Random", target.random_bytes),
        ("StrideSize", target.stride_bytes),
        ("FileSize", target.create_bytes),
        ("MaxFileSize", target.max_bytes),
        ("RandomRatio", target.random_percent.map(u64::from)),
        ("BurstSize", target.burst.map(u64::from)),
        ("ThinkTime", target.pause_ms.map(u64::from)),
        ("Throughput", target.throughput_bytes_per_ms.map(u64::from)),
    ];
    elements.extend(sizes.iter().filter_map(|(name, bytes)| Some((*name, (*bytes)?.to_string()))));
    elements
}
