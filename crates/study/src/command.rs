use crate::grid::StripeShape;
use crate::sampler::Entry;
use machine::units::show_size;
use machine::{Raid5, TargetFacts, TargetKind, TargetSpec};
use std::borrow::Cow;
use workload::{Stop, Workload, time_option};

const LISTS: [&str; 10] = [
    "--op",
    "--pattern",
    "--request",
    "--depth",
    "--threads",
    "--engine",
    "--allocate",
    "--offset",
    "--hint",
    "--cache",
];

pub(crate) struct Command {
    places: Vec<String>,
    size: Option<u64>,
    destroy: Vec<String>,
    chunk: u64,
    raid5: Option<Raid5>,
}

impl Command {
    pub(crate) fn new(spec: &TargetSpec, facts: &TargetFacts) -> Command {
        let quoted = |path: &std::path::PathBuf| quoted(&path.to_string_lossy()).into_owned();
        let mut destroy: Vec<String> =
            spec.destroy.iter().map(|path| format!("--destroy-data {}", quoted(path))).collect();
        if spec.destroy_signed {
            destroy.push("--destroy-signature".into());
        }
        // A test file of another size may have another location, and may fit a cache that this one
        // does not.
        let made = matches!(facts.kind, TargetKind::TestFile).then_some(facts.size_bytes);
        Command {
            places: spec.places.iter().map(quoted).collect(),
            size: spec.size.or(made),
            destroy,
            chunk: spec.chunk,
            raid5: spec.raid5,
        }
    }

    pub(crate) fn options(&self, entry: &Entry) -> Vec<String> {
        let mut options: Vec<String> =
            entry.workload.options().split(' ').map(str::to_string).collect();
        let chunk = entry
            .shape
            .as_ref()
            .filter(|shape| shape.members.len() > 1)
            .map_or(self.chunk, |one| one.chunk);
        for (option, value) in [("--size", self.size.unwrap_or(0)), ("--chunk", chunk)] {
            if value > 0 {
                options.extend([option.into(), show_size(value).replace(' ', "")]);
            }
        }
        // A longer run would measure something else: a larger file, a longer flush, memory that the
        // host has reclaimed meanwhile.
        if let stop @ Stop::AfterNs(ns) = entry.workload.stop
            && stop != Workload::default().stop
        {
            options.extend(["--runtime".into(), time_option(ns.div_ceil(1000) * 1000)]);
        }
        if let Some(Raid5 { failed, rebuild }) = self.raid5 {
            options.extend(["--raid".into(), "5".into()]);
            options.extend(
                failed.into_iter().flat_map(|member| ["--failed".into(), member.to_string()]),
            );
            options.extend(rebuild.then(|| "--rebuild".into()));
        }
        options
    }

    fn target(&self, entries: [&Entry; 2]) -> String {
        let all: Vec<u32> = (0..self.places.len() as u32).collect();
        let members = entries[0].shape.as_ref().map_or(&all, |StripeShape { members, .. }| members);
        let named: Vec<&str> = members
            .iter()
            .filter_map(|&member| self.places.get(member as usize))
            .map(String::as_str)
            .collect();
        let named = if named.is_empty() { self.places.join(" ") } else { named.join(" ") };
        if entries.iter().any(|entry| entry.workload.writes()) && !self.destroy.is_empty() {
            return format!("{named} {}", self.destroy.join(" "));
        }
        named
    }

    /// The command that repeats a comparison.
    pub(crate) fn check(&self, before: &Entry, after: &Entry) -> String {
        let (a, b) = (self.options(before), self.options(after));
        let differing: Vec<usize> =
            (0..a.len().min(b.len())).filter(|&index| a[index] != b[index]).collect();
        let same_members = before.shape.as_ref().map(|one| &one.members)
            == after.shape.as_ref().map(|one| &one.members);
        if a.len() == b.len()
            && let [one] = differing[..]
            && one > 0
            && LISTS.contains(&a[one - 1].as_str())
            && same_members
        {
            let merged: Vec<String> = a
                .iter()
                .zip(&b)
                .map(|(a, b)| if a == b { a.clone() } else { format!("{a},{b}") })
                .collect();
            return format!(
                "halfpower sweep {} {}",
                self.target([before, after]),
                merged.join(" ")
            );
        }
        let run = |entry, options: Vec<String>| {
            format!("halfpower run {} {}", self.target([entry, entry]), options.join(" "))
        };
        format!("{}; {}", run(before, a), run(after, b))
    }
}

fn quoted(word: &str) -> Cow<'_, str> {
    shlex::try_quote(word).unwrap_or(Cow::Borrowed(word))
}
