//! Formats options as a command line.

use super::profile::{Caching, Format, RangeLength, Source, TimeSpan};
use super::{Options, Overrides};
use crate::parse::joined;
use machine::Hint;
use std::fmt;

impl Options {
    /// Equivalent arguments; a profile from a file stays a name.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(file) = &self.file {
            words.push(format!("-X{}", file.display()));
        }
        let only = if self.profile_only { "p" } else { "" };
        match self.profile.format {
            Format::Xml => words.push(format!("-R{only}xml")),
            Format::Text if self.profile_only => words.push("-Rp".into()),
            Format::Text => {}
        }
        if let (None, Some(span)) = (&self.file, self.profile.spans.first()) {
            words.extend(span_words(span));
        }
        let Overrides { duration_s, warm_up_s, cool_down_s, seed } = self.overrides;
        let overrides = [("-d", duration_s), ("-W", warm_up_s), ("-C", cool_down_s), ("-z", seed)];
        words.extend(
            overrides.iter().filter_map(|(option, value)| Some(format!("{option}{}", (*value)?))),
        );
        words.extend(self.clock_seeds.then(|| "-z".to_string()));
        words.extend(self.json.iter().map(|path| format!("--json={}", path.display())));
        words.extend(self.destroy.iter().map(|path| format!("--destroy-data={}", path.display())));
        words.extend(self.destroy_signed.then(|| "--destroy-signature".to_string()));
        if let (None, Some(span)) = (&self.file, self.profile.spans.first()) {
            words.extend(span.targets.iter().map(|target| target.path.display().to_string()));
        }
        words.extend(self.targets.iter().map(|path| path.display().to_string()));
        words
    }
}

/// The targets may differ only in their paths.
fn span_words(span: &TimeSpan) -> Vec<String> {
    let Some(target) = span.targets.first() else { return Vec::new() };
    let mut words = vec![
        format!("-b{}", target.block_bytes),
        format!("-d{}", span.duration_s),
        format!("-W{}", span.warm_up_s),
        format!("-C{}", span.cool_down_s),
        format!(
            "-{}{}",
            if span.pool.is_some_and(|pool| pool.outstanding.is_some()) { "O" } else { "o" },
            target.outstanding
        ),
        format!("-{}{}", if span.pool.is_some() { "F" } else { "t" }, target.threads),
        format!("-w{}", target.write_percent),
        format!("-z{}", span.seed),
    ];
    words.extend(target.random_percent.map(|percent| format!("-rs{percent}")));
    if !target.ranges.is_empty() {
        let ranges: Vec<String> = target
            .ranges
            .iter()
            .map(|(requests, of)| format!("{requests}/{}", of.number()))
            .collect();
        let absolute = matches!(target.ranges[0].1, RangeLength::Bytes(_));
        let unit = if absolute { "abs" } else { "pct" };
        words.push(format!("-rd{unit}{}", ranges.join(":")));
    }
    words.extend(target.burst.map(|count| format!("-i{count}")));
    words.extend(target.pause_ms.map(|ms| format!("-j{ms}")));
    let sizes =
        [("-r", target.random_bytes), ("-f", target.max_bytes), ("-c", target.create_bytes)];
    words.extend(sizes.iter().filter_map(|(option, bytes)| Some(format!("{option}{}", (*bytes)?))));
    if target.interlocked || target.stride_bytes.is_some() {
        let stride = target.stride_bytes.map_or(String::new(), |bytes| bytes.to_string());
        words.push(format!("-s{}{stride}", if target.interlocked { "i" } else { "" }));
    }
    let zero = [("-B", target.base_bytes), ("-T", target.thread_stride_bytes)];
    words.extend(
        zero.iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(option, bytes)| format!("{option}{bytes}")),
    );
    words.extend(span.interval_ms.map(|ms| format!("-D{ms}")));
    words.extend(target.throughput_bytes_per_ms.map(|bytes| format!("-g{bytes}")));
    words.extend(target.throughput_iops.map(|rate| format!("-g{rate}i")));
    let flags = [
        (span.latency, "-L"),
        (span.completion_routines, "-x"),
        (target.large_pages, "-l"),
        (target.hint == Hint::Random, "-fr"),
        (target.hint == Hint::Sequential, "-fs"),
        (target.source == Source::Zero, "-Z"),
    ];
    words.extend(flags.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_string()));
    if let Some(bytes) = target.source_bytes {
        let file = target
            .source_file
            .as_ref()
            .map_or(String::new(), |path| format!(",{}", path.display()));
        words.push(format!("-Z{bytes}{file}"));
    }
    let processors: Vec<String> = span.processors.iter().map(u32::to_string).collect();
    words.extend((!processors.is_empty()).then(|| format!("-a{}", processors.join(","))));
    words.push(match (target.caching, target.write_through) {
        (Caching::Cached, false) => "-Sb".into(),
        (Caching::Cached, true) => "-Sbw".into(),
        (Caching::Uncached, false) => "-Su".into(),
        (Caching::Uncached, true) => "-Sh".into(),
        (Caching::Mapped, false) => "-Sm".into(),
        (Caching::Mapped, true) => "-Smw".into(),
    });
    words
}

impl Options {
    /// As typed, or equivalent.
    pub fn command(&self) -> String {
        self.typed.clone().unwrap_or_else(|| self.to_string())
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.words()))
    }
}
