//! A recorded application.

use crate::Error;
use crate::advice::factor;
use crate::course::{Page, PagePart, Table};
use crate::format::date;
use crate::plot::course::{Chart, Line, svg};
use crate::plot::density;
use crate::terminal::{Tone, paint, wrap};
use application::Latency;
use application::profile::{Course, FileProfile, Moment, Profile};
use application::verdict::{Advice, Change, FlowVerdict, Reference, Shape, Share, Verdict};
use machine::text::printable;
use machine::units::{grouped, plural, show_size, show_size_rounded, show_time, significant};
use results::{Axis, Kind, Program};

const MAPS: usize = 6;
/// Fewer requests make no map.
const FEW: u64 = 16;
const ROWS: usize = 40;

fn percent(share: &Share) -> String {
    let ends = share
        .interval_95
        .map(|[low, high]| format!(" ({:.0} to {:.0} %)", low * 100.0, high * 100.0));
    format!("{:.0} %{}", share.ratio * 100.0, ends.unwrap_or_default())
}

fn times(share: &Share) -> String {
    let ends = share
        .interval_95
        .map(|ends| ends.map(factor))
        .filter(|[low, high]| low != high)
        .map(|[low, high]| format!(" ({low} to {high})"));
    format!("×{}{}", factor(share.ratio), ends.unwrap_or_default())
}

fn outstanding(number: f64) -> String {
    if number < 1.05 {
        "one at a time".into()
    } else {
        format!("{} at a time", significant(number, 2))
    }
}

fn form(flow: &FlowVerdict) -> String {
    let Shape { request_bytes, sequential, durable, direct, .. } = flow.shape;
    let order = if sequential { "sequential" } else { "random" };
    let size = show_size_rounded(request_bytes);
    let kind = match (durable, direct) {
        (true, _) => " each on stable storage",
        (_, true) => " past the page cache",
        _ => "",
    };
    let queue = outstanding(flow.shape.outstanding);
    format!("{order} {}s of {size}{kind}, {queue}", flow.op)
}

fn change(advice: &Advice) -> String {
    match advice.change {
        Change::GroupCommit { times } => format!(
            "let {times} transactions share a flush (group commit: PostgreSQL's commit_delay, larger batches)"
        ),
        Change::Deeper { outstanding } => format!(
            "keep {outstanding} outstanding (prefetch: PostgreSQL's effective_io_concurrency, asynchronous I/O, more threads)"
        ),
        Change::Larger { request_bytes } => {
            format!("use requests of {}", show_size(request_bytes))
        }
        Change::Preallocate => {
            "preallocate the file and overwrite it in place (recycle log files)".into()
        }
        Change::Align { block_bytes } => {
            format!("start requests at multiples of {}", show_size(u64::from(block_bytes)))
        }
        Change::ReadAhead { bytes } => format!(
            "read ahead {} (blockdev --setra {}, or the sequential hint)",
            show_size(bytes),
            bytes / 512
        ),
        Change::Cache { bytes } => format!("give the cache {}", show_size_rounded(bytes as f64)),
    }
}

fn advice(one: &Advice) -> String {
    format!(
        "{}: {} of these requests, {} of the program",
        change(one),
        times(&one.gain),
        times(&one.program_gain)
    )
}

fn shares(flow: &FlowVerdict) -> Option<String> {
    let rate = |one: &Reference| format!("{}/s", grouped(one.iops.round()));
    let same = flow.same.as_ref().zip(flow.share.as_ref()).map(|(same, share)| {
        let what = match (flow.shape.durable, flow.shape.extends) {
            (true, true) => "durable writes into existing space",
            (true, false) => "durable writes",
            (false, _) => "requests",
        };
        format!("{} of the {} {what} that the volume does like this", percent(share), rate(same))
    });
    // The best may be the very requests that are like these.
    let other = flow.best.as_ref().filter(|best| {
        let same = flow.same.as_ref();
        same.is_none_or(|same| (same.iops, same.outstanding) != (best.iops, best.outstanding))
    });
    let best = other.zip(flow.share_of_best.as_ref()).map(|(best, share)| {
        format!("{} of its {} with {} outstanding", percent(share), rate(best), best.outstanding)
    });
    let said: Vec<String> = same.into_iter().chain(best).collect();
    (!said.is_empty())
        .then(|| format!("{}/s while it waits: {}", grouped(flow.iops.round()), said.join(", ")))
}

fn sentences(flow: &FlowVerdict) -> Vec<String> {
    let head = format!(
        "{}: {}; {:.0} % of the time waited",
        flow.role.name(),
        form(flow),
        flow.waited_share * 100.0
    );
    let mut said = vec![head, flow.limit.sentence.clone()];
    said.extend(shares(flow));
    said.extend(flow.advice.iter().map(advice));
    said
}

fn studied(verdict: &Verdict) -> String {
    let what = if verdict.study == Kind::Study { "the study of" } else { "measurements of" };
    format!("{what} {}, {}", verdict.target, date(verdict.studied_unix_s))
}

pub fn terminal(verdict: &Verdict, width: usize, colour: bool) -> String {
    let width = width.max(40);
    let mut out = String::from("\n");
    let mut say = |tone: Tone, indent: &str, text: &str| {
        for line in wrap(&printable(text), width - indent.len()) {
            out.push_str(indent);
            out.push_str(&paint(tone, &line, colour));
            out.push('\n');
        }
    };
    say(Tone::Strong, "", &format!("Verdict, compared with {}", studied(verdict)));
    verdict.doubts.iter().for_each(|doubt| say(Tone::Doubt, "", &format!("! {doubt}")));
    for flow in &verdict.flows {
        for (index, sentence) in sentences(flow).iter().enumerate() {
            let tone = if index == 1 { Tone::Strong } else { Tone::Plain };
            say(tone, if index == 0 { "" } else { "  " }, sentence);
        }
    }
    out
}

fn over_time(course: &Course, of: impl Fn(&Moment) -> Option<f64>) -> Vec<(f64, f64)> {
    let at = |slot: usize| (slot as f64 + 0.5) * course.slot_ns as f64;
    let point = |(slot, moment)| Some((at(slot), of(moment)?));
    course.slots.iter().enumerate().filter_map(point).collect()
}

fn charts(course: &Course) -> Vec<String> {
    let seconds = course.slot_ns as f64 * 1e-9;
    type Counted = fn(&Moment) -> u64;
    type Timed = fn(&Moment) -> &Option<Latency>;
    let kinds: [(&str, Counted, Timed); 3] = [
        ("reads", |one| one.reads, |one| &one.read),
        ("writes", |one| one.writes, |one| &one.write),
        ("syncs", |one| one.syncs, |one| &one.sync),
    ];
    let used =
        || kinds.iter().filter(|(_, count, _)| course.slots.iter().any(|one| count(one) > 0));
    let rates = used().map(|(name, count, _)| {
        Line::new(*name, over_time(course, |one| Some(count(one) as f64 / seconds)))
    });
    let p99 = used().map(|(name, _, latency)| {
        let of = |one: &Moment| latency(one).as_ref().map(|one| one.p99_ns as f64);
        Line::new(*name, over_time(course, of))
    });
    let chart = |title, y, lines: Vec<Line>| {
        svg(&Chart { title, x: Axis::TimeNs, x_title: "time", y, lines, shaded: None })
    };
    vec![
        chart("Requests per second", Axis::Iops, rates.collect()),
        chart("99th percentile of the latency", Axis::TimeNs, p99.collect()),
    ]
}

fn time(latency: Option<&Latency>, of: fn(&Latency) -> u64) -> String {
    latency.map_or_else(String::new, |one| show_time(of(one) as f64))
}

fn row(file: &FileProfile) -> Vec<String> {
    let flow = file
        .writes
        .as_ref()
        .filter(|writes| file.reads.as_ref().is_none_or(|reads| reads.requests < writes.requests));
    let flow = flow.or(file.reads.as_ref());
    let size = flow.and_then(|flow| flow.sizes.first()).map(|size| show_size(size.bytes));
    let count = |requests: Option<u64>| requests.map_or(String::new(), |one| grouped(one as f64));
    let sync = file.syncs.as_ref().and_then(|syncs| syncs.latency.as_ref());
    vec![
        file.name.clone(),
        file.role.name().into(),
        format!("{:.1} %", file.waited_share * 100.0),
        count(file.reads.as_ref().map(|flow| flow.requests)),
        count(file.writes.as_ref().map(|flow| flow.requests)),
        size.unwrap_or_default(),
        time(flow.and_then(|flow| flow.latency.as_ref()), |one| one.p50_ns),
        time(flow.and_then(|flow| flow.latency.as_ref()), |one| one.p99_ns),
        count(file.syncs.as_ref().map(|syncs| syncs.calls)),
        time(sync, |one| one.p99_ns),
    ]
}

fn head() -> Vec<String> {
    ["file", "role", "waited", "reads", "writes", "size", "p50", "p99", "syncs", "sync p99"]
        .map(str::to_owned)
        .to_vec()
}

fn sizes(profile: &Profile) -> Table {
    let row = |file: &FileProfile| {
        let flows = [("reads", &file.reads), ("writes", &file.writes)];
        let rows = flows.into_iter().filter_map(|(op, flow)| Some((op, flow.as_ref()?)));
        let name = file.name.clone();
        rows.map(move |(op, flow)| {
            let sizes = flow.sizes.iter().take(5).map(|size| {
                let share = size.requests as f64 / flow.requests.max(1) as f64 * 100.0;
                format!("{} {share:.0} %", show_size(size.bytes))
            });
            let part = |share: Option<f64>| {
                share.map_or(String::new(), |one| format!("{:.0} %", one * 100.0))
            };
            vec![
                name.clone(),
                op.to_owned(),
                sizes.collect::<Vec<_>>().join(", "),
                part(flow.sequential),
                part(flow.aligned),
                part(Some(flow.direct)),
            ]
        })
        .collect::<Vec<_>>()
    };
    Table {
        caption: "Sizes and order".into(),
        head: ["file", "", "sizes", "sequential", "aligned to 4 KiB", "direct"]
            .map(str::to_owned)
            .to_vec(),
        rows: profile.files.iter().take(ROWS).flat_map(row).collect(),
    }
}

pub fn html(profile: &Profile, name: &str, program: &Program) -> Result<String, Error> {
    let waited: Vec<(String, f64)> = profile
        .files
        .iter()
        .filter(|file| file.waited_share >= 0.005)
        .take(12)
        .map(|file| (format!("{} ({})", file.name, file.role.name()), file.waited_share))
        .collect();
    let maps = profile.files.iter().filter_map(|file| Some((file, file.heat.as_ref()?)));
    let maps: Vec<String> = maps
        .filter(|(_, map)| map.columns.iter().flatten().sum::<u64>() >= FEW)
        .take(MAPS)
        .map(|(file, map)| {
            let name = crate::plot::text::ending(&file.name, 700.0);
            density::svg(&name, map, profile.elapsed_ns)
        })
        .collect();
    let mut parts = Vec::new();
    if let Some(verdict) = &profile.verdict {
        let row = |flow: &FlowVerdict| {
            vec![
                format!("{} {}s", flow.role.name(), flow.op),
                form(flow),
                format!("{:.0} %", flow.waited_share * 100.0),
                flow.share.as_ref().map_or("not measured".into(), percent),
                flow.share_of_best.as_ref().map_or(String::new(), percent),
                flow.limit.what.words().to_owned(),
            ]
        };
        let names = ["requests", "form", "waited", "of the same", "of the best", "limit"];
        let help = |flow: &FlowVerdict| -> Vec<Vec<String>> {
            let row = |one: &Advice| {
                let of = format!("{} {}s", flow.role.name(), flow.op);
                vec![change(one), of, times(&one.gain), times(&one.program_gain)]
            };
            flow.advice.iter().map(row).collect()
        };
        let mut tables = vec![Table {
            caption: String::new(),
            head: names.map(str::to_owned).to_vec(),
            rows: verdict.flows.iter().map(row).collect(),
        }];
        let rows: Vec<Vec<String>> = verdict.flows.iter().flat_map(help).collect();
        if !rows.is_empty() {
            tables.push(Table {
                caption: "What would help".into(),
                head: ["change", "of", "rate", "whole program"].map(str::to_owned).to_vec(),
                rows,
            });
        }
        parts.push(PagePart {
            title: "Verdict".into(),
            text: format!(
                "Compared with {}. The same: the volume's rate of requests of this size, order, number outstanding and durability. The best: with any number outstanding.",
                studied(verdict)
            ),
            charts: Vec::new(),
            tables,
        });
    }
    parts.push(PagePart {
        title: "Waiting".into(),
        text: String::new(),
        charts: vec![density::shares("Share of the time waited, by file", &waited)],
        tables: vec![Table {
            caption: format!("Files, the longest waited for first{}", left_out(profile)),
            head: head(),
            rows: profile.files.iter().take(ROWS).map(row).collect(),
        }],
    });
    parts.push(PagePart {
        title: "Over time".into(),
        text: String::new(),
        charts: charts(&profile.course),
        tables: Vec::new(),
    });
    parts.push(PagePart {
        title: "Where the requests go".into(),
        text: String::new(),
        charts: maps,
        tables: vec![sizes(profile)],
    });
    let answer = answer(profile);
    let doubts: Vec<String> = profile
        .doubts
        .iter()
        .chain(profile.verdict.iter().flat_map(|verdict| &verdict.doubts))
        .cloned()
        .collect();
    let command = profile.command.join(" ");
    crate::course::html(&Page {
        kind: "profile",
        target: if command.is_empty() { name } else { &command },
        about: format!(
            "{name}: {} of {} in {}",
            plural(profile.requests as usize, "request"),
            plural(profile.threads as usize, "thread"),
            show_time(profile.elapsed_ns as f64)
        ),
        program,
        doubts: &doubts,
        notice: None,
        sentences: &answer,
        parts,
    })
}

fn left_out(profile: &Profile) -> String {
    match profile.files.len().saturating_sub(ROWS) {
        0 => String::new(),
        more => format!("; {more} more are in the JSON"),
    }
}

fn answer(profile: &Profile) -> Vec<String> {
    match &profile.verdict {
        Some(verdict) => verdict
            .flows
            .iter()
            .map(|flow| format!("{}: {}.", flow.role.name(), flow.limit.sentence))
            .collect(),
        None => profile
            .files
            .iter()
            .take(3)
            .map(|file| format!("{}: {}.", file.name, file.sentence(profile.elapsed_ns)))
            .collect(),
    }
}
