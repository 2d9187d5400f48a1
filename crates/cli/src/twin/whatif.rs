//! `halfpower twin whatif`.

use super::document::{directory, json, program, write};
use crate::context::Context;
use crate::failure::Failure;
use crate::points::RUN_NS;
use crate::terminal::table;
use clap::Args;
use machine::units::{GIB, KIB, MIB, parse_size, show_rate, show_size, show_time, significant};
use machine::{Allocation, Buffering, Engine, Machine};
use predict::whatif::{Comparison, Prediction, WhatIf, what_if};
use report::validation::{Page, Section, Table};
use results::{Axis, CurveName, Figure, Series, Value};
use std::path::PathBuf;
use twin::{Setup, Twin};
use workload::{Pattern, Stop, Workload};

/// Options of `twin whatif`. By default: sequential reads and writes by size at depths 1 and 8, and
/// random ones.
#[derive(Args, Clone)]
pub(super) struct Arguments {
    /// A machine of `halfpower twin list`, or a machine file (.toml), with settings behind it:
    /// gateway-1997,disks=4
    machine: String,
    /// A change: a setting of `halfpower twin list`, request=SIZE or depth=N; may be repeated
    #[arg(long, value_name = "SETTING=VALUE", required = true)]
    set: Vec<String>,
    /// read, write or mix [default: read,write]
    #[arg(long, value_delimiter = ',', value_parser = ["read", "write", "mix"])]
    op: Vec<String>,
    /// Percent of the requests of a mix that read
    #[arg(long, value_name = "PERCENT", default_value_t = 70, value_parser = clap::value_parser!(u8).range(1..=99))]
    read_percent: u8,
    /// seq or random [default: both, random with 4 KiB]
    #[arg(long, value_delimiter = ',', value_parser = ["seq", "random"])]
    pattern: Vec<String>,
    /// Request sizes [default: 4k,16k,64k,256k,1m]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    request: Vec<u64>,
    /// Requests outstanding [default: 1,8]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    depth: Vec<u32>,
    /// Through the file-system cache
    #[arg(long)]
    buffered: bool,
    /// Writes extend the file
    #[arg(long)]
    extend: bool,
    /// Bytes of each run, and of the file [default: one second on the whole volume]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    bytes: Option<u64>,
    /// Directory for report.html and results.json
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print as JSON on standard output
    #[arg(long)]
    json: bool,
}

struct Case {
    figure: String,
    name: String,
    workload: Workload,
}

pub(super) fn whatif(context: &Context, arguments: &Arguments) -> Result<(), Failure> {
    let base = Setup::parse(&arguments.machine)?;
    let output = directory(context, arguments.output.as_ref())?;
    let asked = workloads(arguments, &base)?;
    let named: Vec<(String, Workload)> =
        asked.iter().map(|one| (one.name.clone(), one.workload.clone())).collect();
    let result = what_if(&base, &arguments.set.join(","), &named)?;
    let document = json("whatif", &result)?;
    if arguments.json {
        context.console.print(&format!("{document}\n"))?;
    } else {
        let (head, rows) = short_rows(&result);
        context.console.print(&format!(
            "{} with {}\n{}\n{}\n",
            result.machine,
            result.changes,
            table(&head, &rows, 1),
            sentence(&result)
        ))?;
    }
    write(context, output.as_ref(), &page(&result, &asked), &document, arguments.json)
}

fn or_default<T: Clone>(given: &[T], default: &[T]) -> Vec<T> {
    if given.is_empty() { default.to_vec() } else { given.to_vec() }
}

fn workloads(arguments: &Arguments, base: &Setup) -> Result<Vec<Case>, Failure> {
    let twin = Twin::new(base.clone());
    let size = twin.target_facts(&twin.volume()).size_bytes;
    let engines = twin.capabilities().engines;
    let patterns = or_default(&arguments.pattern, &["seq".to_owned(), "random".to_owned()]);
    let mut asked = Vec::new();
    for op in or_default(&arguments.op, &["read".to_owned(), "write".to_owned()]) {
        for pattern in &patterns {
            let random = pattern == "random";
            let usual: &[u64] = if random { &[4] } else { &[4, 16, 64, 256, 1024] };
            let usual: Vec<u64> = usual.iter().map(|kib| kib * KIB).collect();
            for depth in or_default(&arguments.depth, &[1, 8]) {
                for request in or_default(&arguments.request, &usual) {
                    let workload =
                        workload_of(arguments, &op, random, request, depth, size, &engines)?;
                    let name = format!("{op} {pattern} {} x {depth}", show_size(request));
                    asked.push(Case { figure: format!("{op}, {pattern}"), name, workload });
                }
            }
        }
    }
    Ok(asked)
}

fn workload_of(
    arguments: &Arguments,
    op: &str,
    random: bool,
    request: u64,
    depth: u32,
    size: u64,
    engines: &[Engine],
) -> Result<Workload, Failure> {
    let wrong = |why: &str| {
        Failure::Usage(format!("--request {request}: {why}; give a multiple of 512 bytes up to 1g"))
    };
    let region = arguments.bytes.map_or(size, |bytes| size.min(bytes.max(request)));
    if request == 0 || !request.is_multiple_of(512) {
        return Err(wrong("no size of a request"));
    }
    if request > region || request > GIB {
        return Err(wrong("larger than what is read and written"));
    }
    let request_bytes = u32::try_from(request).map_err(|_| wrong("too large"))?;
    let once = || Stop::AfterNs(RUN_NS);
    let whole = |bytes: u64| Stop::AfterBytes(bytes.max(request) / request * request);
    Ok(Workload {
        read_percent: match op {
            "read" => 100,
            "write" => 0,
            _ => arguments.read_percent,
        },
        pattern: if random { Pattern::Random } else { Pattern::Seq },
        request_bytes,
        depth,
        engine: Engine::for_depth(depth, engines),
        region_bytes: arguments.bytes.map(|_| region),
        stop: arguments.bytes.map_or_else(once, whole),
        buffering: if arguments.buffered { Buffering::Buffered } else { Buffering::Direct },
        allocation: if arguments.extend && op != "read" {
            Allocation::Extend
        } else {
            Allocation::Written
        },
        sync_at_end: arguments.buffered && op != "read",
        ..Workload::default()
    })
}

fn rate(one: &Prediction) -> String {
    significant(one.throughput_bytes_per_s / MIB as f64, 3)
}

fn latency(one: &Prediction) -> String {
    show_time(one.latency_ns as f64)
}

fn limit(one: &Prediction) -> String {
    let busy = one.busy_share.map_or(String::new(), |share| format!(" {:.0}%", share * 100.0));
    format!("{}{busy}", one.bottleneck)
}

fn short_rows(result: &WhatIf) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let row = |one: &Comparison| {
        let (before, after) = (&one.before, &one.after);
        let gain = format!("×{}", significant(one.gain, 3));
        vec![
            one.workload.clone(),
            rate(before),
            rate(after),
            gain,
            latency(before),
            latency(after),
            limit(before),
            limit(after),
        ]
    };
    (
        vec!["workload", "MiB/s", "then", "gain", "latency", "then", "limit", "then"],
        result.comparisons.iter().map(row).collect(),
    )
}

fn rows(result: &WhatIf) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let (mut head, mut rows) = short_rows(result);
    head.extend(["CPU ms/MiB", "then"]);
    for (row, one) in rows.iter_mut().zip(&result.comparisons) {
        row.extend([&one.before, &one.after].map(|side| significant(side.cpu_ms_per_mib, 3)));
    }
    (head, rows)
}

fn sentence(result: &WhatIf) -> String {
    let by_gain = |a: &&Comparison, b: &&Comparison| a.gain.total_cmp(&b.gain);
    let (Some(best), Some(worst)) =
        (result.comparisons.iter().max_by(by_gain), result.comparisons.iter().min_by(by_gain))
    else {
        return String::new();
    };
    let reported = |one: &Comparison| {
        let rates = [&one.before, &one.after].map(|side| show_rate(side.throughput_bytes_per_s));
        format!("{}: ×{}, {} become {}", one.workload, significant(one.gain, 3), rates[0], rates[1])
    };
    let moved = |one: &Comparison| match (&one.before.bottleneck, &one.after.bottleneck) {
        (before, after) if before == after => format!("still limited by {after}"),
        (before, after) => format!("the limit moves from {before} to {after}"),
    };
    let mut said =
        format!("{} gains most for {}; {}.", result.changes, reported(best), moved(best));
    if result.comparisons.len() > 1 {
        said.push_str(&format!(" Least for {}.", reported(worst)));
    }
    said
}

fn page(result: &WhatIf, asked: &[Case]) -> Page {
    let (head, rows) = rows(result);
    let head = head.into_iter().map(String::from).collect();
    Page {
        kind: "whatif".into(),
        title: format!("twin:{} with {}", result.machine, result.changes),
        about: "simulated, as it is and changed".into(),
        program: program(),
        sections: vec![Section {
            title: "What would change".into(),
            question: format!("What does {} do to each workload?", result.changes),
            sentence: sentence(result),
            figures: figures(result, asked),
            tables: vec![Table { title: "Every workload".into(), head, rows, folded: false }],
        }],
    }
}

fn figures(result: &WhatIf, asked: &[Case]) -> Vec<Figure> {
    let mut names: Vec<&str> = Vec::new();
    for one in asked {
        if !names.contains(&one.figure.as_str()) {
            names.push(&one.figure);
        }
    }
    let drawn = names.into_iter().enumerate().map(|(place, name)| {
        let of: Vec<(&Case, &Comparison)> = asked
            .iter()
            .zip(&result.comparisons)
            .filter(|(asked, _)| asked.figure == name)
            .collect();
        let by_size = of
            .iter()
            .any(|(asked, _)| asked.workload.request_bytes != of[0].0.workload.request_bytes);
        let x = if by_size { Axis::RequestBytes } else { Axis::Depth };
        let title = name.replace(", seq", ", in order").replace(", random", ", scattered");
        Figure {
            id: format!("whatif-{place}"),
            title,
            x,
            y: Axis::BytesPerS,
            series: curves(&of, by_size),
        }
    });
    drawn.collect()
}

fn curves(of: &[(&Case, &Comparison)], by_size: bool) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for (asked, comparison) in of {
        let workload = &asked.workload;
        let x = if by_size { f64::from(workload.request_bytes) } else { f64::from(workload.depth) };
        let held = if by_size {
            format!("depth {}", workload.depth)
        } else {
            show_size(u64::from(workload.request_bytes))
        };
        for (side, prediction) in [("as it is", &comparison.before), ("changed", &comparison.after)]
        {
            let value = Value {
                x,
                y: Some(prediction.throughput_bytes_per_s),
                interval_95: None,
                point: None,
            };
            let name = CurveName::from(side).in_group(&held);
            match series.iter_mut().find(|one| one.name == name.to_string()) {
                Some(one) => one.values.push(value),
                None => series.push(Series::new(name, vec![value])),
            }
        }
    }
    for one in &mut series {
        one.values.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    series
}
